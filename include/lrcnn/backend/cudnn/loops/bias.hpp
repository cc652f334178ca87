#pragma once
// The gradient of a bias: for each channel the sum over all images, rows and columns.
//
// Blocks of threads add up a few channels of a part of the positions each, and the last of them the parts of a channel. How positions are cut
// depends on nothing but the shape, so bits repeat.
#include <lrcnn/backend/cudnn/loops/last_block.hpp>
#include <lrcnn/backend/cudnn/loops/rows.hpp>
namespace lrcnn::loops {
namespace detail {
/// Sums of the parts' channels.
template <class A>
struct PartSums {
  using Value = A;
  A* data;   ///< [parts][channels]
  Index channels;
  LRCNN_HOST_DEVICE A get(Index, Index k, Index c) const { return data[k * channels + c]; }
  LRCNN_HOST_DEVICE void put(Index, Index k, Index c, A sum) const { data[k * channels + c] = sum; }
  LRCNN_HOST_DEVICE static double about(Index, Index) { return 0; }
  LRCNN_HOST_DEVICE static void add(A& sum, A part, Index, double) { sum += part; }
  LRCNN_HOST_DEVICE static void add(A& sum, A other) { sum += other; }
  LRCNN_HOST_DEVICE static A result(A all, double) { return all; }
};
/// db = a channel's sum, or db += it.
template <class A>
struct BiasGradient {
  A* db;
  bool accumulate;
  LRCNN_HOST_DEVICE void operator()(Index, Index c, A sum) const { db[c] = (accumulate ? db[c] : A(0)) + sum; }
};
/// Elements of a view, as they are.
template <class T>
struct ViewElements {
  static constexpr int V = lanes<T>, at_once = 4;
  const T* from;
  Index stride_n;
  bool packs;
  explicit ViewElements(const View<const T>& v) : from(v.data), stride_n(v.stride_n), packs(position_packs<V>(v)) {}
  LRCNN_HOST_DEVICE bool takes_packs() const { return packs; }
  /// Elements at some positions of a thread, the first where there are fewer.
  template <int n, bool packed, class Loop, class Some>
  LRCNN_HOST_DEVICE void get(const Loop& loop, const typename Loop::Place& place, const Some& some, Pack<T, V> (&element)[n]) const {
    load_all<packed>([&](int i) { return from + loop.before(place, some.at(i), stride_n); }, place.count, element);
  }
};
/// Adds up what a source has at the positions of a map, each of which it is asked for once.
template <class T, class Source>
struct SumLoop : SummedTiles<T, PartSums<master_t<T>>, BiasGradient<master_t<T>>> {
  using A = master_t<T>;
  using Base = SummedTiles<T, PartSums<A>, BiasGradient<A>>;
  using Base::V, Base::tiles;
  static constexpr int own_phases = 3, phases = own_phases + Base::end_phases;
  union Shared {
    struct {
      A sum[V][block_threads], piece[block_threads];
    } of;
    typename Base::Turn turn;
  };
  Source source;
  SumLoop(const View<const T>& map, const Tiles& t, const Source& from, A* sums, const BiasGradient<A>& result, std::uint32_t* counted)
      : Base(map, t, {sums, map.c}, result, counted), source(from) {}
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const auto place = this->place(block, thread);
    const ThreadRows<V> rows{tiles.width};
    if constexpr (k == 0) {
      if (source.takes_packs() && place.count == V) add_up<Source::at_once, true>(place, thread, shared);
      else add_up<1, false>(place, thread, shared);
    } else if constexpr (k == 1) {
      shared.of.piece[thread] = rows.of_rows(shared.of.sum, thread);
    } else if constexpr (k == 2) {
      const Index c = this->place(block, rows.column(thread)).channel + rows.number(thread);
      if (thread < rows.sums() && c < this->channels) this->of_parts.put(0, place.part, c, rows.of_pieces(shared.of.piece, thread));
    } else {
      this->template end_phase<k - own_phases>(block, thread, shared.turn);
    }
  }

 private:
  template <int n, bool packed>
  LRCNN_HOST_DEVICE void add_up(const typename Base::Place& place, int thread, Shared& shared) const {
    A sum[V] = {};
    if (place.count > 0)
      this->template each<n>(place, [&](const auto& some) {
        Pack<T, V> element[n];
        source.template get<n, packed>(*this, place, some, element);
        for (int i = 0; i < n; ++i)
          for (int v = 0; v < V; ++v) sum[v] += some.has(i) ? static_cast<A>(element[i].element[v]) : A(0);
      });
    for (int v = 0; v < V; ++v) shared.of.sum[v][thread] = sum[v];
  }
};
}   // namespace detail
/// Bytes of workspace that bias_gradient() needs for a view [n,c,rows,w] of elements T.
template <class T>
constexpr Index bias_gradient_bytes(Index n, Index c, Index rows, Index w) {
  using Element = std::remove_const_t<T>;
  return tiles_of<Element>(1, n * rows * w, c).parts() * c * static_cast<Index>(sizeof(master_t<Element>));
}
namespace detail {
/// db = the sum of what `source` has at the positions of a map. Otherwise as bias_gradient().
template <class Exec, class T, class Source>
void sum_bias(const Exec& exec, const View<const T>& map, const Source& source, master_t<T>* db, bool accumulate, std::byte* workspace,
              std::uint32_t* tallies) {
  const Tiles tiles = tiles_of<T>(1, map.n * map.rows * map.w, map.c);
  for_blocks(exec, tiles.blocks(), SumLoop<T, Source>(map, tiles, source, reinterpret_cast<master_t<T>*>(workspace), {db, accumulate}, tallies));
}
}   // namespace detail
/// db = the sum of dy over images, rows and columns; added to what is there if accumulate, else written.
/// Shapes:  dy [N,C,rows,W] -> db [C]
/// Pre:     workspace: bias_gradient_bytes<T>(dy.n, dy.c, dy.rows, dy.w) bytes, aligned to 16; tallies: most_tallies of them
/// Post:    the same bits for the same shape and values
template <class Exec, class T>
void bias_gradient(const Exec& exec, const View<T>& dy, master_t<std::remove_const_t<T>>* db, bool accumulate, std::byte* workspace,
                   std::uint32_t* tallies) {
  using E = std::remove_const_t<T>;
  assert(channels_last(dy));
  if (empty(dy)) {
    if (!accumulate) zero_rows(exec, dense_view(db, 1, dy.c, {0, 1}, 1, dy.c));
    return;
  }
  detail::sum_bias(exec, View<const E>(dy), detail::ViewElements<E>(dy), db, accumulate, workspace, tallies);
}
}   // namespace lrcnn::loops
