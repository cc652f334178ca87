// Copy, add and zero between pieces that hold different rows; the helpers that loops are made of.
#include "host_case.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("rows are copied, added and zeroed by their absolute index, and nothing else is touched") {
  for (const Index block : {1, 8, 16})
    for (const int threads : {1, 3})
      for (const Range wanted : {Range{2, 5}, Range{2, 3}, Range{4, 4}}) {
        const Shape shape{2, 19, 9, 5};
        Map a = random_map(shape, 1), b = random_map(shape, 2);
        for (Map* map : {&a, &b})
          for (double& e : map->value) e = static_cast<float>(e);
        const Slab<float> from(a, {1, 7}, block, 2);   // more rows than are wanted
        const auto run = [&](Op op, const View<float>& y) {
          Operands<float> o;
          o.op = op;
          if (op != Op::zero) o.x = from.view();
          o.y = y;
          host::run(o, threads);
        };
        const Slab<float> copied(shape, wanted, block, 3);
        run(Op::copy, copied.view());
        CHECK(copied.difference(a) == 0);
        const Slab<float> added(b, wanted, block, 0);
        run(Op::add, added.view());
        Map sum = a;
        for (std::size_t i = 0; i < sum.value.size(); ++i) sum.value[i] = static_cast<float>(a.value[i]) + static_cast<float>(b.value[i]);
        CHECK(added.difference(sum) == 0);
        const Slab<float> zeroed(shape, wanted, block, 1);
        run(Op::zero, zeroed.view());
        CHECK(zeroed.difference(Map(shape)) == 0);
      }
}
TEST_CASE("taps and outputs agree with the one formula, and with each other") {
  for (Index kernel = 1; kernel <= 4; ++kernel)
    for (Index stride = 1; stride <= 5; ++stride)
      for (Index dilation = 1; dilation <= 3; ++dilation)
        for (Index begin = 0; begin <= 5; ++begin)
          for (Index end = 0; end <= 2; ++end)
            for (Index extent = 1; extent <= 7; ++extent) {
              const Axis axis{kernel, stride, begin, end, dilation};
              const Index outputs = out_extent(axis, extent);
              bool good = true;
              for (Index out = 0; out < outputs; ++out)
                for (Index tap = 0; tap < kernel; ++tap) {
                  const Index at = out * stride - begin + tap * dilation;
                  const bool inside = 0 <= at && at < extent;
                  good = good && tap_position(axis, out, tap) == at;
                  good = good && taps_inside(axis, out, extent).contains({tap, tap + 1}) == inside;
                  good = good && host::outputs_inside(axis, tap, extent, outputs).contains({out, out + 1}) == inside;
                  if (inside) good = good && host::output_reading(axis, at, tap, {0, outputs}) == out;
                }
              for (Index at = 0; at < extent; ++at)
                for (Index tap = 0; tap < kernel; ++tap) {
                  const Index out = host::output_reading(axis, at, tap, {1, outputs});
                  good = good && (out == -1 || (out >= 1 && out < outputs));
                  good = good && (out == -1 || tap_position(axis, out, tap) == at);
                }
              CHECK(good);
            }
}
TEST_CASE("loops visit every piece once, whatever the number of threads") {
  for (const int threads : {0, 1, 2, 5}) {
    std::vector<int> seen(97, 0);
    host::parallel_for(97, threads, [&](Index i) { ++seen[static_cast<std::size_t>(i)]; });
    CHECK(seen == std::vector<int>(97, 1));
    const Slab<float> slab({3, 33, 50, 40}, {5, 45}, 16);
    std::vector<int> rows(3 * 3 * 40, 0);
    host::for_rows(slab.view(), threads, [&](Index i, Index b, Index y) { ++rows[static_cast<std::size_t>((i * 3 + b) * 40 + y - 5)]; });
    CHECK(rows == std::vector<int>(rows.size(), 1));
    host::for_row_groups(slab.view(), threads, [&](Index i, Index b, Range group) {
      for (Index y = group.begin; y < group.end; ++y) ++rows[static_cast<std::size_t>((i * 3 + b) * 40 + y - 5)];
    });
    CHECK(rows == std::vector<int>(rows.size(), 2));
  }
  CHECK(host::useful_threads(0, 4) == 1);
  CHECK(host::useful_threads(1 << 30, 4) == 4);
  CHECK(host::useful_threads(1 << 30, 0) == 1);
}
TEST_CASE("lanes cover a storage block in order") {
  for (const Index block : {1, 2, 8, 16, 5}) {
    Index next = 0;
    host::for_lanes(block, [&](auto lanes, Index lane) {
      CHECK(lane == next);
      next += lanes;
    });
    CHECK(next == block);
  }
}
