#pragma once
// Where tensors lie while a stage is walked through: every buffer of a plan is declared here, at its first use.
//
// Tensors in full height, and what norms add up, belong to the table; what slabs have is plan/slab_buffers.hpp.
#include <lrcnn/plan/norm_gradients.hpp>
#include <lrcnn/plan/slab_buffers.hpp>
namespace lrcnn {
/// What a buffer that sections share is: of a tensor or a layer of the table, or of the whole step.
enum class SharedBuffer : std::uint8_t {
  value,           ///< of a tensor
  value_again,     ///< of a tensor, made by a repeated forward pass
  value_between,   ///< of a tensor, made by a forward pass for the sections above, and then again
  gradient,        ///< of a tensor
  norm_gradient,   ///< of what a norm that waits writes, by the layer's output
  statistics,      ///< of a norm, by its output
  sums,            ///< of a norm's backward pass, a global pooling or a scale, by the layer's output
  workspace,       ///< the one that sections share
};
class Storage : SlabBuffers {
 public:
  NormGradients norms;
  /// Filters are packed for one of these.
  enum class Filter { forward, recompute, backward };
  /// `in_place`: whether gradients take their values' places in the plan; put_gradients_in_place() says where.
  constexpr Storage(const Table& table, const Target& target, const std::vector<Stage>& stages, bool in_place, Sink& sink)
      : SlabBuffers(target, stages, sink), norms(static_cast<std::size_t>(table.tensors())), table_(table), in_place_(in_place) {
    const auto tensors = static_cast<std::size_t>(table.tensors());
    for (auto* ids : {&values_, &values_again_, &values_between_, &offloaded_, &gradients_, &statistics_, &sums_}) ids->assign(tensors, -1);
    lags_.assign(tensors, 0), gradient_lags_.assign(tensors, 0), made_alone_.assign(tensors, 0);
    for (const Stage& stage : stages)
      for (Index t = 0; t < stage.tensors(); ++t)
        if (stage.use(t).made_alone) item(made_alone_, stage.tensor(t)) = 1;
  }
  /// Has gradients in full height take their values' places: of each tensor of the table, how many rows behind (in_place.hpp).
  constexpr void put_gradients_in_place(std::vector<Index> lags) {
    if (!lags.empty()) lags_ = gradient_lags_ = std::move(lags);
  }
  /// The backend's scratch that sections share, one for each of `copies`; -1 if it wants none.
  constexpr Index declare_workspace(Index bytes, Index copies) {
    return bytes > 0 && target_.uses_workspace ? sink_.declare(Role::workspace, -1, -1, aligned(bytes), copies) : -1;
  }
  /// The scratch of a section that has its own, while this pass of the stage runs: the first copy's; -1 if the backend wants none.
  constexpr Index workspace(const StageWalk& walk) {
    const Index bytes = walk.stage->partition.workspace_bytes;
    if (bytes == 0 || !target_.uses_workspace) return -1;
    return declared(
        walk, of_pass(walk, workspace_f, workspace_a, workspace_b), Role::workspace, walk.tensors(), [&] { return aligned(bytes); }, walk.copies());
  }

  /// Calls f(kind, number of the tensor, buffer) for each buffer that exists in full height or is of a norm.
  template <class F>
  constexpr void for_shared(const F& f) const {
    const auto all = [&](SharedBuffer kind, const std::vector<Index>& ids) {
      for (std::size_t g = 0; g < ids.size(); ++g)
        if (ids[g] >= 0) f(kind, static_cast<Index>(g), ids[g]);
    };
    all(SharedBuffer::value, values_);
    all(SharedBuffer::value_again, values_again_);
    all(SharedBuffer::value_between, values_between_);
    all(SharedBuffer::gradient, gradients_);
    all(SharedBuffer::norm_gradient, norms.buffers);
    all(SharedBuffer::statistics, statistics_);
    all(SharedBuffer::sums, sums_);
    if (input_gradient_ >= 0) f(SharedBuffer::gradient, 0, input_gradient_);
  }

  // ---- values ------------------------------------------------------------------------------------------------------
  /// Where the slab's rows of tensor t are, all that it holds. Of an input: after they have been loaded or gathered.
  constexpr Ref value(const StageWalk& walk, Index t) {
    if (t < walk.inputs())
      return has_input_slab(walk, t) ? local(walk, slab_use(walk), Role::slab, t, &SlabRows::hold) : full_value(walk, t, walk.at(t).hold);
    if (const Index input = walk.overwritten_input(t); input >= 0) {
      const Ref place = full_value(walk, input, walk.at(input).hold);
      if (walk.in_full(t)) item(values_of(walk, t), walk.stage->tensor(t)) = place.buffer;   // from now on
      return with_tensor(walk, place, t);
    }
    if (t < walk.top())
      if (const Index l = walk.overwriter(t); l >= 0 && walk.in_place(l)) return with_tensor(walk, value(walk, walk.out(l)), t);
    if (walk.ends(t) || (walk.reads_in_full(t) && (!walk.cut() || !walk.forward())))
      return walk.in_full(t) && walk.cut() && !walk.forward() && has_input_slab(walk, t)
                 ? local(walk, slab_b, Role::slab, t, &SlabRows::hold)
                 : full_value(walk, t, walk.ends(t) ? walk.at(t).own : walk.at(t).hold);
    if (item(walk.needs->kept, t) && walk.serves_backward())
      return piece(walk, kept, Role::kept, t, walk.at(t).hold, walk.rows->slabs(), walk.slab,
                   [&](Index images, Index k) { return piece_bytes(walk.shape(t), images, walk.rows->at(k, t).hold.size()); });
    return local(walk, slab_use(walk), Role::slab, t, &SlabRows::hold);
  }
  /// Whether layer l wants its rows in a dense piece, rather than where others lie beside them. Where gradients take their values' places,
  /// convolutions read copies of their rows.
  constexpr bool wants_dense(const StageWalk& walk, Index l) const {
    return is_conv(walk.layer(l)) && !(target_.convolves_rows && walk.stage->partition.images == 1 && !in_place_);
  }
  /// Whether rows of a tensor that is there in full height are brought into a slab, rather than read where they lie: the network's
  /// input and an offloaded one always, another if a convolution wants rows of it densely.
  constexpr bool has_input_slab(const StageWalk& walk, Index t) const {
    if (walk.stage->tensor(t) == 0 || walk.fetches(t)) return true;
    for (Index l = 0; walk.cut() && l < walk.layers(); ++l)
      if (walk.in(l) == t && wants_dense(walk, l)) return true;
    return false;
  }
  /// Rows that a convolution makes, before they join carried ones.
  constexpr Ref own_value(const StageWalk& walk, Index t) { return local(walk, of_pass(walk, own_f, own_a, own_b), Role::own, t, &SlabRows::own); }
  /// Rows that convolution l reads, without others.
  constexpr Ref needed_value(const StageWalk& walk, Index l) { return needed_rows(walk, of_pass(walk, need_f, need_a, need_b), Role::slab, l); }
  /// A tensor in full height: images of the slab, rows `rows`. The network's output is held for the batch. Of t one past the
  /// top: what the closing global pooling writes.
  constexpr Ref full_value(const StageWalk& walk, Index t, Range rows) {
    const Index g = walk.stage->tensor(t);
    if (t < walk.tensors() && walk.fetches(t)) return offloaded_value(walk, t, rows);
    return in_full(values_of(walk, t), Role::value, walk, g, g == table_.size() ? Range{0, table_.input.n} : walk.group, rows);
  }
  /// Rows of an offloaded tensor that a norm above reads where the gradient of its output becomes that of its input.
  constexpr Ref fetched_value(const StageWalk& walk, Index t) { return local(walk, fetched, Role::slab, t, &SlabRows::part); }
  /// A tensor in full height where it is offloaded.
  constexpr Ref offloaded_value(const StageWalk& walk, Index t, Range rows) {
    return in_full(offloaded_, Role::offloaded, walk, walk.stage->tensor(t), walk.group, rows);
  }
  /// Statistics of a norm of the table, and sums of its backward pass, or those of a global pooling or a scale: for the images of the step.
  constexpr Index statistics(const StageWalk& walk, Index node) {
    return by_norm(walk, statistics_, node, statistics_bytes(table_.node(node).layer.norm, table_.node(node).in.c, walk.group.size()));
  }
  constexpr Index sums(const StageWalk& walk, Index node) {
    return by_norm(walk, sums_, node, sums_bytes(table_.node(node).layer, table_.node(node).in.c, walk.group.size()));
  }
  /// Pool indices or mask bits of layer l.
  constexpr Ref saved(const StageWalk& walk, Index l) {
    const Index t = walk.out(l);
    const Range own = walk.at(t).own;
    const bool keeps = item(walk.needs->saved_kept, l);
    Ref ref;
    if (keeps && t == walk.top()) {   // disjoint rows: one full-height piece
      const Index height = walk.shape(t).h;
      const Index id = declared(walk, saved_kept, Role::saved, l, [&] { return saved_bytes(walk, l, walk.group.size(), height); });
      ref = {id, 0, 0, walk.group, {0, height}, walk.images, own};
    } else if (keeps) {
      ref = piece(walk, saved_kept, Role::saved, l, own, walk.rows->slabs(), walk.slab,
                  [&](Index images, Index k) { return saved_bytes(walk, l, images, walk.rows->at(k, t).own.size()); });
    } else {
      const Index id =
          walk.stream() + declared(
                              walk, saved_b, Role::saved, l,
                              [&] { return saved_bytes(walk, l, walk.stage->partition.images, walk.rows->most(t, &SlabRows::own)); }, walk.copies());
      ref = {id, 0, 0, walk.images, own, walk.images, own};
    }
    return with_tensor(walk, ref, t);
  }
  /// Rows of tensor t carried into slab n of the backward pass, kept from the forward pass.
  constexpr Ref state(const StageWalk& walk, Index t, Index n) {
    const Schedule& rows = walk.stage->backward;
    return piece(walk, state_rows, Role::carry, t, rows.carried(n, t), rows.slabs(), n,
                 [&](Index images, Index k) { return piece_bytes(walk.shape(t), images, rows.carried(k, t).size()); });
  }
  /// Rows of tensor t on their way into slab n.
  constexpr Ref rolling(const StageWalk& walk, Index t, Index n) {
    return carried(walk, walk.again() ? rolling_again : rolling_rows, Role::carry, t, n);
  }

  // ---- gradients ---------------------------------------------------------------------------------------------------
  /// The gradient of all rows of tensor t that the slab holds. It lies in the full-height gradient where there is one and the stage is not cut
  /// into slabs of rows, or nothing is to be added to it; otherwise in the slab's own buffer.
  constexpr Ref gradient(const StageWalk& walk, Index t) {
    if (const Index g = walk.stage->tensor(t); t >= walk.inputs() && item(norms.shared, g) >= 0)
      return {item(norms.shared, g), 0, g, walk.group, {0, walk.shape(t).h}, walk.images, walk.at(t).own};
    if (const Index sum = walk.needs->sum_in_place; sum >= 0 && t >= walk.inputs() && (walk.in(sum) == t || walk.other(sum) == t))
      return with_tensor(walk, gradient(walk, walk.out(sum)), t);
    const Index home = gradient_home(walk, t);
    if (home != t) return with_tensor(walk, gradient(walk, home), t);
    const Full full = gradient_in_full(walk, t);
    if (full.ids == nullptr) return local(walk, dslab, Role::dslab, t, &SlabRows::hold);
    return with_tensor(walk, in_full(*full.ids, Role::gradient, walk, full.tensor, walk.group, walk.ends(t) ? walk.at(t).own : walk.at(t).hold), t);
  }
  /// Whether tensor t has a gradient in full height that its stage works on; and whether that is the one which stages further on have left.
  constexpr bool is_in_full(const StageWalk& walk, Index t) { return gradient_in_full(walk, t).ids != nullptr; }
  constexpr bool is_given(const StageWalk& walk, Index t) { return gradient_in_full(walk, t).ids == &gradients_; }
  /// Another gradient of the same rows, to be added to that.
  constexpr Ref another_gradient(const StageWalk& walk, Index t) { return local(walk, dmore, Role::dslab, t, &SlabRows::hold); }
  /// The gradient of the slab's own rows, without those of earlier slabs.
  constexpr Ref own_gradient(const StageWalk& walk, Index t) { return local(walk, down, Role::dslab, t, &SlabRows::own); }
  /// The gradient of the rows that convolution l reads, without others.
  constexpr Ref needed_gradient(const StageWalk& walk, Index l) { return needed_rows(walk, dneed, Role::dslab, l); }
  /// The gradient of the rows of tensor t carried into slab n, on its way to the slab before.
  constexpr Ref carried_gradient(const StageWalk& walk, Index t, Index n) { return carried(walk, dcarry, Role::dcarry, t, n); }
  /// The gradient in full height of an input, or of a tensor that leaves the stage, as far as norms that wait do not make it.
  constexpr Ref full_gradient(const StageWalk& walk, Index t, Range rows) {
    const Index g = walk.stage->tensor(t);
    return g == 0 ? network_input_gradient(walk.images, rows) : in_full(gradients_, Role::gradient, walk, g, walk.group, rows);
  }
  /// From now on the gradient of tensor t, an input or what a norm that waits writes, is one with another, of which `dy` is a piece
  /// (shared_gradients.hpp, sum_in_place.hpp). So the norm's own step writes over the values that the norm read, rather than over this.
  constexpr void share_gradient(const StageWalk& walk, Index t, const Ref& dy) {
    const Index g = walk.stage->tensor(t);
    if (t < walk.inputs()) item(gradients_, g) = dy.buffer, item(gradient_lags_, g) = -dy.held_rows.begin;
    else item(norms.shared, g) = dy.buffer;
  }
  /// The gradient in full height of what a norm of the table writes, for the stage that makes what it reads.
  constexpr Ref norm_gradient(const StageWalk& walk, Index node, Range rows) {
    return in_full(norms.buffers, Role::gradient, walk, node + 1, walk.group, rows);
  }
  constexpr Ref network_input_gradient(Range images, Range rows) {
    const Input& input = table_.input;
    if (input_gradient_ < 0) input_gradient_ = sink_.declare(Role::gradient, 0, 0, piece_bytes(input, input.n, input.h));
    return {input_gradient_, 0, 0, {0, input.n}, {0, input.h}, images, rows};
  }

  // ---- filters -----------------------------------------------------------------------------------------------------
  /// The buffer of layer l's filter in the backend's layout. Pre: Target::packs(layer).
  constexpr Index filter(const StageWalk& walk, Filter which, Index l) {
    const bool in_slab = walk.packs_in_slab(l);
    return (in_slab ? walk.stream() : 0) + declared(
                                               walk, walk.again() ? packed_a : packed(which), Role::packed, l,
                                               [&] { return aligned(target_.packed_bytes(node(walk, l))); }, in_slab ? walk.copies() : 1);
  }
  /// Room for layer l's filter gradient in that layout.
  constexpr Index filter_gradient(const StageWalk& walk, Index l) {
    return walk.stream() + declared(
                               walk, scratch, Role::scratch, l, [&] { return aligned(target_.scratch_bytes(node(walk, l))); }, walk.copies());
  }

  /// Stretches what must outlive a turn over the whole loop of a pass that began at `since`.
  constexpr void outlive_turns(const StageWalk& walk, Index since) {
    if (walk.turns() == 1) return;
    const auto span_pieces = [&](Use which) {
      for (Index t = 0; t <= walk.tensors(); ++t)
        if (const Index id = use(walk, which, t); id >= 0) sink_.span(id, since);
    };
    const auto span_filters = [&](Use which) {
      for (Index l = 0; l < walk.layers(); ++l)
        if (const Index id = use(walk, which, l); id >= 0 && !walk.packs_in_slab(l)) sink_.span(id, since);
    };
    for (const Use which : {kept, saved_kept, state_rows, dcarry}) span_pieces(which);
    for (const Use which : {packed_r, packed_b}) span_filters(which);
    if (walk.forward()) span_pieces(walk.again() ? rolling_again : rolling_rows), span_filters(walk.again() ? packed_a : packed_f);
    for (Index t = 0; t < walk.inputs(); ++t) {
      if (walk.input_copies() > walk.copies() && walk.comes_from_outside(t))
        sink_.span(use(walk, slab_use(walk), t), since);   // the next slab's rows come in meanwhile
      span_full(walk, t, since);
    }
    for (Index t = walk.inputs(); t <= walk.tensors(); ++t) {
      if (t == walk.tensors() ? !walk.stage->reduces : !walk.stage->use(t).leaves) continue;
      if (walk.forward() || (t < walk.tensors() && (item(walk.needs->value, t) || walk.reads_again(t)) && walk.reads_in_full(t)) ||
          norms.reads(walk, t))
        span_full(walk, t, since);
      if (!walk.forward()) sink_.span(item(gradients_, walk.stage->tensor(t)), since);
    }
    for (const NormAbove& norm : walk.stage->norms_above) span_norm(walk, norm.node, since);
    for (Index l = 0; l < walk.layers(); ++l)
      if (walk.norm_waits(l)) span_norm(walk, walk.stage->first + l, since);
    if (walk.forward() && walk.stage->reduces) sink_.span(item(sums_, walk.stage->last), since);
    if (walk.forward()) return;
    for (Index l = 0; l < walk.layers(); ++l)
      if (walk.layer(l).kind == Kind::scale) sink_.span(item(sums_, walk.stage->first + l + 1), since);
    for (Index t = 0; t < walk.inputs(); ++t)
      if (const Index g = walk.stage->tensor(t); walk.stage->use(t).plain > 0 || walk.layers() == 0)
        sink_.span(g > 0 ? item(gradients_, g) : input_gradient_, since);
  }

 private:
  static constexpr Use slab_use(const StageWalk& walk) { return of_pass(walk, slab_f, slab_a, slab_b); }
  static constexpr Use packed(Filter which) { return which == Filter::forward ? packed_f : which == Filter::recompute ? packed_r : packed_b; }
  const Table& table_;
  std::vector<Index> values_{}, values_again_{}, values_between_{}, gradients_{};   ///< of the table's tensors, in full height
  std::vector<Index> offloaded_{};                                                  ///< likewise, in the larger memory
  std::vector<Index> statistics_{}, sums_{};                                        ///< of the layers that write them
  bool in_place_;                                 ///< gradients take their values' places in the plan; lags_ need not be known
  std::vector<Index> lags_{}, gradient_lags_{};   ///< of gradients in their values' places; and of those that are one with such, too
  Flags made_alone_{};                            ///< of the table's tensors: TensorUse::made_alone
  Index input_gradient_ = -1;

  /// Where the values of tensor t are that this pass writes or reads.
  constexpr std::vector<Index>& values_of(const StageWalk& walk, Index t) {
    const TensorUse& use = walk.stage->use(t);
    if (!walk.remakes_values() || !use.discarded) return values_;
    return walk.for_above() && !use.made_for_above ? values_between_ : values_again_;
  }
  constexpr Index saved_bytes(const StageWalk& walk, Index l, Index images, Index rows) const {
    const Shape& s = walk.shape(walk.out(l));
    return aligned(target_.saved_bytes(walk.layer(l), images, s.c, rows, s.w));
  }
  constexpr const Node& node(const StageWalk& walk, Index l) const { return walk.node(l); }
  /// A buffer in full height.
  struct Full {
    std::vector<Index>* ids = nullptr;
    Index tensor = -1;
  };
  /// Where tensor t's gradient is one in full height, rather than the slab's.
  constexpr Full gradient_in_full(const StageWalk& walk, Index t) {
    if (t < walk.inputs()) return {};
    const TensorUse& use = walk.stage->use(t);
    const bool cut = walk.cut() || walk.stage->passes > 0;                                  // extra passes find the gradients above as they were
    const bool pooled = walk.stage->passes > 0 && walk.stage->reduces && t == walk.top();   // each pass adds what the closing pooling sends
    if (walk.in_full(t) && use.wanted_plain)
      return (walk.ends(t) && walk.norms_above(t) == 0 && !pooled) || !cut ? Full{&gradients_, walk.stage->tensor(t)} : Full{};
    if (walk.in_full(t) && walk.norms_above(t) == 1)   // the norm's step turns one into the other in place
      for (const NormAbove& norm : walk.stage->norms_above)
        if (norm.tensor == t && (!cut || norms.is_done(norm)))
          return item(norms.shared, norm.node + 1) < 0 ? Full{&norms.buffers, norm.node + 1} : Full{&values_of(walk, t), walk.stage->tensor(t)};
    if (cut) return {};
    if (walk.from_norm(t) && walk.wants_gradient(walk.stage->tensor(walk.in(t - walk.inputs())))) return {&norms.buffers, walk.stage->tensor(t)};
    return {};
  }
  /// The tensor whose gradient's memory that of tensor t is: activations write their input's over their output's. One in full height
  /// goes before one of the slab.
  constexpr Index gradient_home(const StageWalk& walk, Index t) {
    Index highest = t;
    while (highest < walk.top()) {
      const Index l = walk.overwriter(highest);
      if (l < 0 || !walk.gradient_in_place(l)) break;
      highest = walk.out(l);
    }
    for (Index u = highest; u >= walk.inputs(); u = walk.in(u - walk.inputs())) {
      if (gradient_in_full(walk, u).ids != nullptr) return u;
      if (!walk.gradient_in_place(u - walk.inputs())) break;
    }
    return highest;
  }
  constexpr void span_full(const StageWalk& walk, Index t, Index since) {
    const auto g = static_cast<std::size_t>(walk.stage->tensor(t));
    sink_.span(values_of(walk, t)[g], since);
  }
  constexpr void span_norm(const StageWalk& walk, Index node, Index since) {
    const auto g = static_cast<std::size_t>(node + 1);
    sink_.span(statistics_[g], since);
    if (walk.forward()) return;
    sink_.span(sums_[g], since);
    sink_.span(norms.buffers[g], since);
  }
  constexpr Index by_norm(const StageWalk& walk, std::vector<Index>& ids, Index node, Index bytes) {
    Index& id = item(ids, node + 1);
    if (id < 0) id = sink_.declare(Role::statistics, walk.number, node + 1, aligned(bytes));
    return id;
  }
  /// A tensor of the table or its gradient in full height, held for the images `held`: images of the slab, rows `rows`.
  constexpr Ref in_full(std::vector<Index>& ids, Role role, const StageWalk& walk, Index tensor, Range held, Range rows) {
    const Shape& shape = table_.shape(tensor);
    Index& id = item(ids, tensor);
    const std::vector<Index>& values = item(made_alone_, tensor) ? values_again_ : values_;   // that the backward pass reads
    const bool gradient = &ids == &gradients_;
    const bool of_norm = &ids == &norms.buffers;
    const Index lag = gradient ? item(gradient_lags_, tensor) : of_norm ? item(norms.lags, tensor) : &ids == &values ? item(lags_, tensor) : 0;
    if (id < 0 && gradient && lag > 0) id = item(values, tensor);
    if (id < 0) id = sink_.declare(role, walk.number, tensor, piece_bytes(shape, held.size(), shape.h + lag));
    const Index begin = gradient || of_norm ? -lag : 0;
    return {id, 0, tensor, held, {begin, begin + shape.h + lag}, walk.images, rows};
  }
};
}   // namespace lrcnn
