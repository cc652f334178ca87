// Extra passes of slabs that hand rows on.
// EXPECT: lrcnn: ExtraPasses<Share<N>> hands on rows that only its forward pass has; slabs of extra passes make all their rows themselves; use ExtraPasses<Overlap<N>>
// EXPECT: ExtraPasses<
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<ExtraPasses<Share<4>>>::value;
#else
constexpr PolicySpec rows = Policy<ExtraPasses<Overlap<4>>>::value;
#endif
