#pragma once
// The least seconds that the sections from a layer on take within the bytes that are left to them.
//
// Found from the network's output downward, for each set of tensors that may be kept already, and for bytes in pieces, which are rounded so that
// no way to go on takes less. A search drops what cannot come to a better end than one that it has found.
#include <lrcnn/plan/section_passage.hpp>
#include <limits>
namespace lrcnn {
class SectionBounds {
 public:
  static constexpr Index unlimited = std::numeric_limits<Index>::max() / 2;   ///< bytes
  /// For up to `most` bytes. `each`: what counts for each section beside its seconds; `workspaces`: no way is looked at that wants more shared ones.
  SectionBounds(const SectionCatalog& catalog, const std::vector<SectionPassage>& passages, StepMemory memory, Index most, double each,
                Index workspaces = unlimited)
      : pieces_(most > unlimited / 2 ? 1 : most_pieces),
        piece_(most / pieces_ + 1),
        workspaces_(workspaces),
        layers_(static_cast<std::size_t>(catalog.layers() + 1)) {
    const Index top = catalog.layers();
    for (Index at = 0; at <= top; ++at)
      if (at == top || !catalog.from(at).empty()) watch(catalog, at);
    item(layers_, top).least.assign(static_cast<std::size_t>(pieces_), 0);
    for (Index at = top - 1; at >= 0; --at)
      for (const std::size_t s : catalog.from(at)) add(catalog.sections()[s].border, passages[s], memory, each);
  }
  /// At least so many seconds, with `each`, from a layer on: with these tensors across it kept, and so many bytes left.
  double least(Index layer, TensorSet kept, Index room) const {
    const Layer& at = item(layers_, layer);
    if (at.least.empty() || room < 0) return never;
    return at.least[static_cast<std::size_t>(state(at, kept) * pieces_ + std::min(room / piece_, pieces_ - 1))];
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr Index most_pieces = 256;
  static constexpr std::size_t most_watched = 5;   ///< tensors across a layer that are told apart; others count as kept
  struct Layer {
    std::vector<TensorSet> watched{};
    std::vector<double> least{};   ///< by state and piece
  };
  /// What a way takes in pieces, and the state above it.
  struct Taken {
    Index first = 0;   ///< the fewest pieces that it fits into
    Index kept = 0;
    Index state = 0;
  };
  const Index pieces_;
  const Index piece_;
  const Index workspaces_;
  std::vector<Layer> layers_;
  static Index state(const Layer& at, TensorSet kept) {
    Index number = 0;
    for (std::size_t w = 0; w < at.watched.size(); ++w) number |= static_cast<Index>((kept & at.watched[w]) != 0) << w;
    return number;
  }
  static TensorSet kept_in(const Layer& at, Index state) {
    TensorSet kept = ~TensorSet{0};
    for (std::size_t w = 0; w < at.watched.size(); ++w)
      if ((state >> w & 1) == 0) kept &= ~at.watched[w];
    return kept;
  }
  /// The largest tensors make most of a difference.
  void watch(const SectionCatalog& catalog, Index layer) {
    const std::vector<Index>& across = catalog.across(layer);
    std::vector<std::size_t> places(std::min(across.size(), SectionPassage::bits));
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return catalog.readers().bytes(across[a]) > catalog.readers().bytes(across[b]); });
    Layer& at = item(layers_, layer);
    for (std::size_t i = 0; i < std::min(places.size(), most_watched); ++i) at.watched.push_back(TensorSet{1} << places[i]);
    at.least.assign(static_cast<std::size_t>(pieces_ << at.watched.size()), never);
  }
  void add(const SectionBorder& border, const SectionPassage& passage, StepMemory memory, double each) {
    Layer& at = item(layers_, border.begin());
    const Layer& end = item(layers_, border.end());
    if (end.least.empty()) return;
    std::vector<Taken> faster;
    for (Index s = 0; s < Index{1} << at.watched.size(); ++s) {
      const SectionPassage::Entry entry = passage.enter(kept_in(at, s), ~TensorSet{0});
      double* const least = at.least.data() + s * pieces_;
      faster.clear();
      for (const SectionWay& way : passage.ways(memory)) {   // by rising seconds
        if (way.choice->shared_workspaces() > workspaces_ || SectionPassage::is_barred(way, entry)) continue;
        const SectionPeaks& peaks = SectionPassage::peaks(way, entry);
        const auto [kept, tensors] = passage.leave(way, entry);
        const Index need = std::max(peaks.forward + entry.passing, peaks.backward + passage.backward_bytes());
        const Taken taken{std::max(need, kept) / piece_, kept / piece_, state(end, tensors)};
        const auto takes_no_more = [&](const Taken& other) {
          return other.first <= taken.first && other.kept <= taken.kept && other.state == taken.state;
        };
        if (taken.first >= pieces_ || std::any_of(faster.begin(), faster.end(), takes_no_more)) continue;
        faster.push_back(taken);
        const double seconds = way.seconds + each;
        const double* const above = end.least.data() + taken.state * pieces_;
        for (Index p = taken.first; p < pieces_; ++p) least[p] = std::min(least[p], seconds + above[p - taken.kept]);
      }
    }
  }
};
}   // namespace lrcnn
