#pragma once
// Pictures in another size, resized by stb_image_resize (lrcnn::resize).
//
// The library is one header, whose functions are compiled here for each file that includes this one: in a namespace of their own, so that a
// program may use the library itself as well.
#include <lrcnn/core/error.hpp>
#include <lrcnn/shape/window.hpp>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string>
#pragma push_macro("STBIR_INCLUDE_STB_IMAGE_RESIZE_H")
#pragma push_macro("STB_IMAGE_RESIZE_IMPLEMENTATION")
#pragma push_macro("STB_IMAGE_RESIZE_STATIC")
#pragma push_macro("STBIRDEF")
#pragma push_macro("STBIR_ASSERT")
#undef STBIR_INCLUDE_STB_IMAGE_RESIZE_H
#undef STB_IMAGE_RESIZE_IMPLEMENTATION
#undef STB_IMAGE_RESIZE_STATIC
#undef STBIRDEF
#undef STBIR_ASSERT
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_STATIC
// The library's own assertions end programs over sound pictures: where weights of an outermost pixel add up to more than 1.1 before they are scaled.
#define STBIR_ASSERT(x) static_cast<void>(x)
namespace lrcnn::detail::stb {
#include <stb/stb_image_resize.h>
}
#undef STBIR_INCLUDE_STB_IMAGE_RESIZE_H
#undef STB_IMAGE_RESIZE_IMPLEMENTATION
#undef STB_IMAGE_RESIZE_STATIC
#undef STBIRDEF
#undef STBIR_ASSERT
#pragma pop_macro("STBIR_INCLUDE_STB_IMAGE_RESIZE_H")
#pragma pop_macro("STB_IMAGE_RESIZE_IMPLEMENTATION")
#pragma pop_macro("STB_IMAGE_RESIZE_STATIC")
#pragma pop_macro("STBIRDEF")
#pragma pop_macro("STBIR_ASSERT")
namespace lrcnn {
/// How a picture comes to other extents. cover: its sides keep their ratio, so that it is just large enough, and the middle is cut out
/// (torchvision's Resize of the shorter side, then CenterCrop). stretch: rows and columns each for themselves (Resize of both).
enum class ResizeFit : std::uint8_t { cover, stretch };
/// Resizes a picture by linear interpolation, antialiased where it becomes smaller, as torchvision does with antialias=True: the same values up
/// to 1, but for the outermost pixels of smaller pictures. There the edge is taken to go on; torchvision weighs what is there alone.
/// Shapes:  from [size.h][size.w][channels] -> to [target.h][target.w][channels], both dense
/// Errors:  DataError if a side is below 1, a picture has 2^31 bytes or more, or the memory is not its extents'; MemoryError
inline void resize_image(std::span<const std::uint8_t> from, Pair size, std::span<std::uint8_t> to, Pair target, Index channels,
                         ResizeFit fit = ResizeFit::cover) {
  const auto text = [](Pair p) { return std::to_string(p.h) + "x" + std::to_string(p.w); };
  const auto fits = [&](Pair p, std::size_t bytes) {   // the library counts in int
    constexpr Index most = std::numeric_limits<int>::max();
    return p.h >= 1 && p.w >= 1 && channels >= 1 && channels <= 64 && p.h <= most / channels / p.w &&
           static_cast<Index>(bytes) == p.h * p.w * channels;
  };
  if (!fits(size, from.size()) || !fits(target, to.size()))
    throw DataError(error_text("picture of " + text(size) + " pixels, " + std::to_string(channels) + " channels and " + std::to_string(from.size()) +
                                   " bytes is to be resized to " + text(target) + " in " + std::to_string(to.size()) + " bytes",
                               "each side is at least 1, there are 1 to 64 channels, and a picture has its bytes, fewer than 2^31",
                               "give other extents"));
  const double height = static_cast<double>(size.h), width = static_cast<double>(size.w);
  double h = static_cast<double>(target.h), w = static_cast<double>(target.w), top = 0, left = 0;
  if (fit == ResizeFit::cover) {
    if (h / height >= w / width) w = std::max(w, std::floor(h * width / height));
    else h = std::max(h, std::floor(w * height / width));
    top = std::nearbyint((h - static_cast<double>(target.h)) / 2), left = std::nearbyint((w - static_cast<double>(target.w)) / 2);
  }
  using namespace detail::stb;
  const int resized =
      stbir_resize_subpixel(from.data(), static_cast<int>(size.w), static_cast<int>(size.h), 0, to.data(), static_cast<int>(target.w),
                            static_cast<int>(target.h), 0, STBIR_TYPE_UINT8, static_cast<int>(channels), STBIR_ALPHA_CHANNEL_NONE, 0,
                            STBIR_EDGE_CLAMP, STBIR_EDGE_CLAMP, STBIR_FILTER_TRIANGLE, STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, nullptr,
                            static_cast<float>(w / width), static_cast<float>(h / height), static_cast<float>(left), static_cast<float>(top));
  if (resized != 1)   // the only thing that can be amiss
    throw MemoryError(error_text("a picture of " + text(size) + " pixels cannot be resized to " + text(target),
                                 "there is no memory for what this takes", "free memory, or resize fewer pictures at once"));
}
}   // namespace lrcnn
