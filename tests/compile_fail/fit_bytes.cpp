// EXPECT: lrcnn: Fit<bytes> needs at least one byte
// EXPECT: use Fit<256_MiB>
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Rows = Policy<Fit<0>>;
#else
using Rows = Policy<Fit<1>>;
#endif
constexpr PolicySpec rows = Rows::value;
int main() { return rows.fit_bytes < 1; }
