#pragma once
// Which tensor of a file is which parameter of a network, and what does not fit.
#include <lrcnn/interop/tensor_names.hpp>
#include <lrcnn/train/update_ranges.hpp>
#include <map>
#include <unordered_map>
namespace lrcnn {
/// How tensors and parameters are matched. Unless it is said otherwise, all have to fit.
struct WeightOptions {
  std::string prefix{};   ///< of the tensors' names: "module.". A tensor without it is none of the network's
  ParameterNaming name = own_name;
  /// Patterns as a ParameterRule has them ("fc.*"), of parameters that keep their values if the file does not have them, or has them in
  /// another shape: those of a new head.
  std::vector<std::string> allow_missing{};
  std::vector<std::string> allow_superfluous{};   ///< patterns of names in the file, of tensors that are left out
};
/// What came of loading. Names of parameters are the network's, names of tensors the file's.
struct WeightReport {
  std::vector<std::string> loaded{};          ///< parameters, running statistics included
  std::vector<std::string> missing{};         ///< parameters that kept their values
  std::vector<std::string> superfluous{};     ///< tensors that were left out
  std::map<std::string, Index> converted{};   ///< "F16 to F32": how many of the loaded ones
};
/// "161 tensors loaded, 161 of them converted from F16 to F32; 2 parameters kept their values: fc.weight, fc.bias; 1 tensor left out: ..."
inline std::string to_string(const WeightReport& report) {
  const auto names = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& name : list) text += (text.empty() ? ": " : ", ") + name;
    return text;
  };
  const auto counted = [](std::size_t count, std::string_view what) {
    return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
  };
  std::string text = counted(report.loaded.size(), "tensor") + " loaded";
  for (const auto& [types, count] : report.converted) text += ", " + std::to_string(count) + " of them converted from " + types;
  if (!report.missing.empty()) text += "; " + counted(report.missing.size(), "parameter") + " kept their values" + names(report.missing);
  if (!report.superfluous.empty()) text += "; " + counted(report.superfluous.size(), "tensor") + " left out" + names(report.superfluous);
  return text;
}
/// Rules that keep what was loaded as it is, so that only a new head is trained. TrainerOptions::rules takes them. Running statistics of a
/// norm in training mode are no optimizer's: FrozenBatchNorm keeps these.
inline std::vector<ParameterRule> freeze_loaded(const WeightReport& report, std::span<const Parameter> layout) {
  std::vector<ParameterRule> rules;
  for (const std::string& name : report.loaded)
    if (const Parameter* p = find_parameter(layout, name); p && !p->shape.running) rules.push_back({.pattern = name, .frozen = true});
  return rules;
}
namespace detail {
/// A list of what does not fit: "2 parameters are missing (a [3], b [4])".
class WeightFaults {
 public:
  /// Adds an item to the list of that kind. `one` and `many` say it of one and of several.
  void add(std::string_view one, std::string_view many, const std::string& item) {
    for (List& list : lists_)
      if (list.one == one) return static_cast<void>((list.items += ", " + item, ++list.count));
    lists_.push_back({one, many, item, 1});
  }
  /// Errors: DataError with all lists, if there are any
  void raise(const std::string& who) const {
    std::string what;
    for (const List& list : lists_)
      what += (what.empty() ? ": " : ", ") + std::to_string(list.count) + " " + std::string(list.count == 1 ? list.one : list.many) + " (" +
              list.items + ")";
    if (!lists_.empty())
      throw DataError(error_text(who + " does not fit this network" + what,
                                 "each parameter is there once, under its name and in its shape, and nothing else",
                                 "load it into the network that it is of, or say which parameters may be missing and which tensors may be left out"));
  }

 private:
  struct List {
    std::string_view one, many;
    std::string items;
    Index count;
  };
  std::vector<List> lists_;
};
inline bool fits_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return fits_pattern(name, pattern); });
}
/// Throws for a pattern that fits no parameter: a misspelt one would otherwise be strict without a word.
inline void check_missing_patterns(const WeightOptions& options, std::span<const Parameter> layout) {
  for (const std::string& pattern : options.allow_missing)
    if (std::none_of(layout.begin(), layout.end(), [&](const Parameter& p) { return fits_pattern(p.name, pattern); }))
      throw Error(error_text("the pattern '" + pattern + "' of parameters that may be missing fits none",
                             layout.empty() ? "there are no parameters" : "names are like '" + layout[0].name + "'",
                             "correct the pattern; '*' stands for any text"));
}
inline constexpr std::size_t no_tensor = static_cast<std::size_t>(-1);
/// The tensor of each parameter, no_tensor for those that keep their values; the rest goes to the report.
/// Errors: DataError that lists everything that does not fit; Error for a pattern that fits no parameter, and for one name given twice
inline std::vector<std::size_t> match_tensors(const TensorFile& file, std::span<const Parameter> layout, const WeightOptions& options,
                                              WeightReport& report) {
  check_missing_patterns(options, layout);
  std::unordered_map<std::string, std::size_t> of_name;   // a parameter's place by its name in files
  for (std::size_t p = 0; p < layout.size(); ++p)
    if (const auto [known, added] = of_name.emplace(options.name(layout[p]), p); !added)
      throw Error(
          error_text("parameters '" + layout[known->second].name + "' and '" + layout[p].name + "' are both called '" + known->first + "' in files",
                     "names are unique", "correct the function that gives the names"));
  std::vector<std::size_t> tensor_of(layout.size(), no_tensor);
  std::vector<char> refused(layout.size(), 0);   // its tensor is of another shape
  WeightFaults faults;
  const auto tensors = file.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const StoredTensor& tensor = tensors[i];
    const bool ours = tensor.name.starts_with(options.prefix);
    const std::string stem = ours ? tensor.name.substr(options.prefix.size()) : std::string();
    auto found = ours ? of_name.find(stem) : of_name.end();
    if (ours && found == of_name.end()) found = of_name.find(current_name(stem));
    if (found == of_name.end()) {
      const bool counter =
          ours && stem.ends_with("." + std::string(batch_counter)) && of_name.contains(current_name(other_tensor(stem, running_mean)));
      if (counter) continue;
      if (fits_any(tensor.name, options.allow_superfluous)) report.superfluous.push_back(tensor.name);
      else faults.add("tensor is superfluous", "tensors are superfluous", tensor.name + " " + shape_text(tensor.shape));
      continue;
    }
    const std::size_t p = found->second;
    const Parameter& parameter = layout[p];
    if (shortest_shape(tensor.shape) != shortest_shape(parameter.shape)) {
      refused[p] = 1;
      if (!fits_any(parameter.name, options.allow_missing))
        faults.add("parameter has another shape", "parameters have other shapes",
                   parameter.name + " " + shape_text(tensor.shape) + " instead of " + extents_text(parameter.shape));
    } else if (!readable_type(tensor.type)) {
      refused[p] = 1;
      faults.add("parameter is of a type other than F64, F32, F16 and BF16", "parameters are of types other than F64, F32, F16 and BF16",
                 parameter.name + " " + tensor.type);
    } else if (std::exchange(tensor_of[p], i) != no_tensor) {
      faults.add("parameter is there twice", "parameters are there twice", parameter.name);
    }
  }
  for (std::size_t p = 0; p < layout.size(); ++p) {
    if (tensor_of[p] != no_tensor) report.loaded.push_back(layout[p].name);
    else if (fits_any(layout[p].name, options.allow_missing)) report.missing.push_back(layout[p].name);
    else if (!refused[p]) faults.add("parameter is missing", "parameters are missing", layout[p].name + " " + extents_text(layout[p].shape));
  }
  faults.raise(file.description());
  return tensor_of;
}
}   // namespace detail
}   // namespace lrcnn
