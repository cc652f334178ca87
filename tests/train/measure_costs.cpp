// Costs measured on this machine, and kept in a file.
#include "support/error_of.hpp"
#include "support/random_network.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/train/cost_file.hpp>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <set>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct File {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_costs_" + std::to_string(::getpid()) + ".txt");
  ~File() { std::filesystem::remove(path); }
};
}   // namespace
TEST_CASE("what was measured covers a network's steps, in rising sizes") {
  Reference<float> backend;
  const Table table = make_table(SmallNet<>::layers, {4, 3, 32, 32});
  const Costs costs = measure_costs(table, backend, {.seconds = 1000});   // whatever the machine: all of it
  CHECK(costs.rates() == Reference<float>::rates);
  for (const PolicySpec& policy : {Policy<Column, FastestConv>::value, Policy<Overlap<3>, FastestConv, CheckpointAtPools, RecomputeAll>::value}) {
    const Plan plan = make_plan(table, policy, Reference<float>::target);
    std::set<std::string> unknown;
    for (const Step& step : plan.steps)
      if (!costs.knows(step_kind(plan, step))) unknown.insert(step_kind(plan, step));
    for (const std::string& kind : unknown) MESSAGE(kind);
    CHECK(unknown.empty());
  }
  for (const auto& [kind, points] : costs.measured()) {
    CHECK(!points.empty());
    for (std::size_t i = 0; i < points.size(); ++i) {
      CHECK(points[i].seconds >= 0);
      CHECK(points[i].pixels > (i == 0 ? 0 : points[i - 1].pixels));
    }
  }
}
TEST_CASE("a large input is measured with fewer rows, or fewer images where the network's last layers need all rows") {
  const PlanOptions options;
  const Rates rates{.step = 1e-6, .products = 1e9, .winograd = 1e9, .bytes = 1e9, .lanes = 1};
  const Table maps = make_table(ResNet18<>::layers, {2, 3, 1024, 256});
  const Table few = measured_table(maps, {}, options, rates, 10);
  CHECK(few.input.w == 256);
  CHECK(few.input.h < 1024);
  CHECK(seconds(make_plan(few, Policy<Column, FastestConv, Workspace<64_MiB>>::value, {}, options), Costs(rates)) <= 10);
  const Table all = measured_table(maps, {}, options, rates, 1e9);
  CHECK(all.input == maps.input);
  // What a flatten reads would be shorter.
  const Table flat = make_table(LeNet<>::layers, {8, 1, 256, 256});
  const Table images = measured_table(flat, {}, options, rates, 0.2);
  CHECK(images.input.h == 256);
  CHECK(images.input.n < 8);
}
TEST_CASE("an input is not measured with so few rows that convolutions are computed in another way") {
  const Rates rates{.winograd_pays = [](Index rows, Index) { return rows >= 4; }};
  const Table table = make_table(ResNet18<>::layers, {2, 3, 256, 64});   // 8 rows in the last layers
  CHECK(measured_table(table, {}, {}, rates, 0).input == Input{1, 3, 128, 64});
  CHECK(measured_table(table, {}, {}, Rates{}, 0).input == Input{1, 3, 64, 64});
}
TEST_CASE("a step takes no longer than a larger one, nor a convolution longer than many smaller ones: the rest is what disturbed the machine") {
  const Costs::Points points{{10, 5}, {20, 4}, {40, 20}, {80, 21}};
  CHECK(undisturbed(points, false) == Costs::Points{{10, 4}, {20, 4}, {40, 20}, {80, 21}});
  CHECK(undisturbed(points, true) == Costs::Points{{10, 4}, {20, 4}, {40, 8}, {80, 16}});
  CHECK(undisturbed({{10, 4}}, true) == Costs::Points{{10, 4}});
}
TEST_CASE("images are measured one by one in groups of the whole step, or in sections where statistics are of the batch; of many, in eighths too") {
  const auto groups = [](const Table& table, Index images = 1) {
    bool whole = false, sections = false;
    for (const PolicySpec& policy : measuring_policies(table, Reference<float>::target, Reference<float>::rates)) {
      whole |= policy.images == images;
      for (Index i = 0; i < policy.partition_count; ++i) sections |= policy.partition(i).images == images;
      make_plan(table, policy, Reference<float>::target);
    }
    return std::pair(whole, sections);
  };
  CHECK(groups(make_table(SmallNet<>::layers, {20, 3, 32, 32}), 3) == std::pair(true, false));
  CHECK(groups(make_table(SmallNet<>::layers, {20, 3, 32, 32})) == std::pair(true, false));
  CHECK(groups(make_table(ResNet18<>::layers, {16, 3, 64, 64}), 2) == std::pair(false, true));
  CHECK(groups(make_table(SmallNet<>::layers, {4, 3, 32, 32})) == std::pair(true, false));
  CHECK(groups(make_table(ResNet18<>::layers, {4, 3, 64, 64})) == std::pair(false, true));
  CHECK(groups(make_table(SmallNet<>::layers, {1, 3, 32, 32})) == std::pair(false, false));
}
TEST_CASE("costs come back from a file, to the last bit, and other networks' stay") {
  const File file;
  const Reference<double> backend;
  Costs costs(rates_of<Reference<double>>()), others(rates_of<Reference<double>>());
  costs.set("forward conv 3x8 > 4x8 / accumulate", {{1, 0.1}, {64, 1.0 / 3}, {1 << 30, 5e-324}});
  costs.set("load 3x8 /", {{9, 0}});
  others.set("add 3x8 /", {{9, 1e-7}});
  save_costs(file.path, backend, costs);
  CHECK(load_costs(file.path, backend) == costs);
  save_costs(file.path, backend, others);
  const Costs both = load_costs(file.path, backend);
  CHECK(both.measured().size() == 3);
  CHECK(both.measured().at("add 3x8 /") == others.measured().at("add 3x8 /"));
  CHECK(load_costs("", backend).measured().empty());
  CHECK(load_costs(file.path.string() + ".none", backend).measured().empty());
}
TEST_CASE("a network is measured once") {
  const File file;
  Reference<float> backend;
  const Table table = make_table(SmallNet<>::layers, {4, 3, 32, 32});
  const MeasureOptions quick{.seconds = 1000, .runs = 1};
  const Costs first = known_costs(file.path, table, backend, quick);
  CHECK(first.measured().size() > 20);
  CHECK(known_costs(file.path, table, backend, quick) == first);   // seconds would differ
  const Costs wider = known_costs(file.path, make_table(SmallNet<>::layers, {4, 3, 32, 40}), backend, quick);
  CHECK(wider.measured().size() > first.measured().size());
  for (const auto& [kind, points] : first.measured()) CHECK(wider.measured().at(kind).size() >= 1);
  const Plan more_images =
      make_plan(make_table(SmallNet<>::layers, {8, 3, 32, 32}), measuring_column(ConvAlgorithm::fastest), Reference<float>::target);
  for (const Step& step : more_images.steps) CHECK(first.knows(step_kind(more_images, step)));
}
TEST_CASE("costs of other threads, damaged ones and files that cannot be written are notices") {
  const File file;
  std::vector<std::string> heard;
  const Notice notice = [&](const std::string& text) { heard.push_back(text); };
  Costs costs(rates_of<Reference<double>>());
  costs.set("load 3x8 /", {{9, 1}});
  save_costs(file.path, Reference<double>(1), costs, notice);
  CHECK(heard.empty());
  CHECK(load_costs(file.path, Reference<double>(2), notice).measured().empty());
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].starts_with("lrcnn: the file of costs '" + file.path.string() + "' is ignored: it is for another machine or other libraries ("));
  CHECK(heard[0].ends_with("); costs are made again, and the file is replaced; nothing need be done"));
  std::ofstream(file.path, std::ios::app) << "more\n";
  CHECK(load_costs(file.path, Reference<double>(1), notice).measured().empty());
  REQUIRE(heard.size() == 2);
  CHECK(heard[1].find("it is damaged") != std::string::npos);
  save_costs("/proc/no/costs.txt", Reference<double>(1), costs, notice);
  REQUIRE(heard.size() == 3);
  CHECK(heard[2].starts_with("lrcnn: file '/proc/no/costs.txt' cannot be written"));
  CHECK(heard[2].ends_with("; what was found stays in memory"));
}
TEST_CASE("text that is none of a kind's points counts as not measured") {
  for (const char* text : {"", "1", "1:", ":1", "1:2:3", "1:-2", "0:1", "2:1 1:1", "1:1 ", "1:nan", "1:inf", "x:1", "1:1,2:2", "1:1e300"})
    CHECK(parse_points(text).empty());
  CHECK(parse_points("1:0.5 2:1e-9") == Costs::Points{{1, 0.5}, {2, 1e-9}});
}
