// Max, average and global pooling, and flattening: the host's bits on random windows, whole and in slabs.
#include "loops_case.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr std::uint64_t seed = 17;
Range widened(Range r, Index height) { return {std::max<Index>(0, r.begin - 1), std::min(height, r.end + 2)}; }
/// Calls f(node, case) for random pools.
template <class F>
void each_pool(Kind kind, std::uint64_t tries, F f) {
  const Random random(seed);
  int cases = 0;
  for (std::uint64_t i = 0; i < tries; ++i) {
    const auto node = random_pool(kind, random, i);
    if (!node) continue;
    ++cases;
    CAPTURE(seed);
    CAPTURE(i);
    CAPTURE(describe(node->layer));
    CAPTURE(to_string(node->in));
    f(*node, i);
  }
  CHECK(cases > static_cast<int>(tries) / 4);
}
/// The host's forward and backward beside ours; ties among the values.
template <class T>
void check_max(const Node& node, std::uint64_t i) {
  const LoopBench<T> b(node);
  const Map x = random_map(node.in, i, true), dy = random_map(node.out, i + 1);
  for (const auto& cuts : cuts_of(node.out.h))
    for (const Range out : cuts) {
      auto memory = b.host.saved_memory(out), ours = memory, alone = memory;
      const auto saved = b.host.saved(memory, out), our_saved = b.host.saved(ours, out);
      const Slab<T> y = b.host.forward(x, out, saved);
      CHECK(same(b.forward(x, out, our_saved), y));
      CHECK(same(b.forward(x, out, {}, 0), y));
      CHECK(memory == ours);
      b.forward_saved(x, out, b.host.saved(alone, out));
      CHECK(memory == alone);
      for (const Range in : {b.host.reads(out), widened(b.host.reads(out), node.in.h)})
        for (const Index hidden : {0, 1})
          CHECK(same(b.backward_data(dy, out, in, saved, nullptr, nullptr, hidden), b.host.backward_data(dy, out, in, saved)));
    }
}
template <class T>
void check_avg(const Node& node, std::uint64_t i) {
  const LoopBench<T> b(node);
  const Map x = random_map(node.in, i), dy = random_map(node.out, i + 1);
  for (const auto& cuts : cuts_of(node.out.h))
    for (const Range out : cuts)
      for (const Index hidden : {0, 1}) {
        CHECK(same(b.forward(x, out, {}, hidden), b.host.forward(x, out)));
        for (const Range in : {b.host.reads(out), widened(b.host.reads(out), node.in.h)})
          CHECK(same(b.backward_data(dy, out, in, {}, nullptr, nullptr, hidden), b.host.backward_data(dy, out, in)));
      }
}
}   // namespace
TEST_CASE_TEMPLATE("max pooling gives the host's bits and places", T, float, double) {
  each_pool(Kind::max_pool, 600, [](const Node& node, std::uint64_t i) { check_max<T>(node, i); });
}
TEST_CASE_TEMPLATE("average pooling gives the host's bits", T, float, double) {
  each_pool(Kind::avg_pool, 600, [](const Node& node, std::uint64_t i) { check_avg<T>(node, i); });
}
TEST_CASE_TEMPLATE("pools of two-byte elements are those of float, rounded once", T, float16, bfloat16) {
  for (const Kind kind : {Kind::max_pool, Kind::avg_pool})
    each_pool(kind, 200, [](const Node& node, std::uint64_t i) {
      const LoopBench<T> b(node);
      const LoopBench<float> f(node);
      const Map x = as<T>(random_map(node.in, i)), dy = as<T>(random_map(node.out, i + 1));
      for (const auto& cuts : cuts_of(node.out.h))
        for (const Range out : cuts) {
          const bool max = node.layer.kind == Kind::max_pool;
          auto memory = b.host.saved_memory(out), ours = memory;
          const auto saved = max ? b.host.saved(memory, out) : View<std::uint8_t>{};
          const auto our_saved = max ? b.host.saved(ours, out) : View<std::uint8_t>{};
          CHECK(rounded(b.forward(x, out, our_saved), f.forward(x, out, saved)));
          CHECK(memory == ours);
          const Range in = b.host.reads(out);
          CHECK(rounded(b.backward_data(dy, out, in, saved), f.backward_data(dy, out, in, saved)));
        }
    });
}
TEST_CASE_TEMPLATE("max pooling passes on what is not a number, and -inf, as the host does", T, float, double) {
  const double nan = std::nan(""), low = -std::numeric_limits<double>::infinity();
  each_pool(Kind::max_pool, 200, [&](const Node& node, std::uint64_t i) {
    const LoopBench<T> b(node);
    Map x = random_map(node.in, i, true);
    for (std::size_t e = 0; e < x.value.size(); ++e) {
      const double which = draw(i + 5, e);
      if (which < -0.5) x.value[e] = low;
      if (which > 0.7) x.value[e] = nan;
    }
    auto memory = b.host.saved_memory(b.host.all_out()), ours = memory;
    const Slab<T> host = b.host.forward(x, b.host.all_out(), b.host.saved(memory, b.host.all_out()));
    CHECK(same(b.forward(x, b.host.all_out(), b.host.saved(ours, b.host.all_out())), host));
    CHECK(memory == ours);
  });
}
TEST_CASE_TEMPLATE("global pooling gives the host's bits however rows are cut, and backward", T, float, double, float16, bfloat16) {
  for (const Shape in :
       {Shape{2, 5, 7, 3}, Shape{1, 20, 9, 29}, Shape{3, 16, 1, 1}, Shape{1, 1, 4, 8}, Shape{2, 8, 5, 11}, Shape{3, 4, 6, 17}, Shape{1, 3, 3, 600}}) {
    const LoopBench<T> b(node_of({.kind = Kind::global_avg_pool}, in));
    const Map x = as<T>(random_map(in, 9)), dy = as<T>(random_map(b.node().out, 4));
    const Slab<T> wanted = b.host.forward(x, {0, 1});
    for (const auto& cuts : cuts_of(in.h)) {
      const Slab<T> y(b.node().out, {0, 1}, in.c);
      std::vector<double> sums(static_cast<std::size_t>(in.n * in.c), std::nan(""));
      for (const Range rows : cuts) {
        const Slab<T> from(x, rows, in.c, rows.begin % 2);
        Operands<T> o;
        o.op = Op::forward;
        o.accumulate = rows.begin > 0;
        o.sums = sums.data();
        o.x = from.view();
        o.y = y.view();
        b.run(o);
        for (const Index hidden : {0, 1})
          CHECK(same(b.backward_data(dy, {0, 1}, rows, {}, nullptr, nullptr, hidden), b.host.backward_data(dy, {0, 1}, rows)));
      }
      CHECK(same(y, wanted));
    }
  }
}
TEST_CASE_TEMPLATE("flattening puts features in NCHW order, and back", T, float, double, float16, bfloat16) {
  for (const Shape in : {Shape{2, 5, 4, 3}, Shape{1, 1, 4, 3}, Shape{3, 16, 1, 1}, Shape{2, 8, 2, 7}}) {
    const LoopBench<T> b(node_of({.kind = Kind::flatten}, in));
    const Map x = as<T>(random_map(in, 1));
    Map flat(b.node().out);
    flat.value = x.value;   // both are plain NCHW
    for (const Index hidden : {0, 1}) {
      CHECK(b.forward(x, {0, 1}, {}, hidden).difference(flat) == 0);
      CHECK(b.backward_data(flat, {0, 1}, {0, in.h}, {}, nullptr, nullptr, hidden).difference(x) == 0);
    }
  }
}
