#pragma once
// Rows as strips of sixteen elements, for layers whose numbers differ from channel to channel.
//
// Where a storage block divides sixteen, every strip of a row holds the same channels in the same places, so a channel's numbers are
// laid out once as a strip. What is made of a strip may go through an activation on the way, with its mask bits kept: to the bit as the
// activation's own step would do it.
#include <lrcnn/backend/host/activation.hpp>
#include <cmath>
namespace lrcnn::host::detail {
/// A number for each element of a strip.
template <class T>
using Strip = Sixteen<T>;
/// Calls f(image, channel block, rows) for pieces of a view's rows, large enough that numbers of channels may be worked out anew.
/// `elements`: of a row.
template <class V, class F>
void for_parts(const V& view, Index elements, int threads, F&& f) {
  if (view.rows <= 0) return;
  const Index blocks = view.blocks(), end = view.range().end;
  const Index size = std::clamp<Index>(16384 / std::max<Index>(1, elements), 1, view.rows), parts = ceil_div(view.rows, size);
  parallel_for(view.n * blocks * parts, useful_threads(view.n * blocks * view.rows * elements, threads), [&](Index part) {
    const Index first = view.row0 + part % parts * size;
    f(part / (blocks * parts), part / parts % blocks, Range{first, std::min(first + size, end)});
  });
}
/// Calls f(strip's first element, size) for strips that cover a row.
template <class F>
void for_strips(Index elements, F&& f) {
  Index at = 0;
  for (; at + 16 <= elements; at += 16) f(at, Index{16});
  if (at < elements) f(at, elements - at);
}
/// The elements themselves, or a copy filled up with zeros.
template <class T>
const T* whole_strip(const T* from, Index size, Strip<T>& copy) {
  if (size == 16) return from;
  copy.fill(T(0));
  std::copy_n(from, size, copy.data());
  return copy.data();
}
/// Numbers of the channels of a strip that begins at element `at` of a row of channel block b: make(c) for channels, zero for padded ones.
template <class N, class Make>
void lay_out(Strip<N>& numbers, Index channels, Index block, Index b, Index at, Make make) {
  for (Index e = 0; e < 16; ++e) {
    const Index c = b * block + (at + e) % block;
    auto& number = item(numbers, e);
    if (e >= block && 16 % block == 0) number = item(numbers, e % block);
    else number = c < channels ? make(c) : N{};
  }
}
/// x * scale + shift for a strip.
template <class T>
SixteenWords<T> scaled_strip(const Strip<master_t<T>>& scale, const Strip<master_t<T>>& shift, const T* x) {
  SixteenWords<T> z = load_sixteen<T>(x);
  const auto by = load_sixteen<T>(scale.data()), plus = load_sixteen<T>(shift.data());
  for (std::size_t p = 0; p < z.size(); ++p) z[p] = z[p] * by[p] + plus[p];
  return z;
}
/// dx = down * dy + across * x + shift for a strip. x may be null: then dx = down * dy.
template <class T>
void combine_strip(const std::array<Strip<master_t<T>>, 3>& numbers, const T* dy, const T* x, T* dx) {
  using W = Words<T, 16>;
  using Value = typename W::Value;
  for (std::size_t l = 0; l < 16; l += static_cast<std::size_t>(W::width)) {
    const Value down = load_word<Value>(dy + l) * load_word<Value>(&numbers[0][l]);
    if (x == nullptr) store_word(dx + l, down);
    else store_word(dx + l, load_word<Value>(x + l) * load_word<Value>(&numbers[1][l]) + (load_word<Value>(&numbers[2][l]) + down));
  }
}
/// The function of a step without an activation.
struct Same {
  static constexpr bool from_sign = true;
  template <class T>
  constexpr T value(const T& x) const {
    return x;
  }
};
/// Calls f with the functor of the activation that a step applies, or with Same.
template <class T, class F>
void with_activation(const Operands<T>& o, F&& f) {
  if (o.activation) with_functor<master_t<T>>(o.activation->layer.activation, f);
  else f(Same{});
}
/// y = f(strip) unless y is null, and mask bits unless they are null; the strip is rounded to elements first.
template <class T, class F>
void put_strip(const F& f, SixteenWords<T> strip, Index size, T* y, std::uint8_t* mask) {
  if constexpr (!std::is_same_v<T, master_t<T>>) {
    Strip<T> rounded;
    store_words(rounded.data(), strip);
    strip = load_sixteen<T>(rounded.data());
  }
  if (mask != nullptr) {
    const unsigned bits = positive_bits<T>(strip) & ((1u << size) - 1);
    mask[0] = static_cast<std::uint8_t>(bits);
    if (size > 8) mask[1] = static_cast<std::uint8_t>(bits >> 8);
  }
  if (y == nullptr) return;
  write_ahead(y);
  if (size == 16) return apply<T>(f, strip, y);
  Strip<T> out;
  apply<T>(f, strip, out.data());
  std::copy_n(out.data(), size, y);
}
/// y = f(what make_rows writes), with mask bits. make_rows(image, channel block, rows, begin) calls begin(row) for each of those rows and
/// what that gives with (at, strip, size) for each of its strips; elements that are padding it gives as zeros.
template <class T, class MakeRows>
void make_activated(const Operands<T>& o, Index w, Index block, int threads, MakeRows make_rows) {
  with_activation(o, [&](const auto& f) {
    const auto part = [&](Index i, Index b, Range rows) {
      make_rows(i, b, rows, [&](Index row) {
        T* y = o.y.data ? o.y.row(i, b, row) : nullptr;
        std::uint8_t* mask = o.saved.data ? o.saved.row(i, b, row) : nullptr;
        return [f, y, mask](Index at, const SixteenWords<T>& strip, Index size) {
          put_strip<T>(f, strip, size, y ? y + at : nullptr, mask ? mask + at / 8 : nullptr);
        };
      });
    };
    if (o.y.data) for_parts(o.y, w * block, threads, part);
    else for_parts(o.saved, w * block, threads, part);
  });
  if (o.y.data && o.activation && !keeps_zero(o.activation->layer.activation.function)) zero_padded_channels(o.y);
}
}   // namespace lrcnn::host::detail
