// Looks for anything wrong with the library, in seconds: plans by the checker, row-centric runs against column runs,
// column runs against formulas over whole maps. faults.py compiles it against headers with a fault and expects it to
// find that. Prints what finds something, and where first; exits with 1 then.
#include "faults/whole_maps.hpp"
#include <lrcnn/exec/predictor.hpp>
#include <lrcnn/layer/conv.hpp>
#include "support/random_network.hpp"
#include <iostream>
#include <map>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct NoLoss {
  static constexpr std::string_view name = "none";
  template <class T>
  void operator()(const View<const T>&, std::span<const std::int32_t>, const View<T>&, double, LossResult&) const {}
};
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
    if (std::string(e.what()).find("largest feasible count") == std::string::npos)
      report("planner", where + ": " + e.what());
    return false;
  }
}
template <class F>
void compare(const std::string& finder, const std::string& where, F difference) {
  try {
    if (const double d = difference(); !(d <= 1e-11)) report(finder, where + ": differs by " + std::to_string(d));
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
    Executor<Reference<double>> executor(make_plan(problem.table, column, plain.target, {.training = false}), plain, problem.parameters.data(), nullptr);
    executor.run(MemorySource<double>(problem.images.data(), net.input), problem.labels, NoLoss{});
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
      std::vector<double> rows(whole.size(), std::nan(""));
      MemorySink<double> sink(rows.data(), predictor.output_shape().h);
      predictor.run(MemorySource<double>(problem.images.data(), net.input), sink);
      return distance<double>(rows, whole) / std::max(1.0, norm<double>(whole));
    });
  }
  return feasible;
}
}  // namespace
int main() {
  Reference<double> plain;
  Reference<double, 16, 3> blocked;
  constexpr Target packing{.element_bytes = 4, .channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
  Index plans = 0, feasible = 0, forward = 0;
  PolicySpec column;
  column.workspace_bytes = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Dice dice(seed);
    RandomNetwork net =
        random_network(dice, 7, {Tanh::layer(), Conv<3>::layer(), Conv<2>::layer(), Conv<3>::layer()});
    if (seed == 1)   // chance rarely puts a convolution behind an activation that falls below zero
      net = {{2, 3, 11, 5},
             {Conv<4>::layer(), {.kind = Kind::activation, .activation = {Function::leaky_relu, -0.25}}, Conv<3>::layer(),
              {.kind = Kind::global_avg_pool}, {.kind = Kind::linear, .channels = 3, .bias = true}}};
    Problem<double> problem(net.layers, net.input, seed);
    if (seed % 3 == 0)
      for (double& x : problem.images) x = std::round(x);   // ties in pools
    Outcome<double> whole;
    const std::string network = "network " + std::to_string(seed);
    compare("formulas", network, [&] {
      whole = run_once(problem, column, plain);
      return worst_difference(problem, whole, whole_maps(problem));
    });
    compare("formulas", network + ", blocked",
            [&] { return worst_difference(problem, run_once(problem, column, blocked), whole_maps(problem)); });
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
    net.layers.erase(std::find_if(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::global_avg_pool || y.kind == Kind::flatten; }),
                     net.layers.end());
    forward += predict(forward_dice, net, seed, network + " without its head");
  }
  if (forward < 200) report("planner", "only " + std::to_string(forward) + " plans of a forward pass alone are feasible");
  if (feasible * 2 < plans)
    report("planner", "only " + std::to_string(feasible) + " of " + std::to_string(plans) + " plans are feasible");
  if (found.empty()) std::cout << feasible + forward << " plans, nothing found\n";
  return found.empty() ? 0 : 1;
}
