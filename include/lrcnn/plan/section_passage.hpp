#pragma once
// A section as a search goes through it: tensors are bits and inputs have numbers, so that going from one layer to the next takes few operations.
#include <lrcnn/plan/section_catalog.hpp>
#include <bit>
#include <span>
namespace lrcnn {
/// Bits of tensors, by their places in SectionCatalog::across(). Tensors beyond the bits are none of the set: each section that keeps one counts it.
using TensorSet = std::uint64_t;
/// One way to run a section.
struct SectionWay {
  double seconds = 0;
  Index kept = 0;                                    ///< bytes that it leaves to its backward pass, whatever is kept already
  std::uint64_t keeps = 0, reads = 0, ignores = 0;   ///< inputs that it keeps; whose places it takes; whose places it leaves to sections above
  std::uint64_t offloads = 0;                        ///< inputs that it offloads, which must not be kept
  TensorSet kept_outputs = 0, offered = 0;           ///< above the section
  const SectionChoice* choice = nullptr;
  std::span<const SectionPeaks> apart{}, in_place{};   ///< SectionChoice::all_peaks(): at hand, for searches ask all the time
};
class SectionPassage {
 public:
  static constexpr std::size_t bits = 64;
  /// What a way to run the sections below means for one.
  struct Entry {
    std::uint64_t already = 0, offered = 0;   ///< inputs that are kept already, and whose places are offered
    TensorSet kept_above = 0;                 ///< of what is kept below, what lives on above
    TensorSet offered_above = 0;              ///< likewise of tensors that pass by, whose places are offered
    Index passing = 0;                        ///< bytes of tensors that pass by and are not kept
  };
  /// Pre: the catalog outlives the object.
  SectionPassage(const SectionCatalog& catalog, const SectionOfSearch& section) {
    const SectionBorder& border = section.border;
    const std::vector<Index>&below = catalog.across(border.begin()), &above = catalog.across(border.end());
    const auto bit_of = [](const std::vector<Index>& tensors, Index g) {
      const auto place = std::lower_bound(tensors.begin(), tensors.end(), g);
      const auto bit = static_cast<std::size_t>(place - tensors.begin());
      return place != tensors.end() && *place == g && bit < bits ? TensorSet{1} << bit : 0;
    };
    for (const Index g : border.inputs()) inputs_.push_back({bit_of(below, g), bit_of(above, g), catalog.readers().bytes(g)});
    for (const Index g : border.passing()) passing_.push_back({bit_of(below, g), bit_of(above, g), catalog.readers().bytes(g)});
    backward_bytes_ = catalog.backward_bytes(border);
    for (const StepMemory memory : catalog.memories())
      for (const SectionChoice& choice : section.choices.of(memory)) {
        if (choice.offloads() && (inputs_.size() > bits || inputs_.back().below == 0)) continue;   // whether it is kept could not be told
        SectionWay way{.seconds = choice.seconds(),
                       .kept = choice.kept(),
                       .offloads = choice.offloads() ? std::uint64_t{1} << (inputs_.size() - 1) : 0,
                       .choice = &choice,
                       .apart = choice.all_peaks(false),
                       .in_place = choice.all_peaks(true)};
        bool takes_places = memory == StepMemory::in_place && choice.reads_places();
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
          const std::uint64_t bit = i < bits ? std::uint64_t{1} << i : 0;
          if (choice.keeps_input(i)) {
            if (bit != 0) way.keeps |= bit;
            else way.kept += inputs_[i].bytes, way.kept_outputs |= inputs_[i].above;
          }
          if (memory != StepMemory::in_place) continue;
          if (choice.place_use(i) == PlaceUse::reads) bit != 0 ? way.reads |= bit : takes_places = false;
          if (choice.place_use(i) == PlaceUse::ignores) way.ignores |= bit;
        }
        if (!takes_places) way.reads = 0;
        for (const Index g : choice.kept_outputs()) way.kept_outputs |= bit_of(above, g);
        for (const Index g : choice.offered()) way.offered |= bit_of(above, g);
        ways_[static_cast<std::size_t>(memory)].push_back(way);
      }
  }
  const std::vector<SectionWay>& ways(StepMemory memory) const { return ways_[static_cast<std::size_t>(memory)]; }
  /// Bytes that live through the whole backward pass.
  Index backward_bytes() const { return backward_bytes_; }
  /// `kept`, `offered`: tensors across the layer where the section begins.
  Entry enter(TensorSet kept, TensorSet offered) const {
    Entry entry;
    for (const Tensor& g : passing_) {
      if ((kept & g.below) != 0) entry.kept_above |= g.above;
      else entry.passing += g.bytes;
      if ((offered & g.below) != 0) entry.offered_above |= g.above;
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if ((kept & inputs_[i].below) != 0) entry.already |= std::uint64_t{1} << i, entry.kept_above |= inputs_[i].above;
      if ((offered & inputs_[i].below) != 0) entry.offered |= std::uint64_t{1} << i;
    }
    return entry;
  }
  /// Whether a way cannot be taken behind such an entry: what it would offload is kept.
  static bool is_barred(const SectionWay& way, const Entry& entry) { return (way.offloads & entry.already) != 0; }
  /// Whether a way puts gradients into the places of its inputs behind such an entry.
  static bool takes_places(const SectionWay& way, const Entry& entry) { return way.reads != 0 && (way.reads & ~entry.offered) == 0; }
  /// A way's peaks behind such an entry, without what passes by.
  static const SectionPeaks& peaks(const SectionWay& way, const Entry& entry) {
    const std::span<const SectionPeaks> all = takes_places(way, entry) ? way.in_place : way.apart;
    return all[static_cast<std::size_t>(entry.already) & (all.size() - 1)];
  }
  /// Bytes that a way adds to those that wait for backward passes, and the tensors above the section that are kept then.
  std::pair<Index, TensorSet> leave(const SectionWay& way, const Entry& entry) const {
    Index kept = way.kept;
    TensorSet tensors = entry.kept_above | way.kept_outputs;
    for (std::uint64_t more = way.keeps & ~entry.already; more != 0; more &= more - 1) {
      const Tensor& input = inputs_[static_cast<std::size_t>(std::countr_zero(more))];
      kept += input.bytes, tensors |= input.above;
    }
    return {kept, tensors};
  }
  /// Tensors above the section whose places are offered then.
  TensorSet offer(const SectionWay& way, const Entry& entry) const {
    TensorSet tensors = entry.offered_above | way.offered;
    for (std::uint64_t left = way.ignores & entry.offered; left != 0; left &= left - 1)
      tensors |= inputs_[static_cast<std::size_t>(std::countr_zero(left))].above;
    return tensors;
  }

 private:
  struct Tensor {
    TensorSet below = 0, above = 0;   ///< its bit where the section begins, and where it ends; 0: it has none
    Index bytes = 0;
  };
  std::vector<Tensor> inputs_{}, passing_{};
  Index backward_bytes_ = 0;
  std::array<std::vector<SectionWay>, step_memories.size()> ways_{};
};
}   // namespace lrcnn
