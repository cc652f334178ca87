#pragma once
// LayerNorm: some threads find what a pixel is normalised with, and what its gradient takes; the rest is pointwise.
//
// What is known of pixels lies in the step's workspace. Where not all rows fit, some are done at a time.
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/norm_sums.hpp>
namespace lrcnn::loops {
namespace detail {
/// Numbers of channels, in planes: first of all sets' channels, second of all, ...; a piece's are read at once where they lie so.
template <class A>
struct ChannelNumbers {
  const A* data;
  Index plane;   ///< numbers of one; 0 if there is but one
  Divisor channels;
  bool batch, packs;   ///< batch: all images have the same
  ChannelNumbers(const A* numbers, Index sets, Index channel_count, bool same)
      : data(numbers),
        plane(sets * channel_count),
        channels(channel_count),
        batch(same),
        packs(takes_packs<Lines::width>(numbers, channel_count) && channel_count % Lines::width == 0) {}
  template <int n>
  LRCNN_HOST_DEVICE void get(const Piece& p, A (&to)[n][Lines::width]) const {
    Index c = p.first;
    channels.split(c);
    const A* from = data + (batch ? 0 : p.image * channels.value());
    if (packs) {
      for (int i = 0; i < n; ++i) load(from + i * plane + c, Lines::width, true, to[i]);
    } else {
      for (int v = 0; v < Lines::width; ++v) {
        for (int i = 0; i < n; ++i) to[i][v] = from[i * plane + c];
        if (++c == channels.value()) c = 0;
      }
    }
  }
};
/// The numbers of a pixel in dx = weight * inverse * dy + across * x + shift.
template <class A>
struct PixelDown {
  A inverse, across, shift;
};
/// Where pixels of a view begin, numbered from its first.
template <class T>
struct Pixels {
  const T* data;
  Index stride_n, channels;
  Divisor per_image;
  bool packs;
  Pixels(const View<const T>& view)
      : data(view.data),
        stride_n(view.stride_n),
        channels(view.c),
        per_image(std::max<Index>(1, view.rows * view.w)),
        packs(position_packs<lanes<T>>(view)) {}
  LRCNN_HOST_DEVICE const T* at(Index pixel) const {
    const Index image = per_image.split(pixel);
    return data + image * stride_n + pixel * channels;
  }
};
/// Some threads find what a pixel is normalised with, or what its gradient takes: first its mean, then what is about the mean.
template <class T, bool backward>
struct PixelLoop {
  using A = master_t<T>;
  using Result = std::conditional_t<backward, PixelDown<A>, PixelNorm>;
  static constexpr int V = lanes<T>, phases = 2 * (1 + tree_phases);
  struct Shared {
    double mean[block_threads], squares[block_threads], sum[block_threads], product[block_threads];
  };
  Pixels<T> x, dy;   ///< dy: x again forward
  const A* weight;   ///< null: 1
  double epsilon;
  Index count;
  Result* to;
  int width;   ///< threads of a pixel
  PixelLoop(const View<const T>& from, const View<const T>& down, const A* weights, double e, Result* results)
      : x(from),
        dy(down),
        weight(weights),
        epsilon(e),
        count(from.n * from.rows * from.w),
        to(results),
        width(power_above(std::min<Index>(32, ceil_div(from.c, Index{V})))) {}
  Index blocks() const { return ceil_div(count, Index{block_threads / width}); }
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const int row = thread / width, first = row * width;
    const Index pixel = block * (block_threads / width) + row;
    const double size = static_cast<double>(x.channels);
    if constexpr (k == 0) {
      shared.mean[thread] = pixel < count ? sum_of(pixel, thread - first) : 0;
    } else if constexpr (k <= tree_phases) {
      tree_step<k - 1>(thread, width / 2, 1, [&](int own, int other) { shared.mean[own] += shared.mean[other]; });
    } else if constexpr (k == 1 + tree_phases) {
      shared.squares[thread] = shared.sum[thread] = shared.product[thread] = 0;
      if (pixel < count) add_up(pixel, thread, thread - first, shared.mean[first] / size, shared);
    } else {
      tree_step<k - 2 - tree_phases>(thread, width / 2, 1, [&](int own, int other) {
        shared.squares[own] += shared.squares[other];
        if constexpr (backward) shared.sum[own] += shared.sum[other], shared.product[own] += shared.product[other];
      });
      if constexpr (k == phases - 1)
        if (thread == first && pixel < count) put(pixel, thread, shared);
    }
  }

 private:
  LRCNN_HOST_DEVICE double sum_of(Index pixel, int thread) const {
    const T* from = x.at(pixel);
    double sum = 0;
    for (Index c = thread * V; c < x.channels; c += width * V) {
      A value[V];
      load(from + c, count_at(c), x.packs, value);
      for (int v = 0; v < V; ++v) sum += static_cast<double>(value[v]);
    }
    return sum;
  }
  LRCNN_HOST_DEVICE void add_up(Index pixel, int thread, int column, double mean, Shared& shared) const {
    const T *from = x.at(pixel), *down = dy.at(pixel);
    double squares = 0, sum = 0, product = 0;
    for (Index c = column * V; c < x.channels; c += width * V) {
      const int many = count_at(c);
      A value[V], g[V];
      load(from + c, many, x.packs, value);
      if constexpr (backward) load(down + c, many, dy.packs, g);
      for (int v = 0; v < V; ++v) {
        if (v >= many) continue;
        const double d = static_cast<double>(value[v]) - mean;
        squares += d * d;
        if constexpr (backward) {
          const double weighted = static_cast<double>(g[v]) * (weight != nullptr ? static_cast<double>(weight[c + v]) : 1);
          sum += weighted, product += weighted * d;
        }
      }
    }
    shared.squares[thread] = squares, shared.sum[thread] = sum, shared.product[thread] = product;
  }
  LRCNN_HOST_DEVICE void put(Index pixel, int thread, const Shared& shared) const {
    const double size = static_cast<double>(x.channels), mean = shared.mean[thread] / size;
    const double inverse = inverse_deviation(shared.squares[thread] / size, epsilon);
    if constexpr (backward) {
      const auto numbers = across_and_shift_of_centred(inverse, mean, shared.sum[thread], shared.product[thread], size);
      to[pixel] = {static_cast<A>(inverse), static_cast<A>(numbers.across), static_cast<A>(numbers.shift)};
    } else {
      to[pixel] = {mean, inverse};
    }
  }
  LRCNN_HOST_DEVICE int count_at(Index c) const { return x.channels - c < V ? static_cast<int>(x.channels - c) : V; }
};
template <bool backward, class Exec, class T, class Result>
void find_pixels(const Exec& exec, const View<const T>& x, const View<const T>& dy, const master_t<T>* weight, double epsilon, Result* pixels) {
  const PixelLoop<T, backward> loop(x, dy, weight, epsilon, pixels);
  for_blocks(exec, loop.blocks(), loop);
}
/// Pixels of the elements of pieces, numbered as PixelReader does.
struct PixelLines {
  Divisor channels;
  Index per_image, per_row;
  template <class V>
  explicit PixelLines(const V& view) : channels(view.c), per_image(view.rows * view.w), per_row(view.w) {}
  /// Calls f(element of the piece, pixel).
  template <class F>
  LRCNN_HOST_DEVICE void each(const Piece& p, F f) const {
    Index c = p.first, pixel = channels.split(c);
    pixel += p.image * per_image + p.row * per_row;
    if (c + Lines::width <= channels.value()) {
      for (int v = 0; v < Lines::width; ++v) f(v, pixel);
    } else {
      for (int v = 0; v < Lines::width; ++v) {
        if (v < p.count) f(v, pixel);
        if (++c == channels.value()) c = 0, ++pixel;
      }
    }
  }
};
/// Numbers of channels of a piece; `otherwise` if there are none.
template <class A>
LRCNN_HOST_DEVICE void numbers_of(const ChannelNumbers<A>& numbers, const Piece& p, A otherwise, A (&to)[1][Lines::width]) {
  for (int v = 0; v < Lines::width; ++v) to[0][v] = otherwise;
  if (numbers.data != nullptr) numbers.get(p, to);
}
template <class T, class F>
struct LayerNormLoop {
  using A = master_t<T>;
  Lines lines;
  PixelLines places;
  Line<const T> x;
  Activated<T, F> result;
  const PixelNorm* pixels;
  ChannelNumbers<A> weights, biases;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A value[Lines::width], weight[1][Lines::width], bias[1][Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    numbers_of(weights, p, A(1), weight);
    numbers_of(biases, p, A(0), bias);
    places.each(p, [&](int v, Index pixel) {
      const A scale = static_cast<A>(pixels[pixel].inverse) * weight[0][v];
      value[v] = value[v] * scale + (bias[0][v] - static_cast<A>(pixels[pixel].mean) * scale);
    });
    result.put(lines, p, value);
  }
};
template <class T>
struct LayerNormBackwardLoop {
  using A = master_t<T>;
  Lines lines;
  PixelLines places;
  Line<const T> x, dy;
  Line<T> dx;
  const PixelDown<A>* pixels;
  ChannelNumbers<A> weights;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A value[Lines::width], down[Lines::width], weight[1][Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    load(dy.at(p), p.count, lines.packs(), down);
    numbers_of(weights, p, A(1), weight);
    places.each(p, [&](int v, Index pixel) {
      const PixelDown<A> n = pixels[pixel];
      down[v] = value[v] * n.across + (n.shift + down[v] * (n.inverse * weight[0][v]));
    });
    store(dx.at(p), p.count, lines.packs(), down);
  }
};
/// The gradients of a channel's weight and bias.
template <class A>
struct LayerGradients {
  A *d_weight, *d_bias;
  bool accumulate;
  LRCNN_HOST_DEVICE void operator()(Index, Index c, const Two& two) const {
    d_weight[c] = static_cast<A>((accumulate ? static_cast<double>(d_weight[c]) : 0) + two.second);
    d_bias[c] = static_cast<A>((accumulate ? static_cast<double>(d_bias[c]) : 0) + two.first);
  }
};
/// Bytes of workspace that a step of LayerNorm takes for so many pixels.
template <class T>
constexpr Index layer_norm_bytes(Op op, Index pixels, Index channels) {
  if (op == Op::backward_data) return pixels * static_cast<Index>(sizeof(PixelDown<master_t<T>>));
  const Index norms = round_up(pixels * static_cast<Index>(sizeof(PixelNorm)), 256);
  return op == Op::forward ? norms : norms + part_bytes<T>(1, pixels, channels);
}
/// Calls f(rows) for pieces of rows, as many as the workspace has room for.
template <class T, class F>
void each_rows(const Operands<T>& o, Range rows, Index pixels_of_row, F f) {
  Index count = rows.size();
  while (count > 1 && layer_norm_bytes<T>(o.op, count * pixels_of_row, o.node->in.c) > o.workspace_bytes) count = ceil_div(count, 2);
  for (Index first = rows.begin; first < rows.end; first += count) f(Range{first, std::min(first + count, rows.end)});
}
template <class T>
ChannelNumbers<master_t<T>> layer_parameter(const Operands<T>& o, std::size_t which) {
  return {o.node->layer.norm.affine ? o.parameters[which] : nullptr, 0, o.node->in.c, true};
}
}   // namespace detail
/// As host::layer_norm_forward, for the rows of y, or of saved if there is no y.
/// Pre:     a workspace of layer_norm_bytes() for one row of all images
template <class Exec, class T>
void layer_norm_forward(const Exec& exec, const Operands<T>& o) {
  const double epsilon = o.node->layer.norm.epsilon;
  auto* pixels = reinterpret_cast<detail::PixelNorm*>(o.workspace);
  detail::each_rows(o, detail::made_rows(o), o.x.n * o.x.w, [&](Range rows) {
    const View<const T> x = o.x.slice(rows);
    const View<T> y = o.y.data != nullptr ? o.y.slice(rows) : View<T>{};
    const View<std::uint8_t> saved = o.saved.data != nullptr ? o.saved.slice(rows) : View<std::uint8_t>{};
    assert(channels_last(x) && channels_last(y));
    detail::find_pixels<false>(exec, x, x, nullptr, epsilon, pixels);
    const Lines lines(saved, x, y);
    detail::with_activation(o, [&](const auto& f) {
      for_units(exec, lines.count(),
                detail::LayerNormLoop<T, std::remove_cvref_t<decltype(f)>>{
                    lines, detail::PixelLines(x), x, {y, saved, f}, pixels, detail::layer_parameter(o, 0), detail::layer_parameter(o, 1)});
    });
  });
}
/// As host::layer_norm_backward_data. Pre: as for layer_norm_forward
template <class Exec, class T>
void layer_norm_backward_data(const Exec& exec, const Operands<T>& o) {
  const double epsilon = o.node->layer.norm.epsilon;
  const auto weights = detail::layer_parameter(o, 0);
  auto* pixels = reinterpret_cast<detail::PixelDown<master_t<T>>*>(o.workspace);
  detail::each_rows(o, detail::zero_others(exec, o), o.dx.n * o.dx.w, [&](Range rows) {
    const View<const T> x = o.x.slice(rows), dy = o.dy.slice(rows);
    const View<T> dx = o.dx.slice(rows);
    assert(channels_last(x) && channels_last(dy) && channels_last(dx));
    detail::find_pixels<true>(exec, x, dy, weights.data, epsilon, pixels);
    const Lines lines({}, x, dy, dx);
    for_units(exec, lines.count(), detail::LayerNormBackwardLoop<T>{lines, detail::PixelLines(x), x, dy, dx, pixels, weights});
  });
}
/// As host::layer_norm_backward_parameters. Pre: as for layer_norm_forward
template <class Exec, class T>
void layer_norm_backward_parameters(const Exec& exec, const Operands<T>& o) {
  using A = master_t<T>;
  const Index channels = o.node->in.c;
  bool accumulate = o.accumulate;
  if (empty(o.dy) && !accumulate)
    for (std::size_t p = 0; p < 2; ++p) zero_rows(exec, dense_view(o.d_parameters[p], 1, channels, {0, 1}, 1, channels));
  if (empty(o.dy)) return;
  detail::each_rows(o, o.dy.range(), o.dy.n * o.dy.w, [&](Range rows) {
    const View<const T> x = o.x.slice(rows), dy = o.dy.slice(rows);
    assert(channels_last(x) && channels_last(dy));
    const Index count = x.n * x.rows * x.w;
    auto* pixels = reinterpret_cast<detail::PixelNorm*>(o.workspace);
    detail::find_pixels<false>(exec, x, x, nullptr, o.node->layer.norm.epsilon, pixels);
    const Tiles tiles = tiles_of<T>(1, count, channels);
    const detail::PartSpace space(tiles, channels, o.workspace + round_up(count * static_cast<Index>(sizeof(detail::PixelNorm)), 256));
    using Loop = detail::ProductsLoop<T, detail::PixelNorms<T>, detail::LayerGradients<A>>;
    for_blocks(exec, tiles.blocks(), Loop(dy, x, tiles, space.parts, {pixels}, {o.d_parameters[0], o.d_parameters[1], accumulate}, o.tallies));
    accumulate = true;
  });
}
}   // namespace lrcnn::loops
