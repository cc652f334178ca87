// As policy_overlap_again.cpp, where slabs share rows.
// EXPECT: lrcnn: Share<F, B, A> has another A than F and B; a forward pass that is run again has as many slabs as the first one, or as the backward pass; use Share<F, B, B>
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Share<1, 8, 4>>::value;
#else
constexpr PolicySpec rows = Policy<Share<1, 8, 8>>::value;
#endif
