#pragma once
// Runs a problem of tests/support on a device, real or pretended, and brings back everything that can be compared.
#include <lrcnn/backend/cudnn.hpp>
#include "support/run_network.hpp"
namespace lrcnn::testing {
/// A view of device memory, copied to the host. Pre: dense.
template <class B, class T = typename B::element>
std::vector<float> fetched(const B& backend, const View<const T>& v) {
  std::vector<T> host(static_cast<std::size_t>(v.n * v.stride_n));
  backend.read(std::span<T>(host), v.data);
  View<const T> copy = v;
  copy.data = host.data();
  const std::vector<T> dense = dense_copy<T>(copy);
  return {dense.begin(), dense.end()};
}
/// A network's step on a device: made ready once, run as often as wanted.
template <class B = Cudnn>
class DeviceRun {
 public:
  /// Parameters are the problem's; the arena is filled with NaN first, so that what is not written shows.
  DeviceRun(const Problem<float>& problem, const PolicySpec& policy, B& backend, bool input_gradient = true)
      : problem_(problem),
        backend_(backend),
        parameters_(backend.template buffer<float>(count())),
        gradients_(backend.template buffer<float>(count())),
        executor_(make_plan(problem.table, policy, B::target, {.input_gradient = input_gradient}), backend, parameters_.data(), gradients_.data()) {
    backend.write(parameters_.data(), std::span<const float>(problem.parameters));
    poison();
  }
  void poison() {
    const std::vector<float> nan(static_cast<std::size_t>(executor_.arena().bytes()) / sizeof(float), std::nanf(""));
    backend_.write(reinterpret_cast<float*>(executor_.arena().data()), std::span<const float>(nan));
  }
  /// Likewise the gradients; those of layers that do not train are not written.
  void poison_gradients() {
    const std::vector<float> nan(problem_.parameters.size(), std::nanf(""));
    backend_.write(gradients_.data(), std::span<const float>(nan));
  }
  template <class Observer = NoObserver>
  Outcome<float> operator()(Observer&& observer = Observer{}) {
    const MemorySource<float> source(problem_.images.data(), problem_.table.input);
    Outcome<float> outcome;
    outcome.loss = executor_.run(source, problem_.labels, SoftmaxCrossEntropy{}, observer);
    outcome.output = fetched(backend_, executor_.output());
    if (executor_.plan().options.input_gradient) outcome.input_gradient = fetched(backend_, executor_.input_gradient());
    outcome.gradients.resize(problem_.parameters.size());
    backend_.read(std::span<float>(outcome.gradients), gradients_.data());
    outcome.peak = executor_.plan().peak_bytes();
    return outcome;
  }
  const Executor<B>& executor() const { return executor_; }

 private:
  Index count() const { return static_cast<Index>(problem_.parameters.size()); }
  const Problem<float>& problem_;
  B& backend_;
  typename B::template Buffer<float> parameters_, gradients_;
  Executor<B> executor_;
};
}   // namespace lrcnn::testing
