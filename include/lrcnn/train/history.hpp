#pragma once
// What each epoch came to, as a table that spreadsheets and scripts read.
//
// The file is rewritten as a whole after every epoch and replaced atomically, so it is complete at any moment.
// Numbers are written with as many digits as it takes to read back the same value.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <lrcnn/core/read_file.hpp>
#include <lrcnn/core/text.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
namespace lrcnn {
/// One epoch. What was not measured is empty.
struct EpochRecord {
  Index epoch = 0;   ///< from 1
  Index steps = 0;   ///< steps of all epochs so far
  double lr = 0;     ///< of the last step
  double train_loss = 0;
  double train_accuracy = 0;   ///< in [0, 1]
  std::optional<double> test_loss{};
  std::optional<double> test_accuracy{};
  double seconds = 0;   ///< of this epoch
  Index planned_peak_bytes = 0;
  friend bool operator==(const EpochRecord&, const EpochRecord&) = default;
};
namespace detail {
/// Calls f(column name, member) for each column in the order of the file.
template <class Record, class F>
void each_column(Record& r, F f) {
  f("epoch", r.epoch), f("steps", r.steps), f("lr", r.lr);
  f("train_loss", r.train_loss), f("train_accuracy", r.train_accuracy);
  f("test_loss", r.test_loss), f("test_accuracy", r.test_accuracy);
  f("seconds", r.seconds), f("planned_peak_bytes", r.planned_peak_bytes);
}
inline std::string field_text(Index value) { return std::to_string(value); }
inline std::string field_text(double value) { return number_text(value); }
inline std::string field_text(const std::optional<double>& value) { return value ? number_text(*value) : ""; }
template <class Number>
bool parse_field(std::string_view text, Number& value) {
  const auto parsed = parse_number<Number>(text);
  value = parsed.value_or(Number{});
  return parsed.has_value();
}
inline bool parse_field(std::string_view text, std::optional<double>& value) {
  value = parse_number<double>(text);
  return value.has_value() || text.empty();
}
}   // namespace detail
/// The header line of a history.
inline std::string history_header() {
  EpochRecord record;
  std::string line;
  detail::each_column(record, [&](std::string_view name, const auto&) { line.append(line.empty() ? "" : ",").append(name); });
  return line;
}
/// The history as CSV: a header, one line per epoch, lines end in '\n'.
/// Post:    parse_history(history_csv(records)) == records (but NaN, which equals nothing, comes back as NaN)
inline std::string history_csv(std::span<const EpochRecord> records) {
  std::string text = history_header() + '\n';
  for (const EpochRecord& r : records) {
    std::string line;
    bool first = true;
    detail::each_column(r, [&](std::string_view, const auto& value) {
      line.append(first ? "" : ",").append(detail::field_text(value));
      first = false;
    });
    text += line + '\n';
  }
  return text;
}
/// Reads what history_csv wrote; '\r' at line ends and a missing last line end do no harm.
/// Errors:  DataError that names the line and the column
inline std::vector<EpochRecord> parse_history(std::string_view text, std::string_view name = "history") {
  std::vector<EpochRecord> records;
  for (Index line_number = 1; !text.empty() || line_number == 1; ++line_number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string where = "'" + std::string(name) + "', line " + std::to_string(line_number);
    if (line_number == 1) {
      if (line != history_header())
        throw DataError(
            error_text(where + ": not the header of a history", "it must be " + history_header(), "name a file that write_history wrote"));
      continue;
    }
    EpochRecord record;
    bool more = true;
    detail::each_column(record, [&](std::string_view column, auto& value) {
      const std::string_view field = line.substr(0, line.find(','));
      if (!more || !detail::parse_field(field, value))
        throw DataError(error_text(where + ": column " + std::string(column) + " holds '" + std::string(field) + "'",
                                   std::is_same_v<decltype(value), Index&> ? "it must be a whole number" : "it must be a number",
                                   "restore the line, or delete it"));
      more = field.size() < line.size();
      line.remove_prefix(std::min(line.size(), field.size() + 1));
    });
    if (more) throw DataError(error_text(where + ": has more fields than the header", "each column has one field", "restore the line, or delete it"));
    records.push_back(record);
  }
  return records;
}
/// Writes the history to a file, which is replaced atomically. Errors: DataError if it cannot be written.
inline void write_history(const std::filesystem::path& path, std::span<const EpochRecord> records) {
  const std::string text = history_csv(records);
  write_file_atomically(path, std::as_bytes(std::span(text)));
}
/// Errors: DataError if the file cannot be read or parsed.
inline std::vector<EpochRecord> read_history(const std::filesystem::path& path) {
  const auto bytes = detail::bytes_of_file(path, "history");
  return parse_history({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}
namespace detail {
/// Errors:  DataError if something else than a history is in a file that is to become one, or, where a training begins `anew`, the epochs of
///          another one; an empty file, one without epochs, or none, may be there
inline void check_is_history(const std::filesystem::path& path, bool anew) {
  std::error_code not_told;
  if (!std::filesystem::exists(path, not_told)) return;
  const std::string header = history_header();
  std::string first(header.size() + 1, '\0');   // no more of it, for it may be large
  std::ifstream file(path, std::ios::binary);
  const bool opened = file.is_open();
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<std::size_t>(file.gcount()));
  if (!opened || !(first.empty() || first == header || first == header + '\n' || first == header + '\r'))
    throw DataError(error_text("'" + path.string() + "' is to become the history of a training, and is there as something else",
                               "the first line of a history is " + header, "name another file, or take this one away"));
  const std::size_t epochs = anew && !first.empty() ? read_history(path).size() : 0;
  if (epochs > 0)
    throw DataError(error_text("history '" + path.string() + "' has " + std::to_string(epochs) + " epochs of a training, and fit() begins one anew",
                               "what was recorded before is not lost unawares",
                               "load() that training's file before fit() to go on with it, name another file, or take this one away"));
}
}   // namespace detail
}   // namespace lrcnn
