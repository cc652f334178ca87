#pragma once
// Policies that are chosen when plans are made: for the bytes of Fit, or for a budget of all memory.
//
// A budget covers what a Trainer or a Predictor takes until it ends: parameters, gradients and the optimizer's state; the arena; the plan's own
// lists, where they are in the same memory; and an allowance for what the backend's library takes, such as the code that it generates. The
// batch is the program's, and so are the copies that saving and loading make. A search for policies takes some tens of MB while it lasts.
#include <lrcnn/backend/host/threads.hpp>
#include <lrcnn/core/memory.hpp>
#include <lrcnn/exec/arena.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <lrcnn/plan/frontier_file.hpp>
#include <limits>
#include <optional>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
namespace lrcnn {
/// All memory that a Trainer or a Predictor may take: Budget{8_GiB}, or Budget::share(0.8) of what is free when it is made, on the device
/// where the backend works on one.
struct Budget {
  Index bytes = 0;
  double part = 0;   ///< above 0: of the free memory, instead
  static constexpr Budget share(double part) { return {0, part}; }
  friend constexpr bool operator==(const Budget&, const Budget&) = default;
};
/// How policies are chosen where Fit or a budget asks for that.
struct PolicyChoice {
  std::optional<Budget> budget{};          ///< all that the policy does not name is chosen for it; the policy has no Fit then
  std::optional<Costs> costs{};            ///< what steps take, as from known_costs(); none: the backend's own estimates
  std::filesystem::path frontier_file{};   ///< where frontiers are kept, so that none is searched for twice; empty: nowhere
};
namespace detail {
/// Bytes that a backend's library takes beside the arena on so many threads, by measurement; 0 where nobody has said.
template <class B>
Index library_bytes(const Table& table, int threads) {
  if constexpr (requires { B::library_bytes(table, threads); }) return B::library_bytes(table, threads);
  else return 0;
}
/// Bytes that are free on a backend, `taken` among them, which the caller has taken already.
template <Backend B>
Index free_bytes(const B& backend, Index taken) {
  Index free = available_memory();
  if constexpr (requires { backend.free_bytes(); }) free = backend.free_bytes();
  return free > std::numeric_limits<Index>::max() - taken ? free : free + taken;
}
/// Bytes of a budget, given those that are free. Errors: Error if there are none, or the part is none.
inline Index bytes_of(const Budget& budget, Index free) {
  if (budget.part == 0 && budget.bytes > 0) return budget.bytes;
  if (budget.bytes != 0 || !(budget.part > 0 && budget.part <= 1))
    throw Error(error_text(budget.bytes != 0 || budget.part == 0 ? "a budget has " + std::to_string(budget.bytes) + " bytes"
                                                                 : "a budget is " + number_text(budget.part) + " of the free memory",
                           "a budget is a number of bytes above 0, or a share above 0 and at most 1 of what is free",
                           "write Budget{8_GiB} or Budget::share(0.8)"));
  if (free == std::numeric_limits<Index>::max())
    throw Error(error_text("a budget is " + number_text(budget.part) + " of the free memory", "this system does not say how much is free",
                           "give a number of bytes, as in Budget{8_GiB}"));
  return static_cast<Index>(budget.part * static_cast<double>(free));
}
}   // namespace detail
/// What labels there are of a batch, at most: none, one for each image or pixel of the output, or one for each element.
enum class BatchLabels : std::uint8_t { none, of_pixels, of_elements };
/// How many they are. Labels by rows are fewer in memory, but whether they come by rows is not known when a plan is made.
constexpr Index elements_of(BatchLabels labels, const Shape& output) {
  return labels == BatchLabels::none ? 0 : labels == BatchLabels::of_pixels ? output.n * output.h * output.w : output.count();
}
/// Those of a loss. A loss over pixels takes targets, which have all channels, unless its `targets` is false.
template <class L, class T>
constexpr BatchLabels labels_of() {
  if constexpr (!DenseLoss<L, T>) return BatchLabels::of_pixels;
  else if constexpr (requires { std::bool_constant<L::targets>{}; }) return L::targets ? BatchLabels::of_elements : BatchLabels::of_pixels;
  else return BatchLabels::of_elements;
}
/// Makes plans of one network for batches of several shapes, under a policy or what is chosen instead of it.
template <Backend B>
class PlanMaker {
 public:
  /// `fixed_bytes`: what of a budget is taken however steps are run. `labels`: of the batches.
  /// Errors:  Error if a budget is none; PlanError if the policy has Fit, too, or if nothing is left for plans
  PlanMaker(const PolicySpec& policy, PolicyChoice choice, Index fixed_bytes, const B& backend, BatchLabels labels = BatchLabels::none)
      : policy_(policy),
        choice_(std::move(choice)),
        fixed_bytes_(fixed_bytes),
        labels_(labels),
        costs_(choice_.costs ? *choice_.costs : Costs(rates_of<B>())) {
    if (!choice_.budget) return;
    if (policy.fit_bytes > 0)
      throw PlanError(error_text("a budget is given beside " + to_string(policy), "Fit is the arena's bytes, and a budget means all memory",
                                 "take one of them away"));
    if constexpr (requires { backend.ahead_limit(); }) ahead_limit_ = backend.ahead_limit();
    if constexpr (requires { backend.threads(); }) threads_ = host::openmp_threads(backend.threads());
    const Index free = detail::free_bytes(backend, fixed_bytes);
    budget_bytes_ = detail::bytes_of(*choice_.budget, free);
    policy_.fit_bytes = 1;   // as with Fit, all that is not named is chosen; training files have this number, which means nothing
    if (budget_bytes_ > free)
      std::clog << error_text("the budget of " + format_bytes(budget_bytes_) + " is more than the " + format_bytes(free) + " that are free",
                              "a policy is chosen for all of the budget", "give a smaller budget, or free memory")
                << "\n";
  }
  /// The plan for a table. With a policy that is chosen: the same one for the same table and options, as long as the object lives.
  /// Errors:  as make_plan(); PlanError naming the least budget that there is a plan for
  Plan make(const Table& table, const PlanOptions& options) {
    if (!is_chosen()) return make_plan(table, policy_, B::target, options);
    const std::string shape = shape_text(table, options);
    if (const auto known = chosen_.find(shape); known != chosen_.end())
      if (std::optional<Plan> plan = plan_within(table, known->second, options)) return *std::move(plan);
    std::optional<Plan> plan;
    if (!choice_.frontier_file.empty()) plan = plan_within(table, chosen(table, options, choice_.frontier_file), options);
    // Without a file, or if its policy does not hold here: the frontier in it may be of another network whose layers describe themselves as these do.
    if (!plan) plan = make_plan(table, chosen(table, options, {}), B::target, options);
    chosen_[shape] = plan->policy;
    return *std::move(plan);
  }
  /// Bytes of a plan that count where the policy is chosen: its arena and, within a budget, its lists.
  Index counted(const Plan& plan) const { return plan.arena.bytes + lists(plan.listed_steps()); }
  /// Bytes of a plan's lists, if they count.
  Index lists(Index steps) const { return choice_.budget && B::on_host ? steps * step_bytes : 0; }
  /// Bytes for the arena and the lists of all plans that are kept for this network.
  Index room_for(const Table& table) const {
    if (!is_chosen()) return std::numeric_limits<Index>::max();
    return choice_.budget ? budget_bytes_ - fixed_bytes_ - detail::library_bytes<B>(table, threads_) - ahead(table) : policy_.fit_bytes;
  }
  using Notes = std::map<std::string, std::string>;   ///< as a training file has them
  /// Notes which policies were chosen, and for what; takes away older notes of that.
  void write_choices(Notes& notes) const {
    std::erase_if(notes, [](const auto& note) { return note.first == asked_note || note.first.starts_with(policy_note); });
    if (!chosen_.empty()) notes[std::string(asked_note)] = asked();
    for (const auto& [shape, policy] : chosen_) notes[std::string(policy_note) + shape] = to_string(policy);
  }
  /// Takes such policies over, if they were chosen for what is asked here. Whether others are to be carried out now.
  bool read_choices(const Notes& notes) {
    const auto for_what = notes.find(std::string(asked_note));
    if (for_what == notes.end() || for_what->second != asked()) return false;
    const auto before = chosen_;
    for (const auto& [key, text] : notes) {
      if (!key.starts_with(policy_note)) continue;
      try {
        chosen_[key.substr(policy_note.size())] = parse_policy(text);
      } catch (const Error&) {   // of another version of the library: chosen anew
      }
    }
    return chosen_ != before;
  }
  /// Bytes that a step of a plan takes in the lists of a plan and its executor.
  static constexpr Index step_bytes = sizeof(Step) + sizeof(Operands<typename B::element>) + sizeof(std::optional<typename B::Prepared>);

 private:
  PolicySpec policy_;
  PolicyChoice choice_;
  Index fixed_bytes_;
  BatchLabels labels_;
  Costs costs_;
  Index budget_bytes_ = 0, ahead_limit_ = 0;
  int threads_ = 1;                              ///< of a library that runs on OpenMP's
  std::map<std::string, PolicySpec> chosen_{};   ///< by "training 8x3x224x224"

  static constexpr std::string_view asked_note = "policies for", policy_note = "policy of ";
  /// Whether the policy is chosen when a plan is made: for Fit, or for a budget.
  bool is_chosen() const { return policy_.fit_bytes > 0; }
  /// What policies are chosen for.
  std::string asked() const {
    if (!choice_.budget) return to_string(policy_);
    const Budget& b = *choice_.budget;
    return to_string(policy_) + " within " + (b.part > 0 ? number_text(b.part) + " of the free memory" : std::to_string(b.bytes) + " bytes");
  }
  static std::string shape_text(const Table& table, const PlanOptions& options) {
    return std::string(options.training ? "training " : "forward ") + to_string(table.input) + (options.rows_loss ? " by rows" : "") +
           (options.stores_output ? " handed on" : "");
  }
  /// The plan of a policy that comes from a file; none if the policy does not hold here, or takes more bytes than there are.
  std::optional<Plan> plan_within(const Table& table, const PolicySpec& policy, const PlanOptions& options) const {
    try {
      Plan plan = make_plan(table, policy, B::target, options);
      if (counted(plan) <= room_for(table)) return plan;
    } catch (const PlanError&) {   // a training file of another backend, a frontier of other layers
    }
    return {};
  }
  /// Bytes of a budget where batches wait for their steps, and labels lie.
  Index ahead(const Table& table) const {
    if constexpr (requires { B::ahead_bytes(table, ahead_limit_, Index{}); })
      return B::ahead_bytes(table, ahead_limit_, elements_of(labels_, table.shape(table.size())));
    else return 0;
  }
  /// Bytes of a point that count.
  Index bytes_of(const SolvedPolicy& point) const { return point.bytes + lists(point.steps); }
  static void return_freed_memory() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
  }
  PolicySpec chosen(const Table& table, const PlanOptions& options, const std::filesystem::path& file) const {
    const Frontier frontier = detail::kept_frontier<>(file, table, policy_, B::target, options, costs_);
    if (!choice_.budget) return fit(frontier, table, policy_);
    return_freed_memory();   // the search's
    const Index room = room_for(table);
    const SolvedPolicy* least = &frontier.smallest();
    for (auto point = frontier.points.rbegin(); point != frontier.points.rend(); ++point) {   // by rising seconds
      if (bytes_of(*point) <= room) return point->policy;
      if (bytes_of(*point) < bytes_of(*least)) least = &*point;
    }
    const Index enough = budget_bytes_ + bytes_of(*least) - room;
    throw PlanError(error_text("a budget of " + format_bytes(budget_bytes_) + " leaves " + (room > 0 ? format_bytes(room) : "nothing") +
                                   " for a step on input " + to_string(table.input) + ", beside " + format_bytes(fixed_bytes_) +
                                   " of parameters and what belongs to them and " +
                                   format_bytes(detail::library_bytes<B>(table, threads_) + ahead(table)) + " for the library",
                               "the fewest bytes that a plan was found for are " + std::to_string(bytes_of(*least)) + ", lists of steps included",
                               "give a budget of " + std::to_string(enough) + " bytes or more" + (table.input.n > 1 ? ", or smaller batches" : "")));
  }
};
}   // namespace lrcnn
