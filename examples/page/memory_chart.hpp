#pragma once
// Memory over a training step: what lives in the arena at each step, by kind, over the time that is foretold.
#include "svg.hpp"
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/plan/memory_over_time.hpp>
#include <lrcnn/plan/profile.hpp>
namespace page {
/// Roles of buffers that people see as one kind, and its class in drawings.
struct Kind {
  std::string_view name, style;
  std::array<lrcnn::Role, 2> roles;
};
inline constexpr std::array kinds{Kind{"full-height tensors", "value", {lrcnn::Role::value, lrcnn::Role::value}},
                                  Kind{"their gradients", "gradient", {lrcnn::Role::gradient, lrcnn::Role::gradient}},
                                  Kind{"kept rows, masks", "kept", {lrcnn::Role::kept, lrcnn::Role::saved}},
                                  Kind{"rows of a slab", "slab", {lrcnn::Role::slab, lrcnn::Role::own}},
                                  Kind{"gradient rows of a slab", "dslab", {lrcnn::Role::dslab, lrcnn::Role::dslab}},
                                  Kind{"rows handed on", "carry", {lrcnn::Role::carry, lrcnn::Role::dcarry}},
                                  Kind{"packed filters", "packed", {lrcnn::Role::packed, lrcnn::Role::scratch}},
                                  Kind{"workspace", "workspace", {lrcnn::Role::workspace, lrcnn::Role::workspace}},
                                  Kind{"statistics", "statistics", {lrcnn::Role::statistics, lrcnn::Role::statistics}}};
inline lrcnn::Index bytes_of(const lrcnn::LiveBytes& live, const Kind& kind) {
  return live.of(kind.roles[0]) + (kind.roles[1] == kind.roles[0] ? 0 : live.of(kind.roles[1]));
}
/// What a plan has in memory, step by step.
struct MemoryOverTime {
  std::vector<double> ends;             ///< seconds from the start of the step to the end of each of its steps, as foretold
  std::vector<lrcnn::LiveBytes> live;   ///< of each of its steps
  MemoryOverTime(const lrcnn::Plan& plan, const lrcnn::Costs& costs) : live(lrcnn::live_bytes(plan)) {
    lrcnn::StepCosts of_steps(costs, plan.table, plan.target);
    double time = 0;
    for (const lrcnn::Step& step : plan.steps) ends.push_back(time += of_steps.seconds(plan, step));
  }
  double seconds() const { return ends.empty() ? 0 : ends.back(); }
  lrcnn::Index peak() const {
    lrcnn::Index most = 0;
    for (const lrcnn::LiveBytes& l : live) most = std::max(most, l.sum());
    return most;
  }
};
/// Round numbers from 0 to at least `most`, some five of them: the distance between two.
inline double round_distance(double most) {
  double step = 1;
  while (step * 10 < most) step *= 10;
  while (step > most) step /= 10;
  for (const double part : {0.1, 0.2, 0.25, 0.5, 1.0, 2.0})
    if (most / (step * part) <= 6) return step * part;
  return step;
}
/// The place of a chart's axes on its drawing.
struct Axes {
  double left = 74, right = 20, top = 16, bottom = 40;
  double width, height;   ///< of the drawing
  double most_x, most_y;
  double x(double value) const { return left + (width - left - right) * (most_x > 0 ? value / most_x : 0); }
  double y(double value) const { return height - bottom - (height - top - bottom) * (most_y > 0 ? value / most_y : 0); }
  /// Lines and numbers: bytes upward, and what `x_text` makes of values to the right.
  template <class Text>
  void draw(Drawing& out, const Text& x_text) const {
    for (double v = 0; v <= most_y * 1.0001; v += round_distance(most_y)) {
      out.line(left, y(v), width - right, y(v), "grid");
      out.text(left - 6, y(v) + 4, lrcnn::format_bytes(static_cast<lrcnn::Index>(v)), "end", "small");
    }
    for (double v = 0; v <= most_x * 1.0001; v += round_distance(most_x)) {
      out.line(x(v), height - bottom, x(v), height - bottom + 4, "axis");
      out.text(x(v), height - bottom + 16, x_text(v), "middle", "small");
    }
    out.line(left, height - bottom, width - right, height - bottom, "axis");
  }
};
/// "1.25 s", "12 ms": three digits
inline std::string time_text(double seconds) {
  const auto digits = [](double value) { return value >= 100 ? lrcnn::fixed_text(value, 0) : value >= 10 ? lrcnn::fixed_text(value, 1) : at(value); };
  return seconds >= 1 || seconds == 0 ? digits(seconds) + " s" : seconds >= 1e-3 ? digits(1e3 * seconds) + " ms" : digits(1e6 * seconds) + " us";
}
/// Stacked bytes by kind over time; `other`: the outline of another plan's, drawn over the same seconds and named `other_name`. Of steps that are
/// narrower than two thirds of a unit the one with most bytes is drawn.
inline Drawing memory_chart(const lrcnn::Plan& plan, const MemoryOverTime& memory, const MemoryOverTime* other, std::string_view other_name) {
  const lrcnn::Index peak = memory.peak();
  Drawing out(960, 400,
              "Planned bytes over one " + std::string(plan.options.training ? "training step" : "forward pass") + ", by kind; " +
                  lrcnn::to_string(plan.policy));
  Axes axes{.width = 960, .height = 400, .most_x = memory.seconds(), .most_y = static_cast<double>(peak)};
  axes.bottom = 96;
  if (other != nullptr)
    axes.most_x = std::max(axes.most_x, other->seconds()), axes.most_y = std::max(axes.most_y, static_cast<double>(other->peak()));
  axes.draw(out, time_text);
  struct Column {
    double from, to;
    std::size_t step;
  };
  const auto columns_of = [&](const MemoryOverTime& m) {
    std::vector<Column> columns;
    for (std::size_t i = 0; i < m.live.size(); ++i) {
      const double from = axes.x(i == 0 ? 0 : m.ends[i - 1]), to = axes.x(m.ends[i]);
      if (!columns.empty() && columns.back().to - columns.back().from < 0.7) {
        columns.back().to = to;
        if (m.live[i].sum() > m.live[columns.back().step].sum()) columns.back().step = i;
      } else {
        columns.push_back({from, to, i});
      }
    }
    return columns;
  };
  const std::vector<Column> columns = columns_of(memory);
  std::vector<lrcnn::Index> below(columns.size(), 0), above = below;
  for (const Kind& kind : kinds) {
    for (std::size_t c = 0; c < columns.size(); ++c) above[c] = below[c] + bytes_of(memory.live[columns[c].step], kind);
    if (above == below) continue;
    std::string area = "M" + at(columns.front().from) + " " + at(axes.y(static_cast<double>(above.front())));   // along the top, and back below
    const auto go = [&](lrcnn::Index bytes, double x) { area += "V" + at(axes.y(static_cast<double>(bytes))) + "H" + at(x); };
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (c + 1 == columns.size() || above[c + 1] != above[c]) go(above[c], columns[c].to);
    for (std::size_t c = columns.size(); c-- > 0;)
      if (c == 0 || below[c - 1] != below[c]) go(below[c], columns[c].from);
    out.path(area + "Z", kind.style);
    below = above;
  }
  for (std::size_t i = 0; i < plan.steps.size();) {   // which pass it is
    std::size_t end = i;
    while (end < plan.steps.size() && plan.steps[end].pass == plan.steps[i].pass) ++end;
    const std::array<std::string_view, 3> passes{"forward", "recompute", "backward"};
    const double from = axes.x(i == 0 ? 0 : memory.ends[i - 1]);
    out.rect(from, axes.height - axes.bottom + 24, std::max(0.2, axes.x(memory.ends[end - 1]) - from), 8,
             passes[static_cast<std::size_t>(plan.steps[i].pass)]);
    i = end;
  }
  if (other != nullptr) {
    std::string line;
    for (const Column& c : columns_of(*other)) {
      const std::string y = at(axes.y(static_cast<double>(other->live[c.step].sum())));
      line += (line.empty() ? "M" + at(c.from) + " " + y : "V" + y) + "H" + at(c.to);
    }
    out.path(line, "outline");
    out.text(axes.width - axes.right, axes.top - 4, "dashed: " + std::string(other_name) + ", " + lrcnn::format_bytes(other->peak()), "end", "small");
  }
  out.text(axes.left, axes.top - 4, "most at once: " + lrcnn::format_bytes(peak), "start", "words");
  double x = axes.left;
  double y = axes.height - axes.bottom + 52;
  for (const Kind& kind : kinds) {
    lrcnn::Index most = 0;
    for (const lrcnn::LiveBytes& live : memory.live) most = std::max(most, bytes_of(live, kind));
    if (most == 0) continue;
    const double wide = 30 + 7.2 * static_cast<double>(kind.name.size());
    if (x + wide > axes.width - axes.right) x = axes.left, y += 18;
    out.rect(x, y - 9, 10, 10, kind.style);
    out.text(x + 15, y, kind.name);
    x += wide;
  }
  return out;
}
}   // namespace page
