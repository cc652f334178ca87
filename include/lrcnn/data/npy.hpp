#pragma once
// Images in NumPy's .npy files and in files of bare numbers, read by rows, and a writer of .npy files.
//
//     const auto image = open_npy("stack.npy", {.layout = ArrayLayout::nchw, .image = 5});
//     const auto scan = open_raw("scan.raw", {.shape = {4096, 4096}, .sample = SampleType::u16, .offset = 512});
//
// Nothing is copied when a file is opened; a tile is read where it lies in the file. Files are not mapped into memory (core/open_file.hpp says
// why), and what was read lies in the system's cache of files all the same.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/data/image_file.hpp>
#include <lrcnn/data/npy_header.hpp>
#include <lrcnn/data/written_rows.hpp>
#include <optional>
namespace lrcnn {
/// The meaning of an array's extents: n images, c channels, h rows, w columns. `automatic` is what a comment in the file's header says, as
/// NpyWriter writes it ("# hwc"); without one, hw for two extents and hwc for three.
enum class ArrayLayout : std::uint8_t { automatic, hw, hwc, chw, nhw, nhwc, nchw };
/// How an array is seen as an image.
struct ArrayOptions {
  ArrayLayout layout = ArrayLayout::automatic;
  Index image = 0;   ///< which one, where the layout has n
};
/// What is in a file of bare numbers.
struct RawArray {
  std::vector<Index> shape{};   ///< as the layout says; the last index changes fastest
  SampleType sample = SampleType::u8;
  Index offset = 0;   ///< bytes before the first number. Behind the last one there may be more
  bool big_endian = false;
  ArrayLayout layout = ArrayLayout::automatic;
  Index image = 0;
};
namespace detail {
constexpr std::array<std::string_view, 7> array_layouts{"", "hw", "hwc", "chw", "nhw", "nhwc", "nchw"};
/// Where an image's numbers lie in its file.
struct ArrayPlace {
  Index begin = 0, row = 0, column = 0, channel = 0;   ///< bytes: of the first number; from one row, column, channel to the next
  bool swap = false;                                   ///< numbers are in the other byte order
};
/// "3x512x512"
inline std::string array_extents_text(std::span<const Index> shape) {
  std::string text;
  for (const Index extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "()" : text;
}
/// Whether an array of rows, columns and channels looks as if it were one of channels, rows and columns.
inline bool looks_like_chw(std::span<const Index> shape) { return shape.size() == 3 && shape[0] < 5 && shape[2] >= 5; }
/// Finds the image in an array: fills info's extents, and says where its numbers lie.
/// Pre:     the array's bytes do not overflow
inline ArrayPlace place_in_array(ImageInfo& info, std::span<const Index> shape, ArrayOptions options, bool fortran_order, Index begin) {
  const std::string who = "image '" + info.path.string() + "' is an array of " + array_extents_text(shape);
  if (options.layout == ArrayLayout::automatic) {
    if (looks_like_chw(shape))
      throw DataError(error_text(who, "three extents are taken for rows, columns and channels, and these look like channels, rows and columns",
                                 "say which they are (ArrayLayout::chw or hwc), or transpose the array"));
    options.layout = shape.size() == 2 ? ArrayLayout::hw : ArrayLayout::hwc;
  }
  const std::string_view axes = item(array_layouts, static_cast<Index>(options.layout));
  if (shape.size() != axes.size())
    throw DataError(error_text(who, "it is to be read as " + std::string(axes) + ", which has " + std::to_string(axes.size()) + " extents",
                               "say what its extents are (ArrayLayout), or reshape the array"));
  ArrayPlace place{.begin = begin};
  info.channels = 1;
  Index images = 1, stride = sample_bytes(info.sample), image_stride = 0;
  for (std::size_t k = 0; k < axes.size(); ++k) {   // from the index that changes fastest
    const std::size_t i = fortran_order ? k : axes.size() - 1 - k;
    const auto is = [&](Index& extent, Index& to) { extent = shape[i], to = stride; };
    switch (axes[i]) {
      case 'h': is(info.height, place.row); break;
      case 'w': is(info.width, place.column); break;
      case 'c': is(info.channels, place.channel); break;
      default: is(images, image_stride); break;
    }
    stride *= shape[i];
  }
  if (fortran_order && images > 1)
    throw DataError(error_text(who + " in Fortran order", "numbers of one image do not lie together in it",
                               "save it in C order, as in numpy.ascontiguousarray(x)"));
  if (stride == 0) throw DataError(error_text(who, "an image has pixels", "give an array without an extent of 0"));
  if (options.image < 0 || options.image >= images)
    throw DataError(error_text(who + ", and image " + std::to_string(options.image) + " is to be read",
                               "it has images 0 to " + std::to_string(images - 1), "choose one that is there"));
  place.begin += options.image * image_stride;
  return place;
}
/// Bytes that lie together whatever the order: of a pixel, or of one of its channels.
inline Index unit_bytes(const ImageInfo& info, const ArrayPlace& place) {
  const Index sample = sample_bytes(info.sample);
  return info.channels == 1 || place.channel == sample ? info.pixel_bytes() : sample;
}
/// Cuts an image into tiles of about a megabyte that are long in the direction in which numbers lie side by side: in pieces of at least 8 KiB.
inline void cut_array(ImageInfo& info, const ArrayPlace& place) {
  constexpr Index piece = 8_KiB, tile = 1_MiB;
  const Index unit = unit_bytes(info, place);
  const auto cut = [&](Index& along, Index& across, Index length, Index width) {
    along = unit * length <= 2 * piece ? length : std::min(length, ceil_div(piece, unit));
    across = std::clamp<Index>(tile / (along * info.pixel_bytes()), 1, width);
  };
  if (place.column == unit) cut(info.tile_width, info.tile_height, info.width, info.height);
  else cut(info.tile_height, info.tile_width, info.height, info.width);
}
class ArrayFile final : public ImageFile, public std::enable_shared_from_this<ArrayFile> {
 public:
  ArrayFile(ImageInfo info, const ArrayPlace& place, const FileIdentity& identity) : info_(std::move(info)), place_(place), identity_(identity) {
    cut_array(info_, place_);
  }
  const ImageInfo& info() const override { return info_; }
  std::unique_ptr<TileDecoder> decoder() const override { return std::make_unique<Decoder>(shared_from_this()); }

 private:
  class Decoder final : public TileDecoder {
   public:
    explicit Decoder(std::shared_ptr<const ArrayFile> image) : image_(std::move(image)), file_(image_->info_.path, image_->identity_) {}
    void decode(Index tile_row, Index tile_column, std::span<std::byte> out) override {
      const ImageInfo& info = image_->info_;
      const ArrayPlace& place = image_->place_;
      const Range rows = info.rows_of(tile_row), columns = info.columns_of(tile_column);
      const Index sample = sample_bytes(info.sample), unit = unit_bytes(info, place), line = columns.size() * info.pixel_bytes();
      const Index begin = place.begin + rows.begin * place.row + columns.begin * place.column;
      if (place.column == unit && unit == info.pixel_bytes()) {   // rows lie in the file as they do in a tile
        const bool together = line == place.row;
        const auto bytes = static_cast<std::size_t>(together ? rows.size() * line : line);
        for (Index y = 0; y < (together ? 1 : rows.size()); ++y)
          file_.read(begin + y * place.row, out.subspan(static_cast<std::size_t>(y * line), bytes));
      } else {
        const bool by_rows = place.column == unit;
        for (Index c = 0; c < info.pixel_bytes() / unit; ++c)
          for (Index i = 0; i < (by_rows ? rows : columns).size(); ++i)
            spread(begin + c * place.channel + i * (by_rows ? place.row : place.column), (by_rows ? columns : rows).size(), unit,
                   out.data() + i * (by_rows ? line : info.pixel_bytes()) + c * unit, by_rows ? info.pixel_bytes() : line);
      }
      file_.check_unchanged();
      if (place.swap) reverse_each(out, sample);
    }
    Index kept_bytes() const override { return static_cast<Index>(run_.capacity()); }

   private:
    /// What lies side by side in the file, `unit` bytes each, goes to places `step` bytes apart.
    void spread(Index begin, Index count, Index unit, std::byte* to, Index step) {
      run_.resize(static_cast<std::size_t>(count * unit));
      file_.read(begin, run_);
      for (Index i = 0; i < count; ++i) std::memcpy(to + i * step, run_.data() + i * unit, static_cast<std::size_t>(unit));
    }
    std::shared_ptr<const ArrayFile> image_;
    OpenFile file_;
    std::vector<std::byte> run_{};
  };
  ImageInfo info_;
  ArrayPlace place_;
  FileIdentity identity_;
};
/// The samples of a .npy file's type; truth values are u8. Nothing for uint64.
inline std::optional<SampleType> npy_sample(const NpyHeader& header) {
  for (const SampleType type : {SampleType::u8, SampleType::i8, SampleType::u16, SampleType::i16, SampleType::u32, SampleType::i32, SampleType::i64,
                                SampleType::f16, SampleType::f32, SampleType::f64})
    if (sample_name(type)[0] == (header.kind == 'b' ? 'u' : header.kind) && sample_bytes(type) == header.bytes) return type;
  return std::nullopt;
}
}   // namespace detail
/// Opens the image in a .npy file. Either byte order, C or Fortran order.
/// Errors:  DataError as OpenFile and parse_npy_header(); if the elements are uint64, the extents do not fit the layout, one of them is 0, there
///          are three with the layout `automatic`, no comment says what they are and they look like channels, rows and columns, or there is no
///          such image
inline std::shared_ptr<const ImageFile> open_npy(const std::filesystem::path& path, ArrayOptions options = {}) {
  const OpenFile file(path);
  std::vector<std::uint8_t> first(std::min(npy_header_limit, static_cast<std::size_t>(file.size())));
  file.read(0, std::as_writable_bytes(std::span(first)));
  const NpyHeader header = parse_npy_header(first, file.size(), "image '" + path.string() + "'");
  const auto sample = detail::npy_sample(header);
  if (!sample)
    throw DataError(error_text("image '" + path.string() + "' holds " + npy_type_name(header), "samples have at most 63 bits",
                               "convert it, as in x.astype(numpy.int64)"));
  ImageInfo info;
  info.path = path, info.sample = *sample;
  const auto said = std::find(detail::array_layouts.begin() + 1, detail::array_layouts.end(), header.comment);
  if (options.layout == ArrayLayout::automatic && said != detail::array_layouts.end() && said->size() == header.shape.size())
    options.layout = static_cast<ArrayLayout>(said - detail::array_layouts.begin());
  info.format = "NumPy, " + npy_type_name(header) + ", " + detail::array_extents_text(header.shape) + (header.fortran_order ? ", Fortran order" : "");
  detail::ArrayPlace place = detail::place_in_array(info, header.shape, options, header.fortran_order, header.begin);
  place.swap = header.big_endian != (std::endian::native == std::endian::big);
  return std::make_shared<detail::ArrayFile>(std::move(info), place, file.identity());
}
/// Opens a file of bare numbers as an image.
/// Errors:  DataError as open_npy() does of extents and layout; if an extent or the offset is negative, or the file has too few bytes
inline std::shared_ptr<const ImageFile> open_raw(const std::filesystem::path& path, const RawArray& array) {
  const OpenFile file(path);
  const std::string who = "image '" + path.string() + "'";
  Index bytes = sample_bytes(array.sample);
  bool fits = array.offset >= 0;
  for (const Index extent : array.shape) fits = fits && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (!fits || __builtin_add_overflow(bytes, array.offset, &bytes) || bytes > file.size())
    throw DataError(error_text(who + " has " + std::to_string(file.size()) + " bytes",
                               "an array of " + detail::array_extents_text(array.shape) + " " + std::string(sample_name(array.sample)) + " behind " +
                                   std::to_string(array.offset) + " bytes is " + (fits ? "longer" : "none that a file can have"),
                               "check shape, samples and offset, or fetch the file again"));
  ImageInfo info;
  info.path = path, info.sample = array.sample;
  info.format = "raw, " + std::string(sample_name(array.sample)) + ", " + detail::array_extents_text(array.shape);
  detail::ArrayPlace place = detail::place_in_array(info, array.shape, {array.layout, array.image}, false, array.offset);
  place.swap = array.big_endian != (std::endian::native == std::endian::big);
  return std::make_shared<detail::ArrayFile>(std::move(info), place, file.identity());
}
/// NumPy's files, which begin with the byte 0x93 and NUMPY.
inline constexpr ImageFormat npy_format{"NumPy",
                                        [](std::span<const std::uint8_t> first) {
                                          return first.size() >= detail::npy_magic.size() &&
                                                 std::memcmp(first.data(), detail::npy_magic.data(), detail::npy_magic.size()) == 0;
                                        },
                                        [](const std::filesystem::path& path) { return open_npy(path); }};
/// Writes an image as a .npy file: [height,width] if it has one channel, else [height,width,channels], with the comment "# hwc" in the header where
/// that could be taken for something else. The file takes its name when it is whole.
class NpyWriter final : public ImageWriter {
 public:
  /// Errors:  DataError if the extents are none that an image can have, or no file can be written there
  NpyWriter(const std::filesystem::path& path, Index height, Index width, Index channels, SampleType sample)
      : info_(detail::new_image(path, height, width, channels, sample)), file_(path) {
    NpyHeader header;
    const char kind = sample_name(sample)[0];
    header.kind = kind, header.bytes = sample_bytes(sample), header.shape = {height, width};
    if (channels > 1) header.shape.push_back(channels);
    if (detail::looks_like_chw(header.shape)) header.comment = "hwc";
    info_.format = "NumPy, " + npy_type_name(header) + ", " + detail::array_extents_text(header.shape);
    const std::string bytes = npy_header_bytes(header);
    file_.write(std::as_bytes(std::span(bytes)));
  }
  const ImageInfo& info() const override { return info_; }
  void write(std::span<const std::byte> rows) override {
    const Index count = rows_.begin(info_, rows);
    file_.write(rows);
    rows_.written(count);
  }
  void finish() override {
    rows_.finish(info_);
    file_.finish();
  }

 private:
  ImageInfo info_;
  AtomicFile file_;
  detail::WrittenRows rows_{};
};
}   // namespace lrcnn
