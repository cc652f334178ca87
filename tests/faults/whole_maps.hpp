#pragma once
// A network forward and backward over whole maps, written down as the formulas read: every element by itself, no
// slabs, no steps, no storage layouts. An oracle that shares nothing with the library but its layer table.
#include "exec/user_layers.hpp"
#include "support/run_network.hpp"
namespace lrcnn::testing {
/// Values of one tensor, or their gradient, [N,C,H,W].
struct Map {
  Shape shape{};
  std::vector<double> values{};
  explicit Map(const Shape& s) : shape(s), values(static_cast<std::size_t>(s.count()), 0.0) {}
  double& at(Index n, Index c, Index y, Index x) {
    return values[static_cast<std::size_t>(((n * shape.c + c) * shape.h + y) * shape.w + x)];
  }
  bool inside(Index y, Index x) const { return 0 <= y && y < shape.h && 0 <= x && x < shape.w; }
};
/// Calls f(n, c, y, x) for every element.
template <class F>
void each(const Shape& s, F f) {
  for (Index n = 0; n < s.n; ++n)
    for (Index c = 0; c < s.c; ++c)
      for (Index y = 0; y < s.h; ++y)
        for (Index x = 0; x < s.w; ++x) f(n, c, y, x);
}
/// Calls f(r, s, y, x) for every tap of a window and the position under it, padding included.
template <class F>
void each_tap(const Window& w, Index p, Index q, F f) {
  for (Index r = 0; r < w.kernel.h; ++r)
    for (Index s = 0; s < w.kernel.w; ++s)
      f(r, s, p * w.stride.h - w.pad.top + r * w.dilation.h, q * w.stride.w - w.pad.left + s * w.dilation.w);
}
/// Forward if dx is null, else backward: one layer's formulas. weights, dw: the layer's own, bias last.
inline void apply(const Node& node, Map& x, Map& y, Map* dx, Map* dy, const double* weights, double* dw) {
  const Layer& l = node.layer;
  const Index per_group = l.kind == Kind::conv ? node.in.c / l.groups : node.in.c;
  const Index taps = l.window.kernel.h * l.window.kernel.w, bias = node.out.c * per_group * taps;
  each(node.out, [&](Index n, Index k, Index p, Index q) {
    const double g = dy ? dy->at(n, k, p, q) : 0;
    if (l.kind == Kind::conv || l.kind == Kind::linear) {
      double sum = l.bias ? weights[bias + k] : 0;
      if (dx && l.bias) dw[bias + k] += g;
      const Index group = l.kind == Kind::conv ? k / (node.out.c / l.groups) : 0;
      for (Index c = 0; c < per_group; ++c)
        each_tap(l.window, p, q, [&](Index r, Index s, Index h, Index w) {
          if (!x.inside(h, w)) return;
          const Index at = (k * per_group + c) * taps + r * l.window.kernel.w + s;
          sum += weights[at] * x.at(n, group * per_group + c, h, w);
          if (!dx) return;
          dw[at] += g * x.at(n, group * per_group + c, h, w);
          dx->at(n, group * per_group + c, h, w) += g * weights[at];
        });
      y.at(n, k, p, q) = sum;
    } else if (l.kind == Kind::activation) {
      const double v = x.at(n, k, p, q), sigmoid = 1 / (1 + std::exp(-v));
      const double below = l.activation.function == Function::relu ? 0 : l.activation.slope;
      const bool silu = l.activation.function == Function::silu;
      y.at(n, k, p, q) = silu ? v * sigmoid : v > 0 ? v : below * v;
      if (dx) dx->at(n, k, p, q) += g * (silu ? sigmoid * (1 + v * (1 - sigmoid)) : v > 0 ? 1 : below);
    } else if (l.kind == Kind::max_pool) {
      double best = -INFINITY;
      Index row = -1, column = -1;
      each_tap(l.window, p, q, [&](Index, Index, Index h, Index w) {
        if (x.inside(h, w) && x.at(n, k, h, w) > best) best = x.at(n, k, h, w), row = h, column = w;
      });
      y.at(n, k, p, q) = best;
      if (dx) dx->at(n, k, row, column) += g;
    } else if (l.kind == Kind::avg_pool) {
      double sum = 0, count = 0;
      each_tap(l.window, p, q, [&](Index, Index, Index h, Index w) {
        if (x.inside(h, w)) sum += x.at(n, k, h, w);
        count += x.inside(h, w) || l.count_padding;
      });
      y.at(n, k, p, q) = sum / count;
      each_tap(l.window, p, q, [&](Index, Index, Index h, Index w) {
        if (dx && x.inside(h, w)) dx->at(n, k, h, w) += g / count;
      });
    } else if (l.kind == Kind::global_avg_pool) {
      const double count = static_cast<double>(node.in.h * node.in.w);
      for (Index h = 0; h < node.in.h; ++h)
        for (Index w = 0; w < node.in.w; ++w) {
          y.at(n, k, 0, 0) += dx ? 0 : x.at(n, k, h, w) / count;
          if (dx) dx->at(n, k, h, w) += g / count;
        }
    } else if (l.kind == Kind::custom) {   // tanh
      y.at(n, k, p, q) = std::tanh(x.at(n, k, p, q));
      if (dx) dx->at(n, k, p, q) += g * (1 - y.at(n, k, p, q) * y.at(n, k, p, q));
    } else {   // flatten
      const auto from = static_cast<std::size_t>(n * node.out.c + k);
      y.values[from] = x.values[from];
      if (dx) dx->values[from] = g;
    }
  });
}
/// What run_once() returns, by these formulas.
inline Outcome<double> whole_maps(const Problem<double>& problem) {
  const Table& table = problem.table;
  std::vector<Map> values{Map(table.input)}, gradients;
  values[0].values = problem.images;
  const auto weights = [&](Index l) {
    for (const Parameter& p : problem.layout)
      if (p.layer == l) return p.offset;
    return Index{0};
  };
  for (Index l = 0; l < table.size(); ++l) {
    values.emplace_back(table.node(l).out);
    apply(table.node(l), values[static_cast<std::size_t>(l)], values.back(), nullptr, nullptr,
          problem.parameters.data() + weights(l), nullptr);
  }
  for (Index t = 0; t < table.tensors(); ++t) gradients.emplace_back(table.shape(t));
  Outcome<double> outcome;
  outcome.output = values.back().values;
  Map& logits = values.back();
  for (Index n = 0; n < table.input.n; ++n) {
    double sum = 0;
    const Index label = problem.labels[static_cast<std::size_t>(n)];
    for (Index k = 0; k < logits.shape.c; ++k) sum += std::exp(logits.at(n, k, 0, 0));
    outcome.loss.sum += std::log(sum) - logits.at(n, label, 0, 0);
    for (Index k = 0; k < logits.shape.c; ++k)
      gradients.back().at(n, k, 0, 0) =
          (std::exp(logits.at(n, k, 0, 0)) / sum - (k == label ? 1 : 0)) / static_cast<double>(table.input.n);
  }
  outcome.gradients.assign(problem.parameters.size(), 0.0);
  for (Index l = table.size() - 1; l >= 0; --l) {
    const auto at = static_cast<std::size_t>(l);
    apply(table.node(l), values[at], values[at + 1], &gradients[at], &gradients[at + 1],
          problem.parameters.data() + weights(l), outcome.gradients.data() + weights(l));
  }
  outcome.input_gradient = gradients[0].values;
  return outcome;
}
}  // namespace lrcnn::testing
