#pragma once
// What a training changes from step to step: parameters, their gradients and the optimizer's states, in the backend's memory.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/network/parameters.hpp>
#include <lrcnn/train/running_statistics.hpp>
#include <span>
#include <vector>
namespace lrcnn {
/// Flat buffers of one layout, which a trainer has until it ends: plans and executors point into them. Elements are zero at first.
template <Backend B>
struct TrainingBuffers {
  using M = master_t<typename B::element>;
  using Buffer = typename B::template Buffer<M>;
  TrainingBuffers(const Table& table, Index state_count, B& backend)
      : layout(parameters_of(table)),
        running(table),
        count(parameter_count(table)),
        parameters(backend.template buffer<M>(count)),
        gradients(backend.template buffer<M>(count)),
        states(backend.template buffer<M>(count * state_count)) {}
  const std::vector<Parameter> layout;   ///< where each parameter lies
  const RunningStatistics running;       ///< which of them are running statistics
  const Index count;                     ///< elements of the parameters
  Buffer parameters, gradients;
  Buffer states;   ///< one behind the other, each like the parameters
  Index bytes() const { return (parameters.size() + gradients.size() + states.size()) * static_cast<Index>(sizeof(M)); }
};
/// A copy of a buffer, in the host's memory. Waits for what a device does to it.
template <Backend B, class Buffer>
auto copy_of(const B& backend, const Buffer& from) {
  std::vector<master_t<typename B::element>> copy(static_cast<std::size_t>(from.size()));
  backend.read(std::span(copy), from.data());
  return copy;
}
/// A buffer where the host can read it: itself, or a copy.
template <Backend B, class Buffer>
decltype(auto) seen_by_host(const B& backend, const Buffer& buffer) {
  if constexpr (B::on_host) return (buffer);
  else return copy_of(backend, buffer);
}
}   // namespace lrcnn
