// EXPECT: lrcnn: peak_bytes of a policy with Fit is no constant
// EXPECT: to_string(plan.policy) prints it
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using Net = Sequential<Conv<8>, ReLU, MaxPool<>, Conv<8>, GlobalAvgPool, Linear<3>>;
#ifdef LRCNN_FAIL
using Rows = Policy<Fit<1_MiB>>;
#else
using Rows = Policy<Workspace<1_MiB>>;
#endif
static_assert(peak_bytes<Net, Rows, Reference<float>>({1, 1, 16, 16}) > 0);
int main() {}
