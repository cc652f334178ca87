#pragma once
// What a network's parameters are called in PyTorch, and of which shapes they are there.
//
// The ready-made networks have torchvision's names, so own_name() serves them, but for VGG, whose trunk is a nn.Sequential there.
#include <lrcnn/interop/tensor_file.hpp>
#include <lrcnn/network/table.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>
namespace lrcnn {
/// Gives the name that a parameter has in files.
using ParameterNaming = std::function<std::string(const Parameter&)>;
/// As the network has it: "layer1.0.conv1.weight".
inline std::string own_name(const Parameter& p) { return p.name; }
/// As torchvision's VGGs have it: a trunk's layers go by their place in it, "features.2.weight", heads by their own names.
inline std::string torchvision_vgg_name(const Parameter& p) {
  if (!p.name.starts_with("conv")) return p.name;
  return "features." + std::to_string(p.layer) + p.name.substr(p.name.find('.'));
}
/// The name that torchvision's first DenseNets, whose files are still in use, have another for: "...denselayer1.norm.1.weight" is
/// "...denselayer1.norm1.weight". Any other name stays.
inline std::string current_name(std::string name) {
  const auto layer = name.rfind("denselayer");
  if (layer == std::string::npos) return name;
  for (const std::string_view part : {".norm.1.", ".norm.2.", ".conv.1.", ".conv.2."})
    if (const auto at = name.find(part, layer); at != std::string::npos) return name.erase(at + 5, 1);
  return name;
}
/// "norm1.num_batches_tracked" belongs to "norm1.running_mean": a count that PyTorch keeps for each batch norm and lrcnn does not use.
inline constexpr std::string_view batch_counter = "num_batches_tracked", running_mean = "running_mean";
/// The name of a layer's other tensor, which ends with `last`: other_tensor("bn1.weight", "bias") is "bn1.bias".
inline std::string other_tensor(std::string_view name, std::string_view last) {
  return std::string(name.substr(0, name.rfind('.') + 1)) + std::string(last);
}
/// A parameter's extents without those behind the last that is not 1.
inline std::vector<Index> shortest_shape(std::vector<Index> shape) {
  while (!shape.empty() && shape.back() == 1) shape.pop_back();
  return shape;
}
inline std::vector<Index> shortest_shape(const ParameterShape& shape) {
  return shortest_shape(std::vector<Index>(shape.extents.begin(), shape.extents.end()));
}
namespace detail {
/// Whether a 1x1 convolution is a linear layer in torchvision's ConvNeXts: the fourth and sixth of a block with layer scale.
inline bool is_convnext_linear(const Parameter& p, std::span<const Parameter> all) {
  const auto block = p.name.find(".block.");
  if (block == std::string::npos || !(p.name.ends_with(".block.3.weight") || p.name.ends_with(".block.5.weight"))) return false;
  return find_parameter(all, p.name.substr(0, block) + ".layer_scale") != nullptr;
}
}   // namespace detail
/// The shape that a parameter has in PyTorch: filters [K,C/groups,R,S] (transposed ones [C,K/groups,R,S]), linear layers [K,F], layer scale
/// [C,1,1], all else without extents of 1 at its end, but at least one extent.
/// all: the network's parameters, of which p is one
inline std::vector<Index> torch_shape(const Table& table, const Parameter& p, std::span<const Parameter> all) {
  const auto& extents = p.shape.extents;
  const Kind kind = table.node(p.layer).layer.kind;
  std::size_t rank = std::max<std::size_t>(1, shortest_shape(p.shape).size());
  if (p.name.ends_with(".weight")) {
    if (kind == Kind::conv || kind == Kind::conv_transpose) rank = detail::is_convnext_linear(p, all) ? 2 : 4;
    if (kind == Kind::linear) rank = 2;
  }
  if (kind == Kind::layer_scale) rank = 3;
  return {extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(rank)};
}
}   // namespace lrcnn
