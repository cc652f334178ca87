#pragma once
// Whether a plan can be carried out on a device, which need not be there: every distinct convolution of its steps is
// built for the device, by the function that the backend itself uses, and its workspace is known.
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/backend/cudnn/pieces.hpp>
#include <lrcnn/backend/operands.hpp>
#include <lrcnn/core/parallel.hpp>
#include <chrono>
#include <mutex>
#include <set>
namespace lrcnn::cudnn {
/// The distinct convolutions of a plan's steps. Pre: plan.target == BasicCudnn<precision>::target.
template <Precision precision>
std::set<Request> requests_of(const Plan& plan) {
  using T = Stored<precision>;
  std::set<Request> requests;
  const auto list = parameters_of(plan.table);
  auto* const somewhere = reinterpret_cast<std::byte*>(plan.target.alignment);   // shapes are asked for, nothing is read
  for (const Step& step : plan.steps) {
    const auto o = operands_of<T>(plan, step, list, {somewhere, reinterpret_cast<const float*>(somewhere), nullptr});
    if (!is_convolution(o)) continue;
    if (const Request request = request_of(o, precision); request.served()) requests.insert(request);
  }
  return requests;
}
struct PlanCheck {
  Index convolutions = 0;            ///< distinct ones
  Index in_pieces = 0;               ///< of them, those that run in pieces, because their workspace is small for the whole
  Index activated = 0;               ///< of them, those that apply an activation as well
  Index compiled_at_run_time = 0;    ///< of them, those whose engine is: seconds each, when they are first needed
  bool knows_compiled = false;       ///< false: there is no CUDA driver, and cuDNN has left out engines that are compiled at run time
  double seconds = 0;                ///< that building all took, added up over threads
  Index workspace_bytes = 0;         ///< the most that an engine takes; within the policy's Workspace
  std::vector<std::string> faults;   ///< of those that no engine serves
};
/// As of a device that is there (ready_convolution.hpp).
inline auto engine_bytes_on(const DescribedDevice& device) {
  return [&device](const Problem& problem, Index limit) -> std::optional<Index> {
    Engine engine;
    if (!device.engine(engine, problem, limit).good()) return {};
    return engine.workspace_bytes;
  };
}
namespace detail {
/// What carries a request out.
struct EngineOfPieces {
  std::size_t pieces = 1;
  Index workspace_bytes = 0;           ///< the most that an engine takes
  bool compiled_at_run_time = false;   ///< whether one of the engines is
};
inline Status find_engines(EngineOfPieces& found, const Request& request, const DescribedDevice& device) {
  const auto engines_of = [&](const std::vector<Piece>& pieces) {
    found = {pieces.size()};
    for (const Problem& problem : problems_of(pieces)) {
      Engine engine;
      if (const Status s = device.engine(engine, problem, request.workspace_bytes); !s.good()) return s;
      found.workspace_bytes = std::max(found.workspace_bytes, engine.workspace_bytes);
      found.compiled_at_run_time |= engine.compiled_at_run_time;
    }
    return Status{};
  };
  const std::vector<Piece> pieces = pieces_of(request, engine_bytes_on(device));
  const Status status = engines_of(pieces);
  return status.good() || pieces.size() == 1 ? status : engines_of({{request.problem}});
}
}   // namespace detail
/// Builds all requests, on as many threads.
inline PlanCheck check_requests(const std::set<Request>& requests, const DescribedDevice& device, int threads = 1) {
  const std::vector<Request> list(requests.begin(), requests.end());
  PlanCheck result;
  result.convolutions = static_cast<Index>(list.size());
  result.knows_compiled = device.compiles_at_run_time();
  std::mutex mutex;
  on_threads(list.size(), threads, [&] {
    return [&](std::size_t i) {
      const auto begin = std::chrono::steady_clock::now();
      detail::EngineOfPieces found;
      Status status{"no workspace for " + to_string(list[i].problem)};
      bool activated = false;
      for (const Request& attempt : attempts(list[i])) {
        if (attempt.workspace_bytes >= 0) status = detail::find_engines(found, attempt, device);
        activated = attempt.problem.relu;
        if (status.good()) break;
      }
      const std::lock_guard lock(mutex);
      result.activated += activated && status.good();
      result.compiled_at_run_time += found.compiled_at_run_time && status.good();
      result.in_pieces += found.pieces > 1 && status.good();
      result.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (!status.good()) result.faults.push_back(status.text);
      result.workspace_bytes = std::max(result.workspace_bytes, found.workspace_bytes);
    };
  });
  return result;
}
/// Plans a step for a device and checks it there.
template <Precision precision>
PlanCheck check_plan_on(const Table& table, const PolicySpec& policy, const DescribedDevice& device, int threads = 1) {
  return check_requests(requests_of<precision>(make_plan(table, policy, BasicCudnn<precision>::target)), device, threads);
}
}   // namespace lrcnn::cudnn
