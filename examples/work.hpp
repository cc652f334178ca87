#pragma once
// The arithmetic of a plan, to compare plans by.
#include <lrcnn/plan/plan.hpp>
/// Multiply-adds of a step; of convolutions only, which are nearly all there are.
inline double work(const lrcnn::Plan& plan, const lrcnn::Step& step) {
  using namespace lrcnn;
  if (step.layer < 0 || plan.table.node(step.layer).layer.kind != Kind::conv || is_packing(step.op)) return 0;
  const Node& node = plan.table.node(step.layer);
  const Ref& rows = step.op == Op::forward ? step.y : step.dy;
  const Pair kernel = node.layer.window.kernel;
  return static_cast<double>(rows.images.size() * rows.rows.size() * node.out.w * node.out.c) *
         static_cast<double>(node.in.c / node.layer.groups * kernel.h * kernel.w);
}
/// Of all steps.
inline double work(const lrcnn::Plan& plan) {
  double sum = 0;
  for (const lrcnn::Step& step : plan.steps) sum += work(plan, step);
  return sum;
}
