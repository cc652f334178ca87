// Plans with fewer steps: filters stay packed where the arena has room, rows of one image are convolved where they lie. Plans take no more bytes.
#include "support/random_graph.hpp"
#include "support/random_network.hpp"
#include "support/thorough.hpp"
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/plan/memory_over_time.hpp>
#include <doctest/doctest.h>
#include <map>
#include <set>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
bool packs(const Step& s) { return s.op == Op::pack_forward || s.op == Op::pack_backward; }
Index count_packs(const Plan& plan) { return std::count_if(plan.steps.begin(), plan.steps.end(), packs); }
Index most_live(const Plan& plan) {
  Index most = 0;
  for (const LiveBytes& live : live_bytes(plan)) most = std::max(most, live.sum());
  return most;
}
/// All steps, those that are left out among them, which pack what is there.
std::vector<Step> all_steps(const Plan& plan) {
  std::vector<Step> steps = plan.steps;
  std::map<Index, Op> op;
  for (const Step& s : plan.steps)
    if (packs(s)) op[s.packed] = s.op;
  for (const LeftOutStep& s : plan.left_out) steps.insert(steps.begin() + s.place, s.step)->op = op.at(s.step.packed);
  return steps;
}
const Target channels_last{.channel_block = Target::all_channels, .alignment = 256, .packs_weights = true, .activates = true, .packs_alike = true};
}   // namespace
TEST_CASE("plans that leave packing out are sound, as large as said, and pack each filter that is read") {
  Index left_out = 0, stayed = 0, packing = 0, moved = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(4000, 500); ++seed) {
    Dice dice(seed);
    const RandomNetwork net = seed % 2 == 0 ? random_network(dice, 9) : random_graph(dice, 7);
    PolicySpec policy = random_policy(dice, net);
    add_workspaces(dice, policy, {0, 1 << 10, 1 << 12});
    const PlanOptions options{.training = dice.chance(0.85), .input_gradient = dice.chance(0.3)};
    const Target target{.channel_block = dice.pick({1, 8}),
                        .packs_weights = true,
                        .packs_linear = dice.chance(0.3),
                        .packs_alike = dice.chance(0.5),
                        .packs_together = dice.chance(0.5)};
    CAPTURE(seed);
    CAPTURE(to_string(policy));
    try {
      Plan plan = make_plan(make_table(net.layers, net.input), policy, target, options);
      REQUIRE(plan.arena == arena_size(plan.table, policy, target, options));
      REQUIRE(most_live(plan) <= plan.arena.lower_bound);
      if (plan.left_out.empty()) REQUIRE(most_live(plan) == plan.arena.lower_bound);
      for (const Buffer& b : plan.buffers) REQUIRE(b.offset + b.bytes <= plan.arena.bytes);
      REQUIRE(check_plan(plan).empty());
      std::set<std::pair<Index, Index>> packed;   // buffer, layer
      for (const Step& s : plan.steps)
        if (packs(s)) packed.insert({s.packed, s.layer});
      for (const LeftOutStep& s : plan.left_out) REQUIRE((packs(s.step) && packed.contains({s.step.packed, s.step.layer})));
      left_out += static_cast<Index>(plan.left_out.size()), packing += count_packs(plan), stayed += !plan.left_out.empty();
      moved += static_cast<Index>(plan.moved.size());
      plan.steps = all_steps(plan);   // packing once more does no harm
      REQUIRE(check_plan(plan).empty());
    } catch (const PlanError&) {   // more slabs than rows, or a norm of one value
    }
  }
  MESSAGE(packing << " steps that pack and " << left_out << " that are left out, of " << stayed << " plans");
  CHECK(stayed > 100);
  CHECK(left_out > packing / 8);
  CHECK(moved > packing / 8);
}
TEST_CASE("steps that pack come together where there is room for their filters, and no more lives at once") {
  using W = Workspace<64_MiB>;
  const auto batches = [](const Plan& plan) {   // of steps that pack, one behind the other
    Index count = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) count += packs(plan.steps[i]) && (i == 0 || !packs(plan.steps[i - 1]));
    return count;
  };
  Target together = channels_last;
  together.packs_together = true;
  const Table vgg = make_table(Vgg16<>::layers, {8, 3, 224, 224}), resnet = make_table(ResNet50<>::layers, {32, 3, 224, 224});
  for (const auto& [table, policy, most] :
       {std::tuple{&vgg, Policy<Column, W>::value, Index{11}}, std::tuple{&resnet, Policy<Column, W>::value, Index{8}},
        std::tuple{&vgg, Policy<Share<8>, CheckpointAtPools, RecomputeAll, W>::value, Index{6}}}) {
    INFO(to_string(policy), ", ", table->size(), " layers");
    const Plan apart = make_plan(*table, policy, channels_last), plan = make_plan(*table, policy, together);
    CHECK(plan.arena == apart.arena);
    CHECK(most_live(plan) <= plan.arena.lower_bound);
    CHECK(count_packs(plan) == count_packs(apart));
    CHECK(check_plan(plan).empty());
    CHECK(batches(apart) > 10);
    CHECK(batches(plan) <= most);
  }
}
TEST_CASE("VGG-16 and ResNet-50 by slabs pack each filter about once") {
  using W = Workspace<64_MiB>;
  const Table vgg = make_table(Vgg16<>::layers, {8, 3, 224, 224}), resnet = make_table(ResNet50<>::layers, {1, 3, 1024, 1024});
  const Plan share = make_plan(vgg, Policy<Share<8>, CheckpointAtPools, RecomputeAll, W>::value, channels_last);
  CHECK(count_packs(share) <= 24);
  CHECK(count_packs(share) + static_cast<Index>(share.left_out.size()) >= 178);
  const Plan overlap = make_plan(resnet, Policy<Overlap<8>, CheckpointAtPools, RecomputeAll, W>::value, channels_last);
  CHECK(count_packs(overlap) <= 110);
  CHECK(count_packs(overlap) + static_cast<Index>(overlap.left_out.size()) >= 670);
}
TEST_CASE("a filter whose layouts differ by direction is packed for each; one that is needed at the peak has no room to stay") {
  const Table table = make_table(SmallNet<>::layers, {8, 1, 28, 28});
  Target by_direction = channels_last;
  by_direction.packs_alike = false;
  const PolicySpec rows = Policy<Share<2>, CheckpointAtPools, RecomputeAll>::value;
  const Plan alike = make_plan(table, rows, channels_last), each = make_plan(table, rows, by_direction);
  CHECK(alike.arena == each.arena);
  CHECK(count_packs(alike) < count_packs(each));
  for (const Plan* plan : {&alike, &each}) {
    std::map<Index, std::set<Op>> ops;   // by buffer
    for (const Step& s : plan->steps)
      if (packs(s)) ops[s.packed].insert(s.op);
    for (const auto& [buffer, of] : ops) CHECK(of.size() == 1);
  }
  const Plan column = make_plan(make_table(Vgg16<>::layers, {8, 3, 224, 224}), Policy<Column>::value, channels_last);
  CHECK(column.left_out.empty());   // each filter is packed once on either side of the peak
}
TEST_CASE("rows of one image are convolved where they lie: fewer rows are moved, and no more lives at once") {
  Target there = channels_last;
  there.convolves_rows = true;
  const auto moves = [](const Plan& plan) {
    return std::count_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.op == Op::copy || s.op == Op::add || s.op == Op::zero; });
  };
  const Table resnet = make_table(ResNet50<>::layers, {1, 3, 1024, 1024});
  const PolicySpec slabs = Policy<Overlap<8>, CheckpointAtPools, RecomputeAll, Workspace<64_MiB>>::value;
  const Plan plan = make_plan(resnet, slabs, there), copied = make_plan(resnet, slabs, channels_last);
  CHECK(check_plan(plan).empty());
  CHECK(moves(plan) <= 960);
  CHECK(moves(copied) >= 2 * moves(plan));
  CHECK(moves(copied) >= 1950);
  CHECK(plan.steps.size() <= 6140);
  CHECK(plan.arena.bytes <= copied.arena.bytes);
  Index fewer = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Dice dice(seed + 90000);
    const RandomNetwork net = seed % 2 == 0 ? random_network(dice, 9) : random_graph(dice, 7);
    const PolicySpec policy = random_policy(dice, net);
    const PlanOptions options{.training = dice.chance(0.85), .input_gradient = dice.chance(0.3)};
    CAPTURE(seed);
    CAPTURE(to_string(policy));
    try {
      const Table table = make_table(net.layers, net.input);
      const Plan a = make_plan(table, policy, there, options), b = make_plan(table, policy, channels_last, options);
      REQUIRE(check_plan(a).empty());
      REQUIRE(a.arena.lower_bound <= b.arena.lower_bound);
      REQUIRE(moves(a) <= moves(b));
      fewer += moves(a) < moves(b);
    } catch (const PlanError&) {   // more slabs than rows, or a norm of one value
    }
  }
  CHECK(fewer > 20);
}
