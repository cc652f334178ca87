#pragma once
// The backend of the examples and the benchmark: oneDNN where this build links it, else the plain loops of the reference.
#ifdef LRCNN_WITH_ONEDNN
#include <lrcnn/backend/onednn.hpp>
using Cpu = lrcnn::Onednn;
using CpuBf16 = lrcnn::OnednnBf16;
inline constexpr bool cpu_is_fast = true;
#else
#include <lrcnn/backend/reference.hpp>
using Cpu = lrcnn::Reference<float>;
using CpuBf16 = lrcnn::Reference<lrcnn::bfloat16>;
inline constexpr bool cpu_is_fast = false;
#endif
