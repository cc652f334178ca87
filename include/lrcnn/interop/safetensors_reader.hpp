#pragma once
// Reads safetensors files: tensors by name, straight into the caller's memory.
//
// Pickled files (.pt, .pth) hold programs that run when they are loaded. They are refused, with a line that converts them.
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/interop/safetensors_header.hpp>
namespace lrcnn {
namespace detail {
/// Whether a file begins as PyTorch's files do: a zip archive or, until version 1.5, pickled data.
inline bool looks_pickled(std::string_view first) {
  return first.starts_with("PK\x03\x04") || (first.size() >= 2 && first[0] == '\x80' && first[1] >= 1 && first[1] <= 5);
}
[[noreturn]] inline void refuse_pickled(const std::string& who, const std::filesystem::path& path) {
  const std::string from = path.string(), to = std::filesystem::path(path).replace_extension("safetensors").string();
  throw DataError(error_text(who + " is no safetensors file but a pickled one or an archive, as torch.save() writes them",
                             "pickled files can run code when they are loaded, so lrcnn reads none",
                             "convert it where you trust it: python -c \"import torch; from safetensors.torch import save_file; save_file({k: "
                             "v.contiguous() for k, v in torch.load('" +
                                 from + "', weights_only=True).items()}, '" + to + "')\""));
}
}   // namespace detail
/// The tensors of a safetensors file. Opening reads and checks the header only.
class SafetensorsFile final : public TensorFile {
 public:
  /// Errors:  DataError if the file cannot be read, is pickled, is no safetensors file, is cut, or has entries that overlap, leave gaps,
  ///          lie outside the file, or do not fit their types and shapes
  explicit SafetensorsFile(const std::filesystem::path& path)
      : description_("safetensors file '" + path.string() + "'"), file_(path, "safetensors file") {
    const SafetensorsHeader header = read_header(path);
    metadata_ = header.metadata;
    for (const SafetensorsEntry& entry : header.entries) tensors_.push_back(entry.tensor), begins_.push_back(data_ + entry.bytes.begin);
  }
  const std::string& description() const override { return description_; }
  /// In the order of their bytes.
  std::span<const StoredTensor> tensors() const override { return tensors_; }
  /// What '__metadata__' says; PyTorch's files have {"format", "pt"}.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  SafetensorsHeader read_header(const std::filesystem::path& path) {
    std::array<char, 9> first{};
    const auto known = static_cast<std::size_t>(std::min<Index>(file_.size(), 9));
    file_.read(0, std::as_writable_bytes(std::span(first).first(known)));
    std::uint64_t length = 0;
    std::memcpy(&length, first.data(), 8);
    const bool begins = known == 9 && first[8] == '{' && length <= static_cast<std::uint64_t>(file_.size() - 8);
    if (!begins && detail::looks_pickled({first.data(), known})) detail::refuse_pickled(description_, path);
    if (known < 8)
      detail::bad_safetensors(description_, "is no safetensors file, or is cut: it has " + std::to_string(known) + " bytes",
                              "eight bytes of length are followed by a JSON object");
    if (length > static_cast<std::uint64_t>(safetensors_header_limit))
      detail::bad_safetensors(description_, "is no safetensors file, or is damaged: its header has " + std::to_string(length) + " bytes",
                              "a header has at most " + std::to_string(safetensors_header_limit));
    if (length > static_cast<std::uint64_t>(file_.size() - 8))
      detail::bad_safetensors(description_,
                              "is no safetensors file, or is cut: its header has " + std::to_string(length) + " bytes, and " +
                                  std::to_string(file_.size() - 8) + " follow",
                              "eight bytes of length are followed by the header");
    std::string text(static_cast<std::size_t>(length), ' ');
    file_.read(8, std::as_writable_bytes(std::span(text)));
    data_ = 8 + static_cast<Index>(length);
    file_.check_unchanged();
    return parse_safetensors_header(text, file_.size() - data_, description_);
  }
  void read_bytes(std::size_t i, Index begin, std::span<std::byte> bytes) const override {
    file_.read(begins_[i] + begin, bytes);
    file_.check_unchanged();
  }
  std::string description_;
  OpenFile file_;
  Index data_ = 0;   // where the data begin
  std::vector<StoredTensor> tensors_;
  std::vector<Index> begins_;   // of their bytes in the file
  std::map<std::string, std::string> metadata_;
};
}   // namespace lrcnn
