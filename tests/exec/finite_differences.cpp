// Gradients of whole networks against central differences of their loss, in fp64: every entry of every parameter and
// of the input, layer by layer and row-centric, within 1e-6 of the norm of the whole gradient. Each feature of a
// layer has its networks; entries whose neighbourhood has a kink are left out and may be one in a hundred at most.
#include "exec/finite_differences.hpp"
#include "exec/coverage.hpp"
#include "exec/graph_equivalence.hpp"
#include "support/thorough.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Small enough that all entries can be tried.
RandomNetwork small_network(Dice& dice, std::string_view feature) {
  for (;;) {
    RandomNetwork net = network_with(dice, feature, dice.chance(0.3));
    const Table table = make_table(net.layers, net.input);
    if (net.input.count() <= 260 && parameter_count(table) <= 220) return net;
  }
}
}   // namespace
TEST_CASE("gradients: central differences, each feature of a layer, layer by layer and by rows") {
  Reference<double> backend(1);
  double worst = 0;
  Index kinks = 0, entries = 0, networks = 0, runs = 0;
  for (std::size_t f = 0; f < feature_count; ++f)
    for (std::uint64_t round = 0; round < cases_to_do<std::uint64_t>(8, 3); ++round) {
      const std::uint64_t seed = 7000 + 100 * round + f;
      Dice dice(seed);
      const RandomNetwork net = small_network(dice, features[f]);
      const Problem<double> problem(net.layers, net.input, seed);
      const Differences differences = differences_of(problem);
      ++networks;
      for (const char* part : {"Column", "Share", "Overlap"}) {
        const PolicySpec policy = policy_with(dice, part, net, Reference<double>::target);
        INFO("seed ", seed, ", feature ", std::string(features[f]), "\n", to_string(policy), "\n", network_text(net));
        Outcome<double> outcome;
        try {
          outcome = run_once(problem, policy, backend);
        } catch (const PlanError&) {   // too few rows
          continue;
        }
        ++runs;
        const double difference = worst_entry(differences, outcome, kinks);
        CHECK(difference <= 1e-6);
        worst = std::max(worst, difference);
        entries += static_cast<Index>(problem.parameters.size() + problem.images.size());
      }
    }
  CHECK(runs > 2 * networks + networks / 2);
  MESSAGE(networks, " networks, ", runs, " runs, ", entries, " entries, ", kinks, " at a kink; worst difference ", worst);
  CHECK(kinks * 100 < entries);
}
TEST_CASE("gradients: central differences of networks that branch, each feature of a graph") {
  Reference<double> backend(1);
  double worst = 0;
  Index kinks = 0, entries = 0, networks = 0, runs = 0;
  for (std::size_t f = 0; f < graph_feature_count; ++f)
    for (std::uint64_t seed = 9000 + 1000 * f, round = 0; round < cases_to_do<std::uint64_t>(4, 2); ++seed) {
      Dice dice(seed);
      const RandomNetwork net = graph_with(dice, graph_features[f]);
      const Problem<double> problem(net.layers, net.input, seed);
      if (problem.images.size() > 200 || problem.parameters.size() > 250) continue;
      const Differences differences = differences_of(problem);
      ++round, ++networks;
      for (const char* part : {"Column", "Share", "Overlap"}) {
        PolicySpec policy = policy_with(dice, part, net, Reference<double>::target);
        policy.images = 0;
        INFO("seed ", seed, ", feature ", std::string(graph_features[f]), "\n", to_string(policy), "\n", graph_text(net));
        Outcome<double> outcome;
        try {
          outcome = run_once(problem, policy, backend);
        } catch (const PlanError&) {   // too few rows
          continue;
        }
        for (const Parameter& p : problem.layout)   // what lies there is no gradient
          if (p.shape.running && !problem.table.node(p.layer).layer.norm.frozen)
            std::ranges::fill(elements_of(p, std::span<double>(outcome.gradients)), 0.0);
        ++runs;
        const double difference = worst_entry(differences, outcome, kinks);
        CHECK(difference <= 1e-6);
        worst = std::max(worst, difference);
        entries += static_cast<Index>(problem.parameters.size() + problem.images.size());
      }
    }
  CHECK(runs > 2 * networks);
  MESSAGE(networks, " networks, ", runs, " runs, ", entries, " entries, ", kinks, " at a kink; worst difference ", worst);
  CHECK(kinks * 50 < entries);
}
