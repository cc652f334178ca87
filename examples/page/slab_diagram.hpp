#pragma once
// The slabs of a stage: for each of its tensors, two columns in which slabs take turns; for each slab, the rows that it has of the tensor.
#include "svg.hpp"
#include <lrcnn/plan/section_table.hpp>
#include <lrcnn/plan/stage_rules.hpp>
namespace page {
/// What a diagram shows of a stage, and where.
class SlabDiagram {
 public:
  /// At most `most` tensors are drawn, evenly chosen.
  SlabDiagram(const lrcnn::Plan& plan, const lrcnn::Stage& stage, std::size_t most = 24)
      : plan_(plan), stage_(stage), rows_(plan.options.training && stage.backward.slabs() > 0 ? stage.backward : stage.forward) {
    const auto count = static_cast<std::size_t>(stage.tensors());
    for (std::size_t i = 0; i < std::min(count, most); ++i)
      tensors_.push_back(static_cast<lrcnn::Index>(count <= most ? i : i * (count - 1) / (most - 1)));
    std::size_t longest = 0;
    for (const lrcnn::Index t : tensors_) longest = std::max(longest, name(t).size());
    unit_ = std::max(64.0, 7.2 * static_cast<double>(longest) + 8);
    named_ = unit_ * static_cast<double>(tensors_.size()) < 860;
    if (!named_) unit_ = 36;
    lane_ = named_ ? 24 : 12;
    if (named_) left_ = std::max(left_, 3.7 * static_cast<double>(name(tensors_.front()).size()) - lane_ + 8);   // the first name is centred there
  }
  Drawing drawn() const {
    const std::string layers = lrcnn::layers_text(plan_.table, {stage_.first, stage_.last});
    lrcnn::Partition partition = stage_.partition;
    if (partition.images == lrcnn::group_images(plan_.table, plan_.policy)) partition.images = 0;   // all of them: nothing to say
    std::string head = layers + ": " + lrcnn::to_string(partition) + ", " + std::to_string(rows_.slabs()) + " slabs";
    if (stage_.forward.slabs() > 0 && stage_.forward.slabs() != rows_.slabs())
      head += " in the backward pass, " + std::to_string(stage_.forward.slabs()) + " in the forward pass";
    const double wide = std::max({left_ + 16 + unit_ * static_cast<double>(tensors_.size()), 8.4 * static_cast<double>(head.size()) + 16, 440.0});
    Drawing out(wide, height, "Rows of each tensor that the slabs of " + layers + " have");
    out.text(8, 18, head, "start", "head");
    const lrcnn::Index rows = plan_.table.shape(stage_.tensor(tensors_.front())).h;
    for (const lrcnn::Index part : {0, 1, 2, 3, 4})
      if (part % 4 == 0 || rows >= 4)
        out.text(left_ - 6, top + tall * static_cast<double>(part) / 4 + 4, std::to_string(rows * part / 4), "end", "small");
    for (std::size_t i = 0; i < tensors_.size(); ++i) draw(out, tensors_[i], left_ + unit_ * static_cast<double>(i));
    legend(out);
    return out;
  }

 private:
  static constexpr double top = 56, tall = 176, height = 272;
  const lrcnn::Plan& plan_;
  const lrcnn::Stage& stage_;
  const lrcnn::Schedule& rows_;
  std::vector<lrcnn::Index> tensors_{};
  double left_ = 44, unit_ = 0, lane_ = 0;   ///< of the first tensor; from one to the next; of one of its two columns
  bool named_ = false;                       ///< there is room for names
  std::string name(lrcnn::Index t) const {
    const lrcnn::Index g = stage_.tensor(t);
    return g == 0 ? "input" : std::string(plan_.table.node(g - 1).layer.name.view());
  }
  /// Rows of the tensor that a slab makes, or, of a tensor that is there, reads.
  lrcnn::Range of_slab(lrcnn::Index slab, lrcnn::Index t) const { return t < stage_.input_count() ? rows_.at(slab, t).need : rows_.at(slab, t).own; }
  static std::string text_of(lrcnn::Range rows) {
    return rows.size() == 1 ? "row " + std::to_string(rows.begin) : "rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end - 1);
  }
  void draw(Drawing& out, lrcnn::Index t, double x) const {
    using lrcnn::Index;
    const lrcnn::Shape& shape = plan_.table.shape(stage_.tensor(t));
    const double row = tall / static_cast<double>(shape.h), gap = named_ ? 4 : 2;
    const auto y = [&](Index r) { return top + row * static_cast<double>(r); };
    const auto lane = [&](Index slab) { return x + (slab % 2 == 0 ? 0 : lane_ + gap); };
    const std::string who = name(t);
    out.text(x + lane_ + gap / 2, top - 8, named_ ? who : std::to_string(shape.h), "middle", named_ ? "words" : "small");
    for (const Index side : {0, 1})
      out.rect(lane(side), top, lane_, tall, "map", who + ": " + std::to_string(shape.h) + " rows of " + std::to_string(shape.c) + " channels");
    std::vector<int> times(static_cast<std::size_t>(shape.h), 0);
    for (Index k = 0; k < rows_.slabs(); ++k) {
      const lrcnn::Range own = of_slab(k, t), carried = rows_.carried(k, t);
      const std::string slab = who + ", slab " + std::to_string(k + 1) + ": ";
      for (Index r = own.begin; r < own.end; ++r) ++lrcnn::item(times, r);
      if (!own.empty())
        out.rect(lane(k), y(own.begin), lane_, std::max(0.6, y(own.end) - y(own.begin)), k % 2 == 0 ? "even" : "odd", slab + text_of(own));
      if (t >= stage_.input_count() && !carried.empty())
        out.rect(lane(k) + 1, y(carried.begin) + 1, lane_ - 2, std::max(0.6, y(carried.end) - y(carried.begin) - 2), "handed",
                 slab + text_of(carried) + " from the slab before");
    }
    if (row >= 6)
      for (Index r = 1; r < shape.h; ++r) out.line(x, y(r), x + 2 * lane_ + gap, y(r), "rows");
    for (Index r = 0; r < shape.h;) {
      Index end = r;
      while (end < shape.h && lrcnn::item(times, end) > 1) ++end;
      if (end > r) out.rect(x + lane_, y(r), gap, y(end) - y(r), "twice", who + ": " + text_of({r, end}) + " in several slabs");
      r = std::max(end, r + 1);
    }
  }
  void legend(Drawing& out) const {
    double x = left_;
    const auto entry = [&](std::string_view kind, std::string_view words) {
      out.rect(x, height - 21, 10, 10, kind);
      out.text(x + 15, height - 12, words);
      x += 30 + 7.2 * static_cast<double>(words.size());
    };
    const bool two = rows_.slabs() == 2;
    entry("even", two ? "slab 1" : "slabs 1, 3, ..");
    entry("odd", two ? "slab 2" : "slabs 2, 4, ..");
    if (rows_.slabs() > 1) entry("twice", two ? "in both" : "in several");
    if (stage_.partition.cut == lrcnn::Cut::share) entry("handed", "handed on");
  }
};
/// The stages of a plan that are cut into slabs of rows.
inline std::vector<const lrcnn::Stage*> stages_with_slabs(const lrcnn::Plan& plan) {
  std::vector<const lrcnn::Stage*> stages;
  for (const lrcnn::Stage& stage : plan.stages)
    if (stage.forward.slabs() > 1 || stage.backward.slabs() > 1) stages.push_back(&stage);
  return stages;
}
/// The diagrams of all stages with slabs, one below the other, and beside them those of another plan, if there is one.
inline Drawing slab_drawing(const lrcnn::Plan& plan, const lrcnn::Plan* other) {
  std::vector<std::pair<Drawing, std::array<double, 2>>> parts;
  double x = 0, width = 0, height = 0;
  for (const lrcnn::Plan* const p : {&plan, other}) {
    if (p == nullptr) continue;
    double y = 0;
    for (const lrcnn::Stage* const stage : stages_with_slabs(*p)) {
      parts.emplace_back(SlabDiagram(*p, *stage).drawn(), std::array{x, y});
      width = std::max(width, x + parts.back().first.width()), y += parts.back().first.height() + 12;
    }
    height = std::max(height, y - 12), x = width + 20;
  }
  if (parts.empty()) {
    Drawing none(420, 40, "No section is cut into slabs of rows");
    none.text(8, 24, "No section is cut into slabs of rows.");
    return none;
  }
  Drawing out(width, height, "Rows of each tensor that slabs have");
  for (const auto& [drawing, place] : parts) out.add(drawing, place[0], place[1]);
  return out;
}
}   // namespace page
