#pragma once
// Runs of drawn networks under drawn policies whose memory a test can look into.
#include "exec/graph_equivalence.hpp"
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
namespace lrcnn::testing {
/// What `make` makes, an executor that does not fill its arena at the start of each run, whatever LRCNN_FILL_ARENA says.
template <class F>
auto without_filling(F make) {
  const char* const word = std::getenv("LRCNN_FILL_ARENA");
  const struct Restore {
    std::optional<std::string> before;
    ~Restore() {
      if (before) setenv("LRCNN_FILL_ARENA", before->c_str(), 1);
      else unsetenv("LRCNN_FILL_ARENA");
    }
  } restore{word ? std::optional<std::string>(word) : std::nullopt};
  unsetenv("LRCNN_FILL_ARENA");
  return make();
}
/// An executor with all that it needs, ready to be run again and again.
template <class B>
struct Run {
  using T = typename B::element;
  Problem<T> problem;
  B backend{1};
  std::vector<T> gradients;
  Executor<B> executor;
  MemorySource<T> source;
  Run(const RandomNetwork& net, const PolicySpec& policy, std::uint64_t seed)
      : problem(net.layers, net.input, seed),
        gradients(problem.parameters.size()),
        executor(without_filling([&] {
          return Executor<B>(make_plan(problem.table, policy, B::target, {.input_gradient = true}), backend, problem.parameters.data(),
                             gradients.data());
        })),
        source(problem.images.data(), net.input) {}
  std::byte* memory() const { return executor.arena().data(); }
  std::size_t bytes() const { return static_cast<std::size_t>(executor.arena().bytes()); }
  template <class Observer = NoObserver>
  Outcome<T> go(std::uint8_t fill, Observer&& observer = Observer{}) {
    std::memset(memory(), fill, bytes());
    std::fill(gradients.begin(), gradients.end(), static_cast<T>(std::nan("")));
    Outcome<T> o;
    o.loss = executor.run(source, problem.labels, SoftmaxCrossEntropy{}, observer);
    o.output = dense_copy<T>(executor.output());
    o.gradients = gradients;
    o.input_gradient = dense_copy<T>(executor.input_gradient());
    return o;
  }
};
/// Calls law(run) for networks with each feature of a list under policies with each part. `draw` makes a network with one.
template <class B, class Features, class Draw, class F>
int for_runs_of(const Features& list, std::uint64_t first_seed, std::size_t feature_step, Draw draw, F law) {
  int cases = 0;
  for (std::size_t f = 0; f < list.size(); f += feature_step)
    for (std::size_t p = 0; p <= index_of(parts, "Section"); ++p) {
      const std::uint64_t seed = first_seed + 100 * f + p;
      Dice dice(seed);
      const RandomNetwork net = draw(dice, list[f]);
      const PolicySpec policy = policy_with(dice, parts[p], net, B::target);
      INFO("seed ", seed, ", feature ", std::string(list[f]), ", part ", std::string(parts[p]), "\n", to_string(policy), "\n", graph_text(net));
      std::unique_ptr<Run<B>> run;
      try {
        run = std::make_unique<Run<B>>(net, policy, seed);
      } catch (const PlanError&) {
        continue;
      }
      ++cases;
      law(*run);
    }
  return cases;
}
/// For networks that are chains.
template <class B, class F>
int for_runs(std::uint64_t first_seed, std::size_t feature_step, F law) {
  return for_runs_of<B>(
      features, first_seed, feature_step, [](Dice& d, const char* f) { return network_with(d, f, d.chance(0.3)); }, law);
}
/// For networks that branch.
template <class B, class F>
int for_graph_runs(std::uint64_t first_seed, std::size_t feature_step, F law) {
  return for_runs_of<B>(
      graph_features, first_seed, feature_step, [](Dice& d, const char* f) { return graph_with(d, f); }, law);
}
}   // namespace lrcnn::testing
