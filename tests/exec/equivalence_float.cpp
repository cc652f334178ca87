// In fp32 the forward pass of slabs is that of the whole map to the bit, hence so are masks and pooling winners, and
// gradients differ by the order of summation alone: 1e-5 of the norm.
#include "exec/equivalence.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("equivalence: fp32, outputs to the bit, gradients within 1e-5") {
  Coverage coverage;
  Worst worst;
  for (std::uint64_t round = 0; round < 8; ++round) compare_round<Reference<float>>(3000 + round, coverage, worst, {.tolerance = 1e-5});
  MESSAGE(coverage.cases, " cases; worst difference ", worst.difference, " in ", worst.where);
  CHECK(coverage.cases > 4000);
}
TEST_CASE("equivalence: fp32 in blocks of 16 channels") {
  Coverage coverage;
  Worst worst;
  for (std::uint64_t round = 0; round < 4; ++round) compare_round<Reference<float, 16, 3>>(3100 + round, coverage, worst, {.tolerance = 1e-5});
  MESSAGE(coverage.cases, " cases; worst difference ", worst.difference, " in ", worst.where);
  CHECK(coverage.cases > 2000);
}
