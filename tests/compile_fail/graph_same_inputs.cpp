// A sum of a tensor with itself.
// EXPECT: lrcnn: a sum, concat or scale reads one tensor twice; the branches of a join end in different tensors; put a layer into one of the branches
// EXPECT_WITHIN 3: join_at<1
// EXPECT_WITHIN 3: SumJoin
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Residual<Identity>;
#else
using Net = Residual<ReLU>;
#endif
static_assert(Net::layers.size() > 0);
