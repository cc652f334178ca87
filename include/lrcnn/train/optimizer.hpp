#pragma once
// From gradients to new parameters.
//
// Parameters, gradients and optimizer states are flat buffers of one layout, so an update is one fused pass over
// them. The arithmetic of one element is a functor without containers (backend/update.hpp), which a backend applies in a
// loop of its own. Formulas and defaults are those of torch.optim.SGD and torch.optim.AdamW.
// States start as zeros. PyTorch starts SGD's momentum with the first gradient, which is what zeros lead to.
#include <lrcnn/backend/update.hpp>
#include <lrcnn/core/error.hpp>
#include <lrcnn/network/parameters.hpp>
#include <lrcnn/train/text.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
namespace lrcnn {
/// Which parameters weight decay acts on.
enum class Decay {
  everything,  ///< as PyTorch does unless told otherwise
  marked,      ///< those whose ParameterShape::decay is true: weights, not biases
};
/// Stochastic gradient descent: v = momentum * v + (g + weight_decay * w), w -= lr * v.
/// With nesterov, w -= lr * (g + weight_decay * w + momentum * v).
struct Sgd {
  double lr = 0.001;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  Decay decay = Decay::everything;
  static constexpr std::string_view name = "Sgd";
  constexpr Index state_count() const { return momentum != 0 ? 1 : 0; }
  template <class Self, class F>
  static constexpr void each_setting(Self& s, F f) {
    f("lr", s.lr), f("momentum", s.momentum), f("nesterov", s.nesterov), f("weight_decay", s.weight_decay);
    f("decay", s.decay);
  }
  friend constexpr bool operator==(const Sgd&, const Sgd&) = default;
};
/// Adam with decoupled weight decay.
/// Source: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2; the decay is
///         multiplied by lr as in PyTorch.
struct AdamW {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  Decay decay = Decay::everything;
  static constexpr std::string_view name = "AdamW";
  constexpr Index state_count() const { return 2; }
  template <class Self, class F>
  static constexpr void each_setting(Self& s, F f) {
    f("lr", s.lr), f("beta1", s.beta1), f("beta2", s.beta2), f("epsilon", s.epsilon);
    f("weight_decay", s.weight_decay), f("decay", s.decay);
  }
  friend constexpr bool operator==(const AdamW&, const AdamW&) = default;
};
/// What changes from update to update.
struct UpdateStep {
  Index number = 1;           ///< 1 for the first update; AdamW's bias correction needs it
  double lr_scale = 1;        ///< the schedule's multiplier
  double gradient_scale = 1;  ///< gradients are multiplied by this first: clipping by norm, loss scaling, averaging
  double gradient_limit = std::numeric_limits<double>::infinity();   ///< then each is cut off at plus or minus this
  int threads = 1;            ///< at most this many on the host; the result does not depend on it
};
/// A stretch of the flat buffer that is updated alike. What is in no stretch stays as it is.
struct UpdateRange {
  Range elements{};
  bool decay = true;
  double lr_scale = 1, decay_scale = 1;   ///< of its own, see ParameterRule
  friend constexpr bool operator==(const UpdateRange&, const UpdateRange&) = default;
};
/// What is different for some parameters: frozen ones stay as they are and count in no norm; the optimizer's learning rate and
/// weight decay are multiplied for the others. Rules mean nothing to running statistics: no optimizer updates them.
struct ParameterRule {
  std::string pattern{};    ///< of names, '*' for any text: "conv1.*", "*.bias", "linear1.weight"
  bool frozen = false;
  double lr_scale = 1;
  double decay_scale = 1;
};
namespace detail {
inline bool fits_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') return !name.empty() && name[0] == pattern[0] && fits_pattern(name.substr(1), pattern.substr(1));
  return fits_pattern(name, pattern.substr(1)) || (!name.empty() && fits_pattern(name.substr(1), pattern));
}
}  // namespace detail
/// The stretches that an optimizer updates, neighbours that are treated alike joined. Of several rules whose pattern fits a
/// name the last holds.
/// Pre:     parameters are ordered by offset
/// Post:    each element of each parameter that is not frozen is in exactly one stretch, no frozen one is in any, and no running
///          statistic; elements of gaps may be in one or in none
/// Errors:  Error if a rule fits no parameter, or running statistics alone, or one of its numbers is negative or not finite
inline std::vector<UpdateRange> update_ranges(std::span<const Parameter> parameters, Decay decay,
                                              std::span<const ParameterRule> rules = {}) {
  for (const ParameterRule& rule : rules) {
    const auto fits = [&](const Parameter& p) { return detail::fits_pattern(p.name, rule.pattern); };
    if (std::none_of(parameters.begin(), parameters.end(), fits))
      throw Error(error_text("the rule for parameters '" + rule.pattern + "' fits none",
                             parameters.empty() ? "there are no parameters" : "names are like '" + parameters[0].name + "'",
                             "correct the pattern; '*' stands for any text"));
    if (std::none_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return fits(p) && !p.shape.running; }))
      throw Error(error_text("the rule for parameters '" + rule.pattern + "' fits running statistics alone",
                             "these come from the batches, and no optimizer updates them",
                             "leave the rule out; a norm that is frozen keeps them as they are"));
    for (const double scale : {rule.lr_scale, rule.decay_scale})
      if (!(scale >= 0 && std::isfinite(scale)))
        throw Error(error_text("the rule for parameters '" + rule.pattern + "' multiplies by " + detail::number_text(scale),
                               "learning rate and weight decay are multiplied by finite numbers that are not negative", "use 1 for no change"));
  }
  std::vector<UpdateRange> ranges;
  bool joins = false;   // nothing that stays lies between
  for (const Parameter& p : parameters) {
    ParameterRule rule;
    for (const ParameterRule& r : rules)
      if (detail::fits_pattern(p.name, r.pattern)) rule = r;
    if (rule.frozen || p.shape.running) {
      joins = false;
      continue;
    }
    const UpdateRange own{p.elements(), decay == Decay::everything || p.shape.decay, rule.lr_scale, rule.decay_scale};
    UpdateRange same = own;
    if (!ranges.empty()) same.elements = ranges.back().elements;
    if (joins && same == ranges.back()) ranges.back().elements.end = own.elements.end;
    else ranges.push_back(own);
    joins = true;
  }
  return ranges;
}
/// Either optimizer as a value. Regular, printable; holds settings only, the states belong to the caller.
class Optimizer {
 public:
  using Kind = std::variant<Sgd, AdamW>;
  /// Errors: Error if a setting is not finite or out of its range.
  Optimizer(const Sgd& sgd) : kind_(sgd) { check(); }
  Optimizer(const AdamW& adamw) : kind_(adamw) { check(); }
  const Kind& kind() const { return kind_; }
  std::string_view name() const {
    return std::visit([](const auto& k) { return k.name; }, kind_);
  }
  double lr() const {
    return std::visit([](const auto& k) { return k.lr; }, kind_);
  }
  Decay decay() const {
    return std::visit([](const auto& k) { return k.decay; }, kind_);
  }
  /// State buffers, each of as many elements as the parameters.
  Index state_count() const {
    return std::visit([](const auto& k) { return k.state_count(); }, kind_);
  }
  /// Calls f(functor) with this update's arithmetic for the elements of a stretch.
  template <class T, class F>
  void visit_update(const UpdateStep& step, const UpdateRange& range, F&& f) const {
    const auto to = [](double v) { return static_cast<T>(v); };
    const GradientRule<T> gradient{to(step.gradient_scale), to(step.gradient_limit)};
    const double lr_scale = step.lr_scale * range.lr_scale, decay_scale = range.decay ? range.decay_scale : 0;
    if (const auto* s = std::get_if<Sgd>(&kind_)) {
      const T lr = to(s->lr * lr_scale), decay = to(s->weight_decay * decay_scale);
      if (s->momentum == 0) f(SgdUpdate<T>{lr, decay, gradient});
      else f(MomentumUpdate<T>{lr, to(s->momentum), decay, gradient, s->nesterov});
    } else {
      const AdamW& a = std::get<AdamW>(kind_);
      const double lr = a.lr * lr_scale, t = static_cast<double>(step.number);
      f(AdamWUpdate<T>{to(1 - lr * (a.weight_decay * decay_scale)), to(1 - a.beta1), to(a.beta2), to(1 - a.beta2),
                       to(a.epsilon), gradient, to(lr / (1 - std::pow(a.beta1, t))),
                       to(1 / std::sqrt(1 - std::pow(a.beta2, t)))});
    }
  }
  /// One update, as a loop over stretches of the flat buffers: calls apply(functor, elements) for each, where the
  /// functor takes w, g and as many states as state_count() says.
  /// Post:    stretches that are not in `ranges` are not asked for
  /// Errors:  Error if the step's number is below 1
  template <class T, class Apply>
  void update(const UpdateStep& step, std::span<const UpdateRange> ranges, Apply&& apply) const {
    if (step.number < 1)
      throw Error(error_text("update number " + std::to_string(step.number), "the first update has the number 1",
                             "count updates from 1"));
    for (const UpdateRange& r : ranges)
      visit_update<T>(step, r, [&](const auto& functor) { apply(functor, r.elements); });
  }
  /// The same on the host.
  /// Shapes:  parameters, gradients: the flat buffer; states: state_count() such buffers, one behind the other
  /// Post:    writes parameters and states within the ranges, nothing else; the same bits for any number of threads
  /// Errors:  Error if the buffers' sizes differ or the step's number is below 1
  template <class T>
  void update(const UpdateStep& step, std::span<const UpdateRange> ranges,
              std::type_identity_t<std::span<T>> parameters, std::span<const T> gradients,
              std::type_identity_t<std::span<T>> states) const {
    const auto elements = static_cast<Index>(parameters.size());
    if (gradients.size() != parameters.size() || static_cast<Index>(states.size()) != state_count() * elements)
      throw Error(error_text("update of " + std::to_string(elements) + " parameters with " +
                                 std::to_string(gradients.size()) + " gradients and " +
                                 std::to_string(states.size()) + " elements of state",
                             std::string(name()) + " needs as many gradients and " + std::to_string(state_count()) +
                                 " times as many elements of state",
                             "size the buffers by flat_elements and Optimizer::state_count"));
    update<T>(step, ranges, [&](const auto& functor, Range r) {
      host::update_elements(functor, parameters.data() + r.begin, gradients.data() + r.begin, state(states.data(), elements, r, 0),
                            state(states.data(), elements, r, 1), r.size(), step.threads);
    });
  }
  /// Where the elements `r` of state number `which` are; null if there is no such state.
  template <class T>
  T* state(T* states, Index elements, Range r, Index which) const {
    return which < state_count() ? states + which * elements + r.begin : nullptr;
  }
  friend bool operator==(const Optimizer&, const Optimizer&) = default;
 private:
  void check() const {
    std::visit([](const auto& k) { check(k); }, kind_);
  }
  static void require(bool good, std::string_view who, std::string_view field, double value, const char* rule,
                      const char* change) {
    if (good && std::isfinite(value)) return;
    throw Error(error_text(std::string(who) + " with ." + std::string(field) + " = " + detail::number_text(value),
                           rule, change));
  }
  static void check(const Sgd& s) {
    require(s.lr >= 0, s.name, "lr", s.lr, "a learning rate is finite and not negative", "try 0.05");
    require(s.momentum >= 0 && s.momentum < 1, s.name, "momentum", s.momentum, "momentum lies in [0, 1)", "try 0.9 or 0");
    require(s.weight_decay >= 0, s.name, "weight_decay", s.weight_decay, "weight decay is finite and not negative",
            "try 5e-4 or 0");
    require(!s.nesterov || s.momentum > 0, s.name, "momentum", s.momentum, "Nesterov's step needs momentum",
            "set .momentum or leave out .nesterov");
  }
  static void check(const AdamW& a) {
    require(a.lr >= 0, a.name, "lr", a.lr, "a learning rate is finite and not negative", "try 0.001");
    require(a.beta1 >= 0 && a.beta1 < 1, a.name, "beta1", a.beta1, "it lies in [0, 1)", "try 0.9");
    require(a.beta2 >= 0 && a.beta2 < 1, a.name, "beta2", a.beta2, "it lies in [0, 1)", "try 0.999");
    require(a.epsilon >= 0, a.name, "epsilon", a.epsilon, "it is finite and not negative", "try 1e-8");
    require(a.weight_decay >= 0, a.name, "weight_decay", a.weight_decay, "weight decay is finite and not negative",
            "try 0.01 or 0");
  }
  Kind kind_;
};
/// "Sgd{.lr = 0.05, .momentum = 0.9, .nesterov = false, .weight_decay = 0, .decay = everything}"
inline std::string to_string(const Optimizer& optimizer) {
  return std::visit(
      [](const auto& k) {
        std::string text;
        k.each_setting(k, [&](std::string_view name, const auto& value) {
          using Value = std::remove_cvref_t<decltype(value)>;
          text.append(text.empty() ? "{." : ", .").append(name).append(" = ");
          if constexpr (std::is_same_v<Value, bool>) text += value ? "true" : "false";
          else if constexpr (std::is_same_v<Value, Decay>) text += value == Decay::marked ? "marked" : "everything";
          else text += detail::number_text(value);
        });
        return std::string(k.name) + text + "}";
      },
      optimizer.kind());
}
inline std::ostream& operator<<(std::ostream& out, const Optimizer& optimizer) { return out << to_string(optimizer); }
}  // namespace lrcnn
