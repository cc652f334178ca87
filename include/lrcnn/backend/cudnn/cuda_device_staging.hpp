#pragma once
// What batches, labels and keys pass through on their way to a CUDA device: page-locked memory of the host, and memory of the device where they wait
// for their step.
#include <lrcnn/backend/cudnn/cuda_device_calls.hpp>
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <utility>
namespace lrcnn::cudnn {
/// Why nothing can be sent to a stream from the host: the program captures it, and each start of its graph would copy again, from memory that has
/// something else in it by then. Good if it does not. `what`: "labels"
inline Status sending_fault(const char* what, cudaStream_t stream) {
  bool captured = false;
  if (const Status s = find_capture(captured, stream); !s.good() || !captured) return s;
  return {"the program captures the stream of the step, and " + std::string(what) +
          " would be sent from the host, which a graph cannot do again; within a capture of the program's own, give batches in the device's memory "
          "(cudnn::DeviceSource) and labels there (Labels::on_device), and use no dropouts"};
}
/// Pieces that the host fills and the device reads some time later. A piece is handed out again when the device has read it. While it has not,
/// further pieces are made, up to a limit; only there the host waits. Each call needs the device to be current.
class PinnedPieces {
 public:
  explicit PinnedPieces(Index most_bytes) : most_bytes_(most_bytes) {}
  PinnedPieces(const PinnedPieces&) = delete;
  PinnedPieces& operator=(const PinnedPieces&) = delete;
  /// Memory that is free to be written, until the next call of take() unless sent() comes before.
  Status take(void*& memory, Index bytes) {
    const Index wanted = round_up(std::max<Index>(bytes, 1), granule);
    for (;;) {
      if (const Status s = note_read(false); !s.good()) return s;
      Piece* best = nullptr;
      for (Piece& piece : pieces_)
        if (!piece.in_flight && piece.bytes >= wanted && piece.bytes / 4 <= wanted && (!best || piece.bytes < best->bytes)) best = &piece;
      if (best) return memory = best->memory, Status{};
      while (total_ + wanted > most_bytes_ && drop_free()) continue;
      const bool waits = total_ + wanted > most_bytes_ && !pieces_.empty();   // all of them are in flight
      if (const Status s = waits ? note_read(true) : make(wanted); !s.good()) {
        if (waits || pieces_.empty()) return s;
        most_bytes_ = total_;   // the host has no more of it
      }
    }
  }
  /// Work on `stream` that reads memory from take() has been started.
  Status sent(const void* memory, cudaStream_t stream) {
    const auto piece = std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return p.memory == memory; });
    if (piece == pieces_.end()) return {};
    const Status status = status_of(cudaEventRecord(piece->read, stream));
    if (!status.good()) ignored(cudaStreamSynchronize(stream));   // nothing else says when it has been read
    piece->in_flight = status.good();
    std::rotate(piece, piece + 1, pieces_.end());
    return status;
  }
  /// Gives everything back. Pre: the device has read it.
  void close() noexcept {
    for (const Piece& piece : pieces_) give_back(piece);
    pieces_.clear();
    total_ = 0;
  }

 private:
  static constexpr Index granule = 4096;
  struct Piece {
    void* memory = nullptr;
    Index bytes = 0;
    cudaEvent_t read = nullptr;   ///< behind the last work that reads it
    bool in_flight = false;
  };
  /// Notes which pieces have been read, the oldest first. `waits`: for the oldest one.
  Status note_read(bool waits) {
    for (Piece& piece : pieces_) {
      if (!piece.in_flight) continue;
      const cudaError_t error = state_of(piece.read, std::exchange(waits, false));
      if (error == cudaErrorNotReady) return {};
      if (const Status s = status_of(error); !s.good()) return s;
      piece.in_flight = false;
    }
    return {};
  }
  /// Gives one piece back that is not in flight; false if there is none.
  bool drop_free() noexcept {
    const auto piece = std::find_if(pieces_.begin(), pieces_.end(), [](const Piece& p) { return !p.in_flight; });
    if (piece == pieces_.end()) return false;
    total_ -= piece->bytes;
    give_back(*piece);
    pieces_.erase(piece);
    return true;
  }
  Status make(Index bytes) {
    Piece piece{.bytes = bytes};
    Status status = status_of(cudaHostAlloc(&piece.memory, static_cast<std::size_t>(bytes), cudaHostAllocPortable | cudaHostAllocMapped));
    if (status.good()) status = status_of(cudaEventCreateWithFlags(&piece.read, cudaEventDisableTiming));
    if (!status.good()) return give_back(piece), status;
    pieces_.push_front(piece);
    total_ += bytes;
    return {};
  }
  static void give_back(const Piece& piece) noexcept {
    if (piece.read) ignored(cudaEventDestroy(piece.read));
    if (piece.memory) ignored(cudaFreeHost(piece.memory));
  }
  std::deque<Piece> pieces_{};   ///< those sent last are at the end
  Index total_ = 0, most_bytes_;
};
/// Memory of the device that the host's memory is copied to before the step comes to it, on a stream of copies alone. There are two pieces in turn:
/// one is filled while the other is read. Streams wait for each other's events, the host for neither. Each call needs the device to be current.
class Landing {
 public:
  /// `most_bytes`: of both pieces; `allocate` and `release`: memory of the device; release waits for all streams.
  Landing(Index most_bytes, std::function<Status(void*&, Index)> allocate, std::function<void(void*)> release)
      : most_bytes_(most_bytes), allocate_(std::move(allocate)), release_(std::move(release)) {}
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;
  /// Memory for a copy that comes next to the stream `copies`, which waits until it has been read before; new memory, until what `stream` had to do
  /// is done, since an allocator may hand out what that work uses. Null if that is too much, or the device has no more of it.
  Status begin(void*& there, Index bytes, cudaStream_t copies, cudaStream_t stream) {
    there = nullptr;
    Piece& piece = pieces_[next_];
    if (2 * round_up(bytes, granule) > most_bytes_) return {};
    if (piece.bytes < bytes && !make(piece, round_up(bytes, granule), stream).good()) return give_up(), Status{};
    if (piece.in_use)
      if (const Status s = status_of(cudaStreamWaitEvent(copies, piece.read, 0)); !s.good()) return s;
    there = piece.memory;
    return {};
  }
  /// The copy has been started: what comes to `stream` waits for it.
  Status landed(cudaStream_t copies, cudaStream_t stream) {
    const cudaEvent_t there = pieces_[next_].there;
    if (const Status s = status_of(cudaEventRecord(there, copies)); !s.good()) return s;
    return status_of(cudaStreamWaitEvent(stream, there, 0));
  }
  /// Work on `stream` that reads the piece has been started.
  Status read(cudaStream_t stream) {
    Piece& piece = pieces_[next_];
    const Status status = status_of(cudaEventRecord(piece.read, stream));
    if (!status.good()) ignored(cudaStreamSynchronize(stream));   // nothing else says when it has been read
    piece.in_use = status.good();
    next_ = 1 - next_;
    return status;
  }
  /// Gives everything back; nothing lands any more. False if there was nothing.
  bool give_up() noexcept {
    most_bytes_ = 0;
    const bool had = pieces_[0].memory || pieces_[1].memory;
    for (Piece& piece : pieces_) give_back(piece);
    return had;
  }

 private:
  static constexpr Index granule = 4096;
  struct Piece {
    void* memory = nullptr;
    Index bytes = 0;
    cudaEvent_t there = nullptr, read = nullptr;   ///< behind the copy to it, and behind the last work that reads it
    bool in_use = false;                           ///< `read` was recorded
  };
  Status make(Piece& piece, Index bytes, cudaStream_t stream) {
    give_back(piece);
    Status status = allocate_(piece.memory, bytes);
    for (cudaEvent_t* const event : {&piece.there, &piece.read})
      if (status.good()) status = status_of(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    if (status.good()) status = status_of(cudaEventRecord(piece.read, stream));
    if (status.good()) piece.bytes = bytes, piece.in_use = true;
    return status;
  }
  void give_back(Piece& piece) noexcept {
    if (piece.memory) release_(piece.memory);
    for (const cudaEvent_t event : {piece.there, piece.read})
      if (event) ignored(cudaEventDestroy(event));
    piece = {};
  }
  std::array<Piece, 2> pieces_{};
  std::size_t next_ = 0;
  Index most_bytes_;
  std::function<Status(void*&, Index)> allocate_;
  std::function<void(void*)> release_;
};
/// One way from the host to the device: pinned memory, and where its copies land.
struct SendingWay {
  PinnedPieces pinned;
  Landing landing;
  /// Copies memory from pinned.take() to the device by the stream `copies`, ahead of `stream`, if there is room to land. use(there, kind) starts work
  /// on `stream` that reads it: where it has landed (cudaMemcpyDeviceToDevice), or else in the host's memory (cudaMemcpyHostToDevice).
  template <class Use>
  Status send(const void* from, Index bytes, cudaStream_t copies, cudaStream_t stream, Use use) {
    void* there = nullptr;
    if (const Status s = landing.begin(there, bytes, copies, stream); !s.good()) return s;
    if (!there) {
      const Status started = use(from, cudaMemcpyHostToDevice), marked = pinned.sent(from, stream);
      return started.good() ? marked : started;
    }
    Status status = status_of(cudaMemcpyAsync(there, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, copies));
    const Status marked = pinned.sent(from, copies);
    if (status.good()) status = marked;
    if (status.good()) status = landing.landed(copies, stream);
    if (!status.good()) return status;
    status = use(static_cast<const void*>(there), cudaMemcpyDeviceToDevice);
    const Status read = landing.read(stream);
    return status.good() ? read : status;
  }
};
/// Starts copies of `count` pieces of `bytes` each; pitches: bytes from piece to piece.
inline Status copy_pieces(std::byte* to, Index to_pitch, const std::byte* from, Index from_pitch, Index bytes, Index count, cudaMemcpyKind kind,
                          cudaStream_t stream) {
  constexpr Index most_pitch = (Index{1} << 31) - 1;   // of a copy of rows
  const auto size = [](Index v) { return static_cast<std::size_t>(v); };
  if (count == 1 || (to_pitch == bytes && from_pitch == bytes)) return status_of(cudaMemcpyAsync(to, from, size(bytes * count), kind, stream));
  if (std::max(to_pitch, from_pitch) <= most_pitch)
    return status_of(cudaMemcpy2DAsync(to, size(to_pitch), from, size(from_pitch), size(bytes), size(count), kind, stream));
  Status status;
  for (Index i = 0; i < count && status.good(); ++i)
    status = status_of(cudaMemcpyAsync(to + i * to_pitch, from + i * from_pitch, size(bytes), kind, stream));
  return status;
}
/// Starts copies of y's rows of x to y. No kernel is in the way of others meanwhile.
template <class T>
Status copy_views(const View<const T>& x, const View<T>& y, cudaMemcpyKind kind, cudaStream_t stream) {
  const View<const T> from = x.slice(y.range());
  const auto at = [](auto* data, Index elements) {
    return reinterpret_cast<std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(data)>>, const std::byte*, std::byte*>>(data +
                                                                                                                                      elements);
  };
  const auto bytes = [](Index elements) { return elements * Index{sizeof(T)}; };
  const Index piece = bytes(y.rows * y.stride_row());
  if (y.blocks() == 1) return copy_pieces(at(y.data, 0), bytes(y.stride_n), at(from.data, 0), bytes(from.stride_n), piece, y.n, kind, stream);
  Status status;
  for (Index i = 0; i < y.n && status.good(); ++i)
    status = copy_pieces(at(y.data, i * y.stride_n), bytes(y.stride_c), at(from.data, i * from.stride_n), bytes(from.stride_c), piece, y.blocks(),
                         kind, stream);
  return status;
}
}   // namespace lrcnn::cudnn
