#pragma once
// SqueezeNet 1.1.
//
// Iandola et al., "SqueezeNet" (arXiv 1602.07360), in the later version with 2.4 times less computation, as torchvision has it, parameter
// for parameter and name for name: features.0, features.3.squeeze, features.3.expand1x1, features.3.expand3x3, ..., classifier.0 (a
// dropout), classifier.1.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/units.hpp>
namespace lrcnn {
namespace detail {
/// 1x1 to few channels, then 1x1 and 3x3 to `expanded` channels each.
template <Index squeezed, Index expanded>
using Fire = Sequential<Named<"squeeze", Conv<squeezed, Window{.kernel = 1}>>, ReLU,
                        Concat<Sequential<Named<"expand1x1", Conv<expanded, Window{.kernel = 1}>>, ReLU>,
                               Sequential<Named<"expand3x3", Conv<expanded, Window{.kernel = 3, .pad = 1}>>, ReLU>>>;
using SqueezeNetPool = MaxPool<Window{.kernel = 3, .stride = 2, .ceil = true}>;
using SqueezeNetTrunk =
    Scope<"features", Sequential<Named<"0", Conv<64, Window{.kernel = 3, .stride = 2}>>, ReLU, SqueezeNetPool, Scope<"3", Fire<16, 64>>,
                                 Scope<"4", Fire<16, 64>>, SqueezeNetPool, Scope<"6", Fire<32, 128>>, Scope<"7", Fire<32, 128>>, SqueezeNetPool,
                                 Scope<"9", Fire<48, 192>>, Scope<"10", Fire<48, 192>>, Scope<"11", Fire<64, 256>>, Scope<"12", Fire<64, 256>>>>;
}   // namespace detail
/// Shapes:  x [N,3,H,W] -> y [N,classes,1,1]
/// P: probability of the dropout before the last convolution; with std::ratio<0> there is none.
template <Index classes = 1000, class P = std::ratio<1, 2>>
using SqueezeNet11 = Sequential<detail::SqueezeNetTrunk, detail::UnlessZero<P, Named<"classifier.0", Dropout<P>>>,
                                Named<"classifier.1", Conv<classes, Window{.kernel = 1}>>, ReLU, GlobalAvgPool>;
}   // namespace lrcnn
