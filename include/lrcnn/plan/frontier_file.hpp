#pragma once
// Frontiers in a file, so that each is searched for once.
//
// The file is one of core/choice_file.hpp: with a checksum, written atomically; a damaged one, or one of another version of the library, is
// ignored with a notice. A frontier depends on the network, the input, what the policy names, the backend's target, the options and the costs: it
// is kept under all of these, so one file serves many networks, inputs and machines.
#include <lrcnn/core/choice_file.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/network/check.hpp>
#include <lrcnn/plan/frontier.hpp>
#include <lrcnn/policy/parse.hpp>
#include <lrcnn/version.hpp>
namespace lrcnn {
namespace detail {
/// Numbers and words of a text, one behind the other.
class TextOf {
 public:
  std::string text{};
  TextOf& add(std::string_view word) {
    text += std::string(word) + " ";
    return *this;
  }
  TextOf& add(double value) { return add(number_text(value)); }
  template <std::integral T>
  TextOf& add(T value) {
    return add(std::to_string(value));
  }
  template <class... More>
    requires(sizeof...(More) > 1)
  TextOf& add(const More&... more) {
    (add(more), ...);
    return *this;
  }
};
inline std::string network_text(const Table& table) {
  TextOf out;
  for (const Node& node : table.nodes) {
    const Layer& y = node.layer;
    out.add(y.name.view(), describe(y), node.input, node.other, y.groups, y.bias, y.activation.slope, y.drop.probability);
    for (const Shape& s : {node.in, node.in2, node.out}) out.add(s.n, s.c, s.h, s.w);
    out.add(static_cast<int>(y.kind), static_cast<int>(y.norm.over), y.norm.groups, y.norm.frozen, y.norm.affine, y.count_padding);
    const LayerRules& rules = rules_of(y);   // a layer of the program's own may have others than when the file was written
    const BackwardReads reads = rules.backward(y);
    const Axis axis = rules.axis(y, node.in);
    out.add(reads.input, reads.other, reads.output, reads.indices, reads.sign, reads.for_parameters, static_cast<int>(rules.rows), axis.kernel);
    out.add(axis.stride, axis.dilation, rules.reduces, rules.ends_rows, rules.cheap, rules.overwrites_input, rules.overwrites_gradient);
    out.add(rules.takes_activation, rules.uses_workspace, rules.sums_channels, rules.draws);
    const ParameterShapes parameters = parameter_shapes(y, node.in);
    for (Index i = 0; i < parameters.count; ++i) out.add(item(parameters.item, i).count());
  }
  return out.text;
}
inline std::string target_text(const Target& t) {
  TextOf out;
  out.add(t.element_bytes, t.gradient_bytes, t.channel_block, t.plain_channels, t.alignment, t.uses_workspace, t.packs_weights, t.activates);
  return out
      .add(t.sums_use_workspace, t.packs_transposed, t.packs_linear, t.packs_bias, t.convolves_rows, t.vector_block, t.packs_alike, t.packs_together)
      .text;
}
inline std::string costs_text(const Costs& costs) {
  const Rates& r = costs.rates();
  TextOf out;
  out.add(r.step, r.products, r.winograd, r.bytes, r.offloaded, r.lanes, r.least_workspace);
  out.add(r.scratch(64, 128, 24), r.scratch(3, 64, 24), r.scratch(512, 512, 96));
  for (const Index rows : {1, 3, 8, 56})   // functions: what they say in some places
    out.add(r.winograd_pays == nullptr ? -1 : static_cast<int>(r.winograd_pays(rows, 30)));
  for (const auto& [kind, points] : costs.measured()) {
    out.add(kind);
    for (const Costs::Point& p : points) out.add(p.pixels, p.seconds);
  }
  return out.text;
}
/// All that a frontier depends on: what people can read as it is, and of network, target and costs a hash each.
inline std::string frontier_key(const Table& table, PolicySpec policy, const Target& target, const PlanOptions& options, const Costs& costs) {
  policy.fit_bytes = 1;   // a frontier is the same for any bytes
  TextOf out;
  out.add(to_string(policy), "on", to_string(table.input), std::to_string(table.size()), "layers", options.training ? "training" : "forward");
  out.add(options.accumulate, options.input_gradient, options.rows_loss, options.stores_output);
  out.add(hash64(network_text(table)), hash64(target_text(target)), hash64(costs_text(costs)));
  return out.text;
}
/// "bytes seconds steps length policy" of each point; the length is that of the policy's text.
inline std::string text_of(const Frontier& frontier) {
  TextOf out;
  for (const SolvedPolicy& p : frontier.points) {
    const std::string policy = to_string(p.policy);
    out.add(p.bytes, p.seconds, p.steps, static_cast<Index>(policy.size())).add(policy);
  }
  return out.text;
}
/// The frontier that such a text says; without points if it is none.
inline Frontier parse_frontier(std::string_view text) {
  Frontier frontier;
  const auto word = [&] {
    const std::string_view found = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), found.size() + 1));
    return found;
  };
  while (!text.empty()) {
    const auto bytes = parse_number<Index>(word());
    const auto seconds = parse_number<double>(word());
    const auto steps = parse_number<Index>(word()), length = parse_number<Index>(word());
    if (!bytes || !seconds || !steps || !length || *length < 0 || static_cast<std::size_t>(*length) >= text.size()) return {};
    const bool rises = frontier.points.empty() || (*bytes > frontier.points.back().bytes && *seconds < frontier.points.back().seconds);
    if (!rises || *bytes < 0 || !(*seconds >= 0)) return {};
    try {
      frontier.points.push_back({parse_policy(text.substr(0, static_cast<std::size_t>(*length))), *bytes, *seconds, *steps});
    } catch (const Error&) {
      return {};
    }
    text.remove_prefix(static_cast<std::size_t>(*length) + 1);
  }
  return frontier;
}
/// Whether a frontier from a file can be one of these plans, as far as its smallest point tells.
inline bool holds(const Frontier& known, const Table& table, const Target& target, const PlanOptions& options) {
  if (known.points.empty()) return false;
  // There may be no such plan: if two networks have layers of their own that describe themselves alike, one finds the other's frontier in the file.
  const auto size = arena_if_possible(table, known.smallest().policy, target, options);
  return size && size->bytes == known.smallest().bytes;
}
}   // namespace detail
/// Who made the frontiers of a file, in a line: those of others are found anew. The number of the search changes whenever it finds other ones.
inline std::string frontiers_maker() { return "any, lrcnn " + std::string(version()) + ", search 12"; }
/// The frontier that a file keeps for exactly this, or else a new one, which is added to it. An empty path is no file.
/// Errors:  as find_frontier(). A file that cannot be read or written is a notice, by default a line on std::clog
inline Frontier known_frontier(const std::filesystem::path& path, const Table& table, const PolicySpec& policy, const Target& target,
                               const PlanOptions& options, const Costs& costs, const Notice& notice = {}) {
  if (path.empty()) return find_frontier(table, policy, target, options, costs);
  ChoiceFile file(path, frontiers_maker(), notice, "frontiers");
  const std::string key = detail::frontier_key(table, policy, target, options, costs);
  if (const std::string* const text = file.find(key)) {
    Frontier known = detail::parse_frontier(*text);
    if (detail::holds(known, table, target, options)) return known;
  }
  Frontier found = find_frontier(table, policy, target, options, costs);
  const std::string text = detail::text_of(found);
  const bool is_line = (key + text).find_first_of("\t\n") == std::string::npos;   // names of layers may have such characters
  if (is_line) file.note(key, text), file.save();
  return found;
}
namespace detail {
/// known_frontier(), compiled where LRCNN_PRECOMPILED says (precompiled/training.hpp).
template <class = void>
Frontier kept_frontier(const std::filesystem::path& path, const Table& table, const PolicySpec& policy, const Target& target,
                       const PlanOptions& options, const Costs& costs) {
  return known_frontier(path, table, policy, target, options, costs);
}
}   // namespace detail
}   // namespace lrcnn
