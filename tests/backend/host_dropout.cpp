// Dropout on slabs against the mask, element by element: any block, any threads, in place; what is not trained is passed on as it is.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE_TEMPLATE("a dropout multiplies by its mask, forward and backward, whatever the slab", T, double, float, bfloat16) {
  using A = master_t<T>;
  using enum Drop::Each;
  const RunKey run{11, 3, 2};
  for (const auto each : {element, channel, image})
    for (const double p : {0.0, 0.3})
      for (const Index channels : {1, 3, 16, 21})
        for (const Index block : {1, 8, 16, 3})
          for (const RunKey* key : {&run, static_cast<const RunKey*>(nullptr)}) {
            const Shape shape{3, channels, 5, 7};
            const Node node = node_of({.kind = Kind::dropout, .drop = {each, p}}, shape);
            const Map x = random_map(shape, 3);
            const DropMask mask(node.layer.drop, run, 6);
            const A factor = static_cast<A>(1 / (1 - p));
            Map wanted(shape);
            for (Index i = 0; i < 3; ++i)
              for (Index c = 0; c < channels; ++c)
                for (Index y = 0; y < 5; ++y)
                  for (Index q = 0; q < 7; ++q) {
                    const T v = static_cast<T>(static_cast<A>(x.at(i, c, y, q)));
                    const bool kept = key == nullptr || mask.keep(1 + i, c, y, q);
                    wanted.at(i, c, y, q) = !kept ? 0 : key && p > 0 ? static_cast<double>(T(static_cast<A>(v) * factor)) : static_cast<double>(v);
                  }
            for (const auto& cut : cuts_of(5))
              for (const Range rows : cut)
                for (const int threads : {1, 2}) {
                  Bench<T> b(node, block, block);
                  b.threads = threads;
                  const Slab<T> from(x, rows, block), to(shape, rows, block), both(x, rows, block);
                  Operands<T> o;
                  o.op = Op::forward;
                  o.run = key, o.layer = 6, o.first_image = 1;
                  o.x = from.view(), o.y = to.view();
                  b.run(o);
                  CHECK(to.difference(wanted) == 0);
                  o.x = both.view(), o.y = both.view();
                  b.run(o);
                  CHECK(both.difference(wanted) == 0);
                  Map masked(shape);   // rows that dy does not have get 0
                  for (Index i = 0; i < 3; ++i)
                    for (Index c = 0; c < channels; ++c)
                      for (Index y = rows.begin; y < rows.end; ++y)
                        for (Index q = 0; q < 7; ++q) masked.at(i, c, y, q) = wanted.at(i, c, y, q);
                  const Slab<T> dx(shape, {0, 5}, block);
                  o.op = Op::backward_data;
                  o.x = {}, o.y = {}, o.dy = from.view(), o.dx = dx.view();
                  b.run(o);
                  CHECK(dx.difference(masked) == 0);
                }
          }
}
