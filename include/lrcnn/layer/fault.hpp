#pragma once
// What can be wrong with a layer and the shape that it is given, and what messages say of it.
//
// The rules themselves stand with the layers (layer/rules.hpp); network/check.hpp applies them.
#include <lrcnn/shape/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
namespace lrcnn {
enum class Fault : std::uint8_t {
  none,
  empty_input,
  too_large,
  bad_window,
  bad_channels,
  other_channels,
  groups_in,
  groups_out,
  window_too_tall,
  pad_too_large,
  window_too_large,
  needs_rows,
  needs_vector,
  norm_groups,
  bad_norm,
  bad_factor,
  ceil_window,
  nothing_left,
  bad_reflection,
  bad_pooled,
  bad_probability,
  bad_rules,
  bad_row_rule,
  not_in_place,
  bad_reference,
  needs_other,
  same_inputs,
  sum_channels,
  sum_extents,
  concat_extents,
  scale_factors,
  unused,
  one_value,   ///< this one and the next: in training alone, fault_of() does not look for them
  map_given,
};
/// An extent that is not known yet; checks that need it are left for later.
inline constexpr Index unknown = std::numeric_limits<Index>::min();
inline constexpr Shape unknown_shape{unknown, unknown, unknown, unknown};
namespace detail {
constexpr bool known(Index extent) { return extent != unknown; }
}   // namespace detail
/// Extents, and numbers that a layer has, are below this; then no product of two overflows, and vendors' libraries can count them.
inline constexpr Index extent_limit = Index{1} << 31;
/// A tensor or a filter has no more elements; then no sum of their bytes over a network overflows.
inline constexpr Index element_limit = Index{1} << 44;
namespace detail {
/// Whether one of some extents from 1 on, or their product, is beyond these limits. Unknown ones count as 1.
constexpr bool too_many(std::initializer_list<Index> extents) {
  Index product = 1;
  for (const Index extent : extents) {
    if (!known(extent) || extent < 1) continue;
    if (extent >= extent_limit || product > element_limit / extent) return true;
    product *= extent;
  }
  return false;
}
constexpr bool too_many(const Shape& s) { return too_many({s.n, s.c, s.h, s.w}); }
}   // namespace detail
/// What messages say of a fault: what is wrong, the rule, what to change.
struct FaultText {
  std::string_view what, rule, change;
};
namespace detail {
/// A fault with its text.
struct FaultRow {
  Fault fault;
  FaultText text;
};
inline constexpr FaultRow fault_rows[] = {
    {Fault::none, {"no fault", "", ""}},
    {Fault::empty_input,
     {"an extent of the input is zero or negative", "images, channels, rows and columns must be at least 1", "give the input's true extents"}},
    {Fault::too_large,
     {"a tensor, a filter or a number of a layer is too large",
      "extents and numbers of a layer are below 2^31, and a tensor or a filter has at most 2^44 elements",
      "use a smaller input, fewer channels or smaller windows"}},
    {Fault::bad_window,
     {"a window has a kernel, stride or dilation below 1, or negative padding", "kernel, stride and dilation are at least 1, padding at least 0",
      "correct the layer's Window"}},
    {Fault::bad_channels, {"a layer has no output channels", "channels and groups are at least 1", "give a positive number"}},
    {Fault::other_channels,
     {"a layer gives other channels than it says", "only convolutions, linear and custom layers choose how many channels they give",
      "leave out the layer's channels, or put a convolution before it"}},
    {Fault::groups_in,
     {"input channels are not divisible by groups", "each group reads an equal share of the input channels",
      "change groups, or the channels of the layer before"}},
    {Fault::groups_out,
     {"output channels are not divisible by groups", "each group writes an equal share of the output channels",
      "change groups or channels of this layer"}},
    {Fault::window_too_tall,
     {"the window does not fit into the padded input", "extent + padding must be at least (kernel - 1) * dilation + 1",
      "use a larger input, a smaller kernel, "
      "more padding, or fewer strides before this layer"}},
    {Fault::pad_too_large,
     {"a pooling window could lie wholly in padding",
      "padding of a pool is smaller than its (kernel - 1) * dilation + 1, and every window has a place on the input",
      "use less padding, a larger kernel or less dilation"}},
    {Fault::window_too_large,
     {"a max pool's window has more than 256 places", "the place of a window's maximum is kept in one byte", "use a smaller kernel"}},
    {Fault::needs_rows,
     {"a layer that needs rows comes after flatten or linear", "convolution and pooling need a map with rows and columns",
      "put it before Flatten, or remove Flatten"}},
    {Fault::needs_vector, {"linear is given a map", "linear reads a feature vector [N,F,1,1]", "put Flatten or GlobalAvgPool before Linear"}},
    {Fault::norm_groups,
     {"channels are not divisible by the groups of a norm", "each group has an equal share of the channels",
      "change the norm's groups, or the channels of the layer before"}},
    {Fault::bad_norm,
     {"a norm has an epsilon that is not above 0, a momentum outside 0 to 1, or negative groups",
      "epsilon keeps the root's argument above 0, and momentum is a share", "correct the layer's Norm"}},
    {Fault::bad_factor,
     {"an upsampling factor is below 1", "each pixel becomes as many rows and columns as the factors say", "give factors of at least 1"}},
    {Fault::ceil_window,
     {"the extent of a convolution is rounded up", "only the windows of pools may end beyond the padding",
      "leave ceil out of the layer's Window, or give it padding"}},
    {Fault::nothing_left,
     {"nothing is left of the map", "cropping, or the padding of a transposed convolution, leaves at least a row and a column",
      "crop less, use less padding, or a larger input"}},
    {Fault::bad_reflection,
     {"reflected padding is negative, or not smaller than the map", "a border shows the rows or columns next to the map's first or last, in reverse",
      "use less padding, Crop, or a larger input"}},
    {Fault::bad_pooled, {"an adaptive pool has no rows or no columns", "the extents of its output are at least 1", "give positive extents"}},
    {Fault::bad_probability,
     {"a dropout's probability is below 0, or not below 1", "what is kept is divided by 1 - probability",
      "give a probability from 0 up to, and without, 1"}},
    {Fault::bad_rules,
     {"the rules of a custom layer ask for what its functions are not given",
      "they see rows of the input, in the backward step also of the output, and no random numbers, workspace or sums over slabs",
      "use RowMap::same, window or own, and reads_nothing, reads_input, reads_input_for_parameters, reads_output or reads_input_and_output"}},
    {Fault::bad_row_rule,
     {"the row rule of a custom layer does not fit its window, or the rows that it gives",
      "RowMap::same has no window and gives the input's rows, RowMap::window gives the window's, and an axis of RowMap::own reaches as far as the "
      "rows that it gives",
      "set rows to RowMap::window, or correct the rules' axis or output, or the layer's Window"}},
    {Fault::not_in_place,
     {"a custom layer says that it works in place, and changes shape or reads other rows",
      "output and gradient may lie over input and gradient only where each element is made of its own place",
      "leave out overwrites_input and overwrites_gradient"}},
    {Fault::bad_reference,
     {"a layer reads what does not come before it, or two inputs without being a join",
      "input is at least 1 place back, and other is 0 except for sum, concat and scale", "correct the layer's input or other"}},
    {Fault::needs_other,
     {"a sum, concat or scale has one input only", "a join reads two tensors, input and other",
      "say in other how many places before it the second one lies"}},
    {Fault::same_inputs,
     {"a sum, concat or scale reads one tensor twice", "the branches of a join end in different tensors", "put a layer into one of the branches"}},
    {Fault::sum_channels,
     {"the branches of a sum have different numbers of channels", "a sum adds channel to channel",
      "give the last layer of one branch the other's channels, or the shortcut a convolution"}},
    {Fault::sum_extents,
     {"the branches of a sum have different rows, columns or images", "a sum adds pixel to pixel",
      "change strides or padding in one branch, or give the shortcut the body's strides"}},
    {Fault::concat_extents,
     {"the branches of a concat have different rows, columns or images", "a concat puts channels of the same pixels one behind the other",
      "change strides, padding or upsampling in one branch, or the input's extents so that pools divide them"}},
    {Fault::scale_factors,
     {"the factors of a scale are no vector of the map's channels", "a map [N,C,H,W] is multiplied by a vector [N,C,1,1]",
      "let the second branch begin with GlobalAvgPool, and end in as many channels as the map has"}},
    {Fault::unused,
     {"a layer's output is not used", "every layer but the last is read by one behind it", "remove the layer, or let another one read it"}},
    {Fault::one_value,
     {"a norm has one value in each channel or group", "the variance of one value is zero, and so is every gradient",
      "use a larger batch or map, or a frozen norm"}},
    {Fault::map_given,
     {"a loss over images is given a map", "it reads a score for each class of an image, [N,K,1,1]",
      "train with a loss over pixels, such as PixelCrossEntropy, or end the network in GlobalAvgPool, or Flatten, and Linear"}},
};
constexpr bool each_fault_has_its_row() {
  std::size_t row = 0;
  for (const FaultRow& r : fault_rows)
    if (r.fault != static_cast<Fault>(row++)) return false;
  return fault_rows[row - 1].fault == Fault::map_given;
}
static_assert(each_fault_has_its_row(), "rows are in the order of Fault");
}   // namespace detail
constexpr FaultText fault_text(Fault fault) { return detail::fault_rows[static_cast<std::size_t>(fault)].text; }
}   // namespace lrcnn
