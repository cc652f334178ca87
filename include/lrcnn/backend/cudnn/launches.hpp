#pragma once
// The kernels that a training step starts on a device, without the device: a list, and the least time that it can take.
//
// Executor and backend themselves carry out the step (exec/device_launches.hpp), on a library that writes down what it is asked to start
// (launches.cpp). So the list follows whatever they and the loops do. Plain C++; link lrcnn::cudnn.
#include <lrcnn/backend/cudnn/library.hpp>
#include <algorithm>
#include <array>
#include <map>
namespace lrcnn::cudnn {
enum class LaunchKind : std::uint8_t { loop, convolution, fill, copy };
/// One piece of work on a stream.
struct Launch {
  LaunchKind kind = LaunchKind::loop;
  std::string name;      ///< a loop's functor: "NormLoop"; a convolution's operation; "fill"; "copy"
  std::string engine;    ///< of a convolution, as cuDNN calls it; empty without a described device
  Index units = 0;       ///< of a loop: calls of its functor
  Index blocks = 0;      ///< of a loop
  Index bytes = 0;       ///< read and written at least: each operand once. Of a call that starts several loops, its largest has them
  double products = 0;   ///< multiply-adds of a convolution, by the formula
};
/// A library that starts nothing: what it is asked for is added to `list`, which must outlive it. Memory has addresses and no more.
/// `device` chooses the engines, and says which convolutions none serves; null: every convolution is served as asked.
template <class T>
std::shared_ptr<Library<T>> open_launch_list(std::vector<Launch>& list, const DescribedDevice* device = nullptr);
/// What a device can do at most.
struct Peaks {
  Index multiprocessors = 0;
  double bytes = 0;                   ///< of its memory, a second
  std::array<double, 4> products{};   ///< multiply-adds a second in Fp32, Tf32, Fp16 and Bf16
  double launch = launch_seconds;     ///< from the end of one kernel to the end of the next, which does nothing
  /// `p`: another than of_backend.
  double products_in(Precision p) const { return item(products, static_cast<Index>(p) - static_cast<Index>(Precision::fp32)); }
  /// Assumed, not measured: what a kernel takes that waits for the one before, as a node of a graph.
  static constexpr double launch_seconds = 2e-6;
};
/// From a device's description, as describe_device() takes it: clocks times what an architecture does in a clock. The width of its memory's
/// bus is not in the description: it goes by the device's name, unless `bytes_per_second` says what the memory does.
/// Errors:  BackendError if something is not known of the device
Peaks peaks_of(const std::string& description, double bytes_per_second = 0);
/// Whether some multiprocessors have nothing to do for lack of blocks. Of convolutions that is not known: false.
inline bool leaves_idle(const Launch& launch, const Peaks& peaks) { return launch.kind == LaunchKind::loop && launch.blocks < peaks.multiprocessors; }
/// The least seconds that a launch takes: its bytes or its products at their peak, whichever take longer, and the launch itself.
inline double least_seconds(const Launch& launch, const Peaks& peaks, Precision precision) {
  return std::max(static_cast<double>(launch.bytes) / peaks.bytes, launch.products / peaks.products_in(precision)) + peaks.launch;
}
/// Launches added up.
struct LaunchSum {
  Index launches = 0, idle = 0;   ///< idle: that leave multiprocessors without work
  Index bytes = 0;
  double products = 0, seconds = 0;   ///< seconds: one after the other
  void add(const Launch& launch, const Peaks& peaks, Precision precision) {
    ++launches, idle += leaves_idle(launch, peaks), bytes += launch.bytes, products += launch.products;
    seconds += least_seconds(launch, peaks, precision);
  }
};
/// By name, and all together under "".
inline std::map<std::string, LaunchSum> sums_of(const std::vector<Launch>& list, const Peaks& peaks, Precision precision) {
  std::map<std::string, LaunchSum> sums;
  for (const Launch& launch : list)
    for (const std::string& name : {launch.name, std::string()}) sums[name].add(launch, peaks, precision);
  return sums;
}
}   // namespace lrcnn::cudnn
