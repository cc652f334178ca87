#pragma once
// One round of the equivalence tests for networks that branch: a network for every feature, each under policies with some parts.
#include "exec/equivalence.hpp"
#include "exec/graph_coverage.hpp"
#include <limits>
namespace lrcnn::testing {
struct GraphOptions {
  double tolerance = 1e-12;
  Index workspace = 0;
  bool direct = false;   ///< never Winograd
  Index count = 9;       ///< of policies for each network
  int noises = 3;        ///< draws of noise that an ill-conditioned case is measured with
};
struct GraphWorst {
  Index networks = 0, conditioned = 0;                   ///< all of them; runs beyond the tolerance that noise excuses
  Index until_covered = 0;                               ///< networks after which no pair lacked cases
  Index bits = 0, statistics_bits = 0, statistics = 0;   ///< outputs equal to the bit: that had to be; with statistics of slabs, of so many
  double difference = 0, excused = 0, over_noise = 0;
  std::string where{};
};
inline std::string graph_text(const RandomNetwork& net) {
  std::string text = to_string(net.input);
  for (const Layer& y : net.layers) {
    text += "; " + describe(y);
    if (y.input != 1) text += " <-" + std::to_string(y.input);
    if (y.other != 0) text += " &" + std::to_string(y.other);
  }
  return text;
}
/// As worst_difference(); the new values of running statistics lie among the gradients, and count by themselves: means as a share of
/// standard deviations where those are larger, variances as one of squared means.
template <class T>
double worst_graph_difference(const Problem<T>& problem, const Outcome<T>& a, const Outcome<T>& b) {
  const auto relative = [](std::span<const T> x, std::span<const T> y, double floor) {
    const double d = distance(x, y), scale = std::max(norm(y), floor);
    return d == 0 ? 0.0 : scale > 0 ? d / scale : INFINITY;
  };
  double squares = std::pow(norm<T>(b.input_gradient), 2), worst = relative(a.output, b.output, 0);
  for (const Parameter& p : problem.layout)
    if (!p.shape.running) squares += std::pow(norm(elements_of(p, std::span<const T>(b.gradients))), 2);
  const double whole = std::sqrt(squares);
  worst = std::max(worst, relative(a.input_gradient, b.input_gradient, whole));
  const auto ours = [&](std::size_t p) { return elements_of(problem.layout[p], std::span<const T>(a.gradients)); };
  const auto theirs = [&](std::size_t p) { return elements_of(problem.layout[p], std::span<const T>(b.gradients)); };
  for (std::size_t p = 0; p < problem.layout.size(); ++p) {
    if (!problem.layout[p].shape.running) {
      worst = std::max(worst, relative(ours(p), theirs(p), whole));
      continue;
    }
    double deviations = 0;   // squared means and variances together
    for (const T v : theirs(p)) deviations += static_cast<double>(v) * static_cast<double>(v);
    for (const T v : theirs(p + 1)) deviations += static_cast<double>(v);
    worst = std::max(worst, relative(ours(p), theirs(p), std::sqrt(deviations)));
    worst = std::max(worst, relative(ours(p + 1), theirs(p + 1), std::pow(norm(theirs(p)), 2)));
    ++p;
  }
  return std::max(worst, std::abs(a.loss.sum - b.loss.sum) / std::max(1.0, std::abs(b.loss.sum)));
}
/// The change of a column run when each parameter and pixel changes by a unit in its last place, up or down.
template <class B, class T>
double noise_of(const Problem<T>& problem, const Outcome<T>& whole, const PolicySpec& column, B& backend, int draws) {
  double most = 0;
  for (int draw = 0; draw < draws; ++draw) {
    Problem<T> noisy = problem;
    const Random random(99, static_cast<std::uint64_t>(draw));
    std::uint64_t at = 0;
    for (auto* list : {&noisy.parameters, &noisy.images})
      for (T& v : *list) v = std::nextafter(v, random.uniform(at++) < 0.5 ? -std::numeric_limits<T>::max() : std::numeric_limits<T>::max());
    most = std::max(most, worst_graph_difference(problem, run_once(noisy, column, backend), whole));
  }
  return most;
}
/// Whether a plan takes any statistics of a norm from more than one piece: only then may outputs differ from the column's.
inline bool merges_statistics(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.op == Op::statistics && s.accumulate; });
}
/// Compares row-centric runs of `networks` networks with the column run of the same backend; counts what they cover. Every other network has
/// the feature, and its policies the parts, whose pairs are the rarest so far.
template <class B>
void compare_graphs(std::uint64_t first_seed, std::size_t networks, GraphCoverage& coverage, GraphWorst& worst, const GraphOptions& options) {
  using T = master_t<typename B::element>;
  B backend(1);
  coverage.direct = options.direct;
  for (std::size_t n = 0; n < networks; ++n) {
    const std::size_t in_turn = n / 2 % graph_feature_count;
    const auto [f, rare] = n % 2 == 0 ? std::pair{in_turn, std::size_t{0}} : coverage.rarest_pair(in_turn);
    const std::uint64_t seed = first_seed + n;
    Dice dice(seed);
    RandomNetwork net;
    do {
      net = graph_with(dice, graph_features[f]);
      if (f > 0 && dice.chance(0.5))   // so that groups of images can go through the whole network
        for (Layer& y : net.layers) y.norm.frozen = y.kind == Kind::norm && y.norm.over == Norm::Over::batch;
    } while (!has_use_for(make_table(net.layers, net.input), graph_parts[rare], options.direct));
    const Problem<T> problem(net.layers, net.input, seed);
    PolicySpec column;
    column.workspace_bytes = options.workspace;
    const Outcome<T> whole = run_once(problem, column, backend);
    ++worst.networks;
    if (coverage.least_pair() < GraphCoverage::wanted) worst.until_covered = worst.networks;
    double noise = -1;
    for (const std::size_t p : coverage.rarest_parts(problem.table, static_cast<std::size_t>(options.count), n * 5)) {
      const std::string_view part = graph_parts[p];
      PolicySpec policy = graph_policy_with(dice, part, net, B::target);
      policy.workspace_bytes = options.workspace;
      if (dice.chance(0.5)) add_workspaces(dice, policy, {options.workspace});
      if (options.direct) compute_by(policy, ConvAlgorithm::direct);
      if (part != "Images" && dice.chance(0.9)) policy.images = 0;   // a batch norm refuses it
      INFO("seed ", seed, ", feature ", std::string(graph_features[f]), ", part ", std::string(part), "\n", to_string(policy), "\n", graph_text(net));
      bool merges = false;
      try {
        const Plan plan = make_plan(problem.table, policy, B::target, {.input_gradient = true});
        coverage.add(plan);
        merges = merges_statistics(plan);
      } catch (const PlanError&) {
        ++coverage.infeasible;
        continue;
      }
      const Outcome<T> rows = run_once(problem, policy, backend, dice.chance(0.8));
      const double difference = worst_graph_difference(problem, rows, whole);
      const bool same = same_bits(rows.output, whole.output) && rows.loss == whole.loss;
      if (merges) ++worst.statistics, worst.statistics_bits += same;
      else worst.bits += same;
      if (!merges) CHECK(same);
      if (difference <= options.tolerance) {
        if (difference > worst.difference) worst.difference = difference;
        continue;
      }
      if (noise < 0) noise = noise_of(problem, whole, column, backend, options.noises);
      CHECK(difference <= 10 * noise);
      ++worst.conditioned;
      worst.excused = std::max(worst.excused, difference);
      if (difference > worst.over_noise * noise) worst.over_noise = difference / noise, worst.where = "seed " + std::to_string(seed);
    }
  }
}
inline std::string text_of(const GraphWorst& worst, const GraphCoverage& coverage) {
  return std::to_string(worst.networks) + " networks, " + std::to_string(coverage.cases) + " cases, " + std::to_string(coverage.infeasible) +
         " infeasible; least pair " + std::to_string(coverage.least_pair()) + ", enough after " + std::to_string(worst.until_covered) +
         " networks; worst difference " + std::to_string(worst.difference * 1e15) + "e-15; " + std::to_string(worst.conditioned) +
         " beyond it, at most " + std::to_string(worst.excused) + " and " + std::to_string(worst.over_noise) + " times the noise (" + worst.where +
         "); outputs equal to the bit: " + std::to_string(worst.bits) + " where no statistics are merged, " + std::to_string(worst.statistics_bits) +
         " of " + std::to_string(worst.statistics) + " where they are";
}
}   // namespace lrcnn::testing
