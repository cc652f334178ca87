// SlabBatchNorm: with one slab BatchNorm's training step; with more another model, whose gradients are its own differences.
#include "support/run_network.hpp"
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/network/sequential.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class Norm>
using Net = Sequential<Conv<5>, Norm, ReLU, Conv<4>, Norm, SiLU, MaxPool<>, Conv<3>, GlobalAvgPool, Linear<3>>;
using Options = NormOptions;
using Whole = Net<BatchNormWith<>>;
using Slabs = Net<SlabBatchNorm>;
constexpr Input input{3, 2, 14, 6};
/// The gradients of all parameters that are none of running statistics, in their order.
std::vector<double> learned(const Problem<double>& problem, const Outcome<double>& outcome) {
  std::vector<double> list;
  for (const Parameter& p : problem.layout)
    if (!p.shape.running)
      for (const double g : elements_of(p, std::span<const double>(outcome.gradients))) list.push_back(g);
  return list;
}
/// A problem of the first network with the parameters of one of the second, by name.
Problem<double> like(const Problem<double>& other) {
  Problem<double> problem(Slabs::layers, input, 4);
  for (const Parameter& p : problem.layout) {
    const std::string name = p.name.starts_with("slab_") ? p.name.substr(5) : p.name;
    const Parameter* from = find_parameter(other.layout, name);
    REQUIRE(from != nullptr);
    const auto values = elements_of(*from, std::span<const double>(other.parameters));
    std::ranges::copy(values, elements_of(p, std::span<double>(problem.parameters)).begin());
  }
  problem.images = other.images, problem.labels = other.labels;
  return problem;
}
PolicySpec without_workspace(PolicySpec policy) {
  policy.workspace_bytes = 0;
  return policy;
}
template <class B>
void one_slab(double tolerance) {
  const Problem<double> whole(Whole::layers, input, 4), slabs = like(whole);
  B backend(2);
  for (const PolicySpec& policy : {Policy<>::value, Policy<RecomputeAll>::value, Policy<Share<1>, RecomputeCheap>::value}) {
    const auto a = run_once(slabs, without_workspace(policy), backend), b = run_once(whole, without_workspace(Policy<>::value), backend);
    CHECK(distance<double>(a.output, b.output) <= tolerance * norm<double>(b.output));
    CHECK(distance<double>(a.input_gradient, b.input_gradient) <= tolerance * norm<double>(b.input_gradient));
    const auto mine = learned(slabs, a), theirs = learned(whole, b);
    REQUIRE(mine.size() == theirs.size());
    CHECK(distance<double>(mine, theirs) <= tolerance * norm<double>(theirs));
  }
}
}   // namespace
TEST_CASE("slab batch norm: with one slab it is batch norm") {
  one_slab<Reference<double>>(1e-12);
  one_slab<Reference<double, 16, 3>>(1e-12);
  one_slab<Reference<double, 3>>(1e-12);
}
TEST_CASE("slab batch norm: with more slabs, of rows or images, it is another model") {
  const Problem<double> whole(Whole::layers, input, 4), slabs = like(whole);
  Reference<double> backend(1);
  const auto expected = run_once(whole, without_workspace(Policy<>::value), backend);
  std::vector<std::vector<double>> outputs{expected.output};
  for (const PolicySpec& policy : {Policy<Overlap<2>, RecomputeAll>::value, Policy<Share<2>, RecomputeAll>::value, Policy<Overlap<3>>::value,
                                   Policy<ByImages<1, Column>>::value}) {
    const auto rows = run_once(slabs, without_workspace(policy), backend);
    for (const auto& other : outputs) CHECK(distance<double>(rows.output, other) > 1e-3 * norm<double>(other));
    outputs.push_back(rows.output);
  }
}
TEST_CASE("slab batch norm: gradients are the differences of the model that the policy makes") {
  Problem<double> problem = like(Problem<double>(Whole::layers, input, 4));
  Reference<double> backend(1);
  for (const PolicySpec& spec : {Policy<>::value, Policy<Overlap<3>, RecomputeAll>::value, Policy<Share<2>, RecomputeAll>::value,
                                 Policy<Share<2>, KeepAll>::value, Policy<ByImages<2, Overlap<2>>, RecomputeCheap>::value}) {
    const PolicySpec policy = without_workspace(spec);
    CAPTURE(to_string(policy));
    const auto outcome = run_once(problem, policy, backend);
    const double whole = std::hypot(norm<double>(outcome.gradients), norm<double>(outcome.input_gradient));
    Index kinks = 0, entries = 0;
    const auto check = [&](std::vector<double>& values, const std::vector<double>& gradient, std::size_t every) {
      for (std::size_t i = 0; i < values.size(); i += every) {
        const double here = values[i];
        const auto slope = [&](double h) {
          values[i] = here + h;
          const double above = run_once(problem, policy, backend, false).loss.mean();
          values[i] = here - h;
          const double below = run_once(problem, policy, backend, false).loss.mean();
          values[i] = here;
          return (above - below) / (2 * h);
        };
        const double coarse = slope(2e-5), fine = slope(4e-6);
        ++entries;
        if (std::abs(coarse - fine) > 1e-7) ++kinks;
        else CHECK(std::abs(coarse - gradient[i]) <= 1e-6 * whole);
      }
    };
    check(problem.parameters, outcome.gradients, 7);
    check(problem.images, outcome.input_gradient, 17);
    CHECK(kinks * 20 < entries);
  }
}
