#pragma once
// What a step makes for the next one alone.
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
/// Whether nobody but the step behind it reads the rows (y) that step `i` writes. What other buffers have at the same place is not read for them.
/// Pre: the target's maps have their channels last
inline bool is_fleeting(const Plan& plan, std::size_t i) {
  const Ref made = plan.steps[i].y;
  if (!made || made.buffer == plan.results.output.buffer || made.buffer == plan.results.input_gradient.buffer) return false;
  Step writing;
  writing.op = Op::copy;
  writing.y = made;
  detail::OldBytes old(detail::Accesses(plan, writing).list[0], made);
  for (std::size_t k = i + 2; k < plan.steps.size() && !old.empty(); ++k) {
    const detail::Accesses touched(plan, plan.steps[k]);
    const std::span<const detail::Access> list(touched.list.data(), touched.count);
    for (const detail::Access& a : list)
      if ((!a.writes || plan.steps[k].op == Op::add) && old.touches(a)) return false;
    for (const detail::Access& a : list)
      if (a.writes) old.remove(a);
  }
  return true;
}
/// For each step, whether it is a norm's, and nobody but the join behind it reads what it writes. Pre: as is_fleeting()
inline std::vector<char> norms_for_joins(const Plan& plan) {
  std::vector<char> list(plan.steps.size(), 0);
  const auto is = [&](std::size_t i, Kind kind) {
    const Step& step = plan.steps[i];
    return step.op == Op::forward && step.layer >= 0 && plan.table.node(step.layer).layer.kind == kind;
  };
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i] = is(i, Kind::norm) && is(i + 1, Kind::sum) && is_fleeting(plan, i);
  return list;
}
}   // namespace lrcnn
