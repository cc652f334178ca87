// Rows read by several threads: what one thread reads, in every layout, by as many threads as a source allows, and errors of any of them.
#include "support/error_of.hpp"
#include <lrcnn/core/rng.hpp>
#include <lrcnn/data/direct_loader.hpp>
#include <lrcnn/data/loader.hpp>
#include <lrcnn/data/read_on_threads.hpp>
#include <lrcnn/data/shapes.hpp>
#include <doctest/doctest.h>
#include <mutex>
#include <set>
#include <thread>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Numbers that say where they belong. Notes who reads, and refuses an image.
struct Watched final : RowSource<float> {
  Shape extents;
  bool concurrent;
  Index refused = -1;
  mutable std::mutex mutex{};
  mutable std::set<std::thread::id> readers{};
  mutable Index reads = 0;
  Watched(Shape s, bool several) : extents(s), concurrent(several) {}
  Shape shape() const override { return extents; }
  bool concurrent_reads() const override { return concurrent; }
  float at(Index i, Index c, Index y, Index x) const { return static_cast<float>(((i * extents.c + c) * extents.h + y) * extents.w + x); }
  void read(Index first, const View<float>& dst) const override {
    {
      const std::lock_guard lock(mutex);
      readers.insert(std::this_thread::get_id()), ++reads;
    }
    if (first <= refused && refused < first + dst.n) throw DataError("image " + std::to_string(refused) + " is not there");
    for (Index i = 0; i < dst.n; ++i)
      for (Index c = 0; c < dst.c; ++c)
        for (Index y = dst.row0; y < dst.row0 + dst.rows; ++y)
          for (Index x = 0; x < dst.w; ++x) dst(i, c, y, x) = at(first + i, c, y, x);
  }
};
/// Reads rows of images, and says whether each element has its number and nothing around them was touched.
bool reads_well(const Watched& source, Index first, Index count, Range rows, Index block, int threads) {
  const Shape& s = source.extents;
  std::vector<float> memory(static_cast<std::size_t>(stored_elements(count, s.c, rows.size(), s.w, block)) + 2, -1);
  const auto view = dense_view(memory.data() + 1, count, s.c, rows, s.w, block);
  read_on_threads<float>(source, first, view, threads);
  bool good = memory.front() == -1 && memory.back() == -1;
  const Index spare = round_up(s.c, block) - s.c;   // channels that nobody writes
  good = good && std::count(memory.begin(), memory.end(), -1.0f) == 2 + spare * count * rows.size() * s.w;
  for (Index i = 0; i < count; ++i)
    for (Index c = 0; c < s.c; ++c)
      for (Index y = rows.begin; y < rows.end; ++y)
        for (Index x = 0; x < s.w; ++x) good = good && view(i, c, y, x) == source.at(first + i, c, y, x);
  return good;
}
}   // namespace
TEST_CASE("several threads read what one thread reads, whatever the images, rows and layout") {
  const Random random(11);
  for (std::uint64_t k = 0; k < 60; ++k) {
    const auto pick = [&](std::uint64_t at, Index below) { return static_cast<Index>(random.below(8 * k + at, static_cast<std::uint64_t>(below))); };
    const Shape s{1 + pick(0, 9), 1 + pick(1, 4), 1 + pick(2, 300), 1 + pick(3, 700)};
    const Watched source(s, true);
    const Index first = pick(4, s.n), count = 1 + pick(5, s.n - first), begin = pick(6, s.h), rows = 1 + pick(7, s.h - begin);
    INFO(to_string(s), ", images ", first, " and ", count - 1, " more, rows ", begin, " and ", rows - 1, " more");
    for (const Index block : {Index{1}, s.c, Index{16}})
      CHECK(reads_well(source, first, count, {begin, begin + rows}, block, 1 + static_cast<int>(k % 5)));
  }
}
TEST_CASE("rows are read by several threads only if there are many and the source allows that") {
  const Shape many{6, 3, 256, 256}, few{6, 3, 64, 64}, one{1, 3, 1024, 1024};
  Watched alone(many, false), together(many, true), small(few, true), image(one, true);
  for (Watched* source : {&alone, &together, &small, &image}) CHECK(reads_well(*source, 0, source->extents.n, {0, source->extents.h}, 3, 4));
  CHECK(alone.reads == 1);
  CHECK(alone.readers == std::set{std::this_thread::get_id()});
  CHECK(small.reads == 1);
  CHECK(small.readers == std::set{std::this_thread::get_id()});
  CHECK(together.reads > 1);   // pieces, for as many threads as the machine lets run
  CHECK(together.readers.size() <= 4);
  CHECK(image.reads > 1);
  CHECK(reads_well(together, 0, 6, {0, 256}, 3, 1));
  Watched again(many, true);
  CHECK(reads_well(again, 0, 6, {0, 256}, 3, 1));
  CHECK(again.reads == 1);
}
TEST_CASE("an error of any thread is the error of the read") {
  Watched source({6, 3, 256, 256}, true);
  source.refused = 4;
  CHECK(error_of<DataError>([&] { reads_well(source, 0, 6, {0, 256}, 3, 4); }) == "image 4 is not there");
}
TEST_CASE("the library's sources in memory are read by several threads, and give what one thread reads") {
  const Dataset data = make_shapes({.count = 700});
  const LoaderOptions options{.batch = 700, .seed = 4, .normalization = normalization_of(data), .augmentation = {.flip = true, .pad = 3, .fill = 7}};
  const auto batch = Loader<float>(data, options).batch(1, 0);
  const auto direct = DirectLoader<float>(std::make_shared<const SampleArray>(data), data.labels, options).batch(1, 0);
  const Shape s = batch.shape();
  std::vector<float> numbers(static_cast<std::size_t>(s.count()));
  batch.read(0, dense_view(numbers.data(), s.n, s.c, {0, s.h}, s.w));
  const MemorySource<float> memory(numbers.data(), s);
  REQUIRE(s.count() > 4 * least_read);
  for (const RowSource<float>* source : std::initializer_list<const RowSource<float>*>{&batch, &direct, &memory}) {
    CHECK(source->concurrent_reads());
    for (const Index block : {Index{1}, s.c}) {
      std::vector<float> one(numbers.size()), several(numbers.size());
      source->read(0, dense_view(one.data(), s.n, s.c, {0, s.h}, s.w, block));
      read_on_threads(*source, 0, dense_view(several.data(), s.n, s.c, {0, s.h}, s.w, block), 4);
      CHECK(one == several);
      if (block == 1) CHECK(one == numbers);
    }
  }
}
