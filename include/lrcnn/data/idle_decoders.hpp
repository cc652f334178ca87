#pragma once
// Decoders that wait for the next tile of their image.
#include <lrcnn/data/image_file.hpp>
#include <algorithm>
#include <iterator>
#include <list>
namespace lrcnn::detail {
/// Keeps those that were used last: at most 64, because each has a file open, and no more than so many bytes together, but always the last one.
class IdleDecoders {
 public:
  explicit IdleDecoders(Index most_bytes) : most_bytes_(most_bytes) {}
  /// What all of them keep, about, beside the tiles.
  Index bytes() const { return bytes_; }
  /// `image`: any address that stands for the decoder's image.
  void keep(const void* image, std::unique_ptr<TileDecoder> decoder) {
    const Index its = decoder->kept_bytes();
    idle_.push_back({image, std::move(decoder), its});
    bytes_ += its;
    while (idle_.size() > most_ || (idle_.size() > 1 && bytes_ > most_bytes_)) {
      bytes_ -= idle_.front().bytes;
      idle_.pop_front();
    }
  }
  /// The image's decoder that was used last; null if none is idle.
  std::unique_ptr<TileDecoder> take(const void* image) {
    const auto at = std::find_if(idle_.rbegin(), idle_.rend(), [&](const Idle& idle) { return idle.image == image; });
    if (at == idle_.rend()) return nullptr;
    auto decoder = std::move(at->decoder);
    bytes_ -= at->bytes;
    idle_.erase(std::next(at).base());
    return decoder;
  }
  /// Closes all of an image's.
  void remove(const void* image) {
    while (take(image)) {
    }
  }

 private:
  struct Idle {
    const void* image;
    std::unique_ptr<TileDecoder> decoder;
    Index bytes;
  };
  static constexpr std::size_t most_ = 64;
  Index most_bytes_, bytes_ = 0;
  std::list<Idle> idle_;   ///< the one used last is at the end
};
}   // namespace lrcnn::detail
