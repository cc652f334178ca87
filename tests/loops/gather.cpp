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
/// A batch of images of bytes in an array that begins at a multiple of 128 and is never read.
DirectSource<float> counted(const ArrayLayout& layout, std::span<const Index> samples, const DirectOptions& options = {}) {
  alignas(128) static const std::uint8_t nothing[128] = {};
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
TEST_CASE("every element of a run is read by one thread, and warps of long runs begin with a line") {
  for (const Index offset : {0, 1, 15, 16, 31, 64, 100, 127})
    for (const Index length : {1, 3, 16, 40, 128, 300, 513, 1000, 4096}) {
      const std::vector<Index> one{0};
      const auto source = counted(ArrayLayout::planes({1, 1, 1, length}), one);
      for (const GatherOrder& order : {by_elements, unshifted, shifted}) {
        const GatherMap map(source, 0, 1, {0, 1}, source.samples().data(), base + offset, order);
        std::vector<int> reads(static_cast<std::size_t>(length), 0);
        bool begins = true;
        for (Index unit = 0; unit < map.count; ++unit) {
          const GatherPlace p = map.place(unit);
          for (Address at = p.inside.begin; at < p.inside.end; ++at) ++item(reads, at - base - offset);
          if (order.shifted && unit % warp_threads == 0 && !p.inside.empty() && length >= 513) begins = begins && p.inside.begin % line_bytes == 0;
        }
        CHECK(reads == std::vector<int>(static_cast<std::size_t>(length), 1));
        CHECK(begins);
      }
    }
}
TEST_CASE("what crosses the bus: aligned against unaligned") {
  std::vector<Index> shuffled;
  for (Index i = 0; i < 64; ++i) shuffled.push_back(i * 37 % 101);
  struct Case {
    const char* name;
    ArrayLayout layout;
    Range rows;
    std::vector<Index> samples;
    Index elements_requests, unshifted_requests, shifted_requests, bytes;
  };
  const std::vector<Index> one{0};
  const Case cases[] = {
      {"64 of 224x224x3", ArrayLayout::interleaved({101, 3, 224, 224}), {0, 224}, shuffled, 301056, 75264, 75264, 9633792},
      {"64 of 227x227x3", ArrayLayout::interleaved({101, 3, 227, 227}), {0, 227}, shuffled, 0, 0, 0, 0},
      {"64 of 3x32x32", ArrayLayout::planes({101, 3, 32, 32}), {0, 32}, shuffled, 0, 0, 0, 0},
      {"64 rows of 11472x6429x3", ArrayLayout::interleaved({1, 3, 6429, 11472}), {640, 704}, one, 0, 0, 0, 0},
      {"64 rows of 9999x6429x3", ArrayLayout::interleaved({1, 3, 6429, 9999}), {640, 704}, one, 0, 0, 0, 0},
  };
  for (const Case& c : cases) {
    const auto source = counted(c.layout, c.samples);
    const Index n = source.shape().n;
    for (const GatherOrder& order : {by_elements, unshifted, shifted}) {
      const auto t = gather_traffic(source, 0, n, c.rows, base, order);
      std::printf("%s wanted %ld bytes %ld requests %ld (%ld %ld %ld %ld) warps %ld begun %ld\n", c.name, t.wanted, t.bytes, t.requests(), t.requests_of[0],t.requests_of[1],t.requests_of[2],t.requests_of[3], t.warps, t.lines_begun);
    }
  }
}
