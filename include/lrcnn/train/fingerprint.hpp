#pragma once
// A short text that tells networks apart.
#include <lrcnn/core/checksum.hpp>
#include <lrcnn/network/table.hpp>
#include <lrcnn/core/text.hpp>
namespace lrcnn {
/// What tells a network from others whose parameters may have the same shapes. How a norm's running statistics are trained is not part
/// of it: whether they are frozen, and their momentum.
inline std::string fingerprint_of(const Table& table) {
  std::string text;
  for (Index i = 0; i < table.size(); ++i) {
    const Node& node = table.node(i);
    const Layer& layer = node.layer;
    text += std::string(layer.name.view()) + ":" + describe(layer) + " " + number_text(layer.activation.slope);
    if (const auto& norm = layer.norm; layer.kind == Kind::norm)
      text += " " + std::string(norm_name(norm)) + " " + std::to_string(norm.groups) + " " + number_text(norm.epsilon);
    if (layer.kind == Kind::upsample)
      text += " " + std::to_string(static_cast<int>(layer.upsampling.rule)) + " " + std::to_string(layer.upsampling.factor.h) + "x" +
              std::to_string(layer.upsampling.factor.w);
    if (node.input != i) text += " from " + std::to_string(node.input);
    if (node.other >= 0) text += " and " + std::to_string(node.other);
    text += layer.count_padding ? ";" : " inside;";
  }
  return std::to_string(table.size()) + " layers, " + std::to_string(crc32c(std::as_bytes(std::span(text))));
}
}   // namespace lrcnn
