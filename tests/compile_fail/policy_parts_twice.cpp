// EXPECT: lrcnn: two parts of a Policy are of one kind
// EXPECT: each kind may be named once; remove one of them
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Rows = Policy<Column, KeepAll, Share<4>>;
#else
using Rows = Policy<KeepAll, Share<4>>;
#endif
constexpr PolicySpec rows = Rows::value;
int main() { return rows.workspace_bytes < 0; }
