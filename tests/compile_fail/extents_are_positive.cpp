// EXPECT: lrcnn: an extent of the input is zero or negative
// EXPECT: give the input's true extents
// EXPECT_WITHIN 3: Conv<4
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Fixed<Sequential<Conv<4>, GlobalAvgPool>, Input{1, 3, 0, 8}>;
#else
using Net = Fixed<Sequential<Conv<4>, GlobalAvgPool>, Input{1, 3, 1, 8}>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
