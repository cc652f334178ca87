#pragma once
// Stages as a graph: who reads what another one writes, which stages go backward together, and whose forward pass is repeated.
#include <lrcnn/plan/stage_rules.hpp>
#include <algorithm>
namespace lrcnn {
namespace detail {
/// Tensors that each stage reads, and who reads what it writes. The stages are all of a table or a run of them.
constexpr void connect(const Table& table, std::vector<Stage>& stages, bool training) {
  const Index begin = stages.front().first, end = stages.back().last;
  std::vector<Index> stage_of(static_cast<std::size_t>(table.size()), 0);
  std::vector<char> given(static_cast<std::size_t>(table.tensors()), 0);   // has a gradient by stages further on
  std::vector<Index> readers(given.size(), 0);                             // layers of the table
  for (Index n = 0; n < table.size(); ++n)
    for (const Index g : {table.node(n).input, table.node(n).other})
      if (g >= 0) ++item(readers, g);
  for (std::size_t s = stages.size(); s-- > 0;)
    for (Index n = stages[s].first; n < stages[s].last; ++n) item(stage_of, n) = static_cast<Index>(s);
  for (Stage& stage : stages) {
    stage.inputs.clear(), stage.reads.clear(), stage.norms_above.clear();   // of stages that were otherwise before
    for (Index n = stage.first; n < stage.last; ++n)                        // what it reads from outside
      for (const Index g : {table.node(n).input, table.node(n).other})
        if (g >= 0 && g <= stage.first && std::find(stage.inputs.begin(), stage.inputs.end(), g) == stage.inputs.end()) stage.inputs.push_back(g);
    stage.uses.assign(static_cast<std::size_t>(stage.tensors() + stage.reduces), TensorUse{});
    const auto local = [&](Index g) {
      if (g > stage.first) return stage.made(g);
      for (Index t = 0; t < stage.input_count(); ++t)
        if (item(stage.inputs, t) == g) return t;
      return Index{-1};
    };
    for (Index n = stage.first; n < stage.last; ++n) {
      const Node& node = table.node(n);
      const std::array<Index, 2> reads{local(node.input), node.other < 0 ? -1 : local(node.other)};
      if (n < stage.first + stage.chain_layers()) stage.reads.push_back(reads);
      const bool closing = n >= stage.first + stage.chain_layers();   // the global pooling is none of the chain
      for (const Index t : reads) {
        if (t < 0 || closing) continue;
        TensorUse& use = item(stage.uses, t);
        ++use.readers;
        use.plain += !waits(node, training);
      }
    }
  }
  for (Index n = begin; n < table.size(); ++n) {
    const Node& node = table.node(n);
    for (const Index g : {node.input, node.other}) {
      if (n >= end && g >= 0 && !waits(node, training)) item(given, g) = 1;
      if (g <= begin || g > end) continue;
      Stage& from = item(stages, item(stage_of, g - 1));
      if (n < from.last) continue;
      const Index t = from.made(g);
      TensorUse& use = item(from.uses, t);
      use.leaves = true;
      if (waits(node, training)) from.norms_above.push_back({t, n});
      else use.wanted_plain = true;
    }
  }
  if (end == table.size()) stages.back().uses.back().leaves = stages.back().uses.back().wanted_plain = true;   // the loss reads it
  for (std::size_t s = stages.size(); s-- > 0;) {
    Stage& stage = stages[s];
    for (Index t = 0; t < stage.input_count(); ++t) {
      TensorUse& use = item(stage.uses, t);
      char& has = item(given, item(stage.inputs, t));
      use.given = has;
      use.read_once = item(readers, item(stage.inputs, t)) == 1;
      if (use.plain > 0 || (stage.reduces && stage.chain_layers() == 0)) has = 1;
    }
  }
}
/// Extra passes that the sums of norms within a stage take: of each layer, the number of such norms that its gradient has come through.
constexpr std::vector<Index> norms_over(const Table& table, const Stage& stage) {
  std::vector<Index> over(static_cast<std::size_t>(stage.chain_layers()), 0);
  for (Index l = stage.chain_layers() - 1; l >= 0; --l) {
    const bool counts = waits(table.node(stage.first + l), true) && stage.in(l) >= stage.input_count();
    for (const Index t : {stage.in(l), stage.other(l)})
      if (t >= stage.input_count()) {
        Index& below = item(over, t - stage.input_count());
        below = std::max(below, item(over, l) + counts);
      }
  }
  return over;
}
/// The extra passes that such sums take: one for each of the norms that lie one above the other.
constexpr Index extra_passes(const Table& table, const Stage& stage) {
  const std::vector<Index> over = norms_over(table, stage);
  Index count = 0;
  for (Index l = 0; l < stage.chain_layers(); ++l)
    if (waits(table.node(stage.first + l), true) && stage.in(l) >= stage.input_count()) count = std::max(count, item(over, l) + 1);
  return count;
}
/// Stages [first, end), which follow each other, as one, not connected yet.
constexpr Stage merge(const std::vector<Stage>& stages, std::size_t first, std::size_t end) {
  Stage stage = stages[first];
  stage.last = stages[end - 1].last;
  stage.reduces = stages[end - 1].reduces;
  return stage;
}
/// The extra passes of stages [first, end) if they were one.
constexpr Index passes_through(const Table& table, const std::vector<Stage>& stages, std::size_t first, std::size_t end) {
  std::vector<Stage> whole(1, merge(stages, first, end));
  connect(table, whole, true);
  return extra_passes(table, whole[0]);
}
/// Likewise upward: of each layer, the number of such norms that what it writes has come through.
constexpr std::vector<Index> norms_under(const Table& table, const Stage& stage) {
  std::vector<Index> under(static_cast<std::size_t>(stage.chain_layers()), 0);
  for (Index l = 0; l < stage.chain_layers(); ++l) {
    Index& mine = item(under, l);
    for (const Index t : {stage.in(l), stage.other(l)})
      if (t >= stage.input_count()) mine = std::max(mine, item(under, t - stage.input_count()));
    mine += waits(table.node(stage.first + l), true) && stage.in(l) >= stage.input_count();
  }
  return under;
}
/// Of stages [first, end), those of one section, the first that extra passes cover, with all above it: `end` if there are none. Two stages of a
/// section are divided by a norm of the upper one that waits for what the lower one makes, so together they have at least one extra pass.
constexpr std::size_t first_passed(const Table& table, const PolicySpec& policy, const std::vector<Stage>& stages, std::size_t first,
                                   std::size_t end) {
  const NormPasses passes = policy.partition(stages[first].partition_number).passes;
  if (passes == NormPasses::none || end - first < 2 || stages[end - 1].vector) return end;
  if (passes != NormPasses::one) return first;
  std::size_t covered = end - 1;
  while (covered > first && passes_through(table, stages, covered - 1, end) <= 1) --covered;
  return covered + 1 < end ? covered : end;
}
/// Stages that go backward through their norms, one for each section that the policy wants so and that norms divide. They are put behind
/// the others, of which they cover those of the section, or its last.
constexpr void add_passes(const Table& table, const PolicySpec& policy, std::vector<Stage>& stages) {
  std::vector<Stage> merged, backward;
  for (std::size_t s = 0; s < stages.size();) {
    std::size_t end = s + 1;
    while (end < stages.size() && stages[end].section == stages[s].section) ++end;
    const std::size_t covered = first_passed(table, policy, stages, s, end);
    backward.insert(backward.end(), stages.begin() + static_cast<Index>(s), stages.begin() + static_cast<Index>(covered));
    if (covered < end) backward.push_back(merge(stages, covered, end)), backward.back().passes = 1;
    for (std::size_t i = covered; i < end; ++i) stages[i].replaced_by_extra_passes = true;
    s = end;
  }
  if (backward.size() == stages.size()) return;
  connect(table, backward, true);   // who gives gradients to whom
  for (Stage& stage : backward) {
    if (stage.passes == 0) {
      for (Stage& same : stages)
        if (same.first == stage.first) same = stage;
      continue;
    }
    stage.passes = extra_passes(table, stage);
    merged.push_back(std::move(stage));
  }
  for (Stage& stage : merged) stages.push_back(std::move(stage));
}
/// Behind stage s, or, if extra passes cover it, behind all of its section that they cover, of which it is the first.
constexpr std::size_t behind_passed(const std::vector<Stage>& stages, std::size_t s) {
  std::size_t end = s + 1;
  while (stages[s].replaced_by_extra_passes && stages[end].replaced_by_extra_passes && stages[end].section == stages[s].section) ++end;
  return end;
}
/// Chooses the stages whose forward pass is run again: those that end within a section because a norm waits, where the policy recomputes all.
/// Their tensors are discarded, unless a layer behind the segment reads them.
constexpr void choose_repeated(const Table& table, const PolicySpec& policy, std::vector<Stage>& stages) {
  std::vector<char> discarded(static_cast<std::size_t>(table.tensors()), 0);
  std::vector<Index> last_reader(discarded.size(), -1);   // of each tensor, a layer of the table
  for (Index n = 0; n < table.size(); ++n)
    for (const Index g : {table.node(n).input, table.node(n).other})
      if (g >= 0) item(last_reader, g) = n;
  std::size_t first = 0;   // of the segment
  for (std::size_t s = 0; s < stages.size() && stages[s].passes == 0; ++s) {
    Stage& stage = stages[s];
    stage.forward_repeated = s + 1 < stages.size() && stages[s + 1].passes == 0 && stages[s + 1].section == stage.section &&
                             !stage.replaced_by_extra_passes && waits(table.node(stage.last), true) && !stage.reduces && !stage.vector &&
                             policy.recompute_in(stage.partition) == Recompute::all;
    if (stage.forward_repeated) continue;
    const std::size_t end = behind_passed(stages, s);
    for (std::size_t i = first; i < s; ++i)   // their tensors that nobody reads beyond the segment
      for (Index t = stages[i].input_count(); t < stages[i].tensors(); ++t) {
        const Index g = stages[i].tensor(t);
        item(discarded, g) = item(stages[i].uses, t).discarded = stages[i].use(t).leaves && item(last_reader, g) < stages[end - 1].last;
      }
    for (std::size_t i = first; i < end; ++i)
      for (Index t = 0; t < stages[i].input_count(); ++t) item(stages[i].uses, t).discarded = item(discarded, stages[i].tensor(t));
    first = end, s = end - 1;
  }
  for (std::size_t i = forward_stage_count(stages); i < stages.size(); ++i)   // extra passes begin with what stages below them make again
    for (Index t = 0; t < stages[i].input_count(); ++t) item(stages[i].uses, t).discarded = item(discarded, stages[i].tensor(t));
}
/// Why two sections that follow each other cannot have their inputs made again in different ways.
inline constexpr const char* other_way_below = "the section below it has its own made again in the other way";
/// Why the section of stage s, the first of it, cannot have its input made again; nullptr: it can. `below`: the first stage of the section below.
constexpr const char* why_input_is_kept(const PolicySpec& policy, const std::vector<Stage>& stages, std::size_t below, std::size_t s) {
  if (s == 0) return "it is the network's first section";
  if (stages[below].input_alone) return other_way_below;
  for (std::size_t i = below; i < s; ++i)
    if (stages[i].vector || stages[i].behind_means || stages[i].reduces) return "the section below it does not end in a map";
  const Partition& partition = policy.partition(stages[below].partition_number);
  const bool passed = partition.passes == NormPasses::all && s - below > 1;
  if (!passed && policy.recompute_in(partition) != Recompute::all) return "the section below it does not recompute all";
  return stages[s].vector || stages[s].behind_means ? "it works on vectors" : nullptr;
}
/// A section whose input is to be made again, and cannot be.
struct RefusedInput {
  std::size_t first = 0;   ///< its first stage
  const char* why = nullptr;
  bool is_one = false;
};
/// The tensors that sections above the one that makes them want again, and none beyond their group: one for each of the table. `count`: stages of
/// the forward pass.
constexpr std::vector<char> made_for_above(const Table& table, const std::vector<Stage>& stages, std::size_t count) {
  std::vector<char> made(static_cast<std::size_t>(table.tensors()), 0);
  std::vector<Index> last_reader(made.size(), -1);
  for (Index n = 0; n < table.size(); ++n)
    for (const Index g : {table.node(n).input, table.node(n).other})
      if (g >= 0) item(last_reader, g) = n;
  Index end = 0, group_end = 0;   // behind the layers of the section at hand, and of its group
  for (std::size_t s = count; s-- > 0;) {
    const bool tops_section = s + 1 == count || stages[s + 1].section != stages[s].section;
    if (tops_section) end = stages[s].last;
    if (tops_section && !stages[s].supplies) group_end = end;
    for (Index g = stages[s].first + 1; stages[s].supplies && g <= stages[s].last; ++g)
      item(made, g) = item(last_reader, g) >= end && item(last_reader, g) < group_end;
  }
  return made;
}
/// Marks the sections whose inputs are made again, and those below them, and finds the tensors of made_for_above(). A section is left out of the
/// bottom of its group if no tensor that it writes is among them. Returns the first that cannot be one and whose own partition asks for it.
/// Inputs that are made again alone are another matter (plan/lone_inputs.hpp).
constexpr RefusedInput mark_recomputed_inputs(const Table& table, const PolicySpec& policy, std::vector<Stage>& stages, std::vector<char>& made) {
  RefusedInput refused;
  const std::size_t count = forward_stage_count(stages);
  bool some = false;
  const auto end_of = [&](std::size_t s) {
    std::size_t end = s + 1;
    while (end < count && stages[end].section == stages[s].section) ++end;
    return end;
  };
  for (std::size_t s = 0, end = 0, below = 0; s < count; below = s, s = end) {
    end = end_of(s);
    const Partition& partition = policy.partition(stages[s].partition_number);
    if (partition.input != SectionInput::recompute) continue;
    if (const char* why = why_input_is_kept(policy, stages, below, s); why != nullptr) {
      const bool asked = !stages[s].behind_means && stages[s].partition_number < policy.partition_count;   // rather than by a section before
      if (asked && !refused.is_one) refused = {s, why, true};
      continue;
    }
    some = true;
    for (std::size_t i = s; i < end; ++i) stages[i].recomputes_input = true;
    for (std::size_t i = below; i < s; ++i) stages[i].supplies = true;
  }
  if (!some) return refused;
  made = made_for_above(table, stages, count);
  for (std::size_t s = 0, end = 0; s < count; s = end) {
    end = end_of(s);
    bool any = false;
    for (Index g = stages[s].first + 1; g <= stages[end - 1].last; ++g) any = any || item(made, g);
    if (any || !stages[s].supplies || stages[s].recomputes_input) continue;
    for (std::size_t i = s; i < end; ++i) stages[i].supplies = false;   // its tensors are kept
    for (std::size_t i = end; i < end_of(end); ++i) stages[i].recomputes_input = false;
  }
  return refused;
}
/// Chooses the sections whose input is made again, and the tensors that a forward pass of the sections below them makes a second time. Returns as
/// mark_recomputed_inputs().
constexpr RefusedInput choose_recomputed_inputs(const Table& table, const PolicySpec& policy, std::vector<Stage>& stages) {
  std::vector<char> made;
  const RefusedInput refused = mark_recomputed_inputs(table, policy, stages, made);
  if (made.empty()) return refused;
  for (Stage& stage : stages) {
    if (stage.passes > 0) {   // it is as those that it covers
      const Stage& covered = *std::find_if(stages.begin(), stages.end(), [&](const Stage& other) { return other.section == stage.section; });
      stage.recomputes_input = covered.recomputes_input, stage.supplies = covered.supplies;
    }
    if (!stage.input_alone) stage.partition.input = stage.recomputes_input ? SectionInput::recompute : SectionInput::keep;
    for (Index t = 0; t < stage.tensors(); ++t)
      if (item(made, stage.tensor(t)) && (t < stage.input_count() || stage.use(t).leaves))
        item(stage.uses, t).discarded = item(stage.uses, t).made_for_above = true;
  }
  return refused;
}
}   // namespace detail
}   // namespace lrcnn
