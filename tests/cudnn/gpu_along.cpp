// On a GPU: what is done along with batch norms and max pooling, and bias gradients along with ReLUs and max pooling, have the bits of steps that are
// started one by one.
#include "cudnn/device_run.hpp"
#include "cudnn/networks_along.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Steps that somebody watches are started one by one.
struct Watching : NoObserver {};
template <class B>
void law(B backend) {
  for (const std::span<const Layer> layers : {std::span<const Layer>(Normed<64, 16>::layers), std::span<const Layer>(Normed<24, 12>::layers),
                                              std::span<const Layer>(Biased<64, 16>::layers), std::span<const Layer>(Biased<24, 12>::layers)}) {
    const Problem<float> problem(layers, {8, 3, 44, 52}, 12);
    for (PolicySpec policy : policies_along) {
      policy.workspace_bytes = 64_MiB;
      INFO(to_string(policy), ", ", precision_name(B::precision));
      DeviceRun<B> run(problem, policy, backend);
      const auto apart = run(Watching{});
      for (int turn = 0; turn < 3; ++turn) {   // the last are recorded
        run.poison();
        run.poison_gradients();
        const auto together = run();
        CHECK(together.loss == apart.loss);
        CHECK(together.gradients == apart.gradients);
        CHECK(together.input_gradient == apart.input_gradient);
      }
    }
  }
}
}   // namespace
TEST_CASE("gpu: in fp32 steps that are done along with others give the bits of steps one by one") { law(Cudnn()); }
TEST_CASE("gpu: in bf16 steps that are done along with others give the bits of steps one by one") { law(CudnnBf16()); }
