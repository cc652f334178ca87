#pragma once
// What an optimizer is: a type that holds its settings. Those of the library, Sgd and AdamW, and what is asked of others.
//
// Formulas and defaults are those of torch.optim.SGD and torch.optim.AdamW. States start as zeros. PyTorch starts SGD's momentum with the
// first gradient, which is what zeros lead to.
#include <lrcnn/train/parameter_update.hpp>
#include <concepts>
#include <type_traits>
namespace lrcnn {
/// Errors:  Error, which says what the rule is and what to try, unless `good` holds and the setting is finite
inline void check_setting(bool good, std::string_view optimizer, std::string_view setting, double value, std::string_view rule,
                          std::string_view change) {
  if (good && std::isfinite(value)) return;
  throw Error(error_text(std::string(optimizer) + " with ." + std::string(setting) + " = " + number_text(value), rule, change));
}
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
  /// Errors: Error if a setting is not finite or out of its range.
  void check() const {
    check_setting(lr >= 0, name, "lr", lr, "a learning rate is finite and not negative", "try 0.05");
    check_setting(momentum >= 0 && momentum < 1, name, "momentum", momentum, "momentum lies in [0, 1)", "try 0.9 or 0");
    check_setting(weight_decay >= 0, name, "weight_decay", weight_decay, "weight decay is finite and not negative", "try 5e-4 or 0");
    check_setting(!nesterov || momentum > 0, name, "momentum", momentum, "Nesterov's step needs momentum", "set .momentum or leave out .nesterov");
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
  /// Errors: Error if a setting is not finite or out of its range.
  void check() const {
    check_setting(lr >= 0, name, "lr", lr, "a learning rate is finite and not negative", "try 0.001");
    check_setting(beta1 >= 0 && beta1 < 1, name, "beta1", beta1, "it lies in [0, 1)", "try 0.9");
    check_setting(beta2 >= 0 && beta2 < 1, name, "beta2", beta2, "it lies in [0, 1)", "try 0.999");
    check_setting(epsilon >= 0, name, "epsilon", epsilon, "it is finite and not negative", "try 1e-8");
    check_setting(weight_decay >= 0, name, "weight_decay", weight_decay, "weight decay is finite and not negative", "try 0.01 or 0");
  }
  friend constexpr bool operator==(const AdamW&, const AdamW&) = default;
};
namespace detail {
/// Stands for what each_setting() calls.
struct SettingVisitor {
  template <class Value>
  void operator()(std::string_view, Value&) const {}
};
template <class O>
concept BuiltInOptimizer = std::same_as<O, Sgd> || std::same_as<O, AdamW>;
template <class O>
concept OwnOptimizer = requires(const O& o, const ParameterUpdate<float>& in_float, const ParameterUpdate<double>& in_double) {
  o.update(in_float);
  o.update(in_double);
};
}   // namespace detail
/// A type that a trainer takes as its optimizer: a value with settings, as Sgd and AdamW are.
///     name                   for people and for training files; no other optimizer's
///     lr                     the learning rate, a double that is not negative
///     decay                  a Decay: which parameters weight decay acts on
///     state_count()          buffers of the parameters' size that the update keeps from step to step
///     each_setting(self, f)  calls f(name, field) for each field that is a double, a bool or a Decay; training files keep these alone
///     operator==             whether all settings are equal
///     check()                throws an Error (see check_setting) if a setting is out of its range; may be left out, finite they are in any case
///     update(u)              updates one parameter tensor on the host, for const ParameterUpdate<float>& and <double>&; those of the library
///                            have functors of an element instead (backend/update.hpp), which devices have, too
template <class O>
concept OptimizerSettings = requires(const O& o, O& to_change) {
  { O::name } -> std::convertible_to<std::string_view>;
  { o.lr } -> std::same_as<const double&>;
  { o.decay } -> std::same_as<const Decay&>;
  { o.state_count() } -> std::convertible_to<Index>;
  O::each_setting(o, detail::SettingVisitor{});
  O::each_setting(to_change, detail::SettingVisitor{});
}
&&(detail::BuiltInOptimizer<O> ||
   detail::OwnOptimizer<O>)&&std::equality_comparable<O>&& std::copyable<O>;   // last, because they ask for O's conversions, to Optimizer too
}   // namespace lrcnn
