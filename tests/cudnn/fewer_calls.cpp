// Plans that leave packing out, or convolve rows where they lie, give the bits of those that pack again, or copy, with fewer calls. On the
// pretended device.
#include "cudnn/host_library.hpp"
#include "cudnn/device_run.hpp"
#include "cudnn/networks_along.hpp"
#include "support/thorough.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <map>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Made {
  LossResult loss;
  std::vector<float> gradients;
  Index calls = 0, loops = 0;
};
/// A plan's second run, into an arena that is full of NaN. Steps are started one by one where they are apart.
template <Precision precision>
Made made_by(const Problem<float>& problem, const Plan& plan, bool apart = true) {
  using B = BasicCudnn<precision>;
  const auto library = std::make_shared<HostLibrary<typename B::element>>();
  B backend(library);
  const auto count = static_cast<Index>(problem.parameters.size());
  auto parameters = backend.template buffer<float>(count), gradients = backend.template buffer<float>(count);
  backend.write(parameters.data(), std::span<const float>(problem.parameters));
  Executor<B> executor(plan, backend, parameters.data(), gradients.data());
  const MemorySource<float> source(problem.images.data(), problem.table.input);
  Made made;
  struct Observer {
    void before(const Plan&, Index) {}
    void after(const Plan&, Index) {}
  };
  for (int i = 0; i < 2; ++i) {
    const std::vector<std::byte> nan(static_cast<std::size_t>(executor.arena().bytes()), std::byte{0xff});
    backend.write(executor.arena().data(), std::span<const std::byte>(nan));
    const Index before = library->calls, loops_before = library->loops_started;
    made.loss = apart ? executor.run(source, problem.labels, SoftmaxCrossEntropy{}, Observer{}) : executor.run(source, problem.labels);
    made.calls = library->calls - before;
    REQUIRE(library->wait().good());
    made.loops = library->loops_started - loops_before;
  }
  made.gradients.resize(problem.parameters.size());
  backend.read(std::span<float>(made.gradients), gradients.data());
  return made;
}
using Net = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, MaxPool<>, Conv<12>, ReLU, Conv<12, Window{.kernel = 3, .stride = 2, .pad = 1}>, ReLU,
                       Conv<8, Window{.kernel = 1}>, MaxPool<>, Flatten, Linear<10>>;
template <Precision precision>
void law(const PolicySpec& policy) {
  const Problem<float> problem(Net::layers, {4, 3, 32, 24}, 7);
  INFO(to_string(policy), ", ", precision_name(precision));
  const Plan plan = make_plan(problem.table, policy, BasicCudnn<precision>::target);
  Plan again = plan;
  std::map<Index, Op> op;   // of each packed filter
  for (const Step& s : plan.steps)
    if (s.op == Op::pack_forward || s.op == Op::pack_backward) op[s.packed] = s.op;
  for (const LeftOutStep& s : plan.left_out) again.steps.insert(again.steps.begin() + s.place, s.step)->op = op.at(s.step.packed);
  const auto saved = static_cast<Index>(plan.left_out.size());
  CHECK(saved >= 4);
  const Made once = made_by<precision>(problem, plan), anew = made_by<precision>(problem, again);
  CHECK(once.loss == anew.loss);
  CHECK(once.gradients == anew.gradients);
  if (policy.streams == 1) CHECK(anew.calls - once.calls == saved);
  else CHECK(anew.calls - once.calls >= saved);   // nor do streams wait for it
}
}   // namespace
TEST_CASE("filters that stay packed give the bits of filters that are packed again, and save their calls") {
  using W = Workspace<1_MiB>;
  for (const PolicySpec& policy :
       {Policy<Share<4>, CheckpointAtPools, RecomputeAll, W>::value, Policy<Overlap<3>, CheckpointAtPools, RecomputeAll, W>::value,
        Policy<Stages<ByImages<2, Overlap<3>>, Overlap<2>, Column>, CheckpointAtPools, RecomputeAll, W>::value,
        Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, W, Streams<2>>::value}) {
    law<Precision::fp32>(policy);
    law<Precision::bf16>(policy);
  }
}
TEST_CASE("steps that are started together give the bits of those that are started one by one, with fewer loops") {
  using W = Workspace<1_MiB>;
  using Joined = Sequential<Conv<8>, ReLU, Residual<Sequential<Conv<8>, ReLU, Conv<8>>>, ReLU, Conv<16>, ReLU, MaxPool<>, Flatten, Linear<10>>;
  for (const std::span<const Layer> layers : {std::span<const Layer>(Net::layers), std::span<const Layer>(Joined::layers)})
    for (const PolicySpec& policy :
         {Policy<Column, W>::value, Policy<Share<4>, CheckpointAtPools, RecomputeAll, W>::value, Policy<Overlap<3>, CheckpointAtPools, W>::value,
          Policy<ByImages<2, Overlap<3>>, CheckpointAtPools, RecomputeAll, W>::value,
          Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, W, Streams<2>>::value}) {
      INFO(to_string(policy));
      const Problem<float> problem(layers, {4, 3, 32, 24}, 7);
      const auto check = [&]<Precision precision>(std::integral_constant<Precision, precision>) {
        const Plan plan = make_plan(problem.table, policy, BasicCudnn<precision>::target);
        const Made apart = made_by<precision>(problem, plan), together = made_by<precision>(problem, plan, false);
        CHECK(together.loss == apart.loss);
        CHECK(together.gradients == apart.gradients);
        CHECK(together.loops < apart.loops + (policy.streams > 1));   // streams change where a gradient would stay packed
      };
      check(std::integral_constant<Precision, Precision::fp32>{});
      check(std::integral_constant<Precision, Precision::bf16>{});
    }
}
namespace {
/// What is found in a plan: joins, their gradients, those that both inputs of a join have, and ReLUs along with norms, ReLUs along with max pooling,
/// winners that are looked for again, mask bits that the pooling makes or nobody; biases along with poolings, and along with ReLUs and what is moved
/// beside them.
struct Along {
  Index joins = 0, join_gradients = 0, shared = 0, relus = 0, below_pools = 0, again = 0, no_bits = 0, bits_of_pools = 0, pool_biases = 0,
        relu_biases = 0;
  Along& operator+=(const Along& o) {
    joins += o.joins, join_gradients += o.join_gradients, shared += o.shared, relus += o.relus, below_pools += o.below_pools, again += o.again,
        no_bits += o.no_bits, bits_of_pools += o.bits_of_pools;
    pool_biases += o.pool_biases, relu_biases += o.relu_biases;
    return *this;
  }
  /// Loops that are saved at least.
  Index loops() const { return joins + join_gradients + shared + relus + below_pools + 2 * again + no_bits + pool_biases + relu_biases; }
};
template <Precision precision>
Along found_in(const Plan& plan) {
  using T = cudnn::Stored<precision>;
  const auto list = parameters_of(plan.table);
  auto* const somewhere = reinterpret_cast<std::byte*>(plan.target.alignment);
  std::vector<Operands<T>> operands;
  for (const Step& step : plan.steps)
    operands.push_back(operands_of<T>(plan, step, list, {somewhere, reinterpret_cast<const float*>(somewhere), reinterpret_cast<float*>(somewhere)}));
  Along found;
  const std::vector<char> fleeting = fleeting_steps(plan);
  for (std::size_t i = 0; i < operands.size();) {
    const auto rest = std::span<const Operands<T>>(operands).subspan(i);
    const cudnn::StepsAlong<T> run(rest, rest.size(), fleeting[i] != 0);
    found.no_bits += run.no_bits, found.bits_of_pools += run.bits_next, found.pool_biases += run.sums != nullptr;
    if (run.steps > 0) {
      const bool pools = run.work[0].node->layer.kind == Kind::max_pool, again = pools && run.steps == 3;
      const bool beside_sums = run.work[0].op == Op::backward_sums && run.work[0].dx.data != nullptr;
      const bool shared = beside_sums && run.work[0].dx.data == run.work[0].dy.data, behind_join = beside_sums && !shared;
      const bool joins = operands[i].op == Op::forward && !pools;
      (joins         ? found.joins
       : again       ? found.again
       : pools       ? found.below_pools
       : behind_join ? found.join_gradients
       : shared      ? found.shared
                     : found.relus) += 1;
      CHECK(run.steps >= run.count + (again || behind_join ? 2 : 1));
      i += run.steps;
      continue;
    }
    const cudnn::PointwiseRun<T> pointwise(rest, rest.size());
    found.relu_biases += pointwise.sums != nullptr;
    i += std::max<std::size_t>(pointwise.steps, 1);
  }
  return found;
}
/// Gradients of poolings' inputs lie behind all else in the arena, apart from the maps that the poolings read.
Plan with_pools_apart(Plan plan) {
  std::vector<char> moved(plan.buffers.size(), 0);
  for (const Step& step : plan.steps) {
    if (step.op != Op::backward_data || plan.table.node(step.layer).layer.kind != Kind::max_pool || std::exchange(item(moved, step.dx.buffer), 1))
      continue;
    Buffer& buffer = item(plan.buffers, step.dx.buffer);
    buffer.offset = plan.arena.bytes;
    plan.arena.bytes += buffer.bytes;
    for (Buffer& b : plan.buffers)   // the larger memory's addresses are behind the arena's
      if (b.role == Role::offloaded) b.offset += buffer.bytes;
  }
  return plan;
}
/// Networks by all policies, each in one precision a day: the loss and the gradients of steps one by one, with as many loops fewer as are found.
Along check_along(std::initializer_list<std::span<const Layer>> networks, bool pools_apart = false) {
  Along all;
  std::size_t pair = 0;   // of network and policy
  for (const std::span<const Layer> layers : networks)
    for (const PolicySpec& policy : policies_along) {
      const Problem<float> problem(layers, {4, 3, 28, 26}, 11);
      std::size_t number = pair + pair / policies_along.size();   // so that a policy has several precisions a day
      ++pair;
      const auto check = [&]<Precision precision>(std::integral_constant<Precision, precision>) {
        if (!has_turn(number++, 3)) return;
        INFO(to_string(policy), ", ", precision_name(precision));
        const Plan tight = make_plan(problem.table, policy, BasicCudnn<precision>::target), plan = pools_apart ? with_pools_apart(tight) : tight;
        const Made apart = made_by<precision>(problem, plan), together = made_by<precision>(problem, plan, false);
        CHECK(together.loss == apart.loss);
        CHECK(together.gradients == apart.gradients);
        const Along found = found_in<precision>(plan);
        all += found;
        if (policy.streams == 1) CHECK(apart.loops - together.loops >= found.loops());
      };
      check(std::integral_constant<Precision, Precision::fp32>{});
      check(std::integral_constant<Precision, Precision::fp16>{});
      check(std::integral_constant<Precision, Precision::bf16>{});
    }
  return all;
}
}   // namespace
TEST_CASE(
    "what is done along with batch norms and max pooling gives the bits of steps that are started one by one, whatever the policy and the widths") {
  const Along all = check_along({Normed<16, 8>::layers, Normed<8, 16>::layers, Normed<32, 8>::layers, Normed<24, 12>::layers});
  MESSAGE(all.joins, " joins, ", all.join_gradients, " gradients of joins, ", all.shared, " that both inputs have, and ", all.relus,
          " ReLUs along with norms, ", all.below_pools, " ReLUs along with pooling");
  CHECK(std::min({all.joins, all.join_gradients, all.shared, all.relus, all.below_pools}) > cases_to_do(10, 2));
}
TEST_CASE("bias gradients that are made along with ReLUs and max pooling have the bits of steps that are started one by one") {
  Along all = check_along({Biased<16, 8>::layers, Biased<24, 12>::layers});
  all += check_along({Biased<16, 8>::layers}, true);
  MESSAGE("bias gradients along with ", all.pool_biases, " poolings, ", all.again, " of which find their winners again, and with ", all.relu_biases,
          " ReLUs; mask bits of ", all.no_bits, " ReLUs left out, of which poolings make ", all.bits_of_pools);
  CHECK(std::min({all.pool_biases, all.again, all.no_bits - all.bits_of_pools, all.bits_of_pools, all.relu_biases}) > cases_to_do(10, 2));
}
TEST_CASE("a run that failed between steps that go together leaves nothing undone in the next one") {
  // The first mask bits are a pooling's, and the first bias gradient is a ReLU's.
  using Short = Sequential<Conv<8>, ReLU, MaxPool<>, Conv<8>, ReLU, GlobalAvgPool>;
  const Problem<float> problem(Short::layers, {2, 3, 12, 10}, 11);
  const PolicySpec policy = Policy<Column, Workspace<1_MiB>>::value;
  struct Watching : NoObserver {};   // steps that somebody watches are started one by one
  std::optional<Outcome<float>> wanted;
  Index failed = 0;
  for (Index k = 0;; ++k) {
    const auto library = std::make_shared<HostLibrary<float>>();
    Cudnn backend(library);
    DeviceRun<Cudnn> run(problem, policy, backend);
    if (!wanted) wanted = run(Watching{});
    library->fail_at = library->calls + k;
    try {
      static_cast<void>(run());
    } catch (const BackendError&) {
      ++failed;
    }
    if (library->calls <= library->fail_at) break;   // no call was the k-th: all have had their turn
    library->fail_at = -1;
    run.poison();
    run.poison_gradients();
    const auto after = run(Watching{});
    CHECK(after.loss == wanted->loss);
    CHECK(after.gradients == wanted->gradients);
  }
  CHECK(failed > 15);
}
TEST_CASE("every ReLU and every join behind a batch norm, and every ReLU before a pooling, is done along with it if widths allow it") {
  const Table table = make_table(ResNet50<>::layers, Input{2, 3, 64, 64});
  const Along all = found_in<Precision::bf16>(make_plan(table, Policy<Column>::value, CudnnBf16::target));
  CHECK(all.joins == 16);
  CHECK(all.join_gradients == 11);   // of 12 that have a norm before one input alone; memory may stand in the way
  CHECK(all.relus == 32);            // the 33rd is the pooling's
  CHECK(all.below_pools == 1);
  const Table vgg = make_table(Vgg16<>::layers, Input{2, 3, 64, 64});
  const Along biased = found_in<Precision::fp32>(make_plan(vgg, Policy<Column>::value, Cudnn::target));
  CHECK(biased.below_pools == 5);
  CHECK(biased.pool_biases == 5);
  CHECK(biased.relu_biases == 7);                                                 // the first convolution's rows are loaded before its step
  const Table narrow = make_table(Normed<24, 12>::layers, Input{2, 3, 20, 18});   // norms of 12 channels have other loops
  const Along some = found_in<Precision::bf16>(make_plan(narrow, Policy<Column>::value, CudnnBf16::target));
  CHECK(some.joins == 2);
  CHECK(some.relus == 0);   // the only norm of 24 channels before a ReLU lies below a pooling
  CHECK(some.below_pools == 1);
}
TEST_CASE("convolutions of one image on rows where they lie give the bits of those on copies, with fewer calls and no more memory") {
  using W = Workspace<1_MiB>;
  Index copies = 0;
  for (const Input& input : {Input{1, 3, 32, 24}, Input{3, 3, 32, 24}}) {
    const Problem<float> problem(Net::layers, input, 9);
    for (const PolicySpec& policy :
         {Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, W>::value, Policy<Share<3>, CheckpointAtPools, RecomputeAll, W>::value,
          Policy<ByImages<1, Overlap<3>>, CheckpointEvery<2>, RecomputeAll, W>::value,
          Policy<ByImages<1, Overlap<3>>, CheckpointEvery<2>, RecomputeAll, W, GradientsInPlace>::value,
          Policy<ByImages<1, Overlap<2>>, CheckpointEvery<3>, KeepAll, W, Streams<2>>::value}) {
      INFO(to_string(policy), ", ", input.n, " images");
      Target dense = Cudnn::target;
      dense.convolves_rows = false;
      const Plan there = make_plan(problem.table, policy, Cudnn::target), copied = make_plan(problem.table, policy, dense);
      CHECK(there.arena.lower_bound <= copied.arena.lower_bound);
      CHECK(there.steps.size() <= copied.steps.size());
      copies += static_cast<Index>(copied.steps.size() - there.steps.size());
      const Made a = made_by<Precision::fp32>(problem, there), b = made_by<Precision::fp32>(problem, copied);
      CHECK(a.loss == b.loss);
      CHECK(a.gradients == b.gradients);
      CHECK(a.calls <= b.calls);
    }
  }
  CHECK(copies > 50);
}
