// Profiles of sections: put together, they are the plan's live bytes and seconds; a section made alone is the one of the whole plan.
#include "support/random_graph.hpp"
#include "support/random_network.hpp"
#include "support/thorough.hpp"
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/layer/layers.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/section_costs.hpp>
#include <doctest/doctest.h>
#include <set>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const Target blocked{.channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true, .sums_use_workspace = true};
struct Case {
  Table table;
  PolicySpec policy;
  Target target;
  PlanOptions options;
};
Case random_case(std::uint64_t seed) {
  Dice dice(seed);
  const RandomNetwork net = now_and_then_without_head(dice, seed % 3 == 0 ? random_network(dice, 10) : random_graph(dice, 8));
  PolicySpec policy = random_policy(dice, net);
  policy.workspace_bytes = dice.pick<Index>({0, 1 << 10, 1 << 14});
  add_workspaces(dice, policy, {0, 1 << 10, 1 << 12});
  const PlanOptions options =
      with_drawn_output(dice, {.training = dice.chance(0.9), .accumulate = dice.chance(0.2), .input_gradient = dice.chance(0.2)});
  return {make_table(net.layers, net.input), policy, dice.pick<Target>({{}, blocked, Cudnn::target}), options};
}
/// Costs that differ with everything a step's kind names, and estimates for some kinds.
Costs some_costs(const Plan& plan) {
  Costs costs(Rates{.step = 1e-6, .products = 3e9, .winograd = 7e9, .bytes = 4e9, .lanes = 16});
  double seconds = 1e-6;
  for (std::size_t i = 0; i < plan.steps.size(); i += 1 + i % 3)
    costs.set(step_kind(plan, plan.steps[i]), {{10, seconds += 1e-6}, {30, 3 * seconds}, {400, 20 * seconds}});
  return costs;
}
bool plan_of(const Case& c, Plan& plan) {
  try {
    plan = make_plan(c.table, c.policy, c.target, c.options);
    return true;
  } catch (const PlanError&) {   // more slabs than rows, a norm over one image, and so on
    return false;
  }
}
bool remakes_inputs(const std::vector<Stage>& stages) {
  return std::any_of(stages.begin(), stages.end(), [](const Stage& stage) { return stage.recomputes_input; });
}
}   // namespace
TEST_CASE("profiles of all sections give a plan's live bytes to the byte, its seconds and the number of its steps") {
  std::size_t planned = 0, of_several = 0, in_place = 0, left_out = 0, recomputed = 0;
  const std::uint64_t cases = cases_to_do<std::uint64_t>(20000, 3000), first = thorough() ? 0 : day() * cases;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    const Case c = random_case(seed);
    Plan plan;
    if (!plan_of(c, plan)) continue;
    const Costs costs = some_costs(plan);
    const auto profiles = profile_sections(plan, costs);
    CAPTURE(seed);
    CAPTURE(to_string(c.policy));
    REQUIRE(lower_bound(profiles) == plan.arena.lower_bound);
    double sum = 0;
    Index steps = 0;
    for (const SectionProfile& p : profiles) sum += p.seconds(), steps += p.steps;
    REQUIRE(sum == doctest::Approx(seconds(plan, costs) + seconds_left_out(plan, costs)).epsilon(1e-9));
    REQUIRE(steps == plan.listed_steps());
    const SectionProfile costed = SectionCosts(c.table, c.target, c.options, costs).of(c.policy);
    if (!costed.sampled) REQUIRE(costed.seconds() == doctest::Approx(sum).epsilon(1e-9));
    recomputed += remakes_inputs(plan.stages);
    left_out += plan.left_out.size();
    ++planned, of_several += profiles.size() > 1, in_place += c.policy.gradients_in_place;
  }
  MESSAGE(planned << " plans, " << of_several << " of several sections, " << in_place << " with gradients in place, " << recomputed
                  << " with inputs made again");
  CHECK(planned > cases / 2);
  CHECK(recomputed > cases / 50);
  CHECK(of_several > cases / 4);
  CHECK(left_out > planned / 4);
}
TEST_CASE("a pass for the section above leaves a tensor that is kept in its place") {
  // The sum of the last norms is kept for the factors, and yet made again beside what the section above asks for.
  Layer scale{.kind = Kind::scale}, sum{.kind = Kind::sum}, past = Conv<1>::layer();
  scale.input = 2, scale.other = 1, sum.other = 3, past.input = 7;
  const std::vector<Layer> layers{Conv<1>::layer(),
                                  Conv<1>::layer(),
                                  ReLU::layer(),
                                  Conv<1>::layer(),
                                  BatchNorm::layer(),
                                  InstanceNorm::layer(),
                                  past,
                                  LayerNorm::layer(),
                                  sum,
                                  InstanceNorm::layer(),
                                  GlobalAvgPool::layer(),
                                  scale};
  const Plan plan = make_plan(make_table(layers, {1, 1, 6, 2}),
                              Policy<Section<RecomputeInput<Column>, RecomputeAll>, CheckpointEvery<2>, RecomputeAll, Workspace<0>>::value);
  CHECK(check_plan(plan).empty());
  CHECK(lower_bound(profile_sections(plan, some_costs(plan))) == plan.arena.lower_bound);
}
TEST_CASE("what costs of one policy's sections have been found are those of another policy's only where these are the same") {
  std::size_t asked = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(2000, 300); ++seed) {
    const Case c = random_case(seed);
    Plan first;
    if (!plan_of(c, first)) continue;
    const Costs costs = some_costs(first);
    SectionCosts of_all(c.table, c.target, c.options, costs);
    Dice dice(seed + 70'000);
    PolicySpec policy = c.policy;
    for (int round = 0; round < 6; ++round) {
      policy.checkpoints = {.rule = Checkpoints::Rule::every, .every = dice.upto(1, 5)};
      for (Index i = 0; i < policy.partition_count; ++i) {
        Partition& part = item(policy.partitions, i);
        if ((policy.partition_count == 1 || i > 0) && dice.chance(0.7)) part.input = SectionInput::recompute_alone;
        else part.input = SectionInput::keep;
      }
      CAPTURE(seed);
      CAPTURE(to_string(policy));
      try {
        const Plan plan = make_plan(c.table, policy, c.target, c.options);   // throws if there is none
        const SectionProfile known = of_all.of(policy);
        if (known.sampled) continue;
        REQUIRE(known.seconds() == doctest::Approx(seconds(plan, costs) + seconds_left_out(plan, costs)).epsilon(1e-9));
        ++asked;
      } catch (const PlanError&) {
      }
    }
  }
  CHECK(asked > 100);
}
TEST_CASE("a section keeps a tensor in full height for its backward pass only if a step of that reads it") {
  std::size_t kept = 0, dropped = 0;
  const std::uint64_t cases = cases_to_do<std::uint64_t>(5000, 1000);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    Case c = random_case(seed);
    c.policy.gradients_in_place = false;   // values and gradients share buffers
    Plan plan;
    if (!plan_of(c, plan)) continue;
    CAPTURE(seed);
    CAPTURE(to_string(c.policy));
    std::set<Index> of_forward;               // buffers of values that forward passes use: what is made again has others
    std::set<std::pair<Index, Index>> read;   // of these, in backward passes: the section and the tensor
    for (const Step& step : plan.steps)
      for (const Ref& ref : {step.x, step.other, step.y}) {
        if (!ref || item(plan.buffers, ref.buffer).role != Role::value) continue;
        if (step.pass == Pass::forward) of_forward.insert(ref.buffer);
        else if (of_forward.contains(ref.buffer)) read.insert({item(plan.stages, step.stage).section, ref.tensor});
      }
    for (const std::vector<Stage>& stages : by_single_section(plan.stages)) {
      if (stages.front().recomputes_input || stages.front().supplies) continue;   // a pass between the two reads them, too
      const SectionProfile profile = profile_section(c.table, c.policy, c.target, c.options, stages);
      for (const SectionBuffer& buffer : profile.buffers)
        for (const SharedKey& key : buffer.keys) {
          if (key.kind != SharedBuffer::value || key.number == c.table.size()) continue;   // the network's output is handed on
          const bool lives = buffer.last > profile.forward_end;
          const bool wanted = std::any_of(buffer.keys.begin(), buffer.keys.end(), [&](const SharedKey& one) {   // a norm may write over another
            return one.kind == SharedBuffer::value && read.contains({stages.front().section, one.number});
          });
          CAPTURE(key.number);
          REQUIRE(lives == wanted);
          ++(lives ? kept : dropped);
        }
    }
  }
  CHECK(kept > cases);
  CHECK(dropped > cases);
}
TEST_CASE("a section's stages are those of the whole plan, made without the other sections") {
  std::size_t same = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(20000, 2000); ++seed) {
    const Case c = random_case(seed);
    Plan plan;
    if (!plan_of(c, plan)) continue;
    PolicySpec rest = c.policy;
    rest.checkpoints = {};
    for (const std::vector<Stage>& stages : by_section(plan.stages)) {
      if (remakes_inputs(stages)) continue;   // several sections in one
      Partition asked = c.policy.partition(stages[0].partition_number);
      Index begin = stages[0].first, end = stages[0].last;
      bool as_asked = true;   // a count for all stages alike is carried out as far as rows allow
      for (const Stage& stage : stages) {
        end = std::max(end, stage.last);
        as_asked = as_asked && stage.partition_number == stages[0].partition_number;   // factors of a scale have those of the section before
        const bool whole = stage.partition.cut == Cut::column;
        as_asked = as_asked &&
                   (whole || (stage.partition.forward == asked.forward && (stage.partition.backward == asked.backward || c.options.stores_output)));
      }
      const auto alone = make_section_stages(plan.table, split_section(plan.table, begin, end, c.options.training), rest, asked, c.target,
                                             group_images(plan.table, c.policy), c.options);
      if (!as_asked) continue;
      CAPTURE(seed);
      CAPTURE(to_string(c.policy));
      REQUIRE(alone.size() == stages.size());
      for (std::size_t i = 0; i < alone.size(); ++i) {
        Stage expected = stages[i];   // numbers of sections and partitions are the whole plan's
        expected.section = alone[i].section, expected.partition_number = alone[i].partition_number;
        REQUIRE(alone[i] == expected);
        ++same;
      }
    }
  }
  CHECK(same > 2000);
}
TEST_CASE(
    "a section's seconds are those of the slabs of its two passes; where slabs keep nothing for each other, those of either do not depend on the "
    "other's") {
  const auto are_same = [](double a, double b) { return std::abs(a - b) <= 1e-9 * b; };
  std::size_t summed = 0, alone = 0, again = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(6000, 800); ++seed) {
    const Case c = random_case(seed);
    Plan plan;
    if (!plan_of(c, plan)) continue;
    const Costs costs = some_costs(plan);
    StepCosts of_steps(costs, c.table, c.target);
    PolicySpec rest = c.policy;
    rest.checkpoints = {};
    CAPTURE(seed);
    CAPTURE(to_string(c.policy));
    const auto seconds_of = [&](const std::vector<Stage>& stages, SectionSteps steps) {
      SectionProfile profile;
      add_seconds(profile, c.table, rest, c.target, c.options, stages, needs_of(c.table, rest, c.options, stages), of_steps, Samples::none, steps);
      return profile.seconds();
    };
    for (const std::vector<Stage>& stages : by_section(plan.stages)) {
      const double forward = seconds_of(stages, SectionSteps::of_forward_slabs), backward = seconds_of(stages, SectionSteps::of_backward_slabs);
      REQUIRE(are_same(forward + backward, seconds_of(stages, SectionSteps::all)));
      ++summed;
      if (remakes_inputs(stages)) continue;   // several sections in one
      Index begin = stages[0].first, end = stages[0].last;
      for (const Stage& stage : stages) end = std::max(end, stage.last);
      Partition p = stages[0].partition;
      const auto cut = [&] {
        return make_section_stages(c.table, split_section(c.table, begin, end, c.options.training), rest, p, c.target,
                                   group_images(c.table, c.policy), c.options);
      };
      if (p.cut == Cut::column || !are_passes_apart(stages, needs_of(c.table, rest, c.options, stages))) continue;
      if (std::any_of(stages.begin(), stages.end(), [&](const Stage& stage) {   // a count for all stages alike is carried out as far as rows allow
            return stage.partition.cut != Cut::column && (stage.partition.forward != p.forward || stage.partition.backward != p.backward);
          }))
        continue;
      p.forward = 1;
      if (const auto others = cut(); !others.empty()) REQUIRE(are_same(seconds_of(others, SectionSteps::of_backward_slabs), backward));
      p.forward = stages[0].partition.forward, p.backward = 1;
      if (const auto others = cut(); !others.empty()) REQUIRE(are_same(seconds_of(others, SectionSteps::of_forward_slabs), forward));
      again += std::any_of(stages.begin(), stages.end(), [](const Stage& stage) { return stage.forward_repeated; });
      ++alone;
    }
  }
  MESSAGE(summed << " sections, " << alone << " of passes that do not depend on each other, " << again << " of them with stages made again");
  CHECK(summed > 400);
  CHECK(alone > 20);
}
TEST_CASE("slabs of images are alike, so that some of them stand for all") {
  std::size_t sampled = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(3000, 500); ++seed) {
    const Case c = random_case(seed);
    Plan plan;
    if (!plan_of(c, plan)) continue;
    const Costs costs = some_costs(plan);
    StepCosts of_steps(costs, c.table, c.target);
    CAPTURE(seed);
    CAPTURE(to_string(c.policy));
    for (const std::vector<Stage>& stages : by_section(plan.stages)) {
      SectionProfile all, some;
      add_seconds(all, c.table, c.policy, c.target, c.options, stages, of_steps);
      add_seconds(some, c.table, c.policy, c.target, c.options, stages, of_steps, Samples::of_images);
      REQUIRE(some.seconds() == doctest::Approx(all.seconds()).epsilon(1e-9));
      REQUIRE(some.steps == all.steps);
      sampled += some.sampled;
    }
  }
  CHECK(sampled > 20);
}
TEST_CASE("sections are costed with the partitions of their stages, also where one begins behind means and goes on with another") {
  using Net = Sequential<Conv<8>, ReLU, GlobalAvgPool, Conv<8, Window{.kernel = 1}>, BatchNorm, ReLU, Upsample<16>, Conv<4>, ReLU, Conv<4>>;
  const Table table = make_table(Net::layers, {2, 3, 32, 32});
  const Costs costs(Rates{.step = 1e-7, .products = 1e9, .winograd = 2e9, .bytes = 1e9, .lanes = 1});
  const PlanOptions options;
  SectionCosts of(table, blocked, options, costs);
  for (const PolicySpec& policy :
       {Policy<Stages<Share<4>, Column>, RecomputeAll>::value, Policy<Stages<Overlap<16>, Overlap<2>>, RecomputeAll>::value,
        Policy<Stages<Overlap<2>, Overlap<2>>, RecomputeAll>::value, Policy<Stages<Overlap<2>, Column>, RecomputeAll>::value,
        Policy<Stages<Overlap<2>, Column, Column>, CheckpointAt<"relu1">, RecomputeAll>::value}) {
    CAPTURE(to_string(policy));
    StepCosts of_steps(costs, table, blocked);
    CHECK(of.of(policy).seconds() == doctest::Approx(plan_seconds(table, policy, blocked, options, of_steps)).epsilon(1e-9));
  }
}
TEST_CASE("sections of a predictor are costed with all of their slabs, also with those that add no rows at the top") {
  using Net = Sequential<Conv<4>, MaxPool<Window{.kernel = 2, .stride = 3}>, MaxPool<Window{.kernel = 2, .stride = 3, .pad = 1}>, Conv<4>, ReLU>;
  const Costs costs(Rates{.step = 1e-7, .products = 1e9, .winograd = 2e9, .bytes = 1e9, .lanes = 1});
  const PlanOptions options{.training = false, .stores_output = true};
  int fewer_rows = 0;
  for (Index height = 6; height <= 24; ++height)
    for (Index slabs = 5; slabs <= 9; ++slabs) {
      const Table table = make_table(Net::layers, {1, 5, height, 6});
      PolicySpec policy = Policy<Stages<Share<2>, Column>, CheckpointAt<"pool2">>::value;
      policy.partitions[0].forward = policy.partitions[0].backward = slabs;
      CAPTURE(height);
      CAPTURE(slabs);
      StepCosts of_steps(costs, table, blocked);
      try {
        const double want = plan_seconds(table, policy, blocked, options, of_steps);
        CHECK(SectionCosts(table, blocked, options, costs).of(policy).seconds() == doctest::Approx(want).epsilon(1e-9));
        fewer_rows += table.shape(3).h < slabs;
      } catch (const PlanError&) {   // more slabs than the first layer has rows
      }
    }
  CHECK(fewer_rows > 20);
}
