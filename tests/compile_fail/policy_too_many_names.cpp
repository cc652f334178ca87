// 17 names.
// EXPECT: lrcnn: CheckpointAt<...> takes 1 to 16 layer names; one for each checkpoint; use CheckpointEvery<k>
// EXPECT: CheckpointAt<
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<CheckpointAt<"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15", "c16">>::value;
#else
constexpr PolicySpec rows = Policy<CheckpointAt<"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15">>::value;
#endif
