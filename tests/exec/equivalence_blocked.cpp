// As equivalence.cpp, in the storage layouts that vector units want: channels in blocks of 16 and, for the first
// tensors, plain; in blocks of 8, and channels last. Padded channels take part in every step and must not show.
#include "exec/equivalence.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class B>
void law(std::uint64_t seed, int rounds) {
  Coverage coverage;
  Worst worst;
  for (int round = 0; round < rounds; ++round) compare_round<B>(seed + static_cast<std::uint64_t>(round), coverage, worst, {});
  MESSAGE(coverage.cases, " cases; worst difference ", worst.difference, " in ", worst.where);
  CHECK(coverage.cases > 500 * rounds);
}
}   // namespace
TEST_CASE("equivalence: blocks of 16 channels, fp64") { law<Reference<double, 16>>(2000, 4); }
TEST_CASE("equivalence: blocks of 16 channels above plain ones, fp64") { law<Reference<double, 16, 3>>(2100, 4); }
TEST_CASE("equivalence: blocks of 8 channels, fp64") { law<Reference<double, 8>>(2200, 3); }
TEST_CASE("equivalence: channels last, fp64") { law<Reference<double, Target::all_channels>>(2300, 3); }
