// EXPECT: lrcnn: a layer has no output channels
// EXPECT: give a positive number
// EXPECT_WITHIN 3: Conv<0
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<0>, ReLU>;
#else
using Net = Sequential<Conv<1>, ReLU>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
