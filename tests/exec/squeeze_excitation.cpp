// Squeeze-and-excitation: PyTorch's numbers, parameters named as torchvision's, and rows against columns in a network that has it twice.
//
// The golden numbers are those of PyTorch 2.13: x [2,4,3,5] with (i * 5 % 17) / 8 - 1 for element i; fc1.weight, fc1.bias, fc2.weight and
// fc2.bias likewise with 3, 5, 7, 9 in place of 5, times 0.7, fc1.bias plus 0.5; y = x * sigmoid(fc2(relu(fc1(x.mean((2, 3)))))), and
// y.backward(g), g with 11.
#include "support/run_network.hpp"
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// The gradient that reaches the network's output, whatever the labels.
struct Given {
  static constexpr std::string_view name = "given";
  template <class T>
  void operator()(const View<const T>& z, const Labels&, Index first, const View<T>& dx, double, LossResult& result) const {
    for (Index i = 0; i < z.n; ++i)
      for (Index c = 0; c < z.c; ++c)
        for (Index y = z.row0; y < z.row0 + z.rows; ++y)
          for (Index x = 0; x < z.w; ++x) {
            const Index at = (((first + i) * 4 + c) * 3 + y) * 5 + x;
            const double g = static_cast<double>(at * 11 % 17) / 8 - 1;
            result.sum += g * z(i, c, y, x);
            dx(i, c, y, x) = g;
          }
  }
  double total(const Labels&, const Shape&) const { return 1; }
};
std::vector<double> numbers(Index count, Index by, double factor = 1, double more = 0) {
  std::vector<double> list;
  for (Index i = 0; i < count; ++i) list.push_back((static_cast<double>(i * by % 17) / 8 - 1) * factor + more);
  return list;
}
double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}
using Net = Sequential<SqueezeExcitation<4, 2>>;
}   // namespace
TEST_CASE("squeeze-and-excitation: PyTorch's output and gradients, whole and by rows") {
  const Input input{2, 4, 3, 5};
  const Table table = table_of<Net>(input);
  const auto layout = parameters_of(table);
  REQUIRE(layout.size() == 4);
  std::vector<double> parameters;
  Index by = 3;
  for (const Parameter& p : layout) {
    const auto values = numbers(p.shape.count(), by, 0.7, p.name == "fc1.bias" ? 0.5 : 0);
    parameters.insert(parameters.end(), values.begin(), values.end());
    by += 2;
  }
  const auto x = numbers(120, 5);
  const std::vector<std::int32_t> none(30, 0);
  for (PolicySpec policy :
       {Policy<>::value, Policy<Overlap<3>, RecomputeAll>::value, Policy<Share<2>>::value, Policy<ByImages<1, Share<3>>, RecomputeAll>::value}) {
    CAPTURE(to_string(policy));
    policy.workspace_bytes = 0;
    Reference<double> backend(1);
    std::vector<double> gradients(parameters.size(), std::nan(""));
    Executor<Reference<double>> run(make_plan(table, policy, backend.target, {.input_gradient = true}), backend, parameters.data(), gradients.data());
    CHECK(check_plan(run.plan()).empty());
    static_cast<void>(run.run(MemorySource<double>(x.data(), input), Labels::of_pixels(none, 3, 5), Given{}));
    const auto y = dense_copy<double>(run.output()), dx = dense_copy<double>(run.input_gradient());
    const auto some = [](const std::vector<double>& v) { return std::vector<double>{v[0], v[7], v[33], v[59], v[77], v[119], norm<double>(v)}; };
    CHECK(worst(some(y), {-0.32706648380486619, -0.28618317332925791, 0.15901049314953844, -0.14515880117176019, 0.18764697262614866,
                          -0.58063520468704077, 3.0084987499357645}) < 1e-14);
    CHECK(worst(some(dx), {-0.33230426189095236, 0.035645532389522123, -0.07033913492411846, -0.35765922484331431, 0.37083730584677865,
                           -0.57808855359817302, 3.019694594086975}) < 1e-14);
    CHECK(worst(gradients, {0,
                            0,
                            0,
                            0,
                            -0.0025737591219827469,
                            0.0045475912301210595,
                            -0.0037928686001867367,
                            0.019667467092171372,
                            0,
                            -0.33361839321231185,
                            0,
                            0.35208914173164541,
                            0,
                            0.32320496091919859,
                            0,
                            0.27706355326558385,
                            0,
                            0.37831950478627607,
                            1.434049962080524,
                            1.3164054411643216,
                            1.1284726819472231,
                            1.5408855519508906}) < 1e-14);
  }
}
TEST_CASE("squeeze-and-excitation: names and stages") {
  using Block = Sequential<Conv<32>, Scope<"se", SqueezeExcitation<32, 4, SiLU>>, ReLU, Conv<8>>;
  const Table table = table_of<Block>({1, 3, 20, 12});
  std::string names;
  for (const Parameter& p : parameters_of(table)) names += p.name + extents_text(p.shape) + " ";
  CHECK(names ==
        "conv1.weight[32,3,3,3] conv1.bias[32] se.fc1.weight[8,32] se.fc1.bias[8] se.fc2.weight[32,8] se.fc2.bias[32] "
        "conv4.weight[8,32,3,3] conv4.bias[8] ");
  const auto stages = split_stages(table, Policy<>::value);
  REQUIRE(stages.size() == 3);   // up to the pooling, the factors, and from the product on
  CHECK(stages[0].last == 2);
  CHECK(table.node(stages[2].first).layer.kind == Kind::scale);
  CHECK(make_plan(table, Policy<Share<5>, RecomputeAll>::value).stages[2].backward.slabs() == 5);
}
TEST_CASE("squeeze-and-excitation: by rows as by columns, on residual blocks with batch norms and linear factors") {
  using Linears = Scale<Identity, Sequential<GlobalAvgPool, Linear<3>, Hardswish, Linear<6>, Hardsigmoid>>;
  using Body = Sequential<Conv<6>, BatchNorm, ReLU, Conv<6>, BatchNorm, SqueezeExcitation<6, 3>>;
  using Deep =
      Sequential<Conv<6>, Residual<Body>, ReLU, MaxPool<>, Linears, Conv<6>, Residual<Sequential<Conv<6>, Linears>>, ReLU, GlobalAvgPool, Linear<3>>;
  const Problem<double> problem(Deep::layers, {3, 2, 24, 6}, 8);
  PolicySpec column;
  column.workspace_bytes = 0;
  const auto law = [&](auto backend) {
    const auto whole = run_once(problem, column, backend);
    for (PolicySpec policy :
         {Policy<Overlap<3>, RecomputeAll>::value, Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value, Policy<Share<3>, KeepAll>::value,
          Policy<ExtraPasses<Overlap<2>>, RecomputeAll>::value, Policy<ByImages<2, Overlap<2>>, RecomputeCheap>::value}) {
      CAPTURE(to_string(policy));
      policy.workspace_bytes = 0;
      CHECK(check_plan(make_plan(problem.table, policy, backend.target, {.input_gradient = true})).empty());
      CHECK(worst_difference(problem, run_once(problem, policy, backend), whole) < 1e-11);
    }
  };
  law(Reference<double>(1));
  law(Reference<double, 16, 3>(1));
}
TEST_CASE("the stage of the factors is not cut, and Stages<...> does not count it") {
  using Net = Sequential<Conv<8>, ReLU, Conv<8>, SqueezeExcitation<8, 4>, Conv<8>, GlobalAvgPool, Linear<3>>;
  const Table table = table_of<Net>({2, 3, 16, 8});
  using Cuts = Policy<Stages<Column, Overlap<2>, Overlap<4>>, CheckpointAt<"relu1">, RecomputeAll>;
  const Plan plan = make_plan(table, Cuts::value);
  CHECK(check_plan(plan).empty());
  std::vector<Index> slabs;
  for (const Stage& stage : plan.stages) slabs.push_back(stage.backward.slabs());
  CHECK(slabs == std::vector<Index>{1, 2, 1, 4, 1});   // up to relu1, up to the means, the factors, from the product on, the classifier
}
