#pragma once
// One pass over a network's policies: their steps take turns, so that what slows the machine down meets all of them, and
// medians are compared.
//
// A step is forward and backward without an update, on He-initialised parameters and on real numbers: normally
// distributed ones, or the images of a data set in the folder that LRCNN_DATA names, enlarged to the network's input.
#include "../examples/cpu_backend.hpp"
#include "cases.hpp"
#include "convolutions.hpp"
#include <lrcnn/exec/executor.hpp>
#include <lrcnn/exec/resident.hpp>
#include <lrcnn/train/initializer.hpp>
#include <chrono>
#include <memory>
#include <optional>
namespace bench {
/// The middle one, or the mean of the two in the middle.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}
/// Images for a network's input, and where they come from.
struct Images {
  std::vector<float> values;
  std::vector<std::int32_t> labels;   ///< of images, or of the pixels of a network's output that is a map
  std::string source;
};
Images make_images(const Input& input, const Shape& output);
/// What a policy has come to.
struct Measured {
  Index planned_bytes = 0;
  Index arena_bytes = 0;
  Index growth_bytes = 0;        ///< of the resident set during a step; -1 if the system does not say
  std::vector<double> seconds;   ///< of each round
  std::vector<double> outside;   ///< share of it that was not spent in convolutions
  double predicted = 0;          ///< seconds, from costs that were measured before; 0: not asked for
};
class NetworkPass {
 public:
  explicit NetworkPass(const Case& c) : case_(c), table_(make_table(c.layers, c.input)) {}
  /// Measures the column and the policies so named, once. `predicts`: measures costs first, and what they foretell for each policy.
  void run(const std::vector<std::string>& wanted, int threads, int rounds, bool predicts);
  bool done() const { return !measured_.empty(); }
  const Measured& measured(const std::string& policy) const { return *measured_[index(policy)]; }
  /// Seconds of the network's convolutions alone, of each round, where column-direct is measured.
  const std::vector<double>& convolutions() const { return convolutions_; }
  const Case& of() const { return case_; }

 private:
  std::size_t index(const std::string& policy) const {
    for (std::size_t i = 0; i < case_.policies.size(); ++i)
      if (case_.policies[i].name == policy) return i;
    return 0;
  }
  const Case& case_;
  Table table_;
  std::vector<std::optional<Measured>> measured_;
  std::vector<double> convolutions_;
};
}   // namespace bench
