// No slabs.
// EXPECT: lrcnn: Overlap<N> needs at least one slab; counts are positive; use Overlap<1> or Column
// EXPECT: Overlap<0
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Overlap<0>>::value;
#else
constexpr PolicySpec rows = Policy<Overlap<1>>::value;
#endif
