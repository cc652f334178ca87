#pragma once
// Gradients in full height that take their values' places.
//
// Slabs of a backward pass go upward. Each reads its rows of a tensor and then adds to their gradient; if nobody reads the tensor
// afterwards, a row's gradient may lie where rows further down had their values. The two share a buffer in which row r of the values is
// at place r, row r of the gradient at place r + lag. With a lag of as many rows as a slab holds at most, what a slab writes lies behind
// all that it and the slabs above it read.
#include <lrcnn/plan/needs.hpp>
namespace lrcnn {
/// What stages do with the place of a tensor's values, in which its gradient might come to lie.
enum class PlaceUse : std::uint8_t {
  ignores,   ///< they do not read the values in the backward pass
  reads,     ///< one of them does, and begins the gradient
  forbids,   ///< the gradient cannot lie there
};
struct TensorPlace {
  PlaceUse use = PlaceUse::ignores;
  Index lag = 0;   ///< rows that the gradient lies behind the values, where a stage reads these
  friend constexpr bool operator==(const TensorPlace&, const TensorPlace&) = default;
};
namespace detail {
/// Whether layers of a stage read the values of its tensor t in full height in the backward pass.
constexpr bool layers_read_values(const Stage& stage, const StageNeeds& needs, Index t) {
  if (item(needs.remade_in_slabs, t)) return false;
  if (item(needs.value, t)) return true;
  for (const BackwardRun& run : needs.runs)
    for (Index l = run.first; run.recompute && l < run.last; ++l)
      if (run.makes(l) && (stage.in(l) == t || stage.other(l) == t)) return true;
  return false;
}
/// Whether they do, or a norm above does for which the stage turns the gradient of its output into that of its input. Such a norm reads the values
/// in full height, though the stage makes them again for its own layers.
constexpr bool reads_values(const Stage& stage, const StageNeeds& needs, Index t) {
  return stage.count_norms_above(t) > 0 || layers_read_values(stage, needs, t);
}
/// What a stage does with the place of tensor t's values.
constexpr PlaceUse place_use(const Stage& stage, const StageNeeds& needs, Index t) {
  const bool written = t >= stage.input_count();
  const TensorUse& use = stage.use(t);
  if (use.offloaded) return PlaceUse::forbids;                                                             // its values are elsewhere
  if (needs.sum_in_place >= 0 && t == input_of_sum(stage, needs.sum_in_place)) return PlaceUse::forbids;   // its gradient lies with that of the sum
  // Pieces of slabs are dense; a stage that is not cut would have its kernels work on what is not.
  if (stage.makes_input) return stage.forward.slabs() < 2 ? PlaceUse::forbids : PlaceUse::ignores;
  if ((written && !use.leaves) || (!stage.replaced_by_extra_passes && stage.backward.slabs() < 2)) return PlaceUse::forbids;
  const bool uncut_forward = (stage.passes == 0 || stage.partition.forward_passes) && stage.forward.slabs() < 2;
  if (!use.made_alone && (use.discarded || uncut_forward)) return PlaceUse::forbids;   // the first forward pass has values made alone elsewhere
  if (stage.supplies) return PlaceUse::forbids;                                        // goes forward again when the gradient may have begun
  // One that goes forward again for itself alone does so before it begins the gradient, and may read the values slab by slab.
  if (stage.forward_repeated && (written || use.given || stage.again().slabs() < 2)) return PlaceUse::forbids;
  if (stage.replaced_by_extra_passes || !reads_values(stage, needs, t)) return PlaceUse::ignores;
  return written || use.plain < 1 || use.given ? PlaceUse::forbids : PlaceUse::reads;
}
/// Of a stage that writes a sum's gradient over that of its output (sum_in_place.hpp): whether it may lie behind that output's values. It may
/// become the gradient of an input, too (input_of_sum); then the stage that makes that, and others that add to its gradient, work slab by slab.
/// Not if `stages` lack that maker.
constexpr bool sum_may_lie_behind(const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs, Index s) {
  const Stage& stage = item(stages, s);
  const Index input = input_of_sum(stage, item(needs, s).sum_in_place);
  if (input < 0) return true;
  const Index g = stage.tensor(input);
  bool made = false;
  for (Index o = 0; o < static_cast<Index>(stages.size()); ++o) {
    const Stage& other = item(stages, o);
    if (other.section > stage.section || other.replaced_by_extra_passes || other.makes_input) continue;   // they have no hand in it
    for (Index t = 0; t < other.tensors(); ++t) {
      if (other.tensor(t) != g) continue;
      if (other.backward.slabs() < 2) return false;
      if (t < other.input_count()) continue;
      made = true;
      if (item(needs, o).sum_in_place >= 0 && t + 1 == other.tensors() && !sum_may_lie_behind(stages, needs, o)) return false;
    }
  }
  return made;
}
/// How many rows the gradient of an input of a stage lies behind its values there: as many as a slab holds. The first slab has those above it, too:
/// their gradient becomes zero while other layers still read the slab's values.
constexpr Index lag_behind(const Stage& stage, Index t) {
  return std::max(stage.backward.most(t, &SlabRows::hold), stage.backward.at(0, t).hold.end);
}
/// How many times as many rows as the lag a tensor has at least. Its place is larger by the lag for as long as the values live, while a gradient
/// of its own would live in the backward pass alone. For tensors that several layers read, ResNets in an eighth of their column's bytes come out best
/// with this number, by estimated costs.
constexpr Index least_times_lag(const TensorUse& use) { return use.plain > 1 ? 14 : 2; }
}   // namespace detail
/// What these stages together do with the places of the table's tensors. `stages`: those of the forward pass first.
constexpr std::vector<TensorPlace> tensor_places(const Table& table, const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs) {
  std::vector<TensorPlace> places(static_cast<std::size_t>(table.tensors()));
  std::vector<Index> reader(places.size(), 0);   // the section of the stage that reads
  for (Index s = 0; s < static_cast<Index>(stages.size()); ++s) {
    const Stage& stage = item(stages, s);
    for (Index t = 0; t < stage.tensors(); ++t) {
      TensorPlace& place = item(places, stage.tensor(t));
      if (place.use == PlaceUse::forbids) continue;
      PlaceUse use = detail::place_use(stage, item(needs, s), t);
      const bool of_sum = item(needs, s).sum_in_place >= 0 && t + 1 == stage.tensors();
      if (of_sum && use == PlaceUse::ignores && !detail::sum_may_lie_behind(stages, needs, s)) use = PlaceUse::forbids;
      if (use == PlaceUse::ignores) continue;
      const Index lag = use == PlaceUse::reads ? detail::lag_behind(stage, t) : 0;
      const bool fits =
          use == PlaceUse::reads && place.use == PlaceUse::ignores && detail::least_times_lag(stage.use(t)) * lag <= table.shape(stage.tensor(t)).h;
      place = fits ? TensorPlace{PlaceUse::reads, lag} : TensorPlace{PlaceUse::forbids, 0};
      item(reader, stage.tensor(t)) = stage.section;
    }
    if (stage.reduces) item(places, stage.last) = {PlaceUse::forbids, 0};
  }
  for (const Stage& maker : stages) {   // reads its inputs when sections above the one that it begins with have gone backward
    if (!maker.makes_input) continue;
    const Stage& base = *std::find_if(stages.begin(), stages.end(), [&](const Stage& stage) { return stage.first == maker.first; });
    for (const Index g : maker.inputs)
      if (item(reader, g) > base.section) item(places, g) = {PlaceUse::forbids, 0};
  }
  return places;
}
/// Whether a stage computes again, for the sake of gradients in place, what it would otherwise read in full height.
constexpr bool remakes_in_slabs(const std::vector<StageNeeds>& needs) {
  return std::any_of(needs.begin(), needs.end(), [](const StageNeeds& stage) {
    return std::any_of(stage.remade_in_slabs.begin(), stage.remade_in_slabs.end(), [](char remade) { return remade != 0; });
  });
}
/// How many rows the gradient of each tensor of the table lies behind its values; 0: it has a place of its own. Arguments as for tensor_places().
constexpr std::vector<Index> gradient_lags(const Table& table, const std::vector<Stage>& stages, const std::vector<StageNeeds>& needs) {
  std::vector<Index> lags(static_cast<std::size_t>(table.tensors()), 0);
  const std::vector<TensorPlace> places = tensor_places(table, stages, needs);
  for (Index g = 1; g < table.size(); ++g) item(lags, g) = item(places, g).lag;
  return lags;
}
}   // namespace lrcnn
