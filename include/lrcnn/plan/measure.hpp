#pragma once
// The sink that measures a plan: which buffers it has and when they are used, without its steps.
//
// The emitter leads it through one turn of each loop (every_turn is false), with buffers as large as the largest slab's,
// so its cost does not grow with the number of slabs; it is what a constant expression evaluates. What must outlive a
// turn is stretched over its loop by span().
#include <lrcnn/plan/sink.hpp>
#include <limits>
namespace lrcnn {
/// Buffers with live intervals; their numbers count up from 0.
class Measure final : public Sink {
 public:
  std::vector<Buffer> buffers{};
  std::vector<Range> loops{};   ///< times that turns share, of loops of more than one
  constexpr Measure() : Sink(false) {}
  constexpr Index declare(Role role, Index stage, Index tensor, Index bytes, Index copies = 1) override {
    const Index first = static_cast<Index>(buffers.size());
    for (Index copy = 0; copy < copies; ++copy)
      buffers.push_back({role, stage, tensor, bytes, std::numeric_limits<Index>::max(), 0, 0, copy, copies});
    return first;
  }
  constexpr void touch(Index buffer) override {
    if (buffer >= 0) stretch(buffer, now, now + 1);
  }
  constexpr void span(Index buffer, Index since) override {
    if (buffer >= 0 && item(buffers, buffer).last > since) stretch(buffer, since, now);
  }
  constexpr void loop(Index since) override { loops.push_back({since, now}); }
  constexpr void step(const Step& s) override {
    for (const Index buffer :
         {s.x.buffer, s.other.buffer, s.y.buffer, s.dy.buffer, s.dx.buffer, s.saved.buffer, s.statistics, s.sums, s.packed, s.scratch, s.workspace})
      if (buffer >= 0) stretch(buffer, now, now + 1);
    ++now;
  }

 private:
  /// One turn stands for all, so one copy does. Pre: buffer >= 0.
  constexpr void stretch(Index buffer, Index first, Index last) {
    Buffer* b = &buffers[static_cast<std::size_t>(buffer)];
    b -= b->copy;
    for (Buffer* const end = b + b->copies; b != end; ++b) {
      b->first = b->first < first ? b->first : first;
      b->last = b->last > last ? b->last : last;
    }
  }
};
}   // namespace lrcnn
