// Every way of running a network gives what running it layer by layer gives: output, loss, gradient of the input and
// of every parameter, in fp64 within 1e-12 of the norm (the larger one of the tensor's and of the network's whole
// gradient), the output to the bit. Networks and policies are drawn so that each feature of a layer meets each part
// of a policy in at least twenty cases, and each partition each pair of checkpoint and recompute rules in some, with
// --thorough in twenty; the table that is printed says how often.
#include "exec/equivalence.hpp"
#include "support/thorough.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("equivalence: row-centric equals layer by layer in fp64, each layer under each part of a policy") {
  Coverage coverage;
  Worst worst;
  for (std::uint64_t round = 0; round < cases_to_do<std::uint64_t>(40, 15); ++round)
    compare_round<Reference<double>>(1000 + round, coverage, worst, {});
  compare_rarest<Reference<double>>(1900000, 150, coverage, worst, {});
  MESSAGE(coverage.table());
  MESSAGE(coverage.cases, " cases, ", coverage.infeasible, " infeasible; least pair ", coverage.least_pair(), ", least triple ",
          coverage.least_triple(), "; worst difference ", worst.difference, " in ", worst.where);
  CHECK(coverage.least_pair() >= 20);
  CHECK(coverage.least_triple() >= cases_to_do(20, 4));
}
