#pragma once
// Runs a plan's steps, one after the other, on a backend.
//
// When an executor is made, every step's Refs become views into the arena and the backend prepares each step once.
// A run is then a loop over steps that allocates nothing. The executor knows steps and nothing of policies or layers;
// what a step means is the backend's business. Memory is the backend's too: the host's, or a device's.
// Steps are started in groups, see exec/step_groups.hpp.
#include <lrcnn/exec/arena.hpp>
#include <lrcnn/exec/checks.hpp>
#include <lrcnn/exec/file_moves.hpp>
#include <lrcnn/exec/step_groups.hpp>
#include <cmath>
#include <memory>
#include <optional>
namespace lrcnn {
/// Executes one plan. Parameters and gradients are the caller's flat buffers (network/table.hpp says where each is).
template <Backend B>
class Executor {
 public:
  using T = typename B::element;
  using M = master_t<T>;   ///< of parameters, gradients and the batch
  using Memory = typename B::Memory;
  /// Pre:     parameters and gradients have parameter_count(plan.table) elements and outlive the executor;
  ///          gradients may be null for a plan without training
  /// Errors:  PlanError if there is no memory for the arena; BackendError if the backend refuses a step
  Executor(Plan plan, B& backend, const M* parameters, M* gradients)
      : Executor(plan, backend, parameters, gradients, std::make_shared<Memory>(allocate_arena(backend, plan))) {}
  /// The same in memory that several executors use in turn. Pre: arena->bytes() >= plan.arena.bytes,
  /// offloaded_bytes(*arena) >= plan.arena.offloaded. Post: on a device, what was there is gone.
  Executor(Plan plan, B& backend, const M* parameters, M* gradients, std::shared_ptr<const Memory> arena)
      : plan_(std::move(plan)), backend_(&backend), arena_(std::move(arena)) {
    if constexpr (requires { backend.layout(); }) plan_.target.vector_block = backend.layout().vector_block;
    const auto list = parameters_of(plan_.table);
    operands_.reserve(plan_.steps.size());
    const Bases<T> at{arena_->data(), parameters, gradients, offloaded_data(*arena_), &key_};
    for (const Step& step : plan_.steps) operands_.push_back(operands_of<T>(plan_, step, list, at));
    if constexpr (!B::on_host && requires { backend.fill_with_nans(*arena_); }) backend.fill_with_nans(*arena_);
    prepared_.reserve(plan_.steps.size());
    for (std::size_t i = 0; i < operands_.size(); ++i)
      prepared_.push_back(detail::needs_host(plan_.steps[i].op) ? std::optional<typename B::Prepared>{}
                                                                : std::optional<typename B::Prepared>{backend_->prepare(operands_[i])});
    for (const Operands<T>& o : operands_) drops_ = drops_ || (o.run && o.node && rules_of(o.node->layer).draws);
    for (const Step& step : plan_.steps)
      if (step.op == Op::load) requests_.push_back({step.y.images, step.y.rows});
      else if (step.op == Op::loss) label_requests_.push_back({step.x.images, step.x.rows});
    groups_.emplace(plan_, backend, operands_, prepared_);
    unlabelled_.assign(static_cast<std::size_t>(plan_.table.input.n), 0);
  }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  const Plan& plan() const { return plan_; }
  const Memory& arena() const { return *arena_; }
  /// Operands of step i, as the backend sees them.
  const Operands<T>& operands(Index i) const { return item(operands_, i); }
  /// Runs the plan on one batch. In training, dropouts draw their masks from `key`; otherwise they drop nothing.
  /// Post:    a training plan has written every parameter gradient (of gradient_scale times the mean loss over the batch, or over its
  ///          pixels: result.total is what divides their sum then)
  /// `weight`: what weigh() has said of the batch, which may be 0; none: it is asked here.
  /// Errors:  as weigh(); NumericError, naming the first layer whose output is not finite, if the loss is not. Parameters are never
  ///          written.
  template <TrainingLoss<T> L = SoftmaxCrossEntropy, class Observer = NoObserver>
  LossResult run(const RowSource<M>& source, const Labels& labels, const L& loss = {}, Observer&& observer = Observer{}, double gradient_scale = 1,
                 const RunKey& key = {}, std::optional<double> weight = {}) {
    LossResult result;
    start(source, labels, result, loss, std::forward<Observer>(observer), gradient_scale, key, weight);
    backend_->finish(result);
    if (!std::isfinite(result.sum)) report_not_finite(source, result.sum);
    return result;
  }
  /// The same, without waiting for a device: backend.finish() does, and adds what comes of the run to its result. On the
  /// host all is done, and added to `result`, when this returns.
  template <TrainingLoss<T> L = SoftmaxCrossEntropy, class Observer = NoObserver>
  void start(const RowSource<M>& source, const Labels& labels, LossResult& result, const L& loss = {}, Observer&& observer = Observer{},
             double gradient_scale = 1, const RunKey& key = {}, std::optional<double> weight = {}) {
    key_ = key;
    if constexpr (requires { backend_->set_run_key(key); })
      if (drops_) backend_->set_run_key(key);
    if (!weight) weight = weigh(source, labels, loss);
    const double scale = *weight > 0 ? gradient_scale / *weight : 0;
    const Labels seen = labels.rows() ? window_.over(labels, most_label_rows()) : labels;
    run_steps(source, seen, observer, [&](std::size_t i) { start_step(i, source, seen, loss, scale, result); });
    if constexpr (DenseLoss<L, T>) result.total += *weight;
  }
  /// What the sum of a batch's losses is divided by for the mean: its images, or the weight of its pixels. Runs nothing.
  /// `some`: a pixel has to count; otherwise the weight may be 0.
  /// Errors:  PlanError if the plan has no loss; ShapeError if its output is a map and the loss one over images; DataError if source or
  ///          labels do not fit
  template <TrainingLoss<T> L>
  double weigh(const RowSource<M>& source, const Labels& labels, const L& loss, bool some = true) {
    if (plan_.options.stores_output)
      throw PlanError(error_text(plan_title(plan_) + " is run without a sink for its output",
                                 "a plan with stores_output has no loss and keeps nothing", "run it with a RowSink, or plan without stores_output"));
    if (plan_.options.rows_loss && !RowLocalLoss<L, T>)
      throw PlanError(error_text(
          "the loss '" + std::string(L::name) + "' over " + (WholeMapLoss<L, T> ? "whole maps" : "images") + " is given to " + plan_title(plan_),
          "with rows_loss the output goes through the loss slab by slab", "plan without rows_loss"));
    if constexpr (!DenseLoss<L, T>) check_image_loss(L::name, plan_.table);
    check_source(source, plan_.table);
    if constexpr (DenseLoss<L, T>) {
      const Shape& output = plan_.table.shape(plan_.table.size());
      check_pixel_labels(L::name, labels, output);
      const double total = labels.rows() ? window_.total(loss, window_.over(labels, most_label_rows()), output) : loss.total(labels, output);
      if (total > 0 || (!some && total == 0)) return total;
      throw no_pixel_counts(L::name,
                            std::to_string(output.h) + 'x' + std::to_string(output.w) + " pixels of " + std::to_string(output.n) + " images");
    } else {
      check_image_labels(L::name, labels, plan_.table);
      return static_cast<double>(plan_.table.input.n);
    }
  }
  /// The forward pass alone, whatever the loss: output() has what it came to, also values that are not finite.
  /// Errors:  PlanError if the plan is one for training, or does not keep its output; DataError if the source does not fit
  void forward(const RowSource<M>& source) {
    if (plan_.options.stores_output || plan_.options.rows_loss)
      throw PlanError(error_text(plan_title(plan_) + " is run for an output that it does not keep",
                                 "with stores_output or rows_loss rows of the output are gone when the step is done",
                                 "plan without them, or run it with a RowSink"));
    if (plan_.options.training)
      throw PlanError(error_text(plan_title(plan_) + " is run for an output without a loss",
                                 "its backward pass begins with the loss, and its dropouts and norms do what they do in training",
                                 "plan with the option training = false"));
    check_source(source, plan_.table);
    NoObserver observer;
    run_steps(source, unlabelled_, observer, [&](std::size_t i) {
      if (plan_.steps[i].op != Op::loss) carry_out(i, source);
    });
    LossResult none;
    backend_->finish(none);
  }
  /// Runs a plan that hands its output on (PlanOptions::stores_output): rows go to `sink` as they are done, as it says.
  /// Waits for a device. Values are handed on as they are, also those that are not finite.
  /// Errors:  PlanError if the plan keeps its output; DataError if the source does not fit; what the source or the sink throws.
  ///          After an error the executor may run again
  template <class Observer = NoObserver>
  void run(const RowSource<M>& source, RowSink<M>& sink, Observer&& observer = Observer{}) {
    if (!plan_.options.stores_output)
      throw PlanError(error_text("a sink is given to " + plan_title(plan_) + ", which keeps its output",
                                 "rows are handed on by plans with stores_output", "plan with the options `predicting`, or read output()"));
    check_source(source, plan_.table);
    run_steps(source, unlabelled_, observer, [&](std::size_t i) {
      const Step& step = plan_.steps[i];
      if (step.op == Op::store) backend_->store(sink, step.x.images.begin, operands_[i].x);
      else carry_out(i, source);
    });
    LossResult none;
    backend_->finish(none);
  }
  /// Bytes for labels by rows, beside the plan's: as many rows as the loss of a slab takes, and no more, are in memory at a time. 0 until
  /// labels by rows are given for the first time. A device has as many again.
  Index label_bytes() const { return window_.bytes(); }
  /// Throws the NumericError that run() does, if `sum` was the loss of the batch last run.
  [[noreturn]] void report_not_finite(const RowSource<M>& source, double sum) { report_not_finite(source, plan_.steps.size(), sum); }
  /// The network's output for the batch last run: a view into the arena, which may be a device's. [N,K,1,1] or a map; empty if the
  /// plan hands it on, or takes it through the loss slab by slab.
  View<const T> output() const { return view_of<T>(plan_, plan_.results.output, arena_->data()); }
  /// The gradient of the network's input. Pre: the plan's options asked for it.
  View<const T> input_gradient() const { return view_of<T>(plan_, plan_.results.input_gradient, arena_->data()); }

 private:
  /// Starts all steps; `step` starts step i. Labels that a forward pass has no use for may be zeros.
  template <class Observer, class F>
  void run_steps(const RowSource<M>& source, const Labels& labels, Observer& observer, F step) {
    try {
      source.expect(requests_);
      if (labels.rows()) labels.rows()->expect(label_requests_);
      backend_->start(labels);
      if constexpr (requires { backend_->fill_with_nans(*arena_); })
        if (fills_) backend_->fill_with_nans(*arena_);
      groups_->run(observer, step);
    } catch (...) {
      backend_->cancel();
      throw;
    }
  }
  /// Starts a step that is the backend's, or that loads rows.
  void carry_out(std::size_t i, const RowSource<M>& source) {
    const Step& step = plan_.steps[i];
    if (step.op == Op::load) backend_->load(source, step.y.images.begin, operands_[i].y);
    else if (!move_by_file(i)) static_cast<void>(backend_->run(*prepared_[i], operands_[i]));
  }
  /// Carries step i out if it moves rows to or from a file; else returns false.
  bool move_by_file(std::size_t i) {
    if constexpr (requires { arena_->offloaded().read(nullptr, nullptr, Index{}); }) {
      if (!crosses_memories(plan_.steps[i].op)) return false;
      detail::move_by_file(arena_->offloaded(), plan_.steps[i].op, operands_[i].x, operands_[i].y);
      return true;
    }
    return false;
  }
  /// Of one image, in the largest step of the loss.
  Index most_label_rows() const {
    Index most = 0;
    for (const RowRequest& request : label_requests_) most = std::max(most, request.images.size() * request.rows.size());
    return most;
  }
  template <class L>
  void start_step(std::size_t i, const RowSource<M>& source, const Labels& labels, const L& loss, double scale, LossResult& result) {
    const Step& step = plan_.steps[i];
    const Operands<T>& o = operands_[i];
    if (step.op != Op::loss) return carry_out(i, source);
    if (labels.rows()) window_.read(labels, step.x.images, step.x.rows);
    LossResult elsewhere;
    const bool counts = step.pass != Pass::recompute;   // not in passes before the last, where gradients alone are wanted
    backend_->loss(loss, step.x.images.begin, o.x, o.dx, scale, counts ? result : elsewhere, counts);
    if (!std::isfinite(result.sum)) report_not_finite(source, i, result.sum);
  }
  /// Runs the forward steps again, looking at every output, to name where it began.
  [[noreturn]] void report_not_finite(const RowSource<M>& source, std::size_t until, double sum) {
    std::string where = "the loss itself";
    for (std::size_t i = 0; i < until; ++i) {
      const Step& step = plan_.steps[i];
      if (step.pass == Pass::backward || (step.pass == Pass::recompute && !plan_.options.rows_loss)) continue;
      if (step.op == Op::load || !detail::needs_host(step.op)) carry_out(i, source);
      if ((step.op != Op::load && step.op != Op::forward) || operands_[i].y.data == nullptr) continue;
      if (backend_->finite(operands_[i].y)) continue;
      where = step.layer < 0 ? "the input" : "layer '" + std::string(plan_.table.node(step.layer).layer.name.view()) + "'";
      where += ", images " + std::to_string(step.y.images.begin) + ".." + std::to_string(step.y.images.end - 1) + ", rows " +
               std::to_string(step.y.rows.begin) + ".." + std::to_string(step.y.rows.end - 1);
      break;
    }
    throw NumericError(error_text(
        "the loss is " + std::string(std::isnan(sum) ? "not a number" : "infinite") + "; the first values that are not finite come from " + where,
        "parameters were not changed by this step", "lower the learning rate, normalise the input, or go back to an earlier training file"));
  }
  Plan plan_;
  B* backend_;
  std::shared_ptr<const Memory> arena_;
  std::vector<Operands<T>> operands_;
  std::vector<std::optional<typename B::Prepared>> prepared_;
  std::optional<StepGroups<B>> groups_;        ///< of these steps, made when they are prepared
  std::vector<RowRequest> requests_{};         ///< what a run reads of its source, in order
  std::vector<RowRequest> label_requests_{};   ///< likewise of labels
  LabelWindow window_{};                       ///< of labels by rows
  std::vector<std::int32_t> unlabelled_{};     ///< of a forward pass alone
  RunKey key_{};                               ///< of the run at hand; operands point to it
  bool drops_ = false;                         ///< some step draws from it
  bool fills_ = fills_arenas();
};
}   // namespace lrcnn
