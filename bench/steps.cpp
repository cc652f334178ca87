// One training step (forward and backward, no optimizer) of the shipped networks under column and row policies.
//
// Names: step/<network>/<side>x<batch>/<policy>; policies that cut images have `images` in their name. Every iteration
// runs the column and the policy in turn, so that both see the same state of a shared machine; ratios are medians over
// the iterations of one pass. Parameters are He-initialised, images normally distributed: real values, no zeros.
// Counters:
//   planned_bytes, arena_bytes   the plan's peak, and the memory taken for it
//   rss_growth_bytes             growth of the resident set during one step
//   images_per_second
//   time_vs_column, bytes_vs_column
//   time_vs_convolutions         time of the step over the time spent in its convolution steps
#include "../examples/cpu_backend.hpp"
#include <lrcnn/exec/resident.hpp>
#include <lrcnn/lrcnn.hpp>
#include <benchmark/benchmark.h>
#include <chrono>
using namespace lrcnn;
namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
/// Adds up the time of convolution steps.
struct ConvolutionTime {
  double* seconds;
  double start = 0;
  void before(const Plan&, Index) { start = now(); }
  void after(const Plan& plan, Index i) {
    const Step& step = plan.steps[static_cast<std::size_t>(i)];
    const bool packs = step.op == Op::pack_forward || step.op == Op::pack_backward;
    if (step.layer >= 0 && !packs && plan.table.node(step.layer).layer.kind == Kind::conv) *seconds += now() - start;
  }
};
/// A network with parameters and a batch.
struct Problem {
  Table table;
  Cpu backend;
  std::vector<float> parameters, gradients, images;
  std::vector<std::int32_t> labels;
  Problem(std::span<const Layer> layers, const Input& input) : table(make_table(layers, input)) {
    parameters.resize(static_cast<std::size_t>(parameter_count(table)));
    gradients.resize(parameters.size());
    initialize<float>(parameters_of(table), He{}, 1, parameters);
    const Random random(2);
    images.resize(static_cast<std::size_t>(input.count()));
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(random.normal(i));
    for (Index i = 0; i < input.n; ++i) labels.push_back(static_cast<std::int32_t>(i % table.shape(table.size()).c));
  }
};
struct Run {
  Executor<Cpu> executor;
  MemorySource<float> source;
  Run(Problem& p, const PolicySpec& policy)
      : executor(make_plan(p.table, policy, Cpu::target), p.backend, p.parameters.data(), p.gradients.data()),
        source(p.images.data(), p.table.input) {}
  double seconds(Problem& p, double* convolutions = nullptr) {
    double inside = 0;
    const double start = now();
    executor.run(source, p.labels, SoftmaxCrossEntropy{}, ConvolutionTime{&inside});
    const double all = now() - start;
    if (convolutions) *convolutions = inside;
    return all;
  }
};
void step(benchmark::State& state, std::span<const Layer> layers, const Input& input, const PolicySpec& policy) {
  Problem problem(layers, input);
  PolicySpec whole = Policy<Column>::value;
  whole.arithmetic = policy.arithmetic;
  whole.workspace_bytes = policy.workspace_bytes;
  Run column(problem, whole), run(problem, policy);
  const bool is_column = whole == policy;
  const Index growth = resident_growth(run.executor.arena(), [&] { run.seconds(problem); });
  column.seconds(problem);
  std::vector<double> times, ratios, shares;
  for (auto _ : state) {
    const double base = is_column ? 0 : column.seconds(problem);
    double convolutions = 0;
    const double time = run.seconds(problem, &convolutions);
    state.SetIterationTime(time);
    times.push_back(time);
    ratios.push_back(is_column ? 1 : time / base);
    shares.push_back(time / convolutions);
  }
  const auto bytes = [](Index b) { return static_cast<double>(b); };
  state.counters["planned_bytes"] = bytes(run.executor.plan().peak_bytes());
  state.counters["arena_bytes"] = bytes(run.executor.arena().bytes());
  state.counters["rss_growth_bytes"] = bytes(growth);
  state.counters["images_per_second"] = static_cast<double>(input.n) / median(times);
  state.counters["time_vs_column"] = median(ratios);
  state.counters["bytes_vs_column"] = bytes(run.executor.plan().peak_bytes()) / bytes(column.executor.plan().peak_bytes());
  state.counters["time_vs_convolutions"] = median(shares);
  state.SetLabel(to_string(policy));
}
template <class Net, class P>
void add(const std::string& network, const Input& input, const std::string& policy, int iterations = 3) {
  const std::string name = "step/" + network + "/" + std::to_string(input.h) + "x" + std::to_string(input.n) + "/" + policy;
  benchmark::RegisterBenchmark(name.c_str(), [input](benchmark::State& s) { step(s, Net::layers, input, P::value); })
      ->UseManualTime()->Iterations(iterations)->Unit(benchmark::kMillisecond);
}
void planning(benchmark::State& state, std::span<const Layer> layers, const Input& input, const PolicySpec& policy) {
  std::size_t steps = 0;
  for (auto _ : state) steps = make_plan(make_table(layers, input), policy, Cpu::target).steps.size();
  state.counters["steps"] = static_cast<double>(steps);
}
template <class Net>
void add_planning(const std::string& network, const Input& input) {
  using P = Policy<Share<8>, CheckpointAtPools, RecomputeAll>;
  benchmark::RegisterBenchmark(("plan/" + network + "/" + std::to_string(input.h) + "x" + std::to_string(input.n)).c_str(),
                               [input](benchmark::State& s) { planning(s, Net::layers, input, P::value); })
      ->Unit(benchmark::kMillisecond);
}
// Row policies for VGG-16 at 224 x 224, batch 8. Checkpoints at three pools; the first stage, with the tall maps, is cut
// finest. Found by asking arena_size() for every combination of checkpoints and counts (docs/benchmarks.md).
using Scratch = Workspace<4_MiB>;
using ThreePools = Policy<Stages<Overlap<7, 8>, Share<4>, Overlap<2>, Column>, CheckpointAt<"pool2", "pool3", "pool4">, RecomputeAll, Scratch>;
using ThreePoolsFine = Policy<Stages<Overlap<14>, Overlap<4>, Overlap<2>, Column>, CheckpointAt<"pool2", "pool3", "pool4">, RecomputeAll, Scratch>;
using PoolsOverlap = Policy<Stages<Overlap<8>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, Scratch>;
using PoolsShare = Policy<Stages<Share<8>, Share<8>, Share<4>, Column>, CheckpointAtPools, RecomputeAll, Scratch>;
const bool registered = [] {
  constexpr Input vgg{8, 3, 224, 224};
  add<Vgg16<10>, Policy<Column, Scratch>>("vgg16", vgg, "column");
  add<Vgg16<10>, ThreePools>("vgg16", vgg, "three-pools");
  add<Vgg16<10>, ThreePoolsFine>("vgg16", vgg, "three-pools-fine");
  add<Vgg16<10>, PoolsOverlap>("vgg16", vgg, "overlap-pools");
  add<Vgg16<10>, PoolsShare>("vgg16", vgg, "share-pools");
  add<Vgg16<10>, Policy<Images<2>, Scratch>>("vgg16", vgg, "images-2");
  add<Vgg16<10>, Policy<Images<4>, Stages<Overlap<7>, Overlap<4>, Column>, CheckpointAt<"pool2", "pool3">, RecomputeAll, Scratch>>(
      "vgg16", vgg, "images-4-overlap");
  add<Vgg16<10>, Policy<Column, WinogradConv, Workspace<256_MiB>>>("vgg16", vgg, "column-winograd");
  add<Vgg11<10>, Policy<Column, Scratch>>("vgg11", vgg, "column");
  add<Vgg11<10>, Policy<Overlap<8>, CheckpointAtPools, RecomputeAll, Scratch>>("vgg11", vgg, "overlap-pools");
  constexpr Input small{128, 1, 28, 28};
  add<SmallNet<10>, Policy<Column, Scratch>>("smallnet", small, "column", 9);
  add<SmallNet<10>, Policy<Overlap<7>, CheckpointAtPools, RecomputeAll, Scratch>>("smallnet", small, "overlap-pools", 9);
  add<LeNet<10>, Policy<Column, Scratch>>("lenet", small, "column", 9);
  add<LeNet<10>, Policy<Overlap<7>, CheckpointAtPools, RecomputeAll, Scratch>>("lenet", small, "overlap-pools", 9);
  constexpr Input large{1, 3, 1024, 1024};
  add<Vgg16<10>, Policy<Column, Scratch>>("vgg16", large, "column", 1);
  add<Vgg16<10>, Policy<Stages<Overlap<32>, Overlap<16>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, Scratch>>(
      "vgg16", large, "overlap-pools", 1);
  for (const Index side : {224, 1024, 4096}) {
    const Input input{8, 3, side, side};
    add_planning<Vgg11<10>>("vgg11", input);
    add_planning<Vgg13<10>>("vgg13", input);
    add_planning<Vgg16<10>>("vgg16", input);
    add_planning<Vgg19<10>>("vgg19", input);
  }
  add_planning<SmallNet<10>>("smallnet", small);
  add_planning<LeNet<10>>("lenet", small);
  return true;
}();
}  // namespace
