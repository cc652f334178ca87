#pragma once
// Which recomputation of a section, and which slabs of rows with it, are worth trying.
#include <lrcnn/plan/needs.hpp>
#include <lrcnn/plan/section_ends.hpp>
#include <array>
namespace lrcnn::detail {
inline constexpr std::array tried_recomputes{Recompute::none, Recompute::light, Recompute::cheap, Recompute::all};
/// Of each of these, whether a section keeps something else than with one before, or may be run otherwise: else it need not be tried. `whole`: its
/// stages, not cut; `all`: that is not looked at, and all are worth trying.
inline std::array<bool, tried_recomputes.size()> find_different(const Table& table, const PlanOptions& options, const std::vector<Stage>& whole,
                                                                bool all) {
  std::array<bool, tried_recomputes.size()> differs;
  differs.fill(true);
  if (all) return differs;
  std::array<std::vector<StageNeeds>, tried_recomputes.size()> needs;
  for (std::size_t r = 0; r < tried_recomputes.size() && tried_recomputes[r] != Recompute::all; ++r) {
    for (const Stage& stage : whole) needs[r].push_back(stage_needs(table, stage, tried_recomputes[r], stage.loses_rows(table, options)));
    for (std::size_t before = 0; before < r; ++before) differs[r] = differs[r] && needs[before] != needs[r];
  }
  return differs;
}
/// Whether slabs of rows may pay. `parted`: norms part the section, so that what slabs would keep lies in full height between its stages anyway,
/// and slabs have hardly a row in common.
inline bool slabs_may_pay(const Table& table, const PlanOptions& options, Cut cut, Recompute recompute, bool parted) {
  if (recompute == Recompute::cheap) return false;
  if (is_small(table) || !options.training) return true;
  return parted ? cut == Cut::overlap && recompute == Recompute::all : cut == Cut::overlap || recompute == Recompute::all;
}
}   // namespace lrcnn::detail
