// Plans that leave packing out give the bits of those that pack again, with fewer calls. On the pretended device.
#include "cudnn/host_library.hpp"
#include "cudnn/device_run.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Made {
  LossResult loss;
  std::vector<float> gradients;
  Index calls = 0;
};
/// A plan's second run, into an arena that is full of NaN.
template <Precision precision>
Made made_by(const Problem<float>& problem, const Plan& plan) {
  using B = BasicCudnn<precision>;
  const auto library = std::make_shared<HostLibrary<typename B::element>>();
  B backend(library);
  const auto count = static_cast<Index>(problem.parameters.size());
  auto parameters = backend.template buffer<float>(count), gradients = backend.template buffer<float>(count);
  backend.write(parameters.data(), std::span<const float>(problem.parameters));
  Executor<B> executor(plan, backend, parameters.data(), gradients.data());
  const MemorySource<float> source(problem.images.data(), problem.table.input);
  Made made;
  struct Observer {   // so that steps are started one by one
    void before(const Plan&, Index) {}
    void after(const Plan&, Index) {}
  };
  for (int i = 0; i < 2; ++i) {
    const std::vector<std::byte> nan(static_cast<std::size_t>(executor.arena().bytes()), std::byte{0xff});
    backend.write(executor.arena().data(), std::span<const std::byte>(nan));
    const Index before = library->calls;
    made.loss = executor.run(source, problem.labels, SoftmaxCrossEntropy{}, Observer{});
    made.calls = library->calls - before;
  }
  made.gradients.resize(problem.parameters.size());
  backend.read(std::span<float>(made.gradients), gradients.data());
  return made;
}
template <Precision precision>
void law(const PolicySpec& policy) {
  using Net = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, MaxPool<>, Conv<12>, ReLU, Conv<12>, ReLU, MaxPool<>, Flatten, Linear<10>>;
  const Problem<float> problem(Net::layers, {4, 3, 32, 24}, 7);
  INFO(to_string(policy), ", ", precision_name(precision));
  const Plan plan = make_plan(problem.table, policy, BasicCudnn<precision>::target);
  Plan again = plan;
  for (const LeftOutStep& s : plan.left_out) again.steps.insert(again.steps.begin() + s.place, s.step);
  const auto saved = static_cast<Index>(plan.left_out.size());
  CHECK(saved >= 4);
  const Made once = made_by<precision>(problem, plan), anew = made_by<precision>(problem, again);
  CHECK(once.loss == anew.loss);
  CHECK(once.gradients == anew.gradients);
  if (policy.streams == 1) CHECK(anew.calls - once.calls == saved);
  else CHECK(anew.calls - once.calls >= saved);   // nor do streams wait for it
}
}   // namespace
TEST_CASE("filters that stay packed give the bits of filters that are packed again, and save their calls") {
  using W = Workspace<1_MiB>;
  for (const PolicySpec& policy :
       {Policy<Share<4>, CheckpointAtPools, RecomputeAll, W>::value, Policy<Overlap<3>, CheckpointAtPools, RecomputeAll, W>::value,
        Policy<Stages<ByImages<2, Overlap<3>>, Overlap<2>, Column>, CheckpointAtPools, RecomputeAll, W>::value,
        Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, W, Streams<2>>::value}) {
    law<Precision::fp32>(policy);
    law<Precision::bf16>(policy);
  }
}
