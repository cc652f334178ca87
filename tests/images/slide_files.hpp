#pragma once
// Small whole slides: tiled TIFF files that OpenSlide takes for a scanner's, written by libtiff.
#include "support/drawn_image.hpp"
#include <tiffio.h>
namespace lrcnn::test {
/// What a sample of a level is.
inline int slide_sample(Index level, Index y, Index x, Index c) { return (drawn_sample(y, x, c) * 2 + 11 * static_cast<int>(level)) % 256; }
/// How a slide is stored.
struct SlideKind {
  const char* description = "Aperio Image Library |MPP = 0.5";   ///< null: none
  const char* software = nullptr;
  std::uint16_t compression = COMPRESSION_ADOBE_DEFLATE;
  Index tile = 64;   ///< rows and columns; a multiple of 16
};
/// Levels of half the extents each, in tiles. Returns the place of each of the first level's tiles in the file.
inline std::vector<std::uint64_t> write_slide(const std::filesystem::path& path, Index height, Index width, Index levels,
                                              const SlideKind& kind = {}) {
  std::vector<std::uint64_t> where;
  TIFF* const file = TIFFOpen(path.c_str(), "w");
  for (Index level = 0; level < levels; ++level, height /= 2, width /= 2) {
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(width));
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(height));
    TIFFSetField(file, TIFFTAG_TILEWIDTH, static_cast<std::uint32_t>(kind.tile));
    TIFFSetField(file, TIFFTAG_TILELENGTH, static_cast<std::uint32_t>(kind.tile));
    TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(file, TIFFTAG_COMPRESSION, static_cast<int>(kind.compression));
    if (kind.description) TIFFSetField(file, TIFFTAG_IMAGEDESCRIPTION, kind.description);
    if (kind.software) TIFFSetField(file, TIFFTAG_SOFTWARE, kind.software);
    if (level > 0) TIFFSetField(file, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
    std::vector<std::uint8_t> tile(static_cast<std::size_t>(kind.tile * kind.tile * 3));
    for (Index top = 0; top < height; top += kind.tile)
      for (Index left = 0; left < width; left += kind.tile) {
        for (Index y = 0; y < kind.tile; ++y)
          for (Index x = 0; x < kind.tile; ++x)
            for (Index c = 0; c < 3; ++c)
              tile[static_cast<std::size_t>((y * kind.tile + x) * 3 + c)] = static_cast<std::uint8_t>(slide_sample(level, top + y, left + x, c));
        TIFFWriteTile(file, tile.data(), static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(top), 0, 0);
      }
    std::uint64_t* offsets = nullptr;
    if (level == 0 && TIFFGetField(file, TIFFTAG_TILEOFFSETS, &offsets) == 1) where.assign(offsets, offsets + TIFFNumberOfTiles(file));
    TIFFWriteDirectory(file);
  }
  TIFFClose(file);
  return where;
}
}   // namespace lrcnn::test
