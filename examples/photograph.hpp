#pragma once
// What the programs that work on whole photographs share: progress of a plan's steps, and what memory they have taken.
#include "work.hpp"
#include <lrcnn/exec/resident.hpp>
#include <chrono>
#include <cstdio>
#include <unistd.h>
/// Shows how far a plan is: a line that is written anew on a terminal, a line for each tenth of the work elsewhere.
class StepProgress {
 public:
  explicit StepProgress(const lrcnn::Plan& plan) : all_(work(plan)), before_(lrcnn::resident_bytes()), begin_(Clock::now()) {}
  void before(const lrcnn::Plan&, lrcnn::Index) {}
  void after(const lrcnn::Plan& plan, lrcnn::Index i) {
    const bool last = i + 1 == static_cast<lrcnn::Index>(plan.steps.size());
    done_ += work(plan, plan.steps[static_cast<std::size_t>(i)]);
    const double seconds = this->seconds(), share = all_ > 0 ? done_ / all_ : 1;
    if (!last && (terminal_ ? seconds < shown_ + 0.2 : share < shown_ + 0.1)) return;
    shown_ = terminal_ ? seconds : share;
    const lrcnn::Index now = lrcnn::resident_bytes();
    std::printf("%sstep %lld of %zu, %.0f %% of the arithmetic, %.1f s", terminal_ ? "\r" : "", static_cast<long long>(i + 1), plan.steps.size(),
                100 * share, seconds);
    if (!last && share > 0.02) std::printf(", %.0f s to go", seconds / share - seconds);
    std::printf(", memory %s%s", lrcnn::format_bytes(std::max<lrcnn::Index>(now - before_, 0)).c_str(),
                terminal_ && !last ? "\x1b[K"
                : terminal_        ? "\x1b[K\n"
                                   : "\n");
    std::fflush(stdout);
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double all_, done_ = 0, shown_ = 0;
  lrcnn::Index before_;
  Clock::time_point begin_;
  bool terminal_ = isatty(STDOUT_FILENO) == 1;
};
inline std::string measured_text(lrcnn::Index bytes) { return bytes < 0 ? "not known" : lrcnn::format_bytes(bytes); }
