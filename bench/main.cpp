// The benchmark: Google Benchmark, with its options and its JSON.
//
//   lrcnn_bench [--threads=N] [--rounds=N] [--predict] [--benchmark_...]
//
//   step/<network>/<size>x<batch>/<policy>   one training step, forward and backward. Time is the median of the rounds;
//                                 the label is the arithmetic.
//     planned_bytes, arena_bytes    of the plan, and what was allocated for it
//     rss_growth_bytes              growth of the process's resident set during a step
//     images_per_second
//     outside_convolutions          share of the time
//     time_vs_column, bytes_vs_column   against the column run of the same pass: policies take turns
//     least_seconds, least_vs_column    the same of the quickest rounds: other programs on the machine make a step longer, never shorter
//     predicted_seconds, predicted_vs_time   with --predict: from costs that are measured before, 30 seconds a network
//     conv_sum, time_vs_conv_sum    of column-direct: seconds of the same convolutions alone by oneDNN, in the same pass
//   slabs/<network>/<size>x<batch>/<cut><n>  the same of policies that differ in the number of slabs alone
//   plan/<network>/<size>x<batch>/<policy>   making the plan
//   search/<network>/<size>x<batch>   finding the frontier of time against bytes, by estimated costs
//     points, least_bytes           of the frontier
//     placed_mean, placed_worst     bytes of its plans divided by the most that are live at once
//     placed_above_1_percent        share of its plans that lie more than 1 % above
//   conv/<c>to<k>/<size>/<pass>/<arithmetic>/<rows>   one pass of a 3x3 convolution over the first rows of eight maps
//     gflops, share_of_direct_peak  operations as the formula has them; slabs.hpp
//
//   divide/<c>to<k>/<size>x<batch>/<pass>/<division>   a convolution by Winograd's algorithm in little scratch, divided among threads in one way
//     near_ms, far_ms               the least of its runs while the threads' cores shared a cache, and while they did not; 0: never
//
//   graph/<graph>/<family>/<what>   what to keep of a forward graph (graphs.hpp): the least budget, or the strategy for so many percent of it
//     lower_sets
//     peak_bytes                    of the strategy; where the least budget is asked for, that
//     budget_bytes, overhead        of the strategy
//
//   loader/<size>x<batch>   a loader's batches, shuffled, cropped and flipped, and their rows as a step reads them, on one thread
//     images_per_second
//   weights/resnet50        ResNet-50's safetensors, opened, checked and read
//
// --benchmark_filter selects among these names. A pass runs those policies of a network that are selected, and the
// column. Those in bf16 are left out where the processor has no kernels for it. Google Benchmark puts how it
// counts behind the names of benchmarks that take their own time; that is taken off.
#include "divisions.hpp"
#include "graphs.hpp"
#include "pass.hpp"
#include "slabs.hpp"
#include "weights.hpp"
#include <lrcnn/core/machine.hpp>
#include <lrcnn/data/loader.hpp>
#include <lrcnn/data/shapes.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/version.hpp>
#include <benchmark/benchmark.h>
#include <charconv>
#include <fstream>
#include <iostream>
#include <regex>
using namespace bench;
namespace {
struct Options {
  int threads = 0;
  int rounds = 3;
  bool predicts = false;
};
/// Takes --name=N out of the arguments.
bool take_number(std::string_view argument, std::string_view name, int& value) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), value);
  if (error != std::errc() || end != argument.data() + argument.size() || value < 1)
    throw Error(error_text("argument " + std::string(name) + std::string(argument), "it takes a number of at least 1",
                           "write it as in " + std::string(name) + "2"));
  return true;
}
/// Threads beyond the processors would only wait for each other.
void check_threads(int threads) {
  const int processors = processor_count();
  if (threads > processors)
    throw Error(error_text("argument --threads=" + std::to_string(threads), "this process may use " + std::to_string(processors) + " processors",
                           "write --threads=" + std::to_string(processors) + " or less"));
}
std::string compiler() {
#ifdef __clang__
  return "clang++ " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." + std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "g++ " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." + std::to_string(__GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}
/// What a policy computes with: "fp32", "bf16", "fp32 Winograd".
std::string arithmetic(const Case& c, const std::string& policy) {
  std::string name;
  for (const NamedPolicy& p : c.policies)
    if (p.name == policy) {
      name = p.spec.precision == Precision::bf16 ? "bf16" : "fp32";
      if (p.spec.conv_algorithm == ConvAlgorithm::winograd) name += " Winograd";
      if (p.spec.conv_algorithm == ConvAlgorithm::fastest) name += " fastest";
    }
  return name;
}
/// A benchmark that reads its result off a pass.
void report(benchmark::State& state, NetworkPass& pass, const std::string& policy, const std::vector<std::string>& wanted, const Options& options) {
  pass.run(wanted, options.threads, options.rounds, options.predicts);
  const Measured &m = pass.measured(policy), &column = pass.measured("column");
  const double seconds = median(m.seconds);
  for (auto _ : state) state.SetIterationTime(seconds);
  state.SetLabel(arithmetic(pass.of(), policy));
  auto& counters = state.counters;
  counters["planned_bytes"] = static_cast<double>(m.planned_bytes);
  counters["arena_bytes"] = static_cast<double>(m.arena_bytes);
  counters["rss_growth_bytes"] = static_cast<double>(m.growth_bytes);
  counters["images_per_second"] = static_cast<double>(pass.of().input.n) / seconds;
  counters["outside_convolutions"] = median(m.outside);
  counters["time_vs_column"] = seconds / median(column.seconds);
  const auto least = [](const Measured& of) { return *std::min_element(of.seconds.begin(), of.seconds.end()); };
  counters["least_seconds"] = least(m);
  counters["least_vs_column"] = least(m) / least(column);
  counters["bytes_vs_column"] = static_cast<double>(m.planned_bytes) / static_cast<double>(column.planned_bytes);
  if (m.predicted > 0) {
    counters["predicted_seconds"] = m.predicted;
    counters["predicted_vs_time"] = m.predicted / seconds;
  }
  if (policy != "column-direct" || pass.convolutions().empty()) return;
  counters["conv_sum"] = median(pass.convolutions());
  counters["time_vs_conv_sum"] = seconds / median(pass.convolutions());
}
void plan_time(benchmark::State& state, const Case& c, const PolicySpec& policy) {
  const Table table = make_table(c.layers, c.input);
  Index steps = 0;
  for (auto _ : state) {
    const Plan plan = make_plan(table, policy, policy.precision == Precision::bf16 ? CpuBf16::target : Cpu::target);
    steps = static_cast<Index>(plan.steps.size());
    benchmark::DoNotOptimize(plan.arena.bytes);
  }
  state.counters["steps"] = static_cast<double>(steps);
}
void search_time(benchmark::State& state, const SearchCase& c) {
  const Table table = make_table(c.layers, c.input);
  const PlanOptions plan_options{.rows_loss = table.shape(table.size()).h * table.shape(table.size()).w > 1};
  Frontier frontier;
  for (auto _ : state) frontier = find_frontier(table, Policy<Fit<1>>::value, Cpu::target, plan_options, Costs(rates_of<Cpu>()));
  double sum = 0, worst = 1, above = 0;
  for (const SolvedPolicy& p : frontier.points) {
    const ArenaSize size = arena_size(table, p.policy, Cpu::target, plan_options);
    const double ratio = static_cast<double>(size.bytes) / static_cast<double>(size.lower_bound);
    sum += ratio, worst = std::max(worst, ratio), above += ratio > 1.01;
  }
  const auto points = static_cast<double>(frontier.points.size());
  auto& counters = state.counters;
  counters["points"] = points;
  counters["least_bytes"] = static_cast<double>(frontier.smallest().bytes);
  counters["placed_mean"] = sum / points;
  counters["placed_worst"] = worst;
  counters["placed_above_1_percent"] = above / points;
}
void graph_time(benchmark::State& state, const GraphCase& c) {
  const Index budget = c.percent == 0 ? 0 : least_recomputation_budget(c.graph->graph, {c.family}) * c.percent / 100;
  Index sets = 0;
  RecomputationStrategy strategy;
  for (auto _ : state) {
    const RecomputationPlanner planner(c.graph->graph, {c.family});
    sets = planner.lower_set_count();
    if (c.percent == 0) strategy.peak_bytes = planner.least_budget();
    else strategy = planner.strategy(budget);
  }
  state.counters["lower_sets"] = static_cast<double>(sets);
  state.counters["peak_bytes"] = static_cast<double>(strategy.peak_bytes);
  if (c.percent == 0) return;
  state.counters["budget_bytes"] = static_cast<double>(budget);
  state.counters["overhead"] = static_cast<double>(strategy.overhead);
}
/// Everything that a batch costs before a step begins, and what the step's load adds; nothing is made ahead.
void loader(benchmark::State& state, Index size, Index batch_size) {
  const Dataset data = make_shapes({.count = 4 * batch_size, .channels = 3, .h = size, .w = size});
  const Loader<float> batches(data, {.batch = batch_size,
                                     .normalization = normalization_of(data),
                                     .augmentation = {.flip = true, .pad = 4, .crop_h = size, .crop_w = size},
                                     .prefetch = 0});
  std::vector<float> rows(static_cast<std::size_t>(batch_size * 3 * size * size));
  Index images = 0, epoch = 0;
  for (auto _ : state)
    for (auto& batch : batches.epoch(epoch++)) {
      batch.read(0, dense_view(rows.data(), batch.size(), 3, Range{0, size}, size));
      benchmark::DoNotOptimize(rows.data());
      images += batch.size();
    }
  state.counters["images_per_second"] = benchmark::Counter(static_cast<double>(images), benchmark::Counter::kIsRate);
}
#ifdef LRCNN_WITH_ONEDNN
void convolution(benchmark::State& state, const SlabProblem& problem, int threads) {
  static const double peak = SlabConvolution({}, threads).best_rate();
  SlabConvolution convolution(problem, threads);
  for (auto _ : state) convolution.run();
  state.counters["gflops"] = benchmark::Counter(convolution.operations() / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["share_of_direct_peak"] = benchmark::Counter(convolution.operations() / peak, benchmark::Counter::kIsIterationInvariantRate);
}
#endif
#if LRCNN_WINOGRAD
/// The host may move threads between cores that share a cache and cores that do not, so runs of each kind are counted apart.
void divided(benchmark::State& state, const DividedPass& problem) {
  constexpr double near = 150;   // nanoseconds of a round trip
  DividedConvolution convolution(problem);
  double least_near = 0, least_far = 0, trip = round_trip();
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    convolution.run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(seconds);
    const double before = trip;
    trip = round_trip();
    if ((before < near) != (trip < near)) continue;   // it was moved meanwhile
    double& least = trip < near ? least_near : least_far;
    if (least == 0 || seconds < least) least = seconds;
  }
  state.counters["near_ms"] = 1000 * least_near;
  state.counters["far_ms"] = 1000 * least_far;
}
#endif
/// A reporter that shows a benchmark's own name.
template <class Reporter>
class PlainNames : public Reporter {
 public:
  using Reporter::Reporter;
  void ReportRuns(const std::vector<benchmark::BenchmarkReporter::Run>& runs) override {
    auto plain = runs;
    for (auto& run : plain) {
      run.run_name.iterations.clear();
      run.run_name.time_type.clear();
    }
    Reporter::ReportRuns(plain);
  }
};
/// Whether Google Benchmark's filter, a regular expression with an optional '-' for "all but", selects a name.
bool selected(const std::string& filter, const std::string& name) {
  if (filter.empty() || filter == "all") return true;
  const bool negative = filter[0] == '-';
  return std::regex_search(name, std::regex(filter.substr(negative ? 1 : 0), std::regex::extended)) != negative;
}
int run(int argc, char** argv) {
  Options options;
  bool list = false, to_file = false, formatted = false;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    const std::string_view a = argv[i];
    if (take_number(a, "--threads=", options.threads) || take_number(a, "--rounds=", options.rounds)) continue;
    if (a == "--predict") {
      options.predicts = true;
      continue;
    }
    if (a == "--benchmark_list_tests" || a == "--benchmark_list_tests=true") {
      list = true;
      continue;
    }
    to_file = to_file || a.starts_with("--benchmark_out=");
    formatted = formatted || a.starts_with("--benchmark_format=");
    arguments.push_back(argv[i]);
  }
  check_threads(options.threads);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  const std::string filter = benchmark::GetBenchmarkFilter();
  const std::vector<Case> all = cases();
  std::vector<std::unique_ptr<NetworkPass>> passes;
  std::vector<std::string> names;   // as Google Benchmark knows them
  const auto take = [&](const std::string& name, const std::string& suffix) {
    if (!selected(filter, name)) return false;
    if (list) std::cout << name << "\n";
    names.push_back(name + suffix);
    return true;
  };
  const bool has_bf16 = cpu_has_bf16();
  bool left_out = false;
  for (const Case& c : all) {
    std::vector<std::string> wanted;
    for (const NamedPolicy& p : c.policies)
      if (!has_bf16 && p.spec.precision == Precision::bf16) left_out = left_out || selected(filter, c.family + "/" + c.name() + "/" + p.name);
      else if (take(c.family + "/" + c.name() + "/" + p.name, "/iterations:1/manual_time")) wanted.push_back(p.name);
    if (wanted.empty()) continue;
    passes.push_back(std::make_unique<NetworkPass>(c));
    for (const std::string& policy : wanted)
      benchmark::RegisterBenchmark((c.family + "/" + c.name() + "/" + policy).c_str(),
                                   [&pass = *passes.back(), policy, wanted, options](auto& state) { report(state, pass, policy, wanted, options); })
          ->Iterations(1)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
  }
  for (const Case& c : all)
    for (const NamedPolicy& p : c.policies)
      if (c.family == "step" && take("plan/" + c.name() + "/" + p.name, ""))
        benchmark::RegisterBenchmark(("plan/" + c.name() + "/" + p.name).c_str(), [&c, &p](auto& state) {
          plan_time(state, c, p.spec);
        })->Unit(benchmark::kMillisecond);
  const std::vector<SearchCase> searches = search_cases();
  for (const SearchCase& c : searches)
    if (take("search/" + c.name(), "/real_time"))
      benchmark::RegisterBenchmark(("search/" + c.name()).c_str(), [&c](auto& state) { search_time(state, c); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
  const std::vector<NamedGraph> graphs = benchmark_graphs();
  for (const GraphCase& c : graph_cases(graphs))
    if (take(c.name(), "")) benchmark::RegisterBenchmark(c.name().c_str(), [c](auto& state) { graph_time(state, c); })->Unit(benchmark::kMillisecond);
  for (const auto& [size, batch] : {std::pair<Index, Index>{224, 8}, {28, 128}})
    if (const std::string name = "loader/" + std::to_string(size) + "x" + std::to_string(batch); take(name, "/real_time"))
      benchmark::RegisterBenchmark(name.c_str(), [size, batch](auto& state) { loader(state, size, batch); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
  if (take("weights/resnet50", "/real_time"))
    benchmark::RegisterBenchmark("weights/resnet50", weights_load_time)->UseRealTime()->Unit(benchmark::kMillisecond);
#ifdef LRCNN_WITH_ONEDNN
  for (const SlabProblem& p : slab_problems())
    if (take(p.name(), "/real_time"))
      benchmark::RegisterBenchmark(p.name().c_str(), [p, options](auto& state) { convolution(state, p, options.threads); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
#endif
#if LRCNN_WINOGRAD
  for (const DividedPass& p : divided_passes())
    if (take(p.name(), "/iterations:100/manual_time"))
      benchmark::RegisterBenchmark(p.name().c_str(), [p](auto& state) { divided(state, p); })
          ->Iterations(100)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
#endif
  if (left_out && !list) std::cerr << "lrcnn: benchmarks in bf16 are left out; this processor has no kernels for them\n";
  if (names.empty() && left_out) static_cast<void>(CpuBf16(options.threads));   // says more
  if (names.empty())
    throw Error(error_text("no benchmark's name matches '" + filter + "'", "names are like step/vgg16/224x8/column",
                           "list them with --benchmark_list_tests"));
  if (list) return 0;
  benchmark::AddCustomContext("lrcnn", version());
  benchmark::AddCustomContext("processor", processor_name());
  benchmark::AddCustomContext("backend", Cpu(options.threads).describe());
  benchmark::AddCustomContext("compiler", compiler());
  benchmark::AddCustomContext("threads", std::to_string(Cpu(options.threads).threads()));
  benchmark::AddCustomContext("rounds", std::to_string(options.rounds));
  std::string spec;
  for (const std::string& name : names) spec += (spec.empty() ? "^(" : "|") + name;
  PlainNames<benchmark::ConsoleReporter> console;
  PlainNames<benchmark::JSONReporter> file;
  benchmark::RunSpecifiedBenchmarks(formatted ? nullptr : &console, to_file ? &file : nullptr, spec + ")$");
  return 0;
}
}   // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::regex_error& e) {
    std::cerr << "lrcnn: the filter is no regular expression: " << e.what() << "\n";
  } catch (const Error& e) {
    std::cerr << e.what() << "\n";
  }
  return 2;
}
