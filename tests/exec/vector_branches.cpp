// Networks in which branches of vectors lie beside branches of maps: by rows they give what the column run gives, trained and predicted, under
// any policy and under all that Fit finds; and no stage has layers of both kinds.
#include "exec/graph_equivalence.hpp"
#include "exec/predicted.hpp"
#include "support/thorough.hpp"
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Layer linear(Index to) { return {.kind = Kind::linear, .channels = to, .bias = true}; }
/// Draws what joins a vector and a map in a network, from what GraphBuilder knows.
class Branches {
 public:
  Branches(Dice& dice, const Input& input) : build_(dice, input), dice_(dice) {}
  const std::vector<Layer>& layers() const { return build_.layers; }
  /// Whether all layers fitted that had to.
  bool fits() const { return fits_; }
  void add(const Layer& layer, Index from = -1, Index other = -1) { fits_ = build_.add(layer, from, other) && fits_; }
  /// Vectors that a pooling or a flatten gives; returns where they end.
  Index vectors(Index from, Index to) {
    if (dice_.chance(0.7)) {
      add({.kind = Kind::global_avg_pool}, from);
      if (dice_.chance(0.3)) add(build_.activation());
    } else {
      add({.kind = Kind::adaptive_avg_pool, .pooled = {dice_.upto(1, 2), 1}}, from);
      add({.kind = Kind::flatten});
    }
    add(linear(dice_.chance(0.5) ? dice_.upto(1, 4) : to));
    if (build_.shape().n > 1 && dice_.chance(0.4)) add({.kind = Kind::norm});
    if (dice_.chance(0.6)) add(build_.activation());
    if (dice_.chance(0.3)) add(build_.dropout());
    if (dice_.chance(0.5) || build_.shape().c != to) add(linear(to));
    return build_.size();
  }
  /// A map of so many channels; returns where it ends.
  Index map(Index from, Index channels) {
    add(build_.conv(channels, true), from);
    for (Index i = dice_.upto(0, 3); i > 0; --i) build_.same();
    if (build_.shape().c != channels) add(build_.conv(channels, true));
    return build_.size();
  }
  /// A map times factors that are vectors.
  void scale() {
    const Index start = build_.size(), channels = build_.shape().c;
    const bool map_first = dice_.chance(0.5);
    Index map_end = map_first ? map(start, channels) : start;
    vectors(start, channels);
    add({.kind = Kind::activation, .activation = {Function::sigmoid, 0}});
    const Index factors = build_.size();
    if (!map_first && dice_.chance(0.8)) map_end = map(start, channels);
    add({.kind = Kind::scale}, map_end, factors);
  }
  /// Vectors beside the means of a map, in one vector.
  void concat() {
    const Index start = build_.size();
    Index left = dice_.chance(0.5) ? vectors(start, 3) : 0;
    map(start, dice_.upto(1, 4));
    add({.kind = Kind::global_avg_pool});
    if (dice_.chance(0.4)) add(build_.activation());
    const Index right = build_.size();
    if (left == 0) left = vectors(start, 2);
    add({.kind = Kind::concat}, left, right);
  }

 private:
  GraphBuilder build_;
  Dice& dice_;
  bool fits_ = true;
};
RandomNetwork network(Dice& dice) {
  for (;;) {
    RandomNetwork net;
    net.input = {dice.upto(1, 3), dice.upto(1, 3), 2 * dice.upto(4, 12), 2 * dice.upto(1, 3)};
    Branches list(dice, net.input);
    list.map(0, dice.upto(1, 4));
    const Index scales = dice.upto(0, 2);
    for (Index i = 0; i < scales; ++i) list.scale();
    if (scales == 0 || dice.chance(0.7)) list.concat();
    else list.add({.kind = Kind::global_avg_pool});
    list.add(linear(3));
    net.layers = list.layers();
    if (list.fits()) return net;
  }
}
PolicySpec column() {
  PolicySpec policy;
  policy.workspace_bytes = 0;
  return policy;
}
/// Whether no stage has both a vector and a map of more than one row.
bool keeps_apart(const Plan& plan) {
  for (const Stage& stage : plan.stages) {
    bool vectors = false, maps = false;
    for (Index l = stage.first; l < stage.last; ++l) {
      const Node& node = plan.table.node(l);
      vectors = vectors || node.layer.kind == Kind::linear || node.layer.kind == Kind::flatten;
      maps = maps || node.out.h > 1;
    }
    if (vectors && maps) return false;
  }
  return true;
}
struct Counts {
  Index trained = 0, predicted = 0, infeasible = 0, cut = 0, excused = 0;
};
/// Calls f(), or counts that the policy cannot be carried out.
template <class F>
void unless_refused(Counts& counts, F f) {
  try {
    f();
  } catch (const PlanError&) {
    ++counts.infeasible;
  }
}
class Laws {
 public:
  Laws(const RandomNetwork& net, std::uint64_t seed)
      : net_(net), problem_(net.layers, net.input, seed), whole_(run_once(problem_, column(), backend_)), output_(whole_output(problem_, backend_)) {}
  const Table& table() const { return problem_.table; }
  /// Returns the bytes of the plan.
  Index trains(const PolicySpec& policy, Counts& counts) {
    const Plan plan = make_plan(table(), policy, backend_.target, {.input_gradient = true});
    CHECK(check_plan(plan) == std::vector<std::string>{});
    CHECK(keeps_apart(plan));
    for (const Stage& stage : plan.stages) counts.cut += stage.backward.slabs() > 1;
    const double difference = worst_graph_difference(problem_, run_once(problem_, policy, backend_), whole_);
    if (difference > 1e-12) {   // norms over next to nothing
      CHECK(difference <= 10 * noise_of(problem_, whole_, column(), backend_, 3));
      ++counts.excused;
    }
    ++counts.trained;
    return plan.peak_bytes();
  }
  Index predicts(const PolicySpec& policy, Counts& counts) {
    BasicPredictor<Reference<double>> predictor(net_.layers, policy, net_.input, problem_.parameters, Reference<double>(1));
    CHECK(check_plan(predictor.plan()) == std::vector<std::string>{});
    CHECK(keeps_apart(predictor.plan()));
    Gather<double> sink(predictor.output_shape());
    predictor.run(MemorySource<double>(problem_.images.data(), net_.input), sink);
    CHECK(sink.complete());
    CHECK(distance<double>(sink.rows, output_) <= 1e-12 * std::max(1.0, norm<double>(output_)));
    ++counts.predicted;
    return predictor.plan().peak_bytes();
  }

 private:
  const RandomNetwork& net_;
  Reference<double> backend_{1};
  Problem<double> problem_;
  Outcome<double> whole_;
  std::vector<double> output_;
};
}   // namespace
TEST_CASE("vectors beside maps: by rows as by columns, under any policy") {
  Counts counts;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(400, 120); ++seed) {
    Dice dice(9000 + seed);
    const RandomNetwork net = network(dice);
    Laws laws(net, seed);
    for (int i = 0; i < 6; ++i) {
      PolicySpec policy = random_policy(dice, net);
      if (dice.chance(0.8)) policy.images = 0;   // a batch norm refuses it
      INFO("seed ", 9000 + seed, "\n", to_string(policy), "\n", graph_text(net));
      unless_refused(counts, [&] { static_cast<void>(laws.trains(policy, counts)); });
      unless_refused(counts, [&] { static_cast<void>(laws.predicts(policy, counts)); });
    }
  }
  MESSAGE(counts.trained, " trained, ", counts.predicted, " predicted, ", counts.infeasible, " infeasible; ", counts.cut, " stages cut, ",
          counts.excused, " excused");
  CHECK(counts.trained > 300);
  CHECK(counts.predicted > 300);
  CHECK(counts.cut > 300);
  CHECK(counts.excused * 20 < counts.trained);
}
TEST_CASE("vectors beside maps: a section that ends before a norm of vectors is made again like any other") {
  // conv3 is followed by a batch norm of the other branch, where another section begins.
  using Means = Sequential<GlobalAvgPool, Linear<8>, BatchNorm, ReLU>;
  using Map = Sequential<Conv<8>, ReLU, Conv<8>, BatchNorm, ReLU, GlobalAvgPool>;
  using MapOfGroups = Sequential<Conv<8>, ReLU, Conv<8>, GroupNorm<2>, ReLU, GlobalAvgPool>;
  using First = Sequential<Conv<8>, ReLU, Concat<Means, Map>, Linear<3>>;
  using Last = Sequential<Conv<8>, ReLU, Concat<Map, Means>, Linear<3>>;
  using Groups = Sequential<Conv<8>, ReLU, Concat<Means, MapOfGroups>, Linear<3>>;
  using Factors = Sequential<Conv<8>, ReLU, Scale<Sequential<Conv<8>, ReLU, Conv<8>>, Sequential<Means, Sigmoid>>, GlobalAvgPool, Linear<3>>;
  Counts counts;
  const auto hold = [&](std::span<const Layer> layers) {
    RandomNetwork net;
    net.layers.assign(layers.begin(), layers.end()), net.input = {3, 2, 16, 6};
    Laws laws(net, 1);
    for (PolicySpec policy :
         {Policy<RecomputeInput<>, CheckpointAt<"relu3">, RecomputeAll>::value, Policy<RecomputeInput<>, CheckpointAt<"relu2">, RecomputeAll>::value,
          Policy<RecomputeInput<Overlap<2>>, CheckpointAt<"conv2">, RecomputeAll>::value, Policy<RecomputeAll>::value,
          Policy<Overlap<2>, RecomputeAll>::value, Policy<Share<2>, CheckpointAt<"conv2">, RecomputeAll>::value}) {
      policy.workspace_bytes = 0;
      INFO(to_string(policy), "\n", graph_text(net));
      unless_refused(counts, [&] { static_cast<void>(laws.trains(policy, counts)); });
    }
  };
  hold(First::layers), hold(Last::layers), hold(Groups::layers), hold(Factors::layers);
  CHECK(counts.trained >= 12);
  // Nothing goes forward once more that another section's norm waits for.
  const Plan plan = make_plan(table_of<First>({3, 2, 16, 6}), Policy<RecomputeAll, Workspace<0>>::value);
  for (std::size_t s = 0; s + 1 < plan.stages.size(); ++s)
    CHECK((!plan.stages[s].forward_repeated || plan.stages[s].section == plan.stages[s + 1].section));
}
TEST_CASE("vectors beside maps: all policies that Fit finds, and their bytes") {
  Counts counts;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(60, 12); ++seed) {
    Dice dice(9500 + seed);
    const RandomNetwork net = network(dice);
    Laws laws(net, seed);
    INFO("seed ", 9500 + seed, "\n", graph_text(net));
    const PolicySpec free = Policy<Fit<1>, Workspace<0>, DirectConv>::value;
    const Target target = Reference<double>::target;
    for (const SolvedPolicy& point : find_frontier(laws.table(), free, target, {.training = true, .input_gradient = true}, Costs{}, 1).points) {
      INFO(to_string(point.policy));
      CHECK(laws.trains(point.policy, counts) == point.bytes);
    }
    for (const SolvedPolicy& point : find_frontier(laws.table(), free, target, predicting, Costs{}, 1).points) {
      INFO(to_string(point.policy));
      CHECK(laws.predicts(point.policy, counts) == point.bytes);
    }
  }
  MESSAGE(counts.trained, " trained, ", counts.predicted, " predicted; ", counts.cut, " stages cut");
  CHECK(counts.trained > 50);
  CHECK(counts.predicted > 30);
}
