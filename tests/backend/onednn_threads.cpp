// How many threads the backend uses, and that it refuses numbers that must be mistakes.
#include "support/error_of.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <doctest/doctest.h>
#include <string>
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
