// Compiled for vectors that the processor it is started on lacks. A vector of numbers is made before main(), as static data often is.
#include <lrcnn/core/vectors.hpp>
#include <cstdio>
#include <vector>
static const std::vector<float> numbers(1000, 0.5f);
int main() {
  float sum = 0;
  for (const float x : numbers) sum += 3 * x;
  std::printf("sum %.0f, %s\n", static_cast<double>(sum), lrcnn::vectors_name(lrcnn::machine_vectors()).data());
}
