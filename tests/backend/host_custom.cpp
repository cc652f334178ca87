// A layer of a user's own on the host backend: a vertical blur, each channel times a learned scale.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr double taps[] = {0.25, 0.5, 0.25};
ParameterShapes blur_parameters(const Layer&, const Shape& in) {
  ParameterShapes shapes;
  shapes.add({.name = "scale", .extents = {in.c, 1, 1, 1}, .fill = 1});
  return shapes;
}
/// Calls f(image, channel, output row, input row, column, weight) for the rows of `out`.
template <class F>
void each(const Shape& in, Index images, Range out, F f) {
  for (Index i = 0; i < images; ++i)
    for (Index c = 0; c < in.c; ++c)
      for (Index y = out.begin; y < out.end; ++y)
        for (Index t = 0; t < 3; ++t)
          if (y - 1 + t >= 0 && y - 1 + t < in.h)
            for (Index w = 0; w < in.w; ++w) f(i, c, y, y - 1 + t, w, taps[t]);
}
template <class T>
void blur_forward(const CustomForward<T>& a) {
  for (Index i = 0; i < a.y.n; ++i)
    for (Index c = 0; c < a.y.c; ++c)
      for (Index y = a.y.row0; y < a.y.range().end; ++y)
        for (Index w = 0; w < a.y.w; ++w) a.y(i, c, y, w) = 0;
  each(a.in, a.y.n, a.y.range(), [&](Index i, Index c, Index y, Index row, Index w, double tap) {
    a.y(i, c, y, w) += static_cast<T>(tap) * a.parameters[0][c] * a.x(i, c, row, w);
  });
}
template <class T>
void blur_backward_data(const CustomBackward<T>& a) {
  for (Index i = 0; i < a.dx.n; ++i)
    for (Index c = 0; c < a.dx.c; ++c)
      for (Index y = a.dx.row0; y < a.dx.range().end; ++y)
        for (Index w = 0; w < a.dx.w; ++w) a.dx(i, c, y, w) = 0;
  each(a.in, a.dy.n, a.dy.range(), [&](Index i, Index c, Index y, Index row, Index w, double tap) {
    a.dx(i, c, row, w) += static_cast<T>(tap) * a.parameters[0][c] * a.dy(i, c, y, w);
  });
}
template <class T>
void blur_backward_parameters(const CustomBackward<T>& a) {
  each(a.in, a.dy.n, a.dy.range(), [&](Index i, Index c, Index y, Index row, Index w, double tap) {
    a.d_parameters[0][c] += static_cast<T>(tap) * a.x(i, c, row, w) * a.dy(i, c, y, w);
  });
}
const CustomLayer blur{.rules = {.name = "blur", .rows = RowMap::window, .backward = reads_input, .parameters = blur_parameters},
                       .f32 = {blur_forward<float>, nullptr, nullptr},
                       .f64 = {blur_forward<double>, blur_backward_data<double>, blur_backward_parameters<double>}};
Node blur_node(const Shape& in) {
  Layer layer{.kind = Kind::custom, .custom = &blur};
  layer.window = {.kernel = {3, 1}, .pad = {1, 1, 0, 0}};
  return node_of(layer, in);
}
}   // namespace
TEST_CASE("a custom layer runs whole and in slabs, in any block, with padded channels zeroed for it") {
  for (const Index block : {1, 16}) {
    const Bench<double> b(blur_node({2, 5, 7, 3}), block, block);
    const Map x = random_map(b.node.in, 1), dy = random_map(b.node.out, 2);
    Map y(b.node.out);
    each(b.node.in, 2, {0, 7}, [&](Index i, Index c, Index p, Index row, Index w, double tap) {
      y.at(i, c, p, w) += tap * b.parameters[0][static_cast<std::size_t>(c)] * x.at(i, c, row, w);
    });
    const auto whole = b.forward(x, {0, 7});
    CHECK(whole.difference(y) < 1e-14);
    for (const auto& cuts : cuts_of(7)) {
      std::vector<std::vector<double>> sums;
      std::vector<double> scale(5);
      for (const Range out : cuts) {
        const auto slab = b.forward(x, out);
        CHECK((slab.intact() && same_bits(slab.view(), whole.view(), out)));
        Map dx(b.node.in);
        each(b.node.in, 2, out, [&](Index i, Index c, Index p, Index row, Index w, double tap) {
          dx.at(i, c, row, w) += tap * b.parameters[0][static_cast<std::size_t>(c)] * dy.at(i, c, p, w);
          scale[static_cast<std::size_t>(c)] += tap * x.at(i, c, row, w) * dy.at(i, c, p, w);
        });
        CHECK(b.backward_data(dy, out, b.reads(out), {}, &x).difference(dx) < 1e-14);
        sums = b.backward_parameters(x, dy, out, sums.empty() ? nullptr : &sums);
      }
      CHECK(worst(scale, sums[0]) < 1e-13);
    }
  }
}
TEST_CASE("a custom layer without a function for the element type is refused by name") {
  const Bench<float> b(blur_node({1, 2, 4, 3}));
  const Map dy = random_map(b.node.out, 2);
  CHECK(b.forward(dy, {0, 4}).intact());
  CHECK_THROWS_WITH_AS(b.backward_data(dy, {0, 4}, {0, 4}),
                       "lrcnn: layer 'tested' (blur, kernel 3x1 stride 1x1 pad 1,1,0,0 dilation 1x1) has no function backward_data "
                       "for float; a custom layer offers its arithmetic for each element type that it is run with; give its "
                       "CustomLayer the function in f32 (float), f64 (double) or bf16 (bfloat16), or choose a backend of another type",
                       BackendError);
  CHECK_THROWS_AS(b.backward_parameters(dy, dy, {0, 4}), BackendError);
  const Bench<long double> other(blur_node({1, 2, 4, 3}));
  CHECK_THROWS_AS(other.forward(dy, {0, 4}), BackendError);
}
