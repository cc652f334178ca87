// Training in bf16 on the CPU: the policy's part chooses it, the curve is that of fp32, half the bytes, and files go on.
#include "support/backend_for_tests.hpp"
#include "support/error_of.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/core/rng.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <cmath>
using namespace lrcnn;
using lrcnn::testing::backend_for_tests;
using lrcnn::testing::error_of;
namespace {
using Net = Sequential<Conv<16>, ReLU, Conv<16>, ReLU, MaxPool<>, Conv<32>, ReLU, Conv<32>, ReLU, GlobalAvgPool, Linear<10>>;
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>>;
using Half = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>, Bf16>;
constexpr Input input{.n = 16, .c = 3, .h = 32, .w = 24};
/// Noise with a stripe whose place tells the label: something to learn.
struct Stripes {
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
  explicit Stripes(std::uint64_t seed) : pixels(static_cast<std::size_t>(input.count())), labels(static_cast<std::size_t>(input.n)) {
    const Random random(seed);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(0.5 * random.normal(i));
    const View<float> all = dense_view(pixels.data(), input.n, input.c, {0, input.h}, input.w);
    for (Index n = 0; n < input.n; ++n) {
      const auto label = static_cast<Index>(random.below(1000000 + static_cast<std::uint64_t>(n), 10));
      labels[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(label);
      for (Index x = 0; x < input.w; ++x)
        for (Index c = 0; c < input.c; ++c) all(n, c, 3 * label + 1, x) += static_cast<float>(2 - label % 3), all(n, c, 3 * label, x) -= 1;
    }
  }
  MemorySource<float> source() const { return {pixels.data(), input}; }
};
/// A backend for bf16, slow where the processor has no kernels.
OnednnBf16 half(int threads) { return backend_for_tests<OnednnBf16>(threads); }
}   // namespace
TEST_CASE("the policy's precision chooses oneDNN's type, which halves the bytes of maps and of their gradients") {
  static_assert(std::is_same_v<Trainer<Net, Half, Onednn>::BackendType, OnednnBf16>);
  static_assert(std::is_same_v<Trainer<Net, Rows, Onednn>::BackendType, Onednn>);
  static_assert(std::is_same_v<Trainer<Net, Rows, OnednnBf16>::BackendType, OnednnBf16>);
  static_assert(std::is_same_v<InPrecision<OnednnBf16, Precision::fp32>, Onednn>);
  static_assert(std::is_same_v<BasicTrainer<OnednnBf16>::M, float>);
  constexpr Input large{.n = 8, .c = 3, .h = 224, .w = 224};
  using Bare = Policy<Workspace<0>>;
  using BareHalf = Policy<Workspace<0>, Bf16>;
  constexpr Index single = peak_bytes<Vgg16<>, Bare, Onednn>(large), half = peak_bytes<Vgg16<>, BareHalf, Onednn>(large);
  static_assert(half * 2 >= single && half * 20 <= single * 11);   // masks, pool indices and a filter's gradient are not halved
  MESSAGE("VGG-16 at 224, batch 8: ", single, " bytes in fp32, ", half, " in bf16");
  CHECK(error_of([&] { BasicTrainer<Onednn>(Net::layers, Half::value, input, Sgd{}); }) ==
        "lrcnn: the policy asks for Bf16, and backend 'onednn' works in Fp32; the type of the backend says its precision; use Trainer, which "
        "chooses the type, or leave the part out");
}
TEST_CASE("a trainer in bf16 is refused where the processor has no kernels for it") {
  const OnednnBf16 backend = half(1);
  const std::string text = error_of<BackendError>([] { Trainer<Net, Half, Onednn>(input, Sgd{}, {.threads = 1}); });
  if (backend.has_kernels()) CHECK(text == "no error");
  else CHECK(text.find("lrcnn: OnednnBf16 has no kernels on this machine: " + backend.describe() + "; ") == 0);
}
TEST_CASE("training in bf16 follows fp32, by rows and by columns") {
  const bool fast = half(1).has_kernels();
  if (!fast) MESSAGE("without kernels for bf16 on this processor: plain loops, and so 6 steps instead of 60");
  const TrainerOptions options{.seed = 3, .threads = 2};
  const Sgd sgd{.lr = 0.02, .momentum = 0.9};
  Trainer<Net, Rows, Onednn> single(input, sgd, options);
  Trainer<Net, Half, Onednn> rows(input, sgd, options, {}, half(2));
  Trainer<Net, Policy<Workspace<1_MiB>, Bf16>, Onednn> column(input, sgd, options, {}, half(2));
  CHECK(rows.read_parameters() == single.read_parameters());
  CHECK(rows.arena_bytes() < single.arena_bytes());
  double first = 0, want = 0, worst = 0;
  for (std::uint64_t i = 0; i < (fast ? 60 : 6); ++i) {
    const Stripes batch(i % 6);
    want = single.step(batch.source(), batch.labels).loss;
    if (i == 0) first = want;
    for (const double loss : {rows.step(batch.source(), batch.labels).loss, column.step(batch.source(), batch.labels).loss}) {
      CHECK(std::abs(loss - want) <= 0.03 * first);
      worst = std::max(worst, std::abs(loss - want) / first);
    }
  }
  MESSAGE("loss from ", first, " to ", want, "; furthest from fp32's by ", worst, " of the first");
  if (fast) CHECK(want < 0.7 * first);
}
TEST_CASE("changes too small for bf16 reach its parameters, which are floats") {
  const Stripes batch(1);
  Trainer<Net, Half, Onednn> trainer(input, Sgd{.lr = 1e-5}, {.seed = 3, .threads = 1}, {}, half(1));
  const auto before = trainer.read_parameters();
  trainer.step(batch.source(), batch.labels);
  const auto after = trainer.read_parameters();
  std::size_t changed = 0, lost = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != after[i]) ++changed, lost += bfloat16(before[i]).bits() == bfloat16(after[i]).bits();
  CHECK(changed * 2 > before.size());
  CHECK(lost * 10 > changed * 9);
}
TEST_CASE("a training saved in bf16 goes on bit by bit, and in fp32 too") {
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_onednn_bf16_test.lrcnn";
  const AdamW adam{.lr = 0.002};
  const TrainerOptions options{.seed = 3, .threads = 2};
  const Stripes batch(2);
  Trainer<Net, Half, Onednn> one(input, adam, options, {}, half(2)), other(input, adam, {.seed = 4, .threads = 2}, {}, half(2));
  Trainer<Net, Rows, Onednn> single(input, adam, {.seed = 5, .threads = 2});
  for (int i = 0; i < 5; ++i) one.step(batch.source(), batch.labels);
  one.save(file);
  other.load(file), single.load(file);
  std::filesystem::remove(file);
  CHECK(single.read_parameters() == one.read_parameters());
  for (int i = 0; i < 3; ++i) {
    const double want = one.step(batch.source(), batch.labels).loss;
    CHECK(other.step(batch.source(), batch.labels).loss == want);
    CHECK(std::abs(single.step(batch.source(), batch.labels).loss - want) <= 0.02 * want);
  }
  CHECK(other.read_parameters() == one.read_parameters());
}
