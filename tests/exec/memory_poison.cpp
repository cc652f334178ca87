// Under the address sanitizer every step runs in an arena of which all but its declared bytes is poisoned, so that
// the first load or store elsewhere ends the program. (memory_guard.cpp tests the same by hiding values.)
#if defined(__SANITIZE_ADDRESS__)
#define LRCNN_TEST_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LRCNN_TEST_POISONS 1
#endif
#endif
#include "exec/declared.hpp"
#include "exec/guarded_run.hpp"
#include <doctest/doctest.h>
#ifdef LRCNN_TEST_POISONS
#include <sanitizer/asan_interface.h>
#include <sys/wait.h>
#include <unistd.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// In double every row starts on a granule of the sanitizer's (8 bytes), so that the poison is exact.
class Poison {
 public:
  Poison(const Plan& claims, const Arena& arena) : claims_(claims), arena_(arena), declared_(claims) {}
  Poison(const Poison&) = delete;
  ~Poison() { unpoison(); }
  void before(const Plan&, Index i) {
    declared_.clear();
    declared_.mark_step(claims_, claims_.steps[static_cast<std::size_t>(i)]);
    ASAN_POISON_MEMORY_REGION(arena_.data(), static_cast<std::size_t>(arena_.bytes()));
    const auto& touched = declared_.touched;
    for (std::size_t b = 0; b < touched.size();) {
      std::size_t end = b;
      while (end < touched.size() && touched[end] == touched[b]) ++end;
      if (touched[b]) ASAN_UNPOISON_MEMORY_REGION(arena_.data() + b, end - b);
      b = end;
    }
  }
  void after(const Plan&, Index) { unpoison(); }

 private:
  void unpoison() { ASAN_UNPOISON_MEMORY_REGION(arena_.data(), static_cast<std::size_t>(arena_.bytes())); }
  const Plan& claims_;
  const Arena& arena_;
  Declared declared_;
};
/// Whether a run under these claims ends its process.
template <class B>
bool dies(Run<B>& run, const Plan& claims) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    static_cast<void>(!std::freopen("/dev/null", "w", stderr));
    Poison poison(claims, run.executor.arena());
    run.go(0, poison);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
}   // namespace
TEST_CASE("memory: no step loads or stores a byte that it does not declare") {
  const auto law = [](auto& run) {
    Poison poison(run.executor.plan(), run.executor.arena());
    CHECK(run.go(0, poison).loss.count == run.problem.table.input.n);
  };
  const int cases = for_runs<Reference<double>>(90000, 2, law) + for_runs<Reference<double, 16, 3>>(95000, 5, law) +
                    for_graph_runs<Reference<double>>(97500, 2, law) + for_graph_runs<Reference<double, 16, 3>>(99500, 5, law);
  MESSAGE(cases, " plans");
  CHECK(cases > 450);
}
TEST_CASE("memory: the sanitizer ends a step that goes where it does not declare to go") {
  const RandomNetwork net{{1, 2, 12, 4}, {Conv<3>::layer(), {.kind = Kind::global_avg_pool}, {.kind = Kind::linear, .channels = 2}}};
  Run<Reference<double>> run(net, Policy<Share<3>, Workspace<0>>::value, 1);
  const Plan& plan = run.executor.plan();
  CHECK(!dies(run, plan));
  for (const Op op : {Op::forward, Op::backward_parameters, Op::copy, Op::load, Op::loss}) {
    INFO(std::string(op_name(op)));
    const auto found = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& s) { return s.op == op; });
    REQUIRE(found != plan.steps.end());
    Plan claims = plan;
    Step& step = claims.steps[static_cast<std::size_t>(found - plan.steps.begin())];
    --(step.x ? step.x : step.y).rows.end;
    CHECK(dies(run, claims));
  }
}
#else
TEST_CASE("memory: poisoned arena (needs the address sanitizer)") { MESSAGE("built without it: see memory_guard"); }
#endif
