// A sum without branches.
// EXPECT: lrcnn: a Sum or Concat has fewer than two branches; it joins two or more; add a branch, or Identity for the input itself
// EXPECT: Sum<>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sum<>;
#else
using Net = Sum<ReLU, Identity>;
#endif
static_assert(Net::layers.size() > 0);
