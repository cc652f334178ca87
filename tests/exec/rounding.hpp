#pragma once
// What fp32 changes in the gradients of whole networks, layer by layer and by rows, against fp64.
#include "support/run_network.hpp"
#include <lrcnn/layer/pixel_loss.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/policy/policy.hpp>
#include <doctest/doctest.h>
namespace lrcnn::testing {
/// The distance of all gradients by parameters from those in fp64, as a share of their norm.
inline double rounding_error(const Problem<float>& problem, const Outcome<float>& ours, const Outcome<double>& truth) {
  double difference = 0, size = 0;
  for (const Parameter& p : problem.layout)
    for (auto i = static_cast<std::size_t>(p.offset); !p.shape.running && i < static_cast<std::size_t>(p.elements().end); ++i) {
      const double d = static_cast<double>(ours.gradients[i]) - truth.gradients[i];
      difference += d * d, size += truth.gradients[i] * truth.gradients[i];
    }
  return std::isnan(difference) ? INFINITY : std::sqrt(difference / size);
}
/// A column and row-centric policies in the same arithmetic.
struct RoundingCase {
  PolicySpec column{};
  std::vector<PolicySpec> rows{};
};
/// Checks that errors of row-centric runs are at most twice the column's, by the median over draws of parameters and images: where a
/// rectifier or a pool decides otherwise than in fp64, in one run and not in the other, one draw's ratio is hundreds, or its inverse.
/// With L a loss over pixels, labels are drawn for each of them, from three classes.
template <class Network, class L = SoftmaxCrossEntropy, class B>
void check_rounding(const Input& input, int draws, B& backend, const std::vector<RoundingCase>& cases, const L& loss = {}) {
  constexpr std::uint64_t first = 8000;
  Reference<double> oracle(2);
  std::vector<std::vector<double>> errors(cases.size());
  std::vector<std::vector<std::vector<double>>> ratios(cases.size());
  for (int draw = 0; draw < draws; ++draw) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(draw);
    Problem<float> problem(Network::layers, input, seed);
    if constexpr (RowLocalLoss<L, float>) {
      problem.labels.resize(static_cast<std::size_t>(input.n * input.h * input.w));
      for (std::size_t i = 0; i < problem.labels.size(); ++i) problem.labels[i] = static_cast<std::int32_t>(Random(seed, 78).below(i, 3));
    }
    Problem<double> exact(Network::layers, input, seed);
    exact.parameters.assign(problem.parameters.begin(), problem.parameters.end());
    exact.images.assign(problem.images.begin(), problem.images.end());
    exact.labels = problem.labels;
    const Outcome<double> truth = run_once(exact, Policy<Column>::value, oracle, false, loss);
    const auto error = [&](const PolicySpec& policy) { return rounding_error(problem, run_once(problem, policy, backend, false, loss), truth); };
    for (std::size_t c = 0; c < cases.size(); ++c) {
      errors[c].push_back(error(cases[c].column));
      ratios[c].resize(cases[c].rows.size());
      for (std::size_t p = 0; p < cases[c].rows.size(); ++p) ratios[c][p].push_back(error(cases[c].rows[p]) / errors[c].back());
    }
  }
  for (std::size_t c = 0; c < cases.size(); ++c) {
    std::ranges::sort(errors[c]);
    const std::size_t middle = errors[c].size() / 2;
    MESSAGE(draws, " seeds from ", first, ", ", to_string(cases[c].column), ": error ", errors[c][middle], " (", errors[c].front(), " to ",
            errors[c].back(), ")");
    for (std::size_t p = 0; p < cases[c].rows.size(); ++p) {
      std::vector<double>& list = ratios[c][p];
      std::ranges::sort(list);
      MESSAGE(to_string(cases[c].rows[p]), ": ", list[middle], " times that (", list.front(), " to ", list.back(), ")");
      CHECK(list[middle] <= 2);
    }
  }
}
inline const PixelCrossEntropy uneven_pixels{.weights = {0.5, 2, 1}, .ignore = 2};
}   // namespace lrcnn::testing
