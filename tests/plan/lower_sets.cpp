// Recomputation on graphs: published figures, all chains of small graphs, and each strategy carried out node by node.
#include "plan/all_chains.hpp"
#include "plan/replayed_strategy.hpp"
#include "support/error_of.hpp"
#include "support/thorough.hpp"
#include <lrcnn/network/graph.hpp>
#include <lrcnn/network/sequential.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using enum LowerSetFamily;
constexpr std::array families{exact, approx, order, wide};
constexpr std::array objectives{RecomputationObjective::time, RecomputationObjective::memory};
/// Nodes of these bytes and times; each edge is two indices.
RecomputationGraph graph_of(const std::vector<std::pair<Index, Index>>& nodes, const std::vector<std::pair<Index, Index>>& edges) {
  RecomputationGraph graph;
  for (const auto& [bytes, time] : nodes) graph.nodes.push_back({"", bytes, time});
  for (const auto& [from, to] : edges) graph.edges.push_back({from, to});
  return graph;
}
/// Chains of `length` nodes side by side between a first and a last node.
RecomputationGraph parallel_chains(Index chains, Index length) {
  RecomputationGraph graph;
  graph.nodes.push_back({"", 7, 10});
  for (Index c = 0; c < chains; ++c)
    for (Index i = 0; i < length; ++i) {
      graph.nodes.push_back({"", 10 + (3 * i + c) % 5, i % 3 == 0 ? 10 : 1});
      graph.edges.push_back({i == 0 ? 0 : graph.size() - 2, graph.size() - 1});
    }
  graph.nodes.push_back({"", 7, 1});
  for (Index c = 0; c < chains; ++c) graph.edges.push_back({(c + 1) * length, graph.size() - 1});
  return graph;
}
/// 15 to 30 nodes, each of which reads the one before and perhaps an earlier one. Bytes and times differ, so fronts are long.
RecomputationGraph chain_with_skips(Dice& dice) {
  RecomputationGraph graph;
  const Index nodes = dice.upto(15, 30);
  for (Index i = 0; i < nodes; ++i) {
    graph.nodes.push_back({"", dice.upto(1, 1000), dice.upto(1, 40)});
    if (i > 0) graph.edges.push_back({i - 1, i});
    if (i > 2 && dice.chance(0.2)) graph.edges.push_back({dice.upto(std::max<Index>(0, i - 5), i - 2), i});
  }
  return graph;
}
Index count_of(const RecomputationGraph& graph, LowerSetFamily family) { return RecomputationPlanner(graph, {family}).lower_set_count(); }
/// A strategy can be carried out, and comes to what it says.
void check_replay(const RecomputationGraph& graph, const RecomputationStrategy& strategy, Index budget) {
  const StrategyReplay replay(graph, strategy);
  REQUIRE(replay.problem() == "");
  CHECK(replay.peak_bytes() == strategy.peak_bytes);
  CHECK(replay.recomputed_time() == strategy.overhead);
  CHECK(strategy.peak_bytes <= budget);
}
/// Strategies of a family are as good as the best of all its chains.
void check_optimum(const RecomputationGraph& graph, const std::vector<ChainCost>& costs, LowerSetFamily family, Dice& dice) {
  const RecomputationPlanner planner(graph, {family});
  const Index least = costs.front().peak, most = costs.back().peak;   // in order of the peak
  REQUIRE(planner.least_budget() == least);
  CHECK_THROWS_AS(planner.strategy(least - 1), PlanError);
  for (const Index budget : {least, dice.upto(least, most), dice.upto(least, most), most + 1})
    for (const RecomputationObjective objective : objectives) {
      Index best = -1;
      for (const ChainCost& c : costs)
        if (c.peak <= budget && (best < 0 || (objective == RecomputationObjective::time ? c.overhead < best : c.overhead > best))) best = c.overhead;
      const RecomputationStrategy strategy = planner.strategy(budget, objective);
      REQUIRE(strategy.overhead == best);
      check_replay(graph, strategy, budget);
    }
}
/// A published graph from the folder that LRCNN_DATA names: the integers behind "bytes" and "time", and all those behind "edges".
std::optional<RecomputationGraph> published(const std::string& name) {
  const char* const root = std::getenv("LRCNN_DATA");
  const std::filesystem::path path = std::filesystem::path(root ? root : "") / "graphs" / (name + ".json");
  if (!root || !std::filesystem::exists(path)) {
    MESSAGE("skipped: set LRCNN_DATA to a folder that has graphs/", name, ".json");
    return std::nullopt;
  }
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  RecomputationGraph graph;
  const std::string_view bytes = "\"bytes\":", time = "\"time\":";
  for (std::size_t at = text.find(bytes); at != std::string::npos; at = text.find(bytes, at + 1))
    graph.nodes.push_back({"", std::stoll(text.substr(at + bytes.size())), std::stoll(text.substr(text.find(time, at) + time.size()))});
  std::vector<Index> ends;
  for (std::size_t at = text.find("\"edges\""); (at = text.find_first_of("0123456789", at)) != std::string::npos;
       at = text.find_first_not_of("0123456789", at))
    ends.push_back(std::stoll(text.substr(at)));
  for (std::size_t e = 0; e + 1 < ends.size(); e += 2) graph.edges.push_back({ends[e], ends[e + 1]});
  return graph;
}
}   // namespace
TEST_CASE("lower sets of graphs whose number is known") {
  for (const Index n : {1, 2, 63, 64, 65, 130, 200}) {
    RecomputationGraph chain;
    for (Index i = 0; i < n; ++i) chain.nodes.push_back({"", 5, 1});
    if (n <= 14) CHECK(count_of(chain, exact) == Index{1} << n);   // no edges: all sets
    for (Index i = 1; i < n; ++i) chain.edges.push_back({i - 1, i});
    for (const LowerSetFamily family : families) CHECK(count_of(chain, family) == n + 1);
  }
  CHECK(count_of(graph_of(std::vector<std::pair<Index, Index>>(14, {1, 1}), {}), exact) == 16384);
  CHECK(count_of(parallel_chains(2, 40), exact) == 41 * 41 + 2);
  CHECK(count_of(parallel_chains(3, 30), exact) == 31 * 31 * 31 + 2);
  CHECK(count_of(parallel_chains(3, 30), approx) == 92 + 1);
  CHECK(count_of(parallel_chains(3, 30), order) == 92 + 1);
  CHECK(count_of(parallel_chains(3, 30), wide) == 93 + 60);   // of the first chain, closures are prefixes; so are the first and the last node's
}
TEST_CASE("published graphs: number of lower sets, least budgets and overheads") {
  struct Budget {
    LowerSetFamily family;
    Index budget, overhead;
    bool slow = false;
  };
  struct Golden {
    const char* name;
    Index nodes, edges, sets;
    std::array<Index, 4> least;   // of exact, approx, order, wide
    std::vector<Budget> overheads;
  };
  const std::vector<Golden> all{
      {"vgg19", 46, 45, 47, {2106589184, 2106589184, 2106589184, 2106589184}, {}},
      {"unet", 60, 63, 331, {5545689088, 5784403968, 5784403968, 5784403968}, {{exact, 6932111360, 34}, {wide, 6932111360, 53}}},
      {"resnet50", 176, 191, 241, {1258815488, 1310195712, 1284505600, 1284505600}, {{exact, 1573519360, 131}, {wide, 1573519360, 166}}},
      {"googlenet",
       134,
       162,
       27358,
       {488112128, 488112128, 488112128, 488112128},
       {{exact, 488112128, 44, true}, {wide, 488112128, 58}, {approx, 488112128, 443}}}};
  for (const Golden& golden : all) {
    const auto graph = published(golden.name);
    if (!graph) continue;
    CAPTURE(golden.name);
    REQUIRE(graph->size() == golden.nodes);
    REQUIRE(static_cast<Index>(graph->edges.size()) == golden.edges);
    CHECK(count_of(*graph, exact) == golden.sets);
    for (std::size_t f = 0; f < families.size(); ++f) CHECK(least_recomputation_budget(*graph, {families[f]}) == golden.least[f]);
    for (const Budget& b : golden.overheads) {
      if (b.slow && !thorough()) continue;
      const RecomputationStrategy strategy = choose_recomputation(*graph, b.budget, RecomputationObjective::time, {b.family});
      CHECK(strategy.overhead == b.overhead);
      check_replay(*graph, strategy, b.budget);
    }
    for (const RecomputationObjective objective : objectives) {
      const Index budget = golden.least[3] + golden.least[3] / 5;
      check_replay(*graph, choose_recomputation(*graph, budget, objective), budget);
    }
  }
}
TEST_CASE("strategies of small graphs are the best of all chains, and can be carried out") {
  constexpr std::uint64_t seed = 20260309;
  const int cases = cases_to_do(10'000, 1'000);
  const double most_chains = cases_to_do(100'000.0, 20'000.0);
  MESSAGE("seed ", seed, ", ", cases, " graphs");
  Dice dice(seed);
  for (int i = 0; i < cases; ++i) {
    CAPTURE(i);
    const RecomputationGraph graph = random_recomputation_graph(dice, most_chains);
    const AllChains chains(graph);
    for (const LowerSetFamily family : families) {
      CAPTURE(family_name(family));
      const std::vector<Bits> sets = chains.family(family);
      REQUIRE(count_of(graph, family) == static_cast<Index>(sets.size()));
      check_optimum(graph, chains.costs(sets), family, dice);
    }
  }
}
TEST_CASE("strategies of graphs with many labels at a set are those of a dynamic programme that leaves nothing out") {
  constexpr std::uint64_t seed = 20260310;
  const int cases = cases_to_do(1000, 60);
  MESSAGE("seed ", seed, ", ", cases, " graphs");
  Dice dice(seed);
  for (int i = 0; i < cases; ++i) {
    CAPTURE(i);
    const bool chain = i % 2 == 0;   // or a graph that branches more
    const LowerSetFamily family = chain ? wide : exact;
    const RecomputationGraph graph = chain ? chain_with_skips(dice) : random_recomputation_graph(dice, 13, 20, [&](const RecomputationGraph& g) {
      try {
        return RecomputationPlanner(g, {exact, 300}).lower_set_count() > 30;
      } catch (const PlanError&) {
        return false;
      }
    });
    const AllChains chains(graph);
    std::vector<Bits> sets = chains.family(family);
    std::stable_sort(sets.begin(), sets.end(), [](Bits a, Bits b) { return std::popcount(a) < std::popcount(b); });
    const Index least = least_recomputation_budget(graph, {family}), most = 2 * chains.bytes(chains.all());
    for (const Index budget : {least, least + (most - least) / 10, least + (most - least) / 3}) {
      // For each set and each time that is kept, the fewest bytes kept.
      std::map<Bits, std::map<Index, Index>> states{{0, {{0, 0}}}};
      for (const Bits from : sets)
        for (const Bits to : sets) {
          if (from == to || (from & ~to) != 0 || !states.contains(from)) continue;
          const Index peak = chains.step_peak(from, to, 0), time = chains.time(chains.boundary(to) & ~from),
                      bytes = chains.bytes(chains.boundary(to) & ~from);
          for (const auto& [t, m] : states[from]) {
            if (m + peak > budget) continue;
            const auto [at, added] = states[to].emplace(t + time, m + bytes);
            if (!added) at->second = std::min(at->second, m + bytes);
          }
        }
      const auto& last = states[chains.all()];
      REQUIRE(!last.empty());
      const RecomputationPlanner planner(graph, {family});
      const Index total = chains.time(chains.all());
      const auto fewest = planner.strategy(budget), most_again = planner.strategy(budget, RecomputationObjective::memory);
      CHECK(fewest.overhead == total - last.rbegin()->first);
      CHECK(fewest.kept_bytes == last.rbegin()->second);
      CHECK(most_again.overhead == total - last.begin()->first);
      CHECK(most_again.kept_bytes == last.begin()->second);
      check_replay(graph, fewest, budget);
      check_replay(graph, most_again, budget);
    }
  }
}
TEST_CASE("larger graphs: strategies can be carried out, and larger families are no worse") {
  for (const auto& graph : {parallel_chains(2, 40), parallel_chains(3, 12), parallel_chains(1, 300), parallel_chains(5, 40)}) {
    const bool all = graph.size() < 100;
    const Index least = least_recomputation_budget(graph);
    CHECK(least <= least_recomputation_budget(graph, {approx}));
    CHECK(least <= least_recomputation_budget(graph, {order}));
    if (all) CHECK(least_recomputation_budget(graph, {exact}) <= least);
    for (const Index budget : {least, least * 3 / 2, least * 4}) {
      std::array<Index, 4> overheads{-1, -1, -1, -1};
      for (std::size_t f = all ? 0 : 1; f < families.size(); ++f) {
        const RecomputationPlanner planner(graph, {families[f]});
        if (planner.least_budget() > budget) continue;
        for (const RecomputationObjective objective : objectives) {
          const RecomputationStrategy strategy = planner.strategy(budget, objective);
          check_replay(graph, strategy, budget);
          if (objective == RecomputationObjective::time) overheads[f] = strategy.overhead;
          CHECK(strategy == planner.strategy(budget, objective));
        }
      }
      for (const std::size_t f : {1, 2})
        if (overheads[f] >= 0) CHECK(overheads[3] <= overheads[f]);
      if (all) CHECK(overheads[0] <= overheads[3]);
    }
  }
}
TEST_CASE("sets are visited by cardinality: in order of discovery a plan would be missed") {
  const RecomputationGraph graph = graph_of({{8, 1}, {6, 1}, {2, 1}}, {{0, 2}});
  const AllChains chains(graph);
  // The same recurrence over sets in a given order: the least budget with which the set of all nodes is reached.
  const auto least_in = [&](const std::vector<Bits>& sets) {
    for (Index budget = 0;; ++budget) {
      std::map<Bits, Bits> kept{{0, 0}};
      for (const Bits from : sets)
        for (const Bits to : sets) {
          if (from == to || (from & ~to) != 0 || !kept.contains(from) || chains.step_peak(from, to, kept[from]) > budget) continue;
          const Bits now = kept[from] | chains.boundary(to);
          if (!kept.contains(to) || chains.bytes(now) < chains.bytes(kept[to])) kept[to] = now;
        }
      if (kept.contains(chains.all())) return budget;
    }
  };
  const std::vector<Bits> discovered{0, 0b001, 0b011, 0b111, 0b101, 0b010};   // depth first, nodes in their order
  std::vector<Bits> by_size = discovered;
  std::stable_sort(by_size.begin(), by_size.end(), [](Bits a, Bits b) { return std::popcount(a) < std::popcount(b); });
  CHECK(least_in(discovered) == 20);
  CHECK(least_in(by_size) == 18);
  CHECK(least_recomputation_budget(graph, {exact}) == 18);
  check_replay(graph, choose_recomputation(graph, 18, RecomputationObjective::time, {exact}), 18);
}
TEST_CASE("the replay rejects strategies that lack what is needed, or claim too little") {
  Dice dice(7);
  int removed = 0;
  for (int i = 0; i < 60; ++i) {
    const RecomputationGraph graph = random_recomputation_graph(dice, 2000);
    const RecomputationStrategy strategy = choose_recomputation(graph, 4 * least_recomputation_budget(graph));
    for (std::size_t s = 0; s < strategy.segments.size(); ++s) {
      for (std::size_t k = 0; k < strategy.segments[s].kept.size(); ++k, ++removed) {
        RecomputationStrategy broken = strategy;
        broken.segments[s].kept.erase(broken.segments[s].kept.begin() + static_cast<std::ptrdiff_t>(k));
        CHECK(StrategyReplay(graph, broken).problem().find("is not there when node") != std::string::npos);
      }
      RecomputationStrategy lost = strategy, twice = strategy;
      lost.segments.erase(lost.segments.begin() + static_cast<std::ptrdiff_t>(s));
      CHECK(StrategyReplay(graph, lost).problem() != "");
      twice.segments.push_back(strategy.segments[s]);
      CHECK(StrategyReplay(graph, twice).problem() != "");
    }
  }
  CHECK(removed > 100);
  const RecomputationGraph chain = graph_of({{4, 1}, {4, 1}, {4, 1}, {4, 1}}, {{0, 1}, {1, 2}, {2, 3}});
  CHECK(StrategyReplay(chain, {.segments = {{{1, 0}, {1}}, {{2, 3}, {}}}}).problem() == "value 0 is not there when node 1 needs it");
  CHECK(StrategyReplay(chain, {.segments = {{{0, 1}, {2}}, {{2, 3}, {}}}}).problem() == "a kept node is in another segment");
  const StrategyReplay more(chain, {.segments = {{{0, 1}, {0, 1}}, {{2, 3}, {}}}});   // legal, but node 0 need not be kept
  CHECK(more.problem() == "");
  CHECK(more.peak_bytes() == 24);
  CHECK(StrategyReplay(chain, {.segments = {{{0, 1}, {1}}, {{2, 3}, {}}}}).peak_bytes() == 20);
}
TEST_CASE("a chain by hand") {
  const RecomputationGraph chain = graph_of({{1, 10}, {2, 1}, {3, 10}, {1, 1}}, {{0, 1}, {1, 2}, {2, 3}});
  // Steps, from the last: 2 + 3 kept and twice 1; 2 kept, twice 3 and the gradient of node 3; twice 1 + 2 and the gradient of node 2.
  const RecomputationStrategy least{.segments = {{{0, 1}, {1}}, {{2}, {2}}, {{3}, {}}}, .peak_bytes = 9, .kept_bytes = 5, .overhead = 11};
  CHECK(least_recomputation_budget(chain, {exact}) == 9);
  CHECK(choose_recomputation(chain, 9, RecomputationObjective::time, {exact}) == least);
  const RecomputationStrategy whole = choose_recomputation(chain, 14, RecomputationObjective::memory);
  CHECK(whole == RecomputationStrategy{.segments = {{{0, 1, 2, 3}, {}}}, .peak_bytes = 14, .kept_bytes = 0, .overhead = 22});
  const RecomputationStrategy all = choose_recomputation(chain, std::numeric_limits<Index>::max());
  CHECK(all.overhead == 1);   // the last node is in no boundary
  CHECK(all.kept_bytes == 6);
}
TEST_CASE("bytes and times up to the last of 64 bits") {
  constexpr Index most = std::numeric_limits<Index>::max();
  const RecomputationGraph one = graph_of({{most / 2, most}}, {});
  CHECK(least_recomputation_budget(one, {exact}) == most - 1);
  CHECK(choose_recomputation(one, most).overhead == most);
  CHECK_THROWS_AS(choose_recomputation(one, most - 2), PlanError);
  const Index part = most / 8;
  const RecomputationGraph chain = graph_of({{part, part}, {part, part}, {part, part}, {part, part}}, {{0, 1}, {1, 2}, {2, 3}});
  for (const LowerSetFamily family : families)
    for (const RecomputationObjective objective : objectives)
      for (const Index budget : {least_recomputation_budget(chain, {family}), 6 * part, most})
        check_replay(chain, choose_recomputation(chain, budget, objective, {family}), budget);
  CHECK(choose_recomputation(chain, most).overhead == part);
  const RecomputationGraph nothing = graph_of({{0, 0}, {0, 0}}, {{0, 1}});
  CHECK(least_recomputation_budget(nothing) == 0);
  CHECK(choose_recomputation(nothing, 0).peak_bytes == 0);
}
TEST_CASE("the graph of a table") {
  using Net = Sequential<Conv<20>, ReLU, Residual<Sequential<Conv<20>, BatchNorm>>, ConvTranspose<8>, Flatten, Linear<10>>;
  const Table table = table_of<Net>({.n = 2, .c = 3, .h = 5, .w = 7});
  const RecomputationGraph graph = recomputation_graph(table, {.element_bytes = 4, .channel_block = 16, .alignment = 64});
  check_graph(graph);
  REQUIRE(graph.size() == table.size());
  for (Index i = 0; i < table.size(); ++i) {
    const Node& node = table.node(i);
    const bool convolves = node.layer.kind == Kind::conv || node.layer.kind == Kind::conv_transpose;
    CHECK(graph.node(i).name == node.layer.name.view());
    CHECK(graph.node(i).time == (convolves ? 10 : 1));
    CHECK(graph.node(i).bytes == round_up(node.out.n * round_up(node.out.c, 16) * node.out.h * node.out.w * 4, 64));
    const auto reads = std::count_if(graph.edges.begin(), graph.edges.end(), [&](const RecomputationEdge& e) { return e.to == i; });
    CHECK(reads == (node.input > 0) + (node.other > 0));
  }
  const Index least = least_recomputation_budget(graph, {exact});
  check_replay(graph, choose_recomputation(graph, least, RecomputationObjective::time, {exact}), least);
}
TEST_CASE("graphs that cannot be used are refused with the node or the edge") {
  const auto text = [](const RecomputationGraph& graph) { return error_of<DataError>([&] { check_graph(graph); }); };
  constexpr Index most = std::numeric_limits<Index>::max();
  CHECK(text({}) == "lrcnn: the graph has no nodes; a forward graph has at least one; list the network's operations as nodes");
  CHECK(text(graph_of({{1, 1}, {-3, 1}}, {})) ==
        "lrcnn: the graph, node 1: its bytes are -3; an output takes 0 bytes or more; write the size of the node's output");
  CHECK(text(graph_of({{1, -1}}, {})) ==
        "lrcnn: the graph, node 0: its time is -1; a node takes a time of 0 or more; write the time of the node's forward step");
  CHECK(
      text(graph_of({{1, 1}, {most / 2, 1}}, {})) ==
      "lrcnn: the graph, node 1: its bytes are 4611686018427387903, with which the sum goes beyond 64 bits; twice the bytes of all nodes, values and "
      "gradients, are at most 2^63 - 1; check the sizes of the outputs");
  CHECK(text(graph_of({{1, 1}, {1, most}}, {})) ==
        "lrcnn: the graph, node 1: its time is 9223372036854775807, with which the sum goes beyond 64 bits; the times of all nodes sum up to at most "
        "2^63 - 1; write times in a larger unit");
  CHECK(text(graph_of({{1, 1}, {1, 1}}, {{0, 1}, {1, 2}})) ==
        "lrcnn: the graph, edge 1 names node 2, which is not there; nodes are numbered from 0 to 1; name nodes of the graph");
  CHECK(text(graph_of({{1, 1}}, {{-1, 0}})) ==
        "lrcnn: the graph, edge 0 names node -1, which is not there; nodes are numbered from 0 to 0; name nodes of the graph");
  RecomputationGraph graph = graph_of({{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}});
  graph.nodes[2].name = "conv2";
  CHECK(text(graph) ==
        "lrcnn: the graph has a cycle: node 1 -> node 2 (conv2) -> node 3 -> node 1; no node of a forward graph reads, even through "
        "others, its own output; remove or turn an edge of the cycle");
  graph.edges = {{0, 1}, {2, 2}};
  CHECK(text(graph) == "lrcnn: the graph, edge 1 leads from node 2 (conv2) to itself; a node reads outputs of other nodes; remove the edge");
  graph.edges = {{1, 2}, {0, 1}, {1, 2}};
  CHECK(text(graph) ==
        "lrcnn: the graph, edges 0 and 2 both lead from node 1 to node 2 (conv2); an edge says that one node reads another, however "
        "often it does; remove one of them");
  CHECK(error_of<DataError>([&] { RecomputationPlanner planner(graph); }) == text(graph));
  CHECK(error_of<DataError>([&] { topological_order(graph); }) == text(graph));
}
TEST_CASE("what cannot be planned is refused with what can be") {
  const RecomputationGraph graph = graph_of({{8, 1}, {6, 1}, {2, 1}}, {{0, 2}});
  CHECK(error_of<PlanError>([&] { choose_recomputation(graph, 17, RecomputationObjective::time, {exact}); }) ==
        "lrcnn: no strategy has a peak of at most 17 bytes; with the lower sets of family exact, the least feasible budget is 18 bytes; allow at "
        "least so many");
  for (const Index budget : {Index{0}, Index{-5}, std::numeric_limits<Index>::min()})
    CHECK(error_of<PlanError>([&] { choose_recomputation(graph, budget, RecomputationObjective::memory, {order}); }) ==
          "lrcnn: no strategy has a peak of at most " + std::to_string(budget) +
              " bytes; with the lower sets of family order, the least feasible budget is " +
              std::to_string(least_recomputation_budget(graph, {order})) + " bytes; allow at least so many, or try family exact");
  CHECK(error_of<PlanError>([&] {
          RecomputationPlanner planner(graph, {exact, 5});
        }) ==
        "lrcnn: the graph has more than 5 lower sets in family exact; a chain is chosen by comparing each set with all others, and this is the most "
        "that was allowed; choose a smaller family, such as wide instead of exact, or raise RecomputationOptions::max_lower_sets");
  CHECK(RecomputationPlanner(graph, {exact, 6}).lower_set_count() == 6);
  CHECK_THROWS_AS(RecomputationPlanner(graph, {wide, 3}), PlanError);
}
TEST_CASE("nodes in any order: prefixes follow the topological order that is closest to the list") {
  const RecomputationGraph graph = graph_of({{1, 1}, {1, 1}, {1, 1}, {1, 1}}, {{3, 1}, {1, 0}});
  CHECK(topological_order(graph) == std::vector<Index>{2, 3, 1, 0});
  CHECK(topological_order(parallel_chains(2, 3)) == std::vector<Index>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(choose_recomputation(graph, 8, RecomputationObjective::memory).segments.at(0).nodes == std::vector<Index>{2, 3, 1, 0});
}
