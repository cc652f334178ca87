// Where stages end, which cuts they get, and what an infeasible request is told.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/network/graph.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/plan/make_stages.hpp>
#include <doctest/doctest.h>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
/// "0-5 5-10r 10-11v": layers of each stage; r: closed by a global pooling, v: of feature vectors.
std::string split(const Table& table, const PolicySpec& policy) {
  std::string text;
  for (const Stage& s : split_stages(table, policy)) {
    text += (text.empty() ? "" : " ") + std::to_string(s.first) + "-" + std::to_string(s.last);
    if (s.reduces) text += "r";
    if (s.vector) text += "v";
  }
  return text;
}
template <class Net, class... Parts>
std::string split_of(const Input& input) {
  return split(table_of<Net>(input), Policy<Parts...>::value);
}
template <class... Parts>
std::vector<Stage> stages_of(const Table& table) {
  return make_stages(table, Policy<Parts...>::value, Target{}, table.input.n);
}
/// The text of the PlanError that making the stages throws.
template <class... Parts>
std::string refusal(const Table& table) {
  try {
    stages_of<Parts...>(table);
  } catch (const PlanError& e) {
    return e.what();
  }
  return "";
}
/// conv conv pool | conv conv pool | conv, global pooling, linear: 3x3 convolutions, 2x2 pools, no activations.
using Three = Sequential<Conv<2>, Conv<2>, MaxPool<>, Conv<3>, Named<"middle", Conv<3>>, AvgPool<>, Conv<2>, GlobalAvgPool, Linear<5>>;
using Flat = Sequential<Conv<2>, ReLU, Conv<2>, Flatten, Linear<8>, ReLU, Linear<3>>;
const Input input{4, 3, 32, 8};
}   // namespace
TEST_CASE("without checkpoints a stage ends at barriers alone") {
  CHECK(split_of<Three>(input) == "0-8r 8-9v");
  CHECK(split_of<Flat>(input) == "0-3 3-7v");
  CHECK(split_of<Sequential<Conv<2>>>(input) == "0-1");
  CHECK(split_of<Sequential<GlobalAvgPool, Linear<2>>>(input) == "0-1r 1-2v");
  CHECK(split_of<Sequential<Flatten, Linear<2>>>(input) == "0-2v");
  CHECK(split_of<Sequential<Conv<2>, Flatten>>(input) == "0-1 1-2v");
  CHECK(split_of<Sequential<Conv<2>, GlobalAvgPool, ReLU, Linear<2>>>(input) == "0-2r 2-4v");
  CHECK(split_of<Sequential<Conv<2>, GlobalAvgPool, Flatten, Linear<2>>>(input) == "0-2r 2-4v");
}
TEST_CASE("checkpoints end stages at pools, every k-th layer, and named layers") {
  CHECK(split_of<Three, CheckpointAtPools>(input) == "0-3 3-6 6-8r 8-9v");
  CHECK(split_of<Three, CheckpointEvery<2>>(input) == "0-2 2-4 4-6 6-8r 8-9v");
  CHECK(split_of<Three, CheckpointEvery<1>>(input) == "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8r 8-9v");
  CHECK(split_of<Three, CheckpointEvery<100>>(input) == "0-8r 8-9v");
  CHECK(split_of<Three, CheckpointAt<"middle">>(input) == "0-5 5-8r 8-9v");
  CHECK(split_of<Three, CheckpointAt<"pool2", "conv1">>(input) == "0-1 1-6 6-8r 8-9v");
  CHECK(split_of<Three, CheckpointAt<"linear1">>(input) == "0-8r 8-9v");   // ends a stage anyway
}
TEST_CASE("feature vectors are one stage whatever the policy keeps") {
  CHECK(split_of<Flat, CheckpointEvery<1>>(input) == "0-1 1-2 2-3 3-7v");
  CHECK(split_of<Flat, CheckpointAt<"relu2">>(input) == "0-3 3-7v");
}
TEST_CASE("branches of vectors and of maps are in stages of their own, which policies cut and divide as they say") {
  using Beside =
      Sequential<Conv<8>, ReLU, Concat<Sequential<GlobalAvgPool, Linear<16>>, Sequential<Conv<32>, ReLU, Conv<32>, ReLU, GlobalAvgPool>>, Linear<10>>;
  CHECK(split_of<Beside>(input) == "0-3r 3-4v 4-9r 9-10v 10-11v");
  CHECK(split_of<Beside, CheckpointEvery<2>>(input) == "0-2 2-3r 3-4v 4-6 6-8 8-9r 9-10v 10-11v");
  const Table table = table_of<Beside>({1, 3, 64, 64});
  const auto stages = stages_of<Stages<Share<8>, Share<4>>, RecomputeAll>(table);   // the vectors' stage is not counted
  CHECK(stages[0].partition == Partition{Cut::share, 8, 8, 1});
  CHECK(stages[1].partition == Partition{Cut::column, 1, 1, 1});
  CHECK(stages[2].partition == Partition{Cut::share, 4, 4, 1});
  // Their norm is executed before the map's last layers.
  using Factors = Sequential<GlobalAvgPool, Linear<4>, BatchNorm, ReLU, Linear<16>, Sigmoid>;
  using Scaled = Sequential<Conv<16>, ReLU, Scale<Sequential<Conv<16>, ReLU, Conv<16>>, Factors>, GlobalAvgPool, Linear<10>>;
  CHECK(split_of<Scaled>(input) == "0-3r 3-4v 4-5v 5-8 8-11v 11-13r 13-14v");
  CHECK(split_of<Scaled, CheckpointEvery<1>>(input) == "0-1 1-2 2-3r 3-4v 4-5v 5-6 6-7 7-8 8-11v 11-12 12-13r 13-14v");
  // Means are with the vectors that follow them; without vectors, with the maps beside them.
  using Means = Sequential<GlobalAvgPool, BatchNorm, ReLU, Linear<16>>;
  CHECK(split_of<Sequential<Conv<16>, Scale<Sequential<Conv<16>, ReLU, Conv<16>>, Means>, ReLU>>(input) == "0-2r 2-6 6-8v 8-10");
}
TEST_CASE("vectors begin a stage, whatever writes the map of one pixel that they read") {
  using LeNet5 = Sequential<Conv<6>, ReLU, MaxPool<>, Conv<120, Window{.kernel = 16}>, ReLU, Linear<84>, ReLU, Linear<10>>;
  const Table table = table_of<LeNet5>({1, 3, 32, 32});
  CHECK(split(table, PolicySpec{}) == "0-5 5-8v");
  CHECK(split_of<LeNet5, CheckpointAtPools>({1, 3, 32, 32}) == "0-3 3-5 5-8v");
  CHECK(stages_of<Share<4>, CheckpointAtPools>(table)[0].partition == Partition{Cut::share, 4, 4, 1});
  CHECK(refusal<Share<4>, RecomputeAll>(table) ==
        "lrcnn: no stage can be cut into 4 slabs by Share<4> on input 1x3x32x32; every slab owns a row of every layer's output; the largest "
        "feasible count is 1, in stage conv1..relu2; ask for at most 1, or for fewer layers in a stage by more checkpoints");
  CHECK(split_of<Sequential<Conv<2>, GlobalAvgPool, Conv<3>, ReLU, Sigmoid, Linear<2>>>(input) == "0-2r 2-6v");   // means have no rows, either
  CHECK(split_of<Sequential<ReLU, Linear<4>, ReLU, Linear<2>>>({4, 8, 1, 1}) == "0-4v");                          // nor has such an input
}
TEST_CASE("stages tile the layers of every shipped network under every rule") {
  const auto check = [](const Table& table) {
    for (const auto rule : {Checkpoints::Rule::none, Checkpoints::Rule::pools, Checkpoints::Rule::every})
      for (Index every = 1; every <= 7; ++every) {
        PolicySpec policy;
        policy.checkpoints.rule = rule;
        policy.checkpoints.every = every;
        Index next = 0;
        for (const Stage& s : split_stages(table, policy)) {
          CHECK(s.first == next);
          CHECK(s.last > s.first);
          CHECK(s.reduces == (table.node(s.last - 1).layer.kind == Kind::global_avg_pool));
          for (Index l = s.first; l < s.last; ++l) {
            const Kind kind = table.node(l).layer.kind;
            if (kind == Kind::flatten) CHECK(l == s.first);
            if (kind == Kind::global_avg_pool) CHECK(l + 1 == s.last);
            if (kind == Kind::flatten || kind == Kind::linear) CHECK(s.vector);
          }
          next = s.last;
        }
        CHECK(next == table.size());
      }
  };
  check(table_of<Vgg11<>>({1, 3, 64, 64}));
  check(table_of<Vgg16<>>({1, 3, 64, 64}));
  check(table_of<Vgg19<>>({1, 3, 64, 64}));
  check(table_of<LeNet<>>({1, 1, 28, 28}));
  check(table_of<SmallNet<>>({1, 1, 28, 28}));
}
TEST_CASE("a count for all stages alike is carried out where rows allow, and as finely as they allow elsewhere") {
  const Table table = table_of<Three>(input);   // the stages write maps of 16, 8, 8 and 1 rows
  const auto stages = stages_of<Share<10>, CheckpointAtPools>(table);
  REQUIRE(stages.size() == 4);
  CHECK(stages[0].partition == Partition{Cut::share, 10, 10, 4});
  CHECK(stages[1].partition == Partition{Cut::share, 8, 8, 4});
  CHECK(stages[2].partition == Partition{Cut::share, 8, 8, 4});
  CHECK(stages[3].partition == Partition{Cut::column, 1, 1, 4});   // vectors are not cut
  for (const Stage& s : stages) {
    CHECK(s.forward.slabs() == s.partition.forward);
    CHECK(s.backward.slabs() == s.partition.backward);
  }
}
TEST_CASE("the forward cuts of a sharing stage are a subset of the backward cuts, or the other way round") {
  const Table table = table_of<Three>({2, 3, 64, 8});
  const auto subset = [](const std::vector<Index>& some, const std::vector<Index>& all) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
  };
  for (Index f = 1; f <= 9; ++f)
    for (Index b = 1; b <= 9; ++b) {
      PolicySpec policy;
      policy.partitions[0] = {Cut::share, f, b, 0};
      for (const Stage& s : make_stages(table, policy, Target{}, 2)) {
        if (s.vector) continue;
        CHECK(s.forward.slabs() == f);
        CHECK(s.backward.slabs() == b);
        const auto &forward = s.forward.cuts, &backward = s.backward.cuts;
        CHECK((f <= b ? subset(forward, backward) : subset(backward, forward)));
      }
    }
}
TEST_CASE("Stages gives each stage its own partition, and the last one to all further stages") {
  const Table table = table_of<Three>(input);
  const auto stages = stages_of<Stages<Share<4>, ByImages<2, Overlap<3, 2>>>, CheckpointAtPools>(table);
  CHECK(stages[0].partition == Partition{Cut::share, 4, 4, 4});
  CHECK(stages[1].partition == Partition{Cut::overlap, 3, 2, 2});
  CHECK(stages[2].partition == Partition{Cut::overlap, 3, 2, 2});
  CHECK(stages[3].partition == Partition{Cut::column, 1, 1, 2});
}
TEST_CASE("slabs of more images than the step has are slabs of all its images") {
  const auto stages = stages_of<ByImages<7>>(table_of<Three>(input));
  CHECK(stages[0].partition == Partition{Cut::column, 1, 1, 4});
}
TEST_CASE("more slabs than any stage carries is an error that names the stage and the largest feasible count") {
  const Table table = table_of<Three>(input);
  CHECK(refusal<Share<16>, CheckpointAtPools>(table) == "");
  CHECK(refusal<Share<17>, CheckpointAtPools>(table) ==
        "lrcnn: no stage can be cut into 17 slabs by Share<17> on input 4x3x32x8; every slab owns a row of every "
        "layer's output; "
        "the largest feasible count is 16, in stage conv1..pool1; ask for at most 16, or for fewer layers in a stage "
        "by more "
        "checkpoints");
  CHECK(refusal<Overlap<5, 40>>(table) ==
        "lrcnn: no stage can be cut into 40 slabs by Overlap<5,40> on input 4x3x32x8; every slab owns a row of every "
        "layer's "
        "output; the largest feasible count is 8, in stage conv1..global_avg_pool1; ask for at most 8, or for fewer "
        "layers in a "
        "stage by more checkpoints");
}
TEST_CASE("more slabs than the one stage carries that was given the count is an error that names that stage") {
  const Table table = table_of<Three>(input);
  CHECK(refusal<Stages<Share<16>, Share<8>>, CheckpointAtPools>(table) == "");
  CHECK(refusal<Stages<Share<16>, Share<9>>, CheckpointAtPools>(table) ==
        "lrcnn: stage conv3..pool2 cannot be cut into 9 slabs by Share<9>; every slab owns a row of every layer's "
        "output; the "
        "largest feasible count is 8; ask for at most 8 in this stage");
  CHECK(refusal<Stages<Column, Column, Overlap<2, 9>>, CheckpointAtPools>(table) ==
        "lrcnn: stage conv5..global_avg_pool1 cannot be cut into 9 slabs by Overlap<2,9>; every slab owns a row of "
        "every layer's "
        "output; the largest feasible count is 8; ask for at most 8 in this stage");
}
TEST_CASE("the count that an error names is feasible, and one more is not") {
  const auto check = [](const Table& table, const PolicySpec& policy) {
    PolicySpec p = policy;
    p.partitions[0].forward = p.partitions[0].backward = 4000;
    std::string text;
    try {
      make_stages(table, p, Target{}, 1);
    } catch (const PlanError& e) {
      text = e.what();
    }
    const std::string mark = "the largest feasible count is ";
    REQUIRE(text.find(mark) != std::string::npos);
    const Index largest = std::stoll(text.substr(text.find(mark) + mark.size()));
    p.partitions[0].forward = p.partitions[0].backward = largest;
    CHECK_NOTHROW(make_stages(table, p, Target{}, 1));
    p.partitions[0].backward = largest + 1;
    CHECK_THROWS_AS(make_stages(table, p, Target{}, 1), PlanError);
  };
  for (const Cut cut : {Cut::overlap, Cut::share})
    for (const auto algorithm : {ConvAlgorithm::direct, ConvAlgorithm::winograd})
      for (const auto rule : {Checkpoints::Rule::none, Checkpoints::Rule::pools}) {
        PolicySpec policy;
        policy.partitions[0].cut = cut;
        policy.checkpoints.rule = rule;
        policy.conv_algorithm = algorithm;
        check(table_of<Vgg16<>>({1, 3, 224, 224}), policy);
        check(table_of<Vgg11<>>({1, 3, 96, 96}), policy);
        check(table_of<LeNet<>>({1, 1, 28, 28}), policy);
        check(table_of<SmallNet<>>({1, 1, 32, 32}), policy);
      }
}
TEST_CASE("the whole VGG-16 trunk at 224 rows carries at most 5 sharing slabs, and more are told to use checkpoints") {
  const Table table = table_of<Vgg16<>>({8, 3, 224, 224});
  CHECK(refusal<Share<7>>(table) ==
        "lrcnn: no stage can be cut into 7 slabs by Share<7> on input 8x3x224x224; every slab owns a row of every "
        "layer's output; "
        "the largest feasible count is 5, in stage conv1..global_avg_pool1; ask for at most 5, or for fewer layers "
        "in a stage by "
        "more checkpoints");
  CHECK(refusal<Share<7>, CheckpointAtPools>(table) == "");
}
TEST_CASE("a checkpoint at a layer that the network does not have is an error that shows a name it has") {
  const Table table = table_of<Three>(input);
  CHECK(refusal<CheckpointAt<"middle", "pool7">>(table) ==
        "lrcnn: checkpoint at layer 'pool7', which the network does not have; CheckpointAt<...> names layers of the "
        "network; use "
        "a name that the network's table shows, such as 'conv1'");
  CHECK(refusal<CheckpointAt<"Middle">>(table) != "");   // names are exact
  CHECK(refusal<CheckpointAt<"middle", "conv1">>(table) == "");
}
TEST_CASE("Winograd cuts of the shipped networks lie on multiples of four at every 3x3 convolution but the stage's last") {
  Index cuts = 0;
  const auto check = [&](const Table& table, const PolicySpec& policy) {
    for (const Stage& stage : make_stages(table, policy, Target{}, 1)) {
      if (stage.vector) continue;
      for (const Schedule* s : {&stage.forward, &stage.backward})
        for (Index n = 0; n + 1 < s->slabs(); ++n)
          for (Index t = 1; t + 1 < s->tensors; ++t) {
            const Node& node = table.node(stage.first + t - 1);
            if (node.layer.kind != Kind::conv) continue;
            ++cuts;
            CHECK((s->at(n, t).own.end % 4 == 0 || s->at(n, t).own.end == node.out.h));
            CHECK(s->at(n, t).own.begin % 4 == 0);
          }
    }
  };
  for (const Index size : {64, 112, 224})
    for (const Cut cut : {Cut::overlap, Cut::share}) {
      PolicySpec policy;
      policy.checkpoints.rule = Checkpoints::Rule::pools;
      policy.partitions[0] = {cut, 5, 3, 0};
      policy.conv_algorithm = ConvAlgorithm::winograd;
      check(table_of<Vgg16<>>({1, 3, size, size}), policy);
      check(table_of<SmallNet<>>({1, 3, size, size}), policy);
    }
  CHECK(cuts > 500);
}
