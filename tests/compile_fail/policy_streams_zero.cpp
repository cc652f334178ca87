// No stream at all.
// EXPECT: lrcnn: Streams<k> needs 1 <= k <= 8; each stream takes a slab's memory; use Streams<2>
// EXPECT: Streams<0
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Streams<0>>::value;
#else
constexpr PolicySpec rows = Policy<Streams<1>>::value;
#endif
