#pragma once
// Masks and targets in image files, as labels by rows.
//
//     const MaskSource masks(CachedImage(open_image("mask.png", formats), cache), {.classes = {.table = {{0, 0}, {255, 1}}}});
//     trainer.step(images, Labels::from_rows(masks));
//
// Of a file of integers, whose one channel is read, each pixel is a class: what MaskClasses says of the stored value. A file of floating-point
// numbers has targets, as many for each pixel as channels. Nothing of a mask is in memory but the tiles that the cache holds.
#include <lrcnn/data/image_source.hpp>
#include <lrcnn/data/mask_classes.hpp>
#include <lrcnn/layer/labels.hpp>
namespace lrcnn {
struct MaskOptions {
  /// The same of every mask of a batch; if it is empty, the whole mask.
  ImageRegion region{};
  MaskClasses classes{};   ///< what stored values stand for
  /// Channels of the file that are read, in this order; one, for a mask. Empty: all.
  std::vector<Index> channels{};
};
/// The masks of one batch, all of one size; or its targets. Files stay as they are while they are in use.
class MaskSource final : public LabelRows {
 public:
  explicit MaskSource(CachedImage mask, MaskOptions options = {}) : MaskSource(std::vector<CachedImage>{std::move(mask)}, std::move(options)) {}
  /// Errors:  DataError if there is no mask, the region does not lie within each of them, they differ in what they store, a channel is not
  ///          there, integers are to be read from several channels, or floating-point numbers are to have classes
  explicit MaskSource(std::vector<CachedImage> masks, MaskOptions options = {})
      : batch_(std::move(masks), options.region, options.channels, "mask"), options_(std::move(options)), shape_(batch_.shape()) {
    options_.region = batch_.region(), options_.channels = batch_.channels();
    const SampleType sample = batch_.image(0).info().sample;
    kind_ = is_floating(sample) ? LabelKind::targets : LabelKind::pixels;
    check_kind();
  }
  LabelKind kind() const override { return kind_; }
  Shape shape() const override { return shape_; }
  bool constant() const override { return true; }
  const MaskOptions& options() const { return options_; }
  /// Errors:  DataError if a stored value is no class: it names file, row, column and value; as ClassMask::for_each()
  void classes(Index image, Range rows, std::span<std::int32_t> out) const override {
    if (kind_ != LabelKind::pixels) return LabelRows::classes(image, rows, out);
    const ImageRegion region = batch_.region_of(rows);
    ClassMask{batch_.image(image), options_.classes, options_.channels.front()}.for_each(
        region, [&](Index y, Index x, std::int32_t label) { item(out, (y - region.rows.begin) * shape_.w + x - region.columns.begin) = label; });
  }
  void values(Index image, Range rows, std::span<float> out) const override {
    if (kind_ != LabelKind::targets) return LabelRows::values(image, rows, out);
    const ImageRegion region = batch_.region_of(rows);
    const CachedImage& file = batch_.image(image);
    const Index step = file.info().pixel_bytes();
    file.for_each_tile(region, [&](const ImageRegion& part, const std::byte* pixels, Index stride) {
      with_sample_type(file.info().sample, [&]<class S>(const S*) {
        for (Index row = part.rows.begin; row < part.rows.end; ++row, pixels += stride) {
          float* to = out.data() + (row - region.rows.begin) * shape_.w + part.columns.begin - region.columns.begin;
          for (const Index channel : options_.channels) {
            for (Index x = 0; x < part.columns.size(); ++x) {
              S sample;
              std::memcpy(&sample, pixels + x * step + channel * Index{sizeof(S)}, sizeof(S));
              to[x] = static_cast<float>(sample);
            }
            to += rows.size() * shape_.w;
          }
        }
      });
    });
  }
  void expect(std::span<const RowRequest> requests) const override { batch_.expect(requests); }

 private:
  void check_kind() const {
    const ImageInfo& info = batch_.image(0).info();
    const std::string who = "mask '" + info.path.string() + "'";
    if (kind_ == LabelKind::pixels) check_mask_channels(info, shape_.c, "MaskOptions::channels");
    const MaskClasses& classes = options_.classes;
    if (kind_ == LabelKind::targets && (!classes.table.empty() || classes.others || classes.function))
      throw DataError(error_text(who + " has samples of " + std::string(sample_name(info.sample)) + ", and classes are given for them",
                                 "floating-point numbers are targets, which nothing turns into classes",
                                 "leave MaskOptions::classes out, or store integers"));
  }
  ImageBatch batch_;
  MaskOptions options_;
  Shape shape_;
  LabelKind kind_{};
};
/// Images and their masks as one batch, which a trainer takes: `trainer.step(MaskedImages<float>(image, mask))`.
template <class T>
class MaskedImages final : public RowSource<T> {
 public:
  MaskedImages(CachedImage image, CachedImage mask, ImageSourceOptions of_images = {}, MaskOptions of_masks = {})
      : MaskedImages(std::vector{std::move(image)}, std::vector{std::move(mask)}, std::move(of_images), std::move(of_masks)) {}
  /// The region of the images is that of the masks, too.
  /// Errors:  DataError if there are not as many masks as images, or one has not the size of its image; as ImageSource and MaskSource
  MaskedImages(const std::vector<CachedImage>& images, const std::vector<CachedImage>& masks, ImageSourceOptions of_images = {},
               MaskOptions of_masks = {})
      : images_(with_masks(images, masks), std::move(of_images)), masks_(masks, with_region(std::move(of_masks))) {}
  Shape shape() const override { return images_.shape(); }
  void read(Index first, const View<T>& dst) const override { images_.read(first, dst); }
  void expect(std::span<const RowRequest> requests) const override { images_.expect(requests); }
  Labels labels() const { return Labels::from_rows(masks_); }
  const MaskSource& masks() const { return masks_; }

 private:
  /// The images, whose masks have been compared with them.
  static const std::vector<CachedImage>& with_masks(const std::vector<CachedImage>& images, const std::vector<CachedImage>& masks) {
    if (images.size() != masks.size())
      throw DataError(error_text(std::to_string(masks.size()) + " masks are given for " + std::to_string(images.size()) + " images",
                                 "every image has its own", "give as many masks as images"));
    for (std::size_t i = 0; i < images.size(); ++i) check_mask_size(masks[i].info(), images[i].info());
    return images;
  }
  MaskOptions with_region(MaskOptions options) const {
    options.region = images_.options().region;
    return options;
  }
  ImageSource<T> images_;
  MaskSource masks_;
};
}   // namespace lrcnn
