#pragma once
// The batches of a Loader, from an array that stays where it is: no thread makes them, no pixel is moved before a slab asks for it.
//
//     DirectLoader<float> loader(array, labels, {.batch = 64, .normalization = normalization_of(data)});
//     trainer.fit(loader, ...);
//
// Which images a batch holds, how they are cut and flipped, and the values of their pixels are those of Loader with the same options.
#include <lrcnn/data/direct_source.hpp>
#include <lrcnn/data/loader.hpp>
#include <iterator>
#include <numeric>
#include <optional>
namespace lrcnn {
/// A batch with its labels.
template <class T>
class DirectBatch final : public DirectSource<T> {
 public:
  DirectBatch(DirectSource<T> source, std::vector<std::int32_t> labels, std::vector<Index> indices)
      : DirectSource<T>(std::move(source)), labels_(std::move(labels)), indices_(std::move(indices)) {}
  std::span<const std::int32_t> labels() const { return labels_; }
  /// Which samples of the array these are.
  std::span<const Index> indices() const { return indices_; }

 private:
  std::vector<std::int32_t> labels_;
  std::vector<Index> indices_;
};
template <class T>
class DirectLoader {
 public:
  /// `options`: of Loader; prefetch and threads have no effect.
  /// Errors:  DataError if there is not one label for each sample, a number is not positive, there is a transform, the crop or the
  ///          normalisation does not fit, or there would be no batch
  DirectLoader(std::shared_ptr<const SampleArray> array, std::vector<std::int32_t> labels, LoaderOptions options = {})
      : state_(std::make_shared<State>(State{std::move(array), std::move(labels), std::move(options), {}, {}})) {
    State& s = *state_;
    const Shape& shape = s.array->shape();
    if (s.options.transform)
      throw DataError(error_text("a loader whose samples stay where they are is given a transform", "nothing changes the samples' numbers",
                                 "use Loader, or change the array beforehand"));
    if (static_cast<Index>(s.labels.size()) != shape.n)
      throw DataError(error_text(std::to_string(s.labels.size()) + " labels are given for an array of " + s.array->describe(),
                                 "each image has one label", "check that both come from the same part"));
    if (s.options.batch < 1 || (s.options.drop_last && s.options.batch > shape.n))
      throw DataError(error_text("loader with batches of " + std::to_string(s.options.batch) + " images of " + std::to_string(shape.n),
                                 "a batch has at least one image, and with drop_last only full batches are made", "choose another size"));
    s.image = cropped_shape(s.options.augmentation, {1, shape.c, shape.h, shape.w});
    s.tables = std::make_shared<const SampleTables<T>>(s.array->type(), shape.c, s.options.normalization, s.options.augmentation.fill);
  }
  Index batches() const {
    const Index count = state_->array->shape().n;
    return state_->options.drop_last ? count / state_->options.batch : ceil_div(count, state_->options.batch);
  }
  /// Shape of a full batch, for planning; no larger than the array.
  Input input() const {
    const Shape& image = state_->image;
    return {std::min(state_->options.batch, state_->array->shape().n), image.c, image.h, image.w};
  }
  /// Shape of the last batch of an epoch, which may have fewer images.
  Input last_input() const { return detail::last_batch(input(), state_->array->shape().n, state_->options.drop_last); }
  /// What decides which images each batch of an epoch has, in words.
  std::string order() const { return detail::order_of_images(state_->array->shape().n, state_->options); }
  const SampleArray& array() const { return *state_->array; }
  const LoaderOptions& options() const { return state_->options; }

 private:
  struct State {
    std::shared_ptr<const SampleArray> array;
    std::vector<std::int32_t> labels;
    LoaderOptions options;
    Shape image;
    std::shared_ptr<const SampleTables<T>> tables;
  };

 public:
  /// The batches of one epoch, made one by one.
  class Epoch {
   public:
    Epoch(std::shared_ptr<const State> state, Index number, Index first, Index end)
        : state_(std::move(state)), number_(number), next_(first), end_(end) {
      const Index count = state_->array->shape().n;
      if (state_->options.shuffle) {
        order_ = permutation(count, purpose_random(state_->options.seed, "shuffle", number));
      } else {
        order_.resize(static_cast<std::size_t>(count));
        std::iota(order_.begin(), order_.end(), Index{0});
      }
    }
    /// The next batch, or null after the last one. Makes the one before invalid.
    const DirectBatch<T>* next() {
      if (next_ >= end_) return nullptr;
      batch_.emplace(batch(next_++));
      return &*batch_;
    }
    /// Batch `position` of the epoch. Pre: there is one.
    DirectBatch<T> batch(Index position) const {
      const State& s = *state_;
      const Index begin = position * s.options.batch, end = std::min(begin + s.options.batch, static_cast<Index>(order_.size()));
      std::vector<Index> indices(order_.begin() + begin, order_.begin() + end);
      std::vector<std::int32_t> labels;
      DirectOptions options{.crop_h = s.image.h, .crop_w = s.image.w};
      const Shape& shape = s.array->shape();
      for (const Index sample : indices) {
        labels.push_back(item(s.labels, sample));
        options.placements.push_back(place(s.options.augmentation, {1, shape.c, shape.h, shape.w}, s.image, s.options.seed, number_, sample));
      }
      return {DirectSource<T>(s.array, indices, options, s.tables), std::move(labels), std::move(indices)};
    }
    using Iterator = EpochIterator<Epoch, const DirectBatch<T>>;
    Iterator begin() { return Iterator(this); }
    std::default_sentinel_t end() const { return {}; }

   private:
    std::shared_ptr<const State> state_;
    Index number_, next_, end_;
    std::vector<Index> order_{};
    std::optional<DirectBatch<T>> batch_{};
  };
  /// The batches of an epoch from number `first` on.
  /// Errors:  DataError if the epoch is negative or has no position `first` (its end is one)
  Epoch epoch(Index number, Index first = 0) const {
    check_position(number, first, batches() + 1);
    return Epoch(state_, number, first, batches());
  }
  /// One batch. Errors: DataError if there is none. Cost: shuffles the whole epoch.
  DirectBatch<T> batch(Index number, Index position) const {
    check_position(number, position, batches());
    return Epoch(state_, number, position, batches()).batch(position);
  }

 private:
  void check_position(Index number, Index position, Index end) const {
    if (number >= 0 && position >= 0 && position < end) return;
    throw DataError(error_text("batch " + std::to_string(position) + " of epoch " + std::to_string(number),
                               "an epoch has batches 0 to " + std::to_string(batches() - 1) + ", and epochs count from 0",
                               "check where training is to continue"));
  }
  std::shared_ptr<State> state_;
};
}   // namespace lrcnn
