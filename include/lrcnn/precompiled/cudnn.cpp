// What precompiled/cudnn.hpp lists.
#ifndef LRCNN_PRECOMPILED_CUDNN
#define LRCNN_PRECOMPILED_CUDNN
#endif
#ifndef LRCNN_PRECOMPILED
#define LRCNN_PRECOMPILED
#endif
#define LRCNN_PRECOMPILES_CUDNN
#include <lrcnn/precompiled/cudnn.hpp>
