#pragma once
// Steps carried out by the device loops on the host's system of Thrust, beside the same steps by the host's loops.
#include "backend/host_case.hpp"
#include "loops/host_system.hpp"
namespace lrcnn::testing {
inline const loops::HostSystem on_host{};
/// Where blocks of a loop are counted: of the size that is promised, and all 0 again when the loop is done.
class Tallies {
 public:
  std::uint32_t* data() { return counts_.data(); }
  bool all_zero() const {
    return std::all_of(counts_.begin(), counts_.end() - 8, [](std::uint32_t c) { return c == 0; }) &&
           std::all_of(counts_.end() - 8, counts_.end(), [](std::uint32_t c) { return c == 7; });
  }

 private:
  std::vector<std::uint32_t> counts_ = [] {
    std::vector<std::uint32_t> counts(static_cast<std::size_t>(loops::most_tallies), 0);
    counts.resize(counts.size() + 8, 7);   // nobody's
    return counts;
  }();
};
/// A layer with its channels last, run by loops::run instead of host::run.
template <class T>
struct LoopBench {
  Bench<T> host;
  explicit LoopBench(const Node& node) : host(node, node.in.c, node.out.c) {}
  const Node& node() const { return host.node; }
  /// With this layer's parameters, and a workspace of the size asked for and not a byte more.
  void run(Operands<T> o, std::vector<std::vector<master_t<T>>>* gradients = nullptr) const {
    o.node = &host.node;
    REQUIRE(loops::covers(o));
    std::vector<std::vector<master_t<T>>> values;
    for (const auto& p : host.parameters) values.emplace_back(p.begin(), p.end());
    for (std::size_t p = 0; p < values.size(); ++p) o.parameters[p] = values[p].data();
    for (std::size_t p = 0; gradients && p < gradients->size(); ++p) o.d_parameters[p] = (*gradients)[p].data();
    o.workspace_bytes = loops::workspace_bytes(o);
    std::vector<std::byte> workspace(static_cast<std::size_t>(o.workspace_bytes) + 64, std::byte{0xff});
    o.workspace = workspace.data();
    Tallies tallies;
    o.tallies = tallies.data();
    loops::run(on_host, o);
    CHECK(tallies.all_zero());
    CHECK(std::all_of(workspace.end() - 64, workspace.end(), [](std::byte b) { return b == std::byte{0xff}; }));
  }
  Slab<T> forward(const Map& x, Range out, View<std::uint8_t> saved = {}, Index hidden = 1) const {
    const Slab<T> from(x, host.reads(out), host.x_block, hidden);
    Slab<T> y(host.node.out, out, host.y_block, hidden);
    Operands<T> o;
    o.op = Op::forward;
    o.x = from.view();
    o.y = y.view();
    o.saved = saved;
    run(o);
    return y;
  }
  /// Forward that keeps saved state alone.
  void forward_saved(const Map& x, Range out, View<std::uint8_t> saved) const {
    const Slab<T> from(x, host.reads(out), host.x_block);
    Operands<T> o;
    o.op = Op::forward;
    o.x = from.view();
    o.saved = saved;
    run(o);
  }
  Slab<T> backward_data(const Map& dy, Range out, Range in, View<std::uint8_t> saved = {}, const Map* x = nullptr, const Map* y = nullptr,
                        Index hidden = 1) const {
    const Slab<T> from(dy, out, host.y_block, hidden);
    std::optional<Slab<T>> values, results;
    if (x) values.emplace(*x, host.reads(out), host.x_block, hidden);
    if (y) results.emplace(*y, out, host.y_block, hidden);
    Slab<T> dx(host.node.in, in, host.x_block, hidden);
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
  /// As Bench::backward_parameters().
  std::vector<std::vector<master_t<T>>> backward_parameters(const Map& x, const Map& dy, Range out,
                                                            const std::vector<std::vector<master_t<T>>>* before = nullptr) const {
    const Slab<T> from(x, host.reads(out), host.x_block), down(dy, out, host.y_block);
    std::vector<std::vector<master_t<T>>> gradients;
    for (const auto& p : host.parameters) gradients.emplace_back(p.size(), std::numeric_limits<master_t<T>>::quiet_NaN());
    if (before) gradients = *before;
    Operands<T> o;
    o.op = Op::backward_parameters;
    o.accumulate = before != nullptr;
    o.x = from.view(), o.dy = down.view();
    run(o, &gradients);
    return gradients;
  }
};
/// True if two slabs of the same rows hold the same bits and nothing around them has been written.
template <class T>
bool same(const Slab<T>& a, const Slab<T>& b) {
  return a.intact() && b.intact() && same_bits(a.view(), b.view(), a.view().range());
}
/// True if a slab of two-byte elements holds what float arithmetic gave, rounded once.
template <class H>
bool rounded(const Slab<H>& got, const Slab<float>& wanted) {
  const View<H> a = got.view();
  const View<float> b = wanted.view();
  bool good = got.intact();
  for (Index i = 0; i < a.n; ++i)
    for (Index y = a.row0; y < a.row0 + a.rows; ++y)
      for (Index e = 0; e < a.stride_row(); ++e) good = good && a.row(i, 0, y)[e].bits() == H(b.row(i, 0, y)[e]).bits();
  return good;
}
/// The values of a map, rounded to T, so that T, float and double start from the same.
template <class T>
Map as(Map map) {
  for (double& e : map.value) e = static_cast<double>(static_cast<T>(e));
  return map;
}
/// A random pool that is valid, or nothing.
inline std::optional<Node> random_pool(Kind kind, const Random& random, std::uint64_t i) {
  auto pick = [&, k = std::uint64_t{0}](Index below) mutable {
    return static_cast<Index>(random.below(i * 32 + k++, static_cast<std::uint64_t>(below)));
  };
  Layer layer{.kind = kind};
  layer.count_padding = pick(2) == 0;
  layer.window.ceil = pick(3) == 0;
  layer.window.kernel = {1 + pick(4), 1 + pick(4)};
  layer.window.stride = {1 + pick(4), 1 + pick(4)};
  layer.window.dilation = {1 + pick(2) * pick(3), 1 + pick(2) * pick(3)};
  const Index rows = row_axis(layer.window).extent(), columns = column_axis(layer.window).extent();
  layer.window.pad = Pad(pick(rows), pick(rows), pick(columns), pick(columns));
  const Index channels = std::array<Index, 10>{1, 2, 3, 4, 5, 8, 12, 16, 19, 24}[static_cast<std::size_t>(pick(10))];
  const Shape in{1 + pick(3), channels, 1 + pick(9), 1 + pick(9)};
  layer.name = "tested";
  if (fault_of(layer, in) != Fault::none) return std::nullopt;
  return Node{.layer = layer, .in = in, .out = output_shape(layer, in)};
}
}   // namespace lrcnn::testing
