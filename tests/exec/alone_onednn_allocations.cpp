// A step of the oneDNN backend allocates no tensor and no scratch: what the library allocates for itself stays below
// 4 kB a call, and is printed. In a program of its own, because it replaces malloc, its family and mmap.
#include "exec/allocation_cases.hpp"
#include "support/backend_for_tests.hpp"
#include <lrcnn/backend/onednn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE_TEMPLATE("allocations: a step of the oneDNN backend allocates nothing of 4 kB or more", B, Onednn, OnednnBf16) {
  for (const int threads : {1, 2}) {
    auto backend = backend_for_tests<B>(threads);
    Allocations most;
    for_steps(backend, [&](const std::string& title, auto step) {
      INFO(title, ", ", threads, " threads");
      step();   // threads begin with the first parallel loop, and rows of a batch in bf16 get their buffer
      const Allocations seen = allocations_of(step);
      CHECK(seen.largest < 4096);
      CHECK(seen.maps == 0);
      CHECK(seen.frees == seen.count);
      CHECK(allocations_of(step).count == seen.count);   // nothing is kept from step to step
      if (seen.count > most.count) most = seen;
    });
    MESSAGE(threads, " threads: at most ", most.count, " allocations in a step, ", most.bytes, " bytes in all, the largest of ", most.largest);
  }
}
