// Prints how a network would be run, and what it would need, without running it.
//
//   plan [NETWORK] [NxCxHxW]                        the peaks of some policies, side by side
//   plan [NETWORK] [NxCxHxW] POLICY [--steps]       the plan of one: stages, and memory (columns) over time (lines)
//   plan NETWORK NxCxHxW POLICY --kernels           what would carry its steps out on this machine
//   plan NETWORK NxCxHxW POLICY --device FILE       the same for a GPU, described by FILE, that need not be there
//
// NETWORK: vgg11 vgg13 vgg16 vgg19 smallnet lenet. POLICY: a name from the first form's table.
//
// ctest:
// ctest: vgg16 1x3x512x384 fine
// ctest: lenet 8x1x28x28 share --steps
#include "cpu_backend.hpp"
#include "device_plan.hpp"
#include "kernel_list.hpp"
#include "program.hpp"
#include "work.hpp"
#include <lrcnn/lrcnn.hpp>
#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
using namespace lrcnn;
namespace {
struct NamedNetwork {
  std::string_view name;
  std::span<const Layer> layers;
};
const std::array<NamedNetwork, 6> networks{{{"vgg11", Vgg11<>::layers},
                                            {"vgg13", Vgg13<>::layers},
                                            {"vgg16", Vgg16<>::layers},
                                            {"vgg19", Vgg19<>::layers},
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
  bool steps = false, kernels = false;
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
  app.add_option("NETWORK", network_name, "one of those below")->capture_default_str();
  app.add_option("EXTENTS", extents, "of a batch: images x channels x rows x columns")->capture_default_str();
  auto* const policy_option =
      app.add_option("POLICY", policy_name, "one of those below: its plan in detail; without it, the peaks of all of them, in bytes");
  app.add_flag("--steps", steps, "every step, one a line")->needs(policy_option);
  app.add_flag("--kernels", kernels, "what would carry the steps out on this machine")->needs(policy_option);
  app.add_option("--device", device, "description of a GPU, as a file: what would carry the steps out there")->needs(policy_option);
  return run_program(app, argc, argv, [&] {
    const auto network = find(networks, "network", network_name);
    const Table table = make_table(network.layers, parse_input(extents));
    if (policy_name.empty()) {
      compare(table);
      return 0;
    }
    PolicySpec policy = find(policies, "policy", policy_name).spec;
    if (!device.empty()) {
      policy.workspace_bytes = 64_MiB;
      print_device_plan(std::cout, table, policy, device);
      return 0;
    }
    if (kernels) {
      print_kernels(std::cout, table, policy);
      return 0;
    }
    const Plan plan = make_plan(table, policy, Cpu::target);
    std::cout << plan;
    print_memory(std::cout, plan);
    if (steps) print_steps(std::cout, plan);
    return 0;
  });
}
