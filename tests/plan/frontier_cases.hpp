#pragma once
// Small random networks whose frontiers tests look at.
#include "support/random_blocks.hpp"
#include "support/random_graph.hpp"
#include "support/random_network.hpp"
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/plan/section_search.hpp>
namespace lrcnn::testing {
inline const Target frontier_target{.channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
inline const Costs frontier_costs{Rates{.step = 2e-7, .products = 2e9, .winograd = 5e9, .bytes = 5e9, .lanes = 4}};
struct FrontierCase {
  Table table;
  Target target;
  PlanOptions options;
};
inline FrontierCase random_frontier_case(std::uint64_t seed) {
  Dice dice(seed);
  const RandomNetwork net = now_and_then_without_head(dice, seed % 2 == 0 ? random_network(dice, 10) : random_graph(dice, 6));
  const PlanOptions options = with_drawn_output(dice, {.training = dice.chance(0.9), .input_gradient = dice.chance(0.2)});
  return {make_table(net.layers, net.input), dice.chance(0.5) ? Target{} : frontier_target, options};
}
/// The same of networks of residual blocks.
inline FrontierCase residual_frontier_case(std::uint64_t seed) {
  Dice dice(seed);
  const RandomNetwork net = random_blocks(dice);
  const PlanOptions options = with_drawn_output(dice, {.input_gradient = dice.chance(0.2)});
  return {make_table(net.layers, net.input), dice.chance(0.5) ? Target{} : frontier_target, options};
}
inline const PolicySpec free_frontier = Policy<Fit<1>, Workspace<0>, DirectConv>::value;
/// False if no policy can be planned.
inline bool has_frontier(const FrontierCase& c, Frontier& frontier) {
  try {
    frontier = find_frontier(c.table, free_frontier, c.target, c.options, frontier_costs);
    return true;
  } catch (const PlanError&) {   // a norm of one value, or as first layer
    return false;
  }
}
}   // namespace lrcnn::testing
