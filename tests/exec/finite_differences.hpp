#pragma once
// Central differences of a network's loss, entry by entry, for any loss.
#include "support/run_network.hpp"
namespace lrcnn::testing {
/// The gradient as differences show it. Where two step sizes disagree, a kink (a rectifier's zero, a pool's tie) lies
/// between the points: such entries are marked and not compared.
struct Differences {
  std::vector<double> gradients, input_gradient;
  std::vector<char> kink, input_kink;
};
template <class L = SoftmaxCrossEntropy>
Differences differences_of(Problem<double> problem, const L& loss = {}) {
  Reference<double> backend(1);
  PolicySpec column;
  column.workspace_bytes = 0;
  const bool trains = std::any_of(problem.table.nodes.begin(), problem.table.nodes.end(), [](const Node& n) {
    return has_statistics(n.layer, true) || n.layer.kind == Kind::dropout;   // which are in training only
  });
  std::vector<double> gradients(problem.parameters.size());
  Executor<Reference<double>> executor(make_plan(problem.table, column, Reference<double>::target, {.training = trains}), backend,
                                       problem.parameters.data(), trains ? gradients.data() : nullptr);
  const MemorySource<double> source(problem.images.data(), problem.table.input);
  const auto value = [&] { return executor.run(source, problem.labels, loss).mean(); };
  const auto slope = [&](double& x, double h) {
    const double here = x;
    x = here + h;
    const double above = value();
    x = here - h;
    const double below = value();
    x = here;
    return (above - below) / (2 * h);
  };
  Differences d;
  const auto all = [&](std::vector<double>& entries, std::vector<double>& gradient, std::vector<char>& kink) {
    for (double& x : entries) {
      const double coarse = slope(x, 2e-5), fine = slope(x, 4e-6);
      gradient.push_back(coarse);
      kink.push_back(std::abs(coarse - fine) > 1e-7 * std::max(1.0, std::abs(fine)));
    }
  };
  all(problem.parameters, d.gradients, d.kink);
  for (const Parameter& p : problem.layout)   // of a frozen norm's the loss depends, but they are not trained
    if (p.shape.running)
      std::ranges::fill(elements_of(p, std::span<double>(d.gradients)), 0.0), std::ranges::fill(elements_of(p, std::span<char>(d.kink)), char{0});
  all(problem.images, d.input_gradient, d.input_kink);
  return d;
}
/// The largest difference of an entry, over the norm of the whole gradient; entries at a kink are counted instead.
inline double worst_entry(const Differences& d, const Outcome<double>& outcome, Index& kinks) {
  const double whole = std::max(1e-2, std::hypot(norm<double>(d.gradients), norm<double>(d.input_gradient)));
  double worst = 0;
  const auto compare = [&](const std::vector<double>& a, const std::vector<double>& b, const std::vector<char>& kink) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      const double difference = i < a.size() ? std::abs(a[i] - b[i]) / whole : INFINITY;
      if (kink[i]) ++kinks;
      else if (!(difference <= worst)) worst = std::isnan(difference) ? INFINITY : difference;
    }
  };
  compare(outcome.gradients, d.gradients, d.kink);
  compare(outcome.input_gradient, d.input_gradient, d.input_kink);
  return worst;
}
}   // namespace lrcnn::testing
