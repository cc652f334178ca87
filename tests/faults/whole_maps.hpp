#pragma once
// A network forward and backward over whole maps, written down as the formulas read: every element by itself, no
// slabs, no steps, no storage layouts. An oracle that shares nothing with the library but its layer table.
#include "exec/user_layers.hpp"
#include "support/run_network.hpp"
#include <map>
#include <tuple>
namespace lrcnn::testing {
/// Values of one tensor, or their gradient, [N,C,H,W].
struct Map {
  Shape shape{};
  std::vector<double> values{};
  explicit Map(const Shape& s) : shape(s), values(static_cast<std::size_t>(s.count()), 0.0) {}
  double& at(Index n, Index c, Index y, Index x) { return values[static_cast<std::size_t>(((n * shape.c + c) * shape.h + y) * shape.w + x)]; }
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
    for (Index s = 0; s < w.kernel.w; ++s) f(r, s, p * w.stride.h - w.pad.top + r * w.dilation.h, q * w.stride.w - w.pad.left + s * w.dilation.w);
}
/// An activation's value and slope.
inline std::pair<double, double> activated(const Activation& a, double v) {
  const double sigmoid = 1 / (1 + std::exp(-v)), normal = std::exp(-v * v / 2) / std::sqrt(2 * std::acos(-1.0));
  const double below = std::erfc(-v / std::sqrt(2.0)) / 2;   // of a normal distribution
  switch (a.function) {
    case Function::relu: return {v > 0 ? v : 0, v > 0};
    case Function::leaky_relu: return {v > 0 ? v : a.slope * v, v > 0 ? 1 : a.slope};
    case Function::silu: return {v * sigmoid, sigmoid * (1 + v * (1 - sigmoid))};
    case Function::relu6: return {std::clamp(v, 0.0, 6.0), v > 0 && v < 6};
    case Function::gelu: return {v * below, below + v * normal};
    case Function::hardswish: return {v * std::clamp(v / 6 + 0.5, 0.0, 1.0), v <= -3 ? 0 : v >= 3 ? 1 : v / 3 + 0.5};
    case Function::sigmoid: return {sigmoid, sigmoid * (1 - sigmoid)};
    case Function::hardsigmoid: return {std::clamp(v / 6 + 0.5, 0.0, 1.0), v > -3 && v < 3 ? 1.0 / 6 : 0};
  }
  return {};
}
/// A norm's formulas: mean and variance of all elements that have one key.
inline void apply_norm(const Node& node, Map& x, Map& y, Map* dx, Map* dy, const double* weights, double* dw) {
  const Norm& norm = node.layer.norm;
  const Index channels = node.in.c, running = norm.affine ? 2 * channels : 0;
  struct Unit {
    double count = 0, mean = 0, squares = 0, sum = 0, product = 0;
  };
  std::map<Index, Unit> units;
  const auto unit = [&](Index n, Index c, Index h, Index w) -> Unit& {
    if (norm.over == Norm::Over::batch) return units[c];
    const Index groups = norm.groups > 0 ? norm.groups : channels;
    return units[norm.over == Norm::Over::group ? n * groups + c / (channels / groups) : (n * node.in.h + h) * node.in.w + w];
  };
  each(node.in, [&](Index n, Index c, Index h, Index w) {
    Unit& u = unit(n, c, h, w);
    u.mean += x.at(n, c, h, w), ++u.count;
  });
  for (auto& [key, u] : units) u.mean /= u.count;
  each(node.in, [&](Index n, Index c, Index h, Index w) {
    Unit& u = unit(n, c, h, w);
    u.squares += std::pow(x.at(n, c, h, w) - u.mean, 2);
  });
  if (dw && norm.over == Norm::Over::batch && !norm.frozen)
    for (Index c = 0; c < channels; ++c) dw[running + c] = units[c].mean, dw[running + channels + c] = units[c].squares / (units[c].count - 1);
  for (auto& [key, u] : units) {
    if (norm.frozen) u.mean = weights[running + key];
    u.squares = 1 / std::sqrt((norm.frozen ? weights[running + channels + key] : u.squares / u.count) + norm.epsilon);
  }
  const auto weight = [&](Index c) { return norm.affine ? weights[c] : 1; };
  const auto normal = [&](Index n, Index c, Index h, Index w) { return (x.at(n, c, h, w) - unit(n, c, h, w).mean) * unit(n, c, h, w).squares; };
  each(node.in, [&](Index n, Index c, Index h, Index w) {
    y.at(n, c, h, w) = weight(c) * normal(n, c, h, w) + (norm.affine ? weights[channels + c] : 0);
    if (!dx) return;
    const double g = dy->at(n, c, h, w);
    unit(n, c, h, w).sum += g * weight(c), unit(n, c, h, w).product += g * weight(c) * normal(n, c, h, w);
    if (norm.affine) dw[c] += g * normal(n, c, h, w), dw[channels + c] += g;
  });
  each(node.in, [&](Index n, Index c, Index h, Index w) {
    if (!dx) return;
    const Unit& u = unit(n, c, h, w);
    const double all = norm.frozen ? 0 : (u.sum + normal(n, c, h, w) * u.product) / u.count;
    dx->at(n, c, h, w) += u.squares * (dy->at(n, c, h, w) * weight(c) - all);
  });
}
/// The input positions of an output position along an axis, and the share of the second.
inline std::tuple<Index, Index, double> between(const Upsampling& u, Index factor, Index out, Index extent) {
  if (u.rule == Upsampling::Rule::nearest) return {out / factor, out / factor, 0};
  const double at = u.rule == Upsampling::Rule::bilinear
                        ? (static_cast<double>(out) + 0.5) / static_cast<double>(factor) - 0.5
                        : (extent * factor > 1 ? static_cast<double>(out * (extent - 1)) / static_cast<double>(extent * factor - 1) : 0.0);
  const double inside = std::clamp(at, 0.0, static_cast<double>(extent - 1));
  const auto first = static_cast<Index>(inside);
  return {first, std::min(first + 1, extent - 1), inside - static_cast<double>(first)};
}
/// Forward if dx is null, else backward: one layer's formulas. weights, dw: the layer's own, bias last. x2, dx2: a join's second input.
inline void apply(const Node& node, Index layer, Map& x, Map& y, Map* dx, Map* dy, const double* weights, double* dw, Map* x2 = nullptr,
                  Map* dx2 = nullptr) {
  if (node.layer.kind == Kind::norm) return apply_norm(node, x, y, dx, dy, weights, dw);
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
      const auto [value, slope] = activated(l.activation, x.at(n, k, p, q));
      y.at(n, k, p, q) = value;
      if (dx) dx->at(n, k, p, q) += g * slope;
    } else if (l.kind == Kind::sum) {
      y.at(n, k, p, q) = x.at(n, k, p, q) + x2->at(n, k, p, q);
      if (dx) dx->at(n, k, p, q) += g, dx2->at(n, k, p, q) += g;
    } else if (l.kind == Kind::concat) {
      const bool second = k >= node.in.c;
      const Index c = second ? k - node.in.c : k;
      y.at(n, k, p, q) = (second ? x2 : &x)->at(n, c, p, q);
      if (dx) (second ? dx2 : dx)->at(n, c, p, q) += g;
    } else if (l.kind == Kind::scale) {
      y.at(n, k, p, q) = x.at(n, k, p, q) * x2->at(n, k, 0, 0);
      if (dx) dx->at(n, k, p, q) += g * x2->at(n, k, 0, 0), dx2->at(n, k, 0, 0) += g * x.at(n, k, p, q);
    } else if (l.kind == Kind::dropout) {   // of seed 0 and step 0
      const auto key = philox({0, 0, static_cast<std::uint32_t>(layer), 0x64726f70}, {0, 0});
      const bool element = l.drop.each == Drop::Each::element, image = l.drop.each == Drop::Each::image;
      const auto number = [](bool counts, Index v) { return counts ? static_cast<std::uint32_t>(v) : 0u; };
      const auto words = philox({number(element, q / 4), number(element, p), number(!image, k), number(true, n)}, {key[0], key[1]});
      const bool kept = words[element ? static_cast<std::size_t>(q % 4) : 0] * 0x1.0p-32 >= l.drop.probability;
      y.at(n, k, p, q) = kept ? x.at(n, k, p, q) / (1 - l.drop.probability) : 0;
      if (dx) dx->at(n, k, p, q) += kept ? g / (1 - l.drop.probability) : 0;
    } else if (l.kind == Kind::upsample) {
      const auto [top, bottom, low] = between(l.upsampling, l.upsampling.factor.h, p, node.in.h);
      const auto [left, right, far] = between(l.upsampling, l.upsampling.factor.w, q, node.in.w);
      y.at(n, k, p, q) = 0;
      for (const auto& [h, row] : {std::pair{top, 1 - low}, std::pair{bottom, low}})
        for (const auto& [w, column] : {std::pair{left, 1 - far}, std::pair{right, far}}) {
          y.at(n, k, p, q) += row * column * x.at(n, k, h, w);
          if (dx) dx->at(n, k, h, w) += row * column * g;
        }
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
      if (dx) dx->values[from] += g;
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
  values.reserve(static_cast<std::size_t>(table.tensors()));
  for (Index l = 0; l < table.size(); ++l) {
    values.emplace_back(table.node(l).out);
    const Node& node = table.node(l);
    const auto value = [&](Index t) { return t < 0 ? nullptr : &values[static_cast<std::size_t>(t)]; };
    apply(node, l, *value(node.input), values.back(), nullptr, nullptr, problem.parameters.data() + weights(l), nullptr, value(node.other));
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
      gradients.back().at(n, k, 0, 0) = (std::exp(logits.at(n, k, 0, 0)) / sum - (k == label ? 1 : 0)) / static_cast<double>(table.input.n);
  }
  outcome.gradients.assign(problem.parameters.size(), 0.0);
  for (Index l = table.size() - 1; l >= 0; --l) {
    const Node& node = table.node(l);
    const auto in = static_cast<std::size_t>(node.input), out = static_cast<std::size_t>(l) + 1, other = static_cast<std::size_t>(node.other);
    const bool join = node.other >= 0;
    apply(node, l, values[in], values[out], &gradients[in], &gradients[out], problem.parameters.data() + weights(l),
          outcome.gradients.data() + weights(l), join ? &values[other] : nullptr, join ? &gradients[other] : nullptr);
  }
  outcome.input_gradient = gradients[0].values;
  return outcome;
}
}   // namespace lrcnn::testing
