#pragma once
// A batch that stays where its samples are: images of an array, by index, cut, flipped and normalised as they are read.
//
//     const DirectSource<float> batch(array, indices, {.normalization = normalization});
//
// The host reads it as any RowSource. A device that has an address for the array (backend/cudnn/place_array.hpp) gathers the rows by itself, in one
// kernel, and the host copies nothing; the values have the same bits either way.
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/data/sample_array.hpp>
#include <lrcnn/data/transform.hpp>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>
namespace lrcnn {
/// How an array's numbers become a network's.
/// value = (number / full - mean) / deviation, by channel; full: 255 for u8, 65535 for u16, 1 for all other types.
template <class T>
struct SampleTables {
  ArrayType type = ArrayType::u8;
  std::vector<T> bytes{};                    ///< of u8: the value of each byte in each channel, as normalization_table() has it
  std::vector<double> mean{}, deviation{};   ///< one for each channel
  std::vector<T> outside{};                  ///< the values of pixels that lie outside an image
  /// Errors:  DataError as normalization_table(), or if the numbers are whole ones and `fill` is none of them
  SampleTables(ArrayType of, Index channels, const Normalization& normalization, double fill) : type(of) {
    bytes = normalization_table<T>(normalization, channels);   // which checks the numbers for the other types, too
    mean = normalization.mean, deviation = normalization.deviation;
    mean.resize(static_cast<std::size_t>(channels), 0.0), deviation.resize(static_cast<std::size_t>(channels), 1.0);
    if (type == ArrayType::u8 && !(fill >= 0 && fill <= 255 && fill == std::floor(fill)))
      throw DataError(error_text("pixels outside the images are to be " + std::to_string(fill) + ", and the images are bytes", "bytes are 0 to 255",
                                 "give a fill that is a byte"));
    if (type == ArrayType::u16 && !(fill >= 0 && fill <= 65535 && fill == std::floor(fill)))
      throw DataError(error_text("pixels outside the images are to be " + std::to_string(fill) + ", and the images are u16", "u16 are 0 to 65535",
                                 "give a fill that is a u16"));
    for (Index c = 0; c < channels; ++c)
      outside.push_back(with_array_type(type, [&]<class S>(const S*) { return value<S>(static_cast<S>(fill), c); }));
    if (type != ArrayType::u8) bytes.clear();
  }
  template <class S>
  T value(S number, Index channel) const {
    if constexpr (std::is_same_v<S, std::uint8_t>) return item(bytes, 256 * channel + number);
    else return static_cast<T>((static_cast<double>(number) / full_sample<S> - item(mean, channel)) / item(deviation, channel));
  }
};
/// What of each sample is read, and as which numbers.
struct DirectOptions {
  Normalization normalization{};
  Index crop_h = 0, crop_w = 0;          ///< rows and columns of the batch; 0: as many as the array's images have
  std::vector<Placement> placements{};   ///< where each sample is cut and whether it is flipped; empty: none begins elsewhere than at its corner
  double fill = 0;                       ///< the number outside an image, in the array's own units
};
/// One image of a batch, in the form in which a device reads it.
struct GatheredSample {
  Index first = 0;      ///< place of the sample's first number in the array
  Index y = 0, x = 0;   ///< of the cut's corner in the sample
  Index flip = 0;
};
/// T: float or double; backends in 16 bits read floats.
template <class T>
class DirectSource : public RowSource<T> {
 public:
  /// Errors:  DataError if there is no sample or the array lacks one, placements are not one for each, or the normalisation does not fit
  DirectSource(std::shared_ptr<const SampleArray> array, std::span<const Index> samples, const DirectOptions& options = {})
      : DirectSource(array, samples, options,
                     std::make_shared<const SampleTables<T>>(array->type(), array->shape().c, options.normalization, options.fill)) {}
  /// The same with tables made before: those of options.normalization and options.fill.
  DirectSource(std::shared_ptr<const SampleArray> array, std::span<const Index> samples, const DirectOptions& options,
               std::shared_ptr<const SampleTables<T>> tables)
      : array_(std::move(array)), tables_(std::move(tables)) {
    const Shape& s = array_->shape();
    shape_ = {static_cast<Index>(samples.size()), s.c, options.crop_h == 0 ? s.h : options.crop_h, options.crop_w == 0 ? s.w : options.crop_w};
    if (samples.empty() || shape_.h < 1 || shape_.w < 1)
      throw DataError(error_text("batch of " + to_string(shape_) + " from an array", "it has at least one image, row and column",
                                 "give samples, and extents of the crop that are not negative"));
    if (!options.placements.empty() && options.placements.size() != samples.size())
      throw DataError(
          error_text(std::to_string(options.placements.size()) + " placements are given for " + std::to_string(samples.size()) + " samples",
                     "each sample has one", "give one for each, or none"));
    whole_rows_ = shape_.w == s.w;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Index index = samples[i];
      if (index < 0 || index >= s.n)
        throw DataError(error_text("sample " + std::to_string(index) + " is asked for at place " + std::to_string(i) + " of a batch",
                                   "the array has samples 0 to " + std::to_string(s.n - 1), "draw indices below the number of samples"));
      const Placement p = options.placements.empty() ? Placement{} : options.placements[i];
      samples_.push_back({index * array_->layout().image, p.y, p.x, p.flip ? 1 : 0});
      whole_rows_ = whole_rows_ && p.x == 0 && Range{0, s.h}.contains({p.y, p.y + shape_.h});
    }
  }
  Shape shape() const override { return shape_; }
  bool concurrent_reads() const override { return true; }
  const SampleArray& array() const { return *array_; }
  const std::shared_ptr<const SampleArray>& shared_array() const { return array_; }
  const SampleTables<T>& tables() const { return *tables_; }
  std::span<const GatheredSample> samples() const { return samples_; }
  /// Whether every row of every cut is a whole row of its image.
  bool whole_rows() const { return whole_rows_; }
  /// A number that no other source of this process has: a device that has read the samples once knows them again by it. Copies share it.
  std::uint64_t serial() const { return serial_; }
  /// Writes normalised rows, as RowSource says.
  /// Post:    the value of an element depends on its place in the batch alone, not on rows, layout or order of reads
  /// Errors:  DataError if images, channels, rows or columns are not the batch's
  void read(Index first, const View<T>& dst) const override {
    check_read(shape_, first, dst, [&] { return "batch of " + to_string(shape_) + " from an array"; });
    with_array_type(array_->type(), [&]<class S>(const S*) {
      for (Index i = 0; i < dst.n; ++i)
        for (Index y = dst.row0; y < dst.row0 + dst.rows; ++y)
          for (Index c = 0; c < dst.c; ++c) read_row<S>(item(samples_, first + i), y, c, dst.row(i, c / dst.block, y) + c % dst.block, dst.block);
    });
  }

 private:
  template <class S>
  void read_row(const GatheredSample& sample, Index y, Index c, T* to, Index step) const {
    const SampleLayout& l = array_->layout();
    const Index from_y = y + sample.y, w = l.shape.w;
    const bool inside = 0 <= from_y && from_y < l.shape.h;
    const auto* row = reinterpret_cast<const S*>(array_->data()) + sample.first + (inside ? from_y : 0) * l.row + c * l.channel;
    for (Index x = 0; x < shape_.w; ++x) {
      const Index at = x + sample.x;
      const T value = inside && 0 <= at && at < w ? tables_->value(row[at * l.column], c) : item(tables_->outside, c);
      to[(sample.flip != 0 ? shape_.w - 1 - x : x) * step] = value;
    }
  }
  static std::uint64_t next_serial() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  std::shared_ptr<const SampleArray> array_;
  std::shared_ptr<const SampleTables<T>> tables_;
  std::vector<GatheredSample> samples_;
  Shape shape_{};
  bool whole_rows_ = true;
  std::uint64_t serial_ = next_serial();
};
}   // namespace lrcnn
