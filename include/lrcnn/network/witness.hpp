#pragma once
// Turns a fault of a layer into a compile-time message that names the layer.
//
// Compilers show the layer, its descriptor and its input shape next to a failed static_assert if the condition itself
// is a template over them: g++ in the note below, clang in the error line, nvcc in the instantiation below. Hence one
// variable template for each rule. The texts are those of fault_text() (tests/compile_fail compares them).
#include <lrcnn/network/check.hpp>
namespace lrcnn {
/// A layer in its place: the Position-th layer (from 1), its descriptor, and the shape it is given.
/// An extent of -9223372036854775808 is not known yet.
template <Index Position, class Descriptor, Shape Input>
struct layer_at {};
namespace rule {
template <class Where, Fault fault> inline constexpr bool extents_are_positive = fault != Fault::empty_input;
template <class Where, Fault fault> inline constexpr bool window_is_positive = fault != Fault::bad_window;
template <class Where, Fault fault> inline constexpr bool channels_are_positive = fault != Fault::bad_channels;
template <class Where, Fault fault> inline constexpr bool groups_divide_input = fault != Fault::groups_in;
template <class Where, Fault fault> inline constexpr bool groups_divide_output = fault != Fault::groups_out;
template <class Where, Fault fault> inline constexpr bool window_fits = fault != Fault::window_too_tall;
template <class Where, Fault fault> inline constexpr bool padding_is_smaller = fault != Fault::pad_too_large;
template <class Where, Fault fault> inline constexpr bool places_fit_a_byte = fault != Fault::window_too_large;
template <class Where, Fault fault> inline constexpr bool rows_are_there = fault != Fault::needs_rows;
template <class Where, Fault fault> inline constexpr bool input_is_vector = fault != Fault::needs_vector;
}  // namespace rule
/// Instantiating this checks one layer.
template <class Where, Fault fault>
struct Witness {
  static_assert(rule::extents_are_positive<Where, fault>, "lrcnn: an extent of the input is zero or negative; images, channels, rows and columns must be at least 1; give the input's true extents");
  static_assert(rule::window_is_positive<Where, fault>, "lrcnn: a window has a kernel, stride or dilation below 1, or negative padding; kernel, stride and dilation are at least 1, padding at least 0; correct the layer's Window");
  static_assert(rule::channels_are_positive<Where, fault>, "lrcnn: a layer has no output channels; channels and groups are at least 1; give a positive number");
  static_assert(rule::groups_divide_input<Where, fault>, "lrcnn: input channels are not divisible by groups; each group reads an equal share of the input channels; change groups, or the channels of the layer before");
  static_assert(rule::groups_divide_output<Where, fault>, "lrcnn: output channels are not divisible by groups; each group writes an equal share of the output channels; change groups or channels of this layer");
  static_assert(rule::window_fits<Where, fault>, "lrcnn: the window does not fit into the padded input; extent + padding must be at least (kernel - 1) * dilation + 1; use a larger input, a smaller kernel, more padding, or fewer strides before this layer");
  static_assert(rule::padding_is_smaller<Where, fault>, "lrcnn: a pooling window could lie wholly in padding; padding of a pool is smaller than its (kernel - 1) * dilation + 1, and every window has a place on the input; use less padding, a larger kernel or less dilation");
  static_assert(rule::places_fit_a_byte<Where, fault>, "lrcnn: a max pool's window has more than 256 places; the place of a window's maximum is kept in one byte; use a smaller kernel");
  static_assert(rule::rows_are_there<Where, fault>, "lrcnn: a layer that needs rows comes after flatten or linear; convolution and pooling need a map with rows and columns; put it before Flatten, or remove Flatten");
  static_assert(rule::input_is_vector<Where, fault>, "lrcnn: linear is given a map; linear reads a feature vector [N,F,1,1]; put Flatten or GlobalAvgPool before Linear");
  static constexpr bool ok = fault == Fault::none;
};
}  // namespace lrcnn
