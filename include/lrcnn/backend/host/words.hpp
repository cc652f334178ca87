#pragma once
// Lanes of a storage block as machine words.
//
// Compilers turn some loops over lanes into vector instructions and others, with selections and mixed widths, not. So
// the loops that matter are written in words: a few elements side by side, with the operators of one element; a
// comparison gives what ?: selects by. Where the compiler has no vector types, and for elements other than float, double
// and bfloat16, a word is one element and the same code runs. Elements of two bytes are floats in words: loading widens
// them, storing rounds.
#include <lrcnn/backend/functor.hpp>
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/types.hpp>
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
namespace lrcnn::host {
/// Bytes of a word; 0 without vector types.
#if defined(__GNUC__) && !defined(__CUDACC__) && defined(__AVX2__)
inline constexpr Index word_bytes = 32;
#elif defined(__GNUC__) && !defined(__CUDACC__)
inline constexpr Index word_bytes = 16;
#else
inline constexpr Index word_bytes = 0;
#endif
namespace detail {
/// The integer as wide as an element, for numbers and masks of lanes.
template <class T>
using CodeElement = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
template <class T>
inline constexpr Index word_width = word_bytes > 0 && (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, bfloat16>)
                                        ? word_bytes / Index{sizeof(master_t<T>)}
                                        : 1;
template <class E, bool several>
struct Word {
  using type = E;
};
template <class W>
W widened(const bfloat16* from);
template <class W>
void store_rounded(bfloat16* to, const W& word);
template <class W>
W doubled(const float* from);
template <class W, Index width>
W unpacked(const std::uint8_t* from);
#if defined(__GNUC__) && !defined(__CUDACC__)
template <class E>
struct Word<E, true> {
  typedef E type __attribute__((vector_size(word_bytes)));
};
using HalfCodes = Word<std::uint32_t, true>::type;
typedef std::uint16_t Halves __attribute__((vector_size(word_bytes / 2)));
template <class W>
W widened(const bfloat16* from) {
  Halves halves;
  std::memcpy(&halves, from, sizeof(halves));
  const HalfCodes bits = __builtin_convertvector(halves, HalfCodes) << 16;
  W word;
  std::memcpy(&word, &bits, sizeof(word));
  return word;
}
/// As bfloat16's constructor rounds.
template <class W>
void store_rounded(bfloat16* to, const W& word) {
  HalfCodes bits;
  std::memcpy(&bits, &word, sizeof(bits));
  const HalfCodes rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const HalfCodes stored = (bits & 0x7fffffffu) > 0x7f800000u ? HalfCodes{} + 0x7fffu : rounded;
  const Halves halves = __builtin_convertvector(stored, Halves);
  std::memcpy(static_cast<void*>(to), &halves, sizeof(halves));
}
/// A word of doubles from as many floats.
template <class W>
W doubled(const float* from) {
  typedef float Floats __attribute__((vector_size(word_bytes / 2)));
  Floats floats;
  std::memcpy(&floats, from, sizeof(floats));
  return __builtin_convertvector(floats, W);
}
/// A word of integers from as many bytes.
template <class W, Index width>
W unpacked(const std::uint8_t* from) {
  typedef std::uint8_t Bytes __attribute__((vector_size(width)));
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return __builtin_convertvector(bytes, W);
}
#endif
}   // namespace detail
/// Asks for what a loop over memory will read soon, 2 kB ahead. Call it for each 64 bytes or less; memory need not be there.
/// Source:  statistics and sums of norms over 67 MB read at 12 GB/s without it and at 30 to 33 with it, 34 to 41 in pages of 2 MB (two
///          cores of an Intel Xeon, 2 MiB of L2 each, AVX-512); 1 kB is 5 to 30 % slower, 4 and 8 kB are the same within 10 %
inline void read_ahead([[maybe_unused]] const void* x) {
#if defined(__GNUC__)
  __builtin_prefetch(static_cast<const std::byte*>(x) + 2048);
#endif
}
/// Likewise for memory that will be written, 1 kB ahead.
/// Source:  there, a ReLU backward over 67 MB takes 4.8 ms in place of 7.1, a norm forward 3.7 of 4.8; 512 B to 4 kB are the same
inline void write_ahead([[maybe_unused]] const void* x) {
#if defined(__GNUC__)
  __builtin_prefetch(static_cast<const std::byte*>(x) + 1024, 1);
#endif
}
/// How L lanes of elements T are cut into words.
template <class T, Index L>
struct Words {
  static constexpr Index width = L % detail::word_width<T> == 0 ? detail::word_width<T> : 1;   ///< elements of a word
  static constexpr Index count = L / width;
  using CodeElement = detail::CodeElement<T>;
  using Value = typename detail::Word<master_t<T>, (width > 1)>::type;
  using Code = typename detail::Word<CodeElement, (width > 1)>::type;
};
/// The word that begins at an element of any alignment.
template <class W, class E>
W load_word(const E* from) {
  if constexpr (std::is_same_v<E, master_t<E>>) {
    W word;
    std::memcpy(&word, from, sizeof(W));
    return word;
  } else if constexpr (std::is_same_v<W, master_t<E>>) {
    return static_cast<W>(*from);
  } else {
    return detail::widened<W>(from);
  }
}
template <class W, class E>
void store_word(E* to, const W& word) {
  if constexpr (std::is_same_v<E, master_t<E>>) std::memcpy(to, &word, sizeof(W));
  else if constexpr (std::is_same_v<W, master_t<E>>) *to = static_cast<E>(word);
  else detail::store_rounded(to, word);
}
/// Words side by side.
template <class W, std::size_t n, class E>
void store_words(E* to, const std::array<W, n>& words) {
  for (std::size_t p = 0; p < n; ++p) store_word(to + p * (sizeof(W) / sizeof(master_t<E>)), words[p]);
}
/// 16 elements as doubles.
using Wide = std::array<Words<double, 16>::Value, static_cast<std::size_t>(Words<double, 16>::count)>;
template <class T>
Wide load_wide(const T* from) {
  using W = Words<double, 16>;
  Wide wide;
  if constexpr (std::is_same_v<T, bfloat16> && W::width > 1) {
    std::array<float, 16> floats;
    using H = Words<bfloat16, 16>;
    for (Index l = 0; l < 16; l += H::width) store_word(&item(floats, l), load_word<typename H::Value>(from + l));
    return load_wide(floats.data());
  } else {
    for (std::size_t p = 0; p < wide.size(); ++p) {
      const T* part = from + p * static_cast<std::size_t>(W::width);
      if constexpr (std::is_same_v<T, double>) wide[p] = load_word<W::Value>(part);
      else if constexpr (std::is_same_v<T, float> && W::width > 1) wide[p] = detail::doubled<W::Value>(part);
      else
        for (std::size_t l = 0; l < static_cast<std::size_t>(W::width); ++l) {
          const double value = static_cast<double>(part[l]);
          std::memcpy(reinterpret_cast<std::byte*>(&wide[p]) + l * sizeof(value), &value, sizeof(value));
        }
    }
    return wide;
  }
}
/// Bytes as a word of integers.
template <class W, Index width>
W load_codes(const std::uint8_t* from) {
  if constexpr (width > 1) return detail::unpacked<W, width>(from);
  else return static_cast<W>(*from);
}
namespace detail {
/// The standard library's error function, element by element.
template <class T, class W>
W erf_of(const W& x) {
  std::array<T, sizeof(W) / sizeof(T)> elements;
  std::memcpy(&elements, &x, sizeof(W));
  for (T& e : elements) e = StandardExp{}.erf(e);
  return load_word<W>(elements.data());
}
}   // namespace detail
/// The exponential of words, and their error function. Of float, for arguments from -87 to 88 (others are taken as the nearest of these) within
/// a relative error of 2e-7; of other elements, the standard library's element by element.
template <class T>
struct WordExp {
  template <class W>
  W operator()(const W& x) const {
    std::array<T, sizeof(W) / sizeof(T)> elements;
    std::memcpy(&elements, &x, sizeof(W));
    for (T& e : elements) e = StandardExp{}(e);
    return load_word<W>(elements.data());
  }
  template <class W>
  W erf(const W& x) const {
    return detail::erf_of<T>(x);
  }
};
template <>
struct WordExp<float> {
  /// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2) / 2; ln 2 in two parts, so that n ln 2 loses nothing.
  template <class W>
  W operator()(const W& argument) const {
    using Code = typename detail::Word<std::int32_t, (sizeof(W) > sizeof(float))>::type;
    const W low = W{} - 87.0f, high = W{} + 88.0f;
    const W above = argument < low ? low : argument, x = above > high ? high : above;
    constexpr float to_integer = 12582912.0f;   // 1.5 * 2^23: what is added to it lands in the low bits
    const W shifted = x * 1.44269504f + to_integer, n = shifted - to_integer;
    const W r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    const W high_order = ((r * (1.0f / 5040) + 1.0f / 720) * r + 1.0f / 120) * r + 1.0f / 24;
    const W sum = (((high_order * r + 1.0f / 6) * r + 0.5f) * r + 1.0f) * r + 1.0f;
    const Code power = (load_word<Code>(&shifted) << 23) + 0x3f800000;   // the bits of 2^n
    return sum * load_word<W>(&power);
  }
  template <class W>
  W erf(const W& x) const {
    return detail::erf_of<float>(x);
  }
};
}   // namespace lrcnn::host
