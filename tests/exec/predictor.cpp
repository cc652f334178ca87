// A predictor hands over what a forward pass layer by layer keeps, to the bit, each row once and from top to bottom; and what cannot
// work is refused and spoils nothing.
#include "exec/predicted.hpp"
#include "support/error_of.hpp"
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
#include <lrcnn/plan/peak.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class B>
void law(std::uint64_t first, std::uint64_t rounds) {
  PredictedCases counts;
  for (std::uint64_t round = 0; round < rounds; ++round) compare_predicted<B>(first + round, counts, 0, false, [](RandomNetwork&) {});
  MESSAGE(counts.cases, " cases, ", counts.maps, " with maps, ", counts.parts, " of them handed over in parts; ", counts.infeasible, " infeasible");
  CHECK(counts.cases > static_cast<Index>(400 * rounds));
  CHECK(counts.parts > static_cast<Index>(120 * rounds));
}
using Trunk = Sequential<Conv<3>, ReLU, MaxPool<>, Conv<4>, ReLU>;
using Rows = Policy<Share<6>, Workspace<0>>;
constexpr Input input{2, 1, 12, 6};
struct Case {
  Problem<double> problem{Trunk::layers, input, 4};
  MemorySource<double> source{problem.images.data(), input};
  Reference<double> backend;
  std::vector<double> whole = whole_output(problem, backend);
  Predictor<Trunk, Rows, Reference<double>> predictor{input, problem.parameters};
  bool right() {
    Gather<double> sink(predictor.output_shape());
    predictor.run(source, sink);
    return sink.complete() && same_bits(sink.rows, whole);
  }
};
struct Refuses final : RowSink<double> {
  Index after = 0;
  explicit Refuses(Index writes) : after(writes) {}
  void write(Index, const View<const double>&) override {
    if (after-- == 0) throw DataError("the disk is full");
  }
};
struct Fails final : RowSource<double> {
  Shape shape() const override { return input; }
  void read(Index, const View<double>& dst) const override {
    if (dst.row0 > 3) throw DataError("the file ends here");
  }
};
}   // namespace
TEST_CASE("a predictor hands over the column run's output") { law<Reference<double>>(7000, 6); }
TEST_CASE("likewise with blocks of channels") { law<Reference<double, 16, 3>>(7100, 3); }
TEST_CASE("likewise with channels last, in float") { law<Reference<float, Target::all_channels>>(7200, 2); }
TEST_CASE("likewise with tensors in bf16: rows come as floats") { law<Reference<bfloat16, 16, 3>>(7300, 2); }
TEST_CASE("rows come as they are done, and the memory is a slab's") {
  Case c;
  Gather<double> sink(c.predictor.output_shape());
  c.predictor.run(c.source, sink);
  CHECK(sink.writes > 3);
  CHECK(sink.most < 6);
  CHECK(same_bits(sink.rows, c.whole));
  CHECK(c.predictor.output_shape() == Shape{2, 4, 6, 3});
  CHECK(c.predictor.peak_bytes() == peak_bytes<Trunk, Rows, Reference<double>>(input, predicting));
  CHECK(c.predictor.arena().bytes() == c.predictor.peak_bytes());
  CHECK(c.predictor.layout() == c.problem.layout);
  for (const Buffer& b : c.predictor.plan().buffers) CHECK(b.role != Role::value);   // nothing in full height
}
TEST_CASE("an error of the sink or the source comes out as it is, and the next run is right") {
  Case c;
  for (Index k = 0; k < 4; ++k) {
    Refuses sink(k);
    CHECK(error_of<DataError>([&] { c.predictor.run(c.source, sink); }) == "the disk is full");
    CHECK(c.right());
  }
  Gather<double> sink(c.predictor.output_shape());
  CHECK(error_of<DataError>([&] { c.predictor.run(Fails{}, sink); }) == "the file ends here");
  CHECK(c.right());
}
TEST_CASE("other parameters give another output, and those of another network are refused") {
  Case c;
  Problem<double> other(Trunk::layers, input, 5);
  c.predictor.write_parameters(other.parameters);
  CHECK_FALSE(c.right());
  const std::vector<double> few(7);
  CHECK(error_of<Error>([&] { c.predictor.write_parameters(few); }) ==
        "lrcnn: 7 values are given for 142 parameters; all parameters are set at once; give those of this network, in the order of layout()");
  CHECK(error_of<Error>([&] { Predictor<Trunk, Rows, Reference<double>>(input, few); }) ==
        "lrcnn: 7 values are given for 142 parameters; all parameters are set at once; give those of this network, in the order of layout()");
  c.predictor.write_parameters(c.problem.parameters);
  CHECK(c.right());
}
TEST_CASE("a source of another shape and policies that do not fit are refused, with who, what and what to change") {
  Case c;
  const MemorySource<double> tall(c.problem.images.data(), {1, 1, 24, 6});
  Gather<double> sink(c.predictor.output_shape());
  CHECK(error_of<DataError>([&] { c.predictor.run(tall, sink); }) ==
        "lrcnn: a batch of shape 1x1x24x6 is given to a plan for 2x1x12x6; a plan is made for one shape; make a plan for this shape, or let "
        "a Trainer do it");
  CHECK(sink.writes == 0);
  CHECK(c.right());
  CHECK(error_of<PlanError>([&] {
          Predictor<Trunk, Policy<Share<13>>, Reference<double>>(input, c.problem.parameters);
        }).starts_with("lrcnn: no stage can be cut into 13 slabs by Share<13> on input 2x1x12x6; every slab owns a row of its first layer's output"));
  CHECK(error_of<PlanError>([&] { BasicPredictor<Reference<double>>(Trunk::layers, Policy<Bf16>::value, input, c.problem.parameters); }) ==
        "lrcnn: the policy asks for Bf16, and backend 'reference' works in Fp32; the type of the backend says its precision; use "
        "Predictor, which chooses the type, or leave the part out");
  const std::string none = "lrcnn: this network has no layers; a network has at least one; name its layers";
  CHECK(error_of<ShapeError>([&] { BasicPredictor<Reference<double>>(std::vector<Layer>{}, Policy<>::value, input, {}); }) == none);
  CHECK(error_of<ShapeError>([&] { Predictor<Sequential<Identity>, Policy<>, Reference<double>>(input, {}); }) == none);
  CHECK(error_of<ShapeError>([&] { Predictor<Trunk, Rows, Reference<double>>({1, 1, 0, 4}, c.problem.parameters); }).starts_with("lrcnn: layer 1 "));
}
TEST_CASE("a plan that hands its output on is not run without a sink, nor another one with one") {
  Case c;
  Executor<Reference<double>> hands(make_plan(c.problem.table, Rows::value, Reference<double>::target, predicting), c.backend,
                                    c.problem.parameters.data(), nullptr);
  CHECK(error_of<PlanError>([&] { hands.run(c.source, c.problem.labels); }) ==
        "lrcnn: the plan of Policy<Share<6>, NoCheckpoints, KeepAll, DirectConv, Workspace<0>> on input 2x1x12x6 is run without a sink for its "
        "output; a plan with stores_output has no loss and keeps nothing; run it with a RowSink, or plan without stores_output");
  CHECK(hands.output().data == nullptr);
  Executor<Reference<double>> keeps(make_plan(c.problem.table, Policy<Workspace<0>>::value, Reference<double>::target, {.training = false}),
                                    c.backend, c.problem.parameters.data(), nullptr);
  Gather<double> sink(c.predictor.output_shape());
  CHECK(error_of<PlanError>([&] { keeps.run(c.source, sink); }) ==
        "lrcnn: a sink is given to the plan of Policy<Column, NoCheckpoints, KeepAll, DirectConv, Workspace<0>> on input 2x1x12x6, which keeps its "
        "output; rows are handed on by plans with stores_output; plan with the options `predicting`, or read output()");
}
TEST_CASE("a stage that is a global pooling alone is cut for a prediction as it is for a training") {
  const std::vector<Layer> pooled{{.kind = Kind::global_avg_pool}, {.kind = Kind::linear, .channels = 3}};
  std::vector<Layer> behind = pooled;
  behind.insert(behind.begin(), Layer{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 4});
  for (const std::vector<Layer>& layers : {pooled, behind}) {
    const Input shape{2, 2, 13, 3};
    const Problem<double> problem(layers, shape, 3);
    Reference<double> backend;
    const std::vector<double> whole = whole_output(problem, backend);
    for (const Index slabs : {2, 5, 13}) {
      const std::string share = "Share<" + std::to_string(slabs) + ">";
      const PolicySpec policy =
          parse_policy(layers.size() == 2 ? "Policy<" + share + ">" : "Policy<Stages<Column, " + share + ">, CheckpointAt<\"conv1\">>");
      INFO(to_string(policy));
      CHECK_NOTHROW(make_plan(make_table(layers, shape), policy, Reference<double>::target, {.training = true}));
      BasicPredictor<Reference<double>> predictor(layers, policy, shape, problem.parameters);
      CHECK(check_plan(predictor.plan()).empty());
      Gather<double> sink(predictor.output_shape());
      predictor.run(MemorySource<double>(problem.images.data(), shape), sink);
      CHECK(sink.complete());
      for (std::size_t i = 0; i < whole.size(); ++i) CHECK(sink.rows[i] == doctest::Approx(whole[i]).epsilon(1e-13));
    }
  }
}
TEST_CASE("statistics of an image are begun anew where the first slabs reach no row of a norm's input") {
  const std::vector<Layer> layers{{.kind = Kind::conv, .window = {.kernel = 5}, .channels = 3},
                                  {.kind = Kind::conv, .window = {.kernel = {5, 1}}, .channels = 4},
                                  {.kind = Kind::norm, .norm = {.over = Norm::Over::group, .groups = 2}},
                                  {},
                                  {.kind = Kind::conv, .window = {.kernel = 1}, .channels = 2}};
  const Input shape{3, 2, 36, 5};
  const Problem<double> problem(layers, shape, 3), other(layers, shape, 4);
  Reference<double> backend;
  const std::vector<double> whole = whole_output(problem, backend);
  for (Index slabs = 2; slabs <= 32; slabs += 3)
    for (const Index images : {0, 1, 2}) {
      PolicySpec policy;
      policy.workspace_bytes = 0;
      policy.partitions[0] = {Cut::share, slabs, 1, images};
      INFO(to_string(policy));
      BasicPredictor<Reference<double>> predictor(layers, policy, shape, problem.parameters);
      CHECK(check_plan(predictor.plan()).empty());
      for (const Problem<double>* batch : {&other, &problem}) {   // the second must not see what the first has left
        Gather<double> sink(predictor.output_shape());
        predictor.run(MemorySource<double>(batch->images.data(), shape), sink);
        if (batch == &problem) CHECK(distance<double>(sink.rows, whole) <= 1e-12 * norm<double>(whole));   // statistics are merged from slabs
      }
    }
}
