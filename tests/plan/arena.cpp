// The placement of buffers: laws on every tiny case and on seeded random ones.
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/arena.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <doctest/doctest.h>
#include <string>
#include "support/random_network.hpp"
#include "support/thorough.hpp"
using namespace lrcnn;
using lrcnn::testing::Dice;
namespace {
Buffer buffer(Index bytes, Index first, Index last) {
  Buffer b;
  b.bytes = bytes, b.first = first, b.last = last;
  return b;
}
std::string show(const std::vector<Buffer>& buffers) {
  std::string text;
  for (const Buffer& b : buffers)
    text += std::to_string(b.bytes) + "@" + std::to_string(b.offset) + " in [" + std::to_string(b.first) + "," + std::to_string(b.last) + ") ";
  return text;
}
/// The greatest sum of live bytes, time by time.
Index most_live(const std::vector<Buffer>& buffers) {
  Index most = 0, end = 0;
  for (const Buffer& b : buffers) end = std::max(end, b.last);
  for (Index t = 0; t < end; ++t) {
    Index live = 0;
    for (const Buffer& b : buffers)
      if (b.first <= t && t < b.last) live += b.bytes;
    most = std::max(most, live);
  }
  return most;
}
/// The first law of place() that does not hold; empty if all do.
std::string broken_law(const std::vector<Buffer>& buffers, const ArenaSize& size, Index alignment) {
  Index end = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    if (a.bytes == 0) continue;
    if (a.offset < 0 || a.offset % alignment != 0) return "offsets are multiples of the alignment: " + show(buffers);
    end = std::max(end, a.offset + a.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const Buffer& b = buffers[j];
      if (b.bytes > 0 && a.meets(b) && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
        return "buffers that meet do not overlap: " + show(buffers);
    }
  }
  if (size.bytes != end) return "the arena ends with its last buffer: " + show(buffers);
  if (size.lower_bound != most_live(buffers)) return "the lower bound is the greatest sum of live bytes: " + show(buffers);
  if (size.lower_bound > size.bytes) return "lower_bound <= bytes: " + show(buffers);
  return "";
}
/// The arena where buffers are placed by their bytes alone, each at the lowest gap.
Index placed_by_bytes(std::vector<Buffer> buffers) {
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Buffer& a, const Buffer& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.first < b.first; });
  Index end = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    Buffer& b = buffers[i];
    b.offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t k = 0; k < i; ++k) {
        const Buffer& a = buffers[k];
        if (!a.meets(b) || a.bytes == 0 || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) continue;
        b.offset = a.offset + a.bytes, moved = true;
      }
    }
    end = std::max(end, b.offset + b.bytes);
  }
  return end;
}
/// Calls f with every list of `count` buffers of 0 to 3 bytes that live somewhere in [0, 4).
template <class F>
void each_list(Index count, F f) {
  std::vector<Buffer> kinds;
  for (Index bytes = 0; bytes <= 3; ++bytes)
    for (Index first = 0; first < 4; ++first)
      for (Index last = first + 1; last <= 4; ++last) kinds.push_back(buffer(bytes, first, last));
  std::vector<std::size_t> pick(static_cast<std::size_t>(count), 0);
  for (;;) {
    std::vector<Buffer> list;
    for (const std::size_t p : pick) list.push_back(kinds[p]);
    f(list);
    std::size_t i = 0;
    while (i < pick.size() && ++pick[i] == kinds.size()) pick[i++] = 0;
    if (i == pick.size()) return;
  }
}
/// Buffers as a forward and backward pass of so many layers has them: what a layer keeps lives until its backward pass; the rest is soon gone.
std::vector<Buffer> buffers_of_pass(std::uint64_t seed, Index layers) {
  Dice dice(seed);
  std::vector<Buffer> list;
  for (Index l = 0; l < layers; ++l) {
    const Index map = 4000 * (layers - l) / layers + dice.upto(1, 100), forward = 3 * l, backward = 3 * (2 * layers - l);
    if (dice.chance(0.5)) list.push_back(buffer(map / dice.upto(1, 8), forward, backward + 2));   // kept
    list.push_back(buffer(dice.upto(1, 40), forward, backward + 2));                              // statistics
    for (const Index now : {forward, backward}) {
      list.push_back(buffer(map, now, now + dice.upto(2, 6)));
      list.push_back(buffer(map / 2 + dice.upto(1, 3000), now + 1, now + 2));           // a filter, a workspace
      if (dice.chance(0.3)) list.push_back(buffer(map, now, now + dice.upto(6, 30)));   // around a residual
    }
  }
  return list;
}
/// A list that leaves a gap where the largest come first, those that live longest, or those that live when most is live.
constexpr std::vector<Buffer> needs_another_order() {
  constexpr std::array<std::array<Index, 3>, 4> bytes_and_lives{{{3, 2, 5}, {3, 1, 3}, {3, 2, 3}, {4, 0, 2}}};
  std::vector<Buffer> list;
  for (const auto& b : bytes_and_lives) {
    list.emplace_back();
    list.back().bytes = b[0], list.back().first = b[1], list.back().last = b[2];
  }
  return list;
}
constexpr ArenaSize placed_at_compile_time = [] {
  std::vector<Buffer> list = needs_another_order();
  return place(list);
}();
/// How far the plans of a network's frontier are above their bounds.
std::vector<double> above_bound(std::span<const Layer> layers, const Input& input) {
  const Target target{.channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
  const Table table = make_table(layers, input);
  std::vector<double> result;
  for (const SolvedPolicy& point : find_frontier(table, Policy<Fit<1>>::value, target, {}, Costs{}).points) {
    const ArenaSize size = arena_size(table, point.policy, target, {}, Costs{});
    result.push_back(static_cast<double>(size.bytes) / static_cast<double>(size.lower_bound));
  }
  return result;
}
}   // namespace
TEST_CASE("every placement of up to three small buffers keeps the laws, and one or two need no more than the bound") {
  std::string broken;
  Index cases = 0;
  for (Index count = 0; count <= 3; ++count)
    each_list(count, [&](std::vector<Buffer> list) {
      const ArenaSize size = place(list);
      auto law = broken_law(list, size, 1);
      if (law.empty() && count <= 2 && size.bytes != size.lower_bound) law = "two buffers need no gap: " + show(list);
      if (!law.empty() && broken.empty()) broken = law;
      ++cases;
    });
  CHECK(broken == "");
  CHECK(cases == 1 + 40 + 40 * 40 + 40 * 40 * 40);
}
TEST_CASE("random buffers keep the laws, and rarely need much more than the bound") {
  std::string broken;
  double ratio = 0;
  constexpr int cases = 1500;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Dice dice(seed);
    const Index alignment = dice.pick({1, 8, 64}), times = dice.upto(1, 30);
    std::vector<Buffer> list;
    for (Index i = dice.upto(1, 40); i > 0; --i) {
      const Index first = dice.upto(0, times - 1);
      list.push_back(buffer(alignment * (dice.chance(0.1) ? 0 : dice.upto(1, dice.chance(0.2) ? 100 : 10)), first, dice.upto(first + 1, times)));
    }
    const ArenaSize size = place(list);
    const auto law = broken_law(list, size, alignment);
    if (!law.empty() && broken.empty()) broken = law + "seed " + std::to_string(seed);
    ratio += size.lower_bound == 0 ? 1 : static_cast<double>(size.bytes) / static_cast<double>(size.lower_bound);
  }
  CHECK(broken == "");
  CHECK(ratio / cases < 1.1);
}
TEST_CASE("the lower bound is reached where all lifetimes meet at one time, and where none meet") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    std::vector<Buffer> meeting, apart;
    for (Index i = dice.upto(1, 12); i > 0; --i) {
      meeting.push_back(buffer(dice.upto(1, 20), dice.upto(0, 9), dice.upto(10, 20)));
      apart.push_back(buffer(dice.upto(1, 20), 3 * i, 3 * i + dice.upto(1, 3)));
    }
    const ArenaSize a = place(meeting), b = place(apart);
    CHECK(a.bytes == a.lower_bound);
    CHECK(b.bytes == b.lower_bound);
  }
}
TEST_CASE("the lower bound is reached where lifetimes nest and the longer-lived buffer is the larger one") {
  // As in a forward and backward pass: what comes first goes last.
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    std::vector<Buffer> list;
    Index bytes = 1000;
    const auto nest = [&](const auto& self, Index first, Index last) -> void {
      list.push_back(buffer(bytes -= dice.upto(0, 5), first, last));
      if (last - first < 4) return;
      const Index middle = dice.upto(first + 2, last - 2);
      if (dice.chance(0.8)) self(self, first + 1, middle);
      if (dice.chance(0.8)) self(self, middle, last - 1);
    };
    nest(nest, 0, 60);
    const ArenaSize size = place(list);
    CHECK(broken_law(list, size, 1) == "");
    CHECK(size.bytes == size.lower_bound);
  }
}
TEST_CASE("a buffer fills the lowest gap, so that what ends makes room for what begins") {
  std::vector<Buffer> list{buffer(64, 0, 2), buffer(128, 0, 4), buffer(64, 2, 4)};
  CHECK(place(list) == ArenaSize{192, 192});
  CHECK(list[1].offset == 0);   // the largest first
  CHECK(list[0].offset == 128);
  CHECK(list[2].offset == 128);
  CHECK(place(list) == ArenaSize{192, 192});   // and again: the same
  std::vector<Buffer> none;
  CHECK(place(none) == ArenaSize{});
}
TEST_CASE("buffers meet when their half-open lifetimes share a time") {
  CHECK(buffer(1, 0, 2).meets(buffer(1, 1, 3)));
  CHECK(!buffer(1, 0, 2).meets(buffer(1, 2, 3)));
  CHECK(!buffer(1, 2, 3).meets(buffer(1, 0, 2)));
  CHECK(buffer(1, 0, 9).meets(buffer(1, 4, 5)));
}
TEST_CASE("every role has a name of its own") {
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < a; ++b) CHECK(role_name(static_cast<Role>(a)) != role_name(static_cast<Role>(b)));
}
TEST_CASE("other orders make the arenas of plans smaller where gaps are left, and none larger") {
  double by_bytes = 0, best = 0;
  int plans = 0, better = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Dice dice(seed);
    const lrcnn::testing::RandomNetwork net = lrcnn::testing::random_network(dice, 10);
    try {
      Plan plan = make_plan(make_table(net.layers, net.input), lrcnn::testing::random_policy(dice, net));
      const Index plainly = placed_by_bytes(plan.buffers);
      if (plainly == plan.arena.lower_bound) continue;
      CHECK(plan.arena.bytes <= plainly);
      CHECK(broken_law(plan.buffers, plan.arena, plan.target.alignment) == "");
      ++plans, better += plan.arena.bytes < plainly;
      by_bytes += static_cast<double>(plainly) / static_cast<double>(plan.arena.lower_bound) - 1;
      best += static_cast<double>(plan.arena.bytes) / static_cast<double>(plan.arena.lower_bound) - 1;
    } catch (const PlanError&) {   // more slabs than rows
    }
  }
  MESSAGE(plans << " plans with gaps: " << 100 * by_bytes / plans << " % above the bound by bytes alone, " << 100 * best / plans
                << " % by the best order; " << better << " are smaller");
  CHECK(plans > 250);
  CHECK(2 * better > plans);
  CHECK(best < by_bytes / 30);
}
TEST_CASE("other orders leave smaller gaps among the buffers of a pass, be they few or many") {
  for (const Index layers : {12, 40, 160}) {
    double by_bytes = 0, best = 0;
    Index most_buffers = 0;
    const int lists = lrcnn::testing::cases_to_do(40, 10);
    for (int seed = 1; seed <= lists; ++seed) {
      std::vector<Buffer> list = buffers_of_pass(static_cast<std::uint64_t>(seed), layers);
      const Index plainly = placed_by_bytes(list);
      const ArenaSize size = place(list);
      CHECK(broken_law(list, size, 1) == "");
      CHECK(size.bytes <= plainly);
      most_buffers = std::max(most_buffers, static_cast<Index>(list.size()));
      by_bytes += static_cast<double>(plainly) / static_cast<double>(size.lower_bound) - 1;
      best += static_cast<double>(size.bytes) / static_cast<double>(size.lower_bound) - 1;
    }
    MESSAGE("up to " << most_buffers << " buffers: " << 100 * by_bytes / lists << " % above the bound by bytes alone, " << 100 * best / lists
                     << " % by the best order");
    CHECK(best < by_bytes / 2);
  }
}
TEST_CASE("thousands of buffers, most of which live shortly, keep the laws and lie no worse than by bytes alone") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Dice dice(seed);
    std::vector<Buffer> buffers;
    for (int i = 0; i < 3500; ++i) {
      const Index first = dice.upto(0, 7000), length = dice.chance(0.1) ? dice.upto(1, 5000) : dice.upto(1, 40);
      buffers.push_back(buffer(64 * dice.upto(0, 50), first, std::min<Index>(7001, first + length)));
      if (dice.chance(0.01)) buffers.back().first = std::numeric_limits<Index>::max(), buffers.back().last = 0;   // never used
      if (dice.chance(0.02)) buffers.back().copies = 2, buffers.back().copy = dice.upto(0, 1);
    }
    const ArenaSize size = place(buffers);
    CAPTURE(seed);
    CHECK(broken_law(buffers, size, 64).substr(0, 60) == "");
    CHECK(size.bytes <= placed_by_bytes(buffers));
  }
}
TEST_CASE("a placement that takes several orders is the same at compile time") {
  std::vector<Buffer> list = needs_another_order();
  CHECK(placed_by_bytes(list) == 10);
  CHECK(place(list) == ArenaSize{9, 9});
  CHECK(placed_at_compile_time == ArenaSize{9, 9});
}
TEST_CASE("of a frontier's plans 95 % are placed within 1.01 times their bound, and all within 1.02 times") {
  std::vector<std::vector<double>> frontiers{above_bound(Vgg16<>::layers, {1, 3, 1024, 1024}), above_bound(ResNet50<>::layers, {1, 3, 1024, 1024})};
  if (lrcnn::testing::thorough()) {
    frontiers.push_back(above_bound(Vgg16<>::layers, {8, 3, 224, 224}));
    frontiers.push_back(above_bound(ResNet50<>::layers, {8, 3, 224, 224}));
  }
  for (std::vector<double>& frontier : frontiers) {
    REQUIRE(frontier.size() > 20);
    std::sort(frontier.begin(), frontier.end());
    CHECK(frontier[frontier.size() * 95 / 100] <= 1.01);
    CHECK(frontier.back() <= 1.02);
  }
}
