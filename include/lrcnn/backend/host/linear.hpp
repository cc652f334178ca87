#pragma once
// Fully connected layers on feature vectors.
//
// All loops run along the feature vector, with sums in an order that depends on neither the batch nor how it is cut.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/sums.hpp>
#include <array>
namespace lrcnn::host {
/// y = w x + b.
/// Shapes:  x [N,F,1,1], parameters w [K,F] and, if the layer has one, b [K] -> y [N,K,1,1]
template <class T>
void linear_forward(const Operands<T>& o, int threads) {
  using A = master_t<T>;
  const Index count = o.node->in.c, outputs = o.node->out.c;
  const A* bias = o.node->layer.bias ? o.parameters[1] : nullptr;
  parallel_for(outputs, useful_threads(o.y.n * outputs * count, threads), [&](Index k) {
    const A* w = o.parameters[0] + k * count;
    for (Index i = 0; i < o.y.n; ++i) {
      const T* x = features(o.x, i);
      std::array<A, 16> sum{};
      Index f = 0;
      for (; f + 16 <= count; f += 16)
        for (Index l = 0; l < 16; ++l) item(sum, l) += w[f + l] * x[f + l];
      for (Index l = 0; f + l < count; ++l) item(sum, l) += w[f + l] * x[f + l];
      for (std::size_t width = 8; width > 0; width /= 2)
        for (std::size_t l = 0; l < width; ++l) sum[l] += sum[l + width];
      features(o.y, i)[k] = static_cast<T>(bias ? sum[0] + bias[k] : sum[0]);
    }
  });
  zero_padded_channels(o.y);
}
/// Shapes:  dy [N,K,1,1] -> dx [N,F,1,1]
template <class T>
void linear_backward_data(const Operands<T>& o, int threads) {
  const Index count = o.node->in.c, outputs = o.node->out.c;
  parallel_for(o.dx.n, useful_threads(o.dx.n * outputs * count, threads), [&](Index i) {
    T* dx = features(o.dx, i);
    const T* dy = features(o.dy, i);
    std::fill_n(dx, round_up(count, o.dx.block), T(0));
    sum_columns(Lanes<1>{}, dx, 1, count, [&](master_t<T>* __restrict to, Index, Range piece) {
      for (Index k = 0; k < outputs; ++k) {
        const master_t<T>* __restrict w = o.parameters[0] + k * count + piece.begin;
        const master_t<T> factor = dy[k];
        for (Index f = 0; f < piece.size(); ++f) to[f] += factor * w[f];
      }
    });
  });
}
/// dw, db; added to what is there if accumulate, else written.
/// Shapes:  x [N,F,1,1], dy [N,K,1,1] -> d_parameters dw [K,F] and, if the layer has one, db [K]
/// Post:    images are added one by one in their order, so cutting the batch does not change a bit
template <class T>
void linear_backward_parameters(const Operands<T>& o, int threads) {
  const Index count = o.node->in.c, outputs = o.node->out.c;
  parallel_for(outputs, useful_threads(o.dy.n * outputs * count, threads), [&](Index k) {
    using A = master_t<T>;
    A* __restrict dw = o.d_parameters[0] + k * count;
    A* db = o.node->layer.bias ? o.d_parameters[1] + k : nullptr;
    if (!o.accumulate) std::fill_n(dw, count, A(0));
    if (!o.accumulate && db) *db = A(0);
    for (Index i = 0; i < o.dy.n; ++i) {
      const T* __restrict x = features(o.x, i);
      const A factor = features(o.dy, i)[k];
      for (Index f = 0; f < count; ++f) dw[f] += factor * x[f];
      if (db) *db += factor;
    }
  });
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::linear, T>{linear_forward<T>, linear_backward_data<T>, linear_backward_parameters<T>};
}   // namespace lrcnn::host
