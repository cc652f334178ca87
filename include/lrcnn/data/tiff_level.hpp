#pragma once
// One image of a TIFF file that is being written from top to bottom: rows are gathered to a row of tiles, which is then encoded. A pyramid is a
// chain of these: each gives its rows, halved, to the next.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/data/samples.hpp>
#include <lrcnn/data/tiff_handle.hpp>
#include <functional>
#include <type_traits>
#include <vector>
namespace lrcnn {
enum class TiffCompression : std::uint8_t { none, deflate, lzw, jpeg, zstd };
/// What stands in a smaller version of an image for 2x2 pixels of the larger one; at the lower and right edge, for those that there are.
enum class TiffReduction : std::uint8_t {
  automatic,      ///< their mean, or the most frequent one of numbers of classes, as an ImageSink with argmax writes
  mean,           ///< of each channel; whole numbers are rounded to the nearest, halves up
  most_frequent   ///< the whole pixel; of several the first. For masks: a mean of classes 1 and 3 is another class.
};
struct TiffWriterOptions {
  TiffCompression compression = TiffCompression::deflate;
  Index tile_height = 256, tile_width = 256;   ///< multiples of 16
  int quality = 90;                            ///< of JPEG, 1 to 100
  /// Smaller versions follow as further directories, each half as high and wide (rounded up) as the one before, until one fits into a tile.
  bool pyramid = false;
  TiffReduction reduction = TiffReduction::automatic;   ///< of a pyramid: means (of classes the most frequent), mean, or most_frequent
  /// Tiles of zeros alone are left out. Readers that know sparse files (lrcnn, GDAL) take them for zeros.
  bool sparse = false;
};
namespace detail {
/// As libtiff numbers it.
constexpr std::uint16_t tiff_scheme(TiffCompression compression) {
  constexpr std::array<std::uint16_t, 5> schemes{COMPRESSION_NONE, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_LZW, COMPRESSION_JPEG, COMPRESSION_ZSTD};
  return schemes[static_cast<std::size_t>(compression)];
}
/// The means of blocks of 2x2 pixels; at the lower and right edge, of those that there are. Integers are rounded to the nearest, halves up.
/// Shapes:  from [rows][columns][channels], to [ceil(rows / 2)][ceil(columns / 2)][channels]
template <class S>
void halve_pixels(const std::byte* from, Index rows, Index columns, Index channels, std::byte* to) {
  constexpr Index size = sizeof(S);
  const Index line = columns * channels * size;
  for (Index y = 0; y < rows; y += 2)
    for (Index x = 0; x < columns; x += 2) {
      const bool two_rows = y + 1 < rows, two_columns = x + 1 < columns;
      const std::byte* const first = from + y * line + x * channels * size;
      const Index right = two_columns ? channels * size : 0, below = two_rows ? line : 0;
      for (Index c = 0; c < channels; ++c, to += size) {
        S mean{};
        const auto load = [&](Index offset) {
          S value;
          std::memcpy(&value, first + c * size + offset, sizeof(S));
          return value;
        };
        // A pixel that counts twice at an edge leaves the mean as it is.
        const std::array<S, 4> values{load(0), load(right), load(below), load(below + right)};
        if constexpr (std::is_integral_v<S>) {   // quotients and remainders apart, so that nothing overflows
          Index quotients = 0, remainders = 2;
          for (const S v : values) quotients += static_cast<Index>(v) >> 2, remainders += static_cast<Index>(v) & 3;
          mean = static_cast<S>(quotients + (remainders >> 2));
        } else {
          double sum = 0;
          for (const S v : values) sum += static_cast<double>(v);
          mean = static_cast<S>(sum / 4);
        }
        std::memcpy(to, &mean, sizeof(S));
      }
    }
}
/// The most frequent pixels of blocks of 2x2; of several the first. Shapes: as of halve_pixels()
template <class S>
void pick_pixels(const std::byte* from, Index rows, Index columns, Index channels, std::byte* to) {
  const auto size = static_cast<std::size_t>(channels) * sizeof(S);
  const Index pixel = static_cast<Index>(size), line = columns * pixel;
  const auto same = [&](const std::byte* a, const std::byte* b) {
    return channels == 1 ? std::memcmp(a, b, sizeof(S)) == 0 : std::memcmp(a, b, size) == 0;
  };
  for (Index y = 0; y < rows; y += 2)
    for (Index x = 0; x < columns; x += 2, to += pixel) {
      const Index right = x + 1 < columns ? pixel : 0, below = y + 1 < rows ? line : 0;   // at an edge pixels count twice, all of them
      const std::byte* const first = from + y * line + x * pixel;
      const std::byte *const second = first + right, *const third = first + below, *const fourth = third + right;
      const std::byte* chosen = first;
      if (!same(first, second) && !same(first, third) && !same(first, fourth)) {
        if (same(second, third) || same(second, fourth)) chosen = second;
        else if (same(third, fourth)) chosen = third;
      }
      std::memcpy(to, chosen, size);
    }
}
/// The error of a TIFF file that libtiff cannot write, from errno where that has a reason.
inline DataError cannot_write_tiff(const std::filesystem::path& path, const TiffHandle& tiff) {
  if (errno != 0) return cannot_write(path, errno);
  return DataError(error_text("file '" + path.string() + "' cannot be written: " + tiff.text(),
                              "a new file is written beside it and then takes its name; what was there is kept",
                              "choose other options, or another path"));
}
class TiffLevel {
 public:
  /// Begins an image in an open file; `info` has its extents and tiles.
  TiffLevel(int descriptor, const ImageInfo& info, const TiffWriterOptions& options) : info_(info), options_(options) {
    const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0) throw cannot_write(info.path, errno);
    errno = 0;
    tiff_.emplace(own, info.path, "w8");
    if (!tiff_->opened()) throw cannot_write_tiff(info.path, *tiff_);
    describe(*tiff_, info_, options_, false);
    const auto size = [](Index bytes) { return static_cast<std::size_t>(bytes); };
    band_.resize(size(std::min(info.height, info.tile_height) * info.width * info.pixel_bytes()));
    tile_.resize(size(info.tile_height * info.tile_width * info.pixel_bytes()));
  }
  const ImageInfo& info() const { return info_; }
  /// Takes whole rows, no more than are left. Full rows of tiles are encoded; then f(rows, how many) gets them.
  template <class F>
  void write(std::span<const std::byte> rows, F f) {
    const Index line = info_.width * info_.pixel_bytes();
    while (!rows.empty()) {
      const Range band = info_.rows_of(row_ / info_.tile_height);
      const Index count = std::min(static_cast<Index>(rows.size()) / line, band.end - row_);
      const auto bytes = static_cast<std::size_t>(count * line);
      std::memcpy(band_.data() + (row_ - band.begin) * line, rows.data(), bytes);
      rows = rows.subspan(bytes);
      row_ += count;
      if (row_ < band.end) continue;
      encode(band);
      f(band_.data(), band.size());
    }
  }
  /// Completes the directory of the file's first image.
  void finish() {
    errno = 0;
    if (TIFFWriteCheck(tiff_->get(), 1, "TiffWriter") != 1 || TIFFWriteDirectory(tiff_->get()) != 1) throw cannot_write_tiff(info_.path, *tiff_);
  }
  /// Adds another level's image, as it is encoded, as a further directory.
  void append(const TiffLevel& level) {
    TIFF *const to = tiff_->get(), *const from = level.tiff_->get();
    describe(*tiff_, level.info_, options_, true);
    errno = 0;
    std::uint32_t count = 0;
    void* tables = nullptr;
    if (options_.compression == TiffCompression::jpeg && TIFFGetField(from, TIFFTAG_JPEGTABLES, &count, &tables) == 1)
      TIFFSetField(to, TIFFTAG_JPEGTABLES, count, tables);
    if (TIFFWriteCheck(to, 1, "TiffWriter") != 1) throw cannot_write_tiff(info_.path, *tiff_);
    std::vector<std::byte> raw;
    const std::uint32_t tiles = TIFFNumberOfTiles(from);
    for (std::uint32_t tile = 0; tile < tiles; ++tile) {
      const auto bytes = static_cast<tmsize_t>(TIFFGetStrileByteCount(from, tile));
      if (bytes == 0) continue;
      raw.resize(static_cast<std::size_t>(bytes));
      if (TIFFReadRawTile(from, tile, raw.data(), bytes) != bytes) throw cannot_write_tiff(info_.path, *level.tiff_);
      if (TIFFWriteRawTile(to, tile, raw.data(), bytes) != bytes) throw cannot_write_tiff(info_.path, *tiff_);
    }
    if (TIFFWriteDirectory(to) != 1) throw cannot_write_tiff(info_.path, *tiff_);
  }
  /// Closes the file.
  void close() { tiff_.reset(); }

 private:
  static void describe(const TiffHandle& handle, const ImageInfo& info, const TiffWriterOptions& options, bool reduced) {
    using enum SampleType;
    TIFF* const tiff = handle.get();
    const SampleType s = info.sample;
    const bool is_float = s == f16 || s == f32 || s == f64, is_signed = s == i8 || s == i16 || s == i32 || s == i64;
    const bool rgb = info.channels == 3 || info.channels == 4;
    const auto extent = [](Index i) { return static_cast<std::uint32_t>(i); };
    if (reduced) TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, extent(info.width));
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, extent(info.height));
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, extent(info.tile_width));
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, extent(info.tile_height));
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(info.channels));
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * sample_bytes(s)));
    TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, is_float ? SAMPLEFORMAT_IEEEFP : is_signed ? SAMPLEFORMAT_INT : SAMPLEFORMAT_UINT);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, static_cast<int>(tiff_scheme(options.compression)));
    const std::vector<std::uint16_t> extra(static_cast<std::size_t>(info.channels - (rgb ? 3 : 1)), EXTRASAMPLE_UNSPECIFIED);
    if (!extra.empty()) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, static_cast<int>(extra.size()), extra.data());
    if (options.compression == TiffCompression::jpeg) {
      TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, rgb ? PHOTOMETRIC_YCBCR : PHOTOMETRIC_MINISBLACK);
      TIFFSetField(tiff, TIFFTAG_JPEGQUALITY, options.quality);
      TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
      return;
    }
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, rgb ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    if (options.compression != TiffCompression::none && sample_bytes(s) <= 4)
      TIFFSetField(tiff, TIFFTAG_PREDICTOR, is_float ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL);
  }
  /// Encodes a full row of tiles. What of a tile lies outside the image repeats the last row and column.
  void encode(Range rows) {
    const Index pixel = info_.pixel_bytes(), line = info_.width * pixel, tile_line = info_.tile_width * pixel;
    for (Index column = 0; column < info_.tile_columns(); ++column) {
      const Range columns = info_.columns_of(column);
      const std::byte* const corner = band_.data() + columns.begin * pixel;
      const auto inside = static_cast<std::size_t>(columns.size() * pixel);
      if (options_.sparse && all_zero(corner, rows.size(), line, inside)) continue;
      for (Index y = 0; y < info_.tile_height; ++y) {
        std::byte* const to = tile_.data() + y * tile_line;
        std::memcpy(to, corner + std::min(y, rows.size() - 1) * line, inside);
        for (std::byte* rest = to + inside; rest < to + tile_line; rest += pixel) std::memcpy(rest, rest - pixel, static_cast<std::size_t>(pixel));
      }
      errno = 0;
      const std::uint32_t tile =
          TIFFComputeTile(tiff_->get(), static_cast<std::uint32_t>(columns.begin), static_cast<std::uint32_t>(rows.begin), 0, 0);
      if (TIFFWriteEncodedTile(tiff_->get(), tile, tile_.data(), static_cast<tmsize_t>(tile_.size())) < 0)
        throw cannot_write_tiff(info_.path, *tiff_);
    }
  }
  static bool all_zero(const std::byte* from, Index rows, Index line, std::size_t bytes) {
    for (Index y = 0; y < rows; ++y, from += line)
      if (from[0] != std::byte{0} || std::memcmp(from, from + 1, bytes - 1) != 0) return false;
    return true;
  }
  ImageInfo info_;
  TiffWriterOptions options_;
  std::optional<TiffHandle> tiff_;
  std::vector<std::byte> band_, tile_;
  Index row_ = 0;
};
}   // namespace detail
}   // namespace lrcnn
