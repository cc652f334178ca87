#pragma once
// What a backend has built for its steps, kept under the numbers that describe each problem.
//
// Slabs of equal shape share a primitive, as do layers of equal shape. The caches keep what a step still holds, and of the rest some
// hundreds of those wanted last (core/bounded_cache.hpp).
#include <lrcnn/backend/host/winograd_convolution.hpp>
#include <lrcnn/backend/onednn/convolution.hpp>
#include <lrcnn/backend/onednn/linear.hpp>
#include <lrcnn/core/bounded_cache.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
namespace lrcnn {
/// How often a primitive was wanted, how often one had to be built, and how many are kept.
struct OnednnCache {
  Index hits = 0;
  Index misses = 0;
  Index kept = 0;
};
namespace onednn {
/// The two sides of a convolution: x or dx, and y or dy.
template <class T>
struct Sides {
  View<const T> x, y;
};
template <class T>
Sides<T> sides_of(const Operands<T>& o) {
  return {o.op == Op::backward_data ? View<const T>(o.dx) : o.x, o.op == Op::forward ? View<const T>(o.y) : o.dy};
}
template <class T>
class Primitives {
 public:
  /// `layout`: how tensors lie on this machine.
  explicit Primitives(const Target& layout) : layout_(layout) {}
  const Library& library() const { return library_; }
  const Target& layout() const { return layout_; }
  /// The filter of a layer as one pass reads or writes it.
  std::shared_ptr<PackedFilter> filter(const Node& node, Op op) {
    return find_or_make(filters_, layer_key(node, op), [&] { return std::make_shared<PackedFilter>(library_, layout_, node, op); });
  }
  /// The library's convolution for a slab.
  /// Pre, post and errors: as Convolution's constructor
  std::shared_ptr<Convolution<T>> convolution(const Operands<T>& o, const std::shared_ptr<PackedFilter>& filter) {
    const Sides<T> slab = sides_of(o);
    return find_or_make(convolutions_, slab_key(o, *filter),
                        [&] { return std::make_shared<Convolution<T>>(library_, layout_, o, slab.x, slab.y, filter); });
  }
  /// What make() returns, which may be null: Winograd's algorithm for a slab.
  template <class Make>
  std::shared_ptr<host::WinogradConvolution> winograd(const Operands<T>& o, const PackedFilter& filter, Make make) {
    return find_or_make(winograds_, slab_key(o, filter), make);
  }
  /// The library's products for a linear layer's pass.
  std::shared_ptr<Linear<T>> linear(const Operands<T>& o) {
    return find_or_make(linears_, linear_key(o), [&] { return std::make_shared<Linear<T>>(library_, o); });
  }
  /// A slab's problem, in words for a file of measurements.
  /// Pre:     `filter` has a tag
  static std::string problem(const Operands<T>& o, const PackedFilter& filter) {
    std::string text(op_name(o.op));
    for (const Index number : slab_key(o, filter)) text += " " + std::to_string(number);
    return text;
  }
  OnednnCache counts() const {
    OnednnCache told = counts_;
    told.kept = static_cast<Index>(filters_.size() + convolutions_.size() + winograds_.size() + linears_.size());
    return told;
  }

 private:
  static constexpr std::size_t layer_numbers = 20, slab_numbers = 8;
  using Key = std::array<Index, layer_numbers + slab_numbers>;
  template <class V>
  using Cache = BoundedCache<Key, std::shared_ptr<V>>;
  template <class V, class Make>
  std::shared_ptr<V> find_or_make(Cache<V>& cache, const Key& key, Make make) {
    if (const auto* found = cache.find(key)) return ++counts_.hits, *found;
    auto made = make();
    return ++counts_.misses, cache.add(key, std::move(made));
  }
  static Key layer_key(const Node& node, Op op) {
    const Window& w = node.layer.window;
    return {static_cast<Index>(op), node.in.n,   node.in.c,  node.in.h,  node.in.w,  node.out.c, node.out.h,   node.out.w, node.layer.groups,
            node.layer.bias,        w.kernel.h,  w.kernel.w, w.stride.h, w.stride.w, w.pad.top,  w.pad.bottom, w.pad.left, w.pad.right,
            w.dilation.h,           w.dilation.w};
  }
  static Key slab_key(const Operands<T>& o, const PackedFilter& filter) {
    Key key = layer_key(*o.node, o.op);
    const Sides<T> slab = sides_of(o);
    const RowPads pads = pad_rows(row_axis(o.node->layer.window), slab.y.range(), slab.x.range());
    const std::array<Index, slab_numbers> numbers{slab.x.n,
                                                  slab.x.rows,
                                                  slab.y.rows,
                                                  pads.top,
                                                  pads.bottom,
                                                  o.workspace_bytes,
                                                  static_cast<Index>(o.conv_algorithm),
                                                  static_cast<Index>(*filter.tag())};
    std::copy(numbers.begin(), numbers.end(), key.begin() + layer_numbers);
    return key;
  }
  static Key linear_key(const Operands<T>& o) {
    const Sides<T> vectors = sides_of(o);
    return {static_cast<Index>(o.op), vectors.y.n,        o.node->in.c, vectors.x.stride_n, o.node->out.c,
            vectors.y.stride_n,       o.node->layer.bias, o.accumulate, o.workspace_bytes};
  }
  Target layout_;
  Library library_;
  Cache<PackedFilter> filters_;
  Cache<Convolution<T>> convolutions_;
  Cache<host::WinogradConvolution> winograds_;
  Cache<Linear<T>> linears_;
  OnednnCache counts_;
};
}   // namespace onednn
}   // namespace lrcnn
