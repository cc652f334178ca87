#pragma once
// Whole-slide images, read through OpenSlide: Aperio (.svs, .tif), Hamamatsu (.ndpi, .vms, .vmu), Leica (.scn), MIRAX (.mrxs), Philips (.tiff),
// Sakura (.svslide), Trestle (.tif) and Ventana (.bif, .tif).
//
//     const auto slide = open_slide("slide.svs", {.level = 1});
//     for (const SlideLevel& level : slide->levels()) std::cout << level.width << "x" << level.height << "\n";
//     const CachedImage image(slide, cache);
//
// A slide is RGB, u8. Where a slide has no pixels, the background's colour stands. OpenSlide keeps up to 32 MiB of tiles of its own for each slide,
// beside the tile cache.
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/data/image_file.hpp>
#include <lrcnn/core/text.hpp>
#include <bit>
#include <cmath>
#include <mutex>
#include <optional>
#include <vector>
#include <openslide/openslide.h>
namespace lrcnn {
struct SlideOptions {
  Index level = 0;                                         ///< 0: the finest
  ImageRegion region{};                                    ///< in pixels of that level; if it is empty, all of it
  std::array<std::uint8_t, 3> background{255, 255, 255};   ///< red, green, blue, where the slide has no pixels
};
/// One of the sizes in which a slide is stored.
struct SlideLevel {
  Index height = 0, width = 0;
  double downsample = 1;                       ///< how many pixels of level 0 one of its pixels stands for, in each direction
  Index tile_height = 512, tile_width = 512;   ///< as it is stored; 512 where OpenSlide does not know
};
/// A level of a slide, or a region of it, as an image.
class SlideFile final : public ImageFile, public std::enable_shared_from_this<SlideFile> {
  using Handle = std::shared_ptr<openslide_t>;

 public:
  /// Use open_slide().
  SlideFile(const std::filesystem::path& path, const SlideOptions& options) : options_(options), identity_(OpenFile(path).identity()) {
    info_.path = path;
    handle_ = open();
    for (Index level = 0; level < openslide_get_level_count(handle_.get()); ++level) levels_.push_back(level_of(static_cast<std::int32_t>(level)));
    if (options_.level < 0 || options_.level >= static_cast<Index>(levels_.size()))
      throw DataError(error_text(who() + ": level " + std::to_string(options_.level) + " is to be read",
                                 "it has levels 0 to " + std::to_string(levels_.size() - 1), "choose one that is there"));
    const SlideLevel& level = item(levels_, options_.level);
    const ImageRegion all{{0, level.height}, {0, level.width}};
    if (options_.region == ImageRegion{}) options_.region = all;
    const auto& [rows, columns] = options_.region;
    if (rows.empty() || columns.empty() || !all.contains(options_.region))
      throw DataError(error_text(who() + ": " + to_string(options_.region) + " of level " + std::to_string(options_.level) + " are to be read",
                                 "it has " + std::to_string(level.height) + " rows and " + std::to_string(level.width) + " columns",
                                 "choose a region within it; regions count pixels of the level"));
    info_.height = rows.size(), info_.width = columns.size(), info_.channels = 3;
    info_.tile_height = level.tile_height >= 128 ? level.tile_height : round_up(128, level.tile_height);   // .ndpi files have strips of 8 rows
    info_.tile_width = level.tile_width >= 128 ? level.tile_width : round_up(128, level.tile_width);
    info_.format = "slide (" + property("openslide.vendor").value_or("unknown") + "), level " + std::to_string(options_.level) + " of " +
                   std::to_string(levels_.size()) + ", tiles of " + std::to_string(level.tile_width) + "x" + std::to_string(level.tile_height);
  }
  const ImageInfo& info() const override { return info_; }
  std::unique_ptr<TileDecoder> decoder() const override {
    check_unchanged();
    return std::make_unique<Decoder>(shared_from_this());
  }
  /// From the finest to the coarsest.
  std::span<const SlideLevel> levels() const { return levels_; }
  /// What the slide says of itself: property("openslide.mpp-x") is micrometres in a pixel of level 0. Nothing if it does not say.
  std::optional<std::string> property(const std::string& name) const {
    const char* const value = openslide_get_property_value(handle().get(), name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  }

 private:
  struct Decoder final : TileDecoder {
    explicit Decoder(std::shared_ptr<const SlideFile> of) : slide(std::move(of)) {}
    void decode(Index tile_row, Index tile_column, std::span<std::byte> out) override {
      const ImageInfo& info = slide->info_;
      slide->read({info.rows_of(tile_row), info.columns_of(tile_column)}, pixels, out);
    }
    Index kept_bytes() const override { return 4 * static_cast<Index>(pixels.capacity()); }
    std::shared_ptr<const SlideFile> slide;
    std::vector<std::uint32_t> pixels{};
  };
  std::string who() const { return "slide '" + info_.path.string() + "'"; }
  void check_unchanged() const { OpenFile(info_.path, identity_); }
  Handle open() const {
    Handle handle(openslide_open(info_.path.c_str()), [](openslide_t* slide) {
      if (slide) openslide_close(slide);
    });
    if (!handle)
      throw DataError(error_text(who() + " is of no format that OpenSlide knows", "slides are read through OpenSlide",
                                 "give a whole-slide image, or read it as another format"));
    if (const char* const error = openslide_get_error(handle.get()))
      throw DataError(error_text(who() + " cannot be opened: " + error, "OpenSlide reads whole slides, with all files that belong to them",
                                 "fetch the slide again"));
    return handle;
  }
  /// Shared by all decoders, so that OpenSlide's own cache is there once. One that has failed fails for ever, and is replaced.
  Handle handle() const {
    const std::lock_guard lock(mutex_);
    if (!handle_) handle_ = open();
    return handle_;
  }
  void give_up(const Handle& failed) const {
    const std::lock_guard lock(mutex_);
    if (handle_ == failed) handle_ = nullptr;
  }
  SlideLevel level_of(std::int32_t number) const {
    SlideLevel level;
    openslide_get_level_dimensions(handle_.get(), number, &level.width, &level.height);
    level.downsample = openslide_get_level_downsample(handle_.get(), number);
    const auto side = [&](const char* name, Index& extent) {
      const auto text = property("openslide.level[" + std::to_string(number) + "]." + name);
      const auto value = text ? parse_number<Index>(*text) : std::nullopt;
      if (value && *value > 0) extent = *value;
    };
    side("tile-height", level.tile_height), side("tile-width", level.tile_width);
    return level;
  }
  /// Null, or what OpenSlide says is wrong. OpenSlide gives some rows at a time, which stay in the processor's cache until they are converted.
  const char* try_read(openslide_t* slide, const ImageRegion& part, std::vector<std::uint32_t>& pixels, std::byte* out) const {
    const SlideLevel& level = item(levels_, options_.level);
    const auto at_level_0 = [&](Index begin) { return std::llround(static_cast<double>(begin) * level.downsample); };
    const Index columns = part.columns.size(),
                rows = round_up(std::max<Index>(1, 256_KiB / (4 * columns)), std::min(level.tile_height, part.rows.size()));
    pixels.resize(static_cast<std::size_t>(std::min(rows, part.rows.size()) * columns));
    for (Index row = part.rows.begin; row < part.rows.end; row += rows) {
      const Index count = std::min(rows, part.rows.end - row);
      openslide_read_region(slide, pixels.data(), at_level_0(options_.region.columns.begin + part.columns.begin),
                            at_level_0(options_.region.rows.begin + row), static_cast<std::int32_t>(options_.level), columns, count);
      if (const char* const error = openslide_get_error(slide)) return error;
      convert({pixels.data(), static_cast<std::size_t>(count * columns)}, out + (row - part.rows.begin) * columns * 3);
    }
    return nullptr;
  }
  /// Shapes:  out [rows][columns][3], of the part
  void read(const ImageRegion& part, std::vector<std::uint32_t>& pixels, std::span<std::byte> out) const {
    Handle slide = handle();
    if (try_read(slide.get(), part, pixels, out.data())) {   // perhaps another thread's tile was the damaged one
      give_up(slide);
      check_unchanged();
      slide = open();
      if (const char* const error = try_read(slide.get(), part, pixels, out.data()))
        throw DataError(error_text(who() + ", level " + std::to_string(options_.level) + ": " + to_string(part) + " cannot be decoded: " + error,
                                   "tiles are decoded when they are read", "fetch the slide again"));
    }
    check_unchanged();
  }
  /// Premultiplied ARGB, whose colours are no greater than their alpha, on the background as red, green, blue.
  void convert(std::span<const std::uint32_t> pixels, std::byte* to) const {
    std::size_t i = 0;
    if constexpr (std::endian::native == std::endian::little)   // four bytes at a time, of which the next pixel overwrites the last
      for (; i + 1 < pixels.size() && pixels[i] >> 24 == 255; ++i, to += 3) {
        const std::uint32_t rgb = __builtin_bswap32(pixels[i]) >> 8;
        std::memcpy(to, &rgb, 4);
      }
    for (; i < pixels.size(); ++i) {
      const std::uint32_t pixel = pixels[i], clear = 255 - (pixel >> 24);
      for (std::size_t c = 0; c < 3; ++c, ++to)
        *to = static_cast<std::byte>(std::min<std::uint32_t>(255, (pixel >> (16 - 8 * c) & 255) + (clear * options_.background[c] + 127) / 255));
    }
  }
  SlideOptions options_;
  FileIdentity identity_;
  ImageInfo info_;
  std::vector<SlideLevel> levels_;
  mutable std::mutex mutex_;
  mutable Handle handle_;
};
/// Opens a level of a whole-slide image, or a region of one.
/// Post:    where level 0 is read, or one whose downsample is a whole number, pixels are those of openslide_read_region() for any region; for other
///          levels OpenSlide takes places in pixels of level 0, and rows of a tile may lie up to half of such a pixel beside their place
/// Errors:  DataError as OpenFile; if OpenSlide does not know or cannot open the file, or level or region are not there. Of a tile: if OpenSlide
///          cannot decode it, with level, rows and columns, or the file has changed. OpenSlide finishes damaged JPEG tiles without an error
///          where their decoder can
inline std::shared_ptr<const SlideFile> open_slide(const std::filesystem::path& path, const SlideOptions& options = {}) {
  return std::make_shared<SlideFile>(path, options);
}
/// All that OpenSlide recognizes but plain tiled TIFF, which data/tiff.hpp reads. OpenSlide looks into the file, and for some formats at others
/// beside it. To be asked before TIFF and JPEG, as which some slides begin.
inline constexpr ImageFormat slide_format{"whole-slide images", [](std::span<const std::uint8_t> first) { return !first.empty(); },
                                          [](const std::filesystem::path& path) -> std::shared_ptr<const ImageFile> { return open_slide(path); },
                                          [](const std::filesystem::path& path) {
                                            const char* const vendor = openslide_detect_vendor(path.c_str());
                                            return vendor != nullptr && std::string_view(vendor) != "generic-tiff";
                                          }};
}   // namespace lrcnn
