// EXPECT: lrcnn: a window has a kernel, stride or dilation below 1, or negative padding
// EXPECT: correct the layer's Window
// EXPECT_WITHIN 3: Conv<4
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<ReLU, Conv<4, Window{.kernel = 3, .stride = 0}>>;
#else
using Net = Sequential<ReLU, Conv<4, Window{.kernel = 3, .stride = 1}>>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
