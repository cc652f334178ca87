#pragma once
// The backend of the examples and the benchmark: oneDNN where this build links it, else the plain loops of the reference.
#ifdef LRCNN_WITH_ONEDNN
#include <lrcnn/backend/onednn.hpp>
using Cpu = lrcnn::Onednn;
using CpuBf16 = lrcnn::OnednnBf16;
inline constexpr bool cpu_is_fast = true;
/// Whether this machine has kernels for CpuBf16, which refuses to be made otherwise.
inline bool cpu_has_bf16() { return CpuBf16(1, {}, {.slow_bf16 = true}).has_kernels(); }
#else
#include <lrcnn/backend/reference.hpp>
using Cpu = lrcnn::Reference<float>;
using CpuBf16 = lrcnn::Reference<lrcnn::bfloat16>;
inline constexpr bool cpu_is_fast = false;
inline bool cpu_has_bf16() { return true; }
#endif
