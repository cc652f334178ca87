#pragma once
// The sink that measures a plan: which buffers it has and when they are used, without its steps.
//
// The emitter leads it through one turn of each loop (every_turn is false), with buffers as large as the largest slab's,
// so its cost does not grow with the number of slabs; it is what a constant expression evaluates. What must outlive a
// turn is stretched over its loop by span().
#include <lrcnn/plan/arena.hpp>
#include <lrcnn/plan/step.hpp>
#include <limits>
namespace lrcnn {
/// Buffers with live intervals; their numbers count up from 0.
struct Measure {
  static constexpr bool every_turn = false;
  std::vector<Buffer> buffers{};
  Index now = 0;
  constexpr Index declare(Role role, Index stage, Index tensor, Index bytes) {
    buffers.push_back({role, stage, tensor, bytes, std::numeric_limits<Index>::max(), 0, 0});
    return static_cast<Index>(buffers.size()) - 1;
  }
  constexpr void touch(Index buffer) {
    if (buffer < 0) return;
    Buffer& b = buffers[static_cast<std::size_t>(buffer)];
    b.first = b.first < now ? b.first : now;
    b.last = now + 1;
  }
  constexpr void span(Index buffer, Index since) {
    if (buffer < 0) return;
    Buffer& b = buffers[static_cast<std::size_t>(buffer)];
    b.first = b.first < since ? b.first : since;
    b.last = b.last > now ? b.last : now;
  }
  constexpr void step(const Step& s) {
    touch(s.x.buffer), touch(s.y.buffer), touch(s.dy.buffer), touch(s.dx.buffer), touch(s.saved.buffer);
    touch(s.packed), touch(s.scratch), touch(s.workspace);
    ++now;
  }
};
}  // namespace lrcnn
