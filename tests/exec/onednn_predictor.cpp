// As predictor.cpp, on oneDNN: with direct arithmetic rows are the column run's to the bit, in fp32 and in bf16.
#include "exec/predicted.hpp"
#include <lrcnn/backend/onednn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("oneDNN: a predictor hands over the column run's output") {
  PredictedCases counts;
  for (std::uint64_t round = 0; round < 2; ++round)
    compare_predicted<Onednn>(7400 + round, counts, 4_MiB, true, [](RandomNetwork& net) { widen(net); });
  MESSAGE(counts.cases, " cases, ", counts.parts, " handed over in parts");
  CHECK(counts.parts > 200);
}
TEST_CASE("oneDNN: likewise in bf16") {
  PredictedCases counts;
  compare_predicted<OnednnBf16>(7500, counts, 4_MiB, true, [](RandomNetwork& net) { widen(net); });
  CHECK(counts.parts > 100);
}
