#pragma once
// Names of layers, each of which is one layer's alone: parameters, their first values, rules and checkpoints go by them.
//
// A layer has the name that the network gives it (Named, Scope), or else that of its kind and its ordinal among that kind, "conv3"; layers
// with names count in these ordinals. Where a part is repeated, what it is called gets a number: "se.fc1", "se_2.fc1", "se_3.fc1".
#include <lrcnn/core/error.hpp>
#include <lrcnn/layer/layers.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
namespace lrcnn {
/// What an unnamed layer is named after.
constexpr std::string_view short_kind_name(const Layer& layer) {
  const std::string_view counted = rules_of(layer).counted_as;
  return counted.empty() ? variant_name(layer) : counted;
}
/// A name with a number behind it: numbered("down", 2) is "down2". What is longer than a Name may be is cut off. Networks that are made
/// level by level name their scopes with it. Pre: number >= 0; 0 leaves the name as it is.
constexpr Name numbered(std::string_view stem, Index number) {
  Name name(stem);
  std::size_t at = name.view().size();
  std::array<char, 20> digits{};
  std::size_t count = 0;
  for (; number > 0; number /= 10) digits[count++] = static_cast<char>('0' + number % 10);
  while (count > 0 && at < Name::capacity) name.text[at++] = digits[--count];
  return name;
}
namespace detail {
/// `first` + `between` + `second`; empty if that is too long for a Name.
constexpr Name joined(std::string_view first, std::string_view between, std::string_view second) {
  if (first.size() + between.size() + second.size() > Name::capacity) return {};
  Name full;
  char* to = full.text.data();   // a pointer takes a compiler fewer steps than an array's operator: large networks are joined often
  for (const std::string_view part : {first, between, second})
    for (const char c : part) *to++ = c;
  return full;
}
/// FNV-1a.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}
/// Where a table of so many slots, a power of two, is first looked into for a hash.
constexpr std::size_t first_slot(std::uint64_t hash, std::size_t slots) { return static_cast<std::size_t>(hash ^ hash >> 32) & (slots - 1); }
struct NameSlot {
  const Name* name = nullptr;
  std::size_t owner = 0;
};
/// Slots that a NameSet of so many names wants.
constexpr std::size_t name_slots(std::size_t names) { return std::bit_ceil(2 * names + 1); }
/// Names with who has each. `Slots`: an array or a vector of NameSlots, as many as name_slots() says. The names must stay where they are.
template <class Slots>
class NameSet {
 public:
  constexpr explicit NameSet(Slots slots) : slots_(std::move(slots)) {}
  constexpr bool contains(const Name& name) const { return slots_[place(name)].name != nullptr; }
  /// Puts a name in, unless it is there; who has it then.
  constexpr std::optional<std::size_t> insert(const Name& name, std::size_t owner) {
    NameSlot& slot = slots_[place(name)];
    if (slot.name) return slot.owner;
    slot = {&name, owner};
    return std::nullopt;
  }

 private:
  /// Where a name is, or would be put.
  constexpr std::size_t place(const Name& name) const {
    std::size_t at = first_slot(hash_of(name.view()), slots_.size());
    while (slots_[at].name && !(slots_[at].name->view() == name.view())) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  Slots slots_;
};
/// Two layers of a list that have one name, if there are any. `layer_of` gives an item's layer.
template <class Item, class Slots, class LayerOf>
constexpr std::optional<std::pair<std::size_t, std::size_t>> find_same_name(std::span<Item> list, Slots slots, LayerOf layer_of) {
  NameSet<Slots> seen(std::move(slots));
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const Name& name = layer_of(list[i]).name; !name.empty())
      if (const auto owner = seen.insert(name, i)) return std::pair{*owner, i};
  return std::nullopt;
}
/// What a name is called at the outermost: its first scope, or the whole of it.
constexpr std::string_view head_of(const Name& name) {
  const char *const begin = name.text.data(), *end = begin;
  while (end != begin + Name::capacity && *end != '\0' && *end != '.') ++end;
  return {begin, static_cast<std::size_t>(end - begin)};
}
/// Whether a name is within a scope.
constexpr bool is_scoped(const Name& name) { return name.text[head_of(name).size()] == '.'; }
/// Kinds whose layers may count in the ordinals of a list's unnamed layers. A custom layer may be called as any kind is.
template <class Item, class LayerOf>
constexpr std::array<bool, kind_count> counted_kinds(std::span<Item> list, LayerOf layer_of) {
  std::array<bool, kind_count> unnamed{};
  for (Item& item : list)
    if (const Layer& layer = layer_of(item); layer.name.empty()) unnamed[static_cast<std::size_t>(layer.kind)] = true;
  std::array<bool, kind_count> counted = unnamed;
  const auto custom = static_cast<std::size_t>(Kind::custom);
  counted[custom] = true;
  for (std::size_t a = 0; a < kind_count; ++a)
    for (std::size_t b = 0; unnamed[a] && b < kind_count; ++b) {
      const std::string_view together = AllRules::row[a]->counted_as;
      if (a == custom || (!together.empty() && together == AllRules::row[b]->counted_as)) counted[b] = true;
    }
  return counted;
}
/// Gives every unnamed layer of a list the name of its kind and its ordinal among that kind, from 1, or the next number that is free.
/// `layer_of` gives an item's layer.
template <class Item, class Slots, class LayerOf = std::identity>
constexpr void give_names(std::span<Item> list, Slots slots, LayerOf layer_of = {}) {
  NameSet<Slots> taken(std::move(slots));
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const Name& name = layer_of(list[i]).name; !name.empty() && !is_scoped(name)) taken.insert(name, i);
  const auto is_taken = [&](const Name& name) {   // most names that are given have no scope; those of custom layers may
    return taken.contains(name) || (is_scoped(name) && std::ranges::any_of(list, [&](Item& item) { return layer_of(item).name == name; }));
  };
  const auto kinds = counted_kinds(list, layer_of);
  std::vector<std::pair<std::string_view, Index>> counted;   // layers so far of each kind's name
  for (std::size_t i = 0; i < list.size(); ++i) {
    Layer& layer = layer_of(list[i]);
    if (!kinds[static_cast<std::size_t>(layer.kind)]) continue;   // finding out what a layer is counted as takes a compiler long
    const std::string_view kind = short_kind_name(layer);
    std::size_t place = 0;
    while (place < counted.size() && counted[place].first != kind) ++place;
    if (place == counted.size()) counted.push_back({kind, 0});
    Index ordinal = ++counted[place].second;
    if (!layer.name.empty()) continue;
    const std::string_view stem = kind.substr(0, Name::capacity - 8);   // leaves room for a number
    Name name = numbered(kind, ordinal);
    while (is_taken(name)) name = numbered(stem, ++ordinal);
    layer.name = name;
    taken.insert(layer.name, i);
  }
}
/// The hash of what a name is called at the outermost; 0 for an empty one.
constexpr std::uint64_t head_hash(const Name& name) { return name.empty() ? 0 : hash_of(head_of(name)); }
/// head_hash() of all names of a list.
template <std::size_t N>
constexpr std::array<std::uint64_t, N> head_hashes(const std::array<Layer, N>& list) {
  std::array<std::uint64_t, N> hashes{};
  for (std::size_t i = 0; i < N; ++i) hashes[i] = head_hash(list[i].name);
  return hashes;
}
/// Whether two parts have a hash in common, so that names of theirs may be equal; where they have none, no names are. Part p is hashes
/// begins[p] to begins[p + 1]; a hash of 0 stands for no name.
template <std::size_t N, std::size_t P>
constexpr bool share_heads(const std::array<std::uint64_t, N>& hashes, const std::array<std::size_t, P>& begins) {
  struct Slot {
    std::uint64_t hash = 0;
    std::size_t part = 0;
  };
  std::array<Slot, name_slots(N)> slots{};
  for (std::size_t part = 0; part + 1 < P; ++part)
    for (std::size_t i = begins[part]; i < begins[part + 1]; ++i) {
      const std::uint64_t hash = hashes[i];
      if (hash == 0) continue;
      std::size_t at = first_slot(hash, slots.size());
      while (slots[at].hash != 0 && slots[at].hash != hash) at = (at + 1) & (slots.size() - 1);
      if (slots[at].hash == hash && slots[at].part != part) return true;
      slots[at] = {hash, part};
    }
  return false;
}
/// Makes names differ that a list has because a part of it is repeated. Part p is layers begins[p] to begins[p + 1]. Where a name of a
/// part is in a part before it, its head gets a number in the whole part, from 2, that no other layer of the list has. A name that would
/// become too long stays, and make_table() refuses it.
template <std::size_t N, std::size_t P>
constexpr void number_repeated(std::array<Layer, N>& list, const std::array<std::size_t, P>& begins) {
  const auto rename = [&](std::size_t begin, std::size_t end, const Name& repeated) {
    const Name old = repeated;
    const std::string_view head = head_of(old);
    const auto is_free = [&](const Name& name) {
      for (const Layer& layer : list)
        if (head_of(layer.name) == name.view()) return false;
      return true;
    };
    Index number = 2;
    Name other = joined(head, "_", numbered("", number).view());
    while (!other.empty() && !is_free(other)) other = joined(head, "_", numbered("", ++number).view());
    if (other.empty()) return;
    for (std::size_t i = begin; i < end; ++i)
      if (const Name name = list[i].name; head_of(name) == head)
        if (const Name full = joined(other.view(), "", name.view().substr(head.size())); !full.empty()) list[i].name = full;
  };
  NameSet seen(std::array<NameSlot, name_slots(N)>{});
  for (std::size_t p = 0; p + 1 < P; ++p) {
    for (std::size_t i = begins[p]; i < begins[p + 1]; ++i)
      if (!list[i].name.empty() && seen.contains(list[i].name)) rename(begins[p], begins[p + 1], list[i].name);
    for (std::size_t i = begins[p]; i < begins[p + 1]; ++i)
      if (!list[i].name.empty()) seen.insert(list[i].name, i);
  }
}
[[noreturn]] inline void throw_same_name(std::size_t first, std::size_t second, const Layer& layer) {
  throw ShapeError(error_text(
      "layers " + std::to_string(first + 1) + " and " + std::to_string(second + 1) + " are both called '" + std::string(layer.name.view()) + "'",
      "parameters, their first values, rules and checkpoints go by names, so each layer has its own",
      "name one of them otherwise, or leave its name empty"));
}
}   // namespace detail
}   // namespace lrcnn
