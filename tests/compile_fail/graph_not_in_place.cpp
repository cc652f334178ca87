// A custom layer that reads other rows and says that it works in place.
// EXPECT: lrcnn: a custom layer says that it works in place, and changes shape or reads other rows; output and gradient may lie over input and gradient only where each element is made of its own place; leave out overwrites_input and overwrites_gradient
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Blur
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/custom.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
inline constexpr CustomLayer blur{.rules = {.name = "blur", .rows = RowMap::window, .overwrites_input = true}};
#else
inline constexpr CustomLayer blur{.rules = {.name = "blur", .rows = RowMap::window}};
#endif
struct Blur {
  static constexpr Layer layer() { return {.kind = Kind::custom, .window = {.kernel = 3, .pad = 1}, .custom = &blur}; }
};
using Net = Sequential<Conv<6>, Blur>;
static_assert(Net::layers.size() > 0);
