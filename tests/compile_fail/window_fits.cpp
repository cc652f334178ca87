// EXPECT: lrcnn: the window does not fit into the padded input
// EXPECT: use a larger input, a smaller kernel
// EXPECT_WITHIN 3: Conv<4
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Fixed<Sequential<MaxPool<>, Conv<4, Window{.kernel = 9}>, GlobalAvgPool>, Input{1, 3, 16, 16}>;
#else
using Net = Fixed<Sequential<MaxPool<>, Conv<4, Window{.kernel = 9}>, GlobalAvgPool>, Input{1, 3, 18, 18}>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
