#pragma once
// One pass of a convolution over slabs of one shape, as a primitive of the library.
#include <lrcnn/backend/host/spread.hpp>
#include <lrcnn/backend/onednn/filter.hpp>
#include <lrcnn/backend/onednn/parts.hpp>
#include <algorithm>
#include <exception>
namespace lrcnn::onednn {
/// What to say where a convolution's scratch does not fit into the step's workspace. `kind`: "" or "Winograd ".
template <class T>
BackendError workspace_error(const Operands<T>& o, Range rows, Index needed, std::string_view kind = "") {
  return BackendError(error_text("layer '" + std::string(o.node->layer.name.view()) + "', " + std::string(op_name(o.op)) + " of " +
                                     std::string(kind) + "convolution to rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end) +
                                     ", needs " + std::to_string(needed) + " bytes of workspace and has " + std::to_string(o.workspace_bytes),
                                 "scratch memory of every layer lies in the plan's workspace",
                                 "raise the policy's Workspace<...> to " + std::to_string(needed) + " or more, or cut thinner slabs"));
}
/// Parts that a batch is cut into for each thread, where there are so many images.
inline constexpr Index parts_each = 4;
template <class T>
class Convolution {
 public:
  /// Shapes:  x (or dx) and y (or dy) of the slab; their memory is not touched
  /// Pre:     `filter` is of the same pass and has a tag
  /// Post:    served() tells whether the library takes slabs like this one
  /// Errors:  BackendError naming layer and bytes if it does but needs more workspace than there is
  Convolution(const Library& library, const Target& target, const Operands<T>& o, const View<const T>& x, const View<const T>& y,
              std::shared_ptr<PackedFilter> filter)
      : op_(o.op), filter_(std::move(filter)), channels_(o.node->out.c), images_(x.n) {
    const Index all = library_threads();
    if (all > 1 && images_ >= all) {
      if (op_ != Op::backward_parameters && make_parts(library, target, o, x, y, std::min(images_, parts_each * all))) return;
      if (make_parts(library, target, o, x, y, all)) return;
    }
    ConvDesc d;
    const auto found = describe_within(library, target, o, x, y, d);
    if (!found) return;
    name_ = found->name, bytes_ = found->bytes();
    set_bias(*o.node, target);
    const LibraryThreads so_many(library_threads_);   // the library keeps primitives for each number
    calls_.push_back({library, call(library, *found, d), 0, images_});
  }
  bool served() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  Index workspace_bytes() const { return bytes_; }
  void run(const Library& library, const Operands<T>& o, int threads) {
    const LibraryThreads so_many(calls_.size() == 1 ? library_threads_ : library_threads());
    if (op_ == Op::backward_parameters && calls_.size() == 1) return add_gradients(library, o);
    const float* bias = op_ == Op::forward ? o.parameters[1] : nullptr;
    if (bias && !bias_.empty()) bias = bias_.data(), std::copy_n(o.parameters[1], channels_, bias_.data());
    const Index dense = spreads_ ? o.dy.rows * o.dy.w * o.dx.blocks() * o.dx.block : o.dx.stride_n;   // of an image's data gradient
    const auto run_part = [&](Index number) {
      const auto p = static_cast<std::size_t>(number);
      Part& part = calls_[p];
      std::byte* const scratch = o.workspace + static_cast<Index>(p) * part_bytes_;
      if (op_ == Op::forward)
        part.call.bind_all({o.x.data + part.first * o.x.stride_n, o.packed, o.y.data + part.first * o.y.stride_n, scratch, bias});
      else if (op_ == Op::backward_data)
        part.call.bind_all({o.dx.data + part.first * dense, o.packed, o.dy.data + part.first * o.dy.stride_n, scratch});
      else
        part.call.bind_all(
            {o.x.data + part.first * o.x.stride_n, gradient(o, p), o.dy.data + part.first * o.dy.stride_n, scratch, bias_gradient(o, p)});
      part.call.run(part.library);
    };
    host::threads_awake() = calls_.size() == 1 ? library_threads() : 1;
    if (calls_.size() > 1) for_parts(static_cast<Index>(calls_.size()), threads, run_part);
    else run_part(0);
    if (op_ == Op::backward_parameters) return add_parts(library, o, threads);
    const Pair stride = o.node->layer.window.stride;
    if (spreads_) host::spread_pixels(o.dx, o.dy.rows, o.dy.w, o.dy.row0 * stride.h - o.dx.row0, stride, threads);
  }

 private:
  /// A primitive for some of the images.
  struct Part {
    Library library;
    Call call;
    Index first, count;
  };
  /// The description of a pass, and what the library offers for it. Filter gradients want scratch for each thread but one; where that does not
  /// fit, fewer threads work on it.
  std::optional<Offer> describe_within(const Library& library, const Target& target, const Operands<T>& o, const View<const T>& x,
                                       const View<const T>& y, ConvDesc& d) {
    std::exception_ptr too_little;
    for (int count = library_threads(); count > 0; count /= 2) {
      const LibraryThreads so_many(count);
      try {
        auto found = describe(library, target, o, x.n, x.range(), y.range(), d);
        library_threads_ = count;
        return found;
      } catch (const BackendError&) {
        too_little = std::current_exception();
      }
    }
    std::rethrow_exception(too_little);
  }
  /// The description of a pass over so many images, and what the library offers for it.
  std::optional<Offer> describe(const Library& library, const Target& target, const Operands<T>& o, Index images, Range in, Range rows, ConvDesc& d) {
    const auto of = [&](const Node& node, Range from) {
      ConvDesc made = conv_desc(node, target, op_, images, from, rows);
      made.w = tagged(made.filter, *filter_->tag(), filter_type(op_, target));
      return made;
    };
    if (reads_single_pixels(o.node->layer.window) && op_ == Op::backward_data) {
      d = of(without_stride(*o.node), rows);
      auto found = offer(library, op_, d, false, o.workspace_bytes);
      spreads_ = found.has_value();
      if (found) return found;
    }
    d = of(*o.node, in);
    return choose(library, target, d, o, in, rows);
  }
  Call call(const Library& library, const Offer& found, const ConvDesc& d) const {
    const bool forward = op_ == Op::forward, data = op_ == Op::backward_data;
    return Call(library, dnnl::primitive(found.description),
                {{data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, d.x},
                 {forward || data ? DNNL_ARG_WEIGHTS : DNNL_ARG_DIFF_WEIGHTS, d.w},
                 {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, d.y},
                 {DNNL_ARG_SCRATCHPAD, found.scratch},
                 {forward ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS, data ? MemoryDesc() : d.b}});
  }
  void set_bias(const Node& node, const Target& target) {
    const Index padded = channels_of(node, target).out;
    if (node.layer.bias && (padded != channels_ || op_ == Op::backward_parameters)) bias_.assign(static_cast<std::size_t>(padded), 0.f);
  }
  /// Cuts the images into so many parts. False, with nothing made, where workspace or the library do not allow it.
  bool make_parts(const Library& library, const Target& target, const Operands<T>& o, const View<const T>& x, const View<const T>& y, Index parts) {
    const LibraryThreads one(1);
    const bool gradients = op_ == Op::backward_parameters;
    Index scratch = 0;
    bool spreads = false;
    const Index fewer = images_ / parts, sizes = images_ % parts == 0 ? 1 : 2;
    std::array<std::optional<Offer>, 2> found;
    std::array<ConvDesc, 2> d;
    for (Index s = 0; s < sizes; ++s) {
      const auto at = static_cast<std::size_t>(s);
      d[at] = conv_desc(*o.node, target, op_, fewer + s, x.range(), y.range());
      bool dense = false;
      if (reads_single_pixels(o.node->layer.window) && op_ == Op::backward_data) {
        d[at] = conv_desc(without_stride(*o.node), target, op_, fewer + s, y.range(), y.range());
        dense = true;
      }
      d[at].w = tagged(d[at].filter, *filter_->tag(), filter_type(op_, target));
      found[at] = offer(library, op_, d[at], !dense && o.conv_algorithm == ConvAlgorithm::direct);
      if (!found[at]) return false;
      scratch = std::max(scratch, round_up(found[at]->bytes(), 64));
      spreads = dense;
    }
    const Index floats = gradients ? static_cast<Index>(d[0].w.get_size() / sizeof(float)) : 0;
    const Index biases = gradients && o.node->layer.bias ? channels_of(*o.node, target).out : 0;
    const Index bytes = scratch + (round_up(floats, 16) + round_up(biases, 16)) * Index{sizeof(float)};
    if (parts * bytes > o.workspace_bytes) return false;
    spreads_ = spreads, scratch_bytes_ = scratch, gradient_floats_ = floats, part_bytes_ = bytes;
    name_ = found[0]->name, bytes_ = parts * bytes;
    set_bias(*o.node, target);
    for (Index p = 0; p < parts; ++p) {
      const Index first = images_ * p / parts, count = images_ * (p + 1) / parts - first;
      const auto at = static_cast<std::size_t>(count - fewer);
      const Library own = with_own_stream(library);
      calls_.push_back({own, call(own, *found[at], d[at]), first, count});
    }
    return true;
  }
  /// Where a part's gradients go: in the workspace, behind the part's scratch; those of the first to their own place.
  float* gradient(const Operands<T>& o, std::size_t part) const {
    if (part == 0) return reinterpret_cast<float*>(o.scratch);
    return reinterpret_cast<float*>(o.workspace + static_cast<Index>(part) * part_bytes_ + scratch_bytes_);
  }
  float* bias_gradient(const Operands<T>& o, std::size_t part) {
    return part == 0 || bias_.empty() ? bias_.data() : gradient(o, part) + round_up(gradient_floats_, 16);
  }
  /// Adds up what the parts have found, in their order.
  void add_parts(const Library& library, const Operands<T>& o, int threads) {
    float* const sum = gradient(o, 0);
    const Index piece = 4096;
    host::parallel_for(ceil_div(gradient_floats_, piece), host::useful_threads(gradient_floats_ * Index(calls_.size()), threads), [&](Index i) {
      for (std::size_t p = 1; p < calls_.size(); ++p) {
        const float* more = gradient(o, p);
        for (Index e = i * piece; e < std::min(gradient_floats_, (i + 1) * piece); ++e) sum[e] += more[e];
      }
    });
    for (std::size_t p = 1; p < calls_.size(); ++p)
      for (std::size_t k = 0; k < bias_.size(); ++k) bias_[k] += bias_gradient(o, p)[k];
    filter_->unpack(library, o.scratch, o.d_parameters[0], o.accumulate);
    add_bias(o, o.accumulate);
  }
  void add_bias(const Operands<T>& o, bool add) const {
    for (Index k = 0; !bias_.empty() && k < channels_; ++k) o.d_parameters[1][k] = (add ? o.d_parameters[1][k] : 0.f) + item(bias_, k);
  }
  /// On all threads at once, for as many images as fit.
  void add_gradients(const Library& library, const Operands<T>& o) {
    host::threads_awake() = library_threads();
    for (Index i = 0; i < o.x.n; i += images_) {
      const bool add = o.accumulate || i > 0;
      Call& all = calls_[0].call;
      all.bind_all({o.x.data + i * o.x.stride_n, o.scratch, o.dy.data + i * o.dy.stride_n, o.workspace, bias_.data()});
      all.run(library);
      filter_->unpack(library, o.scratch, o.d_parameters[0], add);
      add_bias(o, add);
    }
  }
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
    const auto found = offer(library, o.op, d, o.conv_algorithm == ConvAlgorithm::direct);
    if (!found || found->bytes() <= o.workspace_bytes) return found;
    // Kernels for 1x1 filters gather strided pixels in their scratch; the general ones read them where they are.
    if (auto slower = offer(library, o.op, d, o.conv_algorithm == ConvAlgorithm::direct, o.workspace_bytes)) return slower;
    Index needed = found->bytes();
    if (auto fewer = choose_images(library, target, d, o, in, rows, needed)) return fewer;
    throw workspace_error(o, rows, needed);
  }
  /// Filter gradients in bf16 transpose whole images in their scratch, each thread one. Where that does not fit, fewer
  /// images at a time may, which have all threads at work on one; the least that is needed otherwise is in `needed`.
  std::optional<Offer> choose_images(const Library& library, const Target& target, ConvDesc& d, const Operands<T>& o, Range in, Range rows,
                                     Index& needed) {
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
  Index images_;                                                     ///< at a time
  int library_threads_ = library_threads();                          ///< that a single call is made for
  bool spreads_ = false;                                             ///< data gradients are made densely and moved apart
  std::vector<Part> calls_;                                          ///< one for all threads, or one for each part of the images
  Index part_bytes_ = 0, scratch_bytes_ = 0, gradient_floats_ = 0;   ///< of a part, in the workspace
  std::string name_;
  Index bytes_ = 0;
  std::vector<float> bias_;
};
}   // namespace lrcnn::onednn
