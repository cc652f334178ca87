#pragma once
// Where the loops that a program has compiled run: on a stream of a CUDA device; compiled for the host, at once, in the host's memory.
#include <lrcnn/core/language.hpp>
#include <thrust/execution_policy.h>
#ifndef __CUDACC__
#include <thrust/system/cpp/execution_policy.h>
#endif
namespace lrcnn::detail {
inline auto custom_policy([[maybe_unused]] void* stream) {
#ifdef __CUDACC__
  return thrust::cuda::par_nosync.on(static_cast<cudaStream_t>(stream));
#else
  return thrust::cpp::par;
#endif
}
}   // namespace lrcnn::detail
