#pragma once
// Which filter gradients are unpacked together.
//
// A backend may leave a filter gradient in its own layout, in the step's scratch memory, and unpack several at once. Each is unpacked before a
// step writes to its memory, and before another gradient of the same layer is made.
#include <lrcnn/plan/order.hpp>
namespace lrcnn {
/// Steps whose gradients are unpacked together, before step `at`.
struct Unpacking {
  std::size_t at = 0;
  std::vector<std::size_t> steps{};
  bool overlaps = false;   ///< whether step `at` touches the memory that they are unpacked from
};
/// Of steps [begin, end), which are done in their order. `keeps(i)`: whether step i, which makes a filter gradient in scratch memory, can leave
/// it there. Post: sets of two or more; the others are unpacked by their steps. The last may be unpacked at `end`
template <class F>
std::vector<Unpacking> unpackings_of(const Plan& plan, std::size_t begin, std::size_t end, F keeps) {
  std::vector<Unpacking> list;
  std::vector<detail::Accesses> pending;
  Unpacking next;
  const auto close = [&](std::size_t at, bool overlaps) {
    next.at = at, next.overlaps = overlaps;
    if (next.steps.size() > 1) list.push_back(next);
    next.steps.clear(), pending.clear();
  };
  for (std::size_t i = begin; i < end; ++i) {
    const Step& step = plan.steps[i];
    const detail::Accesses touched(plan, step);
    const auto any = [&](auto conflicts) { return std::any_of(pending.begin(), pending.end(), conflicts); };
    if (any([&](const detail::Accesses& unpacked) { return unpacked.conflicts(touched); }))
      close(i, any([&](const detail::Accesses& unpacked) { return unpacked.overlaps(touched); }));
    if (step.op != Op::backward_parameters || step.scratch < 0 || !keeps(i)) continue;
    next.steps.push_back(i), pending.push_back(detail::Accesses::of_unpacking(plan, step));
  }
  close(end, false);   // no step is there
  return list;
}
}   // namespace lrcnn
