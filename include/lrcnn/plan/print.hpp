#pragma once
// Plans for people: what is cut how, what is kept, and where the bytes are.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <optional>
#include <ostream>
namespace lrcnn {
namespace detail {
inline std::string range_text(Range r) { return "[" + std::to_string(r.begin) + "," + std::to_string(r.end) + ")"; }
inline std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}
inline std::string ref_text(const Ref& ref) {
  return "t" + std::to_string(ref.tensor) + " " + range_text(ref.rows) + " of buffer " + std::to_string(ref.buffer);
}
}   // namespace detail
/// One line: what the step does, on which rows, from and to which buffers.
inline std::string to_string(const Step& step, const Table& table) {
  std::string text = detail::padded(std::string(op_name(step.op)), 20);
  std::string layer = step.layer < 0 ? "" : std::string(table.node(step.layer).layer.name.view());
  if (step.activates) layer += "+" + std::string(table.node(step.layer + 1).layer.name.view());
  text += detail::padded(std::move(layer), 18);
  text += "stage " + std::to_string(step.stage) + " slab " + std::to_string(step.slab) + "  ";
  const std::array<std::pair<const char*, const Ref*>, 6> refs{
      {{"x", &step.x}, {"other", &step.other}, {"y", &step.y}, {"dy", &step.dy}, {"dx", &step.dx}, {"saved", &step.saved}}};
  for (const auto& [name, ref] : refs)
    if (*ref) text += std::string(" ") + name + " = " + detail::ref_text(*ref);
  return text;
}
/// Bytes that the network layer by layer needs, if a plan by another policy needs as many or more: then what it computes twice is for nothing.
inline std::optional<Index> cheaper_column(const Plan& plan) {
  PolicySpec column;
  column.conv_algorithm = plan.policy.conv_algorithm, column.workspace_bytes = plan.policy.most_workspace_bytes(),
  column.precision = plan.policy.precision;
  if (plan.policy == column) return std::nullopt;
  const Index bytes = arena_size(plan.table, column, plan.target, plan.options).bytes;
  return bytes <= plan.arena.bytes ? std::optional(bytes) : std::nullopt;
}
/// The summary: policy, peak, stages with their cuts.
inline std::ostream& operator<<(std::ostream& out, const Plan& plan) {
  out << to_string(plan.policy) << "\n  input " << to_string(plan.table.input) << ", " << plan.table.size() << " layers, " << plan.steps.size()
      << " steps, " << plan.buffers.size() << " buffers\n  peak " << format_bytes(plan.arena.bytes) << " (no placement can need less than "
      << format_bytes(plan.arena.lower_bound) << "), workspace " << format_bytes(plan.policy.most_workspace_bytes());
  if (plan.arena.offloaded > 0) out << ", offloaded beside it " << format_bytes(plan.arena.offloaded);
  out << "\n";
  if (const auto bytes = cheaper_column(plan))
    out << "  Column, which computes nothing twice, needs " << (*bytes < plan.arena.bytes ? "less, " : "no more, ") << format_bytes(*bytes)
        << "; take it, or other slabs and checkpoints\n";
  for (const Stage& stage : plan.stages) {
    const Shape& in = plan.table.shape(stage.inputs[0]);
    const Shape& top = plan.table.shape(stage.last);
    out << "  " << detail::padded(detail::stage_name(plan.table, stage), 34) << detail::padded(to_string(stage.partition), 22) << to_string(in)
        << " -> " << to_string(top);
    const Schedule& rows = plan.options.training ? stage.backward : stage.forward;
    if (rows.slabs() > 1) {
      Index least = in.h, most = 0;
      for (Index n = 0; n < rows.slabs(); ++n) {
        const Index count = rows.at(n, 0).hold.size();
        least = std::min(least, count);
        most = std::max(most, count);
      }
      out << ", slabs of " << least << " to " << most << " input rows";
    }
    out << (stage.makes_input ? ", which makes the next section's input again\n" : "\n");
  }
  return out;
}
/// The arena as a map of memory (columns) over time (lines).
/// A character stands for 1/`width` of the arena; letters name the role of what is live there.
inline void print_memory(std::ostream& out, const Plan& plan, Index lines = 24, Index width = 72) {
  Index end = 0;
  for (const Buffer& b : plan.buffers) end = std::max(end, b.last);
  for (const RoleText& text : role_texts)
    if (text.role != Role::offloaded) out << (text.role == role_texts[0].role ? "  " : ", ") << text.letter << " " << text.name;
  out << "\n";
  for (Index line = 0; line < lines; ++line) {
    const Index now = line * std::max<Index>(1, end - 1) / std::max<Index>(1, lines - 1);
    std::string map(static_cast<std::size_t>(width), '.');
    for (const Buffer& b : plan.buffers)
      if (b.first <= now && now < b.last && b.bytes > 0 && b.role != Role::offloaded)
        for (Index c = b.offset * width / plan.arena.bytes; c < ceil_div((b.offset + b.bytes) * width, plan.arena.bytes); ++c)
          item(map, std::min(c, width - 1)) = text_of(b.role).letter;
    out << "  |" << map << "|\n";
  }
}
/// All steps, one a line.
inline void print_steps(std::ostream& out, const Plan& plan) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) out << i << "  " << to_string(plan.steps[i], plan.table) << "\n";
}
}   // namespace lrcnn
