// How many threads the backend uses, and that it refuses numbers that must be mistakes.
#include "support/child.hpp"
#include "support/error_of.hpp"
#include "support/run_network.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <atomic>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#if defined(__linux__)
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
#endif
using namespace lrcnn;
using lrcnn::testing::error_of;
using lrcnn::testing::is_child;
using lrcnn::testing::said_by_child;
using lrcnn::testing::say_to_parent;
TEST_CASE("by default a backend uses no more threads than the process has processors") {
  CHECK(Onednn().threads() >= 1);
  CHECK(Onednn().threads() <= processor_count());
  CHECK(Onednn(0).threads() == Onednn().threads());
  CHECK(Onednn(3).threads() == 3);   // what is asked for holds
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  CHECK(Onednn().threads() == 1);
  omp_set_num_threads(50000);
  CHECK(Onednn().threads() == processor_count());
  omp_set_num_threads(before);
}
TEST_CASE("numbers of threads that must be mistakes are refused") {
  const int processors = processor_count(), most = std::max(64, 8 * processors);
  const std::string rest = "; a number of threads is 0 to " + std::to_string(most) + " where a process has " + std::to_string(processors) +
                           (processors == 1 ? " processor" : " processors") +
                           "; give 0 for as many threads as there are processors, or a number within these limits";
  CHECK(error_of<BackendError>([] { Onednn backend(-1); }) == "lrcnn: a backend is to use -1 threads" + rest);
  CHECK(error_of<BackendError>([] { Onednn backend(1000000); }) == "lrcnn: a backend is to use 1000000 threads" + rest);
  CHECK(error_of<BackendError>([&] { Onednn backend(most + 1); }) == "lrcnn: a backend is to use " + std::to_string(most + 1) + " threads" + rest);
  CHECK(Onednn(most).threads() == most);
}
namespace {
/// y = x; notes how many threads the library would use meanwhile.
struct Watch {
  static constexpr std::string_view name = "watch";
  static inline std::atomic<int> most{0};
  template <class T>
  static T value(T x) {
    const int now = omp_get_max_threads();
    for (int before = most.load(); now > before && !most.compare_exchange_weak(before, now);) {
    }
    return x;
  }
  template <class T>
  static T derivative(T) {
    return T(1);
  }
};
}   // namespace
TEST_CASE("the library gets no more threads than there are processors, and says so") {
  const int processors = processor_count(), many = 8 * processors + 2;
  const std::string line = Onednn(many).describe();
  CHECK_MESSAGE(line.ends_with(", " + std::to_string(many) + " threads, of which the library uses " + std::to_string(processors)), line);
  CHECK(Onednn(processors).describe().find("of which") == std::string::npos);
  using Net = Sequential<Conv<32>, Pointwise<Watch>, Conv<32>, ReLU, Flatten, Linear<10>>;
  const int before = omp_get_max_threads();
  const testing::Problem<float> problem(Net::layers, {1, 16, 24, 24}, 7);
  Onednn few(processors), backend(many);
  const auto expected = testing::run_once(problem, Policy<Column>::value, few), outcome = testing::run_once(problem, Policy<Column>::value, backend);
  CHECK(outcome.loss.sum == doctest::Approx(expected.loss.sum).epsilon(1e-5));
  CHECK(Watch::most.load() == processors);
  CHECK(omp_get_max_threads() == before);
}
#if defined(__linux__)
namespace {
/// On how many processors the threads of a loop on `threads` may run, all of them together.
std::size_t reach(int threads) {
  std::vector<std::vector<int>> of_piece(static_cast<std::size_t>(threads));
  std::atomic<int> begun = 0;
  host::parallel_for(threads, threads, [&](Index i) {
    ++begun;
    while (begun < threads) std::this_thread::yield();   // so that each thread has a piece
    of_piece[static_cast<std::size_t>(i)] = thread_processors();
  });
  std::set<int> all;
  for (const auto& some : of_piece) all.insert(some.begin(), some.end());
  return all.size();
}
}   // namespace
TEST_CASE("loops of a child after fork() run on its only thread, also if the library's threads were awake in its parent") {
  const int awake = host::threads_awake();
  host::threads_awake() = 3;   // as after a convolution that the library has carried out in one call
  const auto complete = [] {
    std::vector<int> seen(50, 0);
    host::parallel_for(50, 3, [&](Index i) { ++seen[static_cast<std::size_t>(i)]; });
    return seen == std::vector<int>(50, 1);
  };
  CHECK(complete());
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);   // ends a child that hangs
    _exit(complete() ? 0 : 1);
  }
  host::threads_awake() = awake;
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
TEST_CASE("bound threads of OpenMP do not keep a backend, its loops or other threads on one processor; a limit of the process does") {
  if (is_child()) {
    const int threads = Onednn().threads();
    std::size_t others = 0;
    std::thread(on_all_places([&] { others = thread_processors().size(); })).join();
    say_to_parent(std::to_string(threads) + " threads on " + std::to_string(reach(threads)) + ", others on " + std::to_string(others));
    return;
  }
  const auto said = [](int processors, int others) {
    return std::to_string(processors) + " threads on " + std::to_string(processors) + ", others on " + std::to_string(others);
  };
  const auto told = [](const std::string& setting) {
    return said_by_child("-u OMP_PLACES -u OMP_PROC_BIND -u OMP_NUM_THREADS -u GOMP_CPU_AFFINITY " + setting, "bound threads of OpenMP*");
  };
  run_on(openmp_processors());   // a child inherits what this thread may run on
  const int processors = processor_count(), allowed = processors_allowed();
  if (allowed == 1) MESSAGE("skipped in part: this process has one processor");
#if defined(__clang__)
  const std::vector<std::string> settings{"OMP_PROC_BIND=false"};   // beside oneDNN's libgomp, which ties the first thread, libomp knows of one place
  MESSAGE("skipped in part: two OpenMP runtimes in one process");
#else
  const std::vector<std::string> settings{"OMP_PROC_BIND=true", "OMP_PROC_BIND=close", "OMP_PLACES=threads", "OMP_PROC_BIND=false"};
#endif
  for (const std::string& setting : settings)
    if (processors == allowed) CHECK_MESSAGE(told(setting) == said(processors, allowed), setting);
  std::thread([&] {
    run_on({thread_processors().front()});
    for (const std::string setting : {"OMP_PROC_BIND=true", "OMP_PROC_BIND=false"}) CHECK_MESSAGE(told(setting) == said(1, 1), setting);
  }).join();
  if (allowed == 1) return;
  CHECK(told("OMP_PLACES={" + std::to_string(thread_processors().front()) + "}") == said(1, 1));   // one place
}
#endif
