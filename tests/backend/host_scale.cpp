// Maps times vectors on slabs against the formulas, any block, any threads; sums over slabs give those over the map.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE_TEMPLATE("a scale multiplies channels, and sends its gradient to map and factors", T, double, float, bfloat16) {
  using A = master_t<T>;
  const double exact = sizeof(T) == 8 ? 1e-13 : sizeof(T) == 4 ? 1e-5 : 0.2;
  for (const Index channels : {1, 3, 16, 21})
    for (const Index w : {1, 5, 17})
      for (const Index block : {1, 8, 16, 3})
        for (const int threads : {1, 2}) {
          const Shape in{2, channels, 5, w}, vector{2, channels, 1, 1};
          const Node node{.layer = {.kind = Kind::scale}, .other = 1, .in = in, .in2 = vector, .out = in};
          Bench<T> b(node, block, block);
          b.threads = threads;
          const auto rounded = [](Map map) {
            for (double& v : map.value) v = static_cast<double>(T(v));
            return map;
          };
          const Map x = rounded(random_map(in, 3)), s = rounded(random_map(vector, 4)), dy = rounded(random_map(in, 5));
          Map y(in), dx(in);
          const auto times = [](double a, double f) { return static_cast<double>(T(static_cast<A>(a) * static_cast<A>(f))); };
          for (Index i = 0; i < 2; ++i)
            for (Index c = 0; c < channels; ++c)
              for (Index row = 0; row < 5; ++row)
                for (Index q = 0; q < w; ++q) {
                  y.at(i, c, row, q) = times(x.at(i, c, row, q), s.at(i, c, 0, 0));
                  dx.at(i, c, row, q) = times(dy.at(i, c, row, q), s.at(i, c, 0, 0));
                }
          const Slab<T> map(x, {0, 5}, block), factors(s, {0, 1}, block, 0);
          for (const auto& cut : cuts_of(5)) {
            Map sums(vector);
            std::vector<double> kept(static_cast<std::size_t>(2 * channels), std::nan(""));
            const Slab<T> so_far(vector, {0, 1}, block, 0);
            for (const Range rows : cut) {
              const Slab<T> to(in, rows, block), down(dy, rows, block), to_map(in, {0, 5}, block), to_factors(vector, {0, 1}, block, 0);
              Operands<T> o;
              o.op = Op::forward;
              o.x = map.view(), o.other = factors.view(), o.y = to.view();
              b.run(o);
              CHECK(to.difference(y) == 0);
              Map own(in), part(vector);
              for (Index i = 0; i < 2; ++i)
                for (Index c = 0; c < channels; ++c) {
                  for (Index row = rows.begin; row < rows.end; ++row)
                    for (Index q = 0; q < w; ++q) {
                      own.at(i, c, row, q) = dx.at(i, c, row, q);
                      part.at(i, c, 0, 0) += dy.at(i, c, row, q) * x.at(i, c, row, q);
                    }
                  sums.at(i, c, 0, 0) += part.at(i, c, 0, 0);
                }
              o = {};
              o.op = Op::backward_data;
              o.dy = down.view(), o.other = factors.view(), o.dx = to_map.view();
              b.run(o);
              CHECK(to_map.difference(own) == 0);
              o.operand = 1, o.other = {}, o.x = map.view(), o.dx = to_factors.view();
              b.run(o);
              CHECK(to_factors.difference(part) <= exact);
              o.sums = kept.data(), o.accumulate = rows.begin > 0, o.dx = so_far.view();   // and with what slabs before have sent
              b.run(o);
              CHECK(worst(sums.value, kept) < 1e-13);
            }
            for (Index i = 0; i < 2; ++i)
              for (Index c = 0; c < channels; ++c)
                CHECK(so_far.view()(i, c, 0, 0) == static_cast<T>(static_cast<A>(kept[static_cast<std::size_t>(i * channels + c)])));
            Map whole(vector);
            for (Index i = 0; i < 2; ++i)
              for (Index c = 0; c < channels; ++c)
                for (Index row = 0; row < 5; ++row)
                  for (Index q = 0; q < w; ++q) whole.at(i, c, 0, 0) += dy.at(i, c, row, q) * x.at(i, c, row, q);
            CHECK(worst(whole.value, sums.value) < 1e-13);
          }
        }
}
TEST_CASE("factors' gradients over many slabs in bfloat16 are as exact as over one") {
  // Each slab sends 1/64; a sum that is rounded to eight bits at each would stop at 4.
  const Shape in{1, 16, 1000, 8}, vector{1, 16, 1, 1};
  const Node node{.layer = {.kind = Kind::scale}, .other = 1, .in = in, .in2 = vector, .out = in};
  const std::vector<bfloat16> ones(static_cast<std::size_t>(in.count()), bfloat16(1.0f)), small(ones.size(), bfloat16(1.0f / 512));
  const Slab<bfloat16> dx(vector, {0, 1}, 16, 0);
  std::vector<double> sums(16);
  for (Index row = 0; row < in.h; ++row) {
    Operands<bfloat16> o;
    o.op = Op::backward_data, o.node = &node, o.operand = 1, o.accumulate = row > 0, o.sums = sums.data();
    o.x = dense_view(ones.data(), 1, 16, {0, in.h}, in.w, 16), o.dx = dx.view();
    o.dy = dense_view(small.data(), 1, 16, {0, in.h}, in.w, 16).slice({row, row + 1});
    host::run(o);
  }
  CHECK(static_cast<double>(dx.view()(0, 3, 0, 0)) == static_cast<double>(bfloat16(1000.0f / 64)));
}
