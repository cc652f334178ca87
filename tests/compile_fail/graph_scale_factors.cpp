// A squeeze-and-excitation whose factors are too few.
// EXPECT: lrcnn: the factors of a scale are no vector of the map's channels; a map [N,C,H,W] is multiplied by a vector [N,C,1,1]; let the second branch begin with GlobalAvgPool, and end in as many channels as the map has
// EXPECT_WITHIN 3: join_at<
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/network/squeeze_excitation.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<48>, SqueezeExcitation<32>>;
#else
using Net = Sequential<Conv<32>, SqueezeExcitation<32>>;
#endif
static_assert(Net::layers.size() > 0);
