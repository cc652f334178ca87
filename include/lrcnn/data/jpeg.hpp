#pragma once
// Photographs in JPEG files, decoded by rows.
//
//     const CachedImage photograph(open_jpeg("photograph.jpg"), cache);
//
// A decoder goes from top to bottom; one that is asked for rows further up begins anew. Pixels are those that are stored: a camera's note that the
// picture is to be turned (EXIF) is not followed. libjpeg goes on after damage with invented pixels and a warning; here its warnings are
// errors, but for that of padding (data/jpeg_padding.hpp). It reports errors by a function that must not return: a long jump out of the library,
// past nothing that has a destructor, and then an exception.
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/data/jpeg_padding.hpp>
#include <lrcnn/data/row_decoder.hpp>
#include <csetjmp>
#include <cstdio>
#include <vector>
#include <jpeglib.h>
namespace lrcnn {
struct JpegOptions {
  /// A progressive file, and others of several scans, are decoded as a whole into memory that no tile cache counts: two bytes for each sample
  /// that is stored. Those that take more than so many bytes are refused.
  Index most_bytes = 1_GiB;
};
namespace detail {
/// Rows of a JPEG file, in order.
class JpegRows {
 public:
  explicit JpegRows(const OpenFile& file) : file_(file) {}
  JpegRows(const JpegRows&) = delete;
  JpegRows& operator=(const JpegRows&) = delete;
  ~JpegRows() { close(); }
  /// Goes to the first row. Errors: DataError if the file is no JPEG file, or has channels other than grey or three colours.
  void start() {
    close();
    if (!open() || error_.warned) fail("cannot be decoded");
    if (decoder_.num_components != 1 && decoder_.num_components != 3)
      throw DataError(
          error_text(who() + " has " + std::to_string(decoder_.num_components) + " channels" + (decoder_.num_components == 4 ? " (CMYK)" : ""),
                     "JPEG files are read that have one channel (grey) or three (red, green and blue)", "convert it to RGB"));
    kept_bytes_ = whole_bytes() + Index{sizeof(Source)} + 32 * width() * channels();
  }
  Index height() const { return decoder_.image_height; }
  Index width() const { return decoder_.image_width; }
  Index channels() const { return decoder_.num_components; }
  bool progressive() const { return decoder_.progressive_mode; }
  /// Bytes that libjpeg takes for a file of several scans, else 0.
  Index whole_bytes() {
    if (!jpeg_has_multiple_scans(&decoder_)) return 0;
    Index bytes = 0;
    for (int c = 0; c < decoder_.num_components; ++c) {
      const jpeg_component_info& component = decoder_.comp_info[c];
      bytes += round_up(component.width_in_blocks, component.h_samp_factor) * round_up(component.height_in_blocks, component.v_samp_factor) *
               Index{sizeof(JBLOCK)};
    }
    return bytes;
  }
  /// With the rows from which libjpeg makes those that it gives: of two or three rows of blocks.
  Index kept_bytes() const { return kept_bytes_; }
  /// The row that read() gives next.
  Index next() const { return started_ ? static_cast<Index>(decoder_.output_scanline) : 0; }
  /// Pre: start() has returned; next() < height(). Errors: DataError, naming the row, if the file ends before it or is damaged.
  void read(std::byte* row) {
    const Index y = next();
    if ((started_ || begin()) && !error_.warned && read_row(reinterpret_cast<JSAMPROW>(row)) && !error_.warned) return;
    fail("is cut off or damaged in row " + std::to_string(y) + " of " + std::to_string(height()));
  }

 private:
  static constexpr int most_scans = 500;   // a small file with thousands of scans would take hours
  struct Errors : jpeg_error_mgr {
    std::jmp_buf back;
    char text[JMSG_LENGTH_MAX];
    bool warned;
  };
  struct Source : jpeg_source_mgr {
    const OpenFile* file;
    Index next;
    std::array<std::byte, 65536> bytes;
  };
  static Errors& errors(j_common_ptr decoder) { return *static_cast<Errors*>(decoder->err); }
  static void leave(j_common_ptr decoder) {
    decoder->err->format_message(decoder, errors(decoder).text);
    std::longjmp(errors(decoder).back, 1);
  }
  static void note(j_common_ptr decoder, int level) {
    Errors& own = errors(decoder);
    if (level >= 0 || own.warned) return;   // the first warning counts: the decoder goes on with grey
    decoder->err->format_message(decoder, own.text);
    own.warned = !is_jpeg_padding(own.text);
  }
  static void say(j_common_ptr decoder, const char* text) {
    std::snprintf(errors(decoder).text, JMSG_LENGTH_MAX, "%s", text);
    std::longjmp(errors(decoder).back, 1);
  }
  static void ignore(j_decompress_ptr) {}
  static boolean fill(j_decompress_ptr decoder) {
    auto& source = *static_cast<Source*>(decoder->src);
    const Index got = source.file->read_some(source.next, source.bytes);
    const auto common = reinterpret_cast<j_common_ptr>(decoder);
    if (got < 0) say(common, std::strerror(errno));
    if (got == 0) say(common, "Premature end of JPEG file");
    source.next += got;
    source.next_input_byte = reinterpret_cast<const JOCTET*>(source.bytes.data());
    source.bytes_in_buffer = static_cast<std::size_t>(got);
    return TRUE;
  }
  static void skip(j_decompress_ptr decoder, long count) {
    auto& source = *static_cast<Source*>(decoder->src);
    const auto buffered = static_cast<long>(source.bytes_in_buffer);
    const long inside = std::clamp(count, 0L, buffered);
    source.next_input_byte += inside, source.bytes_in_buffer -= static_cast<std::size_t>(inside);
    source.next += std::max(count - inside, 0L);
  }
  static void watch(j_common_ptr decoder) {
    if (reinterpret_cast<j_decompress_ptr>(decoder)->input_scan_number > most_scans) say(decoder, "More than 500 scans");
  }
  bool open() {
    decoder_.err = jpeg_std_error(&error_);
    error_.error_exit = leave, error_.emit_message = note, error_.warned = false, error_.text[0] = '\0';
    if (setjmp(error_.back)) return false;
    made_ = true;
    jpeg_create_decompress(&decoder_);
    source_.init_source = source_.term_source = ignore;
    source_.fill_input_buffer = fill, source_.skip_input_data = skip, source_.resync_to_restart = jpeg_resync_to_restart;
    source_.file = &file_, source_.next = 0, source_.bytes_in_buffer = 0, source_.next_input_byte = nullptr;
    decoder_.src = &source_;
    progress_.progress_monitor = watch;
    decoder_.progress = &progress_;
    jpeg_read_header(&decoder_, TRUE);
    return true;
  }
  bool begin() {
    if (setjmp(error_.back)) return false;
    decoder_.out_color_space = decoder_.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&decoder_);
    started_ = true;
    return true;
  }
  bool read_row(JSAMPROW row) {
    if (setjmp(error_.back)) return false;
    return jpeg_read_scanlines(&decoder_, &row, 1) == 1;
  }
  void close() {
    if (made_) jpeg_destroy_decompress(&decoder_);
    made_ = started_ = false, kept_bytes_ = 0;
  }
  std::string who() const { return "image '" + file_.path().string() + "'"; }
  [[noreturn]] void fail(const std::string& how) {
    file_.check_unchanged();
    throw DataError(error_text(who() + " " + how + ": " + error_.text, "rows are read of whole JPEG files of 8 bits a sample",
                               "fetch the file again, or convert it"));
  }
  const OpenFile& file_;
  bool made_ = false, started_ = false;
  Index kept_bytes_ = 0;
  jpeg_decompress_struct decoder_{};
  jpeg_progress_mgr progress_{};
  Errors error_{};
  Source source_{};
};
class JpegFile final : public ImageFile, public std::enable_shared_from_this<JpegFile> {
 public:
  JpegFile(const std::filesystem::path& path, const JpegOptions& options) {
    const OpenFile file(path);
    const auto rows = std::make_unique<JpegRows>(file);
    rows->start();
    if (const Index bytes = rows->whole_bytes(); bytes > options.most_bytes)
      throw DataError(error_text("image '" + path.string() + "' has several scans (progressive JPEG), which take " + std::to_string(bytes) + " bytes",
                                 "at most " + std::to_string(options.most_bytes) + " are taken",
                                 "store it as baseline JPEG or tiled TIFF, or raise JpegOptions::most_bytes"));
    identity_ = file.identity();
    info_.path = path;
    info_.format = std::string("JPEG, ") + (rows->progressive() ? "progressive" : "baseline");
    info_.height = rows->height(), info_.width = rows->width(), info_.channels = rows->channels();
    info_.tile_height = 64, info_.tile_width = info_.width;
    info_.in_order = true;
  }
  const ImageInfo& info() const override { return info_; }
  std::unique_ptr<TileDecoder> decoder() const override { return std::make_unique<RowDecoder<JpegRows>>(shared_from_this(), identity_); }

 private:
  ImageInfo info_;
  FileIdentity identity_;
};
}   // namespace detail
/// Opens a JPEG file: u8, one channel (grey) or three (red, green, blue), bands of 64 rows as tiles.
/// Errors:  DataError as OpenFile; if it is no JPEG file, its header is damaged or says other channels (CMYK) or samples of 12 bits, or it is
///          progressive and takes more than the options' bytes. Of a tile: if the file ends before it or is damaged in it or above, with
///          the row, or has changed
inline std::shared_ptr<const ImageFile> open_jpeg(const std::filesystem::path& path, const JpegOptions& options = {}) {
  return std::make_shared<detail::JpegFile>(path, options);
}
inline constexpr ImageFormat jpeg_format{
    "JPEG", [](std::span<const std::uint8_t> first) { return first.size() >= 3 && first[0] == 0xff && first[1] == 0xd8 && first[2] == 0xff; },
    [](const std::filesystem::path& path) { return open_jpeg(path); }};
}   // namespace lrcnn
