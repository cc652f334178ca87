#pragma once
// Inputs that are made again for one section alone (RecomputeInputAlone).
//
// Right before such a section goes backward, a stage of its own (Stage::makes_input) goes forward from the nearest section below whose input is
// kept, its base, up to the section. It goes through all layers between slab by slab, through norms as well, since their statistics are known;
// tensors between the sections that it passes are not in full height again. It leaves nothing but what the section reads.
#include <lrcnn/plan/cut_stages.hpp>
namespace lrcnn::detail {
/// Stages that make inputs again, by rising sections, and the first section that cannot have one and whose own partition asks for it.
struct LoneInputs {
  std::vector<Stage> makers{};   ///< not cut yet
  RefusedInput refused{};
};
/// Why no stage can go forward from stage `base` up to the section that begins with stage s; nullptr: one can. `below`: the first stage of the
/// section below. What is made again must be what it was: of slabs that a norm takes statistics of, and by the same arithmetic.
constexpr const char* why_not_alone(const Table& table, const PolicySpec& policy, const std::vector<Stage>& stages, std::size_t base,
                                    std::size_t below, std::size_t s) {
  if (s == 0) return "it is the network's first section";
  const auto partition = [&](std::size_t i) -> const Partition& { return policy.partition(stages[i].partition_number); };
  if (partition(below).input == SectionInput::recompute) return other_way_below;
  for (std::size_t i = base; i < s; ++i) {
    if (stages[i].vector || stages[i].behind_means || stages[i].reduces) return "one of those that would go forward again for it makes no map";
    if (policy.conv_algorithm_in(partition(i)) != policy.conv_algorithm_in(partition(s)))
      return "one of those that would go forward again for it convolves by another algorithm";
    for (Index l = stages[i].first; l < stages[i].last; ++l)
      if (table.node(l).layer.kind == Kind::norm && table.node(l).layer.norm.over == Norm::Over::slab)
        return "one of those that would go forward again for it has a SlabBatchNorm, which takes statistics of slabs";
  }
  return stages[s].vector || stages[s].behind_means ? "it works on vectors" : nullptr;
}
constexpr void make_alone(TensorUse& use) { use.discarded = use.made_for_above = use.made_alone = true; }
inline constexpr Index no_section = -1, several_sections = -2;
/// The section of each layer; no_section where it is in none of the first `count` stages.
constexpr std::vector<Index> sections_of_layers(const Table& table, const std::vector<Stage>& stages, std::size_t count) {
  std::vector<Index> section_of(static_cast<std::size_t>(table.size()), no_section);
  for (std::size_t s = 0; s < count; ++s)
    for (Index n = stages[s].first; n < stages[s].last; ++n) item(section_of, n) = stages[s].section;
  return section_of;
}
/// Of each tensor, the section that alone reads it, beside the one that makes it; or no_section; or several_sections, one of which may be none of
/// these. `section_of`: of each layer; no_section: none of these.
constexpr std::vector<Index> reading_sections(const Table& table, const std::vector<Index>& section_of) {
  std::vector<Index> list(static_cast<std::size_t>(table.tensors()), no_section);
  for (Index n = 0; n < table.size(); ++n)
    for (const Index g : {table.node(n).input, table.node(n).other}) {
      const Index section = item(section_of, n);
      if (g <= 0 || section == item(section_of, g - 1)) continue;
      Index& reader = item(list, g);
      reader = section == no_section || (reader != no_section && reader != section) ? several_sections : section;
    }
  return list;
}
/// Marks what a maker leaves: tensors that the section that it is for reads, and no other but the one that makes them. Returns whether there is
/// nothing else that anybody would read. `readers`: reading_sections().
constexpr bool leave_input(const std::vector<Index>& readers, Stage& maker) {
  bool all = true;
  for (Index t = maker.input_count(); t < maker.tensors(); ++t) {
    TensorUse& use = item(maker.uses, t);
    use.leaves = item(readers, maker.tensor(t)) == maker.section;
    if (use.leaves) make_alone(use);
    use.wanted_plain = false;
    all = all && (use.leaves || use.readers > 0);
  }
  maker.norms_above.clear();
  return all && maker.uses.back().leaves;
}
/// Finds the stages that make inputs again, and marks the sections that they are for. `stages`: cut or not.
constexpr LoneInputs find_lone_inputs(const Table& table, const PolicySpec& policy, std::vector<Stage>& stages) {
  LoneInputs found;
  bool asks = false;
  for (Index i = 0; i < policy.partition_count; ++i) asks = asks || policy.partition(i).input == SectionInput::recompute_alone;
  if (!asks) return found;
  const std::size_t count = forward_stage_count(stages);
  const std::vector<Index> section_of = sections_of_layers(table, stages, count);
  const std::vector<Index> readers = reading_sections(table, section_of);
  std::size_t base = 0, below = 0;   // the first stages of the sections
  for (std::size_t s = 0, end = 0; s < count; below = s, s = end) {
    end = s + 1;
    while (end < count && stages[end].section == stages[s].section) ++end;
    const Partition& partition = policy.partition(stages[s].partition_number);
    const bool wants = partition.input == SectionInput::recompute_alone;
    const char* why = wants ? why_not_alone(table, policy, stages, base, below, s) : nullptr;
    if (wants && why == nullptr) {
      std::vector<Stage> maker(1, Stage{});
      maker[0].first = stages[base].first, maker[0].last = stages[s].first;
      maker[0].section = stages[s].section, maker[0].partition_number = stages[s].partition_number;
      maker[0].makes_input = true;
      connect(table, maker, true);
      if (leave_input(readers, maker[0])) found.makers.push_back(std::move(maker[0]));
      else why = "a section further up reads what the section below it makes, too";
    }
    if (!wants || why != nullptr) base = s;
    else
      for (Stage& stage : stages)
        if (stage.section == stages[s].section) stage.recomputes_input = stage.input_alone = true;
    const bool asked = !stages[s].behind_means && stages[s].partition_number < policy.partition_count;   // rather than by a section before
    if (why != nullptr && asked && !found.refused.is_one) found.refused = {s, why, true};
  }
  return found;
}
/// Into how many slabs a maker is cut for a section that is not cut, and how many rows of what it makes a slab has at least. So slabs of large maps
/// take little beside what they make, and compute few rows twice.
inline constexpr Index usual_maker_slabs = 8, least_maker_rows = 32;
/// Cuts a maker into as many slabs as its section says; or else as that section is cut; or, if it is not, into some slabs of images, or of rows where
/// there are few images.
constexpr void cut_maker(const Table& table, const PolicySpec& policy, const Target& target, Index images, Stage& maker) {
  Partition& p = maker.partition = policy.partition(maker.partition_number);
  p.passes = NormPasses::none;
  p.forward_passes = false;
  p.input = SectionInput::keep;
  p.recompute = Recompute::all;
  p.images = p.images == 0 ? images : std::min(p.images, images);
  if (p.maker_slabs > 0) {
    p.forward = p.backward = p.maker_slabs;
    if (p.cut == Cut::column || p.forward == 1) p.cut = p.forward > 1 ? Cut::overlap : Cut::column;
  } else if (p.cut != Cut::column) {
    p.forward = p.backward = std::max(p.forward, p.backward);
  } else if (p.images == images) {
    p.images = ceil_div(images, usual_maker_slabs);
    const Index rows = std::min(usual_maker_slabs / std::min(images, usual_maker_slabs), table.shape(maker.last).h / least_maker_rows);
    p.forward = p.backward = std::max<Index>(1, rows);
    if (rows > 1) p.cut = Cut::overlap;
  }
  cut_stage(table, policy, target, false, maker);
}
/// Chooses the sections whose input is made again for them alone, cuts the stages that do it as these sections are cut, and puts them behind all
/// others. Pre: the stages are cut. Returns as mark_recomputed_inputs().
constexpr RefusedInput choose_lone_inputs(const Table& table, const PolicySpec& policy, const Target& target, Index images,
                                          std::vector<Stage>& stages) {
  LoneInputs found = find_lone_inputs(table, policy, stages);
  std::vector<char> made(static_cast<std::size_t>(table.tensors()), 0);
  for (Stage& maker : found.makers) {
    for (Index t = maker.input_count(); t < maker.tensors(); ++t) item(made, maker.tensor(t)) |= maker.use(t).leaves;
    for (Stage& stage : stages)
      if (stage.section == maker.section) stage.partition.input = SectionInput::recompute_alone;
    cut_maker(table, policy, target, images, maker);
  }
  for (Stage& stage : stages)
    for (Index t = 0; t < stage.tensors(); ++t)
      if (item(made, stage.tensor(t)) && (t < stage.input_count() || stage.use(t).leaves)) make_alone(item(stage.uses, t));
  for (Stage& maker : found.makers) stages.push_back(std::move(maker));
  return found.refused;
}
}   // namespace lrcnn::detail
