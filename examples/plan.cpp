// Prints how a network would be run, and what it would need, without running it.
//
//   plan [NETWORK] [NxCxHxW]                        the peaks of some policies, side by side
//   plan [NETWORK] [NxCxHxW] POLICY [--steps]       the plan of one: stages, and memory (columns) over time (lines)
//   plan NETWORK NxCxHxW POLICY --kernels           what would carry its steps out on this machine
//   plan NETWORK NxCxHxW POLICY --device FILE       the same for a GPU, described by FILE, that need not be there
//   plan NETWORK NxCxHxW --budget BYTES             the plan of the fastest policy that takes no more bytes
//   plan NETWORK NxCxHxW --frontier                 what each number of bytes costs in time
//   plan ... --html FILE --svg FILE                 a plan as a page for a browser; its memory over one step as a drawing
//   plan ... --freeze                               its policy alone, as a type to paste into a program
//   plan --graph FILE --budget BYTES                of any graph (graph_file.hpp), what to keep and what to compute again
//   plan --graph FILE --least                       the fewest bytes that this can come to
//
// NETWORK: see plan --help. POLICY: a name from the first form's table, or a policy's text, as in 'Policy<Overlap<4>, RecomputeAll>'.
//
// ctest:
// ctest: vgg16 1x3x512x384 fine
// ctest: lenet 8x1x28x28 share --steps
// ctest: vgg11 2x3x64x64 Policy<Fit<12_MiB>> --steps
// ctest: resnet18 1x3x96x96 --budget 16MiB
// ctest: unet 1x3x64x64 --frontier
// ctest: resnet18 1x3x96x96 --budget 12MiB --html @SCRATCH@/plan.html --svg @SCRATCH@/plan.svg
// ctest: vgg11 1x3x64x64 --budget 12MiB --freeze
// ctest: --graph @SOURCE@/examples/tests/small_graph.json --budget 48KiB --least
#include "cpu_backend.hpp"
#include "device_plan.hpp"
#include "frontier_print.hpp"
#include "graph_file.hpp"
#include "graph_print.hpp"
#include "kernel_list.hpp"
#include "memory_limit.hpp"
#include "page/plan_page.hpp"
#include "program.hpp"
#include "work.hpp"
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/network/convnext.hpp>
#include <lrcnn/network/densenet.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/squeezenet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/policy/parse.hpp>
#include <lrcnn/policy/resnet.hpp>
#include <lrcnn/policy/unet.hpp>
#include <lrcnn/policy/vgg.hpp>
#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
using namespace lrcnn;
namespace {
struct NamedNetwork {
  std::string_view name;
  std::span<const Layer> layers;
};
const std::array<NamedNetwork, 13> networks{{{"vgg11", Vgg11<>::layers},
                                             {"vgg13", Vgg13<>::layers},
                                             {"vgg16", Vgg16<>::layers},
                                             {"vgg19", Vgg19<>::layers},
                                             {"resnet18", ResNet18<>::layers},
                                             {"resnet50", ResNet50<>::layers},
                                             {"unet", UNet<2>::layers},
                                             {"densenet121", DenseNet121<>::layers},
                                             {"mobilenet_v2", MobileNetV2<>::layers},
                                             {"convnext_tiny", ConvNeXtTiny<>::layers},
                                             {"squeezenet11", SqueezeNet11<>::layers},
                                             {"smallnet", SmallNet<>::layers},
                                             {"lenet", LeNet<>::layers}}};
struct NamedPolicy {
  std::string_view name;
  PolicySpec spec;
  std::string_view what;
};
const std::array<NamedPolicy, 7> policies{{
    {"column", Policy<Column>::value, "layer by layer"},
    {"images", Policy<Images<1>>::value, "layer by layer, one image at a time"},
    {"pools", Policy<CheckpointAtPools, RecomputeAll>::value, "pools kept, the rest computed again, no slabs"},
    {"share", Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value, "4 slabs that hand rows on"},
    {"overlap", Policy<Overlap<4>, CheckpointAtPools, RecomputeAll>::value, "4 independent slabs"},
    {"fine", Policy<Stages<Overlap<12>, Overlap<6>, Overlap<3>, Column>, CheckpointAtPools, RecomputeAll>::value, "12, 6, 3 and 1 independent slabs"},
    {"both", Policy<Images<1>, Overlap<4>, CheckpointAtPools, RecomputeAll>::value, "4 slabs, one image at a time"},
}};
/// Policies that come with the library, for some of the networks.
const std::array<NamedPolicy, 12> ready_made{{
    {"vgg::Fast", vgg::Fast::value, ""},
    {"vgg::Balanced", vgg::Balanced::value, ""},
    {"vgg::Small", vgg::Small::value, ""},
    {"vgg::SmallByImages", vgg::SmallByImages::value, ""},
    {"vgg::SmallestByImages", vgg::SmallestByImages::value, ""},
    {"vgg::LargeBalanced", vgg::LargeBalanced::value, ""},
    {"resnet::Small50", resnet::Small50::value, ""},
    {"resnet::Small", resnet::Small::value, ""},
    {"resnet::Large18", resnet::Large18::value, ""},
    {"resnet::LargeSmall18", resnet::LargeSmall18::value, ""},
    {"resnet::Large50", resnet::Large50::value, ""},
    {"unet::Small", unet::Small::value, ""},
}};
template <class List>
auto find(const List& list, std::string_view what, const std::string& name) {
  std::string names;
  for (const auto& entry : list) {
    if (entry.name == name) return entry;
    names += " " + std::string(entry.name);
  }
  throw Error(error_text("no " + std::string(what) + " '" + name + "'", "there are:" + names, "choose one of them"));
}
Input parse_input(const std::string& text) {
  std::array<Index, 4> extents{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < 4; ++i) {
    const auto [next, error] = std::from_chars(at, end, extents[i]);
    const bool last = i == 3;
    if (error != std::errc() || extents[i] < 1 || (last ? next != end : next == end || *next != 'x'))
      throw Error(error_text("no input '" + text + "'", "it is written as images x channels x rows x columns", "write it as in 8x3x224x224"));
    at = next + 1;
  }
  return {extents[0], extents[1], extents[2], extents[3]};
}
/// What is asked of a graph.
struct GraphQuestion {
  std::string file, budget;   ///< an empty budget: none is given
  std::string family{family_name(LowerSetFamily::wide)}, objective{objective_name(RecomputationObjective::time)};
  bool least = false, json = false;
};
/// Integers are taken as they are, others as parse_bytes() does.
Index parse_budget(const std::string& text) {
  Index bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() && bytes > 0 ? bytes : parse_bytes(text);
}
void answer(const GraphQuestion& question) {
  if (question.budget.empty() && !question.least)
    throw Error(error_text("nothing is asked of graph file '" + question.file + "'",
                           "--budget asks for a strategy within so many bytes, --least for the fewest bytes that there is one for",
                           "give one of them, or both"));
  const Index budget = question.budget.empty() ? 0 : parse_budget(question.budget);
  const GraphFile file = GraphReader(question.file).read();
  GraphReport report{file};
  for (const LowerSetFamily family : {LowerSetFamily::exact, LowerSetFamily::approx, LowerSetFamily::order, LowerSetFamily::wide})
    if (family_name(family) == question.family) report.family = family;
  for (const RecomputationObjective objective : {RecomputationObjective::time, RecomputationObjective::memory})
    if (objective_name(objective) == question.objective) report.objective = objective;
  const RecomputationPlanner planner(file.graph, {.family = report.family});
  report.lower_sets = planner.lower_set_count();
  if (!question.budget.empty()) report.budget = budget, report.strategy = planner.strategy(budget, report.objective);
  if (question.least) report.least_budget = planner.least_budget();
  if (question.json) print_json(std::cout, report);
  else print_report(std::cout, report);
}
/// By its name, or by its text.
PolicySpec policy_from(const std::string& text) { return text.starts_with("Policy") ? parse_policy(text) : find(policies, "policy", text).spec; }
/// Writes what was asked for of a plan: a page, a drawing of its memory.
struct PlanFiles {
  std::string html, svg;
};
void write_files(const PlanFiles& files, const std::string& network, const PolicySpec& asked, const Plan& plan, const Costs& costs) {
  if (files.html.empty() && files.svg.empty()) return;
  const auto write = [](const std::string& path, const std::string& text) {
    if (!path.empty()) write_file_atomically(path, std::as_bytes(std::span(text)));
  };
  const PolicySpec layers = Policy<FastestConv, Workspace<64_MiB>>::value;
  const Plan column = make_plan(plan.table, layers, Cpu::target, plan.options);
  const page::MemoryOverTime of_column(column, costs), memory(plan, costs);
  write(files.svg, page::memory_chart(plan, memory, &of_column, "layer by layer").alone(page::style));
  if (files.html.empty()) return;
  page::PageFacts facts{.network = network, .chosen_for = asked.fit_bytes > 0 ? to_string(asked) : "", .of_column = &of_column};
  facts.column = {"column", column.arena.bytes, of_column.seconds()};
  const Frontier frontier = find_frontier(plan.table, Policy<Fit<1>>::value, Cpu::target, plan.options, costs);
  facts.frontier = &frontier;
  StepCosts of_steps(costs, plan.table, Cpu::target);
  const auto add = [&](const NamedPolicy& p) {
    try {
      facts.ready.push_back({std::string(p.name), arena_size(plan.table, p.spec, Cpu::target, plan.options).bytes,
                             plan_seconds(plan.table, p.spec, Cpu::target, plan.options, of_steps)});
    } catch (const PlanError&) {   // for another network, or a larger input
    }
  };
  for (const NamedPolicy& p : ready_made) add(p);
  write(files.html, page::plan_page(plan, costs, facts));
}
void compare(const Table& table) {
  std::cout << table.size() << " layers, " << parameter_count(table) << " parameters, input " << to_string(table.input) << ", backend " << Cpu::name
            << "\n\n      peak  of column  work  policy\n";
  const Plan column = make_plan(table, policies[0].spec, Cpu::target);
  for (const NamedPolicy& p : policies) {
    try {
      const Plan plan = make_plan(table, p.spec, Cpu::target);
      std::printf("%10s  %9.2f  %4.2f  %-8s %s\n", format_bytes(plan.peak_bytes()).c_str(),
                  static_cast<double>(plan.peak_bytes()) / static_cast<double>(column.peak_bytes()), work(plan) / work(column),
                  std::string(p.name).c_str(), std::string(p.what).c_str());
    } catch (const PlanError& e) {
      std::printf("%10s  %9s  %4s  %-8s %s\n", "-", "-", "-", std::string(p.name).c_str(), e.what());
    }
  }
  std::printf("\nPeak: everything beyond parameters, their gradients and optimizer state. Work: multiply-adds of convolutions.\n");
}
}   // namespace

int main(int argc, char** argv) {
  std::string network_name = "vgg16", extents = "8x3x224x224", policy_name, device;
  bool steps = false, kernels = false, frontier = false, freeze = false;
  PlanFiles files;
  CLI::App app("Prints how a network would be run, and what it would need, without running it.");
  std::string names = "Networks:";
  for (const NamedNetwork& n : networks) names += " " + std::string(n.name);
  names += "\nPolicies:\n";
  for (const NamedPolicy& p : policies) {
    std::string name(p.name);
    name.resize(std::max<std::size_t>(name.size(), 8), ' ');
    names += "  " + name + " " + std::string(p.what) + "\n";
  }
  app.footer(names);
  auto* const network_option = app.add_option("NETWORK", network_name, "one of those below")->capture_default_str();
  app.add_option("EXTENTS", extents, "of a batch: images x channels x rows x columns")->capture_default_str();
  auto* const policy_option = app.add_option(
      "POLICY", policy_name, "one of those below, or a policy's text: its plan in detail; without it, the peaks of all of them, in bytes");
  app.add_flag("--steps", steps, "every step, one a line")->needs(policy_option);
  app.add_flag("--kernels", kernels, "what would carry the steps out on this machine")->needs(policy_option);
  app.add_option("--device", device, "description of a GPU, as a file: what would carry the steps out there")->needs(policy_option);
  GraphQuestion question;
  auto* const graph_option = app.add_option("--graph", question.file, "a graph instead of a network, as a file of JSON")->excludes(network_option);
  app.add_option("--budget", question.budget,
                 "bytes that a plan may take, or, of a graph, what is kept and computed again for the backward pass, as in 6932111360 or 8GiB")
      ->excludes(policy_option);
  app.add_flag("--frontier", frontier, "what each number of bytes costs in time, and the policies")
      ->excludes(graph_option)
      ->excludes(policy_option)
      ->excludes(app.get_option("--budget"));
  app.add_option("--html", files.html, "file to write the plan to as a page for a browser")->excludes(graph_option);
  app.add_option("--svg", files.svg, "file to write a drawing of its memory over one step to")->excludes(graph_option);
  app.add_flag("--freeze", freeze, "the plan's policy alone, as a type to paste into a program")->excludes(graph_option);
  for (const char* const other : {"--kernels", "--device", "--frontier"})
    for (const char* const mine : {"--html", "--svg", "--freeze"}) app.get_option(mine)->excludes(app.get_option(other));
  app.get_option("--freeze")->excludes(app.get_option("--html"))->excludes(app.get_option("--svg"));
  app.add_option("--family", question.family,
                 "lower sets among which a strategy is chosen: all (exact), closures of nodes (approx), prefixes (order), "
                 "or the last two (wide)")
      ->needs(graph_option)
      ->check(CLI::IsMember({"exact", "approx", "order", "wide"}))
      ->capture_default_str();
  app.add_option("--objective", question.objective, "the strategy that computes least (time) or most (memory) again")
      ->needs(graph_option)
      ->check(CLI::IsMember({"time", "memory"}))
      ->capture_default_str();
  app.add_flag("--least", question.least, "the least budget that there is a strategy for")->needs(graph_option);
  app.add_flag("--json", question.json, "the answer as JSON")->needs(graph_option);
  return run_program(app, argc, argv, [&] {
    if (*graph_option) {
      answer(question);
      return 0;
    }
    const auto network = find(networks, "network", network_name);
    const Table table = make_table(network.layers, parse_input(extents));
    if (frontier) {
      const PolicySpec any = Policy<Fit<1>>::value, column = Policy<FastestConv, Workspace<64_MiB>>::value;
      print_frontier(std::cout, table, any, column, Cpu::target, Costs(rates_of<Cpu>()));
      return 0;
    }
    check_written({files.html, files.svg}, {});
    if (!files.html.empty() && std::filesystem::weakly_canonical(files.html) == std::filesystem::weakly_canonical(files.svg))
      throw Error(error_text("page and drawing are to be the same file, '" + files.html + "'", "each is a file of its own", "name two files"));
    if (policy_name.empty() && question.budget.empty()) {
      if (freeze || !files.html.empty() || !files.svg.empty())
        throw Error(
            error_text("a page, a drawing or a type is asked for, and no plan is named", "these are of one plan", "give a POLICY, or --budget"));
      compare(table);
      return 0;
    }
    PolicySpec policy = Policy<Fit<1>>::value;
    if (question.budget.empty()) policy = policy_from(policy_name);
    else policy.fit_bytes = parse_budget(question.budget);
    if (!device.empty()) {
      policy.workspace_bytes = 64_MiB;
      print_device_plan(std::cout, table, policy, device);
      return 0;
    }
    if (kernels) {
      print_kernels(std::cout, table, policy);
      return 0;
    }
    const Costs costs(rates_of<Cpu>());
    const Plan plan = make_plan(table, policy, Cpu::target, {}, costs);
    if (freeze) {
      std::cout << "using Chosen = " << to_string(plan.policy) << ";\n";
      return 0;
    }
    if (policy.fit_bytes > 0) std::cout << to_string(policy) << " chose\n" << to_string(plan.policy) << "\n\n";
    std::cout << plan;
    print_sections(std::cout, plan, costs);
    print_memory(std::cout, plan);
    write_files(files, network_name, policy, plan, costs);
    if (steps) print_steps(std::cout, plan);
    return 0;
  });
}
