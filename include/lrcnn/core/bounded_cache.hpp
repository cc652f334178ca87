#pragma once
// What is costly to make, by what it is made from, without growing for ever.
#include <lrcnn/core/language.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>
namespace lrcnn {
/// Whether somebody beside a cache has a value.
struct SharedElsewhere {
  template <class T>
  bool operator()(const std::shared_ptr<T>& value) const {
    return value.use_count() > 1;
  }
};
/// Keeps the values that are in use, and of the others those wanted last: at most about twice `spare` of them.
/// InUse: says whether a value is in use.
template <class Key, class Value, class InUse = SharedElsewhere>
class BoundedCache {
 public:
  explicit BoundedCache(std::size_t spare = 128) : spare_(spare), room_(2 * spare) {}
  /// The value of a key; null if none is kept. It is valid until the next add().
  const Value* find(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    found->second.wanted = ++clock_;
    return &found->second.value;
  }
  /// Keeps a value under a key that has none.
  const Value& add(const Key& key, Value value) {
    if (entries_.size() >= room_) drop_oldest();
    return entries_.insert_or_assign(key, Entry{std::move(value), ++clock_}).first->second.value;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Value value;
    std::uint64_t wanted;   ///< when it was last
  };
  /// Leaves those in use and `spare` others. The next time comes when there are as many others again, so it costs little for each.
  void drop_oldest() {
    std::vector<std::pair<std::uint64_t, Key>> idle;
    for (const auto& [key, entry] : entries_)
      if (!InUse{}(entry.value)) idle.emplace_back(entry.wanted, key);
    std::sort(idle.begin(), idle.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i + spare_ < idle.size(); ++i) entries_.erase(idle[i].second);
    room_ = entries_.size() + spare_;
  }
  std::map<Key, Entry> entries_;
  std::size_t spare_, room_;
  std::uint64_t clock_ = 0;
};
}   // namespace lrcnn
