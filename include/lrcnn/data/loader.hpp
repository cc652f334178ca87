#pragma once
// Batches of a data set, epoch by epoch, the next ones made while the current one is used.
//
// Which images a batch holds, and how they are cut, is a function of (seed, epoch, position) alone. So the number of
// threads changes nothing, and a training that stopped after batch k of epoch e continues with `epoch(e, k)`.
// Threads make batches ahead as data/epoch.hpp says.
#include <lrcnn/data/batch.hpp>
#include <lrcnn/data/epoch.hpp>
#include <functional>
namespace lrcnn {
/// How a loader makes batches.
struct LoaderOptions {
  Index batch = 32;                ///< images in each but the last, which has what is left
  bool shuffle = true;             ///< a new order each epoch; false: the data set's
  bool drop_last = false;          ///< leave the last batch out if it is not full
  std::uint64_t seed = 0;          ///< of order, crops and flips
  Normalization normalization{};   ///< the training part's, for the test part too
  Augmentation augmentation{};     ///< crop and flip
  /// A user's own change to the bytes of one cut image [C,H,W], drawn from a generator of its own.
  /// Called from the loader's threads, from several at a time if there are several.
  std::function<void(std::span<std::uint8_t> image, const Shape& shape, const Random& random)> transform{};
  Index prefetch = 2;   ///< batches made ahead; 0: none, and no thread
  Index threads = 1;    ///< that make them
};
namespace detail {
/// What order() of a loader of so many images says.
inline std::string order_of_images(Index images, const LoaderOptions& options) {
  return order_text(images, options.shuffle ? "images shuffled" : "images in their order", options.seed);
}
/// What it takes to make any batch of one epoch of a data set.
template <class T>
struct DatasetBatches {
  using Batch = lrcnn::Batch<T>;
  const Dataset& data;
  LoaderOptions options;
  std::vector<Index> order;
  Index epoch;
  Shape image;   ///< [1,C,H,W] after the crop
  std::shared_ptr<const std::vector<T>> table;
  Index prefetch() const { return options.prefetch; }
  Index threads() const { return options.threads; }
  Batch empty_batch() const {
    Batch batch(table);
    auto& contents = batch.contents();
    const Index most = std::min(options.batch, static_cast<Index>(order.size()));
    contents.pixels.reserve(static_cast<std::size_t>(most * image.count()));
    contents.labels.reserve(static_cast<std::size_t>(most));
    contents.indices.reserve(static_cast<std::size_t>(most));
    return batch;
  }
  /// Errors: what options.transform throws.
  void make(Index position, Batch& made) const {
    BatchContents& batch = made.contents();
    const Index begin = position * options.batch;
    const Index count = std::min(options.batch, static_cast<Index>(order.size()) - begin);
    const auto bytes = static_cast<std::size_t>(image.count());
    batch.shape = {count, image.c, image.h, image.w};
    batch.epoch = epoch;
    batch.position = position;
    batch.pixels.resize(static_cast<std::size_t>(count) * bytes);
    batch.labels.resize(static_cast<std::size_t>(count));
    batch.indices.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const Index sample = order[static_cast<std::size_t>(begin) + i];
      const auto to = std::span(batch.pixels).subspan(i * bytes, bytes);
      const Placement p = place(options.augmentation, data.shape, image, options.seed, epoch, sample);
      cut_image(data.image(sample), data.shape, to, image, p, options.augmentation.fill);
      if (options.transform) options.transform(to, image, purpose_random(options.seed, "user", epoch, sample));
      batch.labels[i] = item(data.labels, sample);
      batch.indices[i] = sample;
    }
  }
};
}   // namespace detail
/// The batches of one epoch of a data set, which outlives the epoch; see BasicEpoch.
template <class T>
using Epoch = BasicEpoch<detail::DatasetBatches<T>>;
/// Batches of a data set. Regular use:
///     Loader<float> loader(data, {.batch = 64, .normalization = normalization_of(data)});
///     for (Index e = 0; e < epochs; ++e)
///       for (auto& batch : loader.epoch(e)) trainer.step(batch);
template <class T>
class Loader {
 public:
  /// Borrows the data set, which outlives the loader.
  /// Errors:  DataError if the data set does not hold together, a number of the options is not positive (prefetch and
  ///          threads may be 0), normalisation or crop do not fit the images, or there would be no batch
  explicit Loader(const Dataset& data, LoaderOptions options = {}) : data_(&data), options_(std::move(options)) {
    check(data);
    if (options_.batch < 1 || options_.prefetch < 0 || options_.threads < 0)
      throw DataError(error_text("loader with batches of " + std::to_string(options_.batch) + " images, " + std::to_string(options_.prefetch) +
                                     " made ahead by " + std::to_string(options_.threads) + " threads",
                                 "a batch has at least one image, and no number is negative", "choose other numbers"));
    if (options_.drop_last && options_.batch > data.size())
      throw DataError(error_text("loader with batches of " + std::to_string(options_.batch) + " images of " + std::to_string(data.size()),
                                 "with drop_last only full batches are made, so there would be none", "choose smaller batches or keep the last"));
    image_ = cropped_shape(options_.augmentation, {1, data.shape.c, data.shape.h, data.shape.w});
    table_ = std::make_shared<const std::vector<T>>(normalization_table<T>(options_.normalization, image_.c));
  }
  Loader(const Dataset&&, LoaderOptions = {}) = delete;
  /// Batches in an epoch.
  Index batches() const { return data_->size() / options_.batch + (!options_.drop_last && data_->size() % options_.batch != 0 ? 1 : 0); }
  /// Images in an epoch.
  Index images() const { return options_.drop_last ? batches() * options_.batch : data_->size(); }
  /// Shape of a full batch, for planning; no larger than the data set.
  Input input() const { return {std::min(options_.batch, data_->size()), image_.c, image_.h, image_.w}; }
  /// Shape of the last batch of an epoch, which may have fewer images.
  Input last_input() const { return detail::last_batch(input(), data_->size(), options_.drop_last); }
  /// What decides which images each batch of an epoch has, in words.
  std::string order() const { return detail::order_of_images(data_->size(), options_); }
  const Dataset& data() const { return *data_; }
  const LoaderOptions& options() const { return options_; }
  /// The batches of an epoch from number `first` on.
  /// Post:    batch k is the same whatever `first`, prefetch and threads are; all batches of an epoch together hold
  ///          each image once (but for those that drop_last leaves out)
  /// Errors:  DataError if the epoch is negative or has no position `first` (its end is one)
  Epoch<T> epoch(Index number, Index first = 0) const {
    check_position(number, first, batches() + 1);
    return Epoch<T>(maker(number), first, batches());
  }
  /// One batch, made at once and kept as long as the caller likes.
  /// Post:    equals batch `position` of epoch(number)
  /// Errors:  DataError if there is none; what options.transform throws
  /// Cost:    shuffles the whole epoch
  Batch<T> batch(Index number, Index position) const {
    check_position(number, position, batches());
    Batch<T> result(table_);
    const auto make = maker(number);
    make.make(position, result);
    return result;
  }
 private:
  detail::DatasetBatches<T> maker(Index number) const {
    std::vector<Index> order;
    if (options_.shuffle) {
      order = permutation(data_->size(), purpose_random(options_.seed, "shuffle", number));
    } else {
      order.resize(static_cast<std::size_t>(data_->size()));
      std::iota(order.begin(), order.end(), Index{0});
    }
    return {*data_, options_, std::move(order), number, image_, table_};
  }
  void check_position(Index number, Index position, Index end) const { detail::check_batch_position(number, position, end, batches()); }
  const Dataset* data_;
  LoaderOptions options_;
  Shape image_;   ///< [1,C,H,W] after the crop
  std::shared_ptr<const std::vector<T>> table_;
};
}   // namespace lrcnn
