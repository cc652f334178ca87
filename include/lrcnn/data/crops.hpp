#pragma once
// Crops of large images as batches to train on: drawn at random, or laid as tiles over whole images.
//
//     auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = 1_GiB});
//     const CropLoader<float> crops({{.image = {open_tiff("slide.tif"), cache}, .mask = CachedImage(open_png("slide.png"), cache)}},
//                                   {.height = 256, .width = 256, .focus = {.classes = {1}, .share = 0.5}, .seed = 1});
//     trainer.fit(crops, nullptr, {.epochs = 10});
//
// A crop is a function of (seed, epoch, its number), whatever threads make it, so an epoch comes out the same again, and a training goes on
// in the middle of one. Threads decode and cut batches ahead (data/epoch.hpp); of the images nothing is in memory but the cache's tiles.
#include <lrcnn/data/crop_set.hpp>
#include <lrcnn/data/epoch.hpp>
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/layer/labels.hpp>
namespace lrcnn {
namespace detail {
template <class T>
struct CropBatches;
}
/// Crops and their classes, which a training step takes. T: float or double.
template <class T>
class CropBatch final : public RowSource<T> {
 public:
  /// [N,C,H,W] of the crops.
  Shape shape() const override { return shape_; }
  bool concurrent_reads() const override { return true; }
  Index size() const { return shape_.n; }
  /// Classes of pixels, if the images have masks, else of crops. Valid as long as the batch is.
  Labels labels() const { return masks_ ? Labels::of_pixels(classes_, shape_.h, shape_.w) : Labels(classes_); }
  /// Where each crop comes from.
  std::span<const CropSample> crops() const { return crops_; }
  Index epoch() const { return epoch_; }
  Index position() const { return position_; }   ///< in the epoch, counted in batches
  /// Normalised values, dense [N,C,H,W].
  std::span<const T> values() const { return values_; }
  /// Writes normalised rows, as RowSource says.
  /// Errors:  DataError if images, channels, rows or columns are not the batch's
  void read(Index first, const View<T>& dst) const override {
    check_read(shape_, first, dst, [&] { return "batch of " + to_string(shape_) + " crops"; });
    MemorySource<T>(values_.data(), shape_).read(first, dst);
  }

 private:
  friend struct detail::CropBatches<T>;
  Shape shape_{0, 1, 1, 1};
  std::vector<T> values_{};
  std::vector<std::int32_t> classes_{};   ///< [N,H,W] of masks, [N] otherwise
  std::vector<CropSample> crops_{};
  Index epoch_ = 0, position_ = 0;
  bool masks_ = false;
};
namespace detail {
/// What it takes to make any batch of one epoch of crops.
template <class T>
struct CropBatches {
  using Batch = CropBatch<T>;
  std::shared_ptr<const CropSet> set;
  Index epoch;
  Index prefetch() const { return set->options.prefetch; }
  Index threads() const { return set->options.threads; }
  Batch empty_batch() const {
    Batch batch;
    const CropOptions& o = set->options;
    const Index pixels = std::min(o.batch, set->crops()) * o.height * o.width;
    batch.values_.reserve(static_cast<std::size_t>(pixels * set->channels()));
    if (set->masks) batch.classes_.reserve(static_cast<std::size_t>(pixels));
    return batch;
  }
  /// Errors:  as CachedImage::for_each_tile() and ClassMask::for_each()
  void make(Index position, Batch& batch) const {
    const CropOptions& o = set->options;
    const Index first = position * o.batch, count = std::min(o.batch, set->crops() - first);
    batch.shape_ = {count, set->channels(), o.height, o.width};
    batch.epoch_ = epoch, batch.position_ = position, batch.masks_ = set->masks;
    batch.values_.resize(static_cast<std::size_t>(batch.shape_.count()));
    batch.classes_.resize(static_cast<std::size_t>(set->masks ? count * o.height * o.width : count));
    batch.crops_.resize(static_cast<std::size_t>(count));
    std::vector<Index> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), Index{0});
    for (const Index i : order) item(batch.crops_, i) = set->crop(epoch, first + i);
    // In the order of their rows tiles are decoded once for neighbours, and a JPEG or PNG is passed through once.
    std::sort(order.begin(), order.end(), [&](Index a, Index b) {
      const CropSample &left = item(batch.crops_, a), &right = item(batch.crops_, b);
      return std::pair(left.image, left.region.rows.begin) < std::pair(right.image, right.region.rows.begin);
    });
    std::vector<double> planes(static_cast<std::size_t>(batch.shape_.c * o.height * o.width));
    std::vector<std::int32_t> mask(static_cast<std::size_t>(set->masks ? o.height * o.width : 0));
    for (const Index i : order) cut(i, batch, planes, mask);
  }

 private:
  void cut(Index i, Batch& batch, std::vector<double>& planes, std::vector<std::int32_t>& mask) const {
    const CropSample& crop = item(batch.crops_, i);
    const CropImage& from = item(set->images, crop.image);
    const CropOptions& o = set->options;
    const Pair size{o.height, o.width};
    const Index plane = o.height * o.width;
    const bool clamps = read(from, crop.region, planes);
    adjust_colors(planes, batch.shape_.c, crop.factors, clamps);
    const auto& [mean, deviation] = o.normalization;
    for (Index c = 0; c < batch.shape_.c; ++c) {
      double* values = planes.data() + c * plane;
      if (!mean.empty())
        for (Index p = 0; p < plane; ++p) values[p] = (values[p] - item(mean, c)) / item(deviation, c);
      orient(crop.orientation, size, values, batch.values_.data() + (i * batch.shape_.c + c) * plane);
    }
    if (!set->masks) {
      item(batch.classes_, i) = from.label;
      return;
    }
    set->mask(crop.image).for_each(crop.region, [&](Index y, Index x, std::int32_t label) {
      item(mask, (y - crop.region.rows.begin) * o.width + x - crop.region.columns.begin) = label;
    });
    orient(crop.orientation, size, mask.data(), batch.classes_.data() + i * plane);
  }
  /// Writes sample / full of the channels that are wanted. Whether values lie in [0, 1].
  bool read(const CropImage& from, const ImageRegion& region, std::vector<double>& planes) const {
    const CropOptions& o = set->options;
    const CachedImage& image = from.image;
    return with_sample_type(image.info().sample, [&]<class S>(const S*) {
      image.for_each_tile(region, [&](const ImageRegion& part, const std::byte* pixels, Index stride) {
        for (Index y = part.rows.begin; y < part.rows.end; ++y, pixels += stride)
          for (Index c = 0; c < set->channels(); ++c) {
            const std::byte* at = pixels + item(from.channels, c) * Index{sizeof(S)};
            double* to = planes.data() + (c * o.height + y - region.rows.begin) * o.width + part.columns.begin - region.columns.begin;
            for (Index x = 0; x < part.columns.size(); ++x, at += image.info().pixel_bytes()) {
              S sample;
              std::memcpy(&sample, at, sizeof(S));
              to[x] = static_cast<double>(sample) / full_sample<S>;
            }
          }
      });
      return full_sample<S> != 1;
    });
  }
};
}   // namespace detail
/// Batches of crops, for BasicTrainer::fit() and evaluate() or a loop of one's own: `for (auto& batch : loader.epoch(e)) trainer.step(batch)`.
/// Errors of an epoch: DataError if a tile cannot be decoded, which names file and tile; batches before it have been given.
template <class T>
class CropLoader {
 public:
  /// Errors:  DataError if there is no image, some have masks and others have none, a mask does not fit its image, an image lacks a channel,
  ///          images give different numbers of channels, a region lies beyond its image or is smaller than a crop, an image has no place for a
  ///          crop, a class of the focus is nowhere, or a number makes no sense
  /// Cost:    one pass over each mask, if there is a focus
  explicit CropLoader(std::vector<CropImage> images, CropOptions options = {})
      : set_(std::make_shared<const detail::CropSet>(std::move(images), std::move(options))) {}
  const CropOptions& options() const { return set_->options; }
  /// Crops and batches in an epoch.
  Index crops() const { return set_->crops_in_epoch(); }
  Index batches() const { return set_->batches(); }
  /// Shape of a full batch, for planning.
  Input input() const {
    const CropOptions& o = set_->options;
    return {std::min(o.batch, set_->crops()), set_->channels(), o.height, o.width};
  }
  /// Shape of the last batch of an epoch, which may have fewer crops.
  Input last_input() const { return detail::last_batch(input(), set_->crops(), set_->options.drop_last); }
  /// What decides which crops each batch of an epoch has, in words.
  std::string order() const {
    const CropOptions& o = set_->options;
    return detail::order_text(set_->crops(), o.order == CropOrder::tiles ? "tiles" : "crops drawn", o.seed);
  }
  /// The batches of an epoch from number `first` on.
  /// Post:    batch k is the same whatever `first`, prefetch and threads are
  /// Errors:  DataError if the epoch is negative or has no position `first` (its end is one)
  BasicEpoch<detail::CropBatches<T>> epoch(Index number, Index first = 0) const {
    check_position(number, first, batches() + 1);
    return {detail::CropBatches<T>{set_, number}, first, batches()};
  }
  /// One batch, made at once. Post: equals batch `position` of epoch(number). Errors: DataError if there is none, or a tile cannot be decoded
  CropBatch<T> batch(Index number, Index position) const {
    check_position(number, position, batches());
    const detail::CropBatches<T> maker{set_, number};
    CropBatch<T> result = maker.empty_batch();
    maker.make(position, result);
    return result;
  }

 private:
  void check_position(Index number, Index position, Index end) const { detail::check_batch_position(number, position, end, batches()); }
  std::shared_ptr<const detail::CropSet> set_;
};
}   // namespace lrcnn
