// The laws of plan/slab_schedule.hpp, on seeded random chains and on every small one, and the golden values of
// LR-CNN's two partitions on VGG-16.
#include <lrcnn/plan/slab_cuts.hpp>
#include <doctest/doctest.h>
#include <string>
#include "support/random_network.hpp"
using namespace lrcnn;
using lrcnn::testing::Dice;
namespace {
constexpr Axis conv3{.kernel = 3, .pad_begin = 1, .pad_end = 1}, pool2{.kernel = 2, .stride = 2}, point{};
/// A chain that owns its rules.
struct OwnChain {
  std::vector<RowRule> rules;
  Index height = 1;
  Index last_row_bytes = 0;
  RowGraph view() const { return {rules, height, last_row_bytes}; }
};
/// Row bytes by position: all different, so that no two tensors can stand in for each other.
OwnChain make_chain(std::span<const Axis> axes, Index height, std::span<const Index> grids = {}) {
  OwnChain c;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Index out = out_extent(axes[i], height);
    if (out < 1) return {};
    c.rules.push_back({axes[i], height, out, 16 + 7 * static_cast<Index>(i), grids.empty() ? 1 : grids[i]});
    height = out;
  }
  c.height = height;
  c.last_row_bytes = 12;
  return c;
}
std::string show(const OwnChain& c) {
  std::string text = std::to_string(c.rules.empty() ? c.height : c.rules[0].in_height) + " rows";
  for (const RowRule& r : c.rules)
    text += " | k" + std::to_string(r.axis.kernel) + " s" + std::to_string(r.axis.stride) + " p" + std::to_string(r.axis.pad_begin) + "," +
            std::to_string(r.axis.pad_end) + " d" + std::to_string(r.axis.dilation) + " g" + std::to_string(r.grid);
  return text + " | " + std::to_string(c.height) + " rows";
}
std::string show(std::span<const Index> cuts) {
  std::string text = "cuts";
  for (const Index e : cuts) text += " " + std::to_string(e);
  return text;
}
OwnChain random_chain(Dice& dice, Index height, bool grids = false) {
  for (;;) {
    std::vector<Axis> axes;
    std::vector<Index> grid;
    for (Index layers = dice.upto(1, 6); layers > 0; --layers) {
      const Index k = dice.upto(1, dice.chance(0.3) ? 7 : 3);
      axes.push_back(dice.chance(0.2)
                         ? point
                         : Axis{k, dice.chance(0.6) ? 1 : dice.upto(1, 4), dice.upto(0, k), dice.upto(0, k), dice.chance(0.8) ? 1 : dice.upto(2, 3)});
      grid.push_back(grids && axes.back().stride == 1 && dice.chance(0.7) ? 4 : 1);
    }
    OwnChain c = make_chain(axes, height, grid);
    if (!c.rules.empty() && c.height <= 60) return c;
  }
}
/// What slab n holds, by the definition; tensor 0 counts with the rows between it and the next slab, too.
Index slab_bytes(const OwnChain& c, Cut cut, const Schedule& s, Index n) {
  Index bytes = 0;
  for (Index t = 0; t < s.tensors; ++t) {
    Range hold = s.at(n, t).hold;
    if (t == 0 && cut == Cut::share) {
      const Index e0 = s.at(n, 1).own.begin;
      hold = {std::min(first_needed(c.rules[0].axis, e0), s.at(n, 0).own.begin), s.at(n, 0).own.end};
    }
    bytes += hold.size() * c.view().row_bytes(t);
  }
  return bytes;
}
bool owns_everywhere(const Schedule& s) {
  for (Index n = 0; n < s.slabs(); ++n)
    for (Index t = 1; t < s.tensors; ++t)
      if (s.at(n, t).own.empty()) return false;
  return true;
}
/// -1 if some slab owns no row of some tensor; else the bytes of the largest slab.
Index largest_slab(const OwnChain& c, Cut cut, const std::vector<Index>& cuts) {
  const Schedule s = make_schedule(c.view(), cut, cuts);
  if (s.slabs() > 1 && !owns_everywhere(s)) return -1;
  Index most = 0;
  for (Index n = 0; n < s.slabs(); ++n) most = std::max(most, slab_bytes(c, cut, s, n));
  return most;
}
/// The first law of the schedule's head comment that does not hold; empty if all do.
std::string broken_law(const OwnChain& c, Cut cut, const Schedule& s) {
  const RowGraph chain = c.view();
  const Index top = s.tensors - 1, slabs = s.slabs();
  for (Index t = 0; t <= top; ++t) {
    const Index height = chain.tensor_height(t);
    for (Index n = 0; n < slabs; ++n) {
      const SlabRows& r = s.at(n, t);
      const auto at = [&](const char* law) { return std::string(law) + " at slab " + std::to_string(n) + ", tensor " + std::to_string(t); };
      for (const Range part : {r.own, r.hold, r.need})
        if (!Range{0, height}.contains(part)) return at("rows lie in the map");
      if (!r.hold.contains(r.need)) return at("need lies in hold");
      if (!r.hold.contains(r.own) && t > 0) return at("own lies in hold");
      if (t > 0 && r.own.empty()) return at("a slab owns a row of every tensor above the first");
      if (t < top && slabs > 1 && r.need != in_rows(chain.rule(t).axis, s.at(n, t + 1).own, height)) return at("need is what the layer above reads");
      const Index begin = n == 0 ? 0 : s.at(n - 1, t).own.end;
      if ((t == top || cut == Cut::share) && (r.own.begin != begin || (n + 1 == slabs && r.own.end != height))) return at("own rows tile the tensor");
      if (t == 0 || t == top) continue;
      const Index grid = chain.grid(t);
      if (slabs > 1 && r.own.end < height && r.own.end % grid != 0) return at("cuts lie on the grid");
      if (slabs > 1 && r.own.begin % grid != 0) return at("cuts begin on the grid");
      if (cut == Cut::overlap) {
        if (r.own != r.hold) return at("overlapping slabs carry nothing");
        if (grid == 1 && slabs > 1 && r.own != r.need) return at("own is need");
        continue;
      }
      const Range carried{r.hold.begin, std::max(r.hold.begin, r.own.begin)};
      if (n == 0 ? !carried.empty() : !s.at(n - 1, t).hold.contains(carried)) return at("hold is own and rows of the slab before");
      if (frontier(chain.rule(t).axis, r.own.end, height) < s.at(n, t + 1).own.end) return at("own rows suffice for the layer above");
      if (grid == 1 && slabs > 1 && n + 1 < slabs && r.own.end != known_for(chain.rule(t).axis, s.at(n, t + 1).own.end, height))
        return at("no more rows than the layer above reads");
    }
  }
  return "";
}
/// All increasing lists of cuts that end at `height`.
template <class F>
void each_cuts(Index height, F f) {
  for (std::uint32_t set = 0; set < (1u << (height - 1)); ++set) {
    std::vector<Index> cuts;
    for (Index e = 1; e < height; ++e)
      if (set >> (e - 1) & 1) cuts.push_back(e);
    cuts.push_back(height);
    f(cuts);
  }
}
/// Fewest bytes of the largest slab for each count, over all cuts; -1 where none is possible.
std::vector<Index> best_by_count(const OwnChain& c, Cut cut) {
  std::vector<Index> best(static_cast<std::size_t>(c.height) + 1, -1);
  each_cuts(c.height, [&](const std::vector<Index>& cuts) {
    const Index cost = largest_slab(c, cut, cuts);
    Index& least = best[cuts.size()];
    if (cost >= 0 && (least < 0 || cost < least)) least = cost;
  });
  return best;
}
const std::vector<Axis> blocks12{conv3, conv3, pool2, conv3, conv3, pool2};
const std::vector<Axis> blocks123{conv3, conv3, pool2, conv3, conv3, pool2, conv3, conv3, conv3, pool2};
/// Output rows computable from each of the given leading input rows.
std::vector<Index> frontiers(const std::vector<Axis>& axes, Index height, std::vector<Index> known) {
  for (const Axis& a : axes) {
    for (Index& k : known) k = frontier(a, k, height);
    height = out_extent(a, height);
  }
  return known;
}
}   // namespace
TEST_CASE("overlap of VGG-16 blocks 1-2 at 224 rows reads the golden input rows") {
  const OwnChain c = make_chain(blocks12, 224);
  REQUIRE(c.height == 56);
  const auto inputs = [&](std::vector<Index> cuts) {
    const Schedule s = make_schedule(c.view(), Cut::overlap, std::move(cuts));
    CHECK(broken_law(c, Cut::overlap, s) == "");
    std::vector<Range> rows;
    for (Index n = 0; n < s.slabs(); ++n) rows.push_back(s.at(n, 0).hold);
    return rows;
  };
  CHECK(inputs({14, 28, 42, 56}) == std::vector<Range>{{0, 62}, {50, 118}, {106, 174}, {162, 224}});
  const auto eight = inputs({7, 14, 21, 28, 35, 42, 49, 56});
  CHECK(eight[0] == Range{0, 34});
  CHECK(eight[1] == Range{22, 62});
  CHECK(eight[7] == Range{190, 224});
}
TEST_CASE("sharing VGG-16 blocks 1-3 at 224 rows makes the golden rows of pool3") {
  const OwnChain c = make_chain(blocks123, 224);
  REQUIRE(c.height == 28);
  const auto sizes = [](const std::vector<Index>& cuts) {
    std::vector<Index> rows;
    for (std::size_t i = 0; i < cuts.size(); ++i) rows.push_back(cuts[i] - (i > 0 ? cuts[i - 1] : 0));
    return rows;
  };
  for (const auto& [input, pool3] : {std::pair<std::vector<Index>, std::vector<Index>>{{42, 82, 122, 162, 202, 224}, {3, 5, 5, 5, 5, 5}},
                                     {{26, 58, 90, 122, 154, 186, 218, 224}, {1, 4, 4, 4, 4, 4, 4, 3}}}) {
    const auto cuts = frontiers(blocks123, 224, input);
    CHECK(sizes(cuts) == pool3);
    const Schedule s = make_schedule(c.view(), Cut::share, cuts);
    CHECK(broken_law(c, Cut::share, s) == "");
    for (Index n = 0; n < s.slabs(); ++n) CHECK(s.at(n, 0).own.end == input[static_cast<std::size_t>(n)]);   // these cuts are tight
  }
  CHECK(frontiers(blocks123, 224, {25, 26}) == std::vector<Index>{0, 1});   // a first cut below 26 is infeasible
  Index known = 1;
  for (Index l = c.view().layers() - 1; l >= 0; --l)
    known = known_for(c.rules[static_cast<std::size_t>(l)].axis, known, c.rules[static_cast<std::size_t>(l)].in_height);
  CHECK(known == 26);
}
TEST_CASE("the laws hold for every pair of small layers, height and cuts") {
  Index cases = 0;
  std::string broken;
  const std::vector<Axis> layers{point,
                                 conv3,
                                 pool2,
                                 {.kernel = 2},
                                 {.kernel = 3, .stride = 2, .pad_begin = 1},
                                 {.kernel = 1, .stride = 3},
                                 {.kernel = 5, .pad_begin = 2, .pad_end = 2},
                                 {.kernel = 2, .pad_begin = 3, .pad_end = 1},
                                 {.kernel = 3, .pad_begin = 0, .pad_end = 2, .dilation = 2}};
  for (const Axis& a : layers)
    for (const Axis& b : layers)
      for (Index h = 1; h <= 9; ++h)
        for (const Cut cut : {Cut::overlap, Cut::share}) {
          const std::array<Axis, 2> axes{a, b};
          const OwnChain c = make_chain(axes, h);
          if (c.rules.empty() || c.height > 9) continue;
          each_cuts(c.height, [&](const std::vector<Index>& cuts) {
            const Schedule s = make_schedule(c.view(), cut, cuts);
            const bool valid = s.slabs() == 1 || owns_everywhere(s);
            if (s.slabs() > 1 && valid != are_valid_cuts(c.view(), cut, cuts)) broken = "all_valid: " + show(c) + " " + show(cuts);
            if (!valid) return;
            ++cases;
            if (const auto law = broken_law(c, cut, s); !law.empty() && broken.empty()) broken = law + ": " + show(c) + " " + show(cuts);
          });
        }
  CHECK(broken == "");
  CHECK(cases > 3000);
}
TEST_CASE("the laws hold for the chosen cuts of random chains") {
  std::string broken;
  Index cases = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Dice dice(seed);
    const OwnChain c = random_chain(dice, dice.upto(1, 60), dice.chance(0.3));
    for (const Cut cut : {Cut::column, Cut::overlap, Cut::share})
      for (Index count = 1; count <= 7; ++count) {
        const auto cuts = choose_cuts(c.view(), cut, count);
        if (cuts.empty()) continue;
        ++cases;
        const auto law = broken_law(c, cut, make_schedule(c.view(), cut, cuts));
        const bool counted = static_cast<Index>(cuts.size()) == (cut == Cut::column ? 1 : count) && cuts.back() == c.height;
        if ((!law.empty() || !counted) && broken.empty())
          broken = (counted ? law : "wrong count") + ": seed " + std::to_string(seed) + ", " + show(c) + " " + show(cuts);
      }
  }
  CHECK(broken == "");
  CHECK(cases > 15000);
}
TEST_CASE("the cost by which cuts are chosen is that of the rows held") {
  std::string broken;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Dice dice(seed);
    const OwnChain c = random_chain(dice, dice.upto(1, 40), dice.chance(0.3));
    for (const Cut cut : {Cut::overlap, Cut::share})
      for (int i = 0; i < 20 && c.height >= 2; ++i) {
        std::vector<Index> cuts{dice.upto(1, c.height - 1), c.height};
        if (cuts[0] > 1 && dice.chance(0.7)) cuts.insert(cuts.begin(), dice.upto(1, cuts[0] - 1));
        const Schedule s = make_schedule(c.view(), cut, cuts);
        if (owns_everywhere(s) != are_valid_cuts(c.view(), cut, cuts))
          broken = "valid, seed " + std::to_string(seed) + ", " + show(c) + " " + show(cuts);
        if (!owns_everywhere(s)) continue;
        for (Index n = 0; n < s.slabs(); ++n) {
          const Index cost = slab_cost(c.view(), cut, n == 0 ? 0 : cuts[static_cast<std::size_t>(n - 1)], cuts[static_cast<std::size_t>(n)]).bytes;
          if (cost != slab_bytes(c, cut, s, n)) broken = "bytes, seed " + std::to_string(seed) + ", " + show(c) + " " + show(cuts);
        }
      }
  }
  CHECK(broken == "");
}
TEST_CASE("cutting at the output loses nothing: cuts of the input only make slabs taller") {
  std::string broken;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Dice dice(seed);
    const OwnChain c = random_chain(dice, dice.upto(4, 60));
    const Index h = c.rules[0].in_height;
    std::vector<Index> known{dice.upto(1, h)};
    for (const RowRule& r : c.rules) known.push_back(frontier(r.axis, known.back(), r.in_height));
    if (known.back() == 0 || known.back() == c.height) continue;
    const Schedule s = make_schedule(c.view(), Cut::share, {known.back(), c.height});
    for (Index t = 0; t < s.tensors; ++t)
      if (s.at(0, t).own.end > known[static_cast<std::size_t>(t)]) broken = "seed " + std::to_string(seed) + ", " + show(c);
  }
  CHECK(broken == "");
}
TEST_CASE("up to 12 output rows the largest slab is the smallest that any cuts give") {
  std::string broken;
  Index compared = 0;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    Dice dice(seed);
    const OwnChain c = random_chain(dice, dice.upto(2, 30), dice.chance(0.3));
    if (c.height > 10) continue;
    for (const Cut cut : {Cut::overlap, Cut::share}) {
      const auto best = best_by_count(c, cut);
      Index most = 1;
      for (Index count = 2; count <= c.height; ++count) {
        const auto cuts = choose_cuts(c.view(), cut, count);
        const Index least = best[static_cast<std::size_t>(count)];
        if (least >= 0) most = count, ++compared;
        if ((cuts.empty() ? -1 : largest_slab(c, cut, cuts)) != least)
          broken = "count " + std::to_string(count) + ", seed " + std::to_string(seed) + ", " + show(c) + " " + show(cuts);
      }
      if (max_slabs(c.view(), cut) != most)
        broken = "max_slabs " + std::to_string(max_slabs(c.view(), cut)) + " for " + std::to_string(most) + ", seed " + std::to_string(seed) + ", " +
                 show(c);
    }
  }
  CHECK(broken == "");
  CHECK(compared > 400);
}
/// Windows as networks have them: padding is at most half the window, strides leave no gaps.
OwnChain usual_chain(Dice& dice, Index height, bool grids) {
  for (;;) {
    OwnChain c = random_chain(dice, height, grids);
    if (c.height > exact_cut_rows && std::all_of(c.rules.begin(), c.rules.end(), [](const RowRule& r) {
          return r.axis.pad_begin <= r.axis.extent() / 2 && r.axis.pad_end <= r.axis.extent() / 2 && r.axis.stride <= r.axis.extent();
        }))
      return c;
  }
}
TEST_CASE("above 12 output rows the largest slab costs at most one cut unit more than the smallest possible") {
  // A unit is one output row, or as many as keep all cuts on the grid. Slabs thinner than that, or few units: factor 2.
  std::string broken;
  Index compared = 0, thinner = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Dice dice(seed);
    const bool grids = seed % 2 == 0;
    const OwnChain c = usual_chain(dice, dice.upto(20, 60), grids);
    const RowGraph chain = c.view();
    const Index unit = cut_unit(chain), middle = c.height / 2 / unit * unit;
    for (const Cut cut : {Cut::overlap, Cut::share}) {
      const Index most = max_slabs(chain, cut);
      for (Index count = 2; count <= c.height; count += 1 + count / 6) {
        const auto cuts = choose_cuts(chain, cut, count), best = exact_cuts(chain, cut, count);
        const auto where = [&] {
          return ", count " + std::to_string(count) + ", seed " + std::to_string(seed) + ", " + show(c) + " " + show(cuts) + ", best " + show(best);
        };
        if ((cuts.empty() != best.empty() || cuts.empty() != (count > most)) && broken.empty()) broken = "feasible" + where();
        if (cuts.empty() || best.empty()) continue;
        const Index cost = largest_slab(c, cut, cuts), least = largest_slab(c, cut, best);
        ++compared;
        if (count * unit <= c.height && c.height / unit >= exact_cut_rows) {
          const Index more = slab_cost(chain, cut, middle - unit, middle + unit).bytes - slab_cost(chain, cut, middle - unit, middle).bytes;
          if (cost > least + more && broken.empty())
            broken = std::to_string(cost) + " > " + std::to_string(least) + " + " + std::to_string(more) + where();
        } else {
          ++thinner;
          if (cost > 2 * least && broken.empty()) broken = std::to_string(cost) + " > 2 * " + std::to_string(least) + where();
        }
      }
    }
  }
  CHECK(broken == "");
  CHECK(compared > 5000);
  CHECK(thinner > 100);
}
TEST_CASE("on a grid of four, cuts below the output are multiples of four, and no slab is the worse for it") {
  std::vector<Index> grids;
  for (const Axis& a : blocks123) grids.push_back(a == conv3 ? 4 : 1);
  const OwnChain c = make_chain(blocks123, 224, grids), free = make_chain(blocks123, 224);
  CHECK(cut_unit(c.view()) == 2);   // pool rows; two of them are four rows of the convolution below
  CHECK(cut_unit(free.view()) == 1);
  CHECK(cut_unit(make_chain(std::vector<Axis>{conv3, conv3}, 64, std::vector<Index>{4, 4}).view()) == 4);
  for (const Cut cut : {Cut::overlap, Cut::share})
    for (Index count = 2; count <= 5; ++count) {
      const auto cuts = choose_cuts(c.view(), cut, count);
      const Schedule s = make_schedule(c.view(), cut, cuts);
      for (Index n = 0; n + 1 < count; ++n)
        for (Index t = 1; t + 1 < s.tensors; ++t)
          if (c.view().grid(t) == 4) CHECK(s.at(n, t).own.end % 4 == 0);
      CHECK(largest_slab(c, cut, cuts) <= largest_slab(c, cut, exact_cuts(c.view(), cut, count)) * 11 / 10);
    }
}
TEST_CASE("thinned cuts are some of the finer ones, evenly chosen, the last among them") {
  for (Index all = 1; all <= 12; ++all) {
    std::vector<Index> cuts;
    for (Index i = 1; i <= all; ++i) cuts.push_back(10 * i + i * i);
    for (Index count = 1; count <= all; ++count) {
      const auto some = thin_cuts(cuts, count);
      REQUIRE(static_cast<Index>(some.size()) == count);
      CHECK(some.back() == cuts.back());
      Index last = 0, fewest = all, most = 0;   // finer slabs in one coarse slab
      for (const Index e : some) {
        const auto found = std::find(cuts.begin(), cuts.end(), e);
        REQUIRE(found != cuts.end());
        const Index at = found - cuts.begin() + 1;
        fewest = std::min(fewest, at - last), most = std::max(most, at - last);
        last = at;
      }
      CHECK(fewest >= 1);
      CHECK(most - fewest <= 1);
    }
    CHECK(thin_cuts(cuts, all) == cuts);
  }
}
TEST_CASE("slabs between thinned cuts end where the finer slabs end, at every tensor") {
  std::string broken;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Dice dice(seed);
    const OwnChain c = random_chain(dice, dice.upto(8, 60), dice.chance(0.3));
    const Index count = dice.upto(2, 6);
    const auto fine = choose_cuts(c.view(), Cut::share, count);
    if (fine.empty()) continue;
    const auto coarse = thin_cuts(fine, dice.upto(2, count));
    const Schedule a = make_schedule(c.view(), Cut::share, fine), b = make_schedule(c.view(), Cut::share, coarse);
    for (Index n = 0; n < b.slabs(); ++n) {
      const Index same = std::find(fine.begin(), fine.end(), coarse[static_cast<std::size_t>(n)]) - fine.begin();
      for (Index t = 0; t < b.tensors; ++t)
        if (a.at(same, t).own.end != b.at(n, t).own.end)
          broken = "seed " + std::to_string(seed) + ", " + show(c) + " " + show(fine) + " " + show(coarse);
    }
  }
  CHECK(broken == "");
}
TEST_CASE("a single slab is the whole maps, rows that nobody reads included") {
  const OwnChain c = make_chain(std::vector<Axis>{{.kernel = 2, .stride = 3}, conv3}, 13);
  for (const Cut cut : {Cut::column, Cut::overlap, Cut::share}) {
    const Schedule s = make_schedule(c.view(), cut, choose_cuts(c.view(), cut, 1));
    REQUIRE(s.slabs() == 1);
    for (Index t = 0; t < s.tensors; ++t) {
      const Range all{0, c.view().tensor_height(t)};
      CHECK(s.at(0, t) == SlabRows{all, all, all, all});
    }
  }
  CHECK(choose_cuts(c.view(), Cut::column, 5) == std::vector<Index>{c.height});
  CHECK(max_slabs(c.view(), Cut::column) == 1);
}
TEST_CASE("more slabs than rows cannot be cut, and the largest feasible count can") {
  std::string broken;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const OwnChain c = random_chain(dice, dice.upto(1, 60), dice.chance(0.3));
    for (const Cut cut : {Cut::overlap, Cut::share}) {
      const Index most = max_slabs(c.view(), cut);
      const bool reached = !choose_cuts(c.view(), cut, most).empty();
      const bool beyond = most < c.height && !choose_cuts(c.view(), cut, most + 1).empty();
      if (!reached || beyond || most > c.height || !choose_cuts(c.view(), cut, c.height + 1).empty())
        broken = "largest count " + std::to_string(most) + ", seed " + std::to_string(seed) + ", " + show(c);
    }
  }
  CHECK(broken == "");
}
