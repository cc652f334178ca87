// LRCNN_FILL_ARENA: every run begins with NaN in the whole arena.
#include "exec/guarded_run.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Sees the arena before the first step of a run.
struct FirstLook {
  const Arena& arena;
  bool all_ones = false;
  void before(const Plan&, Index i) {
    if (i == 0) all_ones = std::all_of(arena.data(), arena.data() + arena.bytes(), [](std::byte b) { return b == std::byte{0xFF}; });
  }
  void after(const Plan&, Index) {}
};
using Net = Sequential<Conv<3>, BatchNorm, ReLU, MaxPool<>, Conv<4>, GlobalAvgPool, Linear<3>>;
}   // namespace
TEST_CASE("with LRCNN_FILL_ARENA every run begins with NaN in the whole arena, and gives the same") {
  const Problem<double> problem(Net::layers, {2, 2, 12, 8}, 1);
  std::vector<double> gradients(problem.parameters.size());
  Reference<double> backend(1);
  const auto plan = [&] { return make_plan(problem.table, Policy<Overlap<2>, RecomputeAll>::value, Reference<double>::target); };
  const MemorySource<double> source(problem.images.data(), problem.table.input);
  const auto run = [&](Executor<Reference<double>>& executor) {
    FirstLook look{executor.arena()};
    const LossResult loss = executor.run(source, problem.labels, SoftmaxCrossEntropy{}, look);
    return std::pair(look.all_ones, loss);
  };
  auto plain = without_filling([&] { return Executor<Reference<double>>(plan(), backend, problem.parameters.data(), gradients.data()); });
  run(plain);
  const auto [untouched, expected] = run(plain);
  CHECK(!untouched);
  const std::vector<double> before = gradients;
  for (const char* word : {"", "0", "1"}) {
    auto other = without_filling([&] {
      setenv("LRCNN_FILL_ARENA", word, 1);
      return Executor<Reference<double>>(plan(), backend, problem.parameters.data(), gradients.data());
    });
    for (int turn = 0; turn < 2; ++turn) {
      const auto [filled, loss] = run(other);
      if (turn > 0) CHECK(filled == (word == std::string("1")));
      CHECK(loss == expected);
      CHECK(gradients == before);
    }
  }
}
