// Frontiers in a file: found once for all that they depend on, and found anew when any of it is another.
#include "support/error_of.hpp"
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/plan/frontier_file.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/policy/policy.hpp>
#include <doctest/doctest.h>
#include <fstream>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct File {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_frontiers_" + std::to_string(::getpid()) + ".txt");
  std::vector<std::string> heard{};
  ~File() { std::filesystem::remove(path); }
  std::string text() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Index entries() const {
    const std::string all = text();
    return std::count(all.begin(), all.end(), '\t');
  }
  Notice notice() {
    return [this](const std::string& text) { heard.push_back(text); };
  }
};
const Table table = make_table(SmallNet<>::layers, {2, 3, 32, 32});
const PolicySpec policy = Policy<Fit<1>>::value;
const Target target{.uses_workspace = false};
const Costs costs{Rates{.step = 1e-6, .products = 1e9, .winograd = 3e9, .bytes = 5e9}};
}   // namespace
TEST_CASE("a frontier comes back from a file as it was found, without another search") {
  File file;
  const Frontier found = known_frontier(file.path, table, policy, target, {}, costs, file.notice());
  CHECK(found.points == find_frontier(table, policy, target, {}, costs).points);
  REQUIRE(file.entries() == 1);
  // What a file says is believed: a point that no search would find shows that there was none.
  const Frontier again = known_frontier(file.path, table, policy, target, {}, costs, file.notice());
  CHECK(again.points == found.points);
  ChoiceFile kept(file.path, frontiers_maker(), file.notice(), "frontiers");
  const auto [key, text] = *kept.all().begin();
  std::string changed = text;
  const std::string seconds = number_text(found.smallest().seconds);
  REQUIRE(changed.find(" " + seconds + " ") != std::string::npos);
  changed.replace(changed.find(" " + seconds + " ") + 1, seconds.size(), "12345");
  kept.note(key, changed), kept.save();
  CHECK(known_frontier(file.path, table, policy, target, {}, costs, file.notice()).smallest().seconds == 12345);
  CHECK(file.heard.empty());
}
TEST_CASE("a point whose policy makes inputs again comes back from a file as it was written") {
  File file;
  static_cast<void>(known_frontier(file.path, table, policy, target, {}, costs, file.notice()));
  const PolicySpec inputs =
      Policy<Stages<Overlap<2>, Section<RecomputeInput<Overlap<2>>, Workspace<0>>, RecomputeInput<Keep<>>>, CheckpointAtPools, RecomputeAll>::value;
  const Plan plan = make_plan(table, inputs, target);
  CHECK(std::any_of(plan.stages.begin(), plan.stages.end(), [](const Stage& s) { return s.recomputes_input; }));
  const SolvedPolicy point{inputs, plan.peak_bytes(), 0.25, plan.listed_steps()};
  ChoiceFile kept(file.path, frontiers_maker(), file.notice(), "frontiers");
  const std::string text = to_string(inputs);
  kept.note(kept.all().begin()->first,
            std::to_string(point.bytes) + " 0.25 " + std::to_string(point.steps) + " " + std::to_string(text.size()) + " " + text + " ");
  kept.save();
  CHECK(known_frontier(file.path, table, policy, target, {}, costs, file.notice()).points == std::vector<SolvedPolicy>{point});
  CHECK(file.heard.empty());
}
TEST_CASE("another network, input, policy, target, option or cost has a frontier of its own") {
  File file;
  const auto known = [&](const Table& t, const PolicySpec& p, const Target& to, const PlanOptions& options, const Costs& c) {
    return known_frontier(file.path, t, p, to, options, c, file.notice());
  };
  const Frontier first = known(table, policy, target, {}, costs);
  Index entries = 1;
  const auto is_new = [&](const Frontier&) {
    const bool grew = file.entries() == entries + 1;
    entries = file.entries();
    return grew;
  };
  CHECK(is_new(known(make_table(SmallNet<>::layers, {2, 3, 32, 48}), policy, target, {}, costs)));
  CHECK(is_new(known(make_table(SmallNet<7>::layers, {2, 3, 32, 32}), policy, target, {}, costs)));
  CHECK(is_new(known(table, Policy<Fit<1>, DirectConv>::value, target, {}, costs)));
  CHECK(is_new(known(table, policy, Target{.channel_block = 8, .uses_workspace = false}, {}, costs)));
  CHECK(is_new(known(table, policy, target, {.training = false}, costs)));
  CHECK(is_new(known(table, policy, target, {.input_gradient = true}, costs)));
  Costs other = costs;
  other.set("forward conv 3x32 > 16x32 k3x3 s1x1 d1x1 FastestConv /", {{1000, 0.5}});
  CHECK(is_new(known(table, policy, target, {}, other)));
  other.set("forward conv 3x32 > 16x32 k3x3 s1x1 d1x1 FastestConv /", {{1000, 0.25}});
  CHECK(is_new(known(table, policy, target, {}, other)));
  CHECK(is_new(known(table, policy, target, {}, Costs(Rates{.step = 2e-6, .products = 1e9, .winograd = 3e9, .bytes = 5e9}))));
  CHECK(is_new(known(table, policy, target, {}, Costs(Rates{.step = 1e-6, .products = 1e9, .winograd = 3e9, .bytes = 5e9, .least_workspace = 64}))));
  for (const auto packs : {&Target::packs_alike, &Target::packs_together}) {
    Target packing = target;
    packing.*packs = true;
    CHECK(is_new(known(table, policy, packing, {}, costs)));
  }
  // The bytes of a budget are none of it.
  PolicySpec more = policy;
  more.fit_bytes = 123'456;
  CHECK(known(table, more, target, {}, costs).points == first.points);
  CHECK(file.entries() == entries);
  CHECK(file.heard.empty());
}
TEST_CASE("a file that is damaged, of another version or not writable costs a search and a notice") {
  File file;
  const Frontier found = known_frontier(file.path, table, policy, target, {}, costs, file.notice());
  const std::string whole = file.text();
  const std::size_t entry = whole.find('\n', whole.find("machine ")) + 1;
  const std::string key = whole.substr(entry, whole.find('\t') - entry);
  std::string damaged = whole;
  damaged[damaged.size() / 2] ^= 1;
  std::filesystem::remove(file.path);
  ChoiceFile older(file.path, "any, lrcnn 0.0.1", file.notice(), "frontiers");
  older.note(key, "1 1 5 8 Policy<> ");
  older.save();
  const std::string other = file.text();
  std::size_t notices = 0;
  for (const std::string& text : {damaged, other, whole.substr(0, whole.size() / 2)}) {
    std::ofstream(file.path, std::ios::binary | std::ios::trunc) << text;
    CHECK(known_frontier(file.path, table, policy, target, {}, costs, file.notice()).points == found.points);
    CHECK(file.heard.size() == ++notices);
    CHECK(file.text() == whole);   // replaced
  }
  std::ofstream(file.path, std::ios::binary | std::ios::trunc) << "somebody's work";
  CHECK(known_frontier(file.path, table, policy, target, {}, costs, file.notice()).points == found.points);
  CHECK(file.text() == "somebody's work");
  CHECK(file.heard.back().find("' is not written: what is there is no file of frontiers; ") != std::string::npos);
  notices = file.heard.size();
  const std::string ignored = "lrcnn: the file of frontiers '" + file.path.string() + "' is ignored: it is ",
                    again = "; frontiers are made again, and the file is replaced; nothing need be done";
  CHECK(file.heard[0] == ignored + "damaged" + again);
  CHECK(file.heard[1] == ignored + "for another machine or other libraries (any, lrcnn 0.0.1)" + again);
  const std::filesystem::path nowhere = file.path / "in a file";
  CHECK(known_frontier(nowhere, table, policy, target, {}, costs, file.notice()).points == found.points);
  REQUIRE(file.heard.size() == notices + 1);
  CHECK(file.heard.back().find("'" + nowhere.string() + "' cannot be written") != std::string::npos);
  CHECK(file.heard.back().ends_with("; what was found stays in memory"));
}
TEST_CASE("lrcnn's file of something else is not written over") {
  File file;
  ChoiceFile costs_of_others(file.path, "any", file.notice(), "costs");
  costs_of_others.note("load", "1:1");
  costs_of_others.save();
  const std::string before = file.text();
  CHECK(!known_frontier(file.path, table, policy, target, {}, costs, file.notice()).points.empty());
  CHECK(file.text() == before);
  REQUIRE(file.heard.size() == 2);
  CHECK(file.heard[0] == "lrcnn: the file of frontiers '" + file.path.string() +
                             "' is ignored: it is no such file, or one of another version; frontiers are made again, and the file stays as it is; "
                             "name another file, or one that is not there yet");
  CHECK(file.heard[1] == "lrcnn: the file of frontiers '" + file.path.string() +
                             "' is not written: what is there is no file of frontiers; what was found stays in memory; name another file, or one "
                             "that is not there yet");
}
TEST_CASE("a frontier whose policies the network refuses is found anew") {
  File file;
  const Frontier found = known_frontier(file.path, table, policy, target, {}, costs, file.notice());
  for (const std::string text : {"Policy<CheckpointAt<\"nowhere\">>", "Policy<Stages<Share<30>,Column>,CheckpointAtPools>"}) {
    CAPTURE(text);
    ChoiceFile kept(file.path, frontiers_maker(), file.notice(), "frontiers");
    kept.note(kept.all().begin()->first, "1000 0.25 9 " + std::to_string(text.size()) + " " + text + " ");
    kept.save();
    CHECK(known_frontier(file.path, table, policy, target, {}, costs, file.notice()).points == found.points);
  }
  CHECK(file.heard.empty());
}
TEST_CASE("texts that are no frontier, or one of other plans, are not believed") {
  File file;
  const Frontier found = known_frontier(file.path, table, policy, target, {}, costs, file.notice());
  const std::string version_line = frontiers_maker();
  const std::string key = ChoiceFile(file.path, version_line, file.notice(), "frontiers").all().begin()->first;
  const std::string point = std::to_string(found.smallest().bytes) + " 1 5 ", column = to_string(Policy<>::value);
  for (const std::string& text :
       {std::string(), std::string("12"), std::string("1 2 3 4"), point + "-3 Policy<>", point + "9999 Policy<>", point + "8 Policy<> ",
        point + "9 Policies ", "7 1 5 " + std::to_string(column.size()) + " " + column + " ", point + "8 Policy<> " + point + "8 Policy<> "}) {
    CAPTURE(text);
    ChoiceFile kept(file.path, version_line, file.notice(), "frontiers");
    kept.note(key, text), kept.save();
    CHECK(known_frontier(file.path, table, policy, target, {}, costs, file.notice()).points == found.points);
  }
}
