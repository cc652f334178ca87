#pragma once
// How a directory of a TIFF file stores its image, and what of it becomes samples. What TIFF can say and a network cannot take as it is
// (palettes, inks, Lab, ...) is refused, with a way to convert it.
#include <lrcnn/data/tiff_handle.hpp>
namespace lrcnn {
struct TiffOptions {
  Index directory = 0;          ///< which of the file's images, as tiff_directories() counts: levels of a pyramid are directories
  Index sub_directory = -1;     ///< which of the images below that one (SubIFDs); -1: itself
  Index tile_bytes = 1_GiB;     ///< most bytes of a decoded tile
  Index strip_bytes = 16_MiB;   ///< larger strips are decoded row by row, in bands, from top to bottom, and never whole
};
namespace detail {
/// A directory's image.
struct TiffLayout {
  ImageInfo info{};
  bool tiled = false;
  bool by_rows = false;         ///< strips are decoded row by row; info.in_order
  bool to_rgb = false;          ///< JPEG's own colours become RGB
  bool inverted = false;        ///< 0 is white
  Index planes = 1;             ///< 1, or one for each channel
  Index bits = 8;               ///< of a stored sample; 1, 2 and 4 become u8
  Index stored_rows = 0;        ///< of a stored tile or strip
  Index stored_row_bytes = 0;   ///< of a row of it, decoded, in one plane
};
/// "image 'x.tif'", "directory 2 of image 'x.tif'"
inline std::string tiff_who(const std::filesystem::path& path, Index directory, Index sub_directory = -1) {
  const std::string who = "image '" + path.string() + "'";
  if (sub_directory >= 0) return "sub-directory " + std::to_string(sub_directory) + " of directory " + std::to_string(directory) + " of " + who;
  return directory > 0 ? "directory " + std::to_string(directory) + " of " + who : who;
}
/// The way out that most refusals name.
inline constexpr std::string_view tiff_convert = "convert it first, as in `vips tiffsave IN OUT --tile --compression deflate`";
inline std::string tiff_photometric_name(std::uint16_t photometric) {
  switch (photometric) {
    case PHOTOMETRIC_YCBCR: return "YCbCr colours without JPEG";
    case PHOTOMETRIC_CIELAB:
    case PHOTOMETRIC_ICCLAB:
    case PHOTOMETRIC_ITULAB: return "Lab colours";
    case PHOTOMETRIC_LOGL:
    case PHOTOMETRIC_LOGLUV: return "logarithmic (LogLuv) colours";
    case PHOTOMETRIC_CFA: return "a camera's colour filter array";
    default: return "colours of kind " + std::to_string(photometric);
  }
}
/// Refuses colours that samples as stored would misrepresent, and says how the others are decoded.
inline void read_tiff_colours(const TiffHandle& tiff, const std::string& who, std::uint16_t compression, TiffLayout& layout) {
  std::uint16_t photometric = PHOTOMETRIC_MINISBLACK;
  if (TIFFGetField(tiff.get(), TIFFTAG_PHOTOMETRIC, &photometric) != 1) photometric = PHOTOMETRIC_MINISBLACK;
  switch (photometric) {
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_MASK: return;
    case PHOTOMETRIC_MINISWHITE: layout.inverted = true; return;
    case PHOTOMETRIC_PALETTE:
      throw DataError(error_text(who + " has a palette: its pixels are numbers of colours", "pixels are samples of channels",
                                 "convert it to RGB first, as in `pal2rgb IN OUT`"));
    case PHOTOMETRIC_SEPARATED:
      throw DataError(error_text(who + " has inks (CMYK) for channels", "how they turn into colours depends on a printer's profile",
                                 "convert it to RGB first, as in `vips icc_transform IN OUT srgb`"));
    case PHOTOMETRIC_YCBCR:
      if (compression == COMPRESSION_JPEG && layout.planes == 1 && layout.info.channels == 3) {
        layout.to_rgb = true;
        return;
      }
      break;
    default: break;
  }
  throw DataError(error_text(who + " has " + tiff_photometric_name(photometric),
                             "pixels are grey, RGB, or channels of any meaning as they are stored", tiff_convert));
}
/// The type of samples of so many bits.
inline SampleType tiff_sample_type(const std::string& who, Index bits, std::uint16_t format) {
  using enum SampleType;
  if (format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID) {
    if (bits == 8 || bits == 1 || bits == 2 || bits == 4) return u8;
    if (bits == 16) return u16;
    if (bits == 32) return u32;
  } else if (format == SAMPLEFORMAT_INT) {
    if (bits == 8) return i8;
    if (bits == 16) return i16;
    if (bits == 32) return i32;
    if (bits == 64) return i64;
  } else if (format == SAMPLEFORMAT_IEEEFP) {
    if (bits == 16) return f16;
    if (bits == 32) return f32;
    if (bits == 64) return f64;
  }
  const std::string kind = format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID ? "unsigned integers"
                           : format == SAMPLEFORMAT_INT                               ? "signed integers"
                           : format == SAMPLEFORMAT_IEEEFP                            ? "floating point"
                                                                                      : "complex numbers";
  throw DataError(error_text(who + " has samples of " + std::to_string(bits) + " bits, " + kind,
                             "samples are integers of 8, 16 or 32 bits, grey ones of 1, 2 or 4, signed ones of 64, or floating point of 16, 32 or 64",
                             "convert it first, as in `vips cast IN OUT float`"));
}
/// How strips become tiles: several small ones are one tile, a large one is many bands of rows.
inline void read_tiff_strips(const TiffHandle& tiff, const TiffOptions& options, TiffLayout& layout) {
  ImageInfo& info = layout.info;
  const Index row_bytes = info.width * info.pixel_bytes();
  layout.stored_rows = std::clamp<Index>(tiff.field<std::uint32_t>(TIFFTAG_ROWSPERSTRIP), 1, info.height);
  info.tile_width = info.width;
  const Index strip_bytes = row_bytes * layout.stored_rows;   // at most the image's
  // libtiff decodes JBIG in whole strips only; and planes that are read by rows are open files, one each.
  const bool has_rows = tiff.field<std::uint16_t>(TIFFTAG_COMPRESSION) != COMPRESSION_JBIG && layout.planes <= 16;
  if (has_rows && layout.stored_rows > options.strip_bytes / row_bytes) {
    layout.by_rows = info.in_order = true;
    info.tile_height = std::clamp<Index>(1_MiB / row_bytes, 1, info.height);
    info.format += "strips of " + std::to_string(layout.stored_rows) + " rows, read by rows, ";
  } else {
    info.tile_height = std::min(info.height, layout.stored_rows * std::max<Index>(1, 128_KiB / strip_bytes));
    info.format += "strips of " + std::to_string(layout.stored_rows) + " rows, ";
  }
}
/// What the handle's current directory stores.
/// Errors:  DataError if that is refused, or makes no sense
inline TiffLayout read_tiff_layout(const TiffHandle& tiff, const std::filesystem::path& path, const TiffOptions& options) {
  const std::string who = tiff_who(path, options.directory, options.sub_directory);
  TiffLayout layout;
  ImageInfo& info = layout.info;
  info.path = path;
  info.height = tiff.field<std::uint32_t>(TIFFTAG_IMAGELENGTH), info.width = tiff.field<std::uint32_t>(TIFFTAG_IMAGEWIDTH);
  info.channels = tiff.field<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL);
  layout.bits = tiff.field<std::uint16_t>(TIFFTAG_BITSPERSAMPLE);
  layout.tiled = TIFFIsTiled(tiff.get()) != 0;
  const auto compression = tiff.field<std::uint16_t>(TIFFTAG_COMPRESSION);
  if (tiff.field<std::uint32_t>(TIFFTAG_IMAGEDEPTH) > 1 || (layout.tiled && tiff.field<std::uint32_t>(TIFFTAG_TILEDEPTH) > 1))
    throw DataError(error_text(who + " has a volume of several depths in one directory", "an image has rows and columns", tiff_convert));
  if (TIFFIsCODECConfigured(compression) != 1 || compression == COMPRESSION_OJPEG)
    throw DataError(
        error_text(who + " is compressed with " + tiff_compression_name(compression), "this libtiff cannot decode that",
                   compression == 33003 || compression == 33005 ? "read it with OpenSlide (open_slide), or convert it first" : tiff_convert));
  if (tiff.field<std::uint16_t>(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE) layout.planes = info.channels;
  info.sample = tiff_sample_type(who, layout.bits, tiff.field<std::uint16_t>(TIFFTAG_SAMPLEFORMAT));
  read_tiff_colours(tiff, who, compression, layout);
  if (layout.bits < 8 && info.channels > 1)
    throw DataError(error_text(who + " has " + std::to_string(info.channels) + " channels of " + std::to_string(layout.bits) + " bits",
                               "samples of less than 8 bits are grey", tiff_convert));
  if (layout.inverted && info.sample != SampleType::u8 && info.sample != SampleType::u16 && info.sample != SampleType::u32)
    throw DataError(error_text(who + " has samples of type " + std::string(sample_name(info.sample)) + " in which 0 is white",
                               "only unsigned integers have a largest value that is black", tiff_convert));
  if (info.height < 1 || info.width < 1 || info.channels < 1 || info.height > (Index{1} << 62) / (info.width * info.pixel_bytes()))
    throw DataError(error_text(who + " has " + std::to_string(info.width) + " x " + std::to_string(info.height) + " pixels of " +
                                   std::to_string(info.channels) + " channels of type " + std::string(sample_name(info.sample)),
                               "an image has at least one pixel, and less than 2^62 bytes", "check that it is the right file"));
  info.format = TIFFIsBigTIFF(tiff.get()) ? "BigTIFF, " : "TIFF, ";
  if (layout.tiled) {
    layout.stored_rows = info.tile_height = tiff.field<std::uint32_t>(TIFFTAG_TILELENGTH);
    info.tile_width = tiff.field<std::uint32_t>(TIFFTAG_TILEWIDTH);
    info.format += "tiles of " + std::to_string(info.tile_width) + "x" + std::to_string(info.tile_height) + ", ";
  } else {
    read_tiff_strips(tiff, options, layout);
  }
  info.format += tiff_compression_name(compression);
  const Index row_bytes = info.tile_width * info.pixel_bytes();
  if (row_bytes < 1 || info.tile_height < 1 || info.tile_height > options.tile_bytes / row_bytes)
    throw DataError(error_text(who + " has tiles of " + std::to_string(info.tile_width) + "x" + std::to_string(info.tile_height) + " pixels, " +
                                   std::to_string(row_bytes) + " bytes a row",
                               "a tile is decoded as a whole, and may have " + std::to_string(options.tile_bytes) + " bytes",
                               "store the image in smaller tiles, or raise TiffOptions::tile_bytes"));
  layout.stored_row_bytes = ceil_div(info.tile_width * (info.channels / layout.planes) * layout.bits, 8);
  if (layout.to_rgb) TIFFSetField(tiff.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  const auto rows = static_cast<std::uint32_t>(layout.stored_rows);
  const std::uint64_t bytes = layout.tiled ? TIFFTileSize64(tiff.get()) : TIFFVStripSize64(tiff.get(), rows);
  if (bytes != static_cast<std::uint64_t>(layout.stored_rows * layout.stored_row_bytes))
    throw DataError(error_text(who + " has " + (layout.tiled ? "tiles" : "strips") + " of " + std::to_string(bytes) + " bytes by libtiff's count",
                               "its extents and samples make " + std::to_string(layout.stored_rows * layout.stored_row_bytes),
                               "write the file again"));
  return layout;
}
}   // namespace detail
}   // namespace lrcnn
