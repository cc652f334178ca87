// data/tiff.hpp: the directories of a file, and the first tiles of the first few.
#include "fuzz.hpp"
#include <lrcnn/data/tiff.hpp>
#include <lrcnn/data/tiff_writer.hpp>
namespace {
using namespace lrcnn;
/// A small striped file, as libtiff writes it.
void write_strips(const std::filesystem::path& path, const char* mode, std::uint16_t compression, std::uint16_t photometric, int bits, int channels,
                  int planar, int format) {
  TIFF* const tiff = TIFFOpen(path.c_str(), mode);
  if (!tiff) return;
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 20);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 12);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, channels);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, format);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, planar);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, static_cast<int>(photometric));
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, static_cast<int>(compression));
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 8);
  if (compression == COMPRESSION_JPEG && photometric == PHOTOMETRIC_YCBCR) TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  std::vector<std::uint8_t> strip(static_cast<std::size_t>(TIFFStripSize(tiff)));
  for (std::size_t i = 0; i < strip.size(); ++i) strip[i] = static_cast<std::uint8_t>(i * 7 % 251);
  for (std::uint32_t i = 0; i < TIFFNumberOfStrips(tiff); ++i) {
    const bool last = i % 2 == 1;   // of 12 rows, 4 are left
    TIFFWriteEncodedStrip(tiff, i, strip.data(), static_cast<tmsize_t>(last ? strip.size() / 2 : strip.size()));
  }
  TIFFClose(tiff);
}
}   // namespace
void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) {
  TIFFSetWarningHandler(nullptr);
  for (const TiffCompression compression :
       {TiffCompression::none, TiffCompression::deflate, TiffCompression::lzw, TiffCompression::zstd, TiffCompression::jpeg}) {
    TiffWriter out(folder / ("tiles-" + std::to_string(static_cast<int>(compression))), 40, 24, 3, SampleType::u8,
                   {.compression = compression, .tile_height = 16, .tile_width = 16, .pyramid = true});
    std::vector<std::byte> pixels(40 * 24 * 3);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::byte>(i % 97);
    out.write(pixels);
    out.finish();
  }
  const auto strips = [&](const std::string& name, const char* mode, int compression, int photometric, int bits, int channels, int planar = 1,
                          int format = 1) {
    write_strips(folder / name, mode, static_cast<std::uint16_t>(compression), static_cast<std::uint16_t>(photometric), bits, channels, planar,
                 format);
  };
  strips("grey", "w", COMPRESSION_NONE, PHOTOMETRIC_MINISBLACK, 8, 1);
  strips("big-endian", "wb", COMPRESSION_PACKBITS, PHOTOMETRIC_MINISBLACK, 16, 2);
  strips("planar", "w8", COMPRESSION_LZW, PHOTOMETRIC_RGB, 8, 3, PLANARCONFIG_SEPARATE);
  strips("float", "w", COMPRESSION_ADOBE_DEFLATE, PHOTOMETRIC_MINISBLACK, 32, 1, 1, SAMPLEFORMAT_IEEEFP);
  strips("ycbcr", "w", COMPRESSION_JPEG, PHOTOMETRIC_YCBCR, 8, 3);
  strips("fax", "w", COMPRESSION_CCITTFAX4, PHOTOMETRIC_MINISWHITE, 1, 1);
  strips("nibbles", "w", COMPRESSION_NONE, PHOTOMETRIC_MINISBLACK, 4, 1);
  strips("lzma", "w", COMPRESSION_LZMA, PHOTOMETRIC_MINISBLACK, 8, 1);
  strips("lerc", "w", COMPRESSION_LERC, PHOTOMETRIC_MINISBLACK, 32, 1, 1, SAMPLEFORMAT_IEEEFP);
  strips("webp", "w", COMPRESSION_WEBP, PHOTOMETRIC_RGB, 8, 3);
}
void lrcnn::fuzz::read(std::span<const std::uint8_t> bytes) {
  if (!tiff_format.recognizes(bytes)) return;
  const MemoryFile file(bytes);
  Index directories = 1;
  allow_errors([&] { directories = static_cast<Index>(tiff_directories(file.path()).size()); });
  for (Index directory = 0; directory < std::min<Index>(directories, 3); ++directory)
    for (const Index strip_bytes : {16_MiB, 1_KiB})
      allow_errors([&] {
        const auto image = open_tiff(file.path(), {.directory = directory, .tile_bytes = 256_KiB, .strip_bytes = strip_bytes});
        const ImageInfo& info = image->info();
        const auto decoder = image->decoder();
        std::vector<std::byte> tile;
        for (Index row = 0; row < std::min<Index>(info.tile_rows(), 3); ++row)
          for (Index column = 0; column < std::min<Index>(info.tile_columns(), 3); ++column) {
            tile.resize(static_cast<std::size_t>(info.rows_of(row).size() * info.columns_of(column).size() * info.pixel_bytes()));
            allow_errors([&] { decoder->decode(row, column, tile); });
          }
      });
}
