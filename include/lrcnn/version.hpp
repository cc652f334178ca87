#pragma once
// The only source of the version: CMake reads the three macros, packages and changelog follow. Macros rather than
// constants, so that programs can choose at the preprocessor.
#define LRCNN_VERSION_MAJOR 0
#define LRCNN_VERSION_MINOR 1
#define LRCNN_VERSION_PATCH 0
#include <lrcnn/core/language.hpp>
#include <string>
namespace lrcnn {
/// The version as people write it, for example "0.1.0".
inline std::string version() {
  return std::to_string(LRCNN_VERSION_MAJOR) + '.' + std::to_string(LRCNN_VERSION_MINOR) + '.' + std::to_string(LRCNN_VERSION_PATCH);
}
}   // namespace lrcnn
