#pragma once
// Filters that stay packed.
//
// The emitter packs a filter before a pass that uses it, or in each slab anew, and the filter's buffer lives no longer than that. Once all buffers
// have their places, there is room below the peak at most times. A filter that finds room there stays packed from its first use to its last, and is
// not packed again: those first that save most packing for their bytes. No other buffer moves; neither the arena nor the most bytes that live at
// once become more. So sizes are known without this, and a section's profile is, too; only some steps are left out.
//
// For a backend that packs several filters with one kernel (Target::packs_together), steps that pack are then brought forward, behind one that
// packs earlier, again where there is room for their filters until they are used. Likewise filter gradients, which it unpacks together: their
// scratch memory stays theirs until those of the layers behind are made, where there is room (plan/unpacking.hpp).
#include <lrcnn/plan/arena.hpp>
#include <lrcnn/plan/moved_steps.hpp>
#include <lrcnn/plan/target.hpp>
#include <map>
#include <utility>
#include <vector>
namespace lrcnn {
namespace detail {
class PackedFilters {
 public:
  struct Result {
    std::vector<LeftOutStep> left_out;
    std::vector<MovedStep> moved;
  };
  /// `loops`: times that turns of a loop share.
  /// Pre: buffers have their places in the arena; they, the steps and the loops outlive the object.
  PackedFilters(std::vector<Buffer>& buffers, std::vector<Step>& steps, const std::vector<Range>& loops, const ArenaSize& arena, const Target& target)
      : buffers_(buffers),
        steps_(steps),
        loops_(loops),
        arena_(arena),
        alike_(target.packs_alike),
        together_(target.packs_together),
        live_(live_at(buffers)),
        home_(buffers.size(), -1),
        left_out_(steps.size(), 0) {}
  /// Has filters stay where that saves packing, takes steps out of the list, and moves others. Returns these.
  /// Post:    buffers that nothing uses any more have no bytes
  Result run() {
    const auto filters = find_packings();
    std::vector<Stay> stays;
    for (std::size_t filter = 0; filter < filters.size(); ++filter) add_stays(filters[filter], stays);
    std::stable_sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) { return a.saved * b.bytes > b.saved * a.bytes; });
    bool any = false;
    for (const Stay& stay : stays) any = keep(stay) || any;
    if (any) leave_out();
    Result result;
    if (together_) result.moved = bring_together();
    if (together_) keep_gradients();
    result.left_out = take_out();
    return result;
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
  const bool alike_;             ///< filters packed for the forward pass serve data gradients, too
  const bool together_;          ///< steps that pack are brought together
  std::vector<Index> live_;      ///< bytes at each time
  std::vector<Index> home_;      ///< of each buffer: the one that its filter stays in; -1: it is as it was
  std::vector<char> left_out_;   ///< of each step

  Buffer& buffer(Index id) { return item(buffers_, id); }
  /// Of each filter, and of each direction where layouts differ: its packings, by time.
  std::vector<std::vector<Packing>> find_packings() {
    std::map<std::pair<Index, Op>, std::map<Index, Index>> found;   // how often, by the first copy's buffer
    for (const Step& s : steps_)
      if (is_packing(s.op)) ++found[{s.layer, alike_ ? Op::pack_forward : s.op}][s.packed - buffer(s.packed).copy];
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
    const Index offset = place_for(stay);
    if (offset < 0) return false;
    add_life(stay, -1);
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
  /// A place in the arena that is free for the filter as long as it stays; -1: there is none, or more bytes would live at once than do at the peak.
  Index place_for(const Stay& stay) {
    add_life(stay, -1);   // where the filter lies now is free
    bool fits = true;
    for (Index t = stay.life.begin; fits && t < stay.life.end; ++t) fits = item(live_, t) + stay.bytes <= arena_.lower_bound;
    add_life(stay, 1);
    return fits ? free_place(stay) : -1;
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
  /// Finds the steps that need not be done.
  void leave_out() {
    std::vector<Index> packed_at(buffers_.size(), -1);   // the step that packs a filter which stays
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& s = steps_[i];
      const Index home = s.packed < 0 ? -1 : item(home_, s.packed);
      if (home < 0) continue;
      s.packed = home;
      Index& at = item(packed_at, home);
      if (is_packing(s.op) && at >= 0) {
        if (s.op == Op::pack_forward) item(steps_, at).op = s.op;   // serves both
        left_out_[i] = 1;
      }
      if (at < 0) at = static_cast<Index>(i);
    }
  }
  /// Moves steps that pack a filter once behind earlier ones that do.
  std::vector<MovedStep> bring_together() {
    std::vector<Index> times(buffers_.size(), 0);   // how often each is packed
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (is_packing(steps_[i].op) && !left_out_[i]) ++item(times, steps_[i].packed);
    std::vector<MovedStep> moved;
    Index since = -1, end = -1;   // when the first of the steps at hand packs, and the place behind the last
    for (Index i = 0; i < static_cast<Index>(steps_.size()); ++i) {
      const Step& s = item(steps_, i);
      if (!is_packing(s.op) || item(left_out_, i) || item(times, s.packed) > 1 || buffer(s.packed).copies > 1) continue;
      if (end >= 0 && extend_back_to(s.packed, since)) {
        item(steps_, i).stream = item(steps_, end - 1).stream;
        if (end < i) {
          moved.push_back({i, end});
          move_step(steps_, moved.back());
          move_step(left_out_, moved.back());
        }
        ++end;
      } else {
        since = buffer(s.packed).first, end = i + 1;
      }
    }
    return moved;
  }
  /// Has a filter be there from a time on, if there is room. Whether it is.
  bool extend_back_to(Index id, Index since) {
    const Buffer& b = buffer(id);
    return b.first <= since || extend_life(id, over_loops({since, b.last}));
  }
  /// Has a buffer live longer, if there is room. Whether it does.
  bool extend_life(Index id, Range life) {
    Buffer& b = buffer(id);
    const Stay stay{.packings = {{id, 1}}, .life = life, .saved = 0, .bytes = b.bytes};
    const Index offset = place_for(stay);
    if (offset < 0) return false;
    add_life(stay, -1);
    b.first = life.begin, b.last = life.end, b.offset = offset;
    add_life(stay, 1);
    return true;
  }
  /// Has filter gradients stay where they are made until those of some layers behind are made.
  void keep_gradients() {
    constexpr std::size_t most = 44;   // that one kernel unpacks (backend/cudnn/loops/filter.hpp)
    std::vector<char> seen(buffers_.size(), 0);
    std::vector<Index> together;
    for (const Step& s : steps_) {
      if (s.op != Op::backward_parameters || s.scratch < 0 || buffer(s.scratch).copies > 1 || std::exchange(item(seen, s.scratch), 1)) continue;
      const Index until = buffer(s.scratch).last;
      const bool stay = together.size() < most && std::all_of(together.begin(), together.end(), [&](Index id) {
                          return buffer(id).last >= until || extend_life(id, {buffer(id).first, until});
                        });
      if (!stay) together.clear();
      together.push_back(s.scratch);
    }
  }
  std::vector<LeftOutStep> take_out() {
    std::vector<LeftOutStep> list;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (left_out_[i]) list.push_back({static_cast<Index>(i), steps_[i]});
      else steps_[kept++] = steps_[i];
    steps_.resize(kept);
    return list;
  }
};
}   // namespace detail
}   // namespace lrcnn
