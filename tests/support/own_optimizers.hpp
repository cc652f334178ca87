#pragma once
// Optimizers as a program would write them: one that works element by element, and one that needs norms of whole parameters.
#include <lrcnn/train/optimizer.hpp>
namespace lrcnn::testing {
/// v = rho * v + (1 - rho) * g^2, w -= lr * g / (sqrt(v) + epsilon), with momentum b = momentum * b + g / (sqrt(v) + epsilon), w -= lr * b.
struct RmsProp {
  double lr = 0.01;
  double rho = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  Decay decay = Decay::everything;
  static constexpr std::string_view name = "RmsProp";
  constexpr Index state_count() const { return momentum != 0 ? 2 : 1; }
  template <class Self, class F>
  static constexpr void each_setting(Self& s, F f) {
    f("lr", s.lr), f("rho", s.rho), f("epsilon", s.epsilon), f("momentum", s.momentum), f("weight_decay", s.weight_decay), f("decay", s.decay);
  }
  void check() const { check_setting(rho >= 0 && rho < 1, name, "rho", rho, "it lies in [0, 1)", "try 0.99"); }
  template <class T>
  void update(const ParameterUpdate<T>& u) const {
    const T rate = static_cast<T>(lr * u.lr_scale()), keep = static_cast<T>(rho), rest = static_cast<T>(1 - rho), eps = static_cast<T>(epsilon),
            heavy = static_cast<T>(momentum), decays = static_cast<T>(weight_decay * u.decay_scale());
    const auto direction = [=](T w, T g, T& v) {
      g += decays * w;
      v = keep * v + rest * g * g;
      return g / (std::sqrt(v) + eps);
    };
    if (momentum == 0) return u.for_each_element([=](T& w, T g, T& v) { w -= rate * direction(w, g, v); });
    u.for_each_element([=](T& w, T g, T& v, T& b) {
      b = heavy * b + direction(w, g, v);
      w -= rate * b;
    });
  }
  friend constexpr bool operator==(const RmsProp&, const RmsProp&) = default;
};
/// Momentum with a learning rate of each parameter's own: trust * ||w|| / (||g|| + weight_decay * ||w||) times lr, where weight decay acts.
/// Source: You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017
struct Lars {
  double lr = 0.1;
  double momentum = 0.9;
  double trust = 0.001;
  double weight_decay = 0;
  bool nesterov = false;
  Decay decay = Decay::marked;
  static constexpr std::string_view name = "Lars";
  constexpr Index state_count() const { return 1; }
  template <class Self, class F>
  static constexpr void each_setting(Self& s, F f) {
    f("lr", s.lr), f("momentum", s.momentum), f("trust", s.trust), f("weight_decay", s.weight_decay), f("nesterov", s.nesterov);
    f("decay", s.decay);
  }
  template <class T>
  void update(const ParameterUpdate<T>& u) const {
    const double decays = weight_decay * u.decay_scale(), length = u.values_norm(), down = u.gradient_norm() + decays * length;
    const double own = u.decay_scale() > 0 && length > 0 && down > 0 ? trust * length / down : 1;
    const T rate = static_cast<T>(lr * u.lr_scale() * own), heavy = static_cast<T>(momentum), shrink = static_cast<T>(decays);
    const bool ahead = nesterov;
    u.for_each_element([=](T& w, T g, T& v) {
      const T change = rate * (g + shrink * w);
      v = heavy * v + change;
      w -= ahead ? change + heavy * v : v;
    });
  }
  friend constexpr bool operator==(const Lars&, const Lars&) = default;
};
static_assert(OptimizerSettings<RmsProp> && OptimizerSettings<Lars> && OptimizerSettings<Sgd> && OptimizerSettings<AdamW>);
static_assert(!OptimizerSettings<Optimizer> && !OptimizerSettings<int>);
}   // namespace lrcnn::testing
