// Joins and upsampling: the host's bits, from slabs that hide rows and hold more than is wanted, with every number of channels.
#include "loops_case.hpp"
#include <lrcnn/backend/cudnn/loops/launch_recorder.hpp>
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
std::vector<Held> cuts(Index h) { return {{{0, h}, {0, h}}, {{1, h}, {0, h}}, {{h / 2, h / 2 + 1}, {h / 2, h}}, {{0, 1}, {0, 1}}, {{2, 2}, {0, h}}}; }
/// Runs a step by the host's loops and by the device's. `written` picks what it writes.
template <class T>
void on_both(const Node& node, Operands<T> o, const Slab<T>& wanted, const Slab<T>& got, View<T> Operands<T>::*written) {
  o.node = &node;
  o.*written = wanted.view();
  host::run(o);
  o.*written = got.view();
  REQUIRE(loops::covers(o));
  loops::run(on_host, o);
}
using Rule = Upsampling::Rule;
Node upsampling(Rule rule, Pair factor, const Shape& in) {
  Layer layer{.kind = Kind::upsample};
  layer.upsampling = {rule, factor};
  return {.layer = layer, .in = in, .out = {in.n, in.c, in.h * factor.h, in.w * factor.w}};
}
}   // namespace
TEST_CASE_TEMPLATE("a sum adds, and sends its gradient to both", T, double, float, bfloat16, float16) {
  for (const Index c : {1, 3, 8, 21})
    for (const Index w : {1, 5, 16})
      for (const Index hidden : {0, 1})
        for (const Held& cut : cuts(4)) {
          const Node node = join(Kind::sum, {2, c, 4, w}, c);
          const Slab<T> x(random_map(node.in, 3), cut.in, c, hidden), other(random_map(node.in, 4), cut.in, c, hidden);
          const Slab<T> want(node.out, cut.out, c), got(node.out, cut.out, c);
          Operands<T> o;
          o.op = Op::forward;
          o.x = x.view(), o.other = other.view();
          on_both(node, o, want, got, &Operands<T>::y);
          CHECK(same(want, got));
          const Slab<T> dy(random_map(node.out, 5), cut.out, c, hidden), down(node.in, {0, 4}, c), dx(node.in, {0, 4}, c, 1);
          o = {};
          o.op = Op::backward_data;
          o.dy = dy.view();
          on_both(node, o, down, dx, &Operands<T>::dx);
          CHECK(same(down, dx));
          if (cut.in != cut.out) continue;
          const Slab<T> both(random_map(node.in, 3), cut.in, c, hidden);
          o = {};
          o.op = Op::forward;
          o.node = &node;
          o.x = both.view(), o.other = other.view(), o.y = both.view();
          loops::run(on_host, o);
          CHECK(same_bits(both.view(), want.view(), cut.out));
        }
}
TEST_CASE_TEMPLATE("a sum with an activation gives the host's bits and saved state, or saved state alone", T, double, float) {
  for (const Function function : {Function::relu, Function::leaky_relu})
    for (const Index w : {1, 5, 16})
      for (const Index c : {3, 8, 5}) {
        Layer after;
        after.activation = {function, 0.125};
        const Node node = join(Kind::sum, {2, c, 3, w}, c);
        const LoopBench<T> activation(Node{.layer = after, .in = node.in, .out = node.in});
        const Slab<T> x(random_map(node.in, 3), {0, 3}, c), other(random_map(node.in, 4), {0, 3}, c), want(node.out, {1, 3}, c),
            got(node.out, {1, 3}, c);
        auto wanted = activation.host.saved_memory({1, 3}), memory = wanted, alone = wanted;
        Operands<T> o;
        o.op = Op::forward;
        o.node = &node, o.activation = &activation.node();
        o.x = x.view(), o.other = other.view();
        o.y = want.view(), o.saved = activation.host.saved(wanted, {1, 3});
        host::run(o);
        o.y = got.view(), o.saved = activation.host.saved(memory, {1, 3});
        loops::run(on_host, o);
        CHECK(same(want, got));
        CHECK(memory == wanted);
        o.y = {}, o.saved = activation.host.saved(alone, {1, 3});
        loops::run(on_host, o);
        CHECK(alone == wanted);
      }
}
TEST_CASE("the gradient of a sum that lies where its input's is wanted starts no loop") {
  const Node node = join(Kind::sum, {2, 8, 3, 5}, 8);
  std::vector<loops::RecordedLoop> list;
  Operands<float> o;
  o.op = Op::backward_data;
  o.node = &node;
  for (const Index at : {4096, 65536}) {
    o.dy = dense_view(reinterpret_cast<const float*>(Index{4096}), 2, 8, {0, 3}, 5, 8),
    o.dx = dense_view(reinterpret_cast<float*>(at), 2, 8, {0, 3}, 5, 8);
    loops::sum_backward(loops::LaunchRecorder{&list}, o);
  }
  CHECK(list.size() == 1);
}
TEST_CASE_TEMPLATE("a concatenation copies channels, and gives each input its own back", T, double, float, bfloat16, float16) {
  for (const Index c : {1, 3, 8, 16})
    for (const Index d : {1, 4, 7, 8})
      for (const Index hidden : {0, 1})
        for (const Held& cut : cuts(4)) {
          const Node node = join(Kind::concat, {2, c, 4, 5}, d);
          const Slab<T> x(random_map(node.in, 3), cut.in, c, hidden), other(random_map(node.in2, 4), cut.in, d, hidden);
          const Slab<T> want(node.out, cut.out, c + d, hidden), got(node.out, cut.out, c + d, hidden);
          Operands<T> o;
          o.op = Op::forward;
          o.x = x.view(), o.other = other.view();
          on_both(node, o, want, got, &Operands<T>::y);
          CHECK(same(want, got));
          const Slab<T> dy(random_map(node.out, 5), cut.out, c + d, hidden);
          for (const Index operand : {0, 1}) {
            const Shape& in = operand == 0 ? node.in : node.in2;
            const Slab<T> down(in, {0, 4}, in.c, hidden), dx(in, {0, 4}, in.c, hidden);
            o = {};
            o.op = Op::backward_data;
            o.operand = operand;
            o.dy = dy.view();
            on_both(node, o, down, dx, &Operands<T>::dx);
            CHECK(same(down, dx));
          }
        }
}
TEST_CASE_TEMPLATE("upsampling gives the host's values, whole and in slabs", T, double, float, bfloat16, float16) {
  for (const Rule rule : {Rule::nearest, Rule::bilinear, Rule::bilinear_corners})
    for (const Pair factor : {Pair{2, 2}, Pair{1, 3}, Pair{4, 1}, Pair{3, 5}})
      for (const Index c : {1, 3, 8, 12})
        for (const Index h : {1, 2, 5})
          for (const Index hidden : {0, 1}) {
            const Node node = upsampling(rule, factor, {2, c, h, 4});
            const Slab<T> x(as<T>(random_map(node.in, 3)), {0, h}, c, hidden);
            for (const auto& cut : cuts_of(node.out.h))
              for (const Range r : cut) {
                const Slab<T> want(node.out, r, c), got(node.out, r, c), dy(as<T>(random_map(node.out, 4)), r, c, hidden);
                const Slab<T> down(node.in, {0, h}, c), dx(node.in, {0, h}, c);
                Operands<T> o;
                o.op = Op::forward;
                o.x = x.view();
                on_both(node, o, want, got, &Operands<T>::y);
                o = {};
                o.op = Op::backward_data;
                o.dy = dy.view();
                on_both(node, o, down, dx, &Operands<T>::dx);
                CHECK((same(want, got) && same(down, dx)));
              }
          }
}
