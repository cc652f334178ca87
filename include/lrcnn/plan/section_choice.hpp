#pragma once
// One way to run a section, with all that a search for the best sections must know of it: seconds, bytes that it leaves to its backward
// pass, and its peaks.
#include <lrcnn/plan/section_border.hpp>
#include <span>
namespace lrcnn {
/// Bytes of a section's forward and of its backward pass at their peaks.
struct SectionPeaks {
  Index forward = 0;
  Index backward = 0;
  friend constexpr bool operator==(const SectionPeaks&, const SectionPeaks&) = default;
};
/// By how many bytes more other sections may have in memory during a section's forward pass than during its backward pass.
struct BytesBeside {
  Index least = 0;
  Index most = 0;
};
/// What the memory of a whole step is like: a search takes the choices of all its sections from one of these sets.
enum class StepMemory : std::uint8_t {
  shared_workspace,   ///< sections share a workspace
  own_workspaces,     ///< each has one of its own, which lives while it runs
  in_place,           ///< gradients in full height take their values' places; workspaces are own ones if those are looked at, too
};
inline constexpr std::array step_memories{StepMemory::shared_workspace, StepMemory::own_workspaces, StepMemory::in_place};
class SectionChoice {
 public:
  /// `at_once`: slabs of the section that are worked on at once; `places`: what the section does with the places of the table's tensors, if
  /// gradients are in place; empty: they are not.
  SectionChoice(const SectionBorder& border, const Partition& partition, const SectionProfile& profile, Index at_once = 1,
                const std::vector<TensorPlace>& places = {})
      : partition_(partition),
        forward_end_(profile.forward_end),
        shared_workspaces_(partition.workspace_bytes < 0 ? at_once : 0),
        seconds_(profile.seconds()),
        forward_seconds_(profile.forward_seconds) {
    for (const SectionBuffer& b : profile.buffers)
      if (counts(b) && !border.is_from_below(b)) note_kept(border, b, border.stretched(b, profile));
    apart_ = lives(border, profile, {});
    if (places.empty()) return;
    std::vector<Index> lags(border.inputs().size(), -1);
    for (std::size_t i = 0; i < lags.size(); ++i) {
      const Index g = border.inputs()[i];
      const TensorPlace& place = item(places, g);
      uses_places_.push_back(place.use == PlaceUse::reads && border.read_above(g) ? PlaceUse::forbids : place.use);
      if (uses_places_.back() == PlaceUse::reads) lags[i] = place.lag, behind_ += border.bytes_of_more_rows(g, place.lag);
    }
    for (Index g = border.begin() + 1; g <= border.end(); ++g)
      if (item(places, g).use == PlaceUse::ignores && border.read_above(g)) offered_.push_back(g);
    if (std::any_of(lags.begin(), lags.end(), [](Index lag) { return lag >= 0; })) in_place_ = lives(border, profile, lags);
  }
  /// A way to run it as several sections. Arguments as above.
  SectionChoice(const SectionBorder& border, const std::vector<SectionPart>& parts, const SectionProfile& profile, Index at_once,
                const std::vector<TensorPlace>& places)
      : SectionChoice(border, parts.back().partition, profile, at_once, places) {
    parts_ = parts;
  }
  /// The same way to run a section that is the same, so many layers further up.
  SectionChoice moved(Index layers) const {
    SectionChoice choice = *this;
    for (SectionPart& part : choice.parts_) part.end += layers;
    for (Index& g : choice.kept_outputs_) g += layers;
    for (Index& g : choice.offered_) g += layers;
    return choice;
  }
  /// Of its last part, if it has several.
  const Partition& partition() const { return partition_; }
  /// The sections that it is run as; empty: one.
  const std::vector<SectionPart>& parts() const { return parts_; }
  std::int32_t more_parts() const { return parts_.empty() ? 0 : static_cast<std::int32_t>(parts_.size()) - 1; }
  double seconds() const { return seconds_; }
  /// Of them, those of the forward pass; if it has several parts, those of its last, or of all if inputs are made again alone.
  double forward_seconds() const { return forward_seconds_; }
  void set_seconds(double seconds, double forward) { seconds_ = seconds, forward_seconds_ = forward; }
  /// How many of the workspaces that sections share it wants: one for each slab at once. They live through the whole step.
  Index shared_workspaces() const { return shared_workspaces_; }
  /// Bytes that live from its forward to its backward pass, but for tensors from below.
  Index kept() const { return kept_; }
  /// Whether it fetches its last input from the larger memory in its backward pass. Then no section below reads that in its own
  /// backward pass.
  bool offloads() const { return parts_.empty() && partition_.input == SectionInput::offload; }
  /// Of the border's inputs, by their place: whether its backward pass reads them.
  bool keeps_input(std::size_t i) const { return apart_.inputs[i].backward; }
  /// Tensors that it writes, that sections above read, and that its own backward pass reads.
  const std::vector<Index>& kept_outputs() const { return kept_outputs_; }
  /// Tensors that it writes, and whose places their gradients may have if the sections above allow it.
  const std::vector<Index>& offered() const { return offered_; }
  /// Takes offers back but those of these tensors of the table.
  void offer_only(const std::vector<char>& taken) {
    std::erase_if(offered_, [&](Index g) { return !item(taken, g); });
  }
  /// What it does with the place of the border's input i. Pre: it was made for gradients in place.
  PlaceUse place_use(std::size_t i) const { return uses_places_[i]; }
  /// Bytes of the rows by which such places are larger than the values, as long as these live: in the section below, too.
  Index behind() const { return behind_; }
  /// Whether it puts the gradients of some inputs into the places of their values, where the sections below offer these.
  bool reads_places() const { return !in_place_.peaks.empty(); }
  /// Finds all peaks, so that several threads may ask for them.
  void find_peaks() const {
    for (const Lives* lives : {&apart_, &in_place_})
      for (std::uint64_t already = 0; already < lives->peaks.size(); ++already) peaks_of(*lives, already);
  }
  /// peaks() for each `already` up to the number of them, a power of two. Beyond it, the lower bits count. Pre: find_peaks().
  std::span<const SectionPeaks> all_peaks(bool in_place) const { return in_place && reads_places() ? in_place_.peaks : apart_.peaks; }
  /// Its peaks, without what lives through the whole of it. `already`: a bit for each of the border's inputs that lives through it anyhow;
  /// `in_place`: the sections below offer the places of all inputs that it reads so.
  const SectionPeaks& peaks(std::uint64_t already, bool in_place = false) const {
    return peaks_of(in_place && !in_place_.peaks.empty() ? in_place_ : apart_, already);
  }
  /// Whether its forward pass may decide how many bytes it wants.
  bool forward_counts(const BytesBeside& beside) const {
    const auto counts = [&](const SectionPeaks& peaks) { return peaks.forward + beside.most > peaks.backward; };
    for (std::uint64_t already = 0; already < apart_.peaks.size(); ++already)
      if (counts(peaks(already)) || (reads_places() && counts(peaks(already, true)))) return true;
    return false;
  }
  /// Whether it takes no more bytes of any kind than another way to run the same section.
  bool takes_no_more_bytes(const SectionChoice& other, const BytesBeside& beside) const {
    if (kept_ > other.kept_ || shared_workspaces_ > other.shared_workspaces_) return false;
    if (offloads() && !other.offloads()) return false;                           // it cannot be behind all sections that the other can be behind
    const auto is_within = [&](const SectionPeaks& a, const SectionPeaks& b) {   // whatever is beside: then it is within at both ends
      const auto want = [](const SectionPeaks& peaks, Index more) { return std::max(peaks.forward + more, peaks.backward); };
      return want(a, beside.least) <= want(b, beside.least) && want(a, beside.most) <= want(b, beside.most);
    };
    for (std::size_t i = 0; i < apart_.inputs.size(); ++i)
      if (keeps_input(i) && !other.keeps_input(i)) return false;
    const auto has_all = [](const std::vector<Index>& a, const std::vector<Index>& b) {
      return std::all_of(b.begin(), b.end(), [&](Index g) { return std::find(a.begin(), a.end(), g) != a.end(); });
    };
    if (!has_all(other.kept_outputs_, kept_outputs_) || !has_all(offered_, other.offered_)) return false;
    for (std::size_t i = 0; i < uses_places_.size(); ++i)
      if (uses_places_[i] != PlaceUse::ignores && other.uses_places_[i] == PlaceUse::ignores) return false;
    const bool alike = uses_places_ == other.uses_places_;   // so that both have places offered, or none
    for (std::uint64_t already = 0; already < apart_.peaks.size(); ++already) {
      if (!is_within(peaks(already), other.peaks(already))) return false;
      if (other.reads_places() && !is_within(peaks(already, alike), other.peaks(already, true))) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t most_known = 6;   ///< inputs of which all combinations are looked at
  struct InputUse {
    Index bytes = 0;
    Index until = 0;         ///< of the section's times, while other sections below it do not read the tensor in their backward passes
    bool backward = false;   ///< its backward pass reads it
  };
  /// Peaks from a time at which the section begins, or an input is no longer used, to the next one.
  struct Between {
    Index begin = 0;
    SectionPeaks peaks{};
  };
  /// What lives when.
  struct Lives {
    std::vector<InputUse> inputs{};
    std::vector<Between> between{};              ///< without inputs
    mutable std::vector<SectionPeaks> peaks{};   ///< found when asked for
  };
  Partition partition_;
  std::vector<SectionPart> parts_{};
  Index forward_end_, shared_workspaces_;
  double seconds_, forward_seconds_;
  Index kept_ = 0, behind_ = 0;
  std::vector<Index> kept_outputs_{}, offered_{};
  std::vector<PlaceUse> uses_places_{};
  Lives apart_{}, in_place_{};   ///< gradients in places of their own, and, if some can be, in those of inputs
  /// Whether a buffer is the section's: a workspace is if the partition says so, and what lives through the whole step is not.
  bool counts(const SectionBuffer& b) const {
    return b.is_used() && !b.from_start && !b.is_shared_workspace() && !(b.own_workspace && partition_.workspace_bytes < 0);
  }
  void note_kept(const SectionBorder& border, const SectionBuffer& b, const Range& lives) {
    if (lives.begin > forward_end_ || lives.end <= forward_end_) return;
    const Index output = value_above(border, b);
    if (output < 0 || b.last > forward_end_) kept_ += b.bytes;
    if (output >= 0 && b.last > forward_end_) kept_outputs_.push_back(output);
  }
  /// `lags`: of each input, by how many rows its gradient lies behind it in the same place; -1: it does not.
  Lives lives(const SectionBorder& border, const SectionProfile& profile, const std::vector<Index>& lags) const {
    Lives result;
    result.inputs.assign(border.inputs().size(), {});
    std::vector<Index> change(static_cast<std::size_t>(profile.end + 2), 0);
    for (const SectionBuffer& b : profile.buffers) {
      if (!counts(b)) continue;
      if (border.is_from_below(b)) {
        note_input(border, b, profile, lags, result);
        continue;
      }
      if (const Index i = number_of(border, b, SharedBuffer::gradient); i >= 0 && !lags.empty() && item(lags, i) >= 0) continue;
      const Range lives = border.stretched(b, profile);
      item(change, lives.begin) += b.bytes;
      item(change, lives.end) -= b.bytes;
    }
    std::vector<Index> ends;   // of inputs
    for (const InputUse& use : result.inputs) ends.push_back(use.until);
    std::sort(ends.begin(), ends.end());
    Index live = 0;
    std::size_t ended = 0;
    result.between.push_back({0, {-1, -1}});
    for (Index t = 0; t <= profile.end; ++t) {
      for (; ended < ends.size() && ends[ended] <= t; ++ended)
        if (result.between.back().begin < t) result.between.push_back({t, {-1, -1}});
      live += item(change, t);
      SectionPeaks& peaks = result.between.back().peaks;
      if (t < profile.forward_end) peaks.forward = std::max(peaks.forward, live);
      if (t > profile.forward_end) peaks.backward = std::max(peaks.backward, live);
    }
    drop_lower(result.between);
    result.peaks.assign(std::size_t{1} << std::min<std::size_t>(result.inputs.size(), most_known), {-1, -1});
    return result;
  }
  /// Leaves out peaks that one before them is as high as: all inputs that live at them live there, too.
  static void drop_lower(std::vector<Between>& between) {
    SectionPeaks highest{-1, -1};
    for (Between& b : between)
      for (const auto peak : {&SectionPeaks::forward, &SectionPeaks::backward}) {
        if (b.peaks.*peak <= highest.*peak) b.peaks.*peak = -1;
        else highest.*peak = b.peaks.*peak;
      }
    std::erase_if(between, [](const Between& b) { return b.peaks == SectionPeaks{-1, -1}; });
  }
  static const SectionPeaks& peaks_of(const Lives& lives, std::uint64_t already) {
    SectionPeaks& peaks = lives.peaks[static_cast<std::size_t>(already) & (lives.peaks.size() - 1)];   // of more inputs: as if they did not
    if (peaks.forward >= 0) return peaks;
    peaks = {0, 0};
    for (const auto& [begin, own] : lives.between) {
      Index inputs = 0;
      for (std::size_t i = 0; i < lives.inputs.size(); ++i)
        if (begin < lives.inputs[i].until && !(i < most_known && (already >> i & 1) != 0)) inputs += lives.inputs[i].bytes;
      if (own.forward >= 0) peaks.forward = std::max(peaks.forward, own.forward + inputs);
      if (own.backward >= 0) peaks.backward = std::max(peaks.backward, own.backward + inputs);
    }
    return peaks;
  }
  static Index value_above(const SectionBorder& border, const SectionBuffer& b) {
    for (const SharedKey& key : b.keys)
      if (key.kind == SharedBuffer::value && border.read_above(key.number)) return key.number;
    return -1;
  }
  /// Which of the border's inputs a buffer is the value or the gradient of; -1: of none.
  static Index number_of(const SectionBorder& border, const SectionBuffer& b, SharedBuffer kind) {
    for (const SharedKey& key : b.keys)
      if (const auto at = std::find(border.inputs().begin(), border.inputs().end(), key.number); key.kind == kind && at != border.inputs().end())
        return at - border.inputs().begin();
    return -1;
  }
  void note_input(const SectionBorder& border, const SectionBuffer& b, const SectionProfile& profile, const std::vector<Index>& lags,
                  Lives& lives) const {
    const Index i = number_of(border, b, SharedBuffer::value);
    if (i < 0) return;
    const Index g = item(border.inputs(), i);
    const bool backward = b.last > profile.forward_end;
    const Index until = !backward && border.read_above(g) ? profile.forward_end + 1 : b.last;
    item(lives.inputs, i) = {b.bytes, until, backward};
    if (lags.empty() || item(lags, i) < 0) return;
    item(lives.inputs, i) = {b.bytes + border.bytes_of_more_rows(g, item(lags, i)), profile.end, true};   // and then it is the gradient
  }
};
/// Whether a section without a partition of its own is run so, if the section before it has this partition.
inline bool is_run_as(const Partition& p, const Partition& before) {
  return p.images == before.images && p.recompute == before.recompute && p.passes == before.passes && p.forward_passes == before.forward_passes;
}
/// The most that Stage::slabs_at_once() says of these stages.
inline Index slabs_at_once(const std::vector<Stage>& stages, Index images, Index streams) {
  Index most = 1;
  for (const Stage& stage : stages) most = std::max(most, stage.slabs_at_once(images, streams));
  return most;
}
inline void sort_by_seconds(std::vector<SectionChoice>& choices) {
  std::stable_sort(choices.begin(), choices.end(), [](const SectionChoice& a, const SectionChoice& b) { return a.seconds() < b.seconds(); });
}
/// Ways to run a section, in a set for each kind of a step's memory.
class SectionChoices {
 public:
  std::vector<SectionChoice>& of(StepMemory memory) { return sets_[static_cast<std::size_t>(memory)]; }
  const std::vector<SectionChoice>& of(StepMemory memory) const { return sets_[static_cast<std::size_t>(memory)]; }
  bool empty() const {
    return std::all_of(sets_.begin(), sets_.end(), [](const auto& set) { return set.empty(); });
  }

 private:
  std::array<std::vector<SectionChoice>, step_memories.size()> sets_{};
};
}   // namespace lrcnn
