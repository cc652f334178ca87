// EXPECT: lrcnn: linear is given a map
// EXPECT: put Flatten or GlobalAvgPool before Linear
// EXPECT_WITHIN 3: Linear<2
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Fixed<Sequential<Conv<4>, Linear<2>>, Input{1, 3, 8, 8}>;
#else
using Net = Fixed<Sequential<Conv<4>, Flatten, Linear<2>>, Input{1, 3, 8, 8}>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
