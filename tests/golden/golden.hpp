#pragma once
// Reads the golden files, whose form make_golden.py describes, and runs their cases.
#include "support/run_network.hpp"
#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
namespace lrcnn::testing {
/// Numbers of 20 bits that both sides compute from a stream.
struct GoldenNumbers {
  std::uint64_t stream = 0;
  double scale = 1;
  double operator()(Index i) const {
    const auto n = static_cast<double>(Random(20240131, stream).bits(static_cast<std::uint64_t>(i)) >> 44);
    return (n - 0x1p19 + 0.5) * 0x1p-19 * scale;
  }
};
struct GoldenTensor {
  std::string name;
  Index count = 0;
  double norm = 0, sum = 0, dot = 0;
  std::vector<double> values{};   ///< of all elements, or of the samples
};
struct GoldenCase {
  std::string name;
  Input input{};
  GoldenNumbers x{}, g{};
  double levels = 0;   ///< inputs are rounded down to multiples of 1 / levels; 0: they are not
  std::vector<Layer> layers{};
  std::vector<GoldenNumbers> parameters{};
  std::vector<std::int32_t> labels{};
  std::vector<GoldenTensor> tensors{};
};
struct GoldenFile {
  Index samples = 0, all = 0;
  std::vector<GoldenCase> cases{};
  /// Index of the element whose value is number `i` of those stored for a tensor of `count` elements.
  Index element(Index i, Index count) const {
    if (count <= all) return i;
    return static_cast<Index>(Random(20240131, 2).bits(static_cast<std::uint64_t>(i)) >> 11) % count;
  }
};
namespace detail {
inline Layer golden_layer(std::istringstream& line) {
  Layer layer;
  std::string kind, key;
  line >> kind;
  for (const Kind k : {Kind::conv, Kind::max_pool, Kind::avg_pool, Kind::global_avg_pool, Kind::linear})
    if (kind == kind_name(k)) layer.kind = k;
  for (const Function f : {Function::relu, Function::leaky_relu, Function::silu})
    if (kind == function_name(f)) layer.activation.function = f;
  Window& w = layer.window;
  while (line >> key) {
    if (key == "channels") line >> layer.channels;
    else if (key == "kernel") line >> w.kernel.h >> w.kernel.w;
    else if (key == "stride") line >> w.stride.h >> w.stride.w;
    else if (key == "pad") line >> w.pad.top >> w.pad.bottom >> w.pad.left >> w.pad.right;
    else if (key == "dilation") line >> w.dilation.h >> w.dilation.w;
    else if (key == "groups") line >> layer.groups;
    else if (key == "bias") line >> layer.bias;
    else if (key == "count_padding") line >> layer.count_padding;
    else if (key == "slope") line >> layer.activation.slope;
    else throw std::runtime_error("golden file: layer with '" + key + "'");
  }
  return layer;
}
}   // namespace detail
inline GoldenFile read_golden(const std::string& name) {
  const std::string path = std::string(LRCNN_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream in(path);
  if (!in) throw std::runtime_error("golden file " + path + " cannot be read");
  GoldenFile file;
  std::string text, key;
  while (std::getline(in, text)) {
    if (text.starts_with('#')) continue;
    std::istringstream line(text);
    line >> key;
    if (key == "stored") {
      line >> file.samples >> file.all;
      continue;
    }
    if (key == "case") {
      line >> file.cases.emplace_back().name;
      continue;
    }
    GoldenCase& c = file.cases.at(file.cases.size() - 1);
    if (key == "input") line >> c.input.n >> c.input.c >> c.input.h >> c.input.w >> c.x.stream >> c.x.scale;
    else if (key == "levels") line >> c.levels;
    else if (key == "layer") c.layers.push_back(detail::golden_layer(line));
    else if (key == "gradient") line >> c.g.stream >> c.g.scale;
    else if (key == "parameter") line >> c.parameters.emplace_back().stream >> c.parameters.back().scale;
    else if (key == "label")
      for (std::int32_t label = 0; line >> label;) c.labels.push_back(label);
    else if (key == "tensor") {
      GoldenTensor& t = c.tensors.emplace_back();
      line >> t.name >> t.count >> t.norm >> t.sum >> t.dot;
      t.values.resize(static_cast<std::size_t>(t.count <= file.all ? t.count : file.samples));
      for (double& v : t.values) in >> v;
      std::getline(in, text);
      if (!in) throw std::runtime_error("golden file " + path + " ends in tensor " + t.name + " of " + c.name);
    } else throw std::runtime_error("golden file " + path + ": '" + text + "'");
  }
  return file;
}
/// The mean over the images of <y, g>, whose gradient is g / N. Looks at no label.
struct WeightedSum {
  static constexpr std::string_view name = "weighted_sum";
  static constexpr bool whole_maps = true;
  GoldenNumbers g{};
  double total(const Labels&, const Shape& output) const { return static_cast<double>(output.n); }
  template <class T>
  void operator()(const View<const T>& y, const Labels&, Index first, const View<T>& dx, double scale, LossResult& result) const {
    for (Index n = 0; n < y.n; ++n, ++result.count)
      for (Index c = 0; c < y.c; ++c)
        for (Index h = 0; h < y.rows; ++h)
          for (Index w = 0; w < y.w; ++w) {
            const double weight = g((((first + n) * y.c + c) * y.rows + h) * y.w + w);
            result.sum += weight * static_cast<double>(y(n, c, h, w));
            if (dx.data != nullptr) dx(n, c, h, w) = static_cast<T>(scale * weight);
          }
  }
};
/// A case's network with its parameters, images and labels.
template <class T>
Problem<T> golden_problem(const GoldenCase& c) {
  Problem<T> problem(c.layers, c.input, 0);
  if (problem.layout.size() != c.parameters.size()) throw std::runtime_error("golden case " + c.name + ": parameters");
  for (std::size_t p = 0; p < problem.layout.size(); ++p) {
    const auto values = elements_of(problem.layout[p], std::span<T>(problem.parameters));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(c.parameters[p](static_cast<Index>(i)));
  }
  for (std::size_t i = 0; i < problem.images.size(); ++i) {
    const double v = c.x(static_cast<Index>(i));
    problem.images[i] = static_cast<T>(c.levels > 0 ? std::floor(v * c.levels) / c.levels : v);
  }
  problem.labels = c.labels;
  const Shape& output = problem.table.shape(problem.table.size());
  if (c.labels.empty()) problem.labels.assign(static_cast<std::size_t>(output.n * output.h * output.w), 0);
  return problem;
}
/// Loss, output and gradients of a case under a policy.
template <class B, class T = typename B::element>
Outcome<T> run_golden(const GoldenCase& c, const Problem<T>& problem, const PolicySpec& policy, B& backend) {
  Outcome<T> outcome;
  outcome.gradients.assign(problem.parameters.size(), static_cast<T>(std::nan("")));
  Executor<B> executor(make_plan(problem.table, policy, B::target, {.training = true, .input_gradient = true}), backend, problem.parameters.data(),
                       outcome.gradients.data());
  T* memory = reinterpret_cast<T*>(executor.arena().data());
  std::fill(memory, memory + executor.arena().bytes() / static_cast<Index>(sizeof(T)), static_cast<T>(std::nan("")));
  const MemorySource<T> source(problem.images.data(), problem.table.input);
  const Shape& output = problem.table.shape(problem.table.size());
  outcome.loss = c.labels.empty() ? executor.run(source, Labels::of_pixels(problem.labels, output.h, output.w), WeightedSum{c.g})
                                  : executor.run(source, problem.labels);
  outcome.output = dense_copy<T>(executor.output());
  outcome.input_gradient = dense_copy<T>(executor.input_gradient());
  outcome.peak = executor.plan().peak_bytes();
  return outcome;
}
/// How far a tensor is from its golden values, as a share of its own norm: the stored elements, the norm, the sum
/// (over the square root of the count) and the inner product, whichever is worst.
template <class T>
double golden_difference(const GoldenFile& file, const GoldenTensor& golden, std::span<const T> ours) {
  if (static_cast<Index>(ours.size()) != golden.count) return INFINITY;
  double distance = 0, norm = 0;
  for (std::size_t i = 0; i < golden.values.size(); ++i) {
    const double d = static_cast<double>(ours[static_cast<std::size_t>(file.element(static_cast<Index>(i), golden.count))]) - golden.values[i];
    distance += d * d;
    norm += golden.values[i] * golden.values[i];
  }
  double squares = 0, sum = 0, dot = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double v = static_cast<double>(ours[i]);
    squares += v * v, sum += v, dot += v * GoldenNumbers{1}(static_cast<Index>(i));
  }
  const double whole = golden.norm > 0 ? golden.norm : 1;
  const double worst =
      std::max({std::sqrt(distance / (norm > 0 ? norm : 1)), std::abs(std::sqrt(squares) - golden.norm) / whole,
                std::abs(sum - golden.sum) / whole / std::sqrt(static_cast<double>(golden.count)), std::abs(dot - golden.dot) / whole});
  return std::isnan(distance + squares) ? INFINITY : worst;
}
/// The largest difference of an outcome from a case, and the tensor that has it.
template <class T>
std::pair<double, std::string> golden_difference(const GoldenFile& file, const GoldenCase& c, const Problem<T>& problem, const Outcome<T>& outcome) {
  const std::vector<double> loss{outcome.loss.mean()};
  std::pair<double, std::string> worst{0, "none"};
  Index seen = 0;
  for (const GoldenTensor& t : c.tensors) {
    double d = INFINITY;
    if (t.name == "loss") {   // a sum of terms that cancel: as a share of their size where that is larger
      d = std::abs(outcome.loss.mean() - t.sum) / std::max(1.0, std::abs(t.sum));
    } else if (t.name == "y") {
      d = golden_difference<T>(file, t, outcome.output);
    } else if (t.name == "dx") {
      d = golden_difference<T>(file, t, outcome.input_gradient);
    } else {
      const auto p = static_cast<std::size_t>(std::stoll(t.name.substr(1)));
      d = golden_difference<T>(file, t, elements_of(problem.layout.at(p), std::span<const T>(outcome.gradients)));
    }
    if (!(d <= worst.first)) worst = {d, t.name};
    ++seen;
  }
  if (seen != static_cast<Index>(problem.layout.size()) + 3) worst = {INFINITY, "number of tensors"};
  return worst;
}
}   // namespace lrcnn::testing
