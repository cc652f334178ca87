// Checkpoints no layers apart.
// EXPECT: lrcnn: CheckpointEvery<k> needs k >= 1; checkpoints are k layers apart; use CheckpointEvery<1>
// EXPECT: CheckpointEvery<0
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<CheckpointEvery<0>>::value;
#else
constexpr PolicySpec rows = Policy<CheckpointEvery<1>>::value;
#endif
