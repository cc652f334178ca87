// Upsampling against its formulas, whole and in slabs; which rows it reads and who reads a row.
#include "host_case.hpp"
#include <lrcnn/shape/upsampling.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Rule = Upsampling::Rule;
const std::array rules{Rule::nearest, Rule::bilinear, Rule::bilinear_corners};
Node upsampling(Rule rule, Pair factor, const Shape& in) {
  Layer layer{.kind = Kind::upsample};
  layer.upsampling = {rule, factor};
  return {.layer = layer, .in = in, .out = {in.n, in.c, in.h * factor.h, in.w * factor.w}};
}
/// Weight of input position `in` in output position `out`, as the formula of Upsampling says.
double weight(Rule rule, Index factor, Index extent, Index out, Index in) {
  const double p = static_cast<double>(out), u = static_cast<double>(factor), last = static_cast<double>(extent - 1);
  if (rule == Rule::nearest) return out / factor == in ? 1 : 0;
  const double steps = u * static_cast<double>(extent) - 1;
  double s = rule == Rule::bilinear ? (p + 0.5) / u - 0.5 : steps > 0 ? p * last / steps : 0;
  s = std::clamp(s, 0.0, last);   // borders repeated
  return std::max(0.0, 1 - std::abs(s - static_cast<double>(in)));
}
/// Calls f(image, channel, output row, output column, input row, input column, weight) where the weight is not 0.
template <class F>
void each_pair(const Node& n, F f) {
  const Upsampling& u = n.layer.upsampling;
  for (Index p = 0; p < n.out.h; ++p)
    for (Index h = 0; h < n.in.h; ++h) {
      const double row = weight(u.rule, u.factor.h, n.in.h, p, h);
      if (row == 0) continue;
      for (Index q = 0; q < n.out.w; ++q)
        for (Index w = 0; w < n.in.w; ++w) {
          const double both = row * weight(u.rule, u.factor.w, n.in.w, q, w);
          if (both == 0) continue;
          for (Index i = 0; i < n.in.n; ++i)
            for (Index c = 0; c < n.in.c; ++c) f(i, c, p, q, h, w, both);
        }
    }
}
}   // namespace
TEST_CASE("which positions are read, and by whom, follows from the formula, and grows with the position") {
  for (const Rule rule : rules)
    for (const Index factor : {1, 2, 3, 4, 5, 8, 70})
      for (Index extent = 1; extent <= 12; ++extent) {
        const Upsampling u{rule, {factor, 1}};
        std::vector<Range> readers(static_cast<std::size_t>(extent));
        for (Index out = 0; out < factor * extent; ++out) {
          const Range r = upsampled_from(u, true, out, extent);
          const Interpolation at = upsampled_at(u, true, out, extent);
          CHECK((0 <= r.begin && r.end <= extent && r.size() <= 2 && !r.empty()));
          CHECK((at.second == at.first) == (at.weight == 0));
          for (Index in = 0; in < extent; ++in) {
            const double got = (at.first == in ? 1 - at.weight : 0) + (at.second == in ? at.weight : 0);
            CHECK(std::abs(got - weight(rule, factor, extent, out, in)) < 1e-13);
            if (!r.contains({in, in + 1})) continue;
            Range& reader = readers[static_cast<std::size_t>(in)];
            reader = hull(reader, {out, out + 1});
          }
          const Range before = upsampled_from(u, true, std::max<Index>(0, out - 1), extent);
          CHECK((before.begin <= r.begin && before.end <= r.end));
          CHECK(upsampled_from(u, true, {0, out + 1}, extent) == Range{0, r.end});
        }
        for (Index in = 0; in < extent; ++in) {
          const Range wanted = readers[static_cast<std::size_t>(in)], got = upsampled_to(u, true, in, extent);
          CHECK(wanted == got);
        }
      }
  static_assert(upsampled_at({Rule::bilinear, 2}, true, 2, 4) == Interpolation{0, 1, 0.75});
}
TEST_CASE_TEMPLATE("upsampling follows its formula forward and backward, whole and in slabs", T, double, float, bfloat16) {
  const double limit = sizeof(T) == 8 ? 1e-13 : sizeof(T) == 4 ? 1e-5 : 4e-2;
  for (const Rule rule : rules)
    for (const Pair factor : {Pair{2}, Pair{3, 1}, Pair{1, 4}})
      for (const Shape& in : {Shape{2, 5, 4, 7}, Shape{1, 20, 1, 1}, Shape{1, 3, 3, 40}})
        for (const Index block : {1, 8, 16, 3}) {
          CAPTURE(to_string(in));
          CAPTURE(block);
          Bench<T> b(upsampling(rule, factor, in), block, block);
          const Map x = random_map(in, 3), dy = random_map(b.node.out, 4);
          Map y(b.node.out);
          each_pair(b.node,
                    [&](Index i, Index c, Index p, Index q, Index h, Index w, double share) { y.at(i, c, p, q) += share * x.at(i, c, h, w); });
          const auto forward = [&](Range rows, int threads) {
            b.threads = threads;
            const Range reads = upsampled_from(b.node.layer.upsampling, true, rows, in.h);
            const Slab<T> from(x, reads, block);
            Slab<T> to(b.node.out, rows, block);
            Operands<T> o;
            o.op = Op::forward;
            o.x = from.view(), o.y = to.view();
            b.run(o);
            return to;
          };
          const auto backward = [&](Range out, Range rows, int threads) {
            b.threads = threads;
            const Slab<T> from(dy, out, block);
            Slab<T> to(in, rows, block);
            Operands<T> o;
            o.op = Op::backward_data;
            o.dy = from.view(), o.dx = to.view();
            b.run(o);
            return to;
          };
          const Slab<T> whole = forward({0, b.node.out.h}, 1);
          CHECK(whole.difference(y) <= limit);
          CHECK(same_bits(whole.view(), forward({0, b.node.out.h}, 2).view(), {0, b.node.out.h}));
          for (const auto& cut : cuts_of(b.node.out.h)) {
            for (const Range rows : cut) {
              CHECK(same_bits(whole.view(), forward(rows, 1).view(), rows));
              Map dx(in);
              each_pair(b.node, [&](Index i, Index c, Index p, Index q, Index h, Index w, double share) {
                if (rows.contains({p, p + 1})) dx.at(i, c, h, w) += share * dy.at(i, c, p, q);
              });
              const Slab<T> all = backward(rows, {0, in.h}, 1);
              CHECK(all.difference(dx) <= limit * 20);
              CHECK(same_bits(all.view(), backward(rows, {0, in.h}, 2).view(), {0, in.h}));
              CHECK(same_bits(all.view(), backward(rows, {in.h / 2, in.h}, 1).view(), {in.h / 2, in.h}));
            }
          }
        }
}
TEST_CASE("nearest takes values as they are; a factor above 64 works too") {
  const Bench<float> b(upsampling(Rule::nearest, 70, {1, 2, 2, 2}), 8, 8);
  Map x = random_map(b.node.in, 3);
  x.at(0, 1, 0, 1) = std::numeric_limits<double>::infinity();
  const Slab<float> from(x, {0, 2}, 8), to(b.node.out, {0, 140}, 8), dx(b.node.in, {0, 2}, 8);
  Operands<float> o;
  o.op = Op::forward;
  o.x = from.view(), o.y = to.view();
  b.run(o);
  bool same = to.intact();
  for (Index c = 0; c < 2; ++c)
    for (Index p = 0; p < 140; ++p)
      for (Index q = 0; q < 140; ++q) same = same && to.view()(0, c, p, q) == from.view()(0, c, p / 70, q / 70);
  CHECK(same);
  Map ones(b.node.out), counts(b.node.in);
  std::fill(ones.value.begin(), ones.value.end(), 1.0);
  std::fill(counts.value.begin(), counts.value.end(), 4900.0);
  const Slab<float> down(ones, {0, 140}, 8);
  o = {};
  o.op = Op::backward_data;
  o.dy = down.view(), o.dx = dx.view();
  b.run(o);
  CHECK(dx.difference(counts) == 0);
}
