// Slabs that need not reach their stage's top: the laws at the head of stream_schedule.hpp, over the stages of random networks and
// all feasible counts up to forty; and which way of cutting is taken.
#include <lrcnn/plan/make_stages.hpp>
#include "support/error_of.hpp"
#include "support/random_network.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// The first law that a schedule breaks; empty if none.
std::string broken_law(const RowGraph& chain, const Schedule& s, Index count) {
  const Index top = chain.layers();
  const auto said = [](const char* law, Index n, Index t) {
    return std::string(law) + " in slab " + std::to_string(n) + ", tensor " + std::to_string(t);
  };
  if (s.slabs() != count || s.cuts.back() != chain.height) return "the cuts";
  for (Index n = 0; n < count; ++n)
    for (Index t = 0; t <= top; ++t) {
      const SlabRows& r = s.at(n, t);
      const Index before = n == 0 ? 0 : s.at(n - 1, t).own.end;
      if (r.own.begin != before || r.own.end < before) return said("own rows tile", n, t);
      if (n + 1 == count && r.own.end != chain.tensor_height(t)) return said("own rows reach the end", n, t);
      if (t == 1 && r.own.empty()) return said("a row of the first output", n, t);
      if (t == top) {
        if (r.hold != r.own || s.cuts[static_cast<std::size_t>(n)] != r.own.end) return said("the output is not carried", n, t);
        continue;
      }
      const SlabRows& above = s.at(n, t + 1);
      if (r.own.empty() && t > 0 && !(above.own.empty() && s.carried(n, t) == s.carried(n + 1, t)) && n + 1 < count)
        return said("what is not gone on with stays as it is", n, t);
      if (!above.own.empty() && r.need != in_rows(chain.rule(t).axis, above.own, chain.tensor_height(t))) return said("need", n, t);
      if (!above.own.empty() && !r.hold.contains(r.need)) return said("need lies in hold", n, t);
      if (t == 0) continue;
      if (r.hold.end != r.own.end || r.hold.begin > r.own.begin) return said("hold ends with own", n, t);
      if (r.hold.begin < r.own.begin && (n == 0 || !s.at(n - 1, t).hold.contains({r.hold.begin, r.own.begin})))
        return said("carried rows were held", n, t);
      if (above.own.end < chain.tensor_height(t + 1) && r.own.end % chain.grid(t) != 0) return said("grid", n, t);
      if (above.own.end != chain.tensor_height(t + 1) && above.own.end % chain.grid(t + 1) != 0) return said("grid above", n, t);
    }
  return "";
}
Index largest(const RowGraph& chain, const Schedule& s) {
  Index most = 0;
  for (Index n = 0; n < s.slabs(); ++n) {
    Index bytes = 0;
    for (Index t = 0; t < s.tensors; ++t) bytes += s.at(n, t).hold.size() * chain.row_bytes(t);
    most = std::max(most, bytes);
  }
  return most;
}
}   // namespace
TEST_CASE("slabs that climb as far as their rows carry obey the laws of rows") {
  Index schedules = 0, short_slabs = 0, climbing = 0, level = 0;
  std::string broken;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = random_network(dice, 9);
    const PolicySpec policy = random_policy(dice, net);
    const Table table = make_table(net.layers, net.input);
    for (const Stage& stage : split_stages(table, policy)) {
      if (stage.vector || stage.chain_layers() == 0) continue;
      auto rules = row_rules(table, stage, Target{}, policy.conv_algorithm);
      const RowGraph chain = rules.graph();
      for (Index count = 2; count <= std::min<Index>(max_stream_slabs(chain), 40); ++count) {
        const Schedule s = make_stream_schedule(chain, count), best = best_stream_schedule(chain, count);
        if (const auto law = broken_law(chain, s, count); !law.empty() && broken.empty())
          broken = law + " of " + std::to_string(count) + ", seed " + std::to_string(seed);
        ++schedules;
        for (Index n = 0; n < count; ++n) short_slabs += s.at(n, s.tensors - 1).own.empty();
        (best == s ? climbing : level) += count > 1;
        if (const auto cuts = choose_cuts(chain, Cut::share, count); !(best == s) && broken.empty())
          if (!(best == make_schedule(chain, Cut::share, cuts)) || largest(chain, best) > largest(chain, s))
            broken = "not the better way, seed " + std::to_string(seed);
      }
    }
  }
  CHECK(broken == "");
  MESSAGE(schedules, " schedules, ", short_slabs, " slabs that end below the top; ", climbing, " of them chosen, ", level, " cut at the output");
  CHECK(short_slabs > 5000);
  CHECK(level > 100);
}
TEST_CASE("a forward pass alone can be cut more finely than a training step") {
  const std::array layers{Layer{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 4},
                          Layer{.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}},
                          Layer{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 4}};
  const Table table = make_table(layers, {1, 2, 16, 8});
  PolicySpec policy;
  policy.partitions[0] = {Cut::share, 16, 1, 0};
  CHECK(error_of<PlanError>([&] { make_stages(table, policy, Target{}, 1); }) ==
        "lrcnn: no stage can be cut into 16 slabs by Share<16,1> on input 1x2x16x8; every slab owns a row of every layer's output; the "
        "largest feasible count is 7, in stage conv1..conv2; ask for at most 7, or for fewer layers in a stage by more checkpoints");
  const auto stages = make_stages(table, policy, Target{}, 1, predicting);
  CHECK(stages[0].forward.slabs() == 16);
  CHECK(stages[0].backward.slabs() == 0);
  policy.partitions[0].forward = 17;
  CHECK(error_of<PlanError>([&] { make_stages(table, policy, Target{}, 1, predicting); }) ==
        "lrcnn: no stage can be cut into 17 slabs by Share<17,1> on input 1x2x16x8; every slab owns a row of its first layer's output; the "
        "largest feasible count is 16, in stage conv1..conv2; ask for at most 16, or for fewer layers in a stage by more checkpoints");
  policy.partition_count = 2;
  CHECK(error_of<PlanError>([&] { make_stages(table, policy, Target{}, 1, predicting); }) ==
        "lrcnn: stage conv1..conv2 cannot be cut into 17 slabs by Share<17,1>; every slab owns a row of its first layer's output; the largest "
        "feasible count is 16; ask for at most 16 in this stage");
}
