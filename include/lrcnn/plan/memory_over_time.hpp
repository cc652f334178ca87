#pragma once
// What lives in a plan's arena at each of its steps: for pictures and for tables.
//
// Buffers' live intervals are of emission time, in which all turns of a loop are one. So every step of every slab has the time of the same
// step of the first turn.
#include <lrcnn/plan/plan.hpp>
namespace lrcnn {
/// Bytes that live at a step, by the number of their role.
struct LiveBytes {
  std::array<Index, role_texts.size()> by_role{};
  Index of(Role role) const { return by_role[static_cast<std::size_t>(role)]; }
  Index sum() const {
    Index all = 0;
    for (const Index bytes : by_role) all += bytes;
    return all;
  }
  friend bool operator==(const LiveBytes&, const LiveBytes&) = default;
};
namespace detail {
/// What tells a step from the others of its turn: operation, pass, layer, operand, and buffers, slabs' copies being one.
using StepMark = std::array<Index, 15>;
inline StepMark mark_of(const Step& s, const std::vector<Buffer>& buffers) {
  StepMark mark{static_cast<Index>(s.op), static_cast<Index>(s.pass), s.layer, s.operand};
  std::size_t place = 4;
  for (const Index id :
       {s.x.buffer, s.other.buffer, s.y.buffer, s.dy.buffer, s.dx.buffer, s.saved.buffer, s.statistics, s.sums, s.packed, s.scratch, s.workspace})
    mark[place++] = id < 0 ? -1 : id - item(buffers, id).copy;
  return mark;
}
/// Sink that notes the steps of one turn of each loop, by their time; or, once these are known, the time of every step. Those of later turns are
/// found again among those of the first, of which they are some: a first slab, say, takes over no rows.
class EmissionTimes final : public Sink {
 public:
  /// Pre: `buffers`, the plan's, and `first_turns` outlive the object.
  explicit EmissionTimes(const std::vector<Buffer>& buffers, const std::vector<StepMark>* first_turns = nullptr)
      : Sink(first_turns != nullptr), buffers_(buffers), first_turns_(first_turns) {}
  std::vector<StepMark> marks{};
  std::vector<Index> times{};
  Index declare(Role, Index, Index, Index, Index copies = 1) override { return (declared_ += copies) - copies; }
  void touch(Index) override {}
  void span(Index, Index) override {}
  void step(const Step& s) override {
    const StepMark mark = mark_of(s, buffers_);
    if (first_turns_ == nullptr) {
      marks.push_back(mark), ++now;
      return;
    }
    const auto same = std::find(first_turns_->begin() + now, first_turns_->end(), mark);
    const Index time = same == first_turns_->end() ? live_from(now, mark) : same - first_turns_->begin();
    if (same != first_turns_->end()) now = time + 1;
    if (!is_nothing(s)) times.push_back(time);
  }

 private:
  const std::vector<Buffer>& buffers_;
  const std::vector<StepMark>* first_turns_;
  Index declared_ = 0;
  /// A time from `since` on at which all of a step's buffers live: for a step that the first turn had not.
  Index live_from(Index since, const StepMark& mark) const {
    const auto lives = [&](Index t) {
      return std::all_of(mark.begin() + 4, mark.end(), [&](Index id) {
        return id < 0 || item(buffers_, id).role == Role::packed || (item(buffers_, id).first <= t && t < item(buffers_, id).last);
      });
    };
    const auto end = static_cast<Index>(first_turns_->size());
    Index time = since;
    while (time < end && !lives(time)) ++time;
    return time < end ? time : since;
  }
};
}   // namespace detail
/// The emission time of each step of a plan: its buffers live in [first, last) of such times.
inline std::vector<Index> step_times(const Plan& plan) {
  const auto run = [&](Sink& sink) { Emitter(plan.table, plan.policy, plan.target, plan.options, plan.stages, sink).run(); };
  detail::EmissionTimes first(plan.buffers);
  run(first);
  detail::EmissionTimes all(plan.buffers, &first.marks);
  run(all);
  for (const MovedStep& moved : plan.moved) {
    item(all.times, moved.from) = item(all.times, moved.to - 1);
    move_step(all.times, moved);
  }
  std::vector<Index> times;
  auto left_out = plan.left_out.begin();
  for (std::size_t i = 0; i < all.times.size(); ++i)
    if (left_out != plan.left_out.end() && left_out->place == static_cast<Index>(i)) ++left_out;
    else times.push_back(all.times[i]);
  return times;
}
/// What lives at each step. Post: the greatest sum is plan.arena.lower_bound; less where filters that stay packed (left_out) save it
inline std::vector<LiveBytes> live_bytes(const Plan& plan) {
  Index end = 0;
  for (const Buffer& b : plan.buffers) end = std::max(end, b.last);
  std::vector<LiveBytes> at(static_cast<std::size_t>(end + 1));   // changes first, then sums
  for (const Buffer& b : plan.buffers) {
    if (b.first >= b.last || b.role == Role::offloaded) continue;
    item(at, b.first).by_role[static_cast<std::size_t>(b.role)] += b.bytes;
    item(at, b.last).by_role[static_cast<std::size_t>(b.role)] -= b.bytes;
  }
  for (std::size_t t = 1; t < at.size(); ++t)
    for (std::size_t r = 0; r < role_texts.size(); ++r) at[t].by_role[r] += at[t - 1].by_role[r];
  std::vector<LiveBytes> live;
  for (const Index time : step_times(plan)) live.push_back(item(at, time));
  return live;
}
}   // namespace lrcnn
