// Layers, an activation and a loss of a user's own (exec/user_layers.hpp: a vertical blur with a learnable factor for
// each channel, softplus by Pointwise, tanh that keeps its output) go all the way that the library's own go: named,
// planned as a constant expression, checked, run row by row, differentiated, trained.
#include "exec/finite_differences.hpp"
#include "exec/user_layers.hpp"
#include <lrcnn/layer/concepts.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/plan/peak.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using HalfBlur = Blur<Window{.kernel = {2, 1}, .stride = {2, 1}}>;
using Net = Sequential<Conv<4>, Softplus, Blur<>, MaxPool<>, Named<"middle", Conv<3>>, Tanh, HalfBlur, Conv<4>, Softplus, GlobalAvgPool, Linear<3>>;
constexpr Input input{2, 2, 24, 6};
using Plain = Policy<Column, Workspace<0>>;
const std::vector<PolicySpec> policies{Policy<Overlap<3>, Workspace<0>>::value,
                                       Policy<Share<3>, RecomputeAll, Workspace<0>>::value,
                                       Policy<Share<5>, RecomputeCheap, CheckpointAtPools, Workspace<0>>::value,
                                       Policy<Overlap<4>, RecomputeCheap, WinogradConv, Workspace<0>>::value,
                                       Policy<Share<4>, RecomputeCheap, WinogradConv, CheckpointAtPools, Workspace<0>>::value,
                                       Policy<Share<2, 4>, RecomputeAll, CheckpointAt<"blur1", "middle">, Workspace<0>>::value,
                                       Policy<ByImages<1, Overlap<2>>, RecomputeAll, CheckpointAt<"tanh1">, Workspace<0>>::value,
                                       Policy<Stages<Share<3>, Column>, CheckpointAt<"softplus1">, Images<1>, RecomputeAll, Workspace<0>>::value,
                                       Policy<Share<2>, CheckpointEvery<1>, Workspace<0>>::value};
static_assert(peak_bytes<Net, Policy<Share<3>, RecomputeAll>>(input) < peak_bytes<Net, Policy<Column>>(input));
/// One step under any loss.
template <class B, class L>
Outcome<double> run_with(const Problem<double>& problem, const PolicySpec& policy, const L& loss) {
  B backend(1);
  Outcome<double> outcome;
  outcome.gradients.assign(problem.parameters.size(), std::nan(""));
  Executor<B> executor(make_plan(problem.table, policy, B::target, {.input_gradient = true}), backend, problem.parameters.data(),
                       outcome.gradients.data());
  const MemorySource<double> source(problem.images.data(), problem.table.input);
  outcome.loss = executor.run(source, problem.labels, loss);
  outcome.output = dense_copy<double>(executor.output());
  outcome.input_gradient = dense_copy<double>(executor.input_gradient());
  return outcome;
}
template <class B, class L>
void law_of_loss(const L& loss) {
  const Problem<double> problem(Net::layers, input, 5);
  const Outcome<double> column = run_with<B>(problem, Plain::value, loss);
  Index kinks = 0;
  CHECK(worst_entry(differences_of(problem, loss), column, kinks) <= 1e-6);
  CHECK(kinks * 100 < static_cast<Index>(problem.parameters.size() + problem.images.size()));
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    const Outcome<double> rows = run_with<B>(problem, policy, loss);
    CHECK(worst_difference(problem, rows, column) <= 1e-12);
    CHECK(rows.loss == column.loss);
    CHECK(rows.output == column.output);
  }
}
const DistanceToTarget to_targets{{{1, 0, 0}, {0, 1, 0}, {0.5, 0.25, -1}}};
}   // namespace
TEST_CASE("custom layers have names, parameters and row rules like any other") {
  const Table table = table_of<Net>(input);
  CHECK(table.node(1).layer.name == Name("softplus1"));
  CHECK(table.node(2).layer.name == Name("blur1"));
  CHECK(table.node(2).out == Shape{2, 4, 24, 6});
  CHECK(table.node(6).out == Shape{2, 3, 6, 3});
  const auto layout = parameters_of(table);
  const Parameter* scale = find_parameter(layout, "blur2.scale");
  REQUIRE(scale != nullptr);
  CHECK(scale->shape.count() == 3);
  CHECK(describe(table.node(6).layer) == "blur, kernel 2x1 stride 2x1 pad 0,0,0,0 dilation 1x1");
}
TEST_CASE("custom layers: plans are sound under every policy") {
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    const Plan plan = make_plan(table_of<Net>(input), policy, Reference<double>::target, {.input_gradient = true});
    const auto problems = check_plan(plan);
    CHECK_MESSAGE(problems.empty(), (problems.empty() ? "" : problems[0]));
    CHECK(plan.arena == arena_size(table_of<Net>(input), policy, Reference<double>::target, {.input_gradient = true}));
  }
}
TEST_CASE("custom layers: rows equal columns and differences, under the library's loss and the user's") {
  law_of_loss<Reference<double>>(SoftmaxCrossEntropy{});
  law_of_loss<Reference<double>>(SmoothedCrossEntropy{0.2});
  law_of_loss<Reference<double>>(to_targets);
}
TEST_CASE("custom layers and losses work in blocked storage without knowing of it") {
  law_of_loss<Reference<double, 16, 2>>(SmoothedCrossEntropy{0.2});
  law_of_loss<Reference<double, 8>>(to_targets);
}
TEST_CASE("custom layers in a global pooling's stage: the output that backward reads is kept or made again") {
  using Closed = Sequential<Conv<3>, Tanh, GlobalAvgPool, Linear<3>>;   // tanh's output exists in no full-height tensor
  for (const PolicySpec& policy :
       {Plain::value, Policy<Share<3>, Workspace<0>>::value, Policy<Overlap<3>, RecomputeAll, Workspace<0>>::value,
        Policy<Share<2, 4>, RecomputeCheap, Workspace<0>>::value, Policy<Share<3>, RecomputeCheap, WinogradConv, Workspace<0>>::value}) {
    INFO(to_string(policy));
    const Problem<double> problem(Closed::layers, {1, 2, 16, 4}, 3);
    const Plan plan = make_plan(problem.table, policy, Reference<double>::target);
    const auto problems = check_plan(plan);
    CHECK_MESSAGE(problems.empty(), (problems.empty() ? "" : problems[0]));
    Reference<double> backend(1);
    CHECK(worst_difference(problem, run_once(problem, policy, backend), run_once(problem, Plain::value, backend)) <= 1e-12);
  }
}
TEST_CASE("custom layers train: the loss falls, and a row-centric training takes the same path") {
  using Rows = Policy<Share<3>, RecomputeAll, CheckpointAtPools, Workspace<0>>;
  const Input batch{6, 2, 24, 6};
  const Problem<double> problem(Net::layers, batch, 11);
  const MemorySource<double> source(problem.images.data(), batch);
  Trainer<Net, Plain, Reference<double>, DistanceToTarget> column(batch, Sgd{.lr = 0.05, .momentum = 0.9}, {.seed = 3}, to_targets);
  Trainer<Net, Rows, Reference<double>, DistanceToTarget> rows(batch, Sgd{.lr = 0.05, .momentum = 0.9}, {.seed = 3}, to_targets);
  const Parameter* scale = find_parameter(rows.layout(), "blur1.scale");
  const std::vector<double> before(rows.parameters().begin() + scale->offset, rows.parameters().begin() + scale->elements().end);
  CHECK(before == std::vector<double>(4, 1.0));   // ParameterShape::fill
  std::vector<double> losses;
  for (int i = 0; i < 30; ++i) {
    const StepReport a = column.step(source, problem.labels), b = rows.step(source, problem.labels);
    CHECK(b.loss == doctest::Approx(a.loss).epsilon(1e-12));
    CHECK(b.peak_bytes < a.peak_bytes);
    losses.push_back(b.loss);
  }
  CHECK(losses.back() < 0.7 * losses.front());
  CHECK(distance<double>(rows.parameters(), column.parameters()) <= 1e-11 * norm<double>(column.parameters()));
  for (Index i = 0; i < 4; ++i) CHECK(rows.parameters()[static_cast<std::size_t>(scale->offset + i)] != 1.0);
  const LossResult scored = rows.evaluate(source, problem.labels);
  CHECK(scored.count == 6);
  CHECK(scored.mean() < losses.back() * 1.01);
}
TEST_CASE("custom layers train in float") {
  using Rows = Policy<Overlap<3>, RecomputeCheap, Workspace<0>>;
  const Problem<float> problem(Net::layers, input, 11);
  const MemorySource<float> source(problem.images.data(), input);
  Trainer<Net, Rows, Reference<float>, SmoothedCrossEntropy> trainer(input, AdamW{.lr = 0.02}, {}, {0.1});
  const double first = trainer.step(source, problem.labels).loss;
  double last = first;
  for (int i = 0; i < 40; ++i) last = trainer.step(source, problem.labels).loss;
  CHECK(last < 0.6 * first);
}
namespace {
template <class T>
void identity(const CustomForward<T>& a) {
  BlurOperations::each(a.y, [&](Index i, Index c, Index row, Index column) { a.y(i, c, row, column) = a.x(i, c, row, column); });
}
constexpr CustomLayer float_layer{.rules = {.name = "float_only", .backward = reads_input}, .f32 = {.forward = identity<float>}};
struct FloatOnly {
  static constexpr Layer layer() { return {.kind = Kind::custom, .custom = &float_layer}; }
};
}   // namespace
TEST_CASE("custom layers: an element type that is not offered is refused when the executor is made, by name") {
  using Some = Sequential<Conv<2>, FloatOnly, GlobalAvgPool, Linear<2>>;
  const Table table = table_of<Some>({1, 1, 4, 4});
  std::vector<double> parameters(static_cast<std::size_t>(parameter_count(table))), gradients(parameters.size());
  Reference<double> backend;
  const std::string end =
      "; a custom layer offers its arithmetic for each element type that it is run with; give its CustomLayer the "
      "function in f32 (float), f64 (double) or bf16 (bfloat16), or choose a backend of another type";
  CHECK_THROWS_WITH_AS(
      Executor<Reference<double>>(make_plan(table, Plain::value, Reference<double>::target), backend, parameters.data(), gradients.data()),
      ("lrcnn: layer 'float_only1' (float_only) has no function forward for double" + end).c_str(), BackendError);
  std::vector<float> fewer(parameters.size()), more(parameters.size());
  Reference<float> single;
  CHECK_THROWS_WITH_AS(Executor<Reference<float>>(make_plan(table, Plain::value, Reference<float>::target), single, fewer.data(), more.data()),
                       ("lrcnn: layer 'float_only1' (float_only) has no function backward_data for float" + end).c_str(), BackendError);
  Executor<Reference<float>> forward(make_plan(table, Plain::value, Reference<float>::target, {.training = false}), single, fewer.data(),
                                     nullptr);   // which it does offer
  CHECK(forward.plan().options.training == false);
}
