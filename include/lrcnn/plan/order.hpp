#pragma once
// Which steps of different streams must wait for each other.
//
// Within a stream steps are done in their order. A step that touches bytes which an earlier step of another stream writes,
// or that writes bytes which an earlier one touches, waits for it; so results are those of one stream, to the bit. The
// gradient of a layer's parameters counts as one such place, and so does the loss.
#include <lrcnn/plan/plan.hpp>
namespace lrcnn {
namespace detail {
/// A place that a step touches.
struct Access {
  Index begin = 0, end = 0;   ///< bytes of the arena
  Ref ref{};                  ///< for pieces of tensors
  bool writes = false;
  bool operator()(const Access& o) const {
    if (!(writes || o.writes) || begin >= o.end || o.begin >= end) return false;
    const bool alike = ref && ref.buffer == o.ref.buffer && ref.offset == o.ref.offset && ref.tensor == o.ref.tensor &&
                       ref.held_images == o.ref.held_images && ref.held_rows == o.ref.held_rows;
    return !alike || (!intersect(ref.rows, o.ref.rows).empty() && !intersect(ref.images, o.ref.images).empty());
  }
};
struct Accesses {
  std::array<Access, 11> list{};
  std::size_t count = 0;
  Index gradient = -1;   ///< layer whose parameter gradient is written
  bool loss = false;     ///< is added to the step's
  Accesses() = default;
  Accesses(const Plan& plan, const Step& step) {
    const bool backward = is_backward(step.op);
    piece(plan, step.x, false, false);
    piece(plan, step.other, false, false);
    piece(plan, step.y, false, !backward);
    piece(plan, step.dy, false, false);
    piece(plan, step.dx, false, true);
    piece(plan, step.saved, true, !backward);
    whole(plan, step.packed, is_packing(step.op));
    whole(plan, step.scratch, true);
    whole(plan, step.workspace, true);
    whole(plan, step.statistics, step.op == Op::statistics);
    whole(plan, step.sums, writes_sums(step));
    if (step.op == Op::backward_parameters || step.op == Op::backward_sums) gradient = step.layer;
    loss = step.op == Op::loss;
  }
  /// What is touched where a step's filter gradient is unpacked.
  static Accesses of_unpacking(const Plan& plan, const Step& step) {
    Accesses a;
    a.whole(plan, step.scratch, false);
    a.gradient = step.layer;
    return a;
  }
  bool conflicts(const Accesses& o) const { return (gradient >= 0 && gradient == o.gradient) || (loss && o.loss) || overlaps(o); }
  /// Whether there are bytes of the arena that both touch, one of them to write.
  bool overlaps(const Accesses& o) const {
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < o.count; ++k)
        if (list[i](o.list[k])) return true;
    return false;
  }

 private:
  void add(const Plan& plan, Index buffer, Index offset, Index bytes, const Ref& ref, bool writes) {
    const Index begin = item(plan.buffers, buffer).offset + offset;
    list[count++] = {begin, begin + bytes, ref, writes};
  }
  void piece(const Plan& plan, const Ref& ref, bool saved, bool writes) {
    if (ref) add(plan, ref.buffer, ref.offset, piece_bytes(plan, ref, saved), ref, writes);
  }
  void whole(const Plan& plan, Index buffer, bool writes) {
    if (buffer >= 0) add(plan, buffer, 0, item(plan.buffers, buffer).bytes, {}, writes);
  }
};
}   // namespace detail
/// Streams that a plan's steps are on.
inline Index stream_count(const Plan& plan) {
  Index count = 1;
  for (const Step& step : plan.steps) count = std::max(count, step.stream + 1);
  return count;
}
namespace detail {
/// waits_of() where there are several streams, compiled where LRCNN_PRECOMPILED says (precompiled/training.hpp).
template <class = void>
std::vector<std::vector<Index>> waits_of_streams(const Plan& plan) {
  const std::size_t streams = static_cast<std::size_t>(stream_count(plan)), steps = plan.steps.size();
  std::vector<std::vector<Index>> waits(steps);
  std::vector<Accesses> accesses;
  accesses.reserve(steps);
  for (const Step& step : plan.steps) accesses.emplace_back(plan, step);
  using Reached = std::vector<Index>;   // of each stream, the last step that is known to be done
  std::vector<Reached> known(streams, Reached(streams, -1)), at(steps);
  std::vector<std::vector<Index>> on(streams);
  for (std::size_t i = 0; i < steps; ++i) {
    const auto own = static_cast<std::size_t>(plan.steps[i].stream);
    for (std::size_t other = 0; other < streams; ++other) {
      if (other == own) continue;
      for (auto j = on[other].rbegin(); j != on[other].rend() && *j > known[own][other]; ++j) {
        if (!accesses[i].conflicts(item(accesses, *j))) continue;
        waits[i].push_back(*j);
        for (std::size_t s = 0; s < streams; ++s) known[own][s] = std::max(known[own][s], item(at, *j)[s]);
        break;
      }
    }
    known[own][own] = static_cast<Index>(i);
    at[i] = known[own];
    on[own].push_back(static_cast<Index>(i));
  }
  return waits;
}
}   // namespace detail
/// For each step the steps of other streams that it waits for, of each stream one at most. What follows from other waits is
/// left out.
inline std::vector<std::vector<Index>> waits_of(const Plan& plan) {
  return stream_count(plan) > 1 ? detail::waits_of_streams<>(plan) : std::vector<std::vector<Index>>(plan.steps.size());
}
}   // namespace lrcnn
