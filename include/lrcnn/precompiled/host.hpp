#pragma once
// What a program may take from a library that was compiled ahead, because it is the same for all networks: here the host's loops, for each
// type of element; planner, checker and trainer (training.hpp); training with oneDNN (onednn.hpp) and with CUDA (cudnn.hpp).
//
// lrcnn is headers only, so every source file that trains would compile all that again, which takes most of the compiler's time. Where
// LRCNN_PRECOMPILED is defined (for the backends also LRCNN_PRECOMPILED_ONEDNN, LRCNN_PRECOMPILED_CUDNN), these headers, which lrcnn.hpp and
// the backends' then include, say that it is elsewhere: in a library of the .cpp files beside them. CMake targets see to all of it
// (cmake/LrcnnPrecompiled.cmake).
#include <lrcnn/backend/host/run.hpp>
#ifdef LRCNN_PRECOMPILED
#ifdef LRCNN_PRECOMPILES_HOST
#define LRCNN_INSTANCE template
#else
#define LRCNN_INSTANCE extern template
#endif
namespace lrcnn::host {
LRCNN_INSTANCE void run<float>(const Operands<float>&, int);
LRCNN_INSTANCE void run<double>(const Operands<double>&, int);
LRCNN_INSTANCE void run<bfloat16>(const Operands<bfloat16>&, int);
LRCNN_INSTANCE void run<float16>(const Operands<float16>&, int);
#undef LRCNN_INSTANCE
#ifdef LRCNN_PRECOMPILES_TRAINING   // there, because it is another one with OpenMP
template void detail::run_loop<>(Index, int, ThreadPool::Body, void*);
#else
extern template void detail::run_loop<>(Index, int, ThreadPool::Body, void*);
#endif
}   // namespace lrcnn::host
#endif
