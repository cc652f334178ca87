// A precision that oneDNN's backend does not come in, where it comes in others.
// EXPECT: lrcnn: a policy's precision is not one of the backend's; this backend does not come in it; leave the part out, or choose a backend that has it
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/backend/onednn.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Rows = Policy<Share<2>, Fp16>;
#else
using Rows = Policy<Share<2>, Bf16>;
#endif
static_assert(peak_bytes<LeNet<10>, Rows, Onednn>({.n = 8, .c = 1, .h = 28, .w = 28}) > 0);
