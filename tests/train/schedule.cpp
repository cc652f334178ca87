#include "support/error_of.hpp"
#include <lrcnn/train/schedule.hpp>
#include <doctest/doctest.h>
#include <limits>
using namespace lrcnn;
using lrcnn::testing::error_of;
TEST_CASE("a constant schedule is one") {
  CHECK(lr_scale(ConstantLr{}, 0) == 1);
  CHECK(lr_scale(ConstantLr{}, 1000000) == 1);
}
TEST_CASE("warm-up rises linearly to one and then the shape takes over") {
  for (const LrSchedule& s : {LrSchedule(ConstantLr{.warm_up = steps(4)}), LrSchedule(StepLr{.every = steps(100), .warm_up = steps(4)}),
                              LrSchedule(CosineLr{.over = steps(100), .warm_up = steps(4)})}) {
    CHECK(lr_scale(s, 0) == 0.25);
    CHECK(lr_scale(s, 1) == 0.5);
    CHECK(lr_scale(s, 2) == 0.75);
    CHECK(lr_scale(s, 3) == 1);
    CHECK(lr_scale(s, 4) == 1);
  }
}
TEST_CASE("a step schedule multiplies by gamma every so often, counted from the start") {
  const StepLr s{.every = steps(10), .gamma = 0.5};
  CHECK(lr_scale(s, 9) == 1);
  CHECK(lr_scale(s, 10) == 0.5);
  CHECK(lr_scale(s, 19) == 0.5);
  CHECK(lr_scale(s, 20) == 0.25);
  CHECK(lr_scale(StepLr{.every = epochs(2), .gamma = 0.1}, 199, {.steps_per_epoch = 100}) == 1);
  CHECK(lr_scale(StepLr{.every = epochs(2), .gamma = 0.1}, 200, {.steps_per_epoch = 100}) == doctest::Approx(0.1));
}
TEST_CASE("a cosine falls from one to its floor and stays there") {
  const CosineLr s{.over = steps(100), .floor = 0.1};
  CHECK(lr_scale(s, 0) == 1);
  CHECK(lr_scale(s, 50) == doctest::Approx(0.55));
  CHECK(lr_scale(s, 25) == doctest::Approx(0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2));   // as CosineAnnealingLR
  CHECK(lr_scale(s, 100) == 0.1);
  CHECK(lr_scale(s, 1000) == 0.1);
  for (Index t = 0; t < 100; ++t) CHECK(lr_scale(s, t) > lr_scale(s, t + 1));
}
TEST_CASE("a cosine after a warm-up ends at the same step") {
  const CosineLr s{.over = epochs(10), .warm_up = steps(200)};
  const LrClock clock{.steps_per_epoch = 100};
  CHECK(lr_scale(s, 600, clock) == doctest::Approx(0.5));
  CHECK(lr_scale(s, 999, clock) > 0);
  CHECK(lr_scale(s, 1000, clock) == 0);
  CHECK(lr_scale(CosineLr{.warm_up = steps(200)}, 600, {.steps = 1000}) == doctest::Approx(0.5));
  for (const Index over : {3, 5})
    CHECK_THROWS_WITH_AS(
        lr_scale(CosineLr{.over = steps(over), .warm_up = steps(5)}, 5),
        ("lrcnn: cosine schedule with .over of " + std::to_string(over) +
         " steps and .warm_up of 5; .over is counted from step 0 and has the warm-up in it, so no step is left for the cosine; give a "
         "longer .over, or a shorter .warm_up")
            .c_str(),
        Error);
}
TEST_CASE("a schedule that makes no sense is an error within its warm-up, too") {
  for (const LrSchedule& s : {LrSchedule(CosineLr{.warm_up = steps(500)}), LrSchedule(CosineLr{.over = steps(900), .floor = 2, .warm_up = steps(5)}),
                              LrSchedule(StepLr{.warm_up = steps(5)}), LrSchedule(StepLr{.every = epochs(1), .warm_up = steps(5)}),
                              LrSchedule(StepLr{.every = steps(9), .gamma = -1, .warm_up = steps(5)})}) {
    INFO(to_string(s));
    CHECK_THROWS_AS(lr_scale(s, 0), Error);
  }
}
TEST_CASE("a training that ends within its warm-up is refused, whether a cosine's length is given or not") {
  const LrSchedule schedule = CosineLr{.warm_up = epochs(2)};
  CHECK(error_of([&] {
          lr_scale(schedule, 0, {.steps_per_epoch = 5, .steps = 9});
        }).starts_with("lrcnn: cosine schedule with .warm_up of 10 steps in a training of 9; "));
  CHECK(lr_scale(schedule, 9, {.steps_per_epoch = 5, .steps = 10}) == 1);
}
TEST_CASE("lengths add up and may be fractions of epochs") {
  CHECK(epochs(2) + steps(5) == Length{2, 5});
  const LrSchedule s = ConstantLr{.warm_up = epochs(0.5) + steps(10)};
  CHECK(lr_scale(s, 29, {.steps_per_epoch = 100}) == 0.5);
}
TEST_CASE("schedules are regular and printable") {
  CHECK(LrSchedule(CosineLr{.floor = 0.1}) == LrSchedule(CosineLr{.floor = 0.1}));
  CHECK(LrSchedule(CosineLr{.floor = 0.1}) != LrSchedule(CosineLr{}));
  CHECK(to_string(LrSchedule(ConstantLr{})) == "ConstantLr{.warm_up = 0 epochs}");
  CHECK(to_string(LrSchedule(StepLr{.every = epochs(30)})) == "StepLr{.every = 30 epochs, .gamma = 0.1, .warm_up = 0 epochs}");
  CHECK(to_string(LrSchedule(CosineLr{.over = epochs(1.5) + steps(3), .floor = 0.01, .warm_up = steps(500)})) ==
        "CosineLr{.over = 1.5 epochs + 3 steps, .floor = 0.01, .warm_up = 500 steps}");
}
TEST_CASE("schedules that make no sense are refused") {
  CHECK_THROWS_WITH_AS(lr_scale(StepLr{}, 0),
                       "lrcnn: step schedule without .every; the rate changes every so many steps, at least 1; set "
                       ".every = epochs(30), or use ConstantLr",
                       Error);
  CHECK_THROWS_WITH_AS(lr_scale(StepLr{.every = epochs(30)}, 0),
                       "lrcnn: schedule with .every given in epochs; the number of steps in an epoch must be known; "
                       "give it in steps, set TrainerOptions::clock, or train with fit",
                       Error);
  CHECK_THROWS_WITH_AS(lr_scale(StepLr{.every = steps(3), .gamma = -1}, 0),
                       "lrcnn: step schedule with .gamma = -1; it is finite and not negative; try 0.1", Error);
  for (const LrSchedule& s :
       {LrSchedule(StepLr{.every = epochs(0.01)}), LrSchedule(CosineLr{.over = epochs(0.01)}), LrSchedule(ConstantLr{.warm_up = epochs(0.01)})})
    CHECK_THROWS_WITH_AS(
        lr_scale(s, 0, {.steps_per_epoch = 30}),
        doctest::Contains("of 0.01 epochs; that is less than half a step where an epoch has 30; give it in steps, as in steps(1), or "
                          "leave it out"),
        Error);
  CHECK(lr_scale(StepLr{.every = epochs(0.02)}, 1, {.steps_per_epoch = 30}) == doctest::Approx(0.1));   // 0.6 of a step is one
  CHECK_THROWS_WITH_AS(lr_scale(CosineLr{}, 0),
                       "lrcnn: cosine schedule without .over; the length of the training must be known; set .over or TrainerOptions::clock, or "
                       "train with fit",
                       Error);
  CHECK_THROWS_WITH_AS(lr_scale(CosineLr{.over = steps(10), .floor = 2}, 0),
                       "lrcnn: cosine schedule with .floor = 2; it is a multiplier of the learning rate in [0, 1]; try "
                       "0 or 0.01",
                       Error);
  CHECK_THROWS_WITH_AS(lr_scale(ConstantLr{.warm_up = steps(-5)}, 0),
                       "lrcnn: schedule with .warm_up of 0 epochs and -5 steps; a length of training is finite and not "
                       "negative; use epochs(2) or steps(500)",
                       Error);
}
