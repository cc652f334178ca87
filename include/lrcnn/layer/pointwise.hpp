#pragma once
// An activation of the user's own, from one functor.
#include <lrcnn/layer/custom.hpp>
#include <concepts>
#include <string_view>
namespace lrcnn {
/// A functor of a pointwise function and its derivative, both of the input.
template <class F>
concept PointwiseFunctor = requires {
  { F::name } -> std::convertible_to<std::string_view>;
  { F::value(1.0f) } -> std::same_as<float>;
  { F::derivative(1.0) } -> std::same_as<double>;
};
namespace detail {
template <class F, class T>
void pointwise_forward(const CustomForward<T>& a) {
  for (Index i = 0; i < a.y.n; ++i)
    for (Index b = 0; b < a.y.blocks(); ++b)
      for (Index y = a.y.row0; y < a.y.row0 + a.y.rows; ++y) {
        const T* x = a.x.row(i, b, y);
        T* to = a.y.row(i, b, y);
        for (Index e = 0; e < a.y.stride_row(); ++e)
          to[e] = b * a.y.block + e % a.y.block < a.y.c ? static_cast<T>(F::value(master_t<T>{x[e]})) : T(0);
      }
}
template <class F, class T>
void pointwise_backward(const CustomBackward<T>& a) {
  for (Index i = 0; i < a.dx.n; ++i)
    for (Index b = 0; b < a.dx.blocks(); ++b)
      for (Index y = a.dx.row0; y < a.dx.row0 + a.dx.rows; ++y) {
        T* dx = a.dx.row(i, b, y);
        if (!a.dy.range().contains({y, y + 1})) {   // a slab may hold rows that dy does not have
          std::fill_n(dx, a.dx.stride_row(), T(0));
          continue;
        }
        const T *x = a.x.row(i, b, y), *dy = a.dy.row(i, b, y);
        for (Index e = 0; e < a.dx.stride_row(); ++e)
          dx[e] = b * a.dx.block + e % a.dx.block < a.dx.c ? static_cast<T>(dy[e] * F::derivative(master_t<T>{x[e]})) : T(0);
      }
}
template <class F>
inline constexpr CustomLayer pointwise_layer =
    with_device<F>({.rules = {.name = F::name, .backward = reads_input, .overwrites_input = true, .overwrites_gradient = true},
                    .f32 = {pointwise_forward<F, float>, pointwise_backward<F, float>, nullptr},
                    .f64 = {pointwise_forward<F, double>, pointwise_backward<F, double>, nullptr},
                    .bf16 = {pointwise_forward<F, bfloat16>, pointwise_backward<F, bfloat16>, nullptr}});
}   // namespace detail
/// y = F::value(x), dx = dy * F::derivative(x), for every element. For a GPU both are LRCNN_HOST_DEVICE, F says on_device, and a .cu file of the
/// program compiles its loops (backend/cudnn/custom_loops.hpp).
///
///     struct Softplus {
///       static constexpr std::string_view name = "softplus";
///       template <class T> static T value(T x) { return std::log1p(std::exp(x)); }
///       template <class T> static T derivative(T x) { return 1 / (1 + std::exp(-x)); }
///     };
///     using Net = Sequential<Conv<16>, Pointwise<Softplus>, GlobalAvgPool, Linear<10>>;
template <PointwiseFunctor F>
struct Pointwise {
  static constexpr Layer layer() { return {.kind = Kind::custom, .custom = &detail::pointwise_layer<F>}; }
};
}   // namespace lrcnn
