// Padding, cropping, adaptive pooling, factors of channels, their order, and dropout: the host's bits, from slabs that hide rows and write
// more than is wanted, with every number of channels.
#include "loops_case.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class T>
constexpr double near = sizeof(T) == 8   ? 1e-14
                        : sizeof(T) == 4 ? 1e-6
                                         : 0.01;
/// The host's forward and backward beside ours. `x`: the gradient of the input wants it.
template <class T>
void on_both(const Layer& layer, const Shape& in) {
  const LoopBench<T> b(node_of(layer, in));
  CAPTURE(describe(layer));
  CAPTURE(to_string(in));
  const Map x = as<T>(random_map(in, 3)), dy = as<T>(random_map(b.node().out, 4));
  for (const auto& cut : cuts_of(b.node().out.h))
    for (const Range out : cut)
      for (const Index hidden : {0, 1}) {
        CHECK(same(b.forward(x, out, {}, hidden), b.host.forward(x, out)));
        for (const Range rows : {b.host.reads(out), Range{0, in.h}})
          CHECK(same(b.backward_data(dy, out, rows, {}, nullptr, nullptr, hidden), b.host.backward_data(dy, out, rows)));
      }
}
template <class T>
double apart(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0;
  for (std::size_t e = 0; e < a.size(); ++e) {
    const double d = std::abs(static_cast<double>(a[e]) - static_cast<double>(b[e]));
    most = std::isfinite(d) ? std::max(most, d) : 1e300;
  }
  return most;
}
const std::vector<Index> channel_counts{1, 3, 8, 12, 20};
}   // namespace
TEST_CASE_TEMPLATE("padding and cropping give the host's bits", T, double, float, bfloat16, float16) {
  for (const Index c : channel_counts)
    for (const Pad& pad : {Pad(1, 1, 1, 1), Pad(0, 2, 3, 0), Pad(-1, 2, 0, -2), Pad(-2, -1, -1, -1), Pad(0, 0, 0, 0)})
      for (const bool reflect : {false, true}) {
        Layer layer{.kind = Kind::pad, .window = {.kernel = 1, .pad = pad}, .reflect = reflect};
        if (fault_of(layer, {2, c, 5, 4}) == Fault::none) on_both<T>(layer, {2, c, 5, 4});
      }
}
TEST_CASE_TEMPLATE("adaptive pooling gives the host's bits", T, double, float) {
  for (const Index c : channel_counts)
    for (const Pair& to : {Pair{1, 1}, Pair{3, 2}, Pair{5, 7}, Pair{9, 4}, Pair{7, 7}})
      for (const Index h : {1, 5, 7}) on_both<T>({.kind = Kind::adaptive_avg_pool, .pooled = to}, {2, c, h, 6});
  on_both<T>({.kind = Kind::adaptive_avg_pool, .pooled = {2, 1}}, {1, 3, 9, 600});   // windows that are summed up in pieces
}
TEST_CASE_TEMPLATE("likewise of two bytes, where they are those of float, rounded once", T, float16, bfloat16) {
  for (const Pair& to : {Pair{3, 2}, Pair{9, 4}}) {
    const Node node = node_of({.kind = Kind::adaptive_avg_pool, .pooled = to}, {2, 9, 7, 6});
    const LoopBench<T> b(node);
    const LoopBench<float> f(node);
    const Map x = as<T>(random_map(node.in, 3)), dy = as<T>(random_map(node.out, 4));
    CHECK(rounded(b.forward(x, {1, to.h}), f.forward(x, {1, to.h})));
    CHECK(rounded(b.backward_data(dy, {1, to.h}, {0, 7}), f.backward_data(dy, {1, to.h}, {0, 7})));
  }
}
TEST_CASE_TEMPLATE("channels in another order are the host's", T, double, float, bfloat16, float16) {
  for (const Index groups : {1, 2, 3, 6})
    for (const Index each : {1, 2, 5, 8}) on_both<T>({.kind = Kind::channel_shuffle, .groups = groups}, {2, groups * each, 4, 3});
}
TEST_CASE_TEMPLATE("factors of channels, learnt, give the host's bits, and their gradients what its sums give", T, double, float, bfloat16, float16) {
  for (const Index c : channel_counts)
    for (const Shape& in : {Shape{2, c, 4, 5}, Shape{1, c, 9, 70}}) {
      const Layer layer{.kind = Kind::layer_scale, .scale = 0.5};
      on_both<T>(layer, in);
      const LoopBench<T> b(node_of(layer, in));
      const Map x = as<T>(random_map(in, 3)), dy = as<T>(random_map(in, 4));
      auto ours = b.backward_parameters(x, dy, {0, 2}), theirs = b.host.backward_parameters(x, dy, {0, 2});
      CHECK(apart(ours[0], theirs[0]) <= near<master_t<T>> * 100);
      ours = b.backward_parameters(x, dy, {2, in.h}, &ours), theirs = b.host.backward_parameters(x, dy, {2, in.h}, &theirs);
      CHECK(apart(ours[0], theirs[0]) <= near<master_t<T>> * 100);
      CHECK(b.backward_parameters(x, dy, {0, in.h})[0] == b.backward_parameters(x, dy, {0, in.h})[0]);
      CHECK(b.backward_parameters(x, dy, {1, 1})[0] == std::vector<master_t<T>>(static_cast<std::size_t>(c), 0));
    }
}
TEST_CASE_TEMPLATE("a map times a vector gives the host's bits, and the vector's gradient what its sums give", T, double, float, bfloat16, float16) {
  for (const Index c : channel_counts)
    for (const Index w : {1, 5, 60}) {
      const Shape in{3, c, 5, w}, vector{3, c, 1, 1};
      const Node node{.layer = {.kind = Kind::scale}, .other = 1, .in = in, .in2 = vector, .out = in};
      const LoopBench<T> b(node);
      const Map x = as<T>(random_map(in, 3)), s = as<T>(random_map(vector, 4)), dy = as<T>(random_map(in, 5));
      const Slab<T> map(x, {0, 5}, c), factors(s, {0, 1}, c, 0);
      for (const auto& cut : cuts_of(5)) {
        std::vector<double> kept(static_cast<std::size_t>(3 * c), std::nan("")), kept_wanted = kept;
        for (const Range rows : cut) {
          const Slab<T> to(in, rows, c), wanted(in, rows, c), down(dy, rows, c), dx(in, {0, 5}, c), dx_wanted(in, {0, 5}, c);
          const Slab<T> sums(vector, {0, 1}, c, 0), sums_wanted(vector, {0, 1}, c, 0);
          Operands<T> o;
          o.op = Op::forward;
          o.x = map.view(), o.other = factors.view(), o.y = wanted.view();
          b.host.run(o);
          o.y = to.view();
          b.run(o);
          CHECK(same(to, wanted));
          o = {};
          o.op = Op::backward_data;
          o.dy = down.view(), o.other = factors.view(), o.dx = dx_wanted.view();
          b.host.run(o);
          o.dx = dx.view();
          b.run(o);
          CHECK(same(dx, dx_wanted));
          o.operand = 1, o.other = {}, o.x = map.view(), o.dx = sums_wanted.view();
          b.host.run(o);
          o.dx = sums.view();
          b.run(o);
          for (Index i = 0; i < 3; ++i)
            for (Index k = 0; k < c; ++k)
              CHECK(std::abs(static_cast<double>(sums.view()(i, k, 0, 0)) - static_cast<double>(sums_wanted.view()(i, k, 0, 0))) <= near<T> * 30);
          o.accumulate = rows.begin > 0, o.sums = kept.data();   // and what slabs before have sent
          b.run(o);
          o.dx = sums_wanted.view(), o.sums = kept_wanted.data();
          b.host.run(o);
          CHECK(worst(kept_wanted, kept) <= (sizeof(T) == 2 ? 1e-6 : 1e-12));
        }
        CHECK(kept_wanted.size() == kept.size());
      }
    }
}
TEST_CASE_TEMPLATE("a dropout drops what the host's drops, from the key that is there when it runs", T, double, float, bfloat16, float16) {
  using enum Drop::Each;
  RunKey run{11, 3, 2};
  for (const auto each : {element, channel, image})
    for (const double p : {0.0, 0.3})
      for (const Index c : channel_counts)
        for (const RunKey* key : {&run, static_cast<RunKey*>(nullptr)}) {
          const Shape in{3, c, 5, 7};
          const LoopBench<T> b(node_of({.kind = Kind::dropout, .drop = {each, p}}, in));
          const Map x = as<T>(random_map(in, 3));
          for (const auto& cut : cuts_of(5))
            for (const Range rows : cut)
              for (const Index hidden : {0, 1}) {
                run.step = static_cast<std::uint64_t>(rows.begin);
                const Slab<T> from(x, rows, c, hidden), to(in, rows, c, hidden), wanted(in, rows, c), both(x, rows, c, hidden);
                const Slab<T> dx(in, {0, 5}, c, hidden), dx_wanted(in, {0, 5}, c);
                Operands<T> o;
                o.op = Op::forward;
                o.run = key, o.layer = 6, o.first_image = 1;
                o.x = from.view(), o.y = wanted.view();
                b.host.run(o);
                o.y = to.view();
                b.run(o);
                CHECK(same(to, wanted));
                o.x = both.view(), o.y = both.view();
                b.run(o);
                CHECK(same(both, wanted));
                o.op = Op::backward_data;
                o.x = {}, o.y = {}, o.dy = from.view(), o.dx = dx_wanted.view();
                b.host.run(o);
                o.dx = dx.view();
                b.run(o);
                CHECK(same(dx, dx_wanted));
              }
        }
}
