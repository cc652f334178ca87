// data/openslide.hpp: OpenSlide's pixels of any level and region, and every error. The slides are tiled TIFF files that OpenSlide takes for Aperio's
// and real ones.
#include "data/support.hpp"
#include "images/slide_files.hpp"
#include "support/file_bytes.hpp"
#include "support/image_pixels.hpp"
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/openslide.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::pixels_of;
using Order = lrcnn::testing::TileOrder;
namespace {
std::vector<std::byte> drawn(Index level, const ImageRegion& r) {
  std::vector<std::byte> bytes;
  for (Index y = r.rows.begin; y < r.rows.end; ++y)
    for (Index x = r.columns.begin; x < r.columns.end; ++x)
      for (Index c = 0; c < 3; ++c) bytes.push_back(static_cast<std::byte>(slide_sample(level, y, x, c)));
  return bytes;
}
/// What openslide_read_region() says of a region of level 0 without transparency.
std::vector<std::byte> read_region(const std::filesystem::path& path, const ImageRegion& r, Index level = 0, Index downsample = 1) {
  openslide_t* const slide = openslide_open(path.c_str());
  std::vector<std::uint32_t> pixels(static_cast<std::size_t>(r.rows.size() * r.columns.size()));
  openslide_read_region(slide, pixels.data(), r.columns.begin * downsample, r.rows.begin * downsample, static_cast<std::int32_t>(level),
                        r.columns.size(), r.rows.size());
  openslide_close(slide);
  std::vector<std::byte> bytes;
  for (const std::uint32_t p : pixels)
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<std::byte>(p >> shift));
  return bytes;
}
/// libtiff says on the standard error what OpenSlide is told, too.
const bool quiet = [] {
  TIFFSetErrorHandler(nullptr);
  return true;
}();
std::filesystem::path real(const std::string& name) {
  const char* const root = std::getenv("LRCNN_DATA");
  const auto path = std::filesystem::path(root ? root : "") / "large" / name;
  if (root && std::filesystem::exists(path)) return path;
  MESSAGE("skipped: set LRCNN_DATA to a folder that has large/", name);
  return {};
}
}   // namespace
TEST_CASE("slides: every level and region, tiles in any order") {
  const TemporaryFolder folder;
  const auto path = folder / "a.svs";
  write_slide(path, 400, 320, 3);
  const auto slide = open_slide(path);
  CHECK(slide->info().format == "slide (aperio), level 0 of 3, tiles of 64x64");
  CHECK(slide->levels().size() == 3);
  CHECK(slide->property("openslide.mpp-x") == "0.5");
  CHECK(slide->property("openslide.none") == std::nullopt);
  for (Index level = 0; level < 3; ++level) {
    const SlideLevel& l = slide->levels()[static_cast<std::size_t>(level)];
    CHECK(l.height == 400 >> level);
    CHECK(l.width == 320 >> level);
    CHECK(l.downsample == 1 << level);
    CHECK(l.tile_height == 64);
    const auto all = open_slide(path, {.level = level});
    CHECK(all->info().height == l.height);
    CHECK(all->info().tile_height == 128);   // two of the file's
    for (const Order order : {Order::forward, Order::shuffled}) CHECK(pixels_of(*all, order) == drawn(level, whole(all->info())));
    const ImageRegion region{{7, 93}, {11, 75}};
    const auto part = open_slide(path, {.level = level, .region = region});
    CHECK(part->info().height == 86);
    CHECK(part->info().width == 64);
    CHECK(pixels_of(*part) == drawn(level, region));
  }
  CHECK(pixels_of(*open_image(path, std::array{slide_format})) == drawn(0, {{0, 400}, {0, 320}}));
}
TEST_CASE("slides: plain tiled TIFF is left to readers of TIFF, but can be opened as a slide") {
  const TemporaryFolder folder;
  const auto path = folder / "a.tif";
  write_slide(path, 100, 90, 1, {.description = nullptr});
  CHECK_FALSE(slide_format.recognizes_file(path));
  CHECK(pixels_of(*open_slide(path)) == drawn(0, {{0, 100}, {0, 90}}));
  CHECK(testing::error_of<DataError>([&] { open_image(path, std::array{slide_format}); }) ==
        "lrcnn: image '" + path.string() +
            "' is of no format that this program reads; it reads whole-slide images; give a file of one of these formats, or "
            "convert it first");
}
TEST_CASE("slides: a tile that cannot be decoded is named, and others are read on") {
  const TemporaryFolder folder;
  const auto path = folder / "a.svs";
  const auto where = write_slide(path, 400, 320, 1);
  Bytes damaged;
  for (const std::byte b : testing::file_bytes(path)) damaged.push_back(std::to_integer<std::uint8_t>(b));
  for (std::size_t i = 0; i < 40; ++i) damaged[where[5 * 2 + 2] + i] = 0xaa;   // rows and columns 128 to 191
  folder.write("b.svs", damaged);
  const std::string other = (folder / "b.svs").string();
  const auto slide = open_slide(other);
  const auto decoder = slide->decoder(), second = slide->decoder();
  std::vector<std::byte> tile(128 * 128 * 3);
  const std::string text = testing::error_of<DataError>([&] { decoder->decode(1, 1, tile); });
  CHECK(text.starts_with("lrcnn: slide '" + other + "', level 0: rows 128 to 255, columns 128 to 255 cannot be decoded: "));
  CHECK(text.ends_with("; tiles are decoded when they are read; fetch the slide again"));
  for (TileDecoder* const d : {decoder.get(), second.get()}) {
    d->decode(0, 1, tile);
    CHECK(tile == drawn(0, {{0, 128}, {128, 256}}));
    CHECK(testing::error_of<DataError>([&] { d->decode(1, 1, tile); }) == text);
  }
}
TEST_CASE("slides: threads that read sound tiles get them while others meet damaged ones") {
  const TemporaryFolder folder;
  const auto where = write_slide(folder / "a.svs", 512, 512, 1);
  Bytes damaged;
  for (const std::byte b : testing::file_bytes(folder / "a.svs")) damaged.push_back(std::to_integer<std::uint8_t>(b));
  for (std::size_t i = 0; i < 40; ++i) damaged[where[0] + i] = 0xaa;
  const auto slide = open_slide(folder.write("b.svs", damaged));
  std::atomic<Index> wrong{0};
  std::vector<std::thread> threads;
  for (Index t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const auto decoder = slide->decoder();
      std::vector<std::byte> tile(128 * 128 * 3);
      for (int i = 0; i < 30; ++i) {
        const bool refused = testing::error_of<DataError>([&] { decoder->decode(t, t, tile); }) != "no error";
        wrong += refused != (t == 0) || (!refused && tile != drawn(0, {{128 * t, 128 * t + 128}, {128 * t, 128 * t + 128}}));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
TEST_CASE("slides: where they have no pixels, the background shows") {
  const auto path = real("tissue-dapi-3968x4864.ndpi");
  const TemporaryFolder folder;
  write_slide(folder / "a.svs", 100, 90, 1);
  const auto slide = open_slide(folder / "a.svs", {.background = {9, 8, 7}});
  CHECK(pixels_of(*slide) == drawn(0, {{0, 100}, {0, 90}}));   // none is missing
  if (path.empty()) return;
  CHECK(open_slide(path)->info().tile_height == 128);   // strips of 8 rows
  for (const Index level : {0, 3}) {
    const auto file = open_slide(path, {.level = level});
    const ImageRegion region{{200, 456}, {100, 400}};
    std::vector<std::byte> part(256 * 300 * 3);
    CachedImage(file, std::make_shared<TileCache>()).read(region, part);
    CHECK(part == read_region(path, region, level, 1 << level));
  }
}
TEST_CASE("slides: what is refused") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a.svs").string(), who = "lrcnn: slide '" + path + "'";
  write_slide(path, 400, 320, 2);
  const auto opened = [&](const SlideOptions& options) { return testing::error_of<DataError>([&] { open_slide(path, options); }); };
  CHECK(opened({.level = 2}) == who + ": level 2 is to be read; it has levels 0 to 1; choose one that is there");
  CHECK(opened({.level = -1}).find("level -1 is to be read") != std::string::npos);
  CHECK(opened({.level = 1, .region = {{0, 201}, {0, 10}}}) == who +
                                                                   ": rows 0 to 200, columns 0 to 9 of level 1 are to be read; it has 200 rows and "
                                                                   "160 columns; choose a region within it; regions count pixels of "
                                                                   "the level");
  CHECK(opened({.region = {{-1, 10}, {0, 10}}}).find("rows -1 to 9, columns 0 to 9 of level 0") != std::string::npos);
  CHECK(opened({.region = {{5, 5}, {0, 10}}}).find(" are to be read; it has 400 rows and 320 columns; ") != std::string::npos);
  CHECK(opened({.tile_bytes = 4 * 64 * 64 - 1}) == who +
                                                       ", level 0 has tiles of 64x64 pixels; a tile is decoded as a whole, and may have 16383 bytes; "
                                                       "check that it is the right file, or raise SlideOptions::tile_bytes");
  CHECK(opened({.tile_bytes = 4 * 64 * 64}) == "no error");
  folder.write("text", bytes_of("no slide"));
  CHECK(testing::error_of<DataError>([&] { open_slide(folder / "text"); }) ==
        "lrcnn: slide '" + (folder / "text").string() +
            "' is of no format that OpenSlide knows; slides are read through OpenSlide; give a whole-slide image, or "
            "read it as another format");
  CHECK(testing::error_of<DataError>([&] { open_slide(folder / "none"); }).find("none' cannot be opened: No such file or directory; ") !=
        std::string::npos);
  Bytes bytes;
  for (const std::byte b : testing::file_bytes(path)) bytes.push_back(std::to_integer<std::uint8_t>(b));
  const auto file = open_slide(path);
  const auto decoder = file->decoder();
  std::vector<std::byte> tile(128 * 128 * 3);
  folder.write("a.svs", cut(bytes, bytes.size() / 2));
  const std::string changed = "lrcnn: file '" + path +
                              "' has changed since it was opened; a file stays as it is while it is read; open it again, and let nothing "
                              "write to it meanwhile";
  CHECK(testing::error_of<DataError>([&] { decoder->decode(0, 0, tile); }) == changed);
  CHECK(testing::error_of<DataError>([&] { file->decoder(); }) == changed);
  std::filesystem::remove(path);
  CHECK(testing::error_of<DataError>([&] { decoder->decode(0, 0, tile); }).find("cannot be opened: No such file or directory") != std::string::npos);
}
TEST_CASE("slides: a real one is what openslide_read_region says") {
  const auto path = real("CMU-1-Small-Region.svs");
  if (path.empty()) return;
  CHECK(slide_format.recognizes_file(path));
  const auto slide = open_slide(path);
  CHECK(slide->info().format == "slide (aperio), level 0 of 1, tiles of 240x240");
  CHECK(slide->info().tile_height == 240);
  CHECK(slide->property("openslide.mpp-x") == "0.499");
  CHECK(pixels_of(*slide, Order::shuffled) == read_region(path, {{0, 2967}, {0, 2220}}));
  const ImageRegion region{{1003, 1500}, {77, 900}};
  const auto part = open_slide(path, {.region = region});
  CHECK(pixels_of(*part) == read_region(path, region));
  std::vector<std::byte> cached(static_cast<std::size_t>(region.rows.size() * region.columns.size() * 3));
  CachedImage(slide, std::make_shared<TileCache>()).read(region, cached);
  CHECK(cached == read_region(path, region));
}
