// Moving and converting rows.
#include "loops_case.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE_TEMPLATE("rows are copied, added and zeroed by their absolute index, and nothing else is touched", T, float, double, float16, bfloat16) {
  for (const Index c : {1, 3, 8, 19})
    for (const Index n : {1, 2})
      for (const Index hidden : {0, 2})
        for (const Range wanted : {Range{2, 5}, Range{2, 3}, Range{4, 4}}) {
          const Shape shape{n, c, 9, 5};
          const Map a = as<T>(random_map(shape, 1)), b = as<T>(random_map(shape, 2));
          const Slab<T> from(a, {1, 7}, c, hidden);   // more rows than are wanted
          const auto run = [&](Op op, const View<T>& y) {
            Operands<T> o;
            o.op = op;
            if (op != Op::zero) o.x = from.view();
            o.y = y;
            REQUIRE(loops::covers(o));
            loops::run(on_host, o);
          };
          const Slab<T> copied(shape, wanted, c, hidden), zeroed(shape, wanted, c, hidden);
          run(Op::copy, copied.view());
          CHECK(copied.difference(a) == 0);
          run(Op::zero, zeroed.view());
          CHECK(zeroed.difference(Map(shape)) == 0);
          const Slab<T> added(b, wanted, c, hidden);
          run(Op::add, added.view());
          Map sum = a;
          for (std::size_t i = 0; i < sum.value.size(); ++i)
            sum.value[i] = static_cast<double>(static_cast<T>(static_cast<master_t<T>>(b.value[i]) + static_cast<master_t<T>>(a.value[i])));
          CHECK(added.difference(sum) == 0);
        }
}
TEST_CASE_TEMPLATE("rows are converted between layouts and element types, and scaled", T, float, double, float16, bfloat16) {
  for (const Index c : {1, 3, 8})
    for (const Range rows : {Range{0, 5}, Range{2, 4}, Range{3, 3}})
      for (const double scale : {1.0, 0.25, 1.0 / 255})
        for (const bool from_planes : {true, false})
          for (const bool to_planes : {true, false}) {
            const Shape shape{2, c, 5, 3};
            const Map a = as<float>(random_map(shape, 4));
            Map scaled = a;
            for (double& e : scaled.value) e = static_cast<double>(static_cast<T>(static_cast<float>(scale) * static_cast<float>(e)));
            const Slab<float> from(a, {0, 5}, from_planes ? 1 : c);
            const Slab<T> to(shape, rows, to_planes ? 1 : c);
            loops::convert_rows(on_host, from.view(), to.view(), scale);
            CHECK(to.difference(scaled) == 0);
            const Slab<float> back(shape, rows, from_planes ? 1 : c);
            loops::convert_rows(on_host, to.view(), back.view());
            CHECK(back.difference(scaled) <= (sizeof(T) == 8 ? 1e-7 : 0));
          }
}
TEST_CASE("run covers every step but convolutions, fully connected layers, custom ones without loops for a device, loads and losses") {
  Node node;
  Operands<float> o;
  for (const Op op : {Op::load, Op::copy, Op::add, Op::zero, Op::pack_forward, Op::pack_backward, Op::forward, Op::backward_data,
                      Op::backward_parameters, Op::loss})
    for (const Kind kind :
         {Kind::conv, Kind::activation, Kind::max_pool, Kind::avg_pool, Kind::global_avg_pool, Kind::flatten, Kind::linear, Kind::custom}) {
      const bool moves = op == Op::copy || op == Op::add || op == Op::zero;
      const bool pass = op == Op::forward || op == Op::backward_data;
      const bool ours = kind != Kind::conv && kind != Kind::linear && kind != Kind::custom;
      node.layer.kind = kind;
      o.op = op;
      o.node = moves ? nullptr : &node;
      CHECK(loops::covers(o) == (moves || (pass && ours)));
    }
}
