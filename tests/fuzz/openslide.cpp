// data/openslide.hpp: the levels of small slides, and the first tiles of each. What is damaged is the TIFF file that OpenSlide reads through libtiff,
// and what its formats write into a TIFF file's texts.
#include "images/slide_files.hpp"
#include "fuzz.hpp"
#include <lrcnn/data/openslide.hpp>
#include <lrcnn/data/tiff.hpp>
/// OpenSlide asks for as much memory as a damaged file says it takes, and is content with none.
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=64:allocator_may_return_null=1"; }
void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) {
  const auto slide = [&](const char* name, Index levels, test::SlideKind kind) {
    kind.tile = 16;
    test::write_slide(folder / name, 40, 28, levels, kind);
  };
  slide("aperio", 1, {});
  slide("aperio-jpeg", 2, {.compression = COMPRESSION_JPEG});
  slide("aperio-lzw", 1, {.description = "Aperio Image Library |AppMag = 20|MPP = 0.25", .compression = COMPRESSION_LZW});
  slide("trestle", 2, {.description = "OverlapsXY= 4 4 2 2;Background Color=E6E6E6", .software = "MedScan 1", .compression = COMPRESSION_JPEG});
  slide("tiff", 2, {.description = nullptr});
}
void lrcnn::fuzz::read(std::span<const std::uint8_t> bytes) {
  TIFFSetErrorHandler(nullptr), TIFFSetWarningHandler(nullptr);   // OpenSlide lets libtiff print
  const MemoryFile file(bytes);
  Index levels = 1;
  for (Index level = 0; level < std::min<Index>(levels, 3); ++level)
    allow_errors([&] {
      const auto slide = open_slide(file.path(), {.level = level, .tile_bytes = 1_MiB});
      levels = static_cast<Index>(slide->levels().size());
      const ImageInfo& info = slide->info();
      if (info.height < 1 || info.width < 1 || info.channels != 3 || info.tile_height < 1 || info.tile_width < 1) std::abort();
      if (info.tile_bytes() > 1 << 20) return;
      const auto decoder = slide->decoder();
      std::vector<std::byte> tile;
      for (Index row = 0; row < std::min<Index>(info.tile_rows(), 2); ++row)
        for (Index column = 0; column < std::min<Index>(info.tile_columns(), 2); ++column) {
          tile.resize(static_cast<std::size_t>(info.rows_of(row).size() * info.columns_of(column).size() * info.pixel_bytes()));
          allow_errors([&] { decoder->decode(row, column, tile); });
        }
    });
}
