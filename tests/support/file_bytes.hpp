#pragma once
// The bytes of a file that a test has written.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>
namespace lrcnn::testing {
/// Errors:  std::runtime_error, naming the file, if it cannot be opened
inline std::vector<std::byte> file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("test file '" + path.string() + "' cannot be opened");
  std::vector<std::byte> bytes;
  for (std::istreambuf_iterator<char> at(in), end; at != end; ++at) bytes.push_back(static_cast<std::byte>(*at));
  return bytes;
}
}   // namespace lrcnn::testing
