#pragma once
// Carries a recomputation strategy out, node by node, with names of values instead of numbers: what is there, what is missing, and how many
// bytes are live. It knows the strategy's segments and kept nodes only; boundaries, peaks and overheads it finds itself.
#include <lrcnn/plan/lower_sets.hpp>
#include <algorithm>
#include <string>
namespace lrcnn::testing {
class StrategyReplay {
 public:
  StrategyReplay(const RecomputationGraph& graph, const RecomputationStrategy& strategy)
      : graph_(graph), inputs_(graph.nodes.size()), readers_(graph.nodes.size()), value_(graph.nodes.size()), gradient_(graph.nodes.size()) {
    for (const RecomputationEdge& e : graph.edges) inputs_[index(e.to)].push_back(e.from), readers_[index(e.from)].push_back(e.to);
    for (const RecomputationSegment& segment : strategy.segments) forward(segment);
    for (std::size_t v = 0; v < value_.size(); ++v)
      if (times_computed(v) == 0) fail("node " + std::to_string(v) + " is in no segment");
    for (auto segment = strategy.segments.rbegin(); problem_.empty() && segment != strategy.segments.rend(); ++segment) backward(*segment);
  }
  /// The first thing that cannot be done; empty if all can.
  const std::string& problem() const { return problem_; }
  Index peak_bytes() const { return peak_; }
  /// Time of forward steps that are done a second time.
  Index recomputed_time() const { return recomputed_; }

 private:
  static std::size_t index(Index v) { return static_cast<std::size_t>(v); }
  const RecomputationGraph& graph_;
  std::vector<std::vector<Index>> inputs_, readers_;
  std::vector<char> value_, gradient_;   ///< whether it is in memory
  std::vector<char> computed_ = std::vector<char>(value_.size()), finished_ = std::vector<char>(value_.size());
  Index live_ = 0, peak_ = 0, recomputed_ = 0;
  std::string problem_{};
  char times_computed(std::size_t v) const { return computed_[v]; }
  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  void hold(std::vector<char>& where, Index v) {
    if (where[index(v)]) return fail("node " + std::to_string(v) + " is put into memory twice");
    where[index(v)] = 1;
    live_ += graph_.node(v).bytes;
    peak_ = std::max(peak_, live_);
  }
  void drop(std::vector<char>& where, Index v) {
    if (where[index(v)]) live_ -= graph_.node(v).bytes;
    where[index(v)] = 0;
  }
  void need(const std::vector<char>& where, Index v, const char* what, Index reader) {
    if (!where[index(v)]) fail(std::string(what) + " " + std::to_string(v) + " is not there when node " + std::to_string(reader) + " needs it");
  }
  void compute(Index v) {
    for (const Index input : inputs_[index(v)]) need(value_, input, "value", v);
    hold(value_, v);
  }
  void forward(const RecomputationSegment& segment) {
    for (const Index v : segment.nodes) {
      if (computed_[index(v)]++ != 0) fail("node " + std::to_string(v) + " is in two segments");
      compute(v);
    }
    for (const Index v : segment.kept)
      if (std::find(segment.nodes.begin(), segment.nodes.end(), v) == segment.nodes.end()) fail("a kept node is in another segment");
    for (const Index v : segment.nodes)
      if (std::find(segment.kept.begin(), segment.kept.end(), v) == segment.kept.end()) drop(value_, v);
  }
  /// The gradient of a node comes from its readers: from their gradients, and all that they read.
  void backward(const RecomputationSegment& segment) {
    for (const Index v : segment.nodes) {
      if (value_[index(v)]) continue;
      compute(v);
      recomputed_ += graph_.node(v).time;
    }
    for (auto v = segment.nodes.rbegin(); v != segment.nodes.rend(); ++v) {
      for (const Index reader : readers_[index(*v)]) {
        need(gradient_, reader, "gradient", *v);
        for (const Index input : inputs_[index(reader)]) need(value_, input, "value", *v);
      }
      hold(gradient_, *v);
    }
    for (const Index v : segment.nodes) finished_[index(v)] = 1;
    for (Index v = 0; v < graph_.size(); ++v) {   // what no gradient that is still to come needs
      if (!finished_[index(v)]) continue;
      if (!feeds_unfinished(v)) drop(gradient_, v);
      if (std::none_of(readers_[index(v)].begin(), readers_[index(v)].end(), [&](Index reader) { return feeds_unfinished(reader); })) drop(value_, v);
    }
  }
  bool feeds_unfinished(Index v) const {
    return std::any_of(inputs_[index(v)].begin(), inputs_[index(v)].end(), [&](Index input) { return !finished_[index(input)]; });
  }
};
}   // namespace lrcnn::testing
