#pragma once
// Transposed convolutions whose windows tile the map, as products of matrices.
//
// Each tap (r, s) of such a window makes pixels of its own:
//     y(k, h R + r, w S + s) = b(k) + sum over c of x(c, h, w) f(c, k, r, s)
// so a row of x times a tap's filters is every S-th pixel of a row of y. Products (winograd_formulas.hpp) read and write rows where they
// lie in views; only the filters are packed, into the workspace, or their gradients added up there. Rows of slabs have the bits of the
// map's, and nothing depends on the number of threads.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/host/bias.hpp>
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/host/winograd.hpp>
#include <algorithm>
namespace lrcnn::host {
class TiledTranspose {
 public:
  /// Whether windows lie side by side, so that an output row comes from one input row.
  static bool tiles(const Window& w) { return w.kernel == w.stride && w.pad == Pad(0) && w.dilation == Pair(1); }
  /// Whether the products below carry a step out: windows that tile, no groups, tensors in blocks of floats as wide as the vectors, and
  /// room for the filters.
  static bool serves(const Operands<float>& o, Vectors vectors) {
    const Node& node = *o.node;
    const Index lanes = vector_block(vectors), in = o.op == Op::backward_data ? o.dx.block : o.x.block,
                out = o.op == Op::forward ? o.y.block : o.dy.block;
    return LRCNN_WINOGRAD && node.layer.kind == Kind::conv_transpose && tiles(node.layer.window) && node.layer.groups == 1 && in == lanes &&
           out == lanes && workspace_bytes(node, lanes) <= o.workspace_bytes;
  }
  /// Of packed filters, or of their gradients, and a bias.
  static Index workspace_bytes(const Node& node, Index lanes) {
    const Index in = round_up(node.in.c, lanes), out = round_up(node.out.c, lanes);
    return 4 * (node.layer.window.kernel.h * node.layer.window.kernel.w * in * out + out);
  }
  static void run(const Operands<float>& o, Vectors vectors, int threads) {
#if LRCNN_WINOGRAD
    winograd::with_kernels(vectors, [&](auto kernels) { run_on<decltype(kernels)>(o, threads); });
#else
    static_cast<void>(o), static_cast<void>(vectors), static_cast<void>(threads);
#endif
  }

 private:
#if LRCNN_WINOGRAD
  /// A layer's numbers, with channels rounded up to whole vectors.
  template <class K>
  struct Sizes {
    Index in_c, out_c, in, out;
    Pair window;
    explicit Sizes(const Node& node)
        : in_c(node.in.c), out_c(node.out.c), in(round_up(in_c, K::lanes)), out(round_up(out_c, K::lanes)), window(node.layer.window.kernel) {}
    Index taps() const { return window.h * window.w; }
    Index filter(Index c, Index k, Index tap) const { return (c * out_c + k) * taps() + tap; }
  };
  template <class K>
  static void run_on(const Operands<float>& o, int threads) {
    auto* const scratch = reinterpret_cast<float*>(o.workspace);
    if (o.op == Op::forward) return forward<K>(o, threads, scratch);
    if (o.op == Op::backward_data) return backward_data<K>(o, threads, scratch);
    backward_parameters<K>(o, threads, scratch);
    bias_gradient(o, threads);
  }
  /// Matrices of all taps, one behind the other, each with `rows` rows and a column for each of `columns` channels, in panels.
  /// value(row, column, tap), which is asked for rows and columns that are there
  template <class Value>
  static void pack(float* u, Index taps, Index rows, Index columns, Index rows_used, Index columns_used, int threads, Value value) {
    const Index panels = ceil_div(columns, winograd::panel);
    parallel_for(panels * rows, useful_threads(4 * taps * rows * columns, threads), [&](Index task) {
      const Index panel = task / rows, row = task % rows, width = winograd::panel_width(columns, panel), first = panel * winograd::panel;
      for (Index t = 0; t < taps; ++t) {
        float* const to = u + t * rows * columns + rows * first + row * width;
        for (Index j = 0; j < width; ++j) to[j] = row < rows_used && first + j < columns_used ? value(row, first + j, t) : 0.f;
      }
    });
  }
  /// Calls f(panel, row) for panels of channels and rows [0, rows); a thread has some rows of a panel one after the other.
  template <class F>
  static void for_panels(Index columns, Index rows, Index work, int threads, F f) {
    winograd::detail::for_parts(ceil_div(columns, winograd::panel), rows, useful_threads(work, threads), [&](Index panel, Range part) {
      for (Index row = part.begin; row < part.end; ++row) f(panel, row);
    });
  }
  template <class K>
  static void forward(const Operands<float>& o, int threads, float* u) {
    const Sizes<K> s(*o.node);
    pack(u, s.taps(), s.in, s.out, s.in_c, s.out_c, threads, [&](Index c, Index k, Index tap) { return o.parameters[0][s.filter(c, k, tap)]; });
    float* const bias = u + s.taps() * s.in * s.out;
    std::fill_n(bias, s.out, 0.f);
    if (o.node->layer.bias) std::copy_n(o.parameters[1], s.out_c, bias);
    for_panels(s.out, o.y.n * o.y.rows, s.in * s.out * o.y.n * o.y.rows * o.x.w, threads, [&](Index panel, Index number) {
      const Index image = number / o.y.rows, row = o.y.row0 + number % o.y.rows, first = panel * winograd::panel,
                  width = winograd::panel_width(s.out, panel);
      for (Index column = 0; column < s.window.w; ++column)
        K::multiply_all({.a = o.x.row(image, 0, row / s.window.h),
                         .a_row = K::lanes,
                         .a_step = 1,
                         .a_next = o.x.stride_c,
                         .b = u + (row % s.window.h * s.window.w + column) * s.in * s.out + s.in * first,
                         .b_step = width,
                         .b_vector = K::lanes,
                         .b_next = K::lanes * width,
                         .depth = K::lanes,
                         .pieces = s.in / K::lanes,
                         .c = o.y.row(image, first / K::lanes, row) + column * K::lanes,
                         .c_row = s.window.w * K::lanes,
                         .c_vector = o.y.stride_c,
                         .start = bias + first},
                        o.x.w, width / K::lanes);
    });
  }
  template <class K>
  static void backward_data(const Operands<float>& o, int threads, float* u) {
    const Sizes<K> s(*o.node);
    pack(u, s.taps(), s.out, s.in, s.out_c, s.in_c, threads, [&](Index k, Index c, Index tap) { return o.parameters[0][s.filter(c, k, tap)]; });
    for_panels(s.in, o.dx.n * o.dx.rows, s.taps() * s.in * s.out * o.dx.n * o.dx.rows * o.dx.w, threads, [&](Index panel, Index number) {
      const Index image = number / o.dx.rows, row = o.dx.row0 + number % o.dx.rows, first = panel * winograd::panel,
                  width = winograd::panel_width(s.in, panel);
      bool add = false;
      for (Index tap = 0; tap < s.taps(); ++tap) {
        const Index from = row * s.window.h + tap / s.window.w;
        if (!o.dy.range().contains({from, from + 1})) continue;
        K::multiply_all({.a = o.dy.row(image, 0, from) + tap % s.window.w * K::lanes,
                         .a_row = s.window.w * K::lanes,
                         .a_step = 1,
                         .a_next = o.dy.stride_c,
                         .b = u + tap * s.in * s.out + s.out * first,
                         .b_step = width,
                         .b_vector = K::lanes,
                         .b_next = K::lanes * width,
                         .depth = K::lanes,
                         .pieces = s.out / K::lanes,
                         .c = o.dx.row(image, first / K::lanes, row),
                         .c_row = K::lanes,
                         .c_vector = o.dx.stride_c,
                         .add = add},
                        o.dx.w, width / K::lanes);
        add = true;
      }
      for (Index b = 0; b < width / K::lanes && !add; ++b) std::fill_n(o.dx.row(image, first / K::lanes + b, row), o.dx.stride_row(), 0.f);
    });
  }
  /// Adds up chunks of rows that stay in a cache while all channels meet.
  template <class K>
  static void backward_parameters(const Operands<float>& o, int threads, float* u) {
    const Sizes<K> s(*o.node);
    const Index matrix = s.in * s.out, panels = ceil_div(s.out, winograd::panel), blocks = s.in / K::lanes;
    parallel_for(s.taps(), useful_threads(s.taps() * matrix, threads), [&](Index tap) { std::fill_n(u + tap * matrix, matrix, 0.f); });
    const Range rows{o.dy.row0 / s.window.h, ceil_div(o.dy.row0 + o.dy.rows, s.window.h)};
    const Index chunk = std::max<Index>(1, 512 / std::max<Index>(1, o.x.w));
    for (Index image = 0; image < o.dy.n; ++image)
      for (Index begin = rows.begin; begin < rows.end; begin += chunk)
        parallel_for(panels * s.taps() * blocks, useful_threads(s.taps() * matrix * o.x.w, threads), [&](Index task) {
          const Index block = task % blocks, tap = task / blocks % s.taps(), first = task / (blocks * s.taps()) * winograd::panel;
          const Index r = tap / s.window.w, width = std::min(winograd::panel, s.out - first);
          // Rows h of x whose row h R + r of dy is there.
          const Range h = intersect({begin, std::min(begin + chunk, rows.end)},
                                    {ceil_div(o.dy.row0 - r, s.window.h), ceil_div(o.dy.row0 + o.dy.rows - r, s.window.h)});
          if (h.empty()) return;
          K::multiply_all({.a = o.x.row(image, block, h.begin),
                           .a_row = 1,
                           .a_step = K::lanes,
                           .a_next = o.x.stride_row(),
                           .b = o.dy.row(image, first / K::lanes, h.begin * s.window.h + r) + tap % s.window.w * K::lanes,
                           .b_step = s.window.w * K::lanes,
                           .b_vector = o.dy.stride_c,
                           .b_next = s.window.h * o.dy.stride_row(),
                           .depth = o.x.w,
                           .pieces = h.size(),
                           .c = u + tap * matrix + s.in * first + block * K::lanes * width,
                           .c_row = width,
                           .c_vector = K::lanes,
                           .adds_up = true},
                          K::lanes, width / K::lanes);
        });
    parallel_for(s.in_c, useful_threads(s.taps() * matrix, threads), [&](Index c) {
      for (Index k = 0; k < s.out_c; ++k) {
        const Index panel = k / winograd::panel, width = winograd::panel_width(s.out, panel);
        const float* const from = u + s.in * panel * winograd::panel + c * width + k % winograd::panel;
        for (Index tap = 0; tap < s.taps(); ++tap) {
          float& gradient = o.d_parameters[0][s.filter(c, k, tap)];
          gradient = (o.accumulate ? gradient : 0.f) + from[tap * matrix];
        }
      }
    });
  }
#endif
};
}   // namespace lrcnn::host
