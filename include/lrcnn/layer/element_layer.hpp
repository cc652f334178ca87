#pragma once
// A layer of the user's own, from functions of one element, which the host's loops and a device's call alike.
//
//     struct Gain {   // y = gain[c] * x
//       static constexpr LayerRules rules{.name = "gain", .backward = reads_input, .parameters = one_for_each_channel};
//       template <class T>
//       LRCNN_HOST_DEVICE static auto output(const Elements<T>& a, const Place& at) { return a.parameters[0][at.channel] * a.x_at(at); }
//       template <class T>
//       LRCNN_HOST_DEVICE static auto input_gradient(const Elements<T>& a, const Place& at) { return a.parameters[0][at.channel] * a.dy_at(at); }
//       template <class T>
//       LRCNN_HOST_DEVICE static auto parameter_gradient(const Elements<T>& a, Index, const Place& at) { return a.dy_at(at) * a.x_at(at); }
//     };
//     using Net = Sequential<Conv<16>, ElementLayer<Gain>, ReLU, GlobalAvgPool, Linear<10>>;
//
// For a GPU, F says on_device, and one .cu file of the program compiles its loops (backend/cudnn/custom_loops.hpp):
//
//     template const lrcnn::CustomDeviceLayer& lrcnn::loops_on_device<Gain>();
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/layer/custom.hpp>
#include <concepts>
#include <string_view>
namespace lrcnn {
/// An element of a map, by its row and column in the whole map.
struct Place {
  Index image = 0, channel = 0, row = 0, column = 0;
};
/// What functions of an element see.
/// Shapes:  x [N,C,rows_x,W], y and dy [N,K,rows_y,Q], rows absolute; in, out: shapes of the whole map
template <class T>
struct Elements {
  using number = master_t<T>;   ///< what is computed with: float for elements of 16 bits
  Layer layer{};
  Shape in{}, out{};
  View<const T> x{}, y{}, dy{};   ///< data is nullptr where the layer's rules do not ask for it; dy in backward steps alone
  const number* parameters[4]{};
  LRCNN_HOST_DEVICE number x_at(const Place& at) const { return static_cast<number>(x(at.image, at.channel, at.row, at.column)); }
  LRCNN_HOST_DEVICE number y_at(const Place& at) const { return static_cast<number>(y(at.image, at.channel, at.row, at.column)); }
  /// 0 in rows that a slab's gradient does not have.
  LRCNN_HOST_DEVICE number dy_at(const Place& at) const {
    return dy.holds(at.row) ? static_cast<number>(dy(at.image, at.channel, at.row, at.column)) : number(0);
  }
};
namespace detail {
/// Calls f(r, s) for the places of a window, in numbers of 32 bits, by which a device divides fast.
template <class F>
LRCNN_HOST_DEVICE void for_taps(const Window& w, F f) {
  const auto rows = static_cast<int>(w.kernel.h), columns = static_cast<int>(w.kernel.w);
  for (int r = 0; r < rows; ++r)
    for (int s = 0; s < columns; ++s) f(r, s);
}
}   // namespace detail
/// Calls f(place) for each place of the input that the window of an output's element covers; padding has none.
template <class T, class F>
LRCNN_HOST_DEVICE void for_window(const Elements<T>& a, const Place& at, F f) {
  const Window& w = a.layer.window;
  const auto top = static_cast<int>(at.row * w.stride.h - w.pad.top), left = static_cast<int>(at.column * w.stride.w - w.pad.left);
  const auto down = static_cast<int>(w.dilation.h), along = static_cast<int>(w.dilation.w);
  detail::for_taps(w, [&](int r, int s) {
    const int row = top + r * down, column = left + s * along;
    if (row >= 0 && row < a.in.h && column >= 0 && column < a.in.w) f(Place{at.image, at.channel, row, column});
  });
}
/// Calls f(place) for each place of dy's rows whose window covers an input's element.
template <class T, class F>
LRCNN_HOST_DEVICE void for_windows_over(const Elements<T>& a, const Place& at, F f) {
  const Window& w = a.layer.window;
  const auto below = static_cast<int>(at.row + w.pad.top), right = static_cast<int>(at.column + w.pad.left);
  const auto down = static_cast<int>(w.dilation.h), along = static_cast<int>(w.dilation.w);
  const auto rows = static_cast<int>(w.stride.h), columns = static_cast<int>(w.stride.w);
  detail::for_taps(w, [&](int r, int s) {
    const int row = below - r * down, column = right - s * along;
    if (row < 0 || column < 0 || row % rows != 0 || column % columns != 0) return;
    const Place there{at.image, at.channel, row / rows, column / columns};
    if (a.dy.holds(there.row) && there.column < a.out.w) f(there);
  });
}
/// For LayerRules::parameters: one parameter, "weight", with an element for each channel of the input; it begins as 1 and does not decay.
constexpr ParameterShapes one_for_each_channel(const Layer&, const Shape& in) {
  ParameterShapes shapes;
  shapes.add({.name = "weight", .extents = {in.c, 1, 1, 1}, .fill = 1, .decay = false});
  return shapes;
}
/// Functions of one element.
///
///     static constexpr LayerRules rules{...};                          // as CustomLayer::rules
///     output(const Elements<T>&, const Place&)                         // of y
///     input_gradient(const Elements<T>&, const Place&)                 // of dx; 0 where no row of dy depends on it
///     parameter_gradient(const Elements<T>&, Index p, const Place&)    // only with parameters: what the element of dy at a place adds to the
///                                                                      // gradient of the element at.channel of parameter p
///
/// Each is a template, marked LRCNN_HOST_DEVICE where the layer is for a GPU, and returns a float, or a double for elements of that type.
/// Pre:     parameters have one element for each channel of the output
template <class F>
concept ElementFunctions = requires(const Elements<float>& a, const Elements<double>& b, const Place& at) {
  { F::rules } -> std::convertible_to<LayerRules>;
  { F::output(a, at) } -> std::same_as<float>;
  { F::output(b, at) } -> std::same_as<double>;
  { F::input_gradient(a, at) } -> std::same_as<float>;
  { F::input_gradient(b, at) } -> std::same_as<double>;
};
namespace detail {
template <class F>
concept ParameterFunctions = requires(const Elements<float>& a, const Place& at) {
  F::parameter_gradient(a, Index{}, at);
};
template <class T, class A>
Elements<T> elements_of(const A& a) {
  Elements<T> e{.layer = a.layer, .in = a.in, .out = a.out, .x = a.x};
  if constexpr (requires { a.dy; }) e.y = a.y, e.dy = a.dy;
  for (std::size_t p = 0; p < a.parameters.size(); ++p) e.parameters[p] = a.parameters[p];
  return e;
}
/// Calls f(place) for the elements of a view's row of a channel.
template <class V, class F>
void for_row(const V& view, Index image, Index channel, Index row, F f) {
  for (Index column = 0; column < view.w; ++column) f(Place{image, channel, row, column});
}
template <class T, class F>
void for_rows(const View<T>& view, F f) {
  for (Index image = 0; image < view.n; ++image)
    for (Index channel = 0; channel < view.c; ++channel)
      for (Index row = view.row0; row < view.row0 + view.rows; ++row) f(image, channel, row);
}
template <class T, class F>
void write_elements(const View<T>& view, F f) {
  for_rows(view, [&](Index image, Index channel, Index row) {
    for_row(view, image, channel, row, [&](const Place& at) { view(at.image, at.channel, at.row, at.column) = static_cast<T>(f(at)); });
  });
}
template <class F, class T>
void element_forward(const CustomForward<T>& a) {
  const auto e = elements_of<T>(a);
  write_elements(a.y, [&](const Place& at) { return F::output(e, at); });
}
template <class F, class T>
void element_backward_data(const CustomBackward<T>& a) {
  const auto e = elements_of<T>(a);
  write_elements(a.dx, [&](const Place& at) { return F::input_gradient(e, at); });
}
/// Adds rows in double, so that a map of many rows loses nothing.
template <class F, class T>
void element_backward_parameters(const CustomBackward<T>& a) {
  const auto e = elements_of<T>(a);
  for (std::size_t p = 0; p < a.d_parameters.size(); ++p)
    for (Index channel = 0; channel < a.dy.c; ++channel) {
      double sum = 0;
      for (Index image = 0; image < a.dy.n; ++image)
        for (Index row = a.dy.row0; row < a.dy.row0 + a.dy.rows; ++row) {
          master_t<T> of_row{};
          for_row(a.dy, image, channel, row, [&](const Place& at) { of_row += F::parameter_gradient(e, static_cast<Index>(p), at); });
          sum += static_cast<double>(of_row);
        }
      a.d_parameters[p][channel] += static_cast<master_t<T>>(sum);
    }
}
template <class F, class T>
constexpr CustomFunctions<T> element_functions() {
  CustomFunctions<T> functions{element_forward<F, T>, element_backward_data<F, T>, nullptr};
  if constexpr (ParameterFunctions<F>) functions.backward_parameters = element_backward_parameters<F, T>;
  return functions;
}
template <class F>
constexpr LayerRules element_rules() {
  LayerRules rules = F::rules;
  rules.sums_channels = ParameterFunctions<F>;
  return rules;
}
template <class F>
inline constexpr CustomLayer element_layer = with_device<F>({.rules = element_rules<F>(),
                                                             .f32 = element_functions<F, float>(),
                                                             .f64 = element_functions<F, double>(),
                                                             .bf16 = element_functions<F, bfloat16>()});
}   // namespace detail
/// A layer whose arithmetic is that of F, element by element, with a window where F's rules say RowMap::window.
template <ElementFunctions F, Window window = Window{1}>
struct ElementLayer {
  static constexpr Layer layer() { return {.kind = Kind::custom, .window = window, .custom = &detail::element_layer<F>}; }
};
}   // namespace lrcnn
