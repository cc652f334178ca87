// Convolutions run, and go, on the device that they were made for, whichever is current then; and the caller's stays current.
#include "cudnn_calls/pretended_cudnn.hpp"
#include <lrcnn/backend/cudnn/library.hpp>
#include <doctest/doctest.h>
#include <algorithm>
#include <memory>
using namespace lrcnn;
using namespace lrcnn::testing;
std::string lrcnn::cudnn::device_problem() { return "nobody asks"; }
namespace {
int some_handle = 0;   // never looked into
const cudnn::Problem problem{.bias = true, .n = 2, .c = 8, .h = 8, .w = 8, .k = 8, .p = 8, .q = 8, .kernel = 3, .pad = 1};
Index count_of(const std::string& what, int device) { return std::count(calls.begin(), calls.end(), Call{what, device}); }
}   // namespace
TEST_CASE("a convolution is built, runs and goes on the device that was current when it was made") {
  current_device = 1;
  std::unique_ptr<cudnn::Convolution> convolution;
  const cudnn::Status made = cudnn::make_convolution(convolution, problem, &some_handle, 0, "");
  REQUIRE(made.text == "");
  CHECK(count_of("build", 1) > 0);
  for (const int device : {0, 1}) {
    calls.clear();
    current_device = device;
    float number = 0;
    CHECK(convolution->run(&number, &number, &number, &number, nullptr).text == "");
    CHECK(calls == std::vector<Call>{{"execute", 1}});
    CHECK(current_device == device);
  }
  calls.clear();
  current_device = 0;
  convolution.reset();
  CHECK(count_of("destroy", 1) > 0);
  CHECK(count_of("destroy", 0) == 0);
  CHECK(current_device == 0);
  CHECK(descriptors.empty());
}
