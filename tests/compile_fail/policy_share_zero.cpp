// No slabs.
// EXPECT: lrcnn: Share<N> needs at least one slab; counts are positive; use Share<1> or Column
// EXPECT: Share<0
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Share<0>>::value;
#else
constexpr PolicySpec rows = Policy<Share<1>>::value;
#endif
