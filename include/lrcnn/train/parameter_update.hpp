#pragma once
// The update of one parameter tensor, as the optimizer of a program's own sees it: values, gradient and states in the host's memory.
#include <lrcnn/backend/update.hpp>
#include <lrcnn/train/update_ranges.hpp>
#include <concepts>
namespace lrcnn {
namespace detail {
/// What an optimizer's learning rate is multiplied by: by the schedule, and by a rule for these parameters.
constexpr double lr_scale_of(const UpdateStep& step, const UpdateRange& range) { return step.lr_scale * range.lr_scale; }
/// What its weight decay is multiplied by: 0 where it does not act on these parameters.
constexpr double decay_scale_of(const UpdateRange& range) { return range.decay ? range.decay_scale : 0; }
template <class T>
constexpr GradientRule<T> gradient_rule_of(const UpdateStep& step) {
  return {static_cast<T>(step.gradient_scale), static_cast<T>(step.gradient_limit)};
}
}   // namespace detail
/// What an optimizer of a program's own is given for each parameter tensor, in the order of the flat buffer. Elements are numbered from 0
/// to size() - 1 in the order of parameter().shape.extents, the last one fastest. Nothing of it outlives the call. An error that update()
/// throws ends the step, which then does not count: losses, counters and running statistics are what they were before it. Parameters and
/// states that were updated before the error stay so; a training file brings them back.
template <class T>
class ParameterUpdate {
 public:
  // Made by Optimizer::update(). Pre: range.parameter is not null. values and gradient have range.elements.size() elements, and so has each
  // of `state_count` states, which lie `stride` elements apart.
  ParameterUpdate(std::string_view optimizer, const UpdateStep& step, const UpdateRange& range, T* values, const T* gradient, T* states, Index stride,
                  Index state_count)
      : optimizer_(optimizer),
        step_(step),
        range_(range),
        values_(values),
        gradient_(gradient),
        states_(states),
        stride_(stride),
        state_count_(state_count) {}
  /// Name and extents, and whether weight decay is meant for it.
  const Parameter& parameter() const { return *range_.parameter; }
  Index size() const { return range_.elements.size(); }
  /// 1 for the first update of this parameter, which may have been frozen before.
  Index number() const { return step_.number - range_.missed; }
  /// What the optimizer's learning rate is multiplied by: by the schedule, and by a rule for this parameter.
  double lr_scale() const { return detail::lr_scale_of(step_, range_); }
  /// What the optimizer's weight decay is multiplied by: 0 where it does not act on this parameter.
  double decay_scale() const { return detail::decay_scale_of(range_); }
  /// The values that the update changes.
  std::span<T> values() const { return {values_, static_cast<std::size_t>(size())}; }
  /// An element of the mean loss's gradient, clipped if the trainer was told to.
  T gradient(Index i) const { return rule()(gradient_[i]); }
  /// State number `which`: zeros before the first update, then what the last one has left.
  /// Errors:  Error if the optimizer's state_count() is not larger than `which`
  std::span<T> state(Index which) const {
    if (which < 0 || which >= state_count_)
      throw Error(error_text(std::string(optimizer_) + " asks for its state number " + std::to_string(which),
                             "its state_count() is " + std::to_string(state_count_) + ", and numbers begin with 0",
                             "return more from state_count(), or use less"));
    return {states_ + which * stride_, static_cast<std::size_t>(size())};
  }
  /// The square root of the sum of the values' squares, in double; the same bits for any number of threads.
  double values_norm() const { return std::sqrt(host::sum_of_squares(values_, size(), step_.threads)); }
  /// The same of the gradient, clipped if the trainer was told to.
  double gradient_norm() const {
    return std::sqrt(host::sum_of_squares_of<T>([this](Index i) { return gradient(i); }, size(), step_.threads));
  }
  /// Calls f(w, g), f(w, g, s0) or f(w, g, s0, s1) for each element: the value, which f changes, its gradient and the states, which f
  /// changes too. How many states, f's arguments say. On several threads, so f looks at nothing that changes but its arguments, and does
  /// not throw; then the bits are the same for any number of threads.
  /// Errors:  Error if the optimizer has fewer states
  template <class F>
  void for_each_element(const F& f) const {
    if constexpr (std::invocable<const F&, T&, T>) {
      loop<0>(f, nullptr, nullptr);
    } else if constexpr (std::invocable<const F&, T&, T, T&>) {
      loop<1>(f, state(0).data(), nullptr);
    } else {
      static_assert(std::invocable<const F&, T&, T, T&, T&>,
                    "lrcnn: this function is none for elements; it takes a value, its gradient and at most two states: (T& w, T g, T& s0, T& s1); "
                    "with more states write a loop over values(), gradient(i) and state(k)");
      T* const first = state(0).data();
      loop<2>(f, first, state(1).data());
    }
  }

 private:
  GradientRule<T> rule() const { return detail::gradient_rule_of<T>(step_); }
  /// f as the functor of an element, see backend/update.hpp.
  template <int count, class F>
  struct ElementUpdate {
    static constexpr int states = count;
    const F& f;
    GradientRule<T> gradient;
    template <class... States>
    void operator()(T& w, T g, States&... s) const {
      f(w, gradient(g), s...);
    }
  };
  template <int count, class F>
  void loop(const F& f, T* s0, T* s1) const {
    host::update_elements(ElementUpdate<count, F>{f, rule()}, values_, gradient_, s0, s1, size(), step_.threads);
  }
  std::string_view optimizer_;
  const UpdateStep& step_;
  const UpdateRange& range_;
  T* values_;
  const T* gradient_;
  T* states_;
  Index stride_, state_count_;
};
}   // namespace lrcnn
