// EXPECT: lrcnn: Share<N> needs at least one slab
// EXPECT: use Share<1> or Column
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Rows = Policy<Share<0>>;
#else
using Rows = Policy<Share<1>>;
#endif
constexpr PolicySpec rows = Rows::value;
int main() { return rows.workspace_bytes < 0; }
