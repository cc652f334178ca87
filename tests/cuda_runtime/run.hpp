#pragma once
// A small network on the pretended CUDA runtime, and what its kernels would have found.
#include "cuda_runtime/runtime.hpp"
#include "support/error_of.hpp"
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/backend/cudnn/loops/loss.hpp>
#include <lrcnn/backend/cudnn/loops/trial.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <cstring>
namespace lrcnn::testing {
inline const Input small_input{4, 1, 28, 28};
/// A batch on the host.
struct HostBatch {
  std::vector<float> pixels = std::vector<float>(static_cast<std::size_t>(small_input.count()), 0.5f);
  std::vector<std::int32_t> classes{1, 2, 3, 4};
  MemorySource<float> source() const { return {pixels.data(), small_input}; }
};
/// Tells the runtime what the kernels of losses have come to: the losses of `steps` batches, all of them numbers.
inline void losses_are(double mean, Index steps = 1) {
  cuda_runtime().results[sizeof(loops::LossSums)] = [=](void* to) {
    const auto images = static_cast<long long>(steps * small_input.n);
    *static_cast<loops::LossSums*>(to) = {.sum = mean * static_cast<double>(images), .correct = 1, .count = images, .images = double(images)};
  };
}
/// Tells it that engines' numbers are right.
inline void engines_are_right() {
  cuda_runtime().results[loops::trial_bytes] = [](void* to) { std::memset(to, 0, loops::trial_bytes); };
}
/// A fresh runtime, whose first launch has been: CUB keeps what it finds out there for the whole process, errors too.
struct FreshRuntime {
  CudaRuntime& runtime = cuda_runtime();
  FreshRuntime() {
    runtime.reset();
    static_cast<void>(cudnn::open_library<float>({.device = 1}));
    static_cast<void>(cudnn::open_library<float>({.device = 0}));
    runtime.reset();
    runtime.contexts = {0, 1};   // the program uses both
    losses_are(2);
    engines_are_right();
  }
  ~FreshRuntime() {
    CHECK(CudaRuntime::left() == "");
    CHECK(runtime.violations == std::vector<std::string>{});
    CHECK_FALSE(CudaRuntime::error_is_left());
  }
  CudaRuntime* operator->() const { return &runtime; }
};
}   // namespace lrcnn::testing
