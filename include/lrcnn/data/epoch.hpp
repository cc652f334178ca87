#pragma once
// The batches of one epoch, the next ones made by threads while the current one is used.
//
// An epoch has prefetch + 1 batches in a ring: the consumer holds one, threads fill those that are free, in order. The epoch owns threads and
// ring; whoever leaves it early, by break or exception, stops and joins the threads. What a batch holds is up to its maker: for a data set in
// memory data/loader.hpp, for crops of large images data/crops.hpp.
#include <lrcnn/core/affinity.hpp>
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <lrcnn/shape/shape.hpp>
#include <algorithm>
#include <condition_variable>
#include <concepts>
#include <cstddef>
#include <exception>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>
namespace lrcnn {
namespace detail {
/// Throws unless an epoch that begins with batch `position` makes sense. `end`: the first position that does not.
inline void check_batch_position(Index epoch, Index position, Index end, Index batches) {
  if (epoch >= 0 && position >= 0 && position < end) return;
  throw DataError(error_text("batch " + std::to_string(position) + " of epoch " + std::to_string(epoch),
                             "an epoch has batches 0 to " + std::to_string(batches - 1) + ", and epochs count from 0",
                             "check where training is to continue"));
}
/// Shape of the last batch of an epoch of so many images, which has what is left of them unless it is dropped. `full`: that of the others.
constexpr Input last_batch(Input full, Index images, bool drop_last) {
  if (const Index left = images % full.n; left > 0 && !drop_last) full.n = left;
  return full;
}
/// What decides which images the batches of an epoch have, in words: a training within an epoch goes on only with the same.
inline std::string order_text(Index count, const char* what, std::uint64_t seed) {
  return std::to_string(count) + " " + what + ", seed " + std::to_string(seed);
}
}   // namespace detail
/// Makes any batch of one epoch. Used by several threads, never changed.
template <class M>
concept BatchMaker = requires(const M& maker, typename M::Batch& batch, Index position) {
  { maker.empty_batch() } -> std::same_as<typename M::Batch>;   // with memory for a full one
  { maker.prefetch() } -> std::convertible_to<Index>;           // batches made ahead; 0: none, and no thread
  { maker.threads() } -> std::convertible_to<Index>;            // that make them
  maker.make(position, batch);                                  // the batch is a function of its position alone
};
/// Goes through the batches that an epoch's next() gives, once.
template <class Epoch, class Batch>
class EpochIterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  explicit EpochIterator(Epoch* epoch) : epoch_(epoch), batch_(epoch->next()) {}
  Batch& operator*() const { return *batch_; }
  Batch* operator->() const { return batch_; }
  EpochIterator& operator++() {
    batch_ = epoch_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const EpochIterator& i, std::default_sentinel_t) { return i.batch_ == nullptr; }

 private:
  Epoch* epoch_;
  Batch* batch_;
};
/// The batches of one epoch, once, in order: `for (auto& batch : loader.epoch(e))`, or next() until it returns null.
/// A batch is valid until the next one is asked for. The loader need not outlive the epoch; what its maker refers to does.
template <BatchMaker Maker>
class BasicEpoch {
 public:
  using Batch = typename Maker::Batch;
  BasicEpoch(Maker maker, Index first, Index end) : maker_(std::move(maker)), current_(first - 1), end_(end), claimed_(first), released_(first) {
    const Index ahead = std::min<Index>(maker_.prefetch(), end - first);
    slots_.reserve(static_cast<std::size_t>(ahead + 1));
    for (Index i = 0; i <= ahead; ++i) slots_.push_back({maker_.empty_batch()});
    // A machine that gives fewer threads gets the same batches, later.
    try {
      for (Index i = 0; i < std::min<Index>(ahead, maker_.threads()); ++i) threads_.emplace_back(on_all_places([this] { work(); }));
    } catch (const std::exception&) {
    }
  }
  BasicEpoch(const BasicEpoch&) = delete;
  BasicEpoch& operator=(const BasicEpoch&) = delete;
  ~BasicEpoch() {
    {
      const std::lock_guard lock(mutex_);
      end_ = claimed_;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  /// The next batch, or null after the last one. Makes the one before invalid; does not allocate.
  /// Errors: what the maker threw for this batch; the epoch is over then.
  Batch* next() {
    std::unique_lock lock(mutex_);
    if (current_ + 1 >= end_) {
      current_ = end_;
      return nullptr;
    }
    released_ = ++current_;
    Slot& slot = slots_[static_cast<std::size_t>(current_) % slots_.size()];
    if (threads_.empty()) {
      fill(slot, current_);
    } else {
      room_.notify_all();
      made_.wait(lock, [&] { return slot.made; });
    }
    slot.made = false;
    if (slot.error) {
      current_ = end_ = claimed_;
      std::rethrow_exception(std::exchange(slot.error, nullptr));
    }
    return &slot.batch;
  }
  using Iterator = EpochIterator<BasicEpoch, Batch>;
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }
 private:
  struct Slot {
    Batch batch;
    bool made = false;
    std::exception_ptr error{};
  };
  void fill(Slot& slot, Index position) const {
    try {
      maker_.make(position, slot.batch);
    } catch (...) {
      slot.error = std::current_exception();
    }
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto size = static_cast<Index>(slots_.size());
      room_.wait(lock, [&] { return claimed_ >= end_ || claimed_ < released_ + size; });
      if (claimed_ >= end_) return;
      const Index position = claimed_++;
      Slot& slot = item(slots_, position % size);
      lock.unlock();
      fill(slot, position);
      lock.lock();
      slot.made = true;
      made_.notify_one();
    }
  }
  const Maker maker_;
  std::vector<Slot> slots_;
  // The lock guards what follows and Slot::made. A slot's batch belongs to the thread that claimed its position until
  // it is made, then to the consumer until it releases the position.
  std::mutex mutex_;
  std::condition_variable room_, made_;
  Index current_;   ///< position of the batch the consumer has
  Index end_;
  Index claimed_;    ///< first position no thread has taken up
  Index released_;   ///< first position whose slot is not free
  std::vector<std::thread> threads_;
};
}   // namespace lrcnn
