#pragma once
// Activations: one pass over memory, in place if the views are the same memory.
//
// What backward needs is one bit per element (saved), or y where its sign tells that of x, or x.
#include <lrcnn/backend/functor.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
#include <array>
namespace lrcnn::host {
namespace detail {
/// The unsigned integer of an element's width, so that masks and elements fill equally many vectors.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
template <class T>
inline constexpr std::array<Bits<T>, 16> bit_of_lane = [] {
  std::array<Bits<T>, 16> bits{};
  for (std::size_t i = 0; i < 16; ++i) bits[i] = Bits<T>{1} << i;
  return bits;
}();
/// One row: y = f(x) unless y is null, and mask bits unless they are null.
template <class T, class F>
void activation_row(const F& f, const T* x, T* y, std::uint8_t* mask, Index count) {
  for_pieces(count, [&](Index i, auto size) {
    std::array<T, 16> v;
    for (Index l = 0; l < size; ++l) v[static_cast<std::size_t>(l)] = x[i + l];
    if (mask != nullptr) {
      Bits<T> bits = 0;
      for (Index l = 0; l < size; ++l) {
        const auto at = static_cast<std::size_t>(l);
        bits |= v[at] > T(0) ? bit_of_lane<T>[at] : 0;
      }
      mask[i / 8] = static_cast<std::uint8_t>(bits);
      if (size > 8) mask[i / 8 + 1] = static_cast<std::uint8_t>(bits >> 8);
    }
    if (y != nullptr)
      for (Index l = 0; l < size; ++l) y[i + l] = f.value(v[static_cast<std::size_t>(l)]);
  });
}
/// One row: dx = f'(.) * dy with the signs in mask bits.
template <class T, class F>
void activation_row_backward(const F& f, const std::uint8_t* mask, const T* dy, T* dx, Index count) {
  for_pieces(count, [&](Index i, auto size) {
    const Bits<T> bits = mask[i / 8] | (size > 8 ? static_cast<Bits<T>>(mask[i / 8 + 1]) << 8 : 0);
    std::array<T, 16> v;
    for (Index l = 0; l < size; ++l) {
      const auto at = static_cast<std::size_t>(l);
      v[at] = f.gradient(dy[i + l], (bits & bit_of_lane<T>[at]) != 0);
    }
    for (Index l = 0; l < size; ++l) dx[i + l] = v[static_cast<std::size_t>(l)];
  });
}
/// One row: dx = f'(.) * dy with x, or y in its place where the sign is enough.
template <class T, class F>
void activation_row_backward(const F& f, const T* values, const T* dy, T* dx, Index count) {
  for_pieces(count, [&](Index i, auto size) {
    std::array<T, 16> v;
    for (Index l = 0; l < size; ++l) {
      if constexpr (F::from_sign) v[static_cast<std::size_t>(l)] = f.gradient(dy[i + l], values[i + l] > T(0));
      else v[static_cast<std::size_t>(l)] = f.gradient(dy[i + l], values[i + l]);
    }
    for (Index l = 0; l < size; ++l) dx[i + l] = v[static_cast<std::size_t>(l)];
  });
}
}  // namespace detail
/// y = f(x), saved = the bits x > 0.
/// Shapes:  x, y [N,C,rows,W], saved as saved_view() lays it out; y or saved may be empty
/// Post:    writes y and saved; bits beyond a row's last element are 0
template <class T>
void activation_forward(const Operands<T>& o, int threads) {
  const auto& out = o.y;
  with_functor<T>(o.node->layer.activation, [&](const auto& f) {
    const auto row_at = [&](Index i, Index b, Index row) {
      detail::activation_row(f, o.x.row(i, b, row), out.data ? out.row(i, b, row) : nullptr,
                             o.saved.data ? o.saved.row(i, b, row) : nullptr, o.x.stride_row());
    };
    if (out.data) for_rows(out, threads, row_at);
    else for_rows(o.saved, threads, row_at);
  });
}
/// dx = f'(x) * dy, from saved if there is one, else from y or x.
/// Pre:     a function whose derivative does not follow from a sign is given x; y serves if its sign is that of x
/// Post:    writes all rows of dx; rows that dy does not have get 0
template <class T>
void activation_backward(const Operands<T>& o, int threads) {
  with_functor<T>(o.node->layer.activation, [&](const auto& f) {
    const View<const T> values = o.x.data || !f.from_sign ? o.x : View<const T>(o.y);
    assert(o.dy.rows == 0 || o.saved.data || values.data);
    const Range rows = o.dy.range();
    for_rows(o.dx, threads, [&](Index i, Index b, Index row) {
      T* dx = o.dx.row(i, b, row);
      const Index count = o.dx.stride_row();
      if (row < rows.begin || row >= rows.end) {
        std::fill_n(dx, count, T(0));
        return;
      }
      const T* dy = o.dy.row(i, b, row);
      if constexpr (std::decay_t<decltype(f)>::from_sign)
        if (o.saved.data) return detail::activation_row_backward(f, o.saved.row(i, b, row), dy, dx, count);
      detail::activation_row_backward(f, values.row(i, b, row), dy, dx, count);
    });
  });
}
}  // namespace lrcnn::host
