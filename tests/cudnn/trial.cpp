// Engines are tried before they serve: those that make wrong numbers, or refuse to run, are passed over. On the pretended device.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "exec/coverage.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>>;
std::shared_ptr<HostLibrary<>> trying_library() {
  const auto library = std::make_shared<HostLibrary<>>();
  library->tries_engines = true;
  return library;
}
const Problem<float>& lenet() {
  static const Problem<float> problem(LeNet<10>::layers, {4, 1, 28, 28}, 4);
  return problem;
}
/// How far gradients by rows are from those of the whole map by engines that are right.
double error_of(Cudnn& backend) {
  Cudnn right(std::make_shared<HostLibrary<>>());
  const Outcome<float> whole = DeviceRun<Cudnn>(lenet(), Policy<Column, Workspace<1_MiB>>::value, right)();
  return worst_difference(lenet(), DeviceRun<Cudnn>(lenet(), Rows::value, backend)(), whole);
}
/// Networks with every feature, under policies with every part: engines that are right are never passed over.
template <class B>
double worst_of_right_engines(std::uint64_t first) {
  double worst = 0;
  Index built = 0;
  for (std::size_t f = 0; f < feature_count; ++f) {
    Dice dice(first + f);
    const RandomNetwork net = network_with(dice, features[f], dice.chance(0.3));
    if (std::any_of(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::custom; })) continue;
    const Problem<float> problem(net.layers, net.input, f);
    PolicySpec policy = policy_with(dice, parts[f % part_count], net, B::target);
    policy.workspace_bytes = 100'000;
    const auto library = std::make_shared<HostLibrary<typename B::element>>();
    library->tries_engines = true;
    B backend(library);
    INFO("feature ", std::string(features[f]), " ", to_string(policy));
    try {
      DeviceRun<B> run(problem, policy, backend);
    } catch (const PlanError&) {
      continue;
    }
    CHECK(backend.tuner().passed_over().empty());
    worst = std::max(worst, library->worst_trial);
    built += library->built;
  }
  CHECK(built > 120);
  return worst;
}
}   // namespace
TEST_CASE("an engine that takes the padding above for the one below spoils gradients, unless it is tried first") {
  const auto library = trying_library();
  library->wrong = "a";
  library->tries_engines = false;
  Cudnn trusting(library);
  CHECK(error_of(trusting) > 1e-2);
  library->tries_engines = true;
  Cudnn trying(library);
  CHECK(error_of(trying) <= 1e-5);
  const auto& passed_over = trying.tuner().passed_over();
  REQUIRE(passed_over.size() > 3);
  CHECK(passed_over[0].starts_with("a for "));
  CHECK(passed_over[0].ends_with(": its numbers are wrong"));
  CHECK(std::any_of(passed_over.begin(), passed_over.end(), [](const auto& t) { return t.find("backward_parameters") != std::string::npos; }));
  Cudnn told_not_to(cudnn::DeviceOptions{.try_engines = false});
  CHECK(error_of(told_not_to) <= 1e-5);   // opens a library whose engines are right
}
TEST_CASE("an engine that refuses to run is passed over; where all do, the error names the layer and what the last one said") {
  const auto library = trying_library();
  library->refuses_to_run = "a";
  Cudnn backend(library);
  CHECK(error_of(backend) <= 1e-5);
  CHECK(backend.tuner().passed_over().at(0).ends_with(": misaligned"));
  library->seconds = {{"a", 1e-3}};
  Cudnn none(library);
  CHECK_THROWS_WITH_AS(error_of(none), doctest::Contains("layer 'conv1'"), BackendError);
  CHECK_THROWS_WITH_AS(error_of(none), doctest::Contains("(engine a: misaligned)"), BackendError);
}
TEST_CASE("with tuning on, an engine that is wrong is not timed, however fast it is") {
  const auto library = trying_library();
  library->wrong = "b";   // the fastest
  Cudnn backend(library, {.on = true});
  CHECK(error_of(backend) <= 1e-5);
  CHECK(backend.tuner().tried() > 8);
  CHECK(!backend.tuner().passed_over().empty());
}
TEST_CASE("engines that are right pass by a wide margin in every precision, whatever the convolution") {
  CHECK(worst_of_right_engines<Cudnn>(41000) < 0.1);
  CHECK(worst_of_right_engines<CudnnTf32>(41100) < 0.1);
  CHECK(worst_of_right_engines<CudnnFp16>(41200) < 0.6);   // results are rounded once, which makes half a unit
  CHECK(worst_of_right_engines<CudnnBf16>(41300) < 0.6);
}
TEST_CASE("engines of cuDNN's that are known not to serve a problem are those of the same number") {
  cudnn::Problem p{.op = Op::backward_parameters, .pad = {1, 0, 1, 1}};
  for (const char* name : {"eng1", "eng1_k2=6_k3=0", "eng18_k11=0"}) CHECK(cudnn::known_not_to_serve(p, name));
  for (const char* name : {"eng0", "eng10", "eng11_k2=4_k3=0", "eng180", "eng39"}) CHECK(!cudnn::known_not_to_serve(p, name));
  p.pad = 1;
  CHECK(!cudnn::known_not_to_serve(p, "eng1"));
  p.op = Op::forward, p.alignment = 8;
  CHECK(cudnn::known_not_to_serve(p, "eng39_k25=2"));
  CHECK(!cudnn::known_not_to_serve(p, "eng11"));
  p.alignment = 16, p.bias_alignment = 4;
  CHECK(!cudnn::known_not_to_serve(p, "eng39"));   // there is no bias
  p.bias = true;
  CHECK(cudnn::known_not_to_serve(p, "eng39"));
}
