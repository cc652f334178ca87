#pragma once
// From batches to updates. A round is what leads to one update: batches are run, one or several, and their gradients added up; then the
// update is applied, or the round is rolled back. Whoever starts rounds need not wait for a device: what they came to is settled later.
//
//     step()                     settle  run          apply  settle
//     start_step()                       run          apply           settle in wait(), or before the next thing that waits
//     accumulate(), update()     settle  run ... run  apply  settle
//
// An error while batches are run rolls the round back: running statistics and losses are what they were before it, and nothing is
// accumulated. An error in its update takes the step back. A loss that is not finite, or labels in a device's memory that are no classes, which
// settling finds out, take back their step and those after it.
#include <lrcnn/core/on_exit.hpp>
#include <lrcnn/exec/executor.hpp>
#include <lrcnn/train/executors.hpp>
#include <lrcnn/train/loss_scale.hpp>
#include <lrcnn/train/missed_updates.hpp>
#include <lrcnn/train/numeric_error.hpp>
#include <lrcnn/train/started_steps.hpp>
#include <lrcnn/train/trainer_options.hpp>
#include <lrcnn/train/training_buffers.hpp>
#include <lrcnn/train/training_format.hpp>
#include <lrcnn/train/update_round.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
namespace lrcnn {
/// The rounds of one training, one after the other. All that it is given lives longer; it changes the buffers, the state's counts of steps
/// and updates, and, after a loss that is not finite, of batches.
template <Backend B, TrainingLoss<typename B::element> L>
class UpdateRounds {
 public:
  using T = typename B::element;
  using M = master_t<T>;
  using Round = UpdateRound<M>;
  /// Errors:  as update_ranges() and check(GradientClip)
  UpdateRounds(const TrainerOptions& options, const L& loss, B& backend, Executors<B>& executors, TrainingBuffers<B>& buffers, TrainingState& state)
      : options_(options), loss_(loss), backend_(backend), executors_(executors), buffers_(buffers), state_(state) {
    check(options.clip);
    begin_anew();
  }
  UpdateRounds(const UpdateRounds&) = delete;
  UpdateRounds& operator=(const UpdateRounds&) = delete;
  /// A round of one batch, waited for. Errors: as BasicTrainer::step()
  StepReport step(const RowSource<M>& source, const Labels& labels) {
    require_no_round("a step begins");
    settle();
    const OnExit known_again([this, earlier = started_.take()] { started_.go_back(earlier); });
    return with_losses(start(source, labels), &source);
  }
  /// A round of one batch. The report lacks what only waiting can tell. `some`: a pixel has to count; otherwise a batch in which none does is a
  /// step that changes nothing. Errors: as BasicTrainer::start_step()
  StepReport start(const RowSource<M>& source, const Labels& labels, bool some = true) {
    require_no_round("a step begins");
    run(source, labels, some);
    return apply(&source);
  }
  /// One more batch of the round, the first one of a new round if there is none. None of its pixels need count.
  /// Errors:  as BasicTrainer::accumulate()
  void accumulate(const RowSource<M>& source, const Labels& labels) {
    if (round_.batches == 0) {
      settle();
      round_.set_aside = started_.take();
      round_.running = read_running();
    }
    run(source, labels, false);
  }
  /// The end of a round of accumulated batches, waited for. Errors: as BasicTrainer::update()
  StepReport update() {
    if (round_.batches == 0)
      throw Error(error_text("an update without gradients", "an update follows at least one batch", "call accumulate() first"));
    if (!(round_.weight > 0)) {
      const std::string images = std::to_string(round_.images);
      roll_back();
      throw no_pixel_counts(L::name, "pixels of the " + images + " images that were accumulated");
    }
    const OnExit known_again([this, earlier = *round_.set_aside] { started_.go_back(earlier); });
    const std::vector<M> running = round_.running;
    try {
      return with_losses(apply(nullptr), nullptr);
    } catch (...) {
      restore_running(running);
      throw;
    }
  }
  /// What the steps that were started came to. `why`: of whoever asks for it. Errors: as BasicTrainer::wait()
  LossResult wait(const std::string& why = "losses are asked for") {
    require_no_round(why);
    settle();
    return started_.take();
  }
  /// Losses that wait() gave, for the next one to give.
  void give_back(const LossResult& losses) { started_.note(losses); }
  /// Loss and gradients of one batch, and no round. Errors: as BasicTrainer::gradients_of()
  LossResult gradients_of(const RowSource<M>& source, const Labels& labels) {
    require_no_round("gradients are asked for");
    settle();
    LossResult result;
    const double scale = loss_scale_now();
    start_run(executor(source.shape()), source, labels, result, scale);
    run_scale_ = scale;   // now that gradients are another run's
    backend_.finish(result);
    if (!std::isfinite(result.sum)) in_next_step([&] { executor(source.shape()).report_not_finite(source, result.sum); });
    return result;
  }
  /// Waits for the steps that were started, and notes their losses. From a step whose loss is not finite the device has left out all
  /// updates: these steps are taken back. `last`: the batch of the last one, if it is there to be looked at again.
  /// Errors:  NumericError naming the step if its loss is not finite; DataError if labels on a device are no classes
  void settle(const RowSource<M>* last = nullptr) {
    try {
      LossResult result;
      const Index bad = finish(result);
      if (std::isfinite(result.sum)) return;
      in_next_step([&] {
        if (last && bad == 1) executor(last->shape()).report_not_finite(*last, result.sum);
        throw NumericError(error_text("the loss is not finite",
                                      "nobody waited for this step, so its batch is gone; it and the " + std::to_string(std::max<Index>(bad - 1, 0)) +
                                          " after it have not changed the parameters",
                                      "use step() to learn which layer it comes from, lower the learning rate, or normalise the input"));
      });
    } catch (...) {   // nor do batches count whose update is still to come
      roll_back();
      throw;
    }
  }
  /// Steps that were started and not settled.
  Index started() const { return started_.size(); }
  /// Whether steps are the batches of an epoch: then the state counts them as batches, too, without those that are taken back.
  void count_batches(bool counts) { counts_batches_ = counts; }
  /// Forgets the round at hand and losses that nobody asked for, because other parameters and states have come from a file; the state's optimizer
  /// may be another.
  void begin_anew() {
    if (const auto note = state_.notes.find("loss_scale"); scales_loss && note != state_.notes.end())
      loss_scale_ = parse_loss_scale(note->second).value_or(loss_scale_);
    missed_.begin(buffers_.layout, options_.rules, state_);
    ranges_ = state_.optimizer.update_ranges(buffers_.layout, options_.rules, missed_.counts());
    started_.go_back({});
    round_ = {};
  }
  /// Notes that parameters have been set: a rollback of the round at hand goes back to these.
  void parameters_are_set() {
    if (round_.batches > 0) round_.running = read_running();
  }
  /// Running statistics as they were before the round at hand, which has mixed its batches into them; empty if there is none that has.
  const std::vector<M>& running_before() const { return round_.running; }
  /// Notes in a training file's state what only this knows.
  void write_notes(TrainingState& state) const {
    if (scales_loss) state.notes["loss_scale"] = to_string(loss_scale_);
    missed_.write(buffers_.layout, state);
  }
  /// What the last run has multiplied gradients by.
  double run_scale() const { return run_scale_; }
  /// The scale of the loss, on backends that want one.
  const LossScale& loss_scale() const { return loss_scale_; }
  /// Errors:  Error if it is not finite and above 0
  void set_loss_scale(const LossScale& scale) {
    check(scale);
    loss_scale_ = scale;
  }
  static constexpr bool scales_loss = requires { requires B::scales_loss; };

 private:
  /// Whether an update depends on what its gradients are.
  bool waits_for_each() const { return scales_loss || options_.clip.norm > 0; }
  /// Where the schedule stands. Epochs before may have had other batches, or the program may have made steps of its own: fit() counts its epochs.
  Index schedule_step() const { return counts_batches_ ? state_.epoch * options_.clock.steps_per_epoch + state_.batch : state_.step; }
  double loss_scale_now() const { return scales_loss ? loss_scale_.scale : 1; }
  void require_no_round(const std::string& what) const {
    if (round_.batches > 0)
      throw Error(error_text(what + " while gradients of " + std::to_string(round_.batches) + " batches are accumulated",
                             "they wait for their update", "call update() first"));
  }
  /// Waits for the steps that were started, and takes back those that do not count. Returns how many these are.
  /// Errors:  as the backend's finish()
  Index finish(LossResult& result) {
    try {
      backend_.finish(result);
    } catch (const DataError&) {   // labels are no classes
      static_cast<void>(take_in(result));
      throw;
    } catch (...) {   // the device has failed, and nobody knows what its steps came to
      started_.forget();
      throw;
    }
    return take_in(result);
  }
  /// Takes in what the steps that were started came to, and takes back those that do not count. Returns how many these are.
  Index take_in(const LossResult& result) {
    const auto [steps, updates] = started_.settle(result);
    state_.step -= steps, state_.updates -= updates;
    if (counts_batches_) state_.batch -= steps;
    return steps;
  }
  /// Runs a batch of the round. Gradients are those of the sum over the first one's images, or weight. A batch in which nothing counts is an error if
  /// `some` is to, and else is not run: it may hold what is no number.
  void run(const RowSource<M>& source, const Labels& labels, bool some) {
    double weight = 0;
    LossResult result;   // on a device: what it need not be asked for
    bool begun = false;
    try {
      auto& batch = executor(source.shape(), round_.weight > 0);
      weight = batch.weigh(source, labels, loss_, some);
      if (round_.batches == 0)
        round_.known_before = started_.known(), round_.scale = loss_scale_now(),
        round_.lr_scale = lr_scale(options_.schedule, schedule_step(), options_.clock);
      if (weight > 0) {
        if (!(round_.first > 0)) round_.first = first_weight(weight, batch.plan().table.nodes.back().out);
        begun = true;
        start_run(batch, source, labels, result, round_.scale_of(weight), weight);
        if (!round_.running.empty()) mix_running();
        round_.peak_bytes = std::max(round_.peak_bytes, batch.plan().peak_bytes());
        if (labels.rows()) round_.label_bytes = std::max(round_.label_bytes, batch.label_bytes());
      }
    } catch (...) {
      if (begun) started_.forget(), backend_.cancel();   // what they came to goes with what this one has
      roll_back();
      throw;
    }
    if constexpr (B::on_host) started_.note(result);
    else round_.of_host += result;   // the rest is told by the device
    ++round_.batches;
    round_.images += source.shape().n, round_.weight += weight;
    if (weight > 0) run_scale_ = round_.scale_of(round_.weight);
  }
  /// What gradients of a round are those of a mean over: the first batch's `weight`. Where the loss is scaled, 16 bits have to hold them, and later
  /// batches of the round may have many more pixels that are not ignored: then all pixels of the first.
  double first_weight(double weight, [[maybe_unused]] const Shape& output) const {
    if constexpr (scales_loss && std::is_same_v<L, PixelCrossEntropy>)
      if (round_.set_aside && loss_.ignore && loss_.weights.empty()) return static_cast<double>(output.n * output.h * output.w);
    return weight;
  }
  /// Updates by the gradients of the round's batches. `last`: the only one, if it is there to be looked at again.
  /// After an error the step does not count, nor do its losses.
  StepReport apply(const RowSource<M>* last) {
    const Round round = std::exchange(round_, {});
    const Index done = state_.step, batches = state_.batch;
    const bool counts = round.weight > 0;
    StepReport report{
        .images = round.images, .lr = state_.optimizer.lr() * round.lr_scale, .peak_bytes = round.peak_bytes, .label_bytes = round.label_bytes};
    try {
      ++state_.step, state_.batch += counts_batches_;
      started_.add(counts ? round.images : 0, round.of_host, counts && !waits_for_each());   // what is waited for is updated later, if at all
      if (waits_for_each()) settle(last);
      report.skipped = !counts || (scales_loss && !take_gradients());
      if (options_.clip.norm > 0 && !report.skipped) report.gradient_norm = gradient_norm();
      if (!report.skipped) optimize(round, report);
    } catch (...) {
      state_.step = done, state_.batch = batches;
      started_.take_back(round.known_before);
      throw;
    }
    if (counts && round.running.empty()) mix_running();   // now that nothing can be wrong with the step any more
    return report;
  }
  /// The update by the round's gradients.
  void optimize(const Round& round, const StepReport& report) {
    UpdateStep update{.number = state_.updates + 1, .lr_scale = round.lr_scale, .gradient_scale = 1 / run_scale_};
    if (options_.clip.value > 0) update.gradient_limit = options_.clip.value;
    if (options_.clip.norm > 0) update.gradient_scale *= clip_scale(options_.clip, report.gradient_norm);
    optimize(update);
    ++state_.updates;
  }
  /// Batches whose update cannot come any more leave nothing behind.
  void roll_back() {
    const Round round = std::exchange(round_, {});
    if (round.batches > 0) backend_.cancel();   // what they came to
    if (round.set_aside) started_.go_back(*round.set_aside);
    restore_running(round.running);
  }
  /// The optimizer's update: by the backend, which has the arithmetic of the library's optimizers, or on the host by a program's own.
  void optimize(UpdateStep update) {
    const Optimizer& optimizer = state_.optimizer;
    if constexpr (B::on_host)
      if (!optimizer.built_in()) {
        update.threads = backend_.threads();
        return optimizer.template update<M>(update, ranges_, buffers_.parameters, std::span<const M>(buffers_.gradients), buffers_.states);
      }
    optimizer.template update<M>(update, ranges_, [&](const auto& functor, Range r) {
      const auto state = [&](Index which) { return optimizer.state(buffers_.states.data(), buffers_.count, r, which); };
      backend_.update(functor, buffers_.parameters.data() + r.begin, buffers_.gradients.data() + r.begin, state(0), state(1), r.size());
    });
  }
  /// Whether the step's gradients may be used; changes the scale of the next step's.
  bool take_gradients() {
    bool finite = true;
    if constexpr (scales_loss) {
      const auto all = [&](Range r) { return backend_.all_finite(buffers_.gradients.data() + r.begin, r.size()); };
      // What is not updated may be anything: running statistics, and gradients of frozen parameters.
      finite = all({0, buffers_.count}) || std::ranges::all_of(ranges_, all, &UpdateRange::elements);
    }
    if (!finite && loss_scale_.scale <= LossScale::least)
      throw NumericError(error_text("in step " + std::to_string(state_.step) + " gradients are not finite, however little they are scaled",
                                    "parameters were not changed by this step", "lower the learning rate, or use Bf16"));
    loss_scale_.note(finite);
    return finite;
  }
  /// The norm of the mean gradient over all parameters that are updated.
  double gradient_norm() {
    double sum = 0;
    for (const UpdateRange& r : ranges_) sum += backend_.sum_of_squares(buffers_.gradients.data() + r.elements.begin, r.elements.size());
    const double norm = std::sqrt(sum) / run_scale_;
    if (std::isfinite(norm)) return norm;
    throw NumericError(error_text("in step " + std::to_string(state_.step) + " the norm of the gradient is not finite",
                                  "parameters were not changed by this step", "lower the learning rate, or normalise the input"));
  }
  /// Waits for the step of a report and adds its losses. Pre: losses of other steps are set aside. Errors: as settle()
  StepReport with_losses(StepReport report, const RowSource<M>* last) {
    settle(last);
    report.loss = started_.known().mean(), report.accuracy = started_.known().accuracy();
    return report;
  }
  void mix_running() { buffers_.running.mix(backend_, buffers_.parameters.data(), buffers_.gradients.data()); }
  std::vector<M> read_running() const { return buffers_.running.read(backend_, buffers_.parameters.data()); }
  void restore_running(const std::vector<M>& values) {
    try {
      buffers_.running.template write<M>(backend_, buffers_.parameters.data(), values);
    } catch (const Error&) {   // a device that fails: the error at hand came first
    }
  }
  template <class F>
  void in_next_step(F f) {
    detail::name_numeric_error([&] { return "step " + std::to_string(state_.step + 1); }, f);
  }
  /// Of the masks of the batch that comes next: the same in a training that was saved and goes on.
  RunKey key() const { return {state_.seed, static_cast<std::uint64_t>(state_.step), round_.images}; }
  void start_run(Executor<B>& batch, const RowSource<M>& source, const Labels& labels, LossResult& result, double scale,
                 std::optional<double> weight = {}) {
    in_next_step([&] { batch.start(source, labels, result, loss_, NoObserver{}, scale, key(), weight); });
  }
  Executor<B>& executor(const Input& input, bool accumulate = false) {
    const PlanOptions options{.training = true, .accumulate = accumulate, .rows_loss = RowLocalLoss<L, T>};
    return executors_.get(input, options, backend_, buffers_.parameters.data(), buffers_.gradients.data());
  }
  const TrainerOptions& options_;
  const L& loss_;
  B& backend_;
  Executors<B>& executors_;
  TrainingBuffers<B>& buffers_;
  TrainingState& state_;
  std::vector<UpdateRange> ranges_;   ///< that the optimizer updates; they may point into the layout
  LossScale loss_scale_{};            ///< of backends that ask for it
  double run_scale_ = 1;              ///< of the gradients that the last run has left
  StartedSteps started_;
  MissedUpdates missed_;
  bool counts_batches_ = false;
  Round round_;
};
}   // namespace lrcnn
