#pragma once
// What a trainer is told, and what it reports.
#include <lrcnn/exec/policy_choice.hpp>
#include <lrcnn/train/history.hpp>
#include <lrcnn/train/initializer.hpp>
#include <lrcnn/train/optimizer.hpp>
#include <lrcnn/train/progress.hpp>
#include <lrcnn/train/schedule.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>
namespace lrcnn {
/// Limits on the gradient of an update: on its norm over all parameters that are updated, or on each element. 0: none.
/// As torch.nn.utils.clip_grad_norm_ and clip_grad_value_, of the mean over the update's images.
struct GradientClip {
  double norm = 0;
  double value = 0;
};
/// Errors: Error if a limit is negative, or there are two.
inline void check(const GradientClip& clip) {
  if (!(clip.norm >= 0 && clip.value >= 0) || (clip.norm > 0 && clip.value > 0))
    throw Error(error_text("gradients are to be clipped at norm " + number_text(clip.norm) + " and value " + number_text(clip.value),
                           "limits are positive, and there is one of them at most; 0 is none", "choose one of the two"));
}
/// What clipping by norm multiplies gradients of that norm by: as torch, which keeps away from a division by zero.
inline double clip_scale(const GradientClip& clip, double norm) { return std::min(1.0, clip.norm / (norm + 1e-6)); }
/// What a trainer can be told beside network, policy, input and optimizer.
struct TrainerOptions {
  LrSchedule schedule = ConstantLr{};
  Initializer initializer = He{};
  std::uint64_t seed = 0;   ///< of the initial parameters
  int threads = 0;          ///< of the backend; 0: as many as the machine offers
  GradientClip clip{};
  std::vector<ParameterRule> rules{};   ///< frozen parameters, learning rates of their own; not kept in a training file
  std::optional<Costs> costs{};         ///< these three: as PolicyChoice has them
  std::optional<Budget> budget{};
  std::filesystem::path frontier_file{};
  LrClock clock{};   ///< for schedules given in epochs when step() is called by hand; fit() has its own
};
/// What a step has done.
struct StepReport {
  double loss = 0;       ///< mean over the batch, before the update
  double accuracy = 0;   ///< in [0, 1]; of pixels, if the loss is over them
  Index images = 0;
  double lr = 0;              ///< that the update used
  Index peak_bytes = 0;       ///< of the plan that was run
  Index label_bytes = 0;      ///< for labels by rows, beside the plan's: of the rows that are in memory at a time
  double gradient_norm = 0;   ///< before clipping, where gradients are clipped by norm
  bool skipped = false;       ///< a gradient overflowed in 16 bits (train/loss_scale.hpp): nothing was updated but running statistics
};
/// What fit() does beside training.
struct FitOptions {
  Index epochs = 1;                   ///< in all; those already done count
  std::ostream* progress = nullptr;   ///< where progress is shown; its first line is the backend's describe()
  ProgressOptions progress_options{};
  std::filesystem::path history{};         ///< CSV, written after every epoch; empty: none. A training without steps replaces no history with epochs
  std::filesystem::path training_file{};   ///< saved after every epoch; empty: none. A training without steps replaces no file of one that has some
  Index save_every = 0;                    ///< steps after which it is saved within an epoch, too; 0: not
  /// Called behind each epoch, when its files are written; false ends the training there, and what it throws leaves fit(). It may save, and read what
  /// the trainer has, but neither train nor load.
  std::function<bool(const EpochRecord&)> after_epoch{};
};
}   // namespace lrcnn
