#pragma once
// A training step with labels by rows is the step with labels in memory, to the bit, over random networks and policies.
#include "exec/graph_coverage.hpp"
#include "support/counted_labels.hpp"
#include "support/random_graph.hpp"
#include "support/run_network.hpp"
#include <lrcnn/layer/dice.hpp>
#include <doctest/doctest.h>
namespace lrcnn::testing {
/// A network whose output is a map of at least two classes.
inline RandomNetwork map_network(Dice& dice) {
  for (;;) {
    RandomNetwork net = random_graph(dice);
    for (bool closed = true; closed; net.layers.pop_back())
      closed = net.layers.back().kind != Kind::flatten && net.layers.back().kind != Kind::global_avg_pool;
    const Table table = make_table(net.layers, net.input);
    if (table.shape(table.size()).c >= 2 && !has_lone_value(table)) return net;
  }
}
template <class M>
struct MapProblem : Problem<M> {
  Shape output;
  std::vector<std::int32_t> mask;
  std::vector<float> numbers;
  MapProblem(const RandomNetwork& net, std::uint64_t seed) : Problem<M>(net.layers, net.input, seed), output(this->table.shape(this->table.size())) {
    const Random random(seed, 6);
    for (Index e = 0; e < output.count(); ++e) {
      const auto at = static_cast<std::uint64_t>(e);
      numbers.push_back(static_cast<float>(random.normal(at)));
      if (e < output.n * output.h * output.w)   // -1 does not count
        mask.push_back(static_cast<std::int32_t>(random.below(at + 1'000'000, static_cast<std::uint64_t>(output.c) + 1)) - 1);
    }
  }
  Labels classes() const { return Labels::of_pixels(mask, output.h, output.w); }
  Labels targets() const { return Labels::of_targets(numbers, output.c, output.h, output.w); }
};
/// One loss under one policy: twice in a row, so that the second step finds what the first has kept. False if there is no such plan.
template <class B, class L, class M>
bool labels_law(const MapProblem<M>& problem, const PolicySpec& policy, const L& loss, const Labels& labels, B& backend) {
  INFO(L::name, ", ", to_string(policy));
  const bool rows_loss = RowLocalLoss<L, typename B::element>;
  std::vector<M> want_gradients(problem.parameters.size(), 0), got_gradients(want_gradients);
  const auto executor = [&](std::vector<M>& gradients) {
    return std::make_unique<Executor<B>>(make_plan(problem.table, policy, B::target, {.training = true, .rows_loss = rows_loss}), backend,
                                         problem.parameters.data(), gradients.data());
  };
  std::unique_ptr<Executor<B>> in_memory, by_rows;
  try {
    in_memory = executor(want_gradients), by_rows = executor(got_gradients);
  } catch (const PlanError&) {
    return false;
  }
  const MemorySource<M> source(problem.images.data(), problem.table.input);
  const CountedLabels rows(labels);
  Index most = 0, pixels = 0;
  for (const Step& step : by_rows->plan().steps) {
    if (step.op != Op::loss) continue;
    most = std::max(most, step.x.images.size() * step.x.rows.size());
    pixels += step.x.images.size() * step.x.rows.size() * problem.output.w;
  }
  const LossResult want = in_memory->run(source, labels, loss);
  for (const bool first : {true, false}) {
    rows.forget();
    std::ranges::fill(got_gradients, M{0});
    CHECK(by_rows->run(source, Labels::from_rows(rows), loss) == want);
    CHECK(got_gradients == want_gradients);
    CHECK(rows.pixels == pixels + (first ? labels.size() * labels.height() * labels.width() : 0));   // once for the total
    CHECK(rows.most_rows() <= most);
    CHECK(by_rows->label_bytes() == most * labels.width() * labels.channels() * 4);
  }
  CHECK(in_memory->label_bytes() == 0);
  return true;
}
/// Random networks under random policies, with losses over pixels and over whole maps. Returns how many plans were run.
template <class B>
int random_labels_law(B& backend, std::uint64_t first_seed, int networks) {
  using M = master_t<typename B::element>;
  int runs = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + static_cast<std::uint64_t>(networks); ++seed) {
    Dice dice(seed);
    const RandomNetwork net = map_network(dice);
    const MapProblem<M> problem(net, seed);
    std::vector<double> weights;
    for (Index k = 0; k < problem.output.c; ++k) weights.push_back(0.3 + 0.7 * static_cast<double>(k % 3));
    for (int k = 0; k < 3; ++k) {
      PolicySpec policy = random_policy(dice, net);
      policy.workspace_bytes = 4_MiB;
      compute_by(policy, ConvAlgorithm::direct);
      INFO("seed ", seed);
      runs += labels_law(problem, policy, PixelCrossEntropy{.weights = weights, .ignore = -1}, problem.classes(), backend);
      runs += labels_law(problem, policy, MeanSquaredError{}, problem.targets(), backend);
      if (problem.output.c <= DiceLoss::most_classes) runs += labels_law(problem, policy, DiceLoss{.ignore = -1}, problem.classes(), backend);
    }
  }
  return runs;
}
}   // namespace lrcnn::testing
