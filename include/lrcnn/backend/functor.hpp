#pragma once
// Pointwise arithmetic, written once.
//
// Each functor holds what its function needs and works for any element type, on the host and on a device, and for
// words of several elements where comparisons give what ?: selects by; a backend brings the loop. value(x) is the
// function. A function whose derivative follows from the sign of its argument says from_sign and has
// gradient(dy, positive), the others have gradient(dy, x). Those that need an exponential take it as an argument.
// Not-a-number goes through every function, so that it is noticed where it can be reported.
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/layer/layer.hpp>
#include <cmath>
namespace lrcnn {
/// max(x, 0); its derivative at 0 is 0.
struct ReluFunctor {
  static constexpr bool from_sign = true;
  template <class T>
  LRCNN_HOST_DEVICE constexpr T value(const T& x) const { return x <= T{} ? T{} : x; }
  template <class T, class M>
  LRCNN_HOST_DEVICE constexpr T gradient(const T& dy, const M& positive) const { return positive ? dy : T{}; }
};
/// x above zero, slope * x elsewhere; its derivative at 0 is the slope.
template <class S>
struct LeakyReluFunctor {
  static constexpr bool from_sign = true;
  S slope;
  template <class T>
  LRCNN_HOST_DEVICE constexpr T value(const T& x) const { return x > T{} ? x : slope * x; }
  template <class T, class M>
  LRCNN_HOST_DEVICE constexpr T gradient(const T& dy, const M& positive) const { return positive ? dy : slope * dy; }
};
/// The exponential of the standard library, or of an element type's own namespace.
struct StandardExp {
  template <class T>
  LRCNN_HOST_DEVICE T operator()(const T& x) const {
    using std::exp;
    return exp(x);
  }
};
/// x * sigmoid(x)
struct SiluFunctor {
  static constexpr bool from_sign = false;
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE T value(const T& x, const Exp& exp = {}) const { return x / (1.0f + exp(-x)); }
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE T gradient(const T& dy, const T& x, const Exp& exp = {}) const {
    const T s = 1.0f / (1.0f + exp(-x));
    return dy * (s * (1.0f + x * (1.0f - s)));
  }
};
/// Calls f with the functor of an activation for element type T.
template <class T, class F>
void with_functor(const Activation& activation, F&& f) {
  switch (activation.function) {
    case Function::relu: f(ReluFunctor{}); break;
    case Function::leaky_relu: f(LeakyReluFunctor<T>{static_cast<T>(activation.slope)}); break;
    case Function::silu: f(SiluFunctor{}); break;
  }
}
}  // namespace lrcnn
