// Checkpoints no residual blocks apart.
// EXPECT: lrcnn: CheckpointAtSums<k> needs k >= 1; checkpoints are k sums apart; use CheckpointAtSums<>
// EXPECT: CheckpointAtSums<0
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<CheckpointAtSums<0>>::value;
#else
constexpr PolicySpec rows = Policy<CheckpointAtSums<>>::value;
#endif
