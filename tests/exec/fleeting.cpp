// What is said to be made for one step alone can be destroyed behind that step, and nothing changes.
#include "exec/guarded_run.hpp"
#include "support/thorough.hpp"
#include <lrcnn/plan/fleeting.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Here = Reference<double, Target::all_channels>;
/// Writes NaN over what a step has made, behind the step that reads it, but not over what that one has written in its place.
struct Destroyer {
  std::byte* arena;
  const std::vector<char>& fleeting;
  void before(const Plan&, Index) {}
  void after(const Plan& plan, Index i) {
    if (i == 0 || !item(fleeting, i - 1)) return;
    const Step &step = item(plan.steps, i - 1), &next = item(plan.steps, i);
    const View<double> made = view_of<double>(plan, step.y, arena);
    for (Index n = 0; n < made.n; ++n)
      for (Index row = made.range().begin; row < made.range().end; ++row) {
        const bool written = next.y.buffer == step.y.buffer && next.y.images.contains({step.y.images.begin + n, step.y.images.begin + n + 1}) &&
                             next.y.rows.contains({row, row + 1});
        if (!written) std::fill_n(made.row(n, 0, row), made.stride_row(), std::numeric_limits<double>::quiet_NaN());
      }
  }
};
}   // namespace
TEST_CASE("fleeting: rows that only the next step reads can be destroyed behind it") {
  Index fleeting = 0, others = 0, behind_norms = 0, in_place = 0;
  const auto law = [&](auto& run) {
    const Plan& plan = run.executor.plan();
    std::vector<char> list(plan.steps.size(), 0);
    const auto by_buffer = steps_by_buffer(plan);
    for (std::size_t i = 0; i + 1 < plan.steps.size(); ++i) {
      // A forward step whose rows the next step reads. If that writes to the same buffer, then over what it reads.
      const Step &step = plan.steps[i], &next = plan.steps[i + 1];
      if (step.op != Op::forward || !step.y || next.op != Op::forward) continue;
      const bool over = next.y.buffer == step.y.buffer;
      if (over && (next.y.offset != step.y.offset || next.y.held_rows != step.y.held_rows || next.y.held_images != step.y.held_images)) continue;
      if (next.x.buffer != step.y.buffer && next.other.buffer != step.y.buffer) continue;
      list[i] = is_fleeting(plan, i, &Step::y, i + 1, by_buffer);
      (list[i] ? fleeting : others) += 1;
      in_place += list[i] && over;
      behind_norms += list[i] && plan.table.node(step.layer).layer.kind == Kind::norm && plan.table.node(next.layer).layer.kind == Kind::sum;
    }
    const auto plain = run.go(0xFF);
    const auto again = run.go(0xFF, Destroyer{const_cast<std::byte*>(run.executor.arena().data()), list});
    CHECK(again.loss == plain.loss);
    CHECK(same_bits(again.output, plain.output));
    CHECK(same_bits(again.gradients, plain.gradients));
    CHECK(same_bits(again.input_gradient, plain.input_gradient));
  };
  const std::size_t step = cases_to_do<std::size_t>(1, 6);
  const int cases = for_runs<Here>(70000, step, law) + for_graph_runs<Here>(72500, step, law);
  MESSAGE(cases, " plans, ", fleeting, " fleeting steps of ", fleeting + others, ", ", behind_norms, " of norms before joins, ", in_place,
          " written over by the step that reads them");
  CHECK(cases > 150);
  CHECK(std::min({fleeting, others, behind_norms, in_place}) > 20);
}
namespace {
/// Turns all bits of saved state over, behind the step that is said to be the only one that reads it.
struct BitDestroyer {
  std::byte* arena;
  const std::vector<std::vector<std::size_t>>& destroyed;   ///< behind each step: those that have made it
  void before(const Plan&, Index) {}
  void after(const Plan& plan, Index i) {
    for (const std::size_t made : item(destroyed, i)) {
      const Ref& ref = plan.steps[made].saved;
      std::byte* const first = arena + item(plan.buffers, ref.buffer).offset + ref.offset;
      std::transform(first, first + piece_bytes(plan, ref, true), first, [](std::byte b) { return ~b; });
    }
  }
};
}   // namespace
TEST_CASE("fleeting: saved state that only one step reads can be destroyed behind it") {
  Index fleeting = 0;
  const auto law = [&](auto& run) {
    const Plan& plan = run.executor.plan();
    std::vector<std::vector<std::size_t>> destroyed(plan.steps.size());
    const auto by_buffer = steps_by_buffer(plan);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const Step& step = plan.steps[i];
      if (step.op != Op::forward || !step.saved || !step.saved.whole()) continue;
      for (std::size_t reader = i + 1; reader < plan.steps.size(); ++reader) {
        if (!(plan.steps[reader].saved == step.saved)) continue;
        if (!is_backward(plan.steps[reader].op)) break;                  // it is made again first
        CHECK_FALSE(is_fleeting(plan, i, &Step::saved, i, by_buffer));   // nobody reads it
        if (!is_fleeting(plan, i, &Step::saved, reader, by_buffer)) break;
        destroyed[reader].push_back(i);
        ++fleeting;
        break;
      }
    }
    const auto plain = run.go(0xFF);
    const auto again = run.go(0xFF, BitDestroyer{const_cast<std::byte*>(run.executor.arena().data()), destroyed});
    CHECK(again.loss == plain.loss);
    CHECK(same_bits(again.gradients, plain.gradients));
    CHECK(same_bits(again.input_gradient, plain.input_gradient));
  };
  const std::size_t step = cases_to_do<std::size_t>(1, 6);
  const int cases = for_runs<Here>(73000, step, law) + for_graph_runs<Here>(73500, step, law);
  MESSAGE(cases, " plans, ", fleeting, " steps whose saved state one step reads");
  CHECK(cases > 150);
  CHECK(fleeting > 200);
}
