#pragma once
// In which way a step's convolution is carried out, chosen by time: bias and activation within it or behind it, whole or in pieces.
//
// In full precision cuDNN's fastest engines, Winograd's and those by FFT, want several times as much workspace as the maps take. With 256 MiB they
// have no room for a batch of VGG-16's maps, but for some images of it. And cuDNN has fewer engines that take bias and activation along than that do
// not. By the best engine for the whole, with bias and activation, a convolution may take more than twice the time that it needs.
#include <lrcnn/backend/cudnn/ready_convolution.hpp>
#include <limits>
#include <map>
#include <set>
#include <sstream>
namespace lrcnn::cudnn {
inline constexpr Index most_timed_pieces = 64;        ///< of one convolution
inline constexpr std::size_t most_timed_counts = 5;   ///< numbers of pieces
namespace detail {
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
}   // namespace detail
/// Numbers of pieces in which a request is timed: as pieces_of() has it, and the fewest for engines that have no room for the whole.
inline std::set<Index> counts_to_time(const Request& request, Device& device) {
  std::set<Index> counts{static_cast<Index>(pieces_of(request, engine_bytes_on(device)).size())};
  std::vector<std::string> engines;
  if (request.workspace_bytes <= 0 || !device.engines(engines, request.problem, any_workspace).good()) return counts;
  std::map<Index, std::string> wanted;   // workspaces for the whole, and an engine that wants so much
  for (const std::string& engine : engines) {
    std::unique_ptr<Convolution> whole;
    if (device.convolution(whole, request.problem, any_workspace, engine).good() && whole->workspace_bytes() > request.workspace_bytes)
      wanted.try_emplace(whole->workspace_bytes(), engine);
  }
  for (const auto& [bytes, engine] : wanted) {   // the least first
    if (counts.size() == most_timed_counts) break;
    if (const auto count = detail::fewest_pieces(request, device, engine, bytes)) counts.insert(*count);
  }
  return counts;
}
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
  std::string choice;
  double best = std::numeric_limits<double>::infinity();
  const auto time = [&](std::size_t i, Index count) {
    ReadyConvolution c;
    double seconds = 0;
    Status refused = make(c, list[i], count);
    if (refused.good())
      if (const Status s = time_beside(best, seconds, refused, device, [&] { return run(c); }); !s.good()) return s;
    if (!refused.good()) {
      if (refusal.good()) refusal = refused;
    } else if (seconds < best) {
      best = seconds;
      made = std::move(c);
      choice = std::to_string(i) + " " + std::to_string(count);
    }
    return Status{};
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0 && i + 1 < list.size() && !made.parts.empty()) continue;   // engines that take a bias along take an activation, too
    for (const Index count : counts_to_time(list[i], device))
      if (const Status s = time(i, count); !s.good()) return s;
  }
  for (std::size_t i = 0; i < list.size() && made.parts.empty(); ++i)   // pieces are not served, but the whole may be
    if (const Status s = time(i, 1); !s.good()) return s;
  if (!made.parts.empty()) tuner.note(key, choice);
  return made.parts.empty() ? refusal : Status{};
}
}   // namespace lrcnn::cudnn
