// Rows of tiled TIFF files: lrcnn's tile cache against libvips, on the same files, with as many threads that decode, in turns.
//
//   lrcnn_image_rows [FILE...] [--threads N] [--rounds N] [--rows N]
//
// Each reads the file from top to bottom, so many rows at a time, and adds up what it got; the sums have to agree. N threads decode: lrcnn's those
// of the tile cache, libvips' the workers of vips_sink_disc. In both, one more thread takes the rows in order and adds up; lrcnn's decodes a tile
// itself that no other has begun. Without FILE: the largest TIFF in LRCNN_DATA, which has JPEG tiles, and the same pixels written anew with LZW;
// without LRCNN_DATA both of a generated picture.
// Prints seconds and megapixels a second, each the median of the rounds, and their ratio. libvips is a peer here; lrcnn does not use it.
#include "../../examples/program.hpp"
#include <lrcnn/core/machine.hpp>
#include <lrcnn/core/rng.hpp>
#include <lrcnn/data/cached_image.hpp>
#include <lrcnn/data/tiff.hpp>
#include <lrcnn/data/tiff_writer.hpp>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <unistd.h>
#include <vips/vips.h>
using namespace lrcnn;
namespace {
struct Arguments {
  std::vector<std::string> files;
  int threads = processor_count();
  int rounds = 7;
  Index rows = 64;
};
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
/// What both have to agree on. Reads every byte once, as whatever uses rows does.
std::uint64_t sum_of(const void* bytes, std::size_t count) {
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += at[i];
  return sum;
}
std::uint64_t rows_by_lrcnn(const std::filesystem::path& path, const Arguments& arguments) {
  const CachedImage image(open_tiff(path), std::make_shared<TileCache>(TileCacheOptions{.bytes = 256_MiB, .threads = arguments.threads}));
  const ImageInfo& info = image.info();
  std::vector<ImageRegion> bands;
  for (Index y = 0; y < info.height; y += arguments.rows) bands.push_back({{y, std::min(info.height, y + arguments.rows)}, {0, info.width}});
  image.expect(bands);
  std::vector<std::byte> pixels;
  std::uint64_t sum = 0;
  for (const ImageRegion& band : bands) {
    pixels.resize(static_cast<std::size_t>(band.rows.size() * info.width * info.pixel_bytes()));
    image.read(band, pixels);
    sum += sum_of(pixels.data(), pixels.size());
  }
  return sum;
}
Error vips_failed(const std::string& path) { return Error(error_text("libvips cannot read " + path, vips_error_buffer(), "choose another file")); }
std::uint64_t rows_by_vips(const std::string& path) {
  VipsImage* const image = vips_image_new_from_file(path.c_str(), "access", VIPS_ACCESS_SEQUENTIAL, nullptr);
  if (!image) throw vips_failed(path);
  std::uint64_t sum = 0;
  const auto take = [](VipsRegion* region, VipsRect* area, void* to) {
    for (int y = area->top; y < area->top + area->height; ++y)
      *static_cast<std::uint64_t*>(to) += sum_of(VIPS_REGION_ADDR(region, area->left, y), VIPS_REGION_SIZEOF_LINE(region));
    return 0;
  };
  const int failed = vips_sink_disc(image, take, &sum);
  g_object_unref(image);
  if (failed) throw vips_failed(path);
  return sum;
}
/// A picture that compresses as photographs do: slow waves and a little noise.
void write_picture(const std::filesystem::path& path, TiffCompression compression) {
  constexpr Index extent = 8192;
  TiffWriter out(path, extent, extent, 3, SampleType::u8, {.compression = compression});
  const Random random(1);
  std::vector<std::byte> rows(static_cast<std::size_t>(256 * extent * 3));
  for (Index y = 0; y < extent; y += 256) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Index at = y * extent * 3 + static_cast<Index>(i), x = at / 3 % extent;
      const double wave = 100 + 60 * std::sin(0.01 * static_cast<double>(x)) + 60 * std::sin(0.007 * static_cast<double>(at / (3 * extent)));
      rows[i] = static_cast<std::byte>(static_cast<int>(wave + 8 * random.uniform(static_cast<std::uint64_t>(at))));
    }
    out.write(rows);
  }
  out.finish();
}
void copy_image(const std::filesystem::path& from, const std::filesystem::path& to, TiffCompression compression) {
  const CachedImage image(open_tiff(from), std::make_shared<TileCache>());
  const ImageInfo& info = image.info();
  TiffWriter out(to, info.height, info.width, info.channels, info.sample, {.compression = compression});
  std::vector<std::byte> rows;
  for (Index y = 0; y < info.height; y += 256) {
    const ImageRegion band{{y, std::min(info.height, y + 256)}, {0, info.width}};
    rows.resize(static_cast<std::size_t>(band.rows.size() * info.width * info.pixel_bytes()));
    image.read(band, rows);
    out.write(rows);
  }
  out.finish();
}
/// Files to measure where none are named; they go with the folder.
std::vector<std::string> make_files(const std::filesystem::path& folder) {
  const char* const data = std::getenv("LRCNN_DATA");
  const auto real = std::filesystem::path(data ? data : "") / "large/sombrero-11472x6429.tif", lzw = folder / "lzw.tif", jpeg = folder / "jpeg.tif";
  if (data && std::filesystem::exists(real)) {
    copy_image(real, lzw, TiffCompression::lzw);
    return {real, lzw};
  }
  write_picture(jpeg, TiffCompression::jpeg);
  write_picture(lzw, TiffCompression::lzw);
  return {jpeg, lzw};
}
void measure(const std::string& path, const Arguments& arguments) {
  const ImageInfo info = open_tiff(path)->info();
  std::array<std::vector<double>, 2> seconds;
  std::array<std::uint64_t, 2> sums{};
  for (int round = 0; round <= arguments.rounds; ++round)   // the first warms up
    for (std::size_t who = 0; who < 2; ++who) {
      const auto begin = std::chrono::steady_clock::now();
      sums[who] = who == 0 ? rows_by_lrcnn(path, arguments) : rows_by_vips(path);
      if (round > 0) seconds[who].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  if (sums[0] != sums[1]) throw Error(error_text("lrcnn and libvips read different pixels of " + path, "both decode the same file", "look into it"));
  const double lrcnn = median(seconds[0]), vips = median(seconds[1]), pixels = 1e-6 * static_cast<double>(info.height * info.width);
  std::cout << std::filesystem::path(path).filename().string() << "  " << info.width << "x" << info.height << "  " << info.format << std::fixed
            << std::setprecision(3) << "\n  lrcnn " << lrcnn << " s, libvips " << vips << " s" << std::setprecision(1) << "; " << pixels / lrcnn
            << " and " << pixels / vips << " megapixels a second; lrcnn delivers " << std::setprecision(2) << vips / lrcnn
            << " times what libvips does\n";
}
int run(Arguments& arguments) {
  if (VIPS_INIT("lrcnn_image_rows")) throw vips_failed("anything");
  vips_concurrency_set(arguments.threads);
  vips_cache_set_max(0);   // libvips would remember the image of the round before
  const auto folder = std::filesystem::temp_directory_path() / ("lrcnn-image-rows-" + std::to_string(::getpid()));
  struct Folder {
    const std::filesystem::path& path;
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } cleaner{folder};
  std::filesystem::create_directories(folder);
  if (arguments.files.empty()) arguments.files = make_files(folder);
  std::cout << processor_name() << ", " << arguments.threads << " threads, " << arguments.rows << " rows at a time, libvips " << vips_version_string()
            << ", " << arguments.rounds << " rounds\n";
  for (const std::string& file : arguments.files) measure(file, arguments);
  return 0;
}
}   // namespace
int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Rows of tiled TIFF files: lrcnn against libvips");
  app.add_option("files", arguments.files, "TIFF files; without any, a real one and its pixels in LZW");
  app.add_option("--threads", arguments.threads, "threads that decode")->check(CLI::Range(1, 256));
  app.add_option("--rounds", arguments.rounds, "turns of each")->check(CLI::Range(1, 1000));
  app.add_option("--rows", arguments.rows, "rows at a time")->check(CLI::Range(1, 1 << 20));
  return run_program(app, argc, argv, [&] { return run(arguments); });
}
