// Every byte that progress writes, under a clock that the test moves.
#include <lrcnn/train/progress.hpp>
#include <doctest/doctest.h>
#include <algorithm>
#include <sstream>
using namespace lrcnn;
namespace {
struct Screen {
  double now = 1000;
  Index columns = 120;
  std::ostringstream out;
  ProgressOptions options(bool terminal) {
    ProgressOptions o;
    o.terminal = terminal;
    o.clock = [this] { return now; };
    o.width = [this] { return columns; };
    return o;
  }
  std::string take() {
    const std::string text = out.str();
    out.str("");
    return text;
  }
};
Progress after(Index step) {
  return {.epoch = 2, .epochs = 3, .step = step, .steps = 100, .images = 64 * step, .loss = 0.43214, .accuracy = 0.8421, .memory_bytes = 12345678};
}
}   // namespace
TEST_CASE("a terminal shows one line that is redrawn in place") {
  Screen s;
  ProgressLine line(s.out, s.options(true));
  line.update(after(1));
  CHECK(s.take() == "\r[                              ] epoch 2/3  1/100  loss 0.4321  acc 84.21 %  mem 12.3 MB\x1b[K");
  s.now += 5;
  line.update(after(51));   // 10 steps a second; 49 are left in this epoch and 100 in the next
  CHECK(s.take() ==
        "\r[===============               ] epoch 2/3  51/100  loss 0.4321  acc 84.21 %  "
        "640 img/s, ETA 0:15  mem 12.3 MB\x1b[K");
  s.now += 0.05;
  line.update(after(52));
  CHECK(s.take().empty());   // too soon
  s.now += 0.06;
  line.update(after(53));
  CHECK(s.take().substr(0, 1) == "\r");
  line.update(after(100));
  CHECK(s.take().empty());
  line.finish();   // shows what was held back
  const std::string last = s.take();
  CHECK(last.find("\r[==============================] epoch 2/3  100/100") == 0);
  CHECK(last.substr(last.size() - 4) == "\x1b[K\n");
  line.finish();
  CHECK(s.take().empty());
}
TEST_CASE("a terminal's line never reaches the last column and drops the least important first") {
  Screen s;
  std::string longest;
  for (s.columns = 200; s.columns >= 1; --s.columns) {
    ProgressLine line(s.out, s.options(true));
    line.update(after(1));
    s.now += 5;
    s.take();
    line.update(after(51));
    std::string text = s.take();
    REQUIRE(text.substr(0, 1) == "\r");
    REQUIRE(text.substr(text.size() - 3) == "\x1b[K");
    text = text.substr(1, text.size() - 4);
    CHECK(static_cast<Index>(text.size()) < std::max<Index>(s.columns, 2));
    if (s.columns == 80) CHECK(text == "epoch 2/3  51/100  loss 0.4321  acc 84.21 %  640 img/s, ETA 0:15  mem 12.3 MB");
    if (s.columns == 70) CHECK(text == "epoch 2/3  51/100  loss 0.4321  acc 84.21 %  640 img/s, ETA 0:15");
    if (s.columns == 60) CHECK(text == "[======       ] epoch 2/3  51/100  loss 0.4321  acc 84.21 %");
    if (s.columns == 40) CHECK(text == "epoch 2/3  51/100  loss 0.4321");
    if (s.columns == 22) CHECK(text == "51/100  loss 0.4321");
    if (s.columns == 15) CHECK(text == "loss 0.4321");
    if (s.columns == 8) CHECK(text == "loss 0.");
    s.take();   // the destructor's line end comes with the next line
  }
}
TEST_CASE("elsewhere whole lines appear at intervals, and at the end of every epoch") {
  Screen s;
  ProgressLine line(s.out, s.options(false));
  line.update(after(1));
  CHECK(s.take() == "epoch 2/3, step 1/100: loss 0.4321, accuracy 84.21 %, memory 12.3 MB\n");
  for (Index step = 2; step <= 20; ++step) {
    s.now += 0.5;
    line.update(after(step));
  }
  CHECK(s.take().empty());
  s.now += 0.5;
  line.update(after(21));
  CHECK(s.take() == "epoch 2/3, step 21/100: loss 0.4321, accuracy 84.21 %, 128 images/s, ETA 1:30, memory 12.3 MB\n");
  s.now += 0.5;
  line.update(after(100));
  CHECK(s.take().empty());
  line.finish();
  CHECK(s.take().find("epoch 2/3, step 100/100: loss 0.4321") == 0);
  line.finish();
  CHECK(s.take().empty());
  Progress next = after(1);
  next.epoch = 3;
  line.update(next);
  CHECK(s.take() == "epoch 3/3, step 1/100: loss 0.4321, accuracy 84.21 %, memory 12.3 MB\n");
}
TEST_CASE("what is not known is not shown") {
  Screen s;
  {
    ProgressLine line(s.out, s.options(false));
    line.update({.epoch = 1, .step = 5});
  }
  CHECK(s.take() == "epoch 1, step 5\n");
  {
    ProgressLine line(s.out, s.options(true));
    line.update({.epoch = 1, .step = 5});
    CHECK(s.take() == "\repoch 1  5\x1b[K");
  }
  CHECK(s.take() == "\n");   // an open line ends with its object
  ProgressLine line(s.out, s.options(false));
  line.update({.epoch = 1, .step = 5, .images = 10});   // images, but no number for their loss
  CHECK(s.take() == "epoch 1, step 5: loss nan\n");
}
TEST_CASE("a note stays above the line") {
  Screen s;
  ProgressLine line(s.out, s.options(true));
  line.note("before");
  CHECK(s.take() == "before\n");
  line.update({.epoch = 1, .step = 5});
  s.take();
  line.note("test accuracy 0.91");
  CHECK(s.take() == "\r\x1b[Ktest accuracy 0.91\n\repoch 1  5\x1b[K");
}
TEST_CASE("the rate follows a change of speed") {
  Screen s;
  ProgressLine line(s.out, s.options(true));
  Progress p{.epoch = 1, .steps = 1000000};
  for (int i = 0; i < 200; ++i) {
    s.now += 1;
    p.step += 1, p.images += i < 100 ? 10 : 50;
    line.update(p);
    const std::string text = s.take();
    const int fast = std::clamp(i - 99, 0, 16);   // of the last 16 steps
    if (i >= 16) CHECK(text.find(fixed_text(10 + 40 * fast / 16.0, 1) + " img/s") != std::string::npos);
  }
}
TEST_CASE("durations and bytes are short") {
  CHECK(duration_text(0) == "0:00");
  CHECK(duration_text(7.4) == "0:07");
  CHECK(duration_text(754) == "12:34");
  CHECK(duration_text(3600 * 3 + 59) == "3:00:59");
  CHECK(duration_text(-1) == "0:00");
  CHECK(duration_text(std::nan("")) == "0:00");
  CHECK(memory_text(0) == "0 B");
  CHECK(memory_text(999) == "999 B");
  CHECK(memory_text(1000) == "1.00 kB");
  CHECK(memory_text(12345678) == "12.3 MB");
  CHECK(memory_text(999499999) == "999 MB");
  CHECK(memory_text(999500000) == "1.00 GB");
  CHECK(memory_text(9994999) == "9.99 MB");
  CHECK(memory_text(9995000) == "10.0 MB");
}
TEST_CASE("a pipe is no terminal") { CHECK_FALSE(terminal_options(-1).terminal); }
