#pragma once
// Where a search for policies lets sections end: behind layers whose outputs are worth keeping.
#include <lrcnn/plan/section_border.hpp>
namespace lrcnn {
namespace detail {
/// Of each layer, whether a policy's checkpoints end a section behind it. Sections of vectors end at barriers alone.
inline std::vector<char> ends_of(const Table& table, const PolicySpec& policy) {
  check_names(table, policy);
  std::vector<char> ends(static_cast<std::size_t>(table.size()), 0);
  const VectorLayers vectors(table);
  for (Index l = 0; l < table.size(); ++l) item(ends, l) = !item(vectors.are, l) && is_checkpoint(table, policy, l);
  return ends;
}
/// Whether a network has so few layers that more is tried than pays for larger ones.
inline bool is_small(const Table& table) { return table.size() <= 16; }
class SectionEnds {
 public:
  /// `across`: of each layer, tensors from below that are read from there on. Pre: the arguments outlive the object.
  SectionEnds(const Table& table, const TensorReaders& readers, const std::vector<std::vector<Index>>& across)
      : table_(table), readers_(readers), across_(across) {}
  /// Of each layer, whether a section may end behind it. At most most_ends do.
  std::vector<char> find() const {
    std::vector<Index> found;
    const VectorLayers vectors(table_);
    for (Index l = 0; l + 1 < table_.size(); ++l)
      if (!item(vectors.are, l) && (is_small(table_) || is_good(l)) && item(across_, l + 1).size() <= most_across) found.push_back(l);
    if (found.size() > most_ends) found = fewest_across(found);
    std::vector<char> ends(static_cast<std::size_t>(table_.size()), 0);
    for (const Index l : found) item(ends, l) = 1;
    return ends;
  }

 private:
  static constexpr std::size_t most_ends = 24;
  static constexpr std::size_t most_across = 64;   ///< tensors between sections: a search has a bit for each
  static constexpr Index nearby = 8;               ///< ends
  const Table& table_;
  const TensorReaders& readers_;
  const std::vector<std::vector<Index>>& across_;
  /// Whether it makes sense to keep the output of layer l: nothing that is cheap to compute follows it alone.
  bool is_good(Index l) const {
    const Node& next = table_.node(l + 1);
    const Kind kind = next.layer.kind;
    return !(next.input == l + 1 &&
             (is_activation(next.layer) || kind == Kind::norm || kind == Kind::dropout || kind == Kind::layer_scale || kind == Kind::sum));
  }
  /// Of layers behind which sections may end, some: not those with places near by on both sides that fewer tensors cross, as have the middles of
  /// residual blocks; of what remains, in each of most_ends parts the one that the fewest bytes cross.
  std::vector<Index> fewest_across(const std::vector<Index>& found) const {
    const auto count = static_cast<Index>(found.size());
    const auto width = [&](Index i) { return item(across_, item(found, i) + 1).size(); };
    const auto bytes = [&](Index l) {
      Index sum = 0;
      for (const Index g : item(across_, l + 1)) sum += readers_.bytes(g);
      return sum;
    };
    std::vector<Index> narrow;
    for (Index i = 0; i < count; ++i) {
      Index left = i, right = i;   // the nearest that fewer cross
      while (left >= 0 && width(left) >= width(i)) --left;
      while (right < count && width(right) >= width(i)) ++right;
      if (left < 0 || right == count || right - left > nearby) narrow.push_back(item(found, i));
    }
    std::vector<Index> chosen;
    const auto kept = static_cast<Index>(narrow.size()), parts = std::min(kept, static_cast<Index>(most_ends));
    for (Index part = 0; part < parts; ++part) {
      const auto place = [&](Index p) { return narrow.begin() + p * kept / parts; };
      chosen.push_back(*std::min_element(place(part), place(part + 1), [&](Index a, Index b) { return bytes(a) < bytes(b); }));
    }
    return chosen;
  }
};
}   // namespace detail
}   // namespace lrcnn
