#pragma once
// Pictures in PNG files: written row by row as they come, read as shades of grey.
//
// libpng reports errors by a function that must not return: here a long jump out of the library, past nothing that has a destructor,
// and then an exception.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/core/types.hpp>
#include <cerrno>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
#include <png.h>
/// Writes a picture from top to bottom, 8 bits a channel. The file is written beside the one of that name, and takes its name when it is
/// whole; until then, and if it never is, what was there stays.
class PngWriter {
 public:
  /// `channels`: 1, shades of grey, or 3, red, green and blue. Errors: DataError if no file can be written there.
  PngWriter(std::filesystem::path path, lrcnn::Index height, lrcnn::Index width, int channels) : path_(std::move(path)), file_(path_) {
    if (begin(static_cast<png_uint_32>(height), static_cast<png_uint_32>(width), channels)) return;
    png_destroy_write_struct(&encoder_, &info_);
    fail();
  }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&encoder_, &info_); }
  /// The next row, width * channels bytes. Errors: DataError if it cannot be written.
  void write(const std::uint8_t* row) {
    if (!write_row(row)) fail();
  }
  /// Pre: all rows have been written. Errors: DataError if the file cannot be completed or renamed.
  void finish() {
    if (!end()) fail();
    file_.finish();
  }

 private:
  static void leave(png_structp encoder, png_const_charp) { std::longjmp(static_cast<PngWriter*>(png_get_error_ptr(encoder))->back_, 1); }
  static void ignore(png_structp, png_const_charp) {}
  static void put(png_structp encoder, png_bytep bytes, std::size_t count) {
    auto& own = *static_cast<PngWriter*>(png_get_io_ptr(encoder));
    try {
      return own.file_.write(std::as_bytes(std::span(bytes, count)));
    } catch (const lrcnn::DataError&) {
      own.error_ = std::current_exception();
    }
    png_error(encoder, "");   // the jump, which must not leave a handler
  }
  static void flush(png_structp) {}
  bool begin(png_uint_32 height, png_uint_32 width, int channels) {
    if (setjmp(back_)) return false;
    encoder_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, leave, ignore);
    info_ = encoder_ ? png_create_info_struct(encoder_) : nullptr;
    if (!info_) return false;
    png_set_write_fn(encoder_, this, put, flush);
    png_set_IHDR(encoder_, info_, width, height, 8, channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(encoder_, info_);
    return true;
  }
  bool write_row(const std::uint8_t* row) {
    if (setjmp(back_)) return false;
    png_write_row(encoder_, row);
    return true;
  }
  bool end() {
    if (setjmp(back_)) return false;
    png_write_end(encoder_, info_);
    return true;
  }
  [[noreturn]] void fail() const {
    if (error_) std::rethrow_exception(error_);
    throw lrcnn::DataError(lrcnn::error_text("picture '" + path_.string() + "' cannot be encoded",
                                             "libpng limits the extents of a picture and needs memory", "write a smaller picture"));
  }
  std::filesystem::path path_;
  lrcnn::AtomicFile file_;
  std::jmp_buf back_;
  png_structp encoder_ = nullptr;
  png_infop info_ = nullptr;
  std::exception_ptr error_{};   ///< what kept libpng from writing to the file
};
/// A picture in shades of grey, one byte a pixel.
struct GreyPicture {
  lrcnn::Index height = 0, width = 0;
  std::vector<std::uint8_t> pixels{};
};
/// Reads any PNG file; colours become shades of grey, what shines through becomes black.
/// Errors:  DataError if the file cannot be opened, is no PNG file, or is damaged. `what` names it in messages: "mask".
inline GreyPicture read_png_grey(const std::string& path, const std::string& what) {
  using namespace lrcnn;
  struct File {
    std::FILE* file;
    ~File() {
      if (file) std::fclose(file);
    }
  } const file{std::fopen(path.c_str(), "rb")};
  if (!file.file)
    throw DataError(error_text(what + " '" + path + "' cannot be opened: " + std::strerror(errno), "a " + what + " is a file that can be read",
                               "give the path of a PNG file"));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  GreyPicture picture;
  png_color black{};
  bool read = png_image_begin_read_from_stdio(&image, file.file) != 0;
  if (read) {
    image.format = PNG_FORMAT_GRAY;
    picture.height = image.height, picture.width = image.width;
    picture.pixels.resize(static_cast<std::size_t>(picture.height * picture.width));
    read = png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) != 0;
  }
  const std::string message = image.message;
  png_image_free(&image);
  if (!read)
    throw DataError(error_text(what + " '" + path + "' cannot be decoded: " + message, "a " + what + " is a whole PNG file",
                               "give a PNG file; other kinds must be converted first"));
  return picture;
}
