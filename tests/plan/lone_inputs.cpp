// Sections whose input is made again for them alone (RecomputeInputAlone): when that is done and by how much arithmetic, what lives meanwhile, how
// the pass is cut, and what is refused.
#include <lrcnn/network/squeeze_excitation.hpp>
#include <lrcnn/plan/peak.hpp>
#include <lrcnn/plan/print.hpp>
#include "plan/stage_order.hpp"
#include <doctest/doctest.h>
#include <sstream>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Slabs = Overlap<2>;
using Alone = RecomputeInputAlone<Slabs>;
std::vector<Stage> makers(const Plan& plan) {
  std::vector<Stage> list;
  for (const Stage& stage : plan.stages)
    if (stage.makes_input) list.push_back(stage);
  return list;
}
/// Buffers in full height that passes behind the loss write values to, by rising times.
std::vector<Buffer> made_again(const Plan& plan) {
  const Index now = step_times(plan)[loss_of(plan)];
  std::vector<Buffer> list;
  for (const Buffer& b : plan.buffers)
    if (b.role == Role::value && b.first > now) list.push_back(b);
  std::sort(list.begin(), list.end(), [](const Buffer& a, const Buffer& b) { return a.first < b.first; });
  return list;
}
}   // namespace
TEST_CASE("the input of each section is made again right before it goes backward, from the nearest section below whose input is kept") {
  const Plan all = plan_of<Chain, Stages<Slabs, Alone, Alone, Alone>, AtSections, RecomputeAll>();
  const Plan two = plan_of<Chain, Stages<Slabs, Alone, Slabs, Alone>, AtSections, RecomputeAll>();
  for (const Plan* plan : {&all, &two}) CHECK(check_plan(*plan).empty());
  std::ostringstream text;
  text << all;
  CHECK(text.str().find(
            "stage conv1..relu3                Section<ByImages<2,Overlap<2>>, RecomputeAll> 2x3x64x32 -> 2x8x64x32, slabs of 38 to 38 input "
            "rows, which makes the next section's input again\n") != std::string::npos);
  CHECK(order(all) == "0f 1f 2f 3f 4f 4b 7r 3b 6r 2b 5r 1b 0b");
  CHECK(order(two) == "0f 1f 2f 3f 4f 4b 6r 3b 2b 5r 1b 0b");
  CHECK(live_at_loss(all) == "");
  CHECK(live_at_loss(two) == "6");
  // Once in the forward pass, once for each section above, and what the section's own gradients read once more.
  CHECK(times_of_chain(all) == std::vector<Index>{5, 4, 4, 3, 3, 2, 2, 1});
  CHECK(times_of_chain(two) == std::vector<Index>{3, 2, 2, 1, 3, 2, 2, 1});
}
TEST_CASE("the pass has as many slabs as its section, or as the policy says for it") {
  const auto slabs_of = [](const Plan& plan) {
    CHECK(check_plan(plan).empty());
    std::vector<Index> list;
    for (const Stage& maker : makers(plan)) list.push_back(maker.forward.slabs());
    return list;
  };
  using Both = std::vector<Index>;
  using Eight = Overlap<2, 8>;
  const auto with = []<class P>(std::type_identity<P>) {
    return plan_of<Chain, Stages<Eight, Column, P, P>, AtSections, RecomputeAll>({1, 3, 64, 32});
  };
  const Plan usual = with(std::type_identity<RecomputeInputAlone<Eight>>{}), two = with(std::type_identity<RecomputeInputAlone<Eight, 2>>{});
  CHECK(slabs_of(usual) == Both{8, 8});
  CHECK(slabs_of(two) == Both{2, 2});
  CHECK(two.steps.size() < usual.steps.size());
  CHECK(slabs_of(with(std::type_identity<RecomputeInputAlone<Eight, 1>>{})) == Both{1, 1});
  CHECK(slabs_of(with(std::type_identity<RecomputeInputAlone<Column>>{})) == Both{2, 2});   // of 32 rows
  CHECK(slabs_of(with(std::type_identity<RecomputeInputAlone<Column, 4>>{})) == Both{4, 4});
  CHECK(slabs_of(with(std::type_identity<RecomputeInputAlone<Share<4>, 3>>{})) == Both{3, 3});
  // All else is as it was.
  for (std::size_t s = 0; s < usual.stages.size(); ++s)
    if (!usual.stages[s].makes_input) CHECK(usual.stages[s].backward == two.stages[s].backward);
}
TEST_CASE("one input at a time is in full height, and nothing between") {
  const Plan plan = plan_of<Chain, Stages<Slabs, Alone, Alone, Alone>, AtSections, RecomputeAll>();
  const std::vector<Buffer> again = made_again(plan);
  REQUIRE(again.size() == 3);
  for (std::size_t i = 0; i < again.size(); ++i) {
    CHECK(again[i].tensor == 9 - 3 * static_cast<Index>(i));
    if (i > 0) CHECK(again[i - 1].last <= again[i].first);
  }
  const Index map = small_input.n * 8 * small_input.h * small_input.w * 4;
  using Groups = Policy<Stages<Slabs, RecomputeInput<Slabs>, RecomputeInput<Slabs>, RecomputeInput<Slabs>>, AtSections, RecomputeAll, Workspace<0>>;
  using Lone = Policy<Stages<Slabs, Alone, Alone, Alone>, AtSections, RecomputeAll, Workspace<0>>;
  static_assert(peak_bytes<Chain, Lone>(small_input) < peak_bytes<Chain, Groups>(small_input));
  CHECK(peak_bytes<Chain, Lone>(small_input) == plan.peak_bytes());
  CHECK(peak_bytes<Chain, Groups>(small_input) - plan.peak_bytes() >= map);
}
TEST_CASE("the pass goes through norms whose statistics are known, and leaves no norm's input in full height") {
  for (const Plan& plan :
       {plan_of<Norms, Stages<Slabs, Alone, Alone>, AtNorms, RecomputeAll>(),
        plan_of<Norms, Stages<ExtraPasses<Slabs>, RecomputeInputAlone<ExtraPasses<Slabs>>, RecomputeInputAlone<ExtraPasses<Slabs>>>, AtNorms>()}) {
    CHECK(check_plan(plan).empty());
    CHECK(live_at_loss(plan) == "");
    CHECK(std::count_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.op == Op::statistics; }) == 12);   // once for each slab
    for (const Step& s : plan.steps) {
      const bool full = s.y && s.op != Op::load && item(plan.buffers, s.y.buffer).role == Role::value;
      if (full && item(plan.stages, s.stage).makes_input) CHECK((s.y.tensor == 6 || s.y.tensor == 12));
    }
  }
}
TEST_CASE("the pass is cut as its section is, or into some slabs of images and rows if that is a column") {
  const auto cut = [](const Plan& plan) {
    REQUIRE(makers(plan).size() == 1);
    CHECK(check_plan(plan).empty());
    const Stage maker = makers(plan)[0];
    CHECK(maker.partition.input == SectionInput::keep);
    return std::pair{maker.forward.slabs(), maker.partition.images};
  };
  CHECK(cut(plan_of<Chain, Stages<Slabs, RecomputeInputAlone<Overlap<2, 5>>, Slabs>, AtSections, RecomputeAll>()) == std::pair<Index, Index>{5, 2});
  CHECK(cut(plan_of<Chain, Stages<Slabs, RecomputeInputAlone<Share<3>>, Slabs>, AtSections, RecomputeAll>()) == std::pair<Index, Index>{3, 2});
  CHECK(cut(plan_of<Chain, Stages<Slabs, RecomputeInputAlone<ByImages<1>>, Slabs>, AtSections, RecomputeAll>()) == std::pair<Index, Index>{1, 1});
  CHECK(cut(plan_of<Chain, Stages<Slabs, RecomputeInputAlone<>, Slabs>, AtSections, RecomputeAll>()) ==
        std::pair<Index, Index>{2, 1});   // of 64 rows
  CHECK(cut(plan_of<Chain, Stages<Slabs, RecomputeInputAlone<>, Slabs>, AtSections, RecomputeAll>({1, 3, 300, 16})) == std::pair<Index, Index>{8, 1});
  CHECK(cut(plan_of<Chain, Stages<Slabs, RecomputeInputAlone<>, Slabs>, AtSections, RecomputeAll>({40, 3, 40, 16})) == std::pair<Index, Index>{1, 5});
  // More slabs than rows: as many as there are.
  CHECK(cut(plan_of<Chain, Stages<Overlap<2>, RecomputeInputAlone<Overlap<60>>, Slabs>, AtSections, RecomputeAll>()).first == 60);
}
TEST_CASE("gradients of such inputs take their values' places") {
  using Four = RecomputeInputAlone<Overlap<8>>;
  const Input tall{1, 3, 256, 32};
  const Plan apart = plan_of<Chain, Stages<Overlap<8>, Four, Four, Overlap<8>>, AtSections, RecomputeAll>(tall);
  const Plan in_place = plan_of<Chain, Stages<Overlap<8>, Four, Four, Overlap<8>>, AtSections, RecomputeAll, GradientsInPlace>(tall);
  for (const Plan* plan : {&apart, &in_place}) CHECK(check_plan(*plan).empty());
  const auto shares = [](const Plan& plan, Index tensor) {   // a buffer made again
    return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& s) {
      return s.y.tensor == tensor && s.y && s.y.held_rows.begin < 0 && item(plan.buffers, s.y.buffer).first > step_times(plan)[loss_of(plan)];
    });
  };
  for (const Index tensor : {3, 6}) {
    CHECK(!shares(apart, tensor));
    CHECK(shares(in_place, tensor));
  }
  CHECK(in_place.peak_bytes() < apart.peak_bytes());
}
TEST_CASE("a gradient does not take the place of values that such a pass still reads") {
  // conv1's map goes to conv4, at the top, whose gradients read it first, and to relu1, from where conv3's input is made again after that.
  using Skip = Sequential<Conv<8>, Residual<Sequential<ReLU, Conv<8>, Conv<8>>, Sequential<Conv<8>>>, GlobalAvgPool, Linear<2>>;
  using Rows = Overlap<4>;
  using At = CheckpointAt<"conv1", "conv2", "conv3">;
  const auto in_place = [](const Plan& plan) {
    CHECK(check_plan(plan).empty());
    return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.y.tensor == 1 && s.y && s.y.held_rows.begin < 0; });
  };
  CHECK(in_place(plan_of<Skip, Stages<Rows, Keep<Rows>, Rows, Rows>, At, RecomputeAll, GradientsInPlace>()));
  CHECK(!in_place(plan_of<Skip, Stages<Rows, Keep<Rows>, RecomputeInputAlone<Rows>, Rows>, At, RecomputeAll, GradientsInPlace>()));
}
TEST_CASE("the sections below need not recompute all") {
  const Plan plan = plan_of<Chain, Stages<Keep<Slabs>, RecomputeInputAlone<Keep<Slabs>>, Alone, Keep<>>, AtSections>();
  CHECK(check_plan(plan).empty());
  CHECK(makers(plan).size() == 2);
  CHECK(live_at_loss(plan) == "9");
}
TEST_CASE("a section whose input cannot be made again alone is refused, and says why") {
  const std::string rule =
      "; all sections from the nearest one below whose input is kept can go forward again for it if they make the same maps again; take "
      "RecomputeInputAlone away there";
  const std::string mixed =
      "the section below it has its own made again in the other way; inputs of sections that follow each other are made again all at once or each "
      "alone; use one of RecomputeInput and RecomputeInputAlone in both";
  const auto says = [](const std::string& layers, const std::string& why, const std::string& way = "RecomputeInputAlone") {
    return "lrcnn: the section of stage " + layers + " is to have its input made again by " + way + "<Overlap<2>>, and " + why;
  };
  CHECK(refusal<Chain, Stages<Alone, Slabs, Slabs, Slabs>, AtSections, RecomputeAll>() ==
        says("conv1..relu1", "it is the network's first section" + rule));
  using Group = RecomputeInput<Slabs>;
  CHECK(refusal<Chain, Stages<Slabs, Group, Alone, Slabs>, AtSections, RecomputeAll>() == says("conv5..relu3", mixed));
  CHECK(refusal<Chain, Stages<Slabs, Alone, Group, Slabs>, AtSections, RecomputeAll>() == says("conv5..relu3", mixed, "RecomputeInput"));
  using Behind = Sequential<Conv<8>, ReLU, Conv<8>, Flatten, Linear<4>, ReLU, Linear<2>>;
  CHECK(refusal<Behind, Stages<Slabs, Alone, Alone>, CheckpointAt<"relu1">, RecomputeAll>() ==
        says("flatten1..linear2", "it works on vectors" + rule));
  using Pooled = Sequential<Conv<8>, SqueezeExcitation<8, 2>, Conv<8>, GlobalAvgPool, Linear<2>>;
  CHECK(refusal<Pooled, Stages<Slabs, Alone>, RecomputeAll>().find("one of those that would go forward again for it makes no map" + rule) !=
        std::string::npos);
  using Body = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, Conv<8>>;
  using Skip = Sequential<Conv<8>, ReLU, Residual<Body>, ReLU, Conv<8>, GlobalAvgPool, Linear<2>>;
  CHECK(refusal<Skip, Stages<Slabs, Alone, Slabs, Slabs>, CheckpointAt<"relu1", "relu2", "relu3">, RecomputeAll>() ==
        says("conv2..relu2", "a section further up reads what the section below it makes, too" + rule));
  // What is made again would not be what it was.
  using SlabNorm = Sequential<Conv<8>, SlabBatchNorm, ReLU, Conv<8>, ReLU, Conv<8>, GlobalAvgPool, Linear<2>>;
  CHECK(refusal<SlabNorm, Stages<Slabs, Alone, Slabs>, CheckpointAt<"relu1", "relu2">, RecomputeAll>() ==
        says("conv2..relu2", "one of those that would go forward again for it has a SlabBatchNorm, which takes statistics of slabs" + rule));
  CHECK(refusal<SlabNorm, Stages<Slabs, Slabs, Alone>, CheckpointAt<"relu1", "relu2">, RecomputeAll>() == "no error");   // from behind it
  CHECK(refusal<Chain, Stages<Section<Slabs, WinogradConv>, Alone, Slabs, Slabs>, AtSections, RecomputeAll>() ==
        says("conv3..relu2", "one of those that would go forward again for it convolves by another algorithm" + rule));
  CHECK(refusal<Chain, Stages<Slabs, Alone, Slabs, Slabs>, AtSections, RecomputeAll, WinogradConv>() == "no error");
  CHECK(error_of<PlanError>([&] {   // a forward pass alone makes nothing again
          make_plan(table_of<Chain>(small_input), Policy<Stages<Alone, Slabs, Slabs, Slabs>, AtSections>::value, {}, {.training = false});
        }) == "no error");
}
TEST_CASE("one partition for all sections has inputs made again alone where that can be") {
  const Plan all = plan_of<Chain, Alone, AtSections, RecomputeAll>();
  CHECK(check_plan(all).empty());
  CHECK(order(all) == "0f 1f 2f 3f 4f 4b 7r 3b 6r 2b 5r 1b 0b");
  CHECK(!all.stages[0].input_alone);
  CHECK(order(plan_of<Chain, Alone, RecomputeAll>()) == "0f 1f 1b 0b");   // one section, and vectors
}
