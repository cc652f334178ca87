// Rows that a device gathers from the host's memory: the bits of the copied path, and what crosses the bus.
#include "loops_case.hpp"
#include "support/random_array.hpp"
#include "support/thorough.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
using namespace lrcnn::loops;
namespace {
/// The array as the pretended device reads it: where it lies.
std::shared_ptr<const SampleArray> placed(const SampleArray& array) {
  return std::make_shared<const SampleArray>(array.with_device(array.data(), SampleArray::any_device, array.owner()));
}
/// Memory of a batch's samples and tables.
struct Blob {
  std::vector<double> memory;
  cudnn::GatheredBatch there;
  explicit Blob(const DirectSource<float>& source) : memory(static_cast<std::size_t>(cudnn::GatherBlob::bytes(source)) / sizeof(double) + 1) {
    auto* bytes = reinterpret_cast<std::byte*>(memory.data());
    cudnn::GatherBlob::write(source, bytes);
    there = cudnn::GatherBlob::at(bytes, source);
  }
};
/// A batch from an array that is never read.
template <class S>
DirectSource<float> counted(const SampleLayout& layout, std::span<const Index> samples, const DirectOptions& options = {}) {
  static const S nothing[1] = {};
  return {std::make_shared<const SampleArray>(nothing, layout), samples, options};
}
constexpr Address base = 1 << 20;
constexpr GatherOrder by_elements{.shifted = false, .granule_bytes = 1}, unshifted{.shifted = false}, shifted{};
}   // namespace
TEST_CASE_TEMPLATE("gathered rows have the bits of rows that the host reads and sends", T, float, float16, bfloat16) {
  const Index cases = cases_to_do(3000, 400);
  Index seed = 0, wrong = 0, first_wrong = -1;
  for (; seed < cases; ++seed) {
    const RandomArray drawn = random_array(static_cast<std::uint64_t>(seed));
    const DirectSource<float> source(placed(drawn.array()), drawn.samples, drawn.options);
    const Blob blob(source);
    Draws draw(static_cast<std::uint64_t>(seed) + 77);
    const Shape s = source.shape();
    const Index first = draw(s.n), n = 1 + draw(s.n - first), begin = draw(s.h), end = begin + 1 + draw(s.h - begin);
    const Index granules[] = {1, 4, 16};
    const GatherOrder order{.shifted = draw(4) > 0, .granule_bytes = draw(4) > 0 ? 16 : granules[draw(3)]};
    const Map map({n, s.c, s.h, s.w});
    Slab<float> rows(map, {begin, end}, s.c, draw(2));
    source.read(first, rows.view());
    const Slab<T> gathered(map, {begin, end}, s.c, draw(2));
    gather_rows(on_host, source, blob.there, first, gathered.view(), order);
    bool good = gathered.intact();
    const View<float> a = rows.view();
    const View<T> b = gathered.view();
    for (Index i = 0; i < n; ++i)
      for (Index y = begin; y < end; ++y)
        for (Index e = 0; e < a.stride_row(); ++e) {
          const T wanted = static_cast<T>(a.row(i, 0, y)[e]), got = b.row(i, 0, y)[e];
          good = good && std::memcmp(&wanted, &got, sizeof(T)) == 0;
        }
    if (!good && wrong++ == 0) first_wrong = seed;
  }
  INFO("first wrong seed ", first_wrong);
  CHECK(wrong == 0);
}
TEST_CASE("every element of a run is read by one thread; with the shift, warps begin with a line and one line at most is fetched twice") {
  for (const Index offset : {0, 1, 15, 16, 31, 64, 100, 127})
    for (const Index length : {1, 3, 16, 40, 128, 300, 513, 1000, 4096}) {
      const std::vector<Index> one{0};
      const auto source = counted<std::uint8_t>(SampleLayout::planes({1, 1, 1, length}), one);
      const Index lines = (offset + length - 1) / line_bytes + 1;
      for (const GatherOrder& order : {by_elements, unshifted, shifted}) {
        const GatherMap map(source, 0, 1, {0, 1}, source.samples().data(), base + offset, order);
        std::vector<int> reads(static_cast<std::size_t>(length), 0);
        for (Index unit = 0; unit < map.count; ++unit) {
          const GatherPlace p = map.place(unit);
          for (Address at = p.inside.begin; at < p.inside.end; ++at) ++item(reads, at - base - offset);
        }
        CHECK(reads == std::vector<int>(static_cast<std::size_t>(length), 1));
        const GatherTraffic t = gather_traffic(source, 0, 1, {0, 1}, base + offset, order);
        CHECK(t.wanted == length);
        if (!order.shifted) continue;
        CHECK(t.requests() <= lines + (length > 16 * warp_threads ? 1 : 0));   // two warps may share what lies before the first line
        CHECK(t.lines_begun >= t.warps - 1);                                   // what lies before the first line may have a warp of its own
      }
    }
}
TEST_CASE("what crosses the bus: aligned against unaligned") {
  struct Count {
    Index requests, bytes;
    bool operator==(const Count&) const = default;
  };
  struct Case {
    const char* name;
    Count elements, unshifted, shifted;   ///< a number for each thread; 16 bytes; 16 bytes from a line on
    DirectSource<float> source;
    Range rows;
  };
  std::vector<Index> shuffled, four(4, 0);
  for (Index i = 0; i < 64; ++i) shuffled.push_back(i * 37 % 101);
  Draws draw(1);
  DirectOptions padded{.crop_h = 32, .crop_w = 32}, crops{.crop_h = 512, .crop_w = 512};
  for (std::size_t i = 0; i < shuffled.size(); ++i) padded.placements.push_back({draw(9) - 4, draw(9) - 4, draw(2) == 0});
  for (std::size_t i = 0; i < four.size(); ++i) crops.placements.push_back({draw(6429 - 512), draw(11472 - 512), false});
  const std::vector<Index> one{0};
  const SampleLayout wide = SampleLayout::interleaved({1, 3, 6429, 11471});
  const Case cases[] = {
      {"64 images 224x224x3, bytes",
       {301056, 9633792},
       {75264, 9633792},
       {75264, 9633792},
       counted<std::uint8_t>(SampleLayout::interleaved({101, 3, 224, 224}), shuffled),
       {0, 224}},
      {"64 images 227x227x3, bytes",
       {382857, 19323680},
       {94215, 10203744},
       {77359, 9895520},
       counted<std::uint8_t>(SampleLayout::interleaved({101, 3, 227, 227}), shuffled),
       {0, 227}},
      {"64 images 227x227x3, floats",
       {603865, 48076864},
       {374413, 40773408},
       {309235, 39576064},
       counted<float>(SampleLayout::interleaved({101, 3, 227, 227}), shuffled),
       {0, 227}},
      {"64 images 3x32x32, bytes",
       {6144, 196608},
       {1536, 196608},
       {1536, 196608},
       counted<std::uint8_t>(SampleLayout::planes({101, 3, 32, 32}), shuffled),
       {0, 32}},
      {"the same, cut at random",
       {5703, 182496},
       {1881, 182496},
       {1881, 182496},
       counted<std::uint8_t>(SampleLayout::planes({101, 3, 32, 32}), shuffled, padded),
       {0, 32}},
      {"64 rows of 11471 columns x3, bytes", {86033, 4404864}, {21509, 2202464}, {17208, 2202464}, counted<std::uint8_t>(wide, one), {641, 705}},
      {"4 cuts of 512x512x3 from it", {122112, 6193152}, {31872, 3305472}, {28288, 3262976}, counted<std::uint8_t>(wide, four, crops), {0, 512}},
  };
  for (const Case& c : cases) {
    const Index size = array_type_bytes(c.source.array().type());
    const auto count = [&](bool shift, Index granule) {
      const auto t = gather_traffic(c.source, 0, c.source.shape().n, c.rows, base, {.shifted = shift, .granule_bytes = granule});
      return Count{t.requests(), t.bytes};
    };
    INFO(c.name);
    CHECK(count(false, size) == c.elements);
    CHECK(count(false, 16) == c.unshifted);
    CHECK(count(true, 16) == c.shifted);
  }
  // One float for each thread, as in the paper: a warp reads one line instead of parts of two.
  const auto paper = [&](bool shift) {
    return gather_traffic(cases[2].source, 0, 64, {0, 227}, base, {.shifted = shift, .granule_bytes = 4}).requests();
  };
  CHECK(paper(false) == 603865);
  CHECK(paper(true) == 309244);
}
