// data/crops.hpp and what it is made of: crops that say where they come from, the same however they are made.
#include <lrcnn/data/crops.hpp>
#include "support.hpp"
#include "support/drawn_image.hpp"
#include <doctest/doctest.h>
#include <limits>
#include <map>
#include <numeric>
#include <set>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
std::shared_ptr<TileCache> cache() { return std::make_shared<TileCache>(TileCacheOptions{.bytes = 64 << 10, .threads = 0}); }
constexpr Index rows = 90, columns = 70;
/// An image whose first channel says where a pixel is, as y * columns + x, and further ones likewise, with an offset.
CachedImage image(Index channels = 2, SampleType sample = SampleType::u16) {
  const auto drawn = draw_image(rows, columns, channels, 16, 32, sample);
  drawn->value = [](Index y, Index x, Index c) { return static_cast<int>(y * columns + x + 10000 * c); };
  return {drawn, cache()};
}
/// Its mask says the same, as a class.
CachedImage mask(std::function<int(Index, Index)> of = {}, SampleType sample = SampleType::u16) {
  const auto drawn = draw_image(rows, columns, 1, 32, 16, sample);
  drawn->value = [of](Index y, Index x, Index) { return of ? of(y, x) : static_cast<int>(y * columns + x); };
  return {drawn, cache()};
}
/// A disc of class 1 and a small square of class 2 on 0.
int shapes(Index y, Index x) {
  if (y >= 60 && y < 64 && x >= 50 && x < 54) return 2;
  return (y - 30) * (y - 30) + (x - 20) * (x - 20) < 64 ? 1 : 0;
}
struct Made {
  Index epoch, position;
  std::vector<float> values;
  std::vector<std::int32_t> classes;
  std::vector<CropSample> crops;
  friend bool operator==(const Made&, const Made&) = default;
};
Made made(const CropBatch<float>& b) {
  const Labels labels = b.labels();
  return {b.epoch(),
          b.position(),
          {b.values().begin(), b.values().end()},
          {labels.data(), labels.data() + labels.elements()},
          {b.crops().begin(), b.crops().end()}};
}
std::vector<Made> all(const CropLoader<float>& loader, Index epoch, Index first = 0) {
  std::vector<Made> result;
  for (auto& batch : loader.epoch(epoch, first)) result.push_back(made(batch));
  return result;
}
CropOptions everything() {
  CropOptions o{.height = 24, .width = 24, .crops = 22, .batch = 4, .seed = 5};
  o.augmentation = {.flip_x = true, .flip_y = true, .quarter_turns = true, .jitter = {.brightness = 0.3, .contrast = 0.4, .saturation = 0}};
  o.focus = {.classes = {1, 2}, .share = 0.5};
  o.normalization = {{0.1, 0.2}, {0.5, 0.25}};
  return o;
}
/// Where a pixel of the first channel says that it is. Without jitter and normalisation.
Pair place(float value) {
  const auto at = std::lround(static_cast<double>(value) * 65535);
  return {at / columns, at % columns};
}
}   // namespace
TEST_CASE("crops: an epoch is the same whatever makes it, and from any batch on") {
  const std::vector<CropImage> images{{.image = image(), .mask = mask(shapes)}, {.image = image(), .mask = mask(shapes)}};
  CropOptions options = everything();
  options.threads = 0, options.prefetch = 0;
  const CropLoader<float> plain(images, options);
  const auto expected = all(plain, 3);
  REQUIRE(expected.size() == 6);
  CHECK(expected.back().crops.size() == 2);
  for (const auto& [threads, prefetch] : std::vector<std::pair<Index, Index>>{{1, 1}, {1, 5}, {3, 2}, {4, 9}}) {
    options.threads = threads, options.prefetch = prefetch;
    const CropLoader<float> loader(images, options);
    CHECK(all(loader, 3) == expected);
    for (Index first = 0; first <= 6; ++first) CHECK(all(loader, 3, first) == std::vector(expected.begin() + first, expected.end()));
    for (Index k = 0; k < 6; ++k) CHECK(made(loader.batch(3, k)) == item(expected, k));
  }
  CHECK(all(plain, 4) != expected);
  options.seed = 6;
  CHECK(all(CropLoader<float>(images, options), 3) != expected);
  options.drop_last = true;
  const CropLoader<float> dropping(images, options);
  CHECK(all(dropping, 0).size() == 5);
  CHECK(dropping.batches() == 5);
  CHECK(dropping.crops() == 20);
}
TEST_CASE("crops: an epoch outlives its loader, and may be left early") {
  auto loader = std::make_unique<CropLoader<float>>(std::vector<CropImage>{{.image = image()}}, CropOptions{.height = 8, .width = 8, .threads = 2});
  auto epoch = loader->epoch(0);
  loader.reset();
  CHECK(epoch.next() != nullptr);
}
TEST_CASE("crops: pixels are those of their places, and masks move with them") {
  CropOptions options{.height = 17, .width = 17, .crops = 200, .batch = 8, .seed = 2};
  options.augmentation = {.flip_x = true, .flip_y = true, .quarter_turns = true};
  const CropLoader<float> loader({{.image = image(), .mask = mask()}}, options);
  CHECK(loader.input() == Input{8, 2, 17, 17});
  std::map<std::pair<bool, int>, Index> orientations;
  for (auto& batch : loader.epoch(0)) {
    const Labels labels = batch.labels();
    REQUIRE(labels.kind() == LabelKind::pixels);
    REQUIRE(labels.size() == batch.size());
    for (Index i = 0; i < batch.size(); ++i) {
      const CropSample& crop = item(batch.crops(), i);
      ++orientations[{crop.orientation.mirrored, crop.orientation.quarter_turns}];
      bool right = true;
      for (Index y = 0; y < 17; ++y)
        for (Index x = 0; x < 17; ++x) {
          const Pair in = source_of(crop.orientation, {17, 17}, {y, x});
          const Pair at{crop.region.rows.begin + in.h, crop.region.columns.begin + in.w};
          const float first = item(batch.values(), (2 * i * 17 + y) * 17 + x), second = item(batch.values(), ((2 * i + 1) * 17 + y) * 17 + x);
          right = right && place(first) == at && second == static_cast<float>((10000 + at.h * columns + at.w) / 65535.0);
          right = right && labels.classes(i, y)[x] == at.h * columns + at.w;
        }
      CHECK(right);
    }
  }
  CHECK(orientations.size() == 8);
  for (const auto& [which, count] : orientations) CHECK(std::abs(count - 25.0) < 5 * std::sqrt(25 * 7 / 8.0));
}
TEST_CASE("crops: rows are read in any layout") {
  const CropLoader<double> loader({{.image = image()}}, {.height = 9, .width = 8, .crops = 3, .batch = 3});
  const auto batch = loader.batch(0, 0);
  CHECK(batch.labels().kind() == LabelKind::images);
  for (const Index block : {1, 8})
    for (Index begin = 0; begin < 9; begin += 4) {
      std::vector<double> out(static_cast<std::size_t>(stored_elements(2, 2, 9, 8, block)), -1);
      const auto view = dense_view(out.data(), 2, 2, {0, 9}, 8, block).slice({begin, begin + 1});
      batch.read(1, view);
      for (Index i = 0; i < 2; ++i)
        for (Index c = 0; c < 2; ++c)
          for (Index x = 0; x < 8; ++x) CHECK(view(i, c, begin, x) == item(batch.values(), (((1 + i) * 2 + c) * 9 + begin) * 8 + x));
    }
  std::vector<double> out(1000);
  CHECK(error_of([&] {
          batch.read(2, dense_view(out.data(), 2, 2, {0, 9}, 8));
        }) ==
        "lrcnn: batch of 3x2x9x8 crops is asked for images 2 to 3, rows 0 to 8 of 2 channels and 8 columns; what is read lies within the batch; "
        "give the network the batch's shape");
}
TEST_CASE("crops: values of all samples are normalised by channel, from the channels that are wanted") {
  const auto check_values = [](SampleType sample, double full) {
    const auto drawn = draw_image(40, 40, 4, 16, 16, sample);
    CropOptions options{.height = 30, .width = 31, .crops = 2, .channels = {2, 0}, .normalization = {{0.25, 0.5}, {0.125, 2}}, .batch = 2};
    const CropLoader<float> loader({{.image = {drawn, cache()}, .label = 7}}, options);
    const auto batch = loader.batch(0, 0);
    CHECK(std::vector<std::int32_t>(batch.labels().on_host().begin(), batch.labels().on_host().end()) == std::vector<std::int32_t>{7, 7});
    for (Index i = 0; i < 2; ++i)
      for (Index c = 0; c < 2; ++c)
        for (Index y = 0; y < 30; ++y)
          for (Index x = 0; x < 31; ++x) {
            const ImageRegion& r = item(batch.crops(), i).region;
            const int stored = drawn_sample(r.rows.begin + y, r.columns.begin + x, c == 0 ? 2 : 0);
            const double value = (stored / full - (c == 0 ? 0.25 : 0.5)) / (c == 0 ? 0.125 : 2);
            REQUIRE(item(batch.values(), ((2 * i + c) * 30 + y) * 31 + x) == static_cast<float>(value));
          }
  };
  check_values(SampleType::u8, 255);
  check_values(SampleType::u16, 65535);
  check_values(SampleType::f32, 1);
  check_values(SampleType::i16, 1);
}
TEST_CASE("crops: regions that are used, and regions that are held out") {
  CropImage from{.image = image()};
  from.regions = {{{0, 50}, {0, 40}}, {{30, 90}, {20, 70}}};   // they overlap
  from.held_out = {{{40, 45}, {30, 60}}, {{0, 3}, {0, 70}}};
  CropOptions options{.height = 12, .width = 14, .crops = 5000, .batch = 100, .seed = 9};
  const CropLoader<float> loader({from}, options);
  // By hand: all places where a crop may be.
  std::map<std::pair<Index, Index>, Index> counts;
  for (Index y = 0; y + 12 <= rows; ++y)
    for (Index x = 0; x + 14 <= columns; ++x) {
      const ImageRegion crop{{y, y + 12}, {x, x + 14}};
      bool good = from.regions[0].contains(crop) || from.regions[1].contains(crop);
      for (const ImageRegion& r : from.held_out) good = good && empty(intersect(r, crop));
      if (good) counts[{y, x}] = 0;
    }
  for (auto& batch : loader.epoch(0))
    for (const CropSample& crop : batch.crops()) {
      const auto at = counts.find({crop.region.rows.begin, crop.region.columns.begin});
      REQUIRE(at != counts.end());
      ++at->second;
    }
  // Each place is as likely: a chi-squared statistic, whose deviation is sqrt(2 n).
  const double expected = 5000.0 / static_cast<double>(counts.size()), n = static_cast<double>(counts.size());
  double squares = 0;
  for (const auto& [at, count] : counts) squares += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
  CHECK(std::abs(squares - n) < 5 * std::sqrt(2 * n));
}
TEST_CASE("crops: a region that is held out altogether gives no crop, and an image without other places is refused") {
  const ImageRegion used{{40, 90}, {0, 70}}, tested{{0, 30}, {0, 40}};
  CropImage from{.image = image(), .regions = {tested, used}, .held_out = {tested}};
  for (const CropOrder order : {CropOrder::random, CropOrder::tiles}) {
    const CropLoader<float> loader({from}, {.height = 12, .width = 14, .order = order, .crops = 100, .batch = 10});
    for (auto& batch : loader.epoch(0))
      for (const CropSample& crop : batch.crops()) CHECK(used.contains(crop.region));
  }
  from.regions = {tested};
  CHECK(error_of([&] {
          CropLoader<float>({from, {.image = image()}}, {.height = 12, .width = 14});
        }).starts_with("lrcnn: crops of 12x14 find no place in image 'drawn.img'; "));
}
TEST_CASE("crop places: as many and those that there are, around each pixel as well") {
  const Random random(20261124);
  for (std::uint64_t round = 0; round < 40; ++round) {
    std::uint64_t draws = 100 * round;
    const auto below = [&](Index bound) { return static_cast<Index>(random.below(draws++, static_cast<std::uint64_t>(bound))); };
    ImageInfo info;
    info.height = 5 + below(12), info.width = 5 + below(12), info.path = "x";
    const Pair crop{1 + below(4), 1 + below(4)};
    const auto region = [&] {
      const Index y = below(info.height), x = below(info.width);
      return ImageRegion{{y, y + 1 + below(info.height - y)}, {x, x + 1 + below(info.width - x)}};
    };
    std::vector<ImageRegion> used, held_out;
    for (Index i = below(4); i > 0; --i) used.push_back(region());
    for (Index i = below(3); i > 0; --i) held_out.push_back(region());
    const CropPlaces places(info, used, held_out, crop);
    std::set<std::pair<Index, Index>> expected, got;
    for (Index y = 0; y + crop.h <= info.height; ++y)
      for (Index x = 0; x + crop.w <= info.width; ++x) {
        const ImageRegion r{{y, y + crop.h}, {x, x + crop.w}};
        bool good = used.empty();
        for (const ImageRegion& u : used) good = good || u.contains(r);
        for (const ImageRegion& h : held_out) good = good && empty(intersect(h, r));
        if (good) expected.insert({y, x});
        CHECK(places.contains({y, x}) == good);
      }
    CAPTURE(round);
    REQUIRE(places.count() == static_cast<Index>(expected.size()));
    for (Index i = 0; i < places.count(); ++i) got.insert({places.place(i).h, places.place(i).w});
    CHECK(got == expected);
    for (Index y = 0; y < info.height; ++y)
      for (Index x = 0; x < info.width; ++x) {
        std::set<std::pair<Index, Index>> near, found;
        for (const auto& [top, left] : expected)
          if (top <= y && y < top + crop.h && left <= x && x < left + crop.w) near.insert({top, left});
        for (Index i = 0; i < places.count_around({y, x}); ++i) found.insert({places.place_around({y, x}, i).h, places.place_around({y, x}, i).w});
        CHECK(found == near);
        CHECK(places.count_around({y, x}) == static_cast<Index>(near.size()));
        CHECK(places.shows({y, x}) == !near.empty());
      }
    CHECK(error_of([&] { places.place(places.count()); }) ==
          "lrcnn: a place of a crop is asked for beyond the last; places count from 0; ask for one below count()");
  }
}
TEST_CASE("class index: counts and finds each pixel that crops can show, once") {
  const auto drawn = draw_image(300, 270, 1, 70, 90, SampleType::i32);
  drawn->value = [](Index y, Index x, Index) { return static_cast<int>((y / 5 + x / 7) % 4 == 3 ? (y + x) % 3 : 5); };
  const CachedImage of(drawn, cache());
  const CropPlaces places(of.info(), {{{0, 290}, {3, 270}}}, {{{100, 140}, {0, 200}}}, {20, 20});
  ClassIndex index({2, 0, 9});
  const MaskClasses values;
  index.add(0, {of, values}, places);
  CHECK(drawn->decoded == ceil_div(300, 70) * ceil_div(270, 90));   // each tile once
  for (const std::size_t slot : {0u, 1u, 2u}) {
    std::set<std::pair<Index, Index>> expected, got;
    for (Index y = 0; y < 300; ++y)
      for (Index x = 0; x < 270; ++x)
        if (drawn->value(y, x, 0) == index.classes()[slot] && places.count_around({y, x}) > 0) expected.insert({y, x});
    REQUIRE(index.count(slot) == static_cast<Index>(expected.size()));
    CHECK((slot == 2) == expected.empty());
    for (Index i = 0; i < index.count(slot); i += i < 50 ? 1 : 97) {
      const auto pixel = index.pixel(
          slot, i,
          [&](Index) {
            return ClassMask{of, values};
          },
          [&](Index) -> const CropPlaces& { return places; });
      CHECK(expected.contains({pixel.at.h, pixel.at.w}));
      CHECK(got.insert({pixel.at.h, pixel.at.w}).second);
    }
  }
}
TEST_CASE("crops: with classes to show, a mask may have values without a class where no crop lies") {
  // Regions are annotated, the rest is not; of a region, a part is held out.
  const ImageRegion left{{20, 60}, {5, 30}}, right{{50, 80}, {40, 65}}, out{{50, 60}, {40, 65}};
  const auto annotated = [&](Index y, Index x) {
    const ImageRegion pixel{{y, y + 1}, {x, x + 1}};
    return (left.contains(pixel) || right.contains(pixel)) && !out.contains(pixel);
  };
  Pair odd{-1, -1};   // an annotated pixel that has a value without a class
  const auto value = [&](Index y, Index x) { return !annotated(y, x) || (y == odd.h && x == odd.w) ? 77 : (y + x) % 3; };
  CropImage from{.image = image(1), .mask = mask(value), .regions = {left, right}, .held_out = {out}};
  CropOptions options{.height = 9, .width = 8, .crops = 200, .focus = {.classes = {1}, .share = 0.5}, .batch = 10};
  options.classes = {.table = {{0, 0}, {1, 1}, {2, 2}}};
  const CropLoader<float> loader({from}, options);
  for (auto& batch : loader.epoch(0))
    for (const CropSample& crop : batch.crops()) CHECK((left.contains(crop.region) || right.contains(crop.region)));
  for (const Pair at : {Pair{20, 5}, Pair{59, 29}, Pair{60, 40}}) {
    odd = at, from.mask = mask(value);
    CHECK(error_of([&] { CropLoader<float>({from}, options); }) ==
          "lrcnn: mask 'drawn.img' has the value 77 in row " + std::to_string(at.h) + ", column " + std::to_string(at.w) +
              "; the table of classes has 0, 1, 2; correct the mask, add the value to the table, or give "
              "MaskClasses::others a class that the loss ignores");
  }
}
TEST_CASE("crops: a share of them shows classes, each class as often, each of its pixels as likely") {
  CropOptions options{.height = 16, .width = 16, .crops = 3000, .focus = {.classes = {2, 1}, .share = 0.4}, .batch = 50, .seed = 3};
  const CropLoader<float> loader({{.image = image(1), .mask = mask(shapes)}}, options);
  Index showing_2 = 0, showing_1 = 0, number = 0, focused = 0;
  std::map<Index, Index> rows_of_square;   // how far down class 2 is in crops that have to show it
  for (auto& batch : loader.epoch(1))
    for (Index i = 0; i < batch.size(); ++i, ++number) {
      std::set<std::int32_t> here;
      for (Index y = 0; y < 16; ++y)
        for (Index x = 0; x < 16; ++x) here.insert(batch.labels().classes(i, y)[x]);
      showing_1 += here.contains(1), showing_2 += here.contains(2);
      const bool wanted = (number + 1) * 2 / 5 > number * 2 / 5;
      if (!wanted) continue;
      const std::int32_t which = focused++ % 2 == 0 ? 2 : 1;
      REQUIRE(here.contains(which));
      if (which == 2) ++rows_of_square[60 - item(batch.crops(), i).region.rows.begin];
    }
  CHECK(focused == 1200);
  CHECK(showing_1 >= 600);
  CHECK(showing_2 >= 600);
  // A pixel of 4 rows of a square lies in any of 16 rows of the crop: the square's first
  // row lies in rows -3 to 15, with weights 1 2 3 4 4 ... 4 3 2 1.
  for (const auto& [row, count] : rows_of_square) {
    const double share = std::min<double>({static_cast<double>(row + 4), 4.0, static_cast<double>(16 - row)}) / 64;
    CHECK(std::abs(static_cast<double>(count) - 600 * share) < 5 * std::sqrt(600 * share) + 1);
  }
  CHECK(rows_of_square.size() == 19);
  // The image's edges do not keep crops away: pixels at the edge are found.
  const CropLoader<float> edge({{.image = image(1), .mask = mask([](Index y, Index x) { return y == 0 && x == columns - 1 ? 3 : 0; })}},
                               {.height = 20, .width = 20, .crops = 20, .focus = {.classes = {3}, .share = 1}, .batch = 20});
  const auto at_edge = edge.batch(0, 0);
  for (const CropSample& crop : at_edge.crops()) CHECK(crop.region == ImageRegion{{0, 20}, {columns - 20, columns}});
}
TEST_CASE("crops: the share that shows classes is counted over epochs, so that each class gets as many however short they are") {
  // Classes 1 to 20 have a pixel each, so a crop of one pixel shows one of them if it is of the focus, and hardly ever otherwise.
  const auto dots = [](Index y, Index x) { return static_cast<int>(y == 7 && x < 20 ? x + 1 : 0); };
  const std::vector<CropImage> images{{.image = image(1), .mask = mask(dots)}};
  std::vector<std::int32_t> twenty(20);
  std::iota(twenty.begin(), twenty.end(), 1);
  struct Case {
    Index crops, batch, tenths;   ///< of the crops are of the focus
    bool drop_last;
  };
  for (const Case& c : std::array<Case, 5>{{{100, 50, 1, false}, {4, 4, 2, false}, {10, 4, 3, true}, {7, 4, 7, false}, {1, 1, 3, false}}}) {
    CAPTURE(c.crops);
    CropOptions options{.height = 1, .width = 1, .crops = c.crops, .batch = c.batch, .drop_last = c.drop_last, .threads = 0};
    options.focus = {.classes = twenty, .share = static_cast<double>(c.tenths) / 10};
    const CropLoader<float> loader(images, options);
    std::map<std::int32_t, Index> wanted_of;
    Index number = 0, focused = 0;   // of all epochs
    for (Index epoch = 0; number < 600; ++epoch)
      for (auto& of_epoch : loader.epoch(epoch))
        for (Index i = 0; i < of_epoch.size(); ++i, ++number) {
          if ((number + 1) * c.tenths / 10 == number * c.tenths / 10) continue;
          const std::int32_t wanted = item(twenty, focused++ % 20);
          REQUIRE(of_epoch.labels().classes(i, 0)[0] == wanted);
          ++wanted_of[wanted];
        }
    CHECK(std::abs(focused - number * c.tenths / 10) <= 1);
    CHECK(wanted_of.size() == 20);
    for (const auto& [of, count] : wanted_of) CHECK(std::abs(count - focused / 20) <= 1);
  }
  // Numbers grow large: in epochs of ten, three of ten crops stay the same three.
  CropOptions options{.height = 1, .width = 1, .crops = 10, .focus = {.classes = {1}, .share = 0.3}, .batch = 10, .threads = 0};
  const CropLoader<float> tens(images, options);
  for (const Index epoch : {Index{0}, Index{999'999}, Index{3'000'000'017}, Index{70'000'000'000}}) {
    CAPTURE(epoch);
    const auto of_epoch = tens.batch(epoch, 0);
    for (Index i = 0; i < 10; ++i) CHECK(of_epoch.labels().classes(i, 0)[0] == (i == 3 || i == 6 || i == 9 ? 1 : 0));
  }
  const auto last = tens.batch(std::numeric_limits<Index>::max(), 0);
  CHECK(last.size() == 10);
}
TEST_CASE("crops: images in proportion to their places, or alike") {
  const auto small = draw_image(20, 20, 1, 16, 16), large = draw_image(40, 68, 1, 16, 16);
  std::vector<CropImage> images{{.image = {small, cache()}, .label = 0}, {.image = {large, cache()}, .label = 1}};
  for (const bool alike : {false, true}) {
    const CropLoader<float> loader(images, {.height = 16, .width = 16, .crops = 2000, .images_alike = alike, .batch = 100});
    double of_small = 0;
    for (auto& batch : loader.epoch(0))
      for (Index i = 0; i < batch.size(); ++i) {
        CHECK(item(batch.labels().on_host(), i) == item(batch.crops(), i).image);
        of_small += item(batch.crops(), i).image == 0;
      }
    const double p = alike ? 0.5 : 25.0 / (25 + 25 * 53);
    CHECK(std::abs(of_small - 2000 * p) < 5 * std::sqrt(2000 * p * (1 - p)));
  }
}
TEST_CASE("crops: tiles show each pixel, in order, the same every epoch") {
  for (const Index overlap : {0, 5}) {
    CropOptions options = everything();
    options.focus = {}, options.normalization = {}, options.order = CropOrder::tiles, options.overlap = overlap;
    const CropLoader<float> loader({{.image = image(), .mask = mask()}, {.image = image(), .mask = mask()}}, options);
    std::map<std::pair<Index, Index>, Index> seen;
    Index tiles = 0;
    ImageRegion last{{-1, 0}, {}};
    for (auto& batch : loader.epoch(0))
      for (Index i = 0; i < batch.size(); ++i, ++tiles) {
        const CropSample& crop = item(batch.crops(), i);
        CHECK(crop.orientation == Orientation{});
        CHECK(crop.factors == ColorFactors{});
        if (crop.image == 1) continue;
        CHECK(std::pair(crop.region.rows.begin, crop.region.columns.begin) > std::pair(last.rows.begin, last.columns.begin));
        last = crop.region;
        for (Index y = 0; y < 24; ++y)
          for (Index x = 0; x < 24; ++x) {
            const Pair at = place(item(batch.values(), (2 * i * 24 + y) * 24 + x));
            ++seen[{at.h, at.w}];
          }
      }
    CHECK(seen.size() == rows * columns);
    CHECK(tiles == loader.crops());
    CHECK(tiles == 2 * (overlap == 0 ? 4 * 3 : 5 * 4));
    CHECK(all(loader, 0).size() == all(loader, 1).size());
    CHECK(all(loader, 0)[0].values == all(loader, 1)[0].values);
  }
  // Regions, and tiles beside what is held out.
  CropImage from{.image = image()};
  from.regions = {{{10, 50}, {0, 40}}}, from.held_out = {{{10, 11}, {0, 1}}};
  const CropLoader<float> loader({from}, {.height = 20, .width = 20, .order = CropOrder::tiles, .batch = 8});
  const auto batch = loader.batch(0, 0);
  REQUIRE(batch.size() == 3);
  CHECK(batch.crops()[0].region == ImageRegion{{10, 30}, {20, 40}});
  CHECK(batch.crops()[2].region == ImageRegion{{30, 50}, {20, 40}});
}
TEST_CASE("crops: colours change within their bounds, by crop, and clamped where values have a full scale") {
  const auto drawn = draw_image(40, 40, 3, 16, 16);
  drawn->value = [](Index, Index x, Index c) { return c == 0 ? 100 : c == 1 ? 200 : static_cast<int>(50 + x % 2); };
  CropOptions options{.height = 8, .width = 8, .crops = 300, .batch = 30};
  options.augmentation.jitter = {.brightness = 0.5, .contrast = 0.25, .saturation = 2};
  const CropLoader<float> loader({{.image = {drawn, cache()}}}, options);
  double least = 9, most = 0;
  std::set<double> different;
  for (auto& batch : loader.epoch(0)) {
    for (const CropSample& crop : batch.crops()) {
      const auto& [brightness, contrast, saturation] = crop.factors;
      CHECK((0.5 <= brightness && brightness <= 1.5));
      CHECK((0.75 <= contrast && contrast <= 1.25));
      CHECK((0 <= saturation && saturation <= 3));
      least = std::min(least, brightness), most = std::max(most, brightness);
      different.insert(brightness);
    }
    for (const float v : batch.values()) REQUIRE((0 <= v && v <= 1));
  }
  CHECK(least < 0.55);
  CHECK(most > 1.45);
  CHECK(different.size() == 300);
}
TEST_CASE("crops: a tile that cannot be decoded ends the epoch with its error, after the batches before it") {
  const auto drawn = draw_image(64, 64, 1, 16, 16);
  CropOptions options{.height = 16, .width = 16, .order = CropOrder::tiles, .batch = 1, .prefetch = 3, .threads = 2};
  drawn->before = [](Index row, Index column) {
    if (row == 1 && column == 2) throw DataError("tile 6 of 'drawn.img' is damaged");
  };
  const CropLoader<float> loader({{.image = {drawn, cache()}}}, options);
  Index count = 0;
  CHECK(error_of([&] {
          for ([[maybe_unused]] auto& batch : loader.epoch(0)) ++count;
        }) == "tile 6 of 'drawn.img' is damaged");
  CHECK(count == 6);
  CHECK(all(loader, 0, 7).size() == 9);   // one can go on behind it
}
TEST_CASE("crops: what cannot be done is said") {
  const auto text = [](CropImage from, CropOptions options, bool twice = false) {
    std::vector<CropImage> images{from};
    if (twice) images.push_back({.image = image()});
    return error_of([&] { CropLoader<float>(images, options); });
  };
  const CropOptions good{.height = 20, .width = 10};
  const CropImage masked{.image = image(), .mask = mask(shapes)};
  CHECK(error_of([&] { CropLoader<float>({}, good); }) == "lrcnn: crops of no image are to be made; there is at least one; give the images");
  CropOptions o = good;
  o.batch = 0;
  CHECK(text(masked, o) ==
        "lrcnn: 1000 crops of 20x10 in batches of 0, 2 made ahead by 1 threads; there is at least one crop of one pixel in a batch, and no number is "
        "negative; choose other numbers");
  o = good, o.overlap = 10;
  CHECK(text(masked, o) ==
        "lrcnn: tiles of 20x10 that share 10 rows and columns; neighbours share fewer than a tile has, and not less than 0; choose another overlap");
  o = good, o.augmentation.quarter_turns = true;
  CHECK(text(masked, o) ==
        "lrcnn: crops of 20x10 are to be turned by 90 degrees; only a square keeps its extents; take square crops, or flips alone");
  o = good, o.focus.share = 0.5;
  CHECK(text(masked, o) ==
        "lrcnn: a share of 0.500000 of the crops is to show one of 0 classes; a share is from 0 to 1, and is of at least one class; choose another "
        "share, or name the classes");
  o.focus.classes = {1};
  CHECK(
      text({.image = image()}, o) ==
      "lrcnn: crops are to show certain classes, and image 'drawn.img' has no mask; masks say where classes are; give masks, or set the share to 0");
  o.focus.classes = {1, 4};
  CHECK(
      text(masked, o) ==
      "lrcnn: crops are to show class 4, which no mask has where crops may lie; a share of the crops shows each of the classes; leave the class out, "
      "or hold smaller regions out");
  CHECK(
      text(masked, good, true) ==
      "lrcnn: image 'drawn.img' has no mask, and image 'drawn.img' has one; either all images have masks, or none; give the missing masks, or labels "
      "for all");
  o = good, o.channels = {0, 2};
  CHECK(text(masked, o) == "lrcnn: channel 2 of image 'drawn.img' is to be read; it has channels 0 to 1; choose channels that are there");
  CropImage from = masked;
  from.regions = {{{5, 20}, {0, 30}}};
  CHECK(
      text(from, good) ==
      "lrcnn: crops of 20x10 are to lie in rows 5 to 19, columns 0 to 29 of image 'drawn.img'; a region is at least as large as a crop; take smaller "
      "crops, or larger regions");
  from.regions = {{{75, 95}, {0, 30}}};
  CHECK(text(from, good) ==
        "lrcnn: region of rows 75 to 94, columns 0 to 29 of image 'drawn.img'; a region has a pixel at least and lies within the image, which has 90 "
        "rows and 70 columns; choose another region");
  from = masked, from.held_out = {{{15, 75}, {0, 70}}};
  CHECK(text(from, good) ==
        "lrcnn: crops of 20x10 find no place in image 'drawn.img'; a crop lies within a region that is used and touches none that is held out; take "
        "smaller crops, or other regions");
  o = good, o.height = 91;
  CHECK(text(masked, o).starts_with("lrcnn: crops of 91x10 find no place in image 'drawn.img'; "));
  from = masked, from.held_out.clear();
  for (const Index row : {10, 29, 31, 50, 65, 80}) from.held_out.push_back({{row, row + 1}, {0, 70}});
  o = {.height = 15, .width = 70, .order = CropOrder::tiles};
  CHECK(text(from, o) ==
        "lrcnn: each tile of 15x70 has a pixel that is held out; an epoch has at least one tile; take smaller tiles, more overlap, or other regions");
  o = good, o.crops = 5, o.drop_last = true;
  CHECK(text(masked, o) ==
        "lrcnn: crops with drop_last: 5 crops in batches of 8 make no batch; an epoch has at least one full batch; take smaller batches, or more "
        "crops");
  o = good, o.augmentation.jitter.contrast = -1;
  CHECK(text(masked, o) ==
        "lrcnn: colour jitter of brightness 0.000000, contrast -1.000000 and saturation 0.000000; each is at least 0, for a factor from 1 - x to 1 + "
        "x; choose other numbers");
  o = good, o.augmentation.jitter.saturation = 1;
  CHECK(text(masked, o) ==
        "lrcnn: the saturation of pictures of 2 channels is to change; saturation is of red, green and blue; set it to 0, or read 3 channels");
  o = good, o.normalization = {{1}, {1}};
  CHECK(text(masked, o) == "lrcnn: normalisation with 1 means and 1 deviations; the images have 2 channels; give one of each per channel, or none");
  const CropLoader<float> loader({masked}, good);
  CHECK(error_of([&] { loader.epoch(0, 126); }) ==
        "lrcnn: batch 126 of epoch 0; an epoch has batches 0 to 124, and epochs count from 0; check where training is to continue");
  CHECK(error_of([&] { loader.batch(-1, 0); }).starts_with("lrcnn: batch 0 of epoch -1; "));
}
TEST_CASE("crops: masks that do not fit are refused") {
  const auto text = [](Index h, Index w, Index channels, SampleType sample) {
    const CachedImage other(draw_image(h, w, channels, 16, 16, sample), cache());
    return error_of([&] { CropLoader<float>({{.image = image(), .mask = other}}, {.height = 20, .width = 10}); });
  };
  CHECK(text(rows, 71, 1, SampleType::u8) ==
        "lrcnn: mask 'drawn.img' has 90 rows and 71 columns, and its image 'drawn.img' has 90 rows and 70 columns; a mask has a label for each pixel "
        "of its image; give the image's own mask, or scale it to the image's size without blending labels");
  CHECK(
      text(rows, columns, 3, SampleType::u8) ==
      "lrcnn: mask 'drawn.img' has 3 channels of u8 (drawn), and 3 of them are to be read; a class is one number for each pixel; choose one channel "
      "(CropImage::mask_channel), open a PNG with a palette as indices (PngOptions::palette), or store the classes in a file of one channel");
  CHECK(text(rows, columns, 1, SampleType::f32) == "lrcnn: mask 'drawn.img' has samples of f32; classes are integers; store integers");
  // Classes for samples; a sample that is no class.
  const CropLoader<float> mapped({{.image = image(), .mask = mask([](Index y, Index) { return y < 45 ? 255 : 0; }, SampleType::u8)}},
                                 {.height = 90, .width = 10, .classes = {.function = [](std::int64_t v) { return v >= 128; }}});
  const auto batch = mapped.batch(0, 0);
  CHECK(batch.labels().classes(0, 44)[0] == 1);
  CHECK(batch.labels().classes(0, 45)[0] == 0);
  const auto large = draw_image(rows, columns, 1, 90, 70, SampleType::i64);
  large->value = [](Index, Index, Index) { return -3; };
  const CropLoader<float> negative({{.image = image(), .mask = CachedImage(large, cache())}}, {.height = 20, .width = 10});
  CHECK(negative.batch(0, 0).labels().classes(0, 0)[0] == -3);   // some losses ignore such a class
}
TEST_CASE("crops: images of different channels are refused, or each says which of its channels are read") {
  const auto drawn = [](Index channels, const char* path) {
    auto info = draw_image(rows, columns, channels, 16, 16)->info();
    info.path = path;
    return CachedImage(std::make_shared<DrawnImage>(info), cache());
  };
  const CropImage colour{.image = drawn(3, "rgb.tif")}, alpha{.image = drawn(4, "rgba.tif")}, grey{.image = drawn(1, "grey.tif")};
  CropOptions options{.height = 20, .width = 10, .crops = 40, .batch = 40};
  const auto text = [&](const CropImage& first, const CropImage& second) { return error_of([&] { CropLoader<float>({first, second}, options); }); };
  const std::string end =
      "; a network reads as many of each image; choose them: CropOptions::channels for all images ({0, 1, 2} leaves out an alpha), "
      "CropImage::channels for one";
  CHECK(text(colour, alpha) == "lrcnn: 4 channels of image 'rgba.tif' are to be read, and 3 of image 'rgb.tif'" + end);
  CHECK(text(alpha, colour) == "lrcnn: 3 channels of image 'rgb.tif' are to be read, and 4 of image 'rgba.tif'" + end);
  options.channels = {0, 1, 2};
  CHECK(text(colour, alpha) == "no error");
  CHECK(text(alpha, grey) == "lrcnn: channel 1 of image 'grey.tif' is to be read; it has channels 0 to 0; choose channels that are there");
  CropImage repeated = grey, turned = alpha;
  repeated.channels = {0, 0, 0}, turned.channels = {2, 1, 0};
  const CropLoader<float> loader({colour, turned, repeated}, options);
  CHECK(loader.input() == Input{40, 3, 20, 10});
  const auto batch = loader.batch(0, 0);
  std::set<Index> seen;
  for (Index i = 0; i < 40; ++i) {
    const CropSample& crop = item(batch.crops(), i);
    seen.insert(crop.image);
    for (Index c = 0; c < 3; ++c) {
      const Index channel = crop.image == 0 ? c : crop.image == 1 ? 2 - c : 0;
      const int sample = drawn_sample(crop.region.rows.begin, crop.region.columns.begin, channel);
      CHECK(item(batch.values(), (i * 3 + c) * 200) == static_cast<float>(sample / 255.0));
    }
  }
  CHECK(seen.size() == 3);
}
TEST_CASE("crops: masks of several channels, of which one has the classes") {
  const auto drawn = draw_image(rows, columns, 3, 32, 16);
  drawn->value = [](Index y, Index x, Index c) { return c == 1 ? shapes(y, x) : 7; };
  CropImage from{.image = image(), .mask = CachedImage(drawn, cache()), .mask_channel = 1};
  const CropOptions options{.height = 90, .width = 70, .crops = 1, .focus = {.classes = {2}, .share = 1}, .batch = 1};
  const auto batch = CropLoader<float>({from}, options).batch(0, 0);
  const Labels labels = batch.labels();
  for (Index y = 0; y < rows; ++y)
    for (Index x = 0; x < columns; ++x) REQUIRE(labels.classes(0, y)[x] == shapes(y, x));
  from.mask_channel = 3;
  CHECK(error_of([&] { CropLoader<float>({from}, options); }) ==
        "lrcnn: channel 3 of mask 'drawn.img' is to be read; it has channels 0 to 2; choose channels that are there");
}
TEST_CASE("crops: images of one pixel, crops of whole images, masks of one class") {
  const auto dot = draw_image(1, 1, 3, 1, 1), dots = draw_image(1, 1, 1, 1, 1, SampleType::u16);
  dots->value = [](Index, Index, Index) { return 40000; };
  CropOptions options{.height = 1, .width = 1, .crops = 9, .focus = {.classes = {40000}, .share = 1}, .batch = 4, .seed = 3};
  options.augmentation = {.flip_x = true, .flip_y = true, .quarter_turns = true, .jitter = {.contrast = 0.5, .saturation = 0.5}};
  const CropImage from{.image = {dot, cache()}, .mask = CachedImage(dots, cache())};
  for (const CropOrder order : {CropOrder::random, CropOrder::tiles}) {
    options.order = order;
    const CropLoader<float> loader({from, from}, options);
    Index crops = 0;
    for (auto& batch : loader.epoch(0))
      for (Index i = 0; i < batch.size(); ++i, ++crops) {
        CHECK(item(batch.crops(), i).region == ImageRegion{{0, 1}, {0, 1}});
        CHECK(batch.labels().classes(i, 0)[0] == 40000);
      }
    CHECK(crops == (order == CropOrder::random ? 9 : 2));
  }
  const CropImage full{.image = image(), .mask = mask([](Index, Index) { return 1; })};
  const CropLoader<float> whole_images({full}, {.height = rows, .width = columns, .crops = 3, .focus = {.classes = {1}, .share = 0.5}});
  const auto batch = whole_images.batch(0, 0);
  for (const CropSample& crop : batch.crops()) CHECK(crop.region == ImageRegion{{0, rows}, {0, columns}});
  CHECK(error_of([&] {
          CropLoader<float>({full}, {.height = rows, .width = columns, .focus = {.classes = {0, 1}, .share = 0.5}});
        }).starts_with("lrcnn: crops are to show class 0, which no mask has where crops may lie; "));
}
