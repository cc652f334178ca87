#pragma once
// Making maps larger, as a descriptor.
#include <lrcnn/layer/layer.hpp>
namespace lrcnn {
/// Each pixel becomes factor.h x factor.w; `Upsample<2>` doubles both, `Upsample<Pair{2, 1}>` the rows.
/// Shapes:  x [N,C,H,W] -> y [N,C,factor.h*H,factor.w*W]
/// Errors:  factors must be at least 1
template <Pair factor = Pair{2}, Upsampling::Rule rule = Upsampling::Rule::nearest>
struct Upsample {
  static constexpr Layer layer() { return {.kind = Kind::upsample, .upsampling = {.rule = rule, .factor = factor}}; }
};
}  // namespace lrcnn
