#pragma once
// Starts steps that go together (together.hpp, steps_along.hpp), and remembers what that leaves out of the step that comes next.
#include <lrcnn/backend/cudnn/library.hpp>
#include <lrcnn/backend/cudnn/steps_along.hpp>
#include <string>
#include <utility>
namespace lrcnn::cudnn {
template <class T>
class StartsAlong {
 public:
  /// Starts as many steps as go together, from the first on, `most` at most, and returns how many; 0 if the first is to be started alone.
  /// `fleeting`: as fleeting_steps() has it of the first. The steps are the list's own, which stays: they are known by their addresses.
  std::size_t start(Library<T>& library, std::span<const Operands<T>> steps, std::size_t most, bool fleeting) {
    const Operands<T>* const convolution = std::exchange(bits_from_, nullptr);
    const StepsAlong<T> along(steps, most, fleeting);
    for (const Operands<T>& o : std::span(along.work).first(along.count)) run(library, o);
    if (along.sums) summed_ = along.sums;
    if (along.no_bits) without_bits_ = steps.data();
    if (along.bits_next) bits_from_ = steps.data();
    if (along.steps > 0 || along.no_bits) return along.steps;
    if (convolution && convolution + 1 == steps.data()) {
      Operands<T> pool = steps[0];
      pool.along = convolution;
      run(library, pool);
      return 1;
    }
    const PointwiseRun<T> pointwise(steps, most);
    if (pointwise.steps < 2 && !pointwise.sums) return 0;
    if (!pointwise.work.empty()) check(library.run_together(pointwise.work, pointwise.sums), "moving rows beside an activation");
    if (pointwise.sums) summed_ = pointwise.sums;
    return pointwise.steps;
  }
  /// Whether the bias gradient of a step, which is the next, has been made along with those before it.
  bool has_summed(const Operands<T>& o) { return std::exchange(summed_, nullptr) == &o; }
  /// Whether a convolution's step, which is the next, need not make its mask bits.
  bool needs_no_bits(const Operands<T>& o) { return std::exchange(without_bits_, nullptr) == &o; }

 private:
  static void run(Library<T>& library, const Operands<T>& o) {
    check(library.run(o), std::string(op_name(o.op)) + " of " + who(o) + ", along with a step beside it");
  }
  const Operands<T>*summed_ = nullptr, *without_bits_ = nullptr;
  const Operands<T>* bits_from_ = nullptr;   ///< the convolution's step of which the pooling behind it makes the mask bits
};
}   // namespace lrcnn::cudnn
