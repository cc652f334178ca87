#pragma once
// What the CUDA backend does beside steps: a base class of it, as HostBackend is of the backends whose memory is the host's.
//
// It answers everything else that the executor and the trainer ask: memory of the device, the rows of a batch, labels and the loss, the
// update. Losses add up on the device; finish() fetches them. After an error within a run, the next start() drops what that run has added.
#include <lrcnn/backend/cudnn/source.hpp>
#include <lrcnn/core/machine.hpp>
#include <lrcnn/data/read_on_threads.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
namespace lrcnn::cudnn {
/// T: what tensors are stored as. Parameters, gradients and batches are floats.
template <class T>
class DeviceBackend {
 public:
  using element = T;
  using Library = cudnn::Library<element>;
  using Memory = cudnn::Memory;
  template <class E>
  using Buffer = cudnn::Buffer<E>;
  static constexpr bool on_host = false;
  int threads() const { return 1; }
  /// What runs, in a line: device, library.
  std::string describe() const {
    DeviceInfo info;
    if (const Status status = library_->info(info); !status.good()) return "a device that does not answer (" + status.text + ")";
    return info.name + ", cuDNN " + version_text(info.cudnn_version);
  }
  Library& library() const { return *library_; }
  const std::shared_ptr<Library>& shared_library() const { return library_; }

  // ---- memory ------------------------------------------------------------------------------------------------------
  Memory allocate(Index bytes, const std::string& who) const { return Memory(library_, bytes, who); }
  /// Gives a plan's memory so many bytes of the host's, for offloaded tensors. Errors: MemoryError naming `who` if there is no room.
  void offload_to(Memory& memory, Index bytes, const std::string& who) const {
    memory.set_offloaded({});   // before as much again is taken
    memory.set_offloaded(PinnedMemory(library_, bytes, who));
  }
  /// Bytes of the device's memory that can be taken now; 0 if it does not say.
  Index free_bytes() const {
    DeviceInfo info;
    return library_->info(info).good() ? info.free_bytes : 0;
  }
  /// DeviceOptions::ahead_bytes; 0 if the device does not say.
  Index ahead_limit() const {
    DeviceInfo info;
    return library_->info(info).good() ? info.ahead_bytes : 0;
  }
  /// Bytes of the device's memory, at most, that a network's batches and labels take beside the plan's: where two batches, and their labels, wait
  /// for their steps, under such a limit, and where the step finds its labels. `label_elements`: of a batch; 0 if there are none.
  static Index ahead_bytes(const Table& table, Index limit, Index label_elements) {
    const auto bytes = [](Index elements) { return round_up(elements * Index{4}, Index{4096}); };
    return std::min(limit, 2 * bytes(table.input.count())) + std::min(limit / 4, 2 * bytes(label_elements)) + bytes(label_elements);
  }
  template <class E>
  Buffer<E> buffer(Index count) const {
    const Index bytes = count * Index{sizeof(E)};
    Memory memory(library_, bytes, "a buffer of parameters or gradients");
    if (bytes > 0) check(library_->fill(memory.data(), 0, bytes), "clearing memory of the device");
    return Buffer<E>(std::move(memory), count);
  }
  /// Every byte 0xFF, which is NaN in every format. Executors do so before engines are tried in their memory: one that reads beside its operands
  /// must not find zeros there, which would do for padding.
  void fill_with_nans(const Memory& memory) const { check(library_->fill(memory.data(), 0xFF, memory.bytes()), "filling memory of the device"); }
  template <class E>
  void write(E* to, std::type_identity_t<std::span<const E>> from) const {
    if (!from.empty()) check(library_->write(to, from.data(), static_cast<Index>(from.size_bytes())), "copying to the device");
  }
  template <class E>
  void read(std::span<E> to, const E* from) const {
    if (!to.empty()) check(library_->read(to.data(), from, static_cast<Index>(to.size_bytes())), "copying from the device");
  }

  // ---- the ends of a run -------------------------------------------------------------------------------------------
  /// Of the run that comes next; for networks with dropouts.
  void set_run_key(const RunKey& key) { check(library_->set_run_key(key), "copying a run's number to the device"); }
  /// A run begins. The labels are copied to the device, unless they are there; those that come by rows are copied when their loss does.
  void start(const Labels& labels) {
    if (std::exchange(broken_, false)) {
      Sums rest;
      check(library_->select(0), "changing to the first stream");
      check(library_->wait(), "waiting for the device");
      check(library_->fetch(rest), "fetching the loss");
    }
    check(library_->labels(labels), "copying labels to the device");
    running_ = true;
    labels_ = labels;
  }
  /// Orders the steps that are started from now on behind what a CUDA stream of the program (cudaStream_t; null: the default one of the
  /// backend's device) has now: a kernel there may still write the batch, or the labels, that a step is started on. Nobody waits.
  void order_behind(void* stream) const { check(library_->order_behind(stream), "ordering steps behind a stream of the program"); }
  /// Orders what comes to that stream from now on behind the steps that were started: it may then write over their batches and labels.
  void order_before(void* stream) const { check(library_->order_before(stream), "ordering a stream of the program behind steps"); }
  /// Rows of a DeviceSource are copied on the device; those of a DirectSource whose array has an address there are gathered by it; all others
  /// are read into pinned memory, as floats, and sent; many rows by several threads, if the source may be read by several.
  /// Errors:  BackendError if an array lies in the memory of another device
  void load(const RowSource<float>& source, Index first_image, const View<element>& y) {
    if (const auto* there = dynamic_cast<const DeviceSource*>(&source))
      return check(library_->convert(there->images(first_image, y.n).slice(y.range()), y), "copying a batch's rows");
    const auto* direct = dynamic_cast<const DirectSource<float>*>(&source);
    if (direct && direct->array().on_device()) {
      check_device(direct->array());
      return check(library_->gather(*direct, first_image, y), "gathering a batch's rows from the host's memory");
    }
    void* memory = nullptr;
    check(library_->staging(memory, y.n * y.rows * y.stride_row() * Index{sizeof(float)}), "taking pinned memory for a batch's rows");
    const View<float> rows = dense_view(static_cast<float*>(memory), y.n, y.c, y.range(), y.w, y.block);
    read_on_threads(source, first_image, rows, reading_threads_);
    check(library_->send_rows(rows, y), "copying a batch's rows to the device");
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
    check(library_->finite(view, result), "looking for values that are not finite");
    return result;
  }
  /// Whether `count` numbers in a row are.
  bool all_finite(const float* elements, Index count) const {
    bool result = false;
    check(library_->all_finite(elements, count, result), "looking for gradients that are not finite");
    return result;
  }
  /// Cross entropy, of images and of pixels, the other losses that device_loss() knows, and those of the program's own that it has compiled, on the
  /// device. Any other runs on the host, on a copy of the logits, and is waited for. `counts`: it is added to the run's.
  template <class L>
  void loss(const L& loss, Index first, const View<const element>& logits, const View<element>& dx, double scale, LossResult& result,
            bool counts = true) {
    if constexpr (std::is_same_v<L, SoftmaxCrossEntropy>) {
      check(library_->cross_entropy(logits, first, dx, scale), "the loss");
    } else if constexpr (CompiledLoss<L>) {
      if (labels_.rows()) send_rows(loss, logits.c);
      check(library_->custom_loss(custom_loss<element>(loss.functor), logits, first, dx, scale, counts), "the loss '" + std::string(L::name) + "'");
    } else if constexpr (DenseLoss<L, element>) {
      if (const auto known = device_loss(loss)) {
        if (labels_.rows()) send_rows(loss, logits.c);
        return check(library_->pixel_loss(*known, logits, first, dx, scale, counts), "the loss");
      }
      loss_on_host(logits, dx, [&](const auto& x, const auto& d) { loss(x, labels_, first, d, scale, result); });
    } else {
      const std::vector<std::int32_t> labels = host_labels(first, logits.n, logits.c);
      loss_on_host(logits, dx, [&](const auto& x, const auto& d) { loss(x, std::span<const std::int32_t>(labels), d, scale, result); });
    }
  }
  /// Errors:  DataError if labels on the device were no classes. The result's sum is not finite then, and its count tells which steps count
  void finish(LossResult& result) {
    if (!std::exchange(running_, false)) return;
    Sums sums;
    broken_ = true;
    check(library_->fetch(sums), "the step");
    broken_ = false;
    result.sum += sums.loss.sum, result.correct += sums.loss.correct;
    result.count += std::isfinite(sums.loss.sum) ? sums.loss.count : sums.images;   // the latter tells which steps count
    if (sums.invalid_labels > 0)
      throw DataError(error_text(std::to_string(sums.invalid_labels) + " labels on the device are outside the network's classes",
                                 "labels are 0 .. classes - 1; parameters were not changed by these steps",
                                 "correct the labels, or widen the last layer"));
  }
  /// After an error within a run: what it has added to the losses goes.
  void cancel() {
    running_ = false, broken_ = true;
    static_cast<void>(library_->select(0));
  }
  /// Of parameter gradients, in an order that is always the same. Waits.
  double sum_of_squares(const float* elements, Index count) const {
    double result = 0;
    check(library_->sum_of_squares(elements, count, result), "the norm of gradients");
    return result;
  }
  template <class Update>
  void update(const Update& functor, float* w, const float* g, float* s0, float* s1, Index count) {
    Status status;
    if constexpr (Update::states == 0) status = library_->update(functor, w, g, count);
    else if constexpr (Update::states == 1) status = library_->update(functor, w, g, s0, count);
    else status = library_->update(functor, w, g, s0, s1, count);
    check(status, "the update");
  }

 protected:
  explicit DeviceBackend(std::shared_ptr<Library> library) : library_(std::move(library)) {}
  std::shared_ptr<Library> library_;

 private:
  /// The library keeps arrays that it gathers from, and their memory may keep the library: it lets go of them when a backend goes.
  struct LastWait {
    std::shared_ptr<Library> library;
    explicit LastWait(std::shared_ptr<Library> l) : library(std::move(l)) {}
    LastWait(const LastWait&) = default;
    LastWait(LastWait&&) noexcept = default;
    LastWait& operator=(LastWait other) noexcept { return std::swap(library, other.library), *this; }
    ~LastWait() {
      if (library) static_cast<void>(library->wait());
    }
  };
  LastWait last_wait_{library_};
  /// The labels that are in memory now, of labels by rows, for the loss that comes next.
  template <class L>
  void send_rows(const L& loss, Index channels) {
    const Labels& part = labels_.in_memory();
    if constexpr (requires { loss.check_again(part, channels, Range{}, Range{}); })
      loss.check_again(part, channels, part.held_images(), part.held_rows());
    check(library_->labels(part), "copying labels to the device");
  }
  void check_device(const SampleArray& array) {
    if (array.device() == SampleArray::any_device) return;
    if (!device_) {
      HostAccess access;
      check(library_->host_access(access), "asking for the device's number");
      device_ = access.device;
    }
    if (array.device() != *device_)
      throw BackendError(error_text("an array of " + array.describe() + " lies in the memory of device " + std::to_string(array.device()) +
                                        ", and the step runs on device " + std::to_string(*device_),
                                    "a device reads its own memory, and the host's", "place the array with this backend, or in pinned memory"));
  }
  /// Calls f with a copy of the logits, and memory for their gradient, which is sent back.
  template <class F>
  void loss_on_host(const View<const element>& logits, const View<element>& dx, F f) {
    const Index image = logits.rows * logits.stride_row();
    std::vector<element> host(static_cast<std::size_t>(logits.n * image)), gradient(dx.data ? host.size() : 0);
    const auto piece = [&](std::vector<element>& all, Index i) {
      return std::span<element>(all).subspan(static_cast<std::size_t>(i * image), static_cast<std::size_t>(image));
    };
    const auto over = [&](std::vector<element>& all) { return dense_view(all.data(), logits.n, logits.c, logits.range(), logits.w, logits.block); };
    for (Index i = 0; i < logits.n; ++i) read(piece(host, i), logits.data + i * logits.stride_n);
    f(View<const element>(over(host)), dx.data ? over(gradient) : View<element>{});
    for (Index i = 0; dx.data && i < dx.n; ++i) write(dx.data + i * dx.stride_n, std::span<const element>(piece(gradient, i)));
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
  int reading_threads_ = std::min(processor_count(), 16);   ///< more wait for memory, or for each other to start
  std::vector<element> fetched_{};                          ///< rows of the output
  std::vector<float> widened_{};                            ///< the same, where elements have two bytes
  std::optional<int> device_{};                             ///< number of the library's device, once it was asked for
  Labels labels_{};                                         ///< of the batch at hand
  bool running_ = false;                                    ///< losses have not been fetched
  bool broken_ = false;                                     ///< they are of a run that an error ended
};
}   // namespace lrcnn::cudnn
