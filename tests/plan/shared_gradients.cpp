// Sums whose inputs get one gradient, with GradientsInPlace: which have, what that saves, and that the checker finds what would spoil it.
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/plan/peak.hpp>
#include "exec/user_layers.hpp"
#include "plan/stage_order.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr Window one{.kernel = 1, .pad = 0};
bool is(const Plan& plan, const Step& s, Op op, Kind kind) { return s.op == op && s.layer >= 0 && plan.table.node(s.layer).layer.kind == kind; }
/// Steps of norms that write their gradient over what the norm read.
Index over_values(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [&](const Step& s) { return is(plan, s, Op::backward_data, Kind::norm) && s.dx.buffer == s.x.buffer; });
}
/// Steps of sums that make a copy.
Index copies(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [&](const Step& s) { return is(plan, s, Op::backward_data, Kind::sum) && s.dx.buffer != s.dy.buffer; });
}
template <class... Parts>
Plan blocks(const Input& in = small_input) {
  const Plan plan = plan_of<Bottlenecks, Parts...>(in);
  CHECK(check_plan(plan).empty());
  return plan;
}
}   // namespace
TEST_CASE("the gradient of a sum is that of both of its inputs") {
  const auto check = [](const Plan& usual, const Plan& shared) {
    CHECK(over_values(usual) == 0);
    CHECK(over_values(shared) == 4);   // of the norms at the ends of three bodies and a projection
    CHECK(copies(usual) == 3);
    CHECK(copies(shared) == 0);
    CHECK(shared.steps.size() == usual.steps.size() - 3);
  };
  check(blocks<Column>(), blocks<Column, GradientsInPlace>());
  const Plan usual = blocks<CheckpointAtSums<>, RecomputeAll>(), shared = blocks<CheckpointAtSums<>, RecomputeAll, GradientsInPlace>();
  check(usual, shared);
  const Index map = small_input.n * 16 * small_input.h * small_input.w * 4;
  CHECK(usual.peak_bytes() - shared.peak_bytes() > map / 2);   // the peak lies elsewhere then
  using Usual = Policy<CheckpointAtSums<>, RecomputeAll, Workspace<0>>;
  using Shared = Policy<CheckpointAtSums<>, RecomputeAll, GradientsInPlace, Workspace<0>>;
  static_assert(peak_bytes<Bottlenecks, Shared>(small_input) < peak_bytes<Bottlenecks, Usual>(small_input));
  CHECK(peak_bytes<Bottlenecks, Shared>(small_input) == shared.peak_bytes());
}
TEST_CASE("inputs of a sum have gradients of their own where slabs cut the sum's stage or the one below it, or norms lie in other sections") {
  CHECK(over_values(blocks<Overlap<2>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>()) == 0);
  CHECK(over_values(blocks<ByImages<1>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>()) == 0);
  CHECK(over_values(blocks<ExtraPasses<>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>()) == 0);
  // The last convolution of the first block ends a section.
  CHECK(over_values(blocks<CheckpointAt<"conv4">, GradientsInPlace>()) == 3);
}
TEST_CASE("all groups of images share gradients or none does, though the last one may have fewer images") {
  using Grouped = Sequential<Conv<8>, ReLU, Residual<Sequential<Conv<8>, GroupNorm<2>>>, ReLU, Residual<Sequential<Conv<8>, GroupNorm<2>>>, ReLU,
                             Conv<8>, ReLU, GlobalAvgPool, Linear<2>>;
  for (const Index batch : {3, 4, 5}) {
    CAPTURE(batch);
    const Input input{batch, 3, 24, 16};
    const Plan cut = plan_of<Grouped, Images<2>, ByImages<1>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>(input);
    CHECK(check_plan(cut).empty());
    CHECK(over_values(cut) == 0);
    const Plan whole = plan_of<Grouped, Images<2>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>(input);
    CHECK(check_plan(whole).empty());
    CHECK(over_values(whole) == 2 * ceil_div(batch, 2));
  }
}
TEST_CASE("what reads a skip connection besides adds to the gradient later, or forbids that there is one") {
  // Both inputs are maps to which other layers add.
  using Twice = Sequential<Conv<8>, ReLU, Residual<Sequential<Conv<8>, ReLU>>, ReLU, Conv<8>, BatchNorm, ReLU, GlobalAvgPool, Linear<2>>;
  const Plan twice = plan_of<Twice, Column, GradientsInPlace>();
  CHECK(check_plan(twice).empty());
  CHECK(over_values(twice) == 0);
  // What the norm reads is read by another layer, too.
  using Read = Sequential<Conv<8>, ReLU, Residual<Sequential<Conv<8>, Residual<Sequential<BatchNorm>>>>, ReLU, GlobalAvgPool, Linear<2>>;
  const Plan read = plan_of<Read, Column, GradientsInPlace>();
  CHECK(check_plan(read).empty());
  CHECK(over_values(read) == 0);
}
TEST_CASE("a sum that is not the first to give its input a gradient adds to it") {
  // The map of relu1 goes to both sums.
  using Inner = Residual<Sequential<Conv<8>, BatchNorm>>;
  using Nested = Sequential<Conv<8>, ReLU, Residual<Sequential<Inner, ReLU, Conv<8>, BatchNorm>>, ReLU, GlobalAvgPool, Linear<2>>;
  for (const Plan& plan : {plan_of<Nested, Column, GradientsInPlace>(), plan_of<Nested, CheckpointAt<"relu2">, RecomputeAll, GradientsInPlace>()}) {
    CHECK(check_plan(plan).empty());
    CHECK(over_values(plan) == 1);
  }
}
TEST_CASE("a map that its own layer reads again is not written over") {
  using Own = Sequential<Conv<8>, ReLU, Residual<Sequential<Conv<8>, Tanh, BatchNorm>>, ReLU, GlobalAvgPool, Linear<2>>;
  using Others = Sequential<Conv<8>, ReLU, Residual<Sequential<Conv<8>, ReLU, BatchNorm>>, ReLU, GlobalAvgPool, Linear<2>>;
  const Plan own = plan_of<Own, Column, GradientsInPlace>(), others = plan_of<Others, Column, GradientsInPlace>();
  for (const Plan* plan : {&own, &others}) CHECK(check_plan(*plan).empty());
  CHECK(over_values(own) == 0);
  CHECK(over_values(others) == 1);   // mask bits tell the sign
}
namespace {
/// Of a norm: whether one step turns all rows of its gradient into its input's, in their place, before the stage below goes backward; and whether the
/// values of its input are gone by then.
struct NormBackward {
  bool whole = false, values_gone = false;
};
NormBackward norm_backward(const Plan& plan, std::string_view norm) {
  CHECK(check_plan(plan).empty());
  const auto is_norm = [&](const Step& s) { return s.op == Op::backward_data && plan.table.node(s.layer).layer.name.view() == norm; };
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(), is_norm);
  REQUIRE(step != plan.steps.end());
  const Index below = step->dx.tensor - 1;   // the layer that makes the norm's input
  const auto next = std::find_if(step, plan.steps.end(), [&](const Step& s) { return s.op == Op::backward_data && s.layer == below; });
  REQUIRE(next != plan.steps.end());
  NormBackward found;
  found.whole =
      step->dx.buffer == step->dy.buffer && step->dx.rows == Range{0, plan.table.shape(below + 1).h} && step->dx.images == step->dx.held_images;
  const Index time = step_times(plan)[static_cast<std::size_t>(next - plan.steps.begin())];
  found.values_gone = std::none_of(plan.buffers.begin(), plan.buffers.end(), [&](const Buffer& b) {
    return b.role == Role::value && b.tensor == below + 1 && b.first < time && time < b.last;
  });
  return found;
}
}   // namespace
TEST_CASE("what a norm has read is gone before the stage that made it goes backward") {
  using Two = Sequential<Conv<8>, BatchNorm, ReLU, Conv<8>, BatchNorm, ReLU, Conv<8>, BatchNorm, ReLU, GlobalAvgPool, Linear<2>>;
  const auto check = [](const Plan& plan, std::string_view norm, bool in_place) {
    const NormBackward found = norm_backward(plan, norm);
    CHECK(found.whole == in_place);
    CHECK(found.values_gone == in_place);
  };
  check(plan_of<Two, Overlap<4>, RecomputeAll>(), "batch_norm2", false);
  check(plan_of<Two, Overlap<4>, RecomputeAll, GradientsInPlace>(), "batch_norm2", true);
  check(plan_of<Two, Share<4>, KeepAll, GradientsInPlace>(), "batch_norm2", true);
  check(plan_of<Two, ByImages<1, Overlap<2>>, RecomputeAll, GradientsInPlace>(), "batch_norm2", true);
  check(plan_of<Two, Overlap<4>, RecomputeAll, GradientsInPlace, Streams<2>>(), "batch_norm2", true);
  // The norm is in another section, which may not have the values any more when its turn comes.
  check(plan_of<Two, Overlap<4>, CheckpointAt<"conv2">, RecomputeAll, GradientsInPlace>(), "batch_norm2", false);
  // Another layer reads the norm's input, within its stage or above it.
  using Beside = Sequential<Conv<8>, BatchNorm, ReLU, Residual<Sequential<BatchNorm, ReLU, Conv<8>>>, BatchNorm, ReLU, GlobalAvgPool, Linear<2>>;
  check(plan_of<Beside, Overlap<4>, RecomputeAll, GradientsInPlace>(), "batch_norm2", false);
  // A shortcut's convolution is in the stage of the body's first one; its norm is done with when the body has two more stages to go.
  constexpr Window halves{.kernel = 1, .stride = 2, .pad = 0}, steps{.kernel = 3, .stride = 2, .pad = 1};
  using Strided = Sequential<Conv<4, one>, BatchNorm, ReLU, Conv<4, steps>, BatchNorm, ReLU, Conv<16, one>, BatchNorm>;
  using Halved = Sequential<Conv<8>, BatchNorm, ReLU, Residual<Strided, Sequential<Conv<16, halves>, BatchNorm>>, ReLU, GlobalAvgPool, Linear<2>>;
  for (const Plan& plan : {plan_of<Halved, Overlap<4>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>(),
                           plan_of<Halved, OneExtraPass<Overlap<4>>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>()})
    for (const std::string_view norm : {"batch_norm2", "batch_norm3", "batch_norm5"}) check(plan, norm, true);
}
TEST_CASE("the checker finds what would spoil a shared gradient") {
  Plan plan = blocks<Column, GradientsInPlace>();
  Index found = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (!is(plan, plan.steps[i], Op::backward_data, Kind::norm) || plan.steps[i].dx.buffer != plan.steps[i].x.buffer) continue;
    const Step norm = plan.steps[i];
    const auto add = std::find_if(plan.steps.begin() + static_cast<Index>(i), plan.steps.end(),
                                  [&](const Step& s) { return s.op == Op::add && s.y.buffer == norm.dy.buffer; });
    if (add == plan.steps.end()) continue;
    Plan wrong = plan;
    const auto place = static_cast<std::size_t>(add - plan.steps.begin());
    for (Step& s : wrong.steps)   // the norm's own gradient over the one that is shared, as without sharing
      for (Ref* ref : {&s.dx, &s.dy})
        if (*ref && ref->buffer == norm.dx.buffer && ref->tensor == norm.dx.tensor) ref->buffer = norm.dy.buffer;
    CHECK(!check_plan(wrong).empty());
    wrong = plan;
    wrong.steps.erase(wrong.steps.begin() + static_cast<Index>(place));
    CHECK(!check_plan(wrong).empty());
    wrong = plan;
    wrong.steps.insert(wrong.steps.begin() + static_cast<Index>(place), *add);   // added twice
    CHECK(!check_plan(wrong).empty());
    ++found;
  }
  CHECK(found > 1);
}
