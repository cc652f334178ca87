// Stages of networks with norms and joins: where they end, which are done again, what goes through norms; what is refused; and that
// memory falls as the policies say.
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/network/graph.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/peak.hpp>
#include "support/error_of.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using lrcnn::testing::error_of;
namespace {
using Body = Sequential<Conv<8>, BatchNorm, ReLU, Conv<8>, BatchNorm>;
using Shortcut = Sequential<Conv<8, Window{.kernel = 1}>, BatchNorm>;
using Net = Sequential<Conv<8>, BatchNorm, ReLU, Residual<Body>, ReLU, Residual<Body, Shortcut>, ReLU, GlobalAvgPool, Linear<4>>;
constexpr Input input{2, 3, 32, 16};
std::string layers_of(const Table& table, const Stage& s) {
  std::string text;
  for (Index l = s.first; l < s.last; ++l) text += (l > s.first ? " " : "") + std::string(table.node(l).layer.name.view());
  return text;
}
template <class N, class... Parts>
std::vector<std::string> stages_of(const Input& in, bool training = true) {
  const Table table = table_of<N>(in);
  std::vector<std::string> list;
  for (const Stage& s : make_stages(table, Policy<Parts...>::value, Target{}, in.n, {.training = training}))
    list.push_back(layers_of(table, s) + (s.forward_repeated ? " again" : "") + (s.replaced_by_extra_passes ? " replaced" : "") +
                   (s.passes > 0 ? " passes " + std::to_string(s.passes) : ""));
  return list;
}
template <class N, class... Parts>
std::string refusal(const Input& in, const PlanOptions& options = {}) {
  return error_of<PlanError>([&] { make_plan(table_of<N>(in), Policy<Parts...>::value, Target{}, options); });
}
}   // namespace
TEST_CASE("a stage ends where a norm waits for its input, and a projection is in the stage of the body's last convolution") {
  using Strings = std::vector<std::string>;
  CHECK(stages_of<Net>(input) == Strings{"conv1", "batch_norm1 relu1 conv2", "batch_norm2 relu2 conv3", "batch_norm3 sum1 relu3 conv4",
                                         "batch_norm4 relu4 conv5 conv6", "batch_norm5 batch_norm6 sum2 relu5 global_avg_pool1", "linear1"});
  CHECK(stages_of<Net>(input, false).size() == 2);   // running statistics are there from the beginning
  CHECK(stages_of<Sequential<Conv<8>, FrozenBatchNorm, ReLU, Conv<8>, LayerNorm, GlobalAvgPool>>(input).size() == 1);
  CHECK(stages_of<Sequential<Conv<8>, GroupNorm<2>, ReLU, GlobalAvgPool>>(input, false) == Strings{"conv1", "group_norm1 relu1 global_avg_pool1"});
}
TEST_CASE("with RecomputeAll the stages between checkpoints are done again, all but the last of them") {
  using Strings = std::vector<std::string>;
  CHECK(stages_of<Net, CheckpointAtSums<>, RecomputeAll>(input) ==
        Strings{"conv1 again", "batch_norm1 relu1 conv2 again", "batch_norm2 relu2 conv3 again", "batch_norm3 sum1 relu3", "conv4 again",
                "batch_norm4 relu4 conv5 conv6 again", "batch_norm5 batch_norm6 sum2 relu5", "global_avg_pool1", "linear1"});
  CHECK(stages_of<Net, Stages<Keep<>, Column>, CheckpointAtSums<>, RecomputeAll>(input)[0] == "conv1");   // kept in the first section
}
TEST_CASE("a stage with extra passes covers its section, with a pass for each norm above another") {
  using Strings = std::vector<std::string>;
  CHECK(stages_of<Net, Stages<Column, ExtraPasses<Overlap<2>>, Column>, CheckpointAtSums<>, RecomputeAll>(input) ==
        Strings{"conv1 again", "batch_norm1 relu1 conv2 again", "batch_norm2 relu2 conv3 again", "batch_norm3 sum1 relu3", "conv4 replaced",
                "batch_norm4 relu4 conv5 conv6 replaced", "batch_norm5 batch_norm6 sum2 relu5 replaced", "global_avg_pool1", "linear1",
                "conv4 batch_norm4 relu4 conv5 conv6 batch_norm5 batch_norm6 sum2 relu5 passes 2"});
}
TEST_CASE("with RecomputeCheap the first of extra passes keeps what norms read, and the later ones make no such convolution again") {
  // conv4 and conv5 are each followed by a norm, one above the other; conv6 by one beside it. Each pass has two slabs of each image.
  const auto again = [](const Plan& plan, std::string_view layer, Pass pass = Pass::recompute) {
    return std::count_if(plan.steps.begin(), plan.steps.end(),
                         [&](const Step& s) { return s.op == Op::forward && s.pass == pass && plan.table.node(s.layer).layer.name.view() == layer; });
  };
  const auto kept = [](const Plan& plan) {   // bytes for all slabs
    Index bytes = 0;
    for (const Buffer& b : plan.buffers) bytes += b.role == Role::kept ? b.bytes : 0;
    return bytes;
  };
  const auto plan_of = [](const PolicySpec& policy) {
    Plan plan = make_plan(table_of<Net>(input), policy, {}, {.input_gradient = true});
    const auto problems = check_plan(plan);
    CHECK((problems.empty() ? "" : problems[0]) == "");
    return plan;
  };
  using Cut = ByImages<1, Overlap<2>>;
  const Plan all = plan_of(Policy<Stages<Column, ExtraPasses<Cut>, Column>, CheckpointAtSums<>, RecomputeAll>::value);
  const Plan cheap = plan_of(Policy<Stages<Column, Section<ExtraPasses<Cut>, RecomputeCheap>, Column>, CheckpointAtSums<>, RecomputeAll>::value);
  for (const std::string_view conv : {"conv4", "conv5", "conv6"}) {
    CAPTURE(conv);
    CHECK(again(all, conv) == 3 * 4);   // two passes for sums and one for gradients
    CHECK(again(cheap, conv) == 4);
    CHECK(again(cheap, conv, Pass::forward) == again(all, conv, Pass::forward));
  }
  CHECK(again(cheap, "relu4") + again(cheap, "batch_norm4") == again(all, "relu4") + again(all, "batch_norm4"));
  CHECK(kept(all) == 0);
  const auto bytes = [](Index channels, Index rows) { return Target{}.bytes(1, channels, rows, input.w); };
  CHECK(kept(cheap) == 2 * (2 * bytes(8, 17) + 2 * 2 * bytes(8, 16)));   // one more row of what a norm under a convolution reads
  CHECK(all.arena.lower_bound < cheap.arena.lower_bound);
  const Plan both = plan_of(
      Policy<Stages<Column, Section<ExtraPassesBothWays<Cut>, RecomputeCheap>, Column>, CheckpointAtSums<>, RecomputeAll, GradientsInPlace>::value);
  CHECK(again(both, "conv4") == 4);
  CHECK(again(both, "conv4", Pass::forward) == 3 * 4);   // these go forward as before
  CHECK(kept(both) == kept(cheap));
}
TEST_CASE("a forward pass that extra passes make again overwrites what it has read, whatever they keep themselves") {
  using Smooth = Sequential<Conv<8>, SiLU, Conv<8>, BatchNorm, ReLU, GlobalAvgPool, Linear<4>>;
  for (const PolicySpec& policy : {Policy<ExtraPasses<Overlap<2>>, RecomputeAll>::value, Policy<ExtraPasses<Overlap<2>>, RecomputeCheap>::value}) {
    CAPTURE(to_string(policy));
    const Plan plan = make_plan(table_of<Smooth>(input), policy);
    CHECK(check_plan(plan).empty());
    Index seen = 0;
    for (const Step& s : plan.steps) {
      if (s.op != Op::forward || s.pass != Pass::forward || plan.table.node(s.layer).layer.name.view() != "silu1") continue;
      CHECK(s.x.buffer == s.y.buffer);
      ++seen;
    }
    CHECK(seen == 2);
  }
}
TEST_CASE("statistics are taken once, in the forward pass, whatever is done again") {
  for (const PolicySpec& policy :
       {Policy<>::value, Policy<Overlap<4>, CheckpointAtSums<>, RecomputeAll>::value, Policy<Share<4>, RecomputeAll>::value,
        Policy<ByImages<1, Overlap<2>>, RecomputeAll>::value, Policy<ExtraPasses<Overlap<4>>, RecomputeAll>::value}) {
    CAPTURE(to_string(policy));
    const Plan plan = make_plan(table_of<Net>(input), policy);
    CHECK(check_plan(plan).empty());
    std::vector<Index> rows(static_cast<std::size_t>(plan.table.size()), 0);
    for (const Step& s : plan.steps) {
      if (s.op != Op::statistics) continue;
      CHECK(s.pass == Pass::forward);
      rows[static_cast<std::size_t>(s.layer)] += s.x.rows.size() * s.x.images.size();
    }
    for (Index l = 0; l < plan.table.size(); ++l)
      CHECK(rows[static_cast<std::size_t>(l)] == (plan.table.node(l).layer.kind == Kind::norm ? input.n * input.h : 0));
  }
}
TEST_CASE("residual networks: half the memory with checkpoints, and less with the norm below the first pooling passed through") {
  constexpr Input large{1, 3, 512, 512};
  const Index kept = peak_bytes<ResNet18<>, Policy<>>(large);
  const Index blocks = peak_bytes<ResNet18<>, Policy<CheckpointAtSums<>, RecomputeAll>>(large);
  const Index stem = peak_bytes<ResNet18<>, Policy<Stages<ExtraPasses<Overlap<8>>, Column>,
                                                   CheckpointAt<"pool1", "layer1.0.relu2", "layer1.1.relu2", "layer2.0.relu2">, RecomputeAll>>(large);
  CHECK(blocks < kept * 6 / 10);
  CHECK(stem < blocks * 82 / 100);
  MESSAGE(kept, " bytes kept, ", blocks, " with checkpoints at sums, ", stem, " with extra passes below the first pooling");
}
TEST_CASE("what norms cannot work with is refused, and says what to change") {
  CHECK(refusal<Sequential<BatchNorm, Conv<4>, GlobalAvgPool, Linear<2>>>(input) ==
        "lrcnn: layer 'batch_norm1' (batch_norm) reads the network's input; its statistics need the whole input before its first row "
        "is used, and the input is read row by row; normalise the data when it is loaded, or put a convolution first");
  using Shortcut = Sequential<Residual<Sequential<Conv<3>, ReLU>, InstanceNorm>, GlobalAvgPool, Linear<2>>;   // its norm is the third layer
  CHECK(refusal<Shortcut>(input).find("layer 'instance_norm1' (instance_norm) reads the network's input; ") != std::string::npos);
  CHECK(refusal<Sequential<Conv<4>, GlobalAvgPool, BatchNorm, Linear<2>>>({1, 3, 8, 8}) ==
        "lrcnn: layer 'batch_norm1' (batch_norm) has one value in each channel of input 1x4x1x1; the variance of one value is zero, and so is "
        "every gradient; use a larger batch or map, or a frozen norm");
  CHECK(refusal<Sequential<Conv<4>, InstanceNorm, GlobalAvgPool, Linear<2>>>({2, 3, 1, 1}) ==
        "lrcnn: layer 'instance_norm1' (instance_norm) has one value in each group of input 2x4x1x1; the variance of one value is zero, and "
        "so is every gradient; use a larger batch or map, or a frozen norm");
  CHECK(refusal<Sequential<Conv<4>, InstanceNorm, GlobalAvgPool, Linear<2>>>({2, 3, 1, 2}) == "no error");
  CHECK(refusal<UNet<2, 2>>({1, 3, 16, 16}).find("in each channel of input 1x32x1x1; ") != std::string::npos);   // at the bottom
  CHECK(refusal<UNet<2, 2>>({1, 3, 16, 32}) == "no error");
  CHECK(refusal<Sequential<Conv<4>, GlobalAvgPool, BatchNorm, Linear<2>>>({2, 3, 8, 8}) == "no error");
  CHECK(refusal<Sequential<Conv<4>, GlobalAvgPool, BatchNorm, Linear<2>>>({1, 3, 8, 8}, {.training = false}) == "no error");
  CHECK(refusal<Net, Images<1>>(input) ==
        "lrcnn: layer 'batch_norm1' (batch_norm) is run by Policy<Column, Images<1>, NoCheckpoints, KeepAll, DirectConv, Workspace<4194304>>; "
        "statistics of a batch need all of its images before the first is normalised, and Images<n> takes groups of them through the whole "
        "network; cut the batch within stages instead: ByImages<1, ...>");
  CHECK(refusal<Net, Images<1>>(input, {.training = false}) == "no error");
  CHECK(refusal<Sequential<Conv<4>, GroupNorm<2>, GlobalAvgPool, Linear<2>>, Images<1>>(input) == "no error");
}
TEST_CASE("a slab count that a stage between norms cannot carry is refused with one that all stages of its section can") {
  using Halved = Sequential<Conv<8>, BatchNorm, ReLU, Conv<8, Window{.stride = 2, .pad = 1}>, BatchNorm, ReLU, MaxPool<>, BatchNorm, ReLU,
                            GlobalAvgPool, Linear<4>>;
  const std::string cannot = " slabs by Overlap<12>; every slab owns a row of every layer's output; the largest feasible count is ";
  CHECK(refusal<Halved, Stages<Overlap<12>, Column>>({2, 3, 16, 8}) ==
        "lrcnn: stage batch_norm1..conv2 cannot be cut into 12" + cannot +
            "8; ask for at most 4 in conv1..global_avg_pool1, which norms divide, or part it by a checkpoint");
  CHECK(refusal<Halved, Stages<Overlap<4>, Column>>({2, 3, 16, 8}) == "no error");
  CHECK(refusal<Halved, Stages<Overlap<5>, Column>>({2, 3, 16, 8}).find(" cannot be cut into 5 slabs by Overlap<5>; ") != std::string::npos);
  CHECK(refusal<Halved, Stages<Overlap<12>, Overlap<8>, Overlap<4>, Column>, CheckpointAt<"conv1", "conv2">>({2, 3, 16, 8}) == "no error");
  CHECK(refusal<Halved, Stages<Overlap<12>, Overlap<12>, Column>, CheckpointAt<"conv1", "conv2">>({2, 3, 16, 8}) ==
        "lrcnn: stage batch_norm1..conv2 cannot be cut into 12" + cannot + "8; ask for at most 8 in this stage");
  CHECK(refusal<Halved, Stages<Overlap<17>, Column>, CheckpointAt<"conv1">>({2, 3, 16, 8}).ends_with("; ask for at most 16 in this stage"));
  for (PolicySpec policy : {Policy<Stages<Share<16>, Column>>::value, Policy<Stages<ExtraPasses<Overlap<9>>, Column>>::value}) {
    const std::string before = "; ask for at most ", text = error_of([&] { make_plan(table_of<Halved>({2, 3, 16, 8}), policy); });
    REQUIRE(text.find(before) != std::string::npos);
    const Index most = std::stoll(text.substr(text.find(before) + before.size()));
    for (const Index count : {most, most + 1}) {
      policy.partitions[0].forward = policy.partitions[0].backward = count;
      CHECK((error_of([&] { make_plan(table_of<Halved>({2, 3, 16, 8}), policy); }) == "no error") == (count == most));
    }
  }
}
TEST_CASE("a norm behind a global pooling has statistics of the batch") {
  using Pooled = Sequential<Conv<4>, BatchNorm, ReLU, GlobalAvgPool, BatchNorm, ReLU, Linear<8>, BatchNorm, ReLU, Linear<2>>;
  for (const PolicySpec& policy : {Policy<>::value, Policy<ByImages<1, Overlap<2>>, RecomputeAll>::value}) {
    const auto problems = check_plan(make_plan(table_of<Pooled>({3, 2, 8, 8}), policy, {}, {.input_gradient = true}));
    CHECK((problems.empty() ? "" : problems[0]) == "");
  }
}
namespace {
/// Plans that the checker refuses, as text; `plans` counts all that were made.
template <class Net>
std::string refused_plans(Index& plans) {
  std::string refused;
  for (const Index height : {9, 17, 20, 23, 26, 32, 38})
    for (const Target& target : {Target{}, Cudnn::target})   // whose convolutions read rows where they lie
      for (PolicySpec policy : {PolicySpec(Policy<Overlap<2>, RecomputeAll>::value), PolicySpec(Policy<Share<3>, RecomputeAll, WinogradConv>::value),
                                PolicySpec(Policy<Overlap<5>, CheckpointAtPools>::value), PolicySpec(Policy<Share<4>, CheckpointAtPools>::value)})
        try {
          const Plan plan = make_plan(table_of<Net>({1, 3, height, 8}), policy, target, {.training = true, .input_gradient = height % 2 == 0});
          for (const std::string& problem : check_plan(plan)) refused += to_string(policy) + " at " + std::to_string(height) + ": " + problem + "\n";
          ++plans;
        } catch (const PlanError&) {   // more slabs than rows
        }
  return refused;
}
}   // namespace
TEST_CASE("a convolution's rows are its own where a norm of another stage reads the same tensor, too") {
  Index plans = 0;
  using Inception =
      Sequential<Conv<4>, Concat<Sequential<Conv<4>, ReLU, MaxPool<>>, Sequential<BatchNorm, ReLU, MaxPool<>>>, GlobalAvgPool, Linear<3>>;
  CHECK(refused_plans<Inception>(plans) == "");
  using PreActivation =
      Sequential<Conv<4>, Residual<Sequential<BatchNorm, ReLU, Conv<4, Window{.stride = 2, .pad = 1}>>, Conv<4, Window{.kernel = 1, .stride = 2}>>,
                 GlobalAvgPool, Linear<3>>;
  CHECK(refused_plans<PreActivation>(plans) == "");
  using Thirds = Sequential<
      Conv<4>, Residual<Sequential<BatchNorm, ReLU, Conv<4, Window{.kernel = 3, .stride = 3, .pad = 1}>>, Conv<4, Window{.kernel = 1, .stride = 3}>>,
      GlobalAvgPool, Linear<3>>;
  CHECK(refused_plans<Thirds>(plans) == "");
  CHECK(plans > 100);
}
