#pragma once
// Updates that parameters have missed, because a rule has frozen them.
//
// AdamW corrects its averages by the number of updates that have gone into them. For a parameter that was frozen, and is freed when the training
// goes on from a file, these are fewer than those of the training; torch.optim counts for each parameter, too.
#include <lrcnn/core/text.hpp>
#include <lrcnn/train/training_format.hpp>
#include <lrcnn/train/update_ranges.hpp>
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace lrcnn {
class MissedUpdates {
 public:
  /// Takes what the notes of a training file say, where a training begins or goes on. Rules hold from then on.
  void begin(std::span<const Parameter> layout, std::span<const ParameterRule> rules, const TrainingState& state) {
    begun_ = state.updates;
    before_.assign(layout.size(), 0), frozen_.assign(layout.size(), false);
    for (std::size_t i = 0; i < layout.size(); ++i) {
      frozen_[i] = rule_of(layout[i], rules).frozen;
      if (const auto note = state.notes.find(key(layout[i])); note != state.notes.end())
        before_[i] = std::clamp<Index>(parse_number<Index>(note->second).value_or(0), 0, begun_);
    }
  }
  /// Of each parameter, before the training began or went on.
  std::span<const Index> counts() const { return before_; }
  /// Writes them into the notes of a training file, and takes away older ones.
  void write(std::span<const Parameter> layout, TrainingState& state) const {
    std::erase_if(state.notes, [](const auto& note) { return note.first.starts_with(title); });
    for (std::size_t i = 0; i < layout.size(); ++i)
      if (const Index missed = before_[i] + (frozen_[i] ? state.updates - begun_ : 0); missed > 0 && !layout[i].shape.running)
        state.notes[key(layout[i])] = std::to_string(missed);
  }

 private:
  static constexpr std::string_view title = "updates missed by ";
  static std::string key(const Parameter& p) { return std::string(title) + p.name; }
  std::vector<Index> before_;
  std::vector<bool> frozen_;
  Index begun_ = 0;   ///< updates of the training when it began or went on
};
}   // namespace lrcnn
