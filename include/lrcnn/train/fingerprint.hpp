#pragma once
// A short text that tells networks apart.
#include <lrcnn/core/checksum.hpp>
#include <lrcnn/network/table.hpp>
#include <lrcnn/train/text.hpp>
namespace lrcnn {
/// What tells a network from others whose parameters may have the same shapes.
inline std::string fingerprint_of(const Table& table) {
  std::string text;
  for (const Node& node : table.nodes)
    text += std::string(node.layer.name.view()) + ":" + describe(node.layer) + " " +
            detail::number_text(node.layer.activation.slope) + (node.layer.count_padding ? ";" : " inside;");
  return std::to_string(table.size()) + " layers, " + std::to_string(crc32c(std::as_bytes(std::span(text))));
}
}  // namespace lrcnn
