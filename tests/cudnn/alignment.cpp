// Memory that is not aligned to 16 bytes, where cudnn-frontend cannot be told so: such problems are refused, and a bias alone is added by a loop.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// A convolution to `channels`, and a linear layer. Its kernel has 25 taps, so its bias begins 100 * channels bytes behind its weights.
std::vector<Layer> network(Index channels) {
  return {{.kind = Kind::conv, .window = {.kernel = 5}, .channels = channels, .bias = true},
          {.kind = Kind::global_avg_pool},
          {.kind = Kind::linear, .channels = 8, .bias = true}};
}
const PolicySpec policy = Policy<Share<2>, Workspace<1_MiB>>::value;
}   // namespace
TEST_CASE("a problem whose memory is not aligned to 16 bytes is refused where the library takes that for granted") {
  const cudnn::Problem whole{}, part{.alignment = 4}, bias{.bias = true, .bias_alignment = 8}, none{.bias_alignment = 8};
  CHECK(cudnn::alignment_fault(whole, false) == "");
  CHECK(cudnn::alignment_fault(none, false) == "");
  CHECK(cudnn::alignment_fault(part, true) == "");
  CHECK(cudnn::alignment_fault(part, false) ==
        "memory is aligned to 4 bytes, and cudnn-frontend before 1.32 takes 16 for granted; build with cudnn-frontend 1.32 or later");
  CHECK(cudnn::alignment_fault(bias, false).starts_with("memory is aligned to 8 bytes, and "));
}
TEST_CASE("a bias that is not aligned is added by a loop there, with the same result") {
  const Problem<float> problem(network(6), {2, 1, 28, 28}, 1);
  const auto run = [&](bool tells) {
    const auto library = std::make_shared<HostLibrary<>>();
    library->tells_alignment = tells;
    Cudnn backend(library);
    const Outcome<float> outcome = DeviceRun(problem, policy, backend)();
    return std::pair{outcome, library->calls};
  };
  const auto [fused, calls] = run(true);
  const auto [added, more] = run(false);
  CHECK(worst_difference(problem, added, fused) <= 1e-6);
  CHECK(more > calls);
}
TEST_CASE("weights that are not aligned are an error there that says what to build with") {
  const Problem<float> problem(network(5), {2, 1, 28, 28}, 1);
  const auto library = std::make_shared<HostLibrary<>>();
  Cudnn backend(library);
  CHECK(DeviceRun(problem, policy, backend)().loss.count == 2);
  library->tells_alignment = false;
  Cudnn old(library);
  const std::string text = error_of([&] { DeviceRun(problem, policy, old); });
  CHECK(text.starts_with("lrcnn: layer 'linear1' ("));
  CHECK(text.find("memory is aligned to 8 bytes, and cudnn-frontend before 1.32 takes 16 for granted; build with cudnn-frontend 1.32 or later") !=
        std::string::npos);
}
