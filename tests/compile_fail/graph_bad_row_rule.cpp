// A custom layer with a window that its rules do not mention.
// EXPECT: lrcnn: the row rule of a custom layer does not fit its window, or the rows that it gives; RowMap::same has no window and gives the input's rows, RowMap::window gives the window's, and an axis of RowMap::own reaches as far as the rows that it gives; set rows to RowMap::window, or correct the rules' axis or output, or the layer's Window
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: Blur
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/custom.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
inline constexpr CustomLayer blur{.rules = {.name = "blur"}};
#else
inline constexpr CustomLayer blur{.rules = {.name = "blur", .rows = RowMap::window}};
#endif
struct Blur {
  static constexpr Layer layer() { return {.kind = Kind::custom, .window = {.kernel = 3, .pad = 1}, .custom = &blur}; }
};
using Net = Sequential<Conv<6>, Blur>;
static_assert(Net::layers.size() > 0);
