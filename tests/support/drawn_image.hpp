#pragma once
// Images in memory that look to their readers like files: each pixel says where it is, and decoders count, wait and fail as a test wishes.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/data/samples.hpp>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>
namespace lrcnn::test {
/// What a sample is: different for places near each other, and small enough for every type.
inline int drawn_sample(Index y, Index x, Index c) { return static_cast<int>((7 * y + 3 * x + 31 * c + (y / 11) * (x / 13)) % 120); }
class DrawnImage final : public ImageFile, public std::enable_shared_from_this<DrawnImage> {
 public:
  explicit DrawnImage(ImageInfo info) : info_(std::move(info)) {
    if (info_.path.empty()) info_.path = "drawn.img";
    if (info_.format.empty()) info_.format = "drawn";
  }
  const ImageInfo& info() const override { return info_; }
  std::unique_ptr<TileDecoder> decoder() const override {
    ++decoders;
    return std::make_unique<Decoder>(shared_from_this());
  }
  /// Pixels of a region, as for_each_tile() should give them: [rows][columns][channels] of the image's samples.
  std::vector<std::byte> pixels(const ImageRegion& r) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(r.rows.size() * r.columns.size() * info_.pixel_bytes()));
    std::byte* to = bytes.data();
    with_sample_type(info_.sample, [&]<class S>(const S*) {
      for (Index y = r.rows.begin; y < r.rows.end; ++y)
        for (Index x = r.columns.begin; x < r.columns.end; ++x)
          for (Index c = 0; c < info_.channels; ++c, to += sizeof(S)) {
            const auto sample = static_cast<S>(static_cast<float>(value(y, x, c)));
            std::memcpy(to, &sample, sizeof(S));
          }
    });
    return bytes;
  }
  std::function<int(Index y, Index x, Index c)> value = drawn_sample;
  std::function<void(Index tile_row, Index tile_column)> before{};   ///< a tile is decoded; may wait or throw
  Index decoder_bytes = 0;                                           ///< that each of its decoders says it keeps
  mutable std::atomic<Index> decoders{0}, decoded{0}, busy{0}, most_busy{0};

 private:
  struct Decoder final : TileDecoder {
    explicit Decoder(std::shared_ptr<const DrawnImage> of) : image(std::move(of)) {}
    void decode(Index row, Index column, std::span<std::byte> out) override {
      const Index now = ++image->busy;
      for (Index most = image->most_busy; most < now && !image->most_busy.compare_exchange_weak(most, now);) {
      }
      struct Done {
        std::atomic<Index>& count;
        ~Done() { --count; }
      } done{image->busy};
      if (image->before) image->before(row, column);
      const auto bytes = image->pixels({image->info_.rows_of(row), image->info_.columns_of(column)});
      if (bytes.size() != out.size()) throw DataError("a tile is decoded into memory of another size");
      std::copy(bytes.begin(), bytes.end(), out.begin());
      ++image->decoded;
    }
    Index kept_bytes() const override { return image->decoder_bytes; }
    std::shared_ptr<const DrawnImage> image;
  };
  ImageInfo info_;
};
inline std::shared_ptr<DrawnImage> draw_image(Index height, Index width, Index channels, Index tile_height, Index tile_width,
                                              SampleType sample = SampleType::u8) {
  ImageInfo info;
  info.height = height, info.width = width, info.channels = channels, info.tile_height = tile_height, info.tile_width = tile_width;
  info.sample = sample;
  return std::make_shared<DrawnImage>(info);
}
}   // namespace lrcnn::test
