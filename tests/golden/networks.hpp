#pragma once
// Reads the golden files of whole networks, whose form make_golden_networks.py describes, and compares networks with them in fp64.
#include "golden.hpp"
#include <lrcnn/layer/pixel_loss.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
namespace lrcnn::testing {
/// A tensor: its norm, and some of its elements.
struct NetworkEntry {
  std::string name{};
  Index count = 0;
  double norm = 0;
  std::vector<double> values{};
};
struct NetworkStep {
  double loss = 0;
  std::vector<NetworkEntry> after{};
};
struct NetworkFile {
  Input input{};
  std::vector<std::int32_t> labels{};   ///< of images, or of pixels, which have weights
  PixelCrossEntropy pixels{};
  double loss = 0;
  NetworkEntry images{};
  std::vector<NetworkEntry> gradients{}, running{};
  Sgd training{};
  std::vector<NetworkStep> steps{};
};
inline NetworkFile read_network(const std::string& name) {
  std::ifstream in(std::string(LRCNN_SOURCE_DIR) + "/tests/golden/" + name + ".txt");
  REQUIRE(in);
  NetworkFile file;
  for (std::string text, key; std::getline(in, text);) {
    std::istringstream line(text);
    line >> key;
    const auto entry = [&](NetworkEntry& e) {
      line >> e.name >> e.count >> e.norm;
      for (double v = 0; line >> v;) e.values.push_back(v);
    };
    if (key == "input") line >> file.input.n >> file.input.c >> file.input.h >> file.input.w;
    else if (key == "labels")
      for (std::int32_t label = 0; line >> label;) file.labels.push_back(label);
    else if (key == "mask") {
      line >> file.pixels.ignore.emplace();
      for (double v = 0; line >> v;) file.pixels.weights.push_back(v);
      const Random random(20240131, 3);
      const std::uint64_t classes = file.pixels.weights.size();
      for (Index i = 0; i < file.input.n * file.input.h * file.input.w; ++i) {
        const std::uint64_t drawn = (random.bits(static_cast<std::uint64_t>(i)) >> 11) % (classes + 1);
        file.labels.push_back(drawn < classes ? static_cast<std::int32_t>(drawn) : *file.pixels.ignore);
      }
    } else if (key == "loss") line >> file.loss;
    else if (key == "images") entry(file.images);
    else if (key == "gradient") entry(file.gradients.emplace_back());
    else if (key == "running") entry(file.running.emplace_back());
    else if (key == "training") line >> file.training.lr >> file.training.momentum >> file.training.weight_decay;
    else if (key == "step") line >> file.steps.emplace_back().loss;
    else if (key == "after") entry(file.steps.at(file.steps.size() - 1).after.emplace_back());
  }
  return file;
}
namespace detail {
inline std::uint64_t stream_of(const std::string& name) {   // FNV-1a
  std::uint64_t h = 0xCBF29CE484222325ull;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return h;
}
}   // namespace detail
inline Problem<double> network_problem(std::span<const Layer> layers, const NetworkFile& file) {
  Problem<double> problem(layers, file.input, 0);
  for (const Parameter& p : problem.layout) {
    const auto values = elements_of(p, std::span<double>(problem.parameters));
    const bool matrix = p.shape.fan_in > 0, weight = p.name.ends_with(".weight");
    const double scale = matrix ? std::sqrt(6.0 / static_cast<double>(p.shape.fan_in)) : weight ? 0.25 : 0.125;
    const GoldenNumbers numbers{detail::stream_of(p.name), scale};
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = p.shape.running ? p.shape.fill : (!matrix && weight ? 1 : 0) + numbers(static_cast<Index>(i));
  }
  for (std::size_t i = 0; i < problem.images.size(); ++i) problem.images[i] = GoldenNumbers{1, 2.0}(static_cast<Index>(i));
  problem.labels = file.labels;
  return problem;
}
/// The largest difference of a tensor from its entry, as a share of its norm, or of `floor` where that is larger.
inline double network_difference(const NetworkEntry& e, std::span<const double> ours, double floor) {
  if (static_cast<Index>(ours.size()) != e.count || e.values.empty()) return INFINITY;
  double d = std::abs(norm(ours) - e.norm);
  for (std::size_t j = 0; j < e.values.size(); ++j) {
    const auto at = static_cast<Index>(Random(20240131, 2).bits(j) >> 11) % e.count;
    d = std::max(d, std::abs(ours[static_cast<std::size_t>(at)] - e.values[j]));
  }
  return std::isnan(d) ? INFINITY : d / std::max({e.norm, floor, 1e-300});
}
/// The same of all entries, whose tensors lie in a flat buffer.
inline double network_difference(const std::vector<NetworkEntry>& list, const Problem<double>& problem, std::span<const double> flat, double floor) {
  double worst = 0;
  for (const NetworkEntry& e : list) {
    const Parameter* p = find_parameter(problem.layout, e.name);
    INFO(e.name);
    REQUIRE(p != nullptr);
    worst = std::max(worst, network_difference(e, elements_of(*p, flat), floor));
  }
  return worst;
}
/// Loss, gradients and running statistics under some policies, and training under the first and the last of them if the file has steps.
/// L: SoftmaxCrossEntropy, or PixelCrossEntropy where the file has a mask.
template <class Network, class L = SoftmaxCrossEntropy>
void check_network(const std::string& name, const std::vector<PolicySpec>& policies) {
  const NetworkFile file = read_network(name);
  const Problem<double> problem = network_problem(Network::layers, file);
  CHECK(file.gradients.size() + file.running.size() == problem.layout.size());
  double squares = 0;
  for (const NetworkEntry& e : file.gradients) squares += e.norm * e.norm;
  const double whole = std::sqrt(squares);
  L loss{};
  if constexpr (RowLocalLoss<L, double>) loss = file.pixels;
  Reference<double> backend(2);
  const RunningStatistics statistics(problem.table);
  for (const PolicySpec& policy : policies) {
    INFO(name, ", ", to_string(policy));
    const Outcome<double> outcome = run_once(problem, policy, backend, true, loss);
    std::vector<double> state = problem.parameters;
    statistics.mix(backend, state.data(), outcome.gradients.data());
    const double of_loss = std::abs(outcome.loss.mean() - file.loss);
    const double of_images = network_difference(file.images, outcome.input_gradient, 0);
    const double of_gradients = network_difference(file.gradients, problem, outcome.gradients, whole);
    const double of_running = network_difference(file.running, problem, state, 0);
    MESSAGE("differences: loss ", of_loss, ", input gradient ", of_images, ", gradients ", of_gradients, ", running statistics ", of_running);
    CHECK(of_loss <= 1e-11);
    CHECK(of_images <= 1e-11);
    CHECK(of_gradients <= 1e-11);
    CHECK(of_running <= 1e-11);
  }
  if (file.steps.empty()) return;
  for (const PolicySpec& policy : {policies.front(), policies.back()}) {
    INFO(name, ", ", to_string(policy));
    BasicTrainer<Reference<double>, L> trainer(Network::layers, policy, file.input, file.training, {.threads = 2}, loss);
    trainer.write_parameters(problem.parameters);
    const MemorySource<double> source(problem.images.data(), file.input);
    for (const NetworkStep& step : file.steps) {
      const double of_loss = std::abs(trainer.step(source, labels_for<L>(problem)).loss - step.loss);
      CHECK(step.after.size() == problem.layout.size());
      const double of_state = network_difference(step.after, problem, trainer.parameters(), 0);
      MESSAGE("step ", trainer.steps_done(), " differs: loss ", of_loss, ", parameters and running statistics ", of_state);
      CHECK(of_loss <= 1e-9);
      CHECK(of_state <= 1e-9);
    }
  }
}
}   // namespace lrcnn::testing
