// A concat of one branch.
// EXPECT: lrcnn: a Sum or Concat has fewer than two branches; it joins two or more; add a branch, or Identity for the input itself
// EXPECT: Conv<6
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<ReLU, Concat<Conv<6>>>;
#else
using Net = Sequential<ReLU, Concat<Conv<6>, Identity>>;
#endif
static_assert(Net::layers.size() > 0);
