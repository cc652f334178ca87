#pragma once
// Units of work: what one thread does, how threads find their place, and how they reach memory.
//
// A loop is a functor that is called with the numbers 0 ... count - 1, in any order and at the same time. What runs it
// is a Thrust execution policy: thrust::cuda::par_nosync.on(stream) on a device, thrust::cpp::par on the host, for the
// tests. Nothing is allocated and nobody waits. Every element is written by one thread and every sum has a fixed order,
// so bits repeat. Neighbouring numbers are neighbouring channels, as they lie in memory.
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/view.hpp>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <cassert>
#include <cstring>
/// Before a loop: a device's compiler is not to write its body out several times. Code that runs once in a kernel costs most when it is fetched.
#ifdef __CUDA_ARCH__
#define LRCNN_ROLLED _Pragma("unroll 1")
#else
#define LRCNN_ROLLED
#endif
namespace lrcnn::loops {
/// Calls f(0) ... f(count - 1) where `exec` says.
template <class Exec, class F>
void for_units(const Exec& exec, Index count, const F& f) {
  if (count > 0) thrust::for_each_n(exec, thrust::counting_iterator<Index>(0), count, f);
}
namespace detail {
__extension__ typedef unsigned __int128 Wide;
}
/// A number that many threads divide by: a multiplication and a shift instead of a division, which on a device is a function call.
/// Source:  Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994, theorem 4.2: with 2^l >= d and
///          m = ceil(2^(63 + l) / d), floor(a m / 2^(63 + l)) = floor(a / d) for a below 2^63
class Divisor {
 public:
  Divisor() = default;
  /// Pre: value > 0.
  explicit Divisor(Index value) : value_(value) {
    assert(value > 0);
    while ((Index{1} << shift_) < value) ++shift_;
    const auto d = static_cast<Wide>(value);
    multiplier_ = static_cast<std::uint64_t>(((Wide{1} << (63 + shift_)) + d - 1) / d);
  }
  LRCNN_HOST_DEVICE Index value() const { return value_; }
  /// Pre: a >= 0.
  LRCNN_HOST_DEVICE Index quotient(Index a) const {
    const std::uint64_t twice = static_cast<std::uint64_t>(a) * 2;
#ifdef __CUDA_ARCH__
    return static_cast<Index>(__umul64hi(twice, multiplier_) >> shift_);
#else
    return static_cast<Index>(static_cast<std::uint64_t>(static_cast<Wide>(twice) * multiplier_ >> 64) >> shift_);
#endif
  }
  /// Replaces a by what remains of it. Pre: a >= 0.
  LRCNN_HOST_DEVICE Index split(Index& a) const {
    const Index whole = quotient(a);
    a -= whole * value_;
    return whole;
  }

 private:
  using Wide = detail::Wide;
  Index value_ = 1;
  std::uint64_t multiplier_ = std::uint64_t{1} << 63;
  int shift_ = 0;   ///< l
};
/// V elements that are read or written at once, 16 bytes at a time.
template <class T, int V>
struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack {
  T element[V];
};
/// Whether packs of V elements may be read at `p` and at all multiples of `steps` elements from there.
template <int V, class T, class... Steps>
bool takes_packs(const T* p, Steps... steps) {
  constexpr Index bytes = alignof(Pack<T, V>);
  const auto fits = [](Index step) { return step * static_cast<Index>(sizeof(T)) % bytes == 0; };
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0 && fits(0) && (fits(steps) && ...);
}
namespace detail {
/// Whether all groups of channels of all positions may be accessed as packs. An empty view fits. Pre: channels last
template <int V, class T>
bool position_packs(const View<T>& v) {
  return v.data == nullptr || takes_packs<V>(v.data, v.n > 1 ? v.stride_n : 0, v.c);
}
}   // namespace detail
/// An element of less than four bytes as an integer.
template <class T>
LRCNN_HOST_DEVICE constexpr std::uint32_t bits_of(T element) {
  if constexpr (std::is_integral_v<T>) return element;
  else return element.bits();
}
/// Copies a pack: on a device in words of 16 bytes.
template <class T, int V>
LRCNN_HOST_DEVICE void copy_pack(Pack<T, V>* to, const T* from) {
#ifdef __CUDA_ARCH__
  *to = *reinterpret_cast<const Pack<T, V>*>(from);
#else
  std::memcpy(static_cast<void*>(to), from, sizeof(*to));
#endif
}
template <class T, int V>
LRCNN_HOST_DEVICE void copy_pack(T* to, const Pack<T, V>* from) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) < 4) {   // by words and an intrinsic: compilers would store two or four bytes at a time
    constexpr int in_word = 4 / static_cast<int>(sizeof(T));
    std::uint32_t words[V / in_word] = {};
    for (int v = 0; v < V; ++v) words[v / in_word] |= bits_of(from->element[v]) << (v % in_word * 32 / in_word);
    if constexpr (sizeof(words) == 16) __stwb(reinterpret_cast<uint4*>(to), make_uint4(words[0], words[1], words[2], words[3]));
    else if constexpr (sizeof(words) == 8) __stwb(reinterpret_cast<uint2*>(to), make_uint2(words[0], words[1]));
    else __stwb(reinterpret_cast<unsigned*>(to), words[0]);
  } else if constexpr (std::is_same_v<T, float> && V % 4 == 0) {   // likewise, in loops
    const auto& e = from->element;
    for (int v = 0; v < V; v += 4) __stwb(reinterpret_cast<float4*>(to + v), make_float4(e[v], e[v + 1], e[v + 2], e[v + 3]));
  } else {
    *reinterpret_cast<Pack<T, V>*>(to) = *from;
  }
#else
  std::memcpy(static_cast<void*>(to), from, sizeof(*from));
#endif
}
/// The first `count` of V elements at each of several places, as they are; the others are 0. All are on their way at once. packed: all V may be read
/// as packs.
template <bool packed, int V, int n, class T, class At>
LRCNN_HOST_DEVICE void load_all(At at, int count, Pack<T, V> (&to)[n]) {
  if constexpr (packed) {
    for (int i = 0; i < n; ++i) copy_pack(&to[i], at(i));
  } else {
    for (int i = 0; i < n; ++i)
      for (int v = 0; v < V; ++v) to[i].element[v] = v < count ? at(i)[v] : static_cast<T>(0.0f);
  }
}
template <int V, int n, class T, class At>
LRCNN_HOST_DEVICE void load_all(At at, int count, bool packs, Pack<T, V> (&to)[n]) {
  if (packs && count == V) load_all<true>(at, count, to);
  else load_all<false>(at, count, to);
}
/// The first `count` of V elements, as numbers to compute with; the others are 0.
template <class A, int V, class T>
LRCNN_HOST_DEVICE void load(const T* from, int count, bool packs, A (&to)[V]) {
  if (packs && count == V) {
    Pack<T, V> pack;
    copy_pack(&pack, from);
    for (int v = 0; v < V; ++v) to[v] = static_cast<A>(pack.element[v]);
  } else {
    for (int v = 0; v < V; ++v) to[v] = v < count ? static_cast<A>(from[v]) : A(0);
  }
}
/// Rounds the first `count` of V numbers to elements.
template <class A, int V, class T>
LRCNN_HOST_DEVICE void store(T* to, int count, bool packs, const A (&from)[V]) {
  if (packs && count == V) {
    Pack<T, V> pack;
    for (int v = 0; v < V; ++v) pack.element[v] = static_cast<T>(from[v]);
    copy_pack(to, &pack);
  } else {
    for (int v = 0; v < V; ++v)
      if (v < count) to[v] = static_cast<T>(from[v]);
  }
}
/// Writes the first `count` of V elements; all, if they may be written as a pack.
template <bool packed, int V, class T>
LRCNN_HOST_DEVICE void store_pack(T* to, int count, const Pack<T, V>& from) {
  if constexpr (packed) {
    copy_pack(to, &from);
  } else {
    for (int v = 0; v < V; ++v)
      if (v < count) to[v] = from.element[v];
  }
}
/// Channels that one thread takes where channels are independent: 16 bytes of them, or 32 of double.
template <class T>
inline constexpr int lanes = sizeof(T) == 2 ? 8 : 4;
/// A view that is read; the element type follows from what is written.
template <class T>
using ReadView = View<const std::type_identity_t<T>>;
template <class T>
constexpr bool empty(const View<T>& view) {
  return view.n * view.c * view.rows * view.w == 0;
}
/// True for the layout that these loops are for: channels last, Target::all_channels.
template <class T>
constexpr bool channels_last(const View<T>& view) {
  return view.data == nullptr || view.block == view.c;
}
}   // namespace lrcnn::loops
