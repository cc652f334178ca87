// A part of no kind.
// EXPECT: lrcnn: a part of a Policy is none; parts are partitions, Images, checkpoints, recomputation, arithmetic, Workspace, Streams, Prefetch, GradientsInPlace, Fit, MayOffload and precision, and layers belong to the network; see the head of lrcnn/policy/policy.hpp
// EXPECT_WITHIN 3: NotAPart
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
struct NotAPart {};
constexpr PolicySpec rows = Policy<Share<2>, NotAPart>::value;
#else
struct NotAPart {};
constexpr PolicySpec rows = Policy<Share<2>>::value;
#endif
