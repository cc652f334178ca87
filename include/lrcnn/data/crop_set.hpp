#pragma once
// Which crops there are: where they come from, which ones an epoch has, and what changes they go through. data/crops.hpp makes batches of them.
#include <lrcnn/data/class_index.hpp>
#include <lrcnn/data/color_jitter.hpp>
#include <lrcnn/data/orientation.hpp>
#include <lrcnn/data/transform.hpp>
namespace lrcnn {
/// An image to cut crops from, with its classes.
struct CropImage {
  CachedImage image;
  std::optional<CachedImage> mask{};     ///< a class for each pixel; either all images have one, or none
  std::optional<Index> mask_channel{};   ///< of the mask's file; none: it has one
  std::int32_t label = 0;                ///< the class of all crops, where there are no masks
  std::vector<ImageRegion> regions{};    ///< each crop lies in one of them; none: anywhere in the image
  std::vector<ImageRegion> held_out{};   ///< no crop has a pixel of these
  /// Of this file, in the network's order; none: CropOptions::channels. So a grey image joins others of three channels as {0, 0, 0}.
  std::vector<Index> channels{};
};
/// random: CropOptions::crops crops an epoch, from places anywhere. tiles: each region from top to bottom and left to right, every epoch the
/// same, without augmentation; the last tiles of rows and columns are moved so that they end with the region.
enum class CropOrder : std::uint8_t { random, tiles };
/// Which share of random crops shows at least one pixel of certain classes. Each class gets as many of these crops, counted over all epochs; each of
/// its pixels is as likely as any other of the class, and lies anywhere in the crop.
struct CropFocus {
  std::vector<std::int32_t> classes{};
  double share = 0;   ///< of the crops; the others come from anywhere
};
/// Random changes of random crops; masks are mirrored and turned with their images.
struct CropAugmentation {
  bool flip_x = false;          ///< exchange left and right in half of the crops
  bool flip_y = false;          ///< exchange top and bottom in half of the crops
  bool quarter_turns = false;   ///< turn by 0, 90, 180 or 270 degrees; crops are square then
  ColorJitter jitter{};         ///< of values in [0, 1] (sample / 255 or / 65535), which stay there; of other samples, whatever values they have
};
struct CropOptions {
  Index height = 256, width = 256;   ///< of a crop
  CropOrder order = CropOrder::random;
  Index crops = 1000;          ///< in an epoch of random ones
  Index overlap = 0;           ///< rows and columns that neighbouring tiles share
  bool images_alike = false;   ///< crops that are not of the focus come from each image as often; false: from each place as often
  CropFocus focus{};
  CropAugmentation augmentation{};
  std::vector<Index> channels{};   ///< of the files, in the network's order; empty: all, and all images have as many
  Normalization normalization{};   ///< as ImageSourceOptions::normalization
  MaskClasses classes{};           ///< what the masks' values stand for
  Index batch = 8;                 ///< crops in each but the last, which has what is left
  bool drop_last = false;          ///< leave the last batch out if it is not full
  std::uint64_t seed = 0;          ///< of places and augmentation
  Index prefetch = 2;              ///< batches made ahead; 0: none, and no thread
  Index threads = 1;               ///< that make them
};
/// Where a crop comes from, and what became of it.
struct CropSample {
  Index image = 0;        ///< its number
  ImageRegion region{};   ///< of the image
  Orientation orientation{};
  ColorFactors factors{};
  friend bool operator==(const CropSample&, const CropSample&) = default;
};
namespace detail {
/// What all epochs of a loader share. Never changed.
struct CropSet {
  std::vector<CropImage> images;
  CropOptions options;
  std::vector<CropPlaces> places{};   ///< of each image
  std::vector<Index> ends{};          ///< places of each image and all before
  ClassIndex index{};
  std::vector<CropSample> tiles{};   ///< if that is the order
  bool masks = false;
  /// Errors:  see CropLoader
  CropSet(std::vector<CropImage> all, CropOptions how) : images(std::move(all)), options(std::move(how)) {
    check_numbers();
    if (images.empty()) throw DataError(error_text("crops of no image are to be made", "there is at least one", "give the images"));
    masks = images.front().mask.has_value();
    for (CropImage& image : images) choose_channels(image);
    for (const CropImage& image : images) check_image(image);
    check(options.augmentation.jitter, channels());
    static_cast<void>(normalization_table<double>(options.normalization, channels()));   // checks the numbers
    for (const CropImage& image : images) {
      places.emplace_back(image.image.info(), image.regions, image.held_out, Pair{options.height, options.width});
      if (places.back().count() == 0)
        throw DataError(error_text("crops of " + extents() + " find no place in " + name(image),
                                   "a crop lies within a region that is used and touches none that is held out",
                                   "take smaller crops, or other regions"));
      ends.push_back((ends.empty() ? 0 : ends.back()) + places.back().count());
    }
    if (options.order == CropOrder::tiles) lay_tiles();
    else if (options.focus.share > 0) make_index();
    if (batches() == 0)
      throw DataError(
          error_text("crops with drop_last: " + std::to_string(crops()) + " crops in batches of " + std::to_string(options.batch) + " make no batch",
                     "an epoch has at least one full batch", "take smaller batches, or more crops"));
  }
  Index channels() const { return static_cast<Index>(images.front().channels.size()); }
  /// Pre: masks.
  ClassMask mask(Index image) const {
    const CropImage& of = item(images, image);
    return {*of.mask, options.classes, of.mask_channel.value_or(0)};
  }
  Index crops() const { return options.order == CropOrder::tiles ? static_cast<Index>(tiles.size()) : options.crops; }
  Index batches() const { return options.drop_last ? crops() / options.batch : ceil_div(crops(), options.batch); }
  /// Crops that an epoch gives.
  Index crops_in_epoch() const { return options.drop_last ? batches() * options.batch : crops(); }
  /// Crop number `number` of an epoch. Errors: as ClassIndex::pixel()
  CropSample crop(Index epoch, Index number) const {
    if (options.order == CropOrder::tiles) return item(tiles, number);
    const Random random = purpose_random(options.seed, "crop", epoch, number);
    const auto [image, place] = draw_place(random, number_of_all(epoch, number));
    const CropAugmentation& a = options.augmentation;
    CropSample crop{image, {{place.h, place.h + options.height}, {place.w, place.w + options.width}}, {}, draw_factors(a.jitter, random, 8)};
    if (a.flip_x && random.below(2, 2) == 1) crop.orientation = {true, 0};
    if (a.flip_y && random.below(3, 2) == 1) crop.orientation = then(crop.orientation, {true, 2});
    if (a.quarter_turns) crop.orientation = then(crop.orientation, {false, static_cast<int>(random.below(4, 4))});
    return crop;
  }

 private:
  std::string extents() const { return std::to_string(options.height) + "x" + std::to_string(options.width); }
  static std::string name(const CropImage& image) { return "image '" + image.image.info().path.string() + "'"; }
  void check_numbers() const {
    const CropOptions& o = options;
    const std::string crops_of = "crops of " + extents();
    if (o.height < 1 || o.width < 1 || o.batch < 1 || o.crops < 1 || o.prefetch < 0 || o.threads < 0)
      throw DataError(error_text(std::to_string(o.crops) + " " + crops_of + " in batches of " + std::to_string(o.batch) + ", " +
                                     std::to_string(o.prefetch) + " made ahead by " + std::to_string(o.threads) + " threads",
                                 "there is at least one crop of one pixel in a batch, and no number is negative", "choose other numbers"));
    if (o.overlap < 0 || o.overlap >= std::min(o.height, o.width))
      throw DataError(error_text("tiles of " + extents() + " that share " + std::to_string(o.overlap) + " rows and columns",
                                 "neighbours share fewer than a tile has, and not less than 0", "choose another overlap"));
    if (o.augmentation.quarter_turns && o.height != o.width && o.order == CropOrder::random)
      throw DataError(
          error_text(crops_of + " are to be turned by 90 degrees", "only a square keeps its extents", "take square crops, or flips alone"));
    if (!(o.focus.share >= 0 && o.focus.share <= 1) || (o.focus.share > 0 && o.focus.classes.empty()))
      throw DataError(error_text(
          "a share of " + std::to_string(o.focus.share) + " of the crops is to show one of " + std::to_string(o.focus.classes.size()) + " classes",
          "a share is from 0 to 1, and is of at least one class", "choose another share, or name the classes"));
  }
  void check_image(const CropImage& image) const {
    const ImageInfo& info = image.image.info();
    if (image.mask.has_value() != masks)
      throw DataError(
          error_text(name(image) + (masks ? " has no mask" : " has a mask") + ", and " + name(images.front()) + (masks ? " has one" : " has none"),
                     "either all images have masks, or none", "give the missing masks, or labels for all"));
    if (masks) check_mask(image);
    check_channels(name(image), image.channels, info.channels);
    if (const std::size_t own = image.channels.size(), of_first = images.front().channels.size(); own != of_first)
      throw DataError(error_text(
          std::to_string(own) + " channels of " + name(image) + " are to be read, and " + std::to_string(of_first) + " of " + name(images.front()),
          "a network reads as many of each image",
          "choose them: CropOptions::channels for all images ({0, 1, 2} leaves out an alpha), CropImage::channels for one"));
    for (const ImageRegion& r : image.regions)
      if (r.rows.size() < options.height || r.columns.size() < options.width)
        throw DataError(error_text("crops of " + extents() + " are to lie in " + to_string(r) + " of " + name(image),
                                   "a region is at least as large as a crop", "take smaller crops, or larger regions"));
  }
  void choose_channels(CropImage& image) const {
    if (image.channels.empty()) image.channels = options.channels;
    if (image.channels.empty())
      for (Index c = 0; c < image.image.info().channels; ++c) image.channels.push_back(c);
  }
  static void check_mask(const CropImage& image) {
    const ImageInfo& mask = image.mask->info();
    const std::string who = "mask '" + mask.path.string() + "'";
    check_mask_size(mask, image.image.info());
    if (is_floating(mask.sample))
      throw DataError(error_text(who + " has samples of " + std::string(sample_name(mask.sample)), "classes are integers", "store integers"));
    check_mask_channels(mask, image.mask_channel ? 1 : mask.channels, "CropImage::mask_channel");
    if (image.mask_channel) check_channels(who, std::span(&*image.mask_channel, 1), mask.channels);
  }
  void make_index() {
    if (!masks)
      throw DataError(error_text("crops are to show certain classes, and " + name(images.front()) + " has no mask", "masks say where classes are",
                                 "give masks, or set the share to 0"));
    index = ClassIndex(options.focus.classes);
    for (std::size_t i = 0; i < images.size(); ++i) index.add(static_cast<Index>(i), mask(static_cast<Index>(i)), places[i]);
    for (std::size_t slot = 0; slot < index.classes().size(); ++slot)
      if (index.count(slot) == 0)
        throw DataError(error_text("crops are to show class " + std::to_string(index.classes()[slot]) + ", which no mask has where crops may lie",
                                   "a share of the crops shows each of the classes", "leave the class out, or hold smaller regions out"));
  }
  void lay_tiles() {
    const auto starts = [&](Range r, Index size) {
      std::vector<Index> all;
      for (Index at = r.begin; at + size < r.end; at += size - options.overlap) all.push_back(at);
      all.push_back(r.end - size);
      return all;
    };
    for (std::size_t i = 0; i < images.size(); ++i) {
      std::vector<ImageRegion> regions = images[i].regions;
      if (regions.empty()) regions.push_back(whole(images[i].image.info()));
      for (const ImageRegion& r : regions)
        for (const Index y : starts(r.rows, options.height))
          for (const Index x : starts(r.columns, options.width))
            if (places[i].contains({y, x})) tiles.push_back({static_cast<Index>(i), {{y, y + options.height}, {x, x + options.width}}, {}, {}});
    }
    if (tiles.empty())
      throw DataError(error_text("each tile of " + extents() + " has a pixel that is held out", "an epoch has at least one tile",
                                 "take smaller tiles, more overlap, or other regions"));
  }
  /// The number of a crop, counted from epoch 0 on. Begins anew after so many crops that doubles would no longer count them.
  Index number_of_all(Index epoch, Index number) const {
    const Index epochs = std::max<Index>((Index{1} << 50) / crops_in_epoch(), 1);
    return epoch % epochs * crops_in_epoch() + number;
  }
  /// How many of the first n crops show classes of the focus: of any that follow each other, share * n, up to one.
  Index focused(Index n) const {
    const double share = options.focus.share, all = static_cast<double>(n), product = share * all, whole = std::floor(product);
    const double rounded = std::fma(share, all, -product);           // what the product lacks
    const double tolerance = std::max(1e-9, std::ldexp(all, -53));   // a share like 0.3 is a little less than three of ten
    return static_cast<Index>(whole + std::floor(product - whole + rounded + tolerance));
  }
  std::pair<Index, Pair> draw_place(const Random& random, Index number) const {
    const auto below = [&](std::uint64_t which, Index bound) {   // bounds may exceed 2^32
      return std::min(static_cast<Index>(random.uniform(which) * static_cast<double>(bound)), bound - 1);
    };
    if (const Index before = focused(number); focused(number + 1) > before) {
      const auto slot = static_cast<std::size_t>(before) % index.classes().size();
      const auto mask_of = [&](Index i) { return mask(i); };
      const auto places_of = [&](Index i) -> const CropPlaces& { return item(places, i); };
      const auto pixel = index.pixel(slot, below(0, index.count(slot)), mask_of, places_of);
      const CropPlaces& all = item(places, pixel.image);
      return {pixel.image, all.place_around(pixel.at, below(1, all.count_around(pixel.at)))};
    }
    if (options.images_alike) {
      const Index image = below(0, static_cast<Index>(images.size()));
      return {image, item(places, image).place(below(1, item(places, image).count()))};
    }
    const Index place = below(0, ends.back());
    const auto image = std::upper_bound(ends.begin(), ends.end(), place) - ends.begin();
    return {image, item(places, image).place(place - (image == 0 ? 0 : item(ends, image - 1)))};
  }
};
}   // namespace detail
}   // namespace lrcnn
