// Costs of plans: what a step's size and kind say, estimates, lines through measurements, sums.
#include "support/random_graph.hpp"
#include "support/random_network.hpp"
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/costs.hpp>
#include <lrcnn/policy/vgg.hpp>
#include <doctest/doctest.h>
#include <set>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const Target blocked{.channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
double products_of(const Plan& plan, Op op) {
  double sum = 0;
  for (const Step& step : plan.steps)
    if (step.op == op) sum += step_size(plan, step).products;
  return sum;
}
/// The first step of an operation on a layer.
const Step& step_of(const Plan& plan, Op op, std::string_view layer) {
  for (const Step& step : plan.steps)
    if (step.op == op && step.layer >= 0 && plan.table.node(step.layer).layer.name == Name(layer)) return step;
  throw "no such step";
}
/// VGG-16 layer by layer on one image of 64 x 64, convolutions by the fastest algorithm in a workspace of so many bytes.
Plan plan_in(Index bytes) {
  PolicySpec policy = Policy<Column, FastestConv>::value;
  policy.workspace_bytes = bytes;
  return make_plan(make_table(Vgg16<>::layers, {1, 3, 64, 64}), policy, blocked);
}
double seconds_of(const Costs& costs, const Plan& plan, const Step& step) { return StepCosts(costs, plan.table, plan.target).seconds(plan, step); }
}   // namespace
TEST_CASE("products of a column are those of the formula, three times those of its convolutions but for the first layer's data gradient") {
  const Table table = make_table(Vgg16<>::layers, {2, 3, 64, 96});
  const Plan plan = make_plan(table, Policy<Column>::value, blocked);
  double forward = 0, first = 0;
  for (const Node& node : table.nodes) {
    if (node.layer.kind != Kind::conv && node.layer.kind != Kind::linear) continue;
    const double taps = node.layer.kind == Kind::conv ? 9 : 1;
    const double products = taps * static_cast<double>(node.in.c * node.out.c * node.out.h * node.out.w * node.out.n);
    if (first == 0) first = products;
    forward += products;
  }
  CHECK(products_of(plan, Op::forward) == forward);
  CHECK(products_of(plan, Op::backward_parameters) == forward);
  CHECK(products_of(plan, Op::backward_data) == forward - first);
}
TEST_CASE("overlap adds products, sharing adds none") {
  const Table table = make_table(Vgg16<>::layers, {1, 3, 128, 128});
  const auto forward_of = [&](const PolicySpec& policy) { return products_of(make_plan(table, policy, blocked, {.training = false}), Op::forward); };
  const double column = forward_of(Policy<Column>::value);
  CHECK(forward_of(Policy<Stages<Share<4>, Share<2>, Column>, CheckpointAt<"pool1", "pool2">>::value) == column);
  CHECK(forward_of(Policy<Stages<Overlap<4>, Overlap<2>, Column>, CheckpointAt<"pool1", "pool2">>::value) > column);
}
TEST_CASE("the kind of a step is all but its rows and images") {
  const Table table = make_table(Vgg16<>::layers, {4, 3, 64, 64});
  const auto plan_of = [&](const PolicySpec& policy) { return make_plan(table, policy, blocked); };
  const Plan column = plan_of(Policy<Column>::value), slabs = plan_of(Policy<Overlap<4>, CheckpointAtPools>::value);
  const Step& whole = step_of(column, Op::forward, "conv4");
  CHECK(step_kind(column, whole) == "forward conv 128x32 > 128x32 k3x3 s1x1 d1x1 DirectConv / 4.2 MB activates saves");
  CHECK(step_size(column, whole).pixels == 4 * 32 * 32);
  CHECK(step_size(slabs, step_of(slabs, Op::forward, "conv4")).pixels < 4 * 32 * 32 / 2);
  CHECK(step_kind(slabs, step_of(slabs, Op::backward_data, "conv4")) == step_kind(column, step_of(column, Op::backward_data, "conv4")));
  CHECK(step_kind(column, step_of(column, Op::backward_parameters, "conv4")) != step_kind(column, step_of(column, Op::backward_data, "conv4")));
  const Plan winograd = plan_of(Policy<Column, FastestConv, Workspace<16_MiB>>::value);
  CHECK(step_kind(winograd, step_of(winograd, Op::forward, "conv4")) ==
        "forward conv 128x32 > 128x32 k3x3 s1x1 d1x1 FastestConv / 16.8 MB activates saves");
  CHECK(step_kind(column, step_of(column, Op::backward_data, "pool2")) == "backward_data max_pool 128x32 > 128x16 k2x2 s2x2 d1x1 / saves only");
}
TEST_CASE("a plan takes the sum of its steps, whatever the order of measurements") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = seed % 2 ? random_network(dice, 8) : random_graph(dice, 6);
    PolicySpec policy = random_policy(dice, net);
    policy.images = 0;
    Plan plan;
    try {
      plan = make_plan(make_table(net.layers, net.input), policy, blocked);
    } catch (const PlanError&) {
      continue;
    }
    Costs costs({.step = 1e-6, .products = 1e9, .winograd = 2e9, .bytes = 1e9, .lanes = 16});
    const double estimated = seconds(plan, costs);
    CHECK(estimated >= 1e-6 * static_cast<double>(plan.steps.size()));
    // Measured so, every step takes a thousandth of a second.
    for (const Step& step : plan.steps) costs.set(step_kind(plan, step), {{1, 1e-3}, {Index{1} << 40, 1e-3}});
    CHECK(seconds(plan, costs) == doctest::Approx(1e-3 * static_cast<double>(plan.steps.size())).epsilon(1e-9));
    Costs again({.step = 1e-6, .products = 1e9, .winograd = 2e9, .bytes = 1e9, .lanes = 16});
    for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) again.set(step_kind(plan, *step), {{1, 1e-3}, {Index{1} << 40, 1e-3}});
    CHECK(again == costs);
  }
}
TEST_CASE("seconds of a kind are a line through its measured sizes") {
  const Table table = make_table(Vgg16<>::layers, {1, 3, 64, 64});
  const auto seconds_on = [&](Costs::Points points, Index rows) {
    const Plan plan = make_plan(table, Policy<Column>::value, blocked);
    Step step = step_of(plan, Op::forward, "conv2");
    Costs costs({.step = 1e-6});
    costs.set(step_kind(plan, step), std::move(points));
    step.y.rows = {0, rows};
    return seconds_of(costs, plan, step);
  };
  const Costs::Points points{{64 * 10, 1.0}, {64 * 20, 1.5}, {64 * 40, 3.5}};
  CHECK(seconds_on(points, 10) == doctest::Approx(1.0));
  CHECK(seconds_on(points, 15) == doctest::Approx(1.25));
  CHECK(seconds_on(points, 20) == doctest::Approx(1.5));
  CHECK(seconds_on(points, 30) == doctest::Approx(2.5));
  CHECK(seconds_on(points, 40) == doctest::Approx(3.5));
  CHECK(seconds_on(points, 60) == doctest::Approx(3.5 + 20 * 2.5 / 30));                                 // beyond: from the first to the last
  CHECK(seconds_on(points, 2) == doctest::Approx(0.6));                                                  // below: the first line goes on
  CHECK(seconds_on({{64 * 10, 1.0}, {64 * 20, 1.1}}, 60) == doctest::Approx(1.1 + 40 * 1.1 / 20 / 2));   // at least half of the average
  CHECK(seconds_on({{64 * 10, 1.0}, {64 * 20, 9.0}}, 60) == doctest::Approx(9.0 * 60 / 20));             // at most the average
  CHECK(seconds_on({{64 * 20, 1.5}}, 60) == doctest::Approx(1.5 * 60 / 20));
  CHECK(seconds_on({{64 * 10, 1.0}}, 5) == doctest::Approx(0.5).epsilon(1e-5));
  CHECK(seconds_on({{64 * 10, 1.0}, {64 * 20, 0.5}}, 5) == doctest::Approx(1.0));                 // never more than the smallest
  CHECK(seconds_on({{64 * 10, 1.0}, {64 * 20, 9.0}}, 5) == doctest::Approx(0.5).epsilon(1e-5));   // nor less than nothing
}
TEST_CASE("a kind that was not measured is like one that differs behind the slash, or estimated") {
  const Table table = make_table(Vgg16<>::layers, {1, 3, 64, 64});
  const Plan plan = make_plan(table, Policy<Column, FastestConv, Workspace<16_MiB>>::value, blocked);
  const Plan roomy = make_plan(table, Policy<Column, FastestConv, Workspace<64_MiB>>::value, blocked);
  const Step &step = step_of(plan, Op::forward, "conv2"), &same = step_of(roomy, Op::forward, "conv2");
  const Rates rates{.step = 1e-6, .products = 1e9, .winograd = 2e9, .bytes = 1e9, .lanes = 16};
  Costs costs(rates);
  const double estimate = seconds_of(costs, plan, step);
  CHECK(estimate == doctest::Approx(1e-6 + 9.0 * 64 * 64 * 64 * 64 / 2e9));
  costs.set(step_kind(roomy, same), {{64 * 64, 7.0}});
  CHECK(seconds_of(costs, plan, step) == doctest::Approx(7.0));
  costs.set(step_kind(plan, step), {{64 * 64, 5.0}});
  CHECK(seconds_of(costs, plan, step) == doctest::Approx(5.0));
  CHECK(seconds_of(costs, plan, step_of(plan, Op::forward, "conv1")) == seconds_of(Costs(rates), plan, step_of(plan, Op::forward, "conv1")));
  // Three channels of an input take as long as a full vector of them.
  const StepSize first = step_size(plan, step_of(plan, Op::forward, "conv1"));
  CHECK(costs.estimate(plan.table, step_of(plan, Op::forward, "conv1"), first) == doctest::Approx(1e-6 + first.products * 16 / 3 / 2e9));
}
TEST_CASE("a kind that was measured in other workspaces is like that in the one which differs least") {
  Costs costs(Rates{.step = 1e-6, .products = 1e9, .winograd = 2e9, .bytes = 1e9, .lanes = 16});
  const auto seconds_in = [&](Index bytes) {
    const Plan plan = plan_in(bytes);
    return seconds_of(costs, plan, step_of(plan, Op::forward, "conv2"));
  };
  for (const auto& [bytes, seconds] : {std::pair{2_MiB, 8.0}, std::pair{16_MiB, 5.0}, std::pair{64_MiB, 4.0}}) {
    const Plan plan = plan_in(bytes);
    costs.set(step_kind(plan, step_of(plan, Op::forward, "conv2")), {{64 * 64, seconds}});
  }
  CHECK(seconds_in(256_KiB) == doctest::Approx(8.0));
  CHECK(seconds_in(3_MiB) == doctest::Approx(8.0));
  CHECK(seconds_in(4_MiB) == doctest::Approx(8.0));
  CHECK(seconds_in(9_MiB) == doctest::Approx(5.0));
  CHECK(seconds_in(16_MiB) == doctest::Approx(5.0));
  CHECK(seconds_in(100_MiB) == doctest::Approx(4.0));
  // Its other steps write no mask.
  const Plan plan = plan_in(3_MiB);
  Step step = step_of(plan, Op::forward, "conv2");
  step.saved = {}, step.activates = !step.activates;
  CHECK(StepCosts(costs, plan.table, plan.target).seconds(plan, step) == doctest::Approx(8.0));
}
TEST_CASE("smaller steps than were measured in a workspace are like those that were measured in another") {
  const Plan plan = plan_in(2_MiB), roomy = plan_in(16_MiB), roomiest = plan_in(64_MiB);
  const auto conv2 = [](const Plan& p) { return step_of(p, Op::forward, "conv2"); };
  Costs costs(Rates{.step = 1e-6, .products = 1e9, .winograd = 2e9, .bytes = 1e9, .lanes = 16});
  costs.set(step_kind(plan, conv2(plan)), {{64 * 64, 8.0}});
  costs.set(step_kind(roomy, conv2(roomy)), {{64 * 32, 5.0}, {64 * 64, 6.0}});   // a step takes four seconds whatever its size
  costs.set(step_kind(roomiest, conv2(roomiest)), {{64 * 8, 1.0}, {64 * 64, 6.0}});
  const auto seconds_of_rows = [&](Index rows) {
    Step step = conv2(plan);
    step.y.rows = {0, rows};
    return seconds_of(costs, plan, step);
  };
  CHECK(seconds_of_rows(64) == doctest::Approx(8.0));
  CHECK(seconds_of_rows(32) == doctest::Approx(8.0 * 5 / 6));
  CHECK(seconds_of_rows(16) == doctest::Approx(8.0 * 4.5 / 6));
}
TEST_CASE("by Winograd's algorithm a step is as large as the tiles of its result, and computed directly if it fills few of them") {
  const Table table = make_table(Vgg16<>::layers, {2, 3, 60, 60});
  const Plan plan = make_plan(table, Policy<Column, FastestConv, Workspace<16_MiB>>::value, blocked);
  const Plan direct = make_plan(table, Policy<Column>::value, blocked);
  const auto pixels = [&](const Plan& p, Op op, Index x_rows, Index y_rows) {   // of conv4, whose maps are 30 columns wide
    Step step = step_of(p, op, "conv4");
    step.x.rows = step.dx.rows = {0, x_rows};
    step.y.rows = step.dy.rows = {0, y_rows};
    return step_size(p, step).pixels;
  };
  CHECK(pixels(plan, Op::forward, 10, 8) == 2 * 8 * 32);
  CHECK(pixels(plan, Op::forward, 11, 9) == 2 * 12 * 32);
  CHECK(pixels(plan, Op::backward_data, 9, 8) == 2 * 12 * 32);
  CHECK(pixels(plan, Op::backward_parameters, 9, 8) == 2 * 8 * 32);
  CHECK(pixels(direct, Op::backward_data, 9, 8) == 2 * 8 * 30);
  const Costs costs(Rates{.winograd_pays = [](Index rows, Index columns) { return rows * columns > 100; }});
  Step step = step_of(plan, Op::backward_data, "conv4");
  step.dx.rows = {0, 4};
  CHECK(costs.algorithm_of(table, step, 16_MiB) == ConvAlgorithm::fastest);
  step.dx.rows = {0, 3};
  CHECK(costs.algorithm_of(table, step, 16_MiB) == ConvAlgorithm::direct);
  CHECK(costs.carried_out(plan, step).conv_algorithm == ConvAlgorithm::direct);
  step.conv_algorithm = ConvAlgorithm::winograd;
  CHECK(costs.algorithm_of(table, step, 16_MiB) == ConvAlgorithm::winograd);
}
