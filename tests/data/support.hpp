#pragma once
// What the tests of data share: a folder that goes away, files to fill it with, the text of an error.
#include "support/error_of.hpp"
#include <lrcnn/core/error.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>
#include <stdlib.h>
#include <zlib.h>
namespace lrcnn::test {
using Bytes = std::vector<std::uint8_t>;
/// A new folder, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lrcnn-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }
  std::size_t count() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++n;
    return n;
  }
 private:
  std::filesystem::path path_;
};
inline Bytes bytes_of(const std::string& text) { return Bytes(text.begin(), text.end()); }
inline Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  Bytes packed(deflateBound(&stream, static_cast<uLong>(bytes.size())));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}
inline Bytes cut(Bytes bytes, std::size_t size) {
  bytes.resize(size);
  return bytes;
}
inline Bytes join(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline void big_endian(Bytes& bytes, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}
/// An IDX file of images; the pixels count up.
inline Bytes idx_images(std::uint32_t count, std::uint32_t h, std::uint32_t w, std::uint32_t magic = 2051) {
  Bytes bytes;
  for (const std::uint32_t number : {magic, count, h, w}) big_endian(bytes, number);
  for (std::uint32_t i = 0; i < count * h * w; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  return bytes;
}
inline Bytes idx_labels(const Bytes& labels, std::uint32_t magic = 2049) {
  Bytes bytes;
  big_endian(bytes, magic);
  big_endian(bytes, static_cast<std::uint32_t>(labels.size()));
  return join(bytes, labels);
}
/// CIFAR-10 records with these labels; byte p of record r is 7 r + p.
inline Bytes cifar(const Bytes& labels) {
  Bytes bytes;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    bytes.push_back(labels[r]);
    for (std::size_t p = 0; p < 3072; ++p) bytes.push_back(static_cast<std::uint8_t>(7 * r + p));
  }
  return bytes;
}
template <class E = DataError, class F>
std::string error_of(F f) {
  return testing::error_of<E>(f);
}
}   // namespace lrcnn::test
