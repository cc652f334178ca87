#pragma once
// One pass of a convolution over slabs of one shape, as a primitive of the library.
#include <lrcnn/backend/host/spread.hpp>
#include <lrcnn/backend/onednn/filter.hpp>
#include <algorithm>
namespace lrcnn::onednn {
/// What to say where a convolution's scratch does not fit into the step's workspace. `kind`: "" or "Winograd ".
template <class T>
BackendError workspace_error(const Operands<T>& o, Range rows, Index needed, std::string_view kind = "") {
  return BackendError(error_text(
      "layer '" + std::string(o.node->layer.name.view()) + "', " + std::string(op_name(o.op)) + " of " + std::string(kind) +
          "convolution to rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end) + ", needs " + std::to_string(needed) +
          " bytes of workspace and has " + std::to_string(o.workspace_bytes),
      "scratch memory of every layer lies in the plan's workspace",
      "raise the policy's Workspace<...> to " + std::to_string(needed) + " or more, or cut thinner slabs"));
}
template <class T>
class Convolution {
 public:
  /// Shapes:  x (or dx) and y (or dy) of the slab; their memory is not touched
  /// Pre:     `filter` is of the same pass and has a tag
  /// Post:    served() tells whether the library takes slabs like this one
  /// Errors:  BackendError naming layer and bytes if it does but needs more workspace than there is
  Convolution(const Library& library, const Target& target, const Operands<T>& o, const View<const T>& x,
              const View<const T>& y, std::shared_ptr<PackedFilter> filter)
      : op_(o.op), filter_(std::move(filter)), channels_(o.node->out.c), images_(x.n) {
    const auto describe = [&](const Node& node, Range in) {
      ConvDesc d = conv_desc(node, target, op_, x.n, in, y.range());
      d.w = tagged(d.filter, *filter_->tag(), filter_type(op_, target));
      return d;
    };
    std::optional<Offer> found;
    ConvDesc d;
    if (reads_single_pixels(o.node->layer.window) && op_ == Op::backward_data) {
      d = describe(without_stride(*o.node), y.range());
      found = offer(library, op_, d, false, o.workspace_bytes);
      spreads_ = found.has_value();
    }
    if (!spreads_) d = describe(*o.node, x.range()), found = choose(library, target, d, o, x.range(), y.range());
    if (!found) return;
    name_ = found->name, bytes_ = found->bytes();
    const Index padded = channels_of(*o.node, target).out;
    if (o.node->layer.bias && (padded != channels_ || op_ == Op::backward_parameters))
      bias_.assign(static_cast<std::size_t>(padded), 0.f);
    const bool forward = op_ == Op::forward, data = op_ == Op::backward_data;
    call_ = Call(library, dnnl::primitive(found->description),
                 {{data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, d.x},
                  {forward || data ? DNNL_ARG_WEIGHTS : DNNL_ARG_DIFF_WEIGHTS, d.w},
                  {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, d.y},
                  {DNNL_ARG_SCRATCHPAD, found->scratch},
                  {forward ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS, data ? MemoryDesc() : d.b}});
  }
  bool served() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  Index workspace_bytes() const { return bytes_; }
  void run(const Library& library, const Operands<T>& o, int threads) {
    const std::byte* scratch = o.workspace;
    if (op_ == Op::forward) {
      const float* bias = o.parameters[1];
      if (!bias_.empty()) bias = bias_.data(), std::copy_n(o.parameters[1], channels_, bias_.data());
      call_.bind_all({o.x.data, o.packed, o.y.data, scratch, bias});
      call_.run(library);
    } else if (op_ == Op::backward_data) {
      call_.bind_all({o.dx.data, o.packed, o.dy.data, scratch});
      call_.run(library);
      const Pair stride = o.node->layer.window.stride;
      if (spreads_) host::spread_pixels(o.dx, o.dy.rows, o.dy.w, o.dy.row0 * stride.h - o.dx.row0, stride, threads);
    } else {
      for (Index i = 0; i < o.x.n; i += images_) {
        const bool add = o.accumulate || i > 0;
        call_.bind_all({o.x.data + i * o.x.stride_n, o.scratch, o.dy.data + i * o.dy.stride_n, scratch, bias_.data()});
        call_.run(library);
        filter_->unpack(library, o.scratch, o.d_parameters[0], add);
        for (Index k = 0; !bias_.empty() && k < channels_; ++k)
          o.d_parameters[1][k] = (add ? o.d_parameters[1][k] : 0.f) + bias_[static_cast<std::size_t>(k)];
      }
    }
  }

 private:
  /// Whether a window has one pixel, and strides, but no padding. The library's kernels for such gather pixels in scratch as large as
  /// the smaller map for each thread.
  static bool reads_single_pixels(const Window& w) { return w.kernel == Pair(1) && w.stride != Pair(1) && w.pad == Pad(0); }
  static Node without_stride(Node node) {
    node.layer.window.stride = 1;
    node.in.h = node.out.h, node.in.w = node.out.w;
    return node;
  }
  /// The implementation for this slab; none if the library takes no such slabs.
  std::optional<Offer> choose(const Library& library, const Target& target, ConvDesc& d, const Operands<T>& o, Range in, Range rows) {
    const auto found = offer(library, o.op, d, o.arithmetic == Arithmetic::direct);
    if (!found || found->bytes() <= o.workspace_bytes) return found;
    // Kernels for 1x1 filters gather strided pixels in their scratch; the general ones read them where they are.
    if (auto slower = offer(library, o.op, d, o.arithmetic == Arithmetic::direct, o.workspace_bytes)) return slower;
    Index needed = found->bytes();
    if (auto fewer = choose_images(library, target, d, o, in, rows, needed)) return fewer;
    throw workspace_error(o, rows, needed);
  }
  /// Filter gradients in bf16 transpose whole images in their scratch, each thread one. Where that does not fit, fewer
  /// images at a time may, which have all threads at work on one; the least that is needed otherwise is in `needed`.
  std::optional<Offer> choose_images(const Library& library, const Target& target, ConvDesc& d, const Operands<T>& o,
                                     Range in, Range rows, Index& needed) {
    if (d.type == Type::f32 || op_ != Op::backward_parameters) return {};
    for (Index n = images_ - 1; n > 0; --n) {
      if (o.x.n % n != 0) continue;
      ConvDesc part = conv_desc(*o.node, target, op_, n, in, rows);
      part.w = d.w;
      const auto found = offer(library, op_, part);
      if (!found) continue;
      if (found->bytes() <= o.workspace_bytes) return images_ = n, d = part, found;
      needed = std::min(needed, found->bytes());
    }
    return {};
  }
  Op op_;
  std::shared_ptr<PackedFilter> filter_;
  Index channels_;
  Index images_;         ///< at a time
  bool spreads_ = false;   ///< data gradients are made densely and moved apart
  Call call_;
  std::string name_;
  Index bytes_ = 0;
  std::vector<float> bias_;
};
}  // namespace lrcnn::onednn
