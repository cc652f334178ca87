#pragma once
// One allocation with planned offsets.
//
// Every buffer has a size and a half-open live interval. Buffers whose intervals meet get disjoint offsets:
//   - the largest buffer first; among equals the one that lives earlier;
//   - each at the lowest gap between the already placed buffers that are live with it, so small ones fill holes.
// The greatest sum of live bytes is a lower bound, reported beside the result. Where the arena is more than 0.2 % above it, other orders are
// tried. For each of some limits, from the bound upward: those first that live when most is live; and as soon as one ends above the limit, it goes
// before all that did so less often, or forward by some places, and all are placed anew. The first order that keeps within a limit is taken. How
// many buffers are looked at is bounded, and grows with their number, so that run time and compile time find the same. Of at most 400 buffers, more
// orders are tried before limits above the bound: those first that live longest; and those that reached highest sooner than before.
// Not optimal: the problem is NP-hard.
// Offloaded tensors are in another memory, and are not placed here.
// Intervals are of emission time, in which the slabs of a loop share one turn: see plan/emit.hpp.
#include <lrcnn/core/types.hpp>
#include <limits>
#include <vector>
namespace lrcnn {
/// What a buffer is for.
enum class Role : std::uint8_t {
  value,        ///< a full-height tensor between two stages
  gradient,     ///< its gradient
  slab,         ///< rows of a tensor within a slab
  own,          ///< rows that a layer has just made, dense, before they join carried ones
  kept,         ///< rows kept from the forward to the backward pass, slab by slab
  saved,        ///< pool indices or mask bits
  carry,        ///< rows handed from slab to slab
  dslab,        ///< gradient rows within a slab
  dcarry,       ///< gradient rows handed from slab to slab
  packed,       ///< a filter in the backend's layout
  scratch,      ///< a filter gradient before it is added
  workspace,    ///< the backend's own scratch
  statistics,   ///< of a norm, or sums: of its backward pass, of a global pooling, of a scale's factors
  offloaded,    ///< a full-height tensor in the larger memory, not in the arena
};
/// What people read of a role: its name, and its letter in a map of memory.
struct RoleText {
  Role role;
  std::string_view name;
  char letter;
};
inline constexpr std::array role_texts{RoleText{Role::value, "value", 'V'},
                                       RoleText{Role::gradient, "gradient", 'G'},
                                       RoleText{Role::slab, "slab", 's'},
                                       RoleText{Role::own, "own", 'o'},
                                       RoleText{Role::kept, "kept", 'K'},
                                       RoleText{Role::saved, "saved", 'M'},
                                       RoleText{Role::carry, "carry", 'c'},
                                       RoleText{Role::dslab, "dslab", 'd'},
                                       RoleText{Role::dcarry, "dcarry", 'r'},
                                       RoleText{Role::packed, "packed", 'p'},
                                       RoleText{Role::scratch, "scratch", 'f'},
                                       RoleText{Role::workspace, "workspace", 'w'},
                                       RoleText{Role::statistics, "statistics", 'S'},
                                       RoleText{Role::offloaded, "offloaded", 'O'}};
static_assert([] {
  for (std::size_t r = 0; r < role_texts.size(); ++r)
    if (role_texts[r].role != static_cast<Role>(r)) return false;
  return role_texts.back().role == Role::offloaded;
}());
constexpr const RoleText& text_of(Role role) { return role_texts[static_cast<std::size_t>(role)]; }
constexpr std::string_view role_name(Role role) { return text_of(role).name; }
struct Buffer {
  Role role{};
  Index stage = -1;
  Index tensor = -1;   ///< whose rows it holds, or the layer for packed, scratch
  Index bytes = 0;
  Index first = 0;   ///< live in [first, last), emission time
  Index last = 0;
  Index offset = 0;   ///< in the arena; of an offloaded tensor, behind it: ArenaSize::bytes and more
  Index copy = 0;     ///< slabs that a device works on at once have buffers of their own: which of them this is,
  Index copies = 1;   ///< of how many that have consecutive numbers
  /// Whether both are live at once. Slabs with copies of their own run at the same time, whatever emission time says.
  constexpr bool meets(const Buffer& b) const {
    const bool at_once = copies > 1 && b.copies > 1 && copy != b.copy && stage == b.stage;
    return at_once || (first < b.last && b.first < last);
  }
  friend constexpr bool operator==(const Buffer&, const Buffer&) = default;
};
/// Sizes of an arena.
struct ArenaSize {
  Index bytes = 0;
  Index lower_bound = 0;   ///< no placement can need less
  Index offloaded = 0;     ///< of the larger memory, beside the arena
  friend constexpr bool operator==(const ArenaSize&, const ArenaSize&) = default;
};
namespace detail {
/// Bytes that are live at each time; the buffers' last times are within.
constexpr std::vector<Index> live_at(const std::vector<Buffer>& buffers) {
  std::vector<Index> change;
  for (const Buffer& b : buffers) {
    if (b.last <= b.first || b.role == Role::offloaded) continue;
    if (b.last >= static_cast<Index>(change.size())) change.resize(static_cast<std::size_t>(b.last + 1), 0);
    change[static_cast<std::size_t>(b.first)] += b.bytes;
    change[static_cast<std::size_t>(b.last)] -= b.bytes;
  }
  Index live = 0;
  for (Index& bytes : change) bytes = live += bytes;
  return change;
}
/// The most buffers for which whole orders are tried, too: that takes time with the square of their number.
inline constexpr std::size_t most_reordered = 400;
/// Which of two buffers is placed first.
enum class Placing : std::uint8_t { by_bytes, by_life, by_pressure };
/// The order in which buffers are placed. `live`: bytes at each time, for by_pressure.
constexpr std::vector<Index> placing_order(const std::vector<Buffer>& buffers, Placing placing, const std::vector<Index>& live) {
  const Index count = static_cast<Index>(buffers.size());
  std::vector<Index> order(buffers.size(), 0), pressure;
  for (Index i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  for (const Buffer& b : buffers) {
    if (placing != Placing::by_pressure) break;
    Index most = 0;   // at any time of its life
    for (Index t = b.first; t < b.last; ++t)
      if (const Index bytes = live[static_cast<std::size_t>(t)]; bytes > most) most = bytes;
    pressure.push_back(most);
  }
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    const Buffer &x = buffers[static_cast<std::size_t>(a)], &y = buffers[static_cast<std::size_t>(b)];
    if (placing == Placing::by_pressure)
      if (const Index p = pressure[static_cast<std::size_t>(a)], q = pressure[static_cast<std::size_t>(b)]; p != q) return p > q;
    if (placing != Placing::by_bytes)
      if (const Index p = x.last - x.first, q = y.last - y.first; p != q) return p > q;
    return x.bytes != y.bytes ? x.bytes > y.bytes : x.first != y.first ? x.first < y.first : a < b;
  });
  return order;
}
/// What became of an order.
struct Placed {
  Index bytes = 0;          ///< of the arena
  std::size_t placed = 0;   ///< so many buffers of the order were placed
  Index looks = 0;          ///< at buffers that were placed before
};
/// From so many buffers on, lists by time are kept.
inline constexpr std::size_t very_many = 3000;
/// What place_in_order() does, for very many buffers. Most of them live for a short time: they are compared with those alone that live in the same
/// part of the step.
constexpr Placed place_many_in_order(std::vector<Buffer>& buffers, const std::vector<Index>& order, Index most) {
  constexpr std::size_t parts = 128;
  Placed result;
  Index end = 0;
  for (const Buffer& b : buffers) end = std::max(end, b.last);
  const auto part_of = [length = end / static_cast<Index>(parts) + 1](Index time) { return static_cast<std::size_t>(time / length); };
  struct Occupied {   // a buffer that is placed. Lists hold these rather than pointers: most looks need no other memory then
    Index offset, end, first, last;
    const Buffer* buffer;
  };
  std::vector<Occupied> all, more;                     // by offset; `more` are not merged into `all` before that is read
  std::vector<std::vector<Occupied>> of_part(parts);   // those that live in each part of the time, by offset
  const auto insert = [](std::vector<Occupied>& list, const Occupied& o) {
    list.insert(std::upper_bound(list.begin(), list.end(), o.offset, [](Index offset, const Occupied& other) { return offset < other.offset; }), o);
  };
  const auto merged = [&]() -> const std::vector<Occupied>& {
    std::size_t i = all.size(), k = i + more.size();
    all.resize(k);
    for (std::size_t j = more.size(); j > 0;) all[--k] = i > 0 && all[i - 1].offset > more[j - 1].offset ? all[--i] : more[--j];
    more.clear();
    return all;
  };
  for (const Index i : order) {
    Buffer& b = buffers[static_cast<std::size_t>(i)];
    ++result.placed;
    if (b.bytes == 0 || b.role == Role::offloaded) continue;
    const bool used = b.first < b.last;
    const std::size_t first = used ? part_of(b.first) : 0, last = used ? part_of(b.last - 1) : 0;
    Index at = 0;
    for (const Occupied& o : first == last && b.copies == 1 ? of_part[first] : merged()) {
      ++result.looks;
      if (o.end <= at || ((o.first >= b.last || b.first >= o.last) && (b.copies == 1 || !o.buffer->meets(b)))) continue;
      if (o.offset >= at + b.bytes) break;
      at = o.end;
    }
    b.offset = at;
    if (at + b.bytes > most) {
      --result.placed;
      break;
    }
    result.bytes = std::max(result.bytes, at + b.bytes);
    const Occupied here{at, at + b.bytes, b.first, b.last, &b};
    insert(more, here);
    for (std::size_t part = first; part <= last; ++part) insert(of_part[part], here);
  }
  return result;
}
/// Places buffers in this order, each at the lowest gap, until one ends above `most`. `by_offset`: room for as many.
constexpr Placed place_in_order(std::vector<Buffer>& buffers, const std::vector<Index>& order, std::vector<Buffer*>& by_offset,
                                Index most = std::numeric_limits<Index>::max()) {
  if (buffers.size() >= very_many) return place_many_in_order(buffers, order, most);
  Placed result;
  Buffer **const list = by_offset.data(), *const all = buffers.data();   // calls would take most of a constant expression
  std::size_t count = 0;
  for (const Index i : order) {
    Buffer& b = all[i];
    ++result.placed;
    if (b.bytes == 0 || b.role == Role::offloaded) continue;
    const Index first = b.first, last = b.last, bytes = b.bytes;
    const bool sole = b.copies == 1;
    Index at = 0;
    Buffer **q = list, **const end = list + count;
    // Past what lies below or is not live with it, and from what is in the way to its end. One expression, for compilers count statements.
    for (const Buffer* p = nullptr;
         q != end && (p = *q, p->offset + p->bytes <= at || ((p->first >= last || first >= p->last) && (sole || !p->meets(b))) ||
                                  (p->offset < at + bytes && (at = p->offset + p->bytes) > 0));
         ++q) {
    }
    result.looks += q - list;
    b.offset = at;
    if (at + bytes > most) {
      --result.placed;
      break;
    }
    if (at + bytes > result.bytes) result.bytes = at + bytes;
    std::size_t k = count++;
    for (; list + k > q; --k) list[k] = list[k - 1];   // they lie above it
    for (; k > 0 && list[k - 1]->offset > at; --k) list[k] = list[k - 1];
    list[k] = &b;
  }
  return result;
}
/// Where a buffer goes that ended above the limit.
enum class Sooner : std::uint8_t { before_those_that_did_less_often, some_places };
/// A limit, and what is done to keep within it.
struct Try {
  Index thousandths;   ///< above the bound
  Sooner sooner;
  Index looks;   ///< for each buffer
};
/// The first limit is the bound itself, or 0.2 % above it for many buffers. With half the looks, some of a frontier's plans take 1.03 times their
/// bound (docs/benchmarks.md); so do two of ResNet-50's at 1024² whose inputs are made again alone, with a third of them at 1.9 %. With a third of
/// them at 0.8 %, four more of its plans take above 1.01 times.
inline constexpr std::array tries{Try{0, Sooner::some_places, 50},
                                  Try{0, Sooner::before_those_that_did_less_often, 400},
                                  Try{8, Sooner::before_those_that_did_less_often, 1200},
                                  Try{8, Sooner::some_places, 400},
                                  Try{19, Sooner::before_those_that_did_less_often, 1200},
                                  Try{40, Sooner::before_those_that_did_less_often, 100},
                                  Try{80, Sooner::before_those_that_did_less_often, 100}};
/// Places buffers so that none ends above `most`: if one does, it goes nearer to the front of the order, and all are placed anew. Gives up after so
/// many looks. Returns the bytes of the arena, or -1.
constexpr Index place_within(std::vector<Buffer>& buffers, std::vector<Index> order, std::vector<Buffer*>& by_offset, Index most, Sooner sooner,
                             Index looks) {
  std::vector<Index> failures_of(order.size(), 0);
  Index *const sequence = order.data(), *const failures = failures_of.data();   // calls would take most of a constant expression
  for (std::size_t round = 0; looks > 0; ++round) {
    const Placed all = place_in_order(buffers, order, by_offset, most);
    looks -= all.looks + 20;   // what a round takes besides
    if (all.placed == order.size()) return all.bytes;
    if (all.placed == 0) break;   // not even the first
    std::size_t k = all.placed;
    const Index moved = sequence[k];
    if (sooner == Sooner::some_places) {
      const std::size_t to = k - std::min(k, 1 + round * 37 % (1 + round % 64));   // now near, now far
      for (; k > to; --k) sequence[k] = sequence[k - 1];
    } else {
      const Index times = std::max(failures[moved], failures[sequence[k - 1]]) + 1;   // before one at least
      failures[moved] = times;
      for (; k > 0 && failures[sequence[k - 1]] < times; --k) sequence[k] = sequence[k - 1];
    }
    sequence[k] = moved;
  }
  return -1;
}
/// Puts the buffer that reaches highest nearer to the front of the order, now to the very front and now half the way, and places all again; as long
/// as that is not in vain for so many rounds. Returns the bytes of the best arena, and leaves its order.
constexpr Index place_highest_sooner(std::vector<Buffer>& buffers, std::vector<Index>& order, std::vector<Buffer*>& by_offset, Index bytes,
                                     Index enough, Index rounds) {
  std::vector<Index> tried = order;
  Index height = place_in_order(buffers, tried, by_offset).bytes;
  for (Index round = 0; round < rounds && bytes > enough; ++round) {
    std::size_t top = 0;
    while (top < tried.size() &&
           (buffers[static_cast<std::size_t>(tried[top])].bytes == 0 || buffers[static_cast<std::size_t>(tried[top])].role == Role::offloaded ||
            buffers[static_cast<std::size_t>(tried[top])].offset + buffers[static_cast<std::size_t>(tried[top])].bytes < height))
      ++top;
    if (top == 0 || top == tried.size()) break;
    const std::size_t to = round % 3 == 0 ? 0 : top / 2;
    const Index moved = tried[top];
    for (std::size_t k = top; k > to; --k) tried[k] = tried[k - 1];
    tried[to] = moved;
    height = place_in_order(buffers, tried, by_offset).bytes;
    if (height < bytes) bytes = height, order = tried, round = -1;
  }
  return bytes;
}
}   // namespace detail
/// Gives every buffer its offset, a multiple of `alignment`. Pre: sizes are multiples of `alignment`.
/// Post:    no two buffers that meet overlap; lower_bound <= bytes.     Cost: O(n^2); where the first order is not good, of several such
constexpr ArenaSize place(std::vector<Buffer>& buffers) {
  using detail::Placing, detail::Sooner;
  ArenaSize size;
  const std::vector<Index> live = detail::live_at(buffers);
  for (const Index bytes : live)
    if (bytes > size.lower_bound) size.lower_bound = bytes;
  std::vector<Index> best = detail::placing_order(buffers, Placing::by_bytes, live);
  std::vector<Buffer*> by_offset(buffers.size(), nullptr);
  size.bytes = detail::place_in_order(buffers, best, by_offset).bytes;
  const Index bound = size.lower_bound, enough = bound + bound / 500;
  if (size.bytes <= enough) return size;
  const std::vector<Index> by_pressure = detail::placing_order(buffers, Placing::by_pressure, live);
  const bool few = buffers.size() <= detail::most_reordered;
  for (const auto& [thousandths, sooner, looks] : detail::tries) {
    const bool first = thousandths == 0;
    const Index most = !first ? bound + bound * thousandths / 1000 : few ? bound : enough;
    if (most >= size.bytes) break;
    const Index bytes = detail::place_within(buffers, by_pressure, by_offset, most, sooner, looks * static_cast<Index>(buffers.size()));
    if (bytes >= 0) return {bytes, bound};
    if (!few || !first || sooner == Sooner::some_places) continue;
    for (std::vector<Index> order : {detail::placing_order(buffers, Placing::by_life, live), by_pressure})
      if (const Index b = detail::place_in_order(buffers, order, by_offset).bytes; b < size.bytes) size.bytes = b, best = std::move(order);
    size.bytes = detail::place_highest_sooner(buffers, best, by_offset, size.bytes, enough, 12);
    if (size.bytes <= enough) break;
  }
  detail::place_in_order(buffers, best, by_offset);
  return size;
}
/// Gives every offloaded tensor its place in the larger memory, which has the addresses behind the arena's: most live at once, so they lie side by
/// side. Pre: `size` is what place() has returned.
constexpr void place_offloaded(std::vector<Buffer>& buffers, ArenaSize& size) {
  for (Buffer& b : buffers)
    if (b.role == Role::offloaded) b.offset = size.bytes + size.offloaded, size.offloaded += b.bytes;
}
}   // namespace lrcnn
