// Activations and biases: the host's bits, from every source that a plan may choose, and fused.
#include "loops_case.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Layer activation(Function function, double slope = 0) {
  Layer layer;
  layer.activation = {function, slope};
  return layer;
}
const std::vector<Layer> all{activation(Function::relu),
                             activation(Function::leaky_relu, 0.125),
                             activation(Function::leaky_relu, -0.25),
                             activation(Function::silu),
                             activation(Function::relu6),
                             activation(Function::gelu),
                             activation(Function::hardswish),
                             activation(Function::sigmoid),
                             activation(Function::hardsigmoid)};
bool from_sign(const Layer& layer) { return layer.activation.function == Function::relu || layer.activation.function == Function::leaky_relu; }
/// Zeros of both signs among the values.
Map odd_values(Shape shape, std::uint64_t seed) {
  Map x = random_map(shape, seed);
  for (std::size_t i = 0; i < x.value.size(); i += 7) x.value[i] = i % 2 ? 0.0 : -0.0;
  return x;
}
/// Calls f(layer, input shape, rows).
template <class F>
void each_case(F f) {
  for (const Layer& layer : all)
    for (const Index c : {1, 3, 5, 8, 16})
      for (const Index w : {1, 2, 3, 8, 9})
        for (const Index n : {1, 2})
          for (const Range rows : {Range{0, 4}, Range{1, 3}, Range{2, 2}}) {
            CAPTURE(describe(layer));
            CAPTURE(c);
            CAPTURE(w);
            CAPTURE(rows.begin);
            f(layer, Shape{n, c, 4, w}, rows);
          }
}
/// Equal to the bit where the function is exact. For SiLU of float the host has an exponential of its own, right within
/// 2e-7; compilers may also fuse its multiplications and additions here and not there.
template <class T>
bool close(const Slab<T>& a, const Slab<T>& b, const Layer& layer) {
  if (from_sign(layer)) return same(a, b);
  bool good = a.intact() && b.intact();
  const View<T> u = a.view(), v = b.view();
  for (Index i = 0; i < u.n; ++i)
    for (Index y = u.row0; y < u.row0 + u.rows; ++y)
      for (Index e = 0; e < u.stride_row(); ++e) good = good && std::abs(u.row(i, 0, y)[e] - v.row(i, 0, y)[e]) <= T(sizeof(T) == 8 ? 1e-15 : 1e-6);
  return good;
}
}   // namespace
TEST_CASE("the rows of y are made, or those of the saved state, from an input that holds more") {
  for (const Layer& layer : all) {
    const Shape in{2, 3, 9, 5};
    const LoopBench<float> b(node_of(layer, in));
    const Map x = odd_values(in, 8);
    const Range rows{2, 6};
    const Slab<float> more(x, {1, 9}, in.c);
    Slab<float> y(in, rows, in.c), want(in, rows, in.c);
    auto memory = b.host.saved_memory(rows), wanted = memory, alone = memory;
    Operands<float> o;
    o.op = Op::forward;
    o.node = &b.node();
    o.x = more.view();
    o.y = want.view();
    o.saved = b.host.saved(wanted, rows);
    host::run(o);
    o.y = y.view();
    o.saved = b.host.saved(memory, rows);
    b.run(o);
    CHECK(close(y, want, layer));
    CHECK(memory == wanted);
    o.y = {};
    o.saved = b.host.saved(alone, rows);
    b.run(o);
    CHECK(alone == wanted);
  }
}
TEST_CASE_TEMPLATE("activations and their mask bits are the host's, in slabs with hidden rows and without", T, float, double) {
  each_case([](const Layer& layer, const Shape& in, Range rows) {
    const LoopBench<T> b(node_of(layer, in));
    const Map x = odd_values(in, 3), dy = random_map(in, 4);
    auto memory = b.host.saved_memory(rows), ours = memory, alone = memory;
    const auto saved = b.host.saved(memory, rows), our_saved = b.host.saved(ours, rows);
    const Slab<T> y = b.host.forward(x, rows, saved);
    for (const Index hidden : {0, 1}) CHECK(close(b.forward(x, rows, our_saved, hidden), y, layer));
    CHECK(memory == ours);
    CHECK(close(b.forward(x, rows), y, layer));
    b.forward_saved(x, rows, b.host.saved(alone, rows));
    CHECK(memory == alone);
    const Map result = x;   // as good as y: its signs are those of x
    for (const Index hidden : {0, 1})
      for (const Range in_rows : {rows, Range{0, 4}}) {
        CHECK(close(b.backward_data(dy, rows, in_rows, {}, &x, nullptr, hidden), b.host.backward_data(dy, rows, in_rows, {}, &x), layer));
        if (!from_sign(layer)) continue;
        CHECK(close(b.backward_data(dy, rows, in_rows, saved, nullptr, nullptr, hidden), b.host.backward_data(dy, rows, in_rows, saved), layer));
        CHECK(close(b.backward_data(dy, rows, in_rows, {}, nullptr, &result, hidden), b.host.backward_data(dy, rows, in_rows, {}, nullptr, &result),
                    layer));
      }
  });
}
TEST_CASE("every operand may hide rows of its own, and saved state too") {
  for (const Index c : {3, 8})
    for (int hides = 0; hides < 16; ++hides) {
      CAPTURE(hides);
      const LoopBench<float> b(node_of(all[1], {2, c, 4, 3}));
      const Map x = odd_values(b.node().in, 3), dy = random_map(b.node().in, 4);
      const Range rows{1, 3};
      const auto hidden = [&](int operand) { return Index{hides >> operand & 1}; };
      auto memory = b.host.saved_memory({0, 4}), host_memory = memory;
      const auto saved = b.host.saved(memory, {0, 4}), host_saved = b.host.saved(host_memory, {0, 4}).slice(rows);
      const Slab<float> from(x, rows, c, hidden(0)), y(x.shape, rows, c, hidden(1));
      const Slab<float> down(dy, rows, c, hidden(2)), dx(x.shape, rows, c, hidden(3));
      Operands<float> o;
      o.op = Op::forward;
      o.x = from.view(), o.y = y.view(), o.saved = saved.slice(rows);
      b.run(o);
      CHECK(same(y, b.host.forward(x, rows, host_saved)));
      CHECK(memory == host_memory);
      o.op = Op::backward_data;
      o.x = {}, o.y = {}, o.dy = down.view(), o.dx = dx.view();
      b.run(o);
      const Slab<float> wanted = b.host.backward_data(dy, rows, rows, host_saved);
      CHECK(same(dx, wanted));
      o.saved = {}, o.x = from.view();
      b.run(o);
      CHECK(same(dx, wanted));
      auto dense = b.host.saved_memory(rows), host_dense = dense;
      o = {};
      o.op = Op::forward;
      o.x = from.view(), o.saved = b.host.saved(dense, rows);
      b.run(o);
      b.host.forward(x, rows, b.host.saved(host_dense, rows));
      CHECK(dense == host_dense);
    }
}
TEST_CASE_TEMPLATE("activations of two-byte elements are those of float, rounded once", T, float16, bfloat16) {
  each_case([](const Layer& layer, const Shape& in, Range rows) {
    const LoopBench<T> b(node_of(layer, in));
    const LoopBench<float> f(b.node());
    const Map x = as<T>(odd_values(in, 3)), dy = as<T>(random_map(in, 4));
    auto memory = b.host.saved_memory(rows), ours = memory;
    const auto saved = b.host.saved(memory, rows), our_saved = b.host.saved(ours, rows);
    const Slab<float> y = f.forward(x, rows, saved);
    CHECK(rounded(b.forward(x, rows, our_saved), y));
    CHECK(memory == ours);
    CHECK(rounded(b.backward_data(dy, rows, rows, {}, &x), f.backward_data(dy, rows, rows, {}, &x)));
    if (!from_sign(layer)) return;
    CHECK(rounded(b.backward_data(dy, rows, rows, saved), f.backward_data(dy, rows, rows, saved)));
  });
}
TEST_CASE_TEMPLATE("in place, forward and backward give the same", T, float, double, float16, bfloat16) {
  for (const Layer& layer : all)
    for (const Index c : {1, 3, 16}) {
      const LoopBench<T> b(node_of(layer, {2, c, 4, 7}));
      const Map x = odd_values(b.node().in, 3), dy = random_map(b.node().out, 4);
      const Range rows{1, 4};
      auto memory = b.host.saved_memory(rows), other = memory;
      const Slab<T> apart = b.forward(x, rows, b.host.saved(memory, rows)), both(x, rows, c);
      Operands<T> o;
      o.op = Op::forward;
      o.x = both.view();
      o.y = both.view();
      o.saved = b.host.saved(other, rows);
      b.run(o);
      CHECK(same(both, apart));
      CHECK(memory == other);
      const Slab<T> down(dy, rows, c), values(x, rows, c);
      o = {};
      o.op = Op::backward_data;
      o.dy = down.view();
      o.dx = down.view();
      if (from_sign(layer)) o.saved = b.host.saved(memory, rows);
      else o.x = values.view();
      b.run(o);
      CHECK(same(down, b.backward_data(dy, rows, rows, o.saved, from_sign(layer) ? nullptr : &x)));
    }
}
TEST_CASE_TEMPLATE("what is not a number, and infinity, pass through", T, float, double, float16, bfloat16) {
  for (const Layer& layer : all) {
    const LoopBench<T> b(node_of(layer, {1, 8, 1, 2}));
    Map x = random_map(b.node().in, 3);
    x.at(0, 2, 0, 1) = std::nan("");
    x.at(0, 3, 0, 1) = std::numeric_limits<double>::infinity();
    const Slab<T> y = b.forward(x, {0, 1});
    CHECK(std::isnan(static_cast<double>(y.view()(0, 2, 0, 1))));
    const Function function = layer.activation.function;
    const bool gate = function == Function::sigmoid || function == Function::hardsigmoid;
    const double top = function == Function::relu6 ? 6 : gate ? 1 : std::numeric_limits<double>::infinity();
    CHECK(static_cast<double>(y.view()(0, 3, 0, 1)) == top);
  }
}
TEST_CASE_TEMPLATE("a bias goes to every channel; fused with an activation it gives the bits of one after the other", T, float, double, float16,
                   bfloat16) {
  each_case([](const Layer& layer, const Shape& in, Range rows) {
    using A = master_t<T>;
    const LoopBench<T> b(node_of(layer, in));
    const Map x = as<T>(random_map(in, 5));
    std::vector<double> numbers = random_vector(in.c, 6);
    numbers[0] = 0.75;   // bits beyond a row's end stay 0 all the same
    std::vector<T> bias;
    for (const double number : numbers) bias.push_back(static_cast<T>(static_cast<A>(number)));
    Map sum = x;
    for (Index i = 0; i < in.n; ++i)
      for (Index c = 0; c < in.c; ++c)
        for (Index y = 0; y < in.h; ++y)
          for (Index q = 0; q < in.w; ++q)
            sum.at(i, c, y, q) =
                static_cast<double>(static_cast<T>(static_cast<A>(x.at(i, c, y, q)) + static_cast<A>(bias[static_cast<std::size_t>(c)])));
    for (const Index hidden : {0, 2}) {
      const Slab<T> from(x, rows, in.c, hidden), to(in, rows, in.c, hidden), both(x, rows, in.c, hidden);
      loops::bias_add(on_host, from.view(), bias.data(), to.view());
      CHECK(to.difference(sum) == 0);
      loops::bias_add(on_host, both.view(), bias.data(), both.view());
      CHECK(both.difference(sum) == 0);
      auto memory = b.host.saved_memory(rows), fused = memory;
      const Slab<T> after = b.forward(sum, rows, b.host.saved(memory, rows));
      const Slab<T> y(in, rows, in.c, hidden), in_place(x, rows, in.c, hidden);
      loops::bias_activation(on_host, layer.activation, from.view(), bias.data(), y.view(), b.host.saved(fused, rows));
      CHECK(same(y, after));
      CHECK(memory == fused);
      loops::bias_activation(on_host, layer.activation, in_place.view(), bias.data(), in_place.view(), {});
      CHECK(same(in_place, after));
    }
  });
}
