// What precompiled/training.hpp lists.
#ifndef LRCNN_PRECOMPILED
#define LRCNN_PRECOMPILED
#endif
#define LRCNN_PRECOMPILES_TRAINING
#include <lrcnn/precompiled/training.hpp>
