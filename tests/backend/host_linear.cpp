// Flatten and linear against their formulas, in every pair of blocks; cutting the batch changes no bit.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const std::vector<std::pair<Index, Index>> blocks{{1, 1}, {16, 16}, {1, 16}, {16, 1}, {8, 8}};
Map image(const Map& x, Index i) {
  Map one({1, x.shape.c, x.shape.h, x.shape.w});
  for (std::size_t e = 0; e < one.value.size(); ++e) one.value[e] = x.value[static_cast<std::size_t>(i) * one.value.size() + e];
  return one;
}
}   // namespace
TEST_CASE("flatten is NCHW order in any storage, and back") {
  for (const auto& [xb, yb] : blocks)
    for (const Shape in : {Shape{2, 3, 4, 5}, Shape{1, 17, 1, 1}, Shape{3, 16, 2, 2}, Shape{1, 1, 1, 7}}) {
      const Bench<double> b(node_of({.kind = Kind::flatten}, in), xb, yb);
      const Map x = random_map(in, 1);
      Map y(b.node.out);
      y.value = x.value;
      const Slab<double> from(x, {0, in.h}, xb);
      Slab<double> to(y.shape, {0, 1}, yb, 0);
      Operands<double> o;
      o.op = Op::forward;
      o.x = from.view();
      o.y = to.view();
      b.run(o);
      CHECK(to.difference(y) == 0);
      const Slab<double> down(y, {0, 1}, yb, 0);
      Slab<double> back(in, {0, in.h}, xb);
      o = {};
      o.op = Op::backward_data;
      o.dy = down.view();
      o.dx = back.view();
      b.run(o);
      CHECK(back.difference(x) == 0);
    }
}
TEST_CASE_TEMPLATE("linear follows its formula, forward and backward, accumulated or written", T, float, double) {
  const double limit = sizeof(T) == 8 ? 1e-12 : 1e-4;
  for (const auto& [xb, yb] : blocks)
    for (const bool bias : {false, true})
      for (const Index features : {1, 5, 16, 33, 100})
        for (const Index outputs : {1, 10, 17}) {
          const Shape in{3, features, 1, 1};
          Bench<T> b(node_of({.kind = Kind::linear, .channels = outputs, .bias = bias}, in), xb, yb);
          for (auto& p : b.parameters)
            for (double& e : p) e = static_cast<double>(static_cast<T>(e));
          const Map x = random_map(in, 1), dy = random_map(b.node.out, 2);
          Map y(b.node.out), dx(in);
          std::vector<double> dw(b.parameters[0].size()), db(static_cast<std::size_t>(outputs));
          for (Index i = 0; i < 3; ++i)
            for (Index k = 0; k < outputs; ++k) {
              if (bias) y.at(i, k, 0, 0) = b.parameters[1][static_cast<std::size_t>(k)];
              db[static_cast<std::size_t>(k)] += dy.at(i, k, 0, 0);
              for (Index f = 0; f < features; ++f) {
                const auto at = static_cast<std::size_t>(k * features + f);
                y.at(i, k, 0, 0) += b.parameters[0][at] * x.at(i, f, 0, 0);
                dx.at(i, f, 0, 0) += b.parameters[0][at] * dy.at(i, k, 0, 0);
                dw[at] += dy.at(i, k, 0, 0) * x.at(i, f, 0, 0);
              }
            }
          // Feature vectors have one row and nothing above or below it.
          const Slab<T> from(x, {0, 1}, xb, 0), down(dy, {0, 1}, yb, 0);
          Slab<T> to(y.shape, {0, 1}, yb, 0), back(in, {0, 1}, xb, 0);
          Operands<T> o;
          o.op = Op::forward;
          o.x = from.view();
          o.y = to.view();
          b.run(o);
          CHECK(to.difference(y) < limit);
          o = {};
          o.op = Op::backward_data;
          o.dy = down.view();
          o.dx = back.view();
          b.run(o);
          CHECK(back.difference(dx) < limit);
          std::vector<std::vector<T>> g;
          for (const auto& p : b.parameters) g.emplace_back(p.size(), std::numeric_limits<T>::quiet_NaN());
          o = {};
          o.op = Op::backward_parameters;
          o.x = from.view();
          o.dy = down.view();
          b.run(o, &g);
          CHECK(worst(dw, {g[0].begin(), g[0].end()}) < limit);
          if (bias) CHECK(worst(db, {g[1].begin(), g[1].end()}) < limit);
          // Image by image: forward has the same bits, and so have gradients that are added up.
          std::vector<std::vector<T>> sums = g;
          for (Index i = 0; i < 3; ++i) {
            const Slab<T> x1(image(x, i), {0, 1}, xb, 0), dy1(image(dy, i), {0, 1}, yb, 0);
            Slab<T> y1({1, outputs, 1, 1}, {0, 1}, yb, 0);
            o = {};
            o.op = Op::forward;
            o.x = x1.view();
            o.y = y1.view();
            b.run(o);
            View<T> here = to.view();
            here.data += i * here.stride_n;
            here.n = 1;
            CHECK(same_bits(y1.view(), here, {0, 1}));
            o = {};
            o.op = Op::backward_parameters;
            o.accumulate = i > 0;
            o.x = x1.view();
            o.dy = dy1.view();
            b.run(o, &sums);
          }
          CHECK(sums == g);
        }
}
