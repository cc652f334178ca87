#pragma once
// Convolutions: which filter layout, which implementation, and the primitives themselves.
//
// A filter is packed once and then read by slabs of many heights, so its layout must not depend on the slab: it is
// what the library prefers for the layer's whole map (choose_filter), and every slab's primitive is made to take it.
// A layer that the library would only serve by its reference code is left to our own loops, slabs and whole map alike.
#include <lrcnn/backend/onednn/convert.hpp>
#include <lrcnn/policy/policy.hpp>
#include <algorithm>
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
constexpr bool is_good(std::string_view name) {
  return name.find("ref") == name.npos && name.find("gemm") == name.npos;
}
/// The kernels for 1x1 filters cut the sum over channels in pieces that depend on the number of rows, so slabs would
/// differ from the whole map in the last bits. The general kernels do not; they are 5 to 8 % slower on the 1x1 layers of
/// ResNet-50 (2.6.3, one core, batch 4).
constexpr bool is_slab_exact(std::string_view name) { return name.find("1x1") == name.npos; }
/// The library's implementation of one pass (forward, backward_data, backward_parameters), if it has a good one.
/// `exact`: forward gives the same bits for slabs of all heights.
inline std::optional<Offer> offer(const Library& library, Op op, const ConvDesc& d, bool exact = false) {
  const auto taken = [](const dnnl::primitive_desc& pd, const MemoryDesc& filter) -> std::optional<Offer> {
    const std::string name(pd.impl_info_str());
    if (!is_good(name)) return {};
    return Offer{pd, filter, pd.scratchpad_desc(), name};
  };
  if (op == Op::forward) {
    const auto wanted = [&](std::string_view name) { return !exact || is_slab_exact(name); };
    if (const auto pd = api::forward(library, d, wanted)) return taken(pd, pd.weights_desc());
  } else if (op == Op::backward_data) {
    if (const auto pd = api::backward_data(library, d)) return taken(pd, pd.weights_desc());
  } else if (const auto pd = api::backward_parameters(library, d)) {
    return taken(pd, pd.diff_weights_desc());
  }
  return {};
}
/// The layout of a layer's packed filter, or of its filter's gradient, in one pass; nothing if our own loops run.
/// Post:    depends on the node, the pass and the library alone; takes at most target.packed_bytes(node)
inline std::optional<Tag> choose_filter(const Library& library, const Target& target, const Node& node, Op op) {
  if (node.layer.kind != Kind::conv || !channels_of(node, target).served) return {};
  ConvDesc d = conv_desc(node, target, node.in.n, {0, node.in.h}, {0, node.out.h});
  const auto any = offer(library, op, d);
  if (!any) return {};
  const auto fits = [&](const MemoryDesc& m) { return static_cast<Index>(m.get_size()) <= target.packed_bytes(node); };
  const auto tags = filter_tags(target.channel_block, d.filter.size() == 5);
  for (const Tag tag : tags)
    if (any->filter == tagged(d.filter, tag) && fits(any->filter)) return tag;
  for (const Tag tag : tags) {   // the library prefers a layout that we do not know; it may take one that we do
    d.w = tagged(d.filter, tag);
    if (fits(d.w) && offer(library, op, d)) return tag;
  }
  return {};
}
/// A filter's way between the canonical layout and the packed one of a pass.
class PackedFilter {
 public:
  PackedFilter(const Library& library, const Target& target, const Node& node, Op op)
      : tag_(choose_filter(library, target, node, op)) {
    if (!tag_) return;
    const bool grouped = node.layer.groups > 1;
    const Dims dims = filter_dims(node.layer.groups, node.in.c, node.out.c, node.layer.window.kernel);
    const MemoryDesc packed = tagged(dims, *tag_), canonical = tagged(dims, grouped ? Tag::goihw : Tag::oihw);
    const auto reorder = [&](const MemoryDesc& from, const MemoryDesc& to, bool add) {
      const dnnl::reorder::primitive_desc pd(library.engine, from, library.engine, to, attributes(add));
      const MemoryDesc scratch = pd.scratchpad_desc();
      scratch_.resize(std::max(scratch_.size(), scratch.get_size()));
      Call call(library, dnnl::reorder(pd), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratch}});
      return call;
    };
    if (op != Op::backward_parameters) pack_ = reorder(canonical, packed, false);
    if (op == Op::backward_parameters) write_ = reorder(packed, canonical, false), add_ = reorder(packed, canonical, true);
  }
  const std::optional<Tag>& tag() const { return tag_; }
  void pack(const Library& library, const float* canonical, float* packed) { go(library, pack_, canonical, packed); }
  void unpack(const Library& library, const float* packed, float* canonical, bool accumulate) {
    go(library, accumulate ? add_ : write_, packed, canonical);
  }

 private:
  void go(const Library& library, Call& call, const float* from, float* to) {
    call.bind_all({from, to, scratch_.data()});
    call.run(library);
  }
  std::optional<Tag> tag_;
  Call pack_, write_, add_;
  std::vector<std::byte> scratch_;
};
/// One pass of a convolution over slabs of one height.
class Convolution {
 public:
  /// Pre:     filter has a tag, and is of the same pass
  /// Errors:  BackendError naming layer and bytes if the implementation needs more workspace than there is
  /// Returns: through served(): whether the library takes slabs like this one
  Convolution(const Library& library, const Target& target, const Operands<float>& o, const View<const float>& x,
              const View<const float>& y, std::shared_ptr<PackedFilter> filter)
      : op_(o.op), filter_(std::move(filter)), channels_(o.node->out.c) {
    ConvDesc d = conv_desc(*o.node, target, x.n, x.range(), y.range());
    d.w = tagged(d.filter, *filter_->tag());
    const auto found = choose(library, d, o, y.range());
    if (!found) return;
    name_ = found->name, bytes_ = found->bytes();
    const Index padded = channels_of(*o.node, target).out;
    if (o.node->layer.bias && (padded != channels_ || op_ == Op::backward_parameters))
      bias_.assign(static_cast<std::size_t>(padded), 0.f);
    const dnnl::primitive primitive(found->description);
    const MemoryDesc none;
    switch (op_) {
      case Op::forward:
        call_ = Call(library, primitive, {{DNNL_ARG_SRC, d.x}, {DNNL_ARG_WEIGHTS, d.w}, {DNNL_ARG_DST, d.y},
                                                 {DNNL_ARG_SCRATCHPAD, found->scratch}, {DNNL_ARG_BIAS, d.b}});
        break;
      case Op::backward_data:
        call_ = Call(library, primitive, {{DNNL_ARG_DIFF_SRC, d.x}, {DNNL_ARG_WEIGHTS, d.w},
                                                 {DNNL_ARG_DIFF_DST, d.y}, {DNNL_ARG_SCRATCHPAD, found->scratch},
                                                 {DNNL_ARG_BIAS, none}});
        break;
      default:
        call_ = Call(library, primitive, {{DNNL_ARG_SRC, d.x}, {DNNL_ARG_DIFF_WEIGHTS, d.w},
                                                 {DNNL_ARG_DIFF_DST, d.y}, {DNNL_ARG_SCRATCHPAD, found->scratch},
                                                 {DNNL_ARG_DIFF_BIAS, d.b}});
    }
  }
  bool served() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  Index workspace_bytes() const { return bytes_; }
  void run(const Library& library, const Operands<float>& o) {
    if (op_ == Op::forward) {
      const float* bias = o.parameters[1];
      if (!bias_.empty()) bias = bias_.data(), std::copy_n(o.parameters[1], channels_, bias_.data());
      call_.bind_all({o.x.data, o.packed, o.y.data, o.workspace, bias});
      call_.run(library);
    } else if (op_ == Op::backward_data) {
      call_.bind_all({o.dx.data, o.packed, o.dy.data, o.workspace});
      call_.run(library);
    } else {
      call_.bind_all({o.x.data, o.scratch, o.dy.data, o.workspace, bias_.data()});
      call_.run(library);
      filter_->unpack(library, o.scratch, o.d_parameters[0], o.accumulate);
      if (bias_.empty()) return;
      for (Index k = 0; k < channels_; ++k)
        o.d_parameters[1][k] = (o.accumulate ? o.d_parameters[1][k] : 0.f) + bias_[static_cast<std::size_t>(k)];
    }
  }

 private:
  static std::optional<Offer> choose(const Library& library, ConvDesc& d, const Operands<float>& o, Range rows) {
    Index needed = -1;
    for (const bool winograd : {true, false}) {
      if (winograd && o.arithmetic == Arithmetic::direct) continue;
      d.algorithm = winograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
      auto found = offer(library, o.op, d, o.arithmetic == Arithmetic::direct);
      if (!found || (winograd && found->name.find("wino") == std::string::npos)) continue;
      if (found->bytes() <= o.workspace_bytes) return found;
      needed = found->bytes();
      if (o.arithmetic != Arithmetic::fastest) break;
    }
    if (needed < 0) return {};
    throw BackendError(error_text(
        "layer '" + std::string(o.node->layer.name.view()) + "', " + std::string(op_name(o.op)) + " of " +
            std::string(arithmetic_name(d.algorithm)) + " to rows " + std::to_string(rows.begin) + " to " +
            std::to_string(rows.end) + ", needs " + std::to_string(needed) + " bytes of workspace and has " +
            std::to_string(o.workspace_bytes),
        "scratch memory of every layer lies in the plan's workspace",
        "raise the policy's Workspace<...> to " + std::to_string(needed) + " or more, or cut thinner slabs"));
  }
  static std::string_view arithmetic_name(dnnl::algorithm a) {
    return a == dnnl::algorithm::convolution_winograd ? "Winograd convolution" : "convolution";
  }
  Op op_;
  std::shared_ptr<PackedFilter> filter_;
  Index channels_;
  Call call_;
  std::string name_;
  Index bytes_ = 0;
  std::vector<float> bias_;
};
}  // namespace lrcnn::onednn
