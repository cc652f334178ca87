#pragma once
// The thin call layer for CUDA: starts loops on a CUDA device (cuda_device.hpp). Convolutions come from graphs.cpp.
//
// nvcc compiles it once for each type of elements (library_fp32.cu, library_fp16.cu, library_bf16.cu), because all loops are different code for each:
// three compilations run side by side, and a project may leave out those whose precisions it does not use (LRCNN_CUDA_PRECISIONS).
#include <lrcnn/backend/cudnn/cuda_device.hpp>
#include <lrcnn/backend/cudnn/loops.hpp>
#include <thrust/execution_policy.h>
#include <algorithm>
#include <array>
namespace lrcnn::cudnn {
template <class T>
class CudaLibrary final : public CudaDevice<Library<T>> {
 public:
  explicit CudaLibrary(const DeviceOptions& options) : CudaDevice<Library<T>>(options) {
    void* sums = nullptr;
    Status status = this->allocate(sums, sizeof(loops::LossSums));
    sums_ = static_cast<loops::LossSums*>(sums);
    if (status.good()) status = started([&](const auto& exec) { loops::reset_sums(exec, sums_); });
    void* key = nullptr;
    if (status.good()) status = this->allocate(key, sizeof(RunKey));
    key_ = static_cast<RunKey*>(key);
    if (status.good()) status = set_run_key(RunKey{});
    if (status.good()) status = make_tallies(0);
    if (!status.good()) {
      release_all();
      throw this->opening_failed(status);
    }
  }
  CudaLibrary(const CudaLibrary&) = delete;
  CudaLibrary& operator=(const CudaLibrary&) = delete;
  ~CudaLibrary() override { release_all(); }
  Status convert(const View<const float>& from, const View<T>& to) override {
    return started([&](const auto& exec) { loops::convert_rows(exec, from, to); });
  }
  Status send_rows(const View<const float>& from, const View<T>& to) override {
    const Index image = from.rows * from.stride_row() * Index{sizeof(float)};   // bytes
    return this->send_batch(from.data, from.n * image, [&](const void* there, cudaMemcpyKind kind) {
      if constexpr (std::is_same_v<T, float>) {
        return copy_pieces(reinterpret_cast<std::byte*>(to.data), to.stride_n * Index{sizeof(T)}, static_cast<const std::byte*>(there), image, image,
                           from.n, kind, this->stream());
      } else {
        View<const float> rows = from;   // where they have landed, or in the host's memory, which the loop can read
        rows.data = static_cast<const float*>(there);
        return started([&](const auto& exec) { loops::convert_rows(exec, rows, to); });
      }
    });
  }
  Status gather(const DirectSource<float>& source, Index first, const View<T>& to) override {
    return this->call([&] {
      if (const Status s = this->may_send("what says which samples a batch has"); !s.good()) return s;
      GatheredBatch there;
      if (const Status s = batches_.find(there, source, this->stream()); !s.good()) return s;
      const Status status = started([&](const auto& exec) { loops::gather_rows(exec, source, there, first, to); });
      const Status kept = batches_.used(source, this->stream());
      return status.good() ? kept : status;
    });
  }
  Status run(const Operands<T>& o) override {
    if (crosses_memories(o.op)) {
      const cudaMemcpyKind kind = o.op == Op::fetch ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
      return this->call([&] { return copy_views(o.x, o.y, kind, this->stream()); });
    }
    Operands<T> there = o;
    if (o.run) there.run = key_;
    there.tallies = tallies();
    return started([&](const auto& exec) { loops::run(exec, there); });
  }
  Status run_together(std::span<const PointwiseStep<T>> steps, const Operands<T>* sums) override {
    return started([&](const auto& exec) {
      if (sums) loops::run_together(exec, steps, *sums, tallies());
      else loops::run_together(exec, steps);
    });
  }
  Index workspace_bytes(const Operands<T>& o) const override { return loops::workspace_bytes(o); }
  Status activate(const View<const T>& x, const T* bias, const Activation* f, const View<T>& y, const View<std::uint8_t>& saved) override {
    return started([&](const auto& exec) { loops::activate<std::remove_cvref_t<decltype(exec)>, T>(exec, x, bias, f, y, saved); });
  }
  Index bias_gradient_bytes(const View<const T>& dy) const override { return loops::bias_gradient_bytes<T>(dy.n, dy.c, dy.rows, dy.w); }
  Status bias_gradient(const View<const T>& dy, float* db, bool accumulate, std::byte* workspace) override {
    return started([&](const auto& exec) { loops::bias_gradient(exec, dy, db, accumulate, workspace, tallies()); });
  }
  Status pack_filters(std::span<const FilterPacking<T>> filters) override {
    const auto list = loops::filters_to_pack<T>(filters);
    return started([&](const auto& exec) { loops::pack_filters<std::remove_cvref_t<decltype(exec)>, T>(exec, list); });
  }
  Status unpack_filters(std::span<const FilterUnpacking<T>> filters) override {
    const auto list = loops::filters_to_unpack<T>(filters);
    return started([&](const auto& exec) { loops::unpack_filters<std::remove_cvref_t<decltype(exec)>, T>(exec, list); });
  }
  Status try_out(std::string& fault, Convolution& convolution, const Problem& problem, const TrialMemory<T>& memory) override {
    if (const Status s = this->grow(scratch_, loops::trial_bytes); !s.good()) return s;
    auto* const errors = static_cast<double*>(scratch_.memory);
    if (const Status s = started([&](const auto& exec) { loops::draw_operands(exec, problem, memory); }); !s.good()) return s;
    if (fault = convolution.run(memory.x, memory.y, memory.w, memory.bias, memory.workspace).text; !fault.empty()) return wait();
    if (const Status s = started([&](const auto& exec) { loops::compare_samples(exec, problem, memory, errors); }); !s.good()) return s;
    std::array<double, loops::trial_samples> made{};
    if (const Status s = this->read(made.data(), errors, loops::trial_bytes); !s.good()) return s;
    if (*std::max_element(made.begin(), made.end()) > 1) fault = loops::wrong_numbers;
    return {};
  }
  Status labels(const Labels& labels) override {
    if (labels.on_device()) {
      device_labels_ = labels.data();
      pixel_labels_ = loops::pixel_labels(labels, device_labels_, nullptr);
      return {};
    }
    if (const Status s = this->call([&] { return this->may_send("labels"); }); !s.good()) return s;
    const Status made_ready = this->grow(labels_, labels.most_elements() * Index{sizeof(std::int32_t)});
    if (!made_ready.good() || labels.rows()) return made_ready;
    device_labels_ = static_cast<const std::int32_t*>(labels_.memory);
    const bool targets = labels.kind() == LabelKind::targets;
    pixel_labels_ = loops::pixel_labels(labels, targets ? nullptr : device_labels_, targets ? static_cast<const float*>(labels_.memory) : nullptr);
    const void* from = targets ? static_cast<const void*>(labels.target_data()) : labels.data();
    return this->send_staged("labels", labels_.memory, from, labels.elements() * Index{sizeof(std::int32_t)});
  }
  Status set_run_key(const RunKey& key) override { return this->send_staged("the number that dropouts draw from", key_, &key, sizeof(RunKey)); }
  Status cross_entropy(const View<const T>& logits, Index first, const View<T>& dx, double scale) override {
    if (const Status s = this->grow(scratch_, loops::loss_bytes(logits.n, logits.c)); !s.good()) return s;
    return started([&](const auto& exec) {
      loops::softmax_cross_entropy(exec, logits, device_labels_ + first, dx, scale, sums_, static_cast<std::byte*>(scratch_.memory));
    });
  }
  Status pixel_loss(const DeviceLoss& loss, const View<const T>& logits, Index first, const View<T>& dx, double scale, bool counts) override {
    if (const Status s = this->grow(scratch_, loops::pixel_loss_bytes); !s.good()) return s;
    return started([&](const auto& exec) {
      auto* workspace = static_cast<std::byte*>(scratch_.memory);
      loops::pixel_loss(exec, loss, logits, pixel_labels_, first, dx, scale, counts ? sums_ : nullptr, workspace);
    });
  }
  Status custom_loss(const CustomLoss<T>& loss, const View<const T>& logits, Index first, const View<T>& dx, double scale, bool counts) override {
    if (const Status s = this->grow(scratch_, loops::pixel_loss_bytes); !s.good()) return s;
    return started([&](const auto& exec) {
      loops::loss_by_strips(exec, logits, pixel_labels_, first, dx, scale, counts ? sums_ : nullptr, static_cast<std::byte*>(scratch_.memory),
                            [&](const loops::LossStrip<T>& strip) { loss(strip, this->stream()); });
    });
  }
  Status select(Index stream) override {
    return this->call([&] {
      if (const Status s = CudaDevice<Library<T>>::select(stream); !s.good()) return s;
      return make_tallies(stream);
    });
  }
  /// Whatever has become of loops before: when nothing runs any more, blocks are counted from 0.
  Status wait() override {
    return this->call([&] {
      Status s = CudaDevice<Library<T>>::wait();
      batches_.forget();   // what has not been read by now never will be
      for (void* counts : tallies_)
        if (s.good()) s = clear_tallies(counts);
      return s.good() ? CudaDevice<Library<T>>::wait() : s;
    });
  }
  Status fetch(Sums& sums) override {
    loops::LossSums read_sums;
    if (const Status s = this->read(&read_sums, sums_, sizeof(loops::LossSums)); !s.good()) return s;
    if (const Status s = this->call([&] { return batches_.forget_read(); }); !s.good()) return s;
    sums = {loops::result_of(read_sums), loops::whole_images(read_sums), read_sums.invalid_labels};
    return started([&](const auto& exec) { loops::reset_sums(exec, sums_); });
  }
  Status finite(const View<const T>& view, bool& result) override {
    return verdict(result, [&](const auto& exec, int* flag) { loops::all_finite(exec, view, flag); });
  }
  Status all_finite(const float* elements, Index count, bool& result) override {
    return verdict(result, [&](const auto& exec, int* flag) { loops::all_finite(exec, elements, count, flag); });
  }
  Status sum_of_squares(const float* elements, Index count, double& result) override {
    if (const Status s = this->grow(scratch_, loops::squares_bytes); !s.good()) return s;
    auto* sums = static_cast<double*>(scratch_.memory);
    if (const Status s = started([&](const auto& exec) { loops::sum_of_squares(exec, elements, count, sums); }); !s.good()) return s;
    return this->read(&result, sums, sizeof(double));
  }
  Status update(const SgdUpdate<float>& f, float* w, const float* g, Index count) override { return update_all(f, w, g, nullptr, nullptr, count); }
  Status update(const MomentumUpdate<float>& f, float* w, const float* g, float* v, Index count) override {
    return update_all(f, w, g, v, nullptr, count);
  }
  Status update(const AdamWUpdate<float>& f, float* w, const float* g, float* m, float* v, Index count) override {
    return update_all(f, w, g, m, v, count);
  }

 private:
  using Piece = typename CudaDevice<Library<T>>::Piece;
  /// Starts loops on the stream. Thrust throws what a launch comes to. An error that the program has left in the runtime is not the launch's.
  template <class F>
  Status started(F f) {
    return this->call([&] {
      cudaGetLastError();
      f(thrust::cuda::par_nosync.on(this->stream()));
      return status_of(cudaPeekAtLastError());
    });
  }
  template <class Update>
  Status update_all(const Update& f, float* w, const float* g, float* s0, float* s1, Index count) {
    return started([&](const auto& exec) { loops::update_elements(exec, f, w, g, s0, s1, count, &sums_->finite); });
  }
  /// Starts loops that clear a flag, and waits for it.
  template <class F>
  Status verdict(bool& result, F f) {
    if (const Status s = this->grow(scratch_, 256); !s.good()) return s;
    auto* flag = static_cast<int*>(scratch_.memory);
    int all = 1;
    if (const Status s = this->write(flag, &all, sizeof(int)); !s.good()) return s;
    if (const Status s = started([&](const auto& exec) { f(exec, flag); }); !s.good()) return s;
    const Status s = this->read(&all, flag, sizeof(int));
    result = all != 0;
    return s;
  }
  /// Of the selected stream.
  std::uint32_t* tallies() const { return static_cast<std::uint32_t*>(item(tallies_, selected_)); }
  Status clear_tallies(void* counts) { return this->fill(counts, 0, loops::most_tallies * Index{sizeof(std::uint32_t)}); }
  /// Loops of different streams may run at the same time: each stream that was ever selected has tallies of its own. New ones are cleared by the
  /// selected stream, and others may use them as soon as this returns.
  Status make_tallies(Index stream) {
    selected_ = stream;
    if (static_cast<Index>(tallies_.size()) > stream) return {};
    while (static_cast<Index>(tallies_.size()) <= stream) {
      void* made = nullptr;
      if (const Status s = this->allocate(made, loops::most_tallies * Index{sizeof(std::uint32_t)}); !s.good()) return s;
      if (const Status s = clear_tallies(made); !s.good()) return this->release(made), s;
      tallies_.push_back(made);
    }
    return CudaDevice<Library<T>>::wait();
  }
  void release_all() noexcept {
    const CurrentDevice current(this->device());
    const BesideCaptures beside;
    batches_.close();
    for (void* memory : tallies_) this->release(memory);
    for (void* memory : {static_cast<void*>(sums_), static_cast<void*>(key_), labels_.memory, scratch_.memory})
      if (memory) this->release(memory);
  }
  GatheredBatches batches_{[this](void*& memory, Index bytes) { return this->allocate(memory, bytes); },
                           [this](void* memory) { this->release(memory); }};
  Piece labels_{};    ///< of a batch that came from the host
  Piece scratch_{};   ///< what the loss keeps for each image; a verdict
  const std::int32_t* device_labels_ = nullptr;
  loops::PixelLabels pixel_labels_{};
  loops::LossSums* sums_ = nullptr;
  RunKey* key_ = nullptr;
  std::vector<void*> tallies_{};   ///< of each stream
  Index selected_ = 0;
};
template <class T>
std::shared_ptr<Library<T>> open_library(const DeviceOptions& options) {
  return std::make_shared<CudaLibrary<T>>(options);
}
}   // namespace lrcnn::cudnn
