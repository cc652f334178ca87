// Networks that branch, with norms and upsampling, on the pretended device: what the reference gives, row by row what layer by layer gives,
// on several streams and recorded; and no step goes where it has not declared to go.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "exec/declared.hpp"
#include "exec/graph_equivalence.hpp"
#include "support/error_of.hpp"
#include "support/random_graph.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const std::vector<PolicySpec> policies{
    Policy<Share<3>, CheckpointAtPools, RecomputeAll>::value, Policy<Share<2>, CheckpointEvery<4>>::value,
    Policy<Overlap<2>, CheckpointEvery<3>, RecomputeAll>::value, Policy<Share<4>, RecomputeCheap>::value, Policy<Column, KeepAll>::value};
/// Differences beyond the tolerance are those of ill-conditioned networks: at most ten times what noise in the last place of parameters and
/// images makes.
template <class B>
void law(std::uint64_t first, Index cases, double tolerance) {
  Index compared = 0, norms = 0, joins = 0, conditioned = 0;
  double against_rows = 0, against_reference = 0;
  for (std::uint64_t seed = first; compared < cases; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = random_graph(dice);
    const Problem<float> problem(net.layers, net.input, seed);
    const auto library = std::make_shared<HostLibrary<typename B::element>>();
    library->fuses_bias = seed % 3 != 2, library->fuses_relu = seed % 3 == 0;
    B backend(library);
    INFO("seed ", seed);
    PolicySpec column;
    column.workspace_bytes = 100'000;
    std::optional<Outcome<float>> whole;
    try {
      whole = DeviceRun<B>(problem, column, backend)();
    } catch (const PlanError&) {   // a norm over groups at the top of the network, say
      continue;
    }
    Reference<float, Target::all_channels> reference;
    const Outcome<float> wanted = run_once(problem, column, reference);
    double noise = -1;
    const auto check = [&](double difference, double& most) {
      if (difference <= tolerance) return most = std::max(most, difference), void();
      if (noise < 0) noise = noise_of(problem, wanted, column, reference, 6);
      CHECK(difference <= 10 * noise);
      ++conditioned;
    };
    check(worst_graph_difference(problem, *whole, wanted), against_reference);
    PolicySpec policy = policies[seed % policies.size()];
    policy.workspace_bytes = 100'000;
    if (seed % 4 == 1) policy.streams = 2;
    INFO(to_string(policy));
    try {
      DeviceRun<B> run(problem, policy, backend);
      for (int turn = 0; turn < 3; ++turn)   // step by step, recorded, started again
        check(worst_graph_difference(problem, run(), *whole), against_rows);
    } catch (const PlanError&) {
      continue;
    }
    for (const Layer& y : net.layers) norms += y.kind == Kind::norm, joins += is_join(y);
    ++compared;
  }
  MESSAGE(compared, " cases, ", norms, " norms, ", joins, " joins; worst difference of rows to column ", against_rows, ", to the reference ",
          against_reference, "; ill-conditioned runs ", conditioned);
  CHECK(conditioned * 4 < compared);
  CHECK(norms > compared);
  CHECK(joins * 2 > compared);
}
}  // namespace
TEST_CASE("networks that branch give what the reference gives, row by row and layer by layer") { law<Cudnn>(100, 120, 1e-5); }
TEST_CASE("no step of a network that branches goes where it has not declared to go") {
  Index cases = 0;
  for (std::uint64_t seed = 4000; cases < 15; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = random_graph(dice, 4);
    const Problem<float> problem(net.layers, net.input, seed);
    PolicySpec policy = policies[seed % 3];
    policy.workspace_bytes = 100'000;
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
    const std::vector<Layer> layers{{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 64}, norm,
                                    {.kind = Kind::global_avg_pool}, {.kind = Kind::linear, .channels = 3}};
    const std::string text = error_of([&] {
      BasicTrainer<Cudnn>(layers, Policy<Workspace<256>>::value, {2, 3, 64, 64}, Sgd{}, {}, {}, Cudnn(std::make_shared<HostLibrary<>>()));
    });
    CHECK(text.starts_with("lrcnn: layer '" + std::string(norm_name(norm.norm)) + "1' ("));
    CHECK(text.find(": what is known of its channels or pixels takes ") != std::string::npos);
    CHECK(text.find(" bytes of workspace, and there are 256; all scratch lies in the plan's workspace; give the policy a larger Workspace, or "
                    "other slabs") != std::string::npos);
  }
}
