#pragma once
// The header of a safetensors file: names, types, shapes and places of its tensors, checked before anything is read.
//
//     8 bytes       length of the header, little-endian
//     the header    {"__metadata__": {"format": "pt"}, "fc.weight": {"dtype": "F32", "shape": [10,512], "data_offsets": [0,20480]}, ...}
//     the data      of one tensor after the other, without gaps; offsets count from here
//
// Source: https://github.com/huggingface/safetensors, whose reader refuses the same files. nlohmann's parser tells what it meets, so nothing
// but the entries is kept, however a header is nested.
#include <lrcnn/interop/tensor_file.hpp>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>
namespace lrcnn {
/// Bytes that a header has at most.
inline constexpr Index safetensors_header_limit = 100'000'000;
/// A tensor and its bytes, counted from the end of the header.
struct SafetensorsEntry {
  StoredTensor tensor{};
  Range bytes{};
};
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries{};   ///< in the order of their bytes
  std::map<std::string, std::string> metadata{};
};
namespace detail {
struct SafetensorsType {
  std::string_view name;
  int bits;
};
/// All types of the format, as its specification orders them.
inline constexpr std::array<SafetensorsType, 20> safetensors_types{{{"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
                                                                    {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
                                                                    {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
                                                                    {"F32", 32}, {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};
/// The place of a type in that list; the number of types if it is none of them.
constexpr std::size_t safetensors_type_place(std::string_view name) {
  std::size_t place = 0;
  while (place < safetensors_types.size() && safetensors_types[place].name != name) ++place;
  return place;
}
[[noreturn]] inline void bad_safetensors(const std::string& who, const std::string& what, std::string_view rule) {
  throw DataError(error_text(who + " " + what, rule, "fetch it again, or save it again with the safetensors library"));
}
/// Takes what the parser meets. Everything but an entry's three keys, and texts in the metadata, is refused where it begins.
class SafetensorsEvents {
 public:
  using json = nlohmann::json;
  SafetensorsEvents(const std::string& who, SafetensorsHeader& header) : who_(who), header_(header) {}
  bool start_object(std::size_t) {
    if (depth_ == 2) refuse();
    ++depth_;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == 1) {
      in_metadata_ = name == "__metadata__";
      if (!names_.insert(name).second) bad_safetensors(who_, "has two entries of the name '" + name + "'", "names are unique");
      if (!in_metadata_) header_.entries.push_back({{.name = name}, {}});
      given_ = {};
    }
    if (depth_ == 2) {
      key_ = name;
      if (in_metadata_) return true;
      const std::size_t k = place_of_key();
      if (k == keys.size()) bad_safetensors(who_, of_entry() + " has '" + key_ + "'", an_entry);
      if (std::exchange(given_[k], true)) bad_safetensors(who_, of_entry() + " has '" + key_ + "' twice", an_entry);
    }
    return true;
  }
  bool end_object() {
    if (--depth_ == 1 && !in_metadata_)
      for (std::size_t k = 0; k < keys.size(); ++k)
        if (!given_[k]) bad_safetensors(who_, of_entry() + " has no '" + std::string(keys[k]) + "'", an_entry);
    if (depth_ == 1) key_.clear();
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ != 2 || in_metadata_ || in_list_ || key_ == "dtype") refuse();
    in_list_ = true;
    return true;
  }
  bool end_array() {
    in_list_ = false;
    if (key_ == "data_offsets" && offsets_ != 2) bad_safetensors(who_, of_entry() + " has " + std::to_string(offsets_) + " offsets", an_entry);
    offsets_ = 0;
    return true;
  }
  bool string(std::string& text) {
    if (depth_ != 2 || in_list_) refuse();
    if (in_metadata_) header_.metadata[key_] = text;
    else if (key_ == "dtype") entry().tensor.type = text;
    else refuse();
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    if (!in_list_) refuse();
    if (value > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
      bad_safetensors(who_, of_entry() + " has the number " + std::to_string(value) + " in '" + key_ + "'", "extents and offsets are below 2^63");
    const auto number = static_cast<Index>(value);
    if (key_ == "shape") entry().tensor.shape.push_back(number);
    else (offsets_++ == 0 ? entry().bytes.begin : entry().bytes.end) = number;
    return true;
  }
  bool null() { return refuse(); }
  bool boolean(bool) { return refuse(); }
  bool number_integer(std::int64_t) { return refuse(); }
  bool number_float(double, const std::string&) { return refuse(); }
  bool binary(json::binary_t&) { return refuse(); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    bad_safetensors(who_, "has a header that is no JSON from byte " + std::to_string(position + 8) + " of the file on",
                    "the header is a JSON object");
  }

 private:
  static constexpr std::array<std::string_view, 3> keys{"dtype", "shape", "data_offsets"};
  static constexpr std::string_view an_entry =
      "an entry has 'dtype', a text, 'shape', a list of extents, and 'data_offsets', a list of two offsets, each once, and nothing else";
  bool refuse() {
    if (depth_ == 2 && in_metadata_) bad_safetensors(who_, "has something else than a text in '__metadata__'", "metadata are pairs of texts");
    if (in_metadata_) bad_safetensors(who_, "has something else than an object as '__metadata__'", "metadata are pairs of texts");
    bad_safetensors(who_, of_entry() + (key_.empty() ? std::string(" is no object") : " has something else in '" + key_ + "'"), an_entry);
  }
  SafetensorsEntry& entry() { return header_.entries.back(); }
  std::string of_entry() const { return "is damaged: the entry of tensor '" + header_.entries.back().tensor.name + "'"; }
  std::size_t place_of_key() const { return static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key_) - keys.begin()); }
  const std::string& who_;
  SafetensorsHeader& header_;
  std::unordered_set<std::string> names_;
  std::string key_;   // of the entry or the metadata
  int depth_ = 0;     // of objects
  int offsets_ = 0;   // of the entry so far
  bool in_metadata_ = false, in_list_ = false;
  std::array<bool, 3> given_{};
};
/// Throws unless an entry's shape, type and bytes agree.
inline void check_safetensors_entry(const std::string& who, const SafetensorsEntry& entry) {
  const StoredTensor& t = entry.tensor;
  const std::string tensor = "is damaged: tensor '" + t.name + "' ";
  const std::size_t type = safetensors_type_place(t.type);
  if (type == safetensors_types.size()) bad_safetensors(who, tensor + "is of type '" + t.type + "'", "types are those of the format, such as F32");
  Index bits = safetensors_types[type].bits;
  bool overflow = false;
  for (const Index extent : t.shape)
    if (extent == 0) bits = 0;
  for (const Index extent : t.shape) overflow = overflow || __builtin_mul_overflow(bits, extent, &bits);
  if (overflow) bad_safetensors(who, tensor + shape_text(t.shape) + " has more elements than can be counted", "a tensor lies within the file");
  if (entry.bytes.begin > entry.bytes.end)
    bad_safetensors(who, tensor + "begins at byte " + std::to_string(entry.bytes.begin) + " and ends at byte " + std::to_string(entry.bytes.end),
                    "offsets are in order");
  if (bits % 8 != 0 || bits / 8 != entry.bytes.size())
    bad_safetensors(who, tensor + t.type + " " + shape_text(t.shape) + " has " + std::to_string(entry.bytes.size()) + " bytes",
                    "type and shape say how many there are");
}
/// Throws unless the entries, in the order of their bytes, cover the data without gap or overlap.
inline void check_safetensors_cover(const std::string& who, std::span<const SafetensorsEntry> entries, Index data_bytes) {
  constexpr std::string_view rule = "tensors lie one behind the other and fill the file";
  const SafetensorsEntry* before = nullptr;
  Index end = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::string tensor = "tensor '" + entry.tensor.name + "'";
    const std::string begins = tensor + " begins at byte " + std::to_string(entry.bytes.begin) + " of the data, ";
    if (entry.bytes.begin < end)
      bad_safetensors(who, "is damaged: " + begins + "before tensor '" + before->tensor.name + "' ends at byte " + std::to_string(end), rule);
    if (entry.bytes.begin > end)
      bad_safetensors(who, "is damaged: " + begins + "and nothing is said of the " + std::to_string(entry.bytes.begin - end) + " bytes before it",
                      rule);
    end = entry.bytes.end, before = &entry;
    if (end > data_bytes)
      bad_safetensors(
          who, "is cut: " + tensor + " ends at byte " + std::to_string(end) + " of the data, the file at byte " + std::to_string(data_bytes), rule);
  }
  if (end < data_bytes) bad_safetensors(who, "has " + std::to_string(data_bytes - end) + " bytes behind its last tensor", rule);
}
}   // namespace detail
/// Reads and checks a header.
/// text: the header, without its length; data_bytes: bytes of the file behind it; who: names the file in messages
/// Post:    the entries' bytes lie within the data, cover it and do not overlap; their sizes are those of types and shapes
/// Errors:  DataError that says what is wrong and with which tensor
/// Cost:    memory: the entries
inline SafetensorsHeader parse_safetensors_header(std::string_view text, Index data_bytes, const std::string& who) {
  SafetensorsHeader header;
  if (!text.starts_with('{'))
    detail::bad_safetensors(who, "is no safetensors file, or is damaged: its header does not begin with '{'",
                            "eight bytes of length are followed by a JSON object");
  if (const auto zero = text.find('\0'); zero != text.npos)   // which the parser takes for the end
    detail::bad_safetensors(who, "has a header that is no JSON from byte " + std::to_string(zero + 9) + " of the file on",
                            "the header is a JSON object");
  detail::SafetensorsEvents events(who, header);
  nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  for (const SafetensorsEntry& entry : header.entries) detail::check_safetensors_entry(who, entry);
  std::sort(header.entries.begin(), header.entries.end(),
            [](const auto& a, const auto& b) { return std::pair(a.bytes.begin, a.bytes.end) < std::pair(b.bytes.begin, b.bytes.end); });
  detail::check_safetensors_cover(who, header.entries, data_bytes);
  return header;
}
}   // namespace lrcnn
