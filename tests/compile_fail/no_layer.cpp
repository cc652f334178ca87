// EXPECT: lrcnn: a part of a Sequential is no layer
// EXPECT: see docs/extending.md
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<4>, int>;
#else
using Net = Sequential<Conv<4>, ReLU>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
