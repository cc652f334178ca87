// Budgets of all memory, and policies that go with a training into its file.
#include "exec/fitted_network.hpp"
#include "support/error_of.hpp"
#include <lrcnn/exec/predictor.hpp>
#include <lrcnn/plan/profile.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
#include <iostream>
#include <sstream>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using B = Reference<double>;
using Net = FittedNet;
constexpr Input input = fitted_input;
const Table table = table_of<Net>(input);
const Sgd momentum{.lr = 0.05, .momentum = 0.9};
const Index fixed = 3 * parameter_count(table) * static_cast<Index>(sizeof(double));   // with gradients and momentum
/// What a plan counts for in a budget.
Index counted(const Plan& plan) { return plan.arena.bytes + plan.listed_steps() * PlanMaker<B>::step_bytes; }
struct Pictures {
  std::vector<double> pixels;
  std::vector<std::int32_t> labels;
  Input shape;
  explicit Pictures(const Input& s = input) : pixels(static_cast<std::size_t>(s.count())), labels(static_cast<std::size_t>(s.n), 1), shape(s) {
    const Random random(5, 1);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = random.normal(i);
  }
  StepReport step(BasicTrainer<B>& trainer) const { return trainer.step(MemorySource<double>(pixels.data(), shape), labels); }
};
}   // namespace
TEST_CASE("a budget covers all that a trainer takes, and the least that an error names is enough") {
  const auto trainer_within = [](Index bytes, const PolicySpec& policy = {}) {
    return BasicTrainer<B>(Net::layers, policy, input, momentum, {.budget = Budget{bytes}});
  };
  const std::string error = error_of<PlanError>([&] { trainer_within(fixed + 1000); });
  CAPTURE(error);
  CHECK(error.find("lrcnn: a budget of ") == 0);
  CHECK(error.find("leaves 1.0 kB for a step on input 2x1x48x16") != std::string::npos);
  const auto at = error.find("give a budget of ");
  REQUIRE(at != std::string::npos);
  const Index least = std::stoll(error.substr(at + 17));
  CHECK(error_of<PlanError>([&] { trainer_within(least - 1); }).find("give a budget of " + std::to_string(least) + " bytes") != std::string::npos);
  double before = 1e9;
  const Costs costs(rates_of<B>());
  StepCosts of_steps(costs, table, B::target);
  Index cut = 0;
  for (const Index bytes : {least, least + 10'000, least + 50'000, 10 * least}) {
    BasicTrainer<B> trainer = trainer_within(bytes);
    const Plan& plan = trainer.plan();
    CHECK(fixed + counted(plan) <= bytes);
    const double time = plan_seconds(table, plan.policy, B::target, plan.options, of_steps);
    CHECK(time <= before);
    before = time;
    cut += plan.policy != trainer_within(100 * least).plan().policy;
    CHECK(std::isfinite(Pictures().step(trainer).loss));
  }
  CHECK(cut > 0);
  CHECK(fixed + counted(trainer_within(least).plan()) == least);
}
TEST_CASE("what a policy names holds in a budget, whatever its value") {
  const PolicySpec named = Policy<Share<2>, DirectConv, KeepAll>::value;
  BasicTrainer<B> trainer(Net::layers, named, input, momentum, {.budget = Budget{1_GiB}});
  for (Index i = 0; i < trainer.plan().policy.partition_count; ++i) {
    CHECK(trainer.plan().policy.partition(i).cut != Cut::overlap);
    CHECK(trainer.plan().policy.recompute_in(trainer.plan().policy.partition(i)) == Recompute::none);
  }
  CHECK(trainer.plan().policy.conv_algorithm == ConvAlgorithm::direct);
  BasicTrainer<B> free(Net::layers, {}, input, momentum, {.budget = Budget{1_GiB}});
  CHECK(free.plan().policy.conv_algorithm == ConvAlgorithm::fastest);
}
TEST_CASE("budgets that are none, and Fit beside one, are refused; a share is of what is free") {
  const auto with = [](const Budget& budget, const PolicySpec& policy = {}) {
    return error_of([&] { BasicTrainer<B>(Net::layers, policy, input, momentum, {.budget = budget}); });
  };
  CHECK(with(Budget{0}).find("lrcnn: a budget has 0 bytes; ") == 0);
  CHECK(with(Budget{-5}).find("lrcnn: a budget has -5 bytes; ") == 0);
  for (const double part : {-0.5, 1.5, std::numeric_limits<double>::quiet_NaN()})
    CHECK(with(Budget::share(part)).find("lrcnn: a budget is " + number_text(part) + " of the free memory; ") == 0);
  CHECK(with({.bytes = 5, .part = 0.5}).find("lrcnn: a budget has 5 bytes; ") == 0);
  CHECK(with(Budget{1_GiB}, Policy<Fit<1000>>::value).find("lrcnn: a budget is given beside Policy<Fit<1000>>; ") == 0);
  CHECK(with(Budget::share(0.5)) == "no error");
  const std::string below = with(Budget{fixed / 2});
  CHECK(below.find("lrcnn: a budget of " + format_bytes(fixed / 2) + " leaves nothing for a step on input 2x1x48x16, beside " + format_bytes(fixed) +
                   " of parameters and what belongs to them") == 0);
  CHECK(below.find("give a budget of ") != std::string::npos);
}
TEST_CASE("a budget of more than is free is a notice, and a plan is chosen for all of it") {
  std::ostringstream heard;
  auto* const log = std::clog.rdbuf(heard.rdbuf());
  BasicTrainer<B> trainer(Net::layers, {}, input, momentum, {.budget = Budget{1'000'000'000'000'000}});
  std::clog.rdbuf(log);
  const std::string notice = heard.str(), end = " that are free; a policy is chosen for all of the budget; give a smaller budget, or free memory\n";
  CAPTURE(notice);
  CHECK(notice.find("lrcnn: the budget of 1000.0 TB is more than the ") == 0);
  CHECK(notice.ends_with(end));
  BasicTrainer<B> plenty(Net::layers, {}, input, momentum, {.budget = Budget{1_GiB}});
  CHECK(trainer.plan().policy == plenty.plan().policy);
}
TEST_CASE("a predictor keeps to a budget") {
  const std::vector<double> parameters(static_cast<std::size_t>(parameter_count(table)), 0.01);
  const auto within = [&](Index bytes) { return BasicPredictor<B>(Net::layers, {}, input, parameters, PredictorOptions{.budget = Budget{bytes}}); };
  const std::string error = error_of<PlanError>([&] { within(fixed / 3 + 10); });
  const auto at = error.find("give a budget of ");
  REQUIRE(at != std::string::npos);
  const Index least = std::stoll(error.substr(at + 17));
  const BasicPredictor<B> smallest = within(least);
  CHECK(fixed / 3 + counted(smallest.plan()) == least);
  CHECK(within(100 * least).plan().steps.size() < smallest.plan().steps.size());
  CHECK(error_of<PlanError>([&] { within(least - 1); }) != "no error");
}
TEST_CASE("batches of several shapes keep to a budget together, whichever plan has the larger arena and whichever the longer lists") {
  const std::vector<Pictures> shapes{Pictures{}, Pictures({6, 1, 48, 16}), Pictures({1, 1, 200, 16}), Pictures({1, 1, 48, 16})};
  Index switched = 0;
  for (Index bytes = fixed + 60'000; bytes < fixed + 300'000; bytes += 3'000) {
    std::optional<BasicTrainer<B>> trainer;
    const std::string error = error_of([&] { trainer.emplace(Net::layers, PolicySpec{}, input, momentum, TrainerOptions{.budget = Budget{bytes}}); });
    if (!trainer) continue;
    CAPTURE(bytes);
    for (int round = 0; round < 2; ++round)
      for (const Pictures& images : shapes) {
        const Index before = trainer->arena_bytes();
        if (error_of<PlanError>([&] { trainer->evaluate(MemorySource<double>(images.pixels.data(), images.shape), images.labels); }) != "no error")
          continue;
        const Index lists = trainer->plan(images.shape, false).listed_steps() * PlanMaker<B>::step_bytes;
        CHECK(fixed + trainer->arena_bytes() + lists <= bytes);
        switched += trainer->arena_bytes() < before;
      }
  }
  CHECK(switched > 0);   // an arena that was too large beside other lists
}
TEST_CASE("with gradients in place, evaluations and predictions have policies, too") {
  const Pictures images;
  const MemorySource<double> source(images.pixels.data(), input);
  for (const bool fits : {false, true}) {
    CAPTURE(fits);
    PolicySpec policy = fits ? Policy<Fit<1>, GradientsInPlace>::value : Policy<GradientsInPlace>::value;
    if (fits) policy.fit_bytes = 1_GiB;
    BasicTrainer<B> trainer(Net::layers, policy, input, momentum, {.budget = fits ? std::nullopt : std::optional(Budget{1_GiB})});
    CHECK(trainer.plan().policy.gradients_in_place);
    CHECK(std::isfinite(images.step(trainer).loss));
    CHECK(std::isfinite(trainer.evaluate(source, images.labels).mean()));
  }
  const std::vector<double> parameters(static_cast<std::size_t>(parameter_count(table)), 0.01);
  const BasicPredictor<B> predictor(Net::layers, Policy<GradientsInPlace>::value, input, parameters, PredictorOptions{.budget = Budget{1_GiB}});
  CHECK(predictor.plan().arena.bytes > 0);
}
TEST_CASE("points of a frontier file that the network refuses cost another search, and no error") {
  const auto path = std::filesystem::temp_directory_path() / ("lrcnn_points_" + std::to_string(::getpid()) + ".txt");
  const PolicySpec policy = Policy<Fit<1_GiB>>::value;
  const auto trainer_with = [&](const std::filesystem::path& file) {
    return BasicTrainer<B>(Net::layers, policy, input, momentum, {.frontier_file = file});
  };
  const PolicySpec found = trainer_with(path).plan().policy;
  ChoiceFile kept(path, frontiers_maker(), {}, "frontiers");
  REQUIRE(kept.all().size() == 1);
  const auto [key, text] = *kept.all().begin();
  const std::string refused = "Policy<CheckpointAt<\"nowhere\">>";   // behind all points, and so the fastest
  kept.note(key, text + "1000000000 0 9 " + std::to_string(refused.size()) + " " + refused + " ");
  kept.save();
  CHECK(trainer_with(path).plan().policy == found);
  std::filesystem::remove(path);
}
TEST_CASE("a share of free memory is refused where nobody knows how much is free") {
  struct Silent : B {
    using B::B;
    Index free_bytes() const { return std::numeric_limits<Index>::max(); }
  };
  const Silent backend(1);
  const std::string error = error_of<Error>([&] { PlanMaker<Silent>({}, {.budget = Budget::share(0.8)}, 1000, backend); });
  CHECK(error == "lrcnn: a budget is 0.8 of the free memory; this system does not say how much is free; give a number of bytes, as in Budget{8_GiB}");
  CHECK(error_of<Error>([&] { PlanMaker<Silent>({}, {.budget = Budget{8_GiB}}, 1000, backend); }) == "no error");
}
TEST_CASE("a training goes on with the policies that it was begun with, whatever costs say then") {
  const auto path = std::filesystem::temp_directory_path() / ("lrcnn_choice_" + std::to_string(::getpid()) + ".lrcnn");
  PolicySpec policy = Policy<Fit<1>>::value;
  policy.fit_bytes = arena_size(table, Policy<Workspace<0>>::value, B::target).bytes * 2 / 3;
  const Costs first(Rates{.step = 1e-9, .products = 1e12, .bytes = 1e6}), second(Rates{.step = 1e-9, .products = 1e6, .bytes = 1e12});
  BasicTrainer<B> begun(Net::layers, policy, input, momentum, {.costs = first});
  BasicTrainer<B> other(Net::layers, policy, input, momentum, {.costs = second});
  REQUIRE(begun.plan().policy != other.plan().policy);
  const Pictures images;
  for (int i = 0; i < 3; ++i) images.step(begun);
  begun.save(path);
  other.load(path);
  CHECK(other.plan().policy == begun.plan().policy);
  CHECK(images.step(other).peak_bytes == images.step(begun).peak_bytes);
  CHECK(other.read_parameters() == begun.read_parameters());
  other.save(path);
  BasicTrainer<B> third(Net::layers, policy, input, momentum, {.costs = second});
  third.load(path);
  CHECK(third.plan().policy == begun.plan().policy);
  // Another budget is asked for: its own policy, and the old notes are gone from what it saves.
  policy.fit_bytes *= 2;
  BasicTrainer<B> larger(Net::layers, policy, input, momentum, {.costs = second});
  const PolicySpec own = larger.plan().policy;
  REQUIRE(own != begun.plan().policy);
  larger.load(path);
  CHECK(larger.plan().policy == own);
  larger.save(path);
  const TrainingFileInfo info = inspect_training_file(path);
  CHECK(info.state.notes.at("policies for") == to_string(policy));
  CHECK(info.state.notes.at("policy of training 2x1x48x16") == to_string(own));
  // A policy that does not fit, or is none, is chosen anew.
  TrainingState state = info.state;
  for (const std::string& text : {std::string("Policy<Column, RecomputeAll, Workspace<99999999>>"), std::string("no policy"),
                                  std::string("Policy<Stages<Share<40>, Column>>")}) {
    state.notes["policy of training 2x1x48x16"] = text;
    save_training_file<double>(path, state, larger.layout(), larger.read_parameters(), std::vector<double>(larger.read_parameters().size()));
    BasicTrainer<B> fresh(Net::layers, policy, input, momentum, {.costs = second});
    fresh.load(path);
    if (text.find("99999999") == std::string::npos) CHECK(fresh.plan().policy == own);
    else CHECK(fresh.plan().arena.bytes <= policy.fit_bytes);
  }
  std::filesystem::remove(path);
}
