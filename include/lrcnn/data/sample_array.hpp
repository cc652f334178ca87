#pragma once
// A large array of images in memory, as it lies there: bytes or other numbers, planes or interleaved channels, with any distance between rows.
//
// Nothing is copied or converted when an array is described. What reads it (data/direct_source.hpp) takes samples by index, and a device that
// has an address for the array reads it by itself (backend/cudnn/place_array.hpp).
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/half.hpp>
#include <lrcnn/data/dataset.hpp>
#include <lrcnn/data/samples.hpp>
#include <memory>
#include <string_view>
namespace lrcnn {
/// The type of an array's numbers.
enum class ArrayType : std::uint8_t { u8, u16, f16, bf16, f32 };
constexpr Index array_type_bytes(ArrayType type) {
  constexpr std::array<Index, 5> bytes{1, 2, 2, 2, 4};
  return item(bytes, static_cast<Index>(type));
}
constexpr std::string_view array_type_name(ArrayType type) {
  constexpr std::array<std::string_view, 5> names{"u8", "u16", "f16", "bf16", "f32"};
  return item(names, static_cast<Index>(type));
}
/// Calls f with a null pointer to the C++ type of an array's numbers.
template <class F>
decltype(auto) with_array_type(ArrayType type, F f) {
  switch (type) {
    case ArrayType::u8: return f(static_cast<const std::uint8_t*>(nullptr));
    case ArrayType::u16: return f(static_cast<const std::uint16_t*>(nullptr));
    case ArrayType::f16: return f(static_cast<const float16*>(nullptr));
    case ArrayType::bf16: return f(static_cast<const bfloat16*>(nullptr));
    case ArrayType::f32: break;
  }
  return f(static_cast<const float*>(nullptr));
}
/// The ArrayType of a C++ type.
template <class S>
constexpr ArrayType array_type_of() {
  if constexpr (std::is_same_v<S, std::uint8_t>) return ArrayType::u8;
  else if constexpr (std::is_same_v<S, std::uint16_t>) return ArrayType::u16;
  else if constexpr (std::is_same_v<S, float16>) return ArrayType::f16;
  else if constexpr (std::is_same_v<S, bfloat16>) return ArrayType::bf16;
  else {
    static_assert(std::is_same_v<S, float>, "lrcnn: arrays hold std::uint8_t, std::uint16_t, float16, bfloat16 or float");
    return ArrayType::f32;
  }
}
/// Where the numbers of an array lie: distances in numbers from one image, row, column and channel to the next.
struct SampleLayout {
  Shape shape{0, 1, 1, 1};   ///< [images, C, H, W]
  Index image = 0, row = 0, column = 1, channel = 0;
  /// Dense [images][C][H][W].
  static constexpr SampleLayout planes(const Shape& s) { return {s, s.c * s.h * s.w, s.w, 1, s.h * s.w}; }
  /// Dense [images][H][W][C], as image files and cameras have it.
  static constexpr SampleLayout interleaved(const Shape& s) { return {s, s.h * s.w * s.c, s.w * s.c, s.c, 1}; }
  /// Whether a row's channels lie together; otherwise each channel has rows of its own.
  constexpr bool interleaves() const { return column != 1 || shape.c == 1; }
  /// Numbers that a row takes: of all channels, or of one.
  constexpr Index row_length() const { return interleaves() ? shape.w * column : shape.w; }
  /// One more than the place of the last number.
  constexpr Index extent() const {
    const auto last = [](Index count, Index step) { return (count - 1) * step; };
    return last(shape.n, image) + last(shape.h, row) + last(shape.w, column) + last(shape.c, channel) + 1;
  }
  friend constexpr bool operator==(const SampleLayout&, const SampleLayout&) = default;
};
/// Images of one size in memory that the host reads. Never changes; what it describes must not change while a step reads it.
class SampleArray {
 public:
  /// `owner`: what keeps the numbers alive, such as a mapping of a file; null if the caller does so for longer than the array is used.
  /// Errors:  DataError if there is no image, extents or distances are not positive, the layout is neither planes nor interleaved channels, or
  ///          the numbers do not begin at a multiple of their size
  template <class S>
  SampleArray(const S* data, const SampleLayout& layout, std::shared_ptr<const void> owner = {})
      : SampleArray(static_cast<const void*>(data), array_type_of<S>(), layout, std::move(owner)) {}
  SampleArray(const void* data, ArrayType type, const SampleLayout& layout, std::shared_ptr<const void> owner = {})
      : data_(static_cast<const std::byte*>(data)), type_(type), layout_(layout), owner_(std::move(owner)) {
    check();
  }
  /// The images of a data set, which outlives the array. Errors: DataError as check(data)
  explicit SampleArray(const Dataset& data) : SampleArray((lrcnn::check(data), data.images.data()), SampleLayout::planes(data.shape)) {}
  explicit SampleArray(const Dataset&& data) = delete;
  const std::byte* data() const { return data_; }
  ArrayType type() const { return type_; }
  const SampleLayout& layout() const { return layout_; }
  const Shape& shape() const { return layout_.shape; }
  Index bytes() const { return layout_.extent() * array_type_bytes(type_); }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  /// "60000 images 1x28x28 of u8"
  std::string describe() const {
    const Shape& s = layout_.shape;
    return std::to_string(s.n) + (s.n == 1 ? " image " : " images ") + std::to_string(s.c) + 'x' + std::to_string(s.h) + 'x' + std::to_string(s.w) +
           " of " + std::string(array_type_name(type_));
  }
  /// The same array in other memory, which holds a copy of bytes() bytes.
  SampleArray at(const void* data, std::shared_ptr<const void> owner) const { return {data, type_, layout_, std::move(owner)}; }
  /// Where a device reads the array. Null: nowhere; it has to be copied by the host.
  const void* on_device() const { return there_; }
  /// The device, as its library numbers it; any: every device has that address.
  int device() const { return device_; }
  static constexpr int any_device = -1;
  /// The same array, which a device reads at an address of its own; `owner` keeps that valid, too.
  SampleArray with_device(const void* there, int device, std::shared_ptr<const void> owner) const {
    SampleArray array = *this;
    array.there_ = there, array.device_ = device, array.owner_ = std::move(owner);
    return array;
  }

 private:
  void check() const {
    const SampleLayout& l = layout_;
    const Shape& s = l.shape;
    const std::string who = "array of images " + to_string(s);
    if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1 || data_ == nullptr)
      throw DataError(error_text(who + (data_ == nullptr ? " without memory" : " is empty"),
                                 "an array has at least one image, row, column and channel", "check pointer and extents"));
    const bool planes = l.column == 1 && l.row >= s.w && (s.c == 1 || l.channel >= (s.h - 1) * l.row + s.w);
    const bool interleaved = (l.channel == 1 || s.c == 1) && l.column >= s.c && l.row >= (s.w - 1) * l.column + s.c;
    if (!(planes || interleaved) || (s.n > 1 && l.image < 1))
      throw DataError(error_text(
          who + " with distances of " + std::to_string(l.image) + " from image to image, " + std::to_string(l.row) + " from row to row, " +
              std::to_string(l.column) + " from column to column and " + std::to_string(l.channel) + " from channel to channel",
          "columns lie one after the other in planes, or channels do in pixels, and rows do not overlap", "copy the images to one of these layouts"));
    if (reinterpret_cast<std::uintptr_t>(data_) % static_cast<std::uintptr_t>(array_type_bytes(type_)) != 0)
      throw DataError(error_text(who + " of " + std::string(array_type_name(type_)) + " begins at an address that is no multiple of " +
                                     std::to_string(array_type_bytes(type_)),
                                 "numbers lie at multiples of their size", "copy the images to memory of their type"));
  }
  const std::byte* data_;
  ArrayType type_;
  SampleLayout layout_;
  std::shared_ptr<const void> owner_;
  const void* there_ = nullptr;
  int device_ = any_device;
};
}   // namespace lrcnn
