// Engines are tried before they serve: those that make wrong numbers, or refuse to run, are passed over. On the pretended device.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "exec/coverage.hpp"
#include "support/thorough.hpp"
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
  CHECK(library->trials > 10);
}
TEST_CASE("what is the caller's is not written by a trial, and is not read where there is room for a stand-in") {
  const auto library = trying_library();
  Cudnn backend(library);
  const Problem<float>& problem = lenet();
  const auto count = static_cast<Index>(problem.parameters.size());
  auto parameters = backend.buffer<float>(count), gradients = backend.buffer<float>(count);
  const std::vector<float> written(problem.parameters.size(), 2.0f);
  backend.write(parameters.data(), std::span<const float>(written));
  backend.write(gradients.data(), std::span<const float>(written));
  const Plan plan = make_plan(problem.table, Rows::value, Cudnn::target);
  const Executor<Cudnn> executor(plan, backend, parameters.data(), gradients.data());
  CHECK(library->trials > 10);
  std::vector<float> read(written.size());
  for (const auto* buffer : {&parameters, &gradients}) {
    backend.read(std::span<float>(read), buffer->data());
    CHECK(read == written);
  }
  const auto list = parameters_of(plan.table);
  for (const Step& step : plan.steps) {
    const auto o =
        operands_of<float>(plan, step, list, {const_cast<std::byte*>(executor.arena().data()), parameters.data(), gradients.data(), nullptr});
    if (!cudnn::is_convolution(o) || o.node->layer.kind != Kind::linear) continue;
    const auto problem_of_step = cudnn::problem_of(o, Precision::fp32);
    float* const w = o.op == Op::backward_parameters ? o.d_parameters[0] : const_cast<float*>(o.parameters[0]);
    const auto offset = static_cast<Index>(reinterpret_cast<std::uintptr_t>(w) % 256);
    const Index filter_end = offset + cudnn::filter_elements(*o.node) * Index{sizeof(float)};
    // Behind the stand-in the engine's own workspace begins at a multiple of 256 bytes: one byte less than that leaves no room.
    for (const Index bytes : {o.workspace_bytes, round_up(filter_end, 256) + 16 - 1, Index{1024}}) {
      auto step_operands = o;
      step_operands.workspace_bytes = bytes;
      const bool room = bytes == o.workspace_bytes;
      const auto memory = cudnn::trial_memory(step_operands, cudnn::Piece{problem_of_step}, w, o.parameters[1], false, 16);
      if (!room && o.op == Op::backward_parameters) {
        CHECK(!memory);
        continue;
      }
      REQUIRE(memory);
      CHECK(memory->draws_weights == room);
      CHECK((memory->w == w) == !room);
      CHECK(reinterpret_cast<std::uintptr_t>(memory->w) % 256 == reinterpret_cast<std::uintptr_t>(w) % 256);
      const auto* const end = reinterpret_cast<const std::byte*>(memory->w + cudnn::filter_elements(*o.node));
      CHECK((!room || (reinterpret_cast<std::byte*>(memory->w) >= o.workspace && end <= static_cast<std::byte*>(memory->workspace))));
      CHECK(static_cast<std::byte*>(memory->workspace) + 16 <= o.workspace + o.workspace_bytes);
    }
  }
}
TEST_CASE("a device that fails while an engine is tried is an error, and no fault of the engine's") {
  const auto library = trying_library();
  Cudnn warm(library);
  const Index before = library->calls;
  static_cast<void>(error_of(warm));
  const Index calls = library->calls - before;
  Index failed = 0;
  for (Index k = static_cast<Index>(day() % 4) * (thorough() ? 0 : 7); k < calls; k += cases_to_do<Index>(7, 28)) {
    const auto failing = trying_library();
    failing->fail_at = k;
    Cudnn backend(failing);
    try {
      static_cast<void>(error_of(backend));
    } catch (const Error&) {
      ++failed;
    }
    CHECK(backend.tuner().passed_over().size() <= 1);   // of an engine whose own call it is
  }
  CHECK(failed > cases_to_do(10, 5));
}
TEST_CASE("padding that no window reaches is made the same on both sides, and no other") {
  Node node{
      .layer = {.kind = Kind::conv, .window = {.kernel = 7, .stride = 2, .pad = 3}, .channels = 2}, .in = {1, 2, 32, 32}, .out = {1, 2, 16, 16}};
  std::vector<float> x(2048), y(512), w(196);
  Operands<float> o;
  o.node = &node, o.op = Op::forward;
  o.parameters[0] = w.data();
  o.x = dense_view(x.data(), 1, 2, {0, 32}, 32, 2), o.y = dense_view(y.data(), 1, 2, {0, 16}, 16, 2);
  CHECK(cudnn::problem_of(o, Precision::fp32).pad == Pad(3, 3, 3, 3));   // three rows above, two below that windows reach
  o.x = dense_view(x.data(), 1, 2, {0, 20}, 32, 2), o.y = dense_view(y.data(), 1, 2, {0, 8}, 16, 2);
  const Pad top = cudnn::problem_of(o, Precision::fp32).pad;
  CHECK(top.top == 3);
  CHECK(top.bottom == 0);
  node.layer.window = {.kernel = {2, 1}, .stride = {3, 1}, .pad = {1, 0}}, node.in = {1, 2, 30, 4}, node.out = {1, 2, 11, 4};
  o.x = dense_view(x.data(), 1, 2, {29, 30}, 4, 2), o.y = dense_view(y.data(), 1, 2, {10, 11}, 4, 2);
  CHECK(cudnn::problem_of(o, Precision::fp32).pad == Pad(0, 1, 0, 0));   // a window over one row and one of padding
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
TEST_CASE("with tuning on, an engine that is built and then refuses to run is passed over, whether it was tried before or not") {
  for (const bool tries : {true, false}) {
    const auto library = trying_library();
    library->tries_engines = tries;
    library->refuses_to_run = "b";
    Cudnn backend(library, {.on = true});
    CHECK(error_of(backend) <= 1e-5);
    CHECK(backend.tuner().tried() > 8);
    CHECK(backend.tuner().passed_over().at(0).ends_with(": misaligned"));
    library->refuses_to_run = "a", library->seconds = {{"a", 1e-3}};
    Cudnn none(library, {.on = true});
    CHECK_THROWS_WITH_AS(error_of(none), doctest::Contains("(engine a: misaligned)"), BackendError);
    CHECK(none.tuner().tried() == 0);
  }
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
