#pragma once
// Max pooling.
//
// A thread makes a few neighbouring channels of one position: forward of y, backward of dx, gathered from the outputs
// whose windows hold it. Sums run over taps in row-major order, as the host's do.
#include <lrcnn/backend/cudnn/loops/bias.hpp>
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
#include <lrcnn/backend/cudnn/loops/relu_sign.hpp>
#include <lrcnn/backend/cudnn/steps_along.hpp>
namespace lrcnn::loops {
namespace detail {
/// Whether a value wins over the best of those before it in the window.
template <class A>
LRCNN_HOST_DEVICE bool beats(A value, A best) {
  return value > best || value != value;
}
template <class T>
struct MaxPoolLoop : PoolLoop<T> {
  using A = master_t<T>;
  using PoolLoop<T>::positions, PoolLoop<T>::rows, PoolLoop<T>::columns, PoolLoop<T>::packs;
  static constexpr int V = lanes<T>;
  Image<const T> x;
  Image<T> y;
  Image<std::uint8_t> index;
  MaxPoolLoop(const Operands<T>& o, const View<T>& written) : PoolLoop<T>(*o.node, written, o.x, o.saved), x(o.x), y(o.y), index(o.saved) {}
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    A best[V];
    int winner[V];
    bool none = true;
    for (int v = 0; v < V; ++v) best[v] = -infinity(), winner[v] = 0;
    for (int r = 0; r < rows.kernel(); ++r) {
      const int row = rows.position(at.y, r);
      if (!rows.inside(row)) continue;
      for (int s = 0; s < columns.kernel(); ++s) {
        const int column = columns.position(at.x, s);
        if (!columns.inside(column)) continue;
        A value[V];
        load(x.at(at.image, row, column, at.channel), at.count, packs, value);
        for (int v = 0; v < V; ++v) {
          const bool wins = none || beats(value[v], best[v]);
          best[v] = wins ? value[v] : best[v];
          winner[v] = wins ? r * columns.kernel() + s : winner[v];
        }
        none = false;
      }
    }
    if (y.data != nullptr) store(y.at(at.image, at.y, at.x, at.channel), at.count, packs, best);
    if (index.data != nullptr) store(index.at(at.image, at.y, at.x, at.channel), at.count, packs, winner);
  }
  LRCNN_HOST_DEVICE static A infinity() {
    if constexpr (std::is_same_v<A, double>) return __builtin_huge_val();
    else return __builtin_huge_valf();
  }
};
/// The same by windows of 2x2 side by side, which are all of a map that a ReLU has made, and that ReLU's mask bits: a thread makes a byte for each
/// tap.
template <class T>
struct MaxPoolBitsLoop {
  using A = master_t<T>;
  static constexpr int V = 8, side = 2, taps = side * side;
  Positions positions;
  Image<const T> x;
  Image<T> y;
  Image<std::uint8_t> index, bits;
  bool packs;
  MaxPoolBitsLoop(const Operands<T>& o, const View<T>& written)
      : positions(written, V),
        x(o.x),
        y(o.y),
        index(o.saved),
        bits(o.along->saved),
        packs(position_packs<V>(written) && position_packs<V>(o.x) && position_packs<V>(o.saved)) {
    assert(cudnn::fills_bytes(written.c));
  }
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    const auto row = [&](int tap) { return side * at.y + tap / side; };
    const auto column = [&](int tap) { return side * at.x + tap % side; };
    Pack<T, V> element[taps];
    load_all([&](int tap) { return x.at(at.image, row(tap), column(tap), at.channel); }, V, packs, element);
    A best[V];
    int winner[V];
    for (int tap = 0; tap < taps; ++tap) {
      unsigned positive = 0;
      for (int v = 0; v < V; ++v) {
        const A value = static_cast<A>(element[tap].element[v]);
        positive |= (value > A(0) ? 1u : 0u) << v;
        const bool wins = tap == 0 || beats(value, best[v]);
        best[v] = wins ? value : best[v];
        winner[v] = wins ? tap : winner[v];
      }
      *bits.at(at.image, row(tap), (column(tap) * positions.channels + at.channel) / 8, 0) = static_cast<std::uint8_t>(positive);
    }
    if (y.data != nullptr) store(y.at(at.image, at.y, at.x, at.channel), V, packs, best);
    if (index.data != nullptr) store(index.at(at.image, at.y, at.x, at.channel), V, packs, winner);
  }
};
template <class T>
struct MaxPoolBackwardLoop : PoolLoop<T> {
  using A = master_t<T>;
  using PoolLoop<T>::positions, PoolLoop<T>::rows, PoolLoop<T>::columns, PoolLoop<T>::packs;
  static constexpr int V = lanes<T>;
  Image<const T> dy;
  Image<T> dx;
  Image<std::uint8_t> index, bits;   ///< bits: of the ReLU below, if its step is carried out along
  int outputs;
  explicit MaxPoolBackwardLoop(const Operands<T>& o)
      : PoolLoop<T>(*o.node, o.dx, o.dy, o.saved),
        dy(o.dy),
        dx(o.dx),
        index(o.saved),
        bits(o.along ? o.along->saved : View<std::uint8_t>{}),
        outputs(static_cast<int>(o.node->out.w)) {
    assert(!o.along || cudnn::fills_bytes(o.dx.c));
  }
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const auto at = positions.place(unit);
    A sum[V] = {};
    for (auto r = rows.first_reader(at.y); r.tap < rows.kernel(); rows.next(r)) {
      if (!dy.holds(r.out)) continue;
      for (auto s = columns.first_reader(at.x); s.tap < columns.kernel(); columns.next(s)) {
        if (s.out < 0 || s.out >= outputs) continue;
        const int tap = r.tap * columns.kernel() + s.tap;
        A down[V];
        int winner[V];
        load(dy.at(at.image, r.out, s.out, at.channel), at.count, packs, down);
        load(index.at(at.image, r.out, s.out, at.channel), at.count, packs, winner);
        for (int v = 0; v < V; ++v) sum[v] += winner[v] == tap ? down[v] : A(0);
      }
    }
    if (bits.data != nullptr) {
      const int element = at.x * positions.channels + at.channel;   // of the row
      const unsigned passing = static_cast<unsigned>(*bits.at(at.image, at.y, element / 8, 0)) >> element % 8;
      for (int v = 0; v < V; ++v) sum[v] = (passing >> v & 1u) != 0 ? sum[v] : A(0);
    }
    store(dx.at(at.image, at.y, at.x, at.channel), at.count, packs, sum);
  }
};
/// What a convolution's bias gradient is made from, and makes it: the gradients of the input of a max pooling by windows of 2x2 side by side, where
/// the ReLU that made this input lets them pass. A position has one window at most, so that several are on their way at once.
/// again: winners are looked for in the input, and not kept; positive ones passed the ReLU.
template <class T, bool again>
struct PoolGradient {
  using A = master_t<T>;
  static constexpr int V = lanes<T>, at_once = again ? 2 : 4, side = 2, taps = side * side;
  Divisor columns;
  Image<const T> x, dy;
  Image<T> dx;
  Image<const std::uint8_t> index;
  Line<std::uint8_t> bits;
  int outputs;
  bool packs;
  explicit PoolGradient(const Operands<T>& o)
      : columns(o.dx.w),
        x(o.x),
        dy(o.dy),
        dx(o.dx),
        index(View<const std::uint8_t>(o.saved)),
        bits(again ? View<std::uint8_t>{} : o.along->saved.slice(o.dx.range())),
        outputs(static_cast<int>(o.dy.w)),
        packs(position_packs<V>(o.dx) && position_packs<V>(o.dy) && position_packs<V>(o.x) && position_packs<V>(o.saved)) {}
  LRCNN_HOST_DEVICE bool takes_packs() const { return packs; }
  template <int n, bool packed, class Loop, class Some>
  LRCNN_HOST_DEVICE void get(const Loop& loop, const typename Loop::Place& place, const Some& some, Pack<T, V> (&element)[n]) const {
    const int channel = static_cast<int>(place.channel);
    Index image[n], at[n];
    int row[n], column[n];
    bool inside[n];
    for (int i = 0; i < n; ++i) {
      Index left = some.at(i);
      image[i] = loop.per_image.split(left), at[i] = left * loop.channels + channel;
      row[i] = static_cast<int>(columns.split(left)) + dx.row0, column[i] = static_cast<int>(left);
      inside[i] = dy.holds(row[i] / side) && column[i] / side < outputs;
    }
    // Of the window, or of the first where a position has none.
    const auto out_row = [&](int i) { return inside[i] ? row[i] / side : dy.row0; };
    const auto out_column = [&](int i) { return inside[i] ? column[i] / side : 0; };
    load_all<packed>([&](int i) { return dy.at(image[i], out_row(i), out_column(i), channel); }, place.count, element);
    const auto keep = [&](int i, auto passes) {
      for (int v = 0; v < V; ++v) {
        T& down = element[i].element[v];
        down = static_cast<T>(A(0) + (inside[i] && passes(v) ? static_cast<A>(down) : A(0)));   // a sum, which makes -0 a 0
      }
      if (some.has(i)) store_pack<packed>(dx.at(image[i], row[i], column[i], channel), place.count, element[i]);
    };
    const auto tap = [&](int i) { return row[i] % side * side + column[i] % side; };
    if constexpr (again) {
      Pack<T, V> value[n * taps];
      load_all<packed>(
          [&](int k) {
            const int i = k / taps, t = k % taps;
            return x.at(image[i], out_row(i) * side + t / side, out_column(i) * side + t % side, channel);
          },
          place.count, value);
      for (int i = 0; i < n; ++i)
        keep(i, [&](int v) {
          const auto number = [&](int t) { return static_cast<A>(value[i * taps + t].element[v]); };
          A best = number(0);
          int winner = 0;
          for (int t = 1; t < taps; ++t)
            if (const A other = number(t); beats(other, best)) best = other, winner = t;
          return winner == tap(i) && best > A(0);
        });
    } else {
      Pack<std::uint8_t, V> winner[n];
      load_all<packed>([&](int i) { return index.at(image[i], out_row(i), out_column(i), channel); }, place.count, winner);
      unsigned passing[n];
      for (int i = 0; i < n; ++i) passing[i] = mask_bits(bits.data + image[i] * bits.stride_n, at[i]);
      for (int i = 0; i < n; ++i) keep(i, [&](int v) { return winner[i].element[v] == tap(i) && (passing[i] >> v & 1u) != 0; });
    }
  }
};
}   // namespace detail
/// As host::max_pool_forward: the largest value of each window and its place; y or saved may be empty. With o.along, and the mask bits of the ReLU
/// that made x.
/// Post:    padding counts as -inf, the first of equals wins; not-a-number wins over everything
template <class Exec, class T>
void max_pool_forward(const Exec& exec, const Operands<T>& o) {
  const View<std::uint8_t>& s = o.saved;   // laid out as y is
  const View<T> written = o.y.data ? o.y : View<T>{nullptr, s.n, s.c, s.row0, s.rows, s.w, s.block, 0, 0};
  if (empty(written)) return;
  const auto go = [&](const auto& loop) { for_units(exec, loop.positions.count(), loop); };
  if (o.along) go(detail::MaxPoolBitsLoop<T>(o, written));
  else go(detail::MaxPoolLoop<T>(o, written));
}
/// As host::max_pool_backward: dx = dy where a window's winner lies, added up over windows. With o.along, where the ReLU below lets it pass. With
/// o.bias_along, too, and the gradient of the bias of the convolution below; then x, the ReLU's output, may be there in place of what the forward
/// step has saved.
/// Post:    writes all rows of dx; only windows of dy's rows contribute
template <class Exec, class T>
void max_pool_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  if (const Operands<T>* sums = o.bias_along) {
    const auto go = [&](const auto& gradient) {
      detail::sum_bias(exec, View<const T>(o.dx), gradient, sums->d_parameters[1], sums->accumulate, sums->workspace, o.tallies);
    };
    if (o.saved.data == nullptr) return go(detail::PoolGradient<T, true>(o));
    return go(detail::PoolGradient<T, false>(o));
  }
  const detail::MaxPoolBackwardLoop<T> loop(o);
  for_units(exec, loop.positions.count(), loop);
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::max_pool, Exec, T>{max_pool_forward<Exec, T>, max_pool_backward<Exec, T>};
}   // namespace lrcnn::loops
