#pragma once
// A plan's sections for people: what each does, what it keeps, and what it takes.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/plan/memory_over_time.hpp>
#include <lrcnn/plan/profile.hpp>
#include <ostream>
namespace lrcnn {
/// A section of a plan, from the network's input upward.
struct SectionLine {
  Range layers{};
  Partition partition{};   ///< as the policy says it
  Recompute recompute{};
  Index forward_slabs = 1, backward_slabs = 1;   ///< of rows and of images together, of the stage that has most
  Index kept = 0;                                ///< bytes that it leaves from its forward to its backward pass, tensors between sections included;
                                                 ///< of sections whose inputs are made again and those below them: all are the lowest one's
  Index peak = 0;                                ///< the most bytes that live in the whole arena while it runs
  double seconds = 0;                            ///< foretold, of its steps
  double share = 0;                              ///< of the whole step
};
/// Cost:    that of the plan's steps
inline std::vector<SectionLine> section_lines(const Plan& plan, const Costs& costs) {
  std::vector<SectionLine> lines;
  for (const Stage& stage : plan.stages) {
    if (stage.section >= static_cast<Index>(lines.size())) {
      SectionLine line{.layers = {stage.first, stage.last}};
      line.partition = plan.policy.partition(stage.partition_number);
      line.partition.input = stage.partition.input;   // as carried out
      line.recompute = plan.policy.recompute_in(line.partition);
      lines.push_back(line);
    }
    if (stage.makes_input) continue;   // it goes through layers of other sections
    SectionLine& line = item(lines, stage.section);
    line.layers = {std::min(line.layers.begin, stage.first), std::max(line.layers.end, stage.last)};
    const Index groups = ceil_div(group_images(plan.table, plan.policy), stage.partition.images);
    line.forward_slabs = std::max(line.forward_slabs, groups * stage.forward.slabs());
    line.backward_slabs = std::max(line.backward_slabs, groups * std::max<Index>(1, stage.backward.slabs()));
  }
  const auto lags = lags_of(plan);
  for (const std::vector<Stage>& together : by_section(plan.stages)) {
    const SectionProfile profile = profile_section(plan.table, plan.policy, plan.target, plan.options, together, lags);
    for (const SectionBuffer& b : profile.buffers)
      if (b.is_used() && !b.is_shared_workspace() && b.first < profile.forward_end && b.last > profile.forward_end)
        item(lines, together.front().section).kept += b.bytes;
  }
  const std::vector<LiveBytes> live = live_bytes(plan);
  StepCosts of_steps(costs, plan.table, plan.target);
  double all = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    SectionLine& line = item(lines, item(plan.stages, plan.steps[i].stage).section);
    const double seconds = of_steps.seconds(plan, plan.steps[i]);
    line.peak = std::max(line.peak, live[i].sum());
    line.seconds += seconds, all += seconds;
  }
  for (SectionLine& line : lines) line.share = all > 0 ? line.seconds / all : 0;
  return lines;
}
/// "conv1..relu2": the layers of a section.
inline std::string layers_text(const Table& table, Range layers) {
  const auto name = [&](Index l) { return std::string(table.node(l).layer.name.view()); };
  return layers.size() == 1 ? name(layers.begin) : name(layers.begin) + ".." + name(layers.end - 1);
}
/// A line for each section: layers, what the policy says, slabs in the forward and the backward pass, bytes kept, bytes at the peak while it
/// runs, and its share of the time that is foretold.
inline void print_sections(std::ostream& out, const Plan& plan, const Costs& costs) {
  const std::vector<SectionLine> lines = section_lines(plan, costs);
  std::vector<std::array<std::string, 6>> cells{{"section", "policy", "slabs", "kept", "peak", "time"}};
  for (const SectionLine& line : lines)
    cells.push_back({layers_text(plan.table, line.layers), to_string(line.partition),
                     std::to_string(line.forward_slabs) + (plan.options.training ? " / " + std::to_string(line.backward_slabs) : ""),
                     format_bytes(line.kept), format_bytes(line.peak), fixed_text(100 * line.share, 1) + " %"});
  std::array<std::size_t, 6> widths{};
  for (const auto& row : cells)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  for (const auto& row : cells) {
    std::string text;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string gap(widths[c] - row[c].size(), ' ');
      text += "  " + (c < 2 ? row[c] + gap : gap + row[c]);
    }
    out << text << "\n";
  }
}
}   // namespace lrcnn
