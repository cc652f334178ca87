#pragma once
// A round of batches that leads to one update, see train/update_rounds.hpp.
#include <lrcnn/core/types.hpp>
#include <lrcnn/layer/loss.hpp>
#include <optional>
#include <vector>
namespace lrcnn {
/// Batches whose gradients wait for an update. M: of parameters.
template <class M>
struct UpdateRound {
  Index batches = 0, images = 0, peak_bytes = 0, label_bytes = 0;
  double first = 0, weight = 0;            ///< what gradients are those of a mean over; of all batches: images, or what pixels weigh
  double scale = 1;                        ///< of the loss
  double lr_scale = 1;                     ///< of the update
  LossResult of_host{};                    ///< on a device, what the host knows of its losses: their total, or all if the host makes them
  LossResult known_before{};               ///< losses that were known when its first batch was run; an error in the update goes back to them
  std::optional<LossResult> set_aside{};   ///< losses of steps before it, which are known again when it ends; none within a step
  std::vector<M> running{};                ///< running statistics before it; none within a step, whose batch goes into them at its end
  /// What gradients of so much weight have been multiplied by, compared with those of its mean. Where nothing has counted yet there are none.
  double scale_of(double of_weight) const { return first > 0 ? scale * (of_weight / first) : scale; }
};
}   // namespace lrcnn
