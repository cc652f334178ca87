// The checker reports corrupted plans of networks that branch: as alone_checker_sensitivity.cpp, for steps of joins and norms.
#ifndef NDEBUG
#define NDEBUG
#endif
#include "plan/corrupted.hpp"
#include "support/random_graph.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
Corruption change(const char* name, std::function<bool(const Plan&, const Step&)> wanted, std::function<void(Step&)> apply) {
  return {name, [wanted, apply](Plan& plan, Dice& dice) {
            const Index i = some_step(plan, dice, [&](const Step& s) { return wanted(plan, s); });
            if (i >= 0) apply(plan.steps[static_cast<std::size_t>(i)]);
            return i >= 0;
          }};
}
Corruption change(const char* name, Op op, std::function<void(Step&)> apply) {
  return change(
      name, [op](const Plan&, const Step& s) { return s.op == op; }, apply);
}
bool join(const Plan& plan, const Step& s, Op op) { return s.op == op && s.layer >= 0 && is_join(plan.table.node(s.layer).layer); }
bool norm(const Plan& plan, const Step& s, Op op) { return s.op == op && s.layer >= 0 && plan.table.node(s.layer).layer.kind == Kind::norm; }
/// Puts another buffer of statistics in the place of one.
bool other_statistics(Plan& plan, Dice& dice, Index Step::*which) {
  const Index i = some_step(plan, dice, [&](const Step& s) { return s.*which >= 0; });
  if (i < 0) return false;
  Index& id = plan.steps[static_cast<std::size_t>(i)].*which;
  const Index before = id;
  for (const Step& s : plan.steps)
    if (s.*which >= 0 && s.*which != before &&
        plan.buffers[static_cast<std::size_t>(s.*which)].bytes >= plan.buffers[static_cast<std::size_t>(before)].bytes)
      id = s.*which;
  return id != before;
}
std::vector<Corruption> graph_corruptions() {
  const auto is = [](bool (*what)(const Plan&, const Step&, Op), Op op) {
    return [what, op](const Plan& plan, const Step& s) { return what(plan, s, op); };
  };
  const auto drop_of = [](const char* name, std::function<bool(const Plan&, const Step&)> wanted) {
    return Corruption{name, [wanted](Plan& plan, Dice& dice) {
                        const Index i = some_step(plan, dice, [&](const Step& s) { return wanted(plan, s); });
                        if (i >= 0) plan.steps.erase(plan.steps.begin() + i);
                        return i >= 0;
                      }};
  };
  return {
      {"statistics dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::statistics}); }},
      {"statistics repeated",
       [](Plan& p, Dice& d) {
         const Index i = some_step(p, d, [](const Step& s) { return s.op == Op::statistics; });
         if (i < 0) return false;
         Step again = p.steps[static_cast<std::size_t>(i)];
         again.accumulate = true;
         p.steps.insert(p.steps.begin() + i + 1, again);
         return true;
       }},
      {"sums dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::backward_sums}); }},
      {"sums repeated",
       [](Plan& p, Dice& d) {
         const Index i = some_step(p, d, [](const Step& s) { return s.op == Op::backward_sums; });
         if (i < 0) return false;
         Step again = p.steps[static_cast<std::size_t>(i)];
         again.accumulate = again.accumulate_parameters = true;
         p.steps.insert(p.steps.begin() + i + 1, again);
         return true;
       }},
      change("statistics begun anew or not", Op::statistics, [](Step& s) { s.accumulate ^= true; }),
      change("sums begun anew or not", Op::backward_sums, [](Step& s) { s.accumulate ^= true; }),
      change("gradients of a norm begun anew or not", Op::backward_sums, [](Step& s) { s.accumulate_parameters ^= true; }),
      change(
          "statistics without their last row", [](const Plan&, const Step& s) { return s.op == Op::statistics && s.x.rows.size() > 1; },
          [](Step& s) { --s.x.rows.end; }),
      change(
          "statistics without their first image", [](const Plan&, const Step& s) { return s.op == Op::statistics && s.x.images.size() > 1; },
          [](Step& s) { ++s.x.images.begin; }),
      change(
          "sums without their last row", [](const Plan&, const Step& s) { return s.op == Op::backward_sums && s.dy.rows.size() > 1; },
          [](Step& s) { --s.dy.rows.end; }),
      change(
          "another set of statistics", [](const Plan&, const Step& s) { return s.statistics >= 0 && s.op != Op::statistics; },
          [](Step& s) { s.set += s.set > 0 ? -1 : 1; }),
      {"another norm's statistics", [](Plan& p, Dice& d) { return other_statistics(p, d, &Step::statistics); }},
      {"another norm's sums", [](Plan& p, Dice& d) { return other_statistics(p, d, &Step::sums); }},
      drop_of("join dropped", is(join, Op::forward)),
      drop_of("join's gradient dropped", is(join, Op::backward_data)),
      drop_of("norm dropped", is(norm, Op::forward)),
      drop_of("norm's gradient dropped", is(norm, Op::backward_data)),
      {"add of a skip's gradient dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::add}); }},
      {"copy dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::copy}); }},
      {"zero dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::zero}); }},
      change("the other operand's gradient", is(join, Op::backward_data), [](Step& s) { s.operand ^= 1; }),
      change("a join of a tensor with itself", is(join, Op::forward), [](Step& s) { s.other = s.x; }),
      change("operands swapped", is(join, Op::forward), [](Step& s) { std::swap(s.x, s.other); }),
      change("a join without its other operand", is(join, Op::forward), [](Step& s) { s.other = {}; }),
      change("a join of rows one off", is(join, Op::forward), [](Step& s) { --s.other.rows.begin, --s.other.rows.end; }),
      {"neighbours swapped", [](Plan& p, Dice& d) { return swap_steps(p, d, 1); }},
      {"steps swapped", [](Plan& p, Dice& d) { return swap_steps(p, d, d.upto(2, 8)); }},
      {"buffers overlap in secret", [](Plan& p, Dice& d) { return overlap(p, d, true); }},
  };
}
}   // namespace
TEST_CASE("corrupted plans of networks that branch are reported") {
  check_reported(
      graph_corruptions(), 750000, 150, [](Dice& dice) { return random_graph(dice, 4); }, 4000);
}
