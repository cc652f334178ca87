#pragma once
// What a plan costs in time, known without running it: the seconds of each step.
//
// A step has a kind and a size. Its kind is all that matters for its speed but how many rows of how many images it works on: operation, layer,
// channels, width, algorithm, workspace. Its size is the number of pixels. Seconds of a kind that was measured on a machine
// (train/measure_costs.hpp) are a line through the sizes that were measured. Seconds of any other kind are estimated from the step's products
// and bytes, at the rates that its backend is known for.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/plan/plan.hpp>
#include <lrcnn/plan/rates.hpp>
#include <bit>
#include <map>
#include <string>
#include <unordered_map>
namespace lrcnn {
/// How much of its kind a step is.
struct StepSize {
  /// Of all images: of a convolution's output, by Winograd's algorithm of all tiles of its result; of the larger of what other steps read and write.
  Index pixels = 0;
  double products = 0;   ///< multiply-adds, by the formula
  Index bytes = 0;       ///< read and written, parameters included
  friend constexpr bool operator==(const StepSize&, const StepSize&) = default;
};
namespace detail {
/// Whether a step multiplies with a layer's weights, each weight once for a pixel.
constexpr bool multiplies(const Step& step, const Layer& layer) { return rules_of(layer).uses_workspace && !is_packing(step.op); }
constexpr Index pixels_of(const Table& table, const Ref& ref) { return ref ? ref.images.size() * ref.rows.size() * table.shape(ref.tensor).w : 0; }
/// What a convolution's step makes, or reads the gradient of.
constexpr const Ref& result_of(const Step& step) { return step.op == Op::forward ? step.y : step.op == Op::backward_data ? step.dx : step.dy; }
/// Pixels of the tiles that cover a result.
constexpr Index tiled_pixels(const Table& table, const Ref& ref) {
  return ref.images.size() * round_up(ref.rows.size(), winograd_tile) * round_up(table.shape(ref.tensor).w, winograd_tile);
}
/// The largest power of two that is not above: more workspace is of use in large leaps only. Pre: bytes > 0.
constexpr Index leap(Index bytes) { return static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(bytes))); }
inline std::string pair_of(char letter, const Pair& pair) { return std::string(1, letter) + std::to_string(pair.h) + 'x' + std::to_string(pair.w); }
}   // namespace detail
/// How much scratch a convolution by Winograd's algorithm is given: one of Rates' functions.
using ScratchOf = Index (Rates::*)(Index from, Index to) const;
/// The most that one of layers [begin, end) is given; 0: none can use Winograd's algorithm, or the backend has none.
inline Index most_scratch(const Table& table, Index begin, Index end, const Rates& rates, ScratchOf scratch) {
  Index most = 0;
  for (Index l = begin; l < end; ++l)
    if (const Node& node = table.node(l); detail::fits_winograd(node.layer)) most = std::max(most, (rates.*scratch)(node.in.c, node.out.c));
  return most;
}
/// Pre: the step is of a plan for this table and target.
inline StepSize step_size(const Table& table, const Target& target, const Step& step) {
  StepSize size;
  for (const Ref* ref : {&step.x, &step.other, &step.y, &step.dy, &step.dx}) {
    if (!*ref) continue;
    const Shape& shape = table.shape(ref->tensor);
    size.pixels = std::max(size.pixels, detail::pixels_of(table, *ref));
    size.bytes += target.bytes(ref->images.size(), shape.c, ref->rows.size(), shape.w);
  }
  if (is_packing(step.op)) size.pixels = 1, size.bytes = 2 * target.packed_bytes(table.node(step.layer));
  if (step.layer < 0) return size;
  const Node& node = table.node(step.layer);
  if (!detail::multiplies(step, node.layer)) return size;
  const bool by_input = rules_of(node.layer).rows == RowMap::own;   // a transposed convolution
  const Ref& out = step.op == Op::forward ? step.y : step.dy;
  const Ref& in = step.op == Op::backward_data ? step.dx : step.x;
  size.pixels = detail::pixels_of(table, by_input ? in : out);
  const Index weights = parameter_shapes(node.layer, node.in).item[0].count();
  size.products = static_cast<double>(size.pixels) * static_cast<double>(weights);
  size.bytes += weights * target.element_bytes;
  if (step.conv_algorithm != ConvAlgorithm::direct && detail::fits_winograd(node.layer))
    size.pixels = detail::tiled_pixels(table, detail::result_of(step));
  return size;
}
/// Pre: the step is one of the plan's.
inline StepSize step_size(const Plan& plan, const Step& step) { return step_size(plan.table, plan.target, step); }
/// A name that steps of one kind share: "forward conv 64x224 > 128x224 k3x3 s1x1 d1x1 DirectConv / 16.8 MB accumulate". What stands before the
/// slash matters most. Pre: the step is of a plan for this table and target, and has a workspace of so many bytes.
inline std::string step_kind(const Table& table, const Target& target, const Step& step, Index workspace_bytes) {
  std::string text(op_name(step.op));
  std::string rest = " /";
  if (step.layer >= 0) {
    const Node& node = table.node(step.layer);
    const Layer& y = node.layer;
    const LayerRules& rules = rules_of(y);
    text += " " + std::string(variant_name(y)) + " " + std::to_string(node.in.c) + "x" + std::to_string(node.in.w) + " > " +
            std::to_string(node.out.c) + "x" + std::to_string(node.out.w);
    if (rules.rows == RowMap::window || rules.rows == RowMap::own)
      text +=
          " " + detail::pair_of('k', y.window.kernel) + " " + detail::pair_of('s', y.window.stride) + " " + detail::pair_of('d', y.window.dilation);
    text += rules.details(y);
    if (detail::fits_winograd(y)) text += " " + std::string(conv_algorithm_name(step.conv_algorithm));
    if (detail::multiplies(step, y) && workspace_bytes > 0) rest += " " + format_bytes(detail::leap(workspace_bytes));
  } else if (const Ref& ref = step.y ? step.y : step.x; ref) {
    const Shape& shape = table.shape(ref.tensor);
    text += " " + std::to_string(shape.c) + "x" + std::to_string(shape.w);
  }
  if (step.activates) rest += " activates";
  if (step.accumulate) rest += " accumulate";
  if (step.saved) rest += step.y ? " saves" : " saves only";
  if (step.operand > 0) rest += " operand";
  if (target.element_bytes != 4) text += " " + std::to_string(target.element_bytes) + " bytes";
  for (char& c : text)   // a custom layer may have any name
    if (c == '/' || c == '\t' || c == '\n') c = '_';
  return text + rest;
}
/// Bytes of a step's workspace; 0: it has none. Pre: the step is one of the plan's.
inline Index workspace_of(const Plan& plan, const Step& step) { return step.workspace < 0 ? 0 : item(plan.buffers, step.workspace).bytes; }
/// Pre: the step is one of the plan's.
inline std::string step_kind(const Plan& plan, const Step& step) { return step_kind(plan.table, plan.target, step, workspace_of(plan, step)); }
/// Seconds of steps by kind and size: measured ones where there are any, else estimates. A regular value.
class Costs {
 public:
  /// Seconds of a step of so many pixels.
  struct Point {
    Index pixels = 0;
    double seconds = 0;
    friend constexpr bool operator==(const Point&, const Point&) = default;
  };
  using Points = std::vector<Point>;
  Costs() = default;
  explicit Costs(const Rates& rates) : rates_(rates) {}
  const Rates& rates() const { return rates_; }
  /// Kinds that were measured, and what came of them by rising pixels.
  const std::map<std::string, Points>& measured() const { return measured_; }
  /// Sets what was measured of a kind. Pre: there are points; they rise by their pixels, which are above 0; seconds are not negative
  /// and finite.
  void set(const std::string& kind, Points points) { measured_[kind] = std::move(points); }
  /// Whether a kind was measured.
  bool knows(const std::string& kind) const { return measured_.count(kind) > 0; }
  /// Gives what was measured of this kind, and then of others that begin with `alike`, to `hear` until that says no more. Returns whether it
  /// would hear more.
  template <class Hear>
  bool for_kinds(const std::string& kind, const std::string& alike, Hear hear) const {
    const auto known = measured_.find(kind);
    if (known != measured_.end() && !hear(known->second)) return false;
    for (auto like = measured_.lower_bound(alike); like != measured_.end() && like->first.starts_with(alike); ++like)
      if (like != known && !hear(like->second)) return false;
    return true;
  }
  /// How a step's convolution is computed: directly where it may choose, and its workspace is too small for Winograd's algorithm or its result
  /// fills too little of the tiles.
  ConvAlgorithm algorithm_of(const Table& table, const Step& step, Index workspace_bytes) const {
    if (step.conv_algorithm != ConvAlgorithm::fastest || step.layer < 0) return step.conv_algorithm;
    const Node& node = table.node(step.layer);
    if (!detail::fits_winograd(node.layer) || !detail::multiplies(step, node.layer)) return step.conv_algorithm;
    const Ref& result = detail::result_of(step);
    const bool pays = rates_.winograd_pays == nullptr || rates_.winograd_pays(result.rows.size(), table.shape(result.tensor).w);
    return pays && rates_.has_scratch(node.in.c, node.out.c, workspace_bytes) ? step.conv_algorithm : ConvAlgorithm::direct;
  }
  /// A step of a plan with the algorithm by which its convolution is computed: measured seconds are of such steps.
  Step carried_out(const Plan& plan, Step step) const {
    step.conv_algorithm = algorithm_of(plan.table, step, workspace_of(plan, step));
    return step;
  }
  /// Without measurements: what a step's products take, or its bytes if these take longer.
  double estimate(const Table& table, const Step& step, const StepSize& size) const {
    double products = 0;
    if (size.products > 0) {
      const Node& node = table.node(step.layer);
      const auto lanes = [&](Index channels) { return static_cast<double>(round_up(channels, rates_.lanes)) / static_cast<double>(channels); };
      const bool winograd = step.conv_algorithm != ConvAlgorithm::direct && detail::fits_winograd(node.layer);
      products = size.products * lanes(node.out.c) * lanes(node.in.c / node.layer.groups) / (winograd ? rates_.winograd : rates_.products);
    }
    const bool leaves = crosses_memories(step.op);   // each byte is read and written, one of which is there
    return rates_.step + std::max(products, static_cast<double>(size.bytes) / (leaves ? 2 * rates_.offloaded : rates_.bytes));
  }
  /// Seconds of so many pixels from what was measured of others. Beyond the largest size the line from the smallest to the largest goes on, since
  /// part of a step's time does not depend on its size; it rises by at least half of what an average pixel takes, and by no more than that. Below
  /// the smallest the first line goes on, or one to a step without pixels where that is steeper.
  double on_line(const Points& points, Index pixels) const {
    const auto ratio = [](Index a, Index b) { return static_cast<double>(a) / static_cast<double>(b); };
    const Point &first = points.front(), &last = points.back();
    if (pixels >= last.pixels) {
      const double average = last.seconds / static_cast<double>(last.pixels);
      const double slope = points.size() > 1 ? (last.seconds - first.seconds) / static_cast<double>(last.pixels - first.pixels) : average;
      return last.seconds + std::clamp(slope, average / 2, average) * static_cast<double>(pixels - last.pixels);
    }
    if (pixels <= first.pixels) {
      double none = std::min(rates_.step, first.seconds);   // of a step without pixels
      if (points.size() > 1) {
        const double slope = (points[1].seconds - first.seconds) / static_cast<double>(points[1].pixels - first.pixels);
        none = std::clamp(first.seconds - slope * static_cast<double>(first.pixels), none, first.seconds);
      }
      return none + (first.seconds - none) * ratio(pixels, first.pixels);
    }
    std::size_t i = 1;
    while (points[i].pixels < pixels) ++i;
    const Point &a = points[i - 1], &b = points[i];
    return a.seconds + (b.seconds - a.seconds) * ratio(pixels - a.pixels, b.pixels - a.pixels);
  }
  friend bool operator==(const Costs&, const Costs&) = default;

 private:
  Rates rates_{};
  std::map<std::string, Points> measured_{};
};
/// The costs of steps of one table on one target. It remembers what it looked up, so that a step is asked for in some 50 ns.
class StepCosts {
 public:
  /// Pre: they outlive the object.
  StepCosts(const Costs& costs, const Table& table, const Target& target) : costs_(costs), table_(table), target_(target) {}
  /// Seconds of a step that has a workspace of so many bytes; 0: it has none.
  double seconds(const Step& step, Index workspace_bytes) {
    if (const ConvAlgorithm algorithm = costs_.algorithm_of(table_, step, workspace_bytes); algorithm != step.conv_algorithm) {
      Step other = step;
      other.conv_algorithm = algorithm;
      return seconds(other, workspace_bytes);
    }
    if (costs_.measured().empty()) return costs_.estimate(table_, step, step_size(table_, target_, step));
    const auto [place, is_new] = known_.try_emplace(key(step, workspace_bytes));
    if (is_new) place->second = find(step, workspace_bytes);
    const StepSize size = step_size(table_, target_, step);
    const Known& known = place->second;
    if (known.points == nullptr) return costs_.estimate(table_, step, size);
    if (known.smaller != nullptr && size.pixels < known.points->front().pixels) return known.ratio * costs_.on_line(*known.smaller, size.pixels);
    return costs_.on_line(*known.points, size.pixels);
  }
  /// Seconds of a step of a plan for this table and target.
  double seconds(const Plan& plan, const Step& step) { return seconds(step, workspace_of(plan, step)); }

 private:
  /// What was measured of a kind of step.
  struct Known {
    const Costs::Points* points = nullptr;    ///< nullptr: nothing
    const Costs::Points* smaller = nullptr;   ///< of a kind like it of which smaller steps were measured, and as large ones; nullptr: there is none
    double ratio = 1;                         ///< how many times as long as that kind it takes at its own smallest size
  };
  const Costs& costs_;
  const Table& table_;
  const Target& target_;
  std::unordered_map<std::uint64_t, Known> known_{};
  /// What was measured of a step's kind, or of the kind most like it: with other flags, in another workspace (the one that differs least),
  /// FastestConv in place of WinogradConv.
  Known find(const Step& step, Index workspace_bytes) const {
    Known known;
    for_alike(step, workspace_bytes, [&](const Costs::Points& points) {
      if (known.points == nullptr) {
        known.points = &points;
      } else if (const Costs::Point& least = known.points->front(); points.front().pixels < least.pixels && least.pixels <= points.back().pixels) {
        if (const double alike = costs_.on_line(points, least.pixels); alike > 0) known.smaller = &points, known.ratio = least.seconds / alike;
      }
      return known.smaller == nullptr;
    });
    if (known.points != nullptr || step.conv_algorithm != ConvAlgorithm::winograd) return known;
    Step other = step;
    other.conv_algorithm = ConvAlgorithm::fastest;
    return find(other, workspace_bytes);
  }
  /// Gives what was measured of a step's kind and of kinds like it, those most like it first, to `hear` until that says no more.
  template <class Hear>
  void for_alike(const Step& step, Index workspace_bytes, Hear hear) const {
    constexpr int most_leaps = 12;   // from 16 kB to 64 MB
    Step plain = step;
    plain.activates = plain.accumulate = false, plain.saved = {}, plain.operand = 0;
    const auto hear_all = [&](Index bytes) {
      return costs_.for_kinds(step_kind(table_, target_, step, bytes), step_kind(table_, target_, plain, bytes), hear);
    };
    if (!hear_all(workspace_bytes)) return;
    for (int leaps = 1; leaps <= most_leaps; ++leaps)
      for (const Index bytes : {workspace_bytes >> leaps, workspace_bytes << leaps})
        if (bytes > 0 && !hear_all(bytes)) return;
    if (workspace_bytes > 0) hear_all(0);
  }
  /// Steps of one table that have one key have one kind.
  static std::uint64_t key(const Step& step, Index workspace_bytes) {
    const Ref& moved = step.y ? step.y : step.x;
    auto number = static_cast<std::uint64_t>(step.layer >= 0 ? 2 * step.layer : 2 * (moved ? moved.tensor : 0) + 1);
    const auto add = [&](std::uint64_t value, int bits) { number = (number << bits) | value; };
    add(static_cast<std::uint64_t>(step.op), 5);
    add(static_cast<std::uint64_t>(step.conv_algorithm), 2);
    add(workspace_bytes > 0 ? static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(workspace_bytes))) : 0, 6);
    for (const bool flag :
         {step.activates, step.accumulate, static_cast<bool>(step.saved), static_cast<bool>(moved), step.y && step.layer >= 0, step.operand > 0})
      add(flag, 1);
    return number;
  }
};
/// Seconds that a plan does without, because filters stay packed.
inline double seconds_left_out(const Plan& plan, const Costs& costs) {
  StepCosts of_steps(costs, plan.table, plan.target);
  double sum = 0;
  for (const LeftOutStep& left_out : plan.left_out) sum += of_steps.seconds(plan, left_out.step);
  return sum;
}
/// Seconds of one run of a plan: the sum over its steps.
inline double seconds(const Plan& plan, const Costs& costs) {
  StepCosts of_steps(costs, plan.table, plan.target);
  double sum = 0;
  for (const Step& step : plan.steps) sum += of_steps.seconds(plan, step);
  return sum;
}
}   // namespace lrcnn
