// How many threads the backend uses, and that it refuses numbers that must be mistakes.
#include "support/error_of.hpp"
#include "support/run_network.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <atomic>
#include <string>
#include <string_view>
using namespace lrcnn;
using lrcnn::testing::error_of;
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
