#pragma once
// Losses over pixels that the device has loops for, in the form in which they get there.
#include <lrcnn/core/host_device.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <optional>
#include <variant>
namespace lrcnn::cudnn {
/// PixelCrossEntropy with its weights in place, for up to so many classes.
struct PixelClassLoss {
  static constexpr Index most_weights = 64;
  double weights[static_cast<std::size_t>(most_weights)] = {};
  bool weighs = false, ignores = false;
  std::int32_t ignored = 0;
  LRCNN_HOST_DEVICE double weight(std::int32_t label) const { return weighs ? weights[label] : 1; }
};
/// The losses that have loops.
using DeviceLoss = std::variant<PixelClassLoss, PixelBinaryCrossEntropy, PixelFocal, MeanSquaredError, Huber>;
/// A loss as one that has loops; none if it has not, as Dice and losses of the user's own.
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
}   // namespace lrcnn::cudnn
