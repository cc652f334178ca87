#pragma once
// One pass of a convolution over slabs of one shape, as a primitive of the library.
#include <lrcnn/backend/onednn/winograd.hpp>
namespace lrcnn::onednn {
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
    ConvDesc d = conv_desc(*o.node, target, op_, x.n, x.range(), y.range());
    const MemoryDesc packed = d.w = tagged(d.filter, *filter_->tag(), filter_type(op_, target));
    const auto found = choose(library, target, d, o, x.range(), y.range());
    if (!found) return;
    name_ = found->name, bytes_ = repacked_ + found->bytes();
    if (repacked_ > 0) repack_ = Reorder(library, packed, d.w);
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
  void run(const Library& library, const Operands<T>& o) {
    const void* packed = o.packed;
    if (repacked_ > 0) {
      repack_.run(library, o.packed, o.workspace);
      packed = o.workspace;
    }
    const std::byte* scratch = o.workspace + repacked_;
    if (op_ == Op::forward) {
      const float* bias = o.parameters[1];
      if (!bias_.empty()) bias = bias_.data(), std::copy_n(o.parameters[1], channels_, bias_.data());
      call_.bind_all({o.x.data, packed, o.y.data, scratch, bias});
      call_.run(library);
    } else if (op_ == Op::backward_data) {
      call_.bind_all({o.dx.data, packed, o.dy.data, scratch});
      call_.run(library);
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
  static std::optional<Offer> offer_winograd(const Library& library, Op op, ConvDesc d) {
    if (d.type != Type::f32) return {};
    if (op == Op::backward_data && d.pad_begin[0] != d.pad_end[0]) {
      static const RowPadding padding = winograd_row_padding(library);
      if (padding == RowPadding::unusable) return {};
      if (padding == RowPadding::exchanged) std::swap(d.pad_begin[0], d.pad_end[0]);
    }
    return offer(library, op, d);
  }
  /// The implementation for this slab, with its filter's layout in d.w. Where a data gradient's filter is packed for
  /// Winograd and this slab's scratch does not fit, direct arithmetic takes a copy of the filter in its own layout,
  /// made in the workspace: smaller than any Winograd scratch, and little work beside a slab that is so large.
  std::optional<Offer> choose(const Library& library, const Target& target, ConvDesc& d, const Operands<T>& o, Range in,
                              Range rows) {
    Index needed = -1;
    for (const bool winograd : {true, false}) {
      if (winograd && o.arithmetic == Arithmetic::direct) continue;
      d.algorithm = winograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
      auto found = winograd ? offer_winograd(library, o.op, d)
                            : offer(library, o.op, d, o.arithmetic == Arithmetic::direct);
      if (!found && !winograd && o.op != Op::backward_parameters && o.arithmetic != Arithmetic::direct) {
        d.w = tagged(d.filter, Tag::any, d.type);
        if (!(found = offer(library, o.op, d))) continue;
        d.w = found->filter;
        repacked_ = round_up(static_cast<Index>(d.w.get_size()), 64);
      }
      if (!found) continue;
      if (repacked_ + found->bytes() <= o.workspace_bytes) return found;
      needed = repacked_ + found->bytes();
      if (o.arithmetic != Arithmetic::fastest) break;
    }
    if (needed < 0) return {};
    if (auto fewer = choose_images(library, target, d, o, in, rows, needed)) return fewer;
    const bool winograd = d.algorithm == dnnl::algorithm::convolution_winograd;
    throw BackendError(error_text(
        "layer '" + std::string(o.node->layer.name.view()) + "', " + std::string(op_name(o.op)) + " of " +
            (winograd ? "Winograd " : "") + "convolution to rows " + std::to_string(rows.begin) + " to " +
            std::to_string(rows.end) + ", needs " + std::to_string(needed) + " bytes of workspace and has " +
            std::to_string(o.workspace_bytes),
        "scratch memory of every layer lies in the plan's workspace",
        "raise the policy's Workspace<...> to " + std::to_string(needed) + " or more, or cut thinner slabs"));
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
  Call call_;
  Reorder repack_;
  Index repacked_ = 0;   ///< bytes at the start of the workspace that hold the filter in another layout
  std::string name_;
  Index bytes_ = 0;
  std::vector<float> bias_;
};
}  // namespace lrcnn::onednn
