#pragma once
// LayerNorm: a thread finds what a pixel is normalised with, and what its gradient takes; the rest is pointwise.
//
// What is known of pixels lies in the step's workspace. Where not all rows fit, some are done at a time.
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/norm_sums.hpp>
namespace lrcnn::loops {
namespace detail {
/// Mean and inverse deviation of a pixel, numbered from a view's first.
template <class T>
struct PixelReader {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  const T* x;
  Index stride_n, channels;
  Divisor per_image;
  double epsilon;
  bool packs;
  PixelReader(const View<const T>& view, double e)
      : x(view.data),
        stride_n(view.stride_n),
        channels(view.c),
        per_image(view.rows * view.w),
        epsilon(e),
        packs(takes_packs<V>(view.data, view.n > 1 ? view.stride_n : 0, view.c)) {}
  LRCNN_HOST_DEVICE const T* at(Index pixel) const {
    const Index image = per_image.split(pixel);
    return x + image * stride_n + pixel * channels;
  }
  /// Calls f(channel, count, values) for a few channels at a time.
  template <class F>
  LRCNN_HOST_DEVICE void each(const T* from, F f) const {
    for (Index c = 0; c < channels; c += V) {
      A value[V];
      const int count = channels - c < V ? static_cast<int>(channels - c) : V;
      load(from + c, count, packs, value);
      f(c, count, value);
    }
  }
  LRCNN_HOST_DEVICE PixelNorm norm(Index pixel) const {
    const T* from = at(pixel);
    double sum[V] = {}, squares[V] = {};
    each(from, [&](Index, int, const A(&value)[V]) {
      for (int v = 0; v < V; ++v) sum[v] += static_cast<double>(value[v]);
    });
    const double mean = total(sum) / static_cast<double>(channels);
    each(from, [&](Index, int count, const A(&value)[V]) {
      for (int v = 0; v < V; ++v) {
        const double d = v < count ? static_cast<double>(value[v]) - mean : 0;
        squares[v] += d * d;
      }
    });
    return {mean, 1 / std::sqrt(total(squares) / static_cast<double>(channels) + epsilon)};
  }
  LRCNN_HOST_DEVICE static double total(const double (&parts)[V]) {
    double all = 0;
    for (int v = 0; v < V; ++v) all += parts[v];
    return all;
  }
};
template <class T>
struct PixelNormLoop {
  PixelReader<T> x;
  PixelNorm* pixels;
  LRCNN_HOST_DEVICE void operator()(Index pixel) const { pixels[pixel] = x.norm(pixel); }
};
/// The numbers of a pixel in dx = weight * inverse * dy + across * x + shift.
template <class A>
struct PixelDown {
  A inverse, across, shift;
};
template <class T>
struct PixelDownLoop {
  using A = master_t<T>;
  PixelReader<T> x, dy;
  const A* weight;   ///< null: 1
  PixelDown<A>* pixels;
  LRCNN_HOST_DEVICE void operator()(Index pixel) const {
    constexpr int V = PixelReader<T>::V;
    const PixelNorm norm = x.norm(pixel);
    const T* down = dy.at(pixel);
    double sum[V] = {}, product[V] = {};
    x.each(x.at(pixel), [&](Index c, int count, const A(&value)[V]) {
      A from[V];
      load(down + c, count, dy.packs, from);
      for (int v = 0; v < count; ++v) {
        const double g = static_cast<double>(from[v]) * (weight != nullptr ? static_cast<double>(weight[c + v]) : 1);
        sum[v] += g, product[v] += g * (static_cast<double>(value[v]) - norm.mean);
      }
    });
    const double count = static_cast<double>(x.channels), inverse = norm.inverse;
    const double across = -inverse * inverse * inverse * PixelReader<T>::total(product) / count;
    const double shift = -inverse * PixelReader<T>::total(sum) / count - across * norm.mean;
    pixels[pixel] = {static_cast<A>(inverse), static_cast<A>(across), static_cast<A>(shift)};
  }
};
/// Pixels of the elements of pieces, numbered as PixelReader does.
struct PixelLines {
  Divisor channels;
  Index per_image, per_row;
  template <class V>
  explicit PixelLines(const V& view) : channels(view.c), per_image(view.rows * view.w), per_row(view.w) {}
  /// Calls f(element of the piece, pixel, channel).
  template <class F>
  LRCNN_HOST_DEVICE void each(const Piece& p, F f) const {
    Index c = p.first, pixel = channels.split(c);
    pixel += p.image * per_image + p.row * per_row;
    for (int v = 0; v < p.count; ++v) {
      f(v, pixel, c);
      if (++c == channels.value()) c = 0, ++pixel;
    }
  }
};
template <class T, class F>
struct LayerNormLoop {
  using A = master_t<T>;
  Lines lines;
  PixelLines places;
  Line<const T> x;
  Activated<T, F> result;
  const PixelNorm* pixels;
  const A *weight, *bias;   ///< null: 1 and 0
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A value[Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    places.each(p, [&](int v, Index pixel, Index c) {
      const A scale = static_cast<A>(pixels[pixel].inverse) * (weight != nullptr ? weight[c] : A(1));
      const A shift = (bias != nullptr ? bias[c] : A(0)) - static_cast<A>(pixels[pixel].mean) * scale;
      value[v] = value[v] * scale + shift;
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
  const A* weight;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Piece p = lines.piece(unit);
    A value[Lines::width], down[Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    load(dy.at(p), p.count, lines.packs(), down);
    places.each(p, [&](int v, Index pixel, Index c) {
      const PixelDown<A> n = pixels[pixel];
      down[v] = value[v] * n.across + (n.shift + down[v] * (n.inverse * (weight != nullptr ? weight[c] : A(1))));
    });
    store(dx.at(p), p.count, lines.packs(), down);
  }
};
/// The gradients of a channel's weight and bias from the sums of one part.
template <class A>
struct LayerGradientLoop {
  Parts parts;
  A *d_weight, *d_bias;
  bool accumulate;
  LRCNN_HOST_DEVICE void operator()(Index c) const {
    const Two two = parts.get(0, 0, c);
    d_weight[c] = static_cast<A>((accumulate ? static_cast<double>(d_weight[c]) : 0) + two.second);
    d_bias[c] = static_cast<A>((accumulate ? static_cast<double>(d_bias[c]) : 0) + two.first);
  }
};
/// Bytes of workspace that a step of LayerNorm takes for so many pixels.
template <class T>
constexpr Index layer_norm_bytes(Op op, Index pixels, Index channels) {
  if (op == Op::backward_data) return pixels * static_cast<Index>(sizeof(PixelDown<master_t<T>>));
  const Index norms = round_up(pixels * static_cast<Index>(sizeof(PixelNorm)), 256);
  return op == Op::forward ? norms : norms + part_bytes(1, pixels, channels);
}
/// Calls f(rows) for pieces of rows, as many as the workspace has room for.
template <class T, class F>
void each_rows(const Operands<T>& o, Range rows, Index pixels_of_row, F f) {
  Index count = rows.size();
  while (count > 1 && layer_norm_bytes<T>(o.op, count * pixels_of_row, o.node->in.c) > o.workspace_bytes) count = ceil_div(count, 2);
  for (Index first = rows.begin; first < rows.end; first += count) f(Range{first, std::min(first + count, rows.end)});
}
template <class T>
const master_t<T>* layer_parameter(const Operands<T>& o, std::size_t which) {
  return o.node->layer.norm.affine ? o.parameters[which] : nullptr;
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
    for_units(exec, x.n * x.rows * x.w, detail::PixelNormLoop<T>{detail::PixelReader<T>(x, epsilon), pixels});
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
  using detail::PixelReader;
  const double epsilon = o.node->layer.norm.epsilon;
  const master_t<T>* weight = detail::layer_parameter(o, 0);
  auto* pixels = reinterpret_cast<detail::PixelDown<master_t<T>>*>(o.workspace);
  detail::each_rows(o, detail::zero_others(exec, o), o.dx.n * o.dx.w, [&](Range rows) {
    const View<const T> x = o.x.slice(rows), dy = o.dy.slice(rows);
    const View<T> dx = o.dx.slice(rows);
    assert(channels_last(x) && channels_last(dy) && channels_last(dx));
    for_units(exec, x.n * x.rows * x.w, detail::PixelDownLoop<T>{PixelReader<T>(x, epsilon), PixelReader<T>(dy, epsilon), weight, pixels});
    const Lines lines({}, x, dy, dx);
    for_units(exec, lines.count(), detail::LayerNormBackwardLoop<T>{lines, detail::PixelLines(x), x, dy, dx, pixels, weight});
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
    auto* memory = reinterpret_cast<double*>(o.workspace + round_up(count * static_cast<Index>(sizeof(detail::PixelNorm)), 256));
    for_units(exec, count, detail::PixelNormLoop<T>{detail::PixelReader<T>(x, o.node->layer.norm.epsilon), pixels});
    const detail::PartRound round = detail::first_part_round(1, count, channels);
    const detail::ProductsLoop<T, detail::PixelNorms<T>> loop(dy, x, round, {memory, channels, round.parts()}, {pixels});
    for_units(exec, loop.units(), loop);
    const detail::Parts parts = detail::merge_parts<false>(exec, round, channels, memory);
    for_units(exec, channels, detail::LayerGradientLoop<A>{parts, o.d_parameters[0], o.d_parameters[1], accumulate});
    accumulate = true;
  });
}
}   // namespace lrcnn::loops
