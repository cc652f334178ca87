#pragma once
// A tensor of another program - PyTorch, CuPy, JAX, NumPy - as DLPack hands it over: a C struct that says where the elements lie.
//
// Who gets such a struct calls its deleter once, when the tensor is no longer needed. DlpackTensor does that: it takes the struct over as
// soon as it is given it, also if it then refuses the tensor by an exception. In Python the struct comes in a capsule called "dltensor", or
// "dltensor_versioned" for the struct of DLPack 1, which has a version and flags. Who takes the struct renames the capsule to "used_...", so
// that the capsule does not call the deleter, too; do that before the struct is given to a DlpackTensor.
//
// Headers before DLPack 1 (Debian 12's is 0.6) do not declare the versioned struct. Programs exchange it all the same, whatever this one is
// compiled with, so it is declared here then.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/types.hpp>
#include <dlpack/dlpack.h>
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
namespace lrcnn {
namespace dlpack {
#if defined(DLPACK_MAJOR_VERSION) && DLPACK_MAJOR_VERSION >= 1
using ::DLManagedTensorVersioned;
using ::DLPackVersion;
#else
struct DLPackVersion {
  std::uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};
#endif
/// Flags of the versioned struct: the consumer must not write to the tensor; the producer has made a copy for it.
inline constexpr std::uint64_t flag_read_only = 1, flag_copied = 2;
/// The code of booleans of a byte, which old headers lack.
inline constexpr std::uint8_t code_bool = 6;
inline constexpr DLDevice cpu{kDLCPU, 0};
/// The name that an element type has in NumPy and PyTorch: "float32".
inline std::string dtype_text(const DLDataType& type) {
  std::string text;
  const std::string bits = std::to_string(type.bits);
  switch (type.code) {
    case kDLInt: text = "int" + bits; break;
    case kDLUInt: text = "uint" + bits; break;
    case kDLFloat: text = "float" + bits; break;
    case kDLBfloat: text = "bfloat" + bits; break;
    case kDLComplex: text = "complex" + bits; break;
    case code_bool: text = "bool"; break;
    default: text = "type " + std::to_string(type.code) + " of " + bits + " bits";
  }
  return type.lanes == 1 ? text : "vectors of " + std::to_string(type.lanes) + " " + text;
}
/// "the CPU", "CUDA device 0".
inline std::string device_text(const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU: return "the CPU";
    case kDLCUDA: return "CUDA device " + std::to_string(device.device_id);
    case kDLCUDAHost: return "CUDA's pinned memory";
    case kDLCUDAManaged: return "CUDA's managed memory";
    case kDLROCM: return "ROCm device " + std::to_string(device.device_id);
    case kDLROCMHost: return "ROCm's pinned memory";
    default: return "device " + std::to_string(device.device_id) + " of DLPack's type " + std::to_string(static_cast<int>(device.device_type));
  }
}
/// The element type that DLPack has for T.
template <class T>
constexpr DLDataType dtype_of() {
  static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>);
  constexpr auto bits = static_cast<std::uint8_t>(8 * sizeof(T));
  if constexpr (std::is_same_v<T, bfloat16>) return {kDLBfloat, bits, 1};
  else if constexpr (std::is_same_v<T, bool>) return {code_bool, bits, 1};
  else if constexpr (std::is_same_v<T, float16> || std::is_floating_point_v<T>) return {kDLFloat, bits, 1};
  else if constexpr (std::is_unsigned_v<T>) return {kDLUInt, bits, 1};
  else return {kDLInt, bits, 1};
}
}   // namespace dlpack
/// A tensor of another program. Copies are of the same tensor; its deleter is called when the last one ends, by whatever thread that is in.
class DlpackTensor {
 public:
  /// Takes the tensor over, also if it throws.
  /// Errors:  DataError if there is none, or if it is of another major version of DLPack than 1, or if type, extents, strides or data are
  ///          none that memory can have
  explicit DlpackTensor(DLManagedTensor* managed) : DlpackTensor(owned(managed), 0) {}
  explicit DlpackTensor(dlpack::DLManagedTensorVersioned* managed) : DlpackTensor(of_version_1(managed), managed ? managed->flags : 0) {}
  const DLDevice& device() const { return tensor_->device; }
  const DLDataType& dtype() const { return tensor_->dtype; }
  Index ndim() const { return tensor_->ndim; }
  /// Pre: 0 <= i < ndim()
  Index extent(Index i) const { return tensor_->shape[i]; }
  /// Elements from one index of dimension i to the next; may be negative, or 0 where all are the same element.
  Index stride(Index i) const {
    if (tensor_->strides) return tensor_->strides[i];
    Index stride = 1;
    for (Index d = i + 1; d < ndim(); ++d) stride *= extent(d);
    return stride;
  }
  /// The same in bytes; 0 where there is one index only, whose stride says nothing and may be any number.
  Index byte_step(Index i) const { return extent(i) > 1 ? stride(i) * element_bytes() : 0; }
  Index elements() const {
    Index count = 1;
    for (Index i = 0; i < ndim(); ++i) count *= extent(i);
    return count;
  }
  Index element_bytes() const { return tensor_->dtype.bits / 8; }
  /// The element whose indices are all 0. In the memory of device().
  std::byte* data() const { return static_cast<std::byte*>(tensor_->data) + tensor_->byte_offset; }
  /// Whether elements lie as in row-major order without gaps.
  bool dense() const {
    Index expected = 1;
    for (Index i = ndim() - 1; i >= 0; --i) {
      if (extent(i) != 1 && stride(i) != expected) return false;
      expected *= extent(i);
    }
    return true;
  }
  /// Whether the producer forbids writing; the older struct does not say.
  bool read_only() const { return (flags_ & dlpack::flag_read_only) != 0; }
  bool on_host() const {
    const auto type = device().device_type;
    return type == kDLCPU || type == kDLCUDAHost || type == kDLCUDAManaged || type == kDLROCMHost;
  }
  template <class T>
  bool holds() const {
    constexpr DLDataType wanted = dlpack::dtype_of<T>();
    return dtype().code == wanted.code && dtype().bits == wanted.bits;   // check() has seen to it that there is one lane
  }
  /// "a tensor [2,3,32,32] of float32 on the CPU", for messages.
  std::string describe() const { return describe(*tensor_); }
  /// "[3072,1024,32,1]", for messages.
  std::string strides_text() const {
    return list_text(ndim(), [&](Index i) { return stride(i); });
  }

 private:
  DlpackTensor(std::shared_ptr<const DLTensor> tensor, std::uint64_t flags) : tensor_(std::move(tensor)), flags_(flags) { check(*tensor_); }
  template <class Managed>
  static std::shared_ptr<const DLTensor> owned(Managed* managed) {
    if (!managed)
      throw DataError(error_text("no tensor is given, but a null pointer", "DLPack's struct comes from the capsule of another program",
                                 "give what PyCapsule_GetPointer returns, and look whether it failed"));
    const std::shared_ptr<Managed> owner(managed, [](Managed* tensor) {
      if (tensor->deleter) tensor->deleter(tensor);
    });
    return {owner, &managed->dl_tensor};
  }
  /// Of another major version only the deleter may be used.
  static std::shared_ptr<const DLTensor> of_version_1(dlpack::DLManagedTensorVersioned* managed) {
    auto tensor = owned(managed);
    if (managed->version.major == 1) return tensor;
    throw DataError(
        error_text("a tensor of DLPack " + std::to_string(managed->version.major) + "." + std::to_string(managed->version.minor) + " is given",
                   "lrcnn knows version 1 of the versioned struct", "ask the other program for it: __dlpack__(max_version=(1, 0))"));
  }
  template <class F>
  static std::string list_text(Index count, F f) {
    std::string text = "[";
    for (Index i = 0; i < count; ++i) text += (i > 0 ? "," : "") + std::to_string(f(i));
    return text + "]";
  }
  static std::string describe(const DLTensor& tensor) {
    return "a tensor " + list_text(tensor.ndim, [&](Index i) { return tensor.shape[i]; }) + " of " + dlpack::dtype_text(tensor.dtype) + " on " +
           dlpack::device_text(tensor.device);
  }
  /// Errors: DataError unless every element has an address.
  static void check(const DLTensor& tensor) {
    if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape))
      throw DataError(error_text("a tensor of " + std::to_string(tensor.ndim) + " dimensions has " + (tensor.shape ? "a" : "no") + " list of extents",
                                 "a tensor has an extent for each dimension",
                                 "look whether the struct is still the producer's: its deleter may have been called"));
    const auto refuse = [&](const std::string& what, const char* rule, const char* change) {
      throw DataError(error_text(describe(tensor) + " " + what, rule, change));
    };
    if (tensor.dtype.lanes != 1 || tensor.dtype.bits == 0 || tensor.dtype.bits % 8 != 0)
      refuse("is given", "an element is one number of whole bytes", "convert the tensor to float32, or labels to int32");
    Index elements = 1, reach = 0, bytes = tensor.dtype.bits / 8;   // reach: elements from the first one to the farthest, to either side
    bool fits = true, empty = false;
    for (Index i = 0; i < tensor.ndim; ++i) {
      const Index extent = tensor.shape[i], stride = tensor.strides ? tensor.strides[i] : 0;
      if (extent < 0) refuse("has a negative extent", "an extent counts elements", "look at the tensor's shape");
      Index way = 0;
      empty = empty || extent == 0;
      fits = fits && stride > std::numeric_limits<Index>::min() && !__builtin_mul_overflow(elements, std::max<Index>(extent, 1), &elements) &&
             !__builtin_mul_overflow(std::max<Index>(extent - 1, 0), stride < 0 ? -stride : stride, &way) &&
             !__builtin_add_overflow(reach, way, &reach);
    }
    Index unused = 0;
    if (!fits || __builtin_mul_overflow(elements, bytes, &unused) || __builtin_mul_overflow(reach, bytes, &unused))
      refuse(tensor.strides ? "with its strides reaches over more bytes than there are addresses" : "has more bytes than there are addresses",
             "an address has 64 bits", "look at the tensor's shape and strides");
    if (!tensor.data && !empty)
      refuse("has no data", "a tensor that is not empty lies in memory", "give a tensor that has been computed and that nobody has freed");
  }
  std::shared_ptr<const DLTensor> tensor_;
  std::uint64_t flags_;
};
}   // namespace lrcnn
