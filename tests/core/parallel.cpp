// Work on several threads: each piece once, each thread with its own means, and an exception that reaches the caller.
#include <lrcnn/core/parallel.hpp>
#include <doctest/doctest.h>
#include <set>
#include <stdexcept>
using namespace lrcnn;
TEST_CASE("every piece is worked on once, whatever the number of threads") {
  for (const int threads : {-1, 0, 1, 2, 3, 8}) {
    for (const std::size_t count : {0u, 1u, 2u, 7u, 1000u}) {
      CAPTURE(threads);
      CAPTURE(count);
      std::vector<int> times(count, 0);
      std::mutex mutex;
      std::set<std::thread::id> workers;
      std::atomic<int> made = 0;
      on_threads(count, threads, [&] {
        ++made;
        return [&](std::size_t i) {
          ++times[i];
          const std::lock_guard lock(mutex);
          workers.insert(std::this_thread::get_id());
        };
      });
      CHECK(times == std::vector<int>(count, 1));
      CHECK(made <= std::max(1, threads));
      CHECK(workers.size() <= static_cast<std::size_t>(made));
      if (threads <= 1 && count > 0) CHECK(workers == std::set{std::this_thread::get_id()});
    }
  }
}
TEST_CASE("an exception on any thread reaches the caller, and work that has not begun is left out") {
  for (const int threads : {1, 4}) {
    CAPTURE(threads);
    std::atomic<int> done = 0;
    const auto run = [&] {
      on_threads(1'000'000, threads, [&] {
        return [&](std::size_t i) {
          if (i == 5) throw std::runtime_error("the sixth");
          ++done;
        };
      });
    };
    CHECK_THROWS_WITH_AS(run(), "the sixth", std::runtime_error);
    CHECK(done < 1'000'000);
    CHECK(done >= 5);
  }
  CHECK_THROWS_AS(on_threads(3, 2, []() -> void (*)(std::size_t) { throw std::bad_alloc(); }), std::bad_alloc);
}
