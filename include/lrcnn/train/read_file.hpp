#pragma once
// A whole file in memory.
#include <lrcnn/core/error.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
namespace lrcnn::detail {
/// All bytes of a file. `kind` names it in messages ("training file").
/// Errors:  DataError if it is missing, not a file, or cannot be read
inline std::vector<std::byte> bytes_of_file(const std::filesystem::path& path, std::string_view kind) {
  const std::string who = std::string(kind) + " '" + path.string() + "'";
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    throw DataError(error_text(who + " does not exist", "it is read as a whole", "check the path, or save it first"));
  if (status.type() == std::filesystem::file_type::directory)
    throw DataError(error_text(who + " is a directory", "it must be a file", "name the file in it"));
  errno = 0;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes;
  if (in) {
    bytes.resize(static_cast<std::size_t>(in.tellg()));
    in.seekg(0);
    in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  if (!in)
    throw DataError(error_text(who + " cannot be read" + (errno ? std::string(": ") + std::strerror(errno) : ""),
                               "it is read as a whole", "check its permissions and the disk"));
  return bytes;
}
}  // namespace lrcnn::detail
