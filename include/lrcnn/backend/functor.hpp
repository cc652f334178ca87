#pragma once
// Pointwise arithmetic, written once.
//
// Each functor holds what its function needs and works for any element type, on the host and on a device; a backend
// brings the loop. value(x) is the function. A function whose derivative follows from the sign of its argument has
// from_sign and gradient(dy, positive); the others have gradient(dy, x).
// Not-a-number goes through every function, so that it is noticed where it can be reported.
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/layer/layer.hpp>
#include <cmath>
namespace lrcnn {
/// max(x, 0); its derivative at 0 is 0.
struct ReluFunctor {
  static constexpr bool from_sign = true;
  template <class T>
  LRCNN_HOST_DEVICE constexpr T value(T x) const { return x <= T(0) ? T(0) : x; }
  template <class T>
  LRCNN_HOST_DEVICE constexpr T gradient(T dy, bool positive) const { return positive ? dy : T(0); }
};
/// x above zero, slope * x elsewhere; its derivative at 0 is the slope.
template <class S>
struct LeakyReluFunctor {
  static constexpr bool from_sign = true;
  S slope;
  template <class T>
  LRCNN_HOST_DEVICE constexpr T value(T x) const { return x > T(0) ? x : slope * x; }
  template <class T>
  LRCNN_HOST_DEVICE constexpr T gradient(T dy, bool positive) const { return positive ? dy : slope * dy; }
};
/// x * sigmoid(x)
struct SiluFunctor {
  static constexpr bool from_sign = false;
  template <class T>
  LRCNN_HOST_DEVICE T value(T x) const { return x * sigmoid(x); }
  template <class T>
  LRCNN_HOST_DEVICE T gradient(T dy, T x) const {
    const T s = sigmoid(x);
    return dy * (s * (T(1) + x * (T(1) - s)));
  }
  template <class T>
  LRCNN_HOST_DEVICE static T sigmoid(T x) {
    using std::exp;
    return T(1) / (T(1) + exp(-x));
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
