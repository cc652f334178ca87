#pragma once
// Which gradients a ReLU lets pass, in loops over tiles of positions.
#include <lrcnn/backend/cudnn/loops/lines.hpp>
#include <lrcnn/backend/cudnn/loops/tiles.hpp>
namespace lrcnn::loops::detail {
/// Mask bits of an image's elements, from one on whose bit is the lowest.
LRCNN_HOST_DEVICE inline unsigned mask_bits(const std::uint8_t* image, Index element) {
  return static_cast<unsigned>(image[element / 8]) >> element % 8;
}
/// Some positions of a thread: their images, and where their elements are in an image.
template <int n>
struct TilePlaces {
  Index image[n], at[n];
  template <class Loop, class Some>
  LRCNN_HOST_DEVICE TilePlaces(const Loop& loop, const typename Loop::Place& place, const Some& some) {
    for (int i = 0; i < n; ++i) {
      at[i] = some.at(i);
      image[i] = loop.per_image.split(at[i]);
      at[i] = at[i] * loop.channels + place.channel;
    }
  }
  template <class E>
  LRCNN_HOST_DEVICE E* in(const Line<E>& line, int i) const {
    return line.data + image[i] * line.stride_n + at[i];
  }
  LRCNN_HOST_DEVICE unsigned bits_from(const Line<std::uint8_t>& mask, int i) const { return mask_bits(mask.data + image[i] * mask.stride_n, at[i]); }
};
/// The same where elements of all operands lie alike, image by image: fewer numbers to keep.
template <int n>
struct SameTilePlaces {
  Index at[n];
  template <class Loop, class F>
  LRCNN_HOST_DEVICE SameTilePlaces(const Loop& loop, const typename Loop::Place& place, F position, Index stride_n) {
    for (int i = 0; i < n; ++i) at[i] = loop.before(place, position(i), stride_n);
  }
  template <class E>
  LRCNN_HOST_DEVICE E* in(const Line<E>& line, int i) const {
    return line.data + at[i];
  }
  LRCNN_HOST_DEVICE unsigned bits_from(const Line<std::uint8_t>& mask, int i) const { return mask_bits(mask.data, at[i]); }
};
/// By mask bits that fill whole bytes at each position, or by the signs of values.
template <class T>
struct ReluSign {
  static constexpr int V = lanes<T>;
  Line<std::uint8_t> mask;
  Line<const T> values;   ///< if there is no mask
  /// Bit v of each position's: whether element v passes.
  template <bool packed, int n, class Places>
  LRCNN_HOST_DEVICE void find(const Places& places, int count, unsigned (&bits)[n]) const {
    if (mask.data != nullptr) {
      for (int i = 0; i < n; ++i) bits[i] = places.bits_from(mask, i);
    } else {
      Pack<T, V> value[n];
      load_all<packed>([&](int i) { return places.in(values, i); }, count, value);
      for (int i = 0; i < n; ++i) {
        bits[i] = 0;
        for (int v = 0; v < V; ++v) bits[i] |= (static_cast<master_t<T>>(value[i].element[v]) > master_t<T>(0) ? 1u : 0u) << v;
      }
    }
  }
  /// Makes 0 of the elements that do not pass.
  template <int n>
  LRCNN_HOST_DEVICE static void keep(const unsigned (&bits)[n], Pack<T, V> (&element)[n]) {
    for (int i = 0; i < n; ++i)
      for (int v = 0; v < V; ++v)
        if ((bits[i] >> v & 1u) == 0) element[i].element[v] = static_cast<T>(0.0f);
  }
};
}   // namespace lrcnn::loops::detail
