#pragma once
// Lower sets of a forward graph, and what the choice of a chain must know of each.
//
// A set of nodes is a lower set if it has, with each node, all that the node reads. Its boundary is those of its nodes that somebody outside
// reads. Sets are rows of bits, as many words as the nodes need.
#include <lrcnn/plan/recomputation_graph.hpp>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <unordered_set>
namespace lrcnn {
/// Among which lower sets a chain is chosen.
enum class LowerSetFamily : std::uint8_t {
  exact,    ///< all of them: the best chain there is. Their number can grow exponentially with the branches that run side by side
  approx,   ///< for each node, the node and all that it depends on (Kusumoto et al.)
  order,    ///< prefixes of the graph's topological order (topological_order())
  wide,     ///< those of approx and of order
};
/// "exact", "approx", "order", "wide"
constexpr std::string_view family_name(LowerSetFamily family) {
  constexpr std::array<std::string_view, 4> names{"exact", "approx", "order", "wide"};
  return names[static_cast<std::size_t>(family)];
}
namespace detail {
using Word = std::uint64_t;
inline bool has(const Word* set, Index i) { return (set[i / 64] >> (i % 64) & 1) != 0; }
inline void insert(Word* set, Index i) { set[i / 64] |= Word{1} << (i % 64); }
/// Calls f(i) for each node i of a set.
template <class F>
void each_node(const Word* set, std::size_t words, F f) {
  for (std::size_t w = 0; w < words; ++w)
    for (Word rest = set[w]; rest != 0; rest &= rest - 1) f(static_cast<Index>(w) * 64 + std::countr_zero(rest));
}
/// Sets of nodes, all of the same number of words.
class NodeSets {
 public:
  explicit NodeSets(Index nodes) : words_(static_cast<std::size_t>((nodes + 63) / 64)) {}
  std::size_t words() const { return words_; }
  std::size_t size() const { return bits_.size() / words_; }
  Word* operator[](std::size_t i) { return bits_.data() + i * words_; }
  const Word* operator[](std::size_t i) const { return bits_.data() + i * words_; }
  std::span<const Word> row(std::size_t i) const { return {(*this)[i], words_}; }
  /// Appends a copy of set `from`, or an empty set.
  void push() { bits_.resize(bits_.size() + words_); }
  void push(std::size_t from) {
    push();
    std::copy_n((*this)[from], words_, (*this)[size() - 1]);
  }
  void pop() { bits_.resize(bits_.size() - words_); }
  Index count(std::size_t i) const {
    Index nodes = 0;
    for (const Word w : row(i)) nodes += std::popcount(w);
    return nodes;
  }

 private:
  std::size_t words_;
  std::vector<Word> bits_{};
};
/// Appends sets, each at most once.
class SetCollector {
 public:
  explicit SetCollector(NodeSets& sets) : sets_(sets), known_(64, Hash{&sets}, Equal{&sets}) {}
  /// Takes the last set out again if it is known.
  void keep_last_if_new() {
    if (!known_.insert(sets_.size() - 1).second) sets_.pop();
  }
  void forget() { known_.clear(); }

 private:
  struct Hash {
    const NodeSets* sets;
    std::size_t operator()(std::size_t i) const {
      Word h = 0;
      for (const Word w : sets->row(i)) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
      return static_cast<std::size_t>(h);
    }
  };
  struct Equal {
    const NodeSets* sets;
    bool operator()(std::size_t a, std::size_t b) const { return std::ranges::equal(sets->row(a), sets->row(b)); }
  };
  NodeSets& sets_;
  std::unordered_set<std::size_t, Hash, Equal> known_;
};
[[noreturn]] inline void throw_too_many_sets(LowerSetFamily family, Index most) {
  throw PlanError(error_text("the graph has more than " + std::to_string(most) + " lower sets in family " + std::string(family_name(family)),
                             "a chain is chosen by comparing each set with all others, and this is the most that was allowed",
                             "choose a smaller family, such as wide instead of exact, or raise RecomputationOptions::max_lower_sets"));
}
/// All lower sets, by cardinality: those of n + 1 nodes are those of n and one more whose inputs are there.
inline NodeSets all_lower_sets(const NodeLinks& links, Index most) {
  const auto nodes = static_cast<Index>(links.inputs.size());
  NodeSets sets(nodes);
  SetCollector collector(sets);
  sets.push();
  for (std::size_t begin = 0, end = 1; begin < end; begin = end, end = sets.size()) {
    collector.forget();
    for (std::size_t i = begin; i < end; ++i)
      for (Index v = 0; v < nodes; ++v) {
        const auto& inputs = item(links.inputs, v);
        if (has(sets[i], v) || !std::all_of(inputs.begin(), inputs.end(), [&](Index input) { return has(sets[i], input); })) continue;
        sets.push(i);
        insert(sets[sets.size() - 1], v);
        collector.keep_last_if_new();
        if (static_cast<Index>(sets.size()) > most) throw_too_many_sets(LowerSetFamily::exact, most);
      }
  }
  return sets;
}
/// The sets of a family, each once; among them the empty set and the set of all nodes.
inline NodeSets family_of(const NodeLinks& links, LowerSetFamily family, Index most) {
  if (family == LowerSetFamily::exact) return all_lower_sets(links, most);
  const auto nodes = static_cast<Index>(links.inputs.size());
  const std::vector<Index> order = order_of_links(links);
  NodeSets sets(nodes), closures(nodes);
  SetCollector collector(sets);
  const auto add = [&] {
    collector.keep_last_if_new();
    if (static_cast<Index>(sets.size()) > most) throw_too_many_sets(family, most);
  };
  sets.push();
  add();
  sets.push();
  for (Index v = 0; v < nodes; ++v) insert(sets[1], v);
  add();
  if (family != LowerSetFamily::order) {
    for (Index v = 0; v < nodes; ++v) closures.push();
    for (const Index v : order) {
      Word* const closure = item(closures, v);
      insert(closure, v);
      for (const Index input : item(links.inputs, v))
        for (std::size_t w = 0; w < closures.words(); ++w) closure[w] |= item(closures, input)[w];
      sets.push();
      std::copy_n(closure, sets.words(), sets[sets.size() - 1]);
      add();
    }
  }
  if (family != LowerSetFamily::approx) {
    NodeSets prefix(nodes);
    prefix.push();
    for (const Index v : order) {
      insert(prefix[0], v);
      sets.push();
      std::copy_n(prefix[0], sets.words(), sets[sets.size() - 1]);
      add();
    }
  }
  return sets;
}
/// A family with all that a step from one of its sets L to a larger one L' must know of them. Sets are numbered by `need`.
///
/// The backward pass of L' \ L holds what is kept of L, m bytes, and M(L' \ L) twice, values and gradients; beside that the gradients of those
/// nodes outside L' that read L', and what else these read outside L'. So its peak is m - 2 M(L) + need(L').
struct LowerSetTable {
  NodeSets sets, boundaries;
  std::vector<Index> need, bytes, time;   ///< of each set: as above, M(L), T(L)
  std::vector<std::uint32_t> by_size;     ///< the sets by cardinality: each comes behind those that it contains
  std::vector<Index> node_bytes, node_time;
  LowerSetTable(const RecomputationGraph& graph, const NodeLinks& links, LowerSetFamily family, Index most)
      : sets(graph.size()), boundaries(graph.size()) {
    for (const RecomputationNode& node : graph.nodes) node_bytes.push_back(node.bytes), node_time.push_back(node.time);
    const NodeSets found = family_of(links, family, most);
    NodeSets borders(graph.size());
    std::vector<Index> needs;
    for (std::size_t i = 0; i < found.size(); ++i) {
      borders.push();
      needs.push_back(need_of(links, found[i], borders[i], found.words()));
    }
    std::vector<std::uint32_t> by_need(found.size());
    std::iota(by_need.begin(), by_need.end(), 0u);
    std::stable_sort(by_need.begin(), by_need.end(), [&](std::uint32_t a, std::uint32_t b) { return needs[a] < needs[b]; });
    std::vector<Index> counts;
    for (const std::uint32_t i : by_need) {
      sets.push(), boundaries.push();
      std::copy_n(found[i], sets.words(), sets[sets.size() - 1]);
      std::copy_n(borders[i], sets.words(), boundaries[sets.size() - 1]);
      need.push_back(needs[i]);
      bytes.push_back(sum(found[i], node_bytes)), time.push_back(sum(found[i], node_time));
      counts.push_back(found.count(i));
    }
    by_size.resize(found.size());
    std::iota(by_size.begin(), by_size.end(), 0u);
    std::stable_sort(by_size.begin(), by_size.end(), [&](std::uint32_t a, std::uint32_t b) { return counts[a] < counts[b]; });
  }
  std::size_t size() const { return need.size(); }
  std::size_t none() const { return by_size.front(); }
  std::size_t whole() const { return by_size.back(); }
  /// Whether set a is a part of set b, or the same.
  bool contains(std::size_t b, std::size_t a) const {
    const Word *const inner = sets[a], *const outer = sets[b];
    for (std::size_t w = 0; w < sets.words(); ++w)
      if ((inner[w] & ~outer[w]) != 0) return false;
    return true;
  }

 private:
  Index sum(const Word* set, const std::vector<Index>& of) const {
    Index total = 0;
    each_node(set, sets.words(), [&](Index v) { total += item(of, v); });
    return total;
  }
  /// The need of a set; writes its boundary.
  Index need_of(const NodeLinks& links, const Word* set, Word* boundary, std::size_t words) const {
    std::vector<Word> readers(words), beside(words);   // outside the set: who reads it, and what these read
    each_node(set, words, [&](Index v) {
      for (const Index reader : item(links.readers, v))
        if (!has(set, reader)) insert(boundary, v), insert(readers.data(), reader);
    });
    each_node(readers.data(), words, [&](Index reader) {
      for (const Index input : item(links.inputs, reader))
        if (!has(set, input)) insert(beside.data(), input);
    });
    return 2 * sum(set, node_bytes) + sum(readers.data(), node_bytes) + sum(beside.data(), node_bytes);
  }
};
}   // namespace detail
}   // namespace lrcnn
