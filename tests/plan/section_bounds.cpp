// Bounds of a search for sections: no way to run a network within some bytes is faster, and the fastest is hardly slower.
#include "support/random_graph.hpp"
#include "support/random_network.hpp"
#include "support/thorough.hpp"
#include <lrcnn/plan/section_search.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("no policy that a search finds is faster than the bound for its bytes, and the fastest are close to it") {
  const Costs costs{Rates{.step = 2e-7, .products = 2e9, .winograd = 5e9, .bytes = 5e9, .lanes = 4}};
  const std::vector<StepMemory> memories(step_memories.begin(), step_memories.end());
  const Target target;
  const PlanOptions options;
  std::size_t compared = 0, close = 0;
  for (std::uint64_t seed = 0; seed < cases_to_do<std::uint64_t>(300, 60); ++seed) {
    Dice dice(seed);
    const RandomNetwork net = seed % 2 == 0 ? random_network(dice, 10) : random_graph(dice, 6);
    const Table table = make_table(net.layers, net.input);
    CAPTURE(seed);
    try {
      const SectionSearch search(table, {}, target, options, costs, 0, 1, memories);
      std::vector<SectionPassage> passages;
      for (const SectionOfSearch& section : search.catalog().sections()) passages.emplace_back(search.catalog(), section);
      for (const StepMemory memory : memories) {
        Index room = Index{1} << 24;
        for (int tries = 0; tries < 30; ++tries, room -= room / 4) {
          const SectionBounds bounds(search.catalog(), passages, memory, room, 0);
          const auto solved = search.fastest(memory, room, 0);
          if (solved.empty()) break;
          const double least = bounds.least(0, 0, room);
          REQUIRE(least <= solved[0].seconds * (1 + 1e-9));
          ++compared, close += least > 0.95 * solved[0].seconds;
        }
      }
    } catch (const PlanError&) {   // a norm of one value, or as first layer
    }
  }
  MESSAGE(close << " of " << compared << " within 5 %");
  CHECK(compared > 300);
  CHECK(close > compared * 9 / 10);
}
TEST_CASE("a bound rises as bytes are fewer, and is without end where they do not suffice") {
  const Layer conv{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 8}, relu{.kind = Kind::activation};
  const Table table = make_table(std::vector<Layer>{conv, relu, conv, relu, conv, relu, conv}, {2, 3, 32, 32});
  const Costs costs;
  const PlanOptions options;
  const Target target;
  const SectionSearch search(table, {}, target, options, costs);
  std::vector<SectionPassage> passages;
  for (const SectionOfSearch& section : search.catalog().sections()) passages.emplace_back(search.catalog(), section);
  const SectionBounds bounds(search.catalog(), passages, StepMemory::shared_workspace, 1'000'000, 0);
  double before = 0;
  for (Index room = 1'000'000; room >= 0; room -= 5'000) {
    const double least = bounds.least(0, 0, room);
    CHECK(least >= before);
    before = least;
  }
  CHECK(bounds.least(0, 0, 1'000) == std::numeric_limits<double>::infinity());
  CHECK(bounds.least(0, 0, -1) == std::numeric_limits<double>::infinity());
  CHECK(bounds.least(table.size(), 0, 0) == 0);
  const SectionBounds without_end(search.catalog(), passages, StepMemory::shared_workspace, SectionBounds::unlimited, 0);
  CHECK(without_end.least(0, 0, SectionBounds::unlimited) == bounds.least(0, 0, 1'000'000));   // more than all that it takes
}
