#pragma once
// Writes safetensors files, as the reference implementation does: same tensors, same bytes.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/interop/safetensors_header.hpp>
namespace lrcnn {
namespace detail {
/// A text as JSON has it, quotes included. Errors: DataError if it is not UTF-8.
inline std::string json_text(const std::string& who, const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw DataError(error_text(who + " cannot be written: a name or text in it is not UTF-8", "JSON is UTF-8", "choose another name"));
  }
}
/// Tensors in the order in which they are written: the largest types first, then by name.
inline std::vector<const NamedTensor*> safetensors_order(const std::string& who, std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : tensors) {
    check_tensor_bytes(t, who);
    order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const auto place = [](const NamedTensor* t) { return safetensors_type_place(type_name(t->type)); };
    return place(a) != place(b) ? place(a) > place(b) : a->name < b->name;
  });
  std::unordered_set<std::string_view> names{"__metadata__"};
  for (const NamedTensor* t : order)
    if (!names.insert(t->name).second)
      throw DataError(
          error_text(who + " cannot be written: two entries would have the name '" + t->name + "'", "names are unique", "name the tensor otherwise"));
  return order;
}
}   // namespace detail
/// Writes tensors to a file, which is replaced atomically.
/// metadata: pairs of texts; {"format", "pt"} is what PyTorch's loaders want
/// Post:    the file is what the safetensors library writes of the same tensors and metadata, these in the order of their keys
/// Errors:  DataError if the file cannot be written (an older one is intact then), two tensors have one name, or a name is not UTF-8;
///          ShapeError if a tensor's bytes are not those of its type and shape
inline void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {{"format", "pt"}}) {
  const std::string who = "safetensors file '" + path.string() + "'";
  const auto order = detail::safetensors_order(who, tensors);
  std::string header = "{";
  const auto begin_entry = [&](const std::string& name) {
    if (header.size() > 1) header += ',';
    header += detail::json_text(who, name) + ":{";
  };
  if (!metadata.empty()) {
    begin_entry("__metadata__");
    for (const auto& [key, value] : metadata)
      header += (header.back() == '{' ? "" : ",") + detail::json_text(who, key) + ":" + detail::json_text(who, value);
    header += '}';
  }
  std::size_t begin = 0;
  for (const NamedTensor* t : order) {
    begin_entry(t->name);
    header += "\"dtype\":\"" + std::string(type_name(t->type)) + "\",\"shape\":" + shape_text(t->shape) + ",\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(begin + t->bytes.size()) + "]}";
    begin += t->bytes.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');   // so that data are aligned
  if (static_cast<Index>(header.size()) > safetensors_header_limit)
    throw DataError(error_text(who + " cannot be written: its header has " + std::to_string(header.size()) + " bytes",
                               "a header has at most " + std::to_string(safetensors_header_limit), "write fewer tensors into a file"));
  AtomicFile file(path);
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const NamedTensor* t : order) file.write(t->bytes);
  file.finish();
}
}   // namespace lrcnn
