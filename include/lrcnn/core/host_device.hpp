#pragma once
// Pointwise arithmetic is written once, as small functors, and applied by each backend's own loop: on the host, and
// on a device when the file is compiled by nvcc. This macro marks what must work in both places.
#include <lrcnn/core/language.hpp>
#ifdef __CUDACC__
#define LRCNN_HOST_DEVICE __host__ __device__
#else
#define LRCNN_HOST_DEVICE
#endif
