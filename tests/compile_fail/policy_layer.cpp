// A layer within a policy.
// EXPECT: lrcnn: a part of a Policy is none; parts are partitions, Images, checkpoints, recomputation, arithmetic, Workspace, Streams, Prefetch, GradientsInPlace, Fit, MayOffload and precision, and layers belong to the network; see the head of lrcnn/policy/policy.hpp
// EXPECT_WITHIN 3: Conv<8
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Share<2>, Conv<8>>::value;
#else
constexpr PolicySpec rows = Policy<Share<2>>::value;
#endif
