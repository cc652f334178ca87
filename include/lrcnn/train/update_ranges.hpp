#pragma once
// Which elements of the flat buffer an update treats alike, and what changes from update to update.
#include <lrcnn/core/error.hpp>
#include <lrcnn/network/parameters.hpp>
#include <lrcnn/core/text.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace lrcnn {
/// Which parameters weight decay acts on.
enum class Decay {
  everything,   ///< as PyTorch does unless told otherwise
  marked,       ///< those whose ParameterShape::decay is true: weights, not biases
};
/// What changes from update to update.
struct UpdateStep {
  Index number = 1;            ///< 1 for the first update; AdamW's bias correction needs it
  double lr_scale = 1;         ///< the schedule's multiplier
  double gradient_scale = 1;   ///< gradients are multiplied by this first: clipping by norm, loss scaling, averaging
  double gradient_limit = std::numeric_limits<double>::infinity();   ///< then each is cut off at plus or minus this
  int threads = 1;                                                   ///< at most this many on the host; the result does not depend on it
};
/// A stretch of the flat buffer that is updated alike. What is in no stretch stays as it is.
struct UpdateRange {
  Range elements{};
  bool decay = true;
  double lr_scale = 1, decay_scale = 1;   ///< of its own, see ParameterRule
  Index missed = 0;                       ///< updates before this one that it had no part in
  const Parameter* parameter = nullptr;   ///< the tensor that it is; null: it may be several, or a part of one
  friend constexpr bool operator==(const UpdateRange&, const UpdateRange&) = default;
};
/// What is different for some parameters: frozen ones stay as they are and count in no norm; the optimizer's learning rate and
/// weight decay are multiplied for the others. Rules mean nothing to running statistics: no optimizer updates them.
struct ParameterRule {
  std::string pattern{};   ///< of names, '*' for any text: "conv1.*", "*.bias", "linear1.weight"
  bool frozen = false;
  double lr_scale = 1;
  double decay_scale = 1;
};
/// Whether a parameter's name fits the pattern of a ParameterRule: each '*' stands for any text, also for none; all else for itself.
inline bool fits_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') return !name.empty() && name[0] == pattern[0] && fits_pattern(name.substr(1), pattern.substr(1));
  return fits_pattern(name, pattern.substr(1)) || (!name.empty() && fits_pattern(name.substr(1), pattern));
}
/// The rule that holds for a parameter: the last one whose pattern fits its name, or one that changes nothing.
inline ParameterRule rule_of(const Parameter& parameter, std::span<const ParameterRule> rules) {
  ParameterRule rule;
  for (const ParameterRule& r : rules)
    if (fits_pattern(parameter.name, r.pattern)) rule = r;
  return rule;
}
/// The stretches that an optimizer updates: neighbours that are treated alike joined, or, with `join` = false, each parameter tensor by
/// itself, as the optimizer of a program's own sees them. `missed`: of each parameter, UpdateRange::missed; none: nothing was missed.
/// Pre:     parameters are ordered by offset; with `join` = false they live as long as the stretches, which point to them
/// Post:    each element of each parameter that is not frozen is in exactly one stretch, no frozen one is in any, and no running
///          statistic; elements of gaps may be in one or in none
/// Errors:  Error if a rule fits no parameter, or running statistics alone, or one of its numbers is negative or not finite
inline std::vector<UpdateRange> update_ranges(std::span<const Parameter> parameters, Decay decay, std::span<const ParameterRule> rules = {},
                                              bool join = true, std::span<const Index> missed = {}) {
  for (const ParameterRule& rule : rules) {
    const auto fits = [&](const Parameter& p) { return fits_pattern(p.name, rule.pattern); };
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
        throw Error(error_text("the rule for parameters '" + rule.pattern + "' multiplies by " + number_text(scale),
                               "learning rate and weight decay are multiplied by finite numbers that are not negative", "use 1 for no change"));
  }
  std::vector<UpdateRange> ranges;
  bool joins = false;   // nothing that stays lies between
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    const ParameterRule rule = rule_of(p, rules);
    if (rule.frozen || p.shape.running) {
      joins = false;
      continue;
    }
    const UpdateRange own{.elements = p.elements(),
                          .decay = decay == Decay::everything || p.shape.decay,
                          .lr_scale = rule.lr_scale,
                          .decay_scale = rule.decay_scale,
                          .missed = missed.empty() ? 0 : missed[i],
                          .parameter = join ? nullptr : &p};
    UpdateRange same = own;
    if (!ranges.empty()) same.elements = ranges.back().elements;
    if (joins && same == ranges.back()) ranges.back().elements.end = own.elements.end;
    else ranges.push_back(own);
    joins = join;
  }
  return ranges;
}
}   // namespace lrcnn
