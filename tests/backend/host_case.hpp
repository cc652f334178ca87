#pragma once
// Whole maps with naive formulas on them, and slabs of poisoned memory to run kernels on.
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/core/rng.hpp>
#include <doctest/doctest.h>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>
namespace lrcnn::testing {
/// A whole map in plain NCHW, in double: what the formulas work on.
struct Map {
  Shape shape{};
  std::vector<double> value{};
  explicit Map(Shape s) : shape(s), value(static_cast<std::size_t>(s.count()), 0.0) {}
  double& at(Index i, Index c, Index y, Index x) { return value[static_cast<std::size_t>(((i * shape.c + c) * shape.h + y) * shape.w + x)]; }
  double at(Index i, Index c, Index y, Index x) const { return const_cast<Map*>(this)->at(i, c, y, x); }
  bool inside(Index y, Index x) const { return 0 <= y && y < shape.h && 0 <= x && x < shape.w; }
};
/// Values in [-1, 1) with all their bits, so that no sum is exact; or small integers where ties are wanted.
inline double draw(std::uint64_t seed, std::uint64_t i, bool ties = false) {
  const Random random(seed);
  if (ties) return static_cast<double>(random.below(i, 5)) - 2;
  return 2 * random.uniform(i) - 1;
}
inline Map random_map(Shape s, std::uint64_t seed, bool ties = false) {
  Map map(s);
  for (std::size_t i = 0; i < map.value.size(); ++i) map.value[i] = draw(seed, i, ties);
  return map;
}
inline std::vector<double> random_vector(Index count, std::uint64_t seed) {
  std::vector<double> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = draw(seed, i);
  return v;
}
/// Rows of a map in a backend's storage, with hidden rows above and below and guards around; all poisoned, so that
/// what is not written shows, and what is read or written beyond the view does too.
template <class T>
class Slab {
 public:
  static constexpr std::size_t guard = 64;
  Slab(Shape s, Range rows, Index block, Index hidden = 1)
      : rows_(rows), data_(guard * 2 + static_cast<std::size_t>(stored_elements(s.n, s.c, rows.size() + 2 * hidden, s.w, block))) {
    std::memset(static_cast<void*>(data_.data()), 0xff, data_.size() * sizeof(T));
    all_ = dense_view(data_.data() + guard, s.n, s.c, {rows.begin - hidden, rows.begin + rows.size() + hidden}, s.w, block);
  }
  Slab(const Map& map, Range rows, Index block, Index hidden = 1) : Slab(map.shape, rows, block, hidden) {
    const View<T> v = view();
    for (Index i = 0; i < v.n; ++i)
      for (Index c = 0; c < round_up(v.c, block); ++c)
        for (Index y = rows.begin; y < rows.end; ++y)
          for (Index x = 0; x < v.w; ++x) v(i, c, y, x) = c < v.c ? static_cast<T>(map.at(i, c, y, x)) : T(0);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  Slab(Slab&& other) noexcept = default;   // the view's pointer stays right: a moved vector keeps its memory
  View<T> view() const { return all_.slice({rows_.begin, rows_.begin + rows_.size()}); }
  /// True if nothing outside the view has been written.
  bool intact() const {
    std::vector<char> ours(data_.size(), 0);
    const View<T> v = view();
    for (Index i = 0; i < v.n; ++i)
      for (Index b = 0; b < v.blocks(); ++b)
        for (Index e = 0; e < v.rows * v.stride_row(); ++e) ours[static_cast<std::size_t>(v.row(i, b, v.row0) + e - data_.data())] = 1;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      if (ours[i]) continue;
      for (std::size_t byte = 0; byte < sizeof(T); ++byte)
        if (reinterpret_cast<const unsigned char*>(&data_[i])[byte] != 0xff) return false;
    }
    return true;
  }
  /// Largest |element - map's| over the view's rows; infinite if an element is not a number, a padded channel is not
  /// zero, or something outside was written.
  double difference(const Map& map) const {
    const View<T> v = view();
    double most = 0;
    bool good = intact();
    for (Index i = 0; i < v.n; ++i)
      for (Index c = 0; c < round_up(v.c, v.block); ++c)
        for (Index y = v.row0; y < v.row0 + v.rows; ++y)
          for (Index x = 0; x < v.w; ++x) {
            const double e = static_cast<double>(v(i, c, y, x)), wanted = c < v.c ? map.at(i, c, y, x) : 0;
            if (c >= v.c) good = good && e == 0;
            if (e != wanted) most = std::isfinite(e - wanted) ? std::max(most, std::abs(e - wanted)) : most;
            good = good && (e == wanted || std::isfinite(e - wanted));
          }
    return good ? most : std::numeric_limits<double>::infinity();
  }

 private:
  Range rows_;
  std::vector<T> data_;
  View<T> all_;
};
/// True if rows `rows` of two views hold the same bits, wherever else the views begin and end.
template <class T>
bool same_bits(const View<T>& a, const View<T>& b, Range rows) {
  for (Index i = 0; i < a.n; ++i)
    for (Index block = 0; block < a.blocks(); ++block)
      for (Index y = rows.begin; y < rows.end; ++y)
        if (std::memcmp(a.row(i, block, y), b.row(i, block, y), static_cast<std::size_t>(a.stride_row()) * sizeof(T))) return false;
  return true;
}
inline Node node_of(Layer layer, Shape in) {
  REQUIRE(fault_of(layer, in) == Fault::none);
  layer.name = "tested";
  return {.layer = layer, .in = in, .out = output_shape(layer, in)};
}
/// A layer's state as a kernel sees it: parameters, blocks, threads.
template <class T>
struct Bench {
  Node node;
  Index x_block = 1, y_block = 1;
  int threads = 1;
  Index hidden = 1;   ///< rows above and below each slab that nothing may touch; 0 for feature vectors
  std::vector<std::vector<double>> parameters{};
  explicit Bench(const Node& n, Index xb = 1, Index yb = 1, std::uint64_t seed = 7) : node(n), x_block(xb), y_block(yb) {
    const auto shapes = parameter_shapes(n.layer, n.in);
    for (Index p = 0; p < shapes.count; ++p)
      parameters.push_back(random_vector(shapes.item[static_cast<std::size_t>(p)].count(), seed + static_cast<std::uint64_t>(p)));
  }
  /// Input rows inside the map that output rows read.
  Range reads(Range out) const {
    if (node.layer.kind == Kind::flatten || node.layer.kind == Kind::global_avg_pool) return {0, node.in.h};
    return in_rows(row_axis_of(node), out, node.in.h);
  }
  Range all_out() const { return {0, node.out.h}; }
  /// Saved state for rows of the output, poisoned.
  std::vector<std::uint8_t> saved_memory(Range rows) const {
    const Target target{.channel_block = y_block};
    const Shape& s = node.out;
    return std::vector<std::uint8_t>(static_cast<std::size_t>(node.layer.kind == Kind::activation ? target.mask_bytes(s.n, s.c, rows.size(), s.w)
                                                                                                  : target.index_bytes(s.n, s.c, rows.size(), s.w)),
                                     0xff);
  }
  View<std::uint8_t> saved(std::vector<std::uint8_t>& memory, Range rows) const {
    return saved_view(memory.data(), node.layer, node.out.n, node.out.c, rows, node.out.w, y_block);
  }
  /// Runs a step with this layer's parameters.
  void run(Operands<T> o, std::vector<std::vector<master_t<T>>>* gradients = nullptr) const {
    std::vector<std::vector<master_t<T>>> values;
    for (const auto& p : parameters) values.emplace_back(p.begin(), p.end());
    for (std::size_t p = 0; p < values.size(); ++p) o.parameters[p] = values[p].data();
    if (gradients)
      for (std::size_t p = 0; p < gradients->size(); ++p) o.d_parameters[p] = (*gradients)[p].data();
    o.node = &node;
    host::check(o);
    host::run(o, threads);
  }
  Slab<T> forward(const Map& x, Range out, View<std::uint8_t> saved = {}) const {
    const Slab<T> from(x, reads(out), x_block, hidden);
    Slab<T> y(node.out, out, y_block, hidden);
    Operands<T> o;
    o.op = Op::forward;
    o.x = from.view();
    o.y = y.view();
    o.saved = saved;
    run(o);
    return y;
  }
  /// Gradient of input rows `in` from output rows `out`; x and y are given to the kernel if they are not null.
  Slab<T> backward_data(const Map& dy, Range out, Range in, View<std::uint8_t> saved = {}, const Map* x = nullptr, const Map* y = nullptr) const {
    const Slab<T> from(dy, out, y_block, hidden);
    std::optional<Slab<T>> values, results;
    if (x) values.emplace(*x, reads(out), x_block, hidden);
    if (y) results.emplace(*y, out, y_block, hidden);
    Slab<T> dx(node.in, in, x_block, hidden);
    Operands<T> o;
    o.op = Op::backward_data;
    if (x) o.x = values->view();
    if (y) o.y = results->view();
    o.dy = from.view();
    o.dx = dx.view();
    o.saved = saved;
    run(o);
    return dx;
  }
  /// Parameter gradients from output rows `out`: written over poison, or added to `before`.
  std::vector<std::vector<master_t<T>>> backward_parameters(const Map& x, const Map& dy, Range out,
                                                            const std::vector<std::vector<master_t<T>>>* before = nullptr) const {
    const Slab<T> from(x, reads(out), x_block, hidden), down(dy, out, y_block, hidden);
    std::vector<std::vector<master_t<T>>> gradients;
    for (const auto& p : parameters) gradients.emplace_back(p.size(), std::numeric_limits<master_t<T>>::quiet_NaN());
    if (before) gradients = *before;
    Operands<T> o;
    o.op = Op::backward_parameters;
    o.accumulate = before != nullptr;
    o.x = from.view();
    o.dy = down.view();
    run(o, &gradients);
    return gradients;
  }
};
/// Calls f(image, output channel, output row, output column, input channel, tap row, tap column, input row, input
/// column) for every tap of a windowed layer, padding included. Pools read their own channel.
template <class F>
void each_tap(const Node& n, F f) {
  const Window& w = n.layer.window;
  const bool conv = n.layer.kind == Kind::conv;
  const Index c_group = conv ? n.in.c / n.layer.groups : 1, k_group = conv ? n.out.c / n.layer.groups : 1;
  for (Index i = 0; i < n.in.n; ++i)
    for (Index k = 0; k < n.out.c; ++k)
      for (Index y = 0; y < n.out.h; ++y)
        for (Index q = 0; q < n.out.w; ++q)
          for (Index c = k / k_group * c_group; c < (k / k_group + 1) * c_group; ++c)
            for (Index r = 0; r < w.kernel.h; ++r)
              for (Index s = 0; s < w.kernel.w; ++s)
                f(i, k, y, q, c, r, s, y * w.stride.h - w.pad.top + r * w.dilation.h, q * w.stride.w - w.pad.left + s * w.dilation.w);
}
inline double worst(const std::vector<double>& wanted, const std::vector<double>& got) {
  double most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) most = std::isfinite(got[i]) ? std::max(most, std::abs(wanted[i] - got[i])) : 1e300;
  return most;
}
/// Ranges that cut [0, height) into slabs: one row each, halves, and an uneven cut.
inline std::vector<std::vector<Range>> cuts_of(Index height) {
  std::vector<std::vector<Range>> cuts{{{0, height}}};
  if (height < 2) return cuts;
  cuts.push_back({{0, height / 2}, {height / 2, height}});
  cuts.push_back({{0, 1}, {1, height}});
  cuts.emplace_back();
  for (Index y = 0; y < height; ++y) cuts.back().push_back({y, y + 1});
  return cuts;
}
}   // namespace lrcnn::testing
