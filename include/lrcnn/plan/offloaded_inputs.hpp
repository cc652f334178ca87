#pragma once
// Inputs of sections that lie in a larger memory between the passes (OffloadInput).
//
// When such a section begins its forward pass, what it reads of the sections below is whole; a step copies it to the larger memory, and it leaves
// the arena when the section has gone forward. All passes after that fetch its rows from there, slab by slab: those of the section itself, and any
// other that makes values again or goes backward. Its gradient has a place of its own in the arena.
#include <lrcnn/plan/in_place.hpp>
#include <lrcnn/plan/lone_inputs.hpp>
namespace lrcnn::detail {
/// Whether a stage reads its tensor t in full height after the first forward pass.
constexpr bool reads_again(const Stage& stage, const StageNeeds& needs, Index t) {
  if (t < stage.input_count() && (stage.forward_repeated || stage.supplies || stage.makes_input)) return true;
  return !stage.replaced_by_extra_passes && reads_values(stage, needs, t);
}
/// Marks the tensors that are offloaded: those that such a section reads and no other but the one that makes them,
/// which makes them once, and whose layers do not read them in the backward pass. Those that nobody reads again are gone after the forward pass
/// anyway. Returns the first section that
/// reads none and whose own partition asks for it. Pre: other marks of `stages` are made.
constexpr RefusedInput choose_offloaded_inputs(const Table& table, const PolicySpec& policy, const PlanOptions& options, std::vector<Stage>& stages) {
  RefusedInput refused;
  const auto asks = [&](const Stage& stage) { return policy.partition(stage.partition_number).input == SectionInput::offload; };
  if (std::none_of(stages.begin(), stages.end(), asks)) return refused;
  const std::size_t count = forward_stage_count(stages);
  const std::vector<Index> section_of = sections_of_layers(table, stages, count);
  const std::vector<Index> readers = reading_sections(table, section_of);
  std::vector<char> offloaded(readers.size(), 0), written_again(readers.size(), 0);
  for (const Stage& stage : stages) {
    if (stage.reduces) item(written_again, stage.last) = 1;   // it is one row
    for (Index t = stage.input_count(); (stage.forward_repeated || stage.supplies) && t < stage.tensors(); ++t)
      item(written_again, stage.tensor(t)) = 1;
  }
  for (std::size_t s = 0, end = 0; s < count; s = end) {
    bool any = false;
    for (end = s; end < count && stages[end].section == stages[s].section; ++end)
      for (Index t = 0; asks(stages[s]) && t < stages[end].input_count(); ++t) {
        const Index g = stages[end].tensor(t);
        const bool alone = g > 0 && g <= stages[s].first && item(readers, g) == stages[s].section;
        const bool once = !stages[end].use(t).discarded && !item(written_again, g);   // nobody makes it again
        any = any || (alone && once);
        if (alone && once) item(offloaded, g) = 1;
      }
    const bool asked = !stages[s].behind_means && stages[s].partition_number < policy.partition_count;   // rather than by a section before
    if (any)
      for (Stage& stage : stages)
        if (stage.section == stages[s].section) stage.partition.input = SectionInput::offload;
    if (!any && asks(stages[s]) && asked && !refused.is_one)
      refused = {s, s == 0 ? "it is the network's first section" : "all that it reads is read further up, too, or made again", true};
  }
  const std::vector<StageNeeds> needs = needs_of(table, policy, options, stages);
  std::vector<char> read_again(readers.size(), 0), read_where_made(readers.size(), 0);
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (Index t = 0; t < stages[s].tensors(); ++t)
      if ((t < stages[s].input_count() || stages[s].use(t).leaves) && reads_again(stages[s], needs[s], t)) item(read_again, stages[s].tensor(t)) = 1;
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (Index t = stages[s].input_count(); t < stages[s].tensors(); ++t)
      if (!stages[s].replaced_by_extra_passes && layers_read_values(stages[s], needs[s], t)) item(read_where_made, stages[s].tensor(t)) = 1;
  for (std::size_t g = 0; g < offloaded.size(); ++g) offloaded[g] = offloaded[g] && read_again[g] && !read_where_made[g];
  for (Stage& stage : stages)
    for (Index t = 0; t < stage.tensors(); ++t)
      if (item(offloaded, stage.tensor(t)) && (t < stage.input_count() || stage.use(t).leaves)) {
        TensorUse& use = item(stage.uses, t);
        use.discarded = use.made_for_above = use.offloaded = true;
      }
  return refused;
}
/// Marks the tensor in front of a section, which no other section reads but the one that makes it, as offloaded: it is, unless that section reads it
/// in its own backward pass. `stages`: those of the section alone, cut. Returns whether the section reads it again: else nothing is offloaded.
constexpr bool offload_input(const Table& table, const PolicySpec& policy, const PlanOptions& options, std::vector<Stage>& stages) {
  const Index g = stages.front().first;
  const auto for_uses = [&](const auto& f) {
    for (std::size_t s = 0; s < stages.size(); ++s)
      for (Index t = 0; t < stages[s].input_count(); ++t)
        if (stages[s].tensor(t) == g) f(s, t);
  };
  for (Stage& stage : stages) stage.partition.input = SectionInput::offload;
  for_uses([&](std::size_t s, Index t) { item(stages[s].uses, t).discarded = item(stages[s].uses, t).made_for_above = true; });
  const std::vector<StageNeeds> needs = needs_of(table, policy, options, stages);
  bool again = false;
  for_uses([&](std::size_t s, Index t) {
    item(stages[s].uses, t).offloaded = true;
    again = again || reads_again(stages[s], needs[s], t);
  });
  return again;
}
}   // namespace lrcnn::detail
