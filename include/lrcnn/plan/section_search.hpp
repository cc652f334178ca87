#pragma once
// The fastest way to run a network's step within a number of bytes, section by section.
//
// A network is divided into sections at layers whose outputs may be kept, and each section has many ways to be run (plan/section_choice.hpp).
// The search goes upward from the network's input. For every place where a section may end it keeps the best ways to get there: a way is
// better than another if it takes less time and leaves fewer bytes waiting for the backward pass. A section is added only if its two peaks,
// with all that waits below it and all that passes by, fit into the bytes. Bytes are exact but for buffers at the very start and end of a step,
// where a little more is counted; what the plan's placement adds is not: plan/frontier.hpp verifies each solution.
#include <lrcnn/core/parallel.hpp>
#include <lrcnn/plan/section_ends.hpp>
#include <lrcnn/plan/section_tries.hpp>
#include <bit>
#include <limits>
namespace lrcnn {
/// A policy that a search found.
struct SolvedPolicy {
  PolicySpec policy{};
  Index bytes = 0;      ///< at the plan's peak
  double seconds = 0;   ///< of a step
  Index steps = 0;      ///< of its plan
  friend bool operator==(const SolvedPolicy&, const SolvedPolicy&) = default;
};
/// A section of a network with the ways to run it.
struct SectionOfSearch {
  SectionBorder border;
  bool numbered = true;         ///< it has a partition of its own in a policy: not if it is the factors of a scale alone
  bool at_checkpoint = false;   ///< it ends because a policy says so, rather than at a barrier
  std::vector<SectionChoice> choices{};
};
class SectionSearch {
 public:
  /// Looks at all sections. `policy`: what holds for the whole step; `names`: a bit for each PolicySpec::Part of it that is not to be chosen;
  /// `own_workspaces`: each section has a workspace of its own, that lives while it runs, rather than one that all share.
  /// Pre: the table, the target, the options and the costs outlive the object.
  SectionSearch(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs,
                std::uint32_t names = 0, int threads = 1, bool own_workspaces = false)
      : table_(table),
        policy_(policy),
        names_(names),
        target_(target),
        options_(options),
        images_(group_images(table, policy)),
        costs_(costs),
        readers_(table, target, options, images_) {
    if (!is_named(PolicySpec::Part::checkpoints)) policy_.checkpoints = {};
    policy_.workspace_bytes = std::max<Index>(policy_.workspace_bytes, is_named(PolicySpec::Part::workspace) ? 0 : 64_MiB);   // seconds are with such
    find_sections();
    find_choices(threads, own_workspaces);
    if (const auto quickest = fastest(std::numeric_limits<Index>::max() / 2, 0); !quickest.empty()) section_rank_ = quickest[0].seconds / 10'000;
  }
  /// The fastest policies whose live bytes are at most `bytes`, a workspace of `workspace_bytes` among them, at most `count` of them, by rising
  /// seconds; none if there is none. Their `bytes` and `steps` are not filled in.
  std::vector<SolvedPolicy> fastest(Index bytes, Index workspace_bytes, std::size_t count = 1) const {
    const Index always = constant_bytes(workspace_bytes), room = bytes - always;
    std::vector<std::vector<Label>> labels(static_cast<std::size_t>(table_.size() + 1));
    labels[0].push_back({});
    for (Index at = 0; at < table_.size(); ++at) {
      keep_best(item(labels, at), at, room);
      for (std::size_t l = 0; l < item(labels, at).size(); ++l)
        for (const std::size_t s : item(sections_from_, at)) extend(labels, at, l, s, room);
    }
    auto& complete = labels.back();
    const auto end = complete.begin() + static_cast<Index>(std::min(count, complete.size()));
    std::partial_sort(complete.begin(), end, complete.end(), [](const Label& a, const Label& b) { return a.rank < b.rank; });
    std::vector<SolvedPolicy> solved;
    for (auto label = complete.begin(); label != end; ++label) solved.push_back({policy_of(labels, *label, workspace_bytes), 0, label->seconds, 0});
    return solved;
  }
  /// Layers behind which a policy may end a section, as far as this search looks at them.
  std::vector<Index> checkpoints() const {
    std::vector<Index> layers;
    for (const SectionOfSearch& s : sections_)
      if (s.at_checkpoint && !s.choices.empty()) layers.push_back(s.border.end() - 1);
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    return layers;
  }
  /// Sections that were looked at, and ways to run them that none other beats.
  std::size_t section_count() const { return sections_.size(); }
  std::size_t choice_count() const {
    std::size_t count = 0;
    for (const SectionOfSearch& s : sections_) count += s.choices.size();
    return count;
  }

 private:
  /// A way to run all sections below a layer. There are very many of them.
  struct Label {
    double seconds = 0;
    double rank = 0;                                        ///< seconds, and a little for each section
    Index kept = 0;                                         ///< bytes that wait for the backward passes of these sections
    std::uint64_t tensors = 0;                              ///< those of across_[layer] that are among them
    const Partition* partition = nullptr;                   ///< the last one that a section has of its own
    std::int32_t sections = 0, partitions = 0, names = 0;   ///< sections; those of them with a partition, and those that end at a checkpoint
    std::int32_t before = 0, section = 0, choice = 0;       ///< the label where its last section begins; that section and its choice
  };
  const Table& table_;
  PolicySpec policy_;
  const std::uint32_t names_;
  const Target& target_;
  const PlanOptions& options_;
  const Index images_;
  const Costs& costs_;
  detail::TensorReaders readers_;
  std::vector<SectionOfSearch> sections_{};
  double section_rank_ = 0;                                 ///< of two ways that take equally long, the one of fewer sections is chosen
  std::vector<std::vector<std::size_t>> sections_from_{};   ///< numbers of the sections that begin at each layer
  std::vector<std::vector<Index>> across_{};                ///< of each layer: tensors from below that are read from there on
  std::vector<char> followed_{};                            ///< of each layer: a section without a partition of its own begins there

  bool is_named(PolicySpec::Part part) const { return PolicySpec::is_among(names_, part); }

  // ---- sections ----------------------------------------------------------------------------------------------------
  void find_sections() {
    for (Index l = 0; l <= table_.size(); ++l) across_.push_back(readers_.across(l));
    sections_from_.resize(static_cast<std::size_t>(table_.size() + 1));
    const bool given = is_named(PolicySpec::Part::checkpoints);
    const std::vector<char> ends = given ? detail::ends_of(table_, policy_) : detail::SectionEnds(table_, readers_, across_).find();
    std::vector<char> begins(static_cast<std::size_t>(table_.size() + 1), 0);
    begins[0] = 1;
    for (Index begin = 0; begin < table_.size(); ++begin) {
      if (!item(begins, begin)) continue;
      Index last = detail::section_end(table_, begin, options_.training);
      for (Index end = begin + 1; given && end < last; ++end)
        if (item(ends, end - 1)) last = end;
      for (Index end = begin + 1; end <= last; ++end) {
        if (end < last && (given || !item(ends, end - 1))) continue;
        add_section(begin, end, end < last);
        item(begins, end) = 1;
      }
    }
  }
  void add_section(Index begin, Index end, bool at_checkpoint) {
    SectionOfSearch section{SectionBorder(table_, readers_, target_, options_, images_, begin, end)};
    section.at_checkpoint = at_checkpoint;
    section.numbered = !detail::split_layers(table_, begin, end, options_.training, [](Index) { return false; }).back().behind_means;
    sections_.push_back(std::move(section));
  }
  /// Finds the choices of all sections, those of twins once. Each section is a thread's.
  void find_choices(int threads, bool own_workspaces) {
    followed_.assign(static_cast<std::size_t>(table_.size() + 1), 0);
    for (const SectionOfSearch& section : sections_) item(followed_, section.border.begin()) |= !section.numbered;
    std::vector<std::size_t> twins, sole;   // of each section: the first that is like it; those that are like none before
    for (std::size_t s = 0; s < sections_.size(); ++s) {
      const auto is_twin = [&](std::size_t other) {
        const SectionBorder &a = sections_[s].border, &b = sections_[other].border;
        return item(followed_, a.end()) == item(followed_, b.end()) && a.is_twin(b);
      };
      const auto twin = std::find_if(sole.begin(), sole.end(), is_twin);
      twins.push_back(twin == sole.end() ? s : *twin);
      if (twin == sole.end()) sole.push_back(s);
    }
    on_threads(sole.size(), threads, [&] {
      return [&, tries = SectionTries(table_, policy_, names_, target_, options_, costs_, images_, own_workspaces)](std::size_t i) mutable {
        SectionOfSearch& section = sections_[sole[sole.size() - 1 - i]];
        section.choices = tries.find(section.border, item(followed_, section.border.end()));
      };
    });
    for (std::size_t s = 0; s < sections_.size(); ++s) {
      SectionOfSearch& section = sections_[s];
      const SectionOfSearch& twin = sections_[twins[s]];
      for (const SectionChoice& choice : twin.choices)
        if (twins[s] != s) section.choices.push_back(choice.moved(section.border.begin() - twin.border.begin()));
      if (!section.choices.empty()) item(sections_from_, section.border.begin()).push_back(s);
    }
  }

  // ---- search ------------------------------------------------------------------------------------------------------
  /// What lives through the whole step, whichever sections it has.
  Index constant_bytes(Index workspace_bytes) const {
    Index bytes = target_.uses_workspace ? round_up(workspace_bytes, target_.alignment) * policy_.streams : 0;
    if (images_ < table_.input.n)
      bytes += (options_.stores_output ? 0 : readers_.bytes(table_.size())) + (options_.input_gradient ? readers_.bytes(0) : 0);
    return bytes;
  }
  void extend(std::vector<std::vector<Label>>& labels, Index at, std::size_t number, std::size_t section_number, Index room) const {
    const Label label = item(labels, at)[number];
    const SectionOfSearch& section = sections_[section_number];
    const SectionBorder& border = section.border;
    const std::int32_t partitions = label.partitions + section.numbered, names = label.names + section.at_checkpoint;
    if (static_cast<std::size_t>(partitions) > PolicySpec::capacity || static_cast<std::size_t>(names) > Checkpoints::capacity) return;
    const std::vector<Index>&below = item(across_, at), &above = item(across_, border.end());
    const auto bit_of = [](const std::vector<Index>& tensors, Index g) {
      const auto place = std::lower_bound(tensors.begin(), tensors.end(), g);
      const auto bit = static_cast<std::size_t>(place - tensors.begin());   // beyond the bits: counted by each section that keeps it
      return place != tensors.end() && *place == g && bit < bits ? std::uint64_t{1} << bit : 0;
    };
    const auto is_kept = [&](Index g) { return (label.tensors & bit_of(below, g)) != 0; };
    Index forward_room = room - label.kept, backward_room = forward_room - border.passing_gradients();
    if (!border.is_last() && !options_.stores_output && images_ == table_.input.n) backward_room -= readers_.bytes(table_.size());   // the output
    std::uint64_t kept_above = 0;   // of what lives on above the section
    for (const Index g : border.passing()) is_kept(g) ? kept_above |= bit_of(above, g) : forward_room -= readers_.bytes(g);
    std::uint64_t already = 0;
    for (std::size_t i = 0; i < border.inputs().size(); ++i) {
      const Index g = border.inputs()[i];
      if (is_kept(g) && i < bits) already |= std::uint64_t{1} << i, kept_above |= bit_of(above, g);
    }
    std::vector<Label>& ends = item(labels, border.end());
    const std::size_t first = ends.size();
    for (std::size_t c = 0; c < section.choices.size(); ++c) {   // by rising seconds
      const SectionChoice& choice = section.choices[c];
      if (!section.numbered && !SectionTries::follows(choice.partition(), *label.partition)) continue;
      const SectionPeaks& peaks = choice.peaks(already);
      if (peaks.forward > forward_room || peaks.backward > backward_room) continue;
      Label next = label;
      next.seconds += choice.seconds(), next.rank += choice.seconds() + section_rank_;
      next.kept += choice.kept(), next.tensors = kept_above;
      ++next.sections, next.partitions = partitions, next.names = names;
      next.before = static_cast<std::int32_t>(number), next.section = static_cast<std::int32_t>(section_number);
      next.choice = static_cast<std::int32_t>(c);
      if (section.numbered) next.partition = &choice.partition();
      for (std::size_t i = 0; i < border.inputs().size(); ++i) {
        if (!choice.keeps_input(i) || (i < bits && (already >> i & 1) != 0)) continue;
        next.kept += readers_.bytes(border.inputs()[i]);
        next.tensors |= bit_of(above, border.inputs()[i]);
      }
      for (const Index g : choice.kept_outputs()) next.tensors |= bit_of(above, g);
      const auto beats = [&](const Label& b) {
        return b.seconds <= next.seconds && b.kept <= next.kept && (next.tensors & ~b.tensors) == 0 && leads_on_like(b, next, border.end());
      };
      if (std::none_of(ends.begin() + static_cast<Index>(first), ends.end(), beats)) ends.push_back(next);
    }
  }
  /// Of labels at one layer, those that no other beats; of those whose bytes hardly differ, the fastest. Another beats a label if it is as fast and
  /// leaves no more bytes waiting, those tensors counted that only the label has among its own.
  void keep_best(std::vector<Label>& labels, Index at, Index room) const {
    std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.kept != b.kept ? a.kept < b.kept : a.tensors < b.tensors;
    });
    const auto least = std::min_element(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.kept < b.kept; });
    const std::size_t fewest = static_cast<std::size_t>(least - labels.begin());
    std::vector<Label> best;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const Label& label = labels[i];
      const Index hardly = i == fewest ? 0 : room / 250;
      const Index least_saved = label.kept + hardly;
      const auto beats = [&](const Label& b) {
        return b.kept <= least_saved && b.kept + bytes_of(at, label.tensors & ~b.tensors) <= least_saved && leads_on_like(b, label, at);
      };
      if (std::none_of(best.rbegin(), best.rend(), beats)) best.push_back(label);
    }
    labels = std::move(best);
  }
  /// Whether what follows at this layer is run in the same way behind both labels.
  bool leads_on_like(const Label& a, const Label& b, Index at) const {
    return !item(followed_, at) || a.partition == nullptr || b.partition == nullptr || a.partition->images == b.partition->images;
  }
  /// Bytes of tensors across a layer.
  Index bytes_of(Index at, std::uint64_t tensors) const {
    Index bytes = 0;
    for (; tensors != 0; tensors &= tensors - 1) bytes += readers_.bytes(item(across_, at)[static_cast<std::size_t>(std::countr_zero(tensors))]);
    return bytes;
  }
  const Label& before(const std::vector<std::vector<Label>>& labels, const Label& label) const {
    return item(item(labels, item(sections_, label.section).border.begin()), label.before);
  }
  PolicySpec policy_of(const std::vector<std::vector<Label>>& labels, const Label& last, Index workspace_bytes) const {
    std::vector<const Label*> way;
    for (const Label* label = &last; label->sections > 0; label = &before(labels, *label)) way.insert(way.begin(), label);
    PolicySpec policy = policy_;
    policy.partitions = {};
    if (target_.uses_workspace) policy.workspace_bytes = workspace_bytes;
    policy.partition_count = 0;
    std::size_t names = 0;
    for (const Label* label : way) {
      const SectionOfSearch& section = item(sections_, label->section);
      if (section.at_checkpoint) {
        policy.checkpoints.rule = Checkpoints::Rule::named;
        policy.checkpoints.names[names++] = table_.node(section.border.end() - 1).layer.name;
      }
      if (section.numbered) item(policy.partitions, policy.partition_count++) = item(section.choices, label->choice).partition();
    }
    policy.partition_count = std::max<Index>(policy.partition_count, 1);
    return policy;
  }
  static constexpr std::size_t bits = 64;   ///< of Label::tensors
};
}   // namespace lrcnn
