// EXPECT: lrcnn: a layer that needs rows comes after flatten or linear
// EXPECT: put it before Flatten, or remove Flatten
// EXPECT_WITHIN 3: MaxPool<
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, Flatten, MaxPool<>, Linear<2>>;
#else
using Net = Sequential<Conv<4>, MaxPool<>, Flatten, Linear<2>>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
