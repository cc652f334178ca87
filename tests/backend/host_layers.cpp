// Transposed convolution, padding, layer scale, channel shuffle and adaptive pooling against their formulas, whole and in slabs, and
// against the matrices that they are: all are linear maps.
#include "host_case.hpp"
#include <lrcnn/layer/channels.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/pad.hpp>
#include <lrcnn/layer/pool.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Parameters = std::vector<std::vector<double>>;
/// Calls f(output index of (i, k, p, q), input (c, h, w), factor) for every product that the layer adds up.
template <class F>
void each_product(const Node& n, const Parameters& parameters, F f) {
  const Layer& y = n.layer;
  const Shape &in = n.in, &out = n.out;
  const Window& win = y.window;
  const auto each = [](const Shape& s, auto g) {
    for (Index c = 0; c < s.c; ++c)
      for (Index h = 0; h < s.h; ++h)
        for (Index w = 0; w < s.w; ++w) g(c, h, w);
  };
  const auto mirrored = [](Index at, Index extent) { return at < 0 ? -at : at >= extent ? 2 * (extent - 1) - at : at; };
  if (y.kind == Kind::conv_transpose) {
    const Index c_group = in.c / y.groups, k_group = out.c / y.groups;
    each(in, [&](Index c, Index h, Index w) {
      for (Index k = 0; k < k_group; ++k)
        for (Index r = 0; r < win.kernel.h; ++r)
          for (Index s = 0; s < win.kernel.w; ++s) {
            const Index p = h * win.stride.h - win.pad.top + r * win.dilation.h, q = w * win.stride.w - win.pad.left + s * win.dilation.w;
            if (p < 0 || p >= out.h || q < 0 || q >= out.w) continue;
            const Index element = ((c * k_group + k) * win.kernel.h + r) * win.kernel.w + s;
            f(c / c_group * k_group + k, p, q, c, h, w, parameters[0][static_cast<std::size_t>(element)], element);
          }
    });
  } else if (y.kind == Kind::layer_scale) {
    each(in, [&](Index c, Index h, Index w) { f(c, h, w, c, h, w, parameters[0][static_cast<std::size_t>(c)], c); });
  } else if (y.kind == Kind::channel_shuffle) {
    const Index size = in.c / y.groups;
    each(in, [&](Index c, Index h, Index w) { f(c % size * y.groups + c / size, h, w, c, h, w, 1.0, -1); });
  } else if (y.kind == Kind::pad) {
    each(out, [&](Index c, Index p, Index q) {
      Index h = p - win.pad.top, w = q - win.pad.left;
      if (y.reflect) h = mirrored(h, in.h), w = mirrored(w, in.w);
      if (h >= 0 && h < in.h && w >= 0 && w < in.w) f(c, p, q, c, h, w, 1.0, -1);
    });
  } else {
    each(out, [&](Index c, Index p, Index q) {
      const Index top = p * in.h / out.h, bottom = ((p + 1) * in.h + out.h - 1) / out.h;
      const Index left = q * in.w / out.w, right = ((q + 1) * in.w + out.w - 1) / out.w;
      for (Index h = top; h < bottom; ++h)
        for (Index w = left; w < right; ++w) f(c, p, q, c, h, w, 1.0 / static_cast<double>((bottom - top) * (right - left)), -1);
    });
  }
}
/// Values that every element type holds.
Map short_map(const Shape& s, std::uint64_t seed) {
  Map map = random_map(s, seed);
  for (double& v : map.value) v = std::round(v * 64) / 64;
  return map;
}
template <class T>
void check_layer(const Layer& layer, const Shape& in, Index x_block, Index y_block, int threads = 1) {
  CAPTURE(describe(layer));
  CAPTURE(to_string(in));
  CAPTURE(x_block);
  CAPTURE(y_block);
  constexpr double exact = sizeof(T) == 8 ? 1e-13 : sizeof(T) == 4 ? 2e-5 : 0.05, sums = sizeof(T) == 8 ? 1e-12 : 1e-3;
  Bench<T> b(node_of(layer, in), x_block, y_block);
  b.threads = threads;
  for (auto& p : b.parameters)
    for (double& v : p) v = std::round(v * 64) / 64;
  const Map x = short_map(in, 3), dy = short_map(b.node.out, 4);
  Map y(b.node.out);
  if (layer.bias)
    for (std::size_t e = 0; e < y.value.size(); ++e)
      y.value[e] = b.parameters[1][e / static_cast<std::size_t>(y.shape.h * y.shape.w) % static_cast<std::size_t>(y.shape.c)];
  for (Index i = 0; i < in.n; ++i)
    each_product(b.node, b.parameters,
                 [&](Index k, Index p, Index q, Index c, Index h, Index w, double factor, Index) { y.at(i, k, p, q) += factor * x.at(i, c, h, w); });
  const Slab<T> whole = b.forward(x, b.all_out());
  std::vector<std::vector<master_t<T>>> added;
  for (const auto& p : b.parameters) added.emplace_back(p.size(), master_t<T>(0));
  for (const auto& cuts : cuts_of(b.node.out.h)) {
    auto gradients = added;
    for (const Range out : cuts) {
      const Slab<T> slab = b.forward(x, out);
      CHECK(slab.difference(y) < exact);
      CHECK(same_bits(slab.view(), whole.view(), out));
      Map dx(in);
      std::vector<std::vector<double>> wanted;
      for (const auto& p : b.parameters) wanted.emplace_back(p.size(), 0.0);
      for (Index i = 0; i < in.n; ++i)
        each_product(b.node, b.parameters, [&](Index k, Index p, Index q, Index c, Index h, Index w, double factor, Index element) {
          if (p < out.begin || p >= out.end) return;
          dx.at(i, c, h, w) += factor * dy.at(i, k, p, q);
          if (element >= 0) wanted[0][static_cast<std::size_t>(element)] += x.at(i, c, h, w) * dy.at(i, k, p, q);
        });
      const Range reads = b.reads(out), more{std::max<Index>(0, reads.begin - 1), std::min(in.h, reads.end + 2)};
      CHECK(b.backward_data(dy, out, reads).difference(dx) < exact);
      CHECK(b.backward_data(dy, out, more).difference(dx) < exact);
      if (b.parameters.empty()) continue;
      if (layer.bias)
        for (Index i = 0; i < in.n; ++i)
          for (Index k = 0; k < b.node.out.c; ++k)
            for (Index p = out.begin; p < out.end; ++p)
              for (Index q = 0; q < b.node.out.w; ++q) wanted[1][static_cast<std::size_t>(k)] += dy.at(i, k, p, q);
      const auto written = b.backward_parameters(x, dy, out);
      for (std::size_t p = 0; p < wanted.size(); ++p) CHECK(worst(wanted[p], {written[p].begin(), written[p].end()}) < sums);
      gradients = b.backward_parameters(x, dy, out, &gradients);
    }
    if (b.parameters.empty()) continue;
    const auto all = b.backward_parameters(x, dy, b.all_out());
    for (std::size_t p = 0; p < all.size(); ++p) CHECK(worst({all[p].begin(), all[p].end()}, {gradients[p].begin(), gradients[p].end()}) < sums);
  }
}
template <class T>
void check_blocks(const Layer& layer, const Shape& in) {
  for (const Index block : {1, 3, 8, 16, 20}) check_layer<T>(layer, in, block, block);
  if (layer.kind == Kind::conv_transpose) check_layer<T>(layer, in, 1, 16), check_layer<T>(layer, in, 16, 1);
  check_layer<T>(layer, in, 16, 16, 3);
}
Layer transposed(Index channels, const Window& w, Index groups = 1, bool bias = true) {
  return {.kind = Kind::conv_transpose, .window = w, .channels = channels, .groups = groups, .bias = bias};
}
}   // namespace
TEST_CASE("transposed convolutions follow their formula for every small window") {
  Index cases = 0;
  for (Index k = 1; k <= 4; ++k)
    for (Index s = 1; s <= 3; ++s)
      for (Index d = 1; d <= 2; ++d)
        for (Index pad = 0; pad <= 2; ++pad)
          for (const bool turned : {false, true}) {
            Window w{.kernel = {k, 2}, .stride = {s, 1}, .pad = {pad, pad / 2, 0, 1}, .dilation = {d, 1}};
            if (turned) w = {.kernel = {2, k}, .stride = {1, s}, .pad = {1, 0, pad / 2, pad}, .dilation = {1, d}};
            const Shape in{1, 4, 4, 3};
            const Layer y = transposed(6, w, k % 2 + 1, s != 2);
            if (fault_of(y, in) != Fault::none) continue;
            ++cases;
            check_layer<double>(y, in, cases % 2 ? 1 : 16, cases % 3 ? 16 : 1);
          }
  CHECK(cases > 100);
}
TEST_CASE_TEMPLATE("transposed convolutions in any storage", T, double, float, bfloat16) {
  check_blocks<T>(transposed(20, {.kernel = 2, .stride = 2}), {2, 18, 3, 5});
  check_blocks<T>(transposed(6, {.kernel = 3, .stride = 2, .pad = 1}, 3), {1, 12, 4, 3});
  check_blocks<T>(transposed(17, {.kernel = {1, 4}, .stride = {1, 2}, .pad = {0, 0, 1, 1}}, 1, false), {1, 5, 2, 9});
}
TEST_CASE("transposed convolutions of more channels than are multiplied at once, and of wide maps") {
  check_layer<double>(transposed(35, {.kernel = 2, .stride = 2}), {1, 150, 2, 2}, 16, 16);
  check_layer<double>(transposed(2, {.kernel = 2, .stride = 2}), {1, 3, 2, 400}, 16, 16);
  check_layer<float>(transposed(2, {.kernel = 3, .stride = {1, 3}}), {1, 3, 3, 300}, 1, 1);
}
TEST_CASE("a transposed filter's gradient over a million pixels is as exact as one over few") {
  // One accumulator of floats is a per cent off there.
  const Index rows = 500, columns = 2500;
  for (const Index block : {1, 8}) {
    const Node node = node_of({.kind = Kind::conv_transpose, .window = {.kernel = 1}, .channels = block}, {1, block, rows, columns});
    const std::vector<float> x(static_cast<std::size_t>(rows * columns * block), 0.1f), dy(x.size(), 1.f);
    std::vector<float> dw(static_cast<std::size_t>(block * block)), db(static_cast<std::size_t>(block));
    Operands<float> o;
    o.node = &node, o.op = Op::backward_parameters;
    o.x = dense_view(x.data(), 1, block, Range{0, rows}, columns, block), o.dy = dense_view(dy.data(), 1, block, Range{0, rows}, columns, block);
    o.d_parameters[0] = dw.data(), o.d_parameters[1] = db.data();
    host::run(o, 2);
    for (const float gradient : dw) CHECK(gradient == doctest::Approx(static_cast<double>(0.1f) * static_cast<double>(rows * columns)).epsilon(1e-5));
  }
}
TEST_CASE_TEMPLATE("padding and cropping", T, double, float, bfloat16) {
  for (const Layer& y : {ZeroPad<1>::layer(), ZeroPad<Pad{0, 3, 2, 0}>::layer(), ZeroPad<Pad{-1, 2, 1, -2}>::layer(), Crop<1>::layer(),
                         Crop<Pad{3, 0, 0, 2}>::layer(), ZeroPad<Pad{7, 0, 9, 0}>::layer(), ZeroPad<Pad{9, -5, -4, 7}>::layer()})
    check_blocks<T>(y, {2, 5, 5, 4});
}
TEST_CASE_TEMPLATE("reflected padding", T, double, float, bfloat16) {
  for (const Layer& y : {ReflectPad<1>::layer(), ReflectPad<3>::layer(), ReflectPad<Pad{0, 2, 3, 1}>::layer(), ReflectPad<Pad{3, 1, 0, 0}>::layer()})
    check_blocks<T>(y, {2, 5, 4, 4});
  check_blocks<T>(ReflectPad<Pad{0, 0, 2, 2}>::layer(), {1, 3, 1, 3});
}
TEST_CASE_TEMPLATE("a factor for each channel, and channels in another order", T, double, float, bfloat16) {
  check_blocks<T>(LayerScale<>::layer(), {2, 18, 3, 5});
  check_blocks<T>(LayerScale<>::layer(), {1, 3, 4, 1});
  check_blocks<T>(ChannelShuffle<3>::layer(), {2, 18, 3, 5});
  check_blocks<T>(ChannelShuffle<1>::layer(), {1, 5, 2, 2});
  check_blocks<T>(ChannelShuffle<5>::layer(), {1, 5, 2, 2});
}
TEST_CASE_TEMPLATE("adaptive pooling", T, double, float, bfloat16) {
  for (const Shape in : {Shape{1, 5, 9, 7}, Shape{2, 18, 3, 4}, Shape{1, 2, 1, 1}})
    for (const Layer& y : {AdaptiveAvgPool<1>::layer(), AdaptiveAvgPool<4, 3>::layer(), AdaptiveAvgPool<7>::layer(), AdaptiveAvgPool<2, 9>::layer()})
      check_blocks<T>(y, in);
}
TEST_CASE("rows that dy does not have send nothing back") {
  for (const Layer& y : {transposed(3, {.kernel = 2, .stride = 2}), ZeroPad<1>::layer(), ReflectPad<1>::layer(), LayerScale<>::layer(),
                         ChannelShuffle<1>::layer(), AdaptiveAvgPool<3>::layer()}) {
    CAPTURE(describe(y));
    const Bench<double> b(node_of(y, {1, 3, 6, 2}), 8, 8);
    CHECK(b.backward_data(random_map(b.node.out, 1), {0, 1}, {4, 6}).difference(Map(b.node.in)) == 0);
  }
}
