#pragma once
// Activations, and what a convolution leaves to be done pointwise: its bias.
//
// The arithmetic is that of backend/functor.hpp. A thread takes eight neighbours, so that it has a byte of mask to
// itself; it reads them before it writes, so operands may be the same memory. A bias that is added on the way gives
// the bits of one added before: the sum is rounded to an element first.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/functor.hpp>
namespace lrcnn::loops {
namespace detail {
/// Takes a number as it is: what is left of a biased activation without the activation.
struct Identity {
  template <class A>
  LRCNN_HOST_DEVICE A value(A x) const {
    return x;
  }
};
/// value[v] = the element nearest to value[v] + bias; a piece begins at any channel.
template <class T, class A>
LRCNN_HOST_DEVICE void add_bias(const T* bias, const Divisor& channels, Index first, A (&value)[Lines::width]) {
  channels.split(first);
  for (int v = 0; v < Lines::width; ++v) {
    value[v] = static_cast<A>(static_cast<T>(value[v] + static_cast<A>(bias[first])));
    if (++first == channels.value()) first = 0;
  }
}
/// What a pointwise step ends with: y = f(value), and the bits value > 0, of values rounded to elements. Either may be empty.
template <class T, class F>
struct Activated {
  using A = master_t<T>;
  Line<T> y;
  Line<std::uint8_t> mask;
  F f;
  LRCNN_HOST_DEVICE void put(const Lines& lines, const Piece& p, A (&value)[Lines::width]) const {
    for (int v = 0; v < Lines::width; ++v) value[v] = static_cast<A>(static_cast<T>(value[v]));
    if (mask.data != nullptr) {
      unsigned bits = 0;
      for (int v = 0; v < Lines::width; ++v) bits |= (v < p.count && value[v] > A(0) ? 1u : 0u) << v;
      *mask.byte_at(p) = static_cast<std::uint8_t>(bits);
    }
    if (y.data == nullptr) return;
    for (int v = 0; v < Lines::width; ++v) value[v] = f.template value<A>(value[v]);
    store(y.at(p), p.count, lines.packs(), value);
  }
};
/// y = f(x + bias), and the bits x + bias > 0.
template <class T, class F>
struct ActivationLoop {
  using A = master_t<T>;
  Lines lines;
  Line<const T> x;
  Activated<T, F> result;
  const T* bias;
  Divisor channels;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A value[Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    if (bias != nullptr) add_bias(bias, channels, p.first, value);
    result.put(lines, p, value);
  }
};
/// dx = f'(.) * dy, from mask bits, or from values if there are none.
template <class T, class F>
struct ActivationBackwardLoop {
  using A = master_t<T>;
  Lines lines;
  Line<std::uint8_t> mask;
  Line<const T> values, dy;
  Line<T> dx;
  F f;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A down[Lines::width];
    load(dy.at(p), p.count, lines.packs(), down);
    if (mask.data != nullptr) {
      if constexpr (F::from_sign) {
        const unsigned bits = *mask.byte_at(p);
        for (int v = 0; v < Lines::width; ++v) down[v] = f.template gradient<A>(down[v], (bits >> v & 1u) != 0);
      }
    } else {
      A value[Lines::width];
      load(values.at(p), p.count, lines.packs(), value);
      for (int v = 0; v < Lines::width; ++v) {
        if constexpr (F::from_sign) down[v] = f.template gradient<A>(down[v], value[v] > A(0));
        else down[v] = f.template gradient<A>(down[v], value[v]);
      }
    }
    store(dx.at(p), p.count, lines.packs(), down);
  }
};
template <class Exec, class T, class F>
void activation(const Exec& exec, const F& f, const View<const T>& x, const T* bias, const View<T>& y, const View<std::uint8_t>& saved) {
  if (empty(x)) return;
  assert(channels_last(x) && channels_last(y));
  const Lines lines(saved, x, y);
  for_units(exec, lines.count(), ActivationLoop<T, F>{lines, x, {y, saved, f}, bias, Divisor(x.c)});
}
/// Calls f with the functor of the activation that a step applies, or with Identity.
template <class T, class F>
void with_activation(const Operands<T>& o, F&& f) {
  if (o.activation) with_functor<master_t<T>>(o.activation->layer.activation, f);
  else f(Identity{});
}
/// Rows that a step makes: those of y, or of saved if there is no y.
template <class T>
Range made_rows(const Operands<T>& o) {
  return o.y.data != nullptr ? o.y.range() : o.saved.range();
}
/// Saved state of the rows that a step makes.
template <class T>
View<std::uint8_t> made_saved(const Operands<T>& o) {
  return o.saved.data != nullptr ? o.saved.slice(made_rows(o)) : View<std::uint8_t>{};
}
}   // namespace detail
/// y = f(x + bias), saved = the bits x + bias > 0.
/// Shapes:  x, y [N,C,rows,W] of the same rows, bias [C] or null, saved as saved_view() lays it out; y or saved may be
///          empty, y may be x
/// Post:    writes y and saved, to the bit as bias_add() and an activation after it; bits beyond a row's end are 0
template <class Exec, class T>
void bias_activation(const Exec& exec, const Activation& activation, const ReadView<T>& x, const std::type_identity_t<T>* bias, const View<T>& y,
                     const View<std::uint8_t>& saved) {
  with_functor<master_t<T>>(activation, [&](const auto& f) { detail::activation(exec, f, x, bias, y, saved); });
}
/// y = x + bias. Shapes: x, y [N,C,rows,W] of the same rows, bias [C]; y may be x.
template <class Exec, class T>
void bias_add(const Exec& exec, const ReadView<T>& x, const std::type_identity_t<T>* bias, const View<T>& y) {
  detail::activation<Exec, T>(exec, detail::Identity{}, x, bias, y, View<std::uint8_t>{});
}
/// bias_activation, or bias_add where there is no function.
template <class Exec, class T>
void activate(const Exec& exec, const ReadView<T>& x, const std::type_identity_t<T>* bias, const Activation* f, const View<T>& y,
              const View<std::uint8_t>& saved) {
  if (f) bias_activation<Exec, T>(exec, *f, x, bias, y, saved);
  else bias_add<Exec, T>(exec, x, bias, y);
}
/// As host::activation_forward: the rows of y, or of saved if there is no y; x may hold more.
template <class Exec, class T>
void activation_forward(const Exec& exec, const Operands<T>& o) {
  bias_activation(exec, o.node->layer.activation, o.x.slice(detail::made_rows(o)), nullptr, o.y, detail::made_saved(o));
}
/// As host::activation_backward: dx = f'(x) * dy, from saved if there is one, else from x, else from y.
/// Post:    writes all rows of dx; rows that dy does not have get 0
template <class Exec, class T>
void activation_backward(const Exec& exec, const Operands<T>& o) {
  const Range both = detail::zero_others(exec, o);
  if (both.empty() || empty(o.dx)) return;
  with_functor<master_t<T>>(o.node->layer.activation, [&](const auto& f) {
    const bool masked = f.from_sign && o.saved.data != nullptr;
    const View<const T> source = o.x.data != nullptr || !f.from_sign ? o.x : View<const T>(o.y);
    assert(masked || source.data != nullptr);
    const View<const T> values = masked ? View<const T>{} : source.slice(both), dy = o.dy.slice(both);
    const View<std::uint8_t> saved = masked ? o.saved.slice(both) : View<std::uint8_t>{};
    const View<T> dx = o.dx.slice(both);
    assert(channels_last(values) && channels_last(dy) && channels_last(dx));
    const Lines lines(saved, dx, dy, values);
    for_units(exec, lines.count(), detail::ActivationBackwardLoop<T, std::remove_cvref_t<decltype(f)>>{lines, saved, values, dy, dx, f});
  });
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::activation, Exec, T>{activation_forward<Exec, T>, activation_backward<Exec, T>};
}   // namespace lrcnn::loops
