// EXPECT: lrcnn: output channels are not divisible by groups
// EXPECT: change groups or channels of this layer
// EXPECT_WITHIN 3: Conv<7
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, Conv<7, Window{.kernel = 3}, ConvOptions{.groups = 2}>, GlobalAvgPool, Linear<2>>;
#else
using Net = Sequential<Conv<4>, Conv<8, Window{.kernel = 3}, ConvOptions{.groups = 2}>, GlobalAvgPool, Linear<2>>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
