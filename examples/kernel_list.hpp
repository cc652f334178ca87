#pragma once
// Which kernels would carry a plan's steps out on this machine. Nothing is run, and no memory is taken for the plan.
#include <lrcnn/lrcnn.hpp>
#include <ostream>
#ifdef LRCNN_WITH_ONEDNN
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/backend/operands.hpp>
#include <iomanip>
#endif
/// Prints what runs, then a line for all steps that do the same to the same layer by the same kernel: how many they are, how many rows
/// they make at a time, the kernel as the library calls it ("host": our own loops), what they do, and the layer.
/// Errors: lrcnn::Error if the plan cannot be had, or if this build has no oneDNN.
inline void print_kernels(std::ostream& out, const lrcnn::Table& table, const lrcnn::PolicySpec& policy) {
  using namespace lrcnn;
#ifdef LRCNN_WITH_ONEDNN
  struct Line {
    std::string kernel, op, layer;
    Index steps = 0;
    Range rows{};   ///< the fewest and the most
  };
  Onednn backend(0, {}, {.report_slow = false});
  out << backend.describe() << "\n\n steps       rows  by\n";
  Plan plan = make_plan(table, policy, Onednn::target);
  plan.target = backend.layout();   // the same bytes, in this machine's blocks
  const auto list = parameters_of(table);
  auto* const somewhere = reinterpret_cast<std::byte*>(plan.target.alignment);   // shapes are asked for, nothing is read
  std::vector<Line> lines;
  Index convolutions = 0, slow = 0;
  for (const Step& step : plan.steps) {
    const auto o = operands_of<float>(plan, step, list, {somewhere, reinterpret_cast<const float*>(somewhere), reinterpret_cast<float*>(somewhere)});
    const bool asks = step.op != Op::load && step.op != Op::store && step.op != Op::loss;   // the others are no backend's steps
    const std::string kernel = asks ? backend.implementation(o) : "host";
    const Index rows = is_packing(o.op) ? 0 : std::max({o.y.rows, o.dy.rows, o.y.rows + o.dy.rows > 0 ? 0 : o.x.rows});
    if (o.node && o.node->layer.kind == Kind::conv && rows > 0) ++convolutions, slow += kernel == "host";
    const std::string op(op_name(o.op)), layer = o.node ? " of " + std::string(o.node->layer.name.view()) : "";
    const auto known = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.kernel == kernel && l.op == op && l.layer == layer; });
    if (known == lines.end()) lines.push_back({kernel, op, layer, 1, {rows, rows}});
    else ++known->steps, known->rows = {std::min(known->rows.begin, rows), std::max(known->rows.end, rows)};
  }
  for (const Line& l : lines) {
    const std::string rows = l.rows.end == 0      ? "-"
                             : l.rows.size() == 0 ? std::to_string(l.rows.end)
                                                  : std::to_string(l.rows.begin) + " to " + std::to_string(l.rows.end);
    out << std::setw(6) << l.steps << std::setw(11) << rows << "  " << std::left << std::setw(24) << l.kernel << std::right << l.op << l.layer
        << "\n";
  }
  out << "\n" << slow << " of " << convolutions << " steps of convolutions would run in plain loops (host), which take some 20 times as long.\n";
#else
  static_cast<void>(out), static_cast<void>(table), static_cast<void>(policy);
  throw BackendError(error_text("this program was built without oneDNN",
                                "only oneDNN knows which kernels it has for a step; without it all run in plain loops",
                                "install libdnnl-dev, and build again"));
#endif
}
