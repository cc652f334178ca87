#pragma once
// TIFF files for tests, written by libtiff itself, of every layout and type of samples.
#include "support/drawn_image.hpp"
#include <unistd.h>
#include <tiffio.h>
namespace lrcnn::test {
/// A folder that goes with the test.
class TestFolder {
 public:
  TestFolder() {
    static std::atomic<int> number{0};
    path_ = std::filesystem::temp_directory_path() / ("lrcnn-tiff-" + std::to_string(::getpid()) + '-' + std::to_string(number++));
    std::filesystem::create_directories(path_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};
/// How libtiff is to store an image.
struct TiffKind {
  bool tiled = true, planar = false;
  std::uint16_t compression = COMPRESSION_NONE, predictor = PREDICTOR_NONE, photometric = PHOTOMETRIC_MINISBLACK;
  Index tile_height = 32, tile_width = 48;   ///< of strips, the height alone
  std::string mode = "w";                    ///< as TIFFOpen's: "w8" is BigTIFF, "wb" big-endian
  Index bits = 0;                            ///< other than the sample's own
  std::uint16_t format = 0;                  ///< likewise
};
inline void set_tiff_kind(TIFF* tiff, const ImageInfo& info, const TiffKind& kind) {
  using enum SampleType;
  const SampleType s = info.sample;
  const bool is_float = s == f16 || s == f32 || s == f64, is_signed = s == i8 || s == i16 || s == i32 || s == i64;
  const int format = kind.format ? kind.format : is_float ? SAMPLEFORMAT_IEEEFP : is_signed ? SAMPLEFORMAT_INT : SAMPLEFORMAT_UINT;
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(info.width));
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(info.height));
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(info.channels));
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, static_cast<int>(kind.bits ? kind.bits : 8 * sample_bytes(s)));
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, format);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, kind.planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, static_cast<int>(kind.photometric));
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, static_cast<int>(kind.compression));
  if (kind.predictor != PREDICTOR_NONE) TIFFSetField(tiff, TIFFTAG_PREDICTOR, static_cast<int>(kind.predictor));
  if (kind.compression == COMPRESSION_JPEG && kind.photometric == PHOTOMETRIC_YCBCR) TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  if (kind.compression == COMPRESSION_WEBP) TIFFSetField(tiff, TIFFTAG_WEBP_LOSSLESS, 1);
  if (kind.tiled) {
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, static_cast<std::uint32_t>(kind.tile_height));
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, static_cast<std::uint32_t>(kind.tile_width));
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, static_cast<std::uint32_t>(kind.tile_height));
  }
}
/// The current directory's pixels. `pixels` gives those of a region, [rows][columns][channels]; where the kind has other bits than the samples, they
/// are packed already.
inline void write_tiff_pixels(TIFF* tiff, const ImageInfo& info, const TiffKind& kind,
                              const std::function<std::vector<std::byte>(const ImageRegion&)>& pixels) {
  const Index tile_width = kind.tiled ? kind.tile_width : info.width, planes = kind.planar ? info.channels : 1, sample = sample_bytes(info.sample);
  const Index stored = info.pixel_bytes() / planes;
  for (Index plane = 0; plane < planes; ++plane)
    for (Index y = 0; y < info.height; y += kind.tile_height)
      for (Index x = 0; x < info.width; x += tile_width) {
        const ImageRegion region{{y, std::min(info.height, y + kind.tile_height)}, {x, std::min(info.width, x + tile_width)}};
        const auto from = pixels(region);
        const Index rows = kind.tiled ? kind.tile_height : region.rows.size();
        std::vector<std::byte> tile(static_cast<std::size_t>(kind.bits ? from.size() : static_cast<std::size_t>(rows * tile_width * stored)));
        if (kind.bits) tile = from;
        else
          for (Index r = 0; r < region.rows.size(); ++r)
            for (Index c = 0; c < region.columns.size(); ++c)
              std::memcpy(&tile[static_cast<std::size_t>((r * tile_width + c) * stored)],
                          &from[static_cast<std::size_t>((r * region.columns.size() + c) * info.pixel_bytes() + (kind.planar ? plane * sample : 0))],
                          static_cast<std::size_t>(stored));
        const auto size = static_cast<tmsize_t>(tile.size());
        const auto u = [](Index i) { return static_cast<std::uint32_t>(i); };
        const auto p = static_cast<std::uint16_t>(plane);
        const tmsize_t written = kind.tiled ? TIFFWriteEncodedTile(tiff, TIFFComputeTile(tiff, u(x), u(y), 0, p), tile.data(), size)
                                            : TIFFWriteEncodedStrip(tiff, TIFFComputeStrip(tiff, u(y), p), tile.data(), size);
        if (written < 0) throw std::runtime_error("libtiff does not write this test's file");
      }
}
/// Writes what is drawn.
inline void write_tiff(const std::filesystem::path& path, const DrawnImage& image, const TiffKind& kind) {
  TIFF* const tiff = TIFFOpen(path.c_str(), kind.mode.c_str());
  if (!tiff) throw std::runtime_error("libtiff does not open this test's file");
  set_tiff_kind(tiff, image.info(), kind);
  write_tiff_pixels(tiff, image.info(), kind, [&](const ImageRegion& r) { return image.pixels(r); });
  TIFFClose(tiff);
}
/// All pixels of a file, tile by tile.
inline std::vector<std::byte> decode_all(const ImageFile& file) {
  const ImageInfo& info = file.info();
  std::vector<std::byte> all(static_cast<std::size_t>(info.height * info.width * info.pixel_bytes()));
  const auto decoder = file.decoder();
  for (Index row = 0; row < info.tile_rows(); ++row)
    for (Index column = 0; column < info.tile_columns(); ++column) {
      const Range rows = info.rows_of(row), columns = info.columns_of(column);
      const Index line = columns.size() * info.pixel_bytes();
      std::vector<std::byte> tile(static_cast<std::size_t>(rows.size() * line));
      decoder->decode(row, column, tile);
      for (Index y = 0; y < rows.size(); ++y)
        std::memcpy(&all[static_cast<std::size_t>(((rows.begin + y) * info.width + columns.begin) * info.pixel_bytes())],
                    &tile[static_cast<std::size_t>(y * line)], static_cast<std::size_t>(line));
    }
  return all;
}
}   // namespace lrcnn::test
