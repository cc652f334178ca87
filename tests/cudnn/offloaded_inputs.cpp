// Offloaded inputs lie in page-locked memory of the host: the bits of kept ones, on the pretended device; what happens if there is no such memory.
#include "cudnn/host_library.hpp"
#include "cudnn/device_run.hpp"
#include "cudnn/networks_along.hpp"
#include "exec/shared_gradients.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Offloads = Policy<OffloadInput<Overlap<3>>, CheckpointEvery<3>, RecomputeAll, Workspace<1_MiB>>;
/// What a plan that offloads comes to is what one that keeps comes to, started at once or one by one.
template <Precision precision>
void law(std::span<const Layer> layers, PolicySpec policy) {
  using B = BasicCudnn<precision>;
  struct Watching : NoObserver {};
  const Problem<float> problem(layers, {4, 3, 28, 26}, 13);
  INFO(to_string(policy), ", ", precision_name(precision));
  const auto library = std::make_shared<HostLibrary<typename B::element>>();
  B backend(library);
  Outcome<float> kept;
  {
    PolicySpec keeps = policy;
    keeps.partitions[0].input = SectionInput::keep;
    kept = DeviceRun<B>(problem, keeps, backend)();
    CHECK(library->shared() == 0);
  }
  DeviceRun<B> run(problem, policy, backend);
  CHECK(library->shared() == 1);
  CHECK(run.executor().arena().offloaded().bytes() == run.executor().plan().offloaded_bytes());
  check_same(run(Watching{}), kept);
  for (int turn = 0; turn < 3; ++turn) {   // the last are recorded
    run.poison(), run.poison_gradients();
    check_same(run(), kept);
  }
}
}   // namespace
TEST_CASE("offloaded inputs give the bits of kept ones on a device") {
  for (const auto layers : {std::span<const Layer>(Normed<16, 8>::layers), std::span<const Layer>(Biased<24, 12>::layers)})
    for (const PolicySpec& policy : {Offloads::value, Policy<OffloadInput<>, CheckpointEvery<1>, Workspace<1_MiB>>::value,
                                     Policy<OffloadInput<Overlap<3>>, CheckpointEvery<4>, RecomputeAll, Workspace<1_MiB>, Prefetch>::value,
                                     Policy<OffloadInput<Overlap<4>>, CheckpointEvery<4>, RecomputeAll, Workspace<1_MiB>, Streams<2>>::value}) {
      law<Precision::fp32>(layers, policy);
      law<Precision::bf16>(layers, policy);
    }
}
TEST_CASE("without page-locked memory a plan that offloads is refused, and nothing is lost") {
  const Problem<float> problem(Biased<16, 8>::layers, {4, 3, 28, 26}, 13);
  const auto library = std::make_shared<HostLibrary<float>>();
  Cudnn backend(library);
  library->refuses_sharing = "out of memory";
  CHECK_THROWS_WITH_AS(DeviceRun<>(problem, Offloads::value, backend), doctest::Contains("of the host's memory, page-locked: out of memory"),
                       MemoryError);
  library->refuses_sharing.clear(), library->access.maps = false;
  CHECK_THROWS_WITH_AS(DeviceRun<>(problem, Offloads::value, backend), doctest::Contains("the device does not read page-locked memory"), MemoryError);
  library->access.maps = true;
  CHECK(library->used == 0);
  CHECK(DeviceRun<>(problem, Offloads::value, backend)().loss.sum > 0);
  CHECK(library->shared() == 0);
}
