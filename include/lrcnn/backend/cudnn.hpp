#pragma once
// The backend for NVIDIA's GPUs: cuDNN's convolutions, Thrust's loops for the rest.
//
//     #include <lrcnn/lrcnn.hpp>
//     #include <lrcnn/backend/cudnn.hpp>
//     Trainer<Net, Rows, Cudnn> trainer(...);
//
// Slabs are dense and channels-last. Convolutions and linear layers are cuDNN graphs, built once for each problem
// (shape, padding, precision) and shared by all slabs that have it; filters are packed as cuDNN wants them by steps of
// the plan. Bias and ReLU are part of the convolution where the library has such an engine. Steps run in the order of the plan's
// streams, without waiting. Steps that repeat are recorded as CUDA graphs. Losses add up on the device until somebody asks. Batches pass
// through pinned host memory, or are there already (DeviceSource, Labels::on_device).
//
// This header needs no CUDA: link lrcnn::cudnn, which brings the rest compiled (backend/cudnn/*.cu, *.cpp).
// Lifetimes: memory of the device keeps the library open. One thread at a time may use a backend.
#include <lrcnn/backend/cudnn/backend.hpp>
#include <lrcnn/backend/cudnn/starts_along.hpp>
#include <lrcnn/backend/cudnn/trial_memory.hpp>
#include <lrcnn/backend/cudnn/ways.hpp>
#include <lrcnn/core/bounded_cache.hpp>
#include <lrcnn/plan/rates.hpp>
#include <cassert>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
namespace lrcnn {
/// `in`: how tensors are stored and multiplied (policy/policy.hpp). Parameters, their gradients and the optimizer's
/// state are 32-bit in all, and so are the sums of convolutions.
template <Precision in>
class BasicCudnn : public cudnn::DeviceBackend<cudnn::Stored<in>> {
  using Base = cudnn::DeviceBackend<cudnn::Stored<in>>;
  /// Multiply-adds a second. Source: half of what NVIDIA's data sheet of the H200 SXM gives, 67 Tflop/s in fp32, 495 in tf32, 990 in 16 bits
  static constexpr double products = in == Precision::fp32 ? 17e12 : in == Precision::tf32 ? 124e12 : 248e12;

 public:
  using typename Base::element;
  using typename Base::Library;
  static constexpr Precision precision = in;
  /// The backend in another precision: what a policy's part chooses.
  template <Precision other>
  using with = BasicCudnn<other>;
  static constexpr Target target{.element_bytes = static_cast<Index>(sizeof(element)),
                                 .channel_block = Target::all_channels,
                                 .alignment = 256,
                                 .packs_weights = true,
                                 .activates = true,
                                 .sums_use_workspace = true,
                                 .packs_transposed = true,
                                 .packs_linear = !cudnn::is_single(precision),
                                 .packs_bias = !cudnn::is_single(precision),
                                 .convolves_rows = true,
                                 .packs_alike = true,
                                 .packs_together = true,
                                 .default_workspace = 64_MiB};
  static constexpr std::string_view name = "cudnn";
  /// Source:  NVIDIA's data sheet of the H200 SXM, half of 4.8 TB/s
  static constexpr Rates rates{
      .step = 4e-6, .products = products, .winograd = products, .bytes = 2.4e12, .offloaded = 50e9, .least_workspace = 32_MiB, .lanes = 8};
  /// Whether gradients are to be made larger on their way down, because small ones would vanish (train/loss_scale.hpp).
  static constexpr bool scales_loss = precision == Precision::fp16;
  /// A step made ready. Copies share the graphs.
  class Prepared {
    friend class BasicCudnn;
    struct InUse {
      bool operator()(const Prepared& p) const { return p.convolution_.use_count() > 1; }
    };
    std::shared_ptr<const cudnn::ReadyConvolution> convolution_;
  };
  /// Steps that are started together: one by one at first, which loads their kernels; then as a recording.
  class Group {
    friend class BasicCudnn;
    std::unique_ptr<cudnn::Recording> recording_;
    bool warm_ = false, plain_ = false;
  };
  /// On the current device. The number of threads is the CPU backends' affair.
  /// Errors:  BackendError if there is no device to use, or a library is too old
  explicit BasicCudnn(int = 0) : BasicCudnn(cudnn::DeviceOptions{}) {}
  explicit BasicCudnn(const cudnn::DeviceOptions& options) : BasicCudnn(cudnn::open_library<element>(options), options.tuning) {
    records_ = options.record, tries_ = options.try_engines;
  }
  explicit BasicCudnn(std::shared_ptr<Library> library, const cudnn::TuningOptions& tuning = {})
      : Base(std::move(library)), tuner_(*library_, tuning) {}
  /// Engines that were found by timing, unless the options did not ask for that; and those that were passed over.
  const cudnn::Tuner& tuner() const { return tuner_; }
  /// A run begins; what has been found out is written down first.
  void start(const Labels& labels) {
    tuner_.save();
    along_ = {};   // of a run that ended in an error
    Base::start(labels);
  }
  /// Finds or builds what a step needs. Engines are tried on the step's operands, which they write over as far as they are the plan's memory.
  /// Errors:  BackendError naming layer, slab and precision if no engine serves it, or if a layer cannot be had here
  Prepared prepare(const Operands<element>& o) {
    Prepared p;
    if (o.node && o.node->layer.kind == Kind::custom) check_custom(o);
    if (!cudnn::is_convolution(o)) {
      if (const Index bytes = library_->workspace_bytes(o); bytes > o.workspace_bytes)
        throw BackendError(error_text(cudnn::who(o) + ": what is known of its channels or pixels takes " + std::to_string(bytes) +
                                          " bytes of workspace, and there are " + std::to_string(o.workspace_bytes),
                                      "all scratch lies in the plan's workspace", "give the policy a larger Workspace, or other slabs"));
      return p;
    }
    if (const Index bytes = partial_sum_bytes(o); bytes > o.workspace_bytes)
      throw BackendError(error_text(cudnn::who(o) + ": the sums of its bias gradient take " + std::to_string(bytes) +
                                        " bytes of workspace, and there are " + std::to_string(o.workspace_bytes),
                                    "all scratch lies in the plan's workspace", "give the policy a larger Workspace, or other slabs"));
    const cudnn::Request request = cudnn::request_of(o, precision);
    if (!request.served()) return p;
    if (const Prepared* known = convolutions_.find(request)) return *known;
    cudnn::ReadyConvolution made;
    const cudnn::Status status = make_convolution(made, request, o);
    if (!status.good()) {
      const Range rows = o.op == Op::forward ? o.y.range() : o.dy.range();
      throw BackendError(error_text(cudnn::who(o) + ", rows " + std::to_string(rows.begin) + ".." + std::to_string(rows.end - 1) + ", " +
                                        std::string(op_name(o.op)) + " in " + std::string(precision_name(precision)) + ": no engine within " +
                                        std::to_string(o.workspace_bytes) + " bytes of workspace (" + status.text + ")",
                                    "every convolution of a plan needs one", "give the policy a larger Workspace, or other slabs"));
    }
    p.convolution_ = std::make_shared<const cudnn::ReadyConvolution>(std::move(made));
    return convolutions_.add(request, std::move(p));
  }
  /// Starts a step.
  void run(const Prepared& p, const Operands<element>& o) {
    const cudnn::Status status = start_step(p, o);
    if (!status.good()) cudnn::check(status, std::string(op_name(o.op)) + (o.node ? " of " + cudnn::who(o) : std::string()));
  }
  /// Starts as many of some steps, from the first on, as go together: filters are packed by one kernel, and what StartsAlong finds. Returns how many
  /// they are, `most` at most; 0 if the first is started alone. The bias gradient of the step behind them may be made, too. `fleeting`: as
  /// fleeting_steps() has it of the first.
  std::size_t start_together(std::span<const Operands<element>> steps, std::size_t most, bool fleeting) {
    std::vector<cudnn::FilterPacking<element>> filters;
    while (filters.size() < most && is_packing(steps[filters.size()].op)) filters.push_back(packing_of(steps[filters.size()]));
    if (filters.size() > 1) cudnn::check(library_->pack_filters(filters), "packing filters");
    if (!filters.empty()) return filters.size() > 1 ? filters.size() : 0;
    return along_.start(*library_, steps, most, fleeting);
  }
  /// Whether a step's filter gradient may stay packed, in the step's scratch memory, until unpack_together().
  bool keeps_packed(const Prepared& p, const Operands<element>& o) const {
    return o.op == Op::backward_parameters && o.scratch && p.convolution_ && memory_of(o).runs_once(*p.convolution_);
  }
  /// As run(), but the filter gradient is still to be unpacked. Pre: keeps_packed(p, o)
  void run_packed(const Prepared& p, const Operands<element>& o) {
    cudnn::check(backward_parameters(p, o, true), std::string(op_name(o.op)) + " of " + cudnn::who(o));
  }
  /// Unpacks the filter gradients of such steps, of layers that differ, at once.
  void unpack_together(std::span<const Operands<element>* const> steps) {
    std::vector<cudnn::FilterUnpacking<element>> filters;
    for (const Operands<element>* o : steps) filters.push_back({o->scratch, o->d_parameters[0], o->node, o->accumulate});
    cudnn::check(library_->unpack_filters(filters), "unpacking filter gradients");
  }
  /// Starts a group of steps: `steps` does so one by one. What the group touches must be the same every time. Within a capture of the program's
  /// own, where no graph can be started, they are started one by one.
  template <class F>
  void run_group(Group& group, F steps) {
    if (!records_ || group.plain_) return steps();
    bool captured = false;
    cudnn::check(library_->find_program_capture(captured), "asking whether the program captures the stream");
    if (captured || !std::exchange(group.warm_, true)) return steps();
    if (!group.recording_) {
      if (const cudnn::Status status = record(group, steps); !status.good()) {
        if (recording_problem_.empty()) recording_problem_ = status.text;
        group.plain_ = true;
        return steps();
      }
    }
    cudnn::check(group.recording_->start(), "a recorded part of the step");
  }

  // ---- streams -----------------------------------------------------------------------------------------------------
  void fork(Index streams) { cudnn::check(library_->fork(streams), "starting streams"); }
  void enter(Index stream, std::span<const Index> events) {
    cudnn::check(library_->select(stream), "changing to another stream");
    for (const Index event : events) cudnn::check(library_->wait_for_event(event), "waiting for another stream");
  }
  void leave(Index event) {
    if (event >= 0) cudnn::check(library_->record_event(event), "recording an event");
  }
  void join(Index streams) { cudnn::check(library_->join(streams), "bringing streams together"); }
  /// What has been started on other streams before an error is before all that follows, as in a step that ends.
  void abandon(Index streams) noexcept {
    try {
      static_cast<void>(library_->join(streams));
    } catch (...) {   // there has been an error before, which is the one to tell
    }
  }
  /// Why some steps are started one by one, although they repeat; empty if all are recorded.
  const std::string& recording_problem() const { return recording_problem_; }
  /// Graphs that are kept: those in use, and some others.
  Index convolutions() const { return static_cast<Index>(convolutions_.size()); }

 private:
  using Base::library_;
  /// Whatever `steps` throws, the recording ends. What the device or its libraries refuse is a Status, since none of the work has been done;
  /// anything else is thrown again.
  template <class F>
  cudnn::Status record(Group& group, F steps) {
    if (cudnn::Status status = library_->begin_recording(); !status.good()) return status;
    std::unique_ptr<cudnn::Recording> made;
    std::string problem;
    try {
      steps();
    } catch (const BackendError& e) {
      problem = e.what();
    } catch (...) {
      static_cast<void>(library_->end_recording(made));   // of a part of the steps
      throw;
    }
    const cudnn::Status status = library_->end_recording(made);
    if (!problem.empty()) return {problem};
    group.recording_ = std::move(made);
    return status;
  }
  /// Errors: BackendError if the program has not compiled what a step of a layer of its own needs
  static void check_custom(const Operands<element>& o) {
    const CustomDeviceFunctions<element>* loops = custom_on_device<element>(o.node->layer);
    const bool offered = loops && (o.op == Op::forward         ? loops->forward != nullptr
                                   : o.op == Op::backward_data ? loops->backward_data != nullptr
                                                               : loops->backward_parameters != nullptr);
    if (!offered)
      throw BackendError(error_text(cudnn::who(o) + " is a layer of the program's own, and has no loops for a GPU",
                                    "its functions work on the host's memory; loops for a GPU are compiled by a .cu file of the program",
                                    "make it an ElementLayer or a Pointwise with on_device (docs/extending.md), or train it on a CPU backend"));
  }
  Index partial_sum_bytes(const Operands<element>& o) const {
    return o.op == Op::backward_parameters && o.node->layer.bias ? library_->bias_gradient_bytes(o.dy) : 0;
  }
  cudnn::Status start_step(const Prepared& p, const Operands<element>& o) {
    if (is_packing(o.op)) return library_->pack_filters(std::array{packing_of(o)});
    if (!cudnn::is_convolution(o)) return library_->run(o);
    if (o.op == Op::backward_parameters) return backward_parameters(p, o);
    return o.op == Op::forward ? forward(p, o) : backward_data(p, o);
  }
  static cudnn::FilterPacking<element> packing_of(const Operands<element>& o) {
    const bool along = target.packs_bias && o.op == Op::pack_forward && o.node->layer.bias;
    return {o.parameters[0], o.packed, along ? o.parameters[1] : nullptr, along ? packed_bias(o) : nullptr, o.node};
  }
  static element* packed_bias(const Operands<element>& o) { return o.packed + target.packed_bias_offset(*o.node) / Index{sizeof(element)}; }
  /// The bias that a forward step adds, as elements; null if the layer has none.
  static const element* bias(const Operands<element>& o) {
    if (!o.node->layer.bias || o.op != Op::forward) return nullptr;
    if constexpr (target.packs_bias) return packed_bias(o);
    else return o.parameters[1];
  }
  /// The weights that a step works on. A linear layer's in 32 bits lie as a 1x1 convolution wants them.
  static void* weights(const Operands<element>& o) { return o.packed ? static_cast<void*>(o.packed) : const_cast<float*>(o.parameters[0]); }
  /// Where the library writes a filter's gradient.
  static void* made_gradient(const Operands<element>& o) {
    return o.scratch ? static_cast<void*>(o.scratch) : cudnn::reserved_bytes(o) > 0 ? static_cast<void*>(o.workspace) : o.d_parameters[0];
  }
  static cudnn::ConvolutionMemory<element> memory_of(const Operands<element>& o) {
    const bool filter = o.op == Op::backward_parameters;
    return {cudnn::sides_of(o), filter ? made_gradient(o) : weights(o), bias(o), o.workspace + (filter ? cudnn::reserved_bytes(o) : 0)};
  }
  /// By the engine that the library puts first, or by the fastest of those that were timed; in full precision, with tuning on, in the fastest way.
  cudnn::Status make_convolution(cudnn::ReadyConvolution& made, const cudnn::Request& request, const Operands<element>& o) {
    const auto memory = memory_of(o);
    const auto try_engine = [&](cudnn::Convolution& c, const cudnn::Piece& piece, std::string& fault) { return try_out(c, piece, o, fault); };
    if (precision == Precision::fp32 && tuner_.on() && request.in_plan && request.workspace_bytes >= 0)
      return cudnn::make_fastest(made, *library_, tuner_, request, memory, try_engine, [&](const cudnn::ReadyConvolution& c) {
        Prepared p;
        p.convolution_ = std::shared_ptr<const cudnn::ReadyConvolution>(&c, [](auto*) {});   // for this run
        if (o.op != Op::backward_parameters) return start_step(p, o);
        // Gradients of pieces are unpacked one by one: here into the workspace, and not to the program's.
        const bool unpacks = o.scratch && cudnn::filter_elements(*o.node) * Index{sizeof(float)} <= o.workspace_bytes;
        const std::array unpacking{cudnn::FilterUnpacking<element>{o.scratch, reinterpret_cast<float*>(o.workspace), o.node, true}};
        return memory.start(c, [&](bool) { return unpacks ? library_->unpack_filters(unpacking) : cudnn::Status{}; });
      });
    cudnn::Status status{std::to_string(cudnn::reserved_bytes(o)) + " bytes are needed for gradients"};
    for (const cudnn::Request& attempt : cudnn::attempts(request)) {
      if (attempt.workspace_bytes < 0) break;
      status = cudnn::make_ready(made, *library_, tuner_, attempt, memory, try_engine);
      if (status.good()) break;
    }
    return status;
  }
  /// Runs an engine once in the step's memory, if that has room for what is the caller's; says what is wrong with it, or what the device says.
  cudnn::Status try_out(cudnn::Convolution& c, const cudnn::Piece& piece, const Operands<element>& o, std::string& fault) {
    if (!tries_) return {};
    const cudnn::ConvolutionMemory<element> memory = memory_of(o);
    const auto trial = cudnn::trial_memory(o, piece, static_cast<element*>(memory.w), memory.bias, target.packs_bias, c.workspace_bytes());
    return trial ? library_->try_out(fault, c, piece.problem, *trial) : cudnn::Status{};
  }
  /// Writes an output, or an input's gradient: zeros where no window reaches.
  cudnn::Status write_rows(const Prepared& p, const Operands<element>& o, const View<element>& to) {
    const cudnn::ConvolutionMemory<element> memory = memory_of(o);
    const Range made = p.convolution_ ? memory.sides.written().range() : Range{to.row0, to.row0}, all = to.range();
    cudnn::Status status;
    for (const Range rest : {Range{all.begin, made.begin}, Range{made.end, all.end}})
      if (status.good() && !rest.empty()) status = clear(to.slice(rest));
    if (!status.good() || !p.convolution_) return status;
    return memory.start(*p.convolution_, [](bool) { return cudnn::Status{}; });
  }
  cudnn::Status forward(const Prepared& p, const Operands<element>& o) {
    if (o.y.rows == 0) return {};
    const cudnn::Status status = write_rows(p, o, o.y);
    const element* added = p.convolution_ && p.convolution_->adds_bias ? nullptr : bias(o);
    const Activation* f = o.activation ? &o.activation->layer.activation : nullptr;
    const bool writes = added || (f && !(p.convolution_ && p.convolution_->activates));   // else the sign is all that is still wanted
    const View<std::uint8_t> saved = along_.needs_no_bits(o) ? View<std::uint8_t>{} : o.saved;
    if (!status.good() || !(writes || (f && saved.data))) return status;
    return library_->activate(o.y, added, f, writes ? o.y : View<element>{}, saved);
  }
  cudnn::Status backward_data(const Prepared& p, const Operands<element>& o) { return o.dx.rows > 0 ? write_rows(p, o, o.dx) : cudnn::Status{}; }
  cudnn::Status backward_parameters(const Prepared& p, const Operands<element>& o, bool stays_packed = false) {
    float* dw = o.d_parameters[0];
    const cudnn::ConvolutionMemory<element> memory = memory_of(o);
    assert(memory.w != dw || !p.convolution_ || memory.runs_once(*p.convolution_));   // else pieces would write over each other
    cudnn::Status status;
    if (p.convolution_)
      status = memory.start(*p.convolution_, [&](bool first) {
        if (memory.w == dw || stays_packed) return cudnn::Status{};
        return library_->unpack_filters(
            std::array{cudnn::FilterUnpacking<element>{static_cast<const element*>(memory.w), dw, o.node, o.accumulate || !first}});
      });
    else if (!o.accumulate) status = library_->fill(dw, 0, cudnn::filter_elements(*o.node) * Index{sizeof(float)});
    if (!status.good() || !o.node->layer.bias || along_.has_summed(o)) return status;
    return library_->bias_gradient(o.dy, o.d_parameters[1], o.accumulate, o.workspace);
  }
  cudnn::Status clear(const View<element>& y) {
    Operands<element> o;
    o.op = Op::zero;
    o.y = y;
    return library_->run(o);
  }
  cudnn::Tuner tuner_;
  BoundedCache<cudnn::Request, Prepared, typename Prepared::InUse> convolutions_;
  bool records_ = true, tries_ = true;
  cudnn::StartsAlong<element> along_;
  std::string recording_problem_;
};
/// 32-bit floating point throughout.
using Cudnn = BasicCudnn<Precision::fp32>;
/// Stored as 32-bit floating point, multiplied by tensor cores with 10 bits of mantissa: several times as fast.
using CudnnTf32 = BasicCudnn<Precision::tf32>;
/// Tensors in 16 bits. Of fp16 the range is small: gradients are scaled, and steps skipped in which one overflows.
using CudnnFp16 = BasicCudnn<Precision::fp16>;
using CudnnBf16 = BasicCudnn<Precision::bf16>;
}   // namespace lrcnn
#ifdef LRCNN_PRECOMPILED_CUDNN
#include <lrcnn/precompiled/cudnn.hpp>
#endif
