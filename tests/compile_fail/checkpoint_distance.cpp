// EXPECT: lrcnn: CheckpointEvery<k> needs k >= 1
// EXPECT: use CheckpointEvery<1>
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Rows = Policy<CheckpointEvery<0>>;
#else
using Rows = Policy<CheckpointEvery<1>>;
#endif
constexpr PolicySpec rows = Rows::value;
int main() { return rows.workspace_bytes < 0; }
