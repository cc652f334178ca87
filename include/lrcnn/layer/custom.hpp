#pragma once
// A layer of the user's own: row rule, parameters and arithmetic as constants and plain functions.
//
// The arithmetic is written against View, which shows rows by their absolute index in any storage layout, so one
// function serves every backend on the host, whole maps and slabs alike. See docs/extending.md for a worked example.
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/view.hpp>
#include <lrcnn/layer/rules.hpp>
#include <span>
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
/// Everything the library asks of a user's layer.
struct CustomLayer {
  /// What the planner must know, as of the library's own layers. What its functions are not given it may not ask for (Fault::bad_rules),
  /// its rows must be those of its rule (Fault::bad_row_rule), and only what keeps shape may work in place (Fault::not_in_place).
  LayerRules rules{};
  CustomFunctions<float> f32{};
  CustomFunctions<double> f64{};
  CustomFunctions<bfloat16> bf16{};
};
template <>
inline constexpr LayerRules kind_rules<Kind::custom>{.name = "custom"};   // its name alone: each custom layer has rules of its own
}   // namespace lrcnn
