#pragma once
// What fp32 changes in the gradients of whole networks, layer by layer and by rows, against fp64.
#include "support/run_network.hpp"
#include <lrcnn/layer/pixel_loss.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/policy/policy.hpp>
#include <doctest/doctest.h>
#include <algorithm>
#include <sstream>
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
/// The middle one of an odd number of values.
inline double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}
/// "middle (least to most)".
inline std::string spread_text(const std::vector<double>& values) {
  std::ostringstream text;
  text << median_of(values) << " (" << std::ranges::min(values) << " to " << std::ranges::max(values) << ")";
  return text.str();
}
/// Checks that errors of row-centric runs are at most twice the column's, by the median over draws of parameters and images: where a
/// rectifier or a pool decides otherwise than in fp64, in one run and not in the other, one draw's ratio is hundreds, or its inverse. One draw
/// in ten has that, so among few draws it may be most of them: where a median is too large, three times as many decide.
/// With L a loss over pixels, labels are drawn for each of them, from three classes.
template <class Network, class L = SoftmaxCrossEntropy, class B>
void check_rounding(const Input& input, int draws, B& backend, const std::vector<RoundingCase>& cases, const L& loss = {}) {
  constexpr std::uint64_t first = 8000;
  constexpr double most = 2;
  Reference<double> oracle(2);
  std::vector<std::vector<double>> errors(cases.size());
  std::vector<std::vector<std::vector<double>>> ratios(cases.size());
  for (std::size_t c = 0; c < cases.size(); ++c) ratios[c].resize(cases[c].rows.size());
  const auto draw = [&](std::uint64_t seed) {
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
      for (std::size_t p = 0; p < cases[c].rows.size(); ++p) ratios[c][p].push_back(error(cases[c].rows[p]) / errors[c].back());
    }
  };
  const auto too_large = [&] {
    return std::ranges::any_of(
        ratios, [](const auto& of_case) { return std::ranges::any_of(of_case, [](const auto& list) { return median_of(list) > most; }); });
  };
  int drawn = 0;
  const auto draw_until = [&](int end) {
    for (; drawn < end; ++drawn) draw(first + static_cast<std::uint64_t>(drawn));
  };
  draw_until(draws);
  if (too_large()) draw_until(3 * draws);
  for (std::size_t c = 0; c < cases.size(); ++c) {
    MESSAGE(drawn, " seeds from ", first, ", ", to_string(cases[c].column), ": error ", spread_text(errors[c]));
    for (std::size_t p = 0; p < cases[c].rows.size(); ++p) {
      MESSAGE(to_string(cases[c].rows[p]), ": ", spread_text(ratios[c][p]), " times that");
      CHECK(median_of(ratios[c][p]) <= most);
    }
  }
}
inline const PixelCrossEntropy uneven_pixels{.weights = {0.5, 2, 1}, .ignore = 2};
}   // namespace lrcnn::testing
