#pragma once
// A network's output as an image file, written row by row as it comes.
//
//     ImageSink<float> sink(std::make_unique<PngWriter>("map.png", out.h, out.w, 1), out, {.scale = 255, .channels = {1}});
//     predictor.run(source, sink);
//     sink.finish();
#include <lrcnn/core/text.hpp>
#include <lrcnn/data/image_writer.hpp>
#include <lrcnn/data/row_sink.hpp>
#include <lrcnn/data/samples.hpp>
#include <lrcnn/shape/shape.hpp>
#include <cmath>
#include <limits>
#include <vector>
namespace lrcnn {
/// What of an output is written, and as which numbers.
struct ImageSinkOptions {
  /// sample = value * scale + offset; whole numbers are rounded to the nearest and held within the range of the type.
  double scale = 1, offset = 0;
  /// Channels of the output, in the order of the file's. Empty: all.
  std::vector<Index> channels{};
  /// One channel instead: which of the channels has the greatest value, counted from 0 in `channels`; of equal ones the first. Scale and offset
  /// apply to that number.
  bool argmax = false;
};
/// T: float or double. Gives the rows of a batch of one image to a writer.
template <class T>
class ImageSink final : public RowSink<T> {
 public:
  /// `output`: the shape of what will come.
  /// Errors:  DataError if that is more than one image, the file is of other extents, channels are asked for that are not there or are not
  ///          as many as the file's, or the file's samples cannot count the channels of an argmax
  ImageSink(std::unique_ptr<ImageWriter> writer, const Shape& output, ImageSinkOptions options = {})
      : writer_(std::move(writer)), options_(std::move(options)) {
    if (options_.channels.empty())
      for (Index c = 0; c < output.c; ++c) options_.channels.push_back(c);
    check(output);
    if (options_.argmax) writer_->holds_classes();
    line_.resize(static_cast<std::size_t>(info().width * info().pixel_bytes()));
  }
  const ImageInfo& info() const { return writer_->info(); }
  /// Rows of any layout. Errors: DataError if they are not the next ones, or hold a number that is none (NaN), which whole numbers
  /// cannot say; as ImageWriter::write()
  void write(Index first, const View<const T>& src) override {
    if (first != 0 || src.n != 1 || src.w != info().width || src.row0 != next_ || src.c <= largest_)
      throw DataError(error_text(who() + " is given rows from " + std::to_string(src.row0) + " of " + std::to_string(src.n) + " images from " +
                                     std::to_string(first) + ", with " + std::to_string(src.c) + " channels and " + std::to_string(src.w) +
                                     " columns",
                                 "row " + std::to_string(next_) + " of " + std::to_string(info().width) + " columns of one image comes next",
                                 "give it all rows of one output, from top to bottom"));
    for (; next_ < src.row0 + src.rows; ++next_) {
      with_sample_type(info().sample, [&](const auto* type) { options_.argmax ? put_argmax(src, type) : put_values(src, type); });
      writer_->write(line_);
    }
  }
  /// Completes the file and gives it its name. Errors: as ImageWriter::finish().
  void finish() { writer_->finish(); }

 private:
  std::string who() const { return "image '" + info().path.string() + "'"; }
  void check(const Shape& output) {
    const Index channels = options_.argmax ? 1 : static_cast<Index>(options_.channels.size());
    if (output.n != 1 || output.h != info().height || output.w != info().width || channels != info().channels)
      throw DataError(error_text(who() + " has " + std::to_string(info().height) + " rows, " + std::to_string(info().width) + " columns and " +
                                     std::to_string(info().channels) + " channels, and is to hold an output of " + to_string(output) + ", of which " +
                                     std::to_string(channels) + " channels are written",
                                 "a file holds one image of the output's extents", "create it with these extents, or choose channels"));
    for (const Index c : options_.channels) {
      if (c < 0 || c >= output.c)
        throw DataError(error_text("channel " + std::to_string(c) + " of an output of " + to_string(output) + " is to be written to " + who(),
                                   "it has channels 0 to " + std::to_string(output.c - 1), "choose channels that are there"));
      largest_ = std::max(largest_, c);
    }
    const double last = (static_cast<double>(options_.channels.size()) - 1) * options_.scale + options_.offset;
    const auto [least, most] = with_sample_type(info().sample, []<class S>(const S*) { return limits_of<S>(); });
    const bool too_many = !(std::max(last, options_.offset) <= most), too_low = !(std::min(last, options_.offset) >= least);
    if (options_.argmax && (too_many || too_low))
      throw DataError(error_text(who() + " is to hold which of " + std::to_string(options_.channels.size()) + " channels is the greatest",
                                 "its samples are " + std::string(sample_name(info().sample)) +
                                     (too_many ? ", which end at " + number_text(most) : ", which begin at " + number_text(least)),
                                 "create it with larger samples, such as u16, or choose another scale"));
  }
  /// The range of samples: of floating point, everything.
  struct Limits {
    double least, most;
  };
  template <class S>
  static constexpr Limits limits_of() {
    using Numbers = std::numeric_limits<S>;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if constexpr (Numbers::is_integer) return {static_cast<double>(Numbers::lowest()), static_cast<double>(Numbers::max())};
    else return {-infinity, infinity};
  }
  /// The nearest whole number; of two, the one above. A sum with a half would be rounded itself: beyond 2^52, and just below a half.
  static double nearest(double value) {
    const double below = std::floor(value);
    return value - below < 0.5 ? below : below + 1;
  }
  /// The sample that is written for a value.
  template <class S>
  S sample_of(double value) const {
    const double scaled = value * options_.scale + options_.offset;
    if constexpr (!std::numeric_limits<S>::is_integer) {
      return static_cast<S>(scaled);
    } else {
      if (std::isnan(scaled))
        throw DataError(error_text("row " + std::to_string(next_) + " of " + who() + " has a value that is not a number (NaN)",
                                   std::string(sample_name(info().sample)) + " cannot hold it", "find out where it comes from, or write f32"));
      constexpr Limits limits = limits_of<S>();
      if (scaled >= limits.most) return std::numeric_limits<S>::max();
      return scaled <= limits.least ? std::numeric_limits<S>::lowest() : static_cast<S>(nearest(scaled));
    }
  }
  template <class S>
  void put(std::size_t at, double value) {
    const S sample = sample_of<S>(value);
    std::memcpy(line_.data() + at * sizeof(S), &sample, sizeof(S));
  }
  template <class S>
  void put_values(const View<const T>& src, const S*) {
    const std::size_t channels = options_.channels.size();
    for (std::size_t i = 0; i < channels; ++i) {
      const Index c = options_.channels[i];
      const T* const from = src.row(0, c / src.block, next_) + c % src.block;
      for (Index x = 0; x < src.w; ++x) put<S>(static_cast<std::size_t>(x) * channels + i, static_cast<double>(from[x * src.block]));
    }
  }
  template <class S>
  void put_argmax(const View<const T>& src, const S*) {
    for (Index x = 0; x < src.w; ++x) {
      Index greatest = 0;
      for (Index i = 0; i < static_cast<Index>(options_.channels.size()); ++i) {
        const T value = src(0, item(options_.channels, i), next_, x);
        if (std::isnan(value))
          throw DataError(error_text("row " + std::to_string(next_) + " of " + who() + " has a value that is not a number (NaN)",
                                     "the greatest of several is asked for", "find out where it comes from"));
        if (value > src(0, item(options_.channels, greatest), next_, x)) greatest = i;
      }
      put<S>(static_cast<std::size_t>(x), static_cast<double>(greatest));
    }
  }
  std::unique_ptr<ImageWriter> writer_;
  ImageSinkOptions options_;
  std::vector<std::byte> line_;
  Index next_ = 0, largest_ = 0;
};
}   // namespace lrcnn
