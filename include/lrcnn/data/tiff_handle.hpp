#pragma once
// libtiff's TIFF as an object: closed by itself, silent, with the text of what went wrong for the errors of those who use it.
#include <lrcnn/core/file_identity.hpp>
#include <lrcnn/data/image_file.hpp>
#include <lrcnn/data/jpeg_padding.hpp>
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <fcntl.h>
#include <tiffio.h>
#include <unistd.h>
#if TIFFLIB_VERSION < 20221213
#error "lrcnn: data/tiff*.hpp need libtiff 4.5 or later, the first whose errors belong to one open file"
#endif
namespace lrcnn::detail {
/// Whether a warning of libtiff 4.5 to 4.7 leaves all pixels that are asked for as they should be. Other warnings of its decoders may be the only
/// sign of lost data: libjpeg goes on with grey, fax with white, a JPEG smaller than its tile leaves the rest unset, JBIG and PixarLog leave the end,
/// PackBits drops what is left of a run. So one that is not known here counts as damage. Its errors always do.
inline bool is_harmless_tiff_warning(std::string_view warning) {
  static constexpr std::array<std::string_view, 4> harmless{
      "is encoded with progressive mode",              // which TIFF forbids, and libjpeg decodes like any other
      "JPEG strip size exceeds expected dimensions",   // the last strip has rows below the image: they stay unread
      "Old-style LZW codes",                           // bits in the order of files before TIFF 5.0; data that is cut is an error
      "Unexpected version number",                     // of LERC: not the tag's; its data says how it is decoded
  };
  const auto told = [&](std::string_view text) { return warning.find(text) != std::string_view::npos; };
  return is_jpeg_padding(warning) || std::any_of(harmless.begin(), harmless.end(), told);
}
/// What libtiff says of one open file, instead of printing it.
struct TiffMessages {
  std::array<char, 256> error{}, warning{};   ///< the first since clear(), but for harmless warnings
  void clear() { error[0] = warning[0] = '\0'; }
  static void take(std::array<char, 256>& text, const char* format, std::va_list arguments) {
    if (text[0] == '\0') static_cast<void>(std::vsnprintf(text.data(), text.size(), format, arguments));
  }
};
inline int take_tiff_error(TIFF*, void* messages, const char*, const char* format, std::va_list arguments) {
  TiffMessages::take(static_cast<TiffMessages*>(messages)->error, format, arguments);
  return 1;   // libtiff prints nothing
}
inline int take_tiff_warning(TIFF*, void* messages, const char*, const char* format, std::va_list arguments) {
  auto& warning = static_cast<TiffMessages*>(messages)->warning;
  TiffMessages::take(warning, format, arguments);
  if (is_harmless_tiff_warning(warning.data())) warning[0] = '\0';
  return 1;
}
/// One open file of libtiff. `mode` as TIFFOpen's; `descriptor` becomes the handle's own. libtiff allocates no more than `most_bytes` at once
/// (0: no limit).
class TiffHandle {
 public:
  TiffHandle(int descriptor, const std::filesystem::path& path, const char* mode, Index most_bytes = 0)
      : messages_(std::make_unique<TiffMessages>()), descriptor_(descriptor) {
    const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), take_tiff_error, messages_.get());
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), take_tiff_warning, messages_.get());
    if (most_bytes > 0) TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(most_bytes));
    tiff_.reset(TIFFFdOpenExt(descriptor, path.c_str(), mode, options.get()));
    if (!tiff_) ::close(descriptor);
  }
  bool opened() const { return tiff_ != nullptr; }
  TIFF* get() const { return tiff_.get(); }
  /// Of the open file; the handle's.
  int descriptor() const { return descriptor_; }
  void clear() { messages_->clear(); }
  /// The first error since clear(), else the first warning, else "".
  std::string text() const { return messages_->error[0] != '\0' ? messages_->error.data() : messages_->warning.data(); }
  /// Whether libtiff has told of an error, or warned of what may be lost data.
  bool complained() const { return messages_->error[0] != '\0' || messages_->warning[0] != '\0'; }
  /// A field's value, or its default, or zero.
  template <class T>
  T field(std::uint32_t tag) const {
    T value{};
    if (TIFFGetFieldDefaulted(get(), tag, &value) != 1) value = T{};
    return value;
  }

 private:
  struct Closer {
    void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  };
  std::unique_ptr<TiffMessages> messages_;   // where libtiff's handlers find it
  std::unique_ptr<TIFF, Closer> tiff_;
  int descriptor_;
};
/// Names of compressions, for people.
inline std::string tiff_compression_name(std::uint16_t scheme) {
  switch (scheme) {
    case COMPRESSION_NONE: return "uncompressed";
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE: return "Deflate";
    case COMPRESSION_LZW: return "LZW";
    case COMPRESSION_JPEG: return "JPEG";
    case COMPRESSION_ZSTD: return "Zstandard";
    case COMPRESSION_OJPEG: return "old-style JPEG";
    case 33003:
    case 33005: return "JPEG 2000";
    default: break;
  }
  const TIFFCodec* const codec = TIFFFindCODEC(scheme);
  return codec ? codec->name : "compression " + std::to_string(scheme);
}
}   // namespace lrcnn::detail
