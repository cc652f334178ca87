#pragma once
// A whole file in memory.
#include <lrcnn/core/error.hpp>
#include <algorithm>
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
/// Post:    a file that does not start with `magic` is read no further than that, however large it is
/// Errors:  DataError if it is missing, not a file, or cannot be read
inline std::vector<std::byte> bytes_of_file(const std::filesystem::path& path, std::string_view kind, std::string_view magic = {}) {
  const std::string who = std::string(kind) + " '" + path.string() + "'";
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    throw DataError(error_text(who + " does not exist", "it is read as a whole", "check the path, or save it first"));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw DataError(error_text(who + (std::filesystem::is_directory(status) ? " is a directory" : " is a device or pipe"), "it must be a file",
                               "check the path"));
  errno = 0;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes;
  if (in) {
    const auto size = static_cast<std::size_t>(in.tellg());
    const auto read_on = [&](std::size_t end) {
      const std::size_t begin = bytes.size();
      bytes.resize(end);
      in.read(reinterpret_cast<char*>(bytes.data() + begin), static_cast<std::streamsize>(end - begin));
    };
    in.seekg(0);
    read_on(std::min(size, magic.size()));
    if (in && (bytes.empty() || std::memcmp(bytes.data(), magic.data(), bytes.size()) == 0)) read_on(size);
  }
  if (!in)
    throw DataError(error_text(who + " cannot be read" + (errno ? std::string(": ") + std::strerror(errno) : ""), "it is read as a whole",
                               "check its permissions and the disk"));
  return bytes;
}
}   // namespace lrcnn::detail
