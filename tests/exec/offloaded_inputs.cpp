// Offloaded inputs on the reference backend, and what becomes of a program whose larger memory has no room.
#include "exec/offloaded_inputs.hpp"
#include "support/error_of.hpp"
#include "support/random_graph.hpp"
#include "support/thorough.hpp"
#include <cstdlib>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("offloaded inputs give the bits of kept ones") {
  Reference<double> doubles(2);
  offloaded_inputs_law(doubles, 0);
  Reference<float> floats(2);
  offloaded_inputs_law(floats, 0);
}
TEST_CASE("offloaded inputs give the bits of kept ones in random networks") {
  Reference<double> backend(1);
  Index runs = 0;
  for (std::uint64_t seed = 1; seed <= cases_to_do<std::uint64_t>(2000, 300); ++seed) {
    Dice dice(seed + 920'000);
    const RandomNetwork net = random_graph(dice);
    PolicySpec policy = random_policy(dice, net);
    policy.images = 0, policy.conv_algorithm = ConvAlgorithm::direct;
    if (dice.chance(0.6)) policy.checkpoints = {.rule = Checkpoints::Rule::every, .every = dice.upto(1, 4)};
    for (Index i = 0; i < policy.partition_count; ++i)
      if (dice.chance(0.7)) item(policy.partitions, i).input = SectionInput::offload;
    const Problem<double> problem(net.layers, net.input, seed);
    try {
      if (make_plan(problem.table, policy, {}).offloaded_bytes() == 0) continue;
    } catch (const PlanError&) {
      continue;
    }
    INFO("seed ", seed, ", ", to_string(policy));
    const Outcome<double> offloaded = run_once(problem, policy, backend);
    for (Index i = 0; i < policy.partition_count; ++i)
      if (Partition& p = item(policy.partitions, i); p.input == SectionInput::offload) p.input = SectionInput::keep;
    if (policy.gradients_in_place) policy.gradients_in_place = false;   // which maps can be shared depends on what is kept
    const Outcome<double> kept = run_once(problem, policy, backend);
    if (offloaded.gradients != kept.gradients)
      CHECK(worst_difference(problem, offloaded, kept) < 1e-13);   // slabs of gradients in place add in another order
    CHECK(offloaded.loss.sum == kept.loss.sum);
    ++runs;
  }
  MESSAGE(runs << " runs");
  CHECK(runs > 60);
}
TEST_CASE("a trainer offloads inputs of batches of several sizes, and a folder without room is an error that says so") {
  using Net = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, Flatten, Linear<10>>;
  using Offloads = Policy<OffloadInput<Overlap<2>>, CheckpointEvery<2>, RecomputeAll>;
  const Input large{6, 3, 24, 16}, small{2, 3, 24, 16};
  const Problem<float> many(Net::layers, large, 3), few(Net::layers, small, 4);
  const auto losses = [&](BasicTrainer<Reference<float>>& trainer) {
    std::vector<double> sums;
    for (const Problem<float>* p : {&few, &many, &few}) {
      const MemorySource<float> source(p->images.data(), p->table.input);
      sums.push_back(trainer.step(source, p->labels).loss);
    }
    return sums;
  };
  Trainer<Net, Policy<Overlap<2>, CheckpointEvery<2>, RecomputeAll>, Reference<float>> plain(small, Sgd{.lr = 0.05});
  Trainer<Net, Offloads, Reference<float>> offloads(small, Sgd{.lr = 0.05});
  CHECK(losses(plain) == losses(offloads));
  const char* const before = std::getenv("TMPDIR");
  const std::string folder = before == nullptr ? "" : before;
  setenv("TMPDIR", "/nowhere at all", 1);
  Reference<float> backend(1);
  CHECK_THROWS_WITH_AS(run_once(many, Offloads::value, backend), doctest::Contains("in a file in '/nowhere at all', and there is no such file: "),
                       MemoryError);
  if (before == nullptr) unsetenv("TMPDIR");
  else setenv("TMPDIR", folder.c_str(), 1);
  CHECK(run_once(many, Offloads::value, backend).loss.sum > 0);
}
TEST_CASE("large maps arrive as they were") {
  using Net = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, GlobalAvgPool, Linear<3>>;
  const Problem<float> problem(Net::layers, {2, 3, 400, 257}, 5);
  Reference<float> backend(2);
  const Outcome<float> kept = run_once(problem, Policy<CheckpointEvery<1>>::value, backend);
  const Outcome<float> offloaded = run_once(problem, Policy<OffloadInput<>, CheckpointEvery<1>>::value, backend);
  CHECK(offloaded.gradients == kept.gradients);
  CHECK(offloaded.loss.sum == kept.loss.sum);
}
TEST_CASE("a trainer that may offload does so and trains as layer by layer, within bytes and within a budget") {
  using B = Reference<double>;
  using Net = Sequential<Conv<6>, BatchNorm, ReLU, Conv<8>, ReLU, Conv<8>, ReLU, Conv<8>, ReLU, GlobalAvgPool, Linear<3>>;
  const Problem<double> problem(Net::layers, {2, 1, 48, 16}, 3);
  const Sgd optimizer{.lr = 0.05, .momentum = 0.9};
  PolicySpec policy = Policy<Fit<1>, Workspace<0>, DirectConv, MayOffload>::value;
  for (const SolvedPolicy& point : find_frontier(problem.table, policy, B::target, {}, Costs(rates_of<B>())).points)
    if (make_plan(problem.table, point.policy, B::target).offloaded_bytes() > 0) policy.fit_bytes = point.bytes;
  REQUIRE(policy.fit_bytes > 1);
  BasicTrainer<B> offloads(Net::layers, policy, problem.table.input, optimizer, {.seed = 3});
  BasicTrainer<B> whole(Net::layers, Policy<>::value, problem.table.input, optimizer, {.seed = 3});
  const MemorySource<double> source(problem.images.data(), problem.table.input);
  for (int i = 0; i < 3; ++i) {
    const StepReport a = offloads.step(source, problem.labels), b = whole.step(source, problem.labels);
    CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-11));
    CHECK(a.peak_bytes <= policy.fit_bytes);
  }
  CHECK(offloads.plan(problem.table.input, true).offloaded_bytes() > 0);
  PolicySpec within = Policy<Workspace<0>, DirectConv, MayOffload>::value;
  const auto least_budget = [&] {
    const std::string text =
        error_of<PlanError>([&] { BasicTrainer<B>(Net::layers, within, problem.table.input, optimizer, {.budget = Budget{1000}}); });
    const std::string before = "give a budget of ";
    REQUIRE(text.find(before) != std::string::npos);
    return std::stoll(text.substr(text.find(before) + before.size()));
  };
  const Index may = least_budget();
  BasicTrainer<B> budgeted(Net::layers, within, problem.table.input, optimizer, {.budget = Budget{may}});
  CHECK(budgeted.plan(problem.table.input, true).offloaded_bytes() > 0);
  within.may_offload = false;
  CHECK(may <= least_budget());
}
