#pragma once
// What a training step of a plan starts on a device, without the device (backend/cudnn/launches.hpp). Link lrcnn::cudnn.
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/backend/cudnn/launches.hpp>
#include <lrcnn/exec/executor.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
namespace lrcnn::cudnn {
/// Starts one training step of a plan, with zeros for parameters, batch and labels, and an update with momentum. The batch is the device's;
/// so are labels of images, while labels of pixels are the host's.
/// Post:    `ready` has been called when all was made ready, before the first step
/// Errors:  as Executor
template <class B, class F>
void run_training_step(B& backend, const Plan& plan, F ready) {
  const Shape &in = plan.table.shape(0), &out = plan.table.shape(plan.table.size());
  const Index count = parameter_count(plan.table);
  const auto parameters = backend.template buffer<float>(count), gradients = backend.template buffer<float>(count),
             momentum = backend.template buffer<float>(count), batch = backend.template buffer<float>(in.n * in.c * in.h * in.w);
  const auto classes = backend.template buffer<std::int32_t>(in.n);
  Executor<B> executor(plan, backend, parameters.data(), gradients.data());
  const DeviceSource source(batch.data(), in);
  ready();
  LossResult result;
  const std::vector<std::int32_t> pixels(static_cast<std::size_t>(out.h * out.w > 1 ? out.n * out.h * out.w : 0), 0);
  if (pixels.empty()) executor.start(source, Labels::on_device(classes.data(), in.n), result);
  else executor.start(source, Labels::of_pixels(pixels, out.h, out.w), result, PixelCrossEntropy{});
  backend.update(MomentumUpdate<float>{.lr = 0.1F, .momentum = 0.9F, .weight_decay = 0, .gradient = {1, 1e9F}, .nesterov = false}, parameters.data(),
                 gradients.data(), momentum.data(), nullptr, count);
  backend.finish(result);
}
/// What run_training_step() starts, in order. Pre: plan.target == BasicCudnn<precision>::target.
/// Errors:  BackendError, naming the layer, if a described device has no engine for a convolution
template <Precision precision>
std::vector<Launch> launches_of(const Plan& plan, const DescribedDevice* device = nullptr) {
  std::vector<Launch> list;
  BasicCudnn<precision> backend(open_launch_list<Stored<precision>>(list, device));
  run_training_step(backend, plan, [&] { list.clear(); });
  return list;
}
}   // namespace lrcnn::cudnn
