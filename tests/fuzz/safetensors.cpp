// The reader of safetensors files: header, and the tensors' bytes.
#include "fuzz.hpp"
#include <lrcnn/interop/safetensors.hpp>
#include <cmath>
void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) {
  const std::array<std::uint8_t, 16> bytes{1, 2, 3, 4, 5, 6, 7, 8};
  const auto some = [&](std::size_t n) { return std::as_bytes(std::span(bytes)).first(n); };
  const std::vector<NamedTensor> tensors{{"fc.weight", {2, 2}, TensorType::f32, some(16)}, {"bias", {1}, TensorType::f64, some(8)},
                                         {"half", {3}, TensorType::f16, some(6)},          {"brain", {2, 1}, TensorType::bf16, some(4)},
                                         {"count", {}, TensorType::i64, some(8)},          {"none", {0, 7}, TensorType::f32, some(0)}};
  write_safetensors(folder / "all.safetensors", tensors);
  write_safetensors(folder / "one.safetensors", std::span(tensors).first(1), {});
  write_safetensors(folder / "empty.safetensors", {}, {});
  write_file(folder / "pickled", std::vector<std::uint8_t>{'P', 'K', 3, 4, 0, 0, 0, 0, 0, 0});
}
void lrcnn::fuzz::read(std::span<const std::uint8_t> bytes) {
  const MemoryFile memory(bytes);
  const SafetensorsFile file(memory.path());
  std::vector<float> values;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const StoredTensor& tensor = file.tensors()[i];
    if (!readable_type(tensor.type)) continue;
    if (tensor.count() > static_cast<Index>(bytes.size())) std::abort();   // more elements than the file has bytes
    values.assign(static_cast<std::size_t>(tensor.count()), std::nanf(""));
    file.read(i, std::span(values));
  }
}
