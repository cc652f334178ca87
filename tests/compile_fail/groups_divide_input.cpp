// EXPECT: lrcnn: input channels are not divisible by groups
// EXPECT: change groups, or the channels of the layer before
// EXPECT_WITHIN 3: Conv<6
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, Conv<6, Window{.kernel = 3}, ConvOptions{.groups = 3}>, GlobalAvgPool, Linear<2>>;
#else
using Net = Sequential<Conv<6>, Conv<6, Window{.kernel = 3}, ConvOptions{.groups = 3}>, GlobalAvgPool, Linear<2>>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
