#pragma once
// What loops would start on a device, noted instead of run.
//
// A LaunchRecorder takes the place of a Thrust execution policy: every loop that would be one kernel leaves its functor's name and its
// number of units. No memory is touched, so operands may have addresses of nothing.
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>
namespace lrcnn::loops {
/// Units of a loop that one block takes.
/// Source:  256 threads of 2 units each: policy_hub_t in cub/device/dispatch/tuning/tuning_for.cuh, CUDA 13.0
inline constexpr Index units_of_block = 512;
/// One kernel.
struct RecordedLoop {
  std::string name;   ///< of the functor, without namespaces and arguments: "NormLoop"
  Index units = 0;    ///< calls of the functor; of a loop by blocks, threads
  Index blocks = 0;
};
struct LaunchRecorder {
  std::vector<RecordedLoop>* list;
};
/// A type's name without namespaces and template arguments.
template <class F>
std::string functor_name() {
  std::string_view text = __PRETTY_FUNCTION__;   // "... [with F = lrcnn::loops::detail::NormLoop<float>; ...]", or "... [F = ...]"
  text.remove_prefix(text.find("F = ") + 4);
  text = text.substr(0, std::min(text.find_first_of("<;]"), text.size()));
  const auto scope = text.rfind("::");
  return std::string(scope == std::string_view::npos ? text : text.substr(scope + 2));
}
/// As for_units() of a policy that runs loops, found in its place by the recorder's type.
template <class F>
void for_units(const LaunchRecorder& recorder, Index count, const F&) {
  if (count > 0) recorder.list->push_back({functor_name<F>(), count, ceil_div(count, units_of_block)});
}
/// Likewise for a functor that blocks of 256 threads carry out together.
template <class F>
void for_blocks(const LaunchRecorder& recorder, Index count, const F&) {
  if (count > 0) recorder.list->push_back({functor_name<F>(), count * 256, count});
}
}   // namespace lrcnn::loops
