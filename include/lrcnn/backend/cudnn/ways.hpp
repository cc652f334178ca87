#pragma once
// In which way a step's convolution is carried out, chosen by time: bias and activation within it or behind it, whole or in pieces.
//
// In full precision cuDNN's fastest engines, Winograd's and those by FFT, want several times as much workspace as the maps take. With 256 MiB they
// have no room for a batch of VGG-16's maps, but for some images of it. And cuDNN has fewer engines that take bias and activation along than that do
// not. By the best engine for the whole, with bias and activation, a convolution may take more than twice the time that it needs.
#include <lrcnn/backend/cudnn/ready_convolution.hpp>
#include <limits>
#include <set>
#include <sstream>
namespace lrcnn::cudnn {
namespace detail {
inline constexpr Index most_timed_pieces = 64;
/// The fewest pieces, about, with which an engine has room that wants `bytes` of workspace for the whole; nothing if it never has.
inline std::optional<Index> fewest_pieces(const Request& request, Device& device, const std::string& engine, Index bytes) {
  const Index room = request.workspace_bytes;
  for (Index count = ceil_div(bytes, room); count <= most_timed_pieces; count += 1 + count / 4) {
    const std::vector<Piece> pieces = cut(request.problem, count);
    std::unique_ptr<Convolution> of_middle;
    if (pieces.empty() || !device.convolution(of_middle, pieces[pieces.size() / 2].problem, any_workspace, engine).good()) return {};
    if (of_middle->workspace_bytes() <= room) return static_cast<Index>(pieces.size());
  }
  return {};
}
/// Numbers of pieces in which a request is timed: as pieces_of() has it, and the fewest for each engine that has no room for the whole.
inline std::set<Index> counts_to_time(const Request& request, Device& device) {
  std::set<Index> counts{static_cast<Index>(pieces_of(request, engine_bytes_on(device)).size())};
  std::vector<std::string> engines;
  if (request.workspace_bytes <= 0 || !device.engines(engines, request.problem, any_workspace).good()) return counts;
  std::set<Index> wanted;   // workspaces of engines that were looked at
  for (const std::string& engine : engines) {
    std::unique_ptr<Convolution> whole;
    if (!device.convolution(whole, request.problem, any_workspace, engine).good()) continue;
    const Index bytes = whole->workspace_bytes();
    if (bytes <= request.workspace_bytes || !wanted.insert(bytes).second) continue;
    if (const auto count = fewest_pieces(request, device, engine, bytes)) counts.insert(*count);
  }
  return counts;
}
}   // namespace detail
/// Makes a request's convolution in the way that takes the least time, and notes which one that is; `run` carries the step out with a
/// convolution, as far as it lies in the plan's memory. Tries each attempt of a request, whole and in some numbers of pieces.
/// Pre:     request.in_plan
/// Post:    made has no parts if no way is served, and the status says why not
/// Errors:  BackendError if the device fails while an engine is tried
template <class T, class TryOut, class Run>
Status make_fastest(ReadyConvolution& made, Device& device, Tuner& tuner, const Request& request, const ConvolutionMemory<T>& memory, TryOut try_out,
                    Run run) {
  const std::vector<Request> list = attempts(request);
  const auto make = [&](ReadyConvolution& c, const Request& attempt, Index count) {
    const std::vector<Piece> pieces = cut(attempt.problem, count);
    return pieces.empty() ? Status{"it cannot be cut so"} : detail::make_pieces(c, pieces, device, tuner, attempt, memory, try_out);
  };
  const std::string key = "way of " + to_string(request.problem) + " within " + std::to_string(request.workspace_bytes);
  if (const std::string* known = tuner.choices().find(key)) {
    std::istringstream numbers(*known);
    std::size_t attempt = list.size();
    Index count = 0;
    if (numbers >> attempt >> count && attempt < list.size() && count > 0 && make(made, list[attempt], count).good()) return {};
  }
  made = {};
  Status refusal;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0 && i + 1 < list.size() && !made.parts.empty()) continue;   // engines that take a bias along take an activation, too
    for (const Index count : detail::counts_to_time(list[i], device)) {
      ReadyConvolution c;
      if (const Status s = make(c, list[i], count); !s.good()) {
        if (refusal.good()) refusal = s;
        continue;
      }
      double seconds = 0;
      const auto work = [&] { return run(c); };
      Status s = device.duration(seconds, 1, work);
      if (s.good() && seconds < 2 * best) s = device.duration(seconds, Tuner::turns, work);
      if (!s.good()) return static_cast<void>(device.wait()), s;   // the engines, which have all run, must outlive what they have started
      if (seconds >= best) continue;
      best = seconds;
      made = std::move(c);
      tuner.note(key, std::to_string(i) + " " + std::to_string(count));
    }
  }
  return made.parts.empty() ? refusal : Status{};
}
}   // namespace lrcnn::cudnn
