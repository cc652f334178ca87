// The main function of the executables that need a GPU: where there is none, they say so and count as skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <lrcnn/backend/cudnn.hpp>
#include <cstdio>
int main(int argc, char** argv) {
  if (const std::string problem = lrcnn::cudnn::device_problem(); !problem.empty()) {
    std::printf("lrcnn skips: no CUDA device: %s\n", problem.c_str());
    return 77;   // SKIP_RETURN_CODE in CMakeLists.txt
  }
  return doctest::Context(argc, argv).run();
}
