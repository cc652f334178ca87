#pragma once
// Work that is done by several threads, each piece by one of them.
#include <lrcnn/core/affinity.hpp>
#include <lrcnn/core/language.hpp>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
namespace lrcnn {
/// Calls work(i) for all i of [0, count), each once, on at most `threads` threads, this one among them. Each thread has a `work` of its
/// own, which make_work() gives. If a call throws, calls that have not begun are left out, and the first exception is thrown here.
template <class MakeWork>
void on_threads(std::size_t count, int threads, const MakeWork& make_work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failed;
  const auto run = [&] {
    try {
      auto work = make_work();
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int t = 1; t < threads && static_cast<std::size_t>(t) < count; ++t) others.emplace_back(on_all_places(run));
    } catch (const std::system_error&) {   // a machine that gives fewer threads has the same work done, later
    }
    run();
  }
  if (failed) std::rethrow_exception(failed);
}
}   // namespace lrcnn
