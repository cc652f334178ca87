// Loops on several threads: every piece once, whoever runs or does not run meanwhile. Nothing here depends on speed: where one
// thread waits for another, the other one comes sooner or later.
#include <lrcnn/backend/host/parallel.hpp>
#include <doctest/doctest.h>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>
#endif
using namespace lrcnn;
namespace {
/// Whether a loop calls every piece once.
bool complete(Index count, int threads) {
  std::vector<int> seen(static_cast<std::size_t>(count), 0);   // not atomic: nobody else may write a piece's element
  host::parallel_for(count, threads, [&](Index i) { ++seen[static_cast<std::size_t>(i)]; });
  return seen == std::vector<int>(seen.size(), 1);
}
}   // namespace
TEST_CASE("every piece is run once, for all counts and numbers of threads") {
  for (const int threads : {-1, 0, 1, 2, 3, 4, 7, 16, 33})
    for (Index count = 0; count < 70; ++count) CHECK(complete(count, threads));
  for (const int threads : {2, 5, 300}) CHECK(complete(100003, threads));   // 300: more parts than the pool cuts a loop into
}
TEST_CASE("thousands of tiny loops in a row") {
  bool good = true;
  for (Index loop = 0; loop < 20000; ++loop) good = good && complete(2 + loop % 7, 2 + static_cast<int>(loop % 3));
  CHECK(good);
}
TEST_CASE("a loop within a loop runs on the thread that calls it") {
  std::vector<int> seen(6 * 50, 0);
  std::atomic<int> elsewhere = 0;
  host::parallel_for(6, 3, [&](Index outer) {
    const auto own = std::this_thread::get_id();
    host::parallel_for(50, 4, [&](Index inner) {
      if (std::this_thread::get_id() != own) ++elsewhere;
      ++seen[static_cast<std::size_t>(outer * 50 + inner)];
    });
  });
  CHECK(seen == std::vector<int>(seen.size(), 1));
  CHECK(elsewhere == 0);
  CHECK(complete(40, 3));
}
TEST_CASE("an error in a piece comes out when the loop ends, on any number of threads, and the next loop is whole") {
  for (const int threads : {1, 2, 5})
    for (const Index bad : {0, 7, 99}) {
      std::atomic<Index> done = 0;
      std::string text;
      try {
        host::parallel_for_any(100, threads, [&](Index i) {
          if (i == bad) throw std::runtime_error("piece " + std::to_string(i));
          ++done;
        });
      } catch (const std::runtime_error& e) {
        text = e.what();
      }
      CHECK(text == "piece " + std::to_string(bad));
      CHECK(done < 100);
      done = 0;
      host::parallel_for_any(100, threads, [&](Index) { ++done; });
      CHECK(done == 100);
    }
}
TEST_CASE("two threads may run loops at the same time") {
  std::atomic<int> good = 0;
  const auto loops = [&] {
    bool own = true;
    for (Index loop = 0; loop < 2000; ++loop) own = own && complete(1 + loop % 40, 3);
    good += own;
  };
  std::thread first(loops), second(loops);
  first.join();
  second.join();
  CHECK(good == 2);
}
TEST_CASE("a loop of one thread does not wait for that of another") {
  std::atomic<bool> begun = false, ended = false;
  std::thread first([&] {
    host::parallel_for(2, 2, [&](Index) {
      begun = true;
      while (!ended) std::this_thread::yield();
    });
  });
  while (!begun) std::this_thread::yield();
  CHECK(complete(100, 4));
  ended = true;
  first.join();
}
TEST_CASE("a worker that stalls keeps nobody from the other pieces, and the caller waits for its piece") {
  for (int round = 0; round < 20; ++round) {
    constexpr Index count = 8;   // as many as chunks, so that nothing waits behind the stalled piece
    std::array<int, count> seen{};
    std::atomic<Index> done = 0;
    std::atomic<bool> stalled = false;
    const auto caller = std::this_thread::get_id();
    host::parallel_for(count, 2, [&](Index i) {
      if (std::this_thread::get_id() == caller) {
        while (!stalled) std::this_thread::yield();   // a worker has a piece
      } else if (!stalled.exchange(true)) {
        while (done < count - 1) std::this_thread::yield();   // all the others are done by somebody else
      }
      seen[static_cast<std::size_t>(i)] = 1;
      ++done;
    });
    CHECK(std::accumulate(seen.begin(), seen.end(), 0) == count);
  }
}
#if defined(__unix__)
TEST_CASE("loops of a child after fork() run on its only thread, and it ends") {
  CHECK(complete(50, 3));
  std::fflush(nullptr);
  for (const bool within : {false, true}) {
    pid_t child = -1;
    if (within) {
      const auto caller = std::this_thread::get_id();
      std::atomic<bool> forked = false;
      host::parallel_for(4, 2, [&](Index) {
        if (std::this_thread::get_id() != caller || forked.exchange(true)) return;
        child = fork();
        if (child == 0) _exit(complete(50, 3) ? 0 : 1);
      });
      if (child == -1) continue;   // the worker has taken all pieces
    } else {
      child = fork();
      if (child == 0) {
        const bool good = complete(50, 3) && complete(3, 2);
        if (!good) _exit(1);
        std::exit(0);   // what is destroyed then waits for no thread
      }
    }
    REQUIRE(child > 0);
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(complete(50, 3));
}
#endif
