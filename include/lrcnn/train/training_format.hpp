#pragma once
// The bytes of a training file: its layout, and how they are checked and taken apart.
//
// Little endian on every machine:
//     magic (8 bytes), format version (u32), size of the whole file (u64)     the same in every version
//     library version, network fingerprint, element type                     texts: length (u32) and bytes
//     parameters: count (u32), each name, four extents (u64)
//     optimizer: name, number of settings (u32), each name and value (f64), number of states (u32)
//     counters and metrics, notes: count (u32), each key and value
//     values of all parameters one after the other, then each state likewise; gaps of the flat buffer are not kept
//     CRC-32C of everything before it (u32)                                   the same in every version
#include <lrcnn/core/checksum.hpp>
#include <lrcnn/core/error.hpp>
#include <lrcnn/network/parameters.hpp>
#include <lrcnn/train/metrics.hpp>
#include <lrcnn/train/optimizer.hpp>
#include <lrcnn/core/read_file.hpp>
#include <lrcnn/version.hpp>
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
namespace lrcnn {
/// Everything but the numbers in flat buffers.
struct TrainingState {
  std::string fingerprint;   ///< of the network; equal for networks that may exchange states
  Optimizer optimizer{Sgd{}};
  Index step = 0;      ///< steps done
  Index updates = 0;   ///< optimizer updates done; the next has the number updates + 1
  Index epoch = 0;     ///< epochs finished
  Index batch = 0;     ///< batches done in the epoch that is not finished
  std::uint64_t seed = 0;
  Metrics metrics{};                            ///< of the epoch that is not finished
  std::map<std::string, std::string> notes{};   ///< the caller's own, small
  std::string library_version = version();      ///< that wrote the file
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};
namespace detail {
constexpr std::string_view training_magic{"\x89LRCNN\r\n", 8};   // not text, and text-mode copies damage it visibly
constexpr std::uint32_t training_format = 2;                     // 1 has no weight of the metrics: every image, or pixel, is taken to weigh 1
constexpr std::size_t prologue_bytes = 8 + 4 + 8;
template <class T>
constexpr std::string_view element_name() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  return std::is_same_v<T, float> ? "float32" : "float64";
}
/// Copies numbers between memory and little-endian bytes.
inline void copy_little_endian(std::byte* to, const std::byte* from, std::size_t count, std::size_t size) {
  if constexpr (std::endian::native == std::endian::little) {
    if (count > 0) std::memcpy(to, from, count * size);
  } else {
    for (std::size_t i = 0; i < count; ++i) std::reverse_copy(from + i * size, from + (i + 1) * size, to + i * size);
  }
}
class ByteWriter {
 public:
  template <class T>
  void numbers(const T* values, std::size_t count) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + count * sizeof(T));
    copy_little_endian(bytes_.data() + at, reinterpret_cast<const std::byte*>(values), count, sizeof(T));
  }
  template <class T>
  void number(T value) {
    numbers(&value, 1);
  }
  void count(std::size_t value) { number(static_cast<std::uint32_t>(value)); }
  void text(std::string_view t) {
    count(t.size());
    numbers(t.data(), t.size());
  }
  std::vector<std::byte>& bytes() { return bytes_; }
 private:
  std::vector<std::byte> bytes_;
};
/// Reads what ByteWriter wrote. A length that leads beyond the end is an error, not an access.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::size_t at, std::string_view who) : bytes_(bytes), at_(at), who_(who) {}
  std::span<const std::byte> take(std::size_t count, std::size_t size) {
    if (count > (bytes_.size() - at_) / size) malformed("an entry leads beyond the end");
    const auto taken = bytes_.subspan(at_, count * size);
    at_ += count * size;
    return taken;
  }
  template <class T>
  T number() {
    T value;
    copy_little_endian(reinterpret_cast<std::byte*>(&value), take(1, sizeof(T)).data(), 1, sizeof(T));
    return value;
  }
  std::uint32_t count() { return number<std::uint32_t>(); }
  std::string text() {
    const auto t = take(count(), 1);
    return {reinterpret_cast<const char*>(t.data()), t.size()};
  }
  std::size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void malformed(std::string_view why) const {
    throw DataError(error_text(std::string(who_) + " is malformed at byte " + std::to_string(at_) + ": " + std::string(why),
                               "its checksum is right, so it was written like this", "save it again with this library"));
  }
 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
  std::string_view who_;
};
/// What a file holds, its numbers still in `bytes`.
struct TrainingContents {
  TrainingState state;
  std::string element;
  std::vector<Parameter> parameters;   // densely laid out, as in the file
  Index states = 0;
  std::vector<std::byte> bytes;
  std::size_t values = 0;   // offset of the first parameter's values
};
/// Returns the format's version. Errors: DataError if it is no training file, a part of one, damaged, or of a version that is not read
inline std::uint32_t check_training_bytes(std::span<const std::byte> bytes, const std::string& who) {
  const std::size_t compared = std::min(bytes.size(), training_magic.size());
  if (compared == 0) throw DataError(error_text(who + " is empty", "a training file has at least a header", "take an older copy"));
  if (std::memcmp(bytes.data(), training_magic.data(), compared) != 0)
    throw DataError(error_text(who + " is not a training file", "it does not start with the magic number of one", "name a file that save wrote"));
  const auto cut = [&](const std::string& of) {
    return DataError(error_text(who + " is cut: it holds " + std::to_string(bytes.size()) + " of " + of + " bytes",
                                "a training file is used whole or not at all", "take an older copy, or copy it again"));
  };
  const auto damaged = [&](const std::string& how) {
    return DataError(error_text(who + " is damaged: " + how, "a training file is used whole or not at all", "take an older copy, or copy it again"));
  };
  if (bytes.size() < prologue_bytes + 4) throw cut("at least " + std::to_string(prologue_bytes + 4));
  ByteReader prologue(bytes, training_magic.size(), who);
  const auto format = prologue.number<std::uint32_t>();
  const auto size = prologue.number<std::uint64_t>();
  if (bytes.size() < size) throw cut(std::to_string(size));
  if (bytes.size() > size) throw damaged(std::to_string(bytes.size() - size) + " bytes follow its end");
  const auto expected = ByteReader(bytes, bytes.size() - 4, who).number<std::uint32_t>();
  if (crc32c(bytes.first(bytes.size() - 4)) != expected) throw damaged("its checksum does not match");
  if (format != training_format && format != 1)
    throw DataError(error_text(who + " has format version " + std::to_string(format),
                               "lrcnn " + version() + " reads versions 1 and " + std::to_string(training_format),
                               "load it with the version of lrcnn that wrote it"));
  return format;
}
/// The optimizer that a file was saved with, and its number of states. Types: those of the library and `known`'s, if there is one; any
/// other is recorded.
inline Optimizer read_optimizer(ByteReader& in, const Optimizer* known, Index& states) {
  const std::string name = in.text();
  std::vector<OptimizerSetting> settings;
  for (auto n = in.count(); n > 0; --n) {
    std::string key = in.text();
    settings.push_back({std::move(key), in.number<double>()});
  }
  states = in.count();
  const auto like = [&](const Optimizer& type) {
    std::vector<OptimizerSetting> values = type.settings();
    for (auto& [key, value] : values) {
      const auto found = std::ranges::find(settings, key, &OptimizerSetting::name);
      if (found == settings.end()) in.malformed("setting '" + key + "' of " + name + " is missing");
      const double number = found->number();
      if (!std::holds_alternative<double>(value) && number != 0 && number != 1)
        in.malformed("setting '" + key + "' of " + name + " is " + number_text(number));
      std::visit([&](auto& v) { v = static_cast<std::remove_cvref_t<decltype(v)>>(number); }, value);
    }
    if (values.size() != settings.size()) in.malformed(name + " has settings that this program does not know");
    try {
      return type.with(values);
    } catch (const Error& e) {
      in.malformed(e.what());
    }
  };
  if (known != nullptr && name == known->name()) return like(*known);
  if (name == Sgd::name) return like(Sgd{});
  if (name == AdamW::name) return like(AdamW{});
  try {
    return Optimizer::recorded(name, settings, states);
  } catch (const Error& e) {
    in.malformed(e.what());
  }
}
/// `known`: of the type that shall continue, if there is one.
inline TrainingContents read_training_contents(const std::filesystem::path& path, const Optimizer* known = nullptr) {
  const std::string who = "training file '" + path.string() + "'";
  TrainingContents file;
  file.bytes = bytes_of_file(path, "training file", training_magic);
  const std::uint32_t format = check_training_bytes(file.bytes, who);
  ByteReader in(std::span(file.bytes).first(file.bytes.size() - 4), prologue_bytes, who);
  TrainingState& s = file.state;
  s.library_version = in.text();
  s.fingerprint = in.text();
  file.element = in.text();
  Index offset = 0;
  for (auto n = in.count(); n > 0; --n) {
    Parameter p{.name = in.text(), .offset = offset};
    Index elements = 1;
    for (Index& e : p.shape.extents) {
      e = in.number<Index>();
      if (e < 0 || (elements > 0 && e > static_cast<Index>(file.bytes.size()) / elements))
        in.malformed("extent " + std::to_string(e) + " of '" + p.name + "'");
      elements *= e;
    }
    offset += elements;
    file.parameters.push_back(std::move(p));
  }
  s.optimizer = read_optimizer(in, known, file.states);
  s.step = in.number<Index>(), s.updates = in.number<Index>(), s.epoch = in.number<Index>();
  s.batch = in.number<Index>(), s.seed = in.number<std::uint64_t>();
  s.metrics.loss_sum = in.number<double>(), s.metrics.images = in.number<Index>();
  s.metrics.correct = in.number<Index>();
  s.metrics.weight = format == 1 ? static_cast<double>(s.metrics.images) : in.number<double>();
  for (auto n = in.count(); n > 0; --n) {
    const std::string key = in.text();
    s.notes[key] = in.text();
  }
  file.values = file.bytes.size() - 4 - in.left();
  const std::size_t size = file.element == "float32" ? 4 : file.element == "float64" ? 8 : 0;
  if (size == 0) in.malformed("element type '" + file.element + "' is not known");
  if (file.states != s.optimizer.state_count()) in.malformed(std::string(s.optimizer.name()) + " with " + std::to_string(file.states) + " states");
  const auto elements = static_cast<std::size_t>(offset), buffers = static_cast<std::size_t>(1 + file.states);   // the latter may be anything
  if (in.left() / size != elements * buffers || in.left() % size != 0) in.malformed("it does not hold as many values as its parameters have");
  return file;
}
}   // namespace detail
}   // namespace lrcnn
