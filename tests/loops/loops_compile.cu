// Every loop on a CUDA stream for the element type that lrcnn::cudnn does not have itself (library_*.cu have the others): the device compiler
// has to accept them all. Nothing runs here. tests/machine_code compiles them for the other types, too.
#include <lrcnn/backend/cudnn/loops.hpp>
#include <lrcnn/train/optimizer.hpp>
#include <thrust/system/cuda/execution_policy.h>
#ifndef LRCNN_ELEMENT
#define LRCNN_ELEMENT double
#endif
namespace {
using namespace lrcnn;
template <class T>
void instantiate(cudaStream_t stream, const DirectSource<float>& source) {
  using A = master_t<T>;
  const auto exec = thrust::cuda::par_nosync.on(stream);
  const Operands<T> o;
  const View<T> y;
  const View<const float> staging;
  A* const numbers = nullptr;
  int* const flag = nullptr;
  loops::run(exec, o);
  loops::run_together(exec, std::span<const cudnn::PointwiseStep<T>>{});
  loops::run_together(exec, std::span<const cudnn::PointwiseStep<T>>{}, o, nullptr);
  loops::convert_rows(exec, staging, y, 0.5);
  loops::convert_rows(exec, y, View<float>{});
  loops::gather_rows(exec, source, {}, 0, y);
  loops::bias_add(exec, y, y.data, y);
  loops::bias_activation(exec, Activation{}, y, y.data, y, View<std::uint8_t>{});
  loops::bias_gradient(exec, y, numbers, true, nullptr, nullptr);
  loops::pack_filters(exec, std::span<const loops::FilterToPack<T>>{});
  loops::unpack_filters(exec, std::span<const loops::FilterToUnpack<T>>{});
  loops::softmax_cross_entropy(exec, View<const T>(y), nullptr, y, 1.0, nullptr, nullptr);
  loops::pixel_loss(exec, cudnn::DeviceLoss{}, View<const T>(y), {}, 0, y, 1.0, nullptr, nullptr);
  loops::all_finite(exec, y, flag);
  loops::sum_of_squares(exec, nullptr, 0, nullptr);
  loops::all_finite(exec, numbers, 0, flag);
  Optimizer(Sgd{}).visit_update<A>({}, {},
                                   [&](const auto& update) { loops::update_elements(exec, update, numbers, numbers, numbers, numbers, 0, flag); });
}
}   // namespace
void instantiate_all(cudaStream_t stream, const DirectSource<float>& source) { instantiate<LRCNN_ELEMENT>(stream, source); }
