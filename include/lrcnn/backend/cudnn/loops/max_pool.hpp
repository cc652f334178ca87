#pragma once
// Max pooling.
//
// A thread makes a few neighbouring channels of one position: forward of y, backward of dx, gathered from the outputs
// whose windows hold it. Sums run over taps in row-major order, as the host's do.
#include <lrcnn/backend/cudnn/loops/layer_loops.hpp>
#include <lrcnn/backend/cudnn/loops/positions.hpp>
#include <lrcnn/backend/cudnn/steps_along.hpp>
namespace lrcnn::loops {
namespace detail {
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
          const bool wins = none || value[v] > best[v] || value[v] != value[v];
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
}   // namespace detail
/// As host::max_pool_forward: the largest value of each window and its place; y or saved may be empty.
/// Post:    padding counts as -inf, the first of equals wins; not-a-number wins over everything
template <class Exec, class T>
void max_pool_forward(const Exec& exec, const Operands<T>& o) {
  const View<std::uint8_t>& s = o.saved;   // laid out as y is
  const View<T> written = o.y.data ? o.y : View<T>{nullptr, s.n, s.c, s.row0, s.rows, s.w, s.block, 0, 0};
  if (empty(written)) return;
  const detail::MaxPoolLoop<T> loop(o, written);
  for_units(exec, loop.positions.count(), loop);
}
/// As host::max_pool_backward: dx = dy where a window's winner lies, added up over windows. With o.along, where the ReLU below lets it pass.
/// Post:    writes all rows of dx; only windows of dy's rows contribute
template <class Exec, class T>
void max_pool_backward(const Exec& exec, const Operands<T>& o) {
  if (empty(o.dx)) return;
  const detail::MaxPoolBackwardLoop<T> loop(o);
  for_units(exec, loop.positions.count(), loop);
}
template <class Exec, class T>
inline constexpr LayerLoops<Exec, T> layer_loops<Kind::max_pool, Exec, T>{max_pool_forward<Exec, T>, max_pool_backward<Exec, T>};
}   // namespace lrcnn::loops
