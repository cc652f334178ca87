#pragma once
// Chooses the faster of two ways to carry a step out, by timing both once for each problem.
#include <lrcnn/core/choice_file.hpp>
#include <algorithm>
#include <chrono>
#include <string_view>
namespace lrcnn::host {
class Calibration {
 public:
  static constexpr int turns = 2;   ///< of each, in turn, after one that touches memory and is not counted
  Calibration() = default;
  /// `machine`: as ChoiceFile.
  Calibration(const TuningOptions& options, const std::string& machine) : on_(options.on) {
    if (on_) choices_ = ChoiceFile(options.file, machine, options.notice);
  }
  bool on() const { return on_; }
  /// Problems that have been tried, rather than looked up.
  Index tried() const { return tried_; }
  const ChoiceFile& choices() const { return choices_; }
  void save() { choices_.save(); }
  /// Which is faster; ties go to the first. Names are what the file calls the two. Pre: on()
  template <class First, class Second>
  bool first_is_faster(const std::string& problem, std::string_view first_name, First first, std::string_view second_name, Second second) {
    if (const std::string* known = choices_.find(problem); known && (*known == first_name || *known == second_name)) return *known == first_name;
    first(), second();
    double a = duration(first), b = duration(second);
    for (int turn = 1; turn < turns; ++turn) a = std::min(a, duration(first)), b = std::min(b, duration(second));
    ++tried_;
    choices_.note(problem, std::string(a <= b ? first_name : second_name));
    return a <= b;
  }

 private:
  template <class F>
  static double duration(F& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  bool on_ = false;
  Index tried_ = 0;
  ChoiceFile choices_;
};
}   // namespace lrcnn::host
