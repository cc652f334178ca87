#pragma once
// What bytes cost in time: a network's frontier, the policies that somebody has written, and the one at hand.
#include "memory_chart.hpp"
#include <lrcnn/plan/frontier.hpp>
namespace page {
/// A policy as a point of the chart.
struct Point {
  std::string name;
  lrcnn::Index bytes = 0;
  double seconds = 0;
};
/// Bytes to the right, times upward, as multiples of the column's time. Points far above the frontier are left out.
inline Drawing frontier_chart(const lrcnn::Frontier& frontier, const Point& column, const std::vector<Point>& ready, const Point& chosen) {
  Drawing out(960, 340, "The least time for each number of bytes, and other policies");
  double most_bytes = static_cast<double>(std::max(column.bytes, chosen.bytes)), most_time = chosen.seconds / column.seconds;
  for (const lrcnn::SolvedPolicy& p : frontier.points) {
    most_bytes = std::max(most_bytes, static_cast<double>(p.bytes));
    if (p.seconds < 3 * column.seconds) most_time = std::max(most_time, p.seconds / column.seconds);
  }
  most_time = std::min(4.0, std::max(1.5, most_time * 1.08));
  const double left = 60, bottom = 44, top = 24, right = 24, width = 960, height = 340;
  const auto x = [&](double bytes) { return left + (width - left - right) * bytes / most_bytes; };
  const auto y = [&](double times) { return height - bottom - (height - top - bottom) * times / most_time; };
  for (double t = 0; t <= most_time; t += 0.5) {
    out.line(left, y(t), width - right, y(t), "grid");
    out.text(left - 6, y(t) + 4, at(t), "end", "small");
  }
  for (double b = 0; b <= most_bytes * 1.0001; b += round_distance(most_bytes))
    out.text(x(b), height - bottom + 18, lrcnn::format_bytes(static_cast<lrcnn::Index>(b)), "middle", "small");
  out.line(left, height - bottom, width - right, height - bottom, "axis");
  out.text(left - 40, top - 8, "time, of the column's", "start", "small");
  std::string line;
  const auto drawn = [&](double seconds) { return seconds / column.seconds <= most_time; };
  for (const lrcnn::SolvedPolicy& p : frontier.points) {
    if (!drawn(p.seconds)) continue;
    const double px = x(static_cast<double>(p.bytes)), py = y(p.seconds / column.seconds);
    line += line.empty() ? "M" + at(px) + " " + at(py) : "H" + at(px) + "V" + at(py);
  }
  out.path(line, "curve");
  const auto text = [&](const std::string& name, lrcnn::Index bytes, double seconds) {
    return name + ": " + lrcnn::format_bytes(bytes) + ", " + time_text(seconds) + ", " + at(seconds / column.seconds) + " of the column's";
  };
  for (const lrcnn::SolvedPolicy& p : frontier.points)
    if (drawn(p.seconds))
      out.circle(x(static_cast<double>(p.bytes)), y(p.seconds / column.seconds), 2.4, "point", text(lrcnn::to_string(p.policy), p.bytes, p.seconds));
  struct Label {
    double from, to, y;
  };
  std::vector<Label> labels;
  const auto mark = [&](const Point& p, std::string_view kind, double radius) {
    if (!drawn(p.seconds) || static_cast<double>(p.bytes) > most_bytes) return;
    const double px = x(static_cast<double>(p.bytes)), py = y(p.seconds / column.seconds);
    out.circle(px, py, radius, kind, text(p.name, p.bytes, p.seconds));
    const bool at_right = px > width - 160;
    const double wide = 7 * static_cast<double>(p.name.size());
    Label label{at_right ? px - 8 - wide : px + 8, at_right ? px - 8 : px + 8 + wide, py - 8};
    const auto meets = [&](const Label& other) {
      return label.from < other.to && other.from < label.to && label.y - 12 < other.y && other.y - 12 < label.y;
    };
    while (std::any_of(labels.begin(), labels.end(), meets) && label.y > top) label.y -= 3;
    labels.push_back(label);
    out.text(at_right ? label.to : label.from, label.y, p.name, at_right ? "end" : "start", "small");
  };
  mark(chosen, "chosen", 6);
  mark(column, "column", 5);
  for (const Point& p : ready) mark(p, "ready", 4);
  return out;
}
}   // namespace page
