#pragma once
// A device's description as cuDNN serialises it: flat JSON.
#include <lrcnn/core/language.hpp>
#include <string>
namespace lrcnn::cudnn {
/// A number or a text of a description. Empty if it is not there.
inline std::string description_field(const std::string& description, const std::string& name) {
  const auto at = description.find('"' + name + '"');
  if (at == std::string::npos) return "";
  const auto begin = description.find_first_not_of(": \t\n\"", at + name.size() + 2);
  const auto end = description.find_first_of(",}\"", begin);
  return begin == std::string::npos || end == std::string::npos ? "" : description.substr(begin, end - begin);
}
}   // namespace lrcnn::cudnn
