// data/tiff.hpp on real files, where LRCNN_DATA names a folder that has them: the same pixels as libjpeg makes of their raw bytes.
#include "images/tiff_files.hpp"
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/tiff.hpp>
#include <doctest/doctest.h>
#include <fstream>
#include <jpeglib.h>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
using Bytes = std::vector<std::byte>;
/// A real file, or a message that it is not there.
std::filesystem::path real_image(const std::string& name) {
  const char* const root = std::getenv("LRCNN_DATA");
  const auto path = std::filesystem::path(root ? root : "") / "large" / name;
  if (root && std::filesystem::exists(path)) return path;
  MESSAGE("skipped: set LRCNN_DATA to a folder that has large/" << name);
  return {};
}
/// Decodes a JPEG stream whose tables may come before it, in a stream of their own. Errors end the test program, as libjpeg has it.
Bytes decode_jpeg(const Bytes& tables, const Bytes& stream, J_COLOR_SPACE stored) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  const auto source = [&](const Bytes& bytes) {
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<unsigned long>(bytes.size()));
  };
  if (!tables.empty()) {
    source(tables);
    REQUIRE(jpeg_read_header(&jpeg, FALSE) == JPEG_HEADER_TABLES_ONLY);
  }
  source(stream);
  REQUIRE(jpeg_read_header(&jpeg, TRUE) == JPEG_HEADER_OK);
  jpeg.jpeg_color_space = stored;
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  const std::size_t line = std::size_t{3} * jpeg.output_width;
  Bytes pixels(line * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    auto* row = reinterpret_cast<unsigned char*>(pixels.data() + jpeg.output_scanline * line);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}
/// The first directory's tile or strip as it is in the file, and its tables.
std::pair<Bytes, Bytes> raw_tile(const std::filesystem::path& path, std::uint32_t tile) {
  TIFFSetWarningHandler(nullptr);
  TIFF* const tiff = TIFFOpen(path.c_str(), "r");
  REQUIRE(tiff != nullptr);
  std::uint32_t count = 0;
  void* tables = nullptr;
  Bytes first;
  if (TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &count, &tables) == 1)
    first.assign(static_cast<std::byte*>(tables), static_cast<std::byte*>(tables) + count);
  Bytes bytes(static_cast<std::size_t>(TIFFGetStrileByteCount(tiff, tile)));
  const auto size = static_cast<tmsize_t>(bytes.size());
  REQUIRE((TIFFIsTiled(tiff) ? TIFFReadRawTile(tiff, tile, bytes.data(), size) : TIFFReadRawStrip(tiff, tile, bytes.data(), size)) == size);
  TIFFClose(tiff);
  return {first, bytes};
}
/// Every tile of a file, cut to the image, is what libjpeg makes of it.
void check_tiles(const std::filesystem::path& path, J_COLOR_SPACE stored, Index step) {
  const auto file = open_tiff(path);
  const ImageInfo& info = file->info();
  const auto decoder = file->decoder();
  for (Index tile = 0; tile < info.tile_rows() * info.tile_columns(); tile += step) {
    const Index row = tile / info.tile_columns(), column = tile % info.tile_columns();
    const Range rows = info.rows_of(row), columns = info.columns_of(column);
    Bytes pixels(static_cast<std::size_t>(rows.size() * columns.size() * 3));
    decoder->decode(row, column, pixels);
    const auto [tables, bytes] = raw_tile(path, static_cast<std::uint32_t>(tile));
    const Bytes expected = decode_jpeg(tables, bytes, stored);
    REQUIRE(static_cast<Index>(expected.size()) == info.tile_height * info.tile_width * 3);
    for (Index y = 0; y < rows.size(); ++y)
      REQUIRE(std::memcmp(&pixels[static_cast<std::size_t>(y * columns.size() * 3)], &expected[static_cast<std::size_t>(y * info.tile_width * 3)],
                          static_cast<std::size_t>(columns.size() * 3)) == 0);
  }
}
}   // namespace
TEST_CASE("real TIFF: tiles of YCbCr JPEG become RGB") {
  for (const auto& [name, height, width] : {std::tuple{"sombrero-11472x6429.tif", 6429, 11472}, {"ngc1309-4637x4590.tif", 4590, 4637}}) {
    const auto path = real_image(name);
    if (path.empty()) continue;
    const auto file = open_tiff(path);
    CHECK(file->info().height == height);
    CHECK(file->info().width == width);
    CHECK(file->info().format == "TIFF, tiles of 512x512, JPEG");
    check_tiles(path, JCS_YCbCr, 17);
    check_tiles(path, JCS_YCbCr, file->info().tile_columns() * file->info().tile_rows() - 1);   // the first and the last
  }
}
TEST_CASE("real TIFF: Aperio's tiles of JPEG hold RGB, with tables that they share") {
  const auto path = real_image("CMU-1-Small-Region.svs");
  if (path.empty()) return;
  check_tiles(path, JCS_RGB, 3);
  const auto directories = tiff_directories(path);
  REQUIRE(directories.size() == 4);
  CHECK(directories[0].height == 2967);
  CHECK(directories[1].height == 768);
  CHECK(directories[2].compression == "LZW");
  CHECK(directories[2].reduced);
  CHECK(directories[0].description.starts_with("Aperio Image Library"));
  for (Index directory = 0; directory < 4; ++directory) {
    const auto file = open_tiff(path, {.directory = directory});
    // libtiff's own way to colours, which turns the image over.
    TIFF* const tiff = TIFFOpen(path.c_str(), "r");
    REQUIRE(TIFFSetDirectory(tiff, static_cast<tdir_t>(directory)) == 1);
    const ImageInfo& info = file->info();
    std::vector<std::uint32_t> colours(static_cast<std::size_t>(info.height * info.width));
    REQUIRE(TIFFReadRGBAImageOriented(tiff, static_cast<std::uint32_t>(info.width), static_cast<std::uint32_t>(info.height), colours.data(),
                                      ORIENTATION_TOPLEFT, 1) == 1);
    TIFFClose(tiff);
    const Bytes pixels = decode_all(*file);
    Index wrong = 0;
    for (std::size_t i = 0; i < colours.size(); ++i)
      wrong += std::to_integer<std::uint32_t>(pixels[3 * i]) != TIFFGetR(colours[i]) ||
               std::to_integer<std::uint32_t>(pixels[3 * i + 2]) != TIFFGetB(colours[i]);
    CHECK(wrong == 0);
  }
}
TEST_CASE("real TIFF: strips of Deflate are the photograph that they were made of") {
  const auto path = real_image("plant-2454x2056-strips.tif"), photograph = real_image("plant-2454x2056.jpg");
  if (path.empty() || photograph.empty()) return;
  std::ifstream in(photograph, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  Bytes stream(text.size());
  std::memcpy(stream.data(), text.data(), text.size());
  const Bytes expected = decode_jpeg({}, stream, JCS_YCbCr);
  CHECK(decode_all(*open_tiff(path)) == expected);
  CHECK(decode_all(*open_tiff(path, {.strip_bytes = 1})) == expected);
}
TEST_CASE("real TIFF: an image that is one strip of JPEG is decoded in bands, forward and back") {
  const auto path = real_image("tissue-dapi-3968x4864.ndpi");
  if (path.empty()) return;
  const auto file = open_tiff(path);
  const ImageInfo& info = file->info();
  CHECK(info.format == "TIFF, strips of 4864 rows, read by rows, JPEG");
  CHECK(info.in_order);
  CHECK(info.tile_bytes() <= 1_MiB);
  const auto [tables, bytes] = raw_tile(path, 0);
  const Bytes expected = decode_jpeg(tables, bytes, JCS_YCbCr);
  CHECK(decode_all(*file) == expected);
  const CachedImage image(file, std::make_shared<TileCache>(TileCacheOptions{.bytes = 4_MiB, .threads = 0}));
  for (const Index row : {1000, 900, 2500, 0}) {
    Bytes pixels(static_cast<std::size_t>(20 * info.width * 3));
    image.read({{row, row + 20}, {0, info.width}}, pixels);
    CHECK(std::memcmp(pixels.data(), &expected[static_cast<std::size_t>(row * info.width * 3)], pixels.size()) == 0);
  }
  const auto whole_strip = open_tiff(path, {.strip_bytes = 1_GiB});
  CHECK_FALSE(whole_strip->info().in_order);
  CHECK(decode_all(*whole_strip) == expected);
  CHECK(tiff_directories(path).size() == 6);
}
