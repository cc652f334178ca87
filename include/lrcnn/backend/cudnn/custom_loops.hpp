#pragma once
// The loops of a program's own layers and losses on a CUDA device. A .cu file of the program includes this header and says for which functors
// (layer/element_layer.hpp, layer/sample_loss.hpp):
//
//     #include "my_layers.hpp"
//     #include <lrcnn/backend/cudnn/custom_loops.hpp>
//     template const lrcnn::CustomDeviceLayer& lrcnn::loops_on_device<Gain>();
//     template const lrcnn::CustomDeviceLoss<SquaredHinge>& lrcnn::loss_on_device<SquaredHinge>();
//
// One thread takes one element, or one sample of a loss at a time. A gradient of parameters is summed in double, in an order that depends on
// nothing but the number of elements, so bits repeat. With LRCNN_LOOPS_ON_HOST a host's compiler makes loops for the host's memory of it, with which
// the tests run: no program may have both, for they have the same names.
#include <lrcnn/core/language.hpp>
#if !defined(__CUDACC__) && !defined(LRCNN_LOOPS_ON_HOST)
#error "lrcnn: backend/cudnn/custom_loops.hpp is for a .cu file, which nvcc compiles; other files of the program do not need it"
#endif
#include <lrcnn/backend/cudnn/loops/custom_loss.hpp>
#include <lrcnn/backend/cudnn/loops/custom_policy.hpp>
#include <lrcnn/backend/cudnn/loops/work.hpp>
#include <lrcnn/layer/element_layer.hpp>
#include <lrcnn/layer/pointwise.hpp>
#include <algorithm>
#include <cstddef>
namespace lrcnn {
namespace detail {
/// The places of a view with channels last, as they lie in memory.
struct PlacesInMemory {
  loops::Divisor rows, columns, channels;
  Index row0, count;
  template <class T>
  explicit PlacesInMemory(const View<T>& v) : rows(v.rows), columns(v.w), channels(v.c), row0(v.row0), count(v.n * v.rows * v.w * v.c) {
    assert(loops::channels_last(v));
  }
  LRCNN_HOST_DEVICE Place place(Index unit) const {
    Place at;
    Index pixel = channels.split(unit), row = columns.split(pixel);
    at.image = rows.split(row);
    at.channel = unit, at.column = pixel, at.row = row + row0;
    return at;
  }
};
/// Writes an element: of y, or of dx.
template <class F, class T, bool forward>
struct ElementLoop {
  Elements<T> elements;
  View<T> to;
  PlacesInMemory places;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const Place at = places.place(unit);
    T& result = to(at.image, at.channel, at.row, at.column);
    if constexpr (forward) result = static_cast<T>(F::output(elements, at));
    else result = static_cast<T>(F::input_gradient(elements, at));
  }
};
/// How positions are cut for a sum: by their number alone. Few enough pieces for one thread to add up those of a channel.
struct ElementPieces {
  Index positions, each;
  explicit ElementPieces(Index n) : positions(n), each(std::max<Index>(32, ceil_div(n, Index{1024}))) {}
  Index count() const { return ceil_div(positions, each); }
};
/// to[piece][channel] = what a piece of dy's positions adds to the gradient of parameter p.
template <class F, class T>
struct ElementSumLoop {
  Elements<T> elements;
  PlacesInMemory places;
  ElementPieces pieces;
  Index p;
  double* to;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    Index channel = unit;
    const Index piece = places.channels.split(channel), begin = piece * pieces.each;
    const Index end = begin + pieces.each < pieces.positions ? begin + pieces.each : pieces.positions;
    double sum = 0;
    for (Index position = begin; position < end; ++position)
      sum += static_cast<double>(F::parameter_gradient(elements, p, places.place(position * places.channels.value() + channel)));
    to[unit] = sum;
  }
};
/// The sums of pieces, in order.
template <class A>
struct LastSumLoop {
  const double* from;
  Index pieces, channels;
  A* to;
  bool accumulate;
  LRCNN_HOST_DEVICE void operator()(Index channel) const {
    double sum = accumulate ? static_cast<double>(to[channel]) : 0;
    for (Index piece = 0; piece < pieces; ++piece) sum += from[piece * channels + channel];
    to[channel] = static_cast<A>(sum);
  }
};
template <class T>
ElementPieces element_pieces(const View<const T>& dy) {
  return ElementPieces(dy.n * dy.rows * dy.w);
}
template <class F, class T>
void element_forward_loop(const CustomForward<T>& a, void* stream) {
  if (loops::empty(a.y)) return;
  const PlacesInMemory places(a.y);
  loops::for_units(custom_policy(stream), places.count, ElementLoop<F, T, true>{elements_of<T>(a), a.y, places});
}
template <class F, class T>
void element_backward_data_loop(const CustomBackward<T>& a, void* stream) {
  if (loops::empty(a.dx)) return;
  const PlacesInMemory places(a.dx);
  loops::for_units(custom_policy(stream), places.count, ElementLoop<F, T, false>{elements_of<T>(a), a.dx, places});
}
template <class T>
Index element_workspace(const View<const T>& dy) {
  return element_pieces(dy).count() * dy.c * Index{sizeof(double)};
}
template <class F, class T>
void element_backward_parameters_loop(const CustomBackward<T>& a, bool accumulate, std::byte* workspace, void* stream) {
  const auto exec = custom_policy(stream);
  const ElementPieces pieces = element_pieces(a.dy);
  auto* sums = reinterpret_cast<double*>(workspace);
  for (std::size_t p = 0; p < a.d_parameters.size(); ++p) {
    if (!loops::empty(a.dy))
      loops::for_units(exec, pieces.count() * a.dy.c,
                       ElementSumLoop<F, T>{elements_of<T>(a), PlacesInMemory(a.dy), pieces, static_cast<Index>(p), sums});
    loops::for_units(exec, a.dy.c, LastSumLoop<master_t<T>>{sums, pieces.count(), a.dy.c, a.d_parameters[p], accumulate});
  }
}
/// A pointwise function as functions of an element.
template <class F>
struct PointwiseElements {
  template <class T>
  LRCNN_HOST_DEVICE static auto output(const Elements<T>& a, const Place& at) {
    return F::value(a.x_at(at));
  }
  template <class T>
  LRCNN_HOST_DEVICE static auto input_gradient(const Elements<T>& a, const Place& at) {
    return a.dy.holds(at.row) ? a.dy_at(at) * F::derivative(a.x_at(at)) : typename Elements<T>::number(0);
  }
};
template <class F, class T>
constexpr CustomDeviceFunctions<T> device_functions() {
  CustomDeviceFunctions<T> functions{element_forward_loop<F, T>, element_backward_data_loop<F, T>, nullptr, nullptr};
  if constexpr (ParameterFunctions<F>) {
    functions.backward_parameters = element_backward_parameters_loop<F, T>;
    functions.workspace_bytes = element_workspace<T>;
  }
  return functions;
}
}   // namespace detail
template <class F>
const CustomDeviceLayer& loops_on_device() {
  using Functions = std::conditional_t<PointwiseFunctor<F>, detail::PointwiseElements<F>, F>;
  static constexpr CustomDeviceLayer layer{detail::device_functions<Functions, float>(), detail::device_functions<Functions, float16>(),
                                           detail::device_functions<Functions, bfloat16>()};
  return layer;
}
}   // namespace lrcnn
