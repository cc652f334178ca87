#pragma once
// Names of layers, each of which is one layer's alone: parameters, their first values, rules and checkpoints go by them.
//
// A layer has the name that the network gives it (Named, Scope), or else that of its kind and its ordinal among that kind, "conv3"; layers
// with names count in these ordinals. Where a part is repeated, what it is called gets a number: "se.fc1", "se_2.fc1", "se_3.fc1".
#include <lrcnn/core/error.hpp>
#include <lrcnn/layer/layers.hpp>
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
  /// Who has a name, if anybody.
  constexpr std::optional<std::size_t> find(const Name& name) const {
    const NameSlot& slot = slots_[place(name)];
    return slot.name ? std::optional(slot.owner) : std::nullopt;
  }
  /// Puts a name in that is not there.
  constexpr void insert(const Name& name, std::size_t owner) { slots_[place(name)] = {&name, owner}; }

 private:
  /// Where a name is, or would be put.
  constexpr std::size_t place(const Name& name) const {
    std::uint64_t hash = 0xcbf29ce484222325u;   // FNV-1a
    for (const char c : name.view()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    std::size_t at = static_cast<std::size_t>(hash ^ hash >> 32) & (slots_.size() - 1);
    while (slots_[at].name && !(slots_[at].name->view() == name.view())) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  Slots slots_;
};
/// Gives every unnamed layer of a list the name of its kind and its ordinal among that kind, from 1, or the next number that is free.
/// `layer_of` gives an item's layer. Returns two layers that had one name before, if there are any.
template <class Item, class Slots, class LayerOf = std::identity>
constexpr std::optional<std::pair<std::size_t, std::size_t>> give_names(std::span<Item> list, Slots slots, LayerOf layer_of = {}) {
  NameSet<Slots> taken(std::move(slots));
  std::optional<std::pair<std::size_t, std::size_t>> same;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Name& name = layer_of(list[i]).name;
    if (name.empty()) continue;
    if (const auto owner = taken.find(name)) same = same ? same : std::pair{*owner, i};
    else taken.insert(name, i);
  }
  std::size_t end = list.size();   // of those that are unnamed
  while (end > 0 && !layer_of(list[end - 1]).name.empty()) --end;
  std::vector<std::pair<std::string_view, Index>> counted;   // layers so far of each kind's name
  for (std::size_t i = 0; i < end; ++i) {
    Layer& layer = layer_of(list[i]);
    const std::string_view kind = short_kind_name(layer);
    std::size_t place = 0;
    while (place < counted.size() && counted[place].first != kind) ++place;
    if (place == counted.size()) counted.push_back({kind, 0});
    Index ordinal = ++counted[place].second;
    if (!layer.name.empty()) continue;
    const std::string_view stem = kind.substr(0, Name::capacity - 8);   // leaves room for a number
    Name name = numbered(kind, ordinal);
    while (taken.find(name)) name = numbered(stem, ++ordinal);
    layer.name = name;
    taken.insert(layer.name, i);
  }
  return same;
}
/// What a name is called at the outermost: its first scope, or the whole of it.
constexpr std::string_view head_of(const Name& name) {
  const std::string_view whole = name.view();
  return whole.substr(0, whole.find('.'));
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
      if (!list[i].name.empty() && seen.find(list[i].name)) rename(begins[p], begins[p + 1], list[i].name);
    for (std::size_t i = begins[p]; i < begins[p + 1]; ++i)
      if (!list[i].name.empty() && !seen.find(list[i].name)) seen.insert(list[i].name, i);
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
