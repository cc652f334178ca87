// A negative workspace.
// EXPECT: lrcnn: Workspace<bytes> is negative; sizes are at least 0; use Workspace<32_MiB>
// EXPECT: Workspace<-1
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Workspace<-1>>::value;
#else
constexpr PolicySpec rows = Policy<Workspace<0>>::value;
#endif
