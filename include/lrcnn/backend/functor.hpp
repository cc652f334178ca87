#pragma once
// Pointwise arithmetic, written once.
//
// Each functor holds what its function needs and works for any element type, on the host and on a device, and for
// words of several elements where comparisons give what ?: selects by; a backend brings the loop. value(x) is the
// function. A function whose derivative follows from the sign of its argument says from_sign and has
// gradient(dy, positive), the others have gradient(dy, x). Those that need an exponential or an error function take them as an
// argument.
// Not-a-number goes through every function, so that it is noticed where it can be reported.
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/layer/layer.hpp>
#include <cmath>
#include <type_traits>
#include <utility>
namespace lrcnn {
/// max(x, 0); its derivative at 0 is 0.
struct ReluFunctor {
  static constexpr bool from_sign = true;
  template <class T>
  LRCNN_HOST_DEVICE constexpr T value(const T& x) const {
    return x <= T{} ? T{} : x;
  }
  template <class T, class M>
  LRCNN_HOST_DEVICE constexpr T gradient(const T& dy, const M& positive) const {
    return positive ? dy : T{};
  }
};
/// x above zero, slope * x elsewhere; its derivative at 0 is the slope.
template <class S>
struct LeakyReluFunctor {
  static constexpr bool from_sign = true;
  S slope;
  template <class T>
  LRCNN_HOST_DEVICE constexpr T value(const T& x) const {
    return x > T{} ? x : slope * x;
  }
  template <class T, class M>
  LRCNN_HOST_DEVICE constexpr T gradient(const T& dy, const M& positive) const {
    return positive ? dy : slope * dy;
  }
};
/// The exponential and the error function of the standard library, or of an element type's own namespace.
struct StandardExp {
  template <class T>
  LRCNN_HOST_DEVICE T operator()(const T& x) const {
    using std::exp;
    return exp(x);
  }
  template <class T>
  LRCNN_HOST_DEVICE T erf(const T& x) const {
    using std::erf;
    return erf(x);
  }
};
namespace detail {
/// A number as an element, or as one of a word's elements.
template <class T>
LRCNN_HOST_DEVICE constexpr auto constant_of(double value) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value);
  else return static_cast<std::remove_cvref_t<decltype(std::declval<T&>()[0])>>(value);
}
}   // namespace detail
/// x * sigmoid(x)
struct SiluFunctor {
  static constexpr bool from_sign = false;
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE T value(const T& x, const Exp& exp = {}) const {
    return x / (1.0f + exp(-x));
  }
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE T gradient(const T& dy, const T& x, const Exp& exp = {}) const {
    const T s = 1.0f / (1.0f + exp(-x));
    return dy * (s * (1.0f + x * (1.0f - s)));
  }
};
/// min(max(x, 0), 6); its derivative at 0 and at 6 is 0.
struct Relu6Functor {
  static constexpr bool from_sign = false;
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE constexpr T value(const T& x, const Exp& = {}) const {
    const T below = x <= T{} ? T{} : x, six = T{} + 6.0f;
    return below >= six ? six : below;
  }
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE constexpr T gradient(const T& dy, const T& x, const Exp& = {}) const {
    const T below = x <= T{} ? T{} : dy, six = T{} + 6.0f;
    return x >= six ? T{} : below;
  }
};
/// x * (1 + erf(x / sqrt(2))) / 2, which is x times the normal distribution function.
struct GeluFunctor {
  static constexpr bool from_sign = false;
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE T value(const T& x, const Exp& exp = {}) const {
    return x * below(x, exp);
  }
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE T gradient(const T& dy, const T& x, const Exp& exp = {}) const {
    const T density = detail::constant_of<T>(0.39894228040143267794) * exp(T(-0.5f * x * x));
    return dy * (below(x, exp) + x * density);
  }

 private:
  template <class T, class Exp>
  LRCNN_HOST_DEVICE static T below(const T& x, const Exp& exp) {
    return 0.5f * (1.0f + exp.erf(T(x * detail::constant_of<T>(0.70710678118654752440))));
  }
};
/// x * min(max(x + 3, 0), 6) / 6; its derivative at -3 is 0, at 3 it is 3/2.
struct HardswishFunctor {
  static constexpr bool from_sign = false;
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE constexpr T value(const T& x, const Exp& = {}) const {
    const T three = T{} + 3.0f, within = x * (x + three) / 6.0f, upper = x >= three ? x : within;
    return x <= -three ? T{} : upper;
  }
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE constexpr T gradient(const T& dy, const T& x, const Exp& = {}) const {
    const T three = T{} + 3.0f, within = dy * (x / 3.0f + 0.5f), upper = x >= three ? dy : within;
    return x <= -three ? T{} : upper;
  }
};
/// 1 / (1 + exp(-x))
struct SigmoidFunctor {
  static constexpr bool from_sign = false;
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE T value(const T& x, const Exp& exp = {}) const {
    return 1.0f / (1.0f + exp(-x));
  }
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE T gradient(const T& dy, const T& x, const Exp& exp = {}) const {
    const T s = 1.0f / (1.0f + exp(-x));
    return dy * (s * (1.0f - s));
  }
};
/// min(max(x + 3, 0), 6) / 6; its derivative at -3 and at 3 is 0.
struct HardsigmoidFunctor {
  static constexpr bool from_sign = false;
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE constexpr T value(const T& x, const Exp& = {}) const {
    const T three = T{} + 3.0f, one = T{} + 1.0f, within = (x + three) / 6.0f, upper = x >= three ? one : within;
    return x <= -three ? T{} : upper;
  }
  template <class T, class Exp = StandardExp>
  LRCNN_HOST_DEVICE constexpr T gradient(const T& dy, const T& x, const Exp& = {}) const {
    const T three = T{} + 3.0f, within = dy / 6.0f, upper = x >= three ? T{} : within;
    return x <= -three ? T{} : upper;
  }
};
/// Whether a function takes 0 to 0, as padded channels want it.
constexpr bool keeps_zero(Function function) { return function != Function::sigmoid && function != Function::hardsigmoid; }
/// Calls f with the functor of an activation for element type T.
template <class T, class F>
void with_functor(const Activation& activation, F&& f) {
  switch (activation.function) {
    case Function::relu: f(ReluFunctor{}); break;
    case Function::leaky_relu: f(LeakyReluFunctor<T>{static_cast<T>(activation.slope)}); break;
    case Function::silu: f(SiluFunctor{}); break;
    case Function::relu6: f(Relu6Functor{}); break;
    case Function::gelu: f(GeluFunctor{}); break;
    case Function::hardswish: f(HardswishFunctor{}); break;
    case Function::sigmoid: f(SigmoidFunctor{}); break;
    case Function::hardsigmoid: f(HardsigmoidFunctor{}); break;
  }
}
}   // namespace lrcnn
