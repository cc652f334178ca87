#pragma once
// A training's whole state in one file, so that another process continues it bit by bit.
//
// Reading checks everything, to the last byte and name, before the caller's buffers are touched. Writing goes to a
// new file that then takes the old one's place, so that a crash loses neither. The layout: training_format.hpp.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/train/training_format.hpp>
namespace lrcnn {
namespace detail {
inline std::string parameter_text(std::span<const Parameter> list, std::size_t i) {
  return i < list.size() ? "'" + list[i].name + "' " + extents_text(list[i].shape) : "no parameter";
}
/// Throws and names the first difference unless file and network have the same parameters.
inline void check_network(const TrainingContents& file, const std::string& who, std::string_view fingerprint, std::span<const Parameter> parameters) {
  const auto other = [&](const std::string& difference, const char* rule = "names and shapes of all parameters must be the same") {
    return DataError(error_text(who + " is of another network: " + difference, rule, "load it into the network that saved it"));
  };
  for (std::size_t i = 0; i < std::max(parameters.size(), file.parameters.size()); ++i)
    if (i >= parameters.size() || i >= file.parameters.size() || parameters[i].name != file.parameters[i].name ||
        parameters[i].shape.extents != file.parameters[i].shape.extents)
      throw other("parameter " + std::to_string(i + 1) + " is " + parameter_text(file.parameters, i) + " in the file and " +
                  parameter_text(parameters, i) + " in this network");
  if (file.state.fingerprint != fingerprint)
    throw other("the parameters are the same, but what is between them is not (fingerprint '" + file.state.fingerprint + "' in the file, '" +
                    std::string(fingerprint) + "' here)",
                "layers without parameters, and the options of all layers, must be the same, too");
}
/// Errors:  DataError if a training that has just begun would put itself in the place of another's steps, or of something else than a training; no
///          file, an empty one, or one without steps may be there
inline void check_replaceable(const std::filesystem::path& path) {
  std::error_code not_told;
  if (!std::filesystem::exists(path, not_told) || std::filesystem::file_size(path, not_told) == 0) return;
  TrainingState there;
  try {
    there = read_training_contents(path).state;
  } catch (const DataError& e) {
    throw DataError(error_text("'" + path.string() + "' is to become the file of a training, and is there as something else (" + e.what() + ")",
                               "a training file takes the place of no other file", "name another file, or take this one away"));
  }
  if (there.step == 0) return;
  throw DataError(error_text(
      "training file '" + path.string() + "' holds a training of " + std::to_string(there.step) + " steps, and fit() begins one anew",
      "what was trained before is not lost unawares", "load() the file before fit() to go on with it, name another file, or take this one away"));
}
}   // namespace detail
/// Writes a training's state to a file, which is replaced atomically.
/// Shapes:  parameters: the flat buffer that `layout` describes; states: state_count() such buffers, one after
///          another
/// Errors:  DataError if the file cannot be written (the old one is still there); ShapeError if a buffer is too small
/// Cost:    memory: the size of the file
template <class T>
void save_training_file(const std::filesystem::path& path, const TrainingState& state, std::span<const Parameter> layout,
                        std::span<const T> parameters, std::span<const T> states) {
  const auto state_count = static_cast<std::size_t>(state.optimizer.state_count());
  if (states.size() != state_count * parameters.size())
    throw ShapeError(error_text(
        "saving " + std::to_string(states.size()) + " elements of optimizer state for " + std::to_string(parameters.size()) + " parameters",
        std::string(state.optimizer.name()) + " has " + std::to_string(state_count) + " states, each of the size of the parameters",
        "pass all states, one after another"));
  detail::ByteWriter out;
  out.bytes().reserve(static_cast<std::size_t>(parameter_elements(layout)) * sizeof(T) * (1 + state_count) + (std::size_t{1} << 16));
  out.numbers(detail::training_magic.data(), detail::training_magic.size());
  out.number(detail::training_format);
  out.number(std::uint64_t{0});   // the size, known at the end
  out.text(state.library_version), out.text(state.fingerprint), out.text(detail::element_name<T>());
  out.count(layout.size());
  for (const Parameter& p : layout) {
    out.text(p.name);
    out.numbers(p.shape.extents.data(), p.shape.extents.size());
  }
  const std::vector<OptimizerSetting> settings = state.optimizer.settings();
  out.text(state.optimizer.name()), out.count(settings.size());
  for (const OptimizerSetting& setting : settings) out.text(setting.name), out.number(setting.number());
  out.count(state_count);
  out.number(state.step), out.number(state.updates), out.number(state.epoch), out.number(state.batch);
  out.number(state.seed);
  out.number(state.metrics.loss_sum), out.number(state.metrics.images), out.number(state.metrics.correct);
  out.number(state.metrics.weight);
  out.count(state.notes.size());
  for (const auto& [key, value] : state.notes) out.text(key), out.text(value);
  for (std::size_t i = 0; i <= state_count; ++i)
    for (const Parameter& p : layout) {
      const auto values = elements_of(p, i == 0 ? parameters : states.subspan((i - 1) * parameters.size(), parameters.size()));
      out.numbers(values.data(), values.size());
    }
  const std::uint64_t size = out.bytes().size() + 4;
  detail::copy_little_endian(out.bytes().data() + 12, reinterpret_cast<const std::byte*>(&size), 1, 8);
  out.number(crc32c(out.bytes()));
  write_file_atomically(path, out.bytes());
}
/// Reads a training's state from a file into the caller's buffers.
/// Shapes:  as in save_training_file; `optimizer` is the one that shall continue, its settings may differ
/// Post:    values and returned state are bit for bit what was saved; gaps of the buffers stay as they are
/// Errors:  DataError if the file is missing, cut, damaged, no training file, of another version, network, element
///          type or optimizer; ShapeError if a buffer is too small. After an error the buffers are as they were.
/// Cost:    memory: the size of the file
template <class T>
TrainingState load_training_file(const std::filesystem::path& path, std::string_view fingerprint, std::span<const Parameter> layout,
                                 const Optimizer& optimizer, std::span<T> parameters, std::span<T> states) {
  const std::string who = "training file '" + path.string() + "'";
  detail::TrainingContents file = detail::read_training_contents(path, &optimizer);
  detail::check_network(file, who, fingerprint, layout);
  if (file.element != detail::element_name<T>())
    throw DataError(error_text(who + " holds " + file.element + " values", "this training computes in " + std::string(detail::element_name<T>()),
                               "load it into a Trainer of the file's element type"));
  const auto state_count = static_cast<std::size_t>(optimizer.state_count());
  if (file.state.optimizer.name() != optimizer.name() || file.states != optimizer.state_count())
    throw DataError(error_text(who + " was saved with " + to_string(file.state.optimizer),
                               "this training has " + to_string(optimizer) + ", whose states differ", "continue with the optimizer of the file"));
  if (states.size() != state_count * parameters.size() || static_cast<Index>(parameters.size()) < flat_elements(layout))
    throw ShapeError(error_text(
        "loading " + who + " into " + std::to_string(parameters.size()) + " parameters and " + std::to_string(states.size()) + " elements of state",
        "the network has " + std::to_string(flat_elements(layout)) + " and its optimizer " + std::to_string(state_count) + " states of that size",
        "size the buffers by flat_elements and Optimizer::state_count"));
  const std::byte* from = file.bytes.data() + file.values;
  for (std::size_t i = 0; i <= state_count; ++i)
    for (const Parameter& p : layout) {
      const auto values = elements_of(p, i == 0 ? parameters : states.subspan((i - 1) * parameters.size(), parameters.size()));
      detail::copy_little_endian(reinterpret_cast<std::byte*>(values.data()), from, values.size(), sizeof(T));
      from += values.size_bytes();
    }
  return file.state;
}
/// What a training file says of itself, without a network: for tools and messages.
struct TrainingFileInfo {
  TrainingState state;
  std::string element;                 ///< "float32" or "float64"
  std::vector<Parameter> parameters;   ///< names and extents; offsets as they lie in the file
};
/// Of an optimizer that is not the library's it tells name and settings; its updates are Errors, see Optimizer::recorded().
/// Errors: DataError as load_training_file, but for what concerns a network.
inline TrainingFileInfo inspect_training_file(const std::filesystem::path& path) {
  auto file = detail::read_training_contents(path);
  return {std::move(file.state), std::move(file.element), std::move(file.parameters)};
}
}   // namespace lrcnn
