#pragma once
// A whole file of data in memory, unpacked if it is packed with gzip.
//
// Data sets come from the network and from other people, so nothing about a file is taken on trust: its length, its
// packing and its size after unpacking are all checked, and whatever is wrong is named with its byte. This is the
// only header that needs zlib.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <zlib.h>
namespace lrcnn {
/// How many bytes a data file may have after unpacking, unless the caller says otherwise.
inline constexpr Index data_limit_bytes = 4_GiB;
namespace detail {
/// "file 'train.bin'", as messages begin.
inline std::string file_text(const std::filesystem::path& path) { return "file '" + path.string() + '\''; }
inline DataError too_large(std::string_view who, Index limit_bytes) {
  return DataError(error_text(std::string(who) + " is larger than " + std::to_string(limit_bytes) + " bytes",
                              "more is not read, so that a wrong file cannot fill the memory",
                              "check that it is the right file, or raise the limit"));
}
struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
/// The bytes of a regular file as they are.
inline std::vector<std::uint8_t> read_plain(const std::filesystem::path& path, Index limit_bytes) {
  const std::string who = file_text(path);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw DataError(error_text(who + " does not exist", "data are read from files", "check the path"));
  if (!std::filesystem::is_regular_file(status))
    throw DataError(error_text(who + " is not a regular file", "data are read as a whole", "name a file"));
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "rb"));
  const auto size = std::filesystem::file_size(path, error);
  if (!file || error)
    throw DataError(error_text(who + " cannot be opened: " + (file ? error.message() : std::strerror(errno)), "data are read as a whole",
                               "check its access rights"));
  if (size > static_cast<std::uintmax_t>(limit_bytes)) throw too_large(who, limit_bytes);
  std::vector<std::uint8_t> bytes(size);
  errno = 0;
  const std::size_t got = size == 0 ? 0 : std::fread(bytes.data(), 1, size, file.get());
  if (got != size)
    throw DataError(error_text(
        who + " cannot be read at byte " + std::to_string(got) + (errno != 0 ? std::string(": ") + std::strerror(errno) : ": it ends there"),
        "its size is " + std::to_string(size) + " bytes", "check the disk and fetch it again"));
  return bytes;
}
}   // namespace detail
/// True if the bytes begin as gzip files do.
inline bool is_gzip(std::span<const std::uint8_t> bytes) { return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b; }
/// Unpacks gzip data, of one member or several. `who` names them in messages.
/// Post:    every checksum and length in the data was verified, and nothing follows the last member
/// Errors:  DataError if the data are cut, damaged, followed by something else, or unpack to more than limit_bytes
inline std::vector<std::uint8_t> unpack_gzip(std::span<const std::uint8_t> packed, std::string_view who, Index limit_bytes = data_limit_bytes) {
  const std::size_t limit = static_cast<std::size_t>(limit_bytes);
  struct Stream : z_stream {
    Stream() : z_stream{} {
      if (inflateInit2(this, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();   // 16: gzip, not zlib
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { inflateEnd(this); }
  } stream;
  constexpr std::size_t piece = std::size_t{1} << 30;   // zlib counts in 32 bits
  std::size_t in = 0, out = 0;
  std::vector<std::uint8_t> bytes;
  const auto place = [&] { return " at byte " + std::to_string(in) + " of " + std::to_string(packed.size()); };
  for (;;) {
    if (out == bytes.size()) {
      if (out > limit) throw detail::too_large(std::string(who) + ", unpacked,", limit_bytes);
      bytes.resize(std::min(limit + 1, std::max({std::size_t{1} << 16, 4 * packed.size(), 2 * out})));
    }
    // zlib's interface is not const; it only reads.
    stream.next_in = const_cast<Bytef*>(packed.data() + in);
    stream.avail_in = static_cast<uInt>(std::min(piece, packed.size() - in));
    stream.next_out = bytes.data() + out;
    stream.avail_out = static_cast<uInt>(std::min(piece, bytes.size() - out));
    const int code = inflate(&stream, Z_NO_FLUSH);
    in = static_cast<std::size_t>(stream.next_in - packed.data());
    out = static_cast<std::size_t>(stream.next_out - bytes.data());
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code == Z_STREAM_END) {
      if (in == packed.size()) break;
      if (!is_gzip(packed.subspan(in)))
        throw DataError(error_text(std::string(who) + " goes on after the end of its gzip data" + place(), "nothing but further gzip data may follow",
                                   "fetch it again"));
      inflateReset(&stream);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      throw DataError(error_text(std::string(who) + " is damaged" + place() + ": " + (stream.msg != nullptr ? stream.msg : "no gzip data"),
                                 "gzip data carry a checksum and their length", "fetch it again"));
    } else if (in == packed.size() && stream.avail_out != 0) {
      throw DataError(error_text(std::string(who) + " is cut" + place() + ", " + std::to_string(out) + " bytes unpacked",
                                 "gzip data end with a checksum and their length", "fetch it again"));
    }
  }
  if (out > limit) throw detail::too_large(std::string(who) + ", unpacked,", limit_bytes);
  bytes.resize(out);
  return bytes;
}
/// Reads a whole file; unpacks it if its first bytes say gzip, whatever its name.
/// Errors:  DataError, naming file and byte, if it is missing, no regular file, cannot be read, larger than
///          limit_bytes (packed or unpacked), or if its gzip data are cut or damaged
/// Cost:    memory: the bytes, and while unpacking the packed ones too
inline std::vector<std::uint8_t> read_data_file(const std::filesystem::path& path, Index limit_bytes = data_limit_bytes) {
  std::vector<std::uint8_t> bytes = detail::read_plain(path, limit_bytes);
  return is_gzip(bytes) ? unpack_gzip(bytes, detail::file_text(path), limit_bytes) : bytes;
}
namespace detail {
/// `name` or `name`.gz in a folder, the plain one if both are there; empty if neither.
inline std::filesystem::path plain_or_gzip(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  for (const auto& candidate : {folder / name, folder / (name + ".gz")})
    if (std::filesystem::exists(candidate, error)) return candidate;
  return {};
}
/// The same. Errors: DataError if neither is there.
inline std::filesystem::path need_plain_or_gzip(const std::filesystem::path& folder, const std::string& name) {
  auto path = plain_or_gzip(folder, name);
  if (path.empty())
    throw DataError(error_text("folder '" + folder.string() + "' has no file '" + name + "' or '" + name + ".gz'",
                               "every file of a part of a data set is needed", "check the folder, or fetch the file"));
  return path;
}
}   // namespace detail
/// The lines of a small text file, such as the names of a data set's classes; none if there is no such file. Lines end with "\n" or
/// "\r\n"; empty lines at the end of the file do not count. A file that is packed with gzip is unpacked.
/// Errors:  as read_data_file, with a limit of 1 MiB
inline std::vector<std::string> lines_if_exists(const std::filesystem::path& path) {
  std::error_code error;
  std::vector<std::string> lines;
  if (!std::filesystem::exists(path, error)) return lines;
  const auto bytes = read_data_file(path, 1_MiB);
  std::string line;
  for (const std::uint8_t b : bytes)
    if (b == '\n') {
      lines.push_back(std::move(line));
      line.clear();
    } else if (b != '\r') {
      line.push_back(static_cast<char>(b));
    }
  lines.push_back(std::move(line));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}
}   // namespace lrcnn
