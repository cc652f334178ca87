// ResNet-18, ResNet-50 and U-Net against another framework in fp64: loss, gradients, running statistics after a step, and three steps of
// training. make_golden_networks.py says what the files hold.
#include "golden.hpp"
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/optimizer.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Entry {
  std::string name{};
  Index count = 0;
  double norm = 0;
  std::vector<double> values{};
};
struct NetworkFile {
  Input input{};
  std::vector<std::int32_t> labels{};
  double loss = 0, lr = 0, momentum = 0;
  std::vector<double> losses{};
  std::vector<Entry> gradients{}, running{}, after{};
};
NetworkFile read_network(const std::string& name) {
  std::ifstream in(std::string(LRCNN_SOURCE_DIR) + "/tests/golden/" + name);
  REQUIRE(in);
  NetworkFile file;
  for (std::string text, key; std::getline(in, text);) {
    std::istringstream line(text);
    line >> key;
    const auto entry = [&](std::vector<Entry>& list) {
      Entry& e = list.emplace_back();
      line >> e.name >> e.count >> e.norm;
      for (double v = 0; line >> v;) e.values.push_back(v);
    };
    if (key == "input") line >> file.input.n >> file.input.c >> file.input.h >> file.input.w;
    else if (key == "labels") for (std::int32_t label = 0; line >> label;) file.labels.push_back(label);
    else if (key == "loss") line >> file.loss;
    else if (key == "gradient") entry(file.gradients);
    else if (key == "running") entry(file.running);
    else if (key == "after") entry(file.after);
    else if (key == "steps") {
      line >> file.lr >> file.momentum;
      for (double v = 0; line >> v;) file.losses.push_back(v);
    }
  }
  return file;
}
std::uint64_t stream_of(const std::string& name) {   // FNV-1a
  std::uint64_t h = 0xCBF29CE484222325ull;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return h;
}
template <class Network>
Problem<double> problem_of(const NetworkFile& file) {
  Problem<double> problem(Network::layers, file.input, 0);
  for (const Parameter& p : problem.layout) {
    const auto values = elements_of(p, std::span<double>(problem.parameters));
    const bool matrix = p.shape.fan_in > 0, weight = p.name.ends_with(".weight");
    const double scale = matrix ? std::sqrt(6.0 / static_cast<double>(p.shape.fan_in)) : weight ? 0.25 : 0.125;
    const GoldenNumbers numbers{stream_of(p.name), scale};
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = p.shape.running ? p.shape.fill : (!matrix && weight ? 1 : 0) + numbers(static_cast<Index>(i));
  }
  for (std::size_t i = 0; i < problem.images.size(); ++i) problem.images[i] = GoldenNumbers{1, 2.0}(static_cast<Index>(i));
  problem.labels = file.labels;
  return problem;
}
/// The largest difference from the file's entries of what lies in a flat buffer, as a share of `floor` or of the tensor's norm.
double worst_of(const std::vector<Entry>& list, const Problem<double>& problem, const std::vector<double>& flat, double floor) {
  double worst = list.empty() ? INFINITY : 0;
  for (const Entry& e : list) {
    const Parameter* p = find_parameter(problem.layout, e.name);
    INFO(e.name);
    REQUIRE(p != nullptr);
    REQUIRE(p->shape.count() == e.count);
    const auto ours = elements_of(*p, std::span<const double>(flat));
    const double scale = std::max({e.norm, floor, 1e-300});
    double d = std::abs(norm(ours) - e.norm);
    for (std::size_t j = 0; j < e.values.size(); ++j) {
      const auto at = static_cast<Index>(Random(20240131, 2).bits(j) >> 11) % e.count;
      d = std::max(d, std::abs(ours[static_cast<std::size_t>(at)] - e.values[j]));
    }
    worst = std::isnan(d) ? INFINITY : std::max(worst, d / scale);
  }
  return worst;
}
std::vector<double> mixed(const Problem<double>& problem, const std::vector<double>& gradients) {
  std::vector<double> parameters = problem.parameters;
  for (const Parameter& p : problem.layout)
    for (Index i = p.offset; p.shape.running && i < p.elements().end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double share = problem.table.node(p.layer).layer.norm.momentum;
      parameters[at] = (1 - share) * parameters[at] + share * gradients[at];
    }
  return parameters;
}
template <class Network>
void check_network(const std::string& name, std::initializer_list<PolicySpec> policies, bool trains) {
  const NetworkFile file = read_network(name);
  Problem<double> problem = problem_of<Network>(file);
  CHECK(file.gradients.size() + file.running.size() == problem.layout.size());
  double squares = 0;
  for (const Entry& e : file.gradients) squares += e.norm * e.norm;
  Reference<double> backend(2);
  for (const PolicySpec& policy : policies) {
    const Outcome<double> outcome = run_once(problem, policy, backend, false);
    const double loss = std::abs(outcome.loss.mean() - file.loss), gradient = worst_of(file.gradients, problem, outcome.gradients, std::sqrt(squares));
    const double running = worst_of(file.running, problem, mixed(problem, outcome.gradients), 0);
    MESSAGE(name, ", ", to_string(policy), ": loss differs by ", loss, ", gradients by ", gradient, ", running statistics by ", running);
    CHECK(loss <= 1e-10);
    CHECK(gradient <= 1e-9);
    CHECK(running <= 1e-10);
  }
  if (!trains) return;
  std::vector<double> velocity(problem.parameters.size(), 0.0);
  for (const double expected : file.losses) {   // the last policy, with momentum
    const Outcome<double> outcome = run_once(problem, *(policies.end() - 1), backend, false);
    CHECK(std::abs(outcome.loss.mean() - expected) <= 1e-8);
    const std::vector<double> next = mixed(problem, outcome.gradients);
    for (const Parameter& p : problem.layout)
      for (auto i = static_cast<std::size_t>(p.offset); i < static_cast<std::size_t>(p.elements().end); ++i) {
        velocity[i] = file.momentum * velocity[i] + outcome.gradients[i];
        problem.parameters[i] = p.shape.running ? next[i] : problem.parameters[i] - file.lr * velocity[i];
      }
  }
  const double after = worst_of(file.after, problem, problem.parameters, 0);
  MESSAGE(name, ": after ", file.losses.size(), " steps parameters differ by ", after);
  CHECK(after <= 1e-7);
}
}  // namespace
TEST_CASE("ResNet-18 equals the framework's, column and by rows, and after three steps") {
  check_network<ResNet18<10>>("resnet18.txt", {Policy<Column>::value, Policy<Overlap<2>, RecomputeAll>::value, Policy<Share<2>, RecomputeCheap>::value}, true);
}
TEST_CASE("ResNet-50 equals the framework's, column and by rows") {
  check_network<ResNet50<10>>("resnet50.txt", {Policy<Column>::value, Policy<Overlap<2>, RecomputeCheap>::value, Policy<Share<2>, RecomputeAll>::value}, false);
}
