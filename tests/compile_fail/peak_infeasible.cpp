// EXPECT: peak_infeasible.cpp
// EXPECT: throw_if_more_slabs_than_fit
// EXPECT: slabs_that_fit
// EXPECT_MATCH: subscript value .30. is outside the bounds of .*\[7\]|element 30 of array of 7 elements
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using Net = Sequential<Conv<8>, ReLU, MaxPool<>, Conv<8>, GlobalAvgPool, Linear<3>>;
#ifdef LRCNN_FAIL
constexpr Index slabs = 30;
#else
constexpr Index slabs = 7;
#endif
static_assert(peak_bytes<Net, Policy<Share<slabs>>, Reference<float>>({1, 1, 16, 16}) < 100000);
