#pragma once
// Layers as a program would write them for CPUs and GPUs at once, outside the library and against its documented interface alone.
#include <lrcnn/layer/element_layer.hpp>
#include <lrcnn/layer/pointwise.hpp>
#include <cmath>
namespace lrcnn::testing {
/// y = weight[c] * x
struct Gain {
  static constexpr LayerRules rules{.name = "gain", .backward = reads_input, .takes_activation = true, .parameters = one_for_each_channel};
  static constexpr bool on_device = true;
  template <class T>
  LRCNN_HOST_DEVICE static auto output(const Elements<T>& a, const Place& at) {
    return a.parameters[0][at.channel] * a.x_at(at);
  }
  template <class T>
  LRCNN_HOST_DEVICE static auto input_gradient(const Elements<T>& a, const Place& at) {
    return a.parameters[0][at.channel] * a.dy_at(at);
  }
  template <class T>
  LRCNN_HOST_DEVICE static auto parameter_gradient(const Elements<T>& a, Index, const Place& at) {
    return a.dy_at(at) * a.x_at(at);
  }
};
/// The mean square of a window, times a factor for each channel, plus an offset for each: two parameters.
struct EnergyPool {
  static constexpr ParameterShapes factor_and_offset(const Layer& layer, const Shape& in) {
    ParameterShapes shapes = one_for_each_channel(layer, in);
    shapes.add({.name = "offset", .extents = {in.c, 1, 1, 1}, .fill = 0.25, .decay = false});
    return shapes;
  }
  static constexpr LayerRules rules{.name = "energy_pool", .rows = RowMap::window, .backward = reads_input, .parameters = factor_and_offset};
  static constexpr bool on_device = true;
  template <class T>
  LRCNN_HOST_DEVICE static auto mean_square(const Elements<T>& a, const Place& at) {
    typename Elements<T>::number sum = 0;
    for_window(a, at, [&](const Place& there) { sum += a.x_at(there) * a.x_at(there); });
    return sum / size<T>(a);
  }
  template <class T>
  LRCNN_HOST_DEVICE static auto output(const Elements<T>& a, const Place& at) {
    return a.parameters[0][at.channel] * mean_square(a, at) + a.parameters[1][at.channel];
  }
  template <class T>
  LRCNN_HOST_DEVICE static auto input_gradient(const Elements<T>& a, const Place& at) {
    typename Elements<T>::number sum = 0;
    for_windows_over(a, at, [&](const Place& there) { sum += a.dy_at(there); });
    return 2 * a.parameters[0][at.channel] * a.x_at(at) * sum / size<T>(a);
  }
  template <class T>
  LRCNN_HOST_DEVICE static auto parameter_gradient(const Elements<T>& a, Index p, const Place& at) {
    return p == 0 ? a.dy_at(at) * mean_square(a, at) : a.dy_at(at);
  }

 private:
  template <class T>
  LRCNN_HOST_DEVICE static auto size(const Elements<T>& a) {
    return static_cast<typename Elements<T>::number>(a.layer.window.kernel.h * a.layer.window.kernel.w);
  }
};
/// x above zero, exp(x) - 1 below.
struct Elu {
  static constexpr std::string_view name = "elu";
  static constexpr bool on_device = true;
  template <class T>
  LRCNN_HOST_DEVICE static T value(T x) {
    return x > 0 ? x : std::expm1(x);
  }
  template <class T>
  LRCNN_HOST_DEVICE static T derivative(T x) {
    return x > 0 ? T{1} : std::exp(x);
  }
};
}   // namespace lrcnn::testing
