#pragma once
// What the library offers for a convolution, and the layout in which its filter is packed.
//
// A filter is packed once and then read by slabs of many heights, so its layout must not depend on the slab: it is
// what the library prefers for the layer's whole map (choose_filter), and every slab's primitive is made to take it.
// A layer that the library would only serve by its reference code is left to our own loops, slabs and whole map
// alike.
#include <lrcnn/backend/onednn/convert.hpp>
#include <lrcnn/backend/onednn/parts.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
namespace lrcnn::onednn {
/// What the library offers for a description.
struct Offer {
  dnnl::primitive_desc description;
  MemoryDesc filter, scratch;
  std::string name;
  Index bytes() const { return static_cast<Index>(scratch.get_size()); }
};
/// Whether an implementation beats plain loops and allocates nothing while it runs: no reference code, no matrix
/// products over unfolded images.
constexpr bool is_good(std::string_view name) { return name.find("ref") == name.npos && name.find("gemm") == name.npos; }
/// The kernels for 1x1 filters cut the sum over channels in pieces that depend on the number of rows, so slabs would
/// differ from the whole map in the last bits. The general kernels do not; they are 5 to 8 % slower on the 1x1 layers
/// of ResNet-50 (2.6.3, one core, batch 4).
constexpr bool is_slab_exact(std::string_view name) { return name.find("1x1") == name.npos; }
inline constexpr Index any_bytes = std::numeric_limits<Index>::max();
/// The library's implementation of one pass (forward, backward_data, backward_parameters), if it has a good one: its first choice, or
/// with a limit the first whose scratch is no larger.
/// `exact`: forward gives the same bits for slabs of all heights.
inline std::optional<Offer> offer(const Library& library, Op op, const ConvDesc& d, bool exact = false, Index limit = any_bytes) {
  const auto wanted = [&](std::string_view name, Index bytes) {
    return (op != Op::forward || !exact || is_slab_exact(name)) && (limit == any_bytes || (bytes <= limit && is_good(name)));
  };
  const auto taken = [&](const dnnl::primitive_desc& pd, const MemoryDesc& filter) -> std::optional<Offer> {
    Offer o{pd, filter, pd.scratchpad_desc(), pd.impl_info_str()};
    return is_good(o.name) ? std::optional<Offer>(std::move(o)) : std::nullopt;
  };
  if (op == Op::forward) {
    if (const auto pd = api::forward(library, d, wanted)) return taken(pd, pd.weights_desc());
  } else if (op == Op::backward_data) {
    if (const auto pd = api::backward_data(library, d, wanted)) return taken(pd, pd.weights_desc());
  } else if (const auto pd = api::backward_parameters(library, d, wanted)) {
    return taken(pd, pd.diff_weights_desc());
  }
  return {};
}
/// The layout of a layer's packed filter, or of its filter's gradient, in one pass: what the library prefers for the layer's
/// whole map, if we know its name and the plan has room for it; nothing if our own loops run.
/// Post:    depends on the arguments and the library alone; takes at most target.packed_bytes(node), or scratch_bytes(node)
inline std::optional<Tag> choose_filter(const Library& library, const Target& target, const Node& node, Op op) {
  if (node.layer.kind != Kind::conv || !channels_of(node, target).served) return {};
  ConvDesc d = conv_desc(node, target, op, node.in.n, {0, node.in.h}, {0, node.out.h});
  const auto any = offer(library, op, d);
  if (!any) return {};
  const Type type = filter_type(op, target);
  const Index room = op == Op::backward_parameters ? target.scratch_bytes(node) : target.packed_bytes(node);
  const auto fits = [&](const MemoryDesc& m) { return static_cast<Index>(m.get_size()) <= room; };
  const auto tags = filter_tags(target.lanes(), d.filter.size() == 5, type);
  for (const Tag tag : tags)
    if (any->filter == tagged(d.filter, tag, type) && fits(any->filter)) return tag;
  for (const Tag tag : tags) {   // it prefers a layout that we do not know; it may take one that we do
    d.w = tagged(d.filter, tag, type);
    if (fits(d.w) && offer(library, op, d)) return tag;
  }
  return {};
}
/// The layout that Winograd's loops read (host/winograd_convolution.hpp); for filter gradients they need none.
constexpr Tag winograd_filter(const Target& target, Op op) {
  if (target.lanes() == 16) return op == Op::backward_data ? Tag::OIhw16o16i : Tag::OIhw16i16o;
  return op == Op::backward_data ? Tag::OIhw8o8i : Tag::OIhw8i8o;
}
/// Whether a layer is one for Winograd's loops, which read its filter in a layout that we know.
constexpr bool suits_winograd(const Target& target, const Node& node) {
  return node.layer.kind == Kind::conv && node.layer.window.kernel == Pair(3) && node.layer.groups == 1 && element_type(target) == Type::f32 &&
         target.block(node.in.c) > 1 && target.block(node.out.c) > 1;
}
/// Whether the blocks of a filter's first dimension follow each other in a layout, so that a part of it is a stretch of memory.
constexpr bool first_dimension_leads(Tag tag) { return tag != Tag::IOhw16o16i && tag != Tag::IOhw16i16o && tag != Tag::IOhw8o16i2o; }
/// A change of a filter's layout, in parts where both layouts allow that. The library's own scratch for it, if any, is a few bytes.
class Reorder {
 public:
  Reorder() = default;
  Reorder(const Library& library, const Dims& dims, Tag from, Type from_type, Tag to, Type to_type, bool add = false) {
    const Index threads = library_threads(), block = 32;
    Index all = 1;
    for (const auto d : dims) all *= d;
    const int parts = first_dimension_leads(from) && first_dimension_leads(to) ? host::useful_threads(all, static_cast<int>(threads)) : 1;
    const Index width = round_up(ceil_div(Index{dims[0]}, Index{parts}), block);
    Part part;
    const LibraryThreads one(1);
    for (Index first = 0; first < dims[0]; first += width) {
      Dims some = dims;
      some[0] = std::min<Index>(width, dims[0] - first);
      const MemoryDesc a = tagged(some, from, from_type), b = tagged(some, to, to_type);
      part.library = with_own_stream(library);
      const dnnl::reorder::primitive_desc pd(library.engine, a, library.engine, b, attributes(add));
      const MemoryDesc scratch = pd.scratchpad_desc();
      part.scratch.resize(scratch.get_size());
      part.call = Call(library, dnnl::reorder(pd), {{DNNL_ARG_FROM, a}, {DNNL_ARG_TO, b}, {DNNL_ARG_SCRATCHPAD, scratch}});
      parts_.push_back(part);
      part.from += a.get_size(), part.to += b.get_size();
    }
  }
  void run(const void* from, void* to) {
    const Index parts = static_cast<Index>(parts_.size());
    for_parts(parts, static_cast<int>(parts), [&](Index p) {
      Part& part = item(parts_, p);
      part.call.bind_all({static_cast<const std::byte*>(from) + part.from, static_cast<std::byte*>(to) + part.to, part.scratch.data()});
      part.call.run(part.library);
    });
  }

 private:
  struct Part {
    Library library;
    Call call;
    std::size_t from = 0, to = 0;   ///< bytes before it
    std::vector<std::byte> scratch;
  };
  std::vector<Part> parts_;
};
/// A filter's way between the canonical layout, of floats, and the packed one of a pass.
class PackedFilter {
 public:
  PackedFilter(const Library& library, const Target& target, const Node& node, Op op)
      : tag_(choose_filter(library, target, node, op)), of_library_(tag_.has_value()) {
    if (!tag_ && suits_winograd(target, node)) tag_ = winograd_filter(target, op);
    if (!tag_) return;
    const Index groups = node.layer.groups;
    const Dims dims = filter_dims(groups, node.in.c, node.out.c, node.layer.window.kernel);
    const Tag canonical = groups > 1 ? Tag::goihw : Tag::oihw;
    const Type type = filter_type(op, target);
    if (op == Op::backward_parameters) {
      write_ = Reorder(library, dims, *tag_, type, canonical, Type::f32);
      add_ = Reorder(library, dims, *tag_, type, canonical, Type::f32, true);
    } else {
      pack_ = Reorder(library, dims, canonical, Type::f32, *tag_, type);
    }
  }
  /// None: plain loops carry this pass out.
  const std::optional<Tag>& tag() const { return tag_; }
  /// Whether the library carries out the layer's whole map. If not, the layout is that of Winograd's loops.
  bool of_library() const { return of_library_; }
  void pack(const Library&, const float* canonical, void* packed) { pack_.run(canonical, packed); }
  /// Writes or adds a gradient.
  void unpack(const Library&, const void* packed, float* canonical, bool accumulate) { (accumulate ? add_ : write_).run(packed, canonical); }

 private:
  std::optional<Tag> tag_;
  bool of_library_ = false;
  Reorder pack_, write_, add_;
};
}   // namespace lrcnn::onednn
