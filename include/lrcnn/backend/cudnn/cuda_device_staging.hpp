#pragma once
// Page-locked memory that batches, labels and keys pass through on their way to a CUDA device.
#include <lrcnn/backend/cudnn/cuda_device_calls.hpp>
#include <algorithm>
#include <deque>
#include <utility>
namespace lrcnn::cudnn {
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
      const cudaError_t error = std::exchange(waits, false) ? cudaEventSynchronize(piece.read) : cudaEventQuery(piece.read);
      if (error == cudaErrorNotReady) return static_cast<void>(cudaGetLastError()), Status{};
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
}   // namespace lrcnn::cudnn
