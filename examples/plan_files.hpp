#pragma once
// Files that show a plan: a page for a browser, drawings of its memory and of its slabs.
#include "known_names.hpp"
#include "page/plan_page.hpp"
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/plan/profile.hpp>
#include <lrcnn/policy/ready_made.hpp>
/// Names of files; empty: not asked for.
struct PlanFiles {
  std::string html, svg, slabs;
  bool any() const { return !html.empty() || !svg.empty() || !slabs.empty(); }
};
/// Writes those that are asked for. `facts`: the names of network, device and what the policy was chosen for. `against`: a plan whose slabs are
/// drawn beside those of the plan; or nullptr.
/// Errors: lrcnn::DataError naming the file if it cannot be written. Each file is whole, or is as it was.
inline void write_files(const PlanFiles& files, page::PageFacts facts, const lrcnn::Plan& plan, const lrcnn::Costs& costs,
                        const lrcnn::Plan* against) {
  using namespace lrcnn;
  const auto write = [](const std::string& path, const std::string& text) {
    if (!path.empty()) write_file_atomically(path, std::as_bytes(std::span(text)));
  };
  if (!files.slabs.empty()) write(files.slabs, page::slab_drawing(plan, against).alone(page::style));
  if (files.html.empty() && files.svg.empty()) return;
  const PolicySpec layers = Policy<FastestConv, Workspace<64_MiB>>::value;
  const Plan column = make_plan(plan.table, layers, plan.target, plan.options);
  const page::MemoryOverTime of_column(column, costs), memory(plan, costs);
  if (!files.svg.empty()) write(files.svg, page::memory_chart(plan, memory, &of_column, "layer by layer").alone(page::style));
  if (files.html.empty()) return;
  facts.of_column = &of_column;
  facts.column = {"column", column.arena.bytes, of_column.seconds()};
  const Frontier frontier = find_frontier(plan.table, Policy<Fit<1>>::value, plan.target, plan.options, costs);
  facts.frontier = &frontier;
  StepCosts of_steps(costs, plan.table, plan.target);
  for (const ReadyMadePolicy& p : ready_made_policies) {
    if (!facts.network.starts_with(p.name.substr(0, p.name.find(':')))) continue;
    try {
      facts.ready.push_back({std::string(p.name), arena_size(plan.table, p.policy, plan.target, plan.options).bytes,
                             plan_seconds(plan.table, p.policy, plan.target, plan.options, of_steps)});
    } catch (const PlanError&) {   // for another depth, or a larger input
    }
  }
  write(files.html, page::plan_page(plan, costs, facts));
}
