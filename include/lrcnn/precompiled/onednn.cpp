// What precompiled/onednn.hpp lists.
#ifndef LRCNN_PRECOMPILED_ONEDNN
#define LRCNN_PRECOMPILED_ONEDNN
#endif
#ifndef LRCNN_PRECOMPILED
#define LRCNN_PRECOMPILED
#endif
#define LRCNN_PRECOMPILES_ONEDNN
#include <lrcnn/precompiled/onednn.hpp>
