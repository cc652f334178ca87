#pragma once
// Activations: one pass over memory, in place if the views are the same memory.
//
// What backward needs is one bit per element (saved), or y where its sign tells that of x, or x. A row is cut into
// pieces of sixteen elements, the last one filled up, so that an element's value does not depend on its place.
#include <lrcnn/backend/functor.hpp>
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
#include <lrcnn/backend/host/words.hpp>
#include <array>
namespace lrcnn::host {
namespace detail {
template <class T>
using Sixteen = std::array<T, 16>;
/// 1, 2, 4, ...: the bit of each of 16 elements in their mask.
template <class T>
inline constexpr Sixteen<CodeElement<T>> bit_of_lane = [] {
  Sixteen<CodeElement<T>> bits{};
  for (std::size_t i = 0; i < 16; ++i) bits[i] = CodeElement<T>{1} << i;
  return bits;
}();
/// The word of bits that belongs to elements l and following.
template <class T>
typename Words<T, 16>::Code bits_at(Index l) {
  return load_word<typename Words<T, 16>::Code>(&bit_of_lane<T>[static_cast<std::size_t>(l)]);
}
/// Sixteen elements as words, in registers.
template <class T>
using SixteenWords = std::array<typename Words<T, 16>::Value, static_cast<std::size_t>(Words<T, 16>::count)>;
/// Mask of 16 elements: bit l is set where element l is positive.
template <class T>
unsigned positive_bits(const SixteenWords<T>& x) {
  using W = Words<T, 16>;
  using Code = typename W::Code;
  Code bits{};
  for (std::size_t p = 0; p < x.size(); ++p) bits |= x[p] > typename W::Value{} ? bits_at<T>(static_cast<Index>(p) * W::width) : Code{};
  const auto parts = load_word<std::array<CodeElement<T>, W::width>>(&bits);
  CodeElement<T> all = 0;
  for (const auto part : parts) all |= part;
  return static_cast<unsigned>(all);
}
/// Loads sixteen elements, of T or of what T is computed in.
template <class T, class E>
SixteenWords<T> load_sixteen(const E* x) {
  SixteenWords<T> words;
  for (std::size_t p = 0; p < words.size(); ++p) words[p] = load_word<typename Words<T, 16>::Value>(x + p * Words<T, 16>::width);
  return words;
}
/// y = f(x) for 16 elements.
template <class T, class F>
void apply(const F& f, const SixteenWords<T>& x, T* y) {
  using W = Words<T, 16>;
  using Value = typename W::Value;
  for (std::size_t p = 0; p < x.size(); ++p) {
    if constexpr (F::from_sign) store_word(y + p * W::width, f.template value<Value>(x[p]));
    else store_word(y + p * W::width, f.template value<Value>(x[p], WordExp<master_t<T>>{}));
  }
}
/// dx = f'(.) * dy for 16 elements, with their signs in a mask.
template <class T, class F>
void apply_backward(const F& f, unsigned mask, const T* dy, T* dx) {
  using W = Words<T, 16>;
  using Value = typename W::Value;
  using Code = typename W::Code;
  const Code bits = Code{} + static_cast<CodeElement<T>>(mask);
  for (Index l = 0; l < 16; l += W::width) store_word(dx + l, f.template gradient<Value>(load_word<Value>(dy + l), (bits & bits_at<T>(l)) != Code{}));
}
/// dx = f'(.) * dy for 16 elements, with x, or y in its place where the sign is enough.
template <class T, class F>
void apply_backward(const F& f, const T* values, const T* dy, T* dx) {
  using W = Words<T, 16>;
  using Value = typename W::Value;
  for (Index l = 0; l < 16; l += W::width) {
    const Value v = load_word<Value>(values + l), down = load_word<Value>(dy + l);
    if constexpr (F::from_sign) store_word(dx + l, f.template gradient<Value>(down, v > Value{}));
    else store_word(dx + l, f.template gradient<Value>(down, v, WordExp<master_t<T>>{}));
  }
}
/// One row: y = f(x) unless y is null, and mask bits unless they are null.
template <class T, class F>
void activation_row(const F& f, const T* x, T* y, std::uint8_t* mask, Index count) {
  for (Index i = 0; i < count; i += 16) {
    const Index size = std::min<Index>(16, count - i);
    read_ahead(x + i);
    Sixteen<T> rest{};
    if (size < 16) std::copy_n(x + i, size, rest.data());
    const T* from = size < 16 ? rest.data() : x + i;
    if (mask != nullptr) {
      const unsigned bits = positive_bits<T>(load_sixteen<T>(from));
      mask[i / 8] = static_cast<std::uint8_t>(bits);
      if (size > 8) mask[i / 8 + 1] = static_cast<std::uint8_t>(bits >> 8);
    }
    if (y == nullptr) continue;
    write_ahead(y + i);
    apply<T>(f, load_sixteen<T>(from), size < 16 ? rest.data() : y + i);
    if (size < 16) std::copy_n(rest.data(), size, y + i);
  }
}
/// One row: dx = f'(.) * dy, from mask bits, or from values if there are none.
template <class T, class F>
void activation_row_backward(const F& f, const std::uint8_t* mask, const T* values, const T* dy, T* dx, Index count) {
  for (Index i = 0; i < count; i += 16) {
    const Index size = std::min<Index>(16, count - i);
    read_ahead(dy + i);
    write_ahead(dx + i);
    if (values != nullptr) read_ahead(values + i);
    Sixteen<T> down{}, value{};
    if (size < 16) std::copy_n(dy + i, size, down.data());
    if (size < 16 && values != nullptr) std::copy_n(values + i, size, value.data());
    const T* from = size < 16 ? down.data() : dy + i;
    T* to = size < 16 ? down.data() : dx + i;
    if (mask != nullptr) {
      if constexpr (F::from_sign) apply_backward(f, mask[i / 8] | (size > 8 ? mask[i / 8 + 1] << 8u : 0u), from, to);
    } else {
      apply_backward(f, size < 16 ? value.data() : values + i, from, to);
    }
    if (size < 16) std::copy_n(down.data(), size, dx + i);
  }
}
}   // namespace detail
/// y = f(x), saved = the bits x > 0.
/// Shapes:  x, y [N,C,rows,W], saved as saved_view() lays it out; y or saved may be empty
/// Post:    writes y and saved; bits beyond a row's last element are 0
template <class T>
void activation_forward(const Operands<T>& o, int threads) {
  const auto& out = o.y;
  with_functor<master_t<T>>(o.node->layer.activation, [&](const auto& f) {
    const auto row_at = [&](Index i, Index b, Index row) {
      detail::activation_row(f, o.x.row(i, b, row), out.data ? out.row(i, b, row) : nullptr, o.saved.data ? o.saved.row(i, b, row) : nullptr,
                             o.x.stride_row());
    };
    if (out.data) for_rows(out, threads, row_at);
    else for_rows(o.saved, threads, row_at);
  });
  if (out.data && !keeps_zero(o.node->layer.activation.function)) zero_padded_channels(out);
}
/// dx = f'(x) * dy, from saved if there is one, else from x, else from y.
/// Pre:     a function whose derivative does not follow from a sign is given x; y serves if its sign is that of x
/// Post:    writes all rows of dx; rows that dy does not have get 0
template <class T>
void activation_backward(const Operands<T>& o, int threads) {
  with_functor<master_t<T>>(o.node->layer.activation, [&](const auto& f) {
    const bool masked = f.from_sign && o.saved.data;
    const View<const T> values = o.x.data || !f.from_sign ? o.x : View<const T>(o.y);
    const Range rows = o.dy.range();
    assert(rows.empty() || masked || values.data);
    for_rows(o.dx, threads, [&](Index i, Index b, Index row) {
      T* dx = o.dx.row(i, b, row);
      const Index count = o.dx.stride_row();
      if (rows.contains({row, row + 1}))
        detail::activation_row_backward(f, masked ? o.saved.row(i, b, row) : nullptr, masked ? nullptr : values.row(i, b, row), o.dy.row(i, b, row),
                                        dx, count);
      else std::fill_n(dx, count, T(0));
    });
  });
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::activation, T>{activation_forward<T>, activation_backward<T>};
}   // namespace lrcnn::host
