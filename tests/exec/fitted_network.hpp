#pragma once
// The network of the tests in which a trainer is held to bytes: a norm in the middle, a head behind a global pooling.
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
namespace lrcnn::testing {
using FittedNet = Sequential<Conv<6>, BatchNorm, ReLU, MaxPool<>, Conv<8>, ReLU, Conv<8>, ReLU, GlobalAvgPool, Linear<3>>;
inline constexpr Input fitted_input{2, 1, 48, 16};
}   // namespace lrcnn::testing
