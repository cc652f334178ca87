#pragma once
// Large images as a batch: rows of numbers, made from tiles of files when a slab asks for them.
//
//     const ImageSource<float> source(CachedImage(open_tiff("slide.tif"), cache), {.normalization = {{0.5, 0.5, 0.5}, {0.2, 0.2, 0.2}}});
//     predictor.run(source, sink);
//
// Nothing of an image is in memory but the tiles that the cache holds, and they are decoded ahead in the order in which the plan reads rows.
#include <lrcnn/data/image_batch.hpp>
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/data/samples.hpp>
#include <lrcnn/data/transform.hpp>
#include <type_traits>
namespace lrcnn {
/// What of an image is read, and as which numbers.
struct ImageSourceOptions {
  /// The same of every image of a batch; if it is empty, the whole image.
  ImageRegion region{};
  /// Channels of the file, in the order in which the network reads them: {0, 1, 2} leaves out the alpha of RGBA. Empty: all, as they are stored.
  std::vector<Index> channels{};
  /// value = (sample / full - mean) / deviation, by channel that is read. full: 255 for u8, 65535 for u16, 1 for all other types.
  Normalization normalization{};
};
/// T: float or double. One or several images of one size. Used by one thread at a time.
template <class T>
class ImageSource final : public RowSource<T> {
 public:
  explicit ImageSource(CachedImage image, ImageSourceOptions options = {})
      : ImageSource(std::vector<CachedImage>{std::move(image)}, std::move(options)) {}
  /// Errors:  DataError if there is no image, the region does not lie within each of them, images without a region or their channels or
  ///          samples differ, a channel is not there, or the normalisation does not fit the channels
  explicit ImageSource(std::vector<CachedImage> images, ImageSourceOptions options = {})
      : batch_(std::move(images), options.region, options.channels, "image"), options_(std::move(options)), shape_(batch_.shape()) {
    options_.region = batch_.region(), options_.channels = batch_.channels();
    table_ = normalization_table<T>(options_.normalization, shape_.c);   // of bytes; it checks the numbers for other samples, too
  }
  Shape shape() const override { return shape_; }
  const ImageSourceOptions& options() const { return options_; }
  /// Writes normalised rows, as RowSource says.
  /// Post:    the value of an element depends on its place alone, not on rows, layout, order of reads, or tiles
  /// Errors:  DataError if images or rows are not the batch's; as CachedImage::for_each_tile()
  void read(Index first, const View<T>& dst) const override {
    check_read(shape_, first, dst, [&] { return "batch of " + to_string(shape_) + " from image files"; });
    for (Index i = 0; i < dst.n; ++i) {
      const CachedImage& image = batch_.image(first + i);
      image.for_each_tile(batch_.region_of(dst.range()), [&](const ImageRegion& part, const std::byte* pixels, Index stride) {
        with_sample_type(image.info().sample, [&](const auto* type) { convert(image.info(), i, part, pixels, stride, dst, type); });
      });
    }
  }
  void expect(std::span<const RowRequest> requests) const override { batch_.expect(requests); }

 private:
  /// One part of a tile of image `i` of the view.
  template <class S>
  void convert(const ImageInfo& info, Index i, const ImageRegion& part, const std::byte* pixels, Index stride, const View<T>& dst, const S*) const {
    const Index row = part.rows.begin - options_.region.rows.begin, column = part.columns.begin - options_.region.columns.begin;
    for (Index y = 0; y < part.rows.size(); ++y, pixels += stride)
      for (Index c = 0; c < shape_.c; ++c) {
        const std::byte* from = pixels + item(options_.channels, c) * Index{sizeof(S)};
        T* to = dst.row(i, c / dst.block, row + y) + c % dst.block + column * dst.block;
        convert_row(from, info.pixel_bytes(), c, to, dst.block, part.columns.size(), static_cast<const S*>(nullptr));
      }
  }
  /// Samples of one channel: `step` bytes from one pixel to the next in the file, `block` elements in the view.
  template <class S>
  void convert_row(const std::byte* from, Index step, Index channel, T* to, Index block, Index count, const S*) const {
    if constexpr (std::is_same_v<S, std::uint8_t>) {
      const T* table = table_.data() + 256 * channel;
      for (Index x = 0; x < count; ++x) to[x * block] = table[std::to_integer<std::size_t>(from[x * step])];
    } else {
      const auto& [mean, deviation] = options_.normalization;
      const double m = mean.empty() ? 0 : item(mean, channel), d = deviation.empty() ? 1 : item(deviation, channel);
      for (Index x = 0; x < count; ++x) {
        S sample;
        std::memcpy(&sample, from + x * step, sizeof(S));
        to[x * block] = static_cast<T>((static_cast<double>(sample) / full_sample<S> - m) / d);
      }
    }
  }
  ImageBatch batch_;
  ImageSourceOptions options_;
  Shape shape_;
  std::vector<T> table_;
};
}   // namespace lrcnn
