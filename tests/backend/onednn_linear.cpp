#include "onednn_support.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace test;
namespace {
struct Case {
  Index n, in, out;
  bool bias = true;
};
const std::vector<Case> cases{{1, 1, 1},       {2, 3, 5},       {4, 16, 4},     {3, 17, 33, false}, {8, 512, 10},  {5, 100, 130},
                              {1, 1000, 1000}, {16, 1024, 528}, {2, 4096, 300}, {3, 400, 120},      {9, 16, 1000}, {65, 333, 257, false}};
const std::vector<Op> passes_of_linear{Op::forward, Op::backward_data, Op::backward_parameters};
}   // namespace
TEST_CASE_TEMPLATE("onednn linear layers agree with the reference", B, Onednn, OnednnBf16) {
  B onednn = backend<B>();
  Reference<double> reference;
  for (const Case& c : cases)
    for (const bool accumulate : {false, true})
      for (const Index workspace : {Index{0}, 4_MiB}) {
        const Node node = node_of(linear(c.out, c.bias), {c.n, c.in, 1, 1});
        CAPTURE(c.n);
        CAPTURE(c.in);
        CAPTURE(c.out);
        const Options options{.workspace_bytes = workspace, .accumulate = accumulate};
        const Passes got = passes(onednn, node, {0, 1}, options), want = passes(reference, node, {0, 1}, options);
        CHECK(relative(got.y, want.y) <= tolerance_of<B>());
        CHECK(relative(got.dx, want.dx) <= tolerance_of<B>());
        CHECK(relative(got.dw, want.dw) <= tolerance_of<B>());
        CHECK(relative(got.db, want.db) <= tolerance_of<B>());
        CHECK(got.padding == 0);
        CHECK(got.intact);
      }
}
TEST_CASE_TEMPLATE("an image's outputs do not depend on how many images there are", B, Onednn, OnednnBf16) {
  B onednn = backend<B>();
  for (const auto& [in, out] : {std::pair<Index, Index>{1024, 256}, {333, 333}, {400, 120}, {512, 10}}) {
    std::vector<float> first;
    for (const Index n : {17, 1, 2, 8, 40}) {
      const Node node = node_of(linear(out), {n, in, 1, 1});
      Slab<B> slab(node, {0, 1}, {});
      slab.step(onednn, Op::forward);
      const std::vector<float> got(slab.y.view.data, slab.y.view.data + out);
      if (first.empty()) first = got;
      CHECK(got == first);
    }
  }
}
TEST_CASE_TEMPLATE("a linear layer's rerun is bit-identical", B, Onednn, OnednnBf16) {
  const Node node = node_of(linear(530), {9, 1030, 1, 1});
  B first = backend<B>(), second = backend<B>();
  const Passes a = passes(first, node, {0, 1}), b = passes(first, node, {0, 1}), c = passes(second, node, {0, 1});
  for (const Passes* p : {&b, &c}) {
    CHECK(a.y == p->y);
    CHECK(a.dx == p->dx);
    CHECK(a.dw == p->dw);
    CHECK(a.db == p->db);
  }
}
TEST_CASE("linear primitives are cached, for images of one batch and their slices") {
  Onednn onednn(2);
  const Node node = node_of(linear(64), {8, 256, 1, 1});
  Slab<Onednn> slab(node, {0, 1}, {});
  for (const Op op : passes_of_linear) onednn.prepare(slab.operands(op));
  CHECK(onednn.cache().misses == 3);
  for (const Op op : passes_of_linear) onednn.prepare(slab.operands(op));
  CHECK(onednn.cache().misses == 3);
  CHECK(onednn.cache().hits == 3);
  // Images 2 to 5 of 8, where they lie.
  Reference<double> reference;
  const Passes whole = passes(reference, node, {0, 1});
  auto o = slab.operands(Op::forward);
  o.x.data += 2 * o.x.stride_n, o.x.n = 3;
  o.y.data += 2 * o.y.stride_n, o.y.n = 3;
  auto prepared = onednn.prepare(o);
  onednn.run(prepared, o);
  std::vector<double> got, want;
  for (Index i = 2; i < 5; ++i)
    for (Index k = 0; k < 64; ++k) {
      got.push_back(slab.y.view(i, k, 0, 0));
      want.push_back(whole.y[static_cast<std::size_t>(i * 64 + k)]);
    }
  CHECK(relative(got, want) <= 1e-5);
  CHECK(std::isnan(slab.y.view(1, 63, 0, 0)));
  CHECK(std::isnan(slab.y.view(5, 0, 0, 0)));
}
