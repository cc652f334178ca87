#pragma once
// What lies where in the arena while a plan is replayed (plan/replay.hpp).
//
// For every piece of memory that a step has written: which row of which tensor of which image lies there. It is forgotten when other bytes
// are written over it. Packed filters and what norms have taken in are known by their buffers.
#include <lrcnn/plan/plan.hpp>
#include <map>
namespace lrcnn::detail {
/// What a row of a piece of memory holds.
enum class Holds : std::uint8_t { nothing, value, gradient, saved };
struct Cell {
  Holds holds = Holds::nothing;
  Index tensor = -1;
  std::uint64_t number = 0;   ///< gradient: its integer
};
/// Keeps the list of problems, too: reading what is not there is one.
class ReplayedMemory {
 protected:
  explicit ReplayedMemory(const Plan& plan) : plan_(plan) {}
  /// A piece of a buffer.
  struct Extent {
    Index begin = 0, end = 0;   ///< bytes of the arena
    Range images{}, rows{};
    std::vector<Cell> cells;
    Cell& cell(Index image, Index row) { return item(cells, (image - images.begin) * rows.size() + row - rows.begin); }
  };
  using Key = std::array<Index, 6>;   // buffer, offset, held images, held rows
  /// What a buffer of statistics or of sums has taken in.
  struct Taken {
    Index layer = -1;
    std::vector<char> rows;                ///< statistics: of each image, which
    std::map<Index, std::uint64_t> sums;   ///< of each set; of a global pooling: rows added so far
    std::map<Index, Index> begun;          ///< set in memory -> the set that was begun there
  };
  const Plan& plan_;
  std::size_t at_ = 0;   // the step
  std::vector<std::string> problems_;
  std::map<Index, std::pair<Op, Index>> packed_;   // buffer -> direction, layer
  std::map<Index, Taken> taken_;                   // by buffer

  void problem(const std::string& text) {
    std::string where = "after the last step";
    if (at_ < plan_.steps.size()) {
      const Step& s = plan_.steps[at_];
      where = "step " + std::to_string(at_) + " (" + std::string(op_name(s.op));
      if (s.layer >= 0) where += " " + std::string(plan_.table.node(s.layer).layer.name.view());
      where += ", stage " + std::to_string(s.stage) + ", slab " + std::to_string(s.slab) + ")";
    }
    problems_.push_back(where + ": " + text);
  }
  static std::string show(Range r) { return "[" + std::to_string(r.begin) + "," + std::to_string(r.end) + ")"; }
  const Buffer& buffer(Index id) const { return item(plan_.buffers, id); }
  /// Bytes that a Ref's whole extent takes.
  Index bytes(const Ref& ref, bool saved) const { return piece_bytes(plan_, ref, saved); }
  static bool inside(const Ref& ref, Index image, Index row) { return ref.images.contains({image, image + 1}) && ref.rows.contains({row, row + 1}); }
  /// Whether a step may write over what it reads. The checker has a list of its own, so that a row of rules which claims too much is found;
  /// of a program's own layers it can know only what they say. A norm's gradient takes the place of its output's in full height.
  static bool may_overwrite(const Layer& layer, bool backward) {
    switch (layer.kind) {
      case Kind::activation:
      case Kind::dropout: return true;
      case Kind::norm:
      case Kind::sum: return true;
      case Kind::custom: return backward ? layer.custom->rules.overwrites_gradient : layer.custom->rules.overwrites_input;
      default: return false;
    }
  }
  /// What a step writes shares no byte with what else it touches, unless its layer works in place.
  void check_apart(const Step& s) {
    struct Piece {
      Index begin = 0, end = 0;
      const Ref* ref = nullptr;
      bool writes = false;
    };
    std::vector<Piece> pieces;
    const bool backward = is_backward(s.op);
    for (const Ref* r : {&s.x, &s.other, &s.y, &s.dy, &s.dx, &s.saved})
      if (*r)
        pieces.push_back({buffer(r->buffer).offset + r->offset, buffer(r->buffer).offset + r->offset + bytes(*r, r == &s.saved), r,
                          r == &s.dx || (!backward && (r == &s.y || r == &s.saved))});
    const auto whole = [&](Index id, bool writes) {
      if (id >= 0) pieces.push_back({buffer(id).offset, buffer(id).offset + buffer(id).bytes, nullptr, writes});
    };
    whole(s.packed, true), whole(s.scratch, true), whole(s.workspace, true);
    whole(s.statistics, s.op == Op::statistics), whole(s.sums, writes_sums(s));
    for (const Piece& w : pieces)
      for (const Piece& o : pieces) {
        const bool may = s.layer >= 0 && may_overwrite(plan_.table.node(s.layer).layer, s.op == Op::backward_data);
        const auto places = [](const Ref& r) { return Range{r.rows.begin - r.held_rows.begin, r.rows.end - r.held_rows.begin}; };
        const bool beside = w.ref && o.ref && w.ref->buffer == o.ref->buffer && w.begin == o.begin && w.end == o.end &&
                            w.ref->held_rows != o.ref->held_rows && intersect(places(*w.ref), places(*o.ref)).empty();
        const bool in_place = may && w.ref && o.ref && w.begin == o.begin && w.end == o.end && w.ref->held_rows == o.ref->held_rows &&
                              w.ref->images == o.ref->images;   // element by element
        if (w.writes && &o != &w && w.begin < o.end && o.begin < w.end && !in_place && !beside) problem("writes over what it reads or uses");
      }
  }
  /// The piece that a Ref is of; null if there is none. `writing`: then it is made, and what lay there is forgotten.
  Extent* extent(const Ref& ref, bool saved, bool writing) {
    const Key key{ref.buffer, ref.offset, ref.held_images.begin, ref.held_images.end, ref.held_rows.begin, ref.held_rows.end};
    if (writing && last_extent_ && last_step_ == at_ && last_key_ == key) return last_extent_;
    const auto found = memory_.find(key);
    if (!writing) return found != memory_.end() && within(ref) ? &found->second : nullptr;
    const Index begin = buffer(ref.buffer).offset + ref.offset, end = begin + bytes(ref, saved);
    if (ref.offset + bytes(ref, saved) > buffer(ref.buffer).bytes)
      problem("writes " + std::to_string(ref.offset + bytes(ref, saved)) + " bytes into a buffer of " + std::to_string(buffer(ref.buffer).bytes));
    if (const Index height = plan_.table.shape(ref.tensor).h; !Range{0, height}.contains(ref.rows))
      problem("writes rows " + show(ref.rows) + " of tensor " + std::to_string(ref.tensor) + ", which has " + std::to_string(height));
    if (!within(ref)) {
      problem("writes images " + show(ref.images) + " rows " + show(ref.rows) + " of a piece that holds " + show(ref.held_images) + " " +
              show(ref.held_rows));
      return nullptr;
    }
    forget(begin, end, &key, &ref);
    Extent& e = memory_[key];
    if (e.cells.empty()) {
      e = {begin, end, ref.held_images, ref.held_rows, {}};
      e.cells.resize(static_cast<std::size_t>(ref.held_images.size() * ref.held_rows.size()));
    }
    last_step_ = at_, last_key_ = key, last_extent_ = &e;
    beside_last_.clear();
    for (auto& [other_key, other] : memory_)
      if (&other != &e && other.begin == begin && other.end == end) beside_last_.push_back(&other);
    return &e;
  }
  /// What lies in some bytes; but not a piece itself, nor one whose rows take the same places: of that, rows are forgotten as they are
  /// written over.
  void forget(Index begin, Index end, const Key* but, const Ref* beside = nullptr) {
    last_extent_ = nullptr;
    const auto stays = [&](const Key& key, const Extent& e) {
      return (but && key == *but) || (beside && e.begin == begin && e.end == end && e.images == beside->held_images &&
                                      e.rows.size() == beside->held_rows.size() && key[0] == beside->buffer);
    };
    for (auto it = memory_.begin(); it != memory_.end();)
      it = !stays(it->first, it->second) && it->second.begin < end && begin < it->second.end ? memory_.erase(it) : std::next(it);
    for (auto it = packed_.begin(); it != packed_.end();) {
      const Buffer& b = buffer(it->first);
      it = b.offset < end && begin < b.offset + b.bytes ? packed_.erase(it) : std::next(it);
    }
    for (auto it = taken_.begin(); it != taken_.end();) {
      const Buffer& b = buffer(it->first);
      it = b.offset < end && begin < b.offset + b.bytes ? taken_.erase(it) : std::next(it);
    }
  }
  void overwrite(Index id) {
    if (id >= 0) forget(buffer(id).offset, buffer(id).offset + buffer(id).bytes, nullptr);
  }
  /// The cell at an image and row, which must hold what the Ref says.
  const Cell* read(const Ref& ref, Holds holds, Index image, Index row) {
    Extent* e = inside(ref, image, row) ? extent(ref, holds == Holds::saved, false) : nullptr;
    const Cell* cell = e ? &e->cell(image, row) : nullptr;
    if (cell && cell->holds == holds && (cell->tensor == ref.tensor || (holds == Holds::gradient && are_added(cell->tensor, ref.tensor))))
      return cell;
    static constexpr std::array<const char*, 4> names{"nothing", "value", "gradient", "saved state"};
    problem("reads " + std::string(names[static_cast<std::size_t>(holds)]) + " of tensor " + std::to_string(ref.tensor) + ", image " +
            std::to_string(image) + ", row " + std::to_string(row) + ", which is not in buffer " + std::to_string(ref.buffer) +
            (inside(ref, image, row) ? "" : " (images " + show(ref.images) + " rows " + show(ref.rows) + " are)"));
    return nullptr;
  }
  /// Whether a layer adds one tensor to the other: then their gradients may be one, as long as it has the integers of both.
  bool are_added(Index a, Index b) const {
    return std::any_of(plan_.table.nodes.begin(), plan_.table.nodes.end(), [&](const Node& n) {
      return n.layer.kind == Kind::sum && ((n.input == a && n.other == b) || (n.input == b && n.other == a));
    });
  }
  void write(const Ref& ref, Holds holds, Index image, Index row, std::uint64_t number = 0) {
    if (!inside(ref, image, row))
      problem("writes image " + std::to_string(image) + ", row " + std::to_string(row) + " of a piece of images " + show(ref.images) + " rows " +
              show(ref.rows));
    else if (Extent* e = extent(ref, holds == Holds::saved, true)) {
      e->cell(image, row) = {holds, ref.tensor, number};
      for (Extent* other : beside_last_) other->cell(image, row - e->rows.begin + other->rows.begin) = {};
    }
  }
  template <class F>
  static void each(const Ref& ref, F f) {
    for (Index i = ref.images.begin; i < ref.images.end; ++i)
      for (Index r = ref.rows.begin; r < ref.rows.end; ++r) f(i, r);
  }
  void check_overlaps() {
    for (std::size_t i = 0; i < plan_.buffers.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const Buffer &a = plan_.buffers[i], &b = plan_.buffers[j];
        if (a.meets(b) && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
          problem("buffers " + std::to_string(j) + " and " + std::to_string(i) + " are live together and overlap");
        const bool offloaded = a.role == Role::offloaded;   // the larger memory's addresses are behind the arena's
        if (a.offset + a.bytes > plan_.arena.bytes + (offloaded ? plan_.arena.offloaded : 0))
          problem("buffer " + std::to_string(i) + " ends beyond the " + (offloaded ? "larger memory" : "arena"));
        if (offloaded && a.offset < plan_.arena.bytes) problem("buffer " + std::to_string(i) + " of the larger memory is in the arena");
      }
  }

 private:
  std::map<Key, Extent> memory_;
  Key last_key_{};   // the piece written last, in step last_step_
  std::size_t last_step_ = 0;
  Extent* last_extent_ = nullptr;
  std::vector<Extent*> beside_last_;   // pieces in the same places, whose rows are numbered otherwise
  static bool within(const Ref& ref) { return ref.held_rows.contains(ref.rows) && ref.held_images.contains(ref.images); }
};
}   // namespace lrcnn::detail
