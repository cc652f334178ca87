#pragma once
// From a step's Refs to views of memory: which is all that a backend sees of a plan.
//
// Memory may be a device's: nothing here reads or writes it. With a null arena the views have shapes and no memory,
// which is enough to ask what a backend would do.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/plan/plan.hpp>
namespace lrcnn {
/// Where a plan's buffers and its network's parameters are.
template <class T>
struct Bases {
  std::byte* arena = nullptr;
  const master_t<T>* parameters = nullptr;   ///< the flat buffer (network/parameters.hpp)
  master_t<T>* gradients = nullptr;          ///< likewise; null without training
  std::byte* offloaded = nullptr;            ///< the larger memory; null if the plan has nothing there
  const RunKey* run = nullptr;               ///< what the masks of dropouts are drawn from, now and whenever a step is run
};
namespace detail {
template <class E>
View<E> piece(View<E> all, const Ref& ref) {
  all.data += (ref.images.begin - ref.held_images.begin) * all.stride_n;
  all.n = ref.images.size();
  return all.slice(ref.rows);
}
/// `offloaded`: the larger memory, whose addresses in the plan are behind the arena's.
template <class E>
E* at_buffer(const Plan& plan, std::byte* arena, Index buffer, Index offset = 0, std::byte* offloaded = nullptr) {
  const Buffer& b = item(plan.buffers, buffer);
  return reinterpret_cast<E*>((b.role == Role::offloaded ? offloaded + b.offset - plan.arena.bytes : arena + b.offset) + offset);
}
}   // namespace detail
/// The piece of a tensor that a Ref names; an empty view for none.
template <class T>
View<T> view_of(const Plan& plan, const Ref& ref, std::byte* arena, std::byte* offloaded = nullptr) {
  if (!ref) return {};
  const Shape& shape = plan.table.shape(ref.tensor);
  return detail::piece(dense_view(detail::at_buffer<T>(plan, arena, ref.buffer, ref.offset, offloaded), ref.held_images.size(), shape.c,
                                  ref.held_rows, shape.w, plan.target.block(shape.c)),
                       ref);
}
/// The saved state that a Ref names, in the layout of saved_view().
inline View<std::uint8_t> saved_view_of(const Plan& plan, const Ref& ref, std::byte* arena) {
  if (!ref) return {};
  const Node& node = plan.table.node(ref.tensor - 1);
  return detail::piece(saved_view(detail::at_buffer<std::uint8_t>(plan, arena, ref.buffer, ref.offset), node.layer, ref.held_images.size(),
                                  node.out.c, ref.held_rows, node.out.w, plan.target.block(node.out.c)),
                       ref);
}
/// The operands of a step. `list` is parameters_of(plan.table).
template <class T>
Operands<T> operands_of(const Plan& plan, const Step& step, const std::vector<Parameter>& list, const Bases<T>& at) {
  Operands<T> o;
  o.op = step.op;
  o.accumulate = step.accumulate;
  o.accumulate_parameters = step.accumulate_parameters;
  o.operand = step.operand;
  o.part = step.part;
  o.conv_algorithm = step.conv_algorithm;
  o.x = view_of<T>(plan, step.x, at.arena, at.offloaded);
  o.other = view_of<T>(plan, step.other, at.arena, at.offloaded);
  o.y = view_of<T>(plan, step.y, at.arena, at.offloaded);
  o.dy = view_of<T>(plan, step.dy, at.arena, at.offloaded);
  o.dx = view_of<T>(plan, step.dx, at.arena, at.offloaded);
  o.saved = saved_view_of(plan, step.saved, at.arena);
  if (step.packed >= 0) o.packed = detail::at_buffer<T>(plan, at.arena, step.packed);
  if (step.scratch >= 0) o.scratch = detail::at_buffer<T>(plan, at.arena, step.scratch);
  if (step.workspace >= 0) {
    o.workspace = detail::at_buffer<std::byte>(plan, at.arena, step.workspace);
    o.workspace_bytes = item(plan.buffers, step.workspace).bytes;
  }
  if (step.layer < 0) return o;
  o.node = &plan.table.node(step.layer);
  o.layer = step.layer;
  o.first_image = (step.dx ? step.dx : step.x).images.begin;
  if (plan.options.training) o.run = at.run;
  const Index channels = o.node->in.c;
  if (step.statistics >= 0)
    o.statistics =
        detail::at_buffer<double>(plan, at.arena, step.statistics) + step.set * Statistics::doubles(statistics_units(o.node->layer.norm, channels));
  if (step.sums >= 0) o.sums = detail::at_buffer<double>(plan, at.arena, step.sums) + step.set * sums_doubles(o.node->layer, channels);
  if (step.activates) o.activation = &plan.table.node(step.layer + 1);
  std::size_t p = 0;
  for (const Parameter& parameter : list) {
    if (parameter.layer != step.layer) continue;
    o.parameters[p] = at.parameters + parameter.offset;
    o.d_parameters[p] = at.gradients ? at.gradients + parameter.offset : nullptr;
    ++p;
  }
  return o;
}
}   // namespace lrcnn
