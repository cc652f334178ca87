#pragma once
// Trains a network: plans, runs, updates, reports, saves.
//
//     Trainer<Net, Rows, Onednn> trainer({.n = 64, .c = 1, .h = 28, .w = 28}, Sgd{.lr = 0.05, .momentum = 0.9});
//     trainer.fit(train_loader, &test_loader, {.epochs = 5});
//
// A batch of another shape, the last one of an epoch for instance, gets a plan of its own; all plans share one arena
// as large as the largest needs. Parameters, gradients and optimizer state are flat buffers of the element type, or of float
// where elements have two bytes (train/training_buffers.hpp). How batches become updates: train/update_rounds.hpp. A batch's statistics go
// into the running ones of norms when its step counts, see train/running_statistics.hpp.
#include <lrcnn/exec/chosen_types.hpp>
#include <lrcnn/network/sequential.hpp>
#include <lrcnn/train/batch_loader.hpp>
#include <lrcnn/train/executors.hpp>
#include <lrcnn/train/fingerprint.hpp>
#include <lrcnn/train/history.hpp>
#include <lrcnn/train/metrics.hpp>
#include <lrcnn/train/trainer_options.hpp>
#include <lrcnn/train/training_buffers.hpp>
#include <lrcnn/train/training_file.hpp>
#include <lrcnn/train/update_rounds.hpp>
#include <chrono>
#include <deque>
#include <exception>
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
}   // namespace detail
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
  BasicTrainer(std::span<const Layer> layers, const PolicySpec& policy, const Input& input, const Optimizer& optimizer, const TrainerOptions& options,
               L loss, B backend)
      : BasicTrainer(checked_table(layers, policy, input, optimizer), layers, policy, input, optimizer, options, std::move(loss),
                     std::move(backend)) {}
  BasicTrainer(const BasicTrainer&) = delete;
  BasicTrainer& operator=(const BasicTrainer&) = delete;
  /// One update on one batch.
  /// Post:    gradients() holds the mean loss's gradient; steps_done() has grown by one
  /// Errors:  ShapeError, PlanError, DataError as make_plan() and Executor::run(); NumericError if the loss is not
  ///          finite: parameters and optimizer state are untouched then
  StepReport step(const RowSource<M>& source, const Labels& labels) { return rounds_.step(source, labels); }
  template <class S>
  StepReport step(const S& batch) {
    detail::check_batch<S, M>();
    return step(batch, batch.labels());
  }
  /// One update on one batch, without waiting for a device; wait() tells the loss. A batch and labels on the host may be gone when this returns.
  /// Those in a device's memory stay as they are until wait(); or order_before() of the CUDA backend lets a stream wait that changes them.
  /// Backends that scale the loss (fp16) and clipping by norm wait all the same: the update depends on the gradients.
  /// Errors:  as step(); a loss that is not finite, and labels in a device's memory that are no classes, come out of wait()
  void start_step(const RowSource<M>& source, const Labels& labels) { static_cast<void>(rounds_.start(source, labels)); }
  template <class S>
  void start_step(const S& batch) {
    detail::check_batch<S, M>();
    start_step(batch, batch.labels());
  }
  /// Adds a batch's gradients to those of the batches since the last update. Every image weighs the same, or every pixel what it does in
  /// total() of the loss, so batches that are accumulated give what one batch of all their images does, with the memory of one of them. A batch of
  /// whose pixels none counts adds nothing.
  /// Norms over a batch see each of these batches by itself, and each goes into their running statistics at once.
  /// Errors:  as step(); after one, nothing is accumulated, and running statistics are what they were before the first batch
  void accumulate(const RowSource<M>& source, const Labels& labels) { rounds_.accumulate(source, labels); }
  template <class S>
  void accumulate(const S& batch) {
    detail::check_batch<S, M>();
    accumulate(batch, batch.labels());
  }
  /// One update by the gradients that were accumulated. The report is that of all their images.
  /// Errors:  Error if there are none; DataError if in all of them no pixel counts; NumericError, and DataError if labels in a device's memory
  ///          are no classes. After all but the first, nothing is accumulated, and running statistics are what they were
  StepReport update() { return rounds_.update(); }
  /// Waits for the steps that were started, and gives their losses together.
  /// Errors:  NumericError naming the step if its loss is not finite, DataError if labels in a device's memory are no classes: that step and
  ///          those after it have changed nothing, and do not count
  LossResult wait() { return rounds_.wait(); }
  /// Loss and gradients of one batch, without an update: running statistics stay, too.
  /// Errors:  as step(); as wait(), for steps that were started; Error while batches are accumulated
  LossResult gradients_of(const RowSource<M>& source, const Labels& labels) { return rounds_.gradients_of(source, labels); }
  /// Loss and hits of one batch, forward only.
  /// Errors:  as step(); as wait(), for steps that were started
  LossResult evaluate(const RowSource<M>& source, const Labels& labels) { return evaluate(source, labels, true); }
  /// The network's output for a batch, forward only: a view that is valid until the next run, or plan(). Values are as they are, also those
  /// that are not finite.
  /// Shapes:  [N,K,1,1], or a map [N,K,rows,W], in the backend's layout. Where the backend works on a device, it lies in the device's memory
  /// Errors:  ShapeError, PlanError as make_plan(); what the source throws; as wait(), for steps that were started
  View<const T> predict(const RowSource<M>& source) {
    rounds_.settle();
    auto& run = executor(source.shape(), false, true);
    run.forward(source);
    return run.output();
  }
  /// Loss and accuracy over one epoch of a loader, forward only. In some batches no pixel need count.
  /// Errors:  as evaluate() of a batch, and a NumericError names the batch; DataError if in all batches no pixel counts; what the loader throws
  template <class Loader>
    requires requires(const Loader& l) { l.epoch(Index{0}); }
  Metrics evaluate(const Loader& loader) {
    Metrics metrics;
    Index number = 0;
    auto epoch = loader.epoch(0);
    detail::check_loader<BatchRange<decltype(epoch), M>>();
    Index images = 0;
    for (auto& batch : epoch) {
      const RowSource<M>& source = batch;
      LossResult result;
      ++number, images += source.shape().n;
      const auto where = [&] { return "batch " + std::to_string(number) + " of an evaluation after step " + std::to_string(state_.step); };
      detail::name_numeric_error(where, [&] { result = evaluate(source, batch.labels(), false); });
      metrics.add(result, DenseLoss<L, T>);
    }
    if (images > 0) require_counted(metrics, std::to_string(images) + " images that were evaluated");
    return metrics;
  }
  /// Trains until `options.epochs` epochs are done, from wherever this trainer stands (after load(), in the middle of an
  /// epoch too). Returns the epochs of this call. A batch in which no pixel counts is not run, and is a step that changes nothing.
  /// After an error, batches before the one at hand count, and an epoch whose evaluation has failed is done and written to the files.
  /// Full batches and the last one of both loaders are planned before the first step, so shapes that cannot be run are an error at once; a loader
  /// without last_input() tells the shape of full batches only.
  /// Errors:  as start_step(), wait(), evaluate() and save(); what the loaders throw; Error while batches are accumulated, for negative numbers
  ///          of epochs or steps, and if history and training file are one; DataError if a file of the options cannot be written, or if a training
  ///          without steps would replace the file or the history of one that has some, both of which is found out before the first step; if
  ///          options.history cannot be read, if the epoch was begun with other batches, or if no pixel of an epoch counts
  template <class Loader>
  std::vector<EpochRecord> fit(const Loader& train, const std::type_identity_t<Loader>* test, const FitOptions& options);
  /// Writes parameters, optimizer state and position atomically. Batches that are accumulated and wait for their update are not in it.
  /// Errors:  DataError if the file cannot be written; an older one is intact then
  /// Pre:     wait() after the last start_step()
  void save(const std::filesystem::path& path) const {
    const auto &now = seen_by_host(backend_, buffers_.parameters), &states = seen_by_host(backend_, buffers_.states);
    std::vector<M> before;   // without what the round at hand has mixed into running statistics
    if (!rounds_.running_before().empty()) {
      before.assign(now.begin(), now.end());
      buffers_.running.put(std::span<M>(before), std::span<const M>(rounds_.running_before()));
    }
    const std::span<const M> parameters = before.empty() ? std::span<const M>(now) : std::span<const M>(before);
    TrainingState state = state_;
    rounds_.write_notes(state);
    executors_.plans().write_choices(state.notes);
    save_training_file<M>(path, state, buffers_.layout, parameters, std::span<const M>(states));
  }
  /// Takes over a saved training; it continues bit-identically, with the policies that Fit or a budget chose for its shapes of
  /// batches so far, if this trainer is asked for the same and they fit. Batches that are accumulated and wait for their update are dropped, as
  /// are losses of steps that were started and not asked for.
  /// Errors:  DataError if the file is missing, cut, damaged, of another network, version or element type; this trainer is
  ///          unchanged then, and if steps that were started do not count, the error is that of wait()
  void load(const std::filesystem::path& path) {
    std::exception_ptr uncounted;   // steps that do not count are dropped, unless the file cannot be read
    try {
      rounds_.settle();
    } catch (const NumericError&) {
      uncounted = std::current_exception();
    } catch (const DataError&) {
      uncounted = std::current_exception();
    }
    auto parameters = copy_of(backend_, buffers_.parameters), states = copy_of(backend_, buffers_.states);
    try {
      state_ = load_training_file<M>(path, state_.fingerprint, buffers_.layout, state_.optimizer, std::span<M>(parameters), std::span<M>(states));
    } catch (...) {
      if (uncounted) std::rethrow_exception(uncounted);
      throw;
    }
    backend_.write(buffers_.parameters.data(), std::span<const M>(parameters));
    backend_.write(buffers_.states.data(), std::span<const M>(states));
    executors_.read_choices(state_.notes);
    rounds_.begin_anew();
  }
  /// The flat buffers, where their memory is the host's.
  /// All parameters, one behind the other as layout() says. What is written here is trained on.
  std::span<M> parameters() requires(B::on_host) { return buffers_.parameters; }
  /// Those of the last step, laid out likewise.
  std::span<const M> gradients() const requires(B::on_host) { return buffers_.gradients; }
  /// Copies of them, wherever they are. Shapes: layout() says where each parameter is. In the place of a running statistic's gradient
  /// is what the last batch came to.
  std::vector<M> read_parameters() const { return copy_of(backend_, buffers_.parameters); }
  std::vector<M> read_gradients() const {
    auto gradients = copy_of(backend_, buffers_.gradients);
    const double scale = rounds_.run_scale();
    if (scale == 1) return gradients;
    for (const Parameter& p : buffers_.layout)
      if (!p.shape.running)
        for (M& g : elements_of(p, std::span<M>(gradients))) g = static_cast<M>(g / scale);
    return gradients;
  }
  /// Sets all parameters. Errors: Error if `values` are not as many as the parameters.
  void write_parameters(std::span<const M> values) {
    check_value_count(values.size(), buffers_.count, "see layout() for the order and sizes of parameters");
    backend_.write(buffers_.parameters.data(), values);
    rounds_.parameters_are_set();
  }
  /// Name, shape and place of each parameter.
  const std::vector<Parameter>& layout() const { return buffers_.layout; }
  /// What is done: steps, updates, epochs and batches, also those of a file that was loaded.
  const TrainingState& state() const { return state_; }
  Index steps_done() const { return state_.step; }
  B& backend() { return backend_; }
  /// The plan of a training step (or a forward pass) on batches of shape `input`. It stays where it is as long as the trainer lives.
  const Plan& plan(const Input& input, bool training = true) {
    const Plan& plan = executor(input, training).plan();
    for (const Plan& known : plans_)
      if (known.table.input == input && known.options == plan.options && known.policy == plan.policy) return known;
    return plans_.emplace_back(plan);
  }
  const Plan& plan() { return plan(input_); }
  /// The scale of the loss, on backends that want one; to be set where the first steps should not have to find it.
  const LossScale& loss_scale() const { return rounds_.loss_scale(); }
  /// Errors:  Error if it is not finite and above 0
  void set_loss_scale(const LossScale& scale) { rounds_.set_loss_scale(scale); }
  /// Bytes of the arena that all plans so far share.
  Index arena_bytes() const { return executors_.arena_bytes(); }

 private:
  static constexpr Index steps_ahead = B::on_host ? 1 : 16;   ///< that fit() lets a device be behind
  /// The network's table, once network, policy, loss and optimizer are known to go together on this backend.
  static Table checked_table(std::span<const Layer> layers, const PolicySpec& policy, const Input& input, const Optimizer& optimizer) {
    check_precision<B>(policy, "Trainer");
    if constexpr (!B::on_host) optimizer.require_built_in();
    Table table = make_table(layers, input);
    if constexpr (!DenseLoss<L, T>) check_image_loss(L::name, table);
    return table;
  }
  BasicTrainer(const Table& table, std::span<const Layer> layers, const PolicySpec& policy, const Input& input, const Optimizer& optimizer,
               const TrainerOptions& options, L loss, B backend)
      : options_(options),
        loss_(std::move(loss)),
        backend_(std::move(backend)),
        input_(input),
        state_{.fingerprint = fingerprint_of(table), .optimizer = optimizer, .seed = options.seed},
        buffers_(table, optimizer.state_count(), backend_),
        executors_(layers,
                   PlanMaker<B>(policy, {options.budget, options.costs, options.frontier_file}, buffers_.bytes(), backend_, labels_of<L, T>())),
        rounds_(options_, loss_, backend_, executors_, buffers_, state_) {
    if constexpr (B::on_host) {   // in place: a copy might be more than a budget has
      initialize<M>(buffers_.layout, options.initializer, options.seed, parameters());
      rounds_.parameters_are_set();
    } else {
      std::vector<M> initial(static_cast<std::size_t>(buffers_.count));
      initialize<M>(buffers_.layout, options.initializer, options.seed, initial);
      write_parameters(initial);
    }
    static_cast<void>(executor(input, true));
  }
  static constexpr PlanOptions plan_options(bool training, bool keeps_output = false) {
    return {.training = training, .rows_loss = RowLocalLoss<L, T> && !keeps_output};
  }
  Executor<B>& executor(const Input& input, bool training, bool keeps_output = false) {
    return executors_.get(input, plan_options(training, keeps_output), backend_, buffers_.parameters.data(), buffers_.gradients.data());
  }
  /// `some`: a pixel has to count.
  LossResult evaluate(const RowSource<M>& source, const Labels& labels, bool some) {
    rounds_.settle();
    auto& run = executor(source.shape(), false);
    const double weight = run.weigh(source, labels, loss_, some);
    return weight > 0 ? run.run(source, labels, loss_, NoObserver{}, 1, {}, weight) : LossResult{};   // it may hold what is no number
  }
  /// Errors:  DataError if the loss is over pixels and none has counted. `images`: those that they are of
  static void require_counted(const Metrics& metrics, const std::string& images) {
    if (DenseLoss<L, T> && !(metrics.weight > 0)) throw no_pixel_counts(L::name, "pixels of the " + images);
  }
  template <class Loader>
  void check_shapes(const Loader& loader, bool training);
  template <class Loader>
  void check_batches(const Loader& train);
  template <class Loader>
  EpochRecord fit_epoch(const Loader& train, const FitOptions& options, ProgressLine* line);
  TrainerOptions options_;
  L loss_;
  B backend_;
  Input input_;
  TrainingState state_;
  TrainingBuffers<B> buffers_;
  std::deque<Plan> plans_;   ///< that somebody has asked for: an executor's own ends with it
  Executors<B> executors_;
  UpdateRounds<B, L> rounds_;   ///< refers to all of these but the plans
};
/// The trainer of a network type under a policy type on a backend type.
/// The policy's precision, if it has one, chooses the backend's type for it.
template <class Net, class Policy, class B, class L = SoftmaxCrossEntropy>
class Trainer : public BasicTrainer<typename detail::ChosenTypes<Net, Policy, B>::BackendType, L> {
 public:
  using BackendType = typename detail::ChosenTypes<Net, Policy, B>::BackendType;
  using Base = BasicTrainer<BackendType, L>;
  /// For full batches of shape `input`. Errors: as the constructors of BasicTrainer.
  Trainer(const Input& input, const Optimizer& optimizer, const TrainerOptions& options = {}, L loss = {})
      : Base(Net::layers, Policy::value, input, optimizer, options, std::move(loss)) {}
  /// On a backend that the program has made.
  Trainer(const Input& input, const Optimizer& optimizer, const TrainerOptions& options, L loss, BackendType backend)
      : Base(Net::layers, Policy::value, input, optimizer, options, std::move(loss), std::move(backend)) {}
  /// For networks with fixed extents. What can be wrong with the training of such a network is an error at compile time.
  explicit Trainer(const Optimizer& optimizer, const TrainerOptions& options = {}, L loss = {}) requires requires {
    Net::input;
  } : Trainer(Net::input, optimizer, options, std::move(loss)) {
    if constexpr (requires { typename Net::Content; })
      static_assert(detail::CheckTraining<typename Net::Content, Net::input, !DenseLoss<L, typename Base::T>>::ok,
                    "lrcnn: this network cannot be trained on this input with this loss; the rule is in the message above; change the layer "
                    "named there, the input or the loss");
  }
};
}   // namespace lrcnn
#include <lrcnn/train/fit.hpp>
