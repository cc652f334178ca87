#pragma once
// A network's parameters from files of tensors, and as tensors for files.
//
//     Trainer<ResNet50<10>, Rows, Onednn> trainer(input, Sgd{.lr = 0.01});
//     std::cout << to_string(load_weights(trainer, SafetensorsFile("resnet50.safetensors"), {.allow_missing = {"fc.*"}})) << "\n";
//     write_safetensors("mine.safetensors", weights_of(trainer).tensors);
//
// Names, shapes and the order of elements are PyTorch's (interop/tensor_names.hpp), so its load_state_dict() takes such a file, and lrcnn
// what its state_dict() holds. Running statistics of batch norms are tensors like others.
#include <lrcnn/interop/weight_match.hpp>
#include <cmath>
#include <memory>
namespace lrcnn {
/// Reads parameters from a file into a flat buffer that `layout` describes.
/// Post:    parameters that the report lists as loaded have the file's values, all others what they had
/// Errors:  DataError that lists everything that is missing, superfluous, of another shape or of a type that is not read; ShapeError if
///          `values` are too few; Error for a pattern of allow_missing that fits no parameter. Nothing has changed then.
///          DataError if the file cannot be read to its end: parameters before that place have the file's values then.
/// Cost:    one pass over the file's bytes; no memory but 256 KiB where types are converted
template <class T>
WeightReport read_weights(const TensorFile& file, std::span<const Parameter> layout, std::span<T> values, const WeightOptions& options = {}) {
  WeightReport report;
  const std::vector<std::size_t> tensor_of = detail::match_tensors(file, layout, options, report);
  for (const Parameter& p : layout) static_cast<void>(elements_of(p, values));   // before the first is changed
  for (std::size_t p = 0; p < layout.size(); ++p) {
    if (tensor_of[p] == detail::no_tensor) continue;
    const std::string& stored = file.tensors()[tensor_of[p]].type;
    const std::string_view wanted = type_name(tensor_type<T>);
    if (stored != wanted) ++report.converted[stored + " to " + std::string(wanted)];
    file.read(tensor_of[p], elements_of(layout[p], values));
  }
  return report;
}
/// Sets the parameters of a trainer from a file. Optimizer state and counts of steps stay as they are.
/// Errors:  as read_weights(), but after any of them the trainer is as it was
/// Cost:    memory: a copy of the parameters
template <class Trainer>
WeightReport load_weights(Trainer& trainer, const TensorFile& file, const WeightOptions& options = {}) {
  auto values = trainer.read_parameters();
  WeightReport report = read_weights(file, trainer.layout(), std::span(values), options);
  trainer.write_parameters(values);
  return report;
}
/// How parameters become tensors.
struct SaveOptions {
  std::string prefix{};   ///< before all names
  ParameterNaming name = own_name;
  std::optional<TensorType> type{};   ///< of the tensors; none: that of the parameters. Elements are rounded to nearest
  /// What num_batches_tracked of all batch norms says; PyTorch wants it to be there, and uses it only for momentum=None.
  std::int64_t batches = 0;
};
/// Tensors with their memory.
struct Weights {
  std::vector<NamedTensor> tensors{};
  std::shared_ptr<const void> memory{};   ///< what the tensors' bytes lie in, where it is not the caller's; copies share it
};
namespace detail {
/// The elements of `from` in another type. Errors: DataError if a finite one becomes infinite.
template <class To, class T>
void convert_parameter(const Parameter& p, std::span<const T> from, std::span<To> to) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = static_cast<To>(from[i]);
    if (std::isfinite(from[i]) && !std::isfinite(static_cast<double>(to[i])))
      throw DataError(error_text("parameter '" + p.name + "' has an element " + number_text(static_cast<double>(from[i])) + ", which " +
                                     std::string(type_name(tensor_type<To>)) + " cannot hold",
                                 "it holds numbers up to " + number_text(static_cast<double>(std::numeric_limits<To>::max())),
                                 "save in a type with a larger range"));
  }
}
/// All parameters in another type, in memory of their own.
template <class To, class T>
std::shared_ptr<std::vector<To>> converted_parameters(std::span<const Parameter> layout, std::span<const T> values) {
  auto all = std::make_shared<std::vector<To>>(values.size());
  for (const Parameter& p : layout) convert_parameter<To>(p, elements_of(p, values), elements_of(p, std::span(*all)));
  return all;
}
}   // namespace detail
/// The parameters of a network as tensors, for write_safetensors() and its like. `values` must outlive them, unless they are converted.
/// Shapes:  values: the flat buffer that parameters_of(table) describes
/// Errors:  ShapeError if `values` are too few; DataError if a number does not fit into SaveOptions::type
template <class T>
Weights weights_of(const Table& table, std::span<const T> values, const SaveOptions& options = {}) {
  const std::vector<Parameter> layout = parameters_of(table);
  const TensorType type = options.type.value_or(tensor_type<T>);
  Weights weights;
  const auto counter = std::make_shared<const std::int64_t>(options.batches);
  const auto add = [&]<class S>(std::span<const S> all) {
    for (const Parameter& p : layout) {
      const std::string name = options.prefix + options.name(p);
      weights.tensors.push_back({name, torch_shape(table, p, layout), type, std::as_bytes(elements_of(p, all))});
      if (name.ends_with("." + std::string(running_mean)))
        weights.tensors.push_back({other_tensor(name, batch_counter), {}, TensorType::i64, std::as_bytes(std::span(counter.get(), 1))});
    }
  };
  const auto convert = [&]<class S>(S) {
    const auto all = detail::converted_parameters<S>(layout, values);
    add(std::span<const S>(*all));
    weights.memory = std::make_shared<const std::pair<decltype(all), decltype(counter)>>(all, counter);
  };
  if (type == tensor_type<T>) add(values), weights.memory = counter;
  else if (type == TensorType::f64) convert(double{});
  else if (type == TensorType::f16) convert(float16{});
  else if (type == TensorType::bf16) convert(bfloat16{});
  else if (type == TensorType::f32) convert(float{});
  else throw Error(error_text("parameters are to be saved as I64", "parameters are F64, F32, F16 or BF16", "choose one of these"));
  return weights;
}
/// The same of a trainer, with a copy of its parameters. num_batches_tracked is the number of its steps.
/// Cost:    memory: the parameters, and once more in SaveOptions::type where that is another
template <class Trainer>
  requires requires(Trainer& trainer) { trainer.read_parameters(), trainer.plan().table; }
Weights weights_of(Trainer& trainer, SaveOptions options = {}) {
  auto values = trainer.read_parameters();
  using Values = decltype(values);
  const auto kept = std::make_shared<const Values>(std::move(values));
  options.batches = trainer.steps_done();
  Weights weights = weights_of(trainer.plan().table, std::span<const typename Values::value_type>(*kept), options);
  weights.memory = std::make_shared<const std::pair<decltype(kept), decltype(weights.memory)>>(kept, weights.memory);
  return weights;
}
}   // namespace lrcnn
