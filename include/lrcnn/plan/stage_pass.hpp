#pragma once
// One pass of one stage, and where in it the emitter is: rows of the slab at hand, and every question that can be
// answered from them without knowing where tensors lie.
//
// A stage's tensors and layers are numbered from its start; layer l leads from tensor l to l + 1, and tensor layers() is
// the chain's last. A slab's rows of tensor t are own, made here, and hold, own and carried (slab_schedule.hpp).
#include <lrcnn/plan/needs.hpp>
#include <lrcnn/plan/options.hpp>
namespace lrcnn {
struct StagePass {
  const Table* table = nullptr;
  const Stage* stage = nullptr;
  const StageNeeds* needs = nullptr;
  const Schedule* rows = nullptr;
  Pass pass{};
  Index s = 0;            ///< number of the stage
  bool training = true;
  bool stores = false;    ///< the chain's last rows are handed on slab by slab, rather than gathered in full height
  Range group{};          ///< images that go through all stages together
  Flags carries{};        ///< tensor t has carried rows in some slab
  Flags same_rows{};      ///< slabs hold the same rows of tensors t and t + 1, none of them carried
  Flags need_copy{};      ///< the rows that layer t reads are not all of the rows held, so a dense copy is made
  // where the emitter is:
  Range images{};         ///< of the slab
  Index n = 0;            ///< the slab
  Index image_slab = 0;
  Index top_run = 0;      ///< last tensor of the run of layers being computed
  bool input_ready = false;
  Index streams = 1;      ///< of the policy
  bool prefetch = false;  ///< likewise
  Index covered = 0;      ///< rows of the stage's input gradient from here on are written
  constexpr StagePass(const Table& whole, const std::vector<Stage>& stages, const std::vector<StageNeeds>& all_needs, Index number,
                      Pass which, const Schedule& schedule, const PlanOptions& options, Range images_together)
      : table(&whole), stage(&stages[static_cast<std::size_t>(number)]), needs(&all_needs[static_cast<std::size_t>(number)]),
        rows(&schedule), pass(which), s(number), training(options.training),
        stores(options.stores_output && stage->last == whole.size() && !stage->reduces), group(images_together),
        wants_first_gradient_(number > 0 || options.input_gradient) {
    const Index count = layers();
    carries.assign(static_cast<std::size_t>(count + 1), 0);
    same_rows.assign(static_cast<std::size_t>(count + 1), 1);
    need_copy.assign(static_cast<std::size_t>(count + 1), 0);
    for (Index t = 1; t < count; ++t) {
      for (Index k = 0; k < rows->slabs(); ++k)
        if (rows->at(k, t).hold != rows->at(k, t + 1).own || rows->at(k, t + 1).hold != rows->at(k, t + 1).own)
          same_rows[static_cast<std::size_t>(t)] = 0;
      const Index stride = row_axis(layer(t).window).stride;
      for (Index k = 0; k < rows->slabs(); ++k) {
        const SlabRows& r = rows->at(k, t);
        if (r.hold.begin < r.own.begin) carries[static_cast<std::size_t>(t)] = 1;
        if (rows->at(k, t + 1).own.empty()) continue;   // layer t is left out in this slab
        if (r.need.empty() ? !r.hold.empty() : r.need.begin != r.hold.begin || r.hold.end - r.need.end >= stride)
          need_copy[static_cast<std::size_t>(t)] = 1;
      }
    }
  }
  constexpr const Layer& layer(Index l) const { return table->node(stage->first + l).layer; }
  constexpr const Shape& shape(Index t) const { return table->shape(stage->first + t); }
  constexpr Index layers() const { return stage->chain_layers(); }
  constexpr bool cut() const { return rows->slabs() > 1; }
  constexpr const SlabRows& at(Index t) const { return rows->at(n, t); }
  constexpr bool forward() const { return pass == Pass::forward; }
  /// Slabs of rows times slabs of images.
  constexpr Index turns() const { return rows->slabs() * ceil_div(group.size(), stage->partition.images); }
  /// Sets of buffers that slabs take in turn, and the one that this slab has.
  constexpr Index lanes() const { return streams == 1 ? 1 : std::min(streams, turns()); }
  constexpr Index lane() const { return streams == 1 ? 0 : turn() % lanes(); }
  /// The same for the network's input rows.
  constexpr Index input_lanes() const { return s == 0 && prefetch ? std::max(lanes(), std::min<Index>(2, turns())) : lanes(); }
  constexpr Index input_lane() const { return prefetch ? turn() % input_lanes() : lane(); }
  constexpr bool same_cuts() const { return rows->cuts == stage->backward.cuts; }
  /// Whether the chain's last tensor lies in full height, rather than in the slab alone.
  constexpr bool top_in_full() const { return !stage->reduces && !stores; }
  constexpr bool starts_with_conv() const { return layers() > 0 && is_conv(layer(0)); }
  constexpr bool wants_input_gradient() const { return wants_first_gradient_; }
  /// Whether the last tensor of the run is wanted, rather than the saved state of its last layer alone.
  constexpr bool makes_top() const {
    const auto top = static_cast<std::size_t>(top_run);
    return forward() || (needs->value[top] && !needs->kept[top]);
  }
  /// Whether layer l writes its output over its input in this pass.
  constexpr bool in_place(Index l) const {
    const auto number = static_cast<std::size_t>(l);
    if (l < 1 || needs->kept[number] || (!forward() && needs->value[number])) return false;
    return (l + 1 != top_run || makes_top()) && may_overwrite(l);
  }
  /// Whether an activation's gradient overwrites the one it is made of.
  constexpr bool gradient_in_place(Index l) const { return l >= 1 && may_overwrite(l); }
  /// Whether the backward pass computes tensor t again and so needs the rows carried into each of its slabs.
  constexpr bool wants_state(Index t) const {
    if (!training) return false;
    const auto number = static_cast<std::size_t>(t);
    for (const BackwardRun& run : needs->runs)
      if (run.recompute && run.first < t && (t < run.last || (t == run.last && needs->value[number] && !needs->kept[number])))
        return stage->backward.most_carried(t) > 0;
    return false;
  }
  /// Whether a filter is packed where a slab uses it, rather than once before all slabs, which keeps every filter of the
  /// stage in memory. Packing moves 8 bytes per weight; a convolution does 2 operations per weight and pixel: at 8 GB/s
  /// and 230 Gop/s packing costs 115 / pixels of the convolution's time (docs/benchmarks.md), 6 % at this bound.
  constexpr bool packs_in_slab(Index l) const {
    constexpr Index enough_pixels = 2048;
    return turns() == 1 || shape(l + 1).h / rows->slabs() * shape(l + 1).w * stage->partition.images >= enough_pixels;
  }

 private:
  bool wants_first_gradient_ = false;
  constexpr Index turn() const { return image_slab * rows->slabs() + n; }
  constexpr bool may_overwrite(Index l) const {
    return can_overwrite(layer(l)) && same_rows[static_cast<std::size_t>(l)] && (l + 1 < layers() || !top_in_full() || !cut());
  }
};
}  // namespace lrcnn
