#pragma once
// What all backends have in common whose memory is the host's: a base class of theirs.
//
// It answers everything that the executor and the trainer ask of a backend beside steps: memory, the rows of a batch,
// the loss, the update. A device's backend answers the same questions in its own memory.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/host/threads.hpp>
#include <lrcnn/backend/update.hpp>
#include <lrcnn/core/machine.hpp>
#include <lrcnn/core/memory.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <cmath>
#include <cstring>
#include <vector>
namespace lrcnn {
/// Of elements of two bytes parameters, gradients and batches are floats.
template <class T>
class HostBackend {
 public:
  using element = T;
  using Memory = Arena;
  template <class E>
  using Buffer = std::vector<E>;
  static constexpr bool on_host = true;
  /// Threads that the backend may use, at least one.
  int threads() const { return threads_; }
  /// What runs, in a line. A backend with more than plain loops says so in a function of its own.
  std::string describe() const {
    return processor_name() + ", plain loops in " + element_name() + ", " + std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads");
  }
  /// Memory for a plan's arena. Errors: PlanError naming `who` if there is not enough.
  Memory allocate(Index bytes, const std::string& who) const { return Arena(bytes, who); }
  /// Gives a plan's memory so many bytes for offloaded tensors, in a file (core/scratch_memory.hpp). Errors: MemoryError naming `who` if there is no
  /// room for it.
  void offload_to(Memory& memory, Index bytes, const std::string& who) const {
    memory.set_offloaded({});   // before as much again is taken
    memory.set_offloaded(ScratchMemory(bytes, who));
  }
  /// Every byte 0xFF, which is NaN in every format.
  void fill_with_nans(const Memory& memory) const {
    std::memset(memory.data(), 0xFF, static_cast<std::size_t>(memory.bytes()));
    const ScratchMemory& file = memory.offloaded();
    const Index piece = std::min<Index>(file.bytes(), 1_MiB);
    const std::vector<std::byte> nans(static_cast<std::size_t>(piece), std::byte{0xFF});
    for (Index done = 0; done < file.bytes(); done += piece) file.write(file.data() + done, nans.data(), std::min(piece, file.bytes() - done));
  }
  /// Elements that are zero.
  template <class E>
  Buffer<E> buffer(Index count) const {
    return std::vector<E>(static_cast<std::size_t>(count), E{0});
  }
  template <class E>
  void write(E* to, std::span<const E> from) const {
    std::copy(from.begin(), from.end(), to);
  }
  template <class E>
  void read(std::span<E> to, const E* from) const {
    std::copy_n(from, to.size(), to.begin());
  }
  /// Rows of the source into a slab. Padded channels are part of its storage, and the memory may have held anything.
  /// Cost:    elements of two bytes pass through a buffer of 256 KiB, or of a row, that is taken once
  void load(const RowSource<master_t<T>>& source, Index first_image, const View<T>& y) {
    if (y.c % y.block != 0)
      for (Index i = 0; i < y.n; ++i)
        for (Index row = y.row0; row < y.row0 + y.rows; ++row)
          std::memset(y.row(i, y.blocks() - 1, row), 0, static_cast<std::size_t>(y.stride_row()) * sizeof(T));
    if constexpr (std::is_same_v<T, master_t<T>>) source.read(first_image, y);
    else load_rounded(source, first_image, y);
  }
  /// Rows of the network's output to a sink, where they lie; elements of two bytes in the buffer that load() has.
  void store(RowSink<master_t<T>>& sink, Index first_image, const View<const T>& x) {
    if constexpr (std::is_same_v<T, master_t<T>>) sink.write(first_image, x);
    else store_widened(sink, first_image, x);
  }
  /// Whether every stored element is finite.
  bool finite(const View<const T>& v) const {
    for (Index i = 0; i < v.n; ++i)
      for (Index b = 0; b < v.blocks(); ++b)
        for (Index row = v.row0; row < v.row0 + v.rows; ++row)
          for (const T* e = v.row(i, b, row); e != v.row(i, b, row) + v.stride_row(); ++e)
            if (!std::isfinite(static_cast<double>(*e))) return false;
    return true;
  }
  /// Errors: DataError if the labels are a device's.
  void start(const Labels& labels) {
    if (labels.on_device())
      throw DataError(error_text("labels in the memory of a device are given to a backend on the host", "only the backend of that device reads them",
                                 "give labels that the host can read, or use Cudnn"));
    labels_ = labels;
  }
  /// The loss of images [first, first + logits.n) of the run; of the rows that are given, if it is one over pixels. What does not count for
  /// the run has a result of its own.
  template <class L>
  void loss(const L& loss, Index first, const View<const T>& logits, const View<T>& dx, double scale, LossResult& result, bool = true) {
    if constexpr (RowLocalLoss<L, T>) return loss_of_rows(loss, first, logits, dx, scale, result);
    else if constexpr (WholeMapLoss<L, T>) return loss_of_maps(loss, first, logits, dx, scale, result);
    else loss(logits, labels_.on_host().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(logits.n)), dx, scale, result);
  }
  void finish(LossResult&) const {}
  void cancel() const {}
  template <class Update>
  void update(const Update& update, master_t<T>* w, const master_t<T>* g, master_t<T>* s0, master_t<T>* s1, Index count) const {
    host::update_elements(update, w, g, s0, s1, count, threads_);
  }
  double sum_of_squares(const master_t<T>* elements, Index count) const { return host::sum_of_squares(elements, count, threads_); }

 protected:
  /// `threads`: 0 for as many as there are processors (host/threads.hpp).
  /// Errors:  BackendError if the number is negative or absurd
  explicit HostBackend(int threads) : threads_(host::thread_count(threads)) { host::start_threads(threads_); }

 private:
  static std::string element_name() {
    if constexpr (std::is_same_v<T, float>) return "float";
    else if constexpr (std::is_same_v<T, double>) return "double";
    else if constexpr (std::is_same_v<T, bfloat16>) return "bfloat16";
    else return "elements of " + std::to_string(sizeof(T)) + " bytes";
  }
  static constexpr Index exponentials = 16;   ///< work for an element of a loss, in elements that are only copied
  /// Row by row on all threads; what rows come to is added in their order, however many threads there are.
  template <class L>
  void loss_of_rows(const L& loss, Index first, const View<const T>& logits, const View<T>& dx, double scale, LossResult& result) {
    const Index count = logits.n * logits.rows;
    row_results_.assign(static_cast<std::size_t>(count), LossResult{});   // the memory stays
    const auto row_of = [&](auto view, Index i, Index row) {
      view.data += i * view.stride_n, view.n = 1;
      return view.slice({row, row + 1});
    };
    const Index work = count * logits.blocks() * logits.stride_row() * exponentials;
    host::parallel_for_any(count, host::useful_threads(work, threads_), [&](Index piece) {
      const Index i = piece / logits.rows, row = logits.row0 + piece % logits.rows;
      loss(row_of(logits, i, row), labels_, first + i, dx.data ? row_of(dx, i, row) : View<T>{}, scale, item(row_results_, piece));
    });
    for (Index piece = 0; piece < count; ++piece) result += item(row_results_, piece);
  }
  /// Image by image on all threads; what they come to is added in their order.
  template <class L>
  void loss_of_maps(const L& loss, Index first, const View<const T>& logits, const View<T>& dx, double scale, LossResult& result) {
    row_results_.assign(static_cast<std::size_t>(logits.n), LossResult{});
    const auto image_of = [](auto view, Index i) {
      view.data += i * view.stride_n, view.n = 1;
      return view;
    };
    const Index work = logits.n * logits.blocks() * logits.rows * logits.stride_row() * exponentials;
    host::parallel_for_any(logits.n, host::useful_threads(work, threads_), [&](Index i) {
      const View<T> down = dx.data ? image_of(dx, i) : View<T>{};
      loss(image_of(logits, i), labels_, first + i, down, scale, item(row_results_, i));
    });
    for (const LossResult& own : row_results_) result += own;
  }
  /// Some rows of an image at a time.
  void load_rounded(const RowSource<master_t<T>>& source, Index first_image, const View<T>& y) {
    const Index fit = rows_at_once(y);
    for (Index i = 0; i < y.n; ++i)
      for (Index first = y.row0; first < y.row0 + y.rows; first += fit) {
        const Range rows{first, std::min(first + fit, y.row0 + y.rows)};
        const auto read = dense_view(rows_.data(), 1, y.c, rows, y.w, y.block);
        source.read(first_image + i, read);
        for (Index c = 0; c < y.c; ++c)
          for (Index at = rows.begin; at < rows.end; ++at) {
            const master_t<T>* from = read.row(0, c / y.block, at) + c % y.block;
            T* to = y.row(i, c / y.block, at) + c % y.block;
            for (Index x = 0; x < y.w; ++x) to[x * y.block] = static_cast<T>(from[x * y.block]);
          }
      }
  }
  /// Likewise on the way out.
  void store_widened(RowSink<master_t<T>>& sink, Index first_image, const View<const T>& x) {
    const Index fit = rows_at_once(x);
    for (Index i = 0; i < x.n; ++i)
      for (Index first = x.row0; first < x.row0 + x.rows; first += fit) {
        const Range rows{first, std::min(first + fit, x.row0 + x.rows)};
        const auto wide = dense_view(rows_.data(), 1, x.c, rows, x.w, x.block);
        for (Index b = 0; b < x.blocks(); ++b)
          for (Index at = rows.begin; at < rows.end; ++at)
            std::transform(x.row(i, b, at), x.row(i, b, at) + x.stride_row(), wide.row(0, b, at), [](T e) { return static_cast<master_t<T>>(e); });
        sink.write(first_image + i, wide);
      }
  }
  /// Rows of an image that the buffer takes, which is made large enough for them.
  template <class E>
  Index rows_at_once(const View<E>& v) {
    const Index row = v.blocks() * v.stride_row(), fit = std::min(std::max<Index>((Index{1} << 16) / row, 1), v.rows);
    rows_.resize(std::max(rows_.size(), static_cast<std::size_t>(fit * row)));
    return fit;
  }
  int threads_;
  Labels labels_{};                         ///< of the run
  std::vector<LossResult> row_results_{};   ///< of a loss over pixels, of rows or of images
  std::vector<master_t<T>> rows_{};         ///< of a batch, before they are rounded; of the output, as they leave
};
}   // namespace lrcnn
