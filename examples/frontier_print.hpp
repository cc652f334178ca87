#pragma once
// The frontier of a network as a table: what each number of bytes costs in time.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/plan/profile.hpp>
#include <cstdio>
#include <iomanip>
#include <ostream>
/// `column`, then at most some twenty points from the most bytes to the fewest, each with the policy that needs them, and with the bytes that it
/// offloads if `policy` has MayOffload.
inline void print_frontier(std::ostream& out, const lrcnn::Table& table, const lrcnn::PolicySpec& policy, const lrcnn::PolicySpec& column,
                           const lrcnn::Target& target, const lrcnn::Costs& costs) {
  using namespace lrcnn;
  const Frontier frontier = find_frontier(table, policy, target, {}, costs);
  StepCosts of_steps(costs, table, target);
  const double whole = plan_seconds(table, column, target, {}, of_steps);
  const Index bytes = arena_size(table, column, target).bytes;
  const auto line = [&](Index peak, double seconds, const PolicySpec& p) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%10s  %9.3f  %7.3f  ", format_bytes(peak).c_str(),
                  static_cast<double>(peak) / static_cast<double>(bytes), seconds / whole);
    out << text.data();
    if (policy.may_offload) out << std::setw(10) << format_bytes(arena_size(table, p, target).offloaded) << "  ";
    out << to_string(p) << "\n";
  };
  out << "      peak  of column  time of   " << (policy.may_offload ? "offloaded   " : "") << "policy\n                         column's\n";
  line(bytes, whole, column);
  const std::size_t step = 1 + frontier.points.size() / 20;
  for (std::size_t i = frontier.points.size(); i > 0; i -= std::min(i, step))
    line(frontier.points[i - 1].bytes, frontier.points[i - 1].seconds, frontier.points[i - 1].policy);
  out << "\n" << frontier.points.size() << " points; the fewest bytes are " << frontier.smallest().bytes << ". Times are estimates.\n";
}
