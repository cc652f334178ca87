// Networks that branch, with norms and upsampling, on the pretended device; no step goes where it has not declared to go; and a workspace
// that is too small for a norm is refused.
#include "cudnn/graph_law.hpp"
#include "cudnn/host_library.hpp"
#include "exec/declared.hpp"
#include "exec/predicted.hpp"
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// A residual block, a concatenation and an upsampling, with norms of every kind.
std::vector<Layer> mixed() {
  const Layer conv{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 8};
  Layer batch{.kind = Kind::norm}, group = batch, layer = batch, relu, gelu;
  group.norm.over = Norm::Over::group, group.norm.groups = 2;
  layer.norm.over = Norm::Over::channels;
  gelu.activation.function = Function::gelu;
  return {conv,
          batch,
          relu,
          conv,
          group,
          {.kind = Kind::sum, .other = 3},
          relu,
          {.kind = Kind::upsample},
          conv,
          layer,
          gelu,
          {.kind = Kind::concat, .other = 4},
          batch,
          relu,
          {.kind = Kind::global_avg_pool},
          {.kind = Kind::linear, .channels = 3}};
}
template <class B>
void two_bytes(double tolerance) {
  const Problem<float> problem(mixed(), {4, 3, 24, 16}, 5);
  B backend(std::make_shared<HostLibrary<typename B::element>>());
  PolicySpec column = Policy<Workspace<1_MiB>>::value;
  const Outcome<float> whole = DeviceRun<B>(problem, column, backend)();
  Reference<float, Target::all_channels> reference;
  CHECK(worst_graph_difference(problem, whole, run_once(problem, column, reference)) <= tolerance);
  for (PolicySpec policy : graph_policies) {
    policy.workspace_bytes = graph_workspace;
    DeviceRun<B> run(problem, policy, backend);
    for (int turn = 0; turn < 3; ++turn) CHECK(worst_graph_difference(problem, run(), whole) <= tolerance);
  }
}
}   // namespace
TEST_CASE("networks that branch give what the reference gives, row by row and layer by layer") {
  graph_law(100, 120, 1e-5, [](std::uint64_t seed) {
    const auto library = std::make_shared<HostLibrary<>>();
    library->fuses_bias = seed % 3 != 2, library->fuses_relu = seed % 3 == 0;
    return Cudnn(library);
  });
}
TEST_CASE("likewise with tensors in 16 bits") {
  two_bytes<CudnnFp16>(3e-2);
  two_bytes<CudnnBf16>(2e-1);
}
TEST_CASE("a predictor normalises with running statistics, and with those of groups, as the reference does") {
  const Problem<float> problem(mixed(), {4, 3, 24, 16}, 5);
  const auto predicted = [&]<class B>(B backend, PolicySpec policy) {
    policy.workspace_bytes = graph_workspace;
    BasicPredictor<B> predictor(mixed(), policy, {4, 3, 24, 16}, problem.parameters, std::move(backend));
    Gather<float> sink(predictor.output_shape());
    predictor.run(MemorySource<float>(problem.images.data(), {4, 3, 24, 16}), sink);
    return sink.rows;
  };
  const auto wanted = predicted(Reference<float, Target::all_channels>(), PolicySpec{});
  const auto whole = predicted(Cudnn(std::make_shared<HostLibrary<>>()), PolicySpec{});
  for (std::size_t e = 0; e < wanted.size(); ++e) CHECK(whole[e] == doctest::Approx(wanted[e]).epsilon(1e-5));
  CHECK(predicted(Cudnn(std::make_shared<HostLibrary<>>()), Policy<Share<3>, Streams<2>>::value).size() == whole.size());
}
TEST_CASE("no step of a network that branches goes where it has not declared to go") {
  Index cases = 0;
  for (std::uint64_t seed = 4000; cases < 15; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = random_graph(dice, 4);
    const Problem<float> problem(net.layers, net.input, seed);
    PolicySpec policy = graph_policies[seed % 3];
    policy.workspace_bytes = graph_workspace;
    Cudnn backend(std::make_shared<HostLibrary<>>());
    try {
      DeviceRun run(problem, policy, backend);
      Guard guard(run.executor().plan(), backend, run.executor().arena());
      const Outcome<float> free = run();
      run.poison();
      CHECK(worst_difference(problem, run(guard), free) == 0);
      CHECK(guard.problem() == "");
      ++cases;
    } catch (const PlanError&) {
    }
  }
}
TEST_CASE("a workspace too small for a norm is refused before the first step, by name") {
  for (const Layer& norm : {Layer{.kind = Kind::norm}, Layer{.kind = Kind::norm, .norm = {.over = Norm::Over::channels}}}) {
    const std::vector<Layer> layers{{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 64},
                                    norm,
                                    {.kind = Kind::global_avg_pool},
                                    {.kind = Kind::linear, .channels = 3}};
    const std::string text = error_of([&] {
      BasicTrainer<Cudnn>(layers, Policy<Workspace<256>>::value, {2, 3, 64, 64}, Sgd{}, {}, {}, Cudnn(std::make_shared<HostLibrary<>>()));
    });
    CHECK(text.starts_with("lrcnn: layer '" + std::string(norm_name(norm.norm)) + "1' ("));
    CHECK(text.find(": what is known of its channels or pixels takes ") != std::string::npos);
    CHECK(text.find(" bytes of workspace, and there are 256; all scratch lies in the plan's workspace; give the policy a larger Workspace, or "
                    "other slabs") != std::string::npos);
  }
}
