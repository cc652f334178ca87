// No partition.
// EXPECT: lrcnn: Stages<...> takes 1 to 64 partitions; one for each stage; merge stages by fewer checkpoints
// EXPECT: Stages<>
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
constexpr PolicySpec rows = Policy<Stages<>>::value;
#else
constexpr PolicySpec rows = Policy<Stages<Column>>::value;
#endif
