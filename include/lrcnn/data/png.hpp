#pragma once
// Pictures in PNG files, read by rows.
//
//     const CachedImage mask(open_png("mask.png", {.palette = PngPalette::indices}), cache);
//
// A decoder goes from top to bottom; one that is asked for rows further up begins anew. Interlaced files hold no row as a whole before their end,
// so such an image is one tile. PNG's checksums stand behind the pixels: damage may show only in a band of rows below, or in the last one.
// libpng reports errors by a function that must not return: a long jump out of the library, past nothing that has a destructor, and then
// an exception.
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/data/row_decoder.hpp>
#include <bit>
#include <csetjmp>
#include <cstdio>
#include <png.h>
namespace lrcnn {
/// What a pixel of a palette is read as: its colour, or its place in the palette, as masks have it that store classes so.
enum class PngPalette : std::uint8_t { colours, indices };
struct PngOptions {
  PngPalette palette = PngPalette::colours;
};
namespace detail {
/// Rows of a PNG file, in order.
class PngRows {
 public:
  PngRows(const OpenFile& file, const PngOptions& options) : file_(file), options_(options) {}
  PngRows(const PngRows&) = delete;
  PngRows& operator=(const PngRows&) = delete;
  ~PngRows() { close(); }
  /// Goes to the first row. Errors: DataError if the file is no PNG file or what stands before the pixels is damaged.
  void start() {
    close();
    at_ = 0, next_ = 0, text_[0] = '\0';
    if (!open()) fail("cannot be decoded");
  }
  Index height() const { return png_get_image_height(decoder_, info_); }
  Index width() const { return png_get_image_width(decoder_, info_); }
  Index channels() const { return png_get_channels(decoder_, info_); }
  bool wide() const { return png_get_bit_depth(decoder_, info_) == 16; }
  bool interlaced() const { return interlaced_; }
  std::string kind() const {
    const int colours = stored_type_;
    return std::to_string(stored_bits_) + " bit " +
           (colours == PNG_COLOR_TYPE_PALETTE ? options_.palette == PngPalette::indices ? "palette, as indices" : "palette"
            : colours & PNG_COLOR_MASK_COLOR  ? "RGB"
                                              : "grey") +
           (colours & PNG_COLOR_MASK_ALPHA ? " with alpha" : "") + (interlaced_ ? ", interlaced" : "");
  }
  /// Two rows, and what inflating takes.
  Index kept_bytes() const { return info_ ? 2 * static_cast<Index>(png_get_rowbytes(decoder_, info_)) + 64_KiB : 0; }
  /// The row that read() gives next.
  Index next() const { return next_; }
  /// Pre: start() has returned; next() < height(); the file is not interlaced
  /// Errors: DataError, naming the row, if the file ends before it or is damaged
  void read(std::byte* row) {
    if (!read_row(reinterpret_cast<png_bytep>(row)) || (next_ + 1 == height() && !end())) damaged();
    ++next_;
  }
  /// All rows at once, of any file. Pre: start() has returned, nothing was read since. Errors: as read().
  void read_all(std::byte* rows) {
    if (!read_passes(reinterpret_cast<png_bytep>(rows)) || !end()) damaged();
    next_ = height();
  }

 private:
  static void leave(png_structp decoder, png_const_charp text) {
    auto& own = *static_cast<PngRows*>(png_get_error_ptr(decoder));
    std::snprintf(own.text_, sizeof own.text_, "%s", text);
    std::longjmp(own.back_, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void give(png_structp decoder, png_bytep bytes, std::size_t count) {
    auto& own = *static_cast<PngRows*>(png_get_io_ptr(decoder));
    const Index got = own.file_.read_some(own.at_, {reinterpret_cast<std::byte*>(bytes), count});
    if (got < 0) png_error(decoder, std::strerror(errno));
    if (got < static_cast<Index>(count)) png_error(decoder, "the file ends there");
    own.at_ += got;
  }
  bool open() {
    if (setjmp(back_)) return false;
    decoder_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, ignore);
    if (decoder_) info_ = png_create_info_struct(decoder_);
    if (!info_) return false;
    png_set_read_fn(decoder_, this, give);
    png_read_info(decoder_, info_);
    stored_bits_ = png_get_bit_depth(decoder_, info_), stored_type_ = png_get_color_type(decoder_, info_);
    interlaced_ = png_get_interlace_type(decoder_, info_) != PNG_INTERLACE_NONE;
    if (stored_type_ != PNG_COLOR_TYPE_PALETTE) {
      if (stored_bits_ < 8) png_set_expand_gray_1_2_4_to_8(decoder_);
    } else if (options_.palette == PngPalette::indices) {
      png_set_packing(decoder_);
    } else {
      png_set_palette_to_rgb(decoder_);
      if (png_get_valid(decoder_, info_, PNG_INFO_tRNS)) png_set_strip_alpha(decoder_);
    }
    if (std::endian::native == std::endian::little && stored_bits_ == 16) png_set_swap(decoder_);
    passes_ = png_set_interlace_handling(decoder_);
    png_read_update_info(decoder_, info_);
    return true;
  }
  bool read_row(png_bytep row) {
    if (setjmp(back_)) return false;
    png_read_row(decoder_, row, nullptr);
    return true;
  }
  bool read_passes(png_bytep rows) {
    if (setjmp(back_)) return false;
    const std::size_t line = png_get_rowbytes(decoder_, info_);
    for (int pass = 0; pass < passes_; ++pass)
      for (next_ = 0; next_ < height(); ++next_) png_read_row(decoder_, rows + static_cast<std::size_t>(next_) * line, nullptr);
    return true;
  }
  /// What follows the pixels: the checksums of the last ones.
  bool end() {
    if (setjmp(back_)) return false;
    png_read_end(decoder_, nullptr);
    return true;
  }
  void close() { png_destroy_read_struct(&decoder_, &info_, nullptr); }
  [[noreturn]] void damaged() {
    fail("is cut off or damaged in row " + std::to_string(std::min(next_, height() - 1)) + " of " + std::to_string(height()) + " or above");
  }
  [[noreturn]] void fail(const std::string& how) {
    file_.check_unchanged();
    throw DataError(error_text("image '" + file_.path().string() + "' " + how + ": " + (text_[0] == '\0' ? "there is too little memory" : text_),
                               "rows are read of whole PNG files", "fetch the file again, or convert it"));
  }
  const OpenFile& file_;
  PngOptions options_;
  png_structp decoder_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf back_;
  char text_[160] = "";
  Index at_ = 0, next_ = 0;   ///< byte of the file, row
  int passes_ = 1, stored_bits_ = 8, stored_type_ = 0;
  bool interlaced_ = false;
};
class PngFile final : public ImageFile, public std::enable_shared_from_this<PngFile> {
 public:
  PngFile(const std::filesystem::path& path, const PngOptions& options) : options_(options) {
    const OpenFile file(path);
    PngRows rows(file, options);
    rows.start();
    identity_ = file.identity();
    info_.path = path, info_.format = "PNG, " + rows.kind();
    info_.height = rows.height(), info_.width = rows.width(), info_.channels = rows.channels();
    info_.sample = rows.wide() ? SampleType::u16 : SampleType::u8;
    info_.tile_height = rows.interlaced() ? info_.height : 64, info_.tile_width = info_.width;
    info_.in_order = true;
  }
  const ImageInfo& info() const override { return info_; }
  std::unique_ptr<TileDecoder> decoder() const override { return std::make_unique<RowDecoder<PngRows>>(shared_from_this(), identity_, options_); }

 private:
  PngOptions options_;
  ImageInfo info_;
  FileIdentity identity_;
};
inline bool is_png(std::span<const std::uint8_t> first) {
  constexpr std::array<std::uint8_t, 8> magic{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return first.size() >= magic.size() && std::equal(magic.begin(), magic.end(), first.begin());
}
}   // namespace detail
/// Opens a PNG file: u8 or u16; grey, grey with alpha, RGB or RGB with alpha (1 to 4 channels), bands of 64 rows as tiles, or a single tile if it
/// is interlaced. Grey of 1, 2 or 4 bits becomes u8, from 0 to 255; a palette becomes RGB, or u8 indices. Alpha is a channel where it is
/// stored as one; other transparency (tRNS) is left out.
/// Errors:  DataError as OpenFile; if it is no PNG file or its header is damaged. Of a tile: if the file ends before it or is damaged in it or
///          above, with the row, or has changed
inline std::shared_ptr<const ImageFile> open_png(const std::filesystem::path& path, const PngOptions& options = {}) {
  return std::make_shared<detail::PngFile>(path, options);
}
inline constexpr ImageFormat png_format{"PNG", detail::is_png, [](const std::filesystem::path& path) { return open_png(path); }};
}   // namespace lrcnn
