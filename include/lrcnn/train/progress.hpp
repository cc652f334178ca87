#pragma once
// What a person sees while training runs.
//
// On a terminal one line is redrawn in place, at most ten times a second and never wider than the terminal; anywhere
// else (a log, a pipe) whole lines appear at intervals. Every epoch leaves its last line behind in both cases.
//     ProgressLine line(std::cerr, terminal_options(STDERR_FILENO));
//     line.update({.epoch = 1, .epochs = 10, .step = 120, .steps = 938, ...});    // after every step
//     line.finish();                                                              // after every epoch
// Stream, clock, width and the question whether it is a terminal come from outside, so that tests see every byte.
#include <lrcnn/core/types.hpp>
#include <lrcnn/core/text.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#if defined(__unix__) || defined(__APPLE__)
#include <sys/ioctl.h>
#include <unistd.h>
#endif
namespace lrcnn {
/// What is known after a step. Zero, or NaN, means: not known, not shown.
struct Progress {
  Index epoch = 0;   ///< from 1
  Index epochs = 0;
  Index step = 0;     ///< steps done in this epoch
  Index steps = 0;    ///< steps in an epoch
  Index images = 0;   ///< images done in this epoch
  double loss = std::nan("");
  double accuracy = std::nan("");   ///< in [0, 1]
  Index memory_bytes = 0;
};
struct ProgressOptions {
  bool terminal = false;
  double redraw_seconds = 0.1;                               ///< terminal: least time between two drawings
  double line_seconds = 10;                                  ///< elsewhere: least time between two lines
  std::function<Index()> width = [] { return Index{80}; };   ///< columns of the terminal, asked at every drawing
  std::function<double()> clock = [] {                       ///< seconds since any moment, never going back
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
};
/// Options for a file descriptor: whether it is a terminal, and how wide.
inline ProgressOptions terminal_options([[maybe_unused]] int descriptor) {
  ProgressOptions options;
#if defined(__unix__) || defined(__APPLE__)
  options.terminal = isatty(descriptor) == 1;
  options.width = [descriptor] {
    winsize size{};
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? Index{size.ws_col} : Index{80};
  };
#endif
  return options;
}
/// "0:07", "12:34", "3:00:00".
inline std::string duration_text(double seconds) {
  const auto two = [](Index v) { return (v < 10 ? "0" : "") + std::to_string(v); };
  const Index s = seconds > 0 && seconds < 1e15 ? static_cast<Index>(std::llround(seconds)) : 0;
  const Index h = s / 3600, m = s / 60 % 60;
  return h > 0 ? std::to_string(h) + ":" + two(m) + ":" + two(s % 60) : std::to_string(m) + ":" + two(s % 60);
}
/// "512 B", "12.3 MB", "1.85 GB": three digits, powers of 1000.
inline std::string memory_text(Index bytes) {
  const char* const units[] = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit < 6; ++unit) value /= 1000;
  return fixed_text(value, unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + units[unit];
}
/// Writes progress to a stream. Allocates only when it draws.
class ProgressLine {
 public:
  explicit ProgressLine(std::ostream& out, ProgressOptions options = {}) : out_(out), options_(std::move(options)) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Ends an open line, so that what follows (an error, a prompt) starts on a line of its own.
  ~ProgressLine() {
    if (open_) out_ << '\n' << std::flush;
  }
  /// Takes note of a step; draws if it is time. The first call draws.
  void update(const Progress& progress) {
    const double now = options_.clock();
    if (samples_ == 0 || progress.epoch != last_.epoch || progress.step < last_.step) restart(progress, now);
    last_ = progress;
    unshown_ = true;
    const double wait = options_.terminal ? options_.redraw_seconds : options_.line_seconds;
    if (!drawn_ || now - drawn_at_ >= wait) draw(now);
  }
  /// Ends the epoch: the last state is shown if it is not yet, and stays.
  void finish() {
    if (samples_ == 0) return;
    if (unshown_) draw(options_.clock());
    if (open_) out_ << '\n' << std::flush;
    open_ = false;
    samples_ = 0;
    drawn_ = false;
  }
  /// A line of text that stays, above the moving one.
  void note(std::string_view text) {
    if (open_) out_ << "\r\x1b[K";
    out_ << text << '\n' << std::flush;
    if (open_) draw(options_.clock());
  }
 private:
  struct Sample {
    double time = 0;
    Index step = 0;
    Index images = 0;
  };
  static constexpr Index window = 16;   // drawings over which the rate is taken: it shall follow, but not flicker
  void restart(const Progress& progress, double now) {
    sample_[0] = {now, progress.step, progress.images};
    samples_ = 1;
  }
  void draw(double now) {
    const Sample& oldest = item(sample_, samples_ >= window ? samples_ % window : 0);
    const double seconds = now - oldest.time;
    const Index steps_done = last_.step - oldest.step;
    double images_per_second = 0, seconds_per_step = 0;
    if (seconds > 0 && steps_done > 0) {
      images_per_second = static_cast<double>(last_.images - oldest.images) / seconds;
      seconds_per_step = seconds / static_cast<double>(steps_done);
    }
    if (options_.terminal) draw_in_place(images_per_second, seconds_per_step);
    else draw_line(images_per_second, seconds_per_step);
    if (steps_done > 0) item(sample_, samples_++ % window) = {now, last_.step, last_.images};
    drawn_ = true;
    drawn_at_ = now;
    unshown_ = false;
  }
  static std::string of(Index part, Index whole) { return std::to_string(part) + (whole > 0 ? "/" + std::to_string(whole) : ""); }
  /// Time to the end of the whole training, or of the epoch if the number of epochs is not known.
  std::string remaining(double seconds_per_step) const {
    if (seconds_per_step <= 0 || last_.steps < last_.step) return {};
    const double later = last_.epochs > last_.epoch ? static_cast<double>(last_.epochs - last_.epoch) * static_cast<double>(last_.steps) : 0;
    return duration_text(seconds_per_step * (static_cast<double>(last_.steps - last_.step) + later));
  }
  static std::string rate(double per_second) { return fixed_text(per_second, per_second >= 99.95 ? 0 : per_second >= 9.995 ? 1 : 2); }
  void draw_in_place(double images_per_second, double seconds_per_step) {
    // What is dropped first when the line is too long has the highest number; the bar takes what is left.
    struct Part {
      int importance;
      std::string text;
    };
    const std::string eta = remaining(seconds_per_step);
    const std::array<Part, 6> parts{{
        {2, "epoch " + of(last_.epoch, last_.epochs)},
        {1, of(last_.step, last_.steps)},
        {0, std::isnan(last_.loss) && last_.images == 0 ? "" : "loss " + fixed_text(last_.loss, 4)},
        {3, std::isnan(last_.accuracy) ? "" : "acc " + fixed_text(100 * last_.accuracy, 2) + " %"},
        {4, images_per_second > 0 ? rate(images_per_second) + " img/s" + (eta.empty() ? "" : ", ETA " + eta) : ""},
        {5, last_.memory_bytes > 0 ? "mem " + memory_text(last_.memory_bytes) : ""},
    }};
    const Index room = options_.width() - 1;   // in the last column some terminals wrap
    for (int least = 5;; --least) {
      line_.clear();
      for (const Part& p : parts)
        if (p.importance <= least && !p.text.empty()) line_.append(line_.empty() ? "" : "  ").append(p.text);
      if (least == 0 || static_cast<Index>(line_.size()) <= room) break;
    }
    const Index bar = std::min<Index>(room - static_cast<Index>(line_.size()) - 3, 30);
    if (bar >= 10 && last_.steps > 0) {
      const Index filled = std::clamp<Index>(bar * last_.step / last_.steps, 0, bar);
      const std::string drawing = std::string(static_cast<std::size_t>(filled), '=') + std::string(static_cast<std::size_t>(bar - filled), ' ');
      line_.insert(0, "[" + drawing + "] ");
    }
    line_.resize(std::min(line_.size(), static_cast<std::size_t>(std::max<Index>(room, 0))));
    out_ << '\r' << line_ << "\x1b[K" << std::flush;
    open_ = true;
  }
  void draw_line(double images_per_second, double seconds_per_step) {
    const std::string eta = remaining(seconds_per_step);
    line_ = "epoch " + of(last_.epoch, last_.epochs) + ", step " + of(last_.step, last_.steps);
    if (!std::isnan(last_.loss) || last_.images > 0) line_ += ": loss " + fixed_text(last_.loss, 4);
    if (!std::isnan(last_.accuracy)) line_ += ", accuracy " + fixed_text(100 * last_.accuracy, 2) + " %";
    if (images_per_second > 0) line_ += ", " + rate(images_per_second) + " images/s";
    if (!eta.empty()) line_ += ", ETA " + eta;
    if (last_.memory_bytes > 0) line_ += ", memory " + memory_text(last_.memory_bytes);
    out_ << line_ << '\n' << std::flush;
  }
  std::ostream& out_;
  ProgressOptions options_;
  std::array<Sample, window> sample_{};
  Index samples_ = 0;
  Progress last_{};
  std::string line_;
  double drawn_at_ = 0;
  bool drawn_ = false;
  bool unshown_ = false;
  bool open_ = false;
};
}   // namespace lrcnn
