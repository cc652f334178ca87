#pragma once
// Runs a plan's steps, one after the other, on a backend.
//
// When an executor is made, every step's Refs become views into the arena and the backend prepares each step once.
// A run is then a loop over steps that allocates nothing. The executor knows steps and nothing of policies or layers;
// what a step means is the backend's business. Memory is the backend's too: the host's, or a device's.
// Steps between two that need the host (load, store, loss) make a group, which a backend may record and start as one. Where a plan
// has several streams, a group also ends where one has to wait for another.
#include <lrcnn/exec/arena.hpp>
#include <lrcnn/exec/checks.hpp>
#include <lrcnn/plan/unpacking.hpp>
#include <cmath>
#include <memory>
#include <optional>
namespace lrcnn {
/// Watches steps; the default watches nothing. Tests use it to guard memory.
struct NoObserver {
  void before(const Plan&, Index) {}
  void after(const Plan&, Index) {}
};
/// A backend that can start a group of steps again as a whole.
template <class B>
concept Recorder = Backend<B> && requires {
  typename B::Group;
};
/// A backend that starts several steps at once where it can.
template <class B>
concept StartsTogether = Backend<B> && requires(B backend, std::span<const Operands<typename B::element>> steps) {
  { backend.start_together(steps) } -> std::same_as<std::size_t>;   // how many of them
};
/// A backend that can leave filter gradients packed, and unpack those of several steps at once.
template <class B>
concept UnpacksTogether = Backend<B> && requires(B backend, const typename B::Prepared& prepared, const Operands<typename B::element>& step,
                                                 std::span<const Operands<typename B::element>* const> steps) {
  { backend.keeps_packed(prepared, step) } -> std::same_as<bool>;
  backend.run_packed(prepared, step);
  backend.unpack_together(steps);
};
/// A backend whose work goes to several streams, in the order of each.
template <class B>
concept Streamed = Backend<B> && requires(B backend, Index number, std::span<const Index> events) {
  backend.fork(number);            // streams 1 ... number - 1 go on from where stream 0 is
  backend.enter(number, events);   // later work goes to that stream, once these events have happened
  backend.leave(number);           // records the event of that number on the stream; -1: none
  backend.join(number);            // stream 0 goes on when the others are done; what comes goes to it
};
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
  /// The same in memory that several executors use in turn. Pre: arena->bytes() >= plan.arena.bytes. Post: on a device, what was there is gone.
  Executor(Plan plan, B& backend, const M* parameters, M* gradients, std::shared_ptr<const Memory> arena)
      : plan_(std::move(plan)), backend_(&backend), arena_(std::move(arena)) {
    if constexpr (requires { backend.layout(); }) plan_.target.vector_block = backend.layout().vector_block;
    const auto list = parameters_of(plan_.table);
    operands_.reserve(plan_.steps.size());
    const Bases<T> at{arena_->data(), parameters, gradients, &key_};
    for (const Step& step : plan_.steps) operands_.push_back(operands_of<T>(plan_, step, list, at));
    if constexpr (!B::on_host && requires { backend.fill_with_nans(*arena_); }) backend.fill_with_nans(*arena_);
    prepared_.reserve(plan_.steps.size());
    for (std::size_t i = 0; i < operands_.size(); ++i)
      prepared_.push_back(is_own(plan_.steps[i].op) ? std::optional<typename B::Prepared>{}
                                                    : std::optional<typename B::Prepared>{backend_->prepare(operands_[i])});
    for (const Operands<T>& o : operands_) drops_ = drops_ || (o.run && o.node && rules_of(o.node->layer).draws);
    for (const Step& step : plan_.steps)
      if (step.op == Op::load) requests_.push_back({step.y.images, step.y.rows});
      else if (step.op == Op::loss) label_requests_.push_back({step.x.images, step.x.rows});
    make_groups();
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
  /// Errors:  as weigh(); NumericError, naming the first layer whose output is not finite, if the loss is not. Parameters are never
  ///          written.
  template <TrainingLoss<T> L = SoftmaxCrossEntropy, class Observer = NoObserver>
  LossResult run(const RowSource<M>& source, const Labels& labels, const L& loss = {}, Observer&& observer = Observer{}, double gradient_scale = 1,
                 const RunKey& key = {}) {
    LossResult result;
    start(source, labels, result, loss, std::forward<Observer>(observer), gradient_scale, key);
    backend_->finish(result);
    if (!std::isfinite(result.sum)) report_not_finite(source, result.sum);
    return result;
  }
  /// The same, without waiting for a device: backend.finish() does, and adds what comes of the run to its result. On the
  /// host all is done, and added to `result`, when this returns. `weight`: what weigh() has said of the batch; none: it is asked here. Where
  /// nothing counts, and it is 0, gradients are 0.
  template <TrainingLoss<T> L = SoftmaxCrossEntropy, class Observer = NoObserver>
  void start(const RowSource<M>& source, const Labels& labels, LossResult& result, const L& loss = {}, Observer&& observer = Observer{},
             double gradient_scale = 1, const RunKey& key = {}, std::optional<double> weight = {}) {
    key_ = key;
    if constexpr (requires { backend_->set_run_key(key); })
      if (drops_) backend_->set_run_key(key);
    if (!weight) weight = weigh(source, labels, loss);
    const double scale = *weight > 0 ? gradient_scale / *weight : 0;
    const Labels seen = labels.rows() ? window_.over(labels, most_label_rows()) : labels;
    run_groups(source, seen, observer, [&](std::size_t i) { start_step(i, source, seen, loss, scale, result); });
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
  /// Errors:  PlanError if the plan does not keep its output; DataError if the source does not fit
  void forward(const RowSource<M>& source) {
    if (plan_.options.stores_output || plan_.options.rows_loss)
      throw PlanError(error_text(plan_title(plan_) + " is run for an output that it does not keep",
                                 "with stores_output or rows_loss rows of the output are gone when the step is done",
                                 "plan without them, or run it with a RowSink"));
    check_source(source, plan_.table);
    NoObserver observer;
    run_groups(source, unlabelled_, observer, [&](std::size_t i) {
      const Step& step = plan_.steps[i];
      if (step.op == Op::load) backend_->load(source, step.y.images.begin, operands_[i].y);
      else if (step.op != Op::loss) static_cast<void>(backend_->run(*prepared_[i], operands_[i]));
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
    run_groups(source, unlabelled_, observer, [&](std::size_t i) {
      const Step& step = plan_.steps[i];
      if (step.op == Op::load) backend_->load(source, step.y.images.begin, operands_[i].y);
      else if (step.op == Op::store) backend_->store(sink, step.x.images.begin, operands_[i].x);
      else static_cast<void>(backend_->run(*prepared_[i], operands_[i]));
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
  /// Goes through all groups; `step` starts step i. Labels that a forward pass has no use for may be zeros.
  template <class Observer, class F>
  void run_groups(const RowSource<M>& source, const Labels& labels, Observer& observer, F step) {
    try {
      source.expect(requests_);
      if (labels.rows()) labels.rows()->expect(label_requests_);
      backend_->start(labels);
      if constexpr (requires { backend_->fill_with_nans(*arena_); })
        if (fills_) backend_->fill_with_nans(*arena_);
      if constexpr (Streamed<B>)
        if (streams_ > 1) backend_->fork(streams_);
      for (Group& group : groups_) {
        if constexpr (Streamed<B>)
          if (streams_ > 1) backend_->enter(plan_.steps[group.begin].stream, group.waits_for);
        const auto steps = [&] { run_steps(group, observer, step); };
        if constexpr (Recorder<B> && !is_watched<Observer>) {
          if (is_own(plan_.steps[group.begin].op)) steps();
          else backend_->run_group(group.recorded, steps);
        } else {
          steps();
        }
        if constexpr (Streamed<B>)
          if (streams_ > 1) backend_->leave(group.event);
      }
      if constexpr (Streamed<B>)
        if (streams_ > 1) backend_->join(streams_);
    } catch (...) {
      backend_->cancel();
      throw;
    }
  }
  template <class Observer>
  static constexpr bool is_watched = !std::is_same_v<std::remove_cvref_t<Observer>, NoObserver>;
  struct NoGroup {};
  template <class X>
  struct Recorded {
    using Type = NoGroup;
  };
  template <Recorder X>
  struct Recorded<X> {
    using Type = typename X::Group;
  };
  /// Steps [begin, end): one that needs the host, or some that do not.
  struct Group {
    std::size_t begin = 0, end = 0;
    typename Recorded<B>::Type recorded{};
    Index event = -1;                 ///< number of the event at its end; -1 if nobody waits for it
    std::vector<Index> waits_for{};   ///< events of other streams
    std::vector<Unpacking> unpackings{};
  };
  /// Starts a group's steps: one by one if somebody watches them, else as many at once as the backend can.
  template <class Observer, class F>
  void run_steps(const Group& group, Observer& observer, F step) {
    auto unpacking = group.unpackings.begin();
    const auto none = group.unpackings.end();
    for (std::size_t i = group.begin; i < group.end; ++i) {
      if constexpr (UnpacksTogether<B> && !is_watched<Observer>) {
        if (unpacking != none && unpacking->at == i) unpack(*unpacking++);
        if (unpacking != none && std::binary_search(unpacking->steps.begin(), unpacking->steps.end(), i)) {
          backend_->run_packed(*prepared_[i], operands_[i]);
          continue;
        }
      }
      if constexpr (StartsTogether<B> && !is_watched<Observer>) {
        const std::size_t bound = unpacking != none ? unpacking->at : group.end;
        const std::span<const Operands<T>> next = std::span<const Operands<T>>(operands_).subspan(i, bound - i);
        if (const std::size_t count = is_own(plan_.steps[i].op) ? 0 : backend_->start_together(next); count > 0) {
          i += count - 1;
          continue;
        }
      }
      observer.before(plan_, static_cast<Index>(i));
      step(i);
      observer.after(plan_, static_cast<Index>(i));
    }
    if constexpr (UnpacksTogether<B> && !is_watched<Observer>)
      if (unpacking != none) unpack(*unpacking);
  }
  void unpack(const Unpacking& unpacking) {
    std::vector<const Operands<T>*> steps;
    for (const std::size_t i : unpacking.steps) steps.push_back(&operands_[i]);
    if constexpr (UnpacksTogether<B>) backend_->unpack_together(steps);
  }
  void make_groups() {
    if constexpr (Streamed<B>) streams_ = stream_count(plan_);
    const auto waits = streams_ > 1 ? waits_of(plan_) : std::vector<std::vector<Index>>(plan_.steps.size());
    std::vector<char> has_waiters(plan_.steps.size(), 0);
    for (const auto& list : waits)
      for (const Index step : list) item(has_waiters, step) = 1;
    std::vector<Index> event_of(plan_.steps.size(), -1);
    Index events = 0;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const bool own = is_own(plan_.steps[i].op);
      const bool joins = i > 0 && !own && !is_own(plan_.steps[i - 1].op) && waits[i].empty() && groups_.back().event < 0 &&
                         (streams_ == 1 || plan_.steps[i].stream == plan_.steps[i - 1].stream);
      if (joins) {
        ++groups_.back().end;
      } else {
        groups_.push_back({i, i + 1, {}});
        for (const Index step : waits[i]) groups_.back().waits_for.push_back(item(event_of, step));
      }
      if (has_waiters[i]) groups_.back().event = event_of[i] = events++;
    }
    if constexpr (UnpacksTogether<B>)
      for (Group& group : groups_)
        group.unpackings =
            unpackings_of(plan_, group.begin, group.end, [&](std::size_t i) { return backend_->keeps_packed(*prepared_[i], operands_[i]); });
  }
  static constexpr bool is_own(Op op) { return op == Op::load || op == Op::store || op == Op::loss; }
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
    if (step.op == Op::load) return backend_->load(source, step.y.images.begin, o.y);
    if (step.op != Op::loss) return static_cast<void>(backend_->run(*prepared_[i], o));
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
      if (step.op == Op::load) backend_->load(source, step.y.images.begin, operands_[i].y);
      else if (!is_own(step.op)) backend_->run(*prepared_[i], operands_[i]);
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
  std::vector<Group> groups_;
  Index streams_ = 1;
  std::vector<RowRequest> requests_{};         ///< what a run reads of its source, in order
  std::vector<RowRequest> label_requests_{};   ///< likewise of labels
  LabelWindow window_{};                       ///< of labels by rows
  std::vector<std::int32_t> unlabelled_{};     ///< of a forward pass alone
  RunKey key_{};                               ///< of the run at hand; operands point to it
  bool drops_ = false;                         ///< some step draws from it
  bool fills_ = fills_arenas();
};
}   // namespace lrcnn
