// data/npy.hpp: arrays of every type, order and layout as images, what is written is read, and every error.
#include "support.hpp"
#include "support/drawn_image.hpp"
#include "support/file_bytes.hpp"
#include "support/image_pixels.hpp"
#include <lrcnn/data/npy.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::pixels_of;
using Order = lrcnn::testing::TileOrder;
namespace {
constexpr std::array<SampleType, 10> samples{SampleType::u8,  SampleType::i8,  SampleType::u16, SampleType::i16, SampleType::u32,
                                             SampleType::i32, SampleType::i64, SampleType::f16, SampleType::f32, SampleType::f64};
/// An array whose elements tell their image, row, column and channel, as its file has it.
struct Drawn {
  SampleType sample;
  Index n, h, w, c;
  std::string axes;
  bool fortran = false, big = false;
  std::vector<Index> shape() const {
    std::vector<Index> extents;
    for (const char axis : axes) extents.push_back(axis == 'n' ? n : axis == 'h' ? h : axis == 'w' ? w : c);
    return extents;
  }
  Bytes data() const {
    const std::vector<Index> extents = shape();
    const Index size = sample_bytes(sample);
    Index count = 1;
    for (const Index e : extents) count *= e;
    Bytes bytes(static_cast<std::size_t>(count * size));
    for (Index i = 0; i < count; ++i) {
      Index rest = i;
      std::array<Index, 128> at{};
      for (std::size_t k = 0; k < axes.size(); ++k) {
        const std::size_t a = fortran ? k : axes.size() - 1 - k;
        at[static_cast<std::size_t>(axes[a])] = rest % extents[a];
        rest /= extents[a];
      }
      put(at['n'], at['h'], at['w'], at['c'], &bytes[static_cast<std::size_t>(i * size)]);
      if (big != (std::endian::native == std::endian::big)) std::reverse(bytes.begin() + i * size, bytes.begin() + (i + 1) * size);
    }
    return bytes;
  }
  void put(Index image, Index y, Index x, Index channel, std::uint8_t* to) const {
    with_sample_type(sample, [&]<class S>(const S*) {
      const S value = static_cast<S>(static_cast<float>((drawn_sample(y, x, channel) + 5 * image) % 120));
      std::memcpy(to, &value, sizeof(S));
    });
  }
  /// Of one image: [h][w][c] in the machine's order.
  std::vector<std::byte> pixels(Index image) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(h * w * c * sample_bytes(sample)));
    std::size_t at = 0;
    for (Index y = 0; y < h; ++y)
      for (Index x = 0; x < w; ++x)
        for (Index channel = 0; channel < c; ++channel, at += static_cast<std::size_t>(sample_bytes(sample)))
          put(image, y, x, channel, reinterpret_cast<std::uint8_t*>(&bytes[at]));
    return bytes;
  }
  Bytes npy() const {
    NpyHeader header;
    header.kind = sample_name(sample)[0], header.bytes = sample_bytes(sample), header.big_endian = big, header.fortran_order = fortran,
    header.shape = shape();
    return join(bytes_of(npy_header_bytes(header)), data());
  }
};
ArrayLayout layout_of(const std::string& axes) {
  for (const auto& [name, layout] : {std::pair{"hw", ArrayLayout::hw},
                                     {"hwc", ArrayLayout::hwc},
                                     {"chw", ArrayLayout::chw},
                                     {"nhw", ArrayLayout::nhw},
                                     {"nhwc", ArrayLayout::nhwc}})
    if (axes == name) return layout;
  return ArrayLayout::nchw;
}
}   // namespace
TEST_CASE("npy: every type, layout and order gives the same pixels, in any order of tiles") {
  const TemporaryFolder folder;
  std::uint64_t seed = 0;
  for (const SampleType sample : samples)
    for (const std::string axes : {"hw", "hwc", "chw", "nhw", "nhwc", "nchw"})
      for (const bool fortran : {false, true})
        for (const bool big : {false, true}) {
          const Random random(20261124, ++seed);
          const bool wide = seed % 5 == 0;   // some are cut into several tiles in both directions
          Drawn d{sample,
                  fortran ? 1 : 3,
                  5 + static_cast<Index>(random.below(0, 60)),
                  (wide ? 9000 : 1) + static_cast<Index>(random.below(1, 40)),
                  axes.find('c') == axes.npos ? 1 : 1 + static_cast<Index>(random.below(2, 4)),
                  axes,
                  fortran,
                  big};
          if (wide && fortran) std::swap(d.h, d.w);
          const Index image = axes[0] == 'n' && !fortran ? 2 : 0;
          CAPTURE(seed);
          CAPTURE(axes);
          const auto path = folder.write("a.npy", d.npy());
          const auto file = open_npy(path, {layout_of(axes), image});
          CHECK(file->info().height == d.h);
          CHECK(file->info().width == d.w);
          CHECK(file->info().channels == d.c);
          CHECK(file->info().sample == sample);
          if (wide && sample_bytes(sample) > 1) CHECK(file->info().tile_rows() * file->info().tile_columns() > 1);
          CHECK(pixels_of(*file, Order::shuffled, seed) == d.pixels(image));
          if (fortran) continue;
          const auto raw = folder.write("a.raw", join(join(Bytes(7, 1), d.data()), Bytes(5, 2)));
          CHECK(pixels_of(*open_raw(raw, {d.shape(), sample, 7, big, layout_of(axes), image}), Order::backward) == d.pixels(image));
        }
}
TEST_CASE("npy: two extents are rows and columns, three are channels last, truth values are bytes") {
  const TemporaryFolder folder;
  const Drawn grey{SampleType::f32, 1, 6, 7, 1, "hw"}, colour{SampleType::u8, 1, 6, 7, 3, "hwc"};
  const auto path = folder.write("a.npy", colour.npy());
  CHECK(pixels_of(*open_npy(folder.write("b.npy", grey.npy()))) == grey.pixels(0));
  CHECK(pixels_of(*open_npy(path)) == colour.pixels(0));
  CHECK(open_npy(path)->info().format == "NumPy, uint8, 6x7x3");
  const auto formats = std::array{npy_format};
  CHECK(pixels_of(*open_image(path, formats)) == colour.pixels(0));
  NpyHeader header;
  header.kind = 'b', header.bytes = 1, header.shape = {1, 3};
  const auto mask = open_npy(folder.write("m.npy", join(bytes_of(npy_header_bytes(header)), {1, 0, 1})));
  CHECK(mask->info().sample == SampleType::u8);
  CHECK(pixels_of(*mask) == std::vector<std::byte>{std::byte{1}, std::byte{0}, std::byte{1}});
}
TEST_CASE("npy: what is written is read, and NumPy's header stands before it") {
  const TemporaryFolder folder;
  for (const SampleType sample : samples)
    for (const Index channels : {1, 3}) {
      const Drawn d{sample, 1, 23, 17, channels, channels == 1 ? "hw" : "hwc"};
      const auto pixels = d.pixels(0);
      const auto path = folder / "w.npy";
      NpyWriter writer(path, 23, 17, channels, sample);
      CHECK(writer.info().height == 23);
      const std::size_t line = pixels.size() / 23;
      writer.write(std::span(pixels).first(5 * line));
      writer.write({});
      writer.write(std::span(pixels).subspan(5 * line));
      writer.finish();
      CHECK(pixels_of(*open_npy(path)) == pixels);
      const auto bytes = testing::file_bytes(path);
      Drawn native = d;
      native.big = std::endian::native == std::endian::big;
      const Bytes expected = native.npy();
      CHECK(std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end(),
                       [](std::byte a, std::uint8_t b) { return std::to_integer<int>(a) == b; }));
    }
}
TEST_CASE("npy: a few rows of many channels are read as they were written, without a word about the layout") {
  const TemporaryFolder folder;
  const auto path = folder / "w.npy";
  for (const auto& [h, c] : {std::array<Index, 2>{1, 2}, {1, 5}, {4, 5}, {4, 70}, {5, 5}}) {
    const auto pixels = Drawn{SampleType::u16, 1, h, 7, c, "hwc"}.pixels(0);
    NpyWriter writer(path, h, 7, c, SampleType::u16);
    writer.write(pixels);
    writer.finish();
    CHECK(pixels_of(*open_npy(path)) == pixels);
    CHECK(open_npy(path, {.layout = ArrayLayout::chw})->info().channels == h);   // who says otherwise is believed
    std::vector<std::uint8_t> first;
    for (const std::byte b : testing::file_bytes(path)) first.push_back(std::to_integer<std::uint8_t>(b));
    CHECK(parse_npy_header(first, static_cast<Index>(first.size()), "it").comment == (h < 5 && c >= 5 ? "hwc" : ""));
  }
  NpyHeader header;
  header.kind = 'u', header.bytes = 1, header.shape = {3, 6, 7};
  const auto shape_with = [&](const std::string& comment) {
    header.comment = comment;
    const auto image = open_npy(folder.write("c.npy", join(bytes_of(npy_header_bytes(header)), Bytes(126))));
    return std::array{image->info().channels, image->info().height, image->info().width};
  };
  CHECK(shape_with("chw") == std::array<Index, 3>{3, 6, 7});
  CHECK(shape_with("hwc") == std::array<Index, 3>{7, 3, 6});
  for (const char* other : {"", "nhwc", "hw", "made by hand"})
    CHECK(error_of<DataError>([&] { shape_with(other); }).find("these look like channels, rows and columns") != std::string::npos);
}
TEST_CASE("npy: a file that is not finished leaves what was there, and every fault of writing is told") {
  const TemporaryFolder folder;
  const std::string path = folder.write("old.npy", {1, 2, 3}).string();
  const std::vector<std::byte> rows(12 * 4);
  {
    NpyWriter writer(path, 4, 3, 1, SampleType::f32);
    CHECK(error_of<DataError>([&] { writer.write(std::span(rows).first(13)); }) ==
          "lrcnn: image '" + path + "' is given 13 bytes; a row of it has 12; write whole rows");
    writer.write(std::span(rows).first(36));
    CHECK(error_of<DataError>([&] { writer.write(std::span(rows).first(24)); }) ==
          "lrcnn: image '" + path + "' is given 2 rows behind its first 3; it has 4; write each row once, or create the image with its height");
    CHECK(error_of<DataError>([&] { writer.finish(); }) == "lrcnn: image '" + path +
                                                               "' is to be completed with 3 of its 4 rows; a file is written whole "
                                                               "or not at all; write all rows first");
    CHECK(folder.count() == 2);
  }
  CHECK(folder.count() == 1);
  CHECK(testing::file_bytes(path).size() == 3);
  NpyWriter writer(path, 1, 3, 1, SampleType::f32);
  writer.write(std::span(rows).first(12));
  writer.finish();
  const std::string finished = "lrcnn: image '" + path + "' is finished, or was given up after an error; a file is written once; begin a new one";
  CHECK(error_of<DataError>([&] { writer.finish(); }) == finished);
  CHECK(error_of<DataError>([&] { writer.write({}); }) == finished);
  CHECK(error_of<DataError>([&] {
          NpyWriter((folder / "no" / "a.npy"), 1, 1, 1, SampleType::u8);
        }).find("cannot be written: No such file or directory") != std::string::npos);
  for (const auto& [h, w, c] : {std::array<Index, 3>{0, 1, 1}, {1, -1, 1}, {1, 1, 0}, {Index{1} << 31, Index{1} << 31, 2}})
    CHECK(error_of<DataError>([&] { NpyWriter(path, h, w, c, SampleType::u8); }) ==
          "lrcnn: image '" + path + "' is to be created with " + std::to_string(h) + " rows, " + std::to_string(w) + " columns and " +
              std::to_string(c) + " channels; an image has at least one of each, and at most 2^62 bytes; choose other extents");
}
TEST_CASE("npy: arrays that are no such images are refused") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a.npy").string(), who = "lrcnn: image '" + path + "'";
  const auto opened = [&](std::vector<Index> shape, ArrayOptions options = {}, bool fortran = false, char kind = 'u', Index bytes = 1) {
    NpyHeader header;
    header.kind = kind, header.bytes = bytes, header.shape = std::move(shape), header.fortran_order = fortran;
    folder.write("a.npy", join(bytes_of(npy_header_bytes(header)), Bytes(static_cast<std::size_t>(header.data_bytes()))));
    return error_of<DataError>([&] { open_npy(path, options); });
  };
  CHECK(opened({3, 10, 12}) ==
        who +
            " is an array of 3x10x12; three extents are taken for rows, columns and channels, and these look like channels, rows "
            "and columns; say which they are (ArrayLayout::chw or hwc), or transpose the array");
  CHECK(opened({3, 10, 12}, {.layout = ArrayLayout::chw}) == "no error");
  CHECK(opened({3, 10, 12}, {.layout = ArrayLayout::hwc}) == "no error");
  CHECK(opened({}) ==
        who + " is an array of (); it is to be read as hwc, which has 3 extents; say what its extents are (ArrayLayout), or reshape the array");
  CHECK(opened({2, 3, 4, 5}) ==
        who + " is an array of 2x3x4x5; it is to be read as hwc, which has 3 extents; say what its extents are (ArrayLayout), or reshape the array");
  CHECK(opened({4, 5}, {.layout = ArrayLayout::nchw}).find("it is to be read as nchw, which has 4 extents") != std::string::npos);
  CHECK(opened({0, 5}) == who + " is an array of 0x5; an image has pixels; give an array without an extent of 0");
  CHECK(opened({2, 4, 5}, {ArrayLayout::nhw, 2}) ==
        who + " is an array of 2x4x5, and image 2 is to be read; it has images 0 to 1; choose one that is there");
  CHECK(opened({2, 4, 5}, {ArrayLayout::nhw, -1}).find("image -1 is to be read") != std::string::npos);
  CHECK(opened({4, 5}, {ArrayLayout::hw, 1}).find("it has images 0 to 0; choose one that is there") != std::string::npos);
  CHECK(opened({2, 4, 5}, {ArrayLayout::nhw, 1}, true) ==
        who +
            " is an array of 2x4x5 in Fortran order; numbers of one image do not lie together in it; "
            "save it in C order, as in numpy.ascontiguousarray(x)");
  CHECK(opened({4, 5}, {}, false, 'u', 8) == who + " holds uint64; samples have at most 63 bits; convert it, as in x.astype(numpy.int64)");
  folder.write("a.npy", bytes_of("no array"));
  CHECK(error_of<DataError>([&] { open_npy(path); }) == who + " is no .npy file; those begin with the byte 0x93 and NUMPY; write it with numpy.save");
}
TEST_CASE("raw arrays: faults of the description") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.raw", Bytes(100)).string(), who = "lrcnn: image '" + path + "' has 100 bytes; an array of ";
  const std::string change = "; check shape, samples and offset, or fetch the file again";
  const auto opened = [&](const RawArray& array) { return error_of<DataError>([&] { open_raw(path, array); }); };
  CHECK(opened({.shape = {10, 10}}) == "no error");
  CHECK(opened({.shape = {10, 10}, .offset = 1}) == who + "10x10 u8 behind 1 bytes is longer" + change);
  CHECK(opened({.shape = {10, 10}, .sample = SampleType::i16}) == who + "10x10 i16 behind 0 bytes is longer" + change);
  CHECK(opened({.shape = {10, 10}, .offset = -1}) == who + "10x10 u8 behind -1 bytes is none that a file can have" + change);
  CHECK(opened({.shape = {-10, 10}}) == who + "-10x10 u8 behind 0 bytes is none that a file can have" + change);
  CHECK(opened({.shape = {Index{1} << 62, 4}}) == who + "4611686018427387904x4 u8 behind 0 bytes is none that a file can have" + change);
  CHECK(opened({.shape = {Index{1} << 62}, .offset = Index{1} << 62}).find("behind 4611686018427387904 bytes is longer") != std::string::npos);
}
TEST_CASE("files of images: those that are none, that change and that vanish") {
  const TemporaryFolder folder;
  const Drawn d{SampleType::u8, 1, 6, 7, 1, "hw"};
  const std::string path = folder.write("a.npy", d.npy()).string(), none = (folder / "none").string();
  const std::string changed = "lrcnn: file '" + path +
                              "' has changed since it was opened; a file stays as it is while it is read; open it again, and let nothing "
                              "write to it meanwhile";
  CHECK(error_of<DataError>([&] { open_npy(none); }) ==
        "lrcnn: image '" + none + "' cannot be opened: No such file or directory; an image is a file that can be read; check the path");
  CHECK(error_of<DataError>([&] { open_npy(folder.path()); }) ==
        "lrcnn: image '" + folder.path().string() + "' is a folder; an image is one file; give the path of a file");
  CHECK(error_of<DataError>([&] { open_npy("/dev/zero"); }) ==
        "lrcnn: image '/dev/zero' is a device or pipe; an image is one file; give the path of a file");
  const auto file = open_npy(path);
  const auto decoder = file->decoder();
  std::vector<std::byte> tile(42);
  decoder->decode(0, 0, tile);
  CHECK(tile == d.pixels(0));
  std::filesystem::resize_file(path, 130);   // within the pixels: a mapped file would end the program here
  CHECK(error_of<DataError>([&] { decoder->decode(0, 0, tile); }) == changed);
  CHECK(error_of<DataError>([&] { file->decoder(); }) == changed);
  const auto other = open_npy(folder.write("a.npy", d.npy()));
  std::filesystem::rename(folder.write("b.npy", d.npy()), path);   // another file takes its place
  CHECK(error_of<DataError>([&] { other->decoder(); }) == changed);
  const auto vanished = open_npy(path);
  const auto reads_on = vanished->decoder();
  std::filesystem::remove(path);
  CHECK(error_of<DataError>([&] { vanished->decoder(); }) ==
        "lrcnn: image '" + path + "' cannot be opened: No such file or directory; an image is a file that can be read; check the path");
}
