// Every way of running a network that branches gives what running it layer by layer gives: output, loss, gradient of the input and of
// every parameter, and the new value of every running statistic, in fp64 within 1e-12 (of the larger one of the tensor's norm and the
// whole gradient's). Ill-conditioned cases, a norm over next to nothing say, differ by at most ten times what noise of one unit in the
// last place of parameters and images changes in the column run. Outputs are the column's to the bit unless statistics of a norm are
// merged from pieces. Each feature of a graph meets each part of a policy in at least twenty cases.
#include "exec/graph_equivalence.hpp"
#include "support/thorough.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("equivalence: graphs by rows equal graphs layer by layer in fp64, each feature under each part of a policy") {
  GraphCoverage coverage;
  GraphWorst worst;
  compare_graphs<Reference<double>>(5000000, cases_to_do<std::size_t>(2100, 700), coverage, worst,
                                    {.noises = 100});   // the largest of a few draws is too small
  MESSAGE(coverage.table());
  MESSAGE(text_of(worst, coverage));
  CHECK(worst.networks >= cases_to_do(2000, 650));
  CHECK(coverage.least_pair() >= GraphCoverage::wanted);
  CHECK(worst.conditioned * 20 < coverage.cases);
  CHECK(coverage.keeps_between_passes >= 5 * GraphCoverage::wanted);
  MESSAGE(coverage.keeps_between_passes, " cases keep what norms read from one extra pass to the next");
}
