// A program's own layers on the pretended device, where their loops run on the host: the same results as the host's functions, by any policy.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "exec/finite_differences.hpp"
#include "support/element_layers.hpp"
#include "support/run_network.hpp"
#include <lrcnn/backend/cudnn/custom_loops.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Pool = ElementLayer<EnergyPool, Window{.kernel = 3, .stride = 2, .pad = 1}>;
using Net = Sequential<Conv<5>, ElementLayer<Gain>, ReLU, Pool, Pointwise<Elu>, Conv<4>, Pointwise<Elu>,
                       ElementLayer<EnergyPool, Window{.kernel = {2, 3}, .stride = {2, 1}, .pad = {0, 1}}>, GlobalAvgPool, Linear<3>>;
constexpr Input input{3, 2, 26, 9};
template <class B>
Outcome<float> run_on_device(const Problem<float>& problem, PolicySpec policy) {
  policy.workspace_bytes = 100'000;
  B backend(std::make_shared<HostLibrary<typename B::element>>());
  DeviceRun<B> run(problem, policy, backend);
  return run();
}
const std::vector<PolicySpec> policies{Policy<Overlap<3>>::value,
                                       Policy<Share<3>, RecomputeAll>::value,
                                       Policy<Share<5>, RecomputeCheap>::value,
                                       Policy<Share<4>, RecomputeAll, CheckpointAt<"energy_pool1">>::value,
                                       Policy<ByImages<1, Overlap<2>>, RecomputeAll>::value,
                                       Policy<Images<1>, Share<2>>::value};
template <class B>
void law(double against_reference, double against_column) {
  const Problem<float> problem(Net::layers, input, 3);
  const Outcome<float> column = run_on_device<B>(problem, PolicySpec{});
  Reference<float, Target::all_channels> reference;
  CHECK(worst_difference(problem, column, run_once(problem, PolicySpec{}, reference)) <= against_reference);
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    const Outcome<float> rows = run_on_device<B>(problem, policy);
    CHECK(worst_difference(problem, rows, column) <= against_column);
    CHECK(rows.output == column.output);
  }
}
}   // namespace
TEST_CASE("layers of a program's own run on a device as on the host") {
  law<Cudnn>(2e-6, 2e-6);
  law<CudnnBf16>(0.08, 0.05);
}
TEST_CASE("on the host their gradients are those of finite differences, by any policy") {
  const Problem<double> problem(Net::layers, input, 7);
  Reference<double> reference;
  const Outcome<double> column = run_once(problem, PolicySpec{}, reference);
  Index kinks = 0;
  CHECK(worst_entry(differences_of(problem, SoftmaxCrossEntropy{}), column, kinks) <= 1e-6);
  CHECK(kinks * 20 < static_cast<Index>(problem.parameters.size() + problem.images.size()));
  for (const PolicySpec& policy : policies) CHECK(worst_difference(problem, run_once(problem, policy, reference), column) <= 1e-12);
}
TEST_CASE("the gradient of many elements loses none, and goes on from what is there") {
  const auto* loops = custom_on_device<float>(ElementLayer<Gain>::layer());
  REQUIRE(loops != nullptr);
  const Index rows = 700, columns = 600, channels = 3;   // many pieces, more than 32 positions each
  const Shape shape{2, channels, rows, columns};
  std::vector<float> x(static_cast<std::size_t>(shape.count()), 0.1f), dy(x.size(), 1.0f);
  const Layer layer = ElementLayer<Gain>::layer();
  std::vector<float> gradient{1, 2, 3};
  const std::vector<float> weights(3, 1.0f);
  const float* const parameters[]{weights.data()};
  float* const gradients[]{gradient.data()};
  const auto view = [&](std::vector<float>& all) { return View<const float>(dense_view(all.data(), 2, channels, {0, rows}, columns, channels)); };
  std::vector<double> workspace(static_cast<std::size_t>(loops->workspace_bytes(view(dy))) / sizeof(double));
  const auto run = [&](bool accumulate) {
    loops->backward_parameters({layer, shape, shape, view(x), {}, view(dy), {}, parameters, gradients}, accumulate,
                               reinterpret_cast<std::byte*>(workspace.data()), nullptr);
  };
  const double sum = 2.0 * rows * columns * static_cast<double>(0.1f);
  run(true);
  for (int c = 0; c < 3; ++c) CHECK(gradient[static_cast<std::size_t>(c)] == static_cast<float>(sum + c + 1));
  run(false);
  for (int c = 0; c < 3; ++c) CHECK(gradient[static_cast<std::size_t>(c)] == static_cast<float>(sum));
}
