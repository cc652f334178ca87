#pragma once
// A colour photograph in a JPEG file, decoded row by row.
//
// The decoder goes from top to bottom and holds a few rows. Whoever wants rows further up again starts it anew, or keeps the bytes.
// libjpeg reports errors by a function that must not return: here a long jump out of the library, past nothing that has a destructor,
// and then an exception.
#include <lrcnn/core/error.hpp>
#include <lrcnn/data/batch.hpp>
#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>
#include <jpeglib.h>
/// Rows of a file, in order.
class JpegReader {
 public:
  /// Reads the header. Errors: DataError if the file cannot be opened, is no JPEG file, or has no three channels.
  explicit JpegReader(std::string path) : path_(std::move(path)) { start(); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { close(); }
  lrcnn::Index height() const { return height_; }
  lrcnn::Index width() const { return width_; }
  /// The row that read() gives next.
  lrcnn::Index next() const { return next_; }
  /// Goes back to the first row.
  void start() {
    close();
    if (std::error_code unknown; std::filesystem::is_directory(path_, unknown))
      throw lrcnn::DataError(lrcnn::error_text("photograph '" + path_ + "' is a folder", "a photograph is one file", "give the path of a JPEG file"));
    file_ = std::fopen(path_.c_str(), "rb");
    if (!file_)
      throw lrcnn::DataError(lrcnn::error_text("photograph '" + path_ + "' cannot be opened: " + std::strerror(errno),
                                               "a photograph is a file that can be read", "give the path of a JPEG file"));
    if (!open()) fail("cannot be decoded");
    if (decoder_.num_components != 3)
      throw lrcnn::DataError(lrcnn::error_text("photograph '" + path_ + "' has " + std::to_string(decoder_.num_components) +
                                                   (decoder_.num_components == 1 ? " channel (grey)" : " channels"),
                                               "the network reads three: red, green and blue", "give a colour photograph"));
    if (!begin()) fail("cannot be decoded");
    height_ = decoder_.output_height, width_ = decoder_.output_width, next_ = 0;
  }
  /// The next row: red, green, blue of each pixel. Pre: next() < height(). Errors: DataError if the file ends before it, or is damaged.
  void read(std::uint8_t* row) {
    if (!read_row(row) || error_.warned) fail("is cut off or damaged in row " + std::to_string(next_) + " of " + std::to_string(height_));
    ++next_;
  }

 private:
  struct Errors : jpeg_error_mgr {
    std::jmp_buf back;
    char text[JMSG_LENGTH_MAX];
    bool warned;
  };
  static Errors& errors(j_common_ptr decoder) { return *static_cast<Errors*>(decoder->err); }
  static void leave(j_common_ptr decoder) {
    decoder->err->format_message(decoder, errors(decoder).text);
    std::longjmp(errors(decoder).back, 1);
  }
  static void note(j_common_ptr decoder, int level) {
    if (level >= 0 || errors(decoder).warned) return;   // the first warning counts: the decoder goes on with grey
    decoder->err->format_message(decoder, errors(decoder).text);
    errors(decoder).warned = true;
  }
  bool open() {
    decoder_.err = jpeg_std_error(&error_);
    error_.error_exit = leave, error_.emit_message = note, error_.warned = false, error_.text[0] = '\0';
    if (setjmp(error_.back)) return false;
    made_ = true;
    jpeg_create_decompress(&decoder_);
    jpeg_stdio_src(&decoder_, file_);
    jpeg_read_header(&decoder_, TRUE);
    return true;
  }
  bool begin() {
    if (setjmp(error_.back)) return false;
    decoder_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&decoder_);
    return true;
  }
  bool read_row(std::uint8_t* row) {
    if (setjmp(error_.back)) return false;
    return jpeg_read_scanlines(&decoder_, &row, 1) == 1;
  }
  void close() {
    if (made_) jpeg_destroy_decompress(&decoder_);
    if (file_) std::fclose(file_);
    made_ = false, file_ = nullptr;
  }
  [[noreturn]] void fail(const std::string& how) {
    throw lrcnn::DataError(lrcnn::error_text("photograph '" + path_ + "' " + how + ": " + error_.text, "all rows of a JPEG file are read",
                                             "give a whole JPEG file; other kinds must be converted first"));
  }
  std::string path_;
  std::FILE* file_ = nullptr;
  bool made_ = false;
  jpeg_decompress_struct decoder_{};
  Errors error_{};
  lrcnn::Index height_ = 0, width_ = 0, next_ = 0;
};
/// What the networks here are given: the mean and deviation that photographs have.
inline const lrcnn::Normalization photograph_normalization{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
/// Rows straight from the file, as numbers: the source of a forward pass, which asks for rows from top to bottom and for some of them
/// again in the next slab. Keeps as many rows as one request has. A request further up starts the decoder anew.
class JpegRows final : public lrcnn::RowSource<float> {
 public:
  /// `most`: rows of the largest request.
  JpegRows(JpegReader& reader, lrcnn::Index most)
      : reader_(reader),
        most_(most),
        table_(lrcnn::normalization_table<float>(photograph_normalization, 3)),
        bytes_(static_cast<std::size_t>(most * 3 * reader.width())) {}
  lrcnn::Shape shape() const override { return {1, 3, reader_.height(), reader_.width()}; }
  void read(lrcnn::Index, const lrcnn::View<float>& dst) const override {
    if (dst.row0 < reader_.next() - most_) reader_.start();
    while (reader_.next() < dst.row0 + dst.rows) reader_.read(row(reader_.next()));
    for (lrcnn::Index y = dst.row0; y < dst.row0 + dst.rows; ++y)
      for (lrcnn::Index c = 0; c < 3; ++c) {
        const std::uint8_t* from = row(y) + c;
        float* to = dst.row(0, c / dst.block, y) + c % dst.block;
        for (lrcnn::Index x = 0; x < dst.w; ++x) to[x * dst.block] = table_[static_cast<std::size_t>(256 * c + from[3 * x])];
      }
  }
  /// Bytes of the rows that it keeps.
  lrcnn::Index bytes() const { return static_cast<lrcnn::Index>(bytes_.size()); }

 private:
  std::uint8_t* row(lrcnn::Index y) const { return bytes_.data() + y % most_ * 3 * reader_.width(); }
  JpegReader& reader_;
  lrcnn::Index most_;
  std::vector<float> table_;
  mutable std::vector<std::uint8_t> bytes_;
};
/// The middle part of a photograph as a batch of one image, three bytes a pixel; all of it if `height` and `width` are the photograph's.
/// Pre: they are no larger.
inline lrcnn::Batch<float> read_photograph(JpegReader& reader, lrcnn::Index height, lrcnn::Index width) {
  using namespace lrcnn;
  const Index top = (reader.height() - height) / 2, left = (reader.width() - width) / 2;
  BatchContents contents{.shape = {1, 3, height, width}, .labels = {0}, .indices = {0}};
  contents.pixels.resize(static_cast<std::size_t>(contents.shape.count()));
  std::vector<std::uint8_t> row(static_cast<std::size_t>(3 * reader.width()));
  for (reader.start(); reader.next() < reader.height();) {   // to the end, so that a file that is cut off is noticed
    const Index y = reader.next() - top;
    reader.read(row.data());
    for (Index c = 0; c < 3 && y >= 0 && y < height; ++c)
      for (Index x = 0; x < width; ++x)
        contents.pixels[static_cast<std::size_t>((c * height + y) * width + x)] = row[static_cast<std::size_t>(3 * (left + x) + c)];
  }
  return Batch<float>(std::make_shared<const std::vector<float>>(normalization_table<float>(photograph_normalization, 3)), std::move(contents));
}
