#pragma once
// A picture that is written to a PNG file row by row.
//
// libpng reports errors by a function that must not return: a long jump out of the library, past nothing that has a destructor, and then
// an exception.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/data/written_rows.hpp>
#include <bit>
#include <csetjmp>
#include <exception>
#include <png.h>
namespace lrcnn {
/// Writes an image as a PNG file: grey, grey with alpha, RGB or RGB with alpha (1 to 4 channels), 8 or 16 bits a sample. The file takes its
/// name when it is whole.
class PngWriter final : public ImageWriter {
 public:
  /// Errors:  DataError if PNG files have no such channels, samples or extents, or no file can be written there
  PngWriter(const std::filesystem::path& path, Index height, Index width, Index channels, SampleType sample = SampleType::u8)
      : info_(checked(path, height, width, channels, sample)), file_(path) {
    if (begin()) return;
    png_destroy_write_struct(&encoder_, &png_);
    fail();
  }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() override { png_destroy_write_struct(&encoder_, &png_); }
  const ImageInfo& info() const override { return info_; }
  void write(std::span<const std::byte> rows) override {
    const Index count = rows_.begin(info_, rows);
    for (Index y = 0; y < count; ++y)
      if (!write_row(reinterpret_cast<png_const_bytep>(rows.data() + y * info_.width * info_.pixel_bytes()))) fail();
    rows_.written(count);
  }
  void finish() override {
    rows_.finish(info_);
    if (!end()) fail();
    file_.finish();
  }

 private:
  static ImageInfo checked(const std::filesystem::path& path, Index height, Index width, Index channels, SampleType sample) {
    ImageInfo info = detail::new_image(path, height, width, channels, sample);
    check_storable(info);
    info.format = std::string("PNG, ") + (sample == SampleType::u8 ? "8 bit " : "16 bit ") + (channels > 2 ? "RGB" : "grey") +
                  (channels % 2 == 0 ? " with alpha" : "");
    return info;
  }
  static void check_storable(const ImageInfo& info) {
    constexpr Index most = PNG_USER_WIDTH_MAX;
    static_assert(most == PNG_USER_HEIGHT_MAX);
    if (info.channels > 4 || (info.sample != SampleType::u8 && info.sample != SampleType::u16) || info.height > most || info.width > most)
      throw DataError(error_text("image '" + info.path.string() + "' is to be created with " + std::to_string(info.height) + " rows, " +
                                     std::to_string(info.width) + " columns, " + std::to_string(info.channels) + " channels of " +
                                     std::string(sample_name(info.sample)),
                                 "PNG files have 1 to 4 channels of u8 or u16, and libpng writes up to " + std::to_string(most) + " rows and columns",
                                 "scale the values, choose channels, or write a TIFF or .npy file"));
  }
  static void leave(png_structp encoder, png_const_charp) { std::longjmp(static_cast<PngWriter*>(png_get_error_ptr(encoder))->back_, 1); }
  static void ignore(png_structp, png_const_charp) {}
  static void put(png_structp encoder, png_bytep bytes, std::size_t count) {
    auto& own = *static_cast<PngWriter*>(png_get_io_ptr(encoder));
    try {
      return own.file_.write(std::as_bytes(std::span(bytes, count)));
    } catch (const DataError&) {
      own.error_ = std::current_exception();
    }
    png_error(encoder, "");   // the jump, which must not leave a handler
  }
  static void flush(png_structp) {}
  bool begin() {
    constexpr std::array<int, 4> colours{PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(back_)) return false;
    encoder_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, leave, ignore);
    if (encoder_) png_ = png_create_info_struct(encoder_);
    if (!png_) return false;
    png_set_write_fn(encoder_, this, put, flush);
    const bool wide = info_.sample == SampleType::u16;
    png_set_IHDR(encoder_, png_, static_cast<png_uint_32>(info_.width), static_cast<png_uint_32>(info_.height), wide ? 16 : 8,
                 item(colours, info_.channels - 1), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(encoder_, png_);
    if (wide && std::endian::native == std::endian::little) png_set_swap(encoder_);
    return true;
  }
  bool write_row(png_const_bytep row) {
    if (setjmp(back_)) return false;
    png_write_row(encoder_, row);
    return true;
  }
  bool end() {
    if (setjmp(back_)) return false;
    png_write_end(encoder_, png_);
    return true;
  }
  [[noreturn]] void fail() const {
    if (error_) std::rethrow_exception(error_);
    throw DataError(
        error_text("image '" + info_.path.string() + "' cannot be encoded", "libpng needs memory for some rows", "write a narrower image"));
  }
  ImageInfo info_;
  AtomicFile file_;
  detail::WrittenRows rows_{};
  std::jmp_buf back_;
  png_structp encoder_ = nullptr;
  png_infop png_ = nullptr;
  std::exception_ptr error_{};   ///< what kept libpng from writing to the file
};
}   // namespace lrcnn
