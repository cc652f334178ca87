#pragma once
// Plans of small networks, and in which order their stages run.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/network/graph.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/memory_over_time.hpp>
#include "support/error_of.hpp"
#include <algorithm>
#include <string>
#include <vector>
namespace lrcnn::testing {
/// Of the tests of sections whose inputs are made again.
inline constexpr Input small_input{2, 3, 64, 32};
/// Four sections of two convolutions and a ReLU each.
using Chain = Sequential<Conv<8>, Conv<8>, ReLU, Conv<8>, Conv<8>, ReLU, Conv<8>, Conv<8>, ReLU, Conv<8>, Conv<8>, ReLU, GlobalAvgPool, Linear<2>>;
using AtSections = CheckpointAt<"relu1", "relu2", "relu3">;
/// Three sections of three stages each: conv | norm ReLU conv | norm ReLU.
using Norms = Sequential<Conv<8>, BatchNorm, ReLU, Conv<8>, BatchNorm, ReLU, Conv<8>, BatchNorm, ReLU, Conv<8>, BatchNorm, ReLU, Conv<8>, BatchNorm,
                         ReLU, Conv<8>, BatchNorm, ReLU, GlobalAvgPool, Linear<2>>;
using AtNorms = CheckpointAt<"relu2", "relu4">;
/// A block of a ResNet whose second input comes from a norm, too, and two with skip connections.
inline constexpr Window pointwise{.kernel = 1, .pad = 0};
using BottleneckBody = Sequential<Conv<4, pointwise>, BatchNorm, ReLU, Conv<4>, BatchNorm, ReLU, Conv<16, pointwise>, BatchNorm>;
using Bottlenecks = Sequential<Conv<8>, BatchNorm, ReLU, Residual<BottleneckBody, Sequential<Conv<16, pointwise>, BatchNorm>>, ReLU,
                               Residual<BottleneckBody>, ReLU, Residual<BottleneckBody>, ReLU, GlobalAvgPool, Linear<2>>;
template <class Net, class... Parts>
Plan plan_of(const Input& in = small_input) {
  return make_plan(table_of<Net>(in), Policy<Parts..., Workspace<0>>::value);
}
inline std::size_t loss_of(const Plan& plan) {
  const auto loss = std::find_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.op == Op::loss; });
  return static_cast<std::size_t>(loss - plan.steps.begin());
}
/// The stages in the order of their steps: "0f" goes forward, "0r" goes forward again, "0b" goes backward.
inline std::string order(const Plan& plan) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < plan.steps.size(); begin = end) {
    const Index stage = plan.steps[begin].stage;
    bool first = false, down = false;
    for (end = begin; end < plan.steps.size() && plan.steps[end].stage == stage && (end == begin || end != loss_of(plan)); ++end)
      first |= plan.steps[end].pass == Pass::forward && plan.steps[end].op != Op::loss, down |= plan.steps[end].pass == Pass::backward;
    text += (text.empty() ? "" : " ") + std::to_string(stage) + (down ? "b" : first ? "f" : "r");
  }
  return text;
}
/// How often a layer goes forward for the first slab.
inline Index times_made(const Plan& plan, std::string_view layer) {
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [&](const Step& s) { return s.op == Op::forward && s.slab == 0 && plan.table.node(s.layer).layer.name.view() == layer; });
}
/// How often each convolution of Chain does.
inline std::vector<Index> times_of_chain(const Plan& plan) {
  std::vector<Index> list;
  for (const char* layer : {"conv1", "conv2", "conv3", "conv4", "conv5", "conv6", "conv7", "conv8"}) list.push_back(times_made(plan, layer));
  return list;
}
/// Maps whose values live in full height when the loss is computed, by their tensors' numbers.
inline std::string live_at_loss(const Plan& plan) {
  const Index now = step_times(plan)[loss_of(plan)];
  std::string text;
  for (const Buffer& b : plan.buffers)
    if (b.role == Role::value && b.first <= now && now < b.last && plan.table.shape(b.tensor).h > 1)
      text += (text.empty() ? "" : " ") + std::to_string(b.tensor);
  return text;
}
template <class Net, class... Parts>
std::string refusal(const Input& in = small_input) {
  return error_of<PlanError>([&] { plan_of<Net, Parts...>(in); });
}
}   // namespace lrcnn::testing
