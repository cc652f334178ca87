#pragma once
// Samples of image files as C++ types.
#include <lrcnn/core/half.hpp>
#include <lrcnn/data/image_file.hpp>
namespace lrcnn {
/// What a sample of type S is divided by before it is normalised: 255 for u8, 65535 for u16, 1 for all other types.
template <class S>
inline constexpr double full_sample = 1;
template <>
inline constexpr double full_sample<std::uint8_t> = 255;
template <>
inline constexpr double full_sample<std::uint16_t> = 65535;
/// Calls f with a null pointer to the C++ type of the samples: `with_sample_type(info.sample, [&]<class S>(const S*) { ... })`.
template <class F>
decltype(auto) with_sample_type(SampleType type, F f) {
  switch (type) {
    case SampleType::u8: return f(static_cast<const std::uint8_t*>(nullptr));
    case SampleType::i8: return f(static_cast<const std::int8_t*>(nullptr));
    case SampleType::u16: return f(static_cast<const std::uint16_t*>(nullptr));
    case SampleType::i16: return f(static_cast<const std::int16_t*>(nullptr));
    case SampleType::u32: return f(static_cast<const std::uint32_t*>(nullptr));
    case SampleType::i32: return f(static_cast<const std::int32_t*>(nullptr));
    case SampleType::i64: return f(static_cast<const std::int64_t*>(nullptr));
    case SampleType::f16: return f(static_cast<const float16*>(nullptr));
    case SampleType::f32: return f(static_cast<const float*>(nullptr));
    case SampleType::f64: break;
  }
  return f(static_cast<const double*>(nullptr));
}
}   // namespace lrcnn
