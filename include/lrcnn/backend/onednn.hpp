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
#include <lrcnn/backend/onednn/primitives.hpp>
#include <lrcnn/backend/onednn/slow_layers.hpp>
#include <lrcnn/backend/onednn/vectors.hpp>
#include <lrcnn/backend/onednn/way.hpp>
#include <lrcnn/core/machine.hpp>
#include <lrcnn/plan/rates.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/version.hpp>
#include <memory>
#include <optional>
#include <string>
#include <variant>
namespace lrcnn {
/// What a backend on oneDNN may be told beside its threads.
struct OnednnOptions {
  std::optional<Vectors> vectors{};   ///< for this backend's storage and loops; by default what LRCNN_CPU says, else all there is
  bool slow_bf16 = false;             ///< OnednnBf16 on a processor without kernels for it: in plain loops, instead of an error
  bool report_slow = true;            ///< a convolution for which there is no kernel is reported, once for each layer
  Notice notice{};                    ///< where to; by default a line on std::clog
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
  static constexpr Target target{.element_bytes = sizeof(T),
                                 .gradient_bytes = sizeof(T) == 4 ? 0 : 4,
                                 .channel_block = 16,
                                 .plain_channels = 4,
                                 .alignment = 64,
                                 .packs_weights = true,
                                 .activates = true};
  static constexpr std::string_view name = "onednn";
  /// Source:  VGG-16 at 224x224, batch 8, layer by layer, two threads of an AMD EPYC with AVX-512 and bf16
  static constexpr Rates rates{.step = 3e-6,
                               .products = sizeof(T) == 4 ? 100e9 : 180e9,
                               .winograd = sizeof(T) == 4 ? 190e9 : 180e9,
                               .bytes = 10e9,
                               .least_workspace = sizeof(T) == 2 ? 4_MiB : 0,   // filter gradients in bf16 transpose maps
                               .lanes = 16,
                               .winograd_bytes = sizeof(T) == 4 ? &host::winograd::scratch_bytes : nullptr,
                               .winograd_pays = sizeof(T) == 4 ? &host::winograd::pays : +[](Index, Index) { return false; }};
  /// What a budget leaves for the library: code that it generates, threads, and pages that the allocator keeps; and, of each convolution that is like
  /// no other, what the parts of a batch take that threads work on at once.
  /// Source:  growth of the resident set in three steps of two threads, less all that is counted (tests/exec/alone_onednn_budget.cpp); and of making
  ///          the convolutions of ResNet-50 in slabs for 256 images, 6 MB for 2 threads, 33 for 16, 126 for 64: 23 kB for a part
  static Index library_bytes(const Table& table, int threads) {
    Index all = 0, different = 0;
    for (Index l = 0; l < table.size(); ++l) {
      const auto like = [&](const Node& other) {
        const Layer &a = table.node(l).layer, &b = other.layer;
        return a.kind == b.kind && a.window == b.window && a.channels == b.channels && a.groups == b.groups && other.in == table.node(l).in;
      };
      if (!rules_of(table.node(l).layer).uses_workspace) continue;
      ++all, different += std::none_of(table.nodes.begin(), table.nodes.begin() + l, like);
    }
    const Index parts = table.input.n < threads ? 0 : std::min(table.input.n, onednn::parts_each * threads), of_two = onednn::parts_each * 2;
    return 24_MiB + all * 256_KiB + different * std::max<Index>(0, parts - of_two) * 23_KiB;
  }
  /// A step made ready. Copies share primitives.
  class Prepared {
    friend class BasicOnednn;
    onednn::Way<T> way_;
  };
  /// `threads`: 0 for as many as OpenMP would use, and no more than the process has processors for (host/threads.hpp); in a program that is
  /// compiled without OpenMP 0 is one thread, since the library's own threads can be told nothing there. `tuning`: whether FastestConv tries
  /// direct and Winograd's arithmetic for each convolution and pass; otherwise a rule decides (host/winograd_blocking.hpp).
  /// Errors:  BackendError if the number of threads is absurd, options or LRCNN_CPU ask for vectors that there are not, or the
  ///          processor has no kernels for bf16
  explicit BasicOnednn(int threads = 0, const TuningOptions& tuning = {}, const OnednnOptions& options = {})
      : HostBackend<T>(onednn::has_openmp || threads != 0 ? threads : 1),
        library_threads_(host::openmp_threads(this->threads())),
        vectors_(onednn::choose_vectors(options.vectors)),
        primitives_(layout_with(vectors_)),
        slow_layers_(options.report_slow, options.notice),
        calibration_(tuning, describe() + ", lrcnn " + std::string(version())) {
    if (precision == Precision::bf16 && !options.slow_bf16 && !has_kernels())
      throw BackendError(
          error_text("OnednnBf16 has no kernels on this machine: " + describe(),
                     "products of bfloat16 want AVX-512, and without it they would take some 20 times as long as in float",
                     "use Onednn, which stores floats, or leave Bf16 out of the policy; OnednnOptions::slow_bf16 runs it all the same"));
  }
  /// What runs, in a line: processor, vectors, library, threads.
  std::string describe() const {
    return processor_name() + ", " + std::string(vectors_name(vectors_)) + " (blocks of " + std::to_string(layout().lanes()) + " channels), " +
           onednn::library_name() + ", " + std::to_string(this->threads()) + (this->threads() == 1 ? " thread" : " threads") +
           (library_threads_ < this->threads() ? ", of which the library uses " + std::to_string(library_threads_) : std::string()) +
           (onednn::has_openmp ? "" : ", compiled without OpenMP");
  }
  Vectors vectors() const { return vectors_; }
  /// How tensors lie on this machine: `target` with the channels that lie side by side.
  const Target& layout() const { return primitives_.layout(); }
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
    p.way_ = way_of(o);
    return p;
  }
  /// Carries a step out. Allocates neither tensors nor scratch.
  /// Pre:     `o` has the shapes that `p` was prepared for
  void run(Prepared& p, const Operands<T>& o) {
    const onednn::LibraryThreads set(library_threads_);
    std::visit([&](const auto& way) { way.run(primitives_.library(), o, this->threads()); }, p.way_);
  }
  /// What carries a step out, for tests and printing: the library's name of it, or "host". Needs no memory in `o`.
  std::string implementation(const Operands<T>& o) {
    return std::visit([](const auto& way) { return way.name(); }, prepare(o).way_);
  }
  /// Bytes of workspace that a step uses, of those it is offered.
  Index workspace_bytes(const Operands<T>& o) {
    return std::visit([](const auto& way) { return way.workspace_bytes(); }, prepare(o).way_);
  }
  OnednnCache cache() const { return primitives_.counts(); }
  /// Whether the library has kernels for this layout on this machine, in all passes; otherwise convolutions run in plain loops.
  bool has_kernels() const {
    const std::array layers{Layer{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 16}};
    const Node node = make_table(layers, {1, 16, 8, 8}).nodes[0];
    const auto served = [&](Op op) { return onednn::choose_filter(primitives_.library(), layout(), node, op).has_value(); };
    return served(Op::forward) && served(Op::backward_data) && served(Op::backward_parameters);
  }

 private:
  using Way = onednn::Way<T>;
  using Winograd = std::shared_ptr<host::WinogradConvolution>;
  using Direct = std::shared_ptr<onednn::Convolution<T>>;
  using Filter = std::shared_ptr<onednn::PackedFilter>;
  /// The way to carry a step out.
  Way way_of(const Operands<T>& o) {
    if (o.node == nullptr) return {};
    if (is_packing(o.op)) return o.node->layer.kind == Kind::conv ? way_of_packing(o) : Way();
    switch (o.node->layer.kind) {
      case Kind::conv: {
        Way way = way_of_convolution(o);
        if (std::holds_alternative<onednn::HostLoops<T>>(way)) slow_layers_.report(*o.node, o.op, layout(), vectors_);
        return way;
      }
      case Kind::conv_transpose: return way_of_transposed(o);
      case Kind::linear: return way_of_linear(o);
      default: return {};
    }
  }
  Way way_of_packing(const Operands<T>& o) {
    Filter filter = primitives_.filter(*o.node, o.op == Op::pack_forward ? Op::forward : Op::backward_data);
    if (!filter->tag()) return {};
    return onednn::FilterReorder<T>{std::move(filter)};
  }
  Way way_of_convolution(const Operands<T>& o) {
    const Filter filter = primitives_.filter(*o.node, o.op);
    const onednn::Sides<T> slab = onednn::sides_of(o);
    if (!filter->tag() || !dense(slab.x, o.node->in.c) || !dense(slab.y, o.node->out.c)) return {};
    Direct direct;
    if constexpr (std::is_same_v<T, float>) {
      Winograd winograd = winograd_for(o, *filter);
      const bool wanted = winograd && !tries(o) && (o.conv_algorithm == ConvAlgorithm::winograd || winograd->pays());
      if (!wanted) direct = direct_for(o, filter);
      // Where the library has no kernel, the choice is between Winograd's loops and plain ones.
      if (winograd && (!direct || (tries(o) && winograd_is_faster(o, *filter, *winograd, *direct))))
        return onednn::WinogradLoops{std::move(winograd)};
    } else {
      direct = direct_for(o, filter);
    }
    if (!direct) return {};
    return onednn::DirectKernels<T>{std::move(direct)};
  }
  /// The library's kernels for data gradients are a tenth faster than products, for the other passes half as fast (Intel Xeon, U-Net).
  Way way_of_transposed(const Operands<T>& o) {
    if (!host::TiledTranspose::tiles(o.node->layer.window)) return {};
    bool products = false;
    if constexpr (std::is_same_v<T, float>) products = host::TiledTranspose::serves(o, vectors_);
    if (!products || o.op == Op::backward_data)
      if (auto pieces = mirrored(o); pieces->served()) return onednn::MirroredConvolution<T>{std::move(pieces)};
    if constexpr (std::is_same_v<T, float>)
      if (products) return onednn::TransposeProducts{vectors_, host::TiledTranspose::workspace_bytes(*o.node, layout().lanes())};
    return {};
  }
  Way way_of_linear(const Operands<T>& o) {
    auto product = primitives_.linear(o);
    if (!product->served()) return {};
    return onednn::LibraryProducts<T>{std::move(product)};
  }
  /// The library's kernels for a convolution; null if it takes no slabs like this one. Null also if it does not take the layer's whole map:
  /// slabs would not have that map's bits.
  Direct direct_for(const Operands<T>& o, const Filter& filter) {
    if (!filter->of_library()) return nullptr;
    Direct direct = primitives_.convolution(o, filter);
    return direct->served() ? direct : nullptr;
  }
  std::shared_ptr<onednn::Transposed<T>> mirrored(const Operands<T>& o) {
    using Transposed = onednn::Transposed<T>;
    return std::make_shared<Transposed>(layout(), o, primitives_.filter(Transposed::mirror(*o.node), Transposed::mirror(o.op)),
                                        [&](const Operands<T>& piece, const Filter& packed) { return primitives_.convolution(piece, packed); });
  }
  /// Whether the arithmetic of a step is found by trying.
  bool tries(const Operands<T>& o) const { return calibration_.on() && o.conv_algorithm == ConvAlgorithm::fastest && o.workspace != nullptr; }
  /// Times both. Parameters' gradients are written to memory of our own meanwhile.
  bool winograd_is_faster(const Operands<T>& o, const onednn::PackedFilter& filter, host::WinogradConvolution& winograd,
                          onednn::Convolution<T>& direct) requires std::is_same_v<T, float> {
    const auto shapes = parameter_shapes(o.node->layer, o.node->in);
    std::array<std::vector<float>, 4> written;
    Operands<T> mine = o;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shapes.count); ++i) {
      if (o.op == Op::backward_parameters) written[i].resize(static_cast<std::size_t>(shapes.item[i].count()));
      mine.d_parameters[i] = written[i].data();
    }
    return calibration_.first_is_faster(
        primitives_.problem(o, filter), "winograd", [&] { winograd.run(mine); }, "direct",
        [&] { direct.run(primitives_.library(), mine, this->threads()); });
  }
  /// Winograd's algorithm for a slab; null where the step asks for direct arithmetic, or the pass does not suit it, or the workspace is too
  /// small.
  /// Errors:  BackendError naming the bytes if the step asks for Winograd's and the workspace is too small
  Winograd winograd_for(const Operands<T>& o, const onednn::PackedFilter& filter) requires std::is_same_v<T, float> {
    // Our loops must read filters in the layout in which they are packed for the library's kernels. Gradients of filters they write themselves.
    const bool reads = o.op == Op::backward_parameters || filter.tag() == onednn::winograd_filter(layout(), o.op);
    if (o.conv_algorithm == ConvAlgorithm::direct || !reads) return nullptr;
    return primitives_.winograd(o, filter, [&] { return make_winograd(o); });
  }
  Winograd make_winograd(const Operands<T>& o) requires std::is_same_v<T, float> {
    const onednn::Sides<T> slab = onednn::sides_of(o);
    const auto pass = host::WinogradConvolution::pass(*o.node, o.op, slab.x, slab.y, vectors_);
    if (!pass) return nullptr;
    const auto blocking = host::winograd::choose_blocking(*pass, o.op == Op::backward_parameters, this->threads(), o.workspace_bytes);
    if (!blocking && o.conv_algorithm == ConvAlgorithm::winograd)
      throw onednn::workspace_error(o, slab.y.range(), host::winograd::least_bytes(*pass), "Winograd ");
    if (!blocking) return nullptr;
    return std::make_shared<host::WinogradConvolution>(*pass, *blocking, this->threads(), vectors_);
  }
  bool dense(const View<const T>& v, Index c) const { return v.n > 0 && v.rows > 0 && v.c == c && v.block == layout().block(c) && v.dense(); }
  static constexpr Target layout_with(Vectors vectors) {
    Target layout = target;
    layout.vector_block = vector_block(vectors);
    return layout;
  }
  int library_threads_;
  Vectors vectors_;
  onednn::Primitives<T> primitives_;
  onednn::SlowLayers slow_layers_;
  host::Calibration calibration_;
};
/// For every processor; fast where there is AVX2 or AVX-512.
using Onednn = BasicOnednn<float>;
/// Tensors in 16 bits, for processors with AVX512-BF16: half the bytes, half the time (docs/benchmarks.md). With AVX-512 alone the library
/// converts and is slower than in float; with less there are no kernels, which is an error.
using OnednnBf16 = BasicOnednn<bfloat16>;
static_assert(Backend<Onednn> && Backend<OnednnBf16>);
}   // namespace lrcnn
#ifdef LRCNN_PRECOMPILED_ONEDNN
#include <lrcnn/precompiled/onednn.hpp>
#endif
