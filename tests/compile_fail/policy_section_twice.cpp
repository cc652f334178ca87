// Two ways to compute convolutions.
// EXPECT: lrcnn: two parts of a Section are of one kind; each kind may be named once; remove one of them
// EXPECT_WITHIN 3: DirectConv
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Section<DirectConv, Overlap<2>, WinogradConv>>::value;
#else
constexpr PolicySpec rows = Policy<Section<Overlap<2>, WinogradConv>>::value;
#endif
