#pragma once
// The slabs of a stage: for each of its tensors, a column; for each slab, the rows that it has of it.
#include "svg.hpp"
#include <lrcnn/plan/stage_rules.hpp>
#include <lrcnn/plan/section_table.hpp>
namespace page {
/// Rows that each slab makes or reads of every tensor, in colours that change from slab to slab; rows that two slabs have are marked. At most
/// `most` tensors are drawn, evenly chosen.
inline Drawing slab_diagram(const lrcnn::Plan& plan, const lrcnn::Stage& stage, std::size_t most = 24) {
  using lrcnn::Index;
  const lrcnn::Schedule& rows = plan.options.training && stage.backward.slabs() > 0 ? stage.backward : stage.forward;
  std::vector<Index> tensors;
  for (Index t = 0; t < stage.tensors(); ++t) tensors.push_back(t);
  if (tensors.size() > most) {
    std::vector<Index> fewer;
    for (std::size_t i = 0; i < most; ++i) fewer.push_back(tensors[i * (tensors.size() - 1) / (most - 1)]);
    tensors = fewer;
  }
  const double width = 90 + 36.0 * static_cast<double>(tensors.size()), height = 250, top = 46, tall = 170;
  const std::string layers = lrcnn::layers_text(plan.table, {stage.first, stage.last});
  const std::string head = layers + ": " + lrcnn::to_string(stage.partition) + ", " + std::to_string(rows.slabs()) + " slabs";
  Drawing out(std::max({680.0, width, 20 + 8.0 * static_cast<double>(head.size())}), height,
              "Rows of each tensor that the slabs of " + layers + " have");
  out.text(8, 18, head, "start", "head");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Index t = tensors[i], g = stage.tensor(t);
    const lrcnn::Shape& shape = plan.table.shape(g);
    const double x = 16 + 36.0 * static_cast<double>(i), unit = tall / static_cast<double>(shape.h);
    const std::string name = g == 0 ? "input" : std::string(plan.table.node(g - 1).layer.name.view());
    out.rect(x, top, 26, tall, "map", name + ": " + std::to_string(shape.h) + " rows of " + std::to_string(shape.c) + " channels");
    std::vector<int> times(static_cast<std::size_t>(shape.h), 0);
    for (Index k = 0; k < rows.slabs(); ++k) {
      const lrcnn::Range own = t < stage.input_count() ? rows.at(k, t).need : rows.at(k, t).own;
      if (own.empty()) continue;
      for (Index r = own.begin; r < own.end; ++r) ++lrcnn::item(times, r);
      const double inset = rows.slabs() > 1 && k % 2 == 1 ? 3 : 0;   // so that rows of two slabs show both
      out.rect(x + inset, top + unit * static_cast<double>(own.begin), 26 - 2 * inset, std::max(0.6, unit * static_cast<double>(own.size()) - 0.8),
               k % 2 == 0 ? "even" : "odd",
               name + ", slab " + std::to_string(k + 1) + ": rows " + std::to_string(own.begin) + " to " + std::to_string(own.end - 1));
    }
    for (Index r = 0; r < shape.h;) {
      Index end = r;
      while (end < shape.h && lrcnn::item(times, end) > 1) ++end;
      if (end > r)
        out.rect(x + 26, top + unit * static_cast<double>(r), 3, unit * static_cast<double>(end - r), "twice",
                 name + ": rows " + std::to_string(r) + " to " + std::to_string(end - 1) + " are in several slabs");
      r = std::max(end, r + 1);
    }
    out.text(x + 13, top - 6, std::to_string(shape.h), "middle", "small");
  }
  out.text(8, height - 10, "from the stage's input to its output, with their rows; colours: slabs; bars beside: rows that several slabs have",
           "start", "small");
  return out;
}
}   // namespace page
