// An input that is made again in fewer slabs than none.
// EXPECT: lrcnn: RecomputeInputAlone<P, N> has a negative N; counts of slabs are positive; use RecomputeInputAlone<P, 1>, or leave N out
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<RecomputeInputAlone<Column, -1>>::value;
#else
constexpr PolicySpec rows = Policy<RecomputeInputAlone<Column, 1>>::value;
#endif
