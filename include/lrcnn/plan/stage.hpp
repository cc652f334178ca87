#pragma once
// Stages: runs of layers between tensors that exist in full height, and how each is cut.
//
// A stage ends where the policy puts a checkpoint, and at every barrier. A barrier is a layer that cannot start before all rows of an input
// are there: a flatten reads the whole map, a scale needs all of its factors, and a norm with statistics over rows needs all of them. A
// global pooling ends the stage of its map. Layers of vectors and layers of maps share no section, in whatever order branches are executed.
// Two stages work on such a norm. The stage below it makes the norm's input; it adds up the statistics in the forward pass, and turns the
// gradient of the norm's output into that of its input in the backward pass. The stage above begins with the norm; it normalises in the
// forward pass, and adds up the sums that the gradient needs in the backward pass.
// Stages form a graph; its edges are tensors in full height. Where only norms read a stage's output, the plan may drop the output and run
// the stage's forward pass again before the backward pass needs it (`forward_repeated`). The stages up to the next checkpoint are a segment.
// Segments may lie within one: sections whose input is made again (`recomputes_input`) are a group with the section below. When the backward pass
// comes to the topmost one, those below it (`supplies`) go forward again for their outputs alone; each then goes backward as it would by itself.
// Or an input is made again alone (`input_alone`), right before its section goes backward, by a stage that has no other task (`makes_input`).
//
// Or it is offloaded (`TensorUse::offloaded`): it lies in a larger memory than the arena, and who reads it after the forward pass fetches its rows.
//
// Words that plan/ uses everywhere:
//   full height     A tensor lies in full height if all of its rows are in memory at once. Within a stage, slabs have only some rows of a tensor.
//   waits           A norm waits if it takes statistics in this step: its whole input must be there first.
//                   A stage ends below such a norm, unless extra passes go through it.
//   reduces         A global pooling reduces, and so does the stage that it ends: it adds rows up as they come. Its result is one row.
//   leaves          A tensor leaves its stage if another stage reads it. Then it lies in full height.
//   extra passes    A stage that has some goes through its slabs more often in the backward pass: once more for each of the norms within it that
//                   lie one above the other.
//   turn            One run through a loop over slabs or groups of images. For the size of a plan, one turn stands for all.
#include <lrcnn/plan/options.hpp>
#include <lrcnn/plan/stream_schedule.hpp>
#include <algorithm>
namespace lrcnn {
/// Who uses a tensor of a stage.
struct TensorUse {
  Index readers = 0;             ///< how often layers of the stage read it
  Index plain = 0;               ///< how many of these give it a gradient; norms with statistics do not
  bool leaves = false;           ///< layers of other stages read it, or it is the network's output: it exists in full height
  bool wanted_plain = false;     ///< a layer of another stage gives it a gradient
  bool given = false;            ///< it is an input, and later stages have begun its gradient
  bool read_once = false;        ///< it is an input, and one layer of the table reads it
  bool discarded = false;        ///< not kept from the forward to the backward pass; a repeated forward pass makes it again
  bool made_for_above = false;   ///< discarded, and sections above want it again: the pass that makes it is the one for them (Stage::supplies)
  bool made_alone = false;       ///< discarded, and one section above wants it again: a stage of its own makes it (Stage::makes_input)
  bool offloaded = false;        ///< discarded, and it lies in the larger memory since the section above has begun its forward pass
  friend constexpr bool operator==(const TensorUse&, const TensorUse&) = default;
};
/// A norm outside the stage that makes the tensor that it normalises.
struct NormAbove {
  Index tensor = 0;   ///< of the stage
  Index node = 0;     ///< of the table
  friend constexpr bool operator==(const NormAbove&, const NormAbove&) = default;
};
/// A run of layers with its cuts. Its tensors are numbered from its start: inputs first, then what each layer writes.
struct Stage {
  Index first = 0;                         ///< first layer
  Index last = 0;                          ///< one past its last layer; also the number of the tensor that it writes
  bool reduces = false;                    ///< its last layer is a global pooling, which takes rows as they come
  bool vector = false;                     ///< it holds flatten or linear: no rows to cut
  bool forward_repeated = false;           ///< the forward pass is run again before the segment's backward pass
  bool replaced_by_extra_passes = false;   ///< a stage with extra passes does its backward pass
  bool recomputes_input = false;           ///< its section's input is made again (RecomputeInput, RecomputeInputAlone)
  bool input_alone = false;                ///< for the section alone
  /// The section above does not keep its input. Before the backward pass of that section, this stage runs its forward pass once more to make that
  /// input again.
  bool supplies = false;
  /// It is run once, right before its section goes backward, and makes that section's input again, from a section below on. Such stages stand behind
  /// all others.
  bool makes_input = false;
  Index passes = 0;              ///< number of extra backward passes; a stage that has some has no forward pass, and stands behind all that have none
  bool behind_means = false;     ///< it begins behind a global pooling and has one row, as that of a squeeze-and-excitation's factors
  Index section = 0;             ///< stages that a norm alone divides have one
  Index partition_number = 0;    ///< in the policy: that of its section, or, behind means, of the section before
  std::vector<Index> inputs{};   ///< tensors of the table that it reads
  std::vector<std::array<Index, 2>> reads{};   ///< of each layer of the chain, tensors of the stage; -1: none
  std::vector<TensorUse> uses{};               ///< of each tensor of the stage, and of what a closing global pooling writes
  std::vector<NormAbove> norms_above{};
  Partition partition{};   ///< as carried out: counts are at most what the rows carry, images at least 1
  Schedule forward{};      ///< over the chain, without a closing global pooling
  Schedule backward{};     ///< likewise; empty where slabs need not reach the top, which are those of a forward pass alone
  /// Of a forward pass that is run again before the segment's backward pass.
  constexpr const Schedule& again() const { return partition.again_as_backward ? backward : forward; }
  /// Layers that rows travel through.
  constexpr Index chain_layers() const { return last - first - (reduces ? 1 : 0); }
  constexpr Index input_count() const { return static_cast<Index>(inputs.size()); }
  constexpr Index tensors() const { return input_count() + chain_layers(); }
  /// The table's number of a tensor.
  constexpr Index tensor(Index t) const { return t < input_count() ? inputs[static_cast<std::size_t>(t)] : first + 1 + t - input_count(); }
  /// The stage's number of tensor g of the table. Pre: its chain makes that.
  constexpr Index made(Index g) const { return input_count() + g - first - 1; }
  constexpr Index in(Index l) const { return reads[static_cast<std::size_t>(l)][0]; }
  constexpr Index other(Index l) const { return reads[static_cast<std::size_t>(l)][1]; }
  constexpr Index out(Index l) const { return input_count() + l; }
  constexpr const TensorUse& use(Index t) const { return uses[static_cast<std::size_t>(t)]; }
  /// How many norms above normalise tensor t.
  constexpr Index count_norms_above(Index t) const {
    Index count = 0;
    for (const NormAbove& norm : norms_above) count += norm.tensor == t;
    return count;
  }
  /// Slabs of rows times slabs of images of a pass. `images`: how many the step has at once.
  constexpr Index turns(const Schedule& pass, Index images) const { return pass.slabs() * ceil_div(images, partition.images); }
  /// Slabs of either pass that are worked on at once: one for each stream, if there are as many.
  constexpr Index slabs_at_once(Index images, Index streams) const {
    return std::clamp<Index>(std::max(turns(forward, images), turns(backward, images)), 1, streams);
  }
  /// Whether its last rows go through a loss that is local to rows, slab by slab, and are kept nowhere.
  constexpr bool loses_rows(const Table& table, const PlanOptions& options) const {
    return options.rows_loss && last == table.size() && !reduces && !vector;
  }
  /// Whether each layer reads the tensor before it, and nobody outside reads any but the last.
  constexpr bool is_chain() const {
    if (input_count() != 1) return false;
    for (Index l = 0; l < chain_layers(); ++l)
      if (in(l) != l || other(l) >= 0 || use(l).readers != 1 || (l > 0 && use(l).leaves)) return false;
    return true;
  }
  friend constexpr bool operator==(const Stage&, const Stage&) = default;
};
/// How many stages have a forward pass of their own: those before stages with extra passes, and before those that make inputs again.
constexpr std::size_t forward_stage_count(const std::vector<Stage>& stages) {
  std::size_t count = 0;
  while (count < stages.size() && stages[count].passes == 0 && !stages[count].makes_input) ++count;
  return count;
}
}   // namespace lrcnn
