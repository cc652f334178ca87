// Prints how a network would be run, and what it would need, without running it.
//
//   plan [NETWORK] [NxCxHxW]                        the peaks of some policies, side by side
//   plan [NETWORK] [NxCxHxW] POLICY [--steps]       the plan of one: stages, and memory (columns) over time (lines)
//   plan NETWORK NxCxHxW POLICY --kernels           what would carry its steps out on this machine
//   plan NETWORK NxCxHxW POLICY --kernels --device FILE   the kernels that a step starts on a GPU, and the least time that they take
//   plan ... --kernels --device FILE --json FILE    the same beside it as JSON
//   plan NETWORK NxCxHxW --budget BYTES             the plan of the fastest policy that takes no more bytes
//   plan NETWORK NxCxHxW --frontier                 what each number of bytes costs in time
//   plan NETWORK NxCxHxW --frontier --may-offload   the same where inputs of sections may lie in a larger memory
//   plan ... --device FILE                          the plan for a GPU, described by FILE, that need not be there
//   plan ... --html FILE                            a plan as a page for a browser
//   plan ... --svg FILE --slabs FILE                its memory over one step, and the rows of its slabs, as drawings
//   plan ... --freeze                               its policy alone, as a type to paste into a program
//   plan --graph FILE --budget BYTES                of any graph (graph_file.hpp), what to keep and what to compute again
//   plan --graph FILE --least                       the fewest bytes that this can come to
//
// The JSON of kernels, figures as in the table but not rounded; without a FILE behind --json it is printed instead of the table:
//   {"network", "input": [N, C, H, W], "policy", "precision", "device": {"name", "multiprocessors", "bytes_per_second", "flop_per_second",
//    "seconds_per_launch"}, "kernels": [{"name", "launches", "idle", "bytes", "flop", "least_seconds"}, ...], "all": {as a kernel}}
//
// NETWORK: see plan --help. POLICY: a name from the first form's table, or a policy's text, as in 'Policy<Overlap<4>, RecomputeAll>'.
//
// ctest:
// ctest: vgg16 1x3x512x384 fine
// ctest: lenet 8x1x28x28 share --steps
// ctest: vgg11 2x3x64x64 Policy<Fit<12_MiB>> --steps
// ctest: resnet18 1x3x96x96 --budget 16MiB
// ctest: unet 1x3x64x64 --frontier
// ctest: resnet18 1x3x96x96 --budget 12MiB --may-offload
// ctest: resnet18 1x3x96x96 --budget 12MiB --html @SCRATCH@/plan.html --svg @SCRATCH@/plan.svg
// ctest: vgg11 1x3x64x64 --budget 12MiB --freeze
// ctest: --graph @SOURCE@/examples/tests/small_graph.json --budget 48KiB --least
#include "cpu_backend.hpp"
#include "device_plan.hpp"
#include "frontier_print.hpp"
#include "graph_file.hpp"
#include "graph_print.hpp"
#include "json_answer.hpp"
#include "kernel_list.hpp"
#include "memory_limit.hpp"
#include "plan_files.hpp"
#include "program.hpp"
#include "work.hpp"
#include <lrcnn/lrcnn.hpp>
#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <optional>
using namespace lrcnn;
namespace {
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
  bool least = false;
  JsonAnswer json{};
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
  if (question.json.leaves_text()) check_written({question.json.to}, {question.file});
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
  if (question.json.asked()) question.json.give(std::cout, json_of(report));
  if (question.json.leaves_text()) print_report(std::cout, report);
}
void compare(const Table& table) {
  std::cout << table.size() << " layers, " << parameter_count(table) << " parameters, input " << to_string(table.input) << ", backend " << Cpu::name
            << "\n\n      peak  of column  work  policy\n";
  const Plan column = make_plan(table, known_policies().front().spec, Cpu::target);
  for (const NamedPolicy& p : known_policies()) {
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
/// What is asked of a network.
struct Question {
  std::string network = "vgg16", extents = "8x3x224x224", policy, against, device;
  std::string budget;      ///< empty: none is given
  std::string bandwidth;   ///< of the GPU's memory, bytes a second; empty: by its name
  bool steps = false, kernels = false, frontier = false, freeze = false, may_offload = false;
  JsonAnswer json{};
  PlanFiles files;
};
/// The policy that is named, or that is to be chosen within a budget.
PolicySpec policy_of(const Question& question) {
  if (question.budget.empty()) return policy_from(question.policy);
  PolicySpec policy = Policy<Fit<1>>::value;
  policy.fit_bytes = parse_budget(question.budget), policy.may_offload = question.may_offload;
  return policy;
}
void answer(const Question& question) {
  if (question.json.asked() && (!question.kernels || question.device.empty()))
    throw Error(error_text("nothing is asked that could be answered as JSON", "--json is for graphs, and for the kernels of a step on a GPU",
                           "give --graph, or --kernels and --device"));
  if (question.may_offload && question.budget.empty() && !question.frontier)
    throw Error(error_text("--may-offload is given without bytes to fit into", "it is about policies that are chosen for a number of bytes",
                           "give --budget or --frontier, too"));
  const Table table = make_table(find_name(known_networks(), "network", question.network).layers, parse_input(question.extents));
  std::optional<DescribedGpu> gpu;
  if (!question.device.empty()) gpu.emplace(question.device);
  const Target target = gpu ? gpu->target() : Cpu::target;
  const Costs costs(gpu ? gpu->rates() : rates_of<Cpu>());
  if (question.frontier) {
    PolicySpec any = Policy<Fit<1>>::value, column = Policy<FastestConv, Workspace<64_MiB>>::value;
    any.may_offload = question.may_offload;
    return print_frontier(std::cout, table, any, column, target, costs);
  }
  const PlanFiles& files = question.files;
  check_written({files.html, files.svg, files.slabs, question.json.leaves_text() ? question.json.to : ""}, {question.device});
  if (question.policy.empty() && question.budget.empty()) {
    if (question.freeze || question.steps || gpu || files.any())
      throw Error(error_text("no plan is named", "pages, drawings, types, steps and what a GPU does with them are of one plan",
                             "give a POLICY, or --budget"));
    return compare(table);
  }
  const PolicySpec policy = policy_of(question);
  if (question.kernels && gpu)
    return gpu->print_launches(std::cout, question.network, table, policy, costs,
                               question.bandwidth.empty() ? 0 : static_cast<double>(parse_budget(question.bandwidth)), question.json);
  if (question.kernels) return print_kernels(std::cout, table, policy);
  const Plan plan = make_plan(table, policy, target, {}, costs);
  if (question.freeze) {
    std::cout << "using Chosen = " << to_string(plan.policy) << ";\n";
    return;
  }
  std::optional<Plan> against;
  if (!question.against.empty()) against = make_plan(table, policy_from(question.against), target, {}, costs);
  if (policy.fit_bytes > 0) std::cout << to_string(policy) << " chose\n" << to_string(plan.policy) << "\n\n";
  std::cout << plan;
  print_sections(std::cout, plan, costs);
  print_memory(std::cout, plan);
  if (gpu) gpu->print_checks(std::cout, table, plan.policy);
  write_files(files, {.network = question.network, .device = gpu ? gpu->name() : "", .chosen_for = policy.fit_bytes > 0 ? to_string(policy) : ""},
              plan, costs, against ? &*against : nullptr);
  if (question.steps) print_steps(std::cout, plan);
}
/// What is said below the options.
std::string lists_of_names() {
  std::string names = "Networks:";
  for (const NamedNetwork& n : known_networks()) names += " " + std::string(n.name);
  names += "\nPolicies:\n";
  for (const NamedPolicy& p : known_policies()) {
    std::string name(p.name);
    name.resize(std::max<std::size_t>(name.size(), 8), ' ');
    names += "  " + name + " " + std::string(p.what) + "\n";
  }
  return names;
}
void add_options(CLI::App& app, Question& question, GraphQuestion& of_graph) {
  auto* const network = app.add_option("NETWORK", question.network, "one of those below")->capture_default_str();
  app.add_option("EXTENTS", question.extents, "of a batch: images x channels x rows x columns")->capture_default_str();
  auto* const policy = app.add_option("POLICY", question.policy,
                                      "one of those below, or a policy's text: its plan in detail; without it, the peaks of all of them, in bytes");
  auto* const steps = app.add_flag("--steps", question.steps, "every step, one a line");
  auto* const kernels =
      app.add_flag("--kernels", question.kernels, "what would carry the steps out on this machine, or the kernels of a step on the GPU of --device")
          ->needs(policy);
  auto* const graph = app.add_option("--graph", of_graph.file, "a graph instead of a network, as a file of JSON")->excludes(network);
  auto* const device =
      app.add_option("--device", question.device, "description of a GPU, as a file: the plan for it, and what would carry it out there");
  app.add_option("--bandwidth", question.bandwidth,
                 "bytes that the GPU's memory reads in a second, as in 4.8TB; by default, what is known of the GPU's name")
      ->needs(device)
      ->needs(kernels)
      ->check(not_empty());
  auto* const budget = app.add_option("--budget", question.budget,
                                      "bytes that a plan may take, or, of a graph, what is kept and computed again for the backward pass, as in "
                                      "6932111360 or 8GiB")
                           ->excludes(policy);
  auto* const frontier = app.add_flag("--frontier", question.frontier, "what each number of bytes costs in time, and the policies");
  auto* const offload = app.add_flag("--may-offload", question.may_offload,
                                     "with --budget or --frontier: inputs of sections may lie in a larger memory between the passes");
  auto* const html = app.add_option("--html", question.files.html, "file to write the plan to as a page for a browser");
  auto* const svg = app.add_option("--svg", question.files.svg, "file to write a drawing of its memory over one step to");
  auto* const slabs = app.add_option("--slabs", question.files.slabs, "file to write a drawing of the rows of its slabs to");
  app.add_option("--against", question.against, "a second policy: its slabs are drawn beside the plan's")->needs(slabs);
  auto* const freeze = app.add_flag("--freeze", question.freeze, "the plan's policy alone, as a type to paste into a program");
  frontier->excludes(policy)->excludes(budget);
  offload->excludes(policy);
  kernels->excludes(frontier);
  for (auto* const mine : {html, svg, slabs, freeze, steps}) mine->excludes(kernels)->excludes(frontier);
  for (auto* const other : {html, svg, slabs, steps}) freeze->excludes(other);
  for (auto* const other : {frontier, offload, html, svg, slabs, freeze, steps, device}) other->excludes(graph);
  app.add_option("--family", of_graph.family,
                 "lower sets among which a strategy is chosen: all (exact), closures of nodes (approx), prefixes (order), "
                 "or the last two (wide)")
      ->needs(graph)
      ->check(CLI::IsMember({"exact", "approx", "order", "wide"}))
      ->capture_default_str();
  app.add_option("--objective", of_graph.objective, "the strategy that computes least (time) or most (memory) again")
      ->needs(graph)
      ->check(CLI::IsMember({"time", "memory"}))
      ->capture_default_str();
  app.add_flag("--least", of_graph.least, "the least budget that there is a strategy for")->needs(graph);
  app.add_option("--json", question.json.to, "the answer of --graph, or of --kernels and --device, as JSON: to a file, or instead of the text")
      ->expected(0, 1)
      ->default_str("-")
      ->check(not_empty());
  for (auto* const text : {policy, budget, graph, device, html, svg, slabs, app.get_option("--against")}) text->check(not_empty());
}
}   // namespace

int main(int argc, char** argv) {
  Question question;
  GraphQuestion of_graph;
  CLI::App app("Prints how a network would be run, and what it would need, without running it.");
  app.footer(lists_of_names());
  add_options(app, question, of_graph);
  return run_program(app, argc, argv, [&] {
    of_graph.budget = question.budget, of_graph.json = question.json;
    if (of_graph.file.empty()) answer(question);
    else answer(of_graph);
    return 0;
  });
}
