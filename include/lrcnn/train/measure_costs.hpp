#pragma once
// Finds out what a network's steps cost on the machine at hand.
//
// The network is trained for a few steps under policies that cut it into few and into many slabs. So each kind of step occurs in several sizes,
// and where it occurs in training: between the steps that always are its neighbours, with what these leave in the caches. Policies have their runs in
// turns, so that what disturbs the machine for some seconds meets different ones.
#include <lrcnn/exec/executor.hpp>
#include <lrcnn/layer/loss.hpp>
#include <lrcnn/plan/costs.hpp>
#include <lrcnn/train/initializer.hpp>
#include <lrcnn/train/made_labels.hpp>
#include <chrono>
#include <deque>
#include <limits>
#include <optional>
#include <set>
namespace lrcnn {
/// How long measure_costs() may take.
struct MeasureOptions {
  double seconds = 30;   ///< at most so long, but for one run of one policy, and of a large network's column on a part of its rows
  int runs = 2;          ///< timed runs of each policy; of each step the shortest counts
};
/// The policy whose steps measure_costs() measures first: layer by layer, in generous scratch memory.
inline PolicySpec measuring_column(ConvAlgorithm algorithm) {
  PolicySpec column;
  column.conv_algorithm = algorithm, column.workspace_bytes = 64_MiB;
  return column;
}
namespace detail {
/// Times each step: the least of all runs.
struct StepTimes {
  using Clock = std::chrono::steady_clock;
  std::vector<double>* seconds;
  Clock::time_point since{};
  void before(const Plan&, Index) { since = Clock::now(); }
  void after(const Plan&, Index i) {
    double& best = item(*seconds, i);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - since).count());
  }
};
inline double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}
/// What was measured: seconds by kind and pixels.
using Samples = std::map<std::string, std::map<Index, std::vector<double>>>;
/// A policy that cuts each section into at most `slabs` slabs, of at least `rows` rows of its output if there are more than two, and
/// recomputes all.
inline PolicySpec measuring_slabs(const Table& table, const Target& target, Cut cut, Index slabs, Index rows, ConvAlgorithm algorithm) {
  bool sums = false;
  for (const Node& node : table.nodes) sums = sums || node.layer.kind == Kind::sum;
  PolicySpec policy;
  policy.checkpoints = {.rule = sums ? Checkpoints::Rule::sums : Checkpoints::Rule::pools, .every = 1};
  policy.recompute = Recompute::all, policy.conv_algorithm = algorithm, policy.workspace_bytes = 16_MiB;
  std::vector<Index> counts;
  for (const Stage& stage : split_stages(table, policy)) {
    if (static_cast<std::size_t>(stage.partition_number) >= counts.size()) counts.resize(static_cast<std::size_t>(stage.partition_number) + 1, slabs);
    if (stage.vector || stage.behind_means) continue;
    RowRules rules = row_rules(table, stage, target, algorithm);
    const RowGraph graph = rules.graph();
    Index& count = item(counts, stage.partition_number);
    count = std::min({count, std::max<Index>(2, graph.height / rows), max_slabs(graph, cut)});
  }
  policy.partition_count = std::min<Index>(static_cast<Index>(counts.size()), static_cast<Index>(PolicySpec::capacity));
  for (Index i = 0; i < policy.partition_count; ++i)
    if (counts[static_cast<std::size_t>(i)] > 1) item(policy.partitions, i) = {cut, item(counts, i), item(counts, i)};
  return policy;
}
/// The policy with no more scratch memory in each section than convolutions by Winograd's algorithm work well with: the most that `scratch`
/// gives for one of its layers' channels. Nothing where there is no such layer, or it has all that a column has.
inline std::optional<PolicySpec> in_scratch(PolicySpec policy, const Table& table, const Rates& rates, ScratchOf scratch) {
  bool some = false;
  for (const Stage& stage : split_stages(table, policy)) {
    if (stage.partition_number >= policy.partition_count) continue;
    const Index bytes = most_scratch(table, stage.first, stage.last, rates, scratch);
    if (bytes <= 0 || bytes >= measuring_column(policy.conv_algorithm).workspace_bytes) continue;
    Index& most = item(policy.partitions, stage.partition_number).workspace_bytes;
    most = std::max(most, bytes), some = true;
  }
  return some ? std::optional(policy) : std::nullopt;
}
}   // namespace detail
/// Policies under which the kinds of steps of any policy occur, those that matter most first. Convolutions by Winograd's algorithm occur in all
/// that scratch memory which a search offers to sections, few images and few rows included: what they do once a step weighs most there.
inline std::vector<PolicySpec> measuring_policies(const Table& table, const Target& target, const Rates& rates) {
  std::vector<PolicySpec> list;
  for (const ConvAlgorithm algorithm : {ConvAlgorithm::fastest, ConvAlgorithm::direct}) {
    const auto in_good = [&](const PolicySpec& policy) {
      return algorithm == ConvAlgorithm::direct ? policy : detail::in_scratch(policy, table, rates, &Rates::good_scratch).value_or(policy);
    };
    const auto add_slabs = [&](Cut cut, Index slabs, Index rows) {
      list.push_back(in_good(detail::measuring_slabs(table, target, cut, slabs, rows, algorithm)));
    };
    PolicySpec sections = detail::measuring_slabs(table, target, Cut::column, 1, 1, algorithm);   // none is cut
    sections.recompute = Recompute::none, sections.workspace_bytes = measuring_column(algorithm).workspace_bytes;
    const auto add_scratch = [&](ScratchOf scratch) {
      if (algorithm == ConvAlgorithm::direct) return;
      if (const auto policy = detail::in_scratch(sections, table, rates, scratch)) list.push_back(*policy);
    };
    list.push_back(measuring_column(algorithm));
    add_scratch(&Rates::good_scratch);
    const auto add_images = [&](Index images) {
      PolicySpec by_images = detail::measuring_slabs(table, target, Cut::column, 1, 1, algorithm);
      if (!detail::takes_statistics_of_batch(table)) by_images.images = images;   // filters come from memory then: each group goes through all layers
      else
        for (Index i = 0; i < by_images.partition_count; ++i) item(by_images.partitions, i).images = images;
      list.push_back(in_good(by_images));
    };
    if (table.input.n > 1) add_images(1);
    if (table.input.n > 8) add_images(ceil_div(table.input.n, 8));   // one image says little of many
    add_slabs(Cut::overlap, 4, 7);
    add_scratch(&Rates::ample_scratch);
    add_slabs(Cut::overlap, 16, 3);
    add_slabs(Cut::share, 4, 7);
  }
  return list;
}
namespace detail {
/// A plan, and the seconds of its steps: of each the least of all runs, since what disturbs a machine makes steps slower only.
template <class B>
struct TimedPlan {
  Executor<B> executor;
  std::vector<double> times;
  double longest = 0;   ///< seconds of its longest run
  TimedPlan(Plan plan, B& backend, const master_t<typename B::element>* parameters, master_t<typename B::element>* gradients,
            std::shared_ptr<const typename B::Memory> arena)
      : executor(std::move(plan), backend, parameters, gradients, std::move(arena)),
        times(executor.plan().steps.size(), std::numeric_limits<double>::max()) {}
  template <class Source, class L>
  void run(const Source& source, const Labels& labels, const L& loss) {
    const auto start = StepTimes::Clock::now();
    executor.run(source, labels, loss, StepTimes{&times});
    longest = std::max(longest, std::chrono::duration<double>(StepTimes::Clock::now() - start).count());
  }
};
/// Memory for the plan that needs most. Plans that the memory does not allow are left out; so are those that offload, whose moves are not measured.
template <class B>
std::shared_ptr<const typename B::Memory> largest_arena(const B& backend, std::vector<Plan>& plans) {
  std::erase_if(plans, [](const Plan& plan) { return plan.arena.offloaded > 0; });
  while (!plans.empty()) {
    const auto largest = std::max_element(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.arena.bytes < b.arena.bytes; });
    try {
      return std::make_shared<const typename B::Memory>(allocate_arena(backend, *largest));
    } catch (const PlanError&) {
      plans.erase(largest);
    }
  }
  return nullptr;
}
/// Sizes that differ by less than a tenth count as one.
inline Costs::Points points_of(const std::map<Index, std::vector<double>>& samples) {
  Costs::Points points;
  for (auto first = samples.begin(); first != samples.end();) {
    double pixels = 0, seconds = 0, count = 0;
    const Index most = first->first + first->first / 10;
    for (; first != samples.end() && first->first <= most; ++first) {
      const auto weight = static_cast<double>(first->second.size());
      pixels += weight * static_cast<double>(first->first), seconds += weight * median_of(first->second), count += weight;
    }
    points.push_back({static_cast<Index>(pixels / count), seconds / count});
  }
  return points;
}
}   // namespace detail
/// Points without what must have been a disturbance: no step takes longer than a larger one, and none of a convolution or a product (`multiplies`)
/// longer than if it were carried out as many smaller ones.
inline Costs::Points undisturbed(Costs::Points points, bool multiplies) {
  for (std::size_t i = points.size(); i-- > 1;) points[i - 1].seconds = std::min(points[i - 1].seconds, points[i].seconds);
  for (std::size_t i = 1; multiplies && i < points.size(); ++i) {
    const double of_smaller = points[i - 1].seconds / static_cast<double>(points[i - 1].pixels) * static_cast<double>(points[i].pixels);
    points[i].seconds = std::min(points[i].seconds, of_smaller);
  }
  return points;
}
namespace detail {
/// What was measured of kinds of steps, and which of these are convolutions or products.
struct MeasuredKinds {
  Samples samples{};
  std::set<std::string> multiplying{};
  template <class B>
  void add(const std::deque<TimedPlan<B>>& timed, const Costs& costs) {
    for (const TimedPlan<B>& t : timed) {
      const Plan& plan = t.executor.plan();
      for (std::size_t i = 0; i < t.times.size(); ++i) {
        const Step step = costs.carried_out(plan, plan.steps[i]);
        const std::string kind = step_kind(plan, step);
        const StepSize size = step_size(plan, step);
        samples[kind][std::max<Index>(1, size.pixels)].push_back(t.times[i]);
        if (size.products > 0) multiplying.insert(kind);
      }
    }
  }
  void put_into(Costs& costs) const {
    for (const auto& [kind, sizes] : samples) costs.set(kind, undisturbed(points_of(sizes), multiplying.count(kind) > 0));
  }
};
}   // namespace detail
/// The network with fewer rows or images, so that a step layer by layer takes at most `most` seconds by the rates, as far as that leaves all of
/// its kinds of steps. A layer behind a flatten has other ones where there are fewer rows; then there are fewer images.
/// Errors:  as make_plan()
inline Table measured_table(const Table& table, const Target& target, const PlanOptions& options, const Rates& rates, double most) {
  std::vector<Layer> layers;
  for (const Node& node : table.nodes) layers.push_back(node.layer);
  const Costs estimates(rates);
  const auto column_of = [&](const Table& t) { return make_plan(t, measuring_column(ConvAlgorithm::fastest), target, options); };
  const auto kinds_of = [&](const Plan& plan) {
    std::set<std::string> kinds;
    for (const Step& step : plan.steps) kinds.insert(step_kind(plan, estimates.carried_out(plan, step)));
    return kinds;
  };
  Plan column = column_of(table);
  const auto kinds = kinds_of(column);
  while (seconds(column, estimates) > most) {
    Input fewer_rows = column.table.input, fewer_images = fewer_rows;
    fewer_rows.h /= 2, fewer_images.n /= 2;
    bool found = false;
    for (const Input& input : {fewer_rows, fewer_images}) {
      if (input.n < 1 || input.h < 64) continue;
      try {
        Plan smaller = column_of(make_table(layers, input));
        if (kinds_of(smaller) != kinds) continue;
        column = std::move(smaller), found = true;
        break;
      } catch (const Error&) {   // the network does not allow it
        continue;
      }
    }
    if (!found) break;
  }
  return column.table;
}
namespace detail {
/// What a network is run on while it is measured: images and parameters that are drawn, and labels that the loss takes.
template <class B>
class MeasuredNetwork {
 public:
  using M = master_t<typename B::element>;
  /// Errors:  as MadeLabels::of()
  template <class L>
  MeasuredNetwork(Table network, const L& loss)
      : table(std::move(network)),
        images_(static_cast<std::size_t>(table.input.count())),
        parameters_(static_cast<std::size_t>(parameter_count(table))),
        gradients_(parameters_.size()) {
    const Random random(1, 1);
    for (std::size_t i = 0; i < images_.size(); ++i) images_[i] = static_cast<M>(random.uniform(i) - 0.5);
    labels_ = MadeLabels::of<typename B::element>(loss, table.shape(table.size()));
    initialize<M>(parameters_of(table), He{}, 1, parameters_);
  }
  const Table table;
  const M* parameters() const { return parameters_.data(); }
  M* gradients() { return gradients_.data(); }
  /// Runs a plan: timed, or, so that the system has given the memory before, not.
  template <class L>
  void run(TimedPlan<B>& plan, const L& loss, bool counts = true) const {
    const Labels labels = labels_.labels();
    const MemorySource<M> source(images_.data(), table.input);
    if (counts) plan.run(source, labels, loss);
    else plan.executor.run(source, labels, loss);
  }

 private:
  std::vector<M> images_, parameters_, gradients_;
  MadeLabels labels_{};
};
/// Whether the memory allows a network's column.
template <class B>
bool allows_column(const Table& table, const B& backend, const PlanOptions& options) {
  std::vector<Plan> plans{make_plan(table, measuring_column(ConvAlgorithm::fastest), B::target, options)};
  return largest_arena(backend, plans) != nullptr;
}
/// How many times as long as estimated a network's column takes here; 1 if the memory does not allow it. It is run twice, but only once if that
/// takes longer than `most` seconds.
template <class B, class L>
double times_estimated(const Table& table, B& backend, const PlanOptions& options, const Rates& rates, const L& loss, double most) {
  std::vector<Plan> plans{make_plan(table, measuring_column(ConvAlgorithm::fastest), B::target, options)};
  const auto arena = largest_arena(backend, plans);
  if (arena == nullptr) return 1;
  const double estimated = seconds(plans.front(), Costs(rates));
  MeasuredNetwork<B> network(table, loss);
  TimedPlan<B> column(std::move(plans.front()), backend, network.parameters(), network.gradients(), arena);
  for (int run = 0; run < 2 && column.longest <= most; ++run) column.longest = 0, network.run(column, loss);   // the first touches the memory
  return column.longest / estimated;
}
}   // namespace detail
/// Costs of a network's steps on an input, measured by running it on a backend of the host, with made-up labels of the kind that the loss takes.
/// Errors:  as the executor's; DataError if a loss over pixels takes none of the labels that are made up. Policies that the network or the
///          memory does not allow are left out
template <Backend B, TrainingLoss<typename B::element> L = SoftmaxCrossEntropy>
  requires(B::on_host)
Costs measure_costs(const Table& network, B& backend, const MeasureOptions& options = {}, const L& loss = {}) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const Rates rates = rates_of<B>();
  const PlanOptions plan_options{.rows_loss = RowLocalLoss<L, typename B::element>};
  const double most = options.seconds / 12;   // of the column
  Table part = measured_table(network, B::target, plan_options, rates, most);
  if (part.input != network.input) {   // a large network is measured on as many rows as this machine has time for
    const double times = detail::times_estimated(part, backend, plan_options, rates, loss, most);
    Table other = measured_table(network, B::target, plan_options, rates, most / times);
    if (other.input != part.input && detail::allows_column(other, backend, plan_options)) part = std::move(other);
  }
  detail::MeasuredNetwork<B> measured_on(std::move(part), loss);
  const Table& table = measured_on.table;
  std::vector<Plan> plans;
  for (const PolicySpec& policy : measuring_policies(table, B::target, rates)) {
    try {
      plans.push_back(make_plan(table, policy, B::target, plan_options));
    } catch (const PlanError&) {   // the network does not allow it
      continue;
    }
  }
  const auto arena = detail::largest_arena(backend, plans);
  detail::MeasuredKinds measured;
  Costs costs(rates);
  const int runs = std::max(1, options.runs);
  Index touched = 0;                                          // bytes of the arena that the system has given
  for (auto first = plans.begin(); first != plans.end();) {   // plans that convolve by one algorithm have their runs in turns
    const ConvAlgorithm algorithm = first->policy.conv_algorithm;
    const auto last = std::find_if(first, plans.end(), [&](const Plan& plan) { return plan.policy.conv_algorithm != algorithm; });
    std::deque<detail::TimedPlan<B>> timed;
    for (; first != last; ++first) {
      if (!costs.measured().empty() && spent() + 1.2 * seconds(*first, costs) > options.seconds) continue;
      const Index bytes = first->arena.bytes;
      timed.emplace_back(std::move(*first), backend, measured_on.parameters(), measured_on.gradients(), arena);
      if (bytes > touched) measured_on.run(timed.back(), loss, false), touched = bytes;
      measured_on.run(timed.back(), loss);
      detail::MeasuredKinds known = measured;
      known.add(timed, costs);
      known.put_into(costs);
    }
    for (int run = 1; run < runs; ++run)
      for (detail::TimedPlan<B>& plan : timed)
        if (spent() + plan.longest <= options.seconds * 0.8) measured_on.run(plan, loss);
    measured.add(timed, costs);
    measured.put_into(costs);
  }
  return costs;
}
}   // namespace lrcnn
