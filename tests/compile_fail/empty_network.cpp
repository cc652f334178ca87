// EXPECT: lrcnn: a Sequential has no layers
// EXPECT: name its layers
#include <lrcnn/network/vgg.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<>;
#else
using Net = Sequential<ReLU>;
#endif
constexpr auto count = Net::layers.size();
int main() { return count == 0; }
