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
// This header needs no CUDA: link lrcnn::cudnn, which brings the rest compiled (backend/cudnn/library.cu).
// Lifetimes: memory of the device keeps the library open. One thread at a time may use a backend.
#include <lrcnn/backend/cudnn/source.hpp>
#include <lrcnn/backend/cudnn/tuner.hpp>
#include <lrcnn/core/bounded_cache.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <cstring>
#include <utility>
#include <vector>
namespace lrcnn {
/// `in`: how tensors are stored and multiplied (policy/policy.hpp). Parameters, their gradients and the optimizer's
/// state are 32-bit in all, and so are the sums of convolutions.
template <Precision in>
class BasicCudnn {
 public:
  static constexpr Precision precision = in;
  /// The backend in another precision: what a policy's part chooses.
  template <Precision other>
  using with = BasicCudnn<other>;
  using element = cudnn::Stored<precision>;
  using Library = cudnn::Library<element>;
  using Memory = cudnn::Memory;
  template <class E>
  using Buffer = cudnn::Buffer<E>;
  static constexpr bool on_host = false;
  static constexpr Target target{
      .element_bytes = static_cast<Index>(sizeof(element)), .channel_block = Target::all_channels, .alignment = 256,
      .packs_weights = true, .activates = true, .sums_use_workspace = true, .packs_transposed = true,
      .packs_linear = !cudnn::is_single(precision)};
  static constexpr std::string_view name = "cudnn";
  /// Whether gradients are to be made larger on their way down, because small ones would vanish (train/loss_scale.hpp).
  static constexpr bool scales_loss = precision == Precision::fp16;
  /// A step made ready. Copies share the graph.
  class Prepared {
    friend class BasicCudnn;
    struct InUse {
      bool operator()(const Prepared& p) const { return p.convolution_.use_count() > 1; }
    };
    std::shared_ptr<cudnn::Convolution> convolution_;
    bool adds_bias_ = false, activates_ = false;   ///< within the convolution
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
    records_ = options.record;
  }
  explicit BasicCudnn(std::shared_ptr<Library> library, const cudnn::TuningOptions& tuning = {})
      : library_(std::move(library)), tuner_(*library_, tuning) {}
  int threads() const { return 1; }
  /// What runs, in a line: device, library.
  std::string describe() const {
    cudnn::DeviceInfo info;
    if (const cudnn::Status status = library_->info(info); !status.good()) return "a device that does not answer (" + status.text + ")";
    return info.name + ", cuDNN " + cudnn::version_text(info.cudnn_version);
  }
  Library& library() const { return *library_; }
  /// Engines that were found by trying; empty unless the options asked for that.
  const cudnn::Tuner& tuner() const { return tuner_; }
  /// Finds or builds what a step needs. Tuning writes into the step's operands, as far as they are the plan's memory.
  /// Errors:  BackendError naming layer, slab and precision if no engine serves it, or if a layer cannot be had here
  Prepared prepare(const Operands<element>& o) {
    Prepared p;
    if (o.node && o.node->layer.kind == Kind::custom)
      throw BackendError(error_text(who(o) + " is a layer of the program's own, and has no function for a GPU",
                                    "its functions work on the host's memory", "train it on a CPU backend"));
    if (!cudnn::is_convolution(o)) {
      if (const Index bytes = library_->workspace_bytes(o); bytes > o.workspace_bytes)
        throw BackendError(error_text(who(o) + ": what is known of its channels or pixels takes " + std::to_string(bytes) +
                                          " bytes of workspace, and there are " + std::to_string(o.workspace_bytes),
                                      "all scratch lies in the plan's workspace", "give the policy a larger Workspace, or other slabs"));
      return p;
    }
    if (const Index bytes = partial_sum_bytes(o); bytes > o.workspace_bytes)
      throw BackendError(error_text(who(o) + ": the sums of its bias gradient take " + std::to_string(bytes) + " bytes of workspace, and there are " +
                                        std::to_string(o.workspace_bytes), "all scratch lies in the plan's workspace",
                                    "give the policy a larger Workspace, or other slabs"));
    const cudnn::Request request = cudnn::request_of(o, precision);
    if (!request.served()) return p;
    if (const Prepared* known = convolutions_.find(request)) return *known;
    std::unique_ptr<cudnn::Convolution> made;
    cudnn::Status status{std::to_string(cudnn::reserved_bytes(o)) + " bytes are needed for gradients"};
    for (const cudnn::Request& attempt : cudnn::attempts(request)) {
      if (attempt.workspace_bytes < 0) break;
      p.adds_bias_ = attempt.problem.bias, p.activates_ = attempt.problem.relu;
      status = tuner_.make(made, *library_, attempt, [&](cudnn::Convolution& c) { return convolve(c, p, o); }, cudnn::lies_in_plan(o));
      if (status.good()) break;
    }
    if (!status.good()) {
      const Range rows = o.op == Op::forward ? o.y.range() : o.dy.range();
      throw BackendError(error_text(who(o) + ", rows " + std::to_string(rows.begin) + ".." + std::to_string(rows.end - 1) + ", " +
                                        std::string(op_name(o.op)) + " in " + std::string(precision_name(precision)) +
                                        ": no engine within " + std::to_string(o.workspace_bytes) + " bytes of workspace (" +
                                        status.text + ")",
                                    "every convolution of a plan needs one",
                                    "give the policy a larger Workspace, or other slabs"));
    }
    p.convolution_ = std::move(made);
    return convolutions_.add(request, std::move(p));
  }
  /// Starts a step.
  void run(const Prepared& p, const Operands<element>& o) {
    const cudnn::Status status = start_step(p, o);
    if (!status.good()) cudnn::check(status, std::string(op_name(o.op)) + (o.node ? " of " + who(o) : std::string()));
  }
  /// Starts a group of steps: `steps` does so one by one. What the group touches must be the same every time.
  template <class F>
  void run_group(Group& group, F steps) {
    if (!records_ || group.plain_ || !std::exchange(group.warm_, true)) return steps();
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
  /// Why some steps are started one by one, although they repeat; empty if all are recorded.
  const std::string& recording_problem() const { return recording_problem_; }
  /// Graphs that are kept: those in use, and some others.
  Index convolutions() const { return static_cast<Index>(convolutions_.size()); }

  // ---- memory ------------------------------------------------------------------------------------------------------
  Memory allocate(Index bytes, const std::string& who) const { return Memory(library_, bytes, who); }
  /// Bytes of the device's memory that can be taken now; 0 if it does not say.
  Index free_bytes() const {
    cudnn::DeviceInfo info;
    return library_->info(info).good() ? info.free_bytes : 0;
  }
  template <class E>
  Buffer<E> buffer(Index count) const {
    const Index bytes = count * Index{sizeof(E)};
    Memory memory(library_, bytes, "a buffer of parameters or gradients");
    if (bytes > 0) cudnn::check(library_->fill(memory.data(), 0, bytes), "clearing memory of the device");
    return Buffer<E>(std::move(memory), count);
  }
  /// Every byte 0xFF, which is NaN in every format.
  void fill_with_nans(const Memory& memory) const {
    cudnn::check(library_->fill(memory.data(), 0xFF, memory.bytes()), "filling memory of the device");
  }
  template <class E>
  void write(E* to, std::type_identity_t<std::span<const E>> from) const {
    if (!from.empty())
      cudnn::check(library_->write(to, from.data(), static_cast<Index>(from.size_bytes())), "copying to the device");
  }
  template <class E>
  void read(std::span<E> to, const E* from) const {
    if (!to.empty()) cudnn::check(library_->read(to.data(), from, static_cast<Index>(to.size_bytes())), "copying from the device");
  }

  // ---- the ends of a run -------------------------------------------------------------------------------------------
  /// Of the run that comes next; for networks with dropouts.
  void set_run_key(const RunKey& key) { cudnn::check(library_->set_run_key(key), "copying a run's number to the device"); }
  void start(const Labels& labels) {
    cudnn::Sums rest;
    tuner_.save();
    if (std::exchange(broken_, false)) {
      cudnn::check(library_->select(0), "changing to the first stream");
      cudnn::check(library_->wait(), "waiting for the device");
      cudnn::check(library_->fetch(rest), "fetching the loss");
    }
    cudnn::check(library_->labels(labels), "copying labels to the device");
    running_ = true;
    labels_ = labels;
  }
  /// Rows of a DeviceSource are copied on the device; all others are read into pinned memory and sent.
  void load(const RowSource<float>& source, Index first_image, const View<element>& y) {
    if (const auto* there = dynamic_cast<const cudnn::DeviceSource*>(&source))
      return cudnn::check(library_->convert(there->images(first_image, y.n).slice(y.range()), y), "copying a batch's rows");
    const Index image = y.rows * y.stride_row();   // elements
    auto* rows = staging<float>(y.n * image);
    source.read(first_image, dense_view(rows, y.n, y.c, y.range(), y.w, y.block));
    const std::byte* sent = stored(rows, y.n * image);
    constexpr Index size = sizeof(element);
    cudnn::check(library_->send(y.data, y.stride_n * size, sent, image * size, image * size, y.n), "copying a batch's rows to the device");
  }
  /// Rows of the network's output are fetched, image by image, and handed over from the host's memory. Waits.
  void store(RowSink<float>& sink, Index first_image, const View<const element>& x) {
    const Index image = x.rows * x.stride_row();   // elements
    fetched_.resize(std::max(fetched_.size(), static_cast<std::size_t>(image)));
    for (Index i = 0; i < x.n; ++i) {
      read(std::span<element>(fetched_).first(static_cast<std::size_t>(image)), x.data + i * x.stride_n);
      sink.write(first_image + i, dense_view(widened(image), 1, x.c, x.range(), x.w, x.block));
    }
  }
  bool finite(const View<const element>& view) const {
    bool result = false;
    cudnn::check(library_->finite(view, result), "looking for values that are not finite");
    return result;
  }
  /// Whether `count` numbers in a row are.
  bool all_finite(const float* elements, Index count) const {
    bool result = false;
    cudnn::check(library_->all_finite(elements, count, result), "looking for gradients that are not finite");
    return result;
  }
  /// Cross entropy, of images and of pixels, and the other losses that cudnn::device_loss() knows, on the device. Any other runs on the
  /// host, on a copy of the logits, and is waited for. `counts`: it is added to the run's.
  template <class L>
  void loss(const L& loss, Index first, const View<const element>& logits, const View<element>& dx, double scale, LossResult& result,
            bool counts = true) {
    if constexpr (std::is_same_v<L, SoftmaxCrossEntropy>) {
      cudnn::check(library_->cross_entropy(logits, first, dx, scale), "the loss");
    } else if constexpr (DenseLoss<L, element>) {
      if (const auto known = cudnn::device_loss(loss))
        return cudnn::check(library_->pixel_loss(*known, logits, first, dx, scale, counts), "the loss");
      loss_on_host(logits, dx, [&](const auto& x, const auto& d) { loss(x, labels_, first, d, scale, result); });
    } else {
      const std::vector<std::int32_t> labels = host_labels(first, logits.n, logits.c);
      loss_on_host(logits, dx, [&](const auto& x, const auto& d) { loss(x, std::span<const std::int32_t>(labels), d, scale, result); });
    }
  }
  /// Errors:  DataError if labels on the device were no classes
  void finish(LossResult& result) {
    if (!std::exchange(running_, false)) return;
    cudnn::Sums sums;
    broken_ = true;
    cudnn::check(library_->fetch(sums), "the step");
    broken_ = false;
    if (sums.invalid_labels > 0)
      throw DataError(error_text(std::to_string(sums.invalid_labels) + " labels on the device are outside the network's classes",
                                 "labels are 0 .. classes - 1; parameters were not changed by these steps",
                                 "correct the labels, or widen the last layer"));
    result.sum += sums.loss.sum, result.correct += sums.loss.correct;
    result.count += std::isfinite(sums.loss.sum) ? sums.loss.count : sums.images;   // the latter tells which steps count
  }
  /// After an error within a run: what it has added to the losses goes.
  void cancel() {
    running_ = false, broken_ = true;
    static_cast<void>(library_->select(0));
  }
  /// Of parameter gradients, in an order that is always the same. Waits.
  double sum_of_squares(const float* elements, Index count) const {
    double result = 0;
    cudnn::check(library_->sum_of_squares(elements, count, result), "the norm of gradients");
    return result;
  }
  template <class Update>
  void update(const Update& functor, float* w, const float* g, float* s0, float* s1, Index count) {
    cudnn::Status status;
    if constexpr (Update::states == 0) status = library_->update(functor, w, g, count);
    else if constexpr (Update::states == 1) status = library_->update(functor, w, g, s0, count);
    else status = library_->update(functor, w, g, s0, s1, count);
    cudnn::check(status, "the update");
  }

 private:
  /// Calls f with a copy of the logits, and memory for their gradient, which is sent back.
  template <class F>
  void loss_on_host(const View<const element>& logits, const View<element>& dx, F f) {
    const Index image = logits.rows * logits.stride_row();
    std::vector<element> host(static_cast<std::size_t>(logits.n * image)), gradient(dx.data ? host.size() : 0);
    const auto piece = [&](std::vector<element>& all, Index i) {
      return std::span<element>(all).subspan(static_cast<std::size_t>(i * image), static_cast<std::size_t>(image));
    };
    const auto over = [&](std::vector<element>& all) {
      return dense_view(all.data(), logits.n, logits.c, logits.range(), logits.w, logits.block);
    };
    for (Index i = 0; i < logits.n; ++i) read(piece(host, i), logits.data + i * logits.stride_n);
    f(View<const element>(over(host)), dx.data ? over(gradient) : View<element>{});
    for (Index i = 0; dx.data && i < dx.n; ++i) write(dx.data + i * dx.stride_n, std::span<const element>(piece(gradient, i)));
  }
  template <class F>
  cudnn::Status record(Group& group, F steps) {
    if (cudnn::Status status = library_->begin_recording(); !status.good()) return status;
    std::string problem;
    try {
      steps();
    } catch (const BackendError& e) {
      problem = e.what();
    }
    const cudnn::Status status = library_->end_recording(group.recording_);
    if (!problem.empty()) group.recording_ = nullptr;
    return problem.empty() ? status : cudnn::Status{problem};
  }
  /// The first elements of what was fetched, as floats.
  const float* widened(Index count) {
    if constexpr (std::is_same_v<element, float>) {
      return fetched_.data();
    } else {
      widened_.resize(std::max(widened_.size(), static_cast<std::size_t>(count)));
      std::transform(fetched_.begin(), fetched_.begin() + count, widened_.begin(), [](element e) { return static_cast<float>(e); });
      return widened_.data();
    }
  }
  static std::string who(const Operands<element>& o) {
    return "layer '" + std::string(o.node->layer.name.view()) + "' (" + lrcnn::describe(o.node->layer) + ")";
  }
  Index partial_sum_bytes(const Operands<element>& o) const {
    return o.op == Op::backward_parameters && o.node->layer.bias ? library_->bias_gradient_bytes(o.dy) : 0;
  }
  cudnn::Status start_step(const Prepared& p, const Operands<element>& o) {
    if (o.op == Op::pack_forward || o.op == Op::pack_backward) return library_->pack_filter(o.parameters[0], o.packed, *o.node);
    if (!cudnn::is_convolution(o)) return library_->run(o);
    if (o.op == Op::backward_parameters) return backward_parameters(p, o);
    return o.op == Op::forward ? forward(p, o) : backward_data(p, o);
  }
  /// Labels of the batch as the host sees them. Errors: DataError if one is no class.
  std::vector<std::int32_t> host_labels(Index first, Index count, Index classes) const {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
    if (labels_.on_device()) read(std::span<std::int32_t>(labels), labels_.data() + first);
    else std::copy_n(labels_.data() + first, count, labels.begin());
    for (const std::int32_t label : labels)
      if (label < 0 || label >= classes)
        throw DataError(error_text("label " + std::to_string(label) + " is outside the network's " + std::to_string(classes) + " classes",
                                   "labels are 0 .. classes - 1", "correct the labels, or widen the last layer"));
    return labels;
  }
  template <class E>
  E* staging(Index count) const {
    void* memory = nullptr;
    cudnn::check(library_->staging(memory, count * Index{sizeof(E)}), "taking pinned memory for a batch's rows");
    return static_cast<E*>(memory);
  }
  /// Rows as they are stored: those given, or rounded in the same memory.
  static std::byte* stored(float* rows, Index count) {
    auto* bytes = reinterpret_cast<std::byte*>(rows);
    if constexpr (!std::is_same_v<element, float>)
      for (Index e = 0; e < count; ++e) {
        float value;
        std::memcpy(&value, bytes + e * Index{sizeof(float)}, sizeof(float));
        const auto rounded = static_cast<element>(value);
        std::memcpy(bytes + e * Index{sizeof(element)}, &rounded, sizeof(element));
      }
    return bytes;
  }
  /// The weights that a step works on. A linear layer's in 32 bits lie as a 1x1 convolution wants them.
  static void* weights(const Operands<element>& o) {
    return o.packed ? static_cast<void*>(o.packed) : const_cast<float*>(o.parameters[0]);
  }
  /// Where the library writes a filter's gradient.
  static void* made_gradient(const Operands<element>& o) {
    return o.scratch ? static_cast<void*>(o.scratch) : cudnn::reserved_bytes(o) > 0 ? static_cast<void*>(o.workspace) : o.d_parameters[0];
  }
  /// Starts the library's part of a step: of all images at once, or of one after the other. `after` is done behind each, and told whether it
  /// is the first.
  template <class F>
  static cudnn::Status convolve(cudnn::Convolution& c, const Prepared& p, const Operands<element>& o, F after) {
    const cudnn::Sides<element> sides = cudnn::sides_of(o);
    const auto image = [](const View<const element>& v, Index i) { return const_cast<element*>(v.data) + i * v.stride_n; };
    const bool filter = o.op == Op::backward_parameters;
    void* const w = filter ? made_gradient(o) : weights(o);
    cudnn::Status status;
    for (Index i = 0, turns = sides.dense() ? 1 : sides.x.n; i < turns && status.good(); ++i) {
      status = c.run(image(sides.x, i), image(sides.y, i), w, p.adds_bias_ ? o.parameters[1] : nullptr,
                     o.workspace + (filter ? cudnn::reserved_bytes(o) : 0));
      if (status.good()) status = after(i == 0);
    }
    return status;
  }
  static cudnn::Status convolve(cudnn::Convolution& c, const Prepared& p, const Operands<element>& o) {
    return convolve(c, p, o, [](bool) { return cudnn::Status{}; });
  }
  /// Writes an output, or an input's gradient: zeros where no window reaches.
  cudnn::Status write_rows(const Prepared& p, const Operands<element>& o, const View<element>& to) {
    const cudnn::Sides<element> sides = cudnn::sides_of(o);
    const Range made = p.convolution_ ? sides.written().range() : Range{to.row0, to.row0}, all = to.range();
    cudnn::Status status;
    for (const Range rest : {Range{all.begin, made.begin}, Range{made.end, all.end}})
      if (status.good() && !rest.empty()) status = clear(to.slice(rest));
    return status.good() && p.convolution_ ? convolve(*p.convolution_, p, o) : status;
  }
  cudnn::Status forward(const Prepared& p, const Operands<element>& o) {
    if (o.y.rows == 0) return {};
    const cudnn::Status status = write_rows(p, o, o.y);
    const float* bias = o.node->layer.bias && !p.adds_bias_ ? o.parameters[1] : nullptr;
    const Activation* f = o.activation ? &o.activation->layer.activation : nullptr;
    const bool writes = bias || (f && !p.activates_);   // else the sign is all that is still wanted
    if (!status.good() || !(writes || (f && o.saved.data))) return status;
    return library_->activate(o.y, bias, f, writes ? o.y : View<element>{}, o.saved);
  }
  cudnn::Status backward_data(const Prepared& p, const Operands<element>& o) {
    return o.dx.rows > 0 ? write_rows(p, o, o.dx) : cudnn::Status{};
  }
  cudnn::Status backward_parameters(const Prepared& p, const Operands<element>& o) {
    float* dw = o.d_parameters[0];
    void* made = made_gradient(o);
    cudnn::Status status;
    if (p.convolution_)
      status = convolve(*p.convolution_, p, o, [&](bool first) {
        if (made == dw) return cudnn::Status{};
        return library_->unpack_filter(static_cast<const element*>(made), dw, *o.node, o.accumulate || !first);
      });
    else if (!o.accumulate) status = library_->fill(dw, 0, cudnn::filter_elements(*o.node) * Index{sizeof(float)});
    if (!status.good() || !o.node->layer.bias) return status;
    return library_->bias_gradient(o.dy, o.d_parameters[1], o.accumulate, o.workspace);
  }
  cudnn::Status clear(const View<element>& y) {
    Operands<element> o;
    o.op = Op::zero;
    o.y = y;
    return library_->run(o);
  }
  std::shared_ptr<Library> library_;
  cudnn::Tuner tuner_;
  BoundedCache<cudnn::Request, Prepared, typename Prepared::InUse> convolutions_;
  bool records_ = true;
  std::string recording_problem_;
  std::vector<element> fetched_{};   ///< rows of the output
  std::vector<float> widened_{};     ///< the same, where elements have two bytes
  Labels labels_{};        ///< of the batch at hand
  bool running_ = false;   ///< losses have not been fetched
  bool broken_ = false;    ///< they are of a run that an error ended
};
/// 32-bit floating point throughout.
using Cudnn = BasicCudnn<Precision::fp32>;
/// Stored as 32-bit floating point, multiplied by tensor cores with 10 bits of mantissa: several times as fast.
using CudnnTf32 = BasicCudnn<Precision::tf32>;
/// Tensors in 16 bits. Of fp16 the range is small: gradients are scaled, and steps skipped in which one overflows.
using CudnnFp16 = BasicCudnn<Precision::fp16>;
using CudnnBf16 = BasicCudnn<Precision::bf16>;
}  // namespace lrcnn
#ifdef LRCNN_PRECOMPILED_CUDNN
#include <lrcnn/precompiled/cudnn.hpp>
#endif
