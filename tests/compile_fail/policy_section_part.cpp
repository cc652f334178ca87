// Checkpoints hold for the whole step.
// EXPECT: lrcnn: a part of a Section holds for the whole step; a Section has a partition, recomputation, arithmetic and Workspace; give the other parts to the Policy
// EXPECT_WITHIN 4: CheckpointAtPools
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Section<Overlap<2>, CheckpointAtPools>>::value;
#else
constexpr PolicySpec rows = Policy<Section<Overlap<2>>, CheckpointAtPools>::value;
#endif
