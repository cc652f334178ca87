// Extra passes through a section's last norms alone (OneExtraPass): which stages they cover, what is in memory meanwhile and how often layers go
// forward; and the gradients of sums that such passes write over those of outputs (GradientsInPlace).
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/plan/peak.hpp>
#include "plan/stage_order.hpp"
#include "support/random_blocks.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr Window one{.kernel = 1, .pad = 0};
using Slabs = Overlap<4>;
/// The stages of the section that ends with a layer, in words.
std::vector<std::string> stages_of(const Plan& plan, std::string_view last) {
  const Table& table = plan.table;
  const auto name = [&](Index l) { return std::string(table.node(l).layer.name.view()); };
  Index section = -1;
  for (const Stage& s : plan.stages)
    if (name(s.last - 1) == last) section = s.section;
  std::vector<std::string> list;
  for (const Stage& s : plan.stages)
    if (s.section == section && !s.makes_input)
      list.push_back(name(s.first) + ".." + name(s.last - 1) + (s.forward_repeated ? " again" : "") +
                     (s.replaced_by_extra_passes ? " replaced" : "") + (s.passes > 0 ? " passes " + std::to_string(s.passes) : ""));
  return list;
}
template <class Net, class... Parts>
Plan sound_plan(const Input& in = small_input) {
  const Plan plan = plan_of<Net, Parts...>(in);
  const auto problems = check_plan(plan);
  CHECK((problems.empty() ? "" : problems[0]) == "");
  CHECK(arena_size(plan.table, plan.policy, plan.target, plan.options) == plan.arena);
  return plan;
}
/// Sums whose gradient takes the place of an output's.
Index sums_in_place(const Plan& plan) {
  const std::vector<StageNeeds> needs = needs_of(plan.table, plan.policy, plan.options, plan.stages);
  return std::count_if(needs.begin(), needs.end(), [](const StageNeeds& stage) { return stage.sum_in_place >= 0; });
}
/// Steps of a layer's gradient for the first slab.
Index times_back(const Plan& plan, std::string_view layer) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& s) {
    return s.op == Op::backward_data && s.slab == 0 && plan.table.node(s.layer).layer.name.view() == layer;
  });
}
/// Whether a tensor, or its gradient, is in full height behind the loss.
bool in_full(const Plan& plan, std::string_view layer, Role role) {
  const Index loss = step_times(plan)[loss_of(plan)];
  return std::any_of(plan.buffers.begin(), plan.buffers.end(), [&](const Buffer& b) {
    return b.role == role && b.tensor > 0 && plan.table.node(b.tensor - 1).layer.name.view() == layer && b.last > loss;
  });
}
}   // namespace
TEST_CASE("one extra pass covers the last stages of a section, as many as none of whose norms lies above another") {
  using Strings = std::vector<std::string>;
  const Plan plan = sound_plan<Bottlenecks, OneExtraPass<Slabs>, CheckpointAtSums<>, RecomputeAll>();
  CHECK(stages_of(plan, "relu7") == Strings{"conv6..conv6 again", "batch_norm6..conv7 again", "batch_norm7..conv8 replaced",
                                            "batch_norm8..relu7 replaced", "batch_norm7..relu7 passes 1"});
  // Two norms that lie beside each other: one pass is enough for both.
  CHECK(stages_of(plan, "relu4") == Strings{"conv1..conv1 again", "batch_norm1..conv2 again", "batch_norm2..conv3 again",
                                            "batch_norm3..conv5 replaced", "batch_norm4..relu4 replaced", "batch_norm3..relu4 passes 1"});
  // With one norm within a section it is what ExtraPasses is.
  const Plan whole = sound_plan<Bottlenecks, OneExtraPass<Slabs>, CheckpointAt<"relu1", "conv3", "relu4">, RecomputeAll>();
  CHECK(whole.steps == sound_plan<Bottlenecks, Stages<OneExtraPass<Slabs>, OneExtraPass<Slabs>, ExtraPasses<Slabs>, OneExtraPass<Slabs>>,
                                  CheckpointAt<"relu1", "conv3", "relu4">, RecomputeAll>()
                           .steps);
  // Without norms that wait there is none.
  const Plan none = sound_plan<Chain, OneExtraPass<Slabs>, AtSections, RecomputeAll>();
  CHECK(none.steps == sound_plan<Chain, Slabs, AtSections, RecomputeAll>().steps);
}
TEST_CASE("where the forward pass is run again it has the slabs of the first one, or of the backward pass") {
  const Input in{1, 3, 64, 64};
  const auto with = [&]<class P>(std::type_identity<P>) { return sound_plan<Bottlenecks, OneExtraPass<P>, CheckpointAtSums<>, RecomputeAll>(in); };
  const Plan column = with(std::type_identity<Overlap<1, 8>>{}), slabs = with(std::type_identity<Overlap<1, 8, 8>>{}),
             all = with(std::type_identity<Overlap<8>>{});
  const auto turns = [](const Plan& plan, Pass pass) {   // of a convolution that is made again for the passes above it
    return std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& s) {
      return s.op == Op::forward && s.pass == pass && plan.table.node(s.layer).layer.name.view() == "conv7" &&
             !plan.stages[static_cast<std::size_t>(s.stage)].passes;
    });
  };
  CHECK(turns(column, Pass::forward) == 1);
  CHECK(turns(slabs, Pass::forward) == 1);
  CHECK(turns(all, Pass::forward) == 8);
  CHECK(turns(column, Pass::recompute) == 1);
  CHECK(turns(slabs, Pass::recompute) == 8);
  CHECK(turns(all, Pass::recompute) == 8);
  CHECK(slabs.steps.size() < all.steps.size());
  CHECK(slabs.peak_bytes() <= column.peak_bytes());
}
TEST_CASE("neither the last norm's input nor its gradient is in full height behind the loss, and little goes forward more often") {
  const Plan plan = sound_plan<Bottlenecks, OneExtraPass<Slabs>, CheckpointAtSums<>, RecomputeAll>();
  for (const std::string_view conv : {"conv8", "conv11"}) {
    CHECK(!in_full(plan, conv, Role::value));
    CHECK(times_made(plan, conv) == 3);   // in the forward pass, for the sums and for the gradients
  }
  for (const std::string_view norm : {"batch_norm8", "batch_norm11"}) CHECK(!in_full(plan, norm, Role::gradient));
  for (const std::string_view conv : {"conv6", "conv7"}) {
    CHECK(in_full(plan, conv, Role::value));
    CHECK(times_made(plan, conv) == 2);
  }
  const Plan all = sound_plan<Bottlenecks, ExtraPasses<Slabs>, CheckpointAtSums<>, RecomputeAll>();
  CHECK(times_made(all, "conv6") == 5);
  CHECK(plan.steps.size() < all.steps.size() * 3 / 4);
  const Plan kept = sound_plan<Bottlenecks, OneExtraPass<Slabs>, CheckpointAtSums<>>();   // stages below keep what they made
  CHECK(times_made(kept, "conv6") == 1);
  CHECK(times_made(kept, "conv8") == 3);
}
TEST_CASE("both ways the forward pass has no input of the last norm in full height either") {
  using Both = OneExtraPassBothWays<Slabs>;
  const Plan plan = sound_plan<Bottlenecks, Both, CheckpointAtSums<>, RecomputeAll>();
  const auto values_of = [&](std::string_view layer) {
    return std::count_if(plan.buffers.begin(), plan.buffers.end(), [&](const Buffer& b) {
      return b.role == Role::value && b.tensor > 0 && plan.table.node(b.tensor - 1).layer.name.view() == layer;
    });
  };
  CHECK(values_of("conv8") == 0);
  CHECK(values_of("conv7") == 2);          // of the forward pass, and made again
  CHECK(times_made(plan, "conv8") == 4);   // once more for statistics
  CHECK(times_made(plan, "conv6") == 2);
  // Beside the input and the output of a block, and their gradient, there is little in full height.
  using Wide = Sequential<Conv<8>, BatchNorm, ReLU,
                          Residual<Sequential<Conv<8, one>, BatchNorm, ReLU, Conv<64, one>, BatchNorm>, Sequential<Conv<64, one>, BatchNorm>>, ReLU,
                          Residual<Sequential<Conv<8, one>, BatchNorm, ReLU, Conv<64, one>, BatchNorm>>, ReLU, GlobalAvgPool, Linear<2>>;
  constexpr Index map = Input{1, 64, 64, 64}.count() * 4;
  constexpr Input image{1, 3, 64, 64};
  using Usual = Policy<CheckpointAtSums<>, RecomputeAll, GradientsInPlace, Workspace<0>>;
  using Passed = Policy<OneExtraPassBothWays<Overlap<16>>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace, Workspace<0>>;
  static_assert(peak_bytes<Wide, Usual>(image) > 3.3 * map);
  static_assert(peak_bytes<Wide, Passed>(image) < 2.6 * map);
}
TEST_CASE("sections whose inputs are made again may have one extra pass, and supply others") {
  using One = OneExtraPass<Slabs>;
  const Plan group = sound_plan<Bottlenecks, Stages<Column, One, RecomputeInput<One>, RecomputeInput<Column>>, CheckpointAtSums<>, RecomputeAll>();
  CHECK(std::count_if(group.stages.begin(), group.stages.end(), [](const Stage& s) { return s.supplies && s.passes > 0; }) == 2);
  // What the stages below keep could not be made again.
  CHECK(refusal<Bottlenecks, Stages<Column, Section<One, RecomputeCheap>, RecomputeInput<One>>, CheckpointAtSums<>, RecomputeAll>().find(
            "the section below it does not recompute all") != std::string::npos);
  const Plan alone = sound_plan<Bottlenecks, Stages<Column, One, RecomputeInputAlone<One>>, CheckpointAtSums<>, GradientsInPlace>();
  CHECK(std::count_if(alone.stages.begin(), alone.stages.end(), [](const Stage& s) { return s.makes_input; }) > 0);
}
TEST_CASE("the first pass writes a sum's gradient over that of the section's output, and later passes find it there") {
  const Plan apart = sound_plan<Bottlenecks, OneExtraPass<Slabs>, CheckpointAtSums<>, RecomputeAll>();
  const Plan shared = sound_plan<Bottlenecks, OneExtraPass<Slabs>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>();
  CHECK(sums_in_place(apart) == 0);
  CHECK(sums_in_place(shared) == 3);
  for (const std::string_view relu : {"relu4", "relu7", "relu10"}) {
    CHECK(times_back(apart, relu) == 2);
    CHECK(times_back(shared, relu) == 1);
    CHECK(times_made(shared, relu) == times_made(apart, relu) - 1);
  }
  CHECK(times_made(shared, "batch_norm5") == times_made(apart, "batch_norm5") - 1);   // of the first block's second input
  CHECK(times_made(shared, "conv5") == times_made(apart, "conv5"));
  const Index map = small_input.n * 16 * small_input.h * small_input.w * 4;
  CHECK(apart.peak_bytes() - shared.peak_bytes() > map / 2);   // the peak lies elsewhere then
  CHECK(!in_full(shared, "relu4", Role::gradient));            // it is that of relu7, from the sum on
  CHECK(in_full(apart, "relu4", Role::gradient));
}
TEST_CASE("a sum's gradient has a place of its own where others read the skip connection there, or what the activation reads") {
  using One = OneExtraPass<Slabs>;
  const auto count = [](const Plan& plan) {
    const auto problems = check_plan(plan);
    CHECK((problems.empty() ? "" : problems[0]) == "");
    return sums_in_place(plan);
  };
  const auto within = []<class Middle>(std::type_identity<Middle>) {
    return plan_of<Sequential<Conv<8>, BatchNorm, ReLU, Middle, GlobalAvgPool, Linear<2>>, One, CheckpointAt<"relu1", "end">, RecomputeAll,
                   GradientsInPlace>();
  };
  using Narrow = Sequential<Conv<4>, BatchNorm, ReLU, Conv<8>, BatchNorm>;
  using End = Named<"end", ReLU>;
  CHECK(count(within(std::type_identity<Sequential<Residual<Narrow>, End>>{})) == 1);
  CHECK(count(within(std::type_identity<Sequential<Residual<Narrow>, Named<"end", LeakyReLU<>>>>{})) == 1);
  CHECK(count(within(std::type_identity<Sequential<Residual<Narrow>, Named<"end", SiLU>>>{})) == 1);
  // The passes cover the convolution that reads the skip connection.
  CHECK(count(within(std::type_identity<Sequential<Residual<Sequential<Conv<8>, BatchNorm>>, End>>{})) == 0);
  // The second input is a norm's, whose own input another stage makes: a convolution with strides, beside the first of the body.
  constexpr Window halves{.kernel = 1, .stride = 2, .pad = 0}, steps{.kernel = 3, .stride = 2, .pad = 1};
  using Strided = Residual<Sequential<Conv<4>, BatchNorm, ReLU, Conv<4, steps>, BatchNorm, ReLU, Conv<16, one>, BatchNorm>,
                           Sequential<Conv<16, halves>, Named<"shortcut", BatchNorm>>>;
  const Plan strided = within(std::type_identity<Sequential<Strided, End>>{});
  CHECK(count(strided) == 1);
  CHECK(!in_full(strided, "shortcut", Role::gradient));   // it is that of the sum
  // The body ends in a convolution or an activation.
  CHECK(count(within(std::type_identity<Sequential<Residual<Sequential<Narrow, Conv<8>>>, End>>{})) == 0);
  CHECK(count(within(std::type_identity<Sequential<Residual<Sequential<Narrow, ReLU>>, End>>{})) == 0);
  // Both inputs come from norms; or the second comes from a convolution.
  CHECK(count(within(std::type_identity<Sequential<Residual<Narrow, Sequential<Conv<8>, BatchNorm>>, End>>{})) == 1);
  CHECK(count(within(std::type_identity<Sequential<Residual<Narrow, Conv<8>>, End>>{})) == 0);
  // Something follows the activation in the section.
  CHECK(count(within(std::type_identity<Sequential<Residual<Narrow>, ReLU, Named<"end", MaxPool<>>>>{})) == 0);
  // A norm above the section reads its output, or the next section reads the skip connection, too.
  CHECK(count(plan_of<Sequential<Conv<8>, BatchNorm, ReLU, Residual<Narrow>, End, BatchNorm, GlobalAvgPool, Linear<2>>, One,
                      CheckpointAt<"relu1", "end">, RecomputeAll, GradientsInPlace>()) == 0);
  CHECK(count(plan_of<Sequential<Conv<8>, BatchNorm, ReLU, Residual<Sequential<Residual<Narrow>, End, Conv<8>>>, GlobalAvgPool, Linear<2>>, One,
                      CheckpointAt<"relu1", "end">, RecomputeAll, GradientsInPlace>()) == 0);
}
TEST_CASE("that gradient lies behind the output's values if all that go through the skip connection's gradient do so slab by slab") {
  using Narrow = Sequential<Conv<4>, BatchNorm, ReLU, Conv<8>, BatchNorm>;
  using Read = Sequential<Conv<8>, Residual<Narrow>, ReLU, Conv<8>, ReLU, GlobalAvgPool, Linear<2>>;
  const auto check = [](const Plan& plan, Index sums, std::string_view layer, bool in_place) {
    CHECK(sums_in_place(plan) == sums);
    const std::vector<Index> lags = gradient_lags(plan.table, plan.stages, needs_of(plan.table, plan.policy, plan.options, plan.stages));
    for (Index l = 0; l < plan.table.size(); ++l)
      if (plan.table.node(l).layer.name.view() == layer) CHECK((item(lags, l + 1) > 0) == in_place);
  };
  const auto read = [&]<class First, class Second>(std::type_identity<First>, std::type_identity<Second>) {
    return sound_plan<Read, Stages<First, Second, Overlap<8>>, CheckpointAt<"conv1", "relu2">, RecomputeAll, GradientsInPlace>();
  };
  using One = OneExtraPass<Slabs>;
  constexpr std::type_identity<Column> column;
  constexpr std::type_identity<Slabs> slabs;
  check(read(slabs, std::type_identity<One>{}), 1, "relu2", true);
  check(read(column, std::type_identity<One>{}), 1, "relu2", false);   // the convolution that makes the skip connection wants its gradient dense
  check(read(column, slabs), 0, "relu2", true);                        // the skip connection has a gradient of its own
  // Of several blocks, the gradient of the last one's output goes down as that of all.
  using Two = Sequential<Conv<8>, Residual<Narrow>, ReLU, Residual<Narrow>, ReLU, Conv<8>, ReLU, GlobalAvgPool, Linear<2>>;
  const auto two = [&]<class First>(std::type_identity<First>) {
    return sound_plan<Two, Stages<First, One, One, Overlap<8>>, CheckpointAt<"conv1", "relu2", "relu4">, RecomputeAll, GradientsInPlace>();
  };
  check(two(slabs), 2, "relu4", true);
  check(two(slabs), 2, "relu2", false);
  CHECK(!in_full(two(slabs), "conv1", Role::gradient));
  check(two(column), 2, "relu4", false);
  // Without a skip connection nothing goes down.
  using Norms = Sequential<Conv<8>, Residual<Narrow, Sequential<Conv<8>, BatchNorm>>, ReLU, Conv<8>, ReLU, GlobalAvgPool, Linear<2>>;
  check(sound_plan<Norms, Stages<Column, One, Overlap<8>>, CheckpointAt<"conv1", "relu2">, RecomputeAll, GradientsInPlace>(), 1, "relu2", true);
  // The skip connection's values do not lie there.
  // A pooling whose backward pass does not read the skip connection, which could have its own gradient in its place.
  using Pooled = Sequential<Conv<8>, BatchNorm, ReLU, Residual<Sequential<MaxPool<>, Conv<4>, BatchNorm, ReLU, Upsample<2>, Conv<8>, BatchNorm>>,
                            ReLU, GlobalAvgPool, Linear<2>>;
  using AtReLUs = CheckpointAt<"relu1", "relu2", "relu3">;
  check(sound_plan<Pooled, Stages<Slabs, Slabs, One, Slabs>, AtReLUs, RecomputeAll, GradientsInPlace>(), 1, "relu1", false);
}
TEST_CASE("the checker finds what would spoil a sum's gradient that lies over an output's") {
  const Plan plan = sound_plan<Bottlenecks, OneExtraPass<Slabs>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>();
  const auto is_of = [&](const Step& s, std::string_view layer) {
    return s.op == Op::backward_data && plan.table.node(s.layer).layer.name.view() == layer;
  };
  Index found = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (!is_of(plan.steps[i], "relu10")) continue;
    CHECK(plan.steps[i].dx.buffer == plan.steps[i].dy.buffer);
    Plan wrong = plan;
    wrong.steps.erase(wrong.steps.begin() + static_cast<Index>(i));   // left out
    CHECK(!check_plan(wrong).empty());
    wrong = plan;
    wrong.steps.insert(wrong.steps.begin() + static_cast<Index>(i), plan.steps[i]);   // twice
    CHECK(!check_plan(wrong).empty());
    ++found;
  }
  CHECK(found == 4);
  Plan wrong = plan;
  for (Step& s : wrong.steps)   // the norm's gradient over the sum's
    if (is_of(s, "batch_norm11")) s.dx = s.dy, s.dx.tensor = plan.table.node(s.layer).input;
  CHECK(!check_plan(wrong).empty());
}
TEST_CASE("plans of random residual networks have no problems, whatever their extra passes cover") {
  Index plans = 0, covering = 0, in_place = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Dice dice(seed + 7000000);
    const RandomNetwork net = random_blocks(dice);
    const Table table = make_table(net.layers, net.input);
    const PolicySpec policy = random_blocks_policy(dice, net);
    const bool map = table.shape(table.size()).h > 1;
    PlanOptions options;
    options.rows_loss = map && dice.chance(0.5), options.input_gradient = dice.chance(0.5), options.accumulate = dice.chance(0.2);
    const Target target{.packs_weights = dice.chance(0.3), .activates = dice.chance(0.3), .convolves_rows = dice.chance(0.3)};
    try {
      const Plan plan = make_plan(table, policy, target, options);
      const auto problems = check_plan(plan);
      if (!problems.empty() || arena_size(table, policy, target, options) != plan.arena) {
        CAPTURE(seed);
        CAPTURE(to_string(policy));
        CHECK((problems.empty() ? "other bytes" : problems[0]) == "");
      }
      ++plans;
      for (const Stage& s : plan.stages) covering += s.passes > 0 && s.partition.passes == NormPasses::one;
      in_place += sums_in_place(plan);
    } catch (const PlanError&) {
      ++refused;
    }
  }
  MESSAGE(plans, " plans, ", covering, " stages of one extra pass, ", in_place, " gradients of sums over those of outputs; ", refused, " refused");
  CHECK(plans > 1000);
  CHECK(covering > 500);
  CHECK(in_place > 100);
}
