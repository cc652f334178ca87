// data/batch.hpp and data/loader.hpp: rows in any layout; epochs that are the same however they are made.
#include <lrcnn/core/checksum.hpp>
#include <lrcnn/data/loader.hpp>
#include <lrcnn/data/shapes.hpp>
#include "support.hpp"
#include <doctest/doctest.h>
#include <atomic>
#include <chrono>
#include <limits>
#include <set>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
constexpr float poison = -12345;
Dataset small(Index count = 23, Index channels = 3) { return make_shapes({.count = count, .channels = channels, .h = 9, .w = 8}); }
/// What a batch is made of, to compare.
struct Made {
  Bytes pixels;
  std::vector<std::int32_t> labels;
  std::vector<Index> indices;
  Index epoch, position;
  friend bool operator==(const Made&, const Made&) = default;
};
template <class T>
Made made(const Batch<T>& batch) {
  const auto& c = batch.contents();
  return {c.pixels, c.labels, c.indices, c.epoch, c.position};
}
template <class T>
std::vector<Made> all(const Loader<T>& loader, Index epoch, Index first = 0) {
  std::vector<Made> result;
  for (auto& batch : loader.epoch(epoch, first)) result.push_back(made(batch));
  return result;
}
}   // namespace
TEST_CASE("batch: read gives the normalised pixels, in any block") {
  const Dataset data = small(4);
  const Normalization normalization{{0.1, 0.2, 0.3}, {0.5, 0.6, 0.7}};
  const Loader<float> loader(data, {.batch = 4, .shuffle = false, .normalization = normalization});
  const auto table = normalization_table<float>(normalization, 3);
  const auto batch = loader.batch(0, 0);
  CHECK(batch.shape() == Shape{4, 3, 9, 8});
  for (const Index block : {1, 2, 3, 8, 16}) {
    std::vector<float> out(static_cast<std::size_t>(stored_elements(4, 3, 9, 8, block)), poison);
    const auto view = dense_view(out.data(), 4, 3, {0, 9}, 8, block);
    batch.read(0, view);
    for (Index i = 0; i < 4; ++i)
      for (Index c = 0; c < 3; ++c)
        for (Index y = 0; y < 9; ++y)
          for (Index x = 0; x < 8; ++x)
            CHECK(view(i, c, y, x) == table[static_cast<std::size_t>(256 * c + data.image(i)[static_cast<std::size_t>((c * 9 + y) * 8 + x)])]);
    // Padded channels are left alone.
    CHECK(std::ranges::count(out, poison) == stored_elements(4, 3, 9, 8, block) - 4 * 3 * 9 * 8);
  }
}
TEST_CASE("batch: any rows of any images equal those of a whole read, also in a view that hides rows") {
  const Dataset data = small(3);
  const Loader<double> loader(data, {.batch = 3, .augmentation = {.flip = true, .pad = 2}});
  const auto batch = loader.batch(0, 0);
  for (const Index block : {1, 16}) {
    std::vector<double> whole(static_cast<std::size_t>(stored_elements(3, 3, 9, 8, block)), poison);
    const auto all_rows = dense_view(whole.data(), 3, 3, {0, 9}, 8, block);
    batch.read(0, all_rows);
    for (Index first = 0; first < 3; ++first)
      for (Index n = 1; first + n <= 3; ++n)
        for (Index begin = 0; begin <= 9; ++begin)
          for (Index end = begin; end <= 9; ++end) {
            std::vector<double> out(static_cast<std::size_t>(stored_elements(n, 3, 9, 8, block)), poison);
            const auto rows = dense_view(out.data(), n, 3, {0, 9}, 8, block).slice({begin, end});
            batch.read(first, rows);
            bool same = true;
            for (Index i = 0; i < n; ++i)
              for (Index c = 0; c < 3; ++c)
                for (Index y = begin; y < end; ++y)
                  for (Index x = 0; x < 8; ++x) same = same && rows(i, c, y, x) == all_rows(first + i, c, y, x);
            CHECK(same);
            CHECK(std::ranges::count(out, poison) == static_cast<Index>(out.size()) - n * 3 * (end - begin) * 8);
          }
  }
}
TEST_CASE("batch: equals a MemorySource of the same numbers") {
  const Dataset data = small(5, 1);
  const Loader<float> loader(data, {.batch = 5});
  const auto batch = loader.batch(2, 0);
  std::vector<float> numbers(5 * 72), a(5 * 72 * 16), b(5 * 72 * 16);
  batch.read(0, dense_view(numbers.data(), 5, 1, {0, 9}, 8));
  const MemorySource<float> memory(numbers.data(), batch.shape());
  batch.read(1, dense_view(a.data(), 3, 1, {2, 7}, 8, 16));
  memory.read(1, dense_view(b.data(), 3, 1, {2, 7}, 8, 16));
  CHECK(a == b);
}
TEST_CASE("batch: a read beyond the batch is an error") {
  const Dataset data = small(4);
  const Loader<float> loader(data, {.batch = 4});
  const auto batch = loader.batch(0, 0);
  std::vector<float> out(10000);
  CHECK(error_of([&] {
          batch.read(1, dense_view(out.data(), 4, 3, {2, 9}, 8));
        }) ==
        "lrcnn: batch of 4x3x9x8 is asked for images 1 to 4, rows 2 to 8 of 3 channels and 8 columns; what is read "
        "lies within the batch; give the network the batch's shape");
  CHECK(error_of([&] { batch.read(-1, dense_view(out.data(), 1, 3, {0, 9}, 8)); }) != "no error");
  CHECK(error_of([&] { batch.read(0, dense_view(out.data(), 1, 1, {0, 9}, 8)); }) != "no error");
  CHECK(error_of([&] { batch.read(0, dense_view(out.data(), 1, 3, {0, 9}, 9)); }) != "no error");
  CHECK(error_of([&] { batch.read(0, dense_view(out.data(), 1, 3, {0, 10}, 8)); }) != "no error");
  CHECK(error_of([&] { batch.read(0, dense_view(out.data(), 1, 3, {-1, 9}, 8)); }) != "no error");
}
TEST_CASE("loader: an epoch holds each image once, in an order of its own") {
  const Dataset data = small();
  const Loader<float> loader(data, {.batch = 5, .seed = 9});
  CHECK(loader.batches() == 5);
  CHECK(loader.images() == 23);
  CHECK(loader.input() == Shape{5, 3, 9, 8});
  std::set<std::vector<Index>> orders;
  for (Index e = 0; e < 4; ++e) {
    std::vector<Index> order;
    Index position = 0;
    for (auto& batch : loader.epoch(e)) {
      CHECK(batch.epoch() == e);
      CHECK(batch.position() == position);
      CHECK(batch.size() == (++position < 5 ? 5 : 3));
      CHECK(batch.shape() == Shape{batch.size(), 3, 9, 8});
      CHECK(static_cast<Index>(batch.labels().size()) == batch.size());
      for (std::size_t i = 0; i < batch.indices().size(); ++i) {
        const Index sample = batch.indices()[i];
        order.push_back(sample);
        CHECK(batch.labels()[i] == data.labels[static_cast<std::size_t>(sample)]);
        const auto pixels = std::span(batch.contents().pixels).subspan(i * 216, 216);
        CHECK(std::ranges::equal(pixels, data.image(sample)));
      }
    }
    CHECK(position == 5);
    orders.insert(order);
    std::ranges::sort(order);
    for (Index i = 0; i < 23; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  }
  CHECK(orders.size() == 4);
}
TEST_CASE("loader: without shuffling, with drop_last, with batches larger than the data set") {
  const Dataset data = small();
  Index next = 0;
  const Loader<float> plain(data, {.batch = 5, .shuffle = false});
  for (auto& batch : plain.epoch(7))
    for (const Index i : batch.indices()) CHECK(i == next++);
  CHECK(next == 23);
  const Loader<float> dropping(data, {.batch = 5, .drop_last = true});
  CHECK(dropping.batches() == 4);
  CHECK(dropping.images() == 20);
  for (auto& batch : dropping.epoch(0)) CHECK(batch.size() == 5);
  CHECK(all(dropping, 0).size() == 4);
  const Loader<float> all_of_them(data, {.batch = std::numeric_limits<Index>::max()});
  CHECK(all_of_them.batches() == 1);
  CHECK(all(all_of_them, 0)[0].labels.size() == 23);
  const Loader<float> large(data, {.batch = 100});
  CHECK(large.input().n == 23);
  CHECK(all(large, 0).size() == 1);
  CHECK(all(large, 0)[0].labels.size() == 23);
}
TEST_CASE("loader: batches do not depend on threads, prefetch or where the epoch was begun") {
  const Dataset data = small(61);
  LoaderOptions options{.batch = 4, .seed = 3, .augmentation = {.flip = true, .pad = 2, .fill = 9}};
  options.transform = [](std::span<std::uint8_t> image, const Shape&, const Random& random) {
    for (std::size_t i = 0; i < image.size(); ++i) image[i] ^= static_cast<std::uint8_t>(random.bits(i) & 3);
  };
  options.prefetch = 0;
  const Loader<float> plain(data, options);
  const auto expected = all(plain, 2);
  REQUIRE(expected.size() == 16);
  CHECK(all(plain, 3) != expected);
  for (const Index prefetch : {0, 1, 2, 5, 40})
    for (const Index threads : {0, 1, 2, 4}) {
      options.prefetch = prefetch;
      options.threads = threads;
      const Loader<float> loader(data, options);
      CHECK(all(loader, 2) == expected);
      for (const Index first : {1, 7, 15, 16}) CHECK(all(loader, 2, first) == std::vector<Made>(expected.begin() + first, expected.end()));
    }
  for (Index k = 0; k < 16; ++k) CHECK(made(plain.batch(2, k)) == expected[static_cast<std::size_t>(k)]);
  options.seed = 4;
  CHECK(all(Loader<float>(data, options), 2) != expected);
}
TEST_CASE("loader: how an image is cut depends on the image, not on its batch; an epoch outlives its loader") {
  const Dataset data = small(31);
  const Augmentation augmentation{.flip = true, .pad = 2};
  std::set<std::array<Index, 3>> places;
  for (const Index size : {4, 7})
    for (auto& batch : Loader<float>(data, {.batch = size, .seed = 8, .augmentation = augmentation}).epoch(3))
      for (Index i = 0; i < batch.size(); ++i) {
        const Index sample = batch.indices()[static_cast<std::size_t>(i)];
        const Shape image{1, 3, 9, 8};
        const Placement p = place(augmentation, image, image, 8, 3, sample);
        const auto found = std::span(batch.contents().pixels).subspan(static_cast<std::size_t>(i) * 216, 216);
        Bytes expected(216);
        cut_image(data.image(sample), image, expected, image, p, 0);
        CHECK(std::ranges::equal(found, expected));
        places.insert({p.y, p.x, p.flip});
      }
  CHECK(places.size() > 10);
}
TEST_CASE("loader: an image is cut anew each epoch and the same in a second look") {
  const Dataset data = small(1);
  const Loader<float> loader(data, {.batch = 1, .augmentation = {.flip = true, .pad = 3, .crop_h = 6, .crop_w = 10}});
  CHECK(loader.input() == Shape{1, 3, 6, 10});
  std::set<std::uint32_t> cuts;
  for (Index e = 0; e < 20; ++e) {
    const auto first = all(loader, e), second = all(loader, e);
    CHECK(first == second);
    cuts.insert(crc32c(std::as_bytes(std::span(first[0].pixels))));
  }
  CHECK(cuts.size() > 10);
}
TEST_CASE("loader: a consumer may stop early, or not begin") {
  const Dataset data = small(200);
  for (const Index threads : {0, 1, 3})
    for (int taken = 0; taken < 6; ++taken) {
      const Loader<float> loader(data, {.batch = 2, .prefetch = 3, .threads = threads});
      auto epoch = loader.epoch(0);
      for (int i = 0; i < taken; ++i) REQUIRE(epoch.next() != nullptr);
    }
  const Loader<float> loader(data, {.batch = 2});
  CHECK_THROWS_AS(([&] {
                    for (auto& batch : loader.epoch(0))
                      if (batch.position() == 3) throw std::logic_error("consumer");
                  }()),
                  std::logic_error);
}
TEST_CASE("loader: after the last batch there is none, and asking again is harmless") {
  const Dataset data = small(4);
  for (const Index prefetch : {0, 2}) {
    const Loader<float> loader(data, {.batch = 2, .prefetch = prefetch});
    auto epoch = loader.epoch(0);
    CHECK(epoch.next() != nullptr);
    CHECK(epoch.next() != nullptr);
    for (int i = 0; i < 3; ++i) CHECK(epoch.next() == nullptr);
    auto nothing = loader.epoch(0, 2);
    for (int i = 0; i < 3; ++i) CHECK(nothing.next() == nullptr);
  }
}
TEST_CASE("loader: an exception in a thread reaches the consumer at its batch, and ends the epoch") {
  const Dataset data = small(40);
  for (const Index threads : {0, 1, 3}) {
    LoaderOptions options{.batch = 4, .shuffle = false, .prefetch = 4, .threads = threads};
    // Image 25 is in batch 6.
    const Bytes marked(data.image(25).begin(), data.image(25).end());
    options.transform = [&](std::span<std::uint8_t> image, const Shape&, const Random&) {
      if (std::ranges::equal(image, marked)) throw std::runtime_error("image 25 is bad");
    };
    const Loader<float> loader(data, options);
    auto epoch = loader.epoch(0);
    for (Index k = 0; k < 6; ++k) {
      auto* batch = epoch.next();
      REQUIRE(batch != nullptr);
      CHECK(batch->position() == k);
    }
    CHECK(error_of<std::runtime_error>([&] { epoch.next(); }) == "image 25 is bad");
    CHECK(epoch.next() == nullptr);
    CHECK(error_of<std::runtime_error>([&] { loader.batch(0, 6); }) == "image 25 is bad");
    CHECK(made(loader.batch(0, 7)).position == 7);
  }
}
TEST_CASE("loader: makes batches ahead, no more than it was told, in buffers that it uses again") {
  const Dataset data = small(120);
  std::atomic<Index> calls{0};
  LoaderOptions options{.batch = 2, .prefetch = 3, .threads = 2};
  options.transform = [&](std::span<std::uint8_t>, const Shape&, const Random&) { ++calls; };
  const Loader<float> loader(data, options);
  auto epoch = loader.epoch(0);
  std::set<const void*> buffers;
  Index taken = 0;
  while (auto* batch = epoch.next()) {
    ++taken;
    buffers.insert(batch->contents().pixels.data());
    CHECK(calls <= 2 * (taken + 3));
    if (taken == 10)   // the next three are made while we hold this one
      for (int wait = 0; calls < 2 * 13 && wait < 10000; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (taken == 10) CHECK(calls == 2 * 13);
  }
  CHECK(taken == 60);
  CHECK(buffers.size() == 4);
}
TEST_CASE("loader: two epochs at a time do not disturb each other") {
  const Dataset data = small(50);
  const Loader<float> loader(data, {.batch = 3});
  const auto a = all(loader, 0), b = all(loader, 1);
  auto first = loader.epoch(0), second = loader.epoch(1);
  for (std::size_t k = 0; k < a.size(); ++k) {
    CHECK(made(*first.next()) == a[k]);
    CHECK(made(*second.next()) == b[k]);
  }
}
TEST_CASE("loader: options that cannot be") {
  const Dataset data = small(10, 1);
  const auto error = [&](const LoaderOptions& options) { return error_of([&] { Loader<float>(data, options); }); };
  CHECK(error({.batch = 0}) ==
        "lrcnn: loader with batches of 0 images, 2 made ahead by 1 threads; a batch has at least one image, and no "
        "number is negative; choose other numbers");
  CHECK(error({.prefetch = -1}) != "no error");
  CHECK(error({.threads = -1}) != "no error");
  CHECK(error({.batch = 11, .drop_last = true}) ==
        "lrcnn: loader with batches of 11 images of 10; with drop_last only full batches are made, so there would be "
        "none; choose smaller batches or keep the last");
  CHECK(error({.normalization = {{0, 0, 0}, {1, 1, 1}}}).find("normalisation with 3 means") != std::string::npos);
  CHECK(error({.augmentation = {.crop_h = 100}}).find("crop of 100x8 from images of 9x8") != std::string::npos);
  Dataset broken = data;
  broken.labels[3] = 10;
  CHECK(error_of([&] { Loader<float> loader(broken); }).find("has label 10 at image 3; ") != std::string::npos);
  const Loader<float> loader(data, {.batch = 4});
  CHECK(error_of([&] { loader.epoch(0, 4); }) ==
        "lrcnn: batch 4 of epoch 0; an epoch has batches 0 to 2, and epochs count from 0; check where training is to "
        "continue");
  CHECK(error_of([&] { loader.epoch(0, 3); }) == "no error");
  CHECK(error_of([&] { loader.epoch(-1); }) != "no error");
  CHECK(error_of([&] { loader.batch(0, 3); }) != "no error");
}
