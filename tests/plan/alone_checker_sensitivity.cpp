// The checker reports corrupted plans.
//
// Whether a corruption matters is decided by arithmetic, not by the checker: the corrupted plan is run in fp64 on
// memory full of NaN and compared with the sound one. What changes a number, or leaves its buffer, must be reported.
#ifndef NDEBUG
#define NDEBUG  // corrupted steps run beyond their preconditions; hence a program of its own
#endif
#include <doctest/doctest.h>
#include <functional>
#include <optional>
#include "support/random_network.hpp"
#include "support/run_network.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
// ---- corruptions --------------------------------------------------------------------------------------------------
std::vector<Ref*> refs_of(Step& s) {
  std::vector<Ref*> refs;
  for (Ref* r : {&s.x, &s.y, &s.dy, &s.dx, &s.saved})
    if (*r && !r->rows.empty() && !r->images.empty()) refs.push_back(r);
  return refs;
}
/// A random Ref of a random step, or nullptr.
Ref* some_ref(Plan& plan, Dice& dice) {
  for (int tries = 0; tries < 50; ++tries) {
    const auto refs =
        refs_of(plan.steps[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(plan.steps.size()) - 1))]);
    if (!refs.empty()) return refs[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(refs.size()) - 1))];
  }
  return nullptr;
}
/// A random step for which `wanted` holds, or -1.
Index some_step(const Plan& plan, Dice& dice, const std::function<bool(const Step&)>& wanted) {
  std::vector<Index> found;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (wanted(plan.steps[i])) found.push_back(static_cast<Index>(i));
  return found.empty() ? -1 : found[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(found.size()) - 1))];
}
bool drop(Plan& plan, Dice& dice, std::initializer_list<Op> ops) {
  const Index i =
      some_step(plan, dice, [&](const Step& s) { return std::find(ops.begin(), ops.end(), s.op) != ops.end(); });
  if (i >= 0) plan.steps.erase(plan.steps.begin() + i);
  return i >= 0;
}
bool repeat(Plan& plan, Dice& dice, Op op) {
  const Index i = some_step(plan, dice, [&](const Step& s) { return s.op == op; });
  if (i < 0) return false;
  const Step again = plan.steps[static_cast<std::size_t>(i)];
  plan.steps.insert(plan.steps.begin() + i, again);
  return true;
}
bool swap_steps(Plan& plan, Dice& dice, Index distance) {
  const Index last = static_cast<Index>(plan.steps.size()) - 1 - distance;
  if (last < 0) return false;
  const auto i = static_cast<std::size_t>(dice.upto(0, last));
  std::swap(plan.steps[i], plan.steps[i + static_cast<std::size_t>(distance)]);
  return true;
}
/// Moves a buffer onto one that is live with it. `hidden`: and says that it never lives, so that only a replay tells.
bool overlap(Plan& plan, Dice& dice, bool hidden) {
  for (int tries = 0; tries < 50; ++tries) {
    Buffer& a = plan.buffers[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(plan.buffers.size()) - 1))];
    const Buffer& b =
        plan.buffers[static_cast<std::size_t>(dice.upto(0, static_cast<Index>(plan.buffers.size()) - 1))];
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
  std::function<bool(Plan&, Dice&)> apply;  ///< false if the plan has nothing of the kind
};
Range moved(Range r, Index by) { return {r.begin + by, r.end + by}; }
std::vector<Corruption> corruptions() {
  const auto on_ref = [](auto change) {
    return [change](Plan& plan, Dice& dice) {
      for (int tries = 0; tries < 20; ++tries) {
        Ref* ref = some_ref(plan, dice);
        if (!ref) return false;
        const Ref before = *ref;
        change(*ref, plan, dice);
        if (*ref != before) return true;
      }
      return false;
    };
  };
  const auto sign = [](Dice& dice) { return dice.chance(0.5) ? 1 : -1; };
  return {
      {"rows shifted by one", on_ref([sign](Ref& r, Plan&, Dice& dice) { r.rows = moved(r.rows, sign(dice)); })},
      {"rows and held rows shifted by one", on_ref([sign](Ref& r, Plan&, Dice& dice) {
         const Index by = sign(dice);
         r.rows = moved(r.rows, by), r.held_rows = moved(r.held_rows, by);
       })},
      {"first row left out", on_ref([](Ref& r, Plan&, Dice&) { ++r.rows.begin; })},
      {"last row left out", on_ref([](Ref& r, Plan&, Dice&) { --r.rows.end; })},
      {"held rows one longer", on_ref([](Ref& r, Plan&, Dice&) { ++r.held_rows.end; })},
      {"images shifted by one",
       on_ref([sign](Ref& r, Plan&, Dice& dice) { r.images = moved(r.images, sign(dice)); })},
      {"last image left out", on_ref([](Ref& r, Plan&, Dice&) { --r.images.end; })},
      {"another piece of the buffer", on_ref([](Ref& r, Plan&, Dice&) { r.offset = r.offset > 0 ? 0 : 64; })},
      {"another buffer", on_ref([](Ref& r, Plan& plan, Dice& dice) {
         r.buffer = dice.upto(0, static_cast<Index>(plan.buffers.size()) - 1);
       })},
      {"copy dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::copy}); }},
      {"add dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::add}); }},
      {"zero dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::zero}); }},
      {"load dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::load}); }},
      {"forward dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::forward}); }},
      {"backward_data dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::backward_data}); }},
      {"backward_parameters dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::backward_parameters}); }},
      {"loss dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::loss}); }},
      {"add repeated", [](Plan& p, Dice& d) { return repeat(p, d, Op::add); }},
      {"backward_parameters repeated", [](Plan& p, Dice& d) { return repeat(p, d, Op::backward_parameters); }},
      {"copy made an add",
       [](Plan& p, Dice& d) {
         const Index i = some_step(p, d, [](const Step& s) { return s.op == Op::copy; });
         if (i >= 0) p.steps[static_cast<std::size_t>(i)].op = Op::add;
         return i >= 0;
       }},
      {"add made a copy",
       [](Plan& p, Dice& d) {
         const Index i = some_step(p, d, [](const Step& s) { return s.op == Op::add; });
         if (i >= 0) p.steps[static_cast<std::size_t>(i)].op = Op::copy;
         return i >= 0;
       }},
      {"accumulate flipped",
       [](Plan& p, Dice& d) {
         const Index i = some_step(p, d, [&](const Step& s) {
           return s.op == Op::backward_parameters ||
                  (s.op == Op::forward && p.table.node(s.layer).layer.kind == Kind::global_avg_pool);
         });
         if (i >= 0) p.steps[static_cast<std::size_t>(i)].accumulate ^= true;
         return i >= 0;
       }},
      {"neighbours swapped", [](Plan& p, Dice& d) { return swap_steps(p, d, 1); }},
      {"steps swapped", [](Plan& p, Dice& d) { return swap_steps(p, d, d.upto(2, 8)); }},
      {"live buffers overlap", [](Plan& p, Dice& d) { return overlap(p, d, false); }},
      {"buffers overlap in secret", [](Plan& p, Dice& d) { return overlap(p, d, true); }},
  };
}
// ---- what a corruption does ---------------------------------------------------------------------------------------
/// Whether every Ref stays within its buffer, its map and the batch.
bool in_bounds(const Plan& plan) {
  for (Step s : plan.steps)
    for (const Ref* r : refs_of(s)) {
      const Shape& shape = plan.table.shape(r->tensor);
      const Index bytes =
          r == &s.saved
              ? (plan.table.node(r->tensor - 1).layer.kind == Kind::activation
                     ? plan.target.mask_bytes(r->held_images.size(), shape.c, r->held_rows.size(), shape.w)
                     : plan.target.index_bytes(r->held_images.size(), shape.c, r->held_rows.size(), shape.w))
              : plan.target.bytes(r->held_images.size(), shape.c, r->held_rows.size(), shape.w);
      if (r->offset < 0 || r->offset + bytes > plan.buffers[static_cast<std::size_t>(r->buffer)].bytes) return false;
      if (!r->held_rows.contains(r->rows) || !r->held_images.contains(r->images)) return false;
      if (!Range{0, shape.h}.contains(r->rows) || !Range{0, plan.table.input.n}.contains(r->images)) return false;
    }
  return true;
}
/// Loss, output and all gradients of a run; nothing if a step is refused or the loss is not finite.
std::optional<std::vector<double>> numbers(Plan plan, const Problem<double>& problem) {
  constexpr Index margin = 1 << 18;  // what a corrupted step touches outside its rows stays within the memory
  for (Buffer& b : plan.buffers) b.offset += margin;
  Reference<double> backend(1);
  std::vector<double> gradients(problem.parameters.size(), std::nan(""));
  const auto arena = std::make_shared<Arena>(round_up(plan.arena.bytes, 8) + 2 * margin, "a test");
  double* memory = reinterpret_cast<double*>(arena->data());
  std::fill(memory, memory + arena->bytes() / 8, std::nan(""));
  const MemorySource<double> source(problem.images.data(), problem.table.input);
  try {
    Executor<Reference<double>> executor(std::move(plan), backend, problem.parameters.data(), gradients.data(),
                                         arena);
    const LossResult loss = executor.run(source, problem.labels);
    gradients.push_back(loss.sum);
    for (const double v : dense_copy<double>(executor.output())) gradients.push_back(v);
    for (const double v : dense_copy<double>(executor.input_gradient())) gradients.push_back(v);
  } catch (const Error&) {
    return std::nullopt;
  }
  return gradients;
}
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  double scale = 0;
  for (const double v : b) scale = std::max(scale, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-9 * scale)) return false;
  return a.size() == b.size();
}
}  // namespace
TEST_CASE("corrupted plans are reported") {
  struct Count {
    Index applied = 0, effective = 0, found = 0, missed = 0, harmless_reported = 0;
  };
  const auto kinds = corruptions();
  std::vector<Count> counts(kinds.size());
  std::string first_missed;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Dice dice(seed + 700000);
    const RandomNetwork net = random_network(dice, 5);
    PolicySpec policy = random_policy(dice, net);
    policy.arithmetic = Arithmetic::direct;
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
            first_missed +=
                std::string(kinds[k].name) + ", seed " + std::to_string(seed) + ", " + to_string(policy) + "\n";
        }
      }
  }
  Count all;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const Count& c = counts[k];
    all.applied += c.applied, all.effective += c.effective, all.found += c.found, all.missed += c.missed;
    MESSAGE(std::string(kinds[k].name) << ": " << c.applied << " applied, " << c.effective << " effective, "
                                       << c.found << " found, harmless but reported " << c.harmless_reported);
    CHECK(c.found > 0);
  }
  INFO(first_missed);
  CHECK(all.effective > 2000);
  CHECK(all.found * 100 >= all.effective * 95);
  CHECK(all.missed == 0);
}
TEST_CASE("plans whose packed filters are missing, of another layer or of the other direction are reported") {
  // A filter that is packed anew in every slab may survive from the slab before: dropping one pack may do no harm.
  Index dropped = 0, one_dropped = 0, one_found = 0, turned = 0, strange = 0, late = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed + 800000);
    const RandomNetwork net = random_network(dice, 6);
    const PolicySpec policy = random_policy(dice, net);
    const Target target{.channel_block = 8, .packs_weights = true};
    INFO("seed ", seed, ", ", to_string(policy));
    Plan sound;
    try {
      sound = make_plan(make_table(net.layers, net.input), policy, target, {.input_gradient = true});
    } catch (const PlanError&) {
      continue;
    }
    const auto packs = [](const Step& s) { return s.op == Op::pack_forward || s.op == Op::pack_backward; };
    const Index at = some_step(sound, dice, packs);
    if (at < 0) continue;
    const Step pack = sound.steps[static_cast<std::size_t>(at)];
    REQUIRE(check_plan(sound).empty());
    Plan none = sound;
    std::erase_if(none.steps,
                  [&](const Step& s) { return s.op == pack.op && s.layer == pack.layer && s.packed == pack.packed; });
    CHECK(!check_plan(none).empty());
    ++dropped;
    Plan one = sound;
    one.steps.erase(one.steps.begin() + at);
    one_found += !check_plan(one).empty();
    ++one_dropped;
    Plan turn = sound;
    Op& op = turn.steps[static_cast<std::size_t>(at)].op;
    op = op == Op::pack_forward ? Op::pack_backward : Op::pack_forward;
    CHECK(!check_plan(turn).empty());
    ++turned;
    for (Index l = 0; l < sound.table.size(); ++l)
      if (l != pack.layer && sound.table.node(l).layer.kind == Kind::conv) {
        Plan other = sound;
        other.steps[static_cast<std::size_t>(at)].layer = l;
        CHECK(!check_plan(other).empty());
        ++strange;
      }
    Plan after = sound;  // the pack comes behind the step that wants it
    for (std::size_t i = static_cast<std::size_t>(at); i + 1 < after.steps.size(); ++i) {
      std::swap(after.steps[i], after.steps[i + 1]);
      if (after.steps[i].packed == pack.packed) break;
    }
    late += !check_plan(after).empty();
  }
  MESSAGE(dropped << " filters not packed, " << turned << " packed the other way, " << strange
                  << " of another layer: all found; one of several packs dropped: " << one_found << " of "
                  << one_dropped << " found, too late: " << late);
  CHECK(dropped > 100);
  CHECK(strange > 50);
  CHECK(one_found * 2 > one_dropped);
  CHECK(late * 2 > one_dropped);
}
TEST_CASE("a plan cut short, without steps or without results is reported") {
  Dice dice(1);
  const RandomNetwork net = random_network(dice, 6);
  const Plan sound = make_plan(make_table(net.layers, net.input), {}, {}, {.input_gradient = true});
  Plan none = sound;
  none.steps.clear();
  CHECK(!check_plan(none).empty());
  for (std::size_t keep = 1; keep < sound.steps.size(); ++keep) {
    Plan cut = sound;
    cut.steps.resize(keep);
    CHECK(!check_plan(cut).empty());
  }
  CHECK(check_plan(sound).empty());
  Plan small = sound;
  small.arena.bytes /= 2;
  CHECK(check_plan(small)[0].find("ends beyond the arena") != std::string::npos);
}
TEST_CASE("a problem names the step, its layer, stage and slab") {
  Dice dice(3);
  const RandomNetwork net = random_network(dice, 6);
  Plan plan = make_plan(make_table(net.layers, net.input), {});
  const Index i = some_step(plan, dice, [](const Step& s) { return s.op == Op::backward_parameters; });
  REQUIRE(i >= 0);
  plan.steps[static_cast<std::size_t>(i)].accumulate = true;
  const auto& step = plan.steps[static_cast<std::size_t>(i)];
  CHECK(check_plan(plan)[0] == "step " + std::to_string(i) + " (backward_parameters " +
                                   std::string(plan.table.node(step.layer).layer.name.view()) + ", stage " +
                                   std::to_string(step.stage) +
                                   ", slab 0): a filter gradient is written twice, or added to nothing");
}
