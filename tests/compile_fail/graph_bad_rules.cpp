// A custom layer that wants all rows, which its functions do not see.
// EXPECT: lrcnn: the rules of a custom layer ask for what its functions are not given; they see rows of the input, in the backward step also of the output, and no random numbers, workspace or sums over slabs; use RowMap::same, window or own, and reads_nothing, reads_input, reads_input_for_parameters, reads_output or reads_input_and_output
// EXPECT_WITHIN 3: layer_at<2
// EXPECT_WITHIN 3: SeesAll
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/custom.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
inline constexpr CustomLayer sees_all{.rules = {.name = "sees_all", .rows = RowMap::all}};
#else
inline constexpr CustomLayer sees_all{.rules = {.name = "sees_all", .rows = RowMap::window}};
#endif
struct SeesAll {
  static constexpr Layer layer() { return {.kind = Kind::custom, .custom = &sees_all}; }
};
using Net = Sequential<Conv<6>, SeesAll>;
static_assert(Net::layers.size() > 0);
