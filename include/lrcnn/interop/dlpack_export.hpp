#pragma once
// Tensors for another program: parameters, gradients and outputs as DLPack's structs, without a copy where strides can say how they lie.
//
//     auto trainer = std::make_shared<Trainer<Net, Rows, Onednn>>(input, Sgd{});
//     const Parameter& p = trainer->layout()[0];
//     DLManagedTensorVersioned* weight = to_versioned_dlpack(shared_tensor(p, trainer->parameters(), trainer));
//
// The struct has a share in a keeper, here the trainer, which the consumer's call of the deleter gives up. So the memory is there as long as
// the other program has the tensor. What it shows is the memory's own business: a step changes parameters, and the next run an output.
// Whoever is given a pointer has to call its deleter, once, or hand it to somebody who does.
#include <lrcnn/core/view.hpp>
#include <lrcnn/interop/dlpack_tensor.hpp>
#include <lrcnn/network/parameters.hpp>
#include <span>
#include <vector>
namespace lrcnn {
/// Where a tensor lies, and what keeps its memory.
struct SharedTensor {
  void* data = nullptr;
  DLDataType dtype{};
  DLDevice device = dlpack::cpu;
  std::vector<std::int64_t> shape{}, strides{};   ///< strides in elements
  std::shared_ptr<const void> keeper{};           ///< kept until the consumer calls the deleter; none: the program sees to the memory itself
  bool read_only = false;
  bool copied = false;   ///< nobody else uses the memory
};
/// A view's rows, [n,c,rows,w]. Read-only if the view is of constants.
/// Errors:  DataError if channels lie in more than one block, which strides cannot say
template <class T>
SharedTensor shared_tensor(const View<T>& view, std::shared_ptr<const void> keeper, const DLDevice& device = dlpack::cpu) {
  using E = std::remove_const_t<T>;
  if (view.block > 1 && view.blocks() > 1)
    throw DataError(error_text("a tensor " + to_string(Shape{view.n, view.c, view.rows, view.w}) + " that is stored in blocks of " +
                                   std::to_string(view.block) + " channels is handed to another program",
                               "one stride for each dimension cannot say where its channels lie", "hand over dense_copy(view)"));
  SharedTensor tensor{.data = const_cast<E*>(view.data),
                      .dtype = dlpack::dtype_of<E>(),
                      .device = device,
                      .shape = {view.n, view.c, view.rows, view.w},
                      .strides = {view.stride_n, view.stride_c, view.stride_row(), view.block},
                      .keeper = std::move(keeper),
                      .read_only = std::is_const_v<T>};
  if (view.block > 1) tensor.strides[1] = 1;
  return tensor;
}
/// A parameter, or what lies in its place in a buffer of gradients, with `ndim` extents; 0: those behind the last that is not 1 are left out,
/// so that a bias is [K]. (A 1x1 convolution's weight is [K,C] then.)
/// Errors:  ShapeError if the buffer ends before it, or if it has more extents
template <class T>
SharedTensor shared_tensor(const Parameter& parameter, std::span<T> flat, std::shared_ptr<const void> keeper, Index ndim = 0,
                           const DLDevice& device = dlpack::cpu) {
  using E = std::remove_const_t<T>;
  const auto& extents = parameter.shape.extents;
  std::size_t least = extents.size();
  while (least > 1 && extents[least - 1] == 1) --least;
  const std::size_t count = ndim == 0 ? least : static_cast<std::size_t>(ndim);
  if (ndim < 0 || count < least || count > extents.size())
    throw ShapeError(error_text("parameter '" + parameter.name + "' of extents " + extents_text(parameter.shape) + " is asked for with " +
                                    std::to_string(ndim) + " dimensions",
                                "a parameter has four at most, and those behind the last that is not 1 may be left out",
                                "ask for " + std::to_string(least) + " to 4, or for 0"));
  SharedTensor tensor{.data = const_cast<E*>(elements_of(parameter, flat).data()),
                      .dtype = dlpack::dtype_of<E>(),
                      .device = device,
                      .shape = {extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(count)},
                      .strides = std::vector<std::int64_t>(count, 1),
                      .keeper = std::move(keeper),
                      .read_only = std::is_const_v<T>};
  for (std::size_t i = count - 1; i > 0; --i) tensor.strides[i - 1] = tensor.strides[i] * tensor.shape[i];
  return tensor;
}
/// A view's rows, of any layout, copied to dense NCHW. Pre: the host reads the view.
template <class T>
SharedTensor dense_copy(const View<T>& view) {
  using E = std::remove_const_t<T>;
  const auto memory = std::make_shared<std::vector<E>>(static_cast<std::size_t>(view.n * view.c * view.rows * view.w));
  const View<E> dense = dense_view(memory->data(), view.n, view.c, view.range(), view.w);
  for (Index i = 0; i < view.n; ++i)
    for (Index c = 0; c < view.c; ++c)
      for (Index y = view.row0; y < view.row0 + view.rows; ++y) {
        const T* from = view.row(i, c / view.block, y) + c % view.block;
        E* to = dense.row(i, c, y);
        for (Index x = 0; x < view.w; ++x) to[x] = from[x * view.block];
      }
  SharedTensor tensor = shared_tensor(dense, memory);
  tensor.copied = true;
  return tensor;
}
namespace dlpack {
/// The struct that a consumer gets, with what it points to and what it keeps.
template <class Managed>
struct Handed {
  SharedTensor tensor;
  Managed managed{};
};
template <class Managed>
Managed* handed(const SharedTensor& tensor) {
  auto* made = new Handed<Managed>{tensor};
  made->managed.dl_tensor = {.data = made->tensor.data,
                             .device = tensor.device,
                             .ndim = static_cast<int>(tensor.shape.size()),
                             .dtype = tensor.dtype,
                             .shape = made->tensor.shape.data(),
                             .strides = made->tensor.strides.data(),
                             .byte_offset = 0};
  made->managed.manager_ctx = made;
  made->managed.deleter = [](Managed* managed) { delete static_cast<Handed<Managed>*>(managed->manager_ctx); };
  return &made->managed;
}
}   // namespace dlpack
/// The struct of DLPack before 1, which every program takes.
/// Errors:  DataError if the tensor is read-only: this struct cannot say so
inline DLManagedTensor* to_dlpack(const SharedTensor& tensor) {
  if (tensor.read_only)
    throw DataError(error_text("a tensor that may only be read is handed over as a DLManagedTensor", "that struct cannot forbid writing",
                               "use to_versioned_dlpack, or hand over a copy"));
  return dlpack::handed<DLManagedTensor>(tensor);
}
/// The struct of DLPack 1, with its flags.
inline dlpack::DLManagedTensorVersioned* to_versioned_dlpack(const SharedTensor& tensor) {
  auto* managed = dlpack::handed<dlpack::DLManagedTensorVersioned>(tensor);
  managed->version = {1, 0};
  managed->flags = (tensor.read_only ? dlpack::flag_read_only : 0) | (tensor.copied ? dlpack::flag_copied : 0);
  return managed;
}
}   // namespace lrcnn
