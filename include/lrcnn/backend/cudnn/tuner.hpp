#pragma once
// Chooses a convolution's engine by trying those that the vendor's library offers, once for each problem.
#include <lrcnn/backend/cudnn/library.hpp>
#include <limits>
namespace lrcnn::cudnn {
class Tuner {
 public:
  static constexpr std::size_t most_engines = 8;   ///< tried for one problem
  static constexpr int turns = 4;
  Tuner() = default;
  Tuner(Device& device, const TuningOptions& options) : on_(options.on) {
    if (!on_) return;
    DeviceInfo info;
    static_cast<void>(device.info(info));
    choices_ = ChoiceFile(
        options.file, info.name + ", compute capability " + std::to_string(info.compute_capability) + ", cuDNN " + std::to_string(info.cudnn_version),
        options.notice);
  }
  const ChoiceFile& choices() const { return choices_; }
  /// Problems for which engines were tried.
  Index tried() const { return tried_; }
  void save() { choices_.save(); }
  /// Makes a request's convolution: on the engine that is known to be best, or on the best of those tried. `run` starts a
  /// convolution in the step's memory. Without `may_run`, or with tuning off, on the engine that the library puts first.
  template <class Run>
  Status make(std::unique_ptr<Convolution>& made, Device& device, const Request& request, Run run, bool may_run) {
    const auto build = [&](std::unique_ptr<Convolution>& c, const std::string& engine) {
      return device.convolution(c, request.problem, request.workspace_bytes, engine);
    };
    if (!on_ || !may_run) return build(made, "");
    const std::string key = to_string(request.problem) + " within " + std::to_string(request.workspace_bytes);
    if (const std::string* known = choices_.find(key))
      if (build(made, *known).good()) return {};   // else another library has taken its name away
    std::vector<std::string> engines;
    if (const Status s = device.engines(engines, request.problem, request.workspace_bytes); !s.good()) return s;
    double best = std::numeric_limits<double>::infinity();
    std::size_t tried = 0;
    for (const std::string& engine : engines) {
      std::unique_ptr<Convolution> c;
      if (!build(c, engine).good()) continue;
      double seconds = 0;
      const auto work = [&] { return run(*c); };
      Status s = device.duration(seconds, 1, work);   // loads its kernels
      if (s.good()) s = device.duration(seconds, 1, work);
      if (s.good() && seconds < 2 * best) s = device.duration(seconds, turns, work);
      if (!s.good()) {
        static_cast<void>(device.wait());   // the engine must outlive what it has started
        return s;
      }
      if (seconds < best) {
        best = seconds;
        made = std::move(c);
        choices_.note(key, engine);
      }
      if (++tried == most_engines) break;
    }
    ++tried_;
    return made ? Status{} : build(made, "");
  }

 private:
  bool on_ = false;
  ChoiceFile choices_;
  Index tried_ = 0;
};
}   // namespace lrcnn::cudnn
