// Updates against PyTorch's (optimizer_golden.hpp), against sequences computed by hand, and their laws.
#include "optimizer_golden.hpp"
#include <lrcnn/core/rng.hpp>
#include <lrcnn/train/optimizer.hpp>
#include <doctest/doctest.h>
#include <cmath>
#include <limits>
#include <sstream>
using namespace lrcnn;
namespace {
const UpdateRange all5{{0, 5}, true};
template <class T>
struct Buffers {
  std::vector<T> w, g, s;
  Buffers(const Optimizer& o, std::size_t n) : w(n), g(n), s(n * static_cast<std::size_t>(o.state_count())) {}
  void update(const Optimizer& o, const UpdateStep& step, std::span<const UpdateRange> ranges) { o.update<T>(step, ranges, w, g, s); }
  void update(const Optimizer& o, const UpdateStep& step) {
    const UpdateRange whole{{0, static_cast<Index>(w.size())}, true};
    update(o, step, {&whole, 1});
  }
};
template <class T>
void fill_randomly(Buffers<T>& b, std::uint64_t seed) {
  for (std::size_t i = 0; i < b.w.size(); ++i) {
    b.w[i] = static_cast<T>(Random(seed, 0).normal(i));
    b.g[i] = static_cast<T>(Random(seed, 1).normal(i));
  }
}
Parameter parameter(Index offset, Index count, bool decay) {
  return {.name = "p" + std::to_string(offset), .shape = {.extents = {count, 1, 1, 1}, .decay = decay}, .offset = offset};
}
}   // namespace
TEST_CASE("optimizers do what PyTorch's do") {
  for (const golden::Case& c : golden::cases) {
    CAPTURE(c.name);
    Buffers<double> b(c.optimizer, golden::elements);
    Buffers<float> f(c.optimizer, golden::elements);
    for (int i = 0; i < golden::elements; ++i) b.w[std::size_t(i)] = f.w[std::size_t(i)] = (5 * i % 9 - 4) / 8.0F;
    for (int t = 0; t < static_cast<int>(golden::factors.size()); ++t) {
      for (int i = 0; i < golden::elements; ++i) b.g[std::size_t(i)] = f.g[std::size_t(i)] = ((7 * t + 3 * i) % 11 - 5) / 8.0F;
      const UpdateStep step{.number = t + 1, .lr_scale = golden::factors[std::size_t(t)]};
      b.update(c.optimizer, step);
      f.update(c.optimizer, step);
      for (std::size_t i = 0; i < golden::elements; ++i) {
        CHECK(std::abs(b.w[i] - c.parameters[std::size_t(t)][i]) < 1e-15);
        CHECK(std::abs(f.w[i] - c.parameters[std::size_t(t)][i]) < 1e-6);
      }
    }
  }
}
TEST_CASE("momentum by hand") {
  const Optimizer sgd = Sgd{.lr = 0.5, .momentum = 0.5, .weight_decay = 0.25};
  Buffers<double> b(sgd, 1);
  b.w = {8}, b.g = {2};
  b.update(sgd, {.number = 1});   // g = 2 + 2; v = g: the first step's momentum is the gradient
  CHECK(b.s[0] == 4);
  CHECK(b.w[0] == 6);
  b.update(sgd, {.number = 2});   // g = 2 + 1.5; v = 2 + 3.5
  CHECK(b.s[0] == 5.5);
  CHECK(b.w[0] == 3.25);
  const Optimizer nesterov = Sgd{.lr = 0.5, .momentum = 0.5, .nesterov = true};
  Buffers<double> n(nesterov, 1);
  n.w = {8}, n.g = {2};
  n.update(nesterov, {.number = 1});   // v = 2, step = 2 + 1
  CHECK(n.w[0] == 6.5);
  n.update(nesterov, {.number = 2});   // v = 3, step = 2 + 1.5
  CHECK(n.w[0] == 4.75);
}
TEST_CASE("AdamW's first step is lr * sign(gradient) beside the decay") {
  const Optimizer adamw = AdamW{.lr = 0.125, .epsilon = 0, .weight_decay = 0.5};
  Buffers<double> b(adamw, 2);
  b.w = {16, 16}, b.g = {1e-3, -1e3};
  b.update(adamw, {.number = 1});
  CHECK(b.w[0] == doctest::Approx(15 - 0.125).epsilon(1e-14));
  CHECK(b.w[1] == doctest::Approx(15 + 0.125).epsilon(1e-14));
}
TEST_CASE("a scaled gradient is the same as a gradient that was scaled before") {
  for (const Optimizer& o :
       {Optimizer(Sgd{.lr = 0.1, .weight_decay = 0.1}), Optimizer(Sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true}), Optimizer(AdamW{})}) {
    Buffers<float> a(o, 100), b(o, 100);
    fill_randomly(a, 3), fill_randomly(b, 3);
    for (float& g : b.g) g *= 0.25F;
    for (Index t = 1; t <= 3; ++t) {
      a.update(o, {.number = t, .gradient_scale = 0.25});
      b.update(o, {.number = t});
    }
    CHECK(a.w == b.w);
    CHECK(a.s == b.s);
  }
}
TEST_CASE("an update gives the same bits for any number of threads and any division into ranges") {
  for (const Optimizer& o : {Optimizer(Sgd{.lr = 0.1}), Optimizer(Sgd{.lr = 0.1, .momentum = 0.9}), Optimizer(AdamW{})}) {
    Buffers<float> one(o, 10007), four(o, 10007), pieces(o, 10007);
    fill_randomly(one, 5), fill_randomly(four, 5), fill_randomly(pieces, 5);
    std::vector<UpdateRange> cut;
    for (Index begin = 0; begin < 10007; begin += 333) cut.push_back({{begin, std::min<Index>(begin + 333, 10007)}, true});
    for (Index t = 1; t <= 3; ++t) {
      one.update(o, {.number = t});
      four.update(o, {.number = t, .threads = 4});
      pieces.update(o, {.number = t}, cut);
    }
    CHECK(one.w == four.w);
    CHECK(one.s == four.s);
    CHECK(one.w == pieces.w);
    CHECK(one.s == pieces.s);
  }
}
TEST_CASE("weight decay acts on everything, or on what is marked") {
  const std::vector<Parameter> parameters{parameter(0, 2, true), parameter(2, 1, false), parameter(4, 1, true)};
  CHECK(update_ranges(parameters, Decay::everything) == std::vector<UpdateRange>{{{0, 5}, true}});
  const auto marked = update_ranges(parameters, Decay::marked);
  CHECK(marked == std::vector<UpdateRange>{{{0, 2}, true}, {{2, 3}, false}, {{4, 5}, true}});
  for (const Optimizer& o : {Optimizer(Sgd{.lr = 0.5, .weight_decay = 0.5, .decay = Decay::marked}),
                             Optimizer(AdamW{.lr = 0.5, .weight_decay = 0.5, .decay = Decay::marked})}) {
    Buffers<double> b(o, 5);
    b.w = {1, 1, 1, 7, 1};
    b.update(o, {.number = 1}, update_ranges(parameters, o.decay()));
    CHECK(b.w == std::vector<double>{0.75, 0.75, 1, 7, 0.75});
  }
}
TEST_CASE("what is in no range stays as it is") {
  const Optimizer o = AdamW{};
  Buffers<float> b(o, 5);
  b.w = {1, 2, 3, 4, 5}, b.g = {1, 1, 1, 1, 1};
  const UpdateRange middle{{1, 3}, true};
  b.update(o, {.number = 1}, {&middle, 1});
  CHECK(b.w[0] == 1);
  CHECK(b.w[1] != 2);
  CHECK(b.w[3] == 4);
  CHECK(b.s[5 + 0] == 0);
  CHECK(b.s[5 + 2] > 0);
}
TEST_CASE("zeros stay zeros, so gaps of the flat buffer do no harm") {
  const Optimizer o = AdamW{};
  Buffers<float> b(o, 5);
  b.update(o, {.number = 1}, {&all5, 1});
  CHECK(b.w == std::vector<float>(5));
}
TEST_CASE("optimizers are regular and printable") {
  CHECK(Optimizer(Sgd{.lr = 0.1}) == Optimizer(Sgd{.lr = 0.1}));
  CHECK(Optimizer(Sgd{.lr = 0.1}) != Optimizer(Sgd{.lr = 0.2}));
  CHECK(Optimizer(Sgd{}) != Optimizer(AdamW{}));
  CHECK(Optimizer(Sgd{}).state_count() == 0);
  CHECK(Optimizer(Sgd{.momentum = 0.9}).state_count() == 1);
  CHECK(Optimizer(AdamW{}).state_count() == 2);
  CHECK(to_string(Sgd{.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4}) ==
        "Sgd{.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-04, .decay = everything}");
  std::ostringstream out;
  out << Optimizer(AdamW{.decay = Decay::marked});
  CHECK(out.str() == "AdamW{.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-08, .weight_decay = 0.01, .decay = marked}");
}
TEST_CASE("settings that make no sense are refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(Optimizer(Sgd{.lr = -0.1}), "lrcnn: Sgd with .lr = -0.1; a learning rate is finite and not negative; try 0.05", Error);
  CHECK_THROWS_WITH_AS(Optimizer(Sgd{.lr = nan}), "lrcnn: Sgd with .lr = nan; a learning rate is finite and not negative; try 0.05", Error);
  CHECK_THROWS_WITH_AS(Optimizer(Sgd{.momentum = -1}), "lrcnn: Sgd with .momentum = -1; momentum lies in [0, 1); try 0.9 or 0", Error);
  CHECK_THROWS_WITH_AS(Optimizer(Sgd{.momentum = 1}), "lrcnn: Sgd with .momentum = 1; momentum lies in [0, 1); try 0.9 or 0", Error);
  CHECK_THROWS_WITH_AS(Optimizer(Sgd{.nesterov = true}),
                       "lrcnn: Sgd with .momentum = 0; Nesterov's step needs momentum; set .momentum or leave out "
                       ".nesterov",
                       Error);
  CHECK_THROWS_WITH_AS(Optimizer(AdamW{.beta2 = 1}), "lrcnn: AdamW with .beta2 = 1; it lies in [0, 1); try 0.999", Error);
  CHECK_THROWS_AS(Optimizer(AdamW{.beta1 = -1}), Error);
  CHECK_THROWS_AS(Optimizer(AdamW{.epsilon = -1}), Error);
  CHECK_THROWS_AS(Optimizer(AdamW{.weight_decay = nan}), Error);
  CHECK_THROWS_AS(Optimizer(AdamW{.lr = std::numeric_limits<double>::infinity()}), Error);
}
TEST_CASE("buffers of the wrong size are refused") {
  const Optimizer o = AdamW{};
  std::vector<float> w(5), g(4), s(10);
  CHECK_THROWS_WITH_AS(o.update<float>({.number = 1}, {&all5, 1}, w, g, s),
                       "lrcnn: update of 5 parameters with 4 gradients and 10 elements of state; AdamW needs as many "
                       "gradients and 2 times as many elements of state; size the buffers by flat_elements and "
                       "Optimizer::state_count",
                       Error);
  g.resize(5);
  CHECK_THROWS_WITH_AS(o.update<float>({.number = 0}, {&all5, 1}, w, g, s),
                       "lrcnn: update number 0; the first update has the number 1; count updates from 1", Error);
}
