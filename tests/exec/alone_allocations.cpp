// A step of the reference backend allocates nothing: not the first one either, and not in a trainer. In a program of
// its own, because it replaces malloc and its family, operator new and mmap.
#include "exec/allocation_cases.hpp"
#include <lrcnn/layer/pixel_loss.hpp>
#include "support/own_optimizers.hpp"
#include <lrcnn/train/trainer.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("allocations: the counter counts") {
  void* volatile memory = nullptr;   // volatile: a compiler may leave out an allocation that nobody looks at
  std::vector<int>* volatile vector = nullptr;
  const Allocations seen = allocations_of([&] {
    memory = std::malloc(100);
    std::free(memory);
    memory = std::calloc(10, 30);
    memory = std::realloc(memory, 5000);
    std::free(memory);
    memory = std::aligned_alloc(64, 640);
    std::free(memory);
    memory = nullptr;
    vector = new std::vector<int>(250);
    delete vector;
  });
  CHECK(seen.count >= 5);   // a sanitizer's hook may not see aligned_alloc, and sees more of realloc
  CHECK(seen.frees >= 3);
  CHECK(seen.largest == 5000);
  CHECK(seen.bytes >= 100 + 300 + 5000 + 1000);
#ifndef LRCNN_TEST_SANITIZED
  void* map = nullptr;
  const Allocations mapped = allocations_of([&] { map = mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); });
  CHECK(mapped.maps == 1);
  CHECK(mapped.largest == 1 << 20);
  munmap(map, 1 << 20);
#endif
  CHECK(allocations_of([] {}) == Allocations{});
}
TEST_CASE("allocations: none in any step of the reference backend") {
  const auto law = [](const std::string& title, auto step) {
    INFO(title);
    for (int i = 0; i < 2; ++i) CHECK(allocations_of(step) == Allocations{});
  };
  Reference<float> single;
  for_steps(single, law);
  Reference<double, 16, 3> blocked(2);
  for_steps(blocked, law);
}
TEST_CASE("allocations: none in a trainer's step, none in evaluation, once the plans are made") {
  const Input input{2, 3, 32, 24};
  const Problem<float> problem(Pooled::layers, input, 1);
  const MemorySource<float> source(problem.images.data(), input);
  for (const Optimizer& optimizer :
       {Optimizer(Sgd{.lr = 0.01, .momentum = 0.9}), Optimizer(AdamW{.lr = 0.01}), Optimizer(RmsProp{}), Optimizer(Lars{})}) {
    Trainer<Pooled, Policy<Share<4>, CheckpointAtPools, RecomputeAll>, Reference<float>> trainer(input, optimizer, {.threads = 1});
    trainer.evaluate(source, problem.labels);   // makes the plan of the forward pass
    trainer.step(source, problem.labels);
    CHECK(allocations_of([&] { trainer.step(source, problem.labels); }) == Allocations{});
    CHECK(allocations_of([&] { trainer.evaluate(source, problem.labels); }) == Allocations{});
  }
}
namespace {
/// Classes that are made when they are wanted.
struct Stripes final : LabelRows {
  Shape extents{};
  LabelKind kind() const override { return LabelKind::pixels; }
  Shape shape() const override { return extents; }
  bool constant() const override { return true; }
  void classes(Index, Range rows, std::span<std::int32_t> out) const override {
    for (Index e = 0; e < rows.size() * extents.w; ++e) item(out, e) = static_cast<std::int32_t>((rows.begin + e / extents.w) / 2 % 3);
  }
};
}   // namespace
TEST_CASE("allocations: none in steps with labels by rows, once their rows have memory") {
  using Map = Sequential<Conv<8>, ReLU, Conv<3>>;
  const Input input{2, 3, 32, 24};
  const std::vector<float> pixels(static_cast<std::size_t>(input.count()), 1.0f);
  const MemorySource<float> source(pixels.data(), input);
  Stripes stripes;
  stripes.extents = {2, 1, 32, 24};
  Trainer<Map, Policy<Overlap<4>, RecomputeAll>, Reference<float>, PixelCrossEntropy> trainer(input, Sgd{.lr = 0.01}, {.threads = 1});
  const StepReport first = trainer.step(source, Labels::from_rows(stripes));
  CHECK(first.label_bytes > 0);
  CHECK(first.label_bytes < 2 * 16 * 24 * 4);   // less than half of all labels
  CHECK(allocations_of([&] { trainer.step(source, Labels::from_rows(stripes)); }) == Allocations{});
}
