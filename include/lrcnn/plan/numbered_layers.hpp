#pragma once
// Layers as the checker sees them: linear maps of numbers modulo 2^64, one number for each row of a gradient.
//
// A layer's coefficients are drawn from a hash of the layer, the row of its output and the row of its input. What an ordinary backward pass
// over whole maps makes with them, each plan must make, too.
#include <lrcnn/plan/plan.hpp>
#include <cstdint>
#include <map>
#include <vector>
namespace lrcnn {
namespace detail {
class NumberedLayers {
 public:
  explicit NumberedLayers(const Plan& plan) : of_(plan) {}

 protected:
  /// What a coefficient leads to.
  enum class Coefficient : std::uint64_t {
    data = 2,         ///< the gradient of a layer's first input
    parameters = 3,   ///< of its parameters
    into_sums = 4,    ///< a norm's sums over all rows
    from_sums = 5,    ///< from these to the gradient of its input
    other = 7,        ///< the gradient of a join's second input
  };
  struct Gradients {
    std::vector<std::uint64_t> parameters;   ///< of each layer
    std::vector<std::uint64_t> input;        ///< of the network's input: row r of image i at i * H + r
  };
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
    std::uint64_t h = 0x9E3779B97F4A7C15ull;
    for (const std::uint64_t v : {a, b, c, d}) {
      h ^= v + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
      h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
      h ^= h >> 27;
    }
    return h;
  }
  std::uint64_t seed_gradient(Index image, Index row) const { return mix(1, static_cast<std::uint64_t>(image), static_cast<std::uint64_t>(row), 0); }
  /// A sum gives both of its inputs the same gradient, so that a step for one serves the other.
  std::uint64_t weight(Coefficient kind, Index layer, Index out, Index in) const {
    if (kind == Coefficient::other && node(layer).layer.kind == Kind::sum) kind = Coefficient::data;
    return mix(static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(layer), static_cast<std::uint64_t>(out), static_cast<std::uint64_t>(in));
  }
  const Node& node(Index layer) const { return of_.table.node(layer); }
  /// Input rows that output row `out` of a layer reads.
  Range reads(Index layer, Range out) const {
    const Node& n = node(layer);
    if (rules_of(n.layer).rows == RowMap::all) return {0, n.in.h};
    return in_rows(row_axis_of(n), out, n.in.h);
  }
  /// The row of its second input that output row `out` of a join reads.
  Index other_row(Index layer, Index out) const { return node(layer).layer.kind == Kind::scale ? 0 : out; }
  bool waits(Index layer) const { return lrcnn::detail::waits(node(layer), of_.options.training); }
  /// The set of statistics or of sums that an image belongs to.
  Index set_of(Index layer, Index image) const {
    const Layer& y = node(layer).layer;
    return y.kind == Kind::norm && y.norm.over == Norm::Over::batch ? 0 : image;
  }
  /// An ordinary backward pass over whole maps.
  Gradients whole_map_gradients() const {
    const Table& table = of_.table;
    const Index images = table.input.n;
    std::vector<std::uint64_t> parameters(static_cast<std::size_t>(table.size()), 0);
    std::vector<std::vector<std::uint64_t>> gradient(static_cast<std::size_t>(table.tensors()));   // row r of image i at i * H + r
    const auto rows_of = [&](Index tensor) -> std::vector<std::uint64_t>& {
      auto& g = item(gradient, tensor);
      g.resize(static_cast<std::size_t>(images * table.shape(tensor).h), 0);
      return g;
    };
    const auto place = [](Index image, Index height, Index row) { return static_cast<std::size_t>(image * height + row); };
    const Index end = table.shape(table.size()).h;
    for (Index i = 0; i < images; ++i)
      for (Index r = 0; r < end; ++r) rows_of(table.size())[place(i, end, r)] = seed_gradient(i, r);
    for (Index l = table.size() - 1; l >= 0; --l) {
      const Node& n = node(l);
      const auto dy = rows_of(l + 1);
      std::map<Index, std::uint64_t> sums;
      for (Index i = 0; i < images; ++i)
        for (Index o = 0; o < n.out.h; ++o) {
          const std::uint64_t d = dy[place(i, n.out.h, o)];
          const Range rows = reads(l, {o, o + 1});
          for (Index r = rows.begin; r < rows.end; ++r) rows_of(n.input)[place(i, n.in.h, r)] += d * weight(Coefficient::data, l, o, r);
          if (const Index r = other_row(l, o); n.other >= 0) rows_of(n.other)[place(i, n.in2.h, r)] += d * weight(Coefficient::other, l, o, r);
          if (trains(n.layer, n.in) || waits(l)) item(parameters, l) += d * weight(Coefficient::parameters, l, o, i);
          if (waits(l)) sums[set_of(l, i)] += d * weight(Coefficient::into_sums, l, o, i);
        }
      for (Index i = 0; i < images && waits(l); ++i)
        for (Index r = 0; r < n.in.h; ++r) rows_of(n.input)[place(i, n.in.h, r)] += sums[set_of(l, i)] * weight(Coefficient::from_sums, l, r, 0);
    }
    return {std::move(parameters), rows_of(0)};
  }

 private:
  const Plan& of_;
};
}   // namespace detail
}   // namespace lrcnn
