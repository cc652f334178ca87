// A dropout that drops everything.
// EXPECT: lrcnn: a dropout's probability is below 0, or not below 1; what is kept is divided by 1 - probability; give a probability from 0 up to, and without, 1
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Dropout<
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/dropout.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<6>, Dropout<std::ratio<1>>>;
#else
using Net = Sequential<Conv<6>, Dropout<std::ratio<9, 10>>>;
#endif
static_assert(Net::layers.size() > 0);
