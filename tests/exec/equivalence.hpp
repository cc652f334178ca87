#pragma once
// One round of the equivalence tests: a network for every feature, each under a policy for every part.
#include "exec/coverage.hpp"
#include "support/backend_for_tests.hpp"
#include "support/run_network.hpp"
#include <doctest/doctest.h>
#include <cstring>
namespace lrcnn::testing {
struct RoundOptions {
  double tolerance = 1e-12;
  Index workspace = 0;
  bool direct = false;   ///< never Winograd
  bool wide = false;     ///< sixteen times the channels
};
struct Worst {
  double difference = 0;
  std::string where;
};
inline std::string network_text(const RandomNetwork& net) {
  std::string text = to_string(net.input);
  for (const Layer& y : net.layers) text += "; " + describe(y);
  return text;
}
/// Gives convolutions the channels that vector units like. Groups of one channel stay so.
inline void widen(RandomNetwork& net) {
  Shape shape = net.input;
  for (Layer& y : net.layers) {
    if (y.kind == Kind::conv) {
      const bool single = y.groups > 2;
      y.groups = single ? shape.c : shape.c % y.groups == 0 ? y.groups : 1;
      y.channels = single ? shape.c : 16 * y.groups;
    }
    shape = output_shape(y, shape);
  }
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
/// Compares row-centric runs of a network that has feature f, under policies with some parts, with the column run of the same backend;
/// counts what they cover. One run in five goes without the input's gradient, as training does.
template <class B>
void compare_network(std::uint64_t seed, std::size_t f, const std::vector<std::size_t>& which, Coverage& coverage, Worst& worst,
                     const RoundOptions& options) {
  using T = master_t<typename B::element>;
  auto backend = backend_for_tests<B>(1);
  Dice dice(seed);
  RandomNetwork net = network_with(dice, features[f], dice.chance(0.4));
  if (options.wide) widen(net);
  const Problem<T> problem(net.layers, net.input, seed);
  PolicySpec column;
  column.workspace_bytes = options.workspace;
  const Outcome<T> whole = run_once(problem, column, backend);
  for (const std::size_t p : which) {
    PolicySpec policy = policy_with(dice, parts[p], net, B::target);
    policy.workspace_bytes = options.workspace;
    if (dice.chance(0.5)) add_workspaces(dice, policy, {options.workspace});
    if (options.direct) compute_by(policy, ConvAlgorithm::direct);
    INFO("seed ", seed, ", feature ", std::string(features[f]), ", part ", std::string(parts[p]), "\n", to_string(policy), "\n", network_text(net));
    try {
      const Plan plan = make_plan(problem.table, policy, B::target, {.input_gradient = true});
      coverage.add(plan);
    } catch (const PlanError&) {
      ++coverage.infeasible;
      continue;
    }
    const Outcome<T> rows = run_once(problem, policy, backend, dice.chance(0.8));
    const double difference = worst_difference(problem, rows, whole);
    CHECK(difference <= options.tolerance);
    CHECK(same_bits(rows.output, whole.output));
    CHECK(rows.loss == whole.loss);
    if (difference > worst.difference) worst.difference = difference, worst.where = "seed " + std::to_string(seed) + ", " + to_string(policy);
  }
}
/// A network for each feature, each under a policy for each part.
template <class B>
void compare_round(std::uint64_t seed, Coverage& coverage, Worst& worst, const RoundOptions& options) {
  std::vector<std::size_t> all;
  for (std::size_t p = 0; p < part_count; ++p) all.push_back(p);
  for (std::size_t f = 0; f < feature_count; ++f) compare_network<B>(seed * 1000 + f, f, all, coverage, worst, options);
}
/// Networks and policies for the pairs that lack cases, until none does; at most so many networks. Returns how many there were.
template <class B>
std::size_t compare_rarest(std::uint64_t first_seed, std::size_t networks, Coverage& coverage, Worst& worst, RoundOptions options) {
  for (std::size_t n = 0; n < networks; ++n) {
    std::size_t rarest = 0;
    for (std::size_t f = 0, most = 0; f < feature_count; ++f)
      for (std::size_t p = 0; p < part_count; ++p)
        if (const auto lacks = static_cast<std::size_t>(coverage.lacks(f, p)); lacks > most) most = lacks, rarest = f;
    std::vector<std::size_t> which;
    for (std::size_t p = 0; p < part_count; ++p)
      if (coverage.lacks(rarest, p) > 0) which.push_back(p);
    if (which.empty()) return n;
    options.wide = n % 2 == 1;
    compare_network<B>(first_seed + n, rarest, which, coverage, worst, options);
  }
  return networks;
}
}   // namespace lrcnn::testing
