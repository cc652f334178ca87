#pragma once
// All formats of images at once, for programs that take whatever comes.
//
//     const CachedImage image(open_image("slide.svs"), cache);
//     const auto writer = create_image("map.png", 512, 512, 1, SampleType::u8);
//
// It needs the libraries of all formats. A program that is built without one of them names those that it has:
// open_image(path, std::array{png_format, npy_format}). GeoTIFF is read as TIFF, without its place on the Earth.
#include <lrcnn/core/text.hpp>
#include <lrcnn/data/jpeg.hpp>
#include <lrcnn/data/npy.hpp>
#include <lrcnn/data/openslide.hpp>
#include <lrcnn/data/png.hpp>
#include <lrcnn/data/png_writer.hpp>
#include <lrcnn/data/tiff.hpp>
#include <lrcnn/data/tiff_writer.hpp>
namespace lrcnn {
/// In the order in which a file is tried: slides begin as other formats do.
inline constexpr std::array image_formats{slide_format, tiff_format, png_format, jpeg_format, npy_format};
/// Opens an image of any of these formats, as open_image(path, formats) does.
inline std::shared_ptr<const ImageFile> open_image(const std::filesystem::path& path) { return open_image(path, image_formats); }
/// Begins an image in the format that its name ends with: .png, .npy, .tif or .tiff (BigTIFF, tiles of 256x256, Deflate), in
/// small letters or capitals.
/// Errors:  DataError if it ends otherwise; as the format's writer
inline std::unique_ptr<ImageWriter> create_image(const std::filesystem::path& path, Index height, Index width, Index channels, SampleType sample) {
  const std::string ending = lower_case(path.extension().string());
  if (ending == ".png") return std::make_unique<PngWriter>(path, height, width, channels, sample);
  if (ending == ".npy") return std::make_unique<NpyWriter>(path, height, width, channels, sample);
  if (ending == ".tif" || ending == ".tiff") return std::make_unique<TiffWriter>(path, height, width, channels, sample);
  throw DataError(
      error_text("image '" + path.string() + "' is to be written", "its name ends with the format: .png, .npy, .tif or .tiff", "choose such a name"));
}
}   // namespace lrcnn
