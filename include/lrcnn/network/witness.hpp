#pragma once
// Turns a fault of a layer into a compile-time message that names the layer.
//
// Compilers show the layer, its descriptor and its input shape next to a failed static_assert if the condition itself
// is a template over them: g++ in the note below, clang in the error line, nvcc in the instantiation below. Hence one
// variable template for each rule. The texts are those of fault_text() (tests/compile_fail compares them).
#include <lrcnn/network/check.hpp>
namespace lrcnn {
/// Images, channels, rows and columns; '?' for what is not known yet.
template <auto n, auto c, auto h, auto w>
struct extents_of {};
namespace detail {
template <Index extent>
constexpr auto extent_shown() {
  if constexpr (!known(extent)) return '?';
  else if constexpr (extent == static_cast<int>(extent)) return static_cast<int>(extent);   // clang shows 8L for other integers
  else return extent;
}
/// A shape as messages show it: a type, because clang does not show the types of values.
template <Shape s>
struct ShapeShown {
  using type = extents_of<extent_shown<s.n>(), extent_shown<s.c>(), extent_shown<s.h>(), extent_shown<s.w>()>;
};
}   // namespace detail
/// A layer in its place: the Position-th layer (from 1), its descriptor, and the extents of what it is given.
template <Index Position, class Descriptor, class Input>
struct layer_at {};
/// What comes out of a branch: the place of its last layer (0: the input itself), and the shape that it gives.
template <Index Position, class Output>
struct branch_from {};
/// A join in its place, with both branches.
template <Index Position, class Descriptor, class First, class Second>
struct join_at {};
/// The network's output: the place of the last layer, its descriptor, and the shape that it gives.
template <Index Position, class Descriptor, class Output>
struct output_of {};
// A rule, and a text, is a line: tests/network/check.cpp reads them.
// clang-format off
namespace rule {
template <class Where, Fault fault> inline constexpr bool extents_are_positive = fault != Fault::empty_input;
template <class Where, Fault fault> inline constexpr bool sizes_are_limited = fault != Fault::too_large;
template <class Where, Fault fault> inline constexpr bool window_is_positive = fault != Fault::bad_window;
template <class Where, Fault fault> inline constexpr bool channels_are_positive = fault != Fault::bad_channels;
template <class Where, Fault fault> inline constexpr bool channels_are_given = fault != Fault::other_channels;
template <class Where, Fault fault> inline constexpr bool groups_divide_input = fault != Fault::groups_in;
template <class Where, Fault fault> inline constexpr bool groups_divide_output = fault != Fault::groups_out;
template <class Where, Fault fault> inline constexpr bool window_fits = fault != Fault::window_too_tall;
template <class Where, Fault fault> inline constexpr bool padding_is_smaller = fault != Fault::pad_too_large;
template <class Where, Fault fault> inline constexpr bool places_fit_a_byte = fault != Fault::window_too_large;
template <class Where, Fault fault> inline constexpr bool rows_are_there = fault != Fault::needs_rows;
template <class Where, Fault fault> inline constexpr bool input_is_vector = fault != Fault::needs_vector;
template <class Where, Fault fault> inline constexpr bool groups_divide_norm = fault != Fault::norm_groups;
template <class Where, Fault fault> inline constexpr bool norm_is_sound = fault != Fault::bad_norm;
template <class Where, Fault fault> inline constexpr bool factor_is_positive = fault != Fault::bad_factor;
template <class Where, Fault fault> inline constexpr bool extents_are_rounded_down = fault != Fault::ceil_window;
template <class Where, Fault fault> inline constexpr bool something_is_left = fault != Fault::nothing_left;
template <class Where, Fault fault> inline constexpr bool reflection_is_smaller = fault != Fault::bad_reflection;
template <class Where, Fault fault> inline constexpr bool pooled_is_positive = fault != Fault::bad_pooled;
template <class Where, Fault fault> inline constexpr bool probability_is_below_one = fault != Fault::bad_probability;
template <class Where, Fault fault> inline constexpr bool rules_are_for_functions = fault != Fault::bad_rules;
template <class Where, Fault fault> inline constexpr bool row_rule_fits = fault != Fault::bad_row_rule;
template <class Where, Fault fault> inline constexpr bool works_in_place = fault != Fault::not_in_place;
template <class Where, Fault fault> inline constexpr bool references_go_back = fault != Fault::bad_reference;
template <class Where, Fault fault> inline constexpr bool join_has_two_inputs = fault != Fault::needs_other;
template <class Where, Fault fault> inline constexpr bool join_inputs_differ = fault != Fault::same_inputs;
template <class Where, Fault fault> inline constexpr bool sum_channels_agree = fault != Fault::sum_channels;
template <class Where, Fault fault> inline constexpr bool sum_extents_agree = fault != Fault::sum_extents;
template <class Where, Fault fault> inline constexpr bool concat_extents_agree = fault != Fault::concat_extents;
template <class Where, Fault fault> inline constexpr bool factors_are_a_vector = fault != Fault::scale_factors;
template <class Where, Fault fault> inline constexpr bool output_is_used = fault != Fault::unused;
template <class Where, Fault fault> inline constexpr bool norm_has_values = fault != Fault::one_value;
template <class Where, Fault fault> inline constexpr bool output_is_vector = fault != Fault::map_given;
}  // namespace rule
/// Instantiating this checks one layer.
template <class Where, Fault fault>
struct Witness {
  static_assert(rule::extents_are_positive<Where, fault>, "lrcnn: an extent of the input is zero or negative; images, channels, rows and columns must be at least 1; give the input's true extents");
  static_assert(rule::sizes_are_limited<Where, fault>, "lrcnn: a tensor, a filter or a number of a layer is too large; extents and numbers of a layer are below 2^31, and a tensor or a filter has at most 2^44 elements; use a smaller input, fewer channels or smaller windows");
  static_assert(rule::window_is_positive<Where, fault>, "lrcnn: a window has a kernel, stride or dilation below 1, or negative padding; kernel, stride and dilation are at least 1, padding at least 0; correct the layer's Window");
  static_assert(rule::channels_are_positive<Where, fault>, "lrcnn: a layer has no output channels; channels and groups are at least 1; give a positive number");
  static_assert(rule::channels_are_given<Where, fault>, "lrcnn: a layer gives other channels than it says; only convolutions, linear and custom layers choose how many channels they give; leave out the layer's channels, or put a convolution before it");
  static_assert(rule::groups_divide_input<Where, fault>, "lrcnn: input channels are not divisible by groups; each group reads an equal share of the input channels; change groups, or the channels of the layer before");
  static_assert(rule::groups_divide_output<Where, fault>, "lrcnn: output channels are not divisible by groups; each group writes an equal share of the output channels; change groups or channels of this layer");
  static_assert(rule::window_fits<Where, fault>, "lrcnn: the window does not fit into the padded input; extent + padding must be at least (kernel - 1) * dilation + 1; use a larger input, a smaller kernel, more padding, or fewer strides before this layer");
  static_assert(rule::padding_is_smaller<Where, fault>, "lrcnn: a pooling window could lie wholly in padding; padding of a pool is smaller than its (kernel - 1) * dilation + 1, and every window has a place on the input; use less padding, a larger kernel or less dilation");
  static_assert(rule::places_fit_a_byte<Where, fault>, "lrcnn: a max pool's window has more than 256 places; the place of a window's maximum is kept in one byte; use a smaller kernel");
  static_assert(rule::rows_are_there<Where, fault>, "lrcnn: a layer that needs rows comes after flatten or linear; convolution and pooling need a map with rows and columns; put it before Flatten, or remove Flatten");
  static_assert(rule::input_is_vector<Where, fault>, "lrcnn: linear is given a map; linear reads a feature vector [N,F,1,1]; put Flatten or GlobalAvgPool before Linear");
  static_assert(rule::groups_divide_norm<Where, fault>, "lrcnn: channels are not divisible by the groups of a norm; each group has an equal share of the channels; change the norm's groups, or the channels of the layer before");
  static_assert(rule::norm_is_sound<Where, fault>, "lrcnn: a norm has an epsilon that is not above 0, a momentum outside 0 to 1, or negative groups; epsilon keeps the root's argument above 0, and momentum is a share; correct the layer's Norm");
  static_assert(rule::factor_is_positive<Where, fault>, "lrcnn: an upsampling factor is below 1; each pixel becomes as many rows and columns as the factors say; give factors of at least 1");
  static_assert(rule::extents_are_rounded_down<Where, fault>, "lrcnn: the extent of a convolution is rounded up; only the windows of pools may end beyond the padding; leave ceil out of the layer's Window, or give it padding");
  static_assert(rule::something_is_left<Where, fault>, "lrcnn: nothing is left of the map; cropping, or the padding of a transposed convolution, leaves at least a row and a column; crop less, use less padding, or a larger input");
  static_assert(rule::reflection_is_smaller<Where, fault>, "lrcnn: reflected padding is negative, or not smaller than the map; a border shows the rows or columns next to the map's first or last, in reverse; use less padding, Crop, or a larger input");
  static_assert(rule::pooled_is_positive<Where, fault>, "lrcnn: an adaptive pool has no rows or no columns; the extents of its output are at least 1; give positive extents");
  static_assert(rule::probability_is_below_one<Where, fault>, "lrcnn: a dropout's probability is below 0, or not below 1; what is kept is divided by 1 - probability; give a probability from 0 up to, and without, 1");
  static_assert(rule::rules_are_for_functions<Where, fault>, "lrcnn: the rules of a custom layer ask for what its functions are not given; they see rows of the input, in the backward step also of the output, and no random numbers, workspace or sums over slabs; use RowMap::same, window or own, and reads_nothing, reads_input, reads_input_for_parameters, reads_output or reads_input_and_output");
  static_assert(rule::row_rule_fits<Where, fault>, "lrcnn: the row rule of a custom layer does not fit its window, or the rows that it gives; RowMap::same has no window and gives the input's rows, RowMap::window gives the window's, and an axis of RowMap::own reaches as far as the rows that it gives; set rows to RowMap::window, or correct the rules' axis or output, or the layer's Window");
  static_assert(rule::works_in_place<Where, fault>, "lrcnn: a custom layer says that it works in place, and changes shape or reads other rows; output and gradient may lie over input and gradient only where each element is made of its own place; leave out overwrites_input and overwrites_gradient");
  static_assert(rule::references_go_back<Where, fault>, "lrcnn: a layer reads what does not come before it, or two inputs without being a join; input is at least 1 place back, and other is 0 except for sum, concat and scale; correct the layer's input or other");
  static_assert(rule::join_has_two_inputs<Where, fault>, "lrcnn: a sum, concat or scale has one input only; a join reads two tensors, input and other; say in other how many places before it the second one lies");
  static_assert(rule::join_inputs_differ<Where, fault>, "lrcnn: a sum, concat or scale reads one tensor twice; the branches of a join end in different tensors; put a layer into one of the branches");
  static_assert(rule::sum_channels_agree<Where, fault>, "lrcnn: the branches of a sum have different numbers of channels; a sum adds channel to channel; give the last layer of one branch the other's channels, or the shortcut a convolution");
  static_assert(rule::sum_extents_agree<Where, fault>, "lrcnn: the branches of a sum have different rows, columns or images; a sum adds pixel to pixel; change strides or padding in one branch, or give the shortcut the body's strides");
  static_assert(rule::concat_extents_agree<Where, fault>, "lrcnn: the branches of a concat have different rows, columns or images; a concat puts channels of the same pixels one behind the other; change strides, padding or upsampling in one branch, or the input's extents so that pools divide them");
  static_assert(rule::factors_are_a_vector<Where, fault>, "lrcnn: the factors of a scale are no vector of the map's channels; a map [N,C,H,W] is multiplied by a vector [N,C,1,1]; let the second branch begin with GlobalAvgPool, and end in as many channels as the map has");
  static_assert(rule::output_is_used<Where, fault>, "lrcnn: a layer's output is not used; every layer but the last is read by one behind it; remove the layer, or let another one read it");
  static_assert(rule::norm_has_values<Where, fault>, "lrcnn: a norm has one value in each channel or group; the variance of one value is zero, and so is every gradient; use a larger batch or map, or a frozen norm");
  static_assert(rule::output_is_vector<Where, fault>, "lrcnn: a loss over images is given a map; it reads a score for each class of an image, [N,K,1,1]; train with a loss over pixels, such as PixelCrossEntropy, or end the network in GlobalAvgPool, or Flatten, and Linear");
  static constexpr bool ok = fault == Fault::none;
};
// clang-format on
}   // namespace lrcnn
