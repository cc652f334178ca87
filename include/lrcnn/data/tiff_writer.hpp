#pragma once
// Tiled BigTIFF files, through libtiff, written row by row in bounded memory: one row of tiles, and with a pyramid one of every level.
//
//     TiffWriter out("mask.tif", 65536, 65536, 1, SampleType::u8,
//                    {.compression = TiffCompression::zstd, .pyramid = true, .reduction = TiffReduction::most_frequent});
//     out.write(rows);   // any number of them, from top to bottom
//     out.finish();
//
// Three channels are RGB, four RGB and one more, other numbers grey and more. A pyramid's levels are directories that say so (reduced images),
// which OpenSlide, libvips and QuPath read; open_tiff() reads them by number.
#include <lrcnn/data/tiff_level.hpp>
#include <lrcnn/data/written_rows.hpp>
namespace lrcnn {
class TiffWriter final : public ImageWriter {
 public:
  /// Begins a file beside the one of that name.
  /// Errors:  DataError if the extents, samples and options are none of a TIFF file (JPEG: u8 of 1 or 3 channels), libtiff has not the compression,
  ///          or no file can be written there
  TiffWriter(const std::filesystem::path& path, Index height, Index width, Index channels, SampleType sample, const TiffWriterOptions& options = {})
      : file_((check(path, height, width, channels, sample, options), path)), reduction_(options.reduction) {
    ImageInfo info;
    info.path = path;
    info.format = "BigTIFF, tiles of " + std::to_string(options.tile_width) + "x" + std::to_string(options.tile_height) + ", " +
                  detail::tiff_compression_name(detail::tiff_scheme(options.compression));
    info.height = height, info.width = width, info.channels = channels, info.sample = sample;
    info.tile_height = options.tile_height, info.tile_width = options.tile_width;
    levels_.push_back(std::make_unique<detail::TiffLevel>(file_.descriptor(), info, options));
    while (options.pyramid && (info.height > info.tile_height || info.width > info.tile_width)) {
      info.height = ceil_div(info.height, 2), info.width = ceil_div(info.width, 2);
      const auto& temporary = temporaries_.emplace_back(std::make_unique<detail::TemporaryFile>(detail::write_target(path)));
      if (!temporary->created()) throw detail::cannot_write(path, errno);
      levels_.push_back(std::make_unique<detail::TiffLevel>(temporary->descriptor(), info, options));
    }
  }
  /// Of the image itself, not of its pyramid.
  const ImageInfo& info() const override { return levels_.front()->info(); }
  void holds_classes() override {
    if (reduction_ == TiffReduction::automatic) reduction_ = TiffReduction::most_frequent;
  }
  void write(std::span<const std::byte> rows) override {
    const Index count = rows_.begin(info(), rows);
    write(0, rows);
    rows_.written(count);
  }
  void finish() override {
    rows_.finish(info());
    levels_.front()->finish();
    for (std::size_t level = 1; level < levels_.size(); ++level) {
      levels_.front()->append(*levels_[level]);
      levels_[level]->close();
    }
    levels_.front()->close();
    temporaries_.clear();
    file_.finish();
  }

 private:
  /// Rows for one level, from which those of the next are made.
  void write(std::size_t level, std::span<const std::byte> rows) {
    levels_[level]->write(rows, [&](const std::byte* band, Index count) {
      if (level + 1 == levels_.size()) return;
      const ImageInfo &from = levels_[level]->info(), &to = levels_[level + 1]->info();
      std::vector<std::byte> halved(static_cast<std::size_t>(ceil_div(count, 2) * to.width * to.pixel_bytes()));
      with_sample_type(from.sample, [&]<class S>(const S*) {
        const auto reduce = reduction_ == TiffReduction::most_frequent ? detail::pick_pixels<S> : detail::halve_pixels<S>;
        reduce(band, count, from.width, from.channels, halved.data());
      });
      write(level + 1, halved);
    });
  }
  static void check(const std::filesystem::path& path, Index height, Index width, Index channels, SampleType sample, const TiffWriterOptions& o) {
    const auto refuse = [&](const std::string& what, std::string_view rule, std::string_view change) {
      throw DataError(error_text("image '" + path.string() + "' is to be written " + what, rule, change));
    };
    constexpr Index most_extent = 0xFFFFFFFF;
    if (height < 1 || height > most_extent || width < 1 || width > most_extent || channels < 1 || channels > 0xFFFF)
      refuse("with " + std::to_string(height) + " x " + std::to_string(width) + " pixels of " + std::to_string(channels) + " channels",
             "TIFF has 1 to 2^32 - 1 rows and columns and 1 to 65535 channels", "choose other extents");
    const auto is_tile = [](Index extent) { return extent >= 16 && extent <= 65536 && extent % 16 == 0; };
    if (!is_tile(o.tile_height) || !is_tile(o.tile_width) || o.tile_height * o.tile_width * channels * sample_bytes(sample) > 1_GiB)
      refuse("in tiles of " + std::to_string(o.tile_height) + "x" + std::to_string(o.tile_width),
             "a tile's extents are multiples of 16, and it has 1 GiB at most", "choose tiles such as 256x256");
    if (o.compression == TiffCompression::jpeg && (sample != SampleType::u8 || (channels != 1 && channels != 3)))
      refuse("as JPEG with " + std::to_string(channels) + " channels of type " + std::string(sample_name(sample)),
             "JPEG has 1 or 3 channels of type u8", "choose another compression, such as TiffCompression::deflate");
    if (o.quality < 1 || o.quality > 100) refuse("with quality " + std::to_string(o.quality), "JPEG's quality is 1 to 100", "choose one such as 90");
    if (const auto scheme = detail::tiff_scheme(o.compression); TIFFIsCODECConfigured(scheme) != 1)
      refuse("with " + detail::tiff_compression_name(scheme), "this libtiff was built without it", "choose another compression");
  }
  AtomicFile file_;
  TiffReduction reduction_;
  std::vector<std::unique_ptr<detail::TemporaryFile>> temporaries_{};   ///< in which levels wait
  std::vector<std::unique_ptr<detail::TiffLevel>> levels_{};            ///< the image, then those of its pyramid
  detail::WrittenRows rows_{};
};
}   // namespace lrcnn
