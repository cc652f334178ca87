// As alone_rss.cpp, on oneDNN: VGG-16 at 224 x 224, batch 2, with direct arithmetic. What a step needs beyond the
// plan (threads begin with the first one) has to fit into 5 % + 16 MB.
#include "exec/resident.hpp"
#include "support/run_network.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/network/vgg.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("resident memory grows by the planned peak on oneDNN") {
  unsetenv("LRCNN_FILL_ARENA");   // it would touch all of the arena, and what the plan touches is measured here
  const Input input{2, 3, 224, 224};
  const Problem<float> problem(Vgg16<10>::layers, input, 1);
  const MemorySource<float> source(problem.images.data(), input);
  std::vector<float> gradients(problem.parameters.size(), 1.0f);
  Onednn backend(2);
  for (const PolicySpec& policy :
       {Policy<Stages<Share<6>, Share<3>, Column>, CheckpointAt<"pool2", "pool3">, RecomputeAll>::value, Policy<Column>::value}) {
    INFO(to_string(policy));
    Executor<Onednn> executor(make_plan(problem.table, policy, Onednn::target), backend, problem.parameters.data(), gradients.data());
    const Index planned = executor.plan().peak_bytes();
    LossResult result;
    const Index first = resident_growth([&] { result = executor.run(source, problem.labels); });
    const Index second = resident_growth([&] { result = executor.run(source, problem.labels); });
    CHECK(std::isfinite(result.sum));
    MESSAGE(to_string(policy), ": planned ", format_bytes(planned), ", grown ", format_bytes(first), " in the first step, ", format_bytes(second),
            " in the second");
    CHECK(planned > 20'000'000);
    CHECK(first <= planned + planned / 20 + 16'000'000);
    CHECK(second <= 1'000'000);
    if (first > 0) CHECK(first >= planned - planned / 20 - 16'000'000);
  }
}
