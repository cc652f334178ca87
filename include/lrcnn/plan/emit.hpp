#pragma once
// From stages to steps.
//
// One emitter writes every plan. It walks   for each group of images: stages up, loss, stages down   and, within a
// stage,   for each slab of images, for each slab of rows: the chain's layers,   and tells a sink which buffers exist
// and which step comes next. Two sinks listen:
//   Measure   counts time and notes when buffers are used. It is led through one turn of each loop, with buffers as large
//             as the largest slab's, so its cost does not grow with the number of slabs; it is what a constant
//             expression evaluates. What must outlive a turn is stretched over its loop (span).
//   Record    keeps every step of every slab (plan/plan.hpp).
// Both see the same calls in the same order within a turn, so a buffer has the same number for both, and the offsets
// found for the measured turn hold for all of them. The checker (plan/checker.hpp) proves that, plan by plan.
//
// Names: a stage's tensors and layers are numbered from its start; layer l leads from tensor l to l + 1; `top` is the
// chain's last tensor. A slab's rows of tensor t are own(t), made here, and hold(t), own and carried (slab_schedule.hpp).
#include <lrcnn/plan/arena.hpp>
#include <lrcnn/plan/needs.hpp>
#include <lrcnn/plan/step.hpp>
namespace lrcnn {
/// What a plan is made for.
struct PlanOptions {
  bool training = true;         ///< false: forward pass and loss only
  bool input_gradient = false;  ///< the gradient of the network's input too, in full
  friend constexpr bool operator==(const PlanOptions&, const PlanOptions&) = default;
};
/// Buffers that the caller of a plan reads when a step is done.
struct PlanResults {
  Ref output{};           ///< the network's output (logits), whole batch
  Ref input_gradient{};   ///< empty unless asked for
  friend constexpr bool operator==(const PlanResults&, const PlanResults&) = default;
};
/// Sink that measures: buffers with live intervals, no steps.
struct Measure {
  static constexpr bool every_turn = false;
  std::vector<Buffer> buffers{};
  Index now = 0;
  constexpr Index declare(Role role, Index stage, Index tensor, Index bytes) {
    buffers.push_back({role, stage, tensor, bytes, std::numeric_limits<Index>::max(), 0, 0});
    return static_cast<Index>(buffers.size()) - 1;
  }
  constexpr void touch(Index buffer) {
    if (buffer < 0) return;
    Buffer& b = buffers[static_cast<std::size_t>(buffer)];
    b.first = b.first < now ? b.first : now;
    b.last = now + 1;
  }
  constexpr void span(Index buffer, Index since) {
    if (buffer < 0) return;
    Buffer& b = buffers[static_cast<std::size_t>(buffer)];
    b.first = b.first < since ? b.first : since;
    b.last = b.last > now ? b.last : now;
  }
  constexpr void step(const Step& s) {
    touch(s.x.buffer), touch(s.y.buffer), touch(s.dy.buffer), touch(s.dx.buffer), touch(s.saved.buffer);
    touch(s.packed), touch(s.scratch), touch(s.workspace);
    ++now;
  }
};
template <class Sink>
class Emitter {
 public:
  constexpr Emitter(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options,
                    const std::vector<Stage>& stages, Sink& sink)
      : table_(table), policy_(policy), target_(target), options_(options), stages_(stages), sink_(sink) {}
  /// Emits the whole step: forward, loss, backward, for every group of images.
  constexpr PlanResults run() {
    const Index batch = table_.input.n, group = policy_.images > 0 ? std::min(policy_.images, batch) : batch;
    for (const Stage& stage : stages_) {
      needs_.push_back(stage_needs(table_, stage, options_.training ? policy_.recompute : Recompute::all));
      slots_.push_back(std::vector<Index>(slot_count * static_cast<std::size_t>(stage.chain_layers() + 1), -1));
    }
    first_contribution_.assign(static_cast<std::size_t>(table_.size()), 1);
    const Index stage_count = static_cast<Index>(stages_.size());
    values_.assign(static_cast<std::size_t>(stage_count), -1);
    gradients_.assign(static_cast<std::size_t>(stage_count), -1);
    if (policy_.workspace_bytes > 0 && target_.uses_workspace)
      workspace_ = sink_.declare(Role::workspace, -1, -1, aligned(policy_.workspace_bytes));
    const Index since = sink_.now;
    group_ = {0, group};
    for (Index begin = 0; begin < batch; begin += group) {
      group_ = {begin, std::min(begin + group, batch)};
      for (Index s = 0; s < stage_count; ++s) forward_stage(s);
      loss();
      if (options_.training)
        for (Index s = stage_count - 1; s >= 0; --s) backward_stage(s);
      if (!Sink::every_turn) break;
    }
    PlanResults results;
    results.output = full(values_, stage_count - 1, {0, batch});
    results.output.images = {0, batch};
    if (options_.training && options_.input_gradient) results.input_gradient = input_gradient_ref({0, batch}, {0, table_.input.h});
    for (const Index buffer : {results.output.buffer, input_gradient_}) {   // the caller reads them at the end
      if (group < batch) sink_.span(buffer, since);
      sink_.touch(buffer);
    }
    ++sink_.now;
    return results;
  }

 private:
  enum Slot : std::size_t {
    slab_f, slab_b, own_f, own_b, need_f, need_b, kept, saved_b, saved_kept, rolling, state,
    dslab, dneed, down, dcarry, packed_f, packed_r, packed_b, scratch, slot_count,
  };
  /// One pass of one stage: its rows, and where the emitter is.
  struct Context {
    Index s = 0;
    const Stage* stage = nullptr;
    const StageNeeds* needs = nullptr;
    const Schedule* rows = nullptr;
    Pass pass{};
    Flags carries{};        ///< tensor t has carried rows in some slab
    Flags same_rows{};      ///< slabs hold the same rows of tensors t and t + 1, none of them carried
    Flags need_copy{};      ///< the rows that layer t reads are not all of the rows held, so a dense copy is made
    Range images{};         ///< of the slab
    Index n = 0;            ///< the slab
    Index image_slab = 0;
    Index top_run = 0;      ///< last tensor of the run of layers being computed
    bool input_ready = false;
    Index covered = 0;      ///< rows of the stage's input gradient from here on are written
    constexpr bool cut() const { return rows->slabs() > 1; }
    constexpr const SlabRows& at(Index t) const { return rows->at(n, t); }
    constexpr bool forward() const { return pass == Pass::forward; }
  };
  const Table& table_;
  const PolicySpec& policy_;
  const Target& target_;
  const PlanOptions& options_;
  const std::vector<Stage>& stages_;
  Sink& sink_;
  std::vector<StageNeeds> needs_{};
  std::vector<std::vector<Index>> slots_{};
  Flags first_contribution_{};
  std::vector<Index> values_{}, gradients_{};
  Index workspace_ = -1, input_gradient_ = -1;
  Range group_{};

  // ---- shapes and sizes --------------------------------------------------------------------------------------------
  constexpr Index aligned(Index bytes) const { return round_up(bytes, target_.alignment); }
  constexpr const Layer& layer(const Context& c, Index l) const { return table_.node(c.stage->first + l).layer; }
  constexpr const Shape& shape(const Context& c, Index t) const { return table_.shape(c.stage->first + t); }
  constexpr Index chain(const Context& c) const { return c.stage->chain_layers(); }
  constexpr Index piece_bytes(const Shape& s, Index images, Index rows) const {
    return aligned(target_.bytes(images, s.c, rows, s.w));
  }
  constexpr Index saved_bytes(const Context& c, Index l, Index images, Index rows) const {
    const Shape& s = shape(c, l + 1);
    return aligned(layer(c, l).kind == Kind::activation ? target_.mask_bytes(images, s.c, rows, s.w)
                                                        : target_.index_bytes(images, s.c, rows, s.w));
  }
  static constexpr Range carried(const Schedule& rows, Index n, Index t) {
    if (n <= 0 || n >= rows.slabs()) return {};
    return {rows.at(n, t).hold.begin, std::max(rows.at(n, t).hold.begin, rows.at(n, t).own.begin)};
  }
  constexpr Index most_rows(const Schedule& rows, Index t, Range SlabRows::* which) const {
    Index most = 0;
    for (Index n = 0; n < rows.slabs(); ++n)
      if (const Index size = (rows.at(n, t).*which).size(); size > most) most = size;
    return most;
  }
  constexpr Index most_carried(const Schedule& rows, Index t) const {
    Index most = 0;
    for (Index n = 1; n < rows.slabs(); ++n)
      if (const Index size = carried(rows, n, t).size(); size > most) most = size;
    return most;
  }

  // ---- buffers -----------------------------------------------------------------------------------------------------
  constexpr Index& slot(const Context& c, Slot which, Index t) {
    return slots_[static_cast<std::size_t>(c.s)][which * static_cast<std::size_t>(chain(c) + 1) + static_cast<std::size_t>(t)];
  }
  template <class Bytes>
  constexpr Index declared(const Context& c, Slot which, Role role, Index t, Bytes bytes) {
    Index& id = slot(c, which, t);
    if (id < 0) id = sink_.declare(role, c.s, c.stage->first + t, bytes());
    return id;
  }
  /// A buffer that is used anew in every slab: room for the largest.
  constexpr Ref local(const Context& c, Slot which, Role role, Index t, Range SlabRows::* held, Range rows) {
    const Range hold = c.at(t).*held;
    const Index id = declared(c, which, role, t, [&] {
      return piece_bytes(shape(c, t), c.stage->partition.images, most_rows(*c.rows, t, held));
    });
    return {id, 0, c.stage->first + t, c.images, hold, c.images, rows};
  }
  /// A buffer with a piece for every slab. `size` gives a piece's bytes for a number of images and a slab.
  template <class Size>
  constexpr Ref piece(const Context& c, Slot which, Role role, Index t, Range hold, Index slabs, Index n, Size size) {
    const Index images = c.stage->partition.images, count = ceil_div(group_.size(), images);
    const auto image_count = [&](Index i) { return std::min(images, group_.size() - i * images); };
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
  constexpr Ref full(std::vector<Index>& ids, Index s, Range held) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    const Shape& shape = table_.shape(stage.last);
    Index& id = ids[static_cast<std::size_t>(s)];
    if (id < 0)
      id = sink_.declare(&ids == &values_ ? Role::value : Role::gradient, s, stage.last, piece_bytes(shape, held.size(), shape.h));
    return {id, 0, stage.last, held, {0, shape.h}, held, {0, shape.h}};
  }
  /// The stage's output, or its gradient: images of the slab, rows `rows`. The network's output is held for the batch.
  constexpr Ref stage_output(const Context& c, std::vector<Index>& ids, Range rows) {
    const bool whole = &ids == &values_ && c.stage->last == table_.size();
    Ref ref = full(ids, c.s, whole ? Range{0, table_.input.n} : group_);
    ref.images = c.images;
    ref.rows = rows;
    return ref;
  }
  constexpr Ref input_gradient_ref(Range images, Range rows) {
    if (input_gradient_ < 0)
      input_gradient_ = sink_.declare(Role::gradient, 0, 0, piece_bytes(table_.input, table_.input.n, table_.input.h));
    return {input_gradient_, 0, 0, {0, table_.input.n}, {0, table_.input.h}, images, rows};
  }
  constexpr Ref stage_input(const Context& c, std::vector<Index>& ids, Range rows) {
    Ref ref = full(ids, c.s - 1, group_);
    ref.images = c.images;
    ref.rows = rows;
    return ref;
  }
  static constexpr Ref with_rows(Ref ref, Range rows) {
    ref.rows = rows;
    return ref;
  }

  // ---- steps -------------------------------------------------------------------------------------------------------
  constexpr Step make(const Context& c, Op op, Index l = -1) const {
    Step step;
    step.op = op;
    step.pass = c.pass;
    step.stage = c.s;
    step.slab = c.image_slab * c.rows->slabs() + c.n;
    step.layer = l < 0 ? -1 : c.stage->first + l;
    if (l >= 0 && l < chain(c) && is_conv(layer(c, l))) step.arithmetic = policy_.arithmetic;
    return step;
  }
  /// copy, add, zero, load: x may be empty.
  constexpr void move(const Context& c, Op op, const Ref& x, const Ref& y) {
    Step step = make(c, op);
    step.x = x;
    step.y = y;
    sink_.step(step);
  }
  constexpr Index packed(const Context& c, Slot which, Op op, Index l) {
    if (!target_.packs_weights || !is_conv(layer(c, l))) return -1;
    const Index id = declared(c, which, Role::packed, l, [&] {
      return aligned(target_.packed_bytes(table_.node(c.stage->first + l)));
    });
    if (packs_in_slab(c, l)) pack(c, op, l, id);   // else pack_all() has
    return id;
  }
  constexpr void pack(const Context& c, Op op, Index l, Index id) {
    Step step = make(c, op, l);
    step.packed = id;
    sink_.step(step);
  }
  /// Whether a filter is packed where a slab uses it, rather than once before all slabs, which keeps every filter of the
  /// stage in memory. Packing moves 8 bytes per weight; a convolution does 2 operations per weight and pixel: at 8 GB/s
  /// and 230 Gop/s packing costs 115 / pixels of the convolution's time (docs/benchmarks.md), 6 % at this bound.
  constexpr bool packs_in_slab(const Context& c, Index l) const {
    constexpr Index enough_pixels = 2048;
    const Index rows = shape(c, l + 1).h / c.rows->slabs();
    return loops(c) == 1 || rows * shape(c, l + 1).w * c.stage->partition.images >= enough_pixels;
  }
  /// Before the slabs of a pass: filters in the backend's layout, once for all of them.
  constexpr void pack_all(Context& c, Slot which, Op op, Index first, Index last) {
    if (!target_.packs_weights) return;
    for (Index l = first; l < last; ++l)
      if (is_conv(layer(c, l)) && !packs_in_slab(c, l)) pack(c, op, l, packed(c, which, op, l));
  }
  constexpr Index loops(const Context& c) const {
    return c.rows->slabs() * ceil_div(group_.size(), c.stage->partition.images);
  }

  // ---- values ------------------------------------------------------------------------------------------------------
  /// Whether layer l writes its output over its input in this pass.
  constexpr bool in_place(const Context& c, Index l) const {
    if (l < 1 || !can_overwrite(layer(c, l))) return false;
    const auto at = static_cast<std::size_t>(l);
    if (c.needs->kept[at] || (!c.forward() && c.needs->value[at])) return false;
    if (l + 1 == c.top_run && !makes_top(c)) return false;
    return c.same_rows[at] && (l + 1 < chain(c) || c.stage->reduces || !c.cut());
  }
  /// Whether the last tensor of the run is wanted, rather than the saved state of its last layer alone.
  constexpr bool makes_top(const Context& c) const {
    const auto top = static_cast<std::size_t>(c.top_run);
    return c.forward() || (c.needs->value[top] && !c.needs->kept[top]);
  }
  /// Where the slab's rows of tensor t are, all that it holds.
  constexpr Ref value(Context& c, Index t) {
    if (t == 0) return input_value(c);
    if (t < chain(c) && in_place(c, t)) {
      Ref ref = value(c, t + 1);
      ref.tensor = c.stage->first + t;
      return ref;
    }
    if (t == chain(c) && !c.stage->reduces) return stage_output(c, values_, c.at(t).own);
    if (c.needs->kept[static_cast<std::size_t>(t)] && options_.training)
      return piece(c, kept, Role::kept, t, c.at(t).hold, c.rows->slabs(), c.n, [&](Index images, Index k) {
        return piece_bytes(shape(c, t), images, c.rows->at(k, t).hold.size());
      });
    return local(c, c.forward() ? slab_f : slab_b, Role::slab, t, &SlabRows::hold, c.at(t).hold);
  }
  /// The stage's input: rows of a full-height tensor, or of a slab into which they have been loaded or gathered.
  constexpr Ref input_value(Context& c) {
    const bool gather = c.s > 0 && c.cut() && is_first_conv(c);
    if (c.s > 0 && !gather) return stage_input(c, values_, c.at(0).hold);
    const Ref slab = local(c, c.forward() ? slab_f : slab_b, Role::slab, 0, &SlabRows::hold, c.at(0).hold);
    if (!c.input_ready) move(c, gather ? Op::copy : Op::load, gather ? stage_input(c, values_, c.at(0).hold) : Ref{}, slab);
    c.input_ready = true;
    return slab;
  }
  constexpr bool is_first_conv(const Context& c) const { return chain(c) > 0 && is_conv(layer(c, 0)); }
  /// The rows that layer l reads, dense if the layer wants them so.
  constexpr Ref layer_input(Context& c, Index l) {
    const Ref x = value(c, l);
    if (!is_conv(layer(c, l)) || !c.need_copy[static_cast<std::size_t>(l)]) return x;
    const Ref dense = local(c, c.forward() ? need_f : need_b, Role::slab, l, &SlabRows::need, c.at(l).need);
    move(c, Op::copy, with_rows(x, c.at(l).need), dense);
    return dense;
  }
  constexpr Ref saved_state(const Context& c, Index l) {
    const Range own = c.at(l + 1).own;
    Ref ref;
    if (l + 1 == chain(c) && c.needs->saved_kept[static_cast<std::size_t>(l)]) {   // disjoint rows: one full-height piece
      const Index height = shape(c, l + 1).h;
      const Index id = declared(c, saved_kept, Role::saved, l, [&] { return saved_bytes(c, l, group_.size(), height); });
      ref = {id, 0, 0, group_, {0, height}, c.images, own};
    } else if (c.needs->saved_kept[static_cast<std::size_t>(l)]) {
      ref = piece(c, saved_kept, Role::saved, l, own, c.rows->slabs(), c.n, [&](Index images, Index k) {
        return saved_bytes(c, l, images, c.rows->at(k, l + 1).own.size());
      });
    } else {
      const Index id = declared(c, saved_b, Role::saved, l, [&] {
        return saved_bytes(c, l, c.stage->partition.images, most_rows(*c.rows, l + 1, &SlabRows::own));
      });
      ref = {id, 0, 0, c.images, own, c.images, own};
    }
    ref.tensor = c.stage->first + l + 1;
    return ref;
  }
  constexpr Ref state_ref(const Context& c, Index t, const Schedule& rows, Index n) {
    Ref ref = piece(c, state, Role::carry, t, carried(rows, n, t), rows.slabs(), n, [&](Index images, Index k) {
      return piece_bytes(shape(c, t), images, carried(rows, k, t).size());
    });
    return ref;
  }
  constexpr Ref rolling_ref(const Context& c, Index t, Index n) {
    const Index id = declared(c, rolling, Role::carry, t, [&] {
      return piece_bytes(shape(c, t), c.stage->partition.images, most_carried(*c.rows, t));
    });
    const Range rows = carried(*c.rows, n, t);
    return {id, 0, c.stage->first + t, c.images, rows, c.images, rows};
  }
  /// Whether the backward pass computes tensor t again and so needs the rows carried into each of its slabs.
  constexpr bool wants_state(const Context& c, Index t) const {
    if (!options_.training) return false;
    const auto at = static_cast<std::size_t>(t);
    for (const BackwardRun& run : c.needs->runs)
      if (run.recompute && run.first < t && (t < run.last || (t == run.last && c.needs->value[at] && !c.needs->kept[at])))
        return most_carried(c.stage->backward, t) > 0;
    return false;
  }
  /// Rows of tensor t from the slab before, into this one's.
  constexpr void carry_in(Context& c, Index t, const Ref& hold) {
    const Range rows = carried(*c.rows, c.n, t);
    const bool from_state = !c.forward() || (wants_state(c, t) && same_cuts(c));
    const Ref from = from_state ? state_ref(c, t, c.stage->backward, c.n) : rolling_ref(c, t, c.n);
    move(c, Op::copy, from, with_rows(hold, rows));
  }
  constexpr bool same_cuts(const Context& c) const { return c.rows->cuts == c.stage->backward.cuts; }
  /// Rows of tensor t for the next slab, and for the backward pass at each of its cuts within this slab.
  constexpr void carry_out(Context& c, Index t, const Ref& hold) {
    if (!c.forward()) return;
    const bool keep = wants_state(c, t);
    if (c.carries[static_cast<std::size_t>(t)] && !(keep && same_cuts(c))) {
      const Ref to = rolling_ref(c, t, c.n + 1);
      move(c, Op::copy, with_rows(hold, to.rows), to);
    }
    if (!keep) return;
    const auto& cuts = c.stage->backward.cuts;
    const Index begin = c.n == 0 ? 0 : c.rows->cuts[static_cast<std::size_t>(c.n - 1)];
    const Index end = c.rows->cuts[static_cast<std::size_t>(c.n)];
    for (std::size_t g = 0; g + 1 < cuts.size(); ++g) {
      const Ref to = state_ref(c, t, c.stage->backward, static_cast<Index>(g) + 1);   // declared in the first slab in any case
      if (Sink::every_turn && (cuts[g] <= begin || cuts[g] > end)) continue;
      move(c, Op::copy, with_rows(hold, to.rows), to);
      if (!Sink::every_turn) break;
    }
  }

  // ---- forward -----------------------------------------------------------------------------------------------------
  constexpr void forward_layers(Context& c, Index first, Index last) {
    c.top_run = last;
    for (Index l = first; l < last; ++l) forward_layer(c, l);
  }
  constexpr void forward_layer(Context& c, Index l) {
    const Index t = l + 1;
    const auto at = static_cast<std::size_t>(l);
    const bool makes = t < c.top_run || makes_top(c);
    const bool carries = t < chain(c) && c.carries[at + 1] && makes;
    const bool saves = options_.training && c.needs->layer[at].saved && (c.forward() == static_cast<bool>(c.needs->saved_kept[at]));
    const bool conv = is_conv(layer(c, l));
    Step step = make(c, Op::forward, l);
    step.x = layer_input(c, l);
    Ref hold, own;
    if (makes) {
      hold = value(c, t);
      own = with_rows(hold, c.at(t).own);
      if (carries) carry_in(c, t, hold);
      const bool apart = conv && (carries || (t == chain(c) && !c.stage->reduces && c.cut()));
      step.y = apart ? local(c, c.forward() ? own_f : own_b, Role::own, t, &SlabRows::own, c.at(t).own) : own;
    }
    if (saves) step.saved = saved_state(c, l);
    if (conv) step.packed = packed(c, c.forward() ? packed_f : packed_r, Op::pack_forward, l);
    if (needs_workspace(layer(c, l))) step.workspace = workspace_;
    sink_.step(step);
    if (makes && step.y.buffer != own.buffer) move(c, Op::copy, step.y, own);
    if (makes && t < chain(c)) carry_out(c, t, hold);
  }
  static constexpr bool needs_workspace(const Layer& y) { return y.kind == Kind::conv || y.kind == Kind::linear; }
  constexpr Context context(Index s, Pass pass, const Schedule& rows) {
    Context c;
    c.s = s;
    c.stage = &stages_[static_cast<std::size_t>(s)];
    c.needs = &needs_[static_cast<std::size_t>(s)];
    c.rows = &rows;
    c.pass = pass;
    const Index count = chain(c);
    c.carries.assign(static_cast<std::size_t>(count + 1), 0);
    c.same_rows.assign(static_cast<std::size_t>(count + 1), 1);
    c.need_copy.assign(static_cast<std::size_t>(count + 1), 0);
    for (Index t = 1; t < count; ++t) {
      for (Index n = 0; n < rows.slabs(); ++n)
        if (rows.at(n, t).hold != rows.at(n, t + 1).own || rows.at(n, t + 1).hold != rows.at(n, t + 1).own)
          c.same_rows[static_cast<std::size_t>(t)] = 0;
      const Index stride = row_axis(layer(c, t).window).stride;
      for (Index n = 0; n < rows.slabs(); ++n) {
        const SlabRows& r = rows.at(n, t);
        if (r.hold.begin < r.own.begin) c.carries[static_cast<std::size_t>(t)] = 1;
        if (r.need.empty() ? !r.hold.empty() : r.need.begin != r.hold.begin || r.hold.end - r.need.end >= stride)
          c.need_copy[static_cast<std::size_t>(t)] = 1;
      }
    }
    return c;
  }
  /// Calls `slab` for every slab, images outermost; rows downward or upward.
  template <class F>
  constexpr void for_slabs(Context& c, bool upward, F slab) {
    const Index images = c.stage->partition.images, slabs = c.rows->slabs();
    c.image_slab = 0;
    for (Index begin = group_.begin; begin < group_.end; begin += images, ++c.image_slab) {
      c.images = {begin, std::min(begin + images, group_.end)};
      c.covered = shape(c, 0).h;
      for (Index k = 0; k < slabs; ++k) {
        c.n = upward ? slabs - 1 - k : k;
        c.input_ready = false;
        slab();
        if (!Sink::every_turn) return;
      }
    }
  }
  /// Stretches what must outlive a turn over the whole loop.
  constexpr void close_loop(const Context& c, Index since) {
    if (loops(c) == 1) return;
    for (const Slot which : {kept, saved_kept, rolling, state, dcarry, packed_f, packed_r, packed_b})
      for (Index t = 0; t <= chain(c); ++t) {
        const bool stale = !c.forward() && (which == rolling || which == packed_f);
        const bool turn = (which == packed_f || which == packed_r || which == packed_b) && t < chain(c) && packs_in_slab(c, t);
        if (!stale && !turn) sink_.span(slot(c, which, t), since);
      }
    if (c.s > 0) sink_.span(values_[static_cast<std::size_t>(c.s - 1)], since);
    if (c.forward()) sink_.span(values_[static_cast<std::size_t>(c.s)], since);
    if (!c.forward()) {
      sink_.span(gradients_[static_cast<std::size_t>(c.s)], since);
      if (c.s > 0) sink_.span(gradients_[static_cast<std::size_t>(c.s - 1)], since);
      if (c.needs->output) sink_.span(values_[static_cast<std::size_t>(c.s)], since);
      if (c.s == 0) sink_.span(input_gradient_, since);
    }
  }
  constexpr void forward_stage(Index s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    const bool keeps = options_.training && needs_[static_cast<std::size_t>(s)].any_kept;
    Context c = context(s, Pass::forward, keeps ? stage.backward : stage.forward);
    const Index since = sink_.now;
    pack_all(c, packed_f, Op::pack_forward, 0, chain(c));
    for_slabs(c, false, [&] {
      forward_layers(c, 0, chain(c));
      if (stage.reduces) {
        Step step = make(c, Op::forward, chain(c));
        step.x = with_rows(value(c, chain(c)), c.at(chain(c)).own);
        step.y = stage_output(c, values_, {0, 1});
        step.accumulate = c.n > 0;
        sink_.step(step);
      }
    });
    close_loop(c, since);
  }
  constexpr void loss() {
    Context c = context(static_cast<Index>(stages_.size()) - 1, Pass::forward, stages_.back().forward);
    c.images = group_;
    const Range rows{0, table_.shape(table_.size()).h};
    Step step = make(c, Op::loss);
    step.x = stage_output(c, values_, rows);
    if (options_.training) step.dx = stage_output(c, gradients_, rows);
    sink_.step(step);
  }

  // ---- backward ----------------------------------------------------------------------------------------------------
  constexpr bool wants_input_gradient(const Context& c) const { return c.s > 0 || options_.input_gradient; }
  /// Whether an activation's gradient overwrites the one it is made of.
  constexpr bool gradient_in_place(const Context& c, Index l) const {
    if (l < 1 || !can_overwrite(layer(c, l))) return false;
    return c.same_rows[static_cast<std::size_t>(l)] && (l + 1 < chain(c) || c.stage->reduces || !c.cut());
  }
  /// Gradient of the slab's rows of tensor t: all held ones.
  constexpr Ref gradient(Context& c, Index t) {
    if (t > 0 && t < chain(c) && gradient_in_place(c, t)) {
      Ref ref = gradient(c, t + 1);
      ref.tensor = c.stage->first + t;
      return ref;
    }
    if (t == chain(c) && !c.stage->reduces) return stage_output(c, gradients_, c.at(t).own);
    return local(c, dslab, Role::dslab, t, &SlabRows::hold, c.at(t).hold);
  }
  constexpr Ref gradient_target(const Context& c, Range rows) {
    return c.s > 0 ? stage_input(c, gradients_, rows) : input_gradient_ref(c.images, rows);
  }
  constexpr void backward_stage(Index s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    Context c = context(s, Pass::backward, stage.backward);
    const Index since = sink_.now;
    for (const BackwardRun& run : c.needs->runs)
      if (run.recompute) pack_all(c, packed_r, Op::pack_forward, run.first, run.last);
    pack_all(c, packed_b, Op::pack_backward, wants_input_gradient(c) ? 0 : 1, chain(c));
    for_slabs(c, true, [&] {
      if (stage.reduces) backward_reduction(c);
      for (const BackwardRun& run : c.needs->runs) {
        c.pass = run.recompute ? Pass::recompute : Pass::backward;
        if (run.recompute) forward_layers(c, run.first, run.last);
        else backward_layer(c, run.first);
      }
      c.pass = Pass::backward;
    });
    close_loop(c, since);
  }
  constexpr void backward_reduction(Context& c) {
    const Index t = chain(c);
    if (t == 0 && !wants_input_gradient(c)) return;
    Step step = make(c, Op::backward_data, t);
    step.dy = stage_output(c, gradients_, {0, 1});
    step.dx = t == 0 ? gradient_target(c, c.at(0).own) : gradient(c, t);
    sink_.step(step);
  }
  constexpr void backward_layer(Context& c, Index l) {
    const Index t = l + 1;
    const Layer& y = layer(c, l);
    const LayerNeeds& needs = c.needs->layer[static_cast<std::size_t>(l)];
    c.top_run = chain(c);
    Ref dy = with_rows(gradient(c, t), c.at(t).own);
    const bool in_full = t == chain(c) && !c.stage->reduces;
    if (is_conv(y) && (in_full ? c.cut() : static_cast<bool>(c.carries[static_cast<std::size_t>(t)]))) {
      const Ref dense = local(c, down, Role::dslab, t, &SlabRows::own, c.at(t).own);
      move(c, Op::copy, dy, dense);
      dy = dense;
    }
    if (parameter_shapes(y, shape(c, l)).count > 0) backward_parameters(c, l, dy);
    if (l == 0 && !wants_input_gradient(c)) return;
    Step step = make(c, Op::backward_data, l);
    step.dy = dy;
    if (needs.input && y.kind != Kind::conv && y.kind != Kind::linear) step.x = value(c, l);
    if (needs.output) step.y = with_rows(value(c, t), c.at(t).own);
    if (needs.saved) step.saved = saved_state(c, l);
    if (is_conv(y)) step.packed = packed(c, packed_b, Op::pack_backward, l);
    if (needs_workspace(y)) step.workspace = workspace_;
    if (l == 0) {
      input_gradient_step(c, step);
      return;
    }
    const Ref hold = gradient(c, l);
    const bool apart = is_conv(y) && c.need_copy[static_cast<std::size_t>(l)];
    step.dx = apart ? local(c, dneed, Role::dslab, l, &SlabRows::need, c.at(l).need) : hold;
    sink_.step(step);
    if (apart) {
      move(c, Op::zero, {}, hold);
      move(c, Op::copy, step.dx, with_rows(hold, c.at(l).need));
    }
    if (c.carries[static_cast<std::size_t>(l)]) exchange_gradient(c, l, hold);
  }
  constexpr void backward_parameters(Context& c, Index l, const Ref& dy) {
    const Layer& y = layer(c, l);
    Step step = make(c, Op::backward_parameters, l);
    const LayerNeeds& needs = c.needs->layer[static_cast<std::size_t>(l)];
    if (needs.input) step.x = layer_input(c, l);
    if (needs.output) step.y = with_rows(value(c, l + 1), c.at(l + 1).own);
    step.dy = dy;
    char& fresh = first_contribution_[static_cast<std::size_t>(c.stage->first + l)];
    step.accumulate = !fresh;
    fresh = 0;
    if (is_conv(y) && target_.packs_weights)
      step.scratch = declared(c, scratch, Role::scratch, l, [&] {
        return aligned(target_.packed_bytes(table_.node(c.stage->first + l)));
      });
    if (needs_workspace(y)) step.workspace = workspace_;
    sink_.step(step);
  }
  /// Gradient rows of earlier slabs' rows go down; those that the later slabs sent for these rows are added.
  constexpr void exchange_gradient(Context& c, Index t, const Ref& hold) {
    const Index id = declared(c, dcarry, Role::dcarry, t, [&] {
      return piece_bytes(shape(c, t), c.stage->partition.images, most_carried(*c.rows, t));
    });
    const auto slot_of = [&](Range rows) { return Ref{id, 0, c.stage->first + t, c.images, rows, c.images, rows}; };
    const Ref in = slot_of(carried(*c.rows, c.n + 1, t)), out = slot_of(carried(*c.rows, c.n, t));
    move(c, Op::add, in, with_rows(hold, in.rows));
    move(c, Op::copy, with_rows(hold, out.rows), out);
  }
  /// The first layer's data gradient: straight into the full-height gradient where slabs do not meet, else by way of a
  /// slab whose rows are added to those that later slabs have written. Rows that nothing read get zeros.
  constexpr void input_gradient_step(Context& c, Step step) {
    const Range rows = c.at(0).hold;
    if (!c.cut()) {
      step.dx = gradient_target(c, {0, shape(c, 0).h});
      sink_.step(step);
      return;
    }
    const bool apart = is_conv(layer(c, 0)) || slabs_meet(*c.rows);
    step.dx = apart ? local(c, dslab, Role::dslab, 0, &SlabRows::hold, rows) : gradient_target(c, rows);
    sink_.step(step);
    const Index h = shape(c, 0).h;
    const Range seen = rows.empty() ? Range{c.covered, c.covered} : rows;
    move(c, Op::zero, {}, gradient_target(c, {std::min(seen.end, c.covered), c.covered}));
    if (apart) {
      const Range again = intersect(seen, {c.covered, h}), fresh = intersect(seen, {0, c.covered});
      move(c, Op::add, with_rows(step.dx, again), gradient_target(c, again));
      move(c, Op::copy, with_rows(step.dx, fresh), gradient_target(c, fresh));
    }
    c.covered = std::min(c.covered, seen.begin);
    if (c.n == 0) move(c, Op::zero, {}, gradient_target(c, {0, c.covered}));
  }
  static constexpr bool slabs_meet(const Schedule& rows) {
    for (Index n = 0; n + 1 < rows.slabs(); ++n)
      if (!intersect(rows.at(n, 0).hold, rows.at(n + 1, 0).hold).empty()) return true;
    return false;
  }
};
}  // namespace lrcnn
