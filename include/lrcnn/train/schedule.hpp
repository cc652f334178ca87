#pragma once
// How the learning rate moves: a multiplier for each step, as a pure function of the step's number.
//
// A schedule is a value; it keeps no count of its own, so a resumed run continues where the step number says. Lengths
// are given in epochs, steps or both and become steps only when the data are known.
//     LrSchedule s = CosineLr{.floor = 0.01, .warm_up = epochs(1)};
//     lr_scale(s, step, {.steps_per_epoch = 938, .steps = 9380})
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <lrcnn/core/text.hpp>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <ostream>
#include <string>
#include <variant>
namespace lrcnn {
/// A length of training: so many epochs plus so many steps.
struct Length {
  double epochs = 0;
  Index steps = 0;
  constexpr bool empty() const { return epochs == 0 && steps == 0; }
  friend constexpr bool operator==(const Length&, const Length&) = default;
};
/// A length in epochs, in parts of one as well.
constexpr Length epochs(double count) { return {count, 0}; }
/// A length in steps.
constexpr Length steps(Index count) { return {0, count}; }
constexpr Length operator+(Length a, Length b) { return {a.epochs + b.epochs, a.steps + b.steps}; }
/// Always the full rate.
struct ConstantLr {
  Length warm_up{};
  friend constexpr bool operator==(const ConstantLr&, const ConstantLr&) = default;
};
/// Times gamma after every `every`, counted from step 0.
struct StepLr {
  Length every{};
  double gamma = 0.1;
  Length warm_up{};
  friend constexpr bool operator==(const StepLr&, const StepLr&) = default;
};
/// Half a cosine from 1 after the warm-up down to `floor` at `over`, and `floor` from there on.
/// Source: Loshchilov and Hutter, "SGDR", ICLR 2017, eq. 5, without restarts.
struct CosineLr {
  Length over{};      ///< from step 0, warm-up included; empty: the whole training, of fit() its epochs, also where a later fit() asks for more
  double floor = 0;   ///< a multiplier like the others
  Length warm_up{};
  friend constexpr bool operator==(const CosineLr&, const CosineLr&) = default;
};
using LrSchedule = std::variant<ConstantLr, StepLr, CosineLr>;
/// What makes steps of epochs, and the length of the whole training.
struct LrClock {
  Index steps_per_epoch = 0;
  Index steps = 0;
};
namespace detail {
inline Index length_in_steps(const Length& length, const LrClock& clock, const char* what) {
  if (!std::isfinite(length.epochs) || length.epochs < 0 || length.steps < 0)
    throw Error(error_text(
        std::string("schedule with ") + what + " of " + number_text(length.epochs) + " epochs and " + std::to_string(length.steps) + " steps",
        "a length of training is finite and not negative", "use epochs(2) or steps(500)"));
  if (length.epochs > 0 && clock.steps_per_epoch < 1)
    throw Error(error_text(std::string("schedule with ") + what + " given in epochs", "the number of steps in an epoch must be known",
                           "give it in steps, set TrainerOptions::clock, or train with fit"));
  const Index all = length.steps + std::llround(length.epochs * static_cast<double>(clock.steps_per_epoch));
  if (all == 0 && !length.empty())
    throw Error(error_text(std::string("schedule with ") + what + " of " + number_text(length.epochs) + " epochs",
                           "that is less than half a step where an epoch has " + std::to_string(clock.steps_per_epoch),
                           "give it in steps, as in steps(1), or leave it out"));
  return all;
}
inline double scale_after_warm_up(const ConstantLr&, Index, Index, const LrClock&) { return 1; }
inline double scale_after_warm_up(const StepLr& s, Index step, Index, const LrClock& clock) {
  const Index every = length_in_steps(s.every, clock, ".every");
  if (every < 1)
    throw Error(
        error_text("step schedule without .every", "the rate changes every so many steps, at least 1", "set .every = epochs(30), or use ConstantLr"));
  if (!std::isfinite(s.gamma) || s.gamma < 0)
    throw Error(error_text("step schedule with .gamma = " + number_text(s.gamma), "it is finite and not negative", "try 0.1"));
  return std::pow(s.gamma, static_cast<double>(step / every));
}
inline double scale_after_warm_up(const CosineLr& s, Index step, Index warm_up, const LrClock& clock) {
  if (!std::isfinite(s.floor) || s.floor < 0 || s.floor > 1)
    throw Error(
        error_text("cosine schedule with .floor = " + number_text(s.floor), "it is a multiplier of the learning rate in [0, 1]", "try 0 or 0.01"));
  if (s.over.empty() && clock.steps < 1)
    throw Error(error_text("cosine schedule without .over", "the length of the training must be known",
                           "set .over or TrainerOptions::clock, or train with fit"));
  const Index over = s.over.empty() ? clock.steps : length_in_steps(s.over, clock, ".over");
  if (step >= over) return s.floor;
  const double progress = static_cast<double>(step - warm_up) / static_cast<double>(over - warm_up);
  return s.floor + (1 - s.floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}
/// Errors: Error if a cosine of a given length has no step beyond the warm-up, or a training ends before it
inline void check_over(const CosineLr& s, Index warm_up, const LrClock& clock) {
  if (warm_up == 0) return;
  if (s.over.empty()) {
    if (clock.steps >= 1 && clock.steps < warm_up)
      throw Error(error_text("cosine schedule with .warm_up of " + std::to_string(warm_up) + " steps in a training of " + std::to_string(clock.steps),
                             "without .over the cosine ends with the training, which would end before the rate is what it is to be",
                             "give a shorter .warm_up, more epochs, or .over, the length that the whole training is to have"));
    return;
  }
  const Index over = length_in_steps(s.over, clock, ".over");
  if (over <= warm_up)
    throw Error(error_text("cosine schedule with .over of " + std::to_string(over) + " steps and .warm_up of " + std::to_string(warm_up),
                           ".over is counted from step 0 and has the warm-up in it, so no step is left for the cosine",
                           "give a longer .over, or a shorter .warm_up"));
}
}   // namespace detail
/// The multiplier of the learning rate for a step, counted from 0 over the whole training.
/// During a warm-up of n steps, step t has (t + 1) / n; then follows the shape.
/// Post:    in [0, 1] for gamma <= 1; continuous at the end of the warm-up
/// Errors:  Error for lengths and factors that make no sense or need a clock that is not given
inline double lr_scale(const LrSchedule& schedule, Index step, const LrClock& clock = {}) {
  return std::visit(
      [&](const auto& s) {
        const Index warm_up = detail::length_in_steps(s.warm_up, clock, ".warm_up");
        if constexpr (requires { s.over; }) detail::check_over(s, warm_up, clock);
        // Worked out within the warm-up, too: a schedule that makes no sense is an error in the first step.
        const double after = detail::scale_after_warm_up(s, std::max(step, warm_up), warm_up, clock);
        return step < warm_up ? static_cast<double>(step + 1) / static_cast<double>(warm_up) : after;
      },
      schedule);
}
/// "2 epochs", "500 steps", "1 epochs + 10 steps".
inline std::string to_string(const Length& length) {
  const std::string e = number_text(length.epochs) + " epochs", s = std::to_string(length.steps) + " steps";
  return length.steps == 0 ? e : length.epochs == 0 ? s : e + " + " + s;
}
/// "CosineLr{.over = 10 epochs, .floor = 0.01, .warm_up = 500 steps}"
inline std::string to_string(const LrSchedule& schedule) {
  const auto field = [](const char* name, const Length& l) { return std::string(".") + name + " = " + to_string(l); };
  struct Print {
    decltype(field)& f;
    std::string operator()(const ConstantLr& s) const { return "ConstantLr{" + f("warm_up", s.warm_up); }
    std::string operator()(const StepLr& s) const {
      return "StepLr{" + f("every", s.every) + ", .gamma = " + number_text(s.gamma) + ", " + f("warm_up", s.warm_up);
    }
    std::string operator()(const CosineLr& s) const {
      return "CosineLr{" + f("over", s.over) + ", .floor = " + number_text(s.floor) + ", " + f("warm_up", s.warm_up);
    }
  };
  return std::visit(Print{field}, schedule) + "}";
}
}   // namespace lrcnn
