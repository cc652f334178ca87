// The process grows by the planned peak while it trains: within 5 % + 16 MB, on a network with VGG-16's layers and a
// sixteenth of its channels at 1536 x 1024. In a program of its own, so that nothing else grows.
#include "exec/resident.hpp"
#include "support/run_network.hpp"
#include <lrcnn/network/vgg.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool measures = false;   // sanitizers keep books about every byte
#else
constexpr bool measures = true;
#endif
std::vector<Layer> thin_vgg() {
  std::vector<Layer> layers(Vgg16<10>::layers.begin(), Vgg16<10>::layers.end());
  for (Layer& y : layers)
    if (y.kind == Kind::conv) y.channels /= 16;
  return layers;
}
}   // namespace
TEST_CASE("resident memory grows by the planned peak") {
  unsetenv("LRCNN_FILL_ARENA");   // it would touch all of the arena, and what the plan touches is measured here
  const Input input = measures ? Input{1, 3, 1536, 1024} : Input{1, 3, 96, 64};
  const Problem<float> problem(thin_vgg(), input, 1);
  const MemorySource<float> source(problem.images.data(), input);
  std::vector<float> gradients(problem.parameters.size(), 1.0f);
  Reference<float> backend(1);
  for (const PolicySpec& policy :
       {Policy<Share<8>, CheckpointAt<"pool2", "pool3">, RecomputeAll, Workspace<0>>::value, Policy<Column, Workspace<0>>::value}) {
    INFO(to_string(policy));
    Executor<Reference<float>> executor(make_plan(problem.table, policy, Reference<float>::target), backend, problem.parameters.data(),
                                        gradients.data());
    const Index planned = executor.plan().peak_bytes();
    LossResult result;
    const Index grown = resident_growth([&] { result = executor.run(source, problem.labels); });
    CHECK(std::isfinite(result.sum));
    MESSAGE(to_string(policy), ": planned ", format_bytes(planned), ", grown ", format_bytes(grown));
    if (!measures || grown == 0) continue;
    CHECK(planned > (policy.partitions[0].cut == Cut::column ? 60'000'000 : 10'000'000));
    CHECK(grown <= planned + planned / 20 + 16'000'000);
    CHECK(grown >= planned - planned / 20 - 16'000'000);
  }
}
