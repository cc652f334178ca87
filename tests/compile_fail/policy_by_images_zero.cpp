// Slabs of no images.
// EXPECT: lrcnn: ByImages<n> needs at least one image; counts are positive; use ByImages<1>
// EXPECT: ByImages<0
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<ByImages<0>>::value;
#else
constexpr PolicySpec rows = Policy<ByImages<1>>::value;
#endif
