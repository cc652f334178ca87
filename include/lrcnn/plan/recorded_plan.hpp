#pragma once
// How a plan with its lists of steps is made.
#include <lrcnn/plan/packed_filters.hpp>
#include <lrcnn/plan/plan.hpp>
namespace lrcnn::detail {
/// Sink that keeps every step. Buffers are the measured ones, found again by their order.
class Record final : public Sink {
 public:
  Record(const std::vector<Buffer>& measured, std::vector<Step>& steps) : Sink(true), measured_(measured), steps_(steps) {}
  Index declare(Role role, Index stage, Index tensor, Index bytes, Index copies = 1) override {
    const Index id = static_cast<Index>(declared_);
    declared_ += static_cast<std::size_t>(copies);
    if (declared_ > measured_.size() || item(measured_, id).copies != copies || item(measured_, id).role != role ||
        item(measured_, id).stage != stage || item(measured_, id).tensor != tensor || item(measured_, id).bytes != bytes)
      throw PlanError(error_text("the recorded plan declares other buffers than the measured one (" + std::string(role_name(role)) + " of tensor " +
                                     std::to_string(tensor) + ")",
                                 "both follow one emitter", "report this network and policy as a defect"));
    return id;
  }
  void touch(Index) override {}
  void span(Index, Index) override {}
  void step(const Step& s) override {
    if (is_nothing(s)) return;
    if (static_cast<Index>(steps_.size()) == most_steps)
      throw PlanError(error_text("the plan would have more than " + std::to_string(most_steps) + " steps",
                                 "each slab of rows of each group of images has steps of its own",
                                 "use larger groups of images, fewer slabs, or a smaller batch"));
    steps_.push_back(s);
  }

 private:
  const std::vector<Buffer>& measured_;
  std::vector<Step>& steps_;
  std::size_t declared_ = 0;
};
template <class>
Plan recorded_plan(Table&& table, const PolicySpec& policy, const Target& target, const PlanOptions& options) {
  Plan plan{std::move(table), policy, target, options, {}, {}, {}, {}, {}, {}, {}};
  plan.stages = make_stages(plan.table, policy, target, group_images(plan.table, policy), options);
  auto measured = measure(plan.table, policy, target, options, plan.stages);
  plan.buffers = std::move(measured.buffers);
  plan.arena = measured.arena;
  Record sink{plan.buffers, plan.steps};
  plan.results = Emitter(plan.table, policy, target, options, plan.stages, sink).run();
  if (target.packs_weights || target.packs_transposed || target.packs_linear) {
    auto packed = PackedFilters(plan.buffers, plan.steps, measured.loops, plan.arena, target).run();
    plan.left_out = std::move(packed.left_out), plan.moved = std::move(packed.moved);
  }
  return plan;
}
}   // namespace lrcnn::detail
