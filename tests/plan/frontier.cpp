// Frontiers: every point is what it says, nothing found at random beats it, and Fit picks from it.
#include "plan/frontier_cases.hpp"
#include "support/error_of.hpp"
#include "support/rows_behind.hpp"
#include "support/thorough.hpp"
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/policy/parse.hpp>
#include <lrcnn/policy/ready_made.hpp>
#include <doctest/doctest.h>
#include <array>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const Target& blocked = frontier_target;
const Costs& costs = frontier_costs;
/// A policy with random sections and slabs, as a person might try, with checkpoints behind some of these layers.
PolicySpec tried_policy(Dice& dice, const Table& table, const std::vector<Index>& checkpoints) {
  PolicySpec p;
  p.workspace_bytes = 0;
  std::size_t names = 0;
  for (const Index l : checkpoints)
    if (names < 6 && dice.chance(0.4)) p.checkpoints.names[names++] = table.node(l).layer.name;
  if (names > 0) p.checkpoints.rule = Checkpoints::Rule::named;
  p.partition_count = static_cast<Index>(names) + 1;
  for (Index i = 0; i < p.partition_count; ++i) {
    Partition& part = item(p.partitions, i);
    part.cut = dice.pick({Cut::column, Cut::column, Cut::overlap, Cut::share});
    if (part.cut != Cut::column) {
      part.backward = dice.pick<Index>({2, 3, 4, 6, 8});
      part.forward = dice.chance(0.7) ? part.backward : 1;
    }
    if (dice.chance(0.4)) part.images = dice.pick<Index>({1, ceil_div(table.input.n, 2)});
    part.recompute = dice.pick({Recompute::none, Recompute::all, Recompute::cheap, Recompute::light});
    if (part.cut != Cut::share && dice.chance(0.15)) part.passes = dice.pick({NormPasses::one, NormPasses::all});
  }
  p.gradients_in_place = dice.chance(0.1);
  return p;
}
}   // namespace
TEST_CASE("every point of a frontier is a correct plan of exactly its bytes and seconds, and more bytes are faster") {
  const std::uint64_t cases = cases_to_do<std::uint64_t>(1000, 60), first = thorough() ? 0 : day() * cases;
  std::size_t points = 0, slabs = 0, recomputed = 0, in_place = 0, one_pass = 0;
  for (std::uint64_t seed = first; seed < first + cases + cases / 3; ++seed) {
    const bool blocks = seed >= first + cases;   // residual ones, whose bodies end in norms
    const FrontierCase c = blocks ? residual_frontier_case(seed) : random_frontier_case(seed);
    Frontier frontier;
    if (!has_frontier(c, frontier)) continue;
    CAPTURE(seed);
    REQUIRE(!frontier.points.empty());
    const SolvedPolicy* before = nullptr;
    for (const SolvedPolicy& point : frontier.points) {
      CAPTURE(to_string(point.policy));
      const Plan plan = make_plan(c.table, point.policy, c.target, c.options);
      REQUIRE(plan.arena.bytes == point.bytes);
      REQUIRE(seconds(plan, costs) + seconds_left_out(plan, costs) == doctest::Approx(point.seconds).epsilon(1e-9));
      REQUIRE(check_plan(plan).empty());
      if (before != nullptr) {
        REQUIRE(point.bytes > before->bytes);
        REQUIRE(point.seconds < before->seconds);
      }
      before = &point;
      ++points;
      for (Index i = 0; i < point.policy.partition_count; ++i) {
        slabs += point.policy.partition(i).backward > 1;
        recomputed += point.policy.partition(i).recompute == Recompute::all;
        one_pass += point.policy.partition(i).passes == NormPasses::one;
      }
      in_place += point.policy.gradients_in_place;
    }
    for (const int threads : {1, 2, 5})   // every day one of them
      if (thorough() || (!blocks && threads == std::array{1, 2, 5}[seed % 3]))
        REQUIRE(find_frontier(c.table, free_frontier, c.target, c.options, costs, threads).points == frontier.points);
  }
  MESSAGE(points << " points, " << slabs << " cut sections, " << recomputed << " recomputed sections, " << in_place << " with gradients in place, "
                 << one_pass << " sections with one extra pass");
  CHECK(points > 7 * cases);
  CHECK(slabs > cases);
  CHECK(one_pass > 0);
  CHECK(in_place > 0);
}
TEST_CASE("a search never counts fewer bytes than are live in the plan") {
  std::array<std::size_t, step_memories.size()> solved_count{};
  std::size_t in_place = 0, above = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(1000, 150); ++seed) {
    const FrontierCase c = random_frontier_case(seed);
    for (const Index images : {0, 1}) {
      PolicySpec policy;
      policy.images = images;
      try {
        const SectionSearch search(c.table, policy, c.target, c.options, costs, 0, 1, {step_memories.begin(), step_memories.end()});
        for (const StepMemory memory : step_memories) {
          Index room = Index{1} << 40;
          for (int tries = 0; tries < 60; ++tries, ++solved_count[static_cast<std::size_t>(memory)]) {
            const auto solved = search.fastest(memory, room, 0);
            if (solved.empty()) break;
            CAPTURE(seed);
            CAPTURE(to_string(solved[0].policy));
            REQUIRE(solved[0].policy.gradients_in_place == (memory == StepMemory::in_place));
            const Index live = arena_size(c.table, solved[0].policy, c.target, c.options).lower_bound;
            const Index behind = bytes_behind(c.table, solved[0].policy, c.target, c.options);
            in_place += behind > 0;
            above += live > room;
            REQUIRE(live <= room + (search.catalog().is_thorough() ? 0 : behind));
            room = std::min(room, live) - 1;
          }
        }
      } catch (const PlanError&) {   // a norm of one value, or a batch norm and groups of images
      }
    }
  }
  for (const std::size_t count : solved_count) CHECK(count > 500);
  MESSAGE(in_place, " plans with gradients in place, ", above, " with more live bytes than were searched for");
  CHECK(in_place > 100);
}
TEST_CASE("few random policies are smaller than the smallest point, or faster than the point for their bytes") {
  const std::uint64_t cases = cases_to_do<std::uint64_t>(300, 30);
  std::size_t tried = 0, slower = 0, larger = 0;
  double worst = 0, worst_bytes = 0;
  std::uint64_t worst_seed = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const FrontierCase c = random_frontier_case(seed);
    Frontier frontier;
    if (!has_frontier(c, frontier)) continue;
    Dice dice(seed + 7);
    StepCosts of_steps(costs, c.table, c.target);
    const auto checkpoints = SectionSearch(c.table, {}, c.target, c.options, costs).catalog().checkpoints();
    for (int i = 0; i < 300; ++i) {
      const PolicySpec policy = tried_policy(dice, c.table, checkpoints);
      Index bytes = 0;
      double time = 0;
      try {
        bytes = arena_size(c.table, policy, c.target, c.options).bytes;
        time = plan_seconds(c.table, policy, c.target, c.options, of_steps);
      } catch (const PlanError&) {   // more slabs than rows
        continue;
      }
      ++tried;
      const SolvedPolicy* const best = frontier.fastest(bytes);
      const double less = 1 - static_cast<double>(bytes) / static_cast<double>(frontier.smallest().bytes);
      worst_bytes = std::max(worst_bytes, less), larger += less > 0.01;
      if (best == nullptr) continue;
      if (best->seconds / time - 1 > worst) worst = best->seconds / time - 1, worst_seed = seed;
      slower += best->seconds > 1.02 * time;
    }
  }
  MESSAGE(tried << " policies; " << slower << " more than 2 % faster than the frontier, by at most " << 100 * worst << " % (seed " << worst_seed
                << "), and at most " << 100 * worst_bytes << " % smaller");
  CHECK(tried > 50 * cases);
  CHECK(slower <= tried / 200);
  CHECK(larger <= tried / 1000);
}
TEST_CASE("Fit takes the fastest point that fits, and says the fewest bytes if none does") {
  const Table table = make_table(Vgg16<>::layers, {2, 3, 224, 224});
  const Frontier frontier = find_frontier(table, Policy<Fit<1>>::value, blocked, {}, costs);
  REQUIRE(frontier.points.size() > 10);
  const Index least = frontier.smallest().bytes, most = frontier.points.back().bytes;
  CHECK(most > 4 * least);
  const auto fitted = [&](Index bytes) {
    PolicySpec policy = Policy<Fit<1>>::value;
    policy.fit_bytes = bytes;
    return make_plan(table, policy, blocked, {}, costs);
  };
  for (const Index bytes : {least, least + 1, (least + most) / 2, most, 2 * most}) {
    const Plan plan = fitted(bytes);
    CHECK(plan.arena.bytes <= bytes);
    CHECK(plan.policy == frontier.fastest(bytes)->policy);
    CHECK(plan.policy.fit_bytes == 0);
    CHECK(parse_policy(to_string(plan.policy)) == plan.policy);
    CHECK(make_plan(table, plan.policy, blocked).steps == plan.steps);
  }
  const std::string error = error_of<PlanError>([&] { fitted(least - 1); });
  CHECK(error.find("the fewest bytes that a plan was found for are " + std::to_string(least)) != std::string::npos);
  CHECK(error.find("use Fit<" + std::to_string(least) + "> or more") != std::string::npos);
}
TEST_CASE("what a policy names beside Fit holds") {
  const Table table = make_table(ResNet18<>::layers, {2, 3, 128, 128});
  const auto points = [&](const PolicySpec& policy) { return find_frontier(table, policy, blocked, {}, costs).points; };
  for (const SolvedPolicy& p : points(Policy<Fit<1>, CheckpointAtPools, RecomputeAll, DirectConv, Workspace<12345>>::value)) {
    CHECK(p.policy.checkpoints == Checkpoints{.rule = Checkpoints::Rule::pools});
    CHECK(p.policy.conv_algorithm == ConvAlgorithm::direct);
    CHECK(p.policy.workspace_bytes == 12345);
    for (Index i = 0; i < p.policy.partition_count; ++i) CHECK(p.policy.recompute_in(p.policy.partition(i)) == Recompute::all);
  }
  std::size_t cut = 0;
  for (const SolvedPolicy& p : points(Policy<Fit<1>, Overlap<4>, Bf16, Streams<2>, Prefetch>::value)) {
    CHECK(p.policy.precision == Precision::bf16);
    CHECK((p.policy.streams == 2 && p.policy.prefetch));
    for (Index i = 0; i < p.policy.partition_count; ++i) {
      CHECK(p.policy.partition(i).cut == Cut::overlap);
      CHECK(p.policy.partition(i).backward <= 4);
      cut += p.policy.partition(i).backward == 4;
    }
  }
  CHECK(cut > 0);
  const Table chain = make_table(Vgg11<>::layers, {4, 3, 64, 64});
  for (const SolvedPolicy& p : find_frontier(chain, Policy<Fit<1>, Images<1>>::value, blocked, {}, costs).points) CHECK(p.policy.images == 1);
  const auto of_images = [&](const PolicySpec& policy) {   // points that cut the batch, in the whole step or in a section
    Index count = 0;
    for (const SolvedPolicy& p : find_frontier(chain, policy, blocked, {}, costs).points) {
      bool cuts = p.policy.images > 0 && p.policy.images < 4;
      for (Index i = 0; i < p.policy.partition_count; ++i) cuts |= p.policy.partition(i).images > 0;
      count += cuts;
    }
    return count;
  };
  CHECK(of_images(Policy<Fit<1>>::value) > 0);
  CHECK(of_images(Policy<Fit<1>, Images<4>>::value) == 0);   // rows alone
  // A deep network that names some of its images is still cut into rows.
  const Table deep = make_table(Vgg16<>::layers, {4, 3, 224, 224});
  std::size_t of_rows = 0;
  for (const SolvedPolicy& p : find_frontier(deep, Policy<Fit<1>, Images<2>>::value, blocked, {}, costs).points)
    for (Index i = 0; i < p.policy.partition_count; ++i) of_rows += p.policy.partition(i).backward > 1;
  CHECK(of_rows > 0);
  const std::string input = error_of<PlanError>([&] { points(Policy<Fit<1>, RecomputeInput<Overlap<2>>>::value); });
  CHECK(input.find("names RecomputeInput<Overlap<2>> for all of its sections") != std::string::npos);
  const std::string error = error_of<PlanError>([&] { points(Policy<Fit<1>, Stages<Column, Overlap<2>>>::value); });
  CHECK(error.find("names 2 partitions") != std::string::npos);
}
TEST_CASE("large published networks have frontiers of several times fewer bytes than layer by layer") {
  const auto saves = [](std::span<const Layer> layers, const Input& input, const PlanOptions& options) {
    const Table table = make_table(layers, input);
    const Frontier frontier = find_frontier(table, Policy<Fit<1>>::value, blocked, options, costs);
    const Index column = arena_size(table, Policy<FastestConv, Workspace<64_MiB>>::value, blocked, options).bytes;
    return static_cast<double>(column) / static_cast<double>(frontier.smallest().bytes);
  };
  CHECK(saves(Vgg16<>::layers, {1, 3, 512, 512}, {}) > 6);
  CHECK(saves(ResNet18<>::layers, {1, 3, 512, 512}, {}) > 3);
}
TEST_CASE("no ready-made policy is faster than the frontier's point for its bytes") {
  std::size_t compared = 0;
  const auto compare = [&](std::span<const Layer> layers, const Input& input) {
    const Table table = make_table(layers, input);
    const Frontier frontier = find_frontier(table, Policy<Fit<1>>::value, blocked, {}, costs);
    StepCosts of_steps(costs, table, blocked);
    for (const ReadyMadePolicy& made : ready_made_policies) {
      CAPTURE(made.name);
      try {
        const Index bytes = arena_size(table, made.policy, blocked).bytes;
        const SolvedPolicy* const point = frontier.fastest(bytes);
        REQUIRE(point != nullptr);
        CHECK(point->seconds <= plan_seconds(table, made.policy, blocked, {}, of_steps) * (1 + 1e-9));
        ++compared;
      } catch (const PlanError&) {   // another network's layers, or more slabs than rows
      }
    }
  };
  compare(Vgg16<>::layers, {2, 3, 224, 224});
  compare(ResNet18<>::layers, {1, 3, 512, 512});
  CHECK(compared > 12);
}
TEST_CASE("networks and named parts at the edge of what a search can say have a frontier, too") {
  const auto points_of = [](const std::vector<Layer>& layers, const Input& input, const PolicySpec& policy) {
    const Table table = make_table(layers, input);
    const Frontier frontier = find_frontier(table, policy, blocked, {}, costs);
    REQUIRE(!frontier.points.empty());
    for (const SolvedPolicy& p : frontier.points) {
      CAPTURE(to_string(p.policy));
      const Plan plan = make_plan(table, p.policy, blocked);
      CHECK(plan.arena.bytes == p.bytes);
      CHECK(check_plan(plan).empty());
      CHECK(parse_policy(to_string(p.policy)) == p.policy);
    }
    return frontier.points;
  };
  const PolicySpec any = Policy<Fit<1>>::value;
  const Layer conv{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 4}, point{.kind = Kind::conv, .window = {1}, .channels = 4};
  const Layer relu{.kind = Kind::activation}, means{.kind = Kind::global_avg_pool};
  std::vector<Layer> scaled{conv}, chain, flat(40, {.kind = Kind::conv, .window = {1}, .channels = 1}), wide, vgg;
  for (int i = 0; i < 30; ++i) {   // more sections than a policy can name
    Layer scale{.kind = Kind::scale};
    scale.input = 4, scale.other = 1;
    for (const Layer& y : {means, point, relu, scale, conv}) scaled.push_back(y);
  }
  for (int i = 0; i < 80; ++i) chain.push_back(conv), chain.push_back(relu);
  for (int i = 0; i < 70; ++i) wide.push_back(point);   // more tensors across a barrier than a search has bits
  wide.push_back(means), wide.push_back(point);
  Layer scale{.kind = Kind::scale};
  scale.input = 3, scale.other = 1;
  wide.push_back(scale);
  for (Index i = 0; i < 69; ++i) wide.push_back({.kind = Kind::sum, .input = 1, .other = static_cast<Index>(wide.size()) - i});
  for (int i = 0; i < 3; ++i) vgg.push_back(conv), vgg.push_back(relu), vgg.push_back({.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}});
  points_of(scaled, {2, 4, 16, 16}, any);
  points_of(chain, {1, 4, 12, 8}, Policy<Fit<1>, CheckpointEvery<2>>::value);
  points_of(flat, {1, 1, 1, 1}, any);
  points_of(wide, {1, 4, 8, 8}, any);
  for (const PolicySpec& policy :
       {Policy<Fit<1>, Share<6, 1>>::value, Policy<Fit<1>, Overlap<6, 1>>::value, Policy<Fit<1>, Overlap<1000000000, 1>>::value,
        Policy<Fit<1>, Share<1000, 3>>::value, Policy<Fit<1>, ByImages<3>>::value, Policy<Fit<1>, ExtraPasses<Overlap<4>>>::value})
    points_of(vgg, {4, 3, 32, 16}, policy);
  for (const SolvedPolicy& p : points_of(vgg, {2, 3, 32, 16}, Policy<Fit<1>, Section<Overlap<2>, RecomputeLight>, RecomputeAll>::value))
    for (Index i = 0; i < p.policy.partition_count; ++i) CHECK(p.policy.partition(i).recompute == Recompute::light);
  CHECK(points_of({relu}, {3, 1, 7, 7}, any).front().bytes < 10'000);   // no workspace for what wants none
  PolicySpec set = Policy<Overlap<2>>::value;                           // at run time
  set.fit_bytes = 1;
  for (const SolvedPolicy& p : points_of(vgg, {2, 3, 32, 16}, set)) CHECK(p.policy.partition(0).cut == Cut::overlap);
}
TEST_CASE("forward passes alone go through groups of images, too") {
  const Table table = make_table(Vgg11<>::layers, {16, 3, 64, 64});
  const Frontier frontier = find_frontier(table, Policy<Fit<1>>::value, blocked, predicting, costs);
  const Index one_by_one = arena_size(table, Policy<Images<1>, FastestConv, Workspace<0>>::value, blocked, predicting).bytes;
  CHECK(frontier.smallest().bytes <= one_by_one);
  // Gradients that are named to lie in the places of values are none of a forward pass.
  CHECK(find_frontier(table, Policy<Fit<1>, GradientsInPlace>::value, blocked, predicting, costs).points == frontier.points);
}
TEST_CASE("forward only, the whole of a network of many layers is cut into slabs that are handed on") {
  const Table table = table_of<UNet<2, 16>>({1, 3, 512, 512});
  const Frontier frontier = find_frontier(table, Policy<Fit<1>>::value, blocked, predicting, costs);
  PolicySpec by_hand = Policy<Share<16>, FastestConv>::value;
  by_hand.workspace_bytes = frontier.smallest().policy.workspace_bytes;
  CHECK(frontier.smallest().bytes <= arena_size(table, by_hand, blocked, predicting).bytes);
  CHECK(2 * frontier.smallest().bytes < arena_size(table, Policy<Column, FastestConv>::value, blocked, predicting).bytes);
  const Frontier direct = find_frontier(table, Policy<Fit<1>, DirectConv>::value, blocked, predicting, costs);   // arithmetic is named, no cuts
  CHECK(direct.smallest().bytes <= arena_size(table, Policy<Share<16>, Workspace<64_MiB>>::value, blocked, predicting).bytes);
  const Table four = table_of<UNet<2, 16>>({4, 3, 512, 512});
  CHECK(find_frontier(four, Policy<Fit<1>>::value, blocked, predicting, costs).smallest().bytes < 5 * frontier.smallest().bytes / 4);
}
TEST_CASE("a network of many layers without norms is cut as a whole for training, too") {
  const Table table = table_of<UNet2015<2, 32>>({1, 1, 1084, 1084});
  const PlanOptions by_rows{.rows_loss = true};
  const Frontier frontier = find_frontier(table, Policy<Fit<1>>::value, blocked, by_rows, costs);
  CHECK(frontier.smallest().bytes <= arena_size(table, Policy<Share<16>, RecomputeAll, FastestConv, Workspace<0>>::value, blocked, by_rows).bytes);
}
TEST_CASE("sections have more workspace where that was measured to be faster and there is room for it") {
  using Wide = Sequential<Conv<256>, ReLU, Conv<256>, ReLU, MaxPool<>, Conv<256>, ReLU, Conv<256>, ReLU, GlobalAvgPool, Linear<10>>;
  const Table table = make_table(Wide::layers, {4, 256, 48, 48});
  const Target target{.channel_block = 16, .packs_weights = true, .activates = true};
  const auto scratch = +[](Index from, Index to, Index tiles) { return 144 * (tiles * (from + 64) + 64 * from) + 4 * to; };
  const Rates rates{.step = 1e-6, .products = 2e9, .winograd = 5e9, .bytes = 5e9, .lanes = 4, .winograd_bytes = scratch};
  const Index good = rates.good_scratch(256, 256), ample = rates.ample_scratch(256, 256);
  CHECK(good == scratch(256, 256, 96));
  CHECK(ample > 2 * good);
  CHECK(rates.ample_scratch(64, 64) == rates.good_scratch(64, 64));
  const Costs estimated(rates);
  StepCosts seconds_of(estimated, table, target);
  Costs measured(rates);
  for (const Index bytes : {good, ample}) {
    PolicySpec policy = Policy<Column, FastestConv>::value;
    policy.partitions[0].workspace_bytes = bytes;
    const Plan plan = make_plan(table, policy, target);
    for (const Step& step : plan.steps)
      if (step.layer >= 0 && step.workspace >= 0)
        measured.set(step_kind(plan, step), {{step_size(plan, step).pixels, seconds_of.seconds(plan, step) * (bytes == ample ? 0.7 : 1)}});
  }
  const auto ample_sections = [&](const PolicySpec& policy) {
    return std::count_if(policy.partitions.begin(), policy.partitions.begin() + policy.partition_count,
                         [&](const Partition& p) { return p.workspace_bytes == ample; });
  };
  const Frontier estimates = find_frontier(table, Policy<Fit<1>, FastestConv>::value, target, {}, estimated);
  const Frontier frontier = find_frontier(table, Policy<Fit<1>, FastestConv>::value, target, {}, measured);
  for (const SolvedPolicy& point : estimates.points) CHECK(ample_sections(point.policy) == 0);
  Index with_ample = 0, without = 0;
  for (const SolvedPolicy& point : frontier.points) ++(ample_sections(point.policy) > 0 ? with_ample : without);
  CHECK(with_ample > 0);
  CHECK(without > 0);   // those of the fewest bytes
  for (const SolvedPolicy& point : frontier.points) CHECK(seconds(make_plan(table, point.policy, target), measured) <= point.seconds * (1 + 1e-9));
}
TEST_CASE("outputs of all images count where groups of images go through the network and the outputs are handed on at the end") {
  using Net = Sequential<Conv<16>, ReLU, Conv<64>, GlobalAvgPool>;
  const Table table = make_table(Net::layers, {64, 1, 4, 4});
  const PlanOptions options{.training = false, .stores_output = true};
  const Target target;
  PolicySpec policy = Policy<DirectConv, Workspace<0>>::value;
  policy.images = 1;
  const SectionSearch search(table, policy, target, options, frontier_costs);
  Index found = 0;
  for (Index room = Index{1} << 20; room > 0;) {
    const std::vector<SolvedPolicy> fastest = search.fastest(StepMemory::shared_workspace, room, 0);
    if (fastest.empty()) break;
    const Index live = arena_size(table, fastest[0].policy, target, options).lower_bound;
    CHECK(live <= room);
    room = std::min(room, live) - 1;
    ++found;
  }
  CHECK(found > 2);
}
