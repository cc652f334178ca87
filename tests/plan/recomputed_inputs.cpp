// Sections whose input is made again (RecomputeInput): which sections go forward once more and when, what lives between the passes, what it
// saves, and what is refused.
#include <lrcnn/network/squeeze_excitation.hpp>
#include <lrcnn/plan/peak.hpp>
#include "plan/stage_order.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr Input input = small_input;
using Slabs = Overlap<2>;
using Again = RecomputeInput<Slabs>;
}   // namespace
TEST_CASE("the sections below go forward again before the topmost one of their group goes backward") {
  const Plan usual = plan_of<Chain, Stages<Slabs, Slabs, Slabs, Slabs>, AtSections, RecomputeAll>();
  const Plan all = plan_of<Chain, Stages<Slabs, Again, Again, Again>, AtSections, RecomputeAll>();
  const Plan lower = plan_of<Chain, Stages<Slabs, Again, Again, Slabs>, AtSections, RecomputeAll>();
  const Plan two = plan_of<Chain, Stages<Slabs, Again, Slabs, Again>, AtSections, RecomputeAll>();
  for (const Plan* plan : {&usual, &all, &lower, &two}) CHECK(check_plan(*plan).empty());
  CHECK(order(usual) == "0f 1f 2f 3f 4f 4b 3b 2b 1b 0b");
  CHECK(order(all) == "0f 1f 2f 3f 4f 4b 0r 1r 2r 3b 2b 1b 0b");
  CHECK(order(lower) == "0f 1f 2f 3f 4f 4b 3b 0r 1r 2b 1b 0b");
  CHECK(order(two) == "0f 1f 2f 3f 4f 4b 2r 3b 2b 0r 1b 0b");
  // The backward slabs make again what their gradients read, but not what the section writes.
  CHECK(times_of_chain(usual) == std::vector<Index>{2, 1, 2, 1, 2, 1, 2, 1});
  CHECK(times_of_chain(all) == std::vector<Index>{3, 2, 3, 2, 3, 2, 2, 1});
  CHECK(times_of_chain(lower) == std::vector<Index>{3, 2, 3, 2, 2, 1, 2, 1});
  CHECK(times_of_chain(two) == std::vector<Index>{3, 2, 2, 1, 3, 2, 2, 1});
}
TEST_CASE("what sections hand up is not kept from the forward to the backward pass, and is kept where the pass for the sections above made it") {
  CHECK(live_at_loss(plan_of<Chain, Stages<Slabs, Slabs, Slabs, Slabs>, AtSections, RecomputeAll>()) == "3 6 9");
  CHECK(live_at_loss(plan_of<Chain, Stages<Slabs, Again, Slabs, Again>, AtSections, RecomputeAll>()) == "6");
  const Plan plan = plan_of<Chain, Stages<Slabs, Again, Again, Again>, AtSections, RecomputeAll>();
  CHECK(live_at_loss(plan) == "");
  const std::vector<Index> times = step_times(plan);
  const auto first_of = [&](Index stage, Pass pass) {
    for (std::size_t i = loss_of(plan); i < plan.steps.size(); ++i)
      if (plan.steps[i].stage == stage && plan.steps[i].pass == pass) return times[i];
    return Index{-1};
  };
  for (const auto& [tensor, reader] : {std::pair<Index, Index>{3, 1}, {6, 2}, {9, 3}}) {
    Index made = 0;
    for (const Buffer& b : plan.buffers) {
      if (b.role != Role::value || b.tensor != tensor) continue;
      if (++made == 1) CHECK(b.last <= times[loss_of(plan)]);
      if (made == 2) CHECK((first_of(reader - 1, Pass::recompute) <= b.first && b.first < b.last && first_of(reader, Pass::backward) < b.last));
    }
    CHECK(made == 2);
  }
}
TEST_CASE("rows that backward slabs will need are left by the pass for the sections above, not by the first one") {
  const Plan usual = plan_of<Chain, Stages<Share<3>, Share<3>, Share<3>, Share<3>>, AtSections, RecomputeAll>();
  const Plan plan = plan_of<Chain, Stages<Share<3>, RecomputeInput<Share<3>>, RecomputeInput<Share<3>>, Share<3>>, AtSections, RecomputeAll>();
  CHECK(check_plan(plan).empty());
  const auto stages_with_rows = [](const Plan& p) {   // at the loss
    const Index now = step_times(p)[loss_of(p)];
    std::vector<bool> has(p.stages.size());
    for (const Buffer& b : p.buffers)
      if (b.role == Role::carry && b.first <= now && now < b.last) has[static_cast<std::size_t>(b.stage)] = true;
    return has;
  };
  CHECK(stages_with_rows(usual) == std::vector<bool>{true, true, true, true, false});
  CHECK(stages_with_rows(plan) == std::vector<bool>{false, false, true, true, false});   // the two upper sections go forward once
}
TEST_CASE("sections with norms go forward for those above, and then again as their segment does") {
  const Plan usual = plan_of<Norms, Stages<Slabs, Slabs, Slabs>, AtNorms, RecomputeAll>();
  const Plan plan = plan_of<Norms, Stages<Slabs, Again, Again>, AtNorms, RecomputeAll>();
  CHECK(check_plan(plan).empty());
  CHECK(order(usual) == "0f 1f 2f 3f 4f 5f 6f 7f 8f 9f 9b 6r 7r 8b 7b 6b 3r 4r 5b 4b 3b 0r 1r 2b 1b 0b");
  CHECK(order(plan) == "0f 1f 2f 3f 4f 5f 6f 7f 8f 9f 9b 0r 1r 2r 3r 4r 5r 6r 7r 8b 7b 6b 3r 4r 5b 4b 3b 0r 1r 2b 1b 0b");
  CHECK(live_at_loss(usual) == "6 12");
  CHECK(live_at_loss(plan) == "");
  // First, for the sections above, for the segment; and the norm in the middle once more by backward slabs, which keep nothing.
  CHECK(times_made(plan, "conv1") == 3);
  CHECK(times_made(plan, "batch_norm1") == 4);
  CHECK(times_made(plan, "conv2") == 3);
  CHECK(times_made(plan, "batch_norm2") == 2);   // the segment's last stage is not run again
  CHECK(times_made(plan, "conv6") == times_made(usual, "conv6"));
  const auto statistics = [](const Plan& p) {
    return std::count_if(p.steps.begin(), p.steps.end(), [](const Step& s) { return s.op == Op::statistics; });
  };
  CHECK(statistics(plan) == statistics(usual));   // the passes for the sections above know them
  CHECK(statistics(plan) == 12);                  // six norms, two slabs
}
TEST_CASE("sections with extra passes go forward for those above slab by slab, since statistics are known") {
  using Extra = ExtraPasses<Slabs>;
  using Both = ExtraPassesBothWays<Slabs>;
  const Plan usual = plan_of<Norms, Stages<Extra, Extra, Extra>, AtNorms>();
  const Plan plan = plan_of<Norms, Stages<Extra, RecomputeInput<Extra>, RecomputeInput<Extra>>, AtNorms>();   // extra passes recompute all
  const Plan both = plan_of<Norms, Stages<Both, RecomputeInput<Both>, RecomputeInput<Both>>, AtNorms>();
  for (const Plan* p : {&usual, &plan, &both}) CHECK(check_plan(*p).empty());
  CHECK(order(usual) == "0f 1f 2f 3f 4f 5f 6f 7f 8f 9f 9b 12b 11b 10b");
  CHECK(order(plan) == "0f 1f 2f 3f 4f 5f 6f 7f 8f 9f 9b 10r 11r 12b 11b 10b");
  CHECK(order(both) == "10f 11f 12f 9f 9b 10r 11r 12b 11b 10b");
  CHECK(live_at_loss(usual) == "6 12");
  for (const Plan* p : {&plan, &both}) {
    CHECK(live_at_loss(*p) == "");
    for (const Step& s : p->steps)   // norms' inputs are not in full height again
      if (s.pass == Pass::recompute && s.y && item(p->buffers, s.y.buffer).role == Role::value) CHECK((s.y.tensor == 6 || s.y.tensor == 12));
  }
  CHECK(times_made(plan, "conv1") == times_made(usual, "conv1") + 1);
  CHECK(times_made(plan, "conv5") == times_made(usual, "conv5"));   // nothing is above it
}
TEST_CASE("a tensor that sections of other groups read is kept, and stages of a scale's factors ask for nothing") {
  // What the first section hands up goes to the second section and to the sum in the fourth.
  using Body = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, Conv<8>>;
  using Skip = Sequential<Conv<8>, ReLU, Residual<Body>, ReLU, Conv<8>, GlobalAvgPool, Linear<2>>;
  using At = CheckpointAt<"relu1", "relu2", "relu3">;
  const Plan skip = plan_of<Skip, Stages<Slabs, Again, Slabs, Again>, At, RecomputeAll>();
  CHECK(check_plan(skip).empty());
  CHECK(order(skip).find("4b 2r 3b 2b 1b 0b") != std::string::npos);   // and then the first section need not go forward again
  CHECK(live_at_loss(skip) == "2 4");
  const Plan group = plan_of<Skip, Stages<Slabs, Again, Again, Slabs>, At, RecomputeAll>();
  CHECK(check_plan(group).empty());
  CHECK(live_at_loss(group) == "2 6");
  const Plan all = plan_of<Skip, Stages<Slabs, Again, Again, Again>, At, RecomputeAll>();   // all readers are of the group
  CHECK(check_plan(all).empty());
  CHECK(live_at_loss(all) == "");
  // Stages of factors have the partition of the stage before, and no input of their own to be made again.
  using Scaled = Sequential<Conv<8>, ReLU, Conv<8>, SqueezeExcitation<8, 2>, ReLU, Conv<8>, ReLU, Conv<8>, GlobalAvgPool, Linear<2>>;
  const Plan scaled = plan_of<Scaled, Stages<Slabs, Again, Slabs, Again>, CheckpointAt<"relu1">, RecomputeAll>();
  CHECK(check_plan(scaled).empty());
  CHECK(std::count_if(scaled.stages.begin(), scaled.stages.end(), [](const Stage& s) { return s.recomputes_input; }) > 0);
  for (const Stage& s : scaled.stages) CHECK(!(s.behind_means && s.recomputes_input));
}
TEST_CASE("inputs that are made again take fewer bytes, in constant expressions, too") {
  using Fewer = Policy<Stages<Slabs, Again, Slabs, Again>, AtSections, RecomputeAll, Workspace<0>>;
  using Usual = Policy<Stages<Slabs, Slabs, Slabs, Slabs>, AtSections, RecomputeAll, Workspace<0>>;
  static_assert(peak_bytes<Chain, Fewer>(input) < peak_bytes<Chain, Usual>(input));
  CHECK(peak_bytes<Chain, Fewer>(input) == make_plan(table_of<Chain>(input), Fewer::value).peak_bytes());
  const Index map = input.n * 8 * input.h * input.w * 4;
  // What the first section hands up does not live while the two upper sections go backward.
  CHECK(peak_bytes<Chain, Usual>(input) - peak_bytes<Chain, Fewer>(input) >= map);
  CHECK(plan_of<Norms, Stages<Slabs, Again, Slabs>, AtNorms, RecomputeAll>().peak_bytes() <
        plan_of<Norms, Stages<Slabs, Slabs, Slabs>, AtNorms, RecomputeAll>().peak_bytes());
}
TEST_CASE("a section whose input cannot be made again is refused, and says why") {
  const std::string rule =
      "; a section below that recomputes all, or goes through its norms by ExtraPasses, and makes a map can go forward again for it; take "
      "RecomputeInput away there, or, if the section below makes a map, give it RecomputeAll";
  CHECK(refusal<Chain, Stages<Again, Slabs, Slabs, Slabs>, AtSections, RecomputeAll>() ==
        "lrcnn: the section of stage conv1..relu1 is to have its input made again by RecomputeInput<Overlap<2>>, and it is the network's first "
        "section" +
            rule);
  CHECK(refusal<Chain, Stages<Slabs, Again, Slabs, Slabs>, AtSections>() ==
        "lrcnn: the section of stage conv3..relu2 is to have its input made again by RecomputeInput<Overlap<2>>, and the section below it does not "
        "recompute all" +
            rule);
  CHECK(refusal<Chain, Stages<Slabs, Keep<Slabs>, RecomputeInput<Keep<>>, Slabs>, AtSections, RecomputeAll>() ==
        "lrcnn: the section of stage conv5..relu3 is to have its input made again by Keep<RecomputeInput<Column>>, and the section below it does "
        "not recompute all" +
            rule);
  CHECK(refusal<Chain, Stages<Slabs, Section<Slabs, RecomputeAll>, RecomputeInput<Keep<>>, Slabs>, AtSections>() == "no error");
  using Behind = Sequential<Conv<8>, ReLU, Conv<8>, Flatten, Linear<4>, ReLU, Linear<2>>;
  CHECK(refusal<Behind, Stages<Slabs, Again, RecomputeInput<>>, CheckpointAt<"relu1">, RecomputeAll>() ==
        "lrcnn: the section of stage flatten1..linear2 is to have its input made again by RecomputeInput<Column>, and it works on vectors" + rule);
  using Pooled = Sequential<Conv<8>, SqueezeExcitation<8, 2>, Conv<8>, GlobalAvgPool, Linear<2>>;
  const std::string pooled = refusal<Pooled, Stages<Slabs, Again>, RecomputeAll>();
  CHECK(pooled.starts_with("lrcnn: the section of stage "));
  CHECK(pooled.ends_with("is to have its input made again by RecomputeInput<Overlap<2>>, and the section below it does not end in a map" + rule));
  CHECK(error_of<PlanError>([&] {   // a forward pass alone makes nothing again
          make_plan(table_of<Chain>(input), Policy<Stages<Again, Slabs, Slabs, Slabs>, AtSections>::value, {}, {.training = false});
        }) == "no error");
}
TEST_CASE("one partition for all sections is carried out where it can be") {
  const Plan all = plan_of<Chain, Again, AtSections, RecomputeAll>();
  CHECK(order(all) == "0f 1f 2f 3f 4f 4b 0r 1r 2r 3b 2b 1b 0b");
  CHECK(!all.stages[0].recomputes_input);
  const Plan kept = plan_of<Chain, Again, AtSections>();   // KeepAll
  CHECK(order(kept) == "0f 1f 2f 3f 4f 4b 3b 2b 1b 0b");
  CHECK(kept.peak_bytes() == plan_of<Chain, Slabs, AtSections>().peak_bytes());
  CHECK(order(plan_of<Chain, Again, RecomputeAll>()) == "0f 1f 1b 0b");   // one section, and vectors
}
