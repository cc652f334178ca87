// Looks for anything wrong with the library, in seconds: plans by the checker, row-centric runs against column runs,
// column runs against formulas over whole maps. faults.py compiles it against headers with a fault and expects it to
// find that. Prints what finds something, and where first; exits with 1 then.
#include "faults/image_reads.hpp"
#include "faults/label_reads.hpp"
#include "faults/whole_maps.hpp"
#include <lrcnn/backend/host/bias.hpp>
#include <lrcnn/backend/host/conv_transpose.hpp>
#include <lrcnn/backend/host/global_pool.hpp>
#include <lrcnn/backend/host/tiled_transpose.hpp>
#include <lrcnn/backend/host/winograd.hpp>
#include <lrcnn/core/bounded_cache.hpp>
#include <lrcnn/exec/predictor.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/squeeze_excitation.hpp>
#include <lrcnn/plan/memory_over_time.hpp>
#include <lrcnn/plan/section_search.hpp>
#include "support/random_graph.hpp"
#include "support/rows_behind.hpp"
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <thread>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
std::map<std::string, std::string> found;
void report(const std::string& finder, const std::string& text) {
  const bool first = found.emplace(finder, text).second;
  if (first) std::cout << finder << ": " << text << std::endl;   // at once: the next step may crash
}
bool check(const Table& table, const PolicySpec& policy, const Target& target, const std::string& where,
           const PlanOptions& options = {.input_gradient = true}) {
  try {
    const Plan plan = make_plan(table, policy, target, options);
    for (const std::string& problem : check_plan(plan)) report("checker", where + ": " + problem);
    if (plan.arena != arena_size(table, policy, target, options)) report("peak", where);
    return true;
  } catch (const PlanError& e) {
    const std::string text = e.what();
    const bool known = text.find("largest feasible count") != std::string::npos || text.find("is to have its input made again") != std::string::npos;
    if (!known) report("planner", where + ": " + text);
    return false;
  }
}
/// Whether a policy can be planned, whatever says no.
bool is_feasible(const Table& table, const PolicySpec& policy) {
  try {
    static_cast<void>(make_plan(table, policy));
    return true;
  } catch (const PlanError&) {
    return false;
  }
}
template <class F>
void compare(const std::string& finder, const std::string& where, F difference, double tolerance = 1e-11) {
  try {
    if (const double d = difference(); !(d <= tolerance)) report(finder, where + ": differs by " + std::to_string(d));
  } catch (const Error& e) {
    report(finder, where + ": " + e.what());
  }
}
/// A forward pass alone by a column that keeps its output, and by policies that hand it on.
Index predict(Dice& dice, const RandomNetwork& net, std::uint64_t seed, const std::string& network) {
  const Problem<double> problem(net.layers, net.input, seed);
  Reference<double> plain;
  const auto keep = [&] {
    PolicySpec column;
    column.workspace_bytes = 0;
    Executor<Reference<double>> executor(make_plan(problem.table, column, plain.target, {.training = false}), plain, problem.parameters.data(),
                                         nullptr);
    executor.forward(MemorySource<double>(problem.images.data(), net.input));
    return dense_copy<double>(executor.output());
  };
  std::vector<double> whole;
  compare("rows", network, [&] { return whole = keep(), 0.0; });
  Index feasible = 0;
  for (int k = 0; k < 3; ++k) {
    PolicySpec policy = random_policy(dice, net);
    if (k > 0) policy.partitions[0] = {Cut::share, dice.upto(2, net.input.h), 1, 0};
    const std::string where = network + ", forward, " + to_string(policy);
    if (!check(problem.table, policy, plain.target, where, predicting)) continue;
    ++feasible;
    compare("rows", where, [&] {
      BasicPredictor<Reference<double>> predictor(net.layers, policy, net.input, problem.parameters);
      std::fill_n(reinterpret_cast<double*>(predictor.arena().data()), predictor.arena().bytes() / Index{sizeof(double)}, std::nan(""));
      std::vector<double> rows(whole.size(), std::nan(""));
      MemorySink<double> sink(rows.data(), predictor.output_shape().h);
      predictor.run(MemorySource<double>(problem.images.data(), net.input), sink);
      return distance<double>(rows, whole) / std::max(1.0, norm<double>(whole));
    });
  }
  return feasible;
}
/// Plans alone, of networks that branch, for a forward pass that hands its output on.
Index predicted_graphs() {
  Index feasible = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Dice dice(seed + 7000);
    const RandomNetwork net = without_head(random_graph(dice));
    const Table table = make_table(net.layers, net.input);
    for (int k = 0; k < 3; ++k) {
      PolicySpec policy = random_policy(dice, net);
      policy.images = 0;
      if (k > 0) policy.partition_count = 1, policy.partitions[0] = {Cut::share, dice.upto(2, net.input.h), 1, 0};
      feasible += check(table, policy, Reference<double>::target, "graph " + std::to_string(seed) + ", forward, " + to_string(policy), predicting);
    }
  }
  return feasible;
}
/// Networks that branch: norms divide by what may be small, so more is allowed.
Index graphs() {
  Reference<double> plain;
  Reference<double, 16, 3> blocked;
  constexpr Target packing{.element_bytes = 4, .channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
  Index feasible = 0;
  PolicySpec column;
  column.workspace_bytes = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Dice dice(seed + 5000);
    const RandomNetwork net = random_graph(dice, 4, Drawn::with_formulas);
    const Problem<double> problem(net.layers, net.input, seed);
    Outcome<double> whole;
    const std::string network = "graph " + std::to_string(seed);
    compare(
        "formulas", network, [&] { return worst_difference(problem, whole = run_once(problem, column, plain), whole_maps(problem)); }, 1e-8);
    compare(
        "formulas", network + ", blocked", [&] { return worst_difference(problem, run_once(problem, column, blocked), whole); }, 1e-8);
    for (int k = 0; k < 8; ++k) {
      PolicySpec policy = random_policy(dice, net);
      if (k < 7) policy.images = 0;   // a batch norm refuses groups
      if (k == 5 || k == 6) {         // extra passes, the first of which keeps what norms read
        const Index slabs = dice.upto(1, 3);
        policy.partition_count = 1, policy.checkpoints = {};
        policy.partitions[0] = {slabs > 1 ? Cut::overlap : Cut::column, slabs, slabs, 0, NormPasses::all, k == 6, Recompute::cheap};
      }
      const std::string where = network + ", " + to_string(policy);
      if (!is_feasible(problem.table, policy)) continue;
      check(problem.table, policy, packing, where);
      if (!check(problem.table, policy, Reference<double>::target, where)) continue;
      ++feasible;
      compare(
          "numbers", where, [&] { return worst_difference(problem, run_once(problem, policy, plain), whole); }, 1e-8);
    }
  }
  return feasible;
}
/// Of sections that go forward for those above, nothing waits at the loss, and each slab goes up once more and not more often.
void inputs_made_again() {
  using Chain = Sequential<Conv<4>, Conv<4>, ReLU, Conv<4>, Conv<4>, ReLU, GlobalAvgPool, Linear<2>>;
  const Plan shared = make_plan(table_of<Chain>({2, 3, 32, 8}),
                                Policy<Stages<Share<3>, RecomputeInput<Share<3>>>, CheckpointAt<"relu1">, RecomputeAll, Workspace<0>>::value);
  const std::vector<Index> times = step_times(shared);
  for (std::size_t i = 0; i < shared.steps.size(); ++i)
    for (const Buffer& b : shared.buffers)
      if (shared.steps[i].op == Op::loss && b.stage == 0 && b.first <= times[i] && times[i] < b.last)
        report("planner", "a section that goes forward for those above keeps a " + std::string(role_name(b.role)));
  using Norms = Sequential<Conv<4>, BatchNorm, ReLU, Conv<4>, BatchNorm, ReLU, Conv<4>, GlobalAvgPool, Linear<2>>;
  using Extra = ExtraPasses<Overlap<2>>;
  const auto first_slabs = [](const PolicySpec& policy) {
    const Plan plan = make_plan(table_of<Norms>({2, 3, 32, 8}), policy);
    return std::count_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.op == Op::forward && s.layer == 0 && s.slab == 0; });
  };
  if (first_slabs(Policy<Stages<Extra, RecomputeInput<>>, CheckpointAt<"relu2">>::value) !=
      first_slabs(Policy<Stages<Extra, Column>, CheckpointAt<"relu2">>::value) + 1)
    report("planner", "a section with extra passes goes forward too often for those above");
  // The sum reads the first section's relu1, which so is in full height, and the first of the extra passes need not make what batch_norm1 reads.
  using Skip = Sequential<Conv<4>, BatchNorm, ReLU, Residual<Sequential<Conv<4>, BatchNorm, ReLU, Conv<4>>>, GlobalAvgPool, Linear<2>>;
  using Cheap = Policy<Stages<Section<Extra, RecomputeCheap>, Column>, CheckpointAt<"relu2">, RecomputeAll>;
  check(table_of<Skip>({2, 3, 16, 8}), Cheap::value, Reference<double>::target, "a section with extra passes and a skip");
}
/// Random policies for networks that branch, each changed by change(partition, its number). Returns how many have plans, which are checked.
template <class Change>
Index changed_policies(std::uint64_t seeds, const std::string& what, bool gradients_in_place, const Change& change) {
  Index feasible = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed + seeds);
    const RandomNetwork net = random_graph(dice, 6);
    PolicySpec policy = random_policy(dice, net);
    policy.gradients_in_place = gradients_in_place, policy.images = 0;
    for (Index i = 0; i < policy.partition_count; ++i) change(item(policy.partitions, i), i);
    const Table table = make_table(net.layers, net.input);
    if (!is_feasible(table, policy)) continue;
    feasible += check(table, policy, Reference<double>::target, "graph " + std::to_string(seed) + ", " + what + ", " + to_string(policy));
  }
  return feasible;
}
/// Plans whose gradients take their values' places, where sections go forward again for those above.
Index places_read_again() {
  return changed_policies(123, "places read again", true, [](Partition& p, Index i) {
    p.cut = Cut::overlap, p.forward = p.backward = 4, p.recompute = Recompute::all;
    if (i > 0) p.input = SectionInput::recompute;
  });
}
/// Plans that go through whole maps more than once in the forward pass, for the statistics of norms.
Index maps_passed_again() {
  return changed_policies(456, "maps passed again", false,
                          [](Partition& p, Index) { p = {.passes = NormPasses::one, .forward_passes = true, .recompute = Recompute::all}; });
}
/// A norm does not write over a map that a skip connection reads, too.
void maps_that_others_read() {
  using Net = Sequential<Conv<4>, Residual<Sequential<BatchNorm, ReLU, Conv<4>, BatchNorm>>, BatchNorm, ReLU, GlobalAvgPool, Linear<2>>;
  const Plan plan = make_plan(table_of<Net>({2, 3, 16, 8}), Policy<RecomputeAll, Workspace<0>>::value);
  for (const std::string& problem : check_plan(plan)) report("checker", "a map that others read: " + problem);
}
/// The input of a section in slabs lives on only if a step of its backward pass reads it: a ReLU has its sign from its output.
void inputs_that_are_not_read_again() {
  using Chain = Sequential<Conv<4>, ReLU, Conv<4>, GlobalAvgPool, Linear<2>>;
  const Plan plan = make_plan(table_of<Chain>({2, 3, 32, 8}), Policy<Overlap<3>, CheckpointAt<"conv1">, Workspace<0>>::value);
  const std::vector<Index> times = step_times(plan);
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (const Buffer& b : plan.buffers)
      if (plan.steps[i].op == Op::loss && b.role == Role::value && b.tensor == 1 && b.first <= times[i] && times[i] < b.last)
        report("planner", "the input of a section waits for a backward pass that does not read it");
}
/// Frontiers: a search keeps to its bytes, and points are what their plans are.
void frontiers() {
  const Costs costs(Rates{.step = 2e-7, .products = 2e9, .winograd = 5e9, .bytes = 5e9, .lanes = 4});
  constexpr PlanOptions options{.input_gradient = true};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Dice dice(seed + 9000);
    const RandomNetwork net = random_graph(dice, 5);
    const Table table = make_table(net.layers, net.input);
    const std::string where = "graph " + std::to_string(seed);
    const Target& target = Reference<double>::target;
    try {
      PolicySpec policy = Policy<Fit<1>, Workspace<0>, DirectConv>::value;
      for (const SolvedPolicy& p : find_frontier(table, policy, target, options, costs).points)
        if (make_plan(table, p.policy, target, options).arena.bytes != p.bytes) report("frontier", where + ": other bytes than the plan's");
      policy.fit_bytes = 0;
      const SectionSearch search(table, policy, target, options, costs, policy.named, 1, {step_memories.begin(), step_memories.end()});
      for (const StepMemory memory : step_memories)
        for (Index room = Index{1} << 40, tries = 0; tries < 40; ++tries) {
          const auto solved = search.fastest(memory, room, 0);
          if (solved.empty()) break;
          const Index live = arena_size(table, solved[0].policy, target, options).lower_bound;
          const Index behind = search.catalog().is_thorough() ? 0 : bytes_behind(table, solved[0].policy, target, options);
          if (live > room + behind) report("frontier", where + ": more bytes than the search was given");
          room = std::min(room, live) - 1;
        }
    } catch (const PlanError&) {   // a norm of one value
    }
  }
}
/// Frontiers from a file are those of the costs at hand, and plans for a budget leave room for what is not theirs.
void kept_and_budgets() {
  using B = Reference<double>;
  const Table table = make_table(SmallNet<>::layers, {2, 3, 32, 32});
  const PolicySpec policy = Policy<Fit<1>>::value;
  const auto path = std::filesystem::temp_directory_path() / ("lrcnn_detector_" + std::to_string(::getpid()) + ".txt");
  const auto first_seconds = [&](double step) {
    const Costs costs(Rates{.step = step, .products = 2e9, .winograd = 5e9, .bytes = 5e9});
    return known_frontier(path, table, policy, B::target, {}, costs, [](const std::string&) {}).smallest().seconds;
  };
  if (first_seconds(1e-6) == first_seconds(1e-3)) report("frontier", "a file: seconds of other costs");
  std::filesystem::remove(path);
  const Index fixed = arena_size(table, Policy<>::value, B::target).bytes, budget = fixed + fixed * 3 / 4;
  const B backend(1);
  const Plan plan = PlanMaker<B>({}, {.budget = Budget{budget}}, fixed, backend).make(table, {});
  if (fixed + plan.arena.bytes > budget) report("frontier", "a budget: more bytes than it has");
}
#if LRCNN_WINOGRAD
/// Normally distributed numbers.
std::vector<float> numbers(Index count, std::uint64_t seed) {
  const Random random(seed);
  std::vector<float> list(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<float>(random.normal(i));
  return list;
}
/// Transposed convolutions as products against plain loops, on rows that begin and end within a window.
void transposed() {
  for (const Vectors vectors : {Vectors::avx512, Vectors::avx2, Vectors::plain}) {
    if (vectors > machine_vectors()) continue;
    const Index lanes = vector_block(vectors), n = 2, c = 4 * lanes, k = 3 * lanes, h = 5, w = 7;
    const std::array layers{Layer{.kind = Kind::conv_transpose, .window = {.kernel = 2, .stride = 2}, .channels = k, .bias = true}};
    const Node node = make_table(layers, {n, c, h, w}).nodes[0];
    const Range out{1, 2 * h - 1};
    const std::vector<float> x = numbers(n * c * h * w, 1), dy = numbers(n * k * out.size() * 2 * w, 2), filter = numbers(c * k * 4, 3),
                             bias = numbers(k, 4);
    std::array<std::vector<float>, 2> y, dx, dw, db;
    std::vector<float> scratch(static_cast<std::size_t>(host::TiledTranspose::workspace_bytes(node, lanes)) / sizeof(float));
    for (std::size_t by = 0; by < 2; ++by) {
      y[by].resize(dy.size()), dx[by].resize(x.size()), dw[by].resize(filter.size()), db[by].resize(bias.size());
      for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters}) {
        Operands<float> o;
        o.op = op, o.node = &node;
        o.parameters[0] = filter.data(), o.parameters[1] = bias.data(), o.d_parameters[0] = dw[by].data(), o.d_parameters[1] = db[by].data();
        o.workspace = reinterpret_cast<std::byte*>(scratch.data()), o.workspace_bytes = static_cast<Index>(scratch.size() * sizeof(float));
        o.x = dense_view(x.data(), n, c, Range{0, h}, w, lanes), o.dx = dense_view(dx[by].data(), n, c, Range{0, h}, w, lanes);
        o.y = dense_view(y[by].data(), n, k, out, 2 * w, lanes), o.dy = dense_view(dy.data(), n, k, out, 2 * w, lanes);
        if (by == 1) host::TiledTranspose::run(o, vectors, 2);
        else if (op == Op::forward) host::conv_transpose_forward(o, 1);
        else if (op == Op::backward_data) host::conv_transpose_backward_data(o, 1);
        else host::conv_transpose_backward_parameters(o, 1);
      }
    }
    const auto far = [](const std::array<std::vector<float>, 2>& lists) {
      for (std::size_t i = 0; i < lists[0].size(); ++i)
        if (!(std::abs(lists[0][i] - lists[1][i]) < 1e-3f)) return true;
      return false;
    };
    if (far(y) || far(dx) || far(dw) || far(db)) report("transposed convolution", "differs on " + std::string(vectors_name(vectors)));
  }
}
/// Winograd's forward pass against the formula, with its kernels K; the other two against it, since <dy, y> = <dx, x> = <dw, w>.
template <class K>
void winograd() {
  using namespace host::winograd;
  constexpr Index lanes = K::lanes, n = 2, c = 3 * lanes, h = 18, w = 23, square = 9 * lanes * lanes;
  if (K::vectors > machine_vectors()) return;
  const SlabPass pass{n, c, c, h, w, h, w, 1, 1};
  std::vector<float> x = numbers(n * c * h * w, 1), dy = numbers(n * c * h * w, 2), filter = numbers(9 * c * c, 3), packed(filter.size()),
                     turned(filter.size());
  std::vector<float> y(x.size()), dx(x.size()), dw(filter.size()), clipped(x.size());
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(n * c / lanes * h * ceil_div(w * lanes, 8)) + 64);
  const auto at = [](Index tap, Index a, Index b) { return static_cast<std::size_t>((tap * c + a) * c + b); };
  for (Index tap = 0; tap < 9; ++tap)
    for (Index in = 0; in < c; ++in)
      for (Index out = 0; out < c; ++out) {
        const Index block = ((out / lanes * (c / lanes) + in / lanes) * 9 + tap) * lanes;
        packed[static_cast<std::size_t>((block + in % lanes) * lanes + out % lanes)] = filter[at(tap, in, out)];
        turned[static_cast<std::size_t>((block + out % lanes) * lanes + in % lanes)] = filter[at(tap, in, out)];
      }
  const auto view = [&](std::vector<float>& values) { return dense_view(values.data(), n, c, Range{0, h}, w, lanes); };
  const auto dot = [](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  };
  for (const Division division : {Division::by_positions, Division::by_channels, Division::by_tiles}) {   // some chunks, some groups of channels
    const std::string who = "Winograd " + std::string(vectors_name(K::vectors)) + ", division " + std::to_string(static_cast<int>(division));
    const auto cut = [&](bool of_filters) {
      const Index tiles = 12, channels = 2 * lanes;
      return Blocking{tiles, channels, division, blocking_bytes(pass, tiles, channels, division, of_filters, 2)};
    };
    const Blocking forward = cut(false), gradient = cut(true);
    std::vector<float> scratch(static_cast<std::size_t>(std::max(forward.bytes, gradient.bytes)) / sizeof(float));
    for (std::vector<float>* const result : {&y, &dx, &dw, &clipped}) std::fill(result->begin(), result->end(), NAN);
    const Layer relu{.kind = Kind::activation};
    const View<std::uint8_t> signs = saved_view(bits.data(), relu, n, c, {0, h}, w, lanes);
    const Index row = c / lanes * square;
    run<K>(pass, forward, 2, view(x), {packed.data(), row, square, false}, {view(y)}, scratch.data());
    run<K>(pass, forward, 2, view(x), {packed.data(), row, square, false}, {view(clipped), nullptr, true, signs}, scratch.data());
    run<K>(pass, forward, 2, view(dy), {turned.data(), square, row, true}, {view(dx)}, scratch.data());
    run_gradient<K>(pass, gradient, 2, view(x), view(dy), {.outputs = c, .inputs = c, .dw = dw.data()}, scratch.data());
    double wrong = 0, weights = 0;
    Index wrong_signs = 0;
    for (Index i = 0; i < n; ++i)
      for (Index out = 0; out < c; ++out)
        for (Index row = 0; row < h; ++row)
          for (Index column = 0; column < w; ++column) {
            double sum = 0;
            for (Index tap = 0; tap < 9; ++tap) {
              const Index from = row + tap / 3 - 1, beside = column + tap % 3 - 1;
              if (from < 0 || from >= h || beside < 0 || beside >= w) continue;
              for (Index in = 0; in < c; ++in)
                sum += static_cast<double>(view(x)(i, in, from, beside)) * static_cast<double>(filter[at(tap, in, out)]);
            }
            const float value = view(y)(i, out, row, column);
            wrong = std::max(wrong, std::abs(sum - static_cast<double>(value)));
            const Index bit = column * lanes + out % lanes;
            wrong_signs += (signs.row(i, out / lanes, row)[bit / 8] >> bit % 8 & 1) != (value > 0);
            wrong_signs += !(view(clipped)(i, out, row, column) == std::max(value, 0.f));
          }
    for (Index out = 0; out < c; ++out)
      for (Index in = 0; in < c; ++in)
        for (Index tap = 0; tap < 9; ++tap)
          weights += static_cast<double>(dw[static_cast<std::size_t>((out * c + in) * 9 + tap)]) * static_cast<double>(filter[at(tap, in, out)]);
    const double product = dot(dy, y);
    const double size = std::sqrt(dot(dy, dy) * dot(y, y));
    if (!(wrong < 1e-3)) report(who, "forward differs by " + std::to_string(wrong));
    if (wrong_signs > 0) report(who, std::to_string(wrong_signs) + " signs or clipped outputs");
    if (!(std::abs(dot(dx, x) - product) < 1e-5 * size)) report(who, "data gradient");
    if (!(std::abs(weights - product) < 1e-5 * size)) report(who, "filter gradient");
  }
}
#endif
/// Sums over more equal values than one accumulator of floats can add.
void sums() {
  const Index w = Index{1} << 25;
  const std::vector<float> values(static_cast<std::size_t>(w), 0.1f);
  const auto map = dense_view(values.data(), 1, 1, {0, 1}, w, 1);
  const auto near = [](double got, double want) { return std::abs(got / want - 1) < 1e-5; };
  const std::array layers{Layer{.kind = Kind::conv, .window = {.kernel = 1}, .channels = 1, .bias = true}, Layer{.kind = Kind::global_avg_pool}};
  const Table table = make_table(layers, {1, 1, 1, w});
  float bias = 0, mean = 0;
  Operands<float> o;
  o.node = &table.nodes[0], o.dy = map, o.d_parameters[1] = &bias;
  host::bias_gradient(o, 1);
  if (!near(static_cast<double>(bias), 0.1 * static_cast<double>(w))) report("sums", "a bias's gradient");
  o = {};
  o.node = &table.nodes[1], o.x = map, o.y = dense_view(&mean, 1, 1, {0, 1}, 1, 1);
  host::global_pool_forward(o, 1);
  if (!near(static_cast<double>(mean), 0.1)) report("sums", "a mean");
}
/// No two layers have one name.
void names() {
  using Net = Sequential<SqueezeExcitation<4, 2>, SqueezeExcitation<4, 2>, Named<"conv4", Conv<4>>, Conv<4>, Named<"conv6", ReLU>, Conv<4>>;
  std::set<std::string> seen;
  try {
    for (const Node& node : table_of<Net>({1, 4, 8, 8}).nodes)
      if (!seen.insert(std::string(node.layer.name.view())).second) report("names", "two layers are called " + std::string(node.layer.name.view()));
  } catch (const Error& e) {
    report("names", e.what());
  }
}
void caches() {
  BoundedCache<int, std::shared_ptr<int>> cache(4);
  const auto used = cache.add(-1, std::make_shared<int>(0));
  for (int key = 0; key < 100; ++key) cache.add(key, std::make_shared<int>(key));
  if (cache.size() > 9) report("caches", std::to_string(cache.size()) + " values are kept");
  if (!cache.find(-1)) report("caches", "a value in use is dropped");
}
/// What the system tells of the processor.
bool has_flag(const std::string& flag) {
  static const std::string flags = [] {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
      if (line.starts_with("flags")) return line + " ";
    return std::string();
  }();
  return flags.find(" " + flag + " ") != std::string::npos;
}
/// Storage for all processors, of which this one has blocks of 8 channels: every step must have them so.
class Narrow : public Reference<double, 16, 3> {
 public:
  const Target& layout() const { return layout_; }
  Prepared prepare(const Operands<double>& o) const {
    for (const auto& [block, c] : {std::pair{o.x.block, o.x.c}, {o.y.block, o.y.c}, {o.dy.block, o.dy.c}, {o.dx.block, o.dx.c}})
      if (c > 0 && block != layout_.block(c))
        throw BackendError("a tensor of " + std::to_string(c) + " channels has blocks of " + std::to_string(block));
    return Reference<double, 16, 3>::prepare(o);
  }

 private:
  static constexpr Target layout_ = [] {
    Target narrow = target;
    narrow.vector_block = 8;
    return narrow;
  }();
};
/// A piece of a loop that another thread has begun is done when the loop ends.
void loops() {
  static std::array<std::atomic<int>, 2> done{};   // outlives a piece that comes too late
  static std::atomic<bool> begun = false;
  const auto caller = std::this_thread::get_id();
  host::parallel_for(2, 2, [caller](Index i) {
    if (std::this_thread::get_id() == caller) {
      while (!begun) std::this_thread::yield();
    } else {
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    done[static_cast<std::size_t>(i)] = 1;
  });
  if (done[0] + done[1] != 2) report("loops", "a piece is missing");
}
}   // namespace
int main() {
  loops();
  sums();
  names();
  caches();
  if (const std::string wrong = wrong_image_reads(); !wrong.empty()) report("images", wrong);
  if (const std::string wrong = wrong_label_reads(); !wrong.empty()) report("labels", wrong);
  inputs_made_again();
  inputs_that_are_not_read_again();
  frontiers();
  kept_and_budgets();
  if (has_flag("avx2") && has_flag("fma") &&
      vector_block(machine_vectors()) != (has_flag("avx512f") && has_flag("avx512bw") && has_flag("avx512dq") && has_flag("avx512vl") ? 16 : 8))
    report("vectors", "this processor has others than " + std::string(vectors_name(machine_vectors())));
#if LRCNN_WINOGRAD
  transposed();
#if defined(__x86_64__)
  winograd<host::winograd::Avx512>();
  winograd<host::winograd::Avx2>();
#endif
  winograd<host::winograd::Plain>();
#endif
  Reference<double> plain;
  Reference<double, 16, 3> blocked;
  Narrow narrow;
  constexpr Target packing{.element_bytes = 4, .channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
  const Index branching = graphs();
  if (branching < 250) report("planner", "only " + std::to_string(branching) + " plans of graphs are feasible");
  if (const Index handed_on = predicted_graphs(); handed_on < 100)
    report("planner", "only " + std::to_string(handed_on) + " plans of graphs that hand their output on are feasible");
  if (const Index again = places_read_again(); again < 25)
    report("planner", "only " + std::to_string(again) + " plans of places read again are feasible");
  maps_that_others_read();
  if (const Index again = maps_passed_again(); again < 25)
    report("planner", "only " + std::to_string(again) + " plans that pass maps again are feasible");
  Index plans = 0, feasible = 0, forward = 0;
  PolicySpec column;
  column.workspace_bytes = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Dice dice(seed);
    RandomNetwork net = random_network(dice, 7, {Tanh::layer(), Conv<3>::layer(), Conv<2>::layer(), Conv<3>::layer()});
    if (seed == 1)   // chance rarely puts a convolution behind an activation that falls below zero
      net = {{2, 3, 11, 5},
             {Conv<4>::layer(),
              {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.25}},
              Conv<3>::layer(),
              {.kind = Kind::global_avg_pool},
              {.kind = Kind::linear, .channels = 3, .bias = true}}};
    Problem<double> problem(net.layers, net.input, seed);
    if (seed % 3 == 0)
      for (double& x : problem.images) x = std::round(x);   // ties in pools
    Outcome<double> whole;
    const std::string network = "network " + std::to_string(seed);
    compare("formulas", network, [&] {
      whole = run_once(problem, column, plain);
      return worst_difference(problem, whole, whole_maps(problem));
    });
    compare("formulas", network + ", blocked", [&] { return worst_difference(problem, run_once(problem, column, blocked), whole_maps(problem)); });
    compare("formulas", network + ", in narrower blocks",
            [&] { return worst_difference(problem, run_once(problem, column, narrow), whole_maps(problem)); });
    for (int k = 0; k < 10; ++k) {
      const PolicySpec policy = random_policy(dice, net);
      const std::string where = network + ", " + to_string(policy);
      ++plans;
      check(problem.table, policy, packing, where);
      if (!check(problem.table, policy, Reference<double>::target, where)) continue;
      ++feasible;
      compare("numbers", where, [&] { return worst_difference(problem, run_once(problem, policy, plain), whole); });
    }
    Dice forward_dice(seed + 1000);
    forward += predict(forward_dice, net, seed, network);
    forward += predict(forward_dice, without_head(net), seed, network + " without its head");
  }
  // Norms behind convolutions that leave the first slabs without a row.
  const Layer wide{.kind = Kind::conv, .window = {.kernel = 5}, .channels = 3};
  const RandomNetwork late{{2, 2, 36, 5},
                           {wide,
                            {.kind = Kind::conv, .window = {.kernel = {5, 1}}, .channels = 4},
                            {.kind = Kind::norm, .norm = {.over = Norm::Over::group}},
                            {},
                            {.kind = Kind::conv, .window = {.kernel = 1}, .channels = 2}}};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Dice dice(seed);
    predict(dice, late, seed, "norms behind slabs without rows");
  }
  if (forward < 200) report("planner", "only " + std::to_string(forward) + " plans of a forward pass alone are feasible");
  if (feasible * 2 < plans) report("planner", "only " + std::to_string(feasible) + " of " + std::to_string(plans) + " plans are feasible");
  if (found.empty()) std::cout << feasible + forward + branching << " plans, nothing found\n";
  return found.empty() ? 0 : 1;
}
