// EXPECT: lrcnn: Images<n> needs at least one image
// EXPECT: use Images<1>
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Rows = Policy<Images<0>>;
#else
using Rows = Policy<Images<1>>;
#endif
constexpr PolicySpec rows = Rows::value;
int main() { return rows.workspace_bytes < 0; }
