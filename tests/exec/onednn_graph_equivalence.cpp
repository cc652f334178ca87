// As graph_equivalence.cpp on oneDNN in fp32 with direct arithmetic. Outputs are the column's to the bit unless statistics of a norm are
// merged from pieces (and there, too, in all cases drawn: statistics are in doubles, and what slabs change in them is lost when a scale
// is rounded to fp32; that is not promised); gradients are within 1e-5 of it. Where they are merged, what follows
// differs in the last bits, and a rectifier or a pool may decide otherwise: then the change is at most ten times that of noise in the last
// place of parameters and images. Each feature of a graph meets each part of a policy in at least twenty cases.
#include "exec/graph_equivalence.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("equivalence: graphs on oneDNN with direct arithmetic, by rows as layer by layer") {
  GraphCoverage coverage;
  GraphWorst worst;
  compare_graphs<Onednn>(7000000, 700, coverage, worst, {.tolerance = 1e-5, .workspace = 4_MiB, .direct = true, .noises = 6});
  MESSAGE(coverage.table());
  MESSAGE(text_of(worst, coverage));
  CHECK(coverage.cases > 3000);
  CHECK(coverage.least_pair() >= GraphCoverage::wanted);
  CHECK(worst.conditioned * 20 < coverage.cases);
}
