// EXPECT: lrcnn: Overlap<N> needs at least one slab
// EXPECT: use Overlap<1> or Column
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Rows = Policy<Overlap<4, 0>>;
#else
using Rows = Policy<Overlap<4, 1>>;
#endif
constexpr PolicySpec rows = Rows::value;
int main() { return rows.workspace_bytes < 0; }
