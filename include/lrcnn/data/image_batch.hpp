#pragma once
// The images of one batch: files that have the same to give, and what of each is read. Sources of pixels and of labels are made of it.
#include <lrcnn/core/row_request.hpp>
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/shape/shape.hpp>
#include <vector>
namespace lrcnn {
class ImageBatch {
 public:
  /// `region`: the same of every image; if it is empty, the whole image. `channels`: of the file, in the order in which they are read;
  /// empty: all. `what`: "image" or "mask", for errors.
  /// Errors:  DataError if there is no image, the region does not lie within each of them, images without a region or their channels or
  ///          samples differ, or a channel is not there
  ImageBatch(std::vector<CachedImage> images, const ImageRegion& region, std::vector<Index> channels, std::string_view what)
      : images_(std::move(images)), region_(region), channels_(std::move(channels)) {
    const std::string one(what), several = one + "s";
    if (images_.empty()) throw DataError(error_text("a batch of no " + several + " is to be read", "it has at least one", "give the " + several));
    const ImageInfo& first = images_.front().info();
    const bool all = region_ == ImageRegion{};
    if (all) region_ = whole(first);
    if (channels_.empty())
      for (Index c = 0; c < first.channels; ++c) channels_.push_back(c);
    for (const CachedImage& image : images_) check(image.info(), first, all, one, several);
  }
  /// Of what is read.
  Shape shape() const {
    return {static_cast<Index>(images_.size()), static_cast<Index>(channels_.size()), region_.rows.size(), region_.columns.size()};
  }
  const CachedImage& image(Index i) const { return item(images_, i); }
  const ImageRegion& region() const { return region_; }
  const std::vector<Index>& channels() const { return channels_; }
  /// Where rows of the batch lie in each file.
  ImageRegion region_of(Range rows) const { return {{region_.rows.begin + rows.begin, region_.rows.begin + rows.end}, region_.columns}; }
  /// Tells each image which of its rows will be read.
  void expect(std::span<const RowRequest> requests) const {
    std::vector<ImageRegion> regions;
    for (Index i = 0; i < static_cast<Index>(images_.size()); ++i) {
      regions.clear();
      for (const RowRequest& request : requests)
        if (request.images.contains({i, i + 1})) regions.push_back(region_of(request.rows));
      image(i).expect(regions);
    }
  }

 private:
  void check(const ImageInfo& info, const ImageInfo& first, bool all, const std::string& one, const std::string& several) const {
    const std::string who = one + " '" + info.path.string() + "'";
    const auto size = [](const ImageInfo& i) { return std::to_string(i.height) + " rows and " + std::to_string(i.width) + " columns"; };
    const auto pixels = [](const ImageInfo& i) { return std::to_string(i.channels) + " channels of " + std::string(sample_name(i.sample)); };
    if (region_.rows.empty() || region_.columns.empty() || !whole(info).contains(region_))
      throw DataError(error_text(who + " has " + size(info) + ", and " + to_string(region_) + " of it are to be read",
                                 "what is read of each " + one + " of a batch is the same region, and lies within it",
                                 "choose another region, or " + several + " of one size"));
    if (all && (info.height != first.height || info.width != first.width))
      throw DataError(error_text(who + " has " + size(info) + ", and '" + first.path.string() + "' has " + size(first),
                                 several + " of a batch have one size", "give a region that lies within all of them, or batches of one " + one));
    if (info.channels != first.channels || info.sample != first.sample)
      throw DataError(error_text(who + " has " + pixels(info) + ", and '" + first.path.string() + "' has " + pixels(first),
                                 several + " of a batch have the same channels and samples", "convert one of them, or use batches of one " + one));
    check_channels(who, channels_, info.channels);
  }
  std::vector<CachedImage> images_;
  ImageRegion region_;
  std::vector<Index> channels_;
};
}   // namespace lrcnn
