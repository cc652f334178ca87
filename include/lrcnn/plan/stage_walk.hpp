#pragma once
// Where in a stage's pass the emitter is: the slab of images and of rows at hand, the run of layers, and what the slab's gradients have got.
#include <lrcnn/plan/stage_pass.hpp>
namespace lrcnn {
class StageWalk : public StagePass {
 public:
  using StagePass::StagePass;
  Pass pass = kind.pass;                ///< recompute where a backward pass makes values again
  Range images{};                       ///< of the slab
  Index image_slab = 0;                 ///< the slab of images
  Index slab = 0;                       ///< the slab of rows
  Index round = 0;                      ///< of the forward passes for statistics alone, from 1; 0: it is none
  std::vector<Index> norms_under{};     ///< in those passes: see detail::norms_under()
  Flags wanted{};                       ///< of the run of layers being computed: tensor t is made; empty: all are
  Flags input_ready{};                  ///< the slab's rows of input t have been brought in
  std::vector<Index> contributions{};   ///< that the slab's gradient of tensor t has got
  std::vector<Index> written_from{};    ///< for tensor t: the first row of its full-height gradient that has been written; so are all rows behind it
  /// Stands before all slabs, for steps of all images.
  constexpr void stand_before_slabs() { images = group, slab = image_slab = 0; }
  constexpr const SlabRows& at(Index t) const { return rows->at(slab, t); }
  /// Rows of its first input that layer l reads in this slab.
  constexpr Range need(Index l) const { return StagePass::need(slab, l); }
  /// The stream that this slab is on, which is the number of its copy of the stage's buffers.
  constexpr Index stream() const { return streams == 1 ? 0 : turn() % copies(); }
  constexpr Index input_copy() const { return prefetch ? turn() % input_copies() : stream(); }
  /// Whether layer l is such a norm within the stage, whose statistics the forward pass at hand is for.
  constexpr bool norm_in_round(Index l) const { return norm_waits(l) && !norm_at_bottom(l) && item(norms_under, l) == round; }
  /// Whether tensor t is written in this run, rather than the saved state of its layer alone.
  constexpr bool makes(Index t) const { return wanted.empty() || item(wanted, t) != 0; }
  /// Whether layer l writes its output over its input in this pass.
  constexpr bool in_place(Index l) const {
    const Index t = in(l);
    const auto place = static_cast<std::size_t>(t);
    if (t < inputs() || (serves_backward() && needs->kept[place]) || (!forward() && needs->value[place])) return false;
    return rules_of(layer(l)).overwrites_input && makes(out(l)) && read_once(t) && same_memory(l);
  }
  /// The input of the stage over whose values a forward pass writes tensor t, by one or more layers that work in place; -1: over none. The pass is
  /// not cut: slabs that have rows in common would read what one of them has written over. A tensor that was kept from an earlier pass stays there.
  constexpr Index overwritten_input(Index t) const {
    if (t < inputs() || !forward() || cut() || stage->tensor(t) == table->size()) return -1;
    if (again() && in_full(t) && !stage->use(t).discarded) return -1;
    Index l = t - inputs(), read = in(l);
    for (; read >= inputs() && in_place(l); read = in(l)) l = read - inputs();
    const bool overwrites = read < inputs() && rules_of(layer(l)).overwrites_input && makes(out(l));
    return overwrites && is_input_read_once(read) ? read : -1;
  }

 private:
  constexpr Index turn() const { return image_slab * rows->slabs() + slab; }
};
}   // namespace lrcnn
