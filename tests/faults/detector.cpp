// Looks for anything wrong with the library, in seconds: plans by the checker, row-centric runs against column runs,
// column runs against formulas over whole maps. faults.py compiles it against headers with a fault and expects it to
// find that. Prints what finds something, and where first; exits with 1 then.
#include "faults/whole_maps.hpp"
#include <lrcnn/layer/conv.hpp>
#include "support/random_network.hpp"
#include <iostream>
#include <map>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
std::map<std::string, std::string> found;
void report(const std::string& finder, const std::string& text) {
  const bool first = found.emplace(finder, text).second;
  if (first) std::cout << finder << ": " << text << std::endl;   // at once: the next step may crash
}
bool check(const Table& table, const PolicySpec& policy, const Target& target, const std::string& where) {
  try {
    const Plan plan = make_plan(table, policy, target, {.input_gradient = true});
    for (const std::string& problem : check_plan(plan)) report("checker", where + ": " + problem);
    if (plan.arena != arena_size(table, policy, target, {.input_gradient = true})) report("peak", where);
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
}  // namespace
int main() {
  Reference<double> plain;
  Reference<double, 16, 3> blocked;
  constexpr Target packing{.element_bytes = 4, .channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
  Index plans = 0, feasible = 0;
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
  }
  if (feasible * 2 < plans)
    report("planner", "only " + std::to_string(feasible) + " of " + std::to_string(plans) + " plans are feasible");
  if (found.empty()) std::cout << feasible << " plans, nothing found\n";
  return found.empty() ? 0 : 1;
}
