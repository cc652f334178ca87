#pragma once
// The backend for CPUs: oneDNN's convolutions and matrix products, our own loops for the rest.
//
// Slabs are dense in blocks of channels, 16 where the processor has AVX-512 and 8 elsewhere, which is found out when the backend is
// made; plans are the same on both. The first layer's few channels are plain NCHW. prepare() asks the library for a
// primitive and keeps it under the numbers that describe the problem, so slabs of equal shape share one, as do layers
// of equal shape; of those that no executor uses any more some hundreds stay. run() binds pointers and executes. All scratch lies in the
// step's workspace.
//
// Tensors are floats, or bfloat16 where the policy says Bf16: then the library's kernels multiply pairs of those and add up
// in 32 bits, which our loops do too; parameters, their gradients and the optimizer's state are floats still.
//
// Lifetimes: what prepare() returns is run by the backend that made it, and may be copied. One thread at a time may
// use a backend; the threads of its own are those of the library (OpenMP) and of our loops (host/thread_pool.hpp).
#include <lrcnn/backend/host/backend.hpp>
#include <lrcnn/backend/host/calibration.hpp>
#include <lrcnn/backend/host/run.hpp>
#include <lrcnn/backend/host/threads.hpp>
#include <lrcnn/backend/host/tiled_transpose.hpp>
#include <lrcnn/backend/host/winograd_convolution.hpp>
#include <lrcnn/backend/onednn/convolution.hpp>
#include <lrcnn/backend/onednn/linear.hpp>
#include <lrcnn/backend/onednn/transposed.hpp>
#include <lrcnn/backend/onednn/vectors.hpp>
#include <lrcnn/core/bounded_cache.hpp>
#include <lrcnn/core/machine.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/version.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
namespace lrcnn {
/// How often a primitive was wanted, how often one had to be built, and how many are kept.
struct OnednnCache {
  Index hits = 0;
  Index misses = 0;
  Index kept = 0;
};
/// What a backend on oneDNN may be told beside its threads.
struct OnednnOptions {
  std::optional<Vectors> vectors{};   ///< for this backend's storage and loops; by default what LRCNN_CPU says, else all there is
  bool slow_bf16 = false;       ///< OnednnBf16 on a processor without kernels for it: in plain loops, instead of an error
  bool report_slow = true;      ///< a convolution for which there is no kernel is reported, once for each layer
  Notice notice{};              ///< where to; by default a line on std::clog
};
/// T: float or bfloat16, what tensors are stored as.
template <class T>
class BasicOnednn : public HostBackend<T> {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, bfloat16>,
                "lrcnn: oneDNN's backend stores float or bfloat16; other elements have no kernels; use Reference for them");

 public:
  static constexpr Precision precision = std::is_same_v<T, float> ? Precision::fp32 : Precision::bf16;
  /// The backend in another precision: what a policy's part chooses.
  template <Precision other>
    requires(other == Precision::fp32 || other == Precision::bf16)
  using with = BasicOnednn<std::conditional_t<other == Precision::fp32, float, bfloat16>>;
  /// The same on every machine; layout() says more.
  static constexpr Target target{
      .element_bytes = sizeof(T), .gradient_bytes = sizeof(T) == 4 ? 0 : 4, .channel_block = 16, .plain_channels = 4, .alignment = 64,
      .packs_weights = true, .activates = true};
  static constexpr std::string_view name = "onednn";
  /// A step made ready. Copies share primitives.
  class Prepared {
    friend class BasicOnednn;
    std::shared_ptr<onednn::Convolution<T>> convolution_;
    std::shared_ptr<host::WinogradConvolution> winograd_;
    std::shared_ptr<onednn::PackedFilter> filter_;
    std::shared_ptr<onednn::Linear<T>> linear_;
    std::shared_ptr<onednn::Transposed<T>> transposed_;
    bool products_ = false;   ///< a transposed convolution in products of our own
  };
  /// `threads`: 0 for as many as OpenMP would use, and no more than the process has processors for (host/threads.hpp). `tuning`:
  /// whether FastestConv tries direct and Winograd's arithmetic for each convolution and pass; otherwise a rule decides
  /// (host/winograd_blocking.hpp).
  /// Errors:  BackendError if the number of threads is absurd, options or LRCNN_CPU ask for vectors that there are not, or the
  ///          processor has no kernels for bf16
  explicit BasicOnednn(int threads = 0, const TuningOptions& tuning = {}, const OnednnOptions& options = {})
      : HostBackend<T>(host::thread_count(threads)), library_threads_(host::openmp_threads(this->threads())), vectors_(onednn::choose_vectors(options.vectors)),
        layout_(layout_with(vectors_)), report_slow_(options.report_slow), notice_(options.notice), calibration_(tuning, describe() + ", lrcnn " + std::string(version())) {
    if (precision == Precision::bf16 && !options.slow_bf16 && !has_kernels())
      throw BackendError(error_text("OnednnBf16 has no kernels on this machine: " + describe(),
                                    "products of bfloat16 want AVX-512, and without it they would take some 20 times as long as in float",
                                    "use Onednn, which stores floats, or leave Bf16 out of the policy; OnednnOptions::slow_bf16 runs it all the same"));
  }
  /// What runs, in a line: processor, vectors, library, threads.
  std::string describe() const {
    return processor_name() + ", " + std::string(vectors_name(vectors_)) + " (blocks of " + std::to_string(layout_.lanes()) + " channels), " +
           onednn::library_name() + ", " + std::to_string(this->threads()) + (this->threads() == 1 ? " thread" : " threads") +
           (library_threads_ < this->threads() ? ", of which the library uses " + std::to_string(library_threads_) : std::string());
  }
  Vectors vectors() const { return vectors_; }
  /// How tensors lie on this machine: `target` with the channels that lie side by side.
  const Target& layout() const { return layout_; }
  /// A run begins; what has been found out is written down first.
  void start(const Labels& labels) {
    calibration_.save();
    HostBackend<T>::start(labels);
  }
  const host::Calibration& calibration() const { return calibration_; }
  /// Finds or builds what a step needs. Allocates. With tuning, runs convolutions in the operands' memory.
  /// Errors:  BackendError naming the layer and the bytes if the step's workspace is too small; as host::check
  Prepared prepare(const Operands<T>& o) {
    const onednn::LibraryThreads set(library_threads_);
    host::check(o);
    Prepared p;
    if (o.node == nullptr) return p;
    if (o.node->layer.kind == Kind::conv) {
      prepare_convolution(o, p);
      if (report_slow_ && !p.convolution_ && !p.winograd_ && !packs(o.op)) report_slow(o);
    }
    if (o.node->layer.kind == Kind::conv_transpose && host::TiledTranspose::tiles(o.node->layer.window)) {
      // The library's kernels for data gradients are a tenth faster than products, for the other passes half as fast (Intel Xeon, U-Net).
      const bool products = products_serve(o);
      if (!products || o.op == Op::backward_data) prepare_transposed(o, p);
      p.products_ = products && !p.transposed_;
    }
    if (o.node->layer.kind == Kind::linear && !packs(o.op)) {
      p.linear_ = cached(linears_, linear_key(o), [&] { return std::make_shared<onednn::Linear<T>>(library_, o); });
      if (!p.linear_->served()) p.linear_ = nullptr;
    }
    return p;
  }
  /// Carries a step out. Allocates neither tensors nor scratch.
  /// Pre:     `o` has the shapes that `p` was prepared for
  void run(Prepared& p, const Operands<T>& o) {
    const onednn::LibraryThreads set(library_threads_);
    if (p.convolution_ || p.winograd_) {
      bool activated = false;
      if constexpr (std::is_same_v<T, float>)
        if (p.winograd_) p.winograd_->run(o), activated = host::WinogradConvolution::activates(o);
      if (p.convolution_) p.convolution_->run(library_, o, this->threads());
      if (o.activation && !activated) host::run(activation_of(o), this->threads());
      return;
    }
    if (p.linear_) return p.linear_->run(library_, o, this->threads());
    if constexpr (std::is_same_v<T, float>)
      if (p.products_) return host::TiledTranspose::run(o, vectors_, this->threads());
    if (p.transposed_) return p.transposed_->run(library_, o, this->threads());
    if (p.filter_) return p.filter_->pack(library_, o.parameters[0], o.packed);
    host::run(o, this->threads());
  }
  /// What carries a step out, for tests and printing: the library's name of it, or "host". Needs no memory in `o`.
  std::string implementation(const Operands<T>& o) {
    const Prepared p = prepare(o);
    if (p.winograd_) return "winograd_4x3";
    if (p.products_) return "products";
    if (p.transposed_) return p.transposed_->name();
    return p.convolution_ ? p.convolution_->name() : p.linear_ ? p.linear_->name() : p.filter_ ? "reorder" : "host";
  }
  /// Bytes of workspace that a step uses, of those it is offered.
  Index workspace_bytes(const Operands<T>& o) {
    const Prepared p = prepare(o);
    if (p.winograd_) return p.winograd_->blocking().bytes;
    if (p.products_) return host::TiledTranspose::workspace_bytes(*o.node, layout_.lanes());
    if (p.transposed_) return p.transposed_->workspace_bytes();
    return p.convolution_ ? p.convolution_->workspace_bytes() : p.linear_ ? p.linear_->workspace_bytes() : 0;
  }
  OnednnCache cache() const {
    OnednnCache told = cache_;
    told.kept = static_cast<Index>(filters_.size() + convolutions_.size() + winograds_.size() + linears_.size());
    return told;
  }
  /// Whether the library has kernels for this layout on this machine, in all passes; otherwise convolutions run in plain loops.
  bool has_kernels() const {
    const std::array layers{Layer{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 16}};
    const Node node = make_table(layers, {1, 16, 8, 8}).nodes[0];
    const auto served = [&](Op op) { return onednn::choose_filter(library_, layout_, node, op).has_value(); };
    return served(Op::forward) && served(Op::backward_data) && served(Op::backward_parameters);
  }

 private:
  static constexpr std::size_t layer_numbers = 20, slab_numbers = 8;
  using Key = std::array<Index, layer_numbers + slab_numbers>;
  template <class V>
  using Cache = BoundedCache<Key, std::shared_ptr<V>>;
  template <class V, class Make>
  std::shared_ptr<V> cached(Cache<V>& cache, const Key& key, Make make) {
    if (const auto* found = cache.find(key)) return ++cache_.hits, *found;
    auto made = make();
    return ++cache_.misses, cache.add(key, std::move(made));
  }
  static constexpr bool packs(Op op) { return op == Op::pack_forward || op == Op::pack_backward; }
  static Key layer_key(const Node& node, Op op) {
    const Window& w = node.layer.window;
    return {static_cast<Index>(op), node.in.n, node.in.c, node.in.h, node.in.w, node.out.c, node.out.h, node.out.w,
            node.layer.groups, node.layer.bias, w.kernel.h, w.kernel.w, w.stride.h, w.stride.w, w.pad.top,
            w.pad.bottom, w.pad.left, w.pad.right, w.dilation.h, w.dilation.w};
  }
  void prepare_convolution(const Operands<T>& o, Prepared& p) {
    const Op op = o.op == Op::pack_forward ? Op::forward : o.op == Op::pack_backward ? Op::backward_data : o.op;
    Key key = layer_key(*o.node, op);
    auto filter = cached(filters_, key, [&] { return std::make_shared<onednn::PackedFilter>(library_, layout_, *o.node, op); });
    if (!filter->tag()) return;
    if (packs(o.op)) {
      p.filter_ = std::move(filter);
      return;
    }
    const View<const T> x = op == Op::backward_data ? View<const T>(o.dx) : o.x;
    const View<const T> y = op == Op::forward ? View<const T>(o.y) : o.dy;
    if (!dense(x, o.node->in.c) || !dense(y, o.node->out.c)) return;
    const RowPads pads = pad_rows(row_axis(o.node->layer.window), y.range(), x.range());
    const std::array<Index, slab_numbers> slab{x.n, x.rows, y.rows, pads.top, pads.bottom, o.workspace_bytes,
                                               static_cast<Index>(o.conv_algorithm), static_cast<Index>(*filter->tag())};
    std::copy(slab.begin(), slab.end(), key.begin() + layer_numbers);
    if constexpr (std::is_same_v<T, float>)
      if (o.conv_algorithm != ConvAlgorithm::direct && reads_winograd(op, *filter->tag())) {
        p.winograd_ = cached(winograds_, key, [&] { return make_winograd(o, op, x, y); });
        if (p.winograd_ && !tries(o) && (o.conv_algorithm == ConvAlgorithm::winograd || p.winograd_->pays())) return;
        if (p.winograd_ && !tries(o)) p.winograd_ = nullptr;
      }
    if (!filter->of_library()) return;   // it refuses the whole map; slabs that it takes would not have that map's bits
    p.convolution_ = cached(convolutions_, key, [&] {
      return std::make_shared<onednn::Convolution<T>>(library_, layout_, o, x, y, std::move(filter));
    });
    if (!p.convolution_->served()) p.convolution_ = nullptr;
    if constexpr (std::is_same_v<T, float>)
      if (p.winograd_ && p.convolution_) try_both(o, key, p);
  }
  bool products_serve(const Operands<T>& o) const {
    if constexpr (std::is_same_v<T, float>) return host::TiledTranspose::serves(o, vectors_);
    return false;
  }
  void prepare_transposed(const Operands<T>& o, Prepared& p) {
    using Transposed = onednn::Transposed<T>;
    const Node mirror = Transposed::mirror(*o.node);
    const Op op = Transposed::mirror(o.op);
    Key key = layer_key(mirror, op);
    auto filter = cached(filters_, key, [&] { return std::make_shared<onednn::PackedFilter>(library_, layout_, mirror, op); });
    p.transposed_ = std::make_shared<Transposed>(layout_, o, filter, [&](const Operands<T>& piece, const auto& packed) {
      const View<const T> x = op == Op::backward_data ? View<const T>(piece.dx) : piece.x;
      const View<const T> y = op == Op::forward ? View<const T>(piece.y) : piece.dy;
      const std::array<Index, slab_numbers> slab{x.n, x.rows, y.rows, 0, 0, piece.workspace_bytes, 0, static_cast<Index>(*packed->tag())};
      std::copy(slab.begin(), slab.end(), key.begin() + layer_numbers);
      return cached(convolutions_, key, [&] { return std::make_shared<onednn::Convolution<T>>(library_, layout_, piece, x, y, packed); });
    });
    if (!p.transposed_->served()) p.transposed_ = nullptr;
  }
  /// Whether the arithmetic of a step is found by trying.
  bool tries(const Operands<T>& o) const {
    return calibration_.on() && o.conv_algorithm == ConvAlgorithm::fastest && o.workspace != nullptr;
  }
  /// Leaves the faster of the two. Parameters' gradients are written to memory of our own meanwhile.
  void try_both(const Operands<T>& o, const Key& key, Prepared& p) {
    std::string problem(op_name(o.op));
    for (const Index number : key) problem += " " + std::to_string(number);
    const auto shapes = parameter_shapes(o.node->layer, o.node->in);
    std::array<std::vector<float>, 4> written;
    Operands<T> mine = o;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shapes.count); ++i) {
      if (o.op == Op::backward_parameters) written[i].resize(static_cast<std::size_t>(shapes.item[i].count()));
      mine.d_parameters[i] = written[i].data();
    }
    if (calibration_.first_is_faster(problem, "winograd", [&] { p.winograd_->run(mine); }, "direct", [&] { p.convolution_->run(library_, mine, this->threads()); }))
      p.convolution_ = nullptr;
    else p.winograd_ = nullptr;
  }
  /// Whether filters packed for the library's direct kernels are what our own Winograd loops read.
  bool reads_winograd(Op op, onednn::Tag tag) const {
    return op == Op::backward_parameters || tag == onednn::winograd_filter(layout_, op);
  }
  /// Null where the pass is none for Winograd's algorithm, or has no room for it.
  std::shared_ptr<host::WinogradConvolution> make_winograd(const Operands<T>& o, Op op, const View<const T>& x, const View<const T>& y) {
    const auto pass = host::WinogradConvolution::pass(*o.node, op, x, y, vectors_);
    if (!pass) return nullptr;
    const auto blocking = host::winograd::choose_blocking(*pass, op == Op::backward_parameters, this->threads(), o.workspace_bytes);
    if (!blocking && o.conv_algorithm == ConvAlgorithm::winograd)
      throw onednn::workspace_error(o, y.range(), host::winograd::least_bytes(*pass), "Winograd ");
    if (!blocking) return nullptr;
    return std::make_shared<host::WinogradConvolution>(*pass, *blocking, this->threads(), vectors_);
  }
  bool dense(const View<const T>& v, Index c) const {
    return v.n > 0 && v.rows > 0 && v.c == c && v.block == layout_.block(c) && v.dense();
  }
  static constexpr Target layout_with(Vectors vectors) {
    Target layout = target;
    layout.vector_block = vector_block(vectors);
    return layout;
  }
  /// Says that plain loops carry a convolution out, if that is much work; once for each layer, whichever pass comes first.
  /// Source:  ResNet-18 and the demo with storage that the library has no kernels for: 18 to 28 times (EPYC 7003, 2 threads)
  void report_slow(const Operands<T>& o) {
    const Node& node = *o.node;
    const Index taps = node.layer.window.kernel.h * node.layer.window.kernel.w * node.in.c / node.layer.groups;
    if (node.in.c <= target.plain_channels || node.out.c <= target.plain_channels ||
        taps * node.out.c * node.out.h * node.out.w < 10'000'000) return;   // few channels lose little in plain loops
    Shape in = node.in, out = node.out;
    in.n = out.n = 1;
    const std::string layer = "layer '" + std::string(node.layer.name.view()) + "'", shapes = " from " + to_string(in) + " to " + to_string(out);
    if (!reported_.insert(layer + " " + std::to_string(in.c) + " " + std::to_string(out.c)).second) return;   // other extents are not worth another line
    const std::string line = error_text(layer + ", " + std::string(op_name(o.op)) + " of convolution" + shapes + ", runs in plain loops, which take some 20 times as long as the library's kernels",
                                        onednn::library_name() + " has none for its channels, groups, windows or rows on this processor (" +
                                            std::string(vectors_name(vectors_)) + ")",
                                        "make channels in each group a multiple of " + std::to_string(layout_.lanes()) +
                                            ", or slabs thicker, if you can; OnednnOptions::report_slow = false silences this");
    if (notice_) notice_(line);
    else std::clog << line << std::endl;
  }
  static Key linear_key(const Operands<T>& o) {
    const Index in = o.op == Op::backward_data ? o.dx.stride_n : o.x.stride_n;
    const View<const T> out = o.op == Op::forward ? View<const T>(o.y) : o.dy;
    return {static_cast<Index>(o.op), out.n, o.node->in.c, in, o.node->out.c, out.stride_n, o.node->layer.bias,
            o.accumulate, o.workspace_bytes};
  }
  int library_threads_;
  Vectors vectors_;
  Target layout_;
  bool report_slow_;
  Notice notice_;
  std::set<std::string> reported_;   ///< layers and their channels
  onednn::Library library_;
  Cache<onednn::PackedFilter> filters_;
  Cache<onednn::Convolution<T>> convolutions_;
  Cache<host::WinogradConvolution> winograds_;
  Cache<onednn::Linear<T>> linears_;
  OnednnCache cache_;
  host::Calibration calibration_;
};
/// For every processor; fast where there is AVX2 or AVX-512.
using Onednn = BasicOnednn<float>;
/// Tensors in 16 bits, for processors with AVX512-BF16: half the bytes, half the time (docs/benchmarks.md). With AVX-512 alone the library
/// converts and is slower than in float; with less there are no kernels, which is an error.
using OnednnBf16 = BasicOnednn<bfloat16>;
static_assert(Backend<Onednn> && Backend<OnednnBf16>);
}  // namespace lrcnn
#ifdef LRCNN_PRECOMPILED_ONEDNN
#include <lrcnn/precompiled/onednn.hpp>
#endif
