// data/image_sink.hpp: every kind of samples and layout, rounding and limits, argmax, and every error. Files are .npy, which need no library.
#include "support.hpp"
#include "support/image_pixels.hpp"
#include <lrcnn/data/image_sink.hpp>
#include <lrcnn/data/npy.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::pixels_of;
namespace {
template <class S>
std::vector<S> samples_of(const std::filesystem::path& path) {
  const auto bytes = pixels_of(*open_npy(path));
  std::vector<S> samples(bytes.size() / sizeof(S));
  std::memcpy(samples.data(), bytes.data(), bytes.size());
  return samples;
}
std::unique_ptr<NpyWriter> writer(const std::filesystem::path& path, Index h, Index w, Index c, SampleType sample) {
  return std::make_unique<NpyWriter>(path, h, w, c, sample);
}
template <class T>
T value(Index c, Index y, Index x) {
  return static_cast<T>(3 * c + 7 * y - 2 * x) / 4;
}
}   // namespace
TEST_CASE_TEMPLATE("image sink: rows of any layout and number give the same file", T, float, double) {
  const TemporaryFolder folder;
  constexpr Index h = 11, w = 5, c = 6;
  const std::vector<Index> channels{4, 0, 5, 1};
  std::uint64_t seed = 0;
  for (const Index block : {1, 4, 8})
    for (const Index slab : {1, 3, 11}) {
      const auto path = folder / "a.npy";
      ImageSink<T> sink(writer(path, h, w, 4, SampleType::f64), {1, c, h, w}, {.scale = 2, .offset = 1, .channels = channels});
      for (Index top = 0; top < h; top += slab) {
        const Range rows{top, std::min(top + slab, h)};
        // More rows are stored than shown, and the block's padding is anything.
        std::vector<T> memory(static_cast<std::size_t>(stored_elements(1, c, rows.size() + 2, w, block)), T(1e30));
        View<T> view = dense_view(memory.data(), 1, c, Range{rows.begin - 1, rows.end + 1}, w, block);
        for (Index ch = 0; ch < c; ++ch)
          for (Index y = rows.begin; y < rows.end; ++y)
            for (Index x = 0; x < w; ++x) view(0, ch, y, x) = value<T>(ch, y, x);
        sink.write(0, View<const T>(view.slice(rows)));
      }
      sink.finish();
      const auto samples = samples_of<double>(path);
      std::size_t at = 0;
      Index wrong = 0;
      for (Index y = 0; y < h; ++y)
        for (Index x = 0; x < w; ++x)
          for (const Index ch : channels) wrong += samples[at++] != double(value<T>(ch, y, x)) * 2 + 1;
      CHECK(wrong == 0);
      CHECK(at == samples.size());
      ++seed;
    }
  CHECK(seed == 9);
}
TEST_CASE("image sink: whole numbers are rounded to the nearest and held in range, others are as they are") {
  const TemporaryFolder folder;
  const std::vector<double> values{-1e300, -1, -0.51, -0.4, 0.49, 0.5, 254.5, 254.49, 255.7, 1e300, std::numeric_limits<double>::infinity(), 65534.6};
  const auto written = [&]<class S>(SampleType sample, const S*) {
    ImageSink<double> sink(writer(folder / "a.npy", 1, 12, 1, sample), {1, 1, 1, 12});
    sink.write(0, dense_view(values.data(), 1, 1, {0, 1}, 12));
    sink.finish();
    return samples_of<S>(folder / "a.npy");
  };
  CHECK(written(SampleType::u8, static_cast<const std::uint8_t*>(nullptr)) ==
        std::vector<std::uint8_t>{0, 0, 0, 0, 0, 1, 255, 254, 255, 255, 255, 255});
  CHECK(written(SampleType::u16, static_cast<const std::uint16_t*>(nullptr)) ==
        std::vector<std::uint16_t>{0, 0, 0, 0, 0, 1, 255, 254, 256, 65535, 65535, 65535});
  CHECK(written(SampleType::i8, static_cast<const std::int8_t*>(nullptr)) ==
        std::vector<std::int8_t>{-128, -1, -1, 0, 0, 1, 127, 127, 127, 127, 127, 127});
  const auto wide = written(SampleType::i64, static_cast<const std::int64_t*>(nullptr));
  CHECK(wide[0] == std::numeric_limits<std::int64_t>::min());
  CHECK(wide[9] == std::numeric_limits<std::int64_t>::max());
  CHECK(written(SampleType::f64, static_cast<const double*>(nullptr)) == values);
  const auto single = written(SampleType::f32, static_cast<const float*>(nullptr));
  CHECK(single[3] == -0.4f);
  CHECK(single[9] == std::numeric_limits<float>::infinity());
  ImageSink<float> half(writer(folder / "a.npy", 1, 1, 1, SampleType::f16), {1, 1, 1, 1}, {.scale = 255});
  const float third = 0.25f;
  half.write(0, dense_view(&third, 1, 1, {0, 1}, 1));
  half.finish();
  CHECK(static_cast<float>(samples_of<float16>(folder / "a.npy")[0]) == 63.75f);
}
TEST_CASE("image sink: numbers as near to a half as can be, and as large as can be, are rounded to the nearest, and halves up") {
  const TemporaryFolder folder;
  constexpr double below_half = 0.49999999999999994, odd = 0x1p52 + 1, large = 0x1p53 - 1;   // to which no half can be added
  const std::vector<double> values{below_half, -below_half, 0.5,    -0.5,   -0.5000000000000001, 1.5, -1.5, 2.5, odd,
                                   -odd,       large,       -large, 0x1p62, 0x1p51 + 0.5};
  const auto columns = static_cast<Index>(values.size());
  ImageSink<double> sink(writer(folder / "a.npy", 1, columns, 1, SampleType::i64), {1, 1, 1, columns});
  sink.write(0, dense_view(values.data(), 1, 1, {0, 1}, columns));
  sink.finish();
  constexpr std::int64_t one = 1, two_52 = one << 52, two_53 = one << 53;
  CHECK(samples_of<std::int64_t>(folder / "a.npy") ==
        std::vector<std::int64_t>{0, 0, 1, 0, -1, 2, -1, 3, two_52 + 1, -two_52 - 1, two_53 - 1, 1 - two_53, one << 62, (one << 51) + 1});
}
TEST_CASE("image sink: the greatest channel, of equal ones the first") {
  const TemporaryFolder folder;
  const std::vector<float> values{1, 5, 2, 3, /**/ 2, 5, 2, 9, /**/ 2, 0, 7, 9};   // [3][1][4]
  const auto map = [&](ImageSinkOptions options) {
    ImageSink<float> sink(writer(folder / "a.npy", 1, 4, 1, SampleType::u8), {1, 3, 1, 4}, std::move(options));
    sink.write(0, dense_view(values.data(), 1, 3, {0, 1}, 4));
    sink.finish();
    return samples_of<std::uint8_t>(folder / "a.npy");
  };
  CHECK(map({.argmax = true}) == std::vector<std::uint8_t>{1, 0, 2, 1});
  CHECK(map({.channels = {2, 0}, .argmax = true}) == std::vector<std::uint8_t>{0, 1, 0, 0});
  CHECK(map({.scale = 100, .offset = 10, .argmax = true}) == std::vector<std::uint8_t>{110, 10, 210, 110});
}
TEST_CASE("image sink: what does not fit is told before a row is written, and numbers that are none are not made into others") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a.npy").string(), who = "lrcnn: image '" + path + "'";
  const auto made = [&](Index h, Index w, Index c, SampleType sample, const Shape& output, ImageSinkOptions options = {}) {
    return testing::error_of<DataError>([&] { ImageSink<float>(writer(path, h, w, c, sample), output, std::move(options)); });
  };
  const std::string rule = "; a file holds one image of the output's extents; create it with these extents, or choose channels";
  CHECK(made(4, 5, 3, SampleType::u8, {1, 2, 4, 5}) ==
        who + " has 4 rows, 5 columns and 3 channels, and is to hold an output of 1x2x4x5, of which 2 channels are written" + rule);
  CHECK(made(4, 5, 2, SampleType::u8, {2, 2, 4, 5}).find("an output of 2x2x4x5") != std::string::npos);
  CHECK(made(5, 5, 2, SampleType::u8, {1, 2, 4, 5}).find(rule) != std::string::npos);
  CHECK(made(4, 4, 2, SampleType::u8, {1, 2, 4, 5}).find(rule) != std::string::npos);
  CHECK(made(4, 5, 2, SampleType::u8, {1, 2, 4, 5}, {.argmax = true}).find("of which 1 channels are written" + rule) != std::string::npos);
  CHECK(made(4, 5, 1, SampleType::u8, {1, 2, 4, 5}, {.channels = {2}}) ==
        "lrcnn: channel 2 of an output of 1x2x4x5 is to be written to image '" + path + "'; it has channels 0 to 1; choose channels that are there");
  CHECK(made(4, 5, 1, SampleType::u8, {1, 2, 4, 5}, {.channels = {-1}}).find("channel -1 of an output") != std::string::npos);
  CHECK(made(4, 5, 1, SampleType::u8, {1, 257, 4, 5}, {.argmax = true}) ==
        who +
            " is to hold which of 257 channels is the greatest; its samples are u8, which end at 255; create it with larger samples, such as u16, or "
            "choose "
            "another scale");
  CHECK(made(4, 5, 1, SampleType::u8, {1, 256, 4, 5}, {.argmax = true}) == "no error");
  for (const ImageSinkOptions& below : {ImageSinkOptions{.offset = -1, .argmax = true}, ImageSinkOptions{.scale = -1, .argmax = true}})
    CHECK(made(4, 5, 1, SampleType::u8, {1, 3, 4, 5}, below).find("its samples are u8, which begin at 0; ") != std::string::npos);
  CHECK(made(4, 5, 1, SampleType::i16, {1, 3, 4, 5}, {.scale = -1, .argmax = true}) == "no error");
  CHECK(made(4, 5, 1, SampleType::f32, {1, 257, 4, 5}, {.argmax = true}) == "no error");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{1, nan};
  const auto given = [&](SampleType sample, ImageSinkOptions options) {
    return testing::error_of<DataError>([&] {
      ImageSink<float> sink(writer(path, 1, 1, options.argmax ? 1 : 2, sample), {1, 2, 1, 1}, options);
      sink.write(0, dense_view(values.data(), 1, 2, {0, 1}, 1));
      sink.finish();
    });
  };
  CHECK(given(SampleType::i16, {}) == "lrcnn: row 0 of image '" + path +
                                          "' has a value that is not a number (NaN); i16 cannot hold it; find out where it comes "
                                          "from, or write f32");
  CHECK(given(SampleType::f32, {.argmax = true}) ==
        "lrcnn: row 0 of image '" + path +
            "' has a value that is not a number (NaN); the greatest of several is asked for; find out where it comes from");
  CHECK(folder.count() == 0);
  CHECK(given(SampleType::f32, {}) == "no error");
  CHECK(std::isnan(samples_of<float>(path)[1]));
  ImageSink<float> sink(writer(path, 3, 1, 1, SampleType::f32), {1, 1, 3, 1});
  const auto write = [&](Index first, const View<const float>& rows) { return testing::error_of<DataError>([&] { sink.write(first, rows); }); };
  const std::string next = "; row 0 of 1 columns of one image comes next; give it all rows of one output, from top to bottom";
  CHECK(write(0, dense_view(values.data(), 1, 1, {1, 2}, 1)) ==
        who + " is given rows from 1 of 1 images from 0, with 1 channels and 1 columns" + next);
  CHECK(write(1, dense_view(values.data(), 1, 1, {0, 1}, 1)).find(next) != std::string::npos);
  CHECK(write(0, dense_view(values.data(), 2, 1, {0, 1}, 1)).find("of 2 images from 0") != std::string::npos);
  CHECK(write(0, dense_view(values.data(), 1, 1, {0, 1}, 2)).find("and 2 columns") != std::string::npos);
  CHECK(write(0, dense_view(values.data(), 1, 1, {0, 2}, 1)) == "no error");
  CHECK(testing::error_of<DataError>([&] { sink.finish(); }).find("is to be completed with 2 of its 3 rows") != std::string::npos);
}
