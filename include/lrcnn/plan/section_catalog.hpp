#pragma once
// The sections that a search looks at, with the ways to run each that are worth knowing.
#include <lrcnn/core/parallel.hpp>
#include <lrcnn/plan/section_ends.hpp>
#include <lrcnn/plan/section_groups.hpp>
#include <lrcnn/plan/section_tries.hpp>
namespace lrcnn {
/// A section of a network with the ways to run it.
struct SectionOfSearch {
  SectionBorder border;
  bool numbered = true;         ///< it has a partition of its own in a policy: not if it is the factors of a scale alone
  bool at_checkpoint = false;   ///< it ends because a policy says so, rather than at a barrier
  SectionChoices choices{};
};
class SectionCatalog {
 public:
  /// Looks at all sections. `policy`: what holds for the whole step; `names`: a bit for each PolicySpec::Part of it that is not to be chosen;
  /// `memories`: what a step's memory may be like; not empty.
  /// Pre: the table, the target, the options and the costs outlive the object.
  SectionCatalog(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options, const Costs& costs,
                 std::uint32_t names, int threads, std::vector<StepMemory> memories)
      : table_(table),
        policy_(policy),
        names_(names),
        target_(target),
        options_(options),
        costs_(costs),
        images_(group_images(table, policy)),
        memories_(std::move(memories)),
        readers_(table, target, options, images_) {
    find_sections();
    thorough_ = has_few_ways();
    find_choices(threads);
  }
  SectionCatalog(const SectionCatalog&) = delete;   // borders refer to its readers
  SectionCatalog& operator=(const SectionCatalog&) = delete;
  const std::vector<SectionOfSearch>& sections() const { return sections_; }
  /// Of the network.
  Index layers() const { return table_.size(); }
  /// Numbers of the sections that begin at a layer.
  const std::vector<std::size_t>& from(Index layer) const { return item(sections_from_, layer); }
  /// Tensors from below a layer that are read from there on.
  const std::vector<Index>& across(Index layer) const { return item(across_, layer); }
  /// Whether a network has so few sections, and maps of so few rows, that all ways to run them are tried and timed in full.
  bool is_thorough() const { return thorough_; }
  /// Whether a section without a partition of its own begins at a layer.
  bool is_followed(Index layer) const { return item(followed_, layer) != 0; }
  const detail::TensorReaders& readers() const { return readers_; }
  /// How many images the step has at once.
  Index images() const { return images_; }
  /// Whether the network's output is kept to the end of the step.
  bool keeps_output() const { return keeps_output_; }
  /// Bytes of other sections that live through the whole backward pass of a section.
  Index backward_bytes(const SectionBorder& border) const {
    const bool output = keeps_output_ && images_ == table_.input.n && !border.is_last();
    return border.passing_gradients() + (output ? readers_.bytes(table_.size()) : 0);
  }
  const std::vector<StepMemory>& memories() const { return memories_; }
  bool looks_at(StepMemory memory) const { return std::find(memories_.begin(), memories_.end(), memory) != memories_.end(); }
  /// Whether gradients can lie in their values' places in any of the ways that are known, or inputs of a sum may have one gradient.
  bool puts_in_place() const {
    return may_share_ || std::any_of(sections_.begin(), sections_.end(), [](const SectionOfSearch& s) {
             const auto& choices = s.choices.of(StepMemory::in_place);
             return std::any_of(choices.begin(), choices.end(), [](const SectionChoice& choice) { return choice.reads_places(); });
           });
  }
  /// Layers behind which a policy may end a section, as far as they are looked at.
  std::vector<Index> checkpoints() const {
    std::vector<Index> layers;
    for (const SectionOfSearch& s : sections_)
      if (s.at_checkpoint && !s.choices.empty()) layers.push_back(s.border.end() - 1);
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    return layers;
  }
  /// Ways to run sections as one that none other beats, of the first kind of memory, without those that offload.
  std::size_t choice_count() const {
    std::size_t count = 0;
    for (const SectionOfSearch& s : sections_)
      for (const SectionChoice& choice : s.choices.of(memories_.front())) count += choice.parts().empty() && !choice.offloads();
    return count;
  }

 private:
  static constexpr std::size_t few = 30;   ///< sections: five checkpoints make 21 of them, barriers fewer
  static constexpr Index few_rows = 512;   ///< of the tallest map, of all images: with 8 images of 224 rows a chain of seven layers would take 4 s
  const Table& table_;
  const PolicySpec policy_;
  const std::uint32_t names_;
  const Target& target_;
  const PlanOptions& options_;
  const Costs& costs_;
  const Index images_;
  const std::vector<StepMemory> memories_;
  detail::TensorReaders readers_;
  std::vector<SectionOfSearch> sections_{};
  std::vector<std::vector<std::size_t>> sections_from_{};
  std::vector<std::vector<Index>> across_{};
  std::vector<char> followed_{};
  bool keeps_output_ = true;
  bool thorough_ = false;                      ///< asked for each label of a search, so found out once
  const bool may_share_ = has_normed_sums();   ///< inputs of a sum may have one gradient

  bool has_normed_sums() const {
    const auto normed = [&](Index g) { return g > 0 && detail::waits(table_.node(g - 1), true); };
    return options_.training && std::any_of(table_.nodes.begin(), table_.nodes.end(), [&](const Node& node) {
             return node.layer.kind == Kind::sum && (normed(node.input) || normed(node.other));
           });
  }
  bool has_few_ways() const {
    Index rows = 1;
    for (const Node& node : table_.nodes) rows = std::max({rows, node.in.h, node.out.h});
    return table_.size() <= 24 && sections_.size() <= few && table_.input.n * rows <= few_rows;
  }
  void find_sections() {
    for (Index l = 0; l <= table_.size(); ++l) across_.push_back(readers_.across(l));
    sections_from_.resize(static_cast<std::size_t>(table_.size() + 1));
    const bool given = PolicySpec::is_among(names_, PolicySpec::Part::checkpoints);
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
    const Stage stage = detail::split_layers(table_, begin, end, options_.training, [](Index) { return false; }).back();
    section.numbered = !stage.behind_means;
    if (section.border.is_last()) keeps_output_ = !options_.stores_output && !stage.loses_rows(table_, options_);
    sections_.push_back(std::move(section));
  }
  /// Finds the choices of all sections, those of twins once. Each section is a thread's.
  void find_choices(int threads) {
    followed_.assign(static_cast<std::size_t>(table_.size() + 1), 0);
    for (const SectionOfSearch& section : sections_) item(followed_, section.border.begin()) |= !section.numbered;
    std::vector<std::size_t> twins, sole;   // of each section: the first that is like it; those that are like none before
    std::vector<BytesBeside> beside;        // of each section: of all that are like it
    for (std::size_t s = 0; s < sections_.size(); ++s) {
      const auto is_twin = [&](std::size_t other) {
        const SectionBorder &a = sections_[s].border, &b = sections_[other].border;
        return item(followed_, a.end()) == item(followed_, b.end()) && a.is_twin(b);
      };
      const auto twin = std::find_if(sole.begin(), sole.end(), is_twin);
      twins.push_back(twin == sole.end() ? s : *twin);
      if (twin == sole.end()) sole.push_back(s);
      beside.push_back(bytes_beside(sections_[s].border));
      BytesBeside& of_twins = beside[twins[s]];
      of_twins = {std::min(of_twins.least, beside[s].least), std::max(of_twins.most, beside[s].most)};
    }
    std::vector<SectionChoices> found(sections_.size());
    on_threads(sole.size(), threads, [&] {
      return [&, tries = SectionTries(table_, policy_, names_, target_, options_, costs_, images_, memories_, is_thorough())](std::size_t i) mutable {
        const std::size_t s = sole[sole.size() - 1 - i];
        const SectionBorder& border = sections_[s].border;
        found[s] = tries.find(border, beside[s], item(followed_, border.end()), is_alone(border));
      };
    });
    add_choices(std::move(found), twins);
    if (puts_in_groups()) add_choices(find_groups(twins, threads), twins);
    for (SectionOfSearch& section : sections_)
      for (const StepMemory memory : memories_) sort_by_seconds(section.choices.of(memory));
    for (std::size_t s = 0; s < sections_.size(); ++s)
      if (!sections_[s].choices.empty()) item(sections_from_, sections_[s].border.begin()).push_back(s);
    drop_vain_offers();
  }
  /// Adds choices to the sections that they were found for and, moved, to those that are like these.
  void add_choices(std::vector<SectionChoices> found, const std::vector<std::size_t>& twins) {
    for (std::size_t s = sections_.size(); s-- > 0;)   // a section comes behind all that are like it
      for (const StepMemory memory : memories_)
        for (SectionChoice& choice : found[twins[s]].of(memory)) {
          const Index by = sections_[s].border.begin() - sections_[twins[s]].border.begin();
          sections_[s].choices.of(memory).push_back(twins[s] == s ? std::move(choice) : choice.moved(by));
        }
  }
  /// Whether sections are looked at that are several whose inputs are made again. They pay where norms part sections, so that tensors within them
  /// are made again in full height; elsewhere slabs go through any number of layers.
  bool puts_in_groups() const {
    const auto chooses = [&](PolicySpec::Part part) { return !PolicySpec::is_among(names_, part); };
    const bool waits = std::any_of(table_.nodes.begin(), table_.nodes.end(), [](const Node& node) { return detail::waits(node, true); });
    return options_.training && waits && !thorough_ && chooses(PolicySpec::Part::partition) && chooses(PolicySpec::Part::checkpoints) &&
           (chooses(PolicySpec::Part::recompute) || policy_.recompute == Recompute::all);
  }
  /// Ways to run sections as several, of those that are no twins of others. Threads take the layers at which sections begin.
  std::vector<SectionChoices> find_groups(const std::vector<std::size_t>& twins, int threads) const {
    std::map<std::pair<Index, Index>, std::size_t> numbers;   // of sections by their layers
    std::vector<char> ends(static_cast<std::size_t>(table_.size()), 0);
    std::vector<std::vector<std::size_t>> from(static_cast<std::size_t>(table_.size()));   // by rising ends
    for (std::size_t s = 0; s < sections_.size(); ++s) {
      const SectionBorder& border = sections_[s].border;
      numbers[{border.begin(), border.end()}] = s;
      if (sections_[s].at_checkpoint) item(ends, border.end() - 1) = 1;
      item(from, border.begin()).push_back(s);
    }
    std::vector<SectionChoices> found(sections_.size());
    on_threads(from.size(), threads, [&] {
      return [&](std::size_t begin) {
        if (from[begin].empty()) return;
        for (const StepMemory memory : memories_) {
          if (memory == StepMemory::shared_workspace && looks_at(StepMemory::own_workspaces)) continue;
          SectionGroups groups(table_, policy_, target_, options_, readers_, across_, images_, memory, ends, static_cast<Index>(begin));
          const auto choices_of = [&](Index first, Index end) -> const std::vector<SectionChoice>* {
            const auto number = numbers.find({first, end});
            if (number == numbers.end() || !sections_[number->second].numbered) return nullptr;
            return &sections_[number->second].choices.of(memory);
          };
          for (const std::size_t s : from[begin])
            if (sections_[s].numbered)
              found[s].of(memory) = groups.find(sections_[s].border, sections_[s].choices.of(memory), choices_of, twins[s] == s);
        }
      };
    });
    return found;
  }
  /// Whether a policy with this section has no partition but this section's.
  bool is_alone(const SectionBorder& border) const {
    if (border.begin() > 0) return false;
    for (Index at = border.end(); at < table_.size();) {
      const auto next = std::find_if(sections_.begin(), sections_.end(), [&](const SectionOfSearch& s) { return s.border.begin() == at; });
      if (next == sections_.end() || next->numbered) return false;
      at = next->border.end();
    }
    return true;
  }
  BytesBeside bytes_beside(const SectionBorder& border) const {
    const Index backward = backward_bytes(border);
    return {-backward, border.passing_bytes() - backward};
  }
  /// Offers of places that no section above takes make no difference.
  void drop_vain_offers() {
    std::vector<char> taken(static_cast<std::size_t>(table_.tensors()), 0);
    for (const SectionOfSearch& section : sections_)
      for (const SectionChoice& choice : section.choices.of(StepMemory::in_place))
        for (std::size_t i = 0; i < section.border.inputs().size(); ++i)
          if (choice.place_use(i) == PlaceUse::reads) item(taken, section.border.inputs()[i]) = 1;
    for (SectionOfSearch& section : sections_)
      for (SectionChoice& choice : section.choices.of(StepMemory::in_place)) choice.offer_only(taken);
  }
};
}   // namespace lrcnn
