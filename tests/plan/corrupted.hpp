#pragma once
// Ways to corrupt a plan, and what a corrupted plan computes: whether that matters is decided by arithmetic, not by the checker.
#ifndef NDEBUG
#error "corrupted steps run beyond their preconditions: define NDEBUG, in a program of its own"
#endif
#include <doctest/doctest.h>
#include <functional>
#include <optional>
#include "support/random_network.hpp"
#include "support/run_network.hpp"
namespace lrcnn::testing {
// ---- corruptions --------------------------------------------------------------------------------------------------
inline std::vector<Ref*> refs_of(Step& s) {
  std::vector<Ref*> refs;
  for (Ref* r : {&s.x, &s.other, &s.y, &s.dy, &s.dx, &s.saved})
    if (*r && !r->rows.empty() && !r->images.empty()) refs.push_back(r);
  return refs;
}
/// A random Ref of a random step, or nullptr.
inline Ref* some_ref(Plan& plan, Dice& dice) {
  for (int tries = 0; tries < 50; ++tries) {
    const auto refs = refs_of(plan.steps[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(plan.steps.size()) - 1))]);
    if (!refs.empty()) return refs[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(refs.size()) - 1))];
  }
  return nullptr;
}
/// A random step for which `wanted` holds, or -1.
inline Index some_step(const Plan& plan, Dice& dice, const std::function<bool(const Step&)>& wanted) {
  std::vector<Index> found;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (wanted(plan.steps[i])) found.push_back(static_cast<Index>(i));
  return found.empty() ? -1 : found[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(found.size()) - 1))];
}
inline bool drop(Plan& plan, Dice& dice, std::initializer_list<Op> ops) {
  const Index i = some_step(plan, dice, [&](const Step& s) { return std::find(ops.begin(), ops.end(), s.op) != ops.end(); });
  if (i >= 0) plan.steps.erase(plan.steps.begin() + i);
  return i >= 0;
}
inline bool repeat(Plan& plan, Dice& dice, Op op) {
  const Index i = some_step(plan, dice, [&](const Step& s) { return s.op == op; });
  if (i < 0) return false;
  const Step again = plan.steps[static_cast<std::size_t>(i)];
  plan.steps.insert(plan.steps.begin() + i, again);
  return true;
}
inline bool swap_steps(Plan& plan, Dice& dice, Index distance) {
  const Index last = static_cast<Index>(plan.steps.size()) - 1 - distance;
  if (last < 0) return false;
  const auto i = static_cast<std::size_t>(dice.upto(0, last));
  std::swap(plan.steps[i], plan.steps[i + static_cast<std::size_t>(distance)]);
  return true;
}
/// Moves a buffer onto one that is live with it. `hidden`: and says that it never lives, so that only a replay tells.
inline bool overlap(Plan& plan, Dice& dice, bool hidden) {
  for (int tries = 0; tries < 50; ++tries) {
    Buffer& a = plan.buffers[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(plan.buffers.size()) - 1))];
    const Buffer& b = plan.buffers[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(plan.buffers.size()) - 1))];
    if (&a == &b || !a.meets(b) || a.bytes == 0 || b.bytes == 0) continue;
    a.offset = std::max<Index>(0, b.offset + (dice.chance(0.5) ? 0 : b.bytes - 64));
    if (a.offset + a.bytes > plan.arena.bytes) a.offset = plan.arena.bytes - a.bytes;
    if (!(a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)) continue;
    if (hidden) a.last = a.first;
    return true;
  }
  return false;
}
struct Corruption {
  const char* name;
  std::function<bool(Plan&, Dice&)> apply;   ///< false if the plan has nothing of the kind
};
inline Range moved(Range r, Index by) { return {r.begin + by, r.end + by}; }
// ---- what a corruption does ---------------------------------------------------------------------------------------
/// Whether every Ref stays within its buffer, its map and the batch, and joins have the operands that they read.
inline bool in_bounds(const Plan& plan) {
  for (Step s : plan.steps) {
    if (s.op == Op::forward && is_join(plan.table.node(s.layer).layer) && !s.other) return false;
    const bool scales = s.op == Op::backward_data && plan.table.node(s.layer).layer.kind == Kind::scale;
    if (scales && !(s.operand == 0 ? s.other : s.x)) return false;
    for (const Ref* r : refs_of(s)) {
      const Shape& shape = plan.table.shape(r->tensor);
      const Index bytes = r == &s.saved ? (plan.table.node(r->tensor - 1).layer.kind == Kind::activation
                                               ? plan.target.mask_bytes(r->held_images.size(), shape.c, r->held_rows.size(), shape.w)
                                               : plan.target.index_bytes(r->held_images.size(), shape.c, r->held_rows.size(), shape.w))
                                        : plan.target.bytes(r->held_images.size(), shape.c, r->held_rows.size(), shape.w);
      if (r->offset < 0 || r->offset + bytes > plan.buffers[static_cast<std::size_t>(r->buffer)].bytes) return false;
      if (!r->held_rows.contains(r->rows) || !r->held_images.contains(r->images)) return false;
      if (!Range{0, shape.h}.contains(r->rows) || !Range{0, plan.table.input.n}.contains(r->images)) return false;
    }
  }
  return true;
}
/// Loss, output and all gradients of a run; nothing if a step is refused or the loss is not finite.
inline std::optional<std::vector<double>> numbers(Plan plan, const Problem<double>& problem) {
  constexpr Index margin = 1 << 18;   // what a corrupted step touches outside its rows stays within the memory
  for (Buffer& b : plan.buffers) b.offset += margin;
  Reference<double> backend(1);
  std::vector<double> gradients(problem.parameters.size(), std::nan(""));
  for (const Parameter& p : problem.layout)   // a frozen norm's are not written
    if (p.shape.running) std::ranges::fill(elements_of(p, std::span<double>(gradients)), 0.0);
  const auto arena = std::make_shared<Arena>(round_up(plan.arena.bytes, 8) + 2 * margin, "a test");
  double* memory = reinterpret_cast<double*>(arena->data());
  std::fill(memory, memory + arena->bytes() / 8, std::nan(""));
  const MemorySource<double> source(problem.images.data(), problem.table.input);
  try {
    Executor<Reference<double>> executor(std::move(plan), backend, problem.parameters.data(), gradients.data(), arena);
    const LossResult loss = executor.run(source, problem.labels);
    gradients.push_back(loss.sum);
    for (const double v : dense_copy<double>(executor.output())) gradients.push_back(v);
    for (const double v : dense_copy<double>(executor.input_gradient())) gradients.push_back(v);
  } catch (const Error&) {
    return std::nullopt;
  }
  return gradients;
}
inline bool same(const std::vector<double>& a, const std::vector<double>& b) {
  double scale = 0;
  for (const double v : b) scale = std::max(scale, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-9 * scale)) return false;
  return a.size() == b.size();
}
/// Corrupts plans of networks that `draw` makes in each way, three times; every corruption that changes a number must be reported.
template <class Draw>
void check_reported(const std::vector<Corruption>& kinds, std::uint64_t first_seed, std::uint64_t seeds, Draw draw, Index least_effective) {
  struct Count {
    Index applied = 0, effective = 0, found = 0, missed = 0, harmless_reported = 0;
  };
  std::vector<Count> counts(kinds.size());
  std::string first_missed;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Dice dice(seed + first_seed);
    const RandomNetwork net = draw(dice);
    PolicySpec policy = random_policy(dice, net);
    compute_by(policy, ConvAlgorithm::direct);
    const Problem<double> problem(net.layers, net.input, seed);
    Plan sound;
    try {
      sound = make_plan(problem.table, policy, Reference<double>::target, {.input_gradient = true});
    } catch (const PlanError&) {
      continue;
    }
    const auto right = numbers(sound, problem);
    REQUIRE(right);
    for (std::size_t k = 0; k < kinds.size(); ++k)
      for (int again = 0; again < 3; ++again) {
        Plan plan = sound;
        if (!kinds[k].apply(plan, dice)) continue;
        ++counts[k].applied;
        const bool reported = !check_plan(plan).empty();
        const auto got = in_bounds(plan) ? numbers(plan, problem) : std::nullopt;
        const bool effective = !got || !same(*got, *right);
        counts[k].effective += effective;
        counts[k].found += effective && reported;
        counts[k].harmless_reported += !effective && reported;
        if (effective && !reported) {
          ++counts[k].missed;
          if (first_missed.size() < 3000)
            first_missed += std::string(kinds[k].name) + ", seed " + std::to_string(seed) + ", " + to_string(policy) + "\n";
        }
      }
  }
  Count all;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const Count& c = counts[k];
    all.applied += c.applied, all.effective += c.effective, all.found += c.found, all.missed += c.missed;
    MESSAGE(std::string(kinds[k].name) << ": " << c.applied << " applied, " << c.effective << " effective, " << c.found
                                       << " found, harmless but reported " << c.harmless_reported);
    CHECK(c.found > 0);
  }
  INFO(first_missed);
  CHECK(all.effective > least_effective);
  CHECK(all.found * 100 >= all.effective * 95);
  CHECK(all.missed == 0);
}
}   // namespace lrcnn::testing
