#pragma once
// A batch of images in a tensor of another program, on the host: nothing is copied, rows are gathered when a step asks for them.
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/data/transform.hpp>
#include <lrcnn/interop/dlpack_tensor.hpp>
#include <cstdlib>
#include <cstring>
#include <vector>
namespace lrcnn {
namespace dlpack {
/// Calls f(std::type_identity<E>{}) for the one of the types E that the tensor holds. False if it holds none of them.
template <class... E, class F>
bool for_dtype(const DlpackTensor& tensor, F f) {
  return ((tensor.holds<E>() && (f(std::type_identity<E>{}), true)) || ...);
}
/// The element at an address, which need not be a multiple of its size.
template <class E>
E element_at(const std::byte* from) {
  E value;
  std::memcpy(&value, from, sizeof(E));
  return value;
}
/// Writes `count` elements, which lie `step` bytes apart, to every `to_step`-th place of `to`.
template <class E, class T>
void read_elements(const std::byte* from, Index step, T* to, Index to_step, Index count) {
  if (step == Index{sizeof(E)} && to_step == 1)   // what compilers make vector instructions of
    for (Index x = 0; x < count; ++x) to[x] = static_cast<T>(element_at<E>(from + x * Index{sizeof(E)}));
  else
    for (Index x = 0; x < count; ++x) to[x * to_step] = static_cast<T>(element_at<E>(from + x * step));
}
}   // namespace dlpack
/// Images in a tensor [N,C,H,W] or [C,H,W] in memory that the host reads, with any strides: PyTorch's channels_last, crops, flips, images
/// that are expanded. Elements are float32, float64, float16, bfloat16 or uint8, and become T as rows are read.
template <class T>
class DlpackSource final : public RowSource<T> {
 public:
  /// Bytes become the numbers 0 to 255.
  /// Pre:     what makes the tensor is done before the host reads it, in every step, also where its memory is pinned or managed
  /// Errors:  DataError if the tensor is in the memory of a device, has other dimensions or other elements, or is empty
  explicit DlpackSource(DlpackTensor tensor) : tensor_(std::move(tensor)) {
    const auto refuse = [&](const std::string& rule, const std::string& change) {
      throw DataError(error_text(tensor_.describe() + " is given as images", rule, change));
    };
    if (!tensor_.on_host())
      refuse("the host reads the rows of a DlpackSource", tensor_.device().device_type == kDLCUDA
                                                              ? "use DlpackDeviceSource with a backend on that device, or copy the tensor to the CPU"
                                                              : "copy the tensor to the CPU");
    if (tensor_.ndim() != 3 && tensor_.ndim() != 4)
      refuse("images are [N,C,H,W], and one image [C,H,W]", "add or remove dimensions, as with reshape");
    const Index first = tensor_.ndim() - 3;
    shape_ = {first == 1 ? tensor_.extent(0) : 1, tensor_.extent(first), tensor_.extent(first + 1), tensor_.extent(first + 2)};
    if (tensor_.elements() == 0) refuse("a batch has at least one image, channel, row and column", "leave empty batches out");
    strides_ = {first == 1 ? tensor_.byte_step(0) : 0, tensor_.byte_step(first), tensor_.byte_step(first + 1), tensor_.byte_step(first + 2)};
    const bool known = dlpack::for_dtype<float, double, float16, bfloat16, std::uint8_t>(
        tensor_, [&]<class E>(std::type_identity<E>) { read_ = dlpack::read_elements<E, T>; });
    if (!known) refuse("elements are float32, float64, float16, bfloat16 or uint8", "convert the tensor, as with tensor.float()");
  }
  /// Bytes are normalised, as those of data sets are.
  /// Errors:  as above; DataError if elements are no bytes, or as normalization_table()
  DlpackSource(DlpackTensor tensor, const Normalization& normalization) : DlpackSource(std::move(tensor)) {
    if (!tensor_.holds<std::uint8_t>())
      throw DataError(error_text(tensor_.describe() + " is given with a normalisation", "a normalisation is of bytes",
                                 "normalise the tensor's numbers before, or give a tensor of uint8"));
    table_ = normalization_table<T>(normalization, shape_.c);
  }
  Shape shape() const override { return shape_; }
  bool concurrent_reads() const override { return true; }
  /// Errors:  DataError if images, channels, rows or columns are not the tensor's
  void read(Index first, const View<T>& dst) const override {
    check_read(shape_, first, dst, [&] { return tensor_.describe(); });
    const auto row = [&](Index i, Index c, Index y) {
      const std::byte* from = tensor_.data() + (first + i) * strides_.n + c * strides_.c + y * strides_.h;
      T* to = dst.row(i, c / dst.block, y) + c % dst.block;
      if (table_.empty()) return read_(from, strides_.w, to, dst.block, shape_.w);
      const T* values = table_.data() + 256 * c;
      for (Index x = 0; x < shape_.w; ++x) to[x * dst.block] = values[std::to_integer<std::size_t>(from[x * strides_.w])];
    };
    const bool plane_by_plane = dst.block == 1 && std::abs(strides_.c) > std::abs(strides_.h);   // else channels meet in the cache
    for (Index i = 0; i < dst.n; ++i) {
      if (plane_by_plane)
        for (Index c = 0; c < dst.c; ++c)
          for (Index y = dst.row0; y < dst.row0 + dst.rows; ++y) row(i, c, y);
      else
        for (Index y = dst.row0; y < dst.row0 + dst.rows; ++y)
          for (Index c = 0; c < dst.c; ++c) row(i, c, y);
    }
  }

 private:
  DlpackTensor tensor_;
  Shape shape_{};
  Shape strides_{};   ///< in bytes
  void (*read_)(const std::byte*, Index, T*, Index, Index) = nullptr;
  std::vector<T> table_{};   ///< of a normalisation
};
}   // namespace lrcnn
