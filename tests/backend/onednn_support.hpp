#pragma once
// One layer, a slab of its rows, and its three passes on any backend, with poisoned outputs. Inputs are the same
// numbers everywhere: functions of their index, exact in float.
#include "support/threads.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/core/rng.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>
namespace test {
using namespace lrcnn;
/// 64-byte aligned storage, poisoned with not-a-number unless it is only scratch, and a guard behind it.
template <class T>
class Storage {
 public:
  Storage() : Storage(0) {}
  explicit Storage(Index count, bool poison = true) : count_(static_cast<std::size_t>(count)), bytes_(new std::byte[count_ * sizeof(T) + 128]) {
    std::memset(static_cast<void*>(data() + count_), 0xa5, 64);
    if (poison) std::fill_n(data(), count_, static_cast<T>(NAN));
  }
  T* data() const { return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(bytes_.get()) + 63) / 64 * 64); }
  std::size_t size() const { return count_; }
  /// Whether nothing was written behind the end.
  bool intact() const {
    const auto* guard = reinterpret_cast<const unsigned char*>(data() + count_);
    return std::all_of(guard, guard + 64, [](unsigned char c) { return c == 0xa5; });
  }

 private:
  std::size_t count_;
  std::unique_ptr<std::byte[]> bytes_;
};
/// Rows of a tensor with its memory.
template <class T>
struct Rows {
  Storage<T> storage{};
  View<T> view{};
  Rows() = default;
  Rows(const Target& target, const Shape& s, Range rows)
      : storage(stored_elements(s.n, s.c, rows.size(), s.w, target.block(s.c))),
        view(dense_view(storage.data(), s.n, s.c, rows, s.w, target.block(s.c))) {}
  template <class F>
  void each(F f) const {
    for (Index i = 0; i < view.n; ++i)
      for (Index c = 0; c < view.c; ++c)
        for (Index y = view.row0; y < view.row0 + view.rows; ++y)
          for (Index x = 0; x < view.w; ++x) f(i, c, y, x, view(i, c, y, x));
  }
  void fill(const Shape& s, std::uint64_t stream) {
    std::fill_n(storage.data(), storage.size(), T(0));   // padded channels
    const Random random(7, stream);
    each([&](Index i, Index c, Index y, Index x, T& e) {
      const Index at = ((i * s.c + c) * s.h + y) * s.w + x;
      e = static_cast<T>(static_cast<float>(random.uniform(static_cast<std::uint64_t>(at)) * 2 - 1));
    });
  }
  std::vector<double> values() const {
    std::vector<double> list;
    each([&](Index, Index, Index, Index, T& e) { list.push_back(static_cast<double>(e)); });
    return list;
  }
  /// Largest magnitude in padded channels; not-a-number counts as infinite.
  double padding() const {
    double most = 0;
    View<T> all = view;
    all.c = round_up(view.c, view.block);
    for (Index i = 0; i < all.n; ++i)
      for (Index c = view.c; c < all.c; ++c)
        for (Index y = all.row0; y < all.row0 + all.rows; ++y)
          for (Index x = 0; x < all.w; ++x) {
            const double e = std::abs(static_cast<double>(all(i, c, y, x)));
            most = std::max(most, std::isnan(e) ? INFINITY : e);
          }
    return most;
  }
};
inline double norm(const std::vector<double>& a) {
  double sum = 0;
  for (const double v : a) sum += v * v;
  return std::sqrt(sum);
}
/// Norm of the difference over norm of b; infinite if anything is not a number.
inline double relative(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  const double difference = std::sqrt(sum), size = norm(b);
  if (std::isnan(difference)) return INFINITY;
  return size > 0 ? difference / size : difference == 0 ? 0 : INFINITY;
}
/// How far a pass may be from the reference's in double. bfloat16 rounds what is read and what is written: each element,
/// weight and result by at most 2^-9 of it.
template <class B>
constexpr double tolerance_of() {
  return std::is_same_v<typename B::element, float> ? 1e-5 : 3.0 / 512;
}
/// What a slab's three passes give.
struct Passes {
  std::vector<double> y, dx, dw, db;
  double padding = 0;   ///< largest magnitude in padded channels
  bool intact = true;   ///< nothing was written behind any operand
};
struct Options {
  ConvAlgorithm conv_algorithm = ConvAlgorithm::direct;
  Index workspace_bytes = 4_MiB;
  bool accumulate = false;
  Index extra_rows = 0;   ///< of x below what the window reads
};
inline Node node_of(Layer layer, const Shape& in) {
  const std::array layers{layer};
  return make_table(layers, in).nodes[0];
}
inline Layer conv(Index channels, const Window& window, Index groups = 1, bool bias = true) {
  Layer layer;
  layer.kind = Kind::conv;
  layer.name = "conv";
  layer.channels = channels;
  layer.window = window;
  layer.groups = groups;
  layer.bias = bias;
  return layer;
}
inline Layer linear(Index channels, bool bias = true) {
  Layer layer;
  layer.kind = Kind::linear;
  layer.name = "linear";
  layer.channels = channels;
  layer.bias = bias;
  return layer;
}
/// A backend that runs on every machine, whether its processor has kernels for bf16 or not.
template <class B>
B backend(int threads = lrcnn::testing::threads_for_tests()) {
  return B(threads, {}, {.slow_bf16 = true, .report_slow = false});
}
/// How tensors lie on this machine.
template <class B>
const Target& layout_of() {
  if constexpr (requires(const B& b) { b.layout(); }) {
    static const Target layout = backend<B>(1).layout();
    return layout;
  } else {
    return B::target;
  }
}
/// A layer's memory around one slab, for as long as steps run on it.
template <class B>
class Slab {
 public:
  using T = typename B::element;
  using M = master_t<T>;
  Slab(const Node& n, Range out, const Options& options)
      : node(n),
        options_(options),
        in_(input_rows(n, out, options)),
        x(layout_of<B>(), n.in, in_),
        dx(layout_of<B>(), n.in, in_),
        y(layout_of<B>(), n.out, out),
        dy(layout_of<B>(), n.out, out),
        packed_(B::target.packed_bytes(n) / Index(sizeof(T))),
        scratch_(B::target.scratch_bytes(n) / Index(sizeof(T))),
        workspace_(options.workspace_bytes / Index(sizeof(T)), false) {
    x.fill(n.in, 1);
    dy.fill(n.out, 2);
    const auto shapes = parameter_shapes(n.layer, n.in);
    for (std::size_t p = 0; p < static_cast<std::size_t>(shapes.count); ++p) {
      parameters_[p] = Storage<M>(shapes.item[p].count());
      gradients_[p] = Storage<M>(shapes.item[p].count());
      const Random random(9, p);
      for (std::size_t i = 0; i < parameters_[p].size(); ++i) parameters_[p].data()[i] = static_cast<M>(static_cast<float>(random.uniform(i) - 0.5));
      if (options.accumulate)
        for (std::size_t i = 0; i < gradients_[p].size(); ++i)
          gradients_[p].data()[i] = static_cast<M>(static_cast<float>(random.uniform(i + 1000) - 0.5));
    }
    count_ = static_cast<std::size_t>(shapes.count);
  }
  Operands<T> operands(Op op) {
    Operands<T> o;
    o.op = op;
    o.node = &node;
    o.conv_algorithm = options_.conv_algorithm;
    o.accumulate = op == Op::backward_parameters && options_.accumulate;
    for (std::size_t p = 0; p < count_; ++p) {
      o.parameters[p] = parameters_[p].data();
      o.d_parameters[p] = gradients_[p].data();
    }
    if (packed_.size() > 0) o.packed = packed_.data(), o.scratch = scratch_.data();
    o.workspace = reinterpret_cast<std::byte*>(workspace_.data());
    o.workspace_bytes = options_.workspace_bytes;
    if (op == Op::forward) o.x = x.view, o.y = y.view;
    if (op == Op::backward_data) o.dy = dy.view, o.dx = dx.view;
    if (op == Op::backward_parameters) o.dy = dy.view, o.x = x.view;
    return o;
  }
  void step(B& backend, Op op) {
    const auto o = operands(op);
    auto prepared = backend.prepare(o);
    backend.run(prepared, o);
  }
  Passes run(B& backend) {
    for (const Op op : {Op::pack_forward, Op::forward, Op::pack_backward, Op::backward_data, Op::backward_parameters})
      if (packed_.size() > 0 || (op != Op::pack_forward && op != Op::pack_backward)) step(backend, op);
    Passes p{y.values(), dx.values(), gradient(0), gradient(1), std::max(y.padding(), dx.padding())};
    for (const Rows<T>* r : {&x, &dx, &y, &dy}) p.intact = p.intact && r->storage.intact();
    for (const Storage<T>* s : {&packed_, &scratch_, &workspace_}) p.intact = p.intact && s->intact();
    for (const Storage<M>& s : gradients_) p.intact = p.intact && s.intact();
    return p;
  }
  std::vector<double> gradient(std::size_t p) const { return {gradients_[p].data(), gradients_[p].data() + gradients_[p].size()}; }
  Storage<T>& packed() { return packed_; }
  static Range input_rows(const Node& n, Range out, const Options& options) {
    if (rules_of(n.layer).rows != RowMap::window && n.layer.kind != Kind::conv_transpose) return {0, 1};
    Range in = in_rows(row_axis_of(n), out, n.in.h);
    if (!in.empty()) in.end = std::min(in.end + options.extra_rows, n.in.h);
    return in;
  }
  const Node node;

 private:
  Options options_;
  Range in_;

 public:
  Rows<T> x, dx, y, dy;

 private:
  Storage<T> packed_, scratch_;
  Storage<T> workspace_;
  std::array<Storage<M>, 4> parameters_{}, gradients_{};
  std::size_t count_ = 0;
};
template <class B>
Passes passes(B& backend, const Node& node, Range out, const Options& options = {}) {
  return Slab<B>(node, out, options).run(backend);
}
}   // namespace test
