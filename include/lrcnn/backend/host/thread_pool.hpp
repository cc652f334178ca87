#pragma once
// The threads of our own loops: a pool that never waits for a thread that is not running.
//
// A loop is cut into one part for each thread that is wanted. A thread takes chunks of its own part first, so on an idle
// machine the same thread gets the same rows in every call; then it takes what others have left. The caller takes part,
// and at the end waits only for chunks that somebody has begun. A worker that the system does not run has begun none, and
// costs nothing; one that comes late finds nothing to do.
//
// Why not OpenMP's: its loops end at a barrier for all threads, also for those that did nothing because something else had
// their processor. Beside one busy process that made the demo's training forty times slower (2 cores, Intel Xeon); with
// these threads it is as fast as on one core alone. Threads that find nothing to do spin for a moment, then sleep.
//
// How a late worker is kept out: what may be taken of a part is one word, the loop's number and the next chunk. A
// worker reads the word, then the loop's data, then takes the chunk by a compare-and-exchange, which fails if the loop
// has been closed since. The caller closes all words before it writes the next loop's data.
//
// A loop within a loop, one of a second thread while the pool is at work, and all loops of a child after fork() run on
// the calling thread.
#include <lrcnn/core/affinity.hpp>
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif
namespace lrcnn::host {
/// A pause of a thread that looks again and again for what another one writes.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}
class ThreadPool {
 public:
  /// The process's pool; null while it cannot be used: within a loop, after fork(), while the program ends.
  static ThreadPool* get() {
    if (inside() || unusable().load(std::memory_order_acquire)) return nullptr;
    static ThreadPool pool;
    return unusable().load(std::memory_order_acquire) ? nullptr : &pool;
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  /// Starts the workers that loops on so many threads want, so that no loop has to.
  void start(int threads) {
    if (busy_.exchange(true, std::memory_order_acquire)) return;
    start_workers(static_cast<std::size_t>(std::clamp(threads, 1, most_parts) - 1));
    busy_.store(false, std::memory_order_release);
  }
  /// What is done for the numbers in [begin, end) of a loop.
  using Body = void (*)(void* closure, Index begin, Index end);
  /// Calls body(closure, begin, end) for ranges that cover [0, count), on at most `threads` threads. False, with nothing done, if the
  /// pool is at work for another thread.
  /// Pre:     count > 1, threads > 1; body does not throw
  bool run(Index count, int threads, Body body, void* closure) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    inside() = true;
    open(count, threads, body, closure);
    take_chunks(0, number_, parts_.load(std::memory_order_relaxed));
    wait();
    inside() = false;
    busy_.store(false, std::memory_order_release);
    return true;
  }

 private:
  static constexpr int most_parts = 256, chunks_of_part = 4;
  static constexpr std::uint64_t closed = 0xffffffff;
  struct alignas(64) Part {
    std::atomic<std::uint64_t> word{closed};   ///< number of the loop << 32 | next chunk of the part
    std::atomic<std::uint32_t> wake{0};        ///< changes when its worker is wanted, or shall end
    std::atomic<bool> asleep{false};           ///< its worker waits for that
  };
  ThreadPool() {
    workers_ = std::make_unique<std::vector<std::thread>>();
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, [] { unusable().store(true, std::memory_order_release); });
#endif
  }
  ~ThreadPool() {
    const bool forked = unusable().exchange(true);
    if (forked || inside()) {   // the threads are not there, or this is one of them
      static_cast<void>(workers_.release());
      return;
    }
    while (busy_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();   // a loop of another thread
    stop_.store(true);
    for (std::size_t w = 0; w < workers_->size(); ++w) wake(static_cast<Index>(w) + 1);
    for (std::thread& worker : *workers_) worker.join();
  }
  /// Whether this thread is carrying out a loop.
  static bool& inside() {
    thread_local bool inside = false;
    return inside;
  }
  static std::atomic<bool>& unusable() {
    static std::atomic<bool> unusable = false;
    return unusable;
  }
  void open(Index count, int threads, Body body, void* closure) {
    const Index parts = std::min<Index>({count, threads, most_parts});
    const Index of_part = std::clamp<Index>(count / parts, 1, chunks_of_part);
    start_workers(static_cast<std::size_t>(parts - 1));
    count_.store(count, std::memory_order_release);
    of_part_.store(of_part, std::memory_order_release);
    parts_.store(parts, std::memory_order_release);
    body_.store(body, std::memory_order_release);
    closure_.store(closure, std::memory_order_release);
    left_.store(parts * of_part, std::memory_order_relaxed);
    ++number_;
    for (Index p = 0; p < parts; ++p) part(p).word.store(std::uint64_t(number_) << 32, std::memory_order_release);
    for (Index p = 1; p < parts; ++p) wake(p);   // those that have a part, and no others
  }
  void wake(Index worker) {
    Part& mine = part(worker);
    mine.wake.fetch_add(1);
    if (mine.asleep.load()) mine.wake.notify_one();
  }
  Part& part(Index p) { return item(part_, p); }
  /// Takes chunks of part `first`, then of the others, until none is left of the loop. False if there was none.
  bool take_chunks(Index first, std::uint32_t number, Index parts) {
    bool any = false;
    for (Index p = 0; p < parts; ++p)
      while (take_chunk((first + p) % parts, number)) any = true;
    return any;
  }
  bool take_chunk(Index p, std::uint32_t number) {
    std::uint64_t word = part(p).word.load(std::memory_order_acquire);
    for (;;) {
      const Index next = static_cast<Index>(word & closed), of_part = of_part_.load(std::memory_order_acquire);
      if (word >> 32 != number || next >= of_part) return false;
      const Index count = count_.load(std::memory_order_acquire), chunks = of_part * parts_.load(std::memory_order_acquire);
      const Body body = body_.load(std::memory_order_acquire);
      void* const closure = closure_.load(std::memory_order_acquire);
      if (!part(p).word.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      const Index chunk = p * of_part + next;
      body(closure, count * chunk / chunks, count * (chunk + 1) / chunks);
      if (left_.fetch_sub(1) == 1 && waiting_.load() != 0 && waiting_.exchange(0) != 0) waiting_.notify_one();
      return true;
    }
  }
  /// Until nothing that was begun is unfinished; then closes the loop.
  void wait() {
    for (int spins = 0; left_.load(std::memory_order_acquire) > 0; ++spins) {
      if (spins < caller_spins) {
        spin_pause();
        continue;
      }
      waiting_.store(1);
      if (left_.load() > 0) waiting_.wait(1);
    }
    waiting_.store(0, std::memory_order_relaxed);
    for (Index p = 0; p < parts_.load(std::memory_order_relaxed); ++p)
      part(p).word.store(std::uint64_t(number_) << 32 | closed, std::memory_order_release);
  }
  /// Waits until they run: what a thread allocates at its start is allocated here, not in a later loop.
  void start_workers(std::size_t wanted) {
    while (workers_->size() < wanted) try {
        const Index own = static_cast<Index>(workers_->size()) + 1;
        running_.store(false);
        workers_->emplace_back(on_all_places([this, own] { work(own); }));
        running_.wait(false);
      } catch (const std::system_error&) {
        return;   // the others take its part
      }
  }
  void work(Index own) {
    inside() = true;
#ifdef _OPENMP
    omp_set_num_threads(1);   // for what is asked of a library in a piece
#endif
    running_.store(true);
    running_.notify_one();
    Part& mine = part(own);
    std::uint32_t seen = 0;
    for (int spins = 0; !stop_.load(std::memory_order_relaxed);) {
      const std::uint32_t now = mine.wake.load();
      if (now != seen) {
        seen = now;
        const Index parts = parts_.load(std::memory_order_acquire);
        const auto number = static_cast<std::uint32_t>(part(0).word.load(std::memory_order_acquire) >> 32);
        if (own < parts && take_chunks(own, number, parts)) spins = 0;
        continue;
      }
      if (++spins < worker_spins) {
        spin_pause();
      } else {
        mine.asleep.store(true);
        mine.wake.wait(seen);
        mine.asleep.store(false);
        spins = 0;
      }
    }
  }
  /// Looks before a thread sleeps: about 0.1 ms for a caller whose pieces others are finishing, and 0.2 ms for a worker.
  /// Source:  training of examples/demo.cpp's network, alone and beside a busy process, Intel Xeon (Sapphire Rapids), 2 cores: a
  ///          tenth as many cost a quarter of the speed alone; ten times as many gain nothing
  static constexpr int caller_spins = 2000, worker_spins = 4000;
  std::atomic<bool> busy_{false}, stop_{false};
  std::atomic<bool> running_{false};   ///< the worker that was started last
  std::uint32_t number_ = 0;           ///< of the loop; written by who holds busy_
  std::array<Part, most_parts> part_;
  alignas(64) std::atomic<Index> count_{0}, of_part_{0}, parts_{0};
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> closure_{nullptr};
  alignas(64) std::atomic<Index> left_{0};   ///< chunks that are not finished
  std::atomic<int> waiting_{0};              ///< 1: the caller sleeps until left_ is 0
  std::unique_ptr<std::vector<std::thread>> workers_;
};
}   // namespace lrcnn::host
