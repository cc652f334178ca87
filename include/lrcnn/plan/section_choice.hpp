#pragma once
// One way to run a section, with all that a search for the best sections must know of it: seconds, bytes that it leaves to its backward
// pass, and its peaks.
#include <lrcnn/plan/section_border.hpp>
namespace lrcnn {
/// Bytes of a section's forward and of its backward pass at their peaks.
struct SectionPeaks {
  Index forward = 0;
  Index backward = 0;
  friend constexpr bool operator==(const SectionPeaks&, const SectionPeaks&) = default;
};
class SectionChoice {
 public:
  SectionChoice(const SectionBorder& border, const Partition& partition, const SectionProfile& profile)
      : partition_(partition), forward_end_(profile.forward_end), seconds_(profile.seconds()) {
    std::vector<Index> change(static_cast<std::size_t>(profile.end + 2), 0);
    uses_.assign(border.inputs().size(), {});
    for (const SectionBuffer& b : profile.buffers) {
      if (!b.is_used() || b.is_shared_workspace()) continue;
      if (border.is_from_below(b)) {
        note_input(border, b, profile);
        continue;
      }
      const SectionBuffer lives = border.stretched(b, profile);
      item(change, lives.first) += b.bytes;
      item(change, lives.last) -= b.bytes;
      const bool waits = lives.first <= forward_end_ && lives.last > forward_end_;
      const Index output = value_above(border, b);
      if (waits && (output < 0 || b.last > forward_end_)) kept_ += b.bytes;
      if (waits && output >= 0 && b.last > forward_end_) kept_outputs_.push_back(output);
    }
    Index live = 0;
    for (Index t = 0; t <= profile.end; ++t) live_.push_back(live += item(change, t));
    peaks_.assign(std::size_t{1} << std::min<std::size_t>(uses_.size(), most_known), {-1, -1});
  }
  /// The same way to run a section that is the same, so many layers further up.
  SectionChoice moved(Index layers) const {
    SectionChoice choice = *this;
    for (Index& g : choice.kept_outputs_) g += layers;
    return choice;
  }
  const Partition& partition() const { return partition_; }
  double seconds() const { return seconds_; }
  void set_seconds(double seconds) { seconds_ = seconds; }
  /// Bytes that live from its forward to its backward pass, but for tensors from below.
  Index kept() const { return kept_; }
  /// Of the border's inputs, by their place: whether its backward pass reads them.
  bool keeps_input(std::size_t i) const { return uses_[i].backward; }
  /// Tensors that it writes, that sections above read, and that its own backward pass reads.
  const std::vector<Index>& kept_outputs() const { return kept_outputs_; }
  /// Finds all peaks, so that several threads may ask for them.
  void find_peaks() const {
    for (std::uint64_t already = 0; already < peaks_.size(); ++already) peaks(already);
  }
  /// Its peaks, without what lives through the whole of it. `already`: a bit for each of the border's inputs that lives through it anyhow.
  const SectionPeaks& peaks(std::uint64_t already) const {
    SectionPeaks& peaks = peaks_[static_cast<std::size_t>(already) & (peaks_.size() - 1)];   // of more inputs: as if they did not
    if (peaks.forward >= 0) return peaks;
    std::vector<Index> ends;   // of inputs that count
    for (std::size_t i = 0; i < uses_.size(); ++i) ends.push_back(i < most_known && (already >> i & 1) != 0 ? 0 : uses_[i].until);
    peaks = {0, 0};
    for (Index t = 0; t < static_cast<Index>(live_.size()); ++t) {
      Index live = item(live_, t);
      for (std::size_t i = 0; i < uses_.size(); ++i)
        if (t < ends[i]) live += uses_[i].bytes;
      if (t < forward_end_) peaks.forward = std::max(peaks.forward, live);
      if (t > forward_end_) peaks.backward = std::max(peaks.backward, live);
    }
    return peaks;
  }
  /// Whether it takes no more bytes of any kind than another way to run the same section.
  bool takes_no_more_bytes(const SectionChoice& other) const {
    if (kept_ > other.kept_) return false;
    for (std::size_t i = 0; i < uses_.size(); ++i)
      if (uses_[i].backward && !other.uses_[i].backward) return false;
    for (const Index g : kept_outputs_)
      if (std::find(other.kept_outputs_.begin(), other.kept_outputs_.end(), g) == other.kept_outputs_.end()) return false;
    for (std::uint64_t already = 0; already < peaks_.size(); ++already)
      if (peaks(already).forward > other.peaks(already).forward || peaks(already).backward > other.peaks(already).backward) return false;
    return true;
  }

 private:
  static constexpr std::size_t most_known = 6;   ///< inputs of which all combinations are looked at
  struct InputUse {
    Index bytes = 0;
    Index until = 0;         ///< of the section's times, while other sections below it do not read the tensor in their backward passes
    bool backward = false;   ///< its backward pass reads it
  };
  Partition partition_;
  Index forward_end_;
  double seconds_;
  Index kept_ = 0;
  std::vector<Index> kept_outputs_{};
  std::vector<InputUse> uses_{};
  std::vector<Index> live_{};                   ///< bytes at each time, without inputs
  mutable std::vector<SectionPeaks> peaks_{};   ///< found when asked for
  static Index value_above(const SectionBorder& border, const SectionBuffer& b) {
    for (const SharedKey& key : b.keys)
      if (key.kind == SharedBuffer::value && border.read_above(key.number)) return key.number;
    return -1;
  }
  void note_input(const SectionBorder& border, const SectionBuffer& b, const SectionProfile& profile) {
    for (const SharedKey& key : b.keys) {
      const auto at = std::find(border.inputs().begin(), border.inputs().end(), key.number);
      if (key.kind != SharedBuffer::value || at == border.inputs().end()) continue;
      const bool backward = b.last > profile.forward_end;
      const Index until = !backward && border.read_above(key.number) ? profile.forward_end + 1 : b.last;
      uses_[static_cast<std::size_t>(at - border.inputs().begin())] = {b.bytes, until, backward};
    }
  }
};
}   // namespace lrcnn
