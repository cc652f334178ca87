#pragma once
// Measured costs in a file, so that a machine is measured once for each network.
//
// The file is one of core/choice_file.hpp: for one machine, with a checksum, written atomically; a damaged one is ignored with a notice.
#include <lrcnn/core/choice_file.hpp>
#include <lrcnn/train/measure_costs.hpp>
#include <lrcnn/version.hpp>
#include <charconv>
namespace lrcnn {
namespace detail {
/// "802816:0.0625 1605632:0.125": pixels and seconds of each point, in as many digits as it takes to read the same numbers.
inline std::string text_of(const Costs::Points& points) {
  std::string text;
  for (const Costs::Point& p : points) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), p.seconds).ptr;
    text += (text.empty() ? "" : " ") + std::to_string(p.pixels) + ":" + std::string(digits.data(), end);
  }
  return text;
}
}   // namespace detail
/// The line that a file of costs has for its machine.
template <Backend B>
std::string costs_machine(const B& backend) {
  return backend.describe() + ", elements of " + std::to_string(sizeof(typename B::element)) + " bytes, lrcnn " + std::string(version()) +
         ", sizes by tiles, Winograd by channels";
}
/// What was measured of a kind, from the text that a file of costs has for it; empty if the text is none.
inline Costs::Points parse_points(const std::string& text) {
  Costs::Points points;
  const char *at = text.data(), *const end = at + text.size();
  for (Index before = 0; at != end;) {
    Costs::Point p;
    const auto pixels = std::from_chars(at, end, p.pixels);
    if (pixels.ec != std::errc() || pixels.ptr == end || *pixels.ptr != ':' || p.pixels <= before) return {};
    const auto seconds = std::from_chars(pixels.ptr + 1, end, p.seconds);
    if (seconds.ec != std::errc() || !(p.seconds >= 0 && p.seconds < 1e9)) return {};
    points.push_back(p);
    before = p.pixels, at = seconds.ptr;
    if (at != end && (*at++ != ' ' || at == end)) return {};
  }
  return points;
}
/// The costs that a file keeps for a backend on this machine, beside the backend's rates. A missing file has none; one of another machine, of
/// other libraries or threads, or a damaged one is ignored, which `notice` hears (by default a line on std::clog).
template <Backend B>
Costs load_costs(const std::filesystem::path& path, const B& backend, const Notice& notice = {}) {
  const ChoiceFile file(path, costs_machine(backend), notice, "costs");
  Costs costs(rates_of<B>());
  for (const auto& [kind, text] : file.all())
    if (Costs::Points points = parse_points(text); !points.empty()) costs.set(kind, std::move(points));
  return costs;
}
/// Adds costs to a file; kinds of other networks stay. A file that cannot be written is a notice.
template <Backend B>
void save_costs(const std::filesystem::path& path, const B& backend, const Costs& costs, const Notice& notice = {}) {
  ChoiceFile file(path, costs_machine(backend), notice, "costs");
  for (const auto& [kind, points] : costs.measured()) file.note(kind, detail::text_of(points));
  file.save();
}
/// Costs of a network on this machine: from a file, or measured and added to it if the file lacks a kind of step that the network has layer by
/// layer. Policies for the same network, and other numbers of images and rows, need not be measured again.
/// Errors:  as measure_costs()
template <Backend B, TrainingLoss<typename B::element> L = SoftmaxCrossEntropy>
Costs known_costs(const std::filesystem::path& path, const Table& table, B& backend, const MeasureOptions& options = {}, const L& loss = {},
                  const Notice& notice = {}) {
  Costs costs = load_costs(path, backend, notice);
  const Plan column = make_plan(table, measuring_column(ConvAlgorithm::fastest), B::target, {.rows_loss = RowLocalLoss<L, typename B::element>});
  const auto known = [&](const Step& step) { return costs.knows(step_kind(column, costs.carried_out(column, step))); };
  if (std::all_of(column.steps.begin(), column.steps.end(), known)) return costs;
  const Costs measured = measure_costs(table, backend, options, loss);
  for (const auto& [kind, points] : measured.measured()) costs.set(kind, points);
  save_costs(path, backend, measured, notice);
  return costs;
}
}   // namespace lrcnn
