#pragma once
// Lanes of a storage block as machine words.
//
// Compilers turn some loops over lanes into vector instructions and others, with selections and mixed widths, not; so
// the loops that matter say what they want in words: a few elements side by side, with the operators of one element.
// Where the compiler has no vector types, and for element types without vectors, a word is one element and the same
// code runs. A comparison of words gives what the operator ?: takes.
#include <lrcnn/core/types.hpp>
#include <cstring>
#include <type_traits>
namespace lrcnn::host {
/// An integer as wide as an element, where there is one.
template <class T>
using CodeOf = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
/// A word of type E itself.
template <class E>
struct OneElement {
  using type = E;
};
#if defined(__GNUC__) && !defined(__CUDACC__)
#if defined(__AVX2__)
inline constexpr Index word_bytes = 32;
#else
inline constexpr Index word_bytes = 16;
#endif
/// A word of as many elements as fit.
template <class E>
struct ManyElements {
  typedef E type __attribute__((vector_size(word_bytes)));
};
#else
inline constexpr Index word_bytes = 1;
template <class E>
using ManyElements = OneElement<E>;
#endif
/// How L lanes of elements T are cut into words.
template <class T, Index L>
struct Words {
  static constexpr bool many = (std::is_same_v<T, float> || std::is_same_v<T, double>) &&
                               L % (word_bytes / static_cast<Index>(sizeof(T)) + (word_bytes == 1)) == 0;
  static constexpr Index width = many && word_bytes > 1 ? word_bytes / static_cast<Index>(sizeof(T)) : 1;
  static constexpr Index count = L / width;
  using Value = typename std::conditional_t<(width > 1), ManyElements<T>, OneElement<T>>::type;
  using Code = typename std::conditional_t<(width > 1), ManyElements<CodeOf<T>>, OneElement<CodeOf<T>>>::type;
};
}  // namespace lrcnn::host
