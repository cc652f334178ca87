// A part of a policy within a network.
// EXPECT: lrcnn: a part of a Sequential is no layer; a layer is a type with `static constexpr Layer layer()`, or a Sequential, and parts such as Share<4> belong to the Policy; see docs/extending.md
// EXPECT_WITHIN 4: Share<4
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/policy/policy.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Sequential<Conv<8>, Share<4>, ReLU>;
#else
using Net = Sequential<Conv<8>, ReLU>;
#endif
constexpr auto layers = Net::layers;
