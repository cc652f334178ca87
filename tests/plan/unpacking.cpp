// Filter gradients that are unpacked together: each while it is there and before another one of its layer is made; and plans have room for some.
#include "support/random_graph.hpp"
#include "support/random_network.hpp"
#include "support/thorough.hpp"
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/plan/unpacking.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Whether a step writes to the memory of a buffer.
bool writes_into(const Plan& plan, const Step& s, Index scratch) {
  std::byte* const arena = reinterpret_cast<std::byte*>(Index{1} << 30);   // nothing is touched
  std::vector<Range> written;
  const auto add = [&](const auto& view) {
    if (view.data == nullptr || view.n * view.rows == 0) return;
    const Index first = reinterpret_cast<const std::byte*>(view.data) - arena;
    const Index elements = (view.n - 1) * view.stride_n + (view.blocks() - 1) * view.stride_c + view.rows * view.stride_row();
    written.push_back({first, first + elements * static_cast<Index>(sizeof(*view.data))});
  };
  const auto bytes = [&](Index id) {
    const Buffer& b = plan.buffers[static_cast<std::size_t>(id)];
    return Range{b.offset, b.offset + b.bytes};
  };
  const auto add_whole = [&](Index id) {
    if (id >= 0) written.push_back(bytes(id));
  };
  add(view_of<float>(plan, s.dx, arena));
  add_whole(s.scratch), add_whole(s.workspace);
  if (!is_backward(s.op)) add(view_of<float>(plan, s.y, arena)), add(saved_view_of(plan, s.saved, arena));
  if (is_packing(s.op)) add_whole(s.packed);
  if (s.op == Op::statistics) add_whole(s.statistics);
  if (writes_sums(s)) add_whole(s.sums);
  return std::any_of(written.begin(), written.end(), [&](const Range& r) { return !intersect(r, bytes(scratch)).empty(); });
}
}   // namespace
TEST_CASE("a gradient is unpacked while it is there, and before another one of its layer is made") {
  Index together = 0, sets = 0, over = 0, beside = 0;   // over: the next step writes over what is unpacked
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(3000, 600); ++seed) {
    Dice dice(seed);
    const RandomNetwork net = seed % 2 == 0 ? random_network(dice, 9) : random_graph(dice, 7);
    PolicySpec policy = random_policy(dice, net);
    add_workspaces(dice, policy, {0, 1 << 10, 1 << 12});
    const Target target{.channel_block = dice.pick({1, 8}), .packs_weights = true, .packs_linear = dice.chance(0.3), .packs_together = true};
    CAPTURE(seed);
    try {
      const Plan plan = make_plan(make_table(net.layers, net.input), policy, target);
      REQUIRE(check_plan(plan).empty());
      const auto keeps = [&](std::size_t i) { return i % 5 != 3; };   // some cannot stay packed
      const std::size_t begin = plan.steps.size() / 4;
      std::size_t since = begin;
      for (const Unpacking& unpacking : unpackings_of(plan, begin, plan.steps.size(), keeps)) {
        REQUIRE(unpacking.steps.size() > 1);
        REQUIRE(std::is_sorted(unpacking.steps.begin(), unpacking.steps.end()));
        REQUIRE(unpacking.steps.front() >= since);
        REQUIRE(unpacking.steps.back() < unpacking.at);
        for (const std::size_t made : unpacking.steps) {
          const Step& s = plan.steps[made];
          REQUIRE((s.op == Op::backward_parameters && s.scratch >= 0 && keeps(made)));
          for (std::size_t i = made + 1; i < unpacking.at; ++i) {
            REQUIRE_FALSE(writes_into(plan, plan.steps[i], s.scratch));
            REQUIRE_FALSE((plan.steps[i].op == Op::backward_parameters && plan.steps[i].layer == s.layer));
          }
        }
        if (unpacking.at < plan.steps.size()) {
          const bool written = std::any_of(unpacking.steps.begin(), unpacking.steps.end(),
                                           [&](std::size_t made) { return writes_into(plan, plan.steps[unpacking.at], plan.steps[made].scratch); });
          REQUIRE((unpacking.overlaps || !written));
          (unpacking.overlaps ? over : beside) += 1;
        }
        since = unpacking.at;
        ++sets, together += static_cast<Index>(unpacking.steps.size());
      }
    } catch (const PlanError&) {   // more slabs than rows, or a norm of one value
    }
  }
  MESSAGE(sets << " sets of " << together << " gradients");
  CHECK(sets > 100);
  CHECK(std::min(over, beside) > 3);
}
TEST_CASE("gradients stay packed where there is room, and no more lives at once") {
  Target together{.channel_block = Target::all_channels, .alignment = 256, .packs_weights = true, .activates = true, .packs_alike = true};
  const Table resnet = make_table(ResNet50<>::layers, {32, 3, 224, 224});
  const PolicySpec policy = Policy<Column, Workspace<64_MiB>>::value;
  const Plan apart = make_plan(resnet, policy, together);
  together.packs_together = true;
  const Plan plan = make_plan(resnet, policy, together);
  const auto unpackings = [](const Plan& p) {
    Index count = 0;
    for (const Step& s : p.steps) count += s.op == Op::backward_parameters && s.scratch >= 0;
    for (const Unpacking& unpacking : unpackings_of(p, 0, p.steps.size(), [](std::size_t) { return true; }))
      count -= static_cast<Index>(unpacking.steps.size()) - 1;
    return count;
  };
  CHECK(plan.arena == apart.arena);
  CHECK(check_plan(plan).empty());
  CHECK(unpackings(apart) > 30);
  CHECK(unpackings(plan) <= 8);
}
