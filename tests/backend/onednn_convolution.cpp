#include "onednn_support.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace test;
namespace {
struct Case {
  Index n, c, h, w, k;
  Window window;
  Index groups = 1;
  bool bias = true;
};
/// Kernels 1 to 7, even ones, strides below and above the kernel, dilation, padding of all four kinds, channels that
/// fill no block, groups, maps smaller than the kernel.
const std::vector<Case> cases{
    {2, 3, 13, 11, 16, {.kernel = 3, .pad = 1}},
    {1, 1, 12, 12, 6, {.kernel = 5}},
    {2, 4, 9, 10, 40, {.kernel = 4, .stride = 2, .pad = {1, 2, 0, 3}}},
    {2, 16, 12, 9, 32, {.kernel = 3, .pad = 1}},
    {1, 64, 17, 15, 64, {.kernel = 3, .pad = 1}, 1, false},
    {3, 5, 10, 9, 7, {.kernel = 3, .pad = 1}},
    {2, 20, 11, 13, 40, {.kernel = 3, .pad = 1}},
    {1, 33, 9, 8, 17, {.kernel = 3, .pad = {0, 2, 1, 0}}},
    {2, 32, 9, 9, 48, {.kernel = 1}},
    {2, 32, 11, 10, 48, {.kernel = 1, .stride = 2}},
    {2, 24, 11, 10, 31, {.kernel = 1, .stride = 3, .pad = {1, 0, 0, 1}}},
    {2, 256, 5, 4, 64, {.kernel = 1}},   // so many that several threads pack the filter
    {2, 16, 12, 12, 32, {.kernel = 2, .stride = 2}},
    {2, 16, 13, 12, 32, {.kernel = 2, .pad = {1, 0, 1, 0}}},
    {1, 32, 14, 14, 16, {.kernel = 4, .stride = 1, .pad = {2, 1, 2, 1}}},
    {2, 16, 15, 13, 16, {.kernel = 5, .pad = 2}},
    {1, 16, 20, 18, 32, {.kernel = 7, .stride = 2, .pad = 3}},
    {1, 16, 16, 14, 16, {.kernel = 6, .stride = 3, .pad = 2}},
    {2, 32, 17, 17, 32, {.kernel = 2, .stride = 3}},
    {2, 16, 14, 14, 16, {.kernel = 3, .stride = 5, .pad = 1}},
    {1, 16, 19, 17, 16, {.kernel = 3, .pad = 2, .dilation = 2}},
    {1, 32, 19, 20, 32, {.kernel = {3, 2}, .stride = {2, 1}, .pad = {3, 1, 0, 2}, .dilation = {3, 2}}},
    {2, 16, 12, 12, 16, {.kernel = {1, 5}, .pad = {0, 0, 2, 2}}},
    {2, 16, 12, 12, 16, {.kernel = {5, 1}, .pad = {2, 2, 0, 0}}},
    {2, 32, 10, 11, 64, {.kernel = 3, .pad = 1}, 2},
    {1, 48, 10, 11, 48, {.kernel = 3, .stride = 2, .pad = 1}, 3, false},
    {2, 32, 10, 11, 64, {.kernel = 3, .pad = 1}, 4},
    {2, 12, 10, 11, 6, {.kernel = 3, .pad = 1}, 3},
    {2, 32, 12, 11, 32, {.kernel = 3, .pad = 1}, 32},
    {2, 24, 12, 11, 24, {.kernel = 5, .stride = 2, .pad = 2}, 24},
    {2, 3, 12, 11, 3, {.kernel = 3, .pad = 1}, 3},
    {2, 8, 12, 11, 16, {.kernel = 3, .pad = 1}, 8},
    {2, 32, 9, 9, 2, {.kernel = 1}},
    {2, 3, 9, 9, 4, {.kernel = 3, .pad = 1}},
    {1, 16, 3, 2, 16, {.kernel = 5, .pad = 2}},
    {1, 32, 2, 1, 32, {.kernel = 3, .pad = 1}},
    {1, 16, 6, 6, 16, {.kernel = 3, .pad = 4}},
    {1, 16, 7, 5, 16, {.kernel = 1, .pad = 1}},
    {1, 3, 8, 8, 16, {.kernel = 7, .pad = 3}},
    {1, 2, 30, 7, 20, {.kernel = 11, .stride = 4, .pad = {5, 2, 5, 5}}},
    {9, 16, 7, 7, 48, {.kernel = 3, .pad = 1}},
};
std::string text(const Case& c) { return to_string(Shape{c.n, c.c, c.h, c.w}) + ' ' + describe(conv(c.k, c.window, c.groups)); }
/// Cuts of output rows: whole, halves, single rows at both ends and a middle.
std::vector<Range> cuts(Index rows) {
  std::vector<Range> list{{0, rows}};
  if (rows > 1) list.insert(list.end(), {{0, rows / 2}, {rows / 2, rows}, {0, 1}, {rows - 1, rows}});
  if (rows > 4) list.push_back({2, rows - 2});
  return list;
}
void compare(const Passes& got, const Passes& want, double tolerance) {
  CHECK(relative(got.y, want.y) <= tolerance);
  CHECK(relative(got.dx, want.dx) <= tolerance);
  CHECK(relative(got.dw, want.dw) <= tolerance);
  CHECK(relative(got.db, want.db) <= tolerance);
  CHECK(got.padding == 0);
  CHECK(got.intact);
}
}   // namespace
TEST_CASE_TEMPLATE("onednn convolutions agree with the reference, whole maps and slabs", B, Onednn, OnednnBf16) {
  B onednn = backend<B>();
  const std::string by = onednn.has_kernels() ? "the library's kernels" : "plain loops";
  MESSAGE(onednn.describe(), ", ", precision_name(B::precision), ": ", by);
  Reference<double> reference;
  for (const Case& c : cases) {
    const Node node = node_of(conv(c.k, c.window, c.groups, c.bias), {c.n, c.c, c.h, c.w});
    CAPTURE(text(c));
    for (const Range out : cuts(node.out.h))
      for (const Index extra : {Index{0}, c.window.stride.h - 1}) {
        if (extra == 0 && c.window.stride.h > 1) continue;
        CAPTURE(out.begin);
        CAPTURE(out.end);
        const Options options{.extra_rows = extra};
        compare(passes(onednn, node, out, options), passes(reference, node, out, options), tolerance_of<B>());
      }
  }
}
TEST_CASE_TEMPLATE("forward of direct slabs is bit-identical to the rows of the whole map, and for images alone", B, Onednn, OnednnBf16) {
  B onednn = backend<B>();
  std::vector<Case> all = cases;
  all.push_back({2, 128, 28, 28, 128, {.kernel = 3, .pad = 1}});
  all.push_back({2, 256, 14, 14, 512, {.kernel = 3, .pad = 1}});
  all.push_back({2, 256, 15, 14, 64, {.kernel = 1}});
  all.push_back({2, 64, 29, 28, 256, {.kernel = 1, .stride = 2}});
  all.push_back({4, 3, 64, 64, 64, {.kernel = 7, .stride = 2, .pad = 3}});
  for (const Case& c : all) {
    const Node node = node_of(conv(c.k, c.window, c.groups, c.bias), {c.n, c.c, c.h, c.w});
    CAPTURE(text(c));
    const auto forward = [&](const Node& part, Range out) {
      auto slab = std::make_unique<Slab<B>>(part, out, Options{});
      slab->step(onednn, Op::pack_forward);
      slab->step(onednn, Op::forward);
      return slab;
    };
    const auto whole = forward(node, {0, node.out.h});
    const auto same = [&](const Slab<B>& slab) {
      Index different = 0;
      slab.y.each([&](Index i, Index k, Index row, Index column, auto& e) {
        different += std::memcmp(&e, &whole->y.view(i, k, row, column), sizeof(e)) != 0;
      });
      CHECK(different == 0);
    };
    for (const Range out : cuts(node.out.h)) same(*forward(node, out));
    if (c.n > 1) same(*forward(node_of(conv(c.k, c.window, c.groups, c.bias), {1, c.c, c.h, c.w}), {0, node.out.h}));
  }
}
TEST_CASE("Winograd agrees with the reference, whole maps and slabs, and runs wherever it can") {
  Onednn onednn(lrcnn::testing::threads_for_tests());
  Reference<double> reference;
  struct Suited {
    Case c;
    bool suits;
  };
  const std::vector<Suited> some{{{2, 16, 12, 14, 32, {.kernel = 3, .pad = 1}}, true},
                                 {{1, 64, 21, 14, 64, {.kernel = 3, .pad = 1}}, true},
                                 {{2, 128, 12, 12, 64, {.kernel = 3, .pad = 1}, 1, false}, true},
                                 {{1, 20, 18, 18, 40, {.kernel = 3, .pad = 1}}, true},
                                 {{2, 32, 17, 19, 32, {.kernel = 3, .pad = {1, 0, 0, 1}}}, true},
                                 {{2, 32, 17, 6, 32, {.kernel = 3, .pad = {0, 1, 1, 0}}}, true},
                                 {{1, 80, 9, 10, 144, {.kernel = 3, .pad = {2, 1, 2, 0}}}, true},
                                 {{1, 16, 2, 3, 16, {.kernel = 3, .pad = 2}}, true},
                                 {{1, 16, 19, 20, 16, {.kernel = 3}}, true},
                                 {{2, 3, 16, 16, 16, {.kernel = 3, .pad = 1}}, false},
                                 {{2, 16, 16, 16, 16, {.kernel = 3, .stride = 2, .pad = 1}}, false},
                                 {{2, 16, 16, 16, 16, {.kernel = 3, .pad = 1, .dilation = 2}}, false},
                                 {{2, 32, 16, 16, 32, {.kernel = 3, .pad = 1}, 2}, false},
                                 {{2, 32, 16, 16, 16, {.kernel = 5, .stride = 2, .pad = 1}}, false}};
  for (const auto& [c, suits] : some) {
    const Node node = node_of(conv(c.k, c.window, c.groups, c.bias), {c.n, c.c, c.h, c.w});
    CAPTURE(text(c));
    for (const ConvAlgorithm algorithm : {ConvAlgorithm::winograd, ConvAlgorithm::fastest})
      for (const bool accumulate : {false, true})
        for (const Range out : cuts(node.out.h)) {
          const Options options{.conv_algorithm = algorithm, .workspace_bytes = 64_MiB, .accumulate = accumulate};
          Slab<Onednn> slab(node, out, options);
          if (algorithm == ConvAlgorithm::winograd && c.window.pad.top < 2)   // else the library's filter may be packed otherwise
            for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters})
              CHECK((onednn.implementation(slab.operands(op)) == "winograd_4x3") == suits);
          compare(slab.run(onednn), passes(reference, node, out, options), 1e-5);
        }
  }
}
TEST_CASE("the fastest arithmetic is Winograd's where it fits and does not work on much that is thrown away, or plain loops would take its place") {
  Onednn onednn(2, {}, {.report_slow = false});
  const auto by = [&](ConvAlgorithm algorithm, Index extent, Index rows, Index workspace, Op op) {
    const Node node = node_of(conv(64, {.kernel = 3, .pad = 1}), {2, 64, extent, extent});
    Slab<Onednn> slab(node, {0, rows}, {.conv_algorithm = algorithm, .workspace_bytes = workspace});
    return onednn.implementation(slab.operands(op));
  };
  for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters}) {
    const auto winograd = [&](Index extent, Index rows, Index workspace) {
      return by(ConvAlgorithm::fastest, extent, rows, workspace, op) == "winograd_4x3";
    };
    const auto no_kernel = [&](Index extent, Index rows) { return by(ConvAlgorithm::direct, extent, rows, 8_MiB, op) == "host"; };
    CHECK(winograd(28, 28, 8_MiB));
    CHECK(winograd(28, 2, 8_MiB) == (op == Op::backward_data || no_kernel(28, 2)));   // dx has three rows
    CHECK(winograd(28, 1, 8_MiB) == no_kernel(28, 1));
    for (const Index extent : {5, 6, 9}) CHECK(winograd(extent, extent, 8_MiB) == no_kernel(extent, extent));
    CHECK_FALSE(winograd(28, 28, 500'000));
  }
}
TEST_CASE("with Winograd too a filter is packed as direct arithmetic reads it") {
  Onednn onednn(2);
  const Node node = node_of(conv(64, {.kernel = 3, .pad = 1}), {2, 64, 28, 28});
  for (const Op op : {Op::pack_forward, Op::pack_backward}) {
    Slab<Onednn> direct(node, {0, 28}, {}), winograd(node, {0, 28}, {.conv_algorithm = ConvAlgorithm::winograd, .workspace_bytes = 16_MiB});
    direct.step(onednn, op);
    winograd.step(onednn, op);
    CHECK(std::equal(direct.packed().data(), direct.packed().data() + direct.packed().size(), winograd.packed().data()));
  }
}
TEST_CASE_TEMPLATE("a rerun is bit-identical, with gradients written and added", B, Onednn, OnednnBf16) {
  for (const ConvAlgorithm algorithm : {ConvAlgorithm::direct, ConvAlgorithm::fastest})
    for (const bool accumulate : {false, true}) {
      const Options options{.conv_algorithm = algorithm, .workspace_bytes = 64_MiB, .accumulate = accumulate};
      const Node node = node_of(conv(72, {.kernel = 3, .pad = 1}), {5, 48, 30, 20});
      B first = backend<B>(), second = backend<B>();
      const Passes a = passes(first, node, {3, 20}, options), b = passes(first, node, {3, 20}, options);
      const Passes c = passes(second, node, {3, 20}, options);
      for (const Passes* p : {&b, &c}) {
        CHECK(a.y == p->y);
        CHECK(a.dx == p->dx);
        CHECK(a.dw == p->dw);
        CHECK(a.db == p->db);
      }
    }
}
TEST_CASE_TEMPLATE("parameter gradients are added where the step says so", B, Onednn, OnednnBf16) {
  B onednn = backend<B>();
  Reference<double> reference;
  const Options options{.accumulate = true};
  for (const Case& c : cases) {
    const Node node = node_of(conv(c.k, c.window, c.groups, c.bias), {c.n, c.c, c.h, c.w});
    CAPTURE(text(c));
    const Passes got = passes(onednn, node, {0, node.out.h}, options);
    const Passes want = passes(reference, node, {0, node.out.h}, options);
    CHECK(relative(got.dw, want.dw) <= tolerance_of<B>());
    CHECK(relative(got.db, want.db) <= tolerance_of<B>());
  }
}
TEST_CASE_TEMPLATE("a filter is packed in the same way whatever the slab, and fills no more than the plan's room", B, Onednn, OnednnBf16) {
  using T = typename B::element;
  B onednn = backend<B>();
  for (const Case& c : cases) {
    const Node node = node_of(conv(c.k, c.window, c.groups, c.bias), {c.n, c.c, c.h, c.w});
    CAPTURE(text(c));
    for (const Op op : {Op::pack_forward, Op::pack_backward}) {
      std::vector<std::vector<T>> packed;
      for (const Range out : {Range{0, node.out.h}, Range{0, 1}, Range{node.out.h / 2, node.out.h}}) {
        Slab<B> slab(node, out, {});
        std::fill_n(slab.packed().data(), slab.packed().size(), T(0));
        slab.step(onednn, op);
        packed.emplace_back(slab.packed().data(), slab.packed().data() + slab.packed().size());
      }
      CHECK(packed[0] == packed[1]);
      CHECK(packed[0] == packed[2]);
    }
  }
  // One packed filter serves slabs of every height.
  const Node node = node_of(conv(40, {.kernel = 3, .pad = 1}), {2, 20, 19, 11});
  Slab<B> whole(node, {0, 19}, {});
  whole.step(onednn, Op::pack_forward);
  whole.step(onednn, Op::forward);
  for (Index rows = 1; rows < 19; ++rows) {
    Slab<B> slab(node, {19 - rows, 19}, {});
    auto o = slab.operands(Op::forward);
    o.packed = whole.packed().data();
    auto prepared = onednn.prepare(o);
    onednn.run(prepared, o);
    Index different = 0;
    slab.y.each([&](Index i, Index k, Index y, Index x, T& e) { different += e != whole.y.view(i, k, y, x); });
    CHECK(different == 0);
  }
}
TEST_CASE("in bf16 the library carries out whole blocks of channels with its own kernels, sums are 32-bit") {
  auto onednn = backend<OnednnBf16>();
  const Node node = node_of(conv(64, {.kernel = 3, .pad = 1}), {2, 32, 15, 13}), first = node_of(conv(64, {.kernel = 3, .pad = 1}), {2, 3, 15, 13});
  CHECK(OnednnBf16::target.scratch_bytes(node) == 2 * OnednnBf16::target.packed_bytes(node));
  CHECK(Onednn::target.scratch_bytes(node) == Onednn::target.packed_bytes(node));
  // Fifty times the image: a sum in bf16 would stop growing, the filter's gradient is fifty times as large.
  Slab<OnednnBf16> slab(node, {0, 15}, {});
  slab.step(onednn, Op::backward_parameters);
  std::vector<double> many = slab.gradient(0), more = slab.gradient(1);
  for (double& e : many) e *= 50;
  for (double& e : more) e *= 50;
  auto o = slab.operands(Op::backward_parameters);
  o.accumulate = true;
  auto prepared = onednn.prepare(o);
  for (int i = 1; i < 50; ++i) onednn.run(prepared, o);
  CHECK(relative(slab.gradient(0), many) <= 1e-5);
  CHECK(relative(slab.gradient(1), more) <= 1e-5);
  const bool kernels = onednn.has_kernels();
  WARN(kernels);
  for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters})
    CHECK((onednn.implementation(slab.operands(op)).find("bf16") != std::string::npos) == kernels);
  Slab<OnednnBf16> plain(first, {0, 15}, {});   // a network's first layer: NCHW
  for (const Op op : {Op::forward, Op::backward_parameters})
    CHECK((onednn.implementation(plain.operands(op)).find("bf16") != std::string::npos) == kernels);
}
TEST_CASE("a filter gradient in bf16 takes fewer images at a time where the scratch of all does not fit") {
  auto onednn = backend<OnednnBf16>();
  if (!onednn.has_kernels()) return;   // a processor without kernels
  const Node node = node_of(conv(256, {.kernel = 3, .pad = 1}), {6, 64, 14, 14});
  const auto bytes = [&](const Options& options) {
    Slab<OnednnBf16> slab(node, {0, 14}, options);
    return onednn.workspace_bytes(slab.operands(Op::backward_parameters));
  };
  const Index all = bytes({});
  Index least = all;
  std::string refusal;
  for (Index room = all - 1; room >= 0; room = least - 1) try {
      least = bytes({.workspace_bytes = room});
    } catch (const BackendError& e) {
      refusal = e.what();
      break;
    }
  WARN(least < all);
  MESSAGE("all six images want ", all, " bytes of scratch, a part of them ", least);
  CHECK(refusal.find("needs " + std::to_string(least) + " bytes of workspace") != std::string::npos);
  Reference<double> reference;
  for (const bool accumulate : {false, true}) {
    const Options options{.workspace_bytes = least, .accumulate = accumulate};
    compare(passes(onednn, node, {0, 14}, options), passes(reference, node, {0, 14}, options), tolerance_of<OnednnBf16>());
  }
}
TEST_CASE("primitives are shared by slabs of equal shape") {
  Onednn onednn(2);
  if (!onednn.has_kernels()) return;   // a processor without kernels
  const Node node = node_of(conv(32, {.kernel = 3, .pad = 1}), {2, 16, 40, 12});
  Slab<Onednn> first(node, {8, 16}, {}), second(node, {16, 24}, {});
  Slab<Onednn> border(node, {0, 8}, {}), last(node, {32, 40}, {});
  const auto prepare = [&](Slab<Onednn>& slab, Op op) { onednn.prepare(slab.operands(op)); };
  prepare(first, Op::pack_forward);
  CHECK(onednn.cache().misses == 1);   // the filter
  prepare(first, Op::forward);
  CHECK(onednn.cache().misses == 2);
  const Index hits = onednn.cache().hits;
  prepare(second, Op::forward);
  prepare(second, Op::pack_forward);
  CHECK(onednn.cache().misses == 2);
  CHECK(onednn.cache().hits == hits + 3);
  prepare(border, Op::forward);   // other padding
  prepare(last, Op::forward);
  CHECK(onednn.cache().misses == 4);
  prepare(first, Op::backward_parameters);   // a filter and a primitive
  prepare(second, Op::backward_parameters);
  CHECK(onednn.cache().misses == 6);
  const Node other = node_of(conv(32, {.kernel = 3, .pad = 1}, 1, false), {2, 16, 40, 12});
  Slab<Onednn> unbiased(other, {8, 16}, {});
  prepare(unbiased, Op::forward);
  CHECK(onednn.cache().misses == 8);
}
TEST_CASE("of primitives for hundreds of extents some are kept, and all that are in use") {
  Onednn onednn(2);
  if (!onednn.has_kernels()) return;   // a processor without kernels
  const auto node = [](Index height) { return node_of(conv(16, {.kernel = 3, .pad = 1}), {1, 16, height, 4}); };
  const Index extents = 600;
  const Node first = node(3);
  Slab<Onednn> slab(first, {0, 3}, {});
  const auto used = onednn.prepare(slab.operands(Op::forward));
  for (Index height = 4; height < 4 + extents; ++height) {
    const Node next = node(height);
    Slab<Onednn> other(next, {0, height}, {});
    static_cast<void>(onednn.prepare(other.operands(Op::forward)));
  }
  const OnednnCache cache = onednn.cache();
  CHECK(cache.misses == 2 * (extents + 1));   // a filter and a primitive
  CHECK(cache.kept <= 3 * 257);               // primitives, the filters that they use, and as many others
  CHECK(cache.kept >= 2 * 128);
  static_cast<void>(onednn.prepare(slab.operands(Op::forward)));
  CHECK(onednn.cache().misses <= cache.misses + 1);   // nobody may have used the filter
}
TEST_CASE("filter gradients have fewer threads work on one image where the scratch of all does not fit") {
  Onednn onednn(2);
  const Node node = node_of(conv(64, {.kernel = 3, .pad = 1}), {1, 64, 60, 60});
  Slab<Onednn> slab(node, {0, 60}, {});
  const Index all = onednn.workspace_bytes(slab.operands(Op::backward_parameters));
  WARN(all > 0);   // on two cores with AVX-512: that of one thread
  Reference<double> reference;
  for (const Index bytes : {all, all / 2, Index{0}})
    for (const bool accumulate : {false, true}) {
      CAPTURE(bytes);
      const Options options{.workspace_bytes = bytes, .accumulate = accumulate};
      compare(passes(onednn, node, {0, 60}, options), passes(reference, node, {0, 60}, options), tolerance_of<Onednn>());
    }
}
TEST_CASE("too little workspace is refused with the layer, the bytes and the remedy") {
  Onednn onednn(2);
  Layer layer = conv(64, {.kernel = 3, .pad = 1});
  layer.name = "block1.conv2";
  const Node node = node_of(layer, {4, 64, 28, 60});
  const auto message = [&](Op op, const Options& options) {
    Slab<Onednn> slab(node, {0, 28}, options);
    try {
      onednn.prepare(slab.operands(op));
    } catch (const BackendError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  Slab<Onednn> enough(node, {0, 28}, {});
  Index needed = onednn.workspace_bytes(enough.operands(Op::backward_parameters));
  while (needed > 0 && message(Op::backward_parameters, {.workspace_bytes = needed - 1}).empty()) {   // it makes do with less
    Slab<Onednn> less(node, {0, 28}, {.workspace_bytes = needed - 1});
    needed = onednn.workspace_bytes(less.operands(Op::backward_parameters));
  }
  const std::string bytes = std::to_string(needed);
  if (needed > 0)   // kernels that want scratch for one thread, too
    CHECK(message(Op::backward_parameters, {.workspace_bytes = needed - 1}) ==
          "lrcnn: layer 'block1.conv2', backward_parameters of convolution to rows 0 to 28, needs " + bytes + " bytes of workspace and has " +
              std::to_string(needed - 1) + "; scratch memory of every layer lies in the plan's workspace; raise the policy's Workspace<...> to " +
              bytes + " or more, or cut thinner slabs");
  CHECK(message(Op::backward_parameters, {.workspace_bytes = needed}) == "");
  CHECK(passes(onednn, node, {0, 28}, {.workspace_bytes = needed}).intact);
  CHECK(message(Op::forward, {.workspace_bytes = 0}) == "");
  const Options winograd{.conv_algorithm = ConvAlgorithm::winograd, .workspace_bytes = 64_MiB};
  Slab<Onednn> slab(node, {0, 28}, winograd);
  CHECK(onednn.implementation(slab.operands(Op::forward)) == "winograd_4x3");
  const auto pass = host::WinogradConvolution::pass(node, Op::forward, slab.x.view, slab.y.view, onednn.vectors());
  const Index least = host::winograd::least_bytes(*pass);
  const std::string refusal = message(Op::forward, {.conv_algorithm = ConvAlgorithm::winograd, .workspace_bytes = least - 1});
  CHECK(refusal.find("forward of Winograd convolution to rows 0 to 28, needs " + std::to_string(least) + " bytes of workspace") != std::string::npos);
  CHECK(message(Op::forward, {.conv_algorithm = ConvAlgorithm::winograd, .workspace_bytes = least}) == "");
  CHECK(message(Op::forward, {.conv_algorithm = ConvAlgorithm::fastest, .workspace_bytes = 0}) == "");
  CHECK(onednn.implementation(Slab<Onednn>(node, {0, 28}, {.conv_algorithm = ConvAlgorithm::fastest, .workspace_bytes = 0}).operands(Op::forward))
            .find("wino") == std::string::npos);
}
