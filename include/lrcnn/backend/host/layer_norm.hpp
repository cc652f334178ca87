#pragma once
// LayerNorm: mean and variance over the channels of a pixel.
//
// Sixteen pixels of a row at a time: their channels are read for the mean, for the variance, and to be written; all but the first time
// from a cache. Sums are doubles.
// Source: Ba, Kiros and Hinton, "Layer Normalization", arXiv 1607.06450.
#include <lrcnn/backend/host/strips.hpp>
#include <lrcnn/layer/statistics.hpp>
namespace lrcnn::host {
namespace detail {
/// Up to sixteen pixels of a row of a map with so many channels.
struct Tile {
  Index image, row, first, count, block, channels;
  Range elements() const { return {first * block, (first + count) * block}; }   ///< of a row of a channel block
};
/// For each pixel, the sum over channels of term(channel block, element of its row, channel, pixel).
template <class Term>
Strip<double> sum_channels(const Tile& t, Term term) {
  Strip<double> total{};
  for_lanes(t.block, [&](auto lanes, Index lane) {
    constexpr std::size_t width = decltype(lanes)::value;
    std::array<std::array<double, width>, 16> sums{};
    Index b = 0;
    const auto add = [&](std::size_t p, std::size_t l) {
      const Index at = lane + static_cast<Index>(l);
      sums[p][l] += term(b, (t.first + static_cast<Index>(p)) * t.block + at, b * t.block + at, p);
    };
    for (Index c = lane; c < t.channels; c += t.block, ++b) {
      const auto used = static_cast<std::size_t>(std::min<Index>(t.channels - c, static_cast<Index>(width)));
      for (std::size_t p = 0; p < static_cast<std::size_t>(t.count); ++p)
        if (used == width)
          for (std::size_t l = 0; l < width; ++l) add(p, l);
        else
          for (std::size_t l = 0; l < used; ++l) add(p, l);
    }
    for (std::size_t p = 0; p < 16; ++p)
      for (std::size_t l = 0; l < width; ++l) total[p] += sums[p][l];
  });
  return total;
}
/// What LayerNorm takes away from pixels and multiplies them by.
struct PixelNorm {
  Strip<double> mean, inverse;
};
template <class T>
PixelNorm pixel_norm(const Operands<T>& o, const Tile& t) {
  const auto x = [&](Index b, Index at) { return static_cast<double>(o.x.row(t.image, b, t.row)[at]); };
  const double channels = static_cast<double>(t.channels);
  PixelNorm n;
  n.mean = sum_channels(t, [&](Index b, Index at, Index, std::size_t) { return x(b, at); });
  for (double& m : n.mean) m /= channels;
  n.inverse = sum_channels(t, [&](Index b, Index at, Index, std::size_t p) {
    const double d = x(b, at) - n.mean[p];
    return d * d;
  });
  for (double& v : n.inverse) v = inverse_deviation(v / channels, o.node->layer.norm.epsilon);
  return n;
}
template <class T>
double layer_weight(const Operands<T>& o, Index c) {
  return o.node->layer.norm.affine ? static_cast<double>(o.parameters[0][c]) : 1;
}
/// Calls f(tile) for all pixels of some rows; tiles of a row in order.
template <class V, class F>
void for_tiles(const V& rows, const Shape& shape, Index block, int threads, F&& f) {
  const Index elements = shape.c * shape.w;
  parallel_for(rows.n * rows.rows, useful_threads(rows.n * rows.rows * elements, threads), [&](Index r) {
    for (Index q = 0; q < shape.w; q += 16) f(Tile{r / rows.rows, rows.row0 + r % rows.rows, q, std::min<Index>(16, shape.w - q), block, shape.c});
  });
}
/// Calls f(channel block, element of its row, size, weight, bias, pixels) for strips of a tile: with weight and bias of each element's
/// channel, and each element's pixel in the tile. In padded channels weight and bias are 0.
template <class T, class F>
void for_tile_strips(const Operands<T>& o, const Tile& t, F&& f) {
  Strip<master_t<T>> weight, bias;
  Strip<std::uint8_t> pixels;
  const bool regular = 16 % t.block == 0;
  const auto lay_out_channels = [&](Index b, Index at) {
    lay_out(weight, t.channels, t.block, b, at, [&](Index c) { return o.node->layer.norm.affine ? o.parameters[0][c] : master_t<T>(1); });
    lay_out(bias, t.channels, t.block, b, at, [&](Index c) { return o.node->layer.norm.affine ? o.parameters[1][c] : master_t<T>(0); });
  };
  for (Index b = 0; b < ceil_div(t.channels, t.block); ++b) {
    if (regular) lay_out_channels(b, 0);
    for_strips(t.elements().size(), [&](Index at, Index size) {
      if (!regular) lay_out_channels(b, at);
      Index pixel = at / t.block, lane = at % t.block;
      pixels.fill(static_cast<std::uint8_t>(pixel));
      for (std::size_t e = 0; t.block != 16 && e < static_cast<std::size_t>(size); ++e) {
        pixels[e] = static_cast<std::uint8_t>(pixel);
        if (++lane == t.block) lane = 0, ++pixel;
      }
      f(b, t.elements().begin + at, size, weight, bias, pixels);
    });
  }
}
/// A number of each element's pixel.
template <class A>
Strip<A> of_pixels(const Strip<double>& numbers, const Strip<std::uint8_t>& pixels) {
  Strip<A> each;
  for (std::size_t e = 0; e < 16; ++e) each[e] = static_cast<A>(numbers[pixels[e]]);
  return each;
}
}   // namespace detail
/// y = weight * (x - mean) / sqrt(variance + epsilon) + bias of each pixel, and its activation. Shapes, preconditions: as norm_forward.
template <class T>
void layer_norm_forward(const Operands<T>& o, int threads) {
  using A = master_t<T>;
  detail::with_activation(o, [&](const auto& f) {
    const auto tile_at = [&](const detail::Tile& t) {
      const detail::PixelNorm n = detail::pixel_norm(o, t);
      detail::for_tile_strips(o, t, [&](Index b, Index at, Index size, const auto& weight, const auto& bias, const auto& pixels) {
        const detail::Strip<A> mean = detail::of_pixels<A>(n.mean, pixels), inverse = detail::of_pixels<A>(n.inverse, pixels);
        detail::Strip<A> scale, shift;
        for (std::size_t e = 0; e < 16; ++e) scale[e] = inverse[e] * weight[e], shift[e] = bias[e] - mean[e] * scale[e];
        detail::Strip<T> copy;
        const auto z = detail::scaled_strip(scale, shift, detail::whole_strip(o.x.row(t.image, b, t.row) + at, size, copy));
        detail::put_strip<T>(f, z, size, o.y.data ? o.y.row(t.image, b, t.row) + at : nullptr,
                             o.saved.data ? o.saved.row(t.image, b, t.row) + at / 8 : nullptr);
      });
    };
    if (o.y.data) detail::for_tiles(o.y, o.node->in, o.x.block, threads, tile_at);
    else detail::for_tiles(o.saved, o.node->in, o.x.block, threads, tile_at);
  });
  if (o.y.data) zero_padded_channels(o.y);
}
/// dx = (g - mean(g) - n mean(g n)) / sqrt(variance + epsilon), g = weight * dy, n = normalised x, means over channels.
/// Shapes, pre- and postconditions: as norm_backward_data.
template <class T>
void layer_norm_backward_data(const Operands<T>& o, int threads) {
  detail::for_tiles(o.dx, o.node->in, o.dx.block, threads, [&](const detail::Tile& t) {
    if (!o.dy.range().contains({t.row, t.row + 1})) {
      for (Index b = 0; b < o.dx.blocks(); ++b) std::fill_n(o.dx.row(t.image, b, t.row) + t.elements().begin, t.elements().size(), T(0));
      return;
    }
    const detail::PixelNorm n = detail::pixel_norm(o, t);
    const auto g = [&](Index b, Index at, Index c) { return static_cast<double>(o.dy.row(t.image, b, t.row)[at]) * detail::layer_weight(o, c); };
    const auto sum = detail::sum_channels(t, [&](Index b, Index at, Index c, std::size_t) { return g(b, at, c); });
    const auto product = detail::sum_channels(t, [&](Index b, Index at, Index c, std::size_t p) {
      return g(b, at, c) * (static_cast<double>(o.x.row(t.image, b, t.row)[at]) - n.mean[p]);
    });
    const double channels = static_cast<double>(t.channels);
    detail::Strip<double> across, shift;
    for (std::size_t p = 0; p < 16; ++p) {
      const auto numbers = across_and_shift_of_centred(n.inverse[p], n.mean[p], sum[p], product[p], channels);
      across[p] = numbers.across, shift[p] = numbers.shift;
    }
    detail::for_tile_strips(o, t, [&](Index b, Index at, Index size, const auto& weight, const auto&, const auto& pixels) {
      using A = master_t<T>;
      std::array<detail::Strip<A>, 3> numbers{detail::of_pixels<A>(n.inverse, pixels), detail::of_pixels<A>(across, pixels),
                                              detail::of_pixels<A>(shift, pixels)};
      for (std::size_t e = 0; e < 16; ++e) numbers[0][e] *= weight[e];
      detail::Strip<T> dy_copy, x_copy, dx;
      detail::combine_strip(numbers, detail::whole_strip(o.dy.row(t.image, b, t.row) + at, size, dy_copy),
                            detail::whole_strip(o.x.row(t.image, b, t.row) + at, size, x_copy), dx.data());
      std::copy_n(dx.data(), size, o.dx.row(t.image, b, t.row) + at);
    });
  });
  zero_padded_channels(o.dx);
}
/// Gradients of weight and bias. Shapes, pre- and postconditions: as norm_backward_parameters.
/// Cost:    numbers of 1024 pixels at a time are kept on the stack, and added up channel by channel
template <class T>
void layer_norm_backward_parameters(const Operands<T>& o, int threads) {
  using A = master_t<T>;
  const Shape& in = o.node->in;
  const Index row_tiles = ceil_div(in.w, Index{16}), tiles = o.dy.n * o.dy.rows * row_tiles, at_once = 64;
  if (!o.accumulate)
    for (std::size_t p = 0; p < 2; ++p) std::fill_n(o.d_parameters[p], in.c, A(0));
  std::array<detail::PixelNorm, at_once> norms;
  const auto tile_at = [&](Index t) {
    const Index row = t / row_tiles, first = t % row_tiles * 16;
    return detail::Tile{row / o.dy.rows, o.dy.row0 + row % o.dy.rows, first, std::min<Index>(16, in.w - first), o.dy.block, in.c};
  };
  for (Index from = 0; from < tiles; from += at_once) {
    const Index count = std::min(at_once, tiles - from);
    const int useful = useful_threads(count * 16 * in.c, threads);
    parallel_for(count, useful, [&](Index t) { item(norms, t) = detail::pixel_norm(o, tile_at(from + t)); });
    parallel_for(o.dy.blocks(), useful, [&](Index b) {
      for_lanes(o.dy.block, [&](auto lanes, Index lane) {
        constexpr std::size_t width = decltype(lanes)::value;
        std::array<double, width> weight{}, bias{};
        for (Index k = 0; k < count; ++k) {
          const detail::Tile t = tile_at(from + k);
          const detail::PixelNorm& n = item(norms, k);
          const T *dy = o.dy.row(t.image, b, t.row) + t.first * t.block + lane, *x = o.x.row(t.image, b, t.row) + t.first * t.block + lane;
          for (std::size_t p = 0; p < static_cast<std::size_t>(t.count); ++p, dy += t.block, x += t.block)
            for (std::size_t l = 0; l < width; ++l) {
              bias[l] += static_cast<double>(dy[l]);
              weight[l] += static_cast<double>(dy[l]) * ((static_cast<double>(x[l]) - n.mean[p]) * n.inverse[p]);
            }
        }
        for (std::size_t l = 0; l < width; ++l) {
          const Index c = b * o.dy.block + lane + static_cast<Index>(l);
          if (c >= in.c) break;
          o.d_parameters[0][c] += static_cast<A>(weight[l]);
          o.d_parameters[1][c] += static_cast<A>(bias[l]);
        }
      });
    });
  }
}
}   // namespace lrcnn::host
