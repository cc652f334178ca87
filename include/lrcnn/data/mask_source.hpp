#pragma once
// Masks and targets in image files, as labels by rows.
//
//     const MaskSource masks(CachedImage(open_image("mask.png", formats), cache), {.classes = {{0, 0}, {255, 1}}});
//     trainer.step(images, Labels::from_rows(masks));
//
// Of a file of integers, whose one channel is read, each pixel is a class: what the table says of the stored value. A file of floating-point
// numbers has targets, as many for each pixel as channels. Nothing of a mask is in memory but the tiles that the cache holds.
#include <lrcnn/data/image_source.hpp>
#include <lrcnn/layer/labels.hpp>
#include <limits>
#include <map>
namespace lrcnn {
struct MaskOptions {
  /// The same of every mask of a batch; if it is empty, the whole mask.
  ImageRegion region{};
  /// The class of each stored value. Empty: the values are the classes.
  std::map<std::int64_t, std::int32_t> classes{};
  /// The class of values that the table does not have: what a loss ignores, as a rule. None: such a value is an error.
  std::optional<std::int32_t> others{};
  /// Channels of the file that are read, in this order; one, for a mask. Empty: all.
  std::vector<Index> channels{};
};
/// The masks of one batch, all of one size; or its targets. Files stay as they are while they are in use.
class MaskSource final : public LabelRows {
 public:
  explicit MaskSource(CachedImage mask, MaskOptions options = {}) : MaskSource(std::vector<CachedImage>{std::move(mask)}, std::move(options)) {}
  /// Errors:  DataError if there is no mask, the region does not lie within each of them, they differ in what they store, a channel is not
  ///          there, integers are to be read from several channels, or floating-point numbers have a table
  explicit MaskSource(std::vector<CachedImage> masks, MaskOptions options = {})
      : batch_(std::move(masks), options.region, options.channels, "mask"), options_(std::move(options)), shape_(batch_.shape()) {
    options_.region = batch_.region(), options_.channels = batch_.channels();
    const SampleType sample = batch_.image(0).info().sample;
    kind_ = sample == SampleType::f16 || sample == SampleType::f32 || sample == SampleType::f64 ? LabelKind::targets : LabelKind::pixels;
    check_kind();
    if (kind_ == LabelKind::pixels) fill_table(sample);
  }
  LabelKind kind() const override { return kind_; }
  Shape shape() const override { return shape_; }
  bool constant() const override { return true; }
  const MaskOptions& options() const { return options_; }
  /// Errors:  DataError if a stored value is no class: it names file, row, column and value; as CachedImage::for_each_tile()
  void classes(Index image, Range rows, std::span<std::int32_t> out) const override {
    if (kind_ != LabelKind::pixels) return LabelRows::classes(image, rows, out);
    each_line(image, rows, out, [&]<class S>(const std::byte* from, std::int32_t* to, Index count, Index row, Index column, const S*) {
      const Index step = batch_.image(image).info().pixel_bytes();
      from += options_.channels.front() * Index{sizeof(S)};
      for (Index x = 0; x < count; ++x, from += step) to[x] = class_of<S>(from, image, row, column + x);
    });
  }
  void values(Index image, Range rows, std::span<float> out) const override {
    if (kind_ != LabelKind::targets) return LabelRows::values(image, rows, out);
    each_line(image, rows, out, [&]<class S>(const std::byte* from, float* to, Index count, Index, Index, const S*) {
      const Index step = batch_.image(image).info().pixel_bytes();
      for (const Index channel : options_.channels) {
        for (Index x = 0; x < count; ++x) to[x] = static_cast<float>(sample_at<S>(from + x * step + channel * Index{sizeof(S)}));
        to += rows.size() * shape_.w;
      }
    });
  }
  void expect(std::span<const RowRequest> requests) const override { batch_.expect(requests); }

 private:
  void check_kind() const {
    const ImageInfo& info = batch_.image(0).info();
    const std::string who = "mask '" + info.path.string() + "'";
    if (kind_ == LabelKind::pixels && shape_.c != 1)
      throw DataError(error_text(who + " has " + std::to_string(info.channels) + " channels of " + std::string(sample_name(info.sample)) + ", and " +
                                     std::to_string(shape_.c) + " of them are to be read",
                                 "a class is one number for each pixel",
                                 "choose one channel (MaskOptions::channels), or store the classes in a file of one channel"));
    if (kind_ == LabelKind::targets && (!options_.classes.empty() || options_.others))
      throw DataError(error_text(who + " has samples of " + std::string(sample_name(info.sample)) + ", and a table of classes is given",
                                 "floating-point numbers are targets, which no table turns into classes", "leave the table out, or store integers"));
  }
  /// The classes of all samples of few bits.
  void fill_table(SampleType sample) {
    if (sample_bytes(sample) > 2) return;
    table_.resize(std::size_t{1} << (8 * sample_bytes(sample)), unknown);
    with_sample_type(sample, [&]<class S>(const S*) {
      if constexpr (sizeof(S) <= 2 && std::is_integral_v<S>)
        for (std::size_t at = 0; at < table_.size(); ++at) table_[at] = look_up(static_cast<S>(at));
    });
  }
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();   ///< that a value is no class
  std::int64_t look_up(std::int64_t value) const {
    if (options_.classes.empty() && value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max())
      return value;
    if (const auto at = options_.classes.find(value); at != options_.classes.end()) return at->second;
    return options_.others ? *options_.others : unknown;
  }
  template <class S>
  static S sample_at(const std::byte* from) {
    S sample;
    std::memcpy(&sample, from, sizeof(S));
    return sample;
  }
  template <class S>
  std::int32_t class_of(const std::byte* from, Index image, Index row, Index column) const {
    const S sample = sample_at<S>(from);
    std::int64_t found = unknown;
    if constexpr (sizeof(S) <= 2 && std::is_integral_v<S>) found = table_[static_cast<std::make_unsigned_t<S>>(sample)];
    else found = look_up(static_cast<std::int64_t>(sample));
    if (found != unknown) return static_cast<std::int32_t>(found);
    std::string known;
    for (const auto& [value, name] : options_.classes) known += (known.empty() ? "" : ", ") + std::to_string(value);
    throw DataError(error_text("mask '" + batch_.image(image).info().path.string() + "' has the value " +
                                   std::to_string(static_cast<std::int64_t>(sample)) + " in row " + std::to_string(row) + ", column " +
                                   std::to_string(column),
                               known.empty() ? "classes are numbers of 32 bits" : "the table of classes has " + known,
                               "correct the mask, add the value to the table, or give MaskOptions::others a class that the loss ignores"));
  }
  /// f(first pixel, where its label goes, pixels, row and column of the file, type) for the part of each row within each tile.
  template <class E, class F>
  void each_line(Index image, Range rows, std::span<E> out, F f) const {
    const ImageRegion region = batch_.region_of(rows);
    const CachedImage& mask = batch_.image(image);
    mask.for_each_tile(region, [&](const ImageRegion& part, const std::byte* pixels, Index stride) {
      with_sample_type(mask.info().sample, [&](const auto* type) {
        for (Index row = part.rows.begin; row < part.rows.end; ++row, pixels += stride) {
          E* to = out.data() + (row - region.rows.begin) * shape_.w + part.columns.begin - region.columns.begin;
          f(pixels, to, part.columns.size(), row, part.columns.begin, type);
        }
      });
    });
  }
  ImageBatch batch_;
  MaskOptions options_;
  Shape shape_;
  LabelKind kind_{};
  std::vector<std::int64_t> table_{};   ///< of samples of one or two bytes
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
    const auto size = [](const CachedImage& image) {
      const ImageInfo& info = image.info();
      return "'" + info.path.string() + "' has " + std::to_string(info.height) + " rows and " + std::to_string(info.width) + " columns";
    };
    for (std::size_t i = 0; i < images.size(); ++i)
      if (images[i].info().height != masks[i].info().height || images[i].info().width != masks[i].info().width)
        throw DataError(error_text("mask " + size(masks[i]) + ", and its image " + size(images[i]), "a mask has a label for each pixel of its image",
                                   "give the image's own mask, or scale it to the image's size without blending labels"));
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
