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
TEST_CASE("a bias that is not aligned to 16 bytes is never put to the library: a loop adds it, with the same result") {
  cudnn::Request request{{.bias = true, .relu = true}, 1};
  CHECK(cudnn::attempts(request).size() == 3);
  CHECK(cudnn::attempts(request)[0] == request);
  request.problem.bias_alignment = 8;
  const auto attempts = cudnn::attempts(request);
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0] == cudnn::Request{{}, 1});   // the activation comes behind the bias
  request.problem.bias = false, request.problem.bias_alignment = 16;
  CHECK(cudnn::attempts(request).size() == 2);
  const auto run = [&](Index channels) {
    const Problem<float> problem(network(channels), {2, 1, 28, 28}, 1);
    const auto library = std::make_shared<HostLibrary<>>();
    Cudnn backend(library);
    Reference<float, Target::all_channels> reference;
    CHECK(worst_difference(problem, DeviceRun(problem, policy, backend)(), run_once(problem, PolicySpec{}, reference)) <= 1e-5);
    return library->loops_started;
  };
  CHECK(run(6) > run(8));   // of eight channels it lies at a multiple of 16 bytes
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
