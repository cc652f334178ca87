#pragma once
// The bytes of the arena that a step declares: what it may read, and what it may write. Worked out from the plan
// alone, apart from the executor, which turns the same declarations into views.
#include <lrcnn/core/memory.hpp>
#include <lrcnn/exec/executor.hpp>
#include <cstring>
#include <vector>
namespace lrcnn::testing {
/// For each byte of the arena: may the step touch it, may it change it.
struct Declared {
  std::vector<char> touched, written;
  explicit Declared(const Plan& plan) : touched(static_cast<std::size_t>(plan.arena.bytes)), written(touched.size()) {}
  void clear() {
    std::fill(touched.begin(), touched.end(), 0);
    std::fill(written.begin(), written.end(), 0);
  }
  void mark(Index begin, Index end, bool writes) {
    for (Index b = begin; b < end; ++b) touched.at(static_cast<std::size_t>(b)) = 1;
    for (Index b = begin; writes && b < end; ++b) written.at(static_cast<std::size_t>(b)) = 1;
  }
  /// Rows of a value or a gradient: each image's each channel block holds them in one piece.
  void mark_rows(const Plan& plan, const Ref& ref, bool writes) {
    if (!ref) return;
    const Shape& s = plan.table.shape(ref.tensor);
    const Index block = plan.target.block(s.c);
    mark_pieces(plan, ref, ceil_div(s.c, block), s.w * block * plan.target.element_bytes, writes);
  }
  void mark_saved(const Plan& plan, const Ref& ref, bool writes) {
    if (!ref) return;
    const Shape& s = plan.table.shape(ref.tensor);
    const Index block = plan.target.block(s.c);
    const bool bits = plan.table.node(ref.tensor - 1).layer.kind == Kind::activation;
    mark_pieces(plan, ref, ceil_div(s.c, block), bits ? ceil_div(s.w * block, 8) : s.w * block, writes);
  }
  void mark_buffer(const Plan& plan, Index id, bool writes) {
    if (id < 0) return;
    const Buffer& b = plan.buffers[static_cast<std::size_t>(id)];
    mark(b.offset, b.offset + b.bytes, writes);
  }
  /// A layer's statistics or sums of the images that a step is about.
  void mark_sets(const Plan& plan, const Step& step, Index id, bool sums, bool writes) {
    if (id < 0) return;
    const auto [begin, end] = set_bytes(plan, step, sums);
    const Index start = plan.buffers[static_cast<std::size_t>(id)].offset;
    mark(start + begin, start + end, writes);
  }
  /// The bytes of those sets within their buffer.
  static Range set_bytes(const Plan& plan, const Step& step, bool sums) {
    const Node& node = plan.table.node(step.layer);
    const Index doubles = sums ? sums_doubles(node.layer, node.in.c) : Statistics::doubles(statistics_units(node.layer.norm, node.in.c));
    const Index each = doubles * Index{sizeof(double)}, images = (step.dy ? step.dy : step.x).images.size();
    return {step.set * each, (step.set + sums_sets(node.layer, images)) * each};
  }
  /// Everything that a step names.
  void mark_step(const Plan& plan, const Step& step) {
    const bool backward = is_backward(step.op);
    mark_rows(plan, step.x, false);
    mark_rows(plan, step.other, false);
    mark_sets(plan, step, step.statistics, false, step.op == Op::statistics);
    mark_sets(plan, step, step.sums, true, writes_sums(step));
    mark_rows(plan, step.y, !backward);
    mark_rows(plan, step.dy, false);
    mark_rows(plan, step.dx, true);
    mark_saved(plan, step.saved, step.op == Op::forward);
    mark_buffer(plan, step.packed, step.op == Op::pack_forward || step.op == Op::pack_backward);
    mark_buffer(plan, step.scratch, true);
    mark_buffer(plan, step.workspace, true);
  }

 private:
  void mark_pieces(const Plan& plan, const Ref& ref, Index blocks, Index row_bytes, bool writes) {
    const Index start = plan.buffers[static_cast<std::size_t>(ref.buffer)].offset + ref.offset;
    for (Index i = ref.images.begin; i < ref.images.end; ++i)
      for (Index b = 0; b < blocks; ++b) {
        const Index piece = start + ((i - ref.held_images.begin) * blocks + b) * ref.held_rows.size() * row_bytes;
        mark(piece + (ref.rows.begin - ref.held_rows.begin) * row_bytes, piece + (ref.rows.end - ref.held_rows.begin) * row_bytes, writes);
      }
  }
};
/// Hides from each step what it has not declared and looks whether it went there all the same. Hidden bytes are a
/// pattern that is not a number, so that a value which is read there spoils the result; they come back after the
/// step. `claims`: the plan whose declarations are believed, for a test of this guard itself. The arena may be a device's.
template <class B>
class Guard {
 public:
  Guard(const Plan& claims, const B& backend, const typename B::Memory& arena)
      : claims_(claims), backend_(backend), arena_(arena), declared_(claims), memory_(declared_.touched.size()), shown_(memory_) {}
  void before(const Plan&, Index i) {
    backend_.read(std::span<std::byte>(memory_), arena_.data());
    declared_.clear();
    declared_.mark_step(claims_, claims_.steps[static_cast<std::size_t>(i)]);
    for (std::size_t b = 0; b < memory_.size(); ++b) shown_[b] = declared_.touched[b] ? memory_[b] : hidden;
    backend_.write(arena_.data(), std::span<const std::byte>(shown_));
  }
  void after(const Plan&, Index i) {
    std::vector<std::byte> now(memory_.size());
    backend_.read(std::span<std::byte>(now), arena_.data());
    for (std::size_t b = 0; b < now.size(); ++b) {
      if (now[b] != shown_[b] && !declared_.written[b] && problem_.empty())
        problem_ = "step " + std::to_string(i) + " (" + std::string(op_name(claims_.steps[static_cast<std::size_t>(i)].op)) + ") changes byte " +
                   std::to_string(b) + ", which it does not declare as written";
      if (!declared_.touched[b]) now[b] = memory_[b];
    }
    backend_.write(arena_.data(), std::span<const std::byte>(now));
  }
  const std::string& problem() const { return problem_; }

 private:
  static constexpr std::byte hidden{0xFF};   // 0xFFFF... is not a number in every floating-point format
  const Plan& claims_;
  const B& backend_;
  const typename B::Memory& arena_;
  Declared declared_;
  std::vector<std::byte> memory_, shown_;   ///< as it was, and as the step finds it
  std::string problem_;
};
}   // namespace lrcnn::testing
