#pragma once
// Stages: runs of layers between tensors that exist in full height, and how each is cut.
//
// A stage ends where the policy puts a checkpoint, and at every barrier. A barrier is a layer that cannot start before all rows of an input
// are there: a flatten reads the whole map, a scale needs all of its factors, and a norm with statistics over rows needs all of them. A
// global pooling ends the stage of its map.
// Two stages work on such a norm. The stage below it makes the norm's input; it adds up the statistics in the forward pass, and turns the
// gradient of the norm's output into that of its input in the backward pass. The stage above begins with the norm; it normalises in the
// forward pass, and adds up the sums that the gradient needs in the backward pass.
// Stages form a graph; its edges are tensors in full height. Where only norms read a stage's output, the plan may drop the output and run
// the stage's forward pass again before the backward pass needs it (`forward_repeated`). The stages up to the next checkpoint are a segment.
#include <lrcnn/plan/options.hpp>
#include <lrcnn/plan/stream_schedule.hpp>
#include <lrcnn/plan/target.hpp>
#include <lrcnn/layer/statistics.hpp>
#include <string>
namespace lrcnn {
/// Who uses a tensor of a stage.
struct TensorUse {
  Index readers = 0;          ///< how often layers of the stage read it
  Index plain = 0;            ///< how many of these give it a gradient; norms with statistics do not
  bool leaves = false;        ///< layers of other stages read it, or it is the network's output: it exists in full height
  bool wanted_plain = false;  ///< a layer of another stage gives it a gradient
  bool given = false;         ///< it is an input, and later stages have begun its gradient
  bool discarded = false;     ///< not kept from the forward to the backward pass; a repeated forward pass makes it again
  friend constexpr bool operator==(const TensorUse&, const TensorUse&) = default;
};
/// A norm outside the stage that makes the tensor that it normalises.
struct NormAbove {
  Index tensor = 0;   ///< of the stage
  Index node = 0;     ///< of the table
  friend constexpr bool operator==(const NormAbove&, const NormAbove&) = default;
};
/// A run of layers with its cuts. Its tensors are numbered from its start: inputs first, then what each layer writes.
struct Stage {
  Index first = 0;          ///< first layer
  Index last = 0;           ///< one past its last layer; also the number of the tensor that it writes
  bool reduces = false;     ///< its last layer is a global pooling, which takes rows as they come
  bool vector = false;      ///< it holds flatten or linear: no rows to cut
  bool forward_repeated = false;   ///< the forward pass is run again before the segment's backward pass
  bool replaced_by_extra_passes = false;   ///< a stage with extra passes does its backward pass
  Index passes = 0;         ///< number of extra backward passes; a stage that has some has no forward pass, and stands behind all that have none
  bool behind_means = false;   ///< it begins behind a global pooling and has one row, as that of a squeeze-and-excitation's factors
  Index section = 0;        ///< stages that a norm alone divides have one
  Index partition_number = 0;   ///< in the policy: that of its section, or, behind means, of the section before
  std::vector<Index> inputs{};                  ///< tensors of the table that it reads
  std::vector<std::array<Index, 2>> reads{};    ///< of each layer of the chain, tensors of the stage; -1: none
  std::vector<TensorUse> uses{};                ///< of each tensor of the stage, and of what a closing global pooling writes
  std::vector<NormAbove> norms_above{};
  Partition partition{};    ///< as carried out: counts are at most what the rows carry, images at least 1
  Schedule forward{};       ///< over the chain, without a closing global pooling
  Schedule backward{};      ///< likewise; empty where slabs need not reach the top, which are those of a forward pass alone
  /// Layers that rows travel through.
  constexpr Index chain_layers() const { return last - first - (reduces ? 1 : 0); }
  constexpr Index input_count() const { return static_cast<Index>(inputs.size()); }
  constexpr Index tensors() const { return input_count() + chain_layers(); }
  /// The table's number of a tensor.
  constexpr Index tensor(Index t) const {
    return t < input_count() ? inputs[static_cast<std::size_t>(t)] : first + 1 + t - input_count();
  }
  constexpr Index in(Index l) const { return reads[static_cast<std::size_t>(l)][0]; }
  constexpr Index other(Index l) const { return reads[static_cast<std::size_t>(l)][1]; }
  constexpr Index out(Index l) const { return input_count() + l; }
  constexpr const TensorUse& use(Index t) const { return uses[static_cast<std::size_t>(t)]; }
  /// Whether its last rows go through a loss that is local to rows, slab by slab, and are kept nowhere.
  constexpr bool loses_rows(const Table& table, const PlanOptions& options) const {
    return options.rows_loss && last == table.size() && !reduces && !vector;
  }
  /// Whether each layer reads the tensor before it, and nobody outside reads any but the last.
  constexpr bool is_chain() const {
    if (input_count() != 1) return false;
    for (Index l = 0; l < chain_layers(); ++l)
      if (in(l) != l || other(l) >= 0 || use(l).readers != 1 || (l > 0 && use(l).leaves)) return false;
    return true;
  }
  friend constexpr bool operator==(const Stage&, const Stage&) = default;
};
namespace detail {
constexpr bool is_pool(const Layer& layer) { return layer.kind == Kind::max_pool || layer.kind == Kind::avg_pool; }
/// Whether layer `l` ends a residual block, and the number of the block, from 1: it is a sum, or the activation behind one. 0: it does not.
constexpr Index ends_block(const Table& table, Index l) {
  const auto is_sum = [&](Index n) { return n >= 0 && table.node(n).layer.kind == Kind::sum; };
  const auto activates = [&](Index n) { return n < table.size() && is_activation(table.node(n).layer) && table.node(n).input == n; };
  if (is_sum(l) ? activates(l + 1) : !(activates(l) && is_sum(l - 1))) return 0;
  Index count = 0;
  for (Index n = 0; n <= l; ++n) count += is_sum(n);
  return count;
}
/// Whether the policy keeps the output of layer `l`.
constexpr bool is_checkpoint(const Table& table, const PolicySpec& policy, Index l) {
  using enum Checkpoints::Rule;
  const Layer& layer = table.node(l).layer;
  switch (policy.checkpoints.rule) {
    case none: return false;
    case pools: return is_pool(layer);
    case sums: return ends_block(table, l) > 0 && ends_block(table, l) % policy.checkpoints.every == 0;
    case every: return (l + 1) % policy.checkpoints.every == 0;
    case named:
      for (const Name& name : policy.checkpoints.names)
        if (!name.empty() && name == layer.name) return true;
      return false;
  }
  return false;
}
/// Whether a stage must end behind layer `l`, whatever the policy says.
constexpr bool is_barrier(const Table& table, Index l) {
  if (l + 1 == table.size() || rules_of(table.node(l).layer).reduces) return true;
  return table.node(l + 1).layer.kind == Kind::flatten || (ends_rows(table.node(l + 1).layer) && !ends_rows(table.node(l).layer) &&
                                                           !is_activation(table.node(l).layer));
}
/// Whether nothing in a stage has more than one row.
constexpr bool has_one_row(const Table& table, const Stage& stage) {
  for (Index l = stage.first; l < stage.last; ++l)
    if (table.node(l).in.h > 1 || table.node(l).out.h > 1) return false;
  return true;
}
/// Whether a layer multiplies a map by a vector, so that there are rows again.
constexpr bool scales_map(const Node& node) { return node.layer.kind == Kind::scale && node.in.h * node.in.w > 1; }
/// Names in a policy that no layer bears would silently keep nothing.
constexpr void check_names(const Table& table, const PolicySpec& policy) {
  if (policy.checkpoints.rule != Checkpoints::Rule::named) return;
  for (const Name& name : policy.checkpoints.names) {
    bool found = name.empty();
    for (const Node& node : table.nodes) found = found || node.layer.name == name;
    if (!found)
      throw PlanError(error_text("checkpoint at layer '" + std::string(name.view()) + "', which the network does not have",
                                 "CheckpointAt<...> names layers of the network",
                                 "use a name that the network's table shows, such as '" +
                                     std::string(table.node(0).layer.name.view()) + "'"));
  }
}
/// Whether a norm needs its input whole before it begins.
constexpr bool waits(const Node& node, bool training) { return node.layer.kind == Kind::norm && has_statistics(node.layer, training); }
/// Row rules of a stage.
struct RowRules {
  std::vector<RowRule> layer{};
  std::vector<TensorRule> tensor{};   ///< empty for a chain
  std::vector<TensorCut> scratch{};
  Index height = 1, last_row_bytes = 0, inputs = 1;
  constexpr RowGraph graph() { return {layer, height, last_row_bytes, inputs, tensor, scratch.data()}; }
};
constexpr RowRules row_rules(const Table& table, const Stage& stage, const Target& target, ConvAlgorithm conv_algorithm) {
  RowRules rules;
  const bool chain = stage.is_chain() && stage.passes == 0;
  for (Index l = stage.first; l < stage.first + stage.chain_layers(); ++l) {
    const Node& node = table.node(l);
    RowRule rule{.axis = row_axis_of(node), .in_height = node.in.h, .out_height = node.out.h,
                 .in_row_bytes = target.bytes(1, node.in.c, 1, node.in.w)};
    const bool tiled = conv_algorithm == ConvAlgorithm::winograd && node.layer.kind == Kind::conv &&
                       node.layer.window.kernel == Pair(3) && node.layer.window.stride == Pair(1) &&
                       node.layer.window.dilation == Pair(1) && node.layer.groups == 1;
    if (tiled) rule.grid = 4;   // output rows of a tile of F(4x4, 3x3)
    if (is_activation(node.layer) && chain && !rules.layer.empty()) rule.grid = rules.layer.back().grid;
    if (!chain) rule.in = stage.in(l - stage.first), rule.other = stage.other(l - stage.first);
    rule.other_whole = node.layer.kind == Kind::scale;
    rules.layer.push_back(rule);
  }
  const auto row_bytes = [&](const Shape& s) { return target.bytes(1, s.c, 1, s.w); };
  const Shape& top = table.shape(stage.tensor(stage.tensors() - 1));
  rules.height = top.h, rules.last_row_bytes = row_bytes(top), rules.inputs = stage.input_count();
  rules.scratch.resize(static_cast<std::size_t>(stage.tensors()));
  for (Index t = 0; !chain && t < stage.tensors(); ++t) {
    const Shape& s = table.shape(stage.tensor(t));
    rules.tensor.push_back({s.h, row_bytes(s), stage.use(t).readers > 0, stage.use(t).leaves});
  }
  for (Index l = 0; stage.passes > 0 && l < stage.chain_layers(); ++l)   // each row of such a norm's input has a gradient, read or not
    if (waits(table.node(stage.first + l), true))
      for (const Index t : {stage.in(l), stage.out(l)}) rules.tensor[static_cast<std::size_t>(t)].leaves = true;
  return rules;
}
inline std::string layers_name(const Table& table, Index first, Index last) {
  return std::string(table.node(first).layer.name.view()) + ".." + std::string(table.node(last - 1).layer.name.view());
}
inline std::string stage_name(const Table& table, const Stage& stage) { return "stage " + layers_name(table, stage.first, stage.last); }
}  // namespace detail
namespace detail {
/// Tensors that each stage reads, and who reads what it writes.
constexpr void connect(const Table& table, std::vector<Stage>& stages, bool training) {
  std::vector<Index> stage_of(static_cast<std::size_t>(table.size()), 0);
  std::vector<char> given(static_cast<std::size_t>(table.tensors()), 0);   // has a gradient by stages further on
  for (std::size_t s = stages.size(); s-- > 0;)
    for (Index n = stages[s].first; n < stages[s].last; ++n) stage_of[static_cast<std::size_t>(n)] = static_cast<Index>(s);
  for (Stage& stage : stages) {
    stage.inputs.clear(), stage.reads.clear(), stage.norms_above.clear();   // of stages that were otherwise before
    for (Index n = stage.first; n < stage.last; ++n)   // what it reads from outside
      for (const Index g : {table.node(n).input, table.node(n).other})
        if (g >= 0 && g <= stage.first && std::find(stage.inputs.begin(), stage.inputs.end(), g) == stage.inputs.end())
          stage.inputs.push_back(g);
    stage.uses.assign(static_cast<std::size_t>(stage.tensors() + stage.reduces), TensorUse{});
    const auto local = [&](Index g) {
      if (g > stage.first) return stage.input_count() + g - stage.first - 1;
      for (Index t = 0; t < stage.input_count(); ++t)
        if (stage.inputs[static_cast<std::size_t>(t)] == g) return t;
      return Index{-1};
    };
    for (Index n = stage.first; n < stage.last; ++n) {
      const Node& node = table.node(n);
      const std::array<Index, 2> reads{local(node.input), node.other < 0 ? -1 : local(node.other)};
      if (n < stage.first + stage.chain_layers()) stage.reads.push_back(reads);
      const bool closing = n >= stage.first + stage.chain_layers();   // the global pooling is none of the chain
      for (const Index t : reads) {
        if (t < 0 || closing) continue;
        TensorUse& use = stage.uses[static_cast<std::size_t>(t)];
        ++use.readers;
        use.plain += !waits(node, training);
      }
    }
  }
  for (Index n = 0; n < table.size(); ++n) {
    const Node& node = table.node(n);
    for (const Index g : {node.input, node.other}) {
      if (g <= 0) continue;
      Stage& from = stages[static_cast<std::size_t>(stage_of[static_cast<std::size_t>(g - 1)])];
      if (n < from.last) continue;
      const Index t = from.input_count() + g - from.first - 1;
      TensorUse& use = from.uses[static_cast<std::size_t>(t)];
      use.leaves = true;
      if (waits(node, training)) from.norms_above.push_back({t, n});
      else use.wanted_plain = true;
    }
  }
  stages.back().uses.back().leaves = stages.back().uses.back().wanted_plain = true;   // the loss reads it
  for (std::size_t s = stages.size(); s-- > 0;) {
    Stage& stage = stages[s];
    for (Index t = 0; t < stage.input_count(); ++t) {
      TensorUse& use = stage.uses[static_cast<std::size_t>(t)];
      char& has = given[static_cast<std::size_t>(stage.inputs[static_cast<std::size_t>(t)])];
      use.given = has;
      if (use.plain > 0 || (stage.reduces && stage.chain_layers() == 0)) has = 1;
    }
  }
}
/// Extra passes that the sums of norms within a stage take: of each layer, the number of such norms that its gradient has come through.
constexpr std::vector<Index> norms_over(const Table& table, const Stage& stage) {
  std::vector<Index> over(static_cast<std::size_t>(stage.chain_layers()), 0);
  for (Index l = stage.chain_layers() - 1; l >= 0; --l) {
    const bool counts = waits(table.node(stage.first + l), true) && stage.in(l) >= stage.input_count();
    for (const Index t : {stage.in(l), stage.other(l)})
      if (t >= stage.input_count()) {
        Index& below = over[static_cast<std::size_t>(t - stage.input_count())];
        below = std::max(below, over[static_cast<std::size_t>(l)] + counts);
      }
  }
  return over;
}
/// Likewise upward: of each layer, the number of such norms that what it writes has come through.
constexpr std::vector<Index> norms_under(const Table& table, const Stage& stage) {
  std::vector<Index> under(static_cast<std::size_t>(stage.chain_layers()), 0);
  for (Index l = 0; l < stage.chain_layers(); ++l) {
    Index& mine = under[static_cast<std::size_t>(l)];
    for (const Index t : {stage.in(l), stage.other(l)})
      if (t >= stage.input_count()) mine = std::max(mine, under[static_cast<std::size_t>(t - stage.input_count())]);
    mine += waits(table.node(stage.first + l), true) && stage.in(l) >= stage.input_count();
  }
  return under;
}
/// Stages that go backward through their norms, one for each section that the policy wants so and that norms divide. They are put behind
/// the others, which they cover.
constexpr void add_passes(const Table& table, const PolicySpec& policy, std::vector<Stage>& stages) {
  std::vector<Stage> merged, backward;
  for (std::size_t s = 0; s < stages.size();) {
    std::size_t end = s + 1;
    while (end < stages.size() && stages[end].section == stages[s].section) ++end;
    if (policy.partition(stages[s].partition_number).passes && end - s > 1 && !stages[end - 1].vector) {
      Stage stage = stages[s];
      stage.last = stages[end - 1].last;
      stage.reduces = stages[end - 1].reduces;
      stage.passes = 1;
      backward.push_back(stage);
      for (std::size_t i = s; i < end; ++i) stages[i].replaced_by_extra_passes = true;
    } else {
      backward.insert(backward.end(), stages.begin() + static_cast<Index>(s), stages.begin() + static_cast<Index>(end));
    }
    s = end;
  }
  if (backward.size() == stages.size()) return;
  connect(table, backward, true);   // who gives gradients to whom
  for (Stage& stage : backward) {
    if (stage.passes == 0) {
      for (Stage& same : stages)
        if (same.first == stage.first) same = stage;
      continue;
    }
    stage.passes = 0;
    const auto over = norms_over(table, stage);
    for (std::size_t l = 0; l < over.size(); ++l)
      if (waits(table.node(stage.first + static_cast<Index>(l)), true) && stage.in(static_cast<Index>(l)) >= stage.input_count())
        stage.passes = std::max(stage.passes, over[l] + 1);
    merged.push_back(std::move(stage));
  }
  for (Stage& stage : merged) stages.push_back(std::move(stage));
}
/// Chooses the stages whose forward pass is run again: those that end because a norm waits, where the policy recomputes all. Their tensors are
/// discarded, unless a layer behind the segment reads them.
constexpr void choose_repeated(const Table& table, const PolicySpec& policy, std::vector<Stage>& stages) {
  std::vector<char> discarded(static_cast<std::size_t>(table.tensors()), 0);
  std::size_t first = 0;   // of the segment
  for (std::size_t s = 0; s < stages.size() && stages[s].passes == 0; ++s) {
    Stage& stage = stages[s];
    stage.forward_repeated = s + 1 < stages.size() && stages[s + 1].passes == 0 && !stage.replaced_by_extra_passes &&
                             waits(table.node(stage.last), true) && !stage.reduces && !stage.vector &&
                             !is_checkpoint(table, policy, stage.last - 1) && policy.recompute_in(stage.partition) == Recompute::all;
    if (stage.forward_repeated) continue;
    for (std::size_t i = first; i < s; ++i)   // their tensors that nobody reads beyond the segment
      for (Index t = stages[i].input_count(); t < stages[i].tensors(); ++t) {
        const Index g = stages[i].tensor(t);
        bool inside = stages[i].use(t).leaves;
        for (Index n = stage.last; n < table.size() && inside; ++n) inside = table.node(n).input != g && table.node(n).other != g;
        discarded[static_cast<std::size_t>(g)] = stages[i].uses[static_cast<std::size_t>(t)].discarded = inside;
      }
    for (std::size_t i = first; i <= s; ++i)
      for (Index t = 0; t < stages[i].input_count(); ++t)
        stages[i].uses[static_cast<std::size_t>(t)].discarded = discarded[static_cast<std::size_t>(stages[i].tensor(t))];
    first = s + 1;
  }
}
/// What to ask for where a stage carries `largest` slabs: what all stages of its section do, since these have one count.
inline std::string fewer_slabs(const Table& table, const PolicySpec& policy, const Target& target, const std::vector<Stage>& stages,
                               const Stage& stage, Index largest, bool streams) {
  Index first = stage.first, last = stage.last;
  for (const Stage& other : stages) {
    if (other.section != stage.section || other.vector) continue;
    first = std::min(first, other.first), last = std::max(last, other.last);
    RowRules rules = row_rules(table, other, target, policy.conv_algorithm);
    const Cut cut = policy.partition(stage.partition_number).cut;
    largest = std::min(largest, streams && cut == Cut::share ? max_stream_slabs(rules.graph()) : max_slabs(rules.graph(), cut));
  }
  const std::string most = "ask for at most " + std::to_string(largest);
  if (first == stage.first && last == stage.last) return most + " in this stage";
  return most + " in " + layers_name(table, first, last) + ", which norms divide, or part it by a checkpoint";
}
/// What a norm that waits cannot work with.
constexpr void check_norms(const Table& table, const PolicySpec& policy, bool training) {
  for (const Node& node : table.nodes) {
    if (!waits(node, training)) continue;
    const auto layer = [&] { return "layer '" + std::string(node.layer.name.view()) + "' (" + std::string(norm_name(node.layer.norm)) + ")"; };
    const bool batch = node.layer.norm.over == Norm::Over::batch;
    if (training && has_one_value(node.layer, node.in)) {
      const FaultText text = fault_text(Fault::one_value);
      throw PlanError(error_text(layer() + " has one value in each " + (batch ? "channel" : "group") + " of input " + to_string(node.in),
                                 text.rule, text.change));
    }
    if (node.input == 0)
      throw PlanError(error_text(layer() + " is the first layer of the network", "its statistics need the whole input before its first row "
                                 "is used, and the input is read row by row", "normalise the data when it is loaded, or put a convolution first"));
    if (batch && policy.images > 0 && policy.images < table.input.n)
      throw PlanError(error_text(layer() + " is run by " + to_string(policy), "statistics of a batch need all of its images before the "
                                 "first is normalised, and Images<n> takes groups of them through the whole network",
                                 "cut the batch within stages instead: ByImages<" + std::to_string(policy.images) + ", ...>"));
  }
}
/// In a constant expression the text is lost. There an array of the slabs that fit is read at the number asked for, since both compilers show
/// the numbers of such an error.
template <class Text>
constexpr void throw_if_more_slabs_than_fit(Index asked, Index largest_feasible, const Text& text) {
  if (asked <= largest_feasible) return;
  if (std::is_constant_evaluated()) {
    const char* const slabs_that_fit = new char[static_cast<std::size_t>(largest_feasible)]{};
    if (slabs_that_fit[asked] != 0) return;
  }
  throw PlanError(text());
}
}  // namespace detail
/// Ranges of layers between full-height tensors, not cut yet. `training`: statistics of batches are taken, not running ones.
constexpr std::vector<Stage> split_stages(const Table& table, const PolicySpec& policy, bool training = true) {
  detail::check_names(table, policy);
  std::vector<Stage> stages;
  Index first = 0, section = 0, number = 0, section_first = 0;   // number: of the policy's partition
  bool vector = false;
  for (Index l = 0; l < table.size(); ++l) {
    vector = (vector && !detail::scales_map(table.node(l))) || ends_rows(table.node(l).layer);
    const bool scaled = l + 1 < table.size() && table.node(l + 1).layer.kind == Kind::scale && table.node(l + 1).other > section_first;
    const bool waited = l + 1 < table.size() && detail::waits(table.node(l + 1), training) && table.node(l + 1).input > first;
    const bool apart = l + 1 < table.size() && rules_of(table.node(l + 1).layer).reduces && table.node(l + 1).input != l + 1;
    const bool ends_section = apart || scaled || detail::is_barrier(table, l) || (!vector && detail::is_checkpoint(table, policy, l));
    if (!waited && !ends_section) continue;
    Stage stage;
    stage.first = first;
    stage.last = l + 1;
    stage.behind_means = !stages.empty() && (stages.back().reduces || stages.back().behind_means) && detail::has_one_row(table, stage);
    stage.section = section;
    stage.partition_number = stage.behind_means ? stages.back().partition_number : number;
    section += ends_section, number += ends_section && !stage.behind_means;
    if (ends_section) section_first = l + 1;
    stage.reduces = rules_of(table.node(l).layer).reduces;
    stage.vector = vector;
    stages.push_back(stage);
    first = l + 1;
  }
  detail::connect(table, stages, training);
  return stages;
}
/// The stages of a network under a policy, with all cuts chosen. `images`: how many the step has at once.
/// A count given for all stages alike asks the stage that carries most; stages with fewer rows are cut as finely as
/// they can be. A count given for one stage (Stages<...>) is carried out there or refused.
/// Where the output is handed on, the forward pass alone is planned, so slabs that share rows need not reach the stage's top; forward counts alone
/// matter, and whichever way of cutting makes the largest slab smaller is taken.
/// Errors: PlanError naming the stage, the count asked for and the largest feasible count.
constexpr std::vector<Stage> make_stages(const Table& table, const PolicySpec& policy, const Target& target, Index images,
                                         const PlanOptions& options = {}) {
  const bool streams = options.stores_output, training = options.training;
  detail::check_norms(table, policy, training);
  std::vector<Stage> stages = split_stages(table, policy, training);
  if (training && !streams) detail::add_passes(table, policy, stages);
  const bool alike = policy.partition_count == 1;
  Index most = 1, asked = 1, best_stage = 0;
  const char* const rule = streams ? "every slab owns a row of its first layer's output; the largest feasible count is "
                                   : "every slab owns a row of every layer's output; the largest feasible count is ";
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Stage& stage = stages[i];
    stage.partition = policy.partition(stage.partition_number);
    Partition& p = stage.partition;
    if (p.passes && p.cut == Cut::share)
      throw PlanError(error_text(detail::stage_name(table, stage) + " is to be run by " + to_string(p), "slabs of extra passes make all their rows "
                                 "themselves, and hand none on", "use Overlap there"));
    if (stage.vector || stage.behind_means) p.cut = Cut::column;
    if (training && p.cut == Cut::share && stage.loses_rows(table, options)) p.cut = Cut::overlap;   // no forward pass hands rows on
    p.images = p.images == 0 ? images : std::min(p.images, images);
    auto rules = detail::row_rules(table, stage, target, policy.conv_algorithm);
    const detail::RowGraph graph = rules.graph();
    if (p.cut == Cut::column) p.forward = 1;
    if (p.cut == Cut::column || streams) p.backward = p.forward;
    const Index wanted = std::max(p.forward, p.backward);
    asked = std::max(asked, wanted);
    const auto refuse = [&](Index largest) {
      detail::throw_if_more_slabs_than_fit(wanted, largest, [&] {
        return error_text(detail::stage_name(table, stage) + " cannot be cut into " + std::to_string(wanted) + " slabs by " +
                              to_string(policy.partition(stage.partition_number)),
                          rule + std::to_string(largest), detail::fewer_slabs(table, policy, target, stages, stage, largest, streams));
      });
    };
    if (streams && p.cut == Cut::share) {
      const Index largest = max_stream_slabs(graph), count = std::min(wanted, largest);
      if (!alike && wanted > largest) refuse(largest);
      if (count > most) most = count, best_stage = static_cast<Index>(i);
      p.forward = p.backward = count;
      stage.forward = best_stream_schedule(graph, count);
      continue;
    }
    std::vector<Index> finest = choose_cuts(graph, p.cut, wanted);
    if (finest.empty()) {
      const Index largest = max_slabs(graph, p.cut);
      if (!alike) refuse(largest);
      if (largest > most) most = largest, best_stage = static_cast<Index>(i);
      p.forward = std::min(p.forward, largest);
      p.backward = std::min(p.backward, largest);
      finest = choose_cuts(graph, p.cut, std::max(p.forward, p.backward));
    } else if (wanted > most) {
      most = wanted;
    }
    // Passes of a sharing stage must meet at common cuts: the coarser one uses every so many of the finer one's.
    const auto cuts_for = [&](Index count) {
      if (count == static_cast<Index>(finest.size())) return finest;
      if (p.cut == Cut::share) return thin_cuts(finest, count);
      return choose_cuts(graph, p.cut, count);
    };
    stage.forward = make_schedule(graph, p.cut, cuts_for(p.forward));
    stage.backward = make_schedule(graph, p.cut, cuts_for(p.backward));
  }
  if (alike)
    detail::throw_if_more_slabs_than_fit(asked, most, [&] {
      return error_text("no stage can be cut into " + std::to_string(asked) + " slabs by " + to_string(policy.partition(0)) + " on input " +
                            to_string(table.input),
                        rule + std::to_string(most) + ", in " + detail::stage_name(table, stages[static_cast<std::size_t>(best_stage)]),
                        "ask for at most " + std::to_string(most) + ", or for fewer layers in a stage by more checkpoints");
    });
  if (training && !streams) detail::choose_repeated(table, policy, stages);
  return stages;
}
}  // namespace lrcnn
