// What a plan says about memory is what happens: a step changes nothing but what it declares as written, depends on
// nothing but what it declares as read, and a run touches exactly the declared bytes, up to the planned peak.
#include "exec/declared.hpp"
#include "exec/guarded_run.hpp"
#include "support/thorough.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class T>
bool same(const Outcome<T>& a, const Outcome<T>& b) {
  return a.loss == b.loss && same_bits(a.output, b.output) && same_bits(a.gradients, b.gradients) && same_bits(a.input_gradient, b.input_gradient);
}
std::vector<Index> planned_bytes(const Plan& plan) {
  std::vector<Index> bytes;
  for (const Buffer& b : plan.buffers) bytes.push_back(b.bytes);
  return bytes;
}
/// What the rows in each buffer take: the end of the last piece that any step names.
std::vector<Index> needed_bytes(const Plan& plan) {
  std::vector<Index> bytes(plan.buffers.size(), 0);
  const auto needs = [&](const Ref& ref, bool saved) {
    if (!ref) return;
    const Shape& s = plan.table.shape(ref.tensor);
    const Index n = ref.held_images.size(), rows = ref.held_rows.size();
    const bool bits = saved && plan.table.node(ref.tensor - 1).layer.kind == Kind::activation;
    const Index size = bits    ? plan.target.mask_bytes(n, s.c, rows, s.w)
                       : saved ? plan.target.index_bytes(n, s.c, rows, s.w)
                               : plan.target.bytes(n, s.c, rows, s.w);
    Index& end = bytes[static_cast<std::size_t>(ref.buffer)];
    end = std::max(end, round_up(ref.offset + size, plan.target.alignment));
  };
  for (const Step& s : plan.steps) {
    for (const Ref* ref : {&s.x, &s.other, &s.y, &s.dy, &s.dx}) needs(*ref, false);
    needs(s.saved, true);
    for (const Index id : {s.statistics, s.sums}) {
      if (id < 0) continue;
      Index& end = bytes[static_cast<std::size_t>(id)];
      end = std::max(end, round_up(Declared::set_bytes(plan, s, id == s.sums).end, plan.target.alignment));
    }
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {   // every lane has room for the largest slab, whichever gets it
    const Buffer& b = plan.buffers[i];
    if (b.copy > 0) continue;
    Index most = 0;
    for (std::size_t k = i; k < i + static_cast<std::size_t>(b.copies); ++k) most = std::max(most, bytes[k]);
    for (std::size_t k = i; k < i + static_cast<std::size_t>(b.copies); ++k) bytes[k] = most;
  }
  return bytes;
}
}   // namespace
TEST_CASE("memory: steps read and write what they declare and nothing else") {
  const auto law = [](auto& run) {
    const auto plain = run.go(0xFF);
    Guard guard(run.executor.plan(), run.backend, run.executor.arena());
    CHECK(same(run.go(0xFF, guard), plain));
    CHECK(guard.problem() == "");
  };
  const std::size_t step = cases_to_do<std::size_t>(1, 6);
  int cases = for_runs<Reference<double>>(50000, step, law) + for_graph_runs<Reference<double>>(52500, step, law);
  cases += for_runs<Reference<float, 16, 3>>(60000, 3 * step, law) + for_graph_runs<Reference<float, 16, 3>>(62500, 3 * step, law);
  MESSAGE(cases, " plans, seeds from 50000 and 60000 on, one feature in ", step);
  CHECK(cases > 900 / static_cast<int>(step));
}
TEST_CASE("memory: bytes touched are the bytes declared, up to the planned peak, whatever was there before") {
  Index planned = 0, touched = 0;
  const auto law = [&](auto& run) {
    const Plan& plan = run.executor.plan();
    std::vector<char> changed(run.bytes());
    const auto note = [&](std::uint8_t fill) {
      for (std::size_t b = 0; b < changed.size(); ++b) changed[b] |= run.memory()[b] != std::byte{fill};
    };
    const auto first = run.go(0x5A);
    note(0x5A);
    const auto second = run.go(0xA5);   // a byte that was written differs from one of the patterns
    note(0xA5);
    CHECK(same(first, second));
    Declared declared(plan);
    for (const Step& step : plan.steps) declared.mark_step(plan, step);
    CHECK(changed == declared.written);
    const auto end = std::find(changed.rbegin(), changed.rend(), 1).base() - changed.begin();
    CHECK(round_up(end, plan.target.alignment) <= plan.peak_bytes());
    if (stream_count(plan) == 1 && plan.policy.streams == 1)   // else the largest slab may be another lane's
      CHECK(round_up(end, plan.target.alignment) == plan.peak_bytes());
    CHECK(needed_bytes(plan) == planned_bytes(plan));
    planned += plan.peak_bytes();
    touched += std::count(changed.begin(), changed.end(), 1);
  };
  int cases = for_runs<Reference<double>>(70000, 1, law) + for_graph_runs<Reference<double>>(72500, 1, law);
  cases += for_runs<Reference<float, 16, 3>>(80000, 3, law) + for_graph_runs<Reference<float, 16, 3>>(82500, 3, law);
  MESSAGE(cases, " plans; of ", planned, " bytes planned ", touched, " were touched");
  CHECK(cases > 900);
}
TEST_CASE("memory: the guard sees a step that goes where it does not declare to go") {
  const RandomNetwork net{{1, 2, 12, 4}, {Conv<3>::layer(), {.kind = Kind::global_avg_pool}, {.kind = Kind::linear, .channels = 2}}};
  Run<Reference<double>> run(net, Policy<Share<3>, Workspace<0>>::value, 1);
  const Plan& plan = run.executor.plan();
  const auto first = std::find_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.op == Op::forward; });
  const auto at = static_cast<std::size_t>(first - plan.steps.begin());
  const auto with_claims = [&](const Plan& claims) {
    Guard guard(claims, run.backend, run.executor.arena());
    try {
      run.go(0xFF, guard);
    } catch (const NumericError&) {   // hidden values have reached the loss
      return guard.problem().empty() ? std::string("reads hidden rows") : guard.problem();
    }
    return guard.problem();
  };
  CHECK(with_claims(plan) == "");
  Plan reads = plan;
  --reads.steps[at].x.rows.end;
  CHECK(with_claims(reads) == "reads hidden rows");
  Plan writes = plan;
  --writes.steps[at].y.rows.end;
  CHECK(with_claims(writes).starts_with("step " + std::to_string(at) + " (forward) changes byte"));
  Plan elsewhere = plan;
  elsewhere.steps[at].y.buffer = elsewhere.steps[at].x.buffer;
  CHECK(with_claims(elsewhere) != "");
}
