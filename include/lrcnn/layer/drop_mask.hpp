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
/// The mask of one layer in one run. Regular and cheap to copy; works on a device, too.
class DropMask {
 public:
  /// Whether each of four neighbours is kept.
  struct Kept {
    bool lane[4] = {};
    LRCNN_HOST_DEVICE constexpr bool operator[](Index i) const { return lane[i]; }
  };
  /// Pre: 0 <= drop.probability < 1
  LRCNN_HOST_DEVICE constexpr DropMask(const Drop& drop, const RunKey& run, Index layer)
      : each_(drop.each), first_image_(run.first_image), below_(static_cast<std::uint64_t>(drop.probability * 0x1.0p32 + 0.5)) {
    std::uint32_t words[4] = {low(run.step), high(run.step), low(layer), 0x64726f70u};
    philox_rounds(words, low(run.seed), high(run.seed));
    key_[0] = words[0], key_[1] = words[1];
  }
  /// Whether elements of columns 4 * quad to 4 * quad + 3 are kept; of a whole channel or image all alike.
  LRCNN_HOST_DEVICE constexpr Kept keeps(Index image, Index channel, Index row, Index quad) const {
    const bool of_element = of_elements();
    std::uint32_t r[4] = {of_element ? low(quad) : 0, of_element ? low(row) : 0, each_ == Drop::Each::image ? 0 : low(channel),
                          low(first_image_ + image)};
    philox_rounds(r, key_[0], key_[1]);
    if (!of_element) r[1] = r[2] = r[3] = r[0];
    return {{r[0] >= below_, r[1] >= below_, r[2] >= below_, r[3] >= below_}};
  }
  /// Whether an element is kept.
  constexpr bool keep(Index image, Index channel, Index row, Index column) const { return keeps(image, channel, row, column / 4)[column % 4]; }
  LRCNN_HOST_DEVICE constexpr bool of_elements() const { return each_ == Drop::Each::element; }

 private:
  template <class I>
  LRCNN_HOST_DEVICE static constexpr std::uint32_t low(I value) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
  }
  LRCNN_HOST_DEVICE static constexpr std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
  Drop::Each each_;
  Index first_image_;
  std::uint64_t below_;   ///< words below this drop
  std::uint32_t key_[2] = {};
};
}   // namespace lrcnn
