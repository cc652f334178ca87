// Losses that are local to rows: the last stage's slabs go forward, through the loss and backward at once. Over random networks that
// branch and random policies: loss, hits and every gradient are those of the column run with its output in full; the plan is sound, and
// where it is cut nothing is as large as the output.
#include <doctest/doctest.h>
#include "exec/graph_coverage.hpp"
#include "support/random_graph.hpp"
#include "support/run_network.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// A network whose output is a map of at least two classes.
RandomNetwork open_network(Dice& dice) {
  for (;;) {
    RandomNetwork net = random_graph(dice);
    for (bool closed = true; closed; net.layers.pop_back())
      closed = net.layers.back().kind != Kind::flatten && net.layers.back().kind != Kind::global_avg_pool;
    const Table table = make_table(net.layers, net.input);
    if (table.shape(table.size()).c >= 2 && !has_lone_value(table)) return net;
  }
}
struct Segmentation {
  Table table;
  std::vector<double> parameters, images;
  std::vector<std::int32_t> mask;
  Segmentation(const RandomNetwork& net, std::uint64_t seed) : table(make_table(net.layers, net.input)) {
    parameters.resize(static_cast<std::size_t>(parameter_count(table)));
    images.resize(static_cast<std::size_t>(net.input.count()));
    initialize<double>(parameters_of(table), He{}, seed, parameters);
    const Random random(seed, 5);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = random.normal(i);
    const Shape out = table.shape(table.size());
    mask.resize(static_cast<std::size_t>(out.n * out.h * out.w));
    for (std::size_t i = 0; i < mask.size(); ++i)   // one in eight does not count
      mask[i] = random.below(200000 + i, 8) == 0 ? -1 : static_cast<std::int32_t>(random.below(100000 + i, static_cast<std::uint64_t>(out.c)));
  }
  /// Gradients, then the sum of losses and the number of hits. Memory is poisoned first.
  std::vector<double> step(const PolicySpec& policy, bool by_rows) const {
    Reference<double> backend(1);
    std::vector<double> result(parameters.size(), 0);
    Executor<Reference<double>> executor(make_plan(table, policy, Reference<double>::target, {.training = true, .rows_loss = by_rows}), backend,
                                         parameters.data(), result.data());
    auto* memory = reinterpret_cast<double*>(executor.arena().data());
    std::fill(memory, memory + executor.arena().bytes() / Index{sizeof(double)}, std::nan(""));
    const Shape out = table.shape(table.size());
    const MemorySource<double> source(images.data(), table.input);
    const LossResult loss = executor.run(source, Labels::of_pixels(mask, out.h, out.w), PixelCrossEntropy{.ignore = -1});
    result.push_back(loss.sum);
    result.push_back(static_cast<double>(loss.correct));
    return result;
  }
};
}   // namespace
TEST_CASE("a step with a loss that is local to rows equals the column run's, without the output in full") {
  int runs = 0, cut = 0, conditioned = 0;
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = open_network(dice);
    const Segmentation problem(net, seed);
    PolicySpec column;
    column.workspace_bytes = 0;
    const auto whole = problem.step(column, false);
    // What a change of images and parameters in their last places comes to: much, where a rectifier decides by a mean that is zero but
    // for rounding.
    const auto noise = [&] {
      Segmentation noisy = problem;
      for (auto* list : {&noisy.images, &noisy.parameters})
        for (double& v : *list) v = std::nextafter(v, 100.0);
      return distance<double>(noisy.step(column, false), whole) / norm<double>(whole);
    };
    for (int k = 0; k < 4; ++k) {
      PolicySpec policy = random_policy(dice, net);
      policy.images = 0;
      compute_by(policy, ConvAlgorithm::direct);
      INFO("seed ", seed, ", ", to_string(policy));
      Plan plan;
      try {
        plan = make_plan(problem.table, policy, Reference<double>::target, {.training = true, .rows_loss = true});
      } catch (const PlanError&) {
        continue;
      }
      ++runs;
      const auto problems = check_plan(plan);
      CHECK((problems.empty() ? "" : problems[0]) == "");
      CHECK(!plan.results.output);
      const Stage& last = *std::find_if(plan.stages.rbegin(), plan.stages.rend(),
                                        [&](const Stage& s) { return s.last == plan.table.size() && !s.replaced_by_extra_passes; });
      if (last.backward.slabs() > 1) {
        ++cut;
        const bool norm = plan.table.node(plan.table.size() - 1).layer.kind == Kind::norm;   // the gradient of its output is in full
        for (const Buffer& b : plan.buffers)
          if (b.tensor == plan.table.size() && b.stage >= 0) {
            CHECK(b.role != Role::value);
            CHECK((norm || b.role != Role::gradient));
          }
      }
      const auto rows = problem.step(policy, true);
      const double difference = distance<double>(rows, whole) / norm<double>(whole);
      if (!(difference <= 1e-12)) {
        ++conditioned;
        CHECK(difference <= 10 * noise());
        continue;
      }
      worst = std::max(worst, difference);
    }
  }
  CHECK(conditioned * 100 < runs);
  MESSAGE(runs, " runs, ", conditioned, " of them ill-conditioned, ", cut, " with the last stage cut; worst difference ", worst);
  CHECK(runs > 800);
  CHECK(cut > 250);
}
