#pragma once
// Filters that stay packed.
//
// The emitter packs a filter before a pass that uses it, or in each slab anew, and the filter's buffer lives no longer than that. Once all buffers
// have their places, there is room below the peak at most times. A filter that finds room there stays packed from its first use to its last, and is
// not packed again: those first that save most packing for their bytes. No other buffer moves; neither the arena nor the most bytes that live at
// once become more. So sizes are known without this, and a section's profile is, too; only some steps are left out.
#include <lrcnn/plan/arena.hpp>
#include <lrcnn/plan/step.hpp>
#include <map>
#include <vector>
namespace lrcnn {
/// A step that packs a filter which is packed already.
struct LeftOutStep {
  Index place = 0;   ///< where it would stand in the list of all steps
  Step step{};
  friend constexpr bool operator==(const LeftOutStep&, const LeftOutStep&) = default;
};
namespace detail {
class PackedFilters {
 public:
  /// `loops`: times that turns of a loop share. `alike`: filters packed for the forward pass serve data gradients, too.
  /// Pre: buffers have their places in the arena; they, the steps and the loops outlive the object.
  PackedFilters(std::vector<Buffer>& buffers, std::vector<Step>& steps, const std::vector<Range>& loops, const ArenaSize& arena, bool alike)
      : buffers_(buffers), steps_(steps), loops_(loops), arena_(arena), alike_(alike), live_(live_at(buffers)), home_(buffers.size(), -1) {}
  /// Has filters stay where that saves packing, and takes steps out of the list. Returns these.
  /// Post:    buffers that nothing uses any more have no bytes
  std::vector<LeftOutStep> run() {
    const auto filters = find_packings();
    std::vector<Stay> stays;
    for (std::size_t filter = 0; filter < filters.size(); ++filter) add_stays(filters[filter], stays);
    std::stable_sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) { return a.saved * b.bytes > b.saved * a.bytes; });
    bool any = false;
    for (const Stay& stay : stays) any = keep(stay) || any;
    return any ? leave_out() : std::vector<LeftOutStep>{};
  }

 private:
  /// A filter's buffer, with its copies, and how many steps pack it there.
  struct Packing {
    Index buffer = -1;
    Index steps = 0;
  };
  /// Packings that follow each other in time and may become one.
  struct Stay {
    std::vector<Packing> packings{};
    Range life{};      ///< when the filter must be there
    Index saved = 0;   ///< steps
    Index bytes = 0;
  };
  std::vector<Buffer>& buffers_;
  std::vector<Step>& steps_;
  const std::vector<Range>& loops_;
  const ArenaSize& arena_;
  const bool alike_;
  std::vector<Index> live_;   ///< bytes at each time
  std::vector<Index> home_;   ///< of each buffer: the one that its filter stays in; -1: it is as it was

  static bool packs(const Step& s) { return s.op == Op::pack_forward || s.op == Op::pack_backward; }
  Buffer& buffer(Index id) { return item(buffers_, id); }
  /// Of each filter, and of each direction where layouts differ: its packings, by time.
  std::vector<std::vector<Packing>> find_packings() {
    std::map<std::pair<Index, Op>, std::map<Index, Index>> found;   // how often, by the first copy's buffer
    for (const Step& s : steps_)
      if (packs(s)) ++found[{s.layer, alike_ ? Op::pack_forward : s.op}][s.packed - buffer(s.packed).copy];
    std::vector<std::vector<Packing>> filters;
    for (const auto& [key, packings] : found) {
      std::vector<Packing>& filter = filters.emplace_back();
      for (const auto& [id, steps] : packings) filter.push_back({id, steps});
      std::stable_sort(filter.begin(), filter.end(),
                       [&](const Packing& a, const Packing& b) { return buffer(a.buffer).first < buffer(b.buffer).first; });
    }
    return filters;
  }
  void add_stays(const std::vector<Packing>& filter, std::vector<Stay>& stays) {
    for (std::size_t first = 0; first < filter.size(); ++first) {
      Stay stay;
      stay.saved = -1;
      for (std::size_t last = first; last < filter.size(); ++last) {
        const Packing& packing = filter[last];
        const Buffer& b = buffer(packing.buffer);
        stay.packings.push_back(packing);
        stay.saved += packing.steps;
        stay.bytes = std::max(stay.bytes, b.bytes);
        stay.life = over_loops(hull(stay.life, {b.first, b.last}));
        if (stay.saved > 0) stays.push_back(stay);
      }
    }
  }
  /// A loop in which something must be there from one turn to the next is one in which it is there all the time.
  Range over_loops(Range life) const {
    for (bool wider = true; wider;) {
      wider = false;
      for (const Range& loop : loops_) {
        if (intersect(loop, life).empty() || life.contains(loop)) continue;
        life = hull(life, loop);
        wider = true;
      }
    }
    return life;
  }
  /// Has a filter stay if there is room for it.
  bool keep(const Stay& stay) {
    for (const Packing& p : stay.packings)
      if (item(home_, p.buffer) >= 0) return false;
    add_life(stay, -1);
    bool fits = true;
    for (Index t = stay.life.begin; fits && t < stay.life.end; ++t) fits = item(live_, t) + stay.bytes <= arena_.lower_bound;
    const Index offset = fits ? free_place(stay) : -1;
    if (offset < 0) {
      add_life(stay, 1);
      return false;
    }
    const Index home = stay.packings.front().buffer;
    for (const Packing& p : stay.packings)
      for (Index copies = buffer(p.buffer).copies, copy = 0; copy < copies; ++copy) {
        Buffer& b = buffer(p.buffer + copy);
        b.first = b.last = b.bytes = b.offset = 0;
        b.copies = 1;
        item(home_, p.buffer + copy) = home;
      }
    Buffer& b = buffer(home);
    b.bytes = stay.bytes, b.first = stay.life.begin, b.last = stay.life.end, b.offset = offset;
    for (Index t = b.first; t < b.last; ++t) item(live_, t) += b.bytes;
    return true;
  }
  /// Adds the bytes of what lives now where the filter is packed, `times` times.
  void add_life(const Stay& stay, Index times) {
    for (const Packing& p : stay.packings) {
      const Buffer& b = buffer(p.buffer);
      for (Index t = b.first; t < b.last; ++t) item(live_, t) += times * b.copies * b.bytes;
    }
  }
  /// The lowest place in the arena that is free as long as the filter stays; -1: there is none.
  Index free_place(const Stay& stay) {
    std::vector<Range> taken;
    for (Index id = 0; id < static_cast<Index>(buffers_.size()); ++id) {
      const Buffer& b = buffer(id);
      if (b.bytes == 0 || intersect({b.first, b.last}, stay.life).empty() || is_of(stay, id)) continue;
      taken.push_back({b.offset, b.offset + b.bytes});
    }
    std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    Index offset = 0;
    for (const Range& bytes : taken) {
      if (offset + stay.bytes <= bytes.begin) break;
      offset = std::max(offset, bytes.end);
    }
    return offset + stay.bytes <= arena_.bytes ? offset : -1;
  }
  bool is_of(const Stay& stay, Index id) {
    return std::any_of(stay.packings.begin(), stay.packings.end(),
                       [&](const Packing& p) { return p.buffer <= id && id < p.buffer + buffer(p.buffer).copies; });
  }
  std::vector<LeftOutStep> leave_out() {
    std::vector<LeftOutStep> left_out;
    std::vector<Index> packed_at(buffers_.size(), -1);   // the step that packs a filter which stays
    std::size_t kept = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& s = steps_[i];
      if (const Index home = s.packed < 0 ? -1 : item(home_, s.packed); home >= 0) {
        s.packed = home;
        Index& at = item(packed_at, home);
        if (packs(s) && at >= 0) {
          if (s.op == Op::pack_forward) item(steps_, at).op = s.op;   // serves both
          left_out.push_back({static_cast<Index>(i), s});
          continue;
        }
        if (at < 0) at = static_cast<Index>(kept);
      }
      steps_[kept++] = s;
    }
    steps_.resize(kept);
    return left_out;
  }
};
}   // namespace detail
}   // namespace lrcnn
