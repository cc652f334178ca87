// Tensors of another program as batches: their rows are those that a plain loop over the strides reads, whatever extents, strides, element
// types and layouts are.
#include "interop/dlpack_producer.hpp"
#include <doctest/doctest.h>
#include <lrcnn/lrcnn.hpp>
#include <numeric>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  Index upto(Index low, Index high) { return low + static_cast<Index>(random_.below(count_++, static_cast<std::uint64_t>(high - low + 1))); }
  double number() { return random_.normal(count_++); }

 private:
  Random random_;
  std::uint64_t count_ = 0;
};
/// Where a tensor of some extents lies in memory: dimensions in any order, gaps between them, some backward, some of one element only.
struct Placing {
  std::vector<std::int64_t> extents, strides;
  Index first = 0, elements = 0;
};
Placing random_placing(Draw& draw, Index dimensions) {
  Placing p;
  for (Index d = 0; d < dimensions; ++d) p.extents.push_back(draw.upto(1, 5));
  p.strides.resize(p.extents.size());
  std::vector<std::size_t> order(p.extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[static_cast<std::size_t>(draw.upto(0, static_cast<Index>(i)))]);
  Index step = draw.upto(1, 2);
  for (const std::size_t d : order) {
    const bool expanded = draw.upto(0, 9) == 0, backward = draw.upto(0, 3) == 0;
    p.strides[d] = expanded ? 0 : backward ? -step : step;
    if (backward && !expanded) p.first += step * (p.extents[d] - 1);
    if (!expanded) step = step * p.extents[d] + draw.upto(0, 2);
  }
  const Index before = draw.upto(0, 3);
  p.first += before, p.elements = before + step + 3;
  return p;
}
template <class E>
std::vector<E> random_elements(Draw& draw, Index count) {
  std::vector<E> elements;
  for (Index i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<E, std::uint8_t>) elements.push_back(static_cast<E>(draw.upto(0, 255)));
    else elements.push_back(static_cast<E>(draw.number()));
  }
  return elements;
}
/// Rows of some images, in any layout, are the elements that the strides lead to.
template <class E, class T>
void rows_law(std::uint64_t seed) {
  Draw draw(seed);
  const Index dimensions = draw.upto(3, 4);
  const Placing p = random_placing(draw, dimensions);
  const std::vector<E> elements = random_elements<E>(draw, p.elements);
  Producer producer(elements, p.extents, p.strides, p.first);
  {
    const DlpackSource<T> source{DlpackTensor(producer.give())};
    const auto extent = [&](Index from_end) { return item(p.extents, dimensions - from_end); };
    const auto stride = [&](Index from_end) { return item(p.strides, dimensions - from_end); };
    const Shape shape{dimensions == 4 ? extent(4) : 1, extent(3), extent(2), extent(1)};
    REQUIRE(source.shape() == shape);
    for (const Index block : {Index{1}, Index{4}, shape.c}) {
      const Index first = draw.upto(0, shape.n - 1), images = draw.upto(1, shape.n - first);
      const Index row = draw.upto(0, shape.h - 1);
      const Range rows{row, row + draw.upto(1, shape.h - row)};
      std::vector<T> memory(static_cast<std::size_t>(stored_elements(images, shape.c, rows.size(), shape.w, block)), T{-77});
      const auto view = dense_view(memory.data(), images, shape.c, rows, shape.w, block);
      source.read(first, view);
      Index written = 0;
      for (Index i = 0; i < images; ++i)
        for (Index c = 0; c < shape.c; ++c)
          for (Index y = rows.begin; y < rows.end; ++y)
            for (Index x = 0; x < shape.w; ++x, ++written) {
              const Index at = p.first + (dimensions == 4 ? (first + i) * stride(4) : 0) + c * stride(3) + y * stride(2) + x * stride(1);
              REQUIRE(view(i, c, y, x) == static_cast<T>(item(elements, at)));
            }
      // Channels that only storage has are left alone.
      CHECK(std::count(memory.begin(), memory.end(), T{-77}) == static_cast<Index>(memory.size()) - written);
    }
  }
  CHECK(producer.out() == 0);
}
/// What labels hold in row-major order.
std::vector<std::int64_t> row_major(const Placing& p, const std::function<std::int64_t(Index)>& element) {
  std::vector<std::int64_t> values;
  const auto walk = [&](const auto& self, std::size_t d, Index at) -> void {
    if (d == p.extents.size()) return values.push_back(element(at));
    for (Index i = 0; i < p.extents[d]; ++i) self(self, d + 1, at + i * p.strides[d]);
  };
  walk(walk, 0, p.first);
  return values;
}
template <class E>
void labels_law(std::uint64_t seed) {
  Draw draw(seed);
  const Placing p = random_placing(draw, draw.upto(1, 3));
  std::vector<E> elements;
  for (Index i = 0; i < p.elements; ++i) elements.push_back(static_cast<E>(draw.upto(0, std::is_same_v<E, std::uint8_t> ? 255 : 127)));
  Producer producer(elements, p.extents, p.strides, p.first);
  const std::vector<std::int64_t> want = row_major(p, [&](Index at) { return static_cast<std::int64_t>(item(elements, at)); });
  {
    const bool images = p.extents.size() == 1;
    const DlpackLabels given =
        images ? DlpackLabels::of_images(DlpackTensor(producer.give())) : DlpackLabels::of_pixels(DlpackTensor(producer.give()));
    const Labels& labels = given;
    CHECK(labels.kind() == (images ? LabelKind::images : LabelKind::pixels));
    REQUIRE(labels.elements() == static_cast<Index>(want.size()));
    CHECK(std::equal(want.begin(), want.end(), labels.data()));
    if (!images) CHECK(labels.width() == p.extents.back());
    if (!std::is_same_v<E, std::int32_t>) CHECK(given.copied());
  }
  CHECK(producer.out() == 0);
}
}   // namespace
TEST_CASE("rows of a tensor are those that a plain loop over its strides reads, for all element types, layouts and strides") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    rows_law<float, float>(seed), rows_law<float, double>(seed), rows_law<double, float>(seed), rows_law<double, double>(seed);
    rows_law<float16, float>(seed), rows_law<bfloat16, float>(seed), rows_law<std::uint8_t, float>(seed), rows_law<bfloat16, double>(seed);
  }
}
TEST_CASE("labels of a tensor are its elements in row-major order; dense int32 is used where it lies") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    labels_law<std::int32_t>(seed), labels_law<std::int64_t>(seed), labels_law<std::uint8_t>(seed);
    labels_law<std::int8_t>(seed), labels_law<std::int16_t>(seed);
  }
  Producer dense(std::vector<std::int32_t>{3, 1, 2, 0, 1, 1}, {1, 1, 3, 2});
  const DlpackLabels pixels = DlpackLabels::of_pixels(DlpackTensor(dense.give()));
  CHECK(!pixels.copied());
  CHECK(static_cast<const void*>(pixels.labels().data()) == dense.memory.data());
  CHECK(pixels.labels().height() == 3);
  Producer truths(std::vector<std::uint8_t>{1, 0, 1, 1}, {2, 2});
  truths.tensor.dtype = dlpack::dtype_of<bool>();
  const DlpackLabels mask = DlpackLabels::of_pixels(DlpackTensor(truths.give()));
  CHECK(std::vector<std::int32_t>(mask.labels().data(), mask.labels().data() + 4) == std::vector<std::int32_t>{1, 0, 1, 1});
}
TEST_CASE("targets are used where they lie if they are dense float32, and converted otherwise") {
  std::vector<float> values(2 * 3 * 4 * 5);
  std::iota(values.begin(), values.end(), -7.0f);
  Producer dense(values, {2, 3, 4, 5}), last(values, {2, 3, 4, 5}, {60, 1, 15, 3}),
      one(std::vector<double>(values.begin(), values.begin() + 60), {3, 4, 5});
  const DlpackLabels in_place = DlpackLabels::of_targets(DlpackTensor(dense.give()));
  CHECK(!in_place.copied());
  CHECK(static_cast<const void*>(in_place.labels().values(0, 0, 0)) == dense.memory.data());
  const DlpackLabels copied = DlpackLabels::of_targets(DlpackTensor(last.give()));
  CHECK(copied.copied());
  for (Index i = 0; i < 2; ++i)
    for (Index c = 0; c < 3; ++c)
      for (Index y = 0; y < 4; ++y)
        for (Index x = 0; x < 5; ++x) CHECK(copied.labels().values(i, c, y)[x] == item(values, i * 60 + c + y * 15 + x * 3));
  const DlpackLabels image = DlpackLabels::of_targets(DlpackTensor(one.give()));
  CHECK((image.labels().size() == 1 && image.labels().channels() == 3 && image.labels().values(0, 2, 3)[4] == values[59]));
}
TEST_CASE("the stride of a dimension with one index only may be any number") {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  Producer images(std::vector<float>{1, 2, 3}, {1, 1, 3, 1}, {any, -any, 1, any});
  const DlpackSource<float> source{DlpackTensor(images.give())};
  std::array<float, 3> read{};
  source.read(0, dense_view(read.data(), 1, 1, {0, 3}, 1));
  CHECK(read == std::array<float, 3>{1, 2, 3});
  Producer classes(std::vector<std::int64_t>{4, 5}, {1, 2, 1}, {any, 1, -any});
  const DlpackLabels labels = DlpackLabels::of_pixels(DlpackTensor(classes.give()));
  CHECK(labels.labels().classes(0, 1)[0] == 5);
}
TEST_CASE("bytes are normalised as those of data sets are") {
  const Dataset data = make_shapes({.count = 3, .channels = 3, .h = 9, .w = 11});
  const Normalization normalization = normalization_of(data);
  const Loader<float> loader(data, {.batch = 3, .shuffle = false, .normalization = normalization});
  Producer producer(data.images, {3, 3, 9, 11});
  const DlpackSource<float> source(DlpackTensor(producer.give()), normalization);
  std::vector<float> got(static_cast<std::size_t>(source.shape().count())), want(got.size());
  source.read(0, dense_view(got.data(), 3, 3, {0, 9}, 11));
  for (auto& batch : loader.epoch(0)) batch.read(0, dense_view(want.data(), 3, 3, {0, 9}, 11));
  CHECK(got == want);
}
TEST_CASE("a step on tensors is the step on memory, to the bit: channels last and labels of 64 bits") {
  using Net = Sequential<Conv<6>, ReLU, MaxPool<>, Conv<8>, ReLU, GlobalAvgPool, Linear<4>>;
  using Rows = Policy<Share<4>, RecomputeAll>;
  const Input input{3, 2, 24, 14};
  Draw draw(5);
  const std::vector<float> pixels = random_elements<float>(draw, input.count());
  std::vector<float> last(pixels.size());
  for (Index i = 0; i < input.n; ++i)
    for (Index c = 0; c < input.c; ++c)
      for (Index p = 0; p < input.h * input.w; ++p)
        item(last, (i * input.h * input.w + p) * input.c + c) = item(pixels, (i * input.c + c) * input.h * input.w + p);
  Producer images(last, {3, 2, 24, 14}, {24 * 14 * 2, 1, 14 * 2, 2}), classes(std::vector<std::int64_t>{2, 0, 3}, {3});
  Trainer<Net, Rows, Reference<float>> ours(input, Sgd{.lr = 0.1}), theirs(input, Sgd{.lr = 0.1});
  const std::vector<std::int32_t> labels{2, 0, 3};
  for (int i = 0; i < 2; ++i) {
    const StepReport a = ours.step(MemorySource<float>(pixels.data(), input), labels);
    const StepReport b = theirs.step(DlpackSource<float>{DlpackTensor(images.give())}, DlpackLabels::of_images(DlpackTensor(classes.give())));
    CHECK(a.loss == b.loss);
  }
  CHECK(ours.read_parameters() == theirs.read_parameters());
  CHECK((images.given == 2 && images.out() == 0 && classes.out() == 0));
}
TEST_CASE("a tensor goes back once, when the last copy ends, or when it is refused") {
  Producer producer(std::vector<float>(2 * 3 * 4 * 5), {2, 3, 4, 5});
  {
    const DlpackTensor tensor(producer.give());
    const DlpackTensor copy = tensor;
    const DlpackSource<float> source(copy), other(tensor);
    CHECK(producer.out() == 1);
  }
  CHECK((producer.given == 1 && producer.returned == 1));
  {
    const DlpackTensor tensor(producer.give_versioned(dlpack::flag_read_only));
    CHECK(tensor.read_only());
    CHECK(DlpackTensor(producer.give_versioned()).read_only() == false);
    CHECK(producer.out() == 1);
  }
  CHECK(producer.returned == 3);
  CHECK_THROWS_AS(DlpackLabels::of_images(DlpackTensor(producer.give())), DataError);
  CHECK(producer.returned == 4);
  CHECK_THROWS_AS(DlpackTensor(producer.give_versioned(0, 2)), DataError);
  CHECK(producer.returned == 5);
  producer.tensor.data = nullptr;
  CHECK_THROWS_AS(DlpackTensor(producer.give()), DataError);
  CHECK(producer.returned == 6);
  DLManagedTensor unowned{producer.tensor, nullptr, nullptr};   // a struct without a deleter is the producer's own affair
  unowned.dl_tensor.data = producer.memory.data();
  CHECK(DlpackSource<float>{DlpackTensor(&unowned)}.shape() == Shape{2, 3, 4, 5});
}
