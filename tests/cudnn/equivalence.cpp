// The CUDA backend on a pretended device: it gives what the reference gives, by any policy, and row by row what it gives
// layer by layer; and it does so without waiting within a step.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "exec/coverage.hpp"
#include "exec/declared.hpp"
#include "support/run_network.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
static_assert(Backend<Cudnn>);
static_assert(Backend<CudnnTf32>);
namespace {
template <class B>
Outcome<float> run_on_device(const Problem<float>& problem, const PolicySpec& policy,
                             const std::shared_ptr<HostLibrary<typename B::element>>& library) {
  B backend(library);
  DeviceRun<B> run(problem, policy, backend);
  struct Waits {
    HostLibrary<typename B::element>& library;
    Index count = library.waits;
    void before(const Plan&, Index) { CHECK(library.waits == count); }   // no step waits
    void after(const Plan&, Index) {}
  };
  return run(Waits{*library});
}
/// Runs networks with every feature, under some policies each.
template <class B>
void law(std::uint64_t first, std::uint64_t rounds, double column_tolerance, double reference_tolerance) {
  Index cases = 0;
  double against_rows = 0, against_reference = 0;
  for (std::uint64_t seed = 0; seed < rounds; ++seed)
    for (std::size_t f = 0; f < feature_count; ++f) {
      Dice dice(first + seed * 100 + f);
      const RandomNetwork net = network_with(dice, features[f], false);
      if (std::any_of(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::custom; })) continue;
      const Problem<float> problem(net.layers, net.input, seed);
      const auto library = std::make_shared<HostLibrary<typename B::element>>();
      library->fuses_bias = seed % 3 != 2, library->fuses_relu = seed % 3 == 0;
      PolicySpec column;
      column.workspace_bytes = 100'000;
      const Outcome<float> whole = run_on_device<B>(problem, column, library);
      Reference<float, Target::all_channels> reference;
      against_reference = std::max(against_reference, worst_difference(problem, whole, run_once(problem, column, reference)));
      for (int i = 0; i < 3; ++i) {
        PolicySpec policy = policy_with(dice, parts[static_cast<std::size_t>(dice.upto(0, part_count - 1))], net, B::target);
        policy.workspace_bytes = 100'000;
        add_workspaces(dice, policy, {100'000});
        INFO("feature ", std::string(features[f]), " ", to_string(policy));
        try {
          static_cast<void>(make_plan(problem.table, policy, B::target));
        } catch (const PlanError&) {
          continue;
        }
        const Outcome<float> rows = run_on_device<B>(problem, policy, library);
        const double difference = worst_difference(problem, rows, whole);
        CHECK(difference <= column_tolerance);
        CHECK(rows.output == whole.output);
        against_rows = std::max(against_rows, difference);
        ++cases;
      }
      CHECK(library->used == 0);   // all memory has been given back
    }
  MESSAGE(cases, " cases; worst difference of rows to column ", against_rows, ", to the reference ", against_reference);
  CHECK(against_reference <= reference_tolerance);
  CHECK(cases > static_cast<Index>(30 * rounds));
}
}   // namespace
TEST_CASE("the CUDA backend gives what the reference gives, row by row and layer by layer") { law<Cudnn>(9000, 12, 1e-5, 1e-5); }
TEST_CASE("likewise with tensors in bf16") { law<CudnnBf16>(9000, 4, 1e-1, 1e-1); }
TEST_CASE("likewise with tensors in fp16") { law<CudnnFp16>(9000, 4, 1e-2, 3e-2); }
TEST_CASE("no step on the pretended device goes where it has not declared to go") {
  Index steps = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Dice dice(9700 + seed);
    const RandomNetwork net = network_with(dice, features[seed % 25], false);
    if (std::any_of(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::custom; })) continue;
    const Problem<float> problem(net.layers, net.input, seed);
    PolicySpec policy = Policy<Share<2>, Images<2>, CheckpointEvery<3>, RecomputeAll>::value;
    policy.workspace_bytes = 100'000;
    Cudnn backend(std::make_shared<HostLibrary<>>());
    try {
      DeviceRun run(problem, policy, backend);
      Guard guard(run.executor().plan(), backend, run.executor().arena());
      const Outcome<float> free = run();
      run.poison();
      CHECK(worst_difference(problem, run(guard), free) == 0);
      CHECK(guard.problem() == "");
      steps += static_cast<Index>(run.executor().plan().steps.size());
    } catch (const PlanError&) {   // rows too few to be cut
    }
  }
  CHECK(steps > 300);
}
TEST_CASE("on several streams results are those of one, to the bit; without waits they would not be") {
  Index cases = 0, spoilt = 0;
  for (std::uint64_t seed = 0; cases < 150; ++seed) {
    Dice dice(44000 + seed);
    const RandomNetwork net = network_with(dice, features[seed % feature_count], false);
    if (std::any_of(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::custom; })) continue;
    const Problem<float> problem(net.layers, net.input, seed);
    PolicySpec policy = policy_with(dice, parts[static_cast<std::size_t>(dice.upto(0, part_count - 1))], net, Cudnn::target);
    policy.workspace_bytes = 100'000;
    policy.streams = 1, policy.prefetch = false;
    PolicySpec several = policy;
    several.streams = dice.upto(1, 3);
    several.prefetch = several.streams == 1 || dice.chance(0.3);
    INFO("seed ", seed, " ", to_string(several));
    try {
      if (stream_count(make_plan(problem.table, several, Cudnn::target)) == 1) continue;
    } catch (const PlanError&) {
      continue;
    }
    const auto library = std::make_shared<HostLibrary<>>();
    Cudnn backend(library);
    DeviceRun<Cudnn> one(problem, policy, backend), many(problem, several, backend);
    const Outcome<float> want = one();
    for (int i = 0; i < 3; ++i) {   // step by step, recorded, started again
      const Outcome<float> got = many();
      CHECK(got.loss == want.loss);
      CHECK(got.output == want.output);
      CHECK(got.gradients == want.gradients);
      CHECK(got.input_gradient == want.input_gradient);
    }
    library->ignores_waits = true;
    many.poison();
    try {
      spoilt += !(many().gradients == want.gradients);
    } catch (const NumericError&) {
      ++spoilt;
    }
    ++cases;
  }
  MESSAGE(cases, " cases; without waits ", spoilt, " are spoilt");
  CHECK(spoilt * 3 > cases * 2);
}
