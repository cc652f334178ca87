#pragma once
// Decoded tiles in a bounded memory, shared by any number of images, and decoded ahead by threads. Images are read through it as CachedImage
// says (data/cached_image.hpp).
//
// A tile is decoded once for all who want it at the same time. The cache never holds more bytes than it was given, tiles that are being
// decoded included. When it is full, tiles that nobody expects go first, the one used longest ago before others; then those that are expected
// last (data/tile_order.hpp). Threads decode tiles that are expected, as long as that displaces only tiles that are wanted later. An error in
// such a thread is kept to itself: whoever reads the tile decodes it again and gets the error.
//
// Decoders stay open between tiles. Of those that are idle, a cache keeps the 64 used last, as far as they keep no more bytes together than the
// tiles may have; the one used last stays in any case.
//
// Lifetimes: images share the cache and keep it alive. Tiles of an image go when its last CachedImage does.
#include <lrcnn/core/affinity.hpp>
#include <lrcnn/data/idle_decoders.hpp>
#include <lrcnn/data/tile_order.hpp>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
namespace lrcnn {
struct TileCacheOptions {
  Index bytes = 256_MiB;   ///< of decoded tiles; at least the largest tile
  int threads = 1;         ///< that decode ahead; 0: none. They start when something is expected
};
/// What a cache has done so far.
struct TileCacheReport {
  Index bytes = 0;             ///< of tiles that it holds now
  Index most_bytes = 0;        ///< that it has ever held
  Index decoder_bytes = 0;     ///< that idle decoders keep beside them, about
  Index decoded_tiles = 0;     ///< a tile that was decoded again counts again
  Index decoded_ahead = 0;     ///< of these, by the cache's own threads
  Index found_tiles = 0;       ///< times that a reader found a tile decoded
  double seconds_waited = 0;   ///< that readers have spent decoding, or waiting for those who do
};
class CachedImage;
class TileCache {
 public:
  /// Errors:  DataError if the bytes are not positive, or there are less than 0 or more than 256 threads
  explicit TileCache(TileCacheOptions options = {}) : options_(options) {
    if (options_.bytes < 1 || options_.threads < 0 || options_.threads > 256)
      throw DataError(error_text("tile cache of " + std::to_string(options_.bytes) + " bytes with " + std::to_string(options_.threads) + " threads",
                                 "it has room for a tile and 0 to 256 threads", "choose other numbers"));
  }
  TileCache(const TileCache&) = delete;
  TileCache& operator=(const TileCache&) = delete;
  ~TileCache() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  const TileCacheOptions& options() const { return options_; }
  /// What the cache has done so far.
  TileCacheReport report() const {
    const std::lock_guard lock(mutex_);
    TileCacheReport report = report_;
    report.decoder_bytes = idle_.bytes();
    return report;
  }

 private:
  friend class CachedImage;
  struct Image {
    Image(std::shared_ptr<const ImageFile> of, std::shared_ptr<TileCache> in) : file(std::move(of)), cache(std::move(in)) {}
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
    ~Image() { cache->remove(*this); }
    std::shared_ptr<const ImageFile> file;
    std::shared_ptr<TileCache> cache;
    detail::TileOrder order{};
    std::set<detail::TilePlace> failed{};    ///< not tried ahead again
    std::set<detail::TilePlace> waiting{};   ///< for the decoder of an image that is decoded in order; the first is next
    Index decoders = 0;                      ///< in use
    Index decoding = 0;                      ///< threads of the cache that work on it
    const ImageInfo& info() const { return file->info(); }
  };
  struct Key {
    Image* image;
    detail::TilePlace place;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Tile {
    std::unique_ptr<std::byte[]> bytes;
    Index size = 0;
    bool ready = false;
    Index pins = 0;           ///< readers that look at it
    std::uint64_t used = 0;   ///< when it was last
  };
  using Tiles = std::map<Key, Tile>;
  using Lock = std::unique_lock<std::mutex>;
  /// A tile that stays where it is.
  class Pin {
   public:
    Pin(TileCache& cache, Tile& tile) : cache_(&cache), tile_(&tile) {}
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() {
      {
        const std::lock_guard lock(cache_->mutex_);
        --tile_->pins;
      }
      cache_->changed_.notify_all();
    }
    const std::byte* bytes() const { return tile_->bytes.get(); }

   private:
    TileCache* cache_;
    Tile* tile_;
  };
  static Index bytes_of(const Key& key) {
    const ImageInfo& info = key.image->info();
    return info.rows_of(key.place.row).size() * info.columns_of(key.place.column).size() * info.pixel_bytes();
  }
  /// The tile, decoded by this thread if nobody has.
  Pin acquire(const Key& key) {
    Lock lock(mutex_);
    const auto begin = std::chrono::steady_clock::now();
    for (bool found = true;; found = false) {
      const auto at = tiles_.find(key);
      Tile* tile = at != tiles_.end() ? &at->second : nullptr;
      if (!tile && (tile = reserve(key, -1)) != nullptr) {
        decode(lock, key, *tile);
        found = false;
      }
      if (tile && tile->ready) {
        ++tile->pins, tile->used = ++clock_;
        if (found) ++report_.found_tiles;
        else report_.seconds_waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        return {*this, *tile};
      }
      const bool no_room = tile == nullptr;
      waiting_for_room_ += no_room;
      changed_.wait(lock);
      waiting_for_room_ -= no_room;
    }
  }
  /// A place for a tile that is then decoded, made by evicting tiles that are wanted later than `distance`. Null if that is not enough.
  Tile* reserve(const Key& key, Index distance) {
    const Index size = bytes_of(key), excess = report_.bytes + size - options_.bytes;
    Tile tile;
    if (excess > 0 && !evict(excess, distance, size, tile.bytes)) return nullptr;
    if (!tile.bytes) tile.bytes = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size));
    tile.size = size;
    Tile& place = tiles_.emplace(key, std::move(tile)).first->second;
    report_.bytes += size;
    report_.most_bytes = std::max(report_.most_bytes, report_.bytes);
    return &place;
  }
  /// Evicts tiles of at least `excess` bytes, all wanted later than `distance`. If there are not enough, none goes that somebody expects.
  /// Memory of `reusable` bytes is handed on: fresh memory costs the system as much as some formats take to decode.
  bool evict(Index excess, Index distance, Index reusable, std::unique_ptr<std::byte[]>& memory) {
    const auto go = [&](Tiles::iterator at) {
      excess -= at->second.size;
      report_.bytes -= at->second.size;
      if (!memory && at->second.size == reusable) memory = std::move(at->second.bytes);
      tiles_.erase(at);
    };
    for (; excess > 0 && !next_to_go_.empty(); next_to_go_.pop_back()) {
      const auto& [used, key] = next_to_go_.back();
      const auto at = tiles_.find(key);
      if (at != tiles_.end() && at->second.used == used && may_go(at->second) && wanted(key) == detail::TileOrder::never) go(at);
    }
    if (excess <= 0) return true;
    struct Candidate {
      Index distance;
      std::uint64_t used;
      Tiles::iterator tile;
    };
    std::vector<Candidate> candidates;
    Index bytes = 0;
    for (auto at = tiles_.begin(); at != tiles_.end(); ++at)
      if (const Index its = may_go(at->second) ? wanted(at->first) : distance; its > distance) {
        candidates.push_back({its, at->second.used, at});
        bytes += at->second.size;
      }
    if (bytes < excess) return false;
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.distance != b.distance ? a.distance > b.distance : a.used < b.used; });
    bytes = options_.bytes / 16;   // of tiles that go next: looking at all of them is not worth it for a single one
    for (const auto& [its, used, at] : candidates) {
      if (excess > 0) {
        at->first.image->order.look_again(its);
        go(at);
      } else if (its == detail::TileOrder::never && bytes > 0) {
        bytes -= at->second.size;
        next_to_go_.emplace_back(used, at->first);
      } else {
        break;
      }
    }
    std::reverse(next_to_go_.begin(), next_to_go_.end());
    return true;
  }
  static bool may_go(const Tile& tile) { return tile.ready && tile.pins == 0; }
  static Index wanted(const Key& key) { return key.image->order.distance(key.place); }
  /// Decodes into a place that was reserved, without the lock. If that fails, the place is gone.
  void decode(Lock& lock, const Key& key, Tile& tile) {
    Image& image = *key.image;
    try {
      if (image.info().in_order) {
        image.waiting.insert(key.place);
        while (image.decoders > 0 || *image.waiting.begin() != key.place) changed_.wait(lock);
        image.waiting.erase(key.place);
      }
      ++image.decoders;
      auto decoder = idle_.take(&image);
      lock.unlock();
      const auto give_back = [&] {
        if (!lock.owns_lock()) lock.lock();
        --image.decoders;
        if (decoder) idle_.keep(&image, std::move(decoder));
      };
      try {
        if (!decoder) decoder = image.file->decoder();
        decoder->decode(key.place.row, key.place.column, {tile.bytes.get(), static_cast<std::size_t>(tile.size)});
      } catch (...) {
        give_back();
        throw;
      }
      give_back();
    } catch (...) {
      report_.bytes -= tile.size;
      tiles_.erase(key);
      changed_.notify_all();
      throw;
    }
    tile.ready = true;
    ++report_.decoded_tiles;
    changed_.notify_all();
  }
  void expect(Image& image, std::span<const ImageRegion> regions) {
    {
      const std::lock_guard lock(mutex_);
      image.order.expect(image.info(), regions);
      image.failed.clear();
      expecting_.insert(&image);
      has_work_ = true;
      // A machine that gives fewer threads decodes less ahead.
      try {
        while (static_cast<int>(threads_.size()) < options_.threads) threads_.emplace_back(on_all_places([this] { work(); }));
      } catch (const std::system_error&) {
      }
    }
    work_.notify_all();
  }
  void passed(Image& image, const ImageRegion& region) {
    {
      const std::lock_guard lock(mutex_);
      image.order.passed(region);
      has_work_ = !expecting_.empty();
    }
    work_.notify_all();
  }
  void remove(Image& image) {
    Lock lock(mutex_);
    expecting_.erase(&image);
    changed_.wait(lock, [&] { return image.decoding == 0; });
    idle_.remove(&image);
    for (auto at = tiles_.lower_bound({&image, {}}); at != tiles_.end() && at->first.image == &image; at = tiles_.erase(at))
      report_.bytes -= at->second.size;
    changed_.notify_all();
  }
  /// What the cache's threads do: decode the tile that is wanted soonest, until there is none or no room for it.
  void work() {
    Lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return stop_ || has_work_; });
      if (stop_) return;
      Index distance = detail::TileOrder::never;
      const Key key = next_tile(distance);
      Tile* tile = nullptr;
      try {
        if (key.image && waiting_for_room_ == 0) tile = reserve(key, distance);
      } catch (...) {   // no memory: the reader of the tile will see it
        give_up(key);
        continue;
      }
      if (!tile) {
        has_work_ = false;
        continue;
      }
      ++key.image->decoding;
      try {
        decode(lock, key, *tile);
        ++report_.decoded_ahead;
      } catch (...) {   // likewise
        give_up(key);
      }
      --key.image->decoding;
      changed_.notify_all();
    }
  }
  /// A tile is not tried ahead again. Where there is no memory to note that, nothing is until something is read: no error may leave a thread.
  void give_up(const Key& key) noexcept {
    try {
      key.image->failed.insert(key.place);
    } catch (...) {
      has_work_ = false;
    }
  }
  /// The tile that is expected soonest and not there; no image if there is none.
  Key next_tile(Index& distance) {
    Key next{};
    for (auto at = expecting_.begin(); at != expecting_.end();) {
      Image& image = **at;
      detail::TilePlace place;
      const auto absent = [&](detail::TilePlace p) { return !tiles_.contains({&image, p}) && !image.failed.contains(p); };
      if (!image.order.next(absent, place)) {
        at = image.order.done() ? expecting_.erase(at) : std::next(at);
        continue;
      }
      if (const Index own = image.order.distance(place); !next.image || own < distance) next = {&image, place}, distance = own;
      ++at;
    }
    return next;
  }
  const TileCacheOptions options_;
  mutable std::mutex mutex_;          ///< of all that follows, and of all images' orders
  std::condition_variable changed_;   ///< a tile is ready, free, or gone; a decoder is free
  std::condition_variable work_;      ///< for the cache's threads
  Tiles tiles_;
  detail::IdleDecoders idle_{options_.bytes};
  std::set<Image*> expecting_;
  std::vector<std::pair<std::uint64_t, Key>> next_to_go_;   ///< tiles that nobody expected when last looked at, with `used`; the last goes first
  TileCacheReport report_;
  std::uint64_t clock_ = 0;
  Index waiting_for_room_ = 0;   ///< readers; threads that decode ahead leave the room to them
  bool has_work_ = false, stop_ = false;
  std::vector<std::thread> threads_;
};
}   // namespace lrcnn
