// Gradients that sums share and inputs that are made again alone, on the reference backend.
#include "exec/shared_gradients.hpp"
#include "support/random_blocks.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("shared gradients and lone inputs give the bits of plans without them") {
  Reference<double> doubles(2);
  shared_gradients_law(doubles, 0);
  Reference<float> floats(2);
  shared_gradients_law(floats, 0);
}
namespace {
/// Steps that turn the gradient of all of a norm's output into that of its input, where the stage that made the input goes backward by slabs.
Index steps_ahead_of_slabs(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& s) {
    if (s.op != Op::backward_data || s.sums < 0 || s.dx.buffer != s.dy.buffer || plan.table.node(s.layer).layer.kind != Kind::norm) return false;
    const Index g = plan.table.node(s.layer).input;
    return std::any_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
      return !stage.replaced_by_extra_passes && stage.first < g && g <= stage.last && stage.last <= s.layer && stage.backward.slabs() > 1;
    });
  });
}
}   // namespace
TEST_CASE("gradients in place give the bits of gradients apart in random residual networks, whatever extra passes cover") {
  Reference<double> backend(1);
  Index runs = 0, in_place = 0, behind = 0, given_on = 0, finished = 0;
  for (std::uint64_t seed = 1; seed <= 360; ++seed) {
    Dice dice(seed + 7100000);
    const RandomNetwork net = random_blocks(dice);
    PolicySpec policy = random_blocks_policy(dice, net);
    policy.gradients_in_place = true, policy.conv_algorithm = ConvAlgorithm::direct;
    if (make_table(net.layers, net.input).shape(static_cast<Index>(net.layers.size())).h > 1) continue;
    const Problem<double> problem(net.layers, net.input, seed);
    try {
      const Plan plan = make_plan(problem.table, policy, {}, {.input_gradient = true});
      const std::vector<StageNeeds> needs = needs_of(plan.table, policy, plan.options, plan.stages);
      const std::vector<Index> lags = gradient_lags(plan.table, plan.stages, needs);
      for (std::size_t s = 0; s < needs.size(); ++s) {
        if (needs[s].sum_in_place < 0) continue;
        ++in_place;
        behind += item(lags, plan.stages[s].last) > 0;
        given_on += skip_of(plan.stages[s], needs[s].sum_in_place) < 0 && input_of_sum(plan.stages[s], needs[s].sum_in_place) >= 0;
      }
      finished += steps_ahead_of_slabs(plan);
    } catch (const PlanError&) {
      continue;
    }
    INFO("seed ", seed, ", ", to_string(policy));
    const Outcome<double> shared = run_once(problem, policy, backend);
    policy.gradients_in_place = false;
    check_same(shared, run_once(problem, policy, backend));
    ++runs;
  }
  MESSAGE(runs, " runs, ", in_place, " gradients of sums over those of outputs, ", behind, " of them behind the outputs' values, ", given_on,
          " of them that of what a norm of another stage's tensor writes; ", finished, " norms backward ahead of slabs");
  CHECK(runs > 120);
  CHECK(in_place > 20);
  CHECK(behind > 2);
  CHECK(given_on > 5);
  CHECK(finished > 100);
}
namespace {
/// Tensors in whose places a stage that reads them more than once in the backward pass puts their gradients.
Index read_often_in_place(const Plan& plan) {
  const std::vector<Index> lags = lags_of(plan);
  Index count = 0;
  for (const Stage& stage : plan.stages)
    for (Index t = 0; t < stage.input_count(); ++t)
      count += !stage.replaced_by_extra_passes && stage.use(t).plain > 1 && item(lags, stage.tensor(t)) > 0;
  return count;
}
}   // namespace
TEST_CASE("a tensor that several layers read has its gradient in its place, with the bits of a gradient apart") {
  constexpr Window one{.kernel = 1, .pad = 0}, halves{.kernel = 1, .stride = 2, .pad = 0}, steps{.kernel = 3, .stride = 2, .pad = 1};
  // Its layers read the same rows, or more and fewer of them; some rows are read by nobody; one tensor is read three times.
  using Same = Residual<Sequential<Conv<12, one>, ReLU, Conv<16, one>>, Conv<16, one>>;
  using Halo = Residual<Sequential<Conv<8>, ReLU, Conv<16>>, Conv<16, one>>;
  using Fewer = Residual<Sequential<Conv<8, one>, ReLU, Conv<16, steps>>, Conv<16, halves>>;
  using Gaps = Residual<Conv<16, halves>, Conv<16, halves>>;
  using Thrice = Residual<Residual<Sequential<Conv<16>, ReLU, Conv<16>>>>;
  using Normed = Residual<Sequential<Conv<8, one>, BatchNorm, ReLU, Conv<16, steps>, BatchNorm>, Sequential<Conv<16, halves>, BatchNorm>>;
  using Plain = Sequential<Conv<16>, ReLU, Same, ReLU, Halo, ReLU, Thrice, ReLU, Fewer, ReLU, Gaps, GlobalAvgPool, Linear<5>>;
  using WithNorms = Sequential<Conv<16>, BatchNorm, ReLU, Normed, ReLU, Normed, ReLU, GlobalAvgPool, Linear<5>>;
  Reference<double> backend(2);
  Index most = 0;
  const auto law = [&](std::span<const Layer> layers, PolicySpec policy, Index least) {
    const Problem<double> problem(layers, {3, 3, 131, 9}, 5);
    INFO(to_string(policy));
    const Outcome<double> apart = run_once(problem, policy, backend);
    policy.gradients_in_place = true;
    const Plan plan = make_plan(problem.table, policy, {}, {.input_gradient = true});
    CHECK(check_plan(plan).empty());
    const Index found = read_often_in_place(plan);
    CHECK(found >= least);
    most = std::max(most, found);
    check_same(run_once(problem, policy, backend), apart);
  };
  using W = Workspace<0>;
  for (const PolicySpec& policy :
       {Policy<Overlap<32>, CheckpointAtSums<>, RecomputeAll, W>::value, Policy<Share<32>, CheckpointAtSums<>, RecomputeAll, W>::value,
        Policy<Overlap<22>, CheckpointAtSums<>, RecomputeCheap, W>::value,
        Policy<ByImages<2, Overlap<40>>, CheckpointAtSums<>, RecomputeAll, W>::value,
        Policy<Share<24>, CheckpointAtSums<>, KeepAll, W, Streams<2>>::value})
    law(Plain::layers, policy, 1);
  CHECK(most > 2);
  for (const PolicySpec& policy :
       {Policy<ExtraPasses<Overlap<32>>, CheckpointAtSums<>, RecomputeAll, W>::value,
        Policy<ExtraPassesBothWays<Overlap<32>>, CheckpointAtSums<>, RecomputeAll, W>::value,
        Policy<ExtraPasses<ByImages<1, Overlap<32>>>, CheckpointAtSums<>, RecomputeAll, W>::value,
        Policy<OneExtraPass<Overlap<32>>, CheckpointAtSums<>, RecomputeAll, W>::value})   // its first stage goes forward again
    law(WithNorms::layers, policy, 1);
  const PolicySpec uncut_again = Policy<OneExtraPass<Overlap<1, 32>>, CheckpointAtSums<>, RecomputeAll, W, GradientsInPlace>::value;
  CHECK(read_often_in_place(make_plan(make_table(WithNorms::layers, {3, 3, 131, 9}), uncut_again, {})) == 0);
  // Two blocks below write the gradients of their sums over that gradient, which is that of both skip connections, too.
  using Body = Sequential<Conv<8, one>, BatchNorm, ReLU, Conv<16>, BatchNorm>;
  using Chain = Sequential<Conv<16>, BatchNorm, ReLU, Residual<Body>, ReLU, Residual<Body>, ReLU, Normed, ReLU, GlobalAvgPool, Linear<5>>;
  using Slabs = Overlap<32>;
  using One = OneExtraPass<Slabs>;
  constexpr PolicySpec chained = Policy<Stages<Slabs, One, One, ExtraPasses<Slabs>>, CheckpointAt<"relu1", "relu3", "relu5">, RecomputeAll, W>::value;
  law(Chain::layers, chained, 1);
  using Alone = RecomputeInputAlone<One>;
  law(Chain::layers,
      Policy<Stages<Slabs, Alone, Alone, RecomputeInputAlone<ExtraPasses<Slabs>>>, CheckpointAt<"relu1", "relu3", "relu5">, RecomputeAll, W>::value,
      1);
}
TEST_CASE("a tensor that a stage makes again for its own layers has no gradient in its place if a norm above reads it") {
  // The activation's output goes to a convolution of its own section, and to a norm and one or two convolutions above.
  constexpr Window one{.kernel = 1, .pad = 0};
  using Inner = Sequential<Conv<4, one>, BatchNorm>;
  using Once = Sequential<Conv<4>, SiLU, Residual<Inner, Residual<BatchNorm, Conv<4>>>, GlobalAvgPool, Linear<3>>;
  using Twice = Sequential<Conv<4>, SiLU, Residual<Inner, Residual<BatchNorm, Residual<Conv<4>, Conv<4, one>>>>, GlobalAvgPool, Linear<3>>;
  Reference<double> backend(2);
  for (const std::span<const Layer> layers : {std::span<const Layer>(Once::layers), std::span<const Layer>(Twice::layers)}) {
    const Problem<double> problem(layers, {2, 3, 128, 3}, 5);
    PolicySpec policy = Policy<Overlap<4, 64>, CheckpointAt<"conv2">, RecomputeAll, Workspace<0>>::value;
    const Outcome<double> apart = run_once(problem, policy, backend);
    policy.gradients_in_place = true;
    const Plan plan = make_plan(problem.table, policy, {}, {.input_gradient = true});
    const auto problems = check_plan(plan);
    CHECK((problems.empty() ? "" : problems[0]) == "");
    check_same(run_once(problem, policy, backend), apart);
  }
}
