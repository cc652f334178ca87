#pragma once
// Chooses a convolution's engine by trying those that the vendor's library offers, once for each problem.
#include <lrcnn/backend/cudnn/memory.hpp>
#include <algorithm>
#include <limits>
namespace lrcnn::cudnn {
/// Seconds of the device's time that work takes. Its first run loads kernels; what is slow beside `best` seconds does not run often. refusal: the
/// work's own, behind which the device goes on, and seconds mean nothing. Returns what the device says if it fails.
template <class F>
Status time_beside(double best, double& seconds, Status& refusal, Device& device, F work) {
  constexpr int turns = 4;
  constexpr double loading = 0.25;   // seconds: more than a first run waits for its kernels; assumed
  Status ran;
  const auto noted = [&] { return ran = work(); };
  Status s = device.duration(seconds, 1, noted);
  if (s.good() && seconds < 2 * best + loading) s = device.duration(seconds, 1, noted);
  if (s.good() && seconds < 2 * best) s = device.duration(seconds, turns, noted);
  refusal = {};
  if (s.good()) return s;
  const Status waited = device.wait();   // engines must outlive what they have started
  if (ran.good() || !waited.good()) return s;
  refusal = s;
  return {};
}
class Tuner {
 public:
  static constexpr std::size_t most_engines = 16;   ///< timed for one problem
  Tuner() = default;
  Tuner(Device& device, const TuningOptions& options) : on_(options.on) {
    if (!on_) return;
    DeviceInfo info;
    static_cast<void>(device.info(info));
    choices_ = ChoiceFile(
        options.file, info.name + ", compute capability " + std::to_string(info.compute_capability) + ", cuDNN " + std::to_string(info.cudnn_version),
        options.notice);
  }
  bool on() const { return on_; }
  const ChoiceFile& choices() const { return choices_; }
  /// Notes a choice that is not of an engine (ways.hpp).
  void note(const std::string& problem, const std::string& choice) { choices_.note(problem, choice); }
  /// Problems for which engines were tried.
  Index tried() const { return tried_; }
  void save() { choices_.save(); }
  /// Engines that were not taken because of what try_out() said, or because they would not run: name, problem and reason.
  const std::vector<std::string>& passed_over() const { return passed_over_; }
  /// Makes a request's convolution: on the engine that is known to be best, or on the best of those tried. Without `may_run`, or with tuning off,
  /// on the engine that the library puts first. `run` starts a convolution in the step's memory; try_out(convolution, fault) runs it once and says
  /// what is wrong with it, or what the device says. One with a fault is passed over.
  /// Errors:  BackendError if the device fails while an engine is tried
  template <class Run, class TryOut>
  Status make(std::unique_ptr<Convolution>& made, Device& device, const Request& request, Run run, TryOut try_out, bool may_run) {
    Status refusal;                      // of the engine that was passed over first; where none was, of the library
    std::vector<std::string> rejected;   // engines of this request
    const auto is_rejected = [&](const std::string& engine) { return std::find(rejected.begin(), rejected.end(), engine) != rejected.end(); };
    const auto reject = [&](const std::string& engine, const std::string& fault) {
      if (rejected.empty()) refusal = {"engine " + engine + ": " + fault};
      rejected.push_back(engine);
      passed_over_.push_back(engine + " for " + to_string(request.problem) + ": " + fault);
    };
    const auto build = [&](std::unique_ptr<Convolution>& c, const std::string& engine) {
      if (is_rejected(engine)) return false;
      if (const Status s = device.convolution(c, request.problem, request.workspace_bytes, engine); !s.good()) {
        if (refusal.good()) refusal = s;
        return false;
      }
      if (is_rejected(c->name())) c.reset();   // the one that the library puts first
      return c != nullptr;
    };
    const auto serves = [&](std::unique_ptr<Convolution>& c) {
      std::string fault;
      check(try_out(*c, fault), "trying engine " + c->name() + " for " + to_string(request.problem));
      if (!fault.empty()) reject(c->name(), fault), c.reset();
      return c != nullptr;
    };
    const auto make_named = [&](const std::string& engine) { return build(made, engine) && serves(made); };
    const std::string key = to_string(request.problem) + " within " + std::to_string(request.workspace_bytes);
    const bool tunes = on_ && may_run;
    if (const std::string* known = tunes ? choices_.find(key) : nullptr)
      if (make_named(*known)) return {};   // else another library has taken its name away
    if (!tunes && (make_named("") || rejected.empty())) return made ? Status{} : refusal;
    std::vector<std::string> engines;
    if (const Status s = device.engines(engines, request.problem, request.workspace_bytes); !s.good()) return s;
    if (!tunes) return std::any_of(engines.begin(), engines.end(), make_named) ? Status{} : refusal;
    if (const Status s = time_engines(made, device, engines, build, serves, reject, run, key); !s.good()) return s;
    return made || make_named("") ? Status{} : refusal;
  }

 private:
  /// Makes and notes the fastest engine, if there is one. One that is built and then refuses to run is passed over; so is one that is the fastest
  /// and does not serve.
  template <class Build, class Serves, class Reject, class Run>
  Status time_engines(std::unique_ptr<Convolution>& made, Device& device, const std::vector<std::string>& engines, Build build, Serves serves,
                      Reject reject, Run run, const std::string& key) {
    double best = std::numeric_limits<double>::infinity();
    std::size_t tried = 0;
    for (const std::string& engine : engines) {
      std::unique_ptr<Convolution> c;
      if (!build(c, engine)) continue;
      double seconds = 0;
      Status refusal;
      if (const Status s = time_beside(best, seconds, refusal, device, [&] { return run(*c); }); !s.good()) return s;
      if (!refusal.good()) {
        reject(c->name(), refusal.text);
        continue;
      }
      if (seconds < best && serves(c)) {
        best = seconds;
        made = std::move(c);
        choices_.note(key, engine);
      }
      if (++tried == most_engines) break;
    }
    if (tried > 0) ++tried_;
    return {};
  }
  bool on_ = false;
  ChoiceFile choices_;
  Index tried_ = 0;
  std::vector<std::string> passed_over_;
};
}   // namespace lrcnn::cudnn
