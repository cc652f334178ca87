#pragma once
// What a dropout drops, as a function of where and when.
//
//     drops(place) = philox(counter of the place, key of run and layer) < probability * 2^32
//
// The key is drawn from the run's seed and step and the layer's number in the table. The counter of an element is its image in the batch,
// its channel, its row in the whole map and its column; of a channel its image and itself; of an image the image. So it does not matter
// which slab an element is in, who computes it, and how often. Philox4x32-10: core/rng.hpp.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/layer/layer.hpp>
namespace lrcnn {
/// What the masks of a run depend on, beside the network. Equal keys draw equal masks.
struct RunKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;   ///< of the training: each update draws its own masks
  Index first_image = 0;    ///< number of the batch's first image among those of the update: batches that are accumulated go on counting
  friend constexpr bool operator==(const RunKey&, const RunKey&) = default;
};
/// The mask of one layer in one run. Regular and cheap to copy.
class DropMask {
 public:
  /// Pre: 0 <= drop.probability < 1
  constexpr DropMask(const Drop& drop, const RunKey& run, Index layer)
      : each_(drop.each), first_image_(run.first_image), below_(static_cast<std::uint64_t>(drop.probability * 0x1.0p32 + 0.5)) {
    const auto drawn = philox({low(run.step), high(run.step), low(layer), 0x64726f70u}, {low(run.seed), high(run.seed)});
    key_ = {drawn[0], drawn[1]};
  }
  /// Whether elements of columns 4 * quad to 4 * quad + 3 are kept; of a whole channel or image all alike.
  constexpr std::array<bool, 4> keeps(Index image, Index channel, Index row, Index quad) const {
    const bool of_element = each_ == Drop::Each::element;
    const auto r = philox({of_element ? low(quad) : 0, of_element ? low(row) : 0, each_ == Drop::Each::image ? 0 : low(channel),
                           low(first_image_ + image)}, key_);
    if (!of_element) return {r[0] >= below_, r[0] >= below_, r[0] >= below_, r[0] >= below_};
    return {r[0] >= below_, r[1] >= below_, r[2] >= below_, r[3] >= below_};
  }
  /// Whether an element is kept.
  constexpr bool keep(Index image, Index channel, Index row, Index column) const {
    return keeps(image, channel, row, column / 4)[static_cast<std::size_t>(column % 4)];
  }
  constexpr bool of_elements() const { return each_ == Drop::Each::element; }

 private:
  template <class I>
  static constexpr std::uint32_t low(I value) { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value)); }
  static constexpr std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
  Drop::Each each_;
  Index first_image_;
  std::uint64_t below_;   ///< words below this drop
  std::array<std::uint32_t, 2> key_{};
};
}  // namespace lrcnn
