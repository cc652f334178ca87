// A squeeze to a fraction of a channel.
// EXPECT: lrcnn: the channels of a squeeze-and-excitation are not divisible by its reduction; they are squeezed into channels / reduction; change one of the two
// EXPECT: SqueezeExcitation<24
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/network/squeeze_excitation.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<24>, SqueezeExcitation<24>>;
#else
using Net = Sequential<Conv<24>, SqueezeExcitation<24, 8>>;
#endif
static_assert(Net::layers.size() > 0);
