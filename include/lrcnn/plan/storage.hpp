#pragma once
// Where tensors lie while a stage is walked through: every buffer of a plan is declared here, at its first use.
//
// A buffer is known by stage, tensor and what it is for (Use). Its size is that of the largest slab, or the sum over
// slabs where each has a piece of its own, so that it is the same whichever slab asks first.
#include <lrcnn/plan/arena.hpp>
#include <lrcnn/plan/stage_pass.hpp>
namespace lrcnn {
constexpr Ref with_rows(Ref ref, Range rows) {
  ref.rows = rows;
  return ref;
}
template <class Sink>
class Storage {
 public:
  /// Filters are packed for one of these.
  enum class Filter { forward, recompute, backward };
  constexpr Storage(const Table& table, const Target& target, const std::vector<Stage>& stages, Sink& sink)
      : table_(table), target_(target), stages_(stages), sink_(sink) {
    for (const Stage& stage : stages_) uses_.push_back(std::vector<Index>(use_count * static_cast<std::size_t>(stage.chain_layers() + 1), -1));
    values_.assign(stages_.size(), -1);
    gradients_.assign(stages_.size(), -1);
  }
  /// The backend's scratch, one for each of `lanes`; -1 if it wants none.
  constexpr Index declare_workspace(Index bytes, Index lanes) {
    return bytes > 0 && target_.uses_workspace ? sink_.declare(Role::workspace, -1, -1, aligned(bytes), lanes) : -1;
  }

  // ---- values ------------------------------------------------------------------------------------------------------
  /// Where the slab's rows of tensor t are, all that it holds. Of tensor 0: after they have been loaded or gathered.
  constexpr Ref value(const StagePass& c, Index t) {
    if (t == 0)
      return has_input_slab(c) ? local(c, c.forward() ? slab_f : slab_b, Role::slab, 0, &SlabRows::hold)
                               : stage_input_value(c, c.at(0).hold);
    if (t < c.layers() && c.in_place(t)) {
      Ref ref = value(c, t + 1);
      ref.tensor = c.stage->first + t;
      return ref;
    }
    if (t == c.layers() && c.top_in_full()) return stage_value(c, c.at(t).own);
    if (c.needs->kept[static_cast<std::size_t>(t)] && c.training)
      return piece(c, kept, Role::kept, t, c.at(t).hold, c.rows->slabs(), c.n, [&](Index images, Index k) {
        return piece_bytes(c.shape(t), images, c.rows->at(k, t).hold.size());
      });
    return local(c, c.forward() ? slab_f : slab_b, Role::slab, t, &SlabRows::hold);
  }
  /// Whether the stage's input rows are brought into a slab, rather than read where they lie: the network's input always,
  /// another if a convolution wants rows of it densely.
  constexpr bool has_input_slab(const StagePass& c) const { return c.s == 0 || (c.cut() && c.starts_with_conv()); }
  /// Rows that a convolution makes, before they join carried ones.
  constexpr Ref own_value(const StagePass& c, Index t) { return local(c, c.forward() ? own_f : own_b, Role::own, t, &SlabRows::own); }
  /// Rows that a convolution reads, without others.
  constexpr Ref needed_value(const StagePass& c, Index t) {
    return local(c, c.forward() ? need_f : need_b, Role::slab, t, &SlabRows::need);
  }
  /// The stage's output: images of the slab, rows `rows`. The network's output is held for the batch.
  constexpr Ref stage_value(const StagePass& c, Range rows) {
    return in_full(values_, Role::value, c, c.s, c.stage->last == table_.size() ? Range{0, table_.input.n} : c.group, rows);
  }
  constexpr Ref stage_input_value(const StagePass& c, Range rows) { return in_full(values_, Role::value, c, c.s - 1, c.group, rows); }
  /// Pool indices or mask bits of layer l.
  constexpr Ref saved(const StagePass& c, Index l) {
    const Range own = c.at(l + 1).own;
    const bool keeps = c.needs->saved_kept[static_cast<std::size_t>(l)];
    Ref ref;
    if (keeps && l + 1 == c.layers()) {   // disjoint rows: one full-height piece
      const Index height = c.shape(l + 1).h;
      const Index id = declared(c, saved_kept, Role::saved, l, [&] { return saved_bytes(c, l, c.group.size(), height); });
      ref = {id, 0, 0, c.group, {0, height}, c.images, own};
    } else if (keeps) {
      ref = piece(c, saved_kept, Role::saved, l, own, c.rows->slabs(), c.n, [&](Index images, Index k) {
        return saved_bytes(c, l, images, c.rows->at(k, l + 1).own.size());
      });
    } else {
      const Index id = c.lane() + declared(c, saved_b, Role::saved, l, [&] {
        return saved_bytes(c, l, c.stage->partition.images, c.rows->most(l + 1, &SlabRows::own));
      }, c.lanes());
      ref = {id, 0, 0, c.images, own, c.images, own};
    }
    ref.tensor = c.stage->first + l + 1;
    return ref;
  }
  /// Rows of tensor t carried into slab n of the backward pass, kept from the forward pass.
  constexpr Ref state(const StagePass& c, Index t, Index n) {
    const Schedule& rows = c.stage->backward;
    return piece(c, state_rows, Role::carry, t, rows.carried(n, t), rows.slabs(), n, [&](Index images, Index k) {
      return piece_bytes(c.shape(t), images, rows.carried(k, t).size());
    });
  }
  /// Rows of tensor t on their way into slab n.
  constexpr Ref rolling(const StagePass& c, Index t, Index n) { return carried(c, rolling_rows, Role::carry, t, n); }

  // ---- gradients ---------------------------------------------------------------------------------------------------
  /// Gradient of the slab's rows of tensor t: all held ones.
  constexpr Ref gradient(const StagePass& c, Index t) {
    if (t > 0 && t < c.layers() && c.gradient_in_place(t)) {
      Ref ref = gradient(c, t + 1);
      ref.tensor = c.stage->first + t;
      return ref;
    }
    if (t == c.layers() && !c.stage->reduces) return stage_gradient(c, c.at(t).own);
    return local(c, dslab, Role::dslab, t, &SlabRows::hold);
  }
  /// The gradient of the slab's own rows, without those of earlier slabs.
  constexpr Ref own_gradient(const StagePass& c, Index t) { return local(c, down, Role::dslab, t, &SlabRows::own); }
  /// The gradient of the rows that layer t reads, without others.
  constexpr Ref needed_gradient(const StagePass& c, Index t) { return local(c, dneed, Role::dslab, t, &SlabRows::need); }
  /// The gradient of the rows of tensor t carried into slab n, on its way to the slab before.
  constexpr Ref carried_gradient(const StagePass& c, Index t, Index n) { return carried(c, dcarry, Role::dcarry, t, n); }
  constexpr Ref stage_gradient(const StagePass& c, Range rows) { return in_full(gradients_, Role::gradient, c, c.s, c.group, rows); }
  /// The gradient of the stage's input in full height.
  constexpr Ref input_gradient(const StagePass& c, Range rows) {
    return c.s > 0 ? in_full(gradients_, Role::gradient, c, c.s - 1, c.group, rows) : network_input_gradient(c.images, rows);
  }
  constexpr Ref network_input_gradient(Range images, Range rows) {
    const Input& input = table_.input;
    if (input_gradient_ < 0) input_gradient_ = sink_.declare(Role::gradient, 0, 0, piece_bytes(input, input.n, input.h));
    return {input_gradient_, 0, 0, {0, input.n}, {0, input.h}, images, rows};
  }
  constexpr Index network_input_gradient_buffer() const { return input_gradient_; }

  // ---- filters -----------------------------------------------------------------------------------------------------
  /// The buffer of layer l's filter in the backend's layout. Pre: Target::packs(layer).
  constexpr Index filter(const StagePass& c, Filter which, Index l) {
    const bool in_slab = c.packs_in_slab(l);
    return (in_slab ? c.lane() : 0) +
           declared(c, packed(which), Role::packed, l, [&] { return aligned(target_.packed_bytes(node(c, l))); }, in_slab ? c.lanes() : 1);
  }
  /// Room for layer l's filter gradient in that layout.
  constexpr Index filter_gradient(const StagePass& c, Index l) {
    return c.lane() + declared(c, scratch, Role::scratch, l, [&] { return aligned(target_.scratch_bytes(node(c, l))); }, c.lanes());
  }

  /// Stretches what must outlive a turn over the whole loop of a pass that began at `since`.
  constexpr void outlive_turns(const StagePass& c, Index since) {
    if (c.turns() == 1) return;
    for (const Use which : {kept, saved_kept, rolling_rows, state_rows, dcarry, packed_f, packed_r, packed_b})
      for (Index t = 0; t <= c.layers(); ++t) {
        const bool stale = !c.forward() && (which == rolling_rows || which == packed_f);
        const bool turn = (which == packed_f || which == packed_r || which == packed_b) && t < c.layers() && c.packs_in_slab(t);
        if (!stale && !turn) sink_.span(use(c, which, t), since);
      }
    if (c.input_lanes() > c.lanes()) sink_.span(use(c, c.forward() ? slab_f : slab_b, 0), since);   // the next slab's rows come in meanwhile
    const auto number = static_cast<std::size_t>(c.s);
    if (c.s > 0) sink_.span(values_[number - 1], since);
    if (c.forward() || c.needs->output) sink_.span(values_[number], since);
    if (c.forward()) return;
    sink_.span(gradients_[number], since);
    sink_.span(c.s > 0 ? gradients_[number - 1] : input_gradient_, since);
  }

 private:
  /// What a buffer of one tensor, or of one layer, is for. _f: in the forward pass, _b: in the backward pass.
  enum Use : std::size_t {
    slab_f, slab_b, own_f, own_b, need_f, need_b, kept, saved_b, saved_kept, rolling_rows, state_rows,
    dslab, dneed, down, dcarry, packed_f, packed_r, packed_b, scratch, use_count,
  };
  static constexpr Use packed(Filter which) {
    return which == Filter::forward ? packed_f : which == Filter::recompute ? packed_r : packed_b;
  }
  const Table& table_;
  const Target& target_;
  const std::vector<Stage>& stages_;
  Sink& sink_;
  std::vector<std::vector<Index>> uses_{};
  std::vector<Index> values_{}, gradients_{};   ///< of stages, in full height
  Index input_gradient_ = -1;

  constexpr Index aligned(Index bytes) const { return round_up(bytes, target_.alignment); }
  constexpr Index piece_bytes(const Shape& s, Index images, Index rows) const {
    return aligned(target_.bytes(images, s.c, rows, s.w));
  }
  constexpr Index saved_bytes(const StagePass& c, Index l, Index images, Index rows) const {
    const Shape& s = c.shape(l + 1);
    return aligned(c.layer(l).kind == Kind::activation ? target_.mask_bytes(images, s.c, rows, s.w)
                                                       : target_.index_bytes(images, s.c, rows, s.w));
  }
  constexpr const Node& node(const StagePass& c, Index l) const { return table_.node(c.stage->first + l); }
  constexpr Index& use(const StagePass& c, Use which, Index t) {
    return uses_[static_cast<std::size_t>(c.s)][which * static_cast<std::size_t>(c.layers() + 1) + static_cast<std::size_t>(t)];
  }
  template <class Bytes>
  constexpr Index declared(const StagePass& c, Use which, Role role, Index t, Bytes bytes, Index lanes = 1) {
    Index& id = use(c, which, t);
    if (id < 0) id = sink_.declare(role, c.s, c.stage->first + t, bytes(), lanes);
    return id;
  }
  /// A buffer that is used anew in every slab: room for the largest.
  constexpr Ref local(const StagePass& c, Use which, Role role, Index t, Range SlabRows::* held) {
    const Range hold = c.at(t).*held;
    const bool input = t == 0 && role == Role::slab && held == &SlabRows::hold;
    const Index id = (input ? c.input_lane() : c.lane()) + declared(c, which, role, t, [&] {
      return piece_bytes(c.shape(t), c.stage->partition.images, c.rows->most(t, held));
    }, input ? c.input_lanes() : c.lanes());
    return {id, 0, c.stage->first + t, c.images, hold, c.images, hold};
  }
  /// A buffer of the rows of tensor t that are carried into slab n.
  constexpr Ref carried(const StagePass& c, Use which, Role role, Index t, Index n) {
    const Index id = declared(c, which, role, t, [&] {
      return piece_bytes(c.shape(t), c.stage->partition.images, c.rows->most_carried(t));
    });
    const Range rows = c.rows->carried(n, t);
    return {id, 0, c.stage->first + t, c.images, rows, c.images, rows};
  }
  /// A buffer with a piece for every slab. `size` gives a piece's bytes for a number of images and a slab.
  template <class Size>
  constexpr Ref piece(const StagePass& c, Use which, Role role, Index t, Range hold, Index slabs, Index n, Size size) {
    const Index images = c.stage->partition.images, count = ceil_div(c.group.size(), images);
    const auto image_count = [&](Index i) { return std::min(images, c.group.size() - i * images); };
    const auto sum = [&](Index image_slabs, Index until) {
      Index bytes = 0;
      for (Index i = 0; i <= image_slabs; ++i)
        for (Index k = 0; k < (i < image_slabs ? slabs : until); ++k) bytes += size(image_count(i), k);
      return bytes;
    };
    const Index id = declared(c, which, role, t, [&] { return sum(count, 0); });
    const Index offset = Sink::every_turn ? sum(c.image_slab, n) : 0;
    return {id, offset, c.stage->first + t, c.images, hold, c.images, hold};
  }
  /// A stage's output or its gradient, held for the images `held`: images of the slab, rows `rows`.
  constexpr Ref in_full(std::vector<Index>& ids, Role role, const StagePass& c, Index s, Range held, Range rows) {
    const Index tensor = stages_[static_cast<std::size_t>(s)].last;
    const Shape& shape = table_.shape(tensor);
    Index& id = ids[static_cast<std::size_t>(s)];
    if (id < 0) id = sink_.declare(role, s, tensor, piece_bytes(shape, held.size(), shape.h));
    return {id, 0, tensor, held, {0, shape.h}, c.images, rows};
  }
};
}  // namespace lrcnn
