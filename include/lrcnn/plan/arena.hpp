#pragma once
// One allocation with planned offsets.
//
// Every buffer has a size and a half-open live interval. Buffers whose intervals meet get disjoint offsets:
//   - the largest buffer first; among equals the one that lives earlier;
//   - each at the lowest gap between the already placed buffers that are live with it, so small ones fill holes.
// Not optimal (the problem is NP-hard): the greatest sum of live bytes is the lower bound reported beside the result.
// Intervals are of emission time, in which the slabs of a loop share one turn: see plan/emit.hpp.
#include <lrcnn/core/types.hpp>
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
                                       RoleText{Role::statistics, "statistics", 'S'}};
static_assert([] {
  for (std::size_t r = 0; r < role_texts.size(); ++r)
    if (role_texts[r].role != static_cast<Role>(r)) return false;
  return role_texts.back().role == Role::statistics;
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
  Index offset = 0;   ///< in the arena
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
  friend constexpr bool operator==(const ArenaSize&, const ArenaSize&) = default;
};
/// Gives every buffer its offset, a multiple of `alignment`. Pre: sizes are multiples of `alignment`.
/// Post: no two buffers that meet overlap; lower_bound <= bytes.     Cost: O(n^2)
constexpr ArenaSize place(std::vector<Buffer>& buffers) {
  const Index count = static_cast<Index>(buffers.size());
  std::vector<Index> order(buffers.size(), 0);   // largest first
  for (Index i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    const Buffer &x = buffers[static_cast<std::size_t>(a)], &y = buffers[static_cast<std::size_t>(b)];
    return x.bytes != y.bytes ? x.bytes > y.bytes : x.first != y.first ? x.first < y.first : a < b;
  });
  ArenaSize size;
  std::vector<Buffer*> placed;   // by offset
  placed.reserve(buffers.size());
  for (const Index i : order) {
    Buffer& b = buffers[static_cast<std::size_t>(i)];
    if (b.bytes == 0) continue;
    const Index first = b.first, last = b.last, bytes = b.bytes;
    const bool sole = b.copies == 1;
    Index at = 0;
    for (Buffer *const *q = placed.data(), *const *end = q + placed.size(); q != end; ++q) {
      const Buffer* p = *q;
      if (p->offset + p->bytes <= at || ((p->first >= last || first >= p->last) && (sole || !p->meets(b)))) continue;
      if (p->offset >= at + bytes) break;
      at = p->offset + p->bytes;
    }
    b.offset = at;
    if (at + b.bytes > size.bytes) size.bytes = at + b.bytes;
    std::size_t k = placed.size();
    placed.push_back(&b);
    Buffer** list = placed.data();
    for (; k > 0 && list[k - 1]->offset > at; --k) list[k] = list[k - 1];
    list[k] = &b;
  }
  std::vector<Index> change;   // of live bytes, at each time
  for (const Buffer& b : buffers) {
    if (b.last <= b.first) continue;
    if (b.last >= static_cast<Index>(change.size())) change.resize(static_cast<std::size_t>(b.last + 1), 0);
    change[static_cast<std::size_t>(b.first)] += b.bytes;
    change[static_cast<std::size_t>(b.last)] -= b.bytes;
  }
  Index live = 0;
  for (const Index bytes : change) {
    live += bytes;
    if (live > size.lower_bound) size.lower_bound = live;
  }
  return size;
}
}   // namespace lrcnn
