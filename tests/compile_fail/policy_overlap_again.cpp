// A forward pass that is run again in other slabs than any other pass has.
// EXPECT: lrcnn: Overlap<F, B, A> has another A than F and B; a forward pass that is run again has as many slabs as the first one, or as the backward pass; use Overlap<F, B, B>
// EXPECT: Overlap<1, 8, 4
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Overlap<1, 8, 4>>::value;
#else
constexpr PolicySpec rows = Policy<Overlap<1, 8, 8>>::value;
#endif
