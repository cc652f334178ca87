// The checker reports corrupted plans.
//
// Whether a corruption matters is decided by arithmetic, not by the checker: the corrupted plan is run in fp64 on
// memory full of NaN and compared with the sound one. What changes a number, or leaves its buffer, must be reported.
// First for chains of layers, then, at the end, for networks that branch: steps of joins and norms.
#ifndef NDEBUG
#define NDEBUG   // corrupted steps run beyond their preconditions; hence a program of its own
#endif
#include "plan/corrupted.hpp"
#include "support/random_graph.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
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
      {"images shifted by one", on_ref([sign](Ref& r, Plan&, Dice& dice) { r.images = moved(r.images, sign(dice)); })},
      {"last image left out", on_ref([](Ref& r, Plan&, Dice&) { --r.images.end; })},
      {"another piece of the buffer", on_ref([](Ref& r, Plan&, Dice&) { r.offset = r.offset > 0 ? 0 : 64; })},
      {"another buffer", on_ref([](Ref& r, Plan& plan, Dice& dice) { r.buffer = dice.upto(0, static_cast<Index>(plan.buffers.size()) - 1); })},
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
           return s.op == Op::backward_parameters || (s.op == Op::forward && p.table.node(s.layer).layer.kind == Kind::global_avg_pool);
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
}   // namespace
TEST_CASE("corrupted plans are reported") {
  check_reported(
      corruptions(), 700000, 120, [](Dice& dice) { return random_network(dice, 5); }, 2000);
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
    std::erase_if(none.steps, [&](const Step& s) { return s.op == pack.op && s.layer == pack.layer && s.packed == pack.packed; });
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
    Plan after = sound;   // the pack comes behind the step that wants it
    for (std::size_t i = static_cast<std::size_t>(at); i + 1 < after.steps.size(); ++i) {
      std::swap(after.steps[i], after.steps[i + 1]);
      if (after.steps[i].packed == pack.packed) break;
    }
    late += !check_plan(after).empty();
  }
  MESSAGE(dropped << " filters not packed, " << turned << " packed the other way, " << strange
                  << " of another layer: all found; one of several packs dropped: " << one_found << " of " << one_dropped
                  << " found, too late: " << late);
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
  CHECK(check_plan(plan)[0] == "step " + std::to_string(i) + " (backward_parameters " + std::string(plan.table.node(step.layer).layer.name.view()) +
                                   ", stage " + std::to_string(step.stage) + ", slab 0): a filter gradient is written twice, or added to nothing");
}
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
  const auto add_again = [](const char* name, Op op, std::function<void(Step&)> adds) {   // the step behind itself, made to add to what is there
    return Corruption{name, [op, adds](Plan& plan, Dice& dice) {
                        const Index i = some_step(plan, dice, [&](const Step& s) { return s.op == op; });
                        if (i < 0) return false;
                        Step again = plan.steps[static_cast<std::size_t>(i)];
                        adds(again);
                        plan.steps.insert(plan.steps.begin() + i + 1, again);
                        return true;
                      }};
  };
  return {
      {"statistics dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::statistics}); }},
      add_again("statistics repeated", Op::statistics, [](Step& s) { s.accumulate = true; }),
      {"sums dropped", [](Plan& p, Dice& d) { return drop(p, d, {Op::backward_sums}); }},
      add_again("sums repeated", Op::backward_sums, [](Step& s) { s.accumulate = s.accumulate_parameters = true; }),
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
