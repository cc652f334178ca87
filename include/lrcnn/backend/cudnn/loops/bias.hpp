#pragma once
// The gradient of a bias: for each channel the sum over all images, rows and columns.
//
// Blocks of threads add up a few channels of a part of the positions each, and then the parts of a channel. How positions are cut depends on
// nothing but the shape, so bits repeat.
#include <lrcnn/backend/cudnn/loops/rows.hpp>
#include <lrcnn/backend/cudnn/loops/tiles.hpp>
namespace lrcnn::loops {
namespace detail {
/// The sums of a part's channels.
template <class T>
struct SumLoop : TileLoop<T> {
  using A = master_t<T>;
  using TileLoop<T>::V, TileLoop<T>::tiles;
  static constexpr int phases = 1 + tree_phases;
  struct Shared {
    A sum[V][block_threads];
  };
  const T* from;
  Index stride_n;
  bool packs;
  A* to;   ///< [parts][channels]
  SumLoop(const View<const T>& view, const Tiles& t, A* sums)
      : TileLoop<T>(view, t),
        from(view.data),
        stride_n(view.stride_n),
        packs(takes_packs<V>(view.data, view.n > 1 ? view.stride_n : 0, view.c)),
        to(sums) {}
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const auto place = this->place(block, thread);
    if constexpr (k == 0) {
      A sum[V] = {};
      if (place.count > 0)
        this->template each<4>(place, [&](Index at, auto many) {
          constexpr int n = decltype(many)::value;
          Pack<T, V> element[n];
          load_all([&](int i) { return from + this->before(place, at + i * tiles.height, stride_n); }, place.count, packs, element);
          for (int i = 0; i < n; ++i)
            for (int v = 0; v < V; ++v) sum[v] += static_cast<A>(element[i].element[v]);
        });
      for (int v = 0; v < V; ++v) shared.sum[v][thread] = sum[v];
    } else {
      tree_step<k - 1>(thread, block_threads / 2, tiles.width, [&](int own, int other) {
        for (int v = 0; v < V; ++v) shared.sum[v][own] += shared.sum[v][other];
      });
      if constexpr (k == phases - 1)
        for (int v = 0; v < V; ++v)
          if (place.row == 0 && v < place.count) to[place.part * this->channels + place.channel + v] = shared.sum[v][thread];
    }
  }
};
/// db (+)= the sums of all parts.
template <class A>
struct SumFinishLoop {
  static constexpr int phases = 1 + tree_phases, width = 8, height = block_threads / width;
  struct Shared {
    A sum[block_threads];
  };
  const A* from;
  Index parts, channels;
  A* db;
  bool accumulate;
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const Index c = block * width + thread % width;
    if constexpr (k == 0) {
      A sum = 0;
      for (Index part = thread / width; c < channels && part < parts; part += height) sum += from[part * channels + c];
      shared.sum[thread] = sum;
    } else {
      tree_step<k - 1>(thread, block_threads / 2, width, [&](int own, int other) { shared.sum[own] += shared.sum[other]; });
      if constexpr (k == phases - 1)
        if (thread < width && c < channels) db[c] = (accumulate ? db[c] : A(0)) + shared.sum[thread];
    }
  }
};
}   // namespace detail
/// Bytes of workspace that bias_gradient() needs for a view [n,c,rows,w] of elements T.
template <class T>
constexpr Index bias_gradient_bytes(Index n, Index c, Index rows, Index w) {
  using Element = std::remove_const_t<T>;
  return tiles_of<Element>(1, n * rows * w, c).parts() * c * static_cast<Index>(sizeof(master_t<Element>));
}
/// db = the sum of dy over images, rows and columns; added to what is there if accumulate, else written.
/// Shapes:  dy [N,C,rows,W] -> db [C]
/// Pre:     workspace: bias_gradient_bytes<T>(dy.n, dy.c, dy.rows, dy.w) bytes, aligned to 16
/// Post:    the same bits for the same shape and values
template <class Exec, class T>
void bias_gradient(const Exec& exec, const View<T>& dy, master_t<std::remove_const_t<T>>* db, bool accumulate, std::byte* workspace) {
  using A = master_t<std::remove_const_t<T>>;
  assert(channels_last(dy));
  if (empty(dy)) {
    if (!accumulate) zero_rows(exec, dense_view(db, 1, dy.c, {0, 1}, 1, dy.c));
    return;
  }
  const Tiles tiles = tiles_of<std::remove_const_t<T>>(1, dy.n * dy.rows * dy.w, dy.c);
  A* const sums = reinterpret_cast<A*>(workspace);
  for_blocks(exec, tiles.blocks(), detail::SumLoop<std::remove_const_t<T>>(dy, tiles, sums));
  const detail::SumFinishLoop<A> finish{sums, tiles.parts(), dy.c, db, accumulate};
  for_blocks(exec, ceil_div(dy.c, Index{finish.width}), finish);
}
}   // namespace lrcnn::loops
