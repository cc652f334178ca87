#pragma once
// A layer of the user's own: row rule, parameters and arithmetic as constants and plain functions.
//
// The arithmetic is written against View, which shows rows by their absolute index in any storage layout, so one
// function serves every backend on the host, whole maps and slabs alike. See docs/extending.md for a worked example.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/view.hpp>
#include <lrcnn/layer/layer.hpp>
#include <span>
#include <string>
namespace lrcnn {
/// One parameter tensor that a layer owns.
struct ParameterShape {
  Name name{};                       ///< "weight"; the table puts the layer's name before it
  std::array<Index, 4> extents{};    ///< trailing extents are 1
  Index fan_in = 0;                  ///< 0: initialised to `fill` instead of from a distribution
  Index fan_out = 0;
  double fill = 0;
  bool decay = true;                 ///< subject to weight decay by default
  bool running = false;              ///< a norm's running statistics: no gradient and no optimizer; what a step finds for them is left where
                                     ///< their gradient would be, and the trainer mixes it in
  constexpr Index count() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  friend constexpr bool operator==(const ParameterShape&, const ParameterShape&) = default;
};
/// At most four of them, in the order in which the layer's functions receive them.
struct ParameterShapes {
  std::array<ParameterShape, 4> item{};
  Index count = 0;
  /// Errors: ShapeError for a fifth
  constexpr void add(const ParameterShape& p) {
    if (count == static_cast<Index>(item.size()))
      throw ShapeError(error_text("a layer adds a fifth parameter, '" + std::string(p.name.view()) + "'", "a layer has at most four",
                                  "put several into one, or make two layers"));
    item[static_cast<std::size_t>(count++)] = p;
  }
};
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
  View<const T> x;    ///< data is nullptr unless CustomLayer::needs_input
  View<const T> y;    ///< data is nullptr unless CustomLayer::needs_output
  View<const T> dy;
  View<T> dx;         ///< data is nullptr in backward_parameters
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
/// The parameters of a layer that has none. (A function rather than a null pointer: g++ 12 under the undefined-behaviour
/// sanitizer takes no comparison of a pointer with null for a constant.)
constexpr ParameterShapes no_parameters(const Layer&, const Shape&) { return {}; }
/// Everything the library asks of a user's layer. Its row rule is the window of its Layer.
struct CustomLayer {
  std::string_view name;                  ///< "blur"; names the layers of this kind
  bool needs_input = true;                ///< backward reads x
  bool needs_output = false;              ///< backward reads y
  bool cheap = true;                      ///< worth recomputing rather than keeping (RecomputeCheap)
  bool pointwise = false;                 ///< y(i) depends on x(i) alone
  ParameterShapes (*parameters)(const Layer&, const Shape& in) = no_parameters;
  CustomFunctions<float> f32{};
  CustomFunctions<double> f64{};
  CustomFunctions<bfloat16> bf16{};
};
}  // namespace lrcnn
