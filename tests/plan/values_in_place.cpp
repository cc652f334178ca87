// Norms and sums that write over what they read in the forward pass: which do, what that saves, and what stops them.
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include "plan/stage_order.hpp"
#include <doctest/doctest.h>
#include <algorithm>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr Window one{.kernel = 1, .pad = 0};
constexpr Index norms = 11, sums = 3;
constexpr Input in{2, 3, 24, 24};
/// Forward steps of a kind, of one pass, and how many of them write over their first input.
struct Count {
  Index all = 0, over = 0;
  friend bool operator==(const Count&, const Count&) = default;
};
Count count(const Plan& plan, Kind kind, Pass pass = Pass::forward) {
  Count found;
  for (const Step& s : plan.steps) {
    if (s.op != Op::forward || s.pass != pass || s.layer < 0 || plan.table.node(s.layer).layer.kind != kind || !s.y) continue;
    ++found.all;
    found.over += s.y.buffer == s.x.buffer && s.y.offset == s.x.offset;
  }
  return found;
}
template <class Net, class... Parts>
Plan checked(const PlanOptions& options = {}) {
  const Plan plan = make_plan(table_of<Net>(in), Policy<Parts..., Workspace<0>>::value, Target{}, options);
  const std::vector<std::string> problems = check_plan(plan);
  CHECK_MESSAGE(problems.empty(), (problems.empty() ? "" : problems.front()));
  return plan;
}
/// Bytes of so many channels of the map.
constexpr Index map_bytes(Index channels) { return in.n * channels * in.h * in.w * Index{sizeof(float)}; }
}   // namespace
TEST_CASE("norms and sums of a prediction write over what they read") {
  const Plan plan = checked<Bottlenecks, Column>(predicting);
  CHECK(count(plan, Kind::norm) == Count{norms, norms});
  CHECK(count(plan, Kind::sum) == Count{sums, sums});
  // A body's output over the convolution's, the skip connection, and the narrow map that the convolution reads; no third wide map.
  CHECK(plan.arena.lower_bound < 2 * map_bytes(16) + map_bytes(4) + 20'000);
  const Count slabs = count(checked<Bottlenecks, Overlap<4>>(predicting), Kind::sum);
  CHECK(slabs.all == 4 * sums);
  CHECK(slabs.over == slabs.all);
}
TEST_CASE("what is not kept is written over in the forward pass, and not where the backward pass reads it") {
  const auto over_again = [](const Plan& plan) { return count(plan, Kind::norm, Pass::recompute).over; };
  const auto first = [](const Plan& plan) { return count(plan, Kind::norm); };
  const Plan column = checked<Bottlenecks, Column, RecomputeAll, CheckpointAtSums<>>(),
             images = checked<Bottlenecks, ByImages<1>, RecomputeAll, CheckpointAtSums<>>(),
             passes = checked<Bottlenecks, OneExtraPass<Overlap<1, 4>>, RecomputeAll, CheckpointAtSums<>>();
  CHECK(first(column) == Count{norms, norms});
  CHECK(first(images) == Count{2 * norms, 2 * norms});
  CHECK(first(passes) == Count{norms + 3, norms - 1});   // the first section has no extra passes, and four slabs forward, too
  for (const Plan* plan : {&column, &images, &passes}) CHECK(over_again(*plan) == 0);
  // Norms read convolutions' outputs in the backward pass: these are kept.
  CHECK(first(checked<Bottlenecks, Column, KeepAll>()) == Count{norms, 0});
  CHECK(first(checked<Bottlenecks, Column, RecomputeCheap>()) == Count{norms, 0});
  // A pass that makes the input of a section above leaves nothing for the backward pass.
  for (const Plan& plan : {checked<Bottlenecks, RecomputeInput<Column>, RecomputeAll, CheckpointAtSums<>>(),
                           checked<Bottlenecks, RecomputeInputAlone<Column>, RecomputeAll, CheckpointAtSums<>>()}) {
    CHECK(first(plan) == Count{norms, norms});
    CHECK(over_again(plan) > 0);
  }
}
TEST_CASE("what passes for statistics read again is not written over") {
  using Net = Sequential<Conv<3>, ReLU, Residual<Sequential<Conv<2, one>, BatchNorm>, Conv<2, one>>, GroupNorm<2>, GlobalAvgPool, Linear<3>>;
  CHECK(count(checked<Net, OneExtraPassBothWays<Column>, CheckpointAt<"group_norm1">, RecomputeAll>(), Kind::norm).all == 3);
}
TEST_CASE("a forward pass that keeps nothing needs two wide maps") {
  const auto most = [](const Plan& plan) {   // of the forward pass
    Index first_loss = 0, bytes = 0;
    for (const Buffer& b : plan.buffers)
      if (b.role == Role::gradient) first_loss = first_loss == 0 ? b.first : std::min(first_loss, b.first);
    for (Index t = 0; t < first_loss; ++t) {
      Index live = 0;
      for (const Buffer& b : plan.buffers) live += b.first <= t && t < b.last ? b.bytes : 0;
      bytes = std::max(bytes, live);
    }
    return bytes;
  };
  // Inputs of sections are made again, so that only the last one's is kept beside what runs.
  const Plan plan = checked<Bottlenecks, RecomputeInput<Column>, RecomputeAll, CheckpointAtSums<>>();
  CHECK(most(plan) < 2 * map_bytes(16) + 2 * map_bytes(4) + 30'000);
}
TEST_CASE("a tensor that something else reads is not written over") {
  // The convolution's output goes to a norm and past it.
  using Past = Sequential<Conv<8>, Residual<Sequential<BatchNorm, ReLU, Conv<8>>>, GlobalAvgPool, Linear<2>>;
  CHECK(count(checked<Past, Column>(predicting), Kind::norm) == Count{1, 0});
  CHECK(count(checked<Past, Column, RecomputeAll>(), Kind::norm) == Count{1, 0});
  // The network's input belongs to the program. The convolution writes to the place of the network's output, and the second norm over it.
  CHECK(count(checked<Sequential<BatchNorm, Conv<8>, BatchNorm>, Column>(predicting), Kind::norm) == Count{2, 1});
}
TEST_CASE("the checker finds a norm that writes over what the backward pass reads") {
  Plan plan = checked<Bottlenecks, Column, KeepAll>();
  for (Step& s : plan.steps)
    if (s.op == Op::forward && s.layer >= 0 && plan.table.node(s.layer).layer.kind == Kind::norm) {
      s.y.buffer = s.x.buffer, s.y.offset = s.x.offset;
      break;
    }
  CHECK_FALSE(check_plan(plan).empty());
}
TEST_CASE("the checker finds a gradient that is written over that of other rows") {
  // A loop on a device goes through all elements at once, so what it writes in place has to lie where the same element was read.
  using Net = Sequential<Conv<4>, Sigmoid, Conv<4>, GlobalAvgPool, Linear<2>>;
  Plan plan = checked<Net, Overlap<4>>();
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) {
    return s.op == Op::backward_data && s.dy && s.dx.buffer == s.dy.buffer && s.dx.offset == s.dy.offset && s.dx.rows.begin > 0;
  });
  REQUIRE(step != plan.steps.end());
  CHECK(step->dx.held_rows == step->dy.held_rows);
  for (Range* const rows : {&step->dx.rows, &step->dx.held_rows}) --rows->begin, --rows->end;
  const std::vector<std::string> problems = check_plan(plan);
  REQUIRE_FALSE(problems.empty());
  CHECK(problems.front().ends_with("(backward_data sigmoid1, stage 0, slab 3): writes over what it reads or uses"));
}
