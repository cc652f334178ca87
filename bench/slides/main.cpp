// Regions of whole-slide images: lrcnn's tile cache on OpenSlide against OpenSlide alone, on the same files, in turns.
//
//   lrcnn_slide_regions [FILE...] [--size N] [--cache MIB] [--rounds N]
//
// Each opens the slide and reads all of level 0 in squares of N pixels, from top to bottom, on one thread, and adds up red, green and blue;
// the sums have to agree. lrcnn's tile cache has room for the tiles that a row of squares touches and a few more, as with slides that are
// larger than any cache; OpenSlide has its own of 32 MiB in both turns. Without FILE: the slides in LRCNN_DATA. Prints the medians of the
// rounds, and the median of the rounds' ratios, of the processor's time: neither waits for anything, and other programs do not disturb.
#include "../../examples/program.hpp"
#include <lrcnn/core/machine.hpp>
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/openslide.hpp>
#include <ctime>
#include <iomanip>
#include <iostream>
using namespace lrcnn;
namespace {
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
template <class F>
void for_each_square(Index height, Index width, Index size, F f) {
  for (Index y = 0; y < height; y += size)
    for (Index x = 0; x < width; x += size) f(ImageRegion{{y, std::min(height, y + size)}, {x, std::min(width, x + size)}});
}
std::uint64_t regions_by_lrcnn(const std::string& path, Index size, Index cache_bytes) {
  const CachedImage image(open_slide(path), std::make_shared<TileCache>(TileCacheOptions{.bytes = cache_bytes, .threads = 0}));
  std::vector<std::byte> pixels;
  std::uint64_t sum = 0;
  for_each_square(image.info().height, image.info().width, size, [&](const ImageRegion& r) {
    pixels.resize(static_cast<std::size_t>(r.rows.size() * r.columns.size() * 3));
    image.read(r, pixels);
    for (const std::byte b : pixels) sum += std::to_integer<std::uint64_t>(b);
  });
  return sum;
}
std::uint64_t regions_by_openslide(const std::string& path, Index size) {
  openslide_t* const slide = openslide_open(path.c_str());
  std::vector<std::uint32_t> pixels;
  std::uint64_t sum = 0;
  Index height = 0, width = 0;
  if (slide) openslide_get_level0_dimensions(slide, &width, &height);
  for_each_square(height, width, size, [&](const ImageRegion& r) {
    pixels.resize(static_cast<std::size_t>(r.rows.size() * r.columns.size()));
    openslide_read_region(slide, pixels.data(), r.columns.begin, r.rows.begin, 0, r.columns.size(), r.rows.size());
    for (const std::uint32_t p : pixels) sum += (p >> 16 & 255) + (p >> 8 & 255) + (p & 255);
  });
  const bool failed = !slide || openslide_get_error(slide);
  if (slide) openslide_close(slide);
  if (failed) throw Error(error_text("OpenSlide cannot read '" + path + "'", "it is measured on slides that it reads", "choose another file"));
  return sum;
}
void measure(const std::string& path, Index size, Index cache_bytes, int rounds) {
  std::array<std::vector<double>, 2> seconds;
  std::vector<double> ratios;
  for (int round = 0; round <= rounds; ++round) {   // the first warms up
    std::array<double, 2> now{};
    std::array<std::uint64_t, 2> sums{};
    for (std::size_t turn = 0; turn < 2; ++turn) {
      const std::size_t who = (turn + static_cast<std::size_t>(round)) % 2;
      const std::clock_t begin = std::clock();
      sums[who] = who == 0 ? regions_by_lrcnn(path, size, cache_bytes) : regions_by_openslide(path, size);
      now[who] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    }
    if (sums[0] != sums[1])
      throw Error(error_text("lrcnn and OpenSlide read different pixels of '" + path + "'", "slides without transparent places are compared",
                             "choose another file"));
    if (round == 0) continue;
    for (std::size_t who = 0; who < 2; ++who) seconds[who].push_back(now[who]);
    ratios.push_back(now[0] / now[1]);
  }
  const ImageInfo info = open_slide(path)->info();
  std::cout << std::filesystem::path(path).filename().string() << "  " << info.width << "x" << info.height << "  " << info.format << std::fixed
            << std::setprecision(3) << "\n  lrcnn " << median(seconds[0]) << " s, OpenSlide " << median(seconds[1]) << " s; lrcnn takes "
            << median(ratios) << " times as long\n";
}
std::vector<std::string> real_slides() {
  std::vector<std::string> files;
  const char* const data = std::getenv("LRCNN_DATA");
  for (const char* name : {"large/CMU-1-Small-Region.svs", "large/tissue-dapi-3968x4864.ndpi"})
    if (data && std::filesystem::exists(std::filesystem::path(data) / name)) files.push_back((std::filesystem::path(data) / name).string());
  if (files.empty())
    throw Error(error_text("there is no slide to read", "files are named, or LRCNN_DATA has large/CMU-1-Small-Region.svs", "name a slide"));
  return files;
}
}   // namespace
int main(int argc, char** argv) {
  std::vector<std::string> files;
  Index size = 512, cache = 8;
  int rounds = 9;
  CLI::App app("Regions of whole-slide images: lrcnn against OpenSlide");
  app.add_option("files", files, "slides; without any, those in LRCNN_DATA");
  app.add_option("--size", size, "rows and columns of a region")->check(CLI::Range(16, 16384))->capture_default_str();
  app.add_option("--cache", cache, "MiB of lrcnn's tile cache")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--rounds", rounds, "turns of each")->check(CLI::Range(1, 1000))->capture_default_str();
  return run_program(app, argc, argv, [&] {
    if (files.empty()) files = real_slides();
    std::cout << processor_name() << ", one thread, regions of " << size << "x" << size << ", a tile cache of " << cache << " MiB, OpenSlide "
              << openslide_get_version() << ", " << rounds << " rounds\n";
    for (const std::string& file : files) measure(file, size, cache * 1_MiB, rounds);
    return 0;
  });
}
