#pragma once
// From gradients to new parameters, by any optimizer.
//
// Parameters, gradients and optimizer states are flat buffers of one layout. An update by one of the library's optimizers is one fused
// pass over them: the arithmetic of one element is a functor without containers (backend/update.hpp), which a backend applies in a loop
// of its own. A program's own optimizer is given one parameter tensor at a time, in the host's memory (train/parameter_update.hpp).
#include <lrcnn/train/optimizer_settings.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
namespace lrcnn {
/// A setting of an optimizer, by name.
struct OptimizerSetting {
  std::string name;
  std::variant<double, bool, Decay> value;
  /// As training files keep it: false and Decay::everything are 0, true and Decay::marked 1.
  double number() const {
    return std::visit([](auto v) { return static_cast<double>(v); }, value);
  }
  friend bool operator==(const OptimizerSetting&, const OptimizerSetting&) = default;
};
namespace detail {
/// Calls f(functor) with an update's arithmetic for the elements of a stretch, see backend/update.hpp.
template <class T, class F>
void visit_update(const Sgd& sgd, const UpdateStep& step, const UpdateRange& range, F&& f) {
  const auto to = [](double v) { return static_cast<T>(v); };
  const GradientRule<T> gradient = gradient_rule_of<T>(step);
  const T lr = to(sgd.lr * lr_scale_of(step, range)), decay = to(sgd.weight_decay * decay_scale_of(range));
  if (sgd.momentum == 0) f(SgdUpdate<T>{lr, decay, gradient});
  else f(MomentumUpdate<T>{lr, to(sgd.momentum), decay, gradient, sgd.nesterov});
}
template <class T, class F>
void visit_update(const AdamW& a, const UpdateStep& step, const UpdateRange& range, F&& f) {
  const auto to = [](double v) { return static_cast<T>(v); };
  const double lr = a.lr * lr_scale_of(step, range), t = static_cast<double>(step.number - range.missed);
  f(AdamWUpdate<T>{to(1 - lr * (a.weight_decay * decay_scale_of(range))), to(1 - a.beta1), to(a.beta2), to(1 - a.beta2), to(a.epsilon),
                   gradient_rule_of<T>(step), to(lr / (1 - std::pow(a.beta1, t))), to(1 / std::sqrt(1 - std::pow(a.beta2, t)))});
}
/// An optimizer of any type, behind an Optimizer.
struct AnyOptimizer {
  virtual ~AnyOptimizer() = default;
  virtual std::string_view name() const = 0;
  virtual double lr() const = 0;
  virtual Decay decay() const = 0;
  virtual Index state_count() const = 0;
  virtual std::vector<OptimizerSetting> settings() const = 0;
  virtual bool built_in() const = 0;
  virtual bool equals(const AnyOptimizer& other) const = 0;
  virtual void check() const = 0;
  /// One of the same type with these settings, in the order of settings(); not checked.
  virtual std::shared_ptr<const AnyOptimizer> with(std::span<const OptimizerSetting> settings) const = 0;
  virtual void update(const ParameterUpdate<float>& update) const = 0;
  virtual void update(const ParameterUpdate<double>& update) const = 0;
};
template <class O>
struct OptimizerOf final : AnyOptimizer {
  O own;
  explicit OptimizerOf(const O& settings) : own(settings) {}
  std::string_view name() const override { return O::name; }
  double lr() const override { return own.lr; }
  Decay decay() const override { return own.decay; }
  Index state_count() const override { return own.state_count(); }
  bool built_in() const override { return BuiltInOptimizer<O>; }
  std::vector<OptimizerSetting> settings() const override {
    std::vector<OptimizerSetting> list;
    O::each_setting(own, [&](std::string_view setting, const auto& value) {
      using Value = std::remove_cvref_t<decltype(value)>;
      static_assert(std::same_as<Value, double> || std::same_as<Value, bool> || std::same_as<Value, Decay>,
                    "lrcnn: a setting of this optimizer is of another type than training files keep; a setting is a double, a bool or a Decay; "
                    "change the type of the field, or leave it out of each_setting");
      list.push_back({std::string(setting), value});
    });
    return list;
  }
  bool equals(const AnyOptimizer& other) const override {
    const auto* const same = dynamic_cast<const OptimizerOf*>(&other);
    return same != nullptr && same->own == own;
  }
  void check() const override {
    static_assert(
        !requires(O & o) { o.check(); } || requires(const O& o) { o.check(); },
        "lrcnn: an optimizer's check() is not const; it looks at settings and changes none; declare it const");
    if constexpr (requires { own.check(); }) own.check();
  }
  std::shared_ptr<const AnyOptimizer> with(std::span<const OptimizerSetting> settings) const override {
    O changed = own;
    std::size_t next = 0;
    O::each_setting(changed, [&](std::string_view, auto& value) { value = std::get<std::remove_cvref_t<decltype(value)>>(settings[next++].value); });
    return std::make_shared<const OptimizerOf>(changed);
  }
  void update(const ParameterUpdate<float>& update) const override { call(update); }
  void update(const ParameterUpdate<double>& update) const override { call(update); }

 private:
  template <class T>
  void call(const ParameterUpdate<T>& update) const {
    if constexpr (OwnOptimizer<O>) own.update(update);   // those of the library go by elements
    else static_cast<void>(update);
  }
};
/// An optimizer of a type that this program does not have, as a training file tells of it.
struct RecordedOptimizer final : AnyOptimizer {
  std::string title;
  std::vector<OptimizerSetting> list;
  Index states;
  RecordedOptimizer(std::string name, std::vector<OptimizerSetting> settings, Index state_count)
      : title(std::move(name)), list(std::move(settings)), states(state_count) {}
  std::string_view name() const override { return title; }
  double lr() const override {
    const auto found = std::ranges::find(list, "lr", &OptimizerSetting::name);
    return found == list.end() ? 0 : found->number();
  }
  Decay decay() const override { return Decay::everything; }
  Index state_count() const override { return states; }
  std::vector<OptimizerSetting> settings() const override { return list; }
  bool built_in() const override { return false; }
  bool equals(const AnyOptimizer& other) const override {
    const auto* const same = dynamic_cast<const RecordedOptimizer*>(&other);
    return same != nullptr && same->title == title && same->list == list && same->states == states;
  }
  void check() const override {}
  std::shared_ptr<const AnyOptimizer> with(std::span<const OptimizerSetting> settings) const override {
    return std::make_shared<const RecordedOptimizer>(title, std::vector<OptimizerSetting>(settings.begin(), settings.end()), states);
  }
  void update(const ParameterUpdate<float>&) const override { refuse(); }
  void update(const ParameterUpdate<double>&) const override { refuse(); }

 private:
  [[noreturn]] void refuse() const {
    throw Error(error_text("an update by " + title + ", which is known from a training file alone",
                           "a file keeps an optimizer's name and settings, and not its arithmetic", "give the trainer an optimizer of its type"));
  }
};
}   // namespace detail
/// Any optimizer as a value. Regular, printable; holds settings only, the states belong to the caller. Copies share what they hold,
/// which nobody changes.
class Optimizer {
 public:
  /// Errors: Error if a setting is not finite or out of its range, if settings have no names or one name is another's too, if state_count()
  ///         is negative, or if an optimizer of the program's own has the name of one of the library's.
  template <class O>
    requires(!std::same_as<O, Optimizer> && OptimizerSettings<O>)
  Optimizer(const O& settings) : Optimizer(std::make_shared<const detail::OptimizerOf<O>>(settings)) {}
  Optimizer(const Optimizer&) = default;   // and no moving: an Optimizer is never empty
  Optimizer& operator=(const Optimizer&) = default;
  /// One that a training file tells of and that this program has no type for: it can be shown and compared, and its update is an Error.
  static Optimizer recorded(std::string name, std::vector<OptimizerSetting> settings, Index state_count) {
    return Optimizer(std::make_shared<const detail::RecordedOptimizer>(std::move(name), std::move(settings), state_count));
  }
  /// Its settings if they are of this type, as std::get_if gives them; null otherwise. Lives as long as this optimizer and its copies.
  template <class O>
  const O* get_if() const {
    const auto* const found = dynamic_cast<const detail::OptimizerOf<O>*>(any_.get());
    return found == nullptr ? nullptr : &found->own;
  }
  std::string_view name() const { return any_->name(); }
  double lr() const { return any_->lr(); }
  Decay decay() const { return any_->decay(); }
  /// State buffers, each of as many elements as the parameters.
  Index state_count() const { return any_->state_count(); }
  /// In the order of each_setting().
  std::vector<OptimizerSetting> settings() const { return any_->settings(); }
  /// One of the same type with other settings. Pre: names and types of values are those of settings(), in their order.
  /// Errors: as the constructor
  Optimizer with(std::span<const OptimizerSetting> settings) const { return Optimizer(any_->with(settings)); }
  /// Whether it is the library's, whose arithmetic every backend has; a program's own works on the host.
  bool built_in() const { return any_->built_in(); }
  /// Errors: BackendError unless it is the library's
  void require_built_in() const {
    if (!built_in())
      throw BackendError(error_text("the optimizer " + std::string(name()) + " is the program's own, and has no function for a GPU",
                                    "its update works on the host's memory", "use Sgd or AdamW, or train on a CPU backend"));
  }
  /// The stretches that it updates, see lrcnn::update_ranges.
  std::vector<UpdateRange> update_ranges(std::span<const Parameter> parameters, std::span<const ParameterRule> rules = {},
                                         std::span<const Index> missed = {}) const {
    return lrcnn::update_ranges(parameters, decay(), rules, built_in(), missed);
  }
  /// Calls f(functor) with this update's arithmetic for the elements of a stretch, on the host or on a device.
  /// Errors:  BackendError unless it is the library's
  template <class T, class F>
  void visit_update(const UpdateStep& step, const UpdateRange& range, F&& f) const {
    require_built_in();
    if (const Sgd* sgd = get_if<Sgd>()) detail::visit_update<T>(*sgd, step, range, f);
    else detail::visit_update<T>(*get_if<AdamW>(), step, range, f);
  }
  /// One update, as a loop over stretches of the flat buffers: calls apply(functor, elements) for each, where the
  /// functor takes w, g and as many states as state_count() says.
  /// Post:    stretches that are not in `ranges` are not asked for
  /// Errors:  Error if the step's number is below 1; BackendError unless it is one of the library's optimizers
  template <class T, class Apply>
  void update(const UpdateStep& step, std::span<const UpdateRange> ranges, Apply&& apply) const {
    check_number(step);
    for (const UpdateRange& r : ranges) visit_update<T>(step, r, [&](const auto& functor) { apply(functor, r.elements); });
  }
  /// The same on the host, by any optimizer.
  /// Shapes:  parameters, gradients: the flat buffer; states: state_count() such buffers, one behind the other
  /// Post:    writes parameters and states within the ranges, nothing else; the same bits for any number of threads
  /// Errors:  Error if the buffers' sizes differ, the step's number is below 1, or a program's own optimizer is given ranges that are
  ///          not one parameter each, see update_ranges()
  template <class T>
  void update(const UpdateStep& step, std::span<const UpdateRange> ranges, std::type_identity_t<std::span<T>> parameters,
              std::span<const T> gradients, std::type_identity_t<std::span<T>> states) const {
    const auto elements = static_cast<Index>(parameters.size());
    if (gradients.size() != parameters.size() || static_cast<Index>(states.size()) != state_count() * elements)
      throw Error(
          error_text("update of " + std::to_string(elements) + " parameters with " + std::to_string(gradients.size()) + " gradients and " +
                         std::to_string(states.size()) + " elements of state",
                     std::string(name()) + " needs as many gradients and " + std::to_string(state_count()) + " times as many elements of state",
                     "size the buffers by flat_elements and Optimizer::state_count"));
    if (!built_in()) return update_parameters<T>(step, ranges, parameters, gradients, states);
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
  friend bool operator==(const Optimizer& a, const Optimizer& b) { return a.any_->equals(*b.any_); }

 private:
  explicit Optimizer(std::shared_ptr<const detail::AnyOptimizer> any) : any_(std::move(any)) { check(); }
  static void check_number(const UpdateStep& step) {
    if (step.number < 1)
      throw Error(error_text("update number " + std::to_string(step.number), "the first update has the number 1", "count updates from 1"));
  }
  void check() const {
    any_->check();
    const std::string who(name());
    if (who.empty())
      throw Error(error_text("an optimizer has no name", "training files tell optimizers apart by their names", "give its type a name"));
    if (!built_in() && (who == Sgd::name || who == AdamW::name))
      throw Error(error_text("an optimizer of the program's own is called " + who,
                             "training files tell optimizers apart by their names, and "
                             "that is one of the library's",
                             "give its type a name of its own"));
    const std::vector<OptimizerSetting> list = settings();
    for (const OptimizerSetting& s : list) {
      if (s.name.empty() || std::ranges::count(list, s.name, &OptimizerSetting::name) > 1)
        throw Error(error_text(who + " has " + (s.name.empty() ? "a setting without a name" : "two settings '" + s.name + "'"),
                               "training files tell settings apart by their names", "give each its own in each_setting"));
      check_setting(true, who, s.name, s.number(), "a setting is a finite number", "correct it");
    }
    check_setting(lr() >= 0, who, "lr", lr(), "a learning rate is finite and not negative", "try 0.001");
    if (state_count() < 0)
      throw Error(error_text(who + " has a state_count() of " + std::to_string(state_count()),
                             "it is the number of buffers that an update keeps, and not negative", "return 0 if it keeps none"));
  }
  /// An update by a program's own optimizer, tensor after tensor.
  template <class T>
  void update_parameters(const UpdateStep& step, std::span<const UpdateRange> ranges, std::span<T> parameters, std::span<const T> gradients,
                         std::span<T> states) const {
    check_number(step);
    const auto elements = static_cast<Index>(parameters.size());
    for (const UpdateRange& r : ranges) {
      if (r.parameter == nullptr)
        throw Error(error_text("an update by " + std::string(name()) + " of elements that are not told to be one parameter",
                               "the optimizer of a program's own sees each parameter tensor by itself", "take ranges from Optimizer::update_ranges"));
      any_->update(ParameterUpdate<T>(name(), step, r, parameters.data() + r.elements.begin, gradients.data() + r.elements.begin,
                                      states.data() + r.elements.begin, elements, state_count()));
    }
  }
  std::shared_ptr<const detail::AnyOptimizer> any_;
};
/// "Sgd{.lr = 0.05, .momentum = 0.9, .nesterov = false, .weight_decay = 0, .decay = everything}"
inline std::string to_string(const Optimizer& optimizer) {
  std::string text;
  for (const auto& [name, value] : optimizer.settings()) {
    text.append(text.empty() ? "{." : ", .").append(name).append(" = ");
    if (const bool* flag = std::get_if<bool>(&value)) text += *flag ? "true" : "false";
    else if (const Decay* decay = std::get_if<Decay>(&value)) text += *decay == Decay::marked ? "marked" : "everything";
    else text += number_text(std::get<double>(value));
  }
  return std::string(optimizer.name()) + (text.empty() ? "{" : text) + "}";
}
inline std::ostream& operator<<(std::ostream& out, const Optimizer& optimizer) { return out << to_string(optimizer); }
}   // namespace lrcnn
