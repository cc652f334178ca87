// Transposed convolutions on the oneDNN backend: the library's where windows tile the map, else plain loops; whole maps, slabs that
// begin within a window, pieces that a small workspace makes necessary, and rows that lie in larger tensors.
#include "onednn_support.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace test;
namespace {
Node transposed(Index c, Index k, const Window& window, bool bias, const Shape& in, Index groups = 1) {
  Layer layer = conv(k, window, groups, bias);
  layer.kind = Kind::conv_transpose;
  layer.name = "up";
  return node_of(layer, {in.n, c, in.h, in.w});
}
struct Case {
  Index c, k;
  Window window;
  bool bias = true;
  Index groups = 1;
  bool library = true;
};
const std::vector<Case> cases{{32, 16, {.kernel = 2, .stride = 2}},
                              {20, 40, {.kernel = 2, .stride = 2}},
                              {16, 32, {.kernel = 3, .stride = 3}, false},
                              {64, 16, {.kernel = {2, 4}, .stride = {2, 4}}},
                              {16, 24, {.kernel = 3, .stride = 2, .pad = 1}, true, 1, false},
                              {16, 16, {.kernel = 4, .stride = 2, .pad = 1}, true, 1, false}};
template <class B>
void compare(const Passes& a, const Passes& b) {
  CHECK(relative(a.y, b.y) <= tolerance_of<B>());
  CHECK(relative(a.dx, b.dx) <= tolerance_of<B>());
  CHECK(relative(a.dw, b.dw) <= tolerance_of<B>());
  if (!b.db.empty()) CHECK(relative(a.db, b.db) <= tolerance_of<B>());
  CHECK(a.padding == 0);
  CHECK(a.intact);
}
}   // namespace
TEST_CASE_TEMPLATE("transposed convolutions agree with the reference, whole maps and slabs, in one piece and in many", B, Onednn, OnednnBf16) {
  B onednn = backend<B>();
  Reference<double> reference;
  for (const Case& c : cases) {
    const Node node = transposed(c.c, c.k, c.window, c.bias, {2, 1, 7, 6}, c.groups);
    CAPTURE(c.c);
    CAPTURE(c.k);
    const Index h = node.out.h;
    for (const Range out : {Range{0, h}, Range{0, 4}, Range{3, 9}, Range{5, 6}, Range{h - 5, h}})
      for (const Index workspace : {4_MiB, Index{60'000}, Index{0}})
        for (const bool accumulate : {false, true}) {
          CAPTURE(out.begin);
          CAPTURE(workspace);
          const Options options{.workspace_bytes = workspace, .accumulate = accumulate};
          compare<B>(passes(onednn, node, out, options), passes(reference, node, out, options));
        }
    Slab<B> slab(node, {0, h}, {});
    for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters}) {
      const std::string name = onednn.implementation(slab.operands(op));
      const bool by_library = name != "host";
      const Index bytes = onednn.workspace_bytes(slab.operands(op));
      CHECK((bytes > 0) == by_library);
      Slab<B> tight(node, {0, h}, {.workspace_bytes = bytes});
      CHECK(onednn.implementation(tight.operands(op)) == name);
      if (by_library) CHECK(onednn.workspace_bytes(tight.operands(op)) == bytes);
      if (!c.library) CHECK(!by_library);
      else if (std::is_same_v<B, Onednn> && onednn.has_kernels() && (onednn.layout().lanes() == 16 || c.window.kernel.h == c.window.kernel.w))
        CHECK(by_library);
    }
  }
}
TEST_CASE("rows of a transposed convolution may lie in larger tensors") {
  Onednn onednn(lrcnn::testing::threads_for_tests());
  const Node node = transposed(32, 16, {.kernel = 2, .stride = 2}, true, {2, 1, 9, 6});
  Slab<Onednn> whole(node, {0, 18}, {}), part(node, {5, 12}, {});
  const Passes dense = part.run(onednn);
  for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters}) {
    auto o = whole.operands(op);
    o.x = o.x.data ? o.x.slice({2, 6}) : o.x;
    o.dx = o.dx.data ? o.dx.slice({2, 6}) : o.dx;
    o.y = o.y.data ? o.y.slice({5, 12}) : o.y;
    o.dy = o.dy.data ? o.dy.slice({5, 12}) : o.dy;
    auto prepared = onednn.prepare(o);
    onednn.run(prepared, o);
  }
  const auto rows = [&](const Rows<float>& r, Range wanted) {
    std::vector<double> all;
    r.each([&](Index, Index, Index y, Index, float v) {
      if (wanted.contains({y, y + 1})) all.push_back(v);
      else CHECK(std::isnan(v));   // nothing else is written
    });
    return all;
  };
  CHECK(relative(rows(whole.y, {5, 12}), dense.y) <= 1e-6);
  CHECK(relative(rows(whole.dx, {2, 6}), dense.dx) <= 1e-6);
  CHECK(relative(whole.gradient(0), dense.dw) <= 1e-6);
  CHECK(relative(whole.gradient(1), dense.db) <= 1e-6);
}
