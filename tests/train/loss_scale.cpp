// The scale of the loss: halved by a step that overflows, doubled by a long run of good ones, within its bounds.
#include <lrcnn/train/loss_scale.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
TEST_CASE("a step that overflows halves the scale, down to the least, and begins the count anew") {
  LossScale s{.scale = 8, .good_steps = 5};
  s.note(false);
  CHECK(s == LossScale{.scale = 4, .good_steps = 0});
  s.note(true);
  CHECK(s == LossScale{.scale = 4, .good_steps = 1});
  for (int i = 0; i < 10; ++i) s.note(false);
  CHECK(s == LossScale{.scale = LossScale::least, .good_steps = 0});
}
TEST_CASE("as many good steps as patience double it, up to the most") {
  LossScale s{.scale = LossScale::most / 4};
  for (Index i = 0; i < LossScale::patience - 1; ++i) s.note(true);
  CHECK(s.scale == LossScale::most / 4);
  s.note(true);
  CHECK(s == LossScale{.scale = LossScale::most / 2, .good_steps = 0});
  for (Index i = 0; i < 3 * LossScale::patience; ++i) s.note(true);
  CHECK(s.scale == LossScale::most);
}
