#pragma once
// Losses that run on the device, in the form in which they get there: those over pixels that the library has loops for, and those whose loops the
// program brings.
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/layer/custom.hpp>
#include <lrcnn/layer/dice.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <functional>
#include <optional>
#include <type_traits>
#include <variant>
namespace lrcnn::loops {
template <class T>
struct LossStrip;
}
namespace lrcnn {
/// What a .cu file of the program compiles of a loss's functor (layer/sample_loss.hpp): a loop for each type of elements. It starts work on a
/// stream (a cudaStream_t), on memory of the device, and does not wait.
template <class F>
struct CustomDeviceLoss {
  void (*f32)(const F&, const loops::LossStrip<float>&, void* stream) = nullptr;
  void (*f16)(const F&, const loops::LossStrip<float16>&, void* stream) = nullptr;
  void (*bf16)(const F&, const loops::LossStrip<bfloat16>&, void* stream) = nullptr;
};
/// The loops of a loss's functor. Defined in backend/cudnn/loops/custom_loss.hpp, for a .cu file of the program to instantiate.
template <class F>
const CustomDeviceLoss<F>& loss_on_device();
}   // namespace lrcnn
namespace lrcnn::cudnn {
/// PixelCrossEntropy with its weights in place, for up to so many classes.
struct PixelClassLoss {
  static constexpr Index most_weights = 256;   // 2 of the 4 KiB that a kernel is given
  double weights[static_cast<std::size_t>(most_weights)] = {};
  bool weighs = false, ignores = false;
  std::int32_t ignored = 0;
  LRCNN_HOST_DEVICE double weight(std::int32_t label) const { return weighs ? weights[label] : 1; }
};
/// The losses that have loops.
using DeviceLoss = std::variant<PixelClassLoss, PixelBinaryCrossEntropy, PixelFocal, MeanSquaredError, Huber, DiceLoss>;
/// A loss as one that has loops; none if it has not, as losses of the user's own.
template <class L>
std::optional<DeviceLoss> device_loss(const L& loss) {
  if constexpr (std::is_same_v<L, PixelCrossEntropy>) {
    if (static_cast<Index>(loss.weights.size()) > PixelClassLoss::most_weights) return std::nullopt;
    PixelClassLoss own{.weighs = !loss.weights.empty(), .ignores = loss.ignore.has_value(), .ignored = loss.ignore.value_or(0)};
    std::copy(loss.weights.begin(), loss.weights.end(), own.weights);
    return own;
  } else if constexpr (std::is_constructible_v<DeviceLoss, std::in_place_type_t<L>, const L&>) {
    return DeviceLoss(std::in_place_type<L>, loss);
  } else {
    return std::nullopt;
  }
}
/// A loss of a program's own that its .cu file has compiled: an ImageLoss or PixelLoss whose functor says so.
template <class L>
concept CompiledLoss = CompiledForDevice<typename L::Functor>;
/// Starts the loop of such a loss over some rows, on a stream. It has a copy of the functor.
template <class T>
using CustomLoss = std::function<void(const loops::LossStrip<T>&, void* stream)>;
template <class T, class F>
CustomLoss<T> custom_loss(const F& functor) {
  const CustomDeviceLoss<F>& compiled = loss_on_device<F>();
  const auto of_type = [&](auto loop) -> CustomLoss<T> {
    return [=](const loops::LossStrip<T>& strip, void* stream) { loop(functor, strip, stream); };
  };
  if constexpr (std::is_same_v<T, float>) return of_type(compiled.f32);
  else if constexpr (std::is_same_v<T, float16>) return of_type(compiled.f16);
  else return of_type(compiled.bf16);
}
}   // namespace lrcnn::cudnn
