// Transposed convolutions as products of matrices against the plain loops, for every kind of vectors that this machine has.
#include "host_case.hpp"
#include <lrcnn/backend/host/tiled_transpose.hpp>
#include <tuple>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Passes {
  Slab<float> y, dx;
  std::vector<float> dw, db;
};
/// A layer on output rows `out`, of which windows may lie outside in part.
struct Problem {
  Node node;
  Index lanes;
  Map x, dy;
  std::vector<float> w, bias;
  Problem(Index l, Index c, Index k, const Pair& window, bool has_bias)
      : node(node_of({.kind = Kind::conv_transpose, .window = {.kernel = window, .stride = window}, .channels = k, .bias = has_bias}, {2, c, 7, 13})),
        lanes(l),
        x(random_map(node.in, 1)),
        dy(random_map(node.out, 2)) {
    const auto narrow = [](const std::vector<double>& wide) { return std::vector<float>(wide.begin(), wide.end()); };
    w = narrow(random_vector(c * k * window.h * window.w, 3)), bias = narrow(random_vector(k, 4));
  }
  Range reads(Range out) const {
    const Index stride = node.layer.window.stride.h;
    return {out.begin / stride, ceil_div(out.end, stride)};
  }
  /// Calls step(operands) for all three passes. Gradients of parameters begin with 1 if `add`.
  template <class Step>
  Passes run(Range out, bool add, Step step) const {
    Passes p{{node.out, out, lanes}, {node.in, reads(out), lanes}, std::vector<float>(w.size(), 1.f), std::vector<float>(bias.size(), 1.f)};
    const Slab<float> from(x, reads(out), lanes), down(dy, out, lanes);
    std::vector<std::byte> memory(static_cast<std::size_t>(host::TiledTranspose::workspace_bytes(node, lanes)) + 64, std::byte{0xff});
    Operands<float> o;
    o.node = &node;
    o.parameters[0] = w.data(), o.parameters[1] = node.layer.bias ? bias.data() : nullptr;
    o.workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
    o.workspace_bytes = static_cast<Index>(memory.size()) - 64;
    Operands<float> forward = o, data = o, gradient = o;
    forward.op = Op::forward, forward.x = from.view(), forward.y = p.y.view();
    data.op = Op::backward_data, data.dy = down.view(), data.dx = p.dx.view();
    gradient.op = Op::backward_parameters, gradient.x = from.view(), gradient.dy = down.view(), gradient.accumulate = add;
    gradient.d_parameters[0] = p.dw.data(), gradient.d_parameters[1] = p.db.data();
    for (const auto& of_pass : {forward, data, gradient}) step(of_pass);
    return p;
  }
};
double worst_of(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  return worst;
}
double worst_of(const Slab<float>& a, const Slab<float>& b) {
  double worst = 0;
  const View<float> v = a.view(), u = b.view();
  for (Index i = 0; i < v.n; ++i)
    for (Index c = 0; c < round_up(v.c, v.block); ++c)
      for (Index y = v.row0; y < v.row0 + v.rows; ++y)
        for (Index q = 0; q < v.w; ++q) worst = std::max(worst, static_cast<double>(std::abs(v(i, c, y, q) - u(i, c, y, q))));
  return worst;
}
}   // namespace
TEST_CASE("products give what plain loops give, on every kind of vectors, and rows of slabs the bits of the map's") {
  Index kinds = 0;
  for (const Vectors vectors : {Vectors::avx512, Vectors::avx2, Vectors::plain}) {
    if (vectors > machine_vectors()) continue;
    ++kinds;
    CAPTURE(vectors_name(vectors));
    const Index lanes = vector_block(vectors);
    for (const auto& [c, k, window, bias] :
         {std::tuple{Index{5}, Index{3}, Pair{2}, true}, {16, 32, Pair{2}, false}, {40, 70, Pair{3, 2}, true}, {70, 136, Pair{1, 4}, true}}) {
      CAPTURE(c);
      CAPTURE(k);
      const Problem problem(lanes, c, k, window, bias);
      const Range all{0, problem.node.out.h};
      const auto with = [&](int threads) {
        return [&, threads](const Operands<float>& o) {
          REQUIRE(host::TiledTranspose::serves(o, vectors));
          host::TiledTranspose::run(o, vectors, threads);
        };
      };
      const Passes map = problem.run(all, false, with(1));
      for (const Range out : {all, Range{0, 3}, Range{1, 6}, Range{3, 4}})
        for (const bool add : {false, true}) {
          const Passes ours = problem.run(out, add, with(1)), loops = problem.run(out, add, [](const Operands<float>&o) { host::run(o, 1); });
          CHECK(worst_of(ours.y, loops.y) < 2e-5);
          CHECK(worst_of(ours.dx, loops.dx) < 5e-5);
          CHECK(worst_of(ours.dw, loops.dw) < 5e-5);
          if (bias) CHECK(worst_of(ours.db, loops.db) < 5e-5);
          CHECK((ours.y.intact() && ours.dx.intact()));
          CHECK(same_bits(ours.y.view(), map.y.view(), out));
          const Passes more = problem.run(out, add, with(3));
          CHECK((same_bits(more.y.view(), ours.y.view(), out) && same_bits(more.dx.view(), ours.dx.view(), problem.reads(out))));
          CHECK((more.dw == ours.dw && (!bias || more.db == ours.db)));
        }
    }
  }
  CHECK(kinds > 0);
}
TEST_CASE("a filter's gradient over a million pixels is as exact as one over few") {
  // One accumulator of floats is a per cent off there.
  const Index rows = 1024, columns = 1000;
  for (const Vectors vectors : {Vectors::avx512, Vectors::avx2, Vectors::plain}) {
    if (vectors > machine_vectors()) continue;
    CAPTURE(vectors_name(vectors));
    const Index lanes = vector_block(vectors);
    const Node node =
        node_of({.kind = Kind::conv_transpose, .window = {.kernel = Pair{1, 2}, .stride = Pair{1, 2}}, .channels = lanes}, {1, lanes, rows, columns});
    const std::vector<float> x(static_cast<std::size_t>(rows * columns * lanes), 0.1f), dy(2 * x.size(), 1.f);
    std::vector<float> dw(static_cast<std::size_t>(2 * lanes * lanes)), db(static_cast<std::size_t>(lanes));
    std::vector<std::byte> memory(static_cast<std::size_t>(host::TiledTranspose::workspace_bytes(node, lanes)) + 64);
    Operands<float> o;
    o.node = &node, o.op = Op::backward_parameters;
    o.x = dense_view(x.data(), 1, lanes, Range{0, rows}, columns, lanes), o.dy = dense_view(dy.data(), 1, lanes, Range{0, rows}, 2 * columns, lanes);
    o.d_parameters[0] = dw.data(), o.d_parameters[1] = db.data();
    o.workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
    o.workspace_bytes = static_cast<Index>(memory.size()) - 64;
    REQUIRE(host::TiledTranspose::serves(o, vectors));
    host::TiledTranspose::run(o, vectors, 2);
    for (const float gradient : dw) CHECK(gradient == doctest::Approx(static_cast<double>(0.1f) * static_cast<double>(rows * columns)).epsilon(1e-4));
  }
}
TEST_CASE("products leave to others what they do not serve") {
  const Problem tiles(8, 16, 16, Pair{2}, true);
  Operands<float> o;
  o.node = &tiles.node;
  o.op = Op::forward;
  o.x = dense_view(static_cast<const float*>(nullptr), 2, 16, Range{0, 7}, 13, 8);
  o.y = dense_view(static_cast<float*>(nullptr), 2, 16, Range{0, 14}, 26, 8);
  o.workspace_bytes = host::TiledTranspose::workspace_bytes(tiles.node, 8);
  CHECK(host::TiledTranspose::serves(o, Vectors::plain));
  CHECK(!host::TiledTranspose::serves(o, Vectors::avx512));   // blocks of 16
  Operands<float> less = o;
  --less.workspace_bytes;
  CHECK(!host::TiledTranspose::serves(less, Vectors::plain));
  for (const auto& change : std::vector<void (*)(Layer&)>{[](Layer& l) { l.window.stride = 1; }, [](Layer& l) { l.window.pad = 1; },
                                                          [](Layer& l) { l.groups = 2; }, [](Layer& l) { l.kind = Kind::conv; }}) {
    Node other = tiles.node;
    change(other.layer);
    Operands<float> changed = o;
    changed.node = &other;
    CHECK(!host::TiledTranspose::serves(changed, Vectors::plain));
  }
}
