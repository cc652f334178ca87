// A program with CUDA of its own beside lrcnn's. Without a GPU it builds all the same, starts, and gets a message.
#include <iostream>
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/lrcnn.hpp>
int add_on_device(int a, int b);   // consumer_cuda.cu
std::string problem_seen_by_nvcc();
int main() {
  const std::string problem = lrcnn::cudnn::device_problem();
  if (problem_seen_by_nvcc() != problem) return 1;
  try {
    lrcnn::Cudnn backend;
    if (!problem.empty() || add_on_device(2, 3) != 5) return 2;
  } catch (const lrcnn::Error& error) {
    std::cerr << error.what() << '\n';
    if (problem.empty() || std::string(error.what()).find(problem) == std::string::npos) return 3;
  }
  std::cout << "lrcnn " << lrcnn::version() << '\n';
}
