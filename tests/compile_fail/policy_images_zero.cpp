// Groups of no images.
// EXPECT: lrcnn: Images<n> needs at least one image; counts are positive; use Images<1>
// EXPECT: Images<0
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Images<0>>::value;
#else
constexpr PolicySpec rows = Policy<Images<1>>::value;
#endif
