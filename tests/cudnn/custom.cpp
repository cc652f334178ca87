// A program's own layers on the pretended device, where their loops run on the host: the same results as the host's functions, by any policy.
#include "cudnn/custom_law.hpp"
#include "cudnn/host_library.hpp"
#include "exec/finite_differences.hpp"
#include "support/run_network.hpp"
#include <lrcnn/backend/cudnn/custom_loops.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class B>
void law(double against_reference, double against_column) {
  own_layers_law([] { return B(std::make_shared<HostLibrary<typename B::element>>()); }, 100'000, against_reference, against_column, true);
}
}   // namespace
TEST_CASE("layers of a program's own run on a device as on the host") {
  law<Cudnn>(2e-6, 2e-6);
  law<CudnnBf16>(0.08, 0.05);
}
TEST_CASE("on the host their gradients are those of finite differences, by any policy") {
  const Problem<double> problem(OwnLayersNet::layers, own_layers_input, 7);
  Reference<double> reference;
  const Outcome<double> column = run_once(problem, PolicySpec{}, reference);
  Index kinks = 0;
  CHECK(worst_entry(differences_of(problem, SoftmaxCrossEntropy{}), column, kinks) <= 1e-6);
  CHECK(kinks * 20 < static_cast<Index>(problem.parameters.size() + problem.images.size()));
  for (const PolicySpec& policy : own_layers_policies) CHECK(worst_difference(problem, run_once(problem, policy, reference), column) <= 1e-12);
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
