// Plans as values: made alike they compare equal, they can be shown, and both passes may have counts of their own.
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/print.hpp>
#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include "support/error_of.hpp"
#include "support/random_network.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<0>>;
const Table table = table_of<LeNet<>>({2, 1, 28, 28});
}   // namespace
TEST_CASE("the same table, policy, target and options give the same plan, and others another") {
  const Plan plan = make_plan(table, Rows::value);
  CHECK(plan == make_plan(table, Rows::value));
  CHECK(plan != make_plan(table, Policy<>::value));
  CHECK(plan != make_plan(table, Rows::value, {.element_bytes = 8}));
  CHECK(plan != make_plan(table, Rows::value, {}, {.training = false}));
  CHECK(plan != make_plan(table_of<LeNet<>>({1, 1, 28, 28}), Rows::value));
  Plan copy = plan;
  CHECK(copy == plan);
  std::swap(copy.steps[0], copy.steps[1]);
  CHECK(copy != plan);
}
TEST_CASE("every pair of slab counts of a sharing stage makes a sound plan") {
  Index plans = 0;
  for (const auto& layers : {std::vector<Layer>{Conv<2>::layer(), Conv<2>::layer()},
                             {Conv<2>::layer(), ReLU::layer(), Conv<2>::layer(), ReLU::layer(), MaxPool<>::layer()},
                             {MaxPool<>::layer(), SiLU::layer(), Conv<2>::layer()}})
    for (Index f = 1; f <= 6; ++f)
      for (Index b = 1; b <= 6; ++b)
        for (const Cut cut : {Cut::overlap, Cut::share})
          for (const auto recompute : {Recompute::none, Recompute::all, Recompute::cheap, Recompute::light}) {
            PolicySpec policy;
            policy.partitions[0] = {cut, f, b, 0};
            policy.recompute = recompute;
            CAPTURE(to_string(policy));
            const Plan plan = make_plan(make_table(layers, {1, 2, 24, 4}), policy, {}, {.input_gradient = true});
            const auto problems = check_plan(plan);
            CHECK((problems.empty() ? "" : problems[0]) == "");
            CHECK(plan.stages[0].forward.slabs() == f);
            CHECK(plan.stages[0].backward.slabs() == b);
            ++plans;
          }
  CHECK(plans == 4 * 36 * 6);
}
TEST_CASE("a plan without training has no backward steps and reads its results from the output alone") {
  const Plan plan = make_plan(table, Rows::value, {}, {.training = false});
  for (const Step& s : plan.steps) {
    CHECK(s.pass == Pass::forward);
    CHECK((s.op != Op::backward_data && s.op != Op::backward_parameters));
    CHECK(!s.dx);
  }
  CHECK(plan.results.output);
  CHECK(!plan.results.input_gradient);
  CHECK(check_plan(plan).empty());
}
TEST_CASE("the input's gradient is made when it is asked for, and no step for it is made when not") {
  const Plan with = make_plan(table, Rows::value, {}, {.input_gradient = true}), without = make_plan(table, Rows::value);
  const auto first_data = [](const Plan& p) {
    Index count = 0;
    for (const Step& s : p.steps) count += s.op == Op::backward_data && s.layer == 0;
    return count;
  };
  CHECK(first_data(with) == 4);
  CHECK(first_data(without) == 0);
  CHECK(with.results.input_gradient.tensor == 0);
  CHECK(with.results.input_gradient.rows == Range{0, 28});
  CHECK(!without.results.input_gradient);
}
TEST_CASE("steps that only move rows do not appear when there are none to move") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = random_network(dice, 6);
    const PolicySpec policy = random_policy(dice, net);
    try {
      for (const Step& s : make_plan(make_table(net.layers, net.input), policy, {}, {.input_gradient = true}).steps)
        if (s.op == Op::copy || s.op == Op::add || s.op == Op::zero || s.op == Op::load) CHECK(!s.y.rows.empty());
    } catch (const PlanError&) {
    }
  }
}
TEST_CASE("a plan's summary shows policy, peak, and each stage with its cuts") {
  std::ostringstream out;
  out << make_plan(table, Rows::value);
  const std::string text = out.str();
  for (const char* part : {"Policy<Share<4>, CheckpointAtPools, RecomputeAll, DirectConv, Workspace<0>>", "input 2x1x28x28, 10 layers, ", "peak ",
                           "no placement can need less than ", "stage conv1..pool1", "Share<4>", "2x1x28x28 -> 2x16x14x14", "slabs of ",
                           "stage flatten1..linear2", "2x32x7x7 -> 2x10x1x1"}) {
    CAPTURE(std::string(part));
    CHECK(text.find(part) != std::string::npos);
  }
}
TEST_CASE("a step is shown on one line with its layer and its rows") {
  const Plan plan = make_plan(table, Policy<>::value);
  std::ostringstream out;
  print_steps(out, plan);
  const std::string text = out.str();
  CHECK(std::count(text.begin(), text.end(), '\n') == static_cast<std::ptrdiff_t>(plan.steps.size()));
  CHECK(text.find("0  load") == 0);
  CHECK(text.find("forward             conv1             stage 0 slab 0   x = t0 [0,28) of buffer") != std::string::npos);
  CHECK(text.find("backward_parameters linear2") != std::string::npos);
}
TEST_CASE("the memory map has as many lines as asked for, each of the same width") {
  std::ostringstream out;
  print_memory(out, make_plan(table, Rows::value), 10, 40);
  std::istringstream lines(out.str());
  Index maps = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find("  |") == 0) {
      ++maps;
      CHECK(line.size() == 44);
    }
  CHECK(maps == 10);
}
TEST_CASE("packing a filter takes no workspace, whatever the arithmetic") {
  for (const ConvAlgorithm algorithm : {ConvAlgorithm::direct, ConvAlgorithm::winograd, ConvAlgorithm::fastest}) {
    PolicySpec policy = Rows::value;
    policy.conv_algorithm = algorithm;
    policy.workspace_bytes = 1_MiB;
    const Plan plan = make_plan(table, policy, {.packs_weights = true});
    Index packed = 0, with_workspace = 0;
    for (const Step& s : plan.steps) {
      const bool packs = s.op == Op::pack_forward || s.op == Op::pack_backward;
      packed += packs, with_workspace += s.workspace >= 0;
      CHECK((!packs || s.workspace == -1));
    }
    CHECK(packed > 0);
    CHECK(with_workspace > 0);
    CHECK(check_plan(plan).empty());
  }
}
TEST_CASE("a stage that keeps carries out its forward steps once, others again") {
  const auto forwards = [](const PolicySpec& policy) {
    const Plan plan = make_plan(table, policy);
    CHECK(check_plan(plan).empty());
    std::vector<Index> count(16, 0);
    for (const Step& s : plan.steps) count[static_cast<std::size_t>(s.stage)] += s.op == Op::forward && s.pass == Pass::recompute;
    return count;
  };
  const auto again = forwards(Policy<Overlap<2>, CheckpointAtPools, RecomputeAll>::value);
  const auto mixed = forwards(Policy<Stages<Overlap<2>, Keep<Overlap<2>>>, CheckpointAtPools, RecomputeAll>::value);
  CHECK(again[0] > 0);
  CHECK(again[1] > 0);
  CHECK(mixed[0] == again[0]);
  CHECK(mixed[1] == 0);
  CHECK(forwards(Policy<Stages<Overlap<2>, Keep<Overlap<2>>>, CheckpointAtPools, KeepAll>::value) ==
        forwards(Policy<Overlap<2>, CheckpointAtPools, KeepAll>::value));
}
TEST_CASE("a printed plan says where layer by layer would need no more") {
  using Net = Sequential<Conv<8>, BatchNorm, ReLU, Conv<8>, BatchNorm, ReLU, GlobalAvgPool, Linear<3>>;
  const Table norms = table_of<Net>({2, 3, 32, 32});
  const auto printed = [&](const PolicySpec& policy) {
    std::ostringstream out;
    out << make_plan(norms, policy);
    return out.str();
  };
  const Index column = arena_size(norms, Policy<Workspace<0>>::value).bytes;
  const PolicySpec more = Policy<Overlap<3>, RecomputeAll, Workspace<0>>::value,
                   less = Policy<ExtraPasses<Overlap<3>>, RecomputeAll, Workspace<0>>::value;
  REQUIRE(arena_size(norms, more).bytes > column);
  REQUIRE(arena_size(norms, less).bytes < column);
  CHECK(printed(more).find("\n  Column, which computes nothing twice, needs less, " + format_bytes(column) +
                           "; take it, or other slabs and checkpoints\n") != std::string::npos);
  CHECK(printed(less).find("Column, which") == std::string::npos);
  CHECK(printed(Policy<Workspace<0>>::value).find("Column, which") == std::string::npos);
}
TEST_CASE("a plan of too many steps is refused, with words") {
  const std::array layers{Layer{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 2}, Layer{.kind = Kind::global_avg_pool}};
  const Table many = make_table(layers, {200'000, 1, 4, 4});
  CHECK(error_of<PlanError>([&] { make_plan(many, Policy<Images<1>>::value); }) ==
        "lrcnn: the plan would have more than 524288 steps; each slab of rows of each group of images has steps of its own; use larger groups of "
        "images, fewer slabs, or a smaller batch");
  CHECK(arena_size(many, Policy<Images<1>>::value).bytes > 0);
}
