#pragma once
// The ways to carry out a step on a processor with oneDNN.
//
// prepare() decides on one of them for each step and run() follows it, as often as the step comes. Each way is a small type of its own: it
// holds what it runs, which copies of it share, and tells its name and the bytes of workspace that it uses. Way lists them all. A new way
// is a type like these, an entry in that list, and a place in the backend's decision (backend/onednn.hpp).
#include <lrcnn/backend/host/run.hpp>
#include <lrcnn/backend/host/tiled_transpose.hpp>
#include <lrcnn/backend/host/winograd_convolution.hpp>
#include <lrcnn/backend/onednn/convolution.hpp>
#include <lrcnn/backend/onednn/linear.hpp>
#include <lrcnn/backend/onednn/transposed.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>
namespace lrcnn::onednn {
/// Plain loops, which carry out every step.
template <class T>
struct HostLoops {
  void run(const Library&, const Operands<T>& o, int threads) const { host::run(o, threads); }
  std::string name() const { return "host"; }
  Index workspace_bytes() const { return 0; }
};
/// A convolution by the library's direct kernels. An activation that belongs to the step follows in a loop of ours.
template <class T>
struct DirectKernels {
  std::shared_ptr<Convolution<T>> convolution;
  void run(const Library& library, const Operands<T>& o, int threads) const {
    convolution->run(library, o, threads);
    if (o.activation) host::run(activation_of(o), threads);
  }
  std::string name() const { return convolution->name(); }
  Index workspace_bytes() const { return convolution->workspace_bytes(); }
};
/// A convolution by our own loops for Winograd's algorithm, with its activation as far as these know it.
struct WinogradLoops {
  std::shared_ptr<host::WinogradConvolution> convolution;
  void run(const Library&, const Operands<float>& o, int threads) const {
    convolution->run(o);
    if (o.activation && !host::WinogradConvolution::activates(o)) host::run(activation_of(o), threads);
  }
  std::string name() const { return "winograd_4x3"; }
  Index workspace_bytes() const { return convolution->blocking().bytes; }
};
/// A filter put into the layout that the kernels of a pass read.
template <class T>
struct FilterReorder {
  std::shared_ptr<PackedFilter> filter;
  void run(const Library& library, const Operands<T>& o, int) const { filter->pack(library, o.parameters[0], o.packed); }
  std::string name() const { return "reorder"; }
  Index workspace_bytes() const { return 0; }
};
/// A transposed convolution by the library's convolution that goes the other way.
template <class T>
struct MirroredConvolution {
  std::shared_ptr<Transposed<T>> pieces;
  void run(const Library& library, const Operands<T>& o, int threads) const { pieces->run(library, o, threads); }
  std::string name() const { return pieces->name(); }
  Index workspace_bytes() const { return pieces->workspace_bytes(); }
};
/// A transposed convolution in products of matrices of our own.
struct TransposeProducts {
  Vectors vectors;
  Index bytes;   ///< of workspace
  void run(const Library&, const Operands<float>& o, int threads) const { host::TiledTranspose::run(o, vectors, threads); }
  std::string name() const { return "products"; }
  Index workspace_bytes() const { return bytes; }
};
/// A linear layer in the library's products of matrices.
template <class T>
struct LibraryProducts {
  std::shared_ptr<Linear<T>> product;
  void run(const Library& library, const Operands<T>& o, int threads) const { product->run(library, o, threads); }
  std::string name() const { return product->name(); }
  Index workspace_bytes() const { return product->workspace_bytes(); }
};
namespace detail {
template <class T, class... Own>
using WayOf = std::variant<HostLoops<T>, DirectKernels<T>, FilterReorder<T>, MirroredConvolution<T>, LibraryProducts<T>, Own...>;
}   // namespace detail
/// One of the ways above; to begin with, plain loops. Our own fast loops are for floats only.
template <class T>
using Way = std::conditional_t<std::is_same_v<T, float>, detail::WayOf<T, WinogradLoops, TransposeProducts>, detail::WayOf<T>>;
}   // namespace lrcnn::onednn
