#pragma once
// TIFF and BigTIFF files, through libtiff: tiles or strips, integers of 8, 16 and 32 bits, signed ones of 64, floating point of 16, 32 and 64,
// channels side by side or in planes, any compression that libtiff has, any directory of the file (levels of a pyramid, pages).
//
//     const auto level = open_tiff("slide.tif", {.directory = 2});
//
// Samples are given as they are stored, with these exceptions: YCbCr in JPEG becomes RGB; grey of 1, 2 or 4 bits becomes u8 of 0 to 255; where
// 0 is white, grey is inverted. Alpha is one more channel. The tag for orientation is not applied. Tiles and strips that a sparse file leaves out
// count as zeros.
//
// A tile whose data libtiff would complete by guessing (a warning of its decoder for JPEG, fax, ...) counts as damaged, too. Warnings after which all
// pixels are right do not: progressive JPEG, a last strip of JPEG with rows below the image, old-style LZW, padding at the end of JPEG data
// (data/tiff_handle.hpp, data/jpeg_padding.hpp).
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/data/tiff_layout.hpp>
#include <vector>
namespace lrcnn {
namespace detail {
/// One opening of a TIFF file after another, all of them of the same bytes.
class TiffOpener {
 public:
  TiffOpener(std::filesystem::path path, const TiffOptions& options) : path_(std::move(path)), options_(options) {
    if (options.directory < 0 || options.directory > most_directories || options.sub_directory < -1 || options.tile_bytes < 1 ||
        options.strip_bytes < 1)
      throw DataError(error_text("options of image '" + path_.string() + "' have directory " + std::to_string(options.directory) + "." +
                                     std::to_string(options.sub_directory) + ", " + std::to_string(options.tile_bytes) + " bytes a tile, " +
                                     std::to_string(options.strip_bytes) + " bytes a strip",
                                 "directories are counted from 0, and tiles and strips have bytes", "correct the options"));
    const OpenFile file(path_);
    identity_ = file.identity();
    header_ = read_header(file);
  }
  const std::filesystem::path& path() const { return path_; }
  const TiffOptions& options() const { return options_; }
  /// A handle that stands at the file's first byte, no directory read.
  /// Errors:  DataError if the file has vanished or changed, or is no TIFF
  TiffHandle open() const {
    OpenFile file(path_, identity_);
    if (read_header(file) != header_) throw file_changed(path_);
    // 'm': not mapped into memory, because a mapped file that becomes shorter ends the program. 'h': no directory yet.
    TiffHandle tiff(file.release(), path_, "rmh", std::max<Index>(64_MiB, 2 * std::min<Index>(options_.tile_bytes, 1_GiB << 10)));
    if (!tiff.opened())
      throw DataError(error_text("image '" + path_.string() + "' cannot be read: " + tiff.text(),
                                 "a TIFF file begins with a header that libtiff knows", "check that it is a TIFF file, or fetch it again"));
    return tiff;
  }
  /// A handle at the directory that the options name.
  TiffHandle open_directory() const {
    TiffHandle tiff = open();
    go_to(tiff, options_.directory, options_.sub_directory);
    return tiff;
  }
  /// Errors:  DataError if there is no such directory or it cannot be read
  void go_to(TiffHandle& tiff, Index directory, Index sub_directory) const {
    tiff.clear();
    if (TIFFSetDirectory(tiff.get(), static_cast<tdir_t>(directory)) != 1) throw no_directory(tiff, directory, -1);
    if (sub_directory < 0) return;
    const auto below = sub_directories(tiff);
    if (sub_directory >= static_cast<Index>(below.size())) {
      tiff.clear();
      throw no_directory(tiff, directory, sub_directory);
    }
    if (TIFFSetSubDirectory(tiff.get(), item(below, sub_directory)) != 1) throw no_directory(tiff, directory, sub_directory);
  }
  /// Where the directories below the current one are.
  static std::vector<std::uint64_t> sub_directories(const TiffHandle& tiff) {
    std::uint16_t count = 0;
    toff_t* offsets = nullptr;
    if (TIFFGetField(tiff.get(), TIFFTAG_SUBIFD, &count, &offsets) != 1 || !offsets) return {};
    return {offsets, offsets + count};
  }
  /// Errors:  DataError if the open file has changed since it was first opened
  void check_unchanged(const TiffHandle& tiff) const {
    if (identity_of(tiff.descriptor(), path_) != identity_) throw file_changed(path_);
  }
  DataError no_directory(const TiffHandle& tiff, Index directory, Index sub_directory) const {
    const std::string text = tiff.text();
    return DataError(error_text(tiff_who(path_, directory, sub_directory) + (text.empty() ? " is not there" : " cannot be read: " + text),
                                "a TIFF file is a list of directories, each whole",
                                "ask for one that tiff_directories() lists, or fetch the file again"));
  }

 private:
  using Header = std::array<std::uint8_t, 16>;
  static constexpr Index most_directories = 1 << 20;
  static Header read_header(const OpenFile& file) {
    Header header{};   // what a short file lacks stays 0
    static_cast<void>(file.read_some(0, std::as_writable_bytes(std::span(header))));
    return header;
  }
  std::filesystem::path path_;
  TiffOptions options_;
  FileIdentity identity_;
  Header header_{};
};
class TiffDecoder;
class TiffFile final : public ImageFile, public std::enable_shared_from_this<TiffFile> {
 public:
  TiffFile(const std::filesystem::path& path, const TiffOptions& options) : opener_(path, options) {
    TiffHandle tiff = opener_.open_directory();
    layout_ = read_tiff_layout(tiff, path, options);
  }
  const ImageInfo& info() const override { return layout_.info; }
  std::unique_ptr<TileDecoder> decoder() const override;
  const TiffOpener& opener() const { return opener_; }
  const TiffLayout& layout() const { return layout_; }

 private:
  TiffOpener opener_;
  TiffLayout layout_;
};
/// Expands grey of 1, 2 or 4 bits to u8. Shapes: packed [columns * bits / 8, rounded up], out [columns]
inline void expand_bits(const std::byte* packed, Index columns, Index bits, std::byte* out) {
  const unsigned most = (1U << bits) - 1, scale = 255 / most;
  for (Index x = 0; x < columns; ++x) {
    const auto bit = static_cast<unsigned>(x * bits % 8);
    const unsigned value = (std::to_integer<unsigned>(packed[x * bits / 8]) >> (8 - static_cast<unsigned>(bits) - bit)) & most;
    out[x] = static_cast<std::byte>(value * scale);
  }
}
class TiffDecoder final : public TileDecoder {
 public:
  explicit TiffDecoder(std::shared_ptr<const TiffFile> file) : file_(std::move(file)), info_(file_->info()), layout_(file_->layout()) { open(); }
  void decode(Index tile_row, Index tile_column, std::span<std::byte> out) override {
    out_ = out.data(), tile_row_ = tile_row, tile_column_ = tile_column;
    try {
      if (handles_.empty()) open();
      for (TiffHandle& tiff : handles_) tiff.clear();
      if (layout_.tiled) decode_tile();
      else if (layout_.by_rows) decode_rows();
      else decode_strips();
      file_->opener().check_unchanged(handles_.front());
    } catch (...) {
      handles_.clear();   // libtiff's state after an error is its own affair
      throw;
    }
    if (layout_.inverted) invert(out);
  }
  /// libtiff keeps a tile's or strip's bytes as they are stored, and where each one lies.
  Index kept_bytes() const override {
    const Index tiles = handles_.empty() ? 0 : layout_.tiled ? TIFFNumberOfTiles(handles_.front().get()) : TIFFNumberOfStrips(handles_.front().get());
    return static_cast<Index>(handles_.size()) * (info_.tile_bytes() / layout_.planes + 16 * tiles) + static_cast<Index>(buffer_.capacity());
  }

 private:
  /// One handle; where planes are read row by row, one for each.
  void open() {
    const Index count = layout_.by_rows ? layout_.planes : 1;
    while (static_cast<Index>(handles_.size()) < count) {
      handles_.push_back(file_->opener().open_directory());
      if (layout_.to_rgb) TIFFSetField(handles_.back().get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
    next_row_ = -1;
  }
  void decode_tile() {
    const Range rows = info_.rows_of(tile_row_), columns = info_.columns_of(tile_column_);
    const auto x = static_cast<std::uint32_t>(columns.begin), y = static_cast<std::uint32_t>(rows.begin);
    const Index bytes = layout_.stored_rows * layout_.stored_row_bytes;
    const bool direct = plain() && columns.size() == info_.tile_width && rows.size() == info_.tile_height;
    for (Index plane = 0; plane < layout_.planes; ++plane) {
      std::byte* const to = direct ? out_ : buffer(bytes);
      decode_stored(TIFFComputeTile(handles_.front().get(), x, y, 0, static_cast<std::uint16_t>(plane)), to, bytes, rows);
      if (!direct) place(to, rows.size(), columns.size(), plane, 0);
    }
  }
  void decode_strips() {
    const Range rows = info_.rows_of(tile_row_);
    for (Index row = rows.begin; row < rows.end; row += layout_.stored_rows) {
      const Range strip{row, std::min(info_.height, row + layout_.stored_rows)};
      const Index bytes = strip.size() * layout_.stored_row_bytes;
      for (Index plane = 0; plane < layout_.planes; ++plane) {
        std::byte* const to = plain() ? out_ + (row - rows.begin) * layout_.stored_row_bytes : buffer(bytes);
        decode_stored(TIFFComputeStrip(handles_.front().get(), static_cast<std::uint32_t>(row), static_cast<std::uint16_t>(plane)), to, bytes, strip);
        if (!plain()) place(to, strip.size(), info_.width, plane, row - rows.begin);
      }
    }
  }
  void decode_rows() {
    const Range rows = info_.rows_of(tile_row_);
    // A strip is decoded from its first row on; libtiff goes back to it where the next row is one above.
    Index row = rows.begin / layout_.stored_rows * layout_.stored_rows;
    if (row <= next_row_ && next_row_ <= rows.begin) row = next_row_;
    for (; row < rows.end; ++row)
      for (Index plane = 0; plane < layout_.planes; ++plane) {
        const bool wanted = row >= rows.begin;
        TiffHandle& tiff = item(handles_, plane);
        std::byte* const to = wanted && plain() ? out_ + (row - rows.begin) * layout_.stored_row_bytes : buffer(layout_.stored_row_bytes);
        const auto y = static_cast<std::uint32_t>(row);
        const auto p = static_cast<std::uint16_t>(plane);
        if (left_out(tiff, TIFFComputeStrip(tiff.get(), y, p))) std::fill_n(to, layout_.stored_row_bytes, std::byte{0});
        else if (TIFFReadScanline(tiff.get(), to, y, p) != 1 || tiff.complained()) throw damaged(tiff, {row, row + 1});
        if (wanted && !plain()) place(to, 1, info_.width, plane, row - rows.begin);
      }
    next_row_ = rows.end;
  }
  /// Inverts grey, of unsigned integers, where that is all bits; not the alpha behind it.
  void invert(std::span<std::byte> pixels) const {
    const auto sample = static_cast<std::size_t>(sample_bytes(info_.sample)), pixel = static_cast<std::size_t>(info_.pixel_bytes());
    for (std::size_t at = 0; at < pixels.size(); at += pixel)
      for (std::byte& b : pixels.subspan(at, sample)) b = ~b;
  }
  /// Whether a sparse file leaves a tile or strip out.
  static bool left_out(const TiffHandle& tiff, std::uint32_t index) {
    return TIFFGetStrileByteCount(tiff.get(), index) == 0 && TIFFGetStrileOffset(tiff.get(), index) == 0 && !tiff.complained();
  }
  /// Decodes a tile or strip of the file.
  void decode_stored(std::uint32_t index, std::byte* to, Index bytes, Range rows) {
    const TiffHandle& tiff = handles_.front();
    if (left_out(tiff, index)) {
      std::fill_n(to, bytes, std::byte{0});
      return;
    }
    const auto size = static_cast<tmsize_t>(bytes);
    const tmsize_t decoded = layout_.tiled ? TIFFReadEncodedTile(tiff.get(), index, to, size) : TIFFReadEncodedStrip(tiff.get(), index, to, size);
    if (decoded != size || tiff.complained()) throw damaged(tiff, rows);
  }
  /// Whether decoded bytes are pixels as they are wanted.
  bool plain() const { return layout_.planes == 1 && layout_.bits >= 8; }
  /// Puts decoded rows of one plane where they belong. Shapes: from [rows][stored_row_bytes]; out_ from its row `first` on.
  void place(const std::byte* from, Index rows, Index columns, Index plane, Index first) {
    const Index sample = sample_bytes(info_.sample), pixel = info_.pixel_bytes(), line = columns * pixel;
    for (Index y = 0; y < rows; ++y, from += layout_.stored_row_bytes) {
      std::byte* to = out_ + (first + y) * line;
      if (layout_.bits < 8) {
        expand_bits(from, columns, layout_.bits, to);
      } else if (layout_.planes == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(line));
      } else {
        to += plane * sample;
        for (Index x = 0; x < columns; ++x, to += pixel) std::memcpy(to, from + x * sample, static_cast<std::size_t>(sample));
      }
    }
  }
  std::byte* buffer(Index bytes) {
    if (static_cast<Index>(buffer_.size()) < bytes) buffer_.resize(static_cast<std::size_t>(bytes));
    return buffer_.data();
  }
  DataError damaged(const TiffHandle& tiff, Range rows) const {
    const std::string text = tiff.text();
    file_->opener().check_unchanged(tiff);
    const TiffOptions& options = file_->opener().options();
    return DataError(error_text(tiff_who(info_.path, options.directory, options.sub_directory) +
                                    " is damaged: " + to_string(ImageRegion{rows, info_.columns_of(tile_column_)}) + " (" +
                                    (layout_.tiled ? "tile " : "strips ") + std::to_string(tile_row_) + ", " + std::to_string(tile_column_) +
                                    ") cannot be decoded" + (text.empty() ? "" : ": " + text),
                                "a tile is whole, or cannot be used", "fetch or write the file again, or leave these pixels out"));
  }
  std::shared_ptr<const TiffFile> file_;
  const ImageInfo& info_;
  const TiffLayout& layout_;
  std::vector<TiffHandle> handles_;
  Index next_row_ = -1;   ///< that the handles stand at, where rows are read one by one
  std::vector<std::byte> buffer_;
  std::byte* out_ = nullptr;   // of the tile that is being decoded
  Index tile_row_ = 0, tile_column_ = 0;
};
inline std::unique_ptr<TileDecoder> TiffFile::decoder() const { return std::make_unique<TiffDecoder>(shared_from_this()); }
}   // namespace detail
/// Opens one image of a TIFF file.
/// Errors:  DataError if the file cannot be read or is no TIFF; has no such directory, or one that is cut; its image has extents that no memory
///          holds, tiles larger than options.tile_bytes, or samples or colours that are refused (palettes, CMYK, Lab, ...: with how to convert)
inline std::shared_ptr<const ImageFile> open_tiff(const std::filesystem::path& path, const TiffOptions& options = {}) {
  return std::make_shared<const detail::TiffFile>(path, options);
}
/// A directory of a TIFF file: an image, whether or not open_tiff() takes it.
struct TiffDirectory {
  Index directory = 0, sub_directory = -1;   ///< as in TiffOptions
  Index height = 0, width = 0, channels = 0, bits = 0;
  bool reduced = false;        ///< said to be a smaller version of another one, such as a level of a pyramid
  std::string compression{};   ///< "JPEG"
  std::string description{};   ///< what the file says about it
};
/// The directories of a TIFF file, in its order, each followed by those below it.
/// Errors:  DataError if the file cannot be read or is no TIFF, or a directory is cut
inline std::vector<TiffDirectory> tiff_directories(const std::filesystem::path& path) {
  const detail::TiffOpener opener(path, {});
  detail::TiffHandle tiff = opener.open();
  std::vector<TiffDirectory> result;
  const auto add = [&](Index directory, Index sub_directory) {
    TiffDirectory d{.directory = directory, .sub_directory = sub_directory};
    d.height = tiff.field<std::uint32_t>(TIFFTAG_IMAGELENGTH), d.width = tiff.field<std::uint32_t>(TIFFTAG_IMAGEWIDTH);
    d.channels = tiff.field<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL), d.bits = tiff.field<std::uint16_t>(TIFFTAG_BITSPERSAMPLE);
    d.reduced = (tiff.field<std::uint32_t>(TIFFTAG_SUBFILETYPE) & FILETYPE_REDUCEDIMAGE) != 0;
    d.compression = detail::tiff_compression_name(tiff.field<std::uint16_t>(TIFFTAG_COMPRESSION));
    const char* text = nullptr;
    if (TIFFGetField(tiff.get(), TIFFTAG_IMAGEDESCRIPTION, &text) == 1 && text) d.description = text;
    result.push_back(std::move(d));
  };
  opener.go_to(tiff, 0, -1);
  for (Index directory = 0;; ++directory) {
    add(directory, -1);
    const auto below = static_cast<Index>(detail::TiffOpener::sub_directories(tiff).size());
    for (Index sub = 0; sub < below; ++sub) {
      opener.go_to(tiff, directory, sub);
      add(directory, sub);
    }
    if (below > 0) opener.go_to(tiff, directory, -1);
    tiff.clear();
    if (TIFFLastDirectory(tiff.get()) != 0) return result;
    if (TIFFReadDirectory(tiff.get()) != 1) throw opener.no_directory(tiff, directory + 1, -1);
  }
}
/// TIFF for open_image(): the first directory.
inline constexpr ImageFormat tiff_format{"TIFF",
                                         [](std::span<const std::uint8_t> b) {
                                           const auto begins = [&](std::uint8_t order, std::size_t zero, std::size_t magic) {
                                             return b.size() >= 4 && b[0] == order && b[1] == order && b[zero] == 0 &&
                                                    (b[magic] == 42 || b[magic] == 43);
                                           };
                                           return begins('I', 3, 2) || begins('M', 2, 3);
                                         },
                                         [](const std::filesystem::path& path) { return open_tiff(path); }};
}   // namespace lrcnn
