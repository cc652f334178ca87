#pragma once
// The arithmetic of an update, written once.
//
// Each functor updates one element of the parameters from its gradient and its states, for any element type, on the
// host and on a device; a backend brings the loop. train/optimizer.hpp makes them from an optimizer's settings.
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/core/types.hpp>
#include <array>
#include <cmath>
namespace lrcnn {
/// A gradient as updates use it: multiplied by `scale`, then cut off at +-limit (infinite: not at all). NaN stays NaN.
template <class T>
struct GradientRule {
  T scale, limit;
  LRCNN_HOST_DEVICE T operator()(T g) const {
    g = scale * g;
    return g > limit ? limit : g < -limit ? -limit : g;
  }
};
/// One element without momentum.
template <class T>
struct SgdUpdate {
  static constexpr int states = 0;
  T lr, weight_decay;
  GradientRule<T> gradient;
  LRCNN_HOST_DEVICE void operator()(T& w, T g) const { w -= lr * (gradient(g) + weight_decay * w); }
};
/// One element with momentum v.
template <class T>
struct MomentumUpdate {
  static constexpr int states = 1;
  T lr, momentum, weight_decay;
  GradientRule<T> gradient;
  bool nesterov;
  LRCNN_HOST_DEVICE void operator()(T& w, T g, T& v) const {
    g = gradient(g) + weight_decay * w;
    v = momentum * v + g;
    w -= lr * (nesterov ? g + momentum * v : v);
  }
};
/// One element with first moment m and second moment v.
template <class T>
struct AdamWUpdate {
  static constexpr int states = 2;
  T keep;   ///< 1 - lr * weight_decay
  T one_minus_beta1, beta2, one_minus_beta2, epsilon;
  GradientRule<T> gradient;
  T step_size;    ///< lr / (1 - beta1^t)
  T root_scale;   ///< 1 / sqrt(1 - beta2^t)
  LRCNN_HOST_DEVICE void operator()(T& w, T g, T& m, T& v) const {
    using std::sqrt;
    g = gradient(g);
    m += one_minus_beta1 * (g - m);
    v = beta2 * v + one_minus_beta2 * g * g;
    w = keep * w - step_size * (m / (sqrt(v) * root_scale + epsilon));
  }
};
namespace host {
/// Applies an element's update to `count` elements of contiguous buffers that do not overlap.
/// s0 and s1 are the first two states; null where the update has none. Elements are independent of each other.
template <class Update, class T>
void update_elements(const Update& update, T* w, const T* g, T* s0, T* s1, Index count, int threads) {
  const Index piece = 16384;
  parallel_for(ceil_div(count, piece), threads, [&](Index p) {
    const Index end = std::min(count, (p + 1) * piece);
#ifdef _OPENMP
#pragma omp simd
#endif
    for (Index i = p * piece; i < end; ++i) {
      if constexpr (Update::states == 0) update(w[i], g[i]);
      else if constexpr (Update::states == 1) update(w[i], g[i], s0[i]);
      else update(w[i], g[i], s0[i], s1[i]);
    }
  });
}
/// The sum of the squares of element(0) ... element(count - 1), each a T, in double and in an order that does not depend on threads.
template <class T, class F>
double sum_of_squares_of(const F& element, Index count, int threads) {
  constexpr Index pieces = 64;
  std::array<double, pieces> sums{};
  parallel_for(pieces, useful_threads(count, threads), [&](Index p) {
    double sum = 0;
    for (Index i = count * p / pieces; i < count * (p + 1) / pieces; ++i) {
      const double value = static_cast<double>(static_cast<T>(element(i)));
      sum += value * value;
    }
    item(sums, p) = sum;
  });
  double all = 0;
  for (const double sum : sums) all += sum;
  return all;
}
/// The same of `count` elements in memory.
template <class T>
double sum_of_squares(const T* elements, Index count, int threads) {
  return sum_of_squares_of<T>([elements](Index i) { return elements[i]; }, count, threads);
}
}   // namespace host
}   // namespace lrcnn
