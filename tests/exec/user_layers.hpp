#pragma once
// Layers and losses as a user would write them, outside the library and against its documented interface alone.
#include <lrcnn/layer/loss.hpp>
#include <lrcnn/layer/pointwise.hpp>
#include <lrcnn/shape/rows.hpp>
#include <cmath>
#include <vector>
namespace lrcnn::testing {
/// Mean of a column of `window.kernel.h` pixels, times a factor learnt for each channel. Its row rule is the window.
/// Shapes: x [N,C,H,W], scale [C] -> y [N,C,P,W]
struct BlurOperations {
  static Index row_of(const Layer& layer, Index out, Index tap) {
    return out * layer.window.stride.h - layer.window.pad.top + tap * layer.window.dilation.h;
  }
  /// The mean under the window that makes element (i, c, row, column) of the output; padding counts as zeros.
  template <class T, class A>
  static master_t<T> mean(const A& a, Index i, Index c, Index row, Index column) {
    master_t<T> sum{};
    for (Index tap = 0; tap < a.layer.window.kernel.h; ++tap)
      if (const Index r = row_of(a.layer, row, tap); r >= 0 && r < a.in.h) sum += a.x(i, c, r, column);
    return sum / static_cast<master_t<T>>(a.layer.window.kernel.h);
  }
  template <class T, class F>
  static void each(const View<T>& v, F f) {
    for (Index i = 0; i < v.n; ++i)
      for (Index c = 0; c < v.c; ++c)
        for (Index row = v.row0; row < v.row0 + v.rows; ++row)
          for (Index column = 0; column < v.w; ++column) f(i, c, row, column);
  }
  template <class T>
  static void forward(const CustomForward<T>& a) {
    each(a.y, [&](Index i, Index c, Index row, Index column) {
      a.y(i, c, row, column) = static_cast<T>(a.parameters[0][c] * mean<T>(a, i, c, row, column));
    });
  }
  template <class T>
  static void backward_data(const CustomBackward<T>& a) {
    each(a.dx, [&](Index i, Index c, Index row, Index column) { a.dx(i, c, row, column) = T(0); });
    each(a.dy, [&](Index i, Index c, Index row, Index column) {
      const auto share = a.parameters[0][c] * a.dy(i, c, row, column) / static_cast<master_t<T>>(a.layer.window.kernel.h);
      for (Index tap = 0; tap < a.layer.window.kernel.h; ++tap)
        if (const Index r = row_of(a.layer, row, tap); r >= 0 && r < a.in.h) a.dx(i, c, r, column) = static_cast<T>(a.dx(i, c, r, column) + share);
    });
  }
  template <class T>
  static void backward_parameters(const CustomBackward<T>& a) {
    each(a.dy, [&](Index i, Index c, Index row, Index column) { a.d_parameters[0][c] += a.dy(i, c, row, column) * mean<T>(a, i, c, row, column); });
  }
  static constexpr ParameterShapes parameters(const Layer&, const Shape& in) {
    ParameterShapes shapes;
    shapes.add({.name = "scale", .extents = {in.c, 1, 1, 1}, .fill = 1, .decay = false});
    return shapes;
  }
};
inline constexpr CustomLayer blur_layer{
    .rules = {.name = "blur", .rows = RowMap::window, .backward = reads_input, .takes_activation = true, .parameters = BlurOperations::parameters},
    .f32 = {BlurOperations::forward<float>, BlurOperations::backward_data<float>, BlurOperations::backward_parameters<float>},
    .f64 = {BlurOperations::forward<double>, BlurOperations::backward_data<double>, BlurOperations::backward_parameters<double>},
    .bf16 = {BlurOperations::forward<bfloat16>, BlurOperations::backward_data<bfloat16>, BlurOperations::backward_parameters<bfloat16>}};
template <Window window = Window{.kernel = {3, 1}, .pad = {1, 0}}>
struct Blur {
  static constexpr Layer layer() { return {.kind = Kind::custom, .window = window, .custom = &blur_layer}; }
};
/// log(1 + e^x), by the short way.
struct SoftplusFunction {
  static constexpr std::string_view name = "softplus";
  template <class T>
  static T value(T x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  template <class T>
  static T derivative(T x) {
    return 1 / (1 + std::exp(-x));
  }
};
using Softplus = Pointwise<SoftplusFunction>;
/// tanh, whose derivative is had from its output: the input need not be kept.
struct TanhOperations {
  template <class T>
  static void forward(const CustomForward<T>& a) {
    BlurOperations::each(a.y, [&](Index i, Index c, Index row, Index column) {
      a.y(i, c, row, column) = static_cast<T>(std::tanh(master_t<T>{a.x(i, c, row, column)}));
    });
  }
  template <class T>
  static void backward_data(const CustomBackward<T>& a) {
    BlurOperations::each(a.dx, [&](Index i, Index c, Index row, Index column) {
      const bool reached = a.dy.range().contains({row, row + 1});   // a slab may hold rows that dy does not
      const master_t<T> y = reached ? a.y(i, c, row, column) : T(0);
      a.dx(i, c, row, column) = static_cast<T>(reached ? a.dy(i, c, row, column) * (1 - y * y) : master_t<T>(0));
    });
  }
};
inline constexpr CustomLayer tanh_layer{.rules = {.name = "tanh", .backward = reads_output, .overwrites_input = true, .overwrites_gradient = true},
                                        .f32 = {TanhOperations::forward<float>, TanhOperations::backward_data<float>},
                                        .f64 = {TanhOperations::forward<double>, TanhOperations::backward_data<double>},
                                        .bf16 = {TanhOperations::forward<bfloat16>, TanhOperations::backward_data<bfloat16>}};
struct Tanh {
  static constexpr Layer layer() { return {.kind = Kind::custom, .custom = &tanh_layer}; }
};
/// Half the squared distance of the output to a vector that belongs to the label.
struct DistanceToTarget {
  static constexpr std::string_view name = "distance_to_target";
  std::vector<std::vector<double>> targets;
  template <class T>
  void operator()(const View<const T>& logits, std::span<const std::int32_t> labels, const View<T>& dx, double scale, LossResult& result) const {
    for (Index i = 0; i < logits.n; ++i) {
      const auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(i)]);
      const auto distance = [&](Index k, std::size_t target) {
        return static_cast<double>(logits(i, k, 0, 0)) - targets[target][static_cast<std::size_t>(k)];
      };
      const auto squares = [&](std::size_t target) {
        double sum = 0;
        for (Index k = 0; k < logits.c; ++k) sum += distance(k, target) * distance(k, target);
        return sum / 2;
      };
      result.sum += squares(label);
      bool nearest = true;
      for (std::size_t t = 0; t < targets.size(); ++t) nearest = nearest && (t == label || squares(label) < squares(t));
      result.correct += nearest;
      ++result.count;
      if (dx.data == nullptr) continue;
      for (Index k = 0; k < round_up(dx.c, dx.block); ++k) dx(i, k, 0, 0) = k < dx.c ? static_cast<T>(scale * distance(k, label)) : T{0};
    }
  }
};
/// Cross entropy to (1 - epsilon) * onehot + epsilon / K.
struct SmoothedCrossEntropy {
  static constexpr std::string_view name = "smoothed_cross_entropy";
  double epsilon = 0.1;
  template <class T>
  void operator()(const View<const T>& logits, std::span<const std::int32_t> labels, const View<T>& dx, double scale, LossResult& result) const {
    for (Index i = 0; i < logits.n; ++i) {
      const View<const T> one = dense_view(logits.data + i * logits.stride_n, 1, logits.c, logits.range(), 1, logits.block);
      const View<T> d = dx.data ? dense_view(dx.data + i * dx.stride_n, 1, dx.c, dx.range(), 1, dx.block) : View<T>{};
      LossResult plain, uniform;
      SoftmaxCrossEntropy{}(one, labels.subspan(static_cast<std::size_t>(i), 1), d, scale, plain);
      for (std::int32_t k = 0; k < logits.c; ++k) SoftmaxCrossEntropy{}(one, std::span(&k, 1), View<T>{}, 0, uniform);
      const double classes = static_cast<double>(logits.c);
      result.sum += (1 - epsilon) * plain.sum + epsilon * uniform.sum / classes;
      result.correct += plain.correct;
      ++result.count;
      for (Index k = 0; d.data && k < logits.c; ++k) {   // softmax - onehot  ->  softmax - smoothed
        const double onehot = k == labels[static_cast<std::size_t>(i)] ? 1.0 : 0.0;
        d(0, k, 0, 0) += static_cast<T>(scale * epsilon * (onehot - 1 / classes));
      }
    }
  }
};
}   // namespace lrcnn::testing
