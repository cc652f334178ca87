// EXPECT: lrcnn: a pooling window could lie wholly in padding
// EXPECT: use less padding, a larger kernel or less dilation
// EXPECT_WITHIN 3: MaxPool<
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, MaxPool<Window{.kernel = 2, .stride = 2, .pad = 2}>>;
#else
using Net = Sequential<Conv<4>, MaxPool<Window{.kernel = 2, .stride = 2, .pad = 1}>>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
