#pragma once
// A layer of the user's own: row rule, parameters and arithmetic as constants and plain functions.
//
// The arithmetic is written against View, which shows rows by their absolute index in any storage layout, so one
// function serves every backend on the host, whole maps and slabs alike. See docs/extending.md for a worked example.
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/view.hpp>
#include <lrcnn/layer/rules.hpp>
#include <cstddef>
#include <concepts>
#include <span>
#include <type_traits>
namespace lrcnn {
/// What a custom layer's functions are given.
/// Shapes:  x [N,C,rows_x,W], y [N,K,rows_y,Q], rows absolute; in, out: shapes of the whole map
/// Post:    forward writes every element of y. backward_data writes every element of dx (0 where nothing read it).
///          backward_parameters accumulates into d_parameters.
/// Elements of bfloat16 turn into floats by themselves and are stored by static_cast<T>; parameters are floats then.
template <class T>
struct CustomForward {
  const Layer& layer;
  Shape in;
  Shape out;
  View<const T> x;
  View<T> y;
  std::span<const master_t<T>* const> parameters;
};
template <class T>
struct CustomBackward {
  const Layer& layer;
  Shape in;
  Shape out;
  View<const T> x;   ///< data is nullptr unless the rules' `backward` asks for the input, in backward_data also if `for_parameters` alone
  View<const T> y;   ///< data is nullptr unless it asks for the output
  View<const T> dy;
  View<T> dx;   ///< data is nullptr in backward_parameters
  std::span<const master_t<T>* const> parameters;
  std::span<master_t<T>* const> d_parameters;   ///< empty in backward_data
};
/// The functions for one element type. A null pointer means: not offered.
template <class T>
struct CustomFunctions {
  void (*forward)(const CustomForward<T>&) = nullptr;
  void (*backward_data)(const CustomBackward<T>&) = nullptr;
  void (*backward_parameters)(const CustomBackward<T>&) = nullptr;   ///< null if there are no parameters
};
/// Loops for one element type on a CUDA device. They start work on a stream (a cudaStream_t), on memory of the device, and do not wait; spans lie
/// in the host's memory. A null pointer means: not offered.
template <class T>
struct CustomDeviceFunctions {
  void (*forward)(const CustomForward<T>&, void* stream) = nullptr;
  void (*backward_data)(const CustomBackward<T>&, void* stream) = nullptr;
  /// Writes d_parameters, or adds to them if `accumulate`. workspace: workspace_bytes(dy) bytes, aligned to 16
  void (*backward_parameters)(const CustomBackward<T>&, bool accumulate, std::byte* workspace, void* stream) = nullptr;
  Index (*workspace_bytes)(const View<const T>& dy) = nullptr;   ///< null: backward_parameters needs none
};
struct CustomDeviceLayer {
  CustomDeviceFunctions<float> f32{};
  CustomDeviceFunctions<float16> f16{};
  CustomDeviceFunctions<bfloat16> bf16{};
};
/// Everything the library asks of a user's layer.
struct CustomLayer {
  /// What the planner must know, as of the library's own layers. What its functions are not given it may not ask for (Fault::bad_rules),
  /// its rows must be those of its rule (Fault::bad_row_rule), and only what keeps shape may work in place (Fault::not_in_place).
  LayerRules rules{};
  CustomFunctions<float> f32{};
  CustomFunctions<double> f64{};
  CustomFunctions<bfloat16> bf16{};
  /// Its loops on a CUDA device, which a .cu file of the program has compiled (layer/element_layer.hpp); null: it runs on CPUs only.
  const CustomDeviceLayer& (*device)() = nullptr;
};
/// Whether a functor says that a .cu file of the program compiles its loops: static constexpr bool on_device = true;
template <class F>
concept CompiledForDevice = requires {
  { F::on_device } -> std::convertible_to<bool>;
}
&&F::on_device;
/// The loops of a functor on a device. Defined in backend/cudnn/custom_loops.hpp, for a .cu file of the program to instantiate.
template <class F>
const CustomDeviceLayer& loops_on_device();
namespace detail {
template <class F>
constexpr CustomLayer with_device(CustomLayer layer) {
  if constexpr (CompiledForDevice<F>) layer.device = loops_on_device<F>;
  return layer;
}
}   // namespace detail
template <>
inline constexpr LayerRules kind_rules<Kind::custom>{.name = "custom"};   // its name alone: each custom layer has rules of its own
/// The loops that a custom layer has on a device for elements of a type; null: none. Pre: the layer is a custom one
template <class T>
const CustomDeviceFunctions<T>* custom_on_device(const Layer& layer) {
  if (layer.custom->device == nullptr) return nullptr;
  const CustomDeviceLayer& all = layer.custom->device();
  if constexpr (std::is_same_v<T, float>) return &all.f32;
  else if constexpr (std::is_same_v<T, float16>) return &all.f16;
  else if constexpr (std::is_same_v<T, bfloat16>) return &all.bf16;
  else return nullptr;
}
}   // namespace lrcnn
