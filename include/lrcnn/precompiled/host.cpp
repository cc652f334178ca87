// The loops that precompiled/host.hpp lists.
#ifndef LRCNN_PRECOMPILED
#define LRCNN_PRECOMPILED
#endif
#define LRCNN_PRECOMPILES_HOST
#include <lrcnn/precompiled/host.hpp>
