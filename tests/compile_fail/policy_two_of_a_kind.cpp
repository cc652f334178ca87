// Two partitions.
// EXPECT: lrcnn: two parts of a Policy are of one kind; each kind may be named once; remove one of them
// EXPECT_WITHIN 3: Share<7
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Share<7>, RecomputeAll, Overlap<2>>::value;
#else
constexpr PolicySpec rows = Policy<Share<7>, RecomputeAll>::value;
#endif
