// Sums and concatenations: every block beside every other, slabs that hold more rows than are wanted, activations in the same step.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Node join(Kind kind, const Shape& in, Index others) {
  Shape in2 = in, out = in;
  in2.c = others;
  if (kind == Kind::concat) out.c += others;
  return {.layer = {.kind = kind}, .other = 1, .in = in, .in2 = in2, .out = out};
}
/// Rows of y and rows that its inputs hold.
struct Held {
  Range out, in;
};
std::vector<Held> cuts(Index h) { return {{{0, h}, {0, h}}, {{1, h}, {0, h}}, {{h / 2, h / 2 + 1}, {h / 2, h}}, {{0, 1}, {0, 1}}}; }
}   // namespace
TEST_CASE_TEMPLATE("a sum adds, and sends its gradient to both", T, double, float, bfloat16) {
  for (const Index channels : {1, 3, 16, 21})
    for (const Index w : {1, 5, 16, 33})
      for (const Index block : {1, 8, 16, 3})
        for (const int threads : {1, 2})
          for (const Held& cut : cuts(4)) {
            const Node node = join(Kind::sum, {2, channels, 4, w}, channels);
            Bench<T> b(node, block, block);
            b.threads = threads;
            const Map x = random_map(node.in, 3), other = random_map(node.in, 4);
            Map y(node.out), dx(node.in);
            for (std::size_t e = 0; e < y.value.size(); ++e) {
              using A = master_t<T>;
              y.value[e] = static_cast<double>(T(static_cast<A>(T(x.value[e])) + static_cast<A>(T(other.value[e]))));
            }
            const Slab<T> first(x, cut.in, block), second(other, cut.in, block), to(node.out, cut.out, block);
            Operands<T> o;
            o.op = Op::forward;
            o.x = first.view(), o.other = second.view(), o.y = to.view();
            b.run(o);
            CHECK(to.difference(y) == 0);
            if (cut.out == cut.in) {
              const Slab<T> both(x, cut.in, block);
              o.x = both.view(), o.y = both.view();
              b.run(o);
              CHECK(both.difference(y) == 0);
            }
            const Map dy = random_map(node.out, 5);
            for (Index i = 0; i < 2; ++i)
              for (Index c = 0; c < channels; ++c)
                for (Index row = cut.out.begin; row < cut.out.end; ++row)
                  for (Index q = 0; q < w; ++q) dx.at(i, c, row, q) = static_cast<double>(T(dy.at(i, c, row, q)));
            CHECK(b.backward_data(dy, cut.out, {0, 4}).difference(dx) == 0);
          }
}
TEST_CASE_TEMPLATE("a sum with an activation gives the bits of one behind it", T, double, float, bfloat16) {
  for (const Function function : {Function::relu, Function::leaky_relu, Function::gelu, Function::sigmoid})
    for (const Index w : {1, 5, 16, 33})
      for (const Index block : {1, 8, 16, 3}) {
        Layer after;
        after.activation = {function, 0.125};
        const Node node = join(Kind::sum, {2, 5, 3, w}, 5);
        const Bench<T> b(node, block, block), activation({.layer = after, .in = node.in, .out = node.in}, block, block);
        const Map x = random_map(node.in, 3), other = random_map(node.in, 4);
        const Slab<T> first(x, {0, 3}, block), second(other, {0, 3}, block), apart(node.out, {1, 3}, block), to(node.out, {1, 3}, block);
        auto wanted = activation.saved_memory({1, 3}), memory = wanted, alone = wanted;
        Operands<T> o;
        o.op = Op::forward;
        o.x = first.view(), o.other = second.view(), o.y = apart.view();
        b.run(o);
        Operands<T> f;
        f.op = Op::forward;
        f.x = apart.view(), f.y = apart.view(), f.saved = activation.saved(wanted, {1, 3});
        activation.run(f);
        o.activation = &activation.node;
        o.y = to.view(), o.saved = activation.saved(memory, {1, 3});
        b.run(o);
        CHECK((to.intact() && same_bits(to.view(), apart.view(), {1, 3})));
        CHECK(memory == wanted);
        o.y = {}, o.saved = activation.saved(alone, {1, 3});
        b.run(o);
        CHECK(alone == wanted);
      }
}
TEST_CASE_TEMPLATE("concatenation puts channels behind each other, in any blocks, and takes gradients apart", T, double, bfloat16) {
  for (const auto& [channels, others] : std::vector<std::array<Index, 2>>{{1, 3}, {16, 16}, {3, 16}, {16, 3}, {20, 5}, {8, 24}, {32, 17}})
    for (const Index block : {1, 8, 16, 3})
      for (const Index x_block : {Index{1}, block})
        for (const Index other_block : {Index{1}, block})
          for (const Held& cut : cuts(4)) {
            CAPTURE(channels);
            CAPTURE(others);
            CAPTURE(block);
            const Node node = join(Kind::concat, {2, channels, 4, 5}, others);
            Bench<T> b(node);
            b.threads = 2;
            const Map x = random_map(node.in, 3), other = random_map(node.in2, 4), dy = random_map(node.out, 5);
            Map y(node.out), dx(node.in), d_other(node.in2);
            for (Index i = 0; i < 2; ++i)
              for (Index c = 0; c < node.out.c; ++c)
                for (Index row = 0; row < 4; ++row)
                  for (Index q = 0; q < 5; ++q) {
                    const bool first = c < channels, there = cut.out.contains({row, row + 1});
                    y.at(i, c, row, q) = static_cast<double>(T(first ? x.at(i, c, row, q) : other.at(i, c - channels, row, q)));
                    Map& to = first ? dx : d_other;
                    to.at(i, first ? c : c - channels, row, q) = there ? static_cast<double>(T(dy.at(i, c, row, q))) : 0;
                  }
            const Slab<T> first(x, cut.in, x_block), second(other, cut.in, other_block), to(node.out, cut.out, block);
            Operands<T> o;
            o.op = Op::forward;
            o.x = first.view(), o.other = second.view(), o.y = to.view();
            b.run(o);
            CHECK(to.difference(y) == 0);
            const Slab<T> down(dy, cut.out, block), to_x(node.in, {0, 4}, x_block), to_other(node.in2, {0, 4}, other_block);
            o = {};
            o.op = Op::backward_data;
            o.dy = down.view(), o.dx = to_x.view();
            b.run(o);
            CHECK(to_x.difference(dx) == 0);
            o.operand = 1, o.dx = to_other.view();
            b.run(o);
            CHECK(to_other.difference(d_other) == 0);
          }
}
