#pragma once
// Named tensors in memory and in files, whatever the format.
//
// A format is a class that derives from TensorFile: it lists its tensors and gives their bytes. Conversion to what the program computes in
// is done here, once for all formats. Bytes are little-endian, rows last: the order in which PyTorch and NumPy write them.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
namespace lrcnn {
static_assert(std::endian::native == std::endian::little, "lrcnn: files of tensors are little-endian, and are read on such machines only");
/// Types of elements that are written; all but i64, which counters have, are read.
enum class TensorType : std::uint8_t { f64, f32, f16, bf16, i64 };
/// "F64", "F32", "F16", "BF16", "I64"
constexpr std::string_view type_name(TensorType type) {
  constexpr std::array<std::string_view, 5> names{"F64", "F32", "F16", "BF16", "I64"};
  return names[static_cast<std::size_t>(type)];
}
/// Bytes of an element.
constexpr std::size_t type_bytes(TensorType type) {
  constexpr std::array<std::size_t, 5> bytes{8, 4, 2, 2, 8};
  return bytes[static_cast<std::size_t>(type)];
}
/// The type of that name, if it is one that is read.
constexpr std::optional<TensorType> readable_type(std::string_view name) {
  for (const TensorType type : {TensorType::f64, TensorType::f32, TensorType::f16, TensorType::bf16})
    if (type_name(type) == name) return type;
  return std::nullopt;
}
/// What elements of a C++ type are called in files.
template <class T>
inline constexpr TensorType tensor_type = std::is_same_v<T, double>     ? TensorType::f64
                                          : std::is_same_v<T, float16>  ? TensorType::f16
                                          : std::is_same_v<T, bfloat16> ? TensorType::bf16
                                                                        : TensorType::f32;
/// "[64,3,7,7]"; "[]" for a single number.
inline std::string shape_text(std::span<const Index> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}
/// A tensor in memory that is to be written. Its bytes are the owner's.
struct NamedTensor {
  std::string name{};
  std::vector<Index> shape{};
  TensorType type = TensorType::f32;
  std::span<const std::byte> bytes{};   ///< all elements, row-major
};
/// Checks a tensor that is to be written to `who`.
/// Errors:  ShapeError unless it has the bytes that its type and shape say
inline void check_tensor_bytes(const NamedTensor& tensor, const std::string& who) {
  Index bytes = static_cast<Index>(type_bytes(tensor.type));
  bool good = true, empty = false;
  for (const Index extent : tensor.shape) {
    good = good && extent >= 0;
    if (extent == 0) empty = true;
    else good = good && !__builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (good && static_cast<Index>(tensor.bytes.size()) == (empty ? 0 : bytes)) return;
  throw ShapeError(error_text("tensor '" + tensor.name + "' " + std::string(type_name(tensor.type)) + " " + shape_text(tensor.shape) + " for " + who +
                                  " has " + std::to_string(tensor.bytes.size()) + " bytes",
                              "type and shape say how many there are", "give it all its elements"));
}
/// A tensor in a file.
struct StoredTensor {
  std::string name{};
  std::vector<Index> shape{};
  std::string type{};   ///< as files name it: "F32"; may be one that lrcnn does not read
  Index count() const {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;   // whose other extents may be beyond all counting
    Index n = 1;
    for (const Index extent : shape) n *= extent;
    return n;
  }
};
/// A file, or a folder, of named tensors. It stays open and is not changed by reading; read() may be called by several threads.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  /// "safetensors file 'resnet50.safetensors'", for messages
  virtual const std::string& description() const = 0;
  /// All tensors. Names are unique.
  virtual std::span<const StoredTensor> tensors() const = 0;
  /// Reads tensor `i` and converts its elements: a double becomes the nearest float, all else is exact.
  /// Shapes:  values: tensors()[i].count() elements
  /// Errors:  DataError if its type is not read, a finite double is too large for a float, or the file ends before it, was changed
  ///          since it was opened, or cannot be read; ShapeError if `values` are of another number. `values` may be changed then
  /// Cost:    no memory where the types agree, 256 KiB otherwise
  template <class T>
  void read(std::size_t i, std::span<T> values) const {
    const StoredTensor& tensor = tensors()[i];
    if (static_cast<Index>(values.size()) != tensor.count())
      throw ShapeError(
          error_text("tensor '" + tensor.name + "' " + shape_text(tensor.shape) + " is read into " + std::to_string(values.size()) + " elements",
                     "a tensor is read as a whole", "give it " + std::to_string(tensor.count()) + " elements"));
    switch (type_to_read(tensor)) {
      case TensorType::f64: return read_as<double>(i, values);
      case TensorType::f16: return read_as<float16>(i, values);
      case TensorType::bf16: return read_as<bfloat16>(i, values);
      default: return read_as<float>(i, values);
    }
  }

 private:
  /// Fills `bytes` with those of tensor `i` from byte `begin` on. Errors: DataError as above.
  virtual void read_bytes(std::size_t i, Index begin, std::span<std::byte> bytes) const = 0;
  TensorType type_to_read(const StoredTensor& tensor) const {
    if (const auto type = readable_type(tensor.type)) return *type;
    throw DataError(error_text("tensor '" + tensor.name + "' of " + description() + " is of type " + tensor.type,
                               "parameters are F64, F32, F16 or BF16", "convert it to one of these before it is saved"));
  }
  [[noreturn]] void refuse_large(const StoredTensor& tensor, double value, std::string_view type) const {
    throw DataError(error_text("tensor '" + tensor.name + "' of " + description() + " has an element " + number_text(value) + ", which " +
                                   std::string(type) + " cannot hold",
                               "a finite number stays finite", "load it into a network that computes in F64, or look at what was saved"));
  }
  template <class Stored, class T>
  void read_as(std::size_t i, std::span<T> values) const {
    if constexpr (std::is_same_v<Stored, T>) {
      read_bytes(i, 0, std::as_writable_bytes(values));
    } else {
      std::vector<Stored> chunk(std::min(values.size(), (std::size_t{256} << 10) / sizeof(Stored)));
      for (std::size_t begin = 0; begin < values.size(); begin += chunk.size()) {
        const auto part = std::span(chunk).first(std::min(chunk.size(), values.size() - begin));
        read_bytes(i, static_cast<Index>(begin * sizeof(Stored)), std::as_writable_bytes(part));
        for (std::size_t k = 0; k < part.size(); ++k) {
          values[begin + k] = static_cast<T>(part[k]);
          if constexpr (std::is_same_v<Stored, double>)
            if (std::isfinite(part[k]) && !std::isfinite(values[begin + k])) refuse_large(tensors()[i], part[k], type_name(tensor_type<T>));
        }
      }
    }
  }
};
}   // namespace lrcnn
