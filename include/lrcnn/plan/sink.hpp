#pragma once
// What the emitter tells about a plan, and who may listen (plan/measure.hpp, plan/recorded_plan.hpp).
#include <lrcnn/plan/arena.hpp>
#include <lrcnn/plan/step.hpp>
#include <vector>
namespace lrcnn {
/// Hears which buffers a plan has and its steps, in order. An interface, not a template parameter, so that the emitter is compiled once.
class Sink {
 public:
  /// Whether it wants to hear every turn of each loop, or only the first, which stands for all.
  const bool every_turn;
  Index now = 0;       ///< time, in steps, for those that count it
  double weight = 1;   ///< how many slabs the steps at hand stand for
  /// How many slabs of rows the one with this number stands for, between these cuts; 0: it is left out. Asked only if every_turn.
  constexpr virtual double slabs_of_rows(Index /*slab*/, const std::vector<Index>& /*cuts*/) const { return 1; }
  /// Likewise of slabs and groups of images: so many images in all, so many in each.
  constexpr virtual double slabs_of_images(Index /*slab*/, Index /*images*/, Index /*of_slab*/) const { return 1; }
  /// Returns the number of the first copy's buffer; the others' follow.
  constexpr virtual Index declare(Role role, Index stage, Index tensor, Index bytes, Index copies = 1) = 0;
  /// The buffer is in use now; numbers below 0 name none.
  constexpr virtual void touch(Index buffer) = 0;
  /// The buffer is in use from `since` until now if it has been used since then.
  constexpr virtual void span(Index buffer, Index since) = 0;
  /// Turns of a loop began at `since`, and share the times until now.
  constexpr virtual void loop(Index /*since*/) {}
  constexpr virtual void step(const Step& s) = 0;

 protected:
  constexpr explicit Sink(bool all_turns) : every_turn(all_turns) {}
  constexpr ~Sink() = default;
};
}   // namespace lrcnn
