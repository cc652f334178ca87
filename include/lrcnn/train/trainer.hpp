#pragma once
// Trains a network: plans, runs, updates, reports, saves.
//
//     Trainer<Net, Rows, Onednn> trainer({.n = 64, .c = 1, .h = 28, .w = 28}, Sgd{.lr = 0.05, .momentum = 0.9});
//     trainer.fit(train_loader, &test_loader, {.epochs = 5});
//
// A batch of another shape, the last one of an epoch for instance, gets a plan of its own; all plans share one arena
// as large as the largest needs. Parameters, gradients and optimizer state are flat buffers of the element type, or of float
// where elements have two bytes. A batch's statistics go into the running ones of norms when its step counts, see
// train/running_statistics.hpp.
#include <lrcnn/exec/chosen_types.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/train/executors.hpp>
#include <lrcnn/train/fingerprint.hpp>
#include <lrcnn/train/history.hpp>
#include <lrcnn/train/loss_scale.hpp>
#include <lrcnn/train/metrics.hpp>
#include <lrcnn/train/running_statistics.hpp>
#include <lrcnn/train/started_steps.hpp>
#include <lrcnn/train/trainer_options.hpp>
#include <lrcnn/train/training_file.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <sstream>
namespace lrcnn {
/// A labelled batch: a source of rows that knows its labels.
template <class S, class T>
concept LabelledSource = std::derived_from<S, RowSource<T>> && requires(const S& s) {
  { s.labels() } -> std::convertible_to<Labels>;
};
namespace detail {
template <class S, class T>
constexpr void check_batch() {
  static_assert(LabelledSource<S, T>,
                "lrcnn: this batch is none for this trainer; a batch has elements of the type of the trainer's parameters, which is double for "
                "Reference<double> and float otherwise, and knows its labels; take Loader<double> or Loader<float>, or give source and labels");
}
}  // namespace detail
/// The trainer of a list of layers under a policy value. Trainer<Net, Policy, B> gives it types.
template <Backend B, TrainingLoss<typename B::element> L = SoftmaxCrossEntropy>
class BasicTrainer {
 public:
  using T = typename B::element;
  using M = master_t<T>;   ///< of parameters, gradients, optimizer state and the batch
  /// Plans the training step of a full batch at once.
  /// Errors:  ShapeError, also if a loss over images is given a map; PlanError, also if the machine has too little memory; BackendError,
  ///          also if an optimizer of the program's own is to work on a device
  BasicTrainer(std::span<const Layer> layers, const PolicySpec& policy, const Input& input, const Optimizer& optimizer,
               const TrainerOptions& options = {}, L loss = {})
      : BasicTrainer(layers, policy, input, optimizer, options, std::move(loss), B(options.threads)) {}
  /// The same on a backend that the program has made: on a certain device, say, or a stream of its own.
  BasicTrainer(std::span<const Layer> layers, const PolicySpec& policy, const Input& input, const Optimizer& optimizer,
               const TrainerOptions& options, L loss, B backend)
      : options_(options), loss_(std::move(loss)), backend_(std::move(backend)), executors_(layers, policy) {
    check_precision<B>(policy, "Trainer");
    if constexpr (!B::on_host) optimizer.require_built_in();
    const Table table = make_table(layers, input);
    if constexpr (!DenseLoss<L, T>) check_image_loss(L::name, table);
    layout_ = parameters_of(table);
    running_ = RunningStatistics(table);
    count_ = parameter_count(table);
    parameters_ = backend_.template buffer<M>(count_);
    gradients_ = backend_.template buffer<M>(count_);
    states_ = backend_.template buffer<M>(count_ * optimizer.state_count());
    std::vector<M> initial(static_cast<std::size_t>(count_));
    initialize<M>(layout_, options.initializer, options.seed, initial);
    write_parameters(initial);
    state_.fingerprint = fingerprint_of(table);
    state_.optimizer = optimizer;
    state_.seed = options.seed;
    check(options.clip);
    ranges_ = optimizer.update_ranges(layout_, options_.rules);
    input_ = input;
    static_cast<void>(executor(input, true));
  }
  BasicTrainer(const BasicTrainer&) = delete;
  BasicTrainer& operator=(const BasicTrainer&) = delete;
  /// One update on one batch.
  /// Post:    gradients() holds the mean loss's gradient; steps_done() has grown by one
  /// Errors:  ShapeError, PlanError, DataError as make_plan() and Executor::run(); NumericError if the loss is not
  ///          finite: parameters and optimizer state are untouched then
  StepReport step(const RowSource<M>& source, const Labels& labels) {
    require_no_round("a step begins");
    gather();
    const LossResult earlier = started_.take();
    try {
      StepReport report = start(source, labels);
      gather(&source);
      report_losses(report, earlier);
      return report;
    } catch (...) {
      started_.go_back(earlier);
      throw;
    }
  }
  template <class S>
  StepReport step(const S& batch) {
    detail::check_batch<S, M>();
    return step(batch, batch.labels());
  }
  /// One update on one batch, without waiting for a device; wait() tells the loss. The batch may be gone when this returns.
  /// Backends that scale the loss (fp16) and clipping by norm wait all the same: the update depends on the gradients.
  /// Errors:  as step(); a loss that is not finite comes out of wait()
  void start_step(const RowSource<M>& source, const Labels& labels) { static_cast<void>(start(source, labels)); }
  template <class S>
  void start_step(const S& batch) {
    detail::check_batch<S, M>();
    start_step(batch, batch.labels());
  }
  /// Adds a batch's gradients to those of the batches since the last update. Every image weighs the same, or every pixel what it does in
  /// total() of the loss, so batches that are accumulated give what one batch of all their images does, with the memory of one of them.
  /// Norms over a batch see each of these batches by itself, and each goes into their running statistics at once.
  /// Errors:  as step(); after one, nothing is accumulated, and running statistics are what they were before the first batch
  void accumulate(const RowSource<M>& source, const Labels& labels) {
    if (round_.batches == 0) gather(), round_.earlier = started_.take(), round_.running = running_.read(backend_, parameters_.data());
    add(source, labels);
  }
  template <class S>
  void accumulate(const S& batch) {
    detail::check_batch<S, M>();
    accumulate(batch, batch.labels());
  }
  /// One update by the gradients that were accumulated. The report is that of all their images.
  /// Errors:  Error if there are none; NumericError as step()
  StepReport update() {
    if (round_.batches == 0)
      throw Error(error_text("an update without gradients", "an update follows at least one batch", "call accumulate() first"));
    const LossResult earlier = *round_.earlier;
    const std::vector<M> running = round_.running;
    try {
      StepReport report = apply(nullptr);
      gather();
      report_losses(report, earlier);
      return report;
    } catch (...) {
      running_.write<M>(backend_, parameters_.data(), running);
      started_.go_back(earlier);
      throw;
    }
  }
  /// Waits for the steps that were started, and gives their losses together.
  /// Errors:  NumericError naming the step if its loss is not finite: that step and those after it have changed nothing,
  ///          and do not count
  LossResult wait() {
    require_no_round("losses are asked for");
    gather();
    return started_.take();
  }
  /// Loss and gradients of one batch, without an update: running statistics stay, too.
  LossResult gradients_of(const RowSource<M>& source, const Labels& labels) {
    require_no_round("gradients are asked for");
    gather();
    LossResult result;
    run_scale_ = gradient_scale();
    start_run(executor(source.shape(), true), source, labels, result, run_scale_);
    backend_.finish(result);
    if (!std::isfinite(result.sum)) in_next_step([&] { executor(source.shape(), true).report_not_finite(source, result.sum); });
    return result;
  }
  /// Loss and hits of one batch, forward only.
  LossResult evaluate(const RowSource<M>& source, const Labels& labels) {
    gather();
    return executor(source.shape(), false).run(source, labels, loss_);
  }
  /// The network's output for a batch, forward only: a view that is valid until the next run.
  View<const T> predict(const RowSource<M>& source) {
    gather();
    auto& run = executor(source.shape(), false, false, true);
    const Shape& output = run.plan().table.shape(run.plan().table.size());   // a map, where an image is larger than those of the training
    const std::vector<std::int32_t> none(static_cast<std::size_t>(source.shape().n), 0);
    if constexpr (DenseLoss<L, T>) run.forward(source);
    else if (output.h * output.w > 1) run.forward(source);
    else static_cast<void>(run.run(source, none, loss_));
    return run.output();
  }
  /// Loss and accuracy over one epoch of a loader, forward only.
  template <class Loader>
    requires requires(const Loader& l) { l.epoch(Index{0}); }
  Metrics evaluate(const Loader& loader) {
    Metrics metrics;
    Index number = 0;
    auto epoch = loader.epoch(0);
    for (auto& batch : epoch) {
      LossResult result;
      ++number;
      named([&] { return "batch " + std::to_string(number) + " of an evaluation after step " + std::to_string(state_.step); },
            [&] { result = evaluate(batch, batch.labels()); });
      metrics.add(result.mean(), result.count, result.correct);
    }
    return metrics;
  }
  /// Trains until `options.epochs` epochs are done, from wherever this trainer stands (after load(), in the middle of an
  /// epoch too). Returns the epochs of this call.
  template <class Loader>
  std::vector<EpochRecord> fit(const Loader& train, const std::type_identity_t<Loader>* test, const FitOptions& options);
  /// Writes parameters, optimizer state and position atomically. Batches that are accumulated and wait for their update are not in it.
  /// Errors:  DataError if the file cannot be written; an older one is intact then
  /// Pre:     wait() after the last start_step()
  void save(const std::filesystem::path& path) const {
    const auto &now = seen_by_host(parameters_), &states = seen_by_host(states_);
    std::vector<M> before;   // without what the round at hand has mixed into running statistics
    if (!round_.running.empty()) {
      before.assign(now.begin(), now.end());
      running_.put(std::span<M>(before), std::span<const M>(round_.running));
    }
    const std::span<const M> parameters = before.empty() ? std::span<const M>(now) : std::span<const M>(before);
    TrainingState state = state_;
    if (scales_loss) state.notes["loss_scale"] = std::to_string(loss_scale_.scale) + " " + std::to_string(loss_scale_.good_steps);
    save_training_file<M>(path, state, layout_, parameters, std::span<const M>(states));
  }
  /// Takes over a saved training; it continues bit-identically. Batches that are accumulated and wait for their update are dropped.
  /// Errors:  DataError if the file is missing, cut, damaged, of another network, version or element type; this trainer is
  ///          unchanged then
  void load(const std::filesystem::path& path) {
    gather();
    auto parameters = copy_of(parameters_), states = copy_of(states_);
    state_ = load_training_file<M>(path, state_.fingerprint, layout_, state_.optimizer, std::span<M>(parameters), std::span<M>(states));
    backend_.write(parameters_.data(), std::span<const M>(parameters));
    backend_.write(states_.data(), std::span<const M>(states));
    if (const auto note = state_.notes.find("loss_scale"); scales_loss && note != state_.notes.end())
      std::istringstream(note->second) >> loss_scale_.scale >> loss_scale_.good_steps;
    ranges_ = state_.optimizer.update_ranges(layout_, options_.rules);
    if (round_.earlier) started_.go_back(*round_.earlier);
    round_ = {};
  }
  /// The flat buffers, where their memory is the host's.
  std::span<M> parameters()
    requires(B::on_host)
  {
    return parameters_;
  }
  std::span<const M> gradients() const
    requires(B::on_host)
  {
    return gradients_;
  }
  /// Copies of them, wherever they are. Shapes: layout() says where each parameter is. In the place of a running statistic's gradient
  /// is what the last batch came to.
  std::vector<M> read_parameters() const { return copy_of(parameters_); }
  std::vector<M> read_gradients() const {
    auto gradients = copy_of(gradients_);
    if (run_scale_ == 1) return gradients;
    for (const Parameter& p : layout_)
      if (!p.shape.running)
        for (M& g : elements_of(p, std::span<M>(gradients))) g = static_cast<M>(g / run_scale_);
    return gradients;
  }
  /// Sets all parameters. Errors: Error if `values` are not as many as the parameters.
  void write_parameters(std::span<const M> values) {
    if (static_cast<Index>(values.size()) != count_)
      throw Error(error_text(std::to_string(values.size()) + " values are given for " + std::to_string(count_) + " parameters",
                             "all parameters are set at once", "see layout() for the order and sizes of parameters"));
    backend_.write(parameters_.data(), values);
    if (round_.batches > 0) round_.running = running_.read(backend_, parameters_.data());
  }
  const std::vector<Parameter>& layout() const { return layout_; }
  const TrainingState& state() const { return state_; }
  Index steps_done() const { return state_.step; }
  B& backend() { return backend_; }
  /// The plan of a training step (or a forward pass) on batches of shape `input`. It stays where it is as long as the trainer lives.
  const Plan& plan(const Input& input, bool training = true) {
    const Plan& plan = executor(input, training).plan();
    for (const Plan& known : plans_)
      if (known.table.input == input && known.options == plan.options) return known;
    return plans_.emplace_back(plan);
  }
  const Plan& plan() { return plan(input_); }
  /// The scale of the loss, on backends that want one; to be set where the first steps should not have to find it.
  const LossScale& loss_scale() const { return loss_scale_; }
  void set_loss_scale(const LossScale& scale) { loss_scale_ = scale; }
  /// Bytes of the arena that all plans so far share.
  Index arena_bytes() const { return executors_.arena_bytes(); }

 private:
  static constexpr bool scales_loss = requires { requires B::scales_loss; };
  static constexpr Index steps_ahead = B::on_host ? 1 : 16;   ///< that fit() lets a device be behind
  /// Whether an update depends on what its gradients are.
  bool waits_for_each() const { return scales_loss || options_.clip.norm > 0; }
  double gradient_scale() const { return scales_loss ? loss_scale_.scale : 1; }
  /// Whether the step's gradients may be used; changes the scale of the next step's.
  bool take_gradients() {
    bool finite = true;
    if constexpr (scales_loss) {
      const auto all = [&](Range r) { return backend_.all_finite(gradients_.data() + r.begin, r.size()); };
      finite = all({0, count_}) || std::ranges::all_of(gradient_ranges(layout_), all);   // the latter where a statistic is not
    }
    if (!finite && loss_scale_.scale == LossScale::least)
      throw NumericError(error_text("in step " + std::to_string(state_.step--) + " gradients are not finite, however little they are scaled",
                                    "parameters were not changed by this step", "lower the learning rate, or use Bf16"));
    loss_scale_.note(finite);
    return finite;
  }
  void mix_running() { running_.mix(backend_, parameters_.data(), gradients_.data()); }
  /// Batches whose update cannot come any more leave nothing behind.
  void drop_round() {
    const Round round = std::exchange(round_, {});
    running_.write<M>(backend_, parameters_.data(), round.running);
    if (round.earlier) started_.go_back(*round.earlier);
  }
  std::vector<M> copy_of(const typename B::template Buffer<M>& from) const {
    std::vector<M> copy(static_cast<std::size_t>(from.size()));
    backend_.read(std::span<M>(copy), from.data());
    return copy;
  }
  /// A buffer where the host can read it: itself, or a copy.
  decltype(auto) seen_by_host(const typename B::template Buffer<M>& buffer) const {
    if constexpr (B::on_host) return (buffer);
    else return copy_of(buffer);
  }
  /// Says where a loss was not finite: `where` gives "step 5", say, and is asked for it then only.
  template <class Where, class F>
  static void named(Where where, F f) {
    try {
      f();
    } catch (const NumericError& e) {
      const std::string text = e.what();
      throw NumericError("lrcnn: in " + where() + " " + text.substr(text.find(' ') + 1));
    }
  }
  template <class F>
  void in_next_step(F f) {
    named([&] { return "step " + std::to_string(state_.step + 1); }, f);
  }
  /// Of the masks of the batch that comes next: the same in a training that was saved and goes on.
  RunKey key() const { return {state_.seed, static_cast<std::uint64_t>(state_.step), round_.images}; }
  void start_run(Executor<B>& run, const RowSource<M>& source, const Labels& labels, LossResult& result, double scale) {
    in_next_step([&] { run.start(source, labels, result, loss_, NoObserver{}, scale, key()); });
  }
  /// Starts a step. The report lacks what only waiting can tell.
  StepReport start(const RowSource<M>& source, const Labels& labels) {
    require_no_round("a step begins");
    add(source, labels);
    return apply(&source);
  }
  void require_no_round(const std::string& what) const {
    if (round_.batches > 0)
      throw Error(error_text(what + " while gradients of " + std::to_string(round_.batches) + " batches are accumulated",
                             "they wait for their update", "call update() first"));
  }
  /// Starts a batch of the update to come. Gradients are those of the sum over the first one's images, or weight.
  void add(const RowSource<M>& source, const Labels& labels) {
    double weight = 0;
    LossResult result;   // stays empty on a device
    try {
      auto& run = executor(source.shape(), true, round_.batches > 0);
      weight = run.weigh(source, labels, loss_);
      if (round_.batches == 0)
        round_.first = weight, round_.scale = gradient_scale(), round_.lr_scale = lr_scale(options_.schedule, state_.step, options_.clock);
      start_run(run, source, labels, result, round_.scale * (weight / round_.first));
      if (!round_.running.empty()) mix_running();
      round_.peak_bytes = std::max(round_.peak_bytes, run.plan().peak_bytes());
    } catch (...) {
      started_.forget();   // the backend drops what they came to with what this one has
      drop_round();
      throw;
    }
    started_.note(result);
    ++round_.batches;
    round_.images += source.shape().n, round_.weight += weight;
    run_scale_ = round_.scale * (round_.weight / round_.first);
  }
  /// Updates by the gradients of the batches that were added. `last`: the only one, if it is there to be looked at again.
  StepReport apply(const RowSource<M>* last) {
    const Round round = std::exchange(round_, {});
    StepReport report{.images = round.images, .lr = state_.optimizer.lr() * round.lr_scale, .peak_bytes = round.peak_bytes};
    ++state_.step;
    started_.add(round.images);
    if (waits_for_each()) gather(last);
    report.skipped = scales_loss && !take_gradients();
    if (options_.clip.norm > 0 && !report.skipped) report.gradient_norm = gradient_norm();
    if (round.running.empty()) mix_running();   // now that nothing can be wrong with the step any more
    if (report.skipped) return report;
    UpdateStep update{.number = state_.updates + 1, .lr_scale = round.lr_scale, .gradient_scale = 1 / run_scale_};
    if (options_.clip.value > 0) update.gradient_limit = options_.clip.value;
    if (options_.clip.norm > 0) update.gradient_scale *= std::min(1.0, options_.clip.norm / report.gradient_norm);
    run_update(update);
    ++state_.updates;
    return report;
  }
  /// On the backend, which has the arithmetic of the library's optimizers; on the host by a program's own.
  void run_update(UpdateStep update) {
    if constexpr (B::on_host)
      if (!state_.optimizer.built_in()) {
        update.threads = backend_.threads();
        return state_.optimizer.template update<M>(update, ranges_, parameters_, std::span<const M>(gradients_), states_);
      }
    state_.optimizer.template update<M>(update, ranges_, [&](const auto& functor, Range r) {
      const auto state = [&](Index which) { return state_.optimizer.state(states_.data(), count_, r, which); };
      backend_.update(functor, parameters_.data() + r.begin, gradients_.data() + r.begin, state(0), state(1), r.size());
    });
  }
  /// The norm of the mean gradient over all parameters that are updated.
  double gradient_norm() {
    double sum = 0;
    for (const UpdateRange& r : ranges_) sum += backend_.sum_of_squares(gradients_.data() + r.elements.begin, r.elements.size());
    const double norm = std::sqrt(sum) / run_scale_;
    if (std::isfinite(norm)) return norm;
    throw NumericError(error_text("in step " + std::to_string(state_.step--) + " the norm of the gradient is not finite",
                                  "parameters were not changed by this step", "lower the learning rate, or normalise the input"));
  }
  /// Completes a step's report by its own losses; those of steps that were started before are told by wait().
  void report_losses(StepReport& report, const LossResult& earlier) {
    const LossResult own = started_.take();
    started_.note(earlier);
    report.loss = own.mean(), report.accuracy = own.accuracy();
  }
  /// Waits for the steps that were started. From one whose loss is not finite the device has left out all updates: these
  /// steps are taken back. `last`: the batch of the last one, if it is there to be looked at again.
  void gather(const RowSource<M>* last = nullptr) {
    LossResult result;
    backend_.finish(result);
    const Index bad = started_.settle(result);
    if (std::isfinite(result.sum)) return;
    drop_round();   // of batches whose update is still to come
    state_.step -= bad;
    if (!waits_for_each()) state_.updates -= bad;
    if (counts_batches_) state_.batch -= bad - 1;   // the last one was not counted yet
    in_next_step([&] {
      if (last && bad == 1) executor(last->shape(), true).report_not_finite(*last, result.sum);
      throw NumericError(error_text("the loss is not finite",
                                    "nobody waited for this step, so its batch is gone; it and the " + std::to_string(std::max<Index>(bad - 1, 0)) +
                                        " after it have not changed the parameters",
                                    "use step() to learn which layer it comes from, lower the learning rate, or normalise the input"));
    });
  }
  Executor<B>& executor(const Input& input, bool training, bool accumulate = false, bool keeps_output = false) {
    const PlanOptions options{.training = training, .accumulate = accumulate, .rows_loss = RowLocalLoss<L, T> && !keeps_output};
    return executors_.get(input, options, backend_, parameters_.data(), gradients_.data());
  }
  template <class Loader>
  void check_batches(const Loader& train);
  template <class Loader>
  EpochRecord fit_epoch(const Loader& train, const FitOptions& options, ProgressLine* line);
  TrainerOptions options_;
  L loss_;
  B backend_;
  Input input_{};
  std::vector<Parameter> layout_;
  std::vector<UpdateRange> ranges_;
  RunningStatistics running_;
  Index count_ = 0;   ///< elements of the parameters
  typename B::template Buffer<M> parameters_{}, gradients_{}, states_{};
  TrainingState state_;
  LossScale loss_scale_{};   ///< of backends that ask for it
  double run_scale_ = 1;     ///< of the gradients that the last run has left
  StartedSteps started_;
  /// Batches whose gradients wait for an update.
  struct Round {
    Index batches = 0, images = 0, peak_bytes = 0;
    double first = 0, weight = 0;   ///< of the losses of the first, and of all: images, or what pixels weigh
    double scale = 1;        ///< of the loss
    double lr_scale = 1;     ///< of the update
    std::optional<LossResult> earlier{};   ///< of steps before it; none within a step
    std::vector<M> running{};   ///< running statistics before it; none within a step, whose batch goes into them at its end
  } round_;
  bool counts_batches_ = false;   ///< within fit()
  std::deque<Plan> plans_;   ///< that somebody has asked for: an executor's own ends with it
  Executors<B> executors_;
};
/// The trainer of a network type under a policy type on a backend type.
/// The policy's precision, if it has one, chooses the backend's type for it.
template <class Net, class Policy, class B, class L = SoftmaxCrossEntropy>
class Trainer : public BasicTrainer<typename detail::ChosenTypes<Net, Policy, B>::BackendType, L> {
 public:
  using BackendType = typename detail::ChosenTypes<Net, Policy, B>::BackendType;
  using Base = BasicTrainer<BackendType, L>;
  Trainer(const Input& input, const Optimizer& optimizer, const TrainerOptions& options = {}, L loss = {})
      : Base(Net::layers, Policy::value, input, optimizer, options, std::move(loss)) {}
  /// On a backend that the program has made.
  Trainer(const Input& input, const Optimizer& optimizer, const TrainerOptions& options, L loss, BackendType backend)
      : Base(Net::layers, Policy::value, input, optimizer, options, std::move(loss), std::move(backend)) {}
  /// For networks with fixed extents. What can be wrong with the training of such a network is an error at compile time.
  explicit Trainer(const Optimizer& optimizer, const TrainerOptions& options = {}, L loss = {})
    requires requires { Net::input; }
      : Trainer(Net::input, optimizer, options, std::move(loss)) {
    if constexpr (requires { typename Net::Content; })
      static_assert(detail::CheckTraining<typename Net::Content, Net::input, !DenseLoss<L, typename Base::T>>::ok,
                    "lrcnn: this network cannot be trained on this input with this loss; the rule is in the message above; change the layer "
                    "named there, the input or the loss");
  }
};
}  // namespace lrcnn
#include <lrcnn/train/fit.hpp>
