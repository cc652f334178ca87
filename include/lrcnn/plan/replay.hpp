#pragma once
// Replays a plan without arithmetic and says what is wrong with it.
//
// The checker knows layers and rows, and nothing of stages, policies or how a plan came about. It keeps, for every
// piece of arena memory, which row of which tensor of which image lies there, and forgets it when other bytes are
// written over it. A step must find what it reads. Values need no numbers: a row of tensor t that was made from the
// right rows is the row of tensor t. Gradients do, because rows may be added up in parts: each gradient row is one
// integer modulo 2^64, each layer a linear map with coefficients drawn from a hash of (layer, output row, input row),
// and at the end every parameter gradient and the input's must equal those of an ordinary backward pass over whole
// maps. A lost, doubled or misplaced row changes the integers.
// The memory is plan/replayed_memory.hpp, and the linear maps are plan/numbered_layers.hpp; here is what each step does to the memory, and
// what it must find.
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/numbered_layers.hpp>
#include <lrcnn/plan/replayed_memory.hpp>
namespace lrcnn {
namespace detail {
class Replay : ReplayedMemory, NumberedLayers {
 public:
  explicit Replay(const Plan& plan) : ReplayedMemory(plan), NumberedLayers(plan), parameters_(static_cast<std::size_t>(plan.table.size()), 0) {}
  std::vector<std::string> run() {
    check_overlaps();
    for (std::size_t i = 0; i < plan_.steps.size() && problems_.size() < 20; ++i) {
      at_ = i;
      step(plan_.steps[i]);
    }
    at_ = plan_.steps.size();
    if (problems_.empty()) check_results();
    return problems_;
  }

 private:
  std::map<std::pair<Index, Index>, int> lost_;   // image, row -> times that the loss has counted it
  std::map<Index, Index> stored_;                 // image -> rows of the output handed over so far
  std::vector<std::uint64_t> parameters_;
  std::vector<char> touched_ = std::vector<char>(parameters_.size(), plan_.options.accumulate ? 1 : 0);

  // ---- steps -------------------------------------------------------------------------------------------------------
  void step(const Step& s) {
    check_apart(s);
    for (const Ref* ref : {&s.x, &s.other, &s.y, &s.dy, &s.dx, &s.saved})
      if (*ref && !is_move(s.op) && buffer(ref->buffer).role == Role::offloaded) problem("works on what is offloaded, and not fetched");
    switch (s.op) {
      case Op::load: each(s.y, [&](Index i, Index r) { write(s.y, Holds::value, i, r); }); break;
      case Op::store: store(s); break;
      case Op::copy:
      case Op::offload:
      case Op::fetch:
        check_memories(s);
        copy(s);
        break;
      case Op::add: add(s); break;
      case Op::zero: each(s.y, [&](Index i, Index r) { write(s.y, Holds::gradient, i, r); }); break;
      case Op::pack_forward:
      case Op::pack_backward:
        overwrite(s.packed);
        packed_[s.packed] = {s.op, s.layer};
        break;
      case Op::forward: forward(s); break;
      case Op::statistics: statistics(s); break;
      case Op::backward_sums: backward_sums(s); break;
      case Op::backward_data: backward_data(s); break;
      case Op::backward_parameters: backward_parameters(s); break;
      case Op::loss:
        each(s.x, [&](Index i, Index r) { read(s.x, Holds::value, i, r); });
        if (s.dx && (s.x.images != s.dx.images || s.x.rows != s.dx.rows)) problem("the loss of one piece makes the gradient of another");
        if (s.dx) each(s.dx, [&](Index i, Index r) { write(s.dx, Holds::gradient, i, r, seed_gradient(i, r)); });
        if (s.pass != Pass::recompute) each(s.x, [&](Index i, Index r) { ++lost_[{i, r}]; });
        break;
    }
    overwrite(s.workspace);
    overwrite(s.scratch);
  }
  void store(const Step& s) {
    if (s.x.tensor != plan_.table.size()) problem("hands over what is not the network's output");
    each(s.x, [&](Index i, Index r) {
      read(s.x, Holds::value, i, r);
      if (Index& due = stored_[i]; r == due) ++due;
      else problem("hands over row " + std::to_string(r) + " of image " + std::to_string(i) + ", where row " + std::to_string(due) + " is due");
    });
  }
  /// Only offloading writes to the larger memory, and only fetching is a move out of it.
  void check_memories(const Step& s) {
    const auto far = [&](const Ref& ref) { return buffer(ref.buffer).role == Role::offloaded; };
    if (far(s.y) != (s.op == Op::offload) || far(s.x) != (s.op == Op::fetch)) problem("moves rows between other memories than it says");
  }
  void copy(const Step& s) {
    if (s.x.tensor != s.y.tensor || s.x.rows != s.y.rows || s.x.images != s.y.images) problem("copies between different rows");
    each(s.y, [&](Index i, Index r) {
      Extent* from = extent(s.x, false, false);   // each time: writing may have made it be forgotten
      const Holds holds = from && inside(s.x, i, r) ? from->cell(i, r).holds : Holds::nothing;
      const Cell* cell = read(s.x, holds == Holds::gradient ? Holds::gradient : Holds::value, i, r);
      if (cell) write(s.y, cell->holds, i, r, std::uint64_t{cell->number});
    });
  }
  void add(const Step& s) {
    if (s.x.tensor != s.y.tensor || s.x.rows != s.y.rows) problem("adds different rows");
    each(s.y, [&](Index i, Index r) {
      const Cell *a = read(s.x, Holds::gradient, i, r), *b = read(s.y, Holds::gradient, i, r);
      if (a && b) write(s.y, Holds::gradient, i, r, a->number + b->number);
    });
  }
  void check_dense(const Step& s, const Ref& in, const Ref& out) {
    if (node(s.layer).layer.kind != Kind::conv) return;
    for (const Ref& ref : {in, out})
      if (ref && ref.rows != ref.held_rows && !(plan_.target.convolves_rows && ref.images.size() == 1))
        problem("a convolution works on rows " + show(ref.rows) + " of a piece that holds " + show(ref.held_rows) + ", which are not dense");
    if (in.rows.empty()) return;
    const Axis axis = row_axis_of(node(s.layer));
    const Range wanted = in_rows(axis, out.rows, node(s.layer).in.h);
    if (!wanted.empty() && (in.rows.begin != wanted.begin || in.rows.end - wanted.end >= axis.stride))
      problem("a convolution that reads rows " + show(wanted) + " is given " + show(in.rows));
  }
  void check_packed(const Step& s, Op direction) {
    if (!plan_.target.packs(node(s.layer).layer)) return;
    const auto found = packed_.find(s.packed);
    const bool alike = plan_.target.packs_alike && direction == Op::pack_backward;   // a forward pass may want its bias beside the filter
    if (found == packed_.end() || found->second.second != s.layer || (!alike && found->second.first != direction))
      problem("its packed filter is not there");
  }
  // ---- statistics and sums -----------------------------------------------------------------------------------------
  Taken& taken(const Step& s, Index id, bool anew) {
    if (anew && !taken_.contains(id)) forget(buffer(id).offset, buffer(id).offset + buffer(id).bytes, nullptr);
    Taken& t = taken_[id];
    if (t.layer != s.layer && !anew) problem("adds to what is not this layer's");
    t.layer = s.layer;
    t.rows.resize(static_cast<std::size_t>(plan_.table.input.n * node(s.layer).in.h), 0);
    const Range images = (s.dy ? s.dy : s.x).images;
    for (Index i = images.begin; i < images.end; ++i) {
      const Index set = set_of(s.layer, i), place = s.set + set - set_of(s.layer, images.begin);
      if (anew) t.begun[place] = set;
      else if (const auto found = t.begun.find(place); found == t.begun.end() || found->second != set)
        problem("adds to what was not begun for image " + std::to_string(i));
    }
    return t;
  }
  /// The sums that a step adds to, begun anew unless it accumulates.
  Taken& taken_sums(const Step& s) {
    Taken& t = taken(s, s.sums, !s.accumulate);
    const Range images = (s.dy ? s.dy : s.x).images;
    for (Index i = images.begin; i < images.end && !s.accumulate; ++i) t.sums[set_of(s.layer, i)] = 0;
    return t;
  }
  void statistics(const Step& s) {
    const Index h = node(s.layer).in.h;
    if (s.x.tensor != node(s.layer).input) problem("takes statistics of another tensor");
    Taken& t = taken(s, s.statistics, !s.accumulate);
    for (Index i = 0; i < plan_.table.input.n && !s.accumulate; ++i)
      if (set_of(s.layer, i) == set_of(s.layer, s.x.images.begin) || s.x.images.contains({i, i + 1})) std::fill_n(t.rows.begin() + i * h, h, char{0});
    each(s.x, [&](Index i, Index r) {
      read(s.x, Holds::value, i, r);
      char& seen = item(t.rows, i * h + r);
      if (seen) problem("counts row " + std::to_string(r) + " of image " + std::to_string(i) + " twice");
      seen = 1;
    });
    if (s.pass != Pass::forward) problem("takes statistics in a pass that is done again");
  }
  /// The statistics of the images that a step is about must be whole.
  void check_statistics(const Step& s, const Ref& rows) {
    const auto found = taken_.find(s.statistics);
    if (found == taken_.end() || found->second.layer != s.layer) return problem("its statistics are not there");
    const Index h = node(s.layer).in.h;
    for (Index i = 0; i < plan_.table.input.n; ++i) {
      if (set_of(s.layer, i) != set_of(s.layer, rows.images.begin) && !rows.images.contains({i, i + 1})) continue;
      for (Index r = 0; r < h; ++r)
        if (!item(found->second.rows, i * h + r))
          return problem("normalises before row " + std::to_string(r) + " of image " + std::to_string(i) + " was counted");
    }
    if (s.set != (set_of(s.layer, 1) == 0 ? 0 : rows.images.begin - group_begin(rows.images.begin))) problem("uses another image's statistics");
  }
  Index group_begin(Index image) const {
    const Index images = group_images(plan_.table, plan_.policy);
    return image / images * images;
  }
  void backward_sums(const Step& s) {
    if (s.dy.tensor != s.layer + 1 || s.x.tensor != node(s.layer).input) problem("reads another layer's tensors");
    check_statistics(s, s.dy);
    Taken& t = taken_sums(s);
    const auto l = static_cast<std::size_t>(s.layer);
    if (!s.accumulate_parameters) parameters_[l] = 0;
    if (static_cast<bool>(touched_[l]) != s.accumulate_parameters) problem("a norm's gradient is written twice, or added to nothing");
    touched_[l] = 1;
    each(s.dy, [&](Index i, Index r) {
      read(s.x, Holds::value, i, r);
      const Cell* dy = read(s.dy, Holds::gradient, i, r);
      if (!dy) return;
      t.sums[set_of(s.layer, i)] += dy->number * weight(Coefficient::into_sums, s.layer, r, i);
      parameters_[l] += dy->number * weight(Coefficient::parameters, s.layer, r, i);
    });
  }

  void read_inputs(const Step& s, const Ref& out) {
    each(out, [&](Index i, Index o) {
      const Range rows = reads(s.layer, {o, o + 1});
      for (Index r = rows.begin; r < rows.end; ++r) read(s.x, Holds::value, i, r);
      if (s.other) read(s.other, Holds::value, i, other_row(s.layer, o));
    });
  }
  void forward(const Step& s) {
    const Node& n = node(s.layer);
    check_packed(s, Op::pack_forward);
    if (rules_of(n.layer).reduces) {
      reduce(s);
      return;
    }
    const Ref& out = s.y ? s.y : s.saved;
    const Index last = s.activates ? s.layer + 1 : s.layer;
    if (s.activates && (!rules_of(n.layer).takes_activation || last >= plan_.table.size() || !is_activation(node(last).layer)))
      problem("applies an activation that is not there");
    const bool others = static_cast<bool>(s.other) == (n.other >= 0) && (n.other < 0 || s.other.tensor == n.other);
    if (s.x.tensor != n.input || out.tensor != last + 1 || !others) problem("reads or writes another layer's tensor");
    if (waits(s.layer)) check_statistics(s, out);
    check_dense(s, s.x, s.y);
    read_inputs(s, out);
    if (s.y) each(s.y, [&](Index i, Index r) { write(s.y, Holds::value, i, r); });
    if (s.saved) each(s.saved, [&](Index i, Index r) { write(s.saved, Holds::saved, i, r); });
  }
  void reduce(const Step& s) {
    Taken* const sums = s.sums >= 0 ? &taken_sums(s) : nullptr;
    const bool last = s.x.rows.end == node(s.layer).in.h;
    if (s.x.tensor != node(s.layer).input || s.y.tensor != s.layer + 1) problem("reads or writes another layer's tensor");
    if (s.y.images != s.x.images || s.y.rows != Range{0, 1}) problem("writes other means than those of its images");
    if (sums == nullptr && (!last || s.accumulate)) problem("pools a part of the rows, and has no sums");
    for (Index i = s.x.images.begin; i < s.x.images.end; ++i) {
      for (Index r = s.x.rows.begin; r < s.x.rows.end; ++r) read(s.x, Holds::value, i, r);
      if (const std::uint64_t done = sums ? sums->sums[i] : 0; done != static_cast<std::uint64_t>(s.x.rows.begin))
        problem("pools rows " + show(s.x.rows) + " out of order");
      if (sums) sums->sums[i] = static_cast<std::uint64_t>(s.x.rows.end);
    }
    each(s.y, [&](Index i, Index) { write(s.y, last ? Holds::value : Holds::nothing, i, 0); });   // last: it may forget the sums
  }
  void check_backward_reads(const Step& s) {
    if (s.x) read_inputs(s, s.dy);
    else if (s.other) each(s.dy, [&](Index i, Index r) { read(s.other, Holds::value, i, other_row(s.layer, r)); });
    if (s.y) each(s.dy, [&](Index i, Index r) { read(s.y, Holds::value, i, r); });
    if (s.saved) each(s.dy, [&](Index i, Index r) { read(s.saved, Holds::saved, i, r); });
    const Layer& layer = node(s.layer).layer;
    const BackwardReads reads = backward_reads(layer);
    const auto lacks = [&](bool what, const char* name) {
      if (what) problem("a " + std::string(kind_name(layer.kind)) + " layer goes backward without its " + name);
    };
    if (is_join(layer))
      return lacks(reads.input && reads.other && !(s.operand == 0 ? s.other : s.x), s.operand == 0 ? "second input" : "first input");
    lacks(reads.input && !reads.for_parameters && !s.x, "input");
    lacks(reads.output && !s.y, "output");
    lacks(reads.indices && !s.saved, "indices");
    lacks(reads.sign && !s.saved && !s.x && !s.y, "sign");
  }
  void backward_data(const Step& s) {
    const Index input = s.operand == 0 ? node(s.layer).input : node(s.layer).other;
    if (s.dy.tensor != s.layer + 1 || s.dx.tensor != input) problem("reads or writes another layer's gradient");
    check_packed(s, Op::pack_backward);
    check_dense(s, s.dx, s.dy);
    if (!rules_of(node(s.layer).layer).reduces) check_backward_reads(s);
    const Taken* t = nullptr;
    if (waits(s.layer)) {
      check_statistics(s, s.dy);
      const auto found = taken_.find(s.sums);
      if (found == taken_.end() || found->second.layer != s.layer) return problem("its sums are not there");
      t = &found->second;
    }
    std::map<std::pair<Index, Index>, std::uint64_t> sums;   // all reads before the first write: they may be in place
    each(s.dy, [&](Index i, Index o) {
      const Cell* dy = read(s.dy, Holds::gradient, i, o);
      const Index to = other_row(s.layer, o);
      const Range rows = s.operand == 0 ? reads(s.layer, {o, o + 1}) : Range{to, to + 1};
      for (Index r = rows.begin; dy && r < rows.end; ++r)
        if (s.dx.rows.contains({r, r + 1}))
          sums[{i, r}] += dy->number * weight(s.operand == 0 ? Coefficient::data : Coefficient::other, s.layer, o, r);
      if (!t || !dy || !s.part.contains({o, o + 1})) return;
      const auto sum = t->sums.find(set_of(s.layer, i));
      if (sum == t->sums.end()) return problem("its sums are not there");
      sums[{i, o}] += sum->second * weight(Coefficient::from_sums, s.layer, o, 0);
    });
    if (s.sums >= 0 && s.operand == 1) {   // factors: what all slabs so far have sent
      Taken& so_far = taken_sums(s);
      for (Index i = s.dx.images.begin; i < s.dx.images.end; ++i) sums[{i, 0}] = so_far.sums[i] += sums[{i, 0}];
    }
    each(s.dx, [&](Index i, Index r) { write(s.dx, Holds::gradient, i, r, sums[{i, r}]); });
  }
  void backward_parameters(const Step& s) {
    check_dense(s, s.x, s.dy);
    if (!backward_reads(node(s.layer).layer).for_parameters) check_backward_reads(s);
    else if (!s.x) problem("a filter gradient without input");
    else read_inputs(s, s.dy);
    const auto l = static_cast<std::size_t>(s.layer);
    if (!s.accumulate) parameters_[l] = 0;
    if (static_cast<bool>(touched_[l]) != s.accumulate) problem("a filter gradient is written twice, or added to nothing");
    touched_[l] = 1;
    each(s.dy, [&](Index i, Index o) {
      if (const Cell* dy = read(s.dy, Holds::gradient, i, o)) parameters_[l] += dy->number * weight(Coefficient::parameters, s.layer, o, i);
    });
  }

  // ---- the end -----------------------------------------------------------------------------------------------------
  void check_results() {
    each(plan_.results.output, [&](Index i, Index r) { read(plan_.results.output, Holds::value, i, r); });
    for (Index i = 0; i < plan_.table.input.n; ++i)
      if (const Index height = plan_.options.stores_output ? plan_.table.shape(plan_.table.size()).h : 0; stored_[i] != height)
        problem(std::to_string(stored_[i]) + " rows of image " + std::to_string(i) + " are handed over, of " + std::to_string(height));
    const Table& table = plan_.table;
    for (Index i = 0; i < table.input.n && !plan_.options.stores_output; ++i)
      for (Index r = 0; r < table.shape(table.size()).h; ++r)
        if (const int times = lost_[{i, r}]; times != 1)
          problem("row " + std::to_string(r) + " of image " + std::to_string(i) + " counts " + std::to_string(times) + " times in the loss");
    if (!plan_.options.training) return;
    const Gradients expected = whole_map_gradients();
    const Index images = table.input.n;
    if (plan_.results.input_gradient)
      for (Index i = 0; i < images; ++i)
        for (Index r = 0; r < table.input.h; ++r)
          if (const Cell* cell = read(plan_.results.input_gradient, Holds::gradient, i, r))
            if (cell->number != item(expected.input, i * table.input.h + r))
              problem("the input gradient of image " + std::to_string(i) + ", row " + std::to_string(r) + " is not the whole sum");
    for (Index l = 0; l < table.size(); ++l)
      if (item(expected.parameters, l) != item(parameters_, l))
        problem("the parameter gradient of " + std::string(node(l).layer.name.view()) + " is not the whole sum");
  }
};
template <class>
std::vector<std::string> replay(const Plan& plan) {
  return Replay(plan).run();
}
}   // namespace detail
}   // namespace lrcnn
