// EXPECT: lrcnn: Workspace<bytes> is negative
// EXPECT: use Workspace<32_MiB>
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Rows = Policy<Workspace<-1>>;
#else
using Rows = Policy<Workspace<0>>;
#endif
constexpr PolicySpec rows = Rows::value;
int main() { return rows.workspace_bytes < 0; }
