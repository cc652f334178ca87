// Policies that Fit chose, carried out: gradients are those of layer by layer, and the arena is within the bytes.
#include "exec/fitted_network.hpp"
#include "exec/graph_equivalence.hpp"
#include "support/error_of.hpp"
#include "support/thorough.hpp"
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using B = Reference<double>;
using Net = FittedNet;
constexpr Input input = fitted_input;
}   // namespace
TEST_CASE("networks under the policies of their frontiers have the column's loss, output, gradients and statistics, whatever layers they have") {
  constexpr int wanted = 20;   // runs for each feature of a layer
  constexpr std::size_t all = feature_count + graph_feature_count;
  std::array<int, all> runs{};
  std::size_t networks = 0, ran = 0, cut = 0;
  double worst = 0;
  const auto compare = [&](const RandomNetwork& net, std::uint64_t seed) {
    CAPTURE(seed);
    Frontier frontier;
    const Problem<double> problem(net.layers, net.input, seed);
    try {
      frontier = find_frontier(problem.table, Policy<Fit<1>>::value, B::target, {.input_gradient = true}, {});
    } catch (const PlanError&) {   // a norm of one value
      return;
    }
    ++networks;
    std::array<bool, all> has{};
    for (Index l = 0; l < problem.table.size(); ++l) {
      const FeatureSet plain = features_of(problem.table.node(l));
      const GraphFeatureSet of_graphs = graph_features_of(problem.table, l);
      for (std::size_t f = 0; f < all; ++f) has[f] = has[f] || (f < feature_count ? plain[f] : of_graphs[f - feature_count]);
    }
    B backend(1);
    const auto column = run_once(problem, Policy<>::value, backend);
    for (std::size_t i = 0; i < frontier.points.size(); i += 1 + frontier.points.size() / 4) {
      const SolvedPolicy& point = frontier.points[i];
      CAPTURE(to_string(point.policy));
      const auto fitted = run_once(problem, point.policy, backend);
      CHECK(fitted.peak == point.bytes);
      const double difference = worst_graph_difference(problem, fitted, column);
      CHECK(difference < 1e-11);
      worst = std::max(worst, difference);
      ++ran;
      for (std::size_t f = 0; f < all; ++f) runs[f] += has[f];
      for (Index k = 0; k < point.policy.partition_count; ++k) cut += point.policy.partition(k).backward > 1;
    }
  };
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(1000, 0); ++seed) {
    Dice dice(seed);
    compare(seed % 3 == 0 ? random_network(dice, 8) : random_graph(dice, 6), seed);
  }
  for (std::uint64_t f = 0; f < all; ++f)
    for (std::uint64_t seed = 1000 * (f + 1); runs[f] < wanted && seed < 1000 * (f + 1) + 100; ++seed) {
      Dice dice(seed);
      compare(f < feature_count ? network_with(dice, features[f], false) : graph_with(dice, graph_features[f - feature_count]), seed);
    }
  MESSAGE(ran << " runs of " << networks << " networks, " << cut << " cut sections, worst difference " << worst);
  CHECK(*std::min_element(runs.begin(), runs.end()) >= wanted);
  CHECK(cut > 100);
}
TEST_CASE("a trainer with Fit stays within its bytes for every batch and trains as layer by layer") {
  const Table table = table_of<Net>(input);
  const Index column = arena_size(table, Policy<Workspace<0>>::value, B::target).bytes;
  PolicySpec policy = Policy<Fit<1>, Workspace<0>>::value;
  policy.fit_bytes = column / 2;
  BasicTrainer<B> fitted(Net::layers, policy, input, Sgd{.lr = 0.05, .momentum = 0.9}, {.seed = 3});
  BasicTrainer<B> whole(Net::layers, Policy<>::value, input, Sgd{.lr = 0.05, .momentum = 0.9}, {.seed = 3});
  const Random random(5, 1);
  for (const Index images : {2, 1, 2}) {
    const Input shape{images, input.c, input.h, input.w};
    std::vector<double> pixels(static_cast<std::size_t>(shape.count()));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = random.normal(i);
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(images), 1);
    const MemorySource<double> source(pixels.data(), shape);
    const StepReport a = fitted.step(source, labels), b = whole.step(source, labels);
    CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-11));
    CHECK(a.peak_bytes <= policy.fit_bytes);
    CHECK(b.peak_bytes > a.peak_bytes);
  }
  policy.fit_bytes = 1000;
  const std::string error = error_of<PlanError>([&] { BasicTrainer<B>(Net::layers, policy, input, Sgd{}, {}); });
  CHECK(error.find("lrcnn: Policy<Fit<1000>, Workspace<0>> leaves 1.0 kB for a step on input 2x1x48x16; the fewest bytes") == 0);
}
