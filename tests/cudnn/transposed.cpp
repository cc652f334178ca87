// Transposed convolutions on the pretended device, as the gradients of the convolutions that they are: random windows, groups, dilations and
// slabs of several images, against the reference, under policies that cut rows where windows are cut.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "support/random_graph.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const std::vector<PolicySpec> policies{Policy<Column>::value, Policy<Share<3>, RecomputeAll>::value, Policy<Overlap<4>, CheckpointEvery<2>>::value,
                                       Policy<ByImages<1, Share<2>>>::value, Policy<Images<2>, Overlap<3, 2>>::value};
/// conv, transposed conv, activation, perhaps another transposed conv, global pooling, linear.
std::vector<Layer> network(Dice& dice, const Input& input) {
  GraphBuilder build(dice, input);
  build.add(build.conv(dice.pick<Index>({2, 4}), true));
  for (Index i = dice.upto(1, 2); i > 0; --i) {
    const Index before = build.size();
    while (build.size() == before) build.transposed();
    build.add(build.activation());
  }
  build.add({.kind = Kind::global_avg_pool});
  build.add({.kind = Kind::linear, .channels = 3, .bias = true});
  return build.layers;
}
}   // namespace
TEST_CASE("a transposed convolution under any policy gives what the reference gives") {
  Index cases = 0, grouped = 0, strided = 0, dilated = 0;
  double worst = 0;
  for (std::uint64_t seed = 0; cases < 200; ++seed) {
    Dice dice(7000 + seed);
    const Input input{dice.upto(1, 3), dice.upto(1, 3), dice.upto(4, 12), dice.upto(2, 6)};
    const auto layers = network(dice, input);
    const Problem<float> problem(layers, input, seed);
    Reference<float, Target::all_channels> reference;
    PolicySpec column;
    column.workspace_bytes = 1_MiB;
    const Outcome<float> wanted = run_once(problem, column, reference);
    const auto library = std::make_shared<HostLibrary<>>();
    library->fuses_bias = seed % 2 == 0;
    Cudnn backend(library);
    PolicySpec policy = policies[seed % policies.size()];
    policy.workspace_bytes = 1_MiB;
    INFO("seed ", seed, ", ", to_string(policy));
    try {
      DeviceRun<Cudnn> run(problem, policy, backend);
      for (int turn = 0; turn < 3; ++turn) {
        const double difference = worst_difference(problem, run(), wanted);
        CHECK(difference <= 1e-5);
        worst = std::max(worst, difference);
      }
    } catch (const PlanError&) {
      continue;
    }
    ++cases;
    for (const Layer& y : layers)
      if (y.kind == Kind::conv_transpose) grouped += y.groups > 1, strided += y.window.stride.h > 1, dilated += y.window.dilation.h > 1;
  }
  MESSAGE(cases, " cases, ", grouped, " in groups, ", strided, " with a stride, ", dilated, " dilated; worst difference ", worst);
  CHECK(std::min({grouped, strided, dilated}) > 25);
}
TEST_CASE("with tensors in 16 bits filters are rounded, and gradients added up in 32") {
  const std::vector<Layer> layers{
      Conv<4>::layer(), ReLU::layer(), ConvTranspose<4>::layer(), {.kind = Kind::global_avg_pool}, {.kind = Kind::linear, .channels = 3}};
  const Problem<float> problem(layers, {2, 3, 8, 6}, 5);
  Reference<float, Target::all_channels> reference;
  PolicySpec policy = Policy<Share<3>, RecomputeAll>::value;
  policy.workspace_bytes = 1_MiB;
  const Outcome<float> wanted = run_once(problem, policy, reference);
  CudnnFp16 fp16(std::make_shared<HostLibrary<float16>>());
  CudnnBf16 bf16(std::make_shared<HostLibrary<bfloat16>>());
  CHECK(worst_difference(problem, DeviceRun<CudnnFp16>(problem, policy, fp16)(), wanted) <= 1e-2);
  CHECK(worst_difference(problem, DeviceRun<CudnnBf16>(problem, policy, bf16)(), wanted) <= 8e-2);
}
TEST_CASE("to the library it is the other operation, of the rows that windows reach, image by image where rows lie between") {
  Layer up{.kind = Kind::conv_transpose, .window = {.kernel = 3, .stride = 2, .pad = 1}, .channels = 6};
  up.name = "up";
  const Node node{.layer = up, .in = {2, 4, 5, 5}, .out = output_shape(up, {2, 4, 5, 5})};
  REQUIRE(node.out == Shape{2, 6, 9, 9});
  std::vector<float> memory(2000);
  const auto all_x = dense_view(memory.data(), 2, 4, {0, 5}, 5, 4), all_y = dense_view(memory.data() + 500, 2, 6, {0, 9}, 9, 6);
  Operands<float> o;
  o.node = &node, o.op = Op::forward;
  o.x = all_x.slice({1, 4}), o.y = all_y.slice({3, 6});   // rows 3, 4 and 5 of y: of x rows 1 (tap 2) to 3 (tap 0)
  cudnn::Problem p = cudnn::problem_of(o, Precision::fp32);
  CHECK(cudnn::to_string(p).starts_with("backward_data Fp32 x 1x6x3x9 y 1x4x3x5 kernel 3x3 stride 2x2 dilation 1x1 pad 2,2,1,1 groups 1"));
  o.x = all_x, o.y = all_y;
  p = cudnn::problem_of(o, Precision::fp32);
  CHECK((p.n == 2 && p.h == 9 && p.p == 5 && p.pad == Pad(1, 1, 1, 1)));
  o.op = Op::backward_data;
  o.dx = all_x, o.dy = all_y.slice({8, 9});   // the last row of y comes from the last of x
  p = cudnn::problem_of(o, Precision::fp32);
  CHECK((p.op == Op::forward && p.n == 1 && p.h == 1 && p.p == 1));
  CHECK(cudnn::sides_of(o).written().range() == Range{4, 5});
}
