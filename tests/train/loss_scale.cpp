// The scale of the loss: halved by a step that overflows, doubled by a long run of good ones, within its bounds.
#include "support/error_of.hpp"
#include <lrcnn/train/loss_scale.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using lrcnn::testing::error_of;
TEST_CASE("a scale comes back from its text, and none that gradients cannot be divided by is taken") {
  for (const LossScale& s : {LossScale{}, LossScale{1e-7, 3}, LossScale{4096, 1999}}) CHECK(parse_loss_scale(to_string(s)) == s);
  CHECK(parse_loss_scale("65536.000000 12") == LossScale{65536, 12});   // as files had it before
  for (const char* text : {"", "65536", "0.000000 5", "inf 5", "nan 5", "-1 5", "8 -1", "8 5 1", "eight 5"}) CHECK(!parse_loss_scale(text));
  for (const double scale : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(error_of<Error>([&] {
            check(LossScale{.scale = scale});
          }).starts_with("lrcnn: a loss scale is " + number_text(scale) + " after 0 good steps; "));
  check(LossScale{.scale = 1e42});
}
TEST_CASE("a step that overflows halves the scale, down to the least, and begins the count anew") {
  LossScale s{.scale = 8, .good_steps = 5};
  s.note(false);
  CHECK(s == LossScale{.scale = 4, .good_steps = 0});
  s.note(true);
  CHECK(s == LossScale{.scale = 4, .good_steps = 1});
  for (int i = 0; i < 10; ++i) s.note(false);
  CHECK(s == LossScale{.scale = LossScale::least, .good_steps = 0});
}
TEST_CASE("a scale that was set beyond the bounds moves towards them only, and more good steps than patience are enough") {
  LossScale low{.scale = 0.5}, high{.scale = 2 * LossScale::most, .good_steps = LossScale::patience + 7};
  low.note(false);
  CHECK(low.scale == 0.5);
  high.note(true);
  CHECK(high == LossScale{.scale = 2 * LossScale::most, .good_steps = 0});
  high.note(false);
  CHECK(high.scale == LossScale::most);
  LossScale late{.scale = 8, .good_steps = LossScale::patience + 7};
  late.note(true);
  CHECK(late == LossScale{.scale = 16, .good_steps = 0});
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
