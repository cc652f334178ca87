// The peak as a constant expression, for shipped networks under ten policies, equal to that of the plan made at run time; each constant is an
// expression of its own, within both compilers' default limits. Every day VGG-16 under four policies; with LRCNN_THOROUGH under all ten, with blocked
// storage as well, and its shorter and longer kin: that takes the compiler most of a minute more. Then laws of the peak, and the time that
// planning takes.
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/peak.hpp>
#include <lrcnn/policy/parse.hpp>
#include <doctest/doctest.h>
#include <ctime>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
using P0 = Policy<>;
using P1 = Policy<RecomputeAll, Workspace<0>>;
using P2 = Policy<RecomputeCheap, CheckpointAtPools>;
using P3 = Policy<Share<5>, CheckpointAtPools, RecomputeAll>;
using P4 = Policy<Share<3, 6>, CheckpointAtPools, RecomputeCheap, Workspace<32_MiB>>;
using P5 = Policy<Overlap<4>, CheckpointAtPools, KeepAll>;
using P6 = Policy<Overlap<2, 5>, CheckpointEvery<4>, RecomputeAll>;
using P7 = Policy<ByImages<2, Share<4>>, CheckpointEvery<6>, RecomputeAll, WinogradConv>;
using P8 = Policy<Images<3>, Share<2>, CheckpointAtPools, RecomputeAll>;
using P9 = Policy<Stages<Share<6>, ByImages<1, Overlap<3>>, Column>, CheckpointAt<"pool1", "pool2">, RecomputeAll, FastestConv>;
template <class Net, class Rows, Input input>
inline constexpr Index peak = peak_bytes<Net, Rows>(input);
/// Storage of a backend that blocks channels and packs filters.
struct Blocked {
  static constexpr Target target{.element_bytes = 4, .channel_block = 16, .plain_channels = 3, .alignment = 64, .packs_weights = true};
};
template <class Net, class Rows, Input input>
inline constexpr Index blocked_peak = peak_bytes<Net, Rows, Blocked>(input);
/// A policy with the constant peaks of a network under it; that of blocked storage is 0 where it is not asked for.
struct Constants {
  PolicySpec policy;
  Index peak, blocked;
};
template <class Net, Input input, bool blocked, class... Rows>
std::vector<Constants> constants_of() {
  if constexpr (blocked) return {{Rows::value, peak<Net, Rows, input>, blocked_peak<Net, Rows, input>}...};
  else return {{Rows::value, peak<Net, Rows, input>, 0}...};
}
void compare(const Table& table, const std::vector<Constants>& all) {
  CAPTURE(to_string(table.input));
  for (const Constants& c : all) {
    CAPTURE(to_string(c.policy));
    const Plan plan = make_plan(table, c.policy);
    CHECK(c.peak == plan.peak_bytes());
    CHECK(arena_size(plan.table, c.policy) == plan.arena);
    CHECK(plan.arena.lower_bound <= plan.arena.bytes);
    if (c.blocked > 0) CHECK(c.blocked == make_plan(table, c.policy, Blocked::target).peak_bytes());
  }
}
template <class Net, Input input, bool blocked = false>
void compare_all() {
  compare(table_of<Net>(input), constants_of<Net, input, blocked, P0, P1, P2, P3, P4, P5, P6, P7, P8, P9>());
}
constexpr Input large{8, 3, 224, 224};
template <class Net>
void compare_some() {
  compare(table_of<Net>(large), constants_of<Net, large, false, P0, P4, P7, P9>());
}
}   // namespace
#ifdef LRCNN_THOROUGH
TEST_CASE("the constant peak of VGG-11 is that of the plan") { compare_some<Vgg11<>>(); }
TEST_CASE("the constant peak of VGG-13 is that of the plan") { compare_some<Vgg13<>>(); }
TEST_CASE("the constant peak of VGG-16 is that of the plan") { compare_all<Vgg16<>, large, true>(); }
TEST_CASE("the constant peak of VGG-19 is that of the plan") { compare_some<Vgg19<>>(); }
#else
TEST_CASE("the constant peak of VGG-16 is that of the plan") { compare_some<Vgg16<>>(); }
#endif
TEST_CASE("the constant peak of LeNet is that of the plan") { compare_all<LeNet<>, Input{64, 1, 28, 28}>(); }
TEST_CASE("the constant peak of SmallNet is that of the plan") { compare_all<SmallNet<>, Input{64, 3, 32, 32}, true>(); }
// The example of the design: known before anything runs, the workspace included.
static_assert(peak<Vgg16<10>, Policy<Share<7>, CheckpointAtPools, RecomputeAll, Workspace<32_MiB>>, large> < 140_MiB);
static_assert(peak<Vgg16<10>, Policy<Share<7>, CheckpointAtPools, RecomputeAll, Workspace<32_MiB>>, large> * 2 <
              peak<Vgg16<10>, Policy<Workspace<32_MiB>>, large>);
static_assert(peak_bytes<Fixed<LeNet<>, Input{4, 1, 28, 28}>, P0>() == peak<LeNet<>, P0, Input{4, 1, 28, 28}>);
namespace {
struct Shipped {
  std::string name;
  std::span<const Layer> layers;
  Input input;
};
std::vector<Shipped> shipped(Index n, Index size) {
  return {{"VGG-11", Vgg11<>::layers, {n, 3, size, size}}, {"VGG-13", Vgg13<>::layers, {n, 3, size, size}},
          {"VGG-16", Vgg16<>::layers, {n, 3, size, size}}, {"VGG-19", Vgg19<>::layers, {n, 3, size, size}},
          {"LeNet", LeNet<>::layers, {n, 1, size, size}},  {"SmallNet", SmallNet<>::layers, {n, 3, size, size}}};
}
/// The ten policies as values, without the parts that cut the batch.
std::vector<PolicySpec> row_policies() { return {P0::value, P1::value, P2::value, P3::value, P4::value, P5::value, P6::value}; }
}   // namespace
TEST_CASE("without a workspace, twice the images take twice the memory") {
  for (const Shipped& net : shipped(16, 64))   // 16 images: every size is a multiple of the alignment
    for (PolicySpec policy : row_policies()) {
      policy.workspace_bytes = 0;
      CAPTURE(net.name);
      CAPTURE(to_string(policy));
      Input twice = net.input;
      twice.n *= 2;
      const ArenaSize once = arena_size(make_table(net.layers, net.input), policy);
      CHECK(arena_size(make_table(net.layers, twice), policy) == ArenaSize{2 * once.bytes, 2 * once.lower_bound});
    }
}
TEST_CASE("in groups of images only the network's output grows with the batch") {
  for (const Shipped& net : shipped(2, 64))
    for (PolicySpec policy : row_policies()) {
      CAPTURE(net.name);
      CAPTURE(to_string(policy));
      policy.images = 2;
      const auto peak_of = [&](Index n) {
        Input input = net.input;
        input.n = n;
        return arena_size(make_table(net.layers, input), policy).bytes;
      };
      const Table table = make_table(net.layers, net.input);
      const Index logits = table.shape(table.size()).c * 4, four = peak_of(4), many = peak_of(40);
      CHECK(many > four);
      CHECK(many <= four + round_up(36 * logits, 64));
    }
}
TEST_CASE("keeping less takes no more memory where rows are cut, and not training never does") {
  for (const Shipped& net : shipped(4, 64))
    for (PolicySpec policy : row_policies()) {
      CAPTURE(net.name);
      CAPTURE(to_string(policy));
      const Table table = make_table(net.layers, net.input);
      const auto peak_of = [&](Recompute r, bool training = true) {
        policy.recompute = r;
        return arena_size(table, policy, {}, {.training = training}).bytes;
      };
      const Index all = peak_of(Recompute::none);
      if (policy.partitions[0].cut != Cut::column) CHECK(peak_of(Recompute::all) <= all);   // a whole map twice is no gain
      // With RecomputeCheap an activation that begins a section reads its input again, which otherwise lives in the forward pass alone.
      const bool reads_inputs = policy.checkpoints.rule == Checkpoints::Rule::every;
      if (policy.partitions[0].cut != Cut::column && !reads_inputs) CHECK(peak_of(Recompute::cheap) <= all);
      CHECK(peak_of(Recompute::none, false) <= peak_of(Recompute::all));
      CHECK(peak_of(Recompute::none, false) == peak_of(Recompute::all, false));
      CHECK(peak_of(Recompute::none, false) >= policy.workspace_bytes);
    }
}
TEST_CASE("the workspace is part of the peak, byte by byte") {
  const Table table = make_table(SmallNet<>::layers, {8, 3, 32, 32});
  PolicySpec policy = P3::value;
  policy.workspace_bytes = 0;
  const Index without = arena_size(table, policy).lower_bound;
  for (const Index bytes : {64, 4096, 1 << 20}) {
    policy.workspace_bytes = bytes;
    CHECK(arena_size(table, policy).lower_bound == without + bytes);   // live during the whole step
  }
}
TEST_CASE("a policy that names no workspace has the target's, and one that names 4 MiB keeps them") {
  constexpr Target ample{.default_workspace = 9_MiB};
  constexpr Input input{.n = 1, .c = 1, .h = 28, .w = 28};
  const auto workspace_of = [&](const PolicySpec& policy, const Target& target) {
    const Plan plan = make_plan(table_of<LeNet<10>>(input), policy, target);
    CHECK(plan.arena.bytes == arena_size(table_of<LeNet<10>>(input), policy, target).bytes);
    CHECK(make_plan(table_of<LeNet<10>>(input), plan.policy, target).arena.bytes == plan.arena.bytes);
    CHECK(parse_policy(to_string(plan.policy)) == plan.policy);
    Index bytes = 0;
    for (const Buffer& b : plan.buffers)
      if (b.role == Role::workspace) bytes = std::max(bytes, b.bytes);
    CHECK(bytes == plan.policy.most_workspace_bytes());
    return bytes;
  };
  PolicySpec set = Policy<Share<2>>::value;
  CHECK(workspace_of(set, ample) == 9_MiB);
  CHECK(workspace_of(set, {}) == 4_MiB);
  set.workspace_bytes = 4_MiB;
  CHECK(workspace_of(set, ample) == 4_MiB);
  CHECK(workspace_of(Policy<Share<2>, Workspace<4_MiB>>::value, ample) == 4_MiB);
  CHECK(workspace_of(Policy<Fit<20_MiB>, Workspace<4_MiB>>::value, ample) == 4_MiB);
  CHECK(workspace_of(Policy<Fit<20_MiB>, Section<Share<2>, Workspace<1_MiB>>>::value, ample) >= 1_MiB);
  constexpr Index named = arena_size(table_of<LeNet<10>>(input), Policy<Share<2>, Workspace<9_MiB>>::value, ample).bytes;
  static_assert(arena_size(table_of<LeNet<10>>(input), Policy<Share<2>>::value, ample).bytes == named);
}
TEST_CASE("a section's own workspace takes memory only while its stages run") {
  const Table table = make_table(SmallNet<>::layers, {8, 3, 32, 32});
  const auto spec = [&](Index first, Index second, Index shared) {
    PolicySpec s = Policy<Stages<Overlap<4>, Column>, CheckpointAt<"pool1">, RecomputeAll>::value;
    s.partitions[0].workspace_bytes = first, s.partitions[1].workspace_bytes = second, s.workspace_bytes = shared;
    return s;
  };
  const Index none = arena_size(table, spec(0, 0, 0)).lower_bound;
  const Index huge = 1 << 28;                                                       // more than everything else
  CHECK(arena_size(table, spec(0, 0, huge)) == arena_size(table, spec(0, 0, 0)));   // no section takes the shared one
  CHECK(arena_size(table, spec(-1, 0, huge)).lower_bound == none + huge);           // the shared one lives during the whole step
  for (const auto& [first, second] : {std::pair<Index, Index>{huge, 0}, {0, huge}, {huge, huge}}) {
    const Plan plan = make_plan(table, spec(first, second, huge));
    CHECK(plan.arena.lower_bound <= none + huge);                   // the sections take turns
    if (second == 0) CHECK(plan.arena.lower_bound < none + huge);   // the peak without workspaces is in the second section
    CHECK(plan.arena.lower_bound > huge);
    CHECK(check_plan(plan).empty());
    for (const Step& step : plan.steps) {
      const Partition& partition = plan.stages[static_cast<std::size_t>(step.stage)].partition;
      if (step.workspace < 0) continue;
      CHECK(item(plan.buffers, step.workspace).bytes == partition.workspace_bytes);
      CHECK(item(plan.buffers, step.workspace).stage == step.stage);
    }
  }
}
TEST_CASE("planning a shipped network takes less than 50 ms for maps of 224 to 4096 rows") {
  // Asserted with a factor of 4 for slow machines.
  for (const Index size : {224, 1024, 4096})
    for (const Shipped& net : shipped(8, size))
      for (const PolicySpec& policy : {P0::value, P3::value, P5::value, P9::value, Policy<Share<16, 28>, CheckpointAtPools, RecomputeCheap>::value,
                                       Policy<ByImages<1, Share<7>>, CheckpointAtPools, RecomputeAll, WinogradConv>::value}) {
        std::vector<double> ms;
        bool feasible = true;
        for (int i = 0; i < 3 && feasible; ++i) {
          const std::clock_t begin = std::clock();   // the processor's time: other programs do not count
          try {
            const Plan plan = make_plan(make_table(net.layers, net.input), policy, Blocked::target);
            feasible = !plan.steps.empty();
          } catch (const PlanError&) {
            feasible = false;   // 28 slabs are too many for the small ones
          }
          ms.push_back(1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
        }
        std::sort(ms.begin(), ms.end());
        CAPTURE(net.name);
        CAPTURE(size);
        CAPTURE(to_string(policy));
        CHECK(ms[ms.size() / 2] < 4 * 50);
      }
}
