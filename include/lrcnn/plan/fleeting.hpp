#pragma once
// What steps make for another one alone.
#include <lrcnn/plan/order.hpp>
namespace lrcnn {
namespace detail {
/// Bytes of a buffer that hold what was written to them at some time, and nothing newer.
class OldBytes {
 public:
  OldBytes(const Access& written, const Ref& ref) : buffer_(ref.buffer) {
    each_image(written, [&](const Range& bytes) { old_.push_back(bytes); });
  }
  bool empty() const { return old_.empty(); }
  bool touches(const Access& other) const {
    bool found = false;
    each_image(other, [&](const Range& bytes) {
      found = found || std::any_of(old_.begin(), old_.end(), [&](const Range& old) { return !intersect(old, bytes).empty(); });
    });
    return found;
  }
  /// Something newer is written.
  void remove(const Access& other) {
    each_image(other, [&](const Range& bytes) {
      std::vector<Range> left;
      for (const Range& old : old_)
        for (const Range& rest : {intersect(old, {old.begin, bytes.begin}), intersect(old, {bytes.end, old.end})})
          if (!rest.empty()) left.push_back(rest);
      old_ = std::move(left);
    });
  }

 private:
  /// Calls f with the bytes of each image's rows that are touched in the buffer. Rows of an image lie one after the other.
  template <class F>
  void each_image(const Access& a, F f) const {
    if (a.ref.buffer != buffer_) return;
    const Index rows = a.ref.held_rows.size(), row = (a.end - a.begin) / std::max<Index>(1, a.ref.held_images.size() * rows);
    if (a.ref.whole()) return f({a.begin, a.end});
    for (Index image = a.ref.images.begin; image < a.ref.images.end; ++image) {
      const Index first = a.begin + ((image - a.ref.held_images.begin) * rows - a.ref.held_rows.begin) * row;
      f({first + a.ref.rows.begin * row, first + a.ref.rows.end * row});
    }
  }
  Index buffer_;
  std::vector<Range> old_{};
};
}   // namespace detail
/// For each buffer of a plan, the steps that name pieces of tensors in it, in their order.
inline std::vector<std::vector<std::size_t>> steps_by_buffer(const Plan& plan) {
  std::vector<std::vector<std::size_t>> list(plan.buffers.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    for (const Ref* ref : {&step.x, &step.other, &step.y, &step.dy, &step.dx, &step.saved})
      if (*ref && (item(list, ref->buffer).empty() || item(list, ref->buffer).back() != i)) item(list, ref->buffer).push_back(i);
  }
  return list;
}
/// Whether nobody but step `reader` behind it reads the rows (y) or the saved state that step `i` writes. What other buffers have at the same place
/// is not read for them.
/// Pre: the target's maps have their channels last; `by_buffer` is steps_by_buffer(plan)
inline bool is_fleeting(const Plan& plan, std::size_t i, Ref Step::*what, std::size_t reader,
                        const std::vector<std::vector<std::size_t>>& by_buffer) {
  const Ref made = plan.steps[i].*what;
  if (!made || made.buffer == plan.results.output.buffer || made.buffer == plan.results.input_gradient.buffer) return false;
  Step writing;
  writing.op = Op::forward;
  writing.*what = made;
  detail::OldBytes old(detail::Accesses(plan, writing).list[0], made);
  const std::vector<std::size_t>& steps = item(by_buffer, made.buffer);
  for (auto k = std::upper_bound(steps.begin(), steps.end(), i); k != steps.end() && !old.empty(); ++k) {
    const Step& step = plan.steps[*k];
    const detail::Accesses touched(plan, step);
    const std::span<const detail::Access> list(touched.list.data(), touched.count);
    for (const detail::Access& a : list)
      if (*k != reader && (!a.writes || step.op == Op::add) && old.touches(a)) return false;
    for (const detail::Access& a : list)
      if (a.writes) old.remove(a);
  }
  return true;
}
/// For each step, whether a backend that does the steps behind it along need not make what it makes:
/// - the output of a norm, which nobody but the join behind it reads;
/// - the mask bits of a convolution's ReLU, and the winners of the max pooling behind it, which has no output, where the backward steps of pooling
///   and ReLU come next, and nobody but they reads them.
/// Pre: the target's maps have their channels last
inline std::vector<char> fleeting_steps(const Plan& plan) {
  std::vector<char> list(plan.steps.size(), 0);
  const auto by_buffer = steps_by_buffer(plan);
  const auto is = [&](std::size_t i, Op op, Kind kind) {
    if (i >= list.size()) return false;
    const Step& step = plan.steps[i];
    return step.op == op && step.layer >= 0 && plan.table.node(step.layer).layer.kind == kind;
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Step& step = plan.steps[i];
    if (is(i, Op::forward, Kind::norm) && is(i + 1, Op::forward, Kind::sum)) list[i] = is_fleeting(plan, i, &Step::y, i + 1, by_buffer);
    if (!step.activates || !step.saved || !is(i + 1, Op::forward, Kind::max_pool) || !is(i + 2, Op::backward_data, Kind::max_pool) ||
        !is(i + 3, Op::backward_data, Kind::activation))
      continue;
    const bool own = plan.steps[i + 1].saved == plan.steps[i + 2].saved && step.saved == plan.steps[i + 3].saved && !plan.steps[i + 1].y;
    if (own && is_fleeting(plan, i, &Step::saved, i + 3, by_buffer) && is_fleeting(plan, i + 1, &Step::saved, i + 2, by_buffer))
      list[i] = list[i + 1] = 1;
  }
  return list;
}
}   // namespace lrcnn
