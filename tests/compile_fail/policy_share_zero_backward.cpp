// No slabs in the backward pass.
// EXPECT: lrcnn: Share<N> needs at least one slab; counts are positive; use Share<1> or Column
// EXPECT: Share<3, 0
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Share<3, 0>>::value;
#else
constexpr PolicySpec rows = Policy<Share<3, 1>>::value;
#endif
