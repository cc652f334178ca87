// Winograd's algorithm against the formula, however it is cut, and that it stays within its memory.
#include "host_case.hpp"
#include <lrcnn/backend/host/winograd.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
using namespace lrcnn::host::winograd;
#if defined(__x86_64__)
#define EVERY_KIND Avx512, Avx2, Plain
#else
#define EVERY_KIND Plain
#endif
namespace {
/// Whether this machine has the vectors of a kind of kernels.
template <class K>
bool runs() {
  return K::vectors <= machine_vectors();
}
/// Scratch of so many bytes, full of not-a-number, and a guard behind it.
class Scratch {
 public:
  explicit Scratch(Index bytes) : bytes_(static_cast<std::size_t>(bytes)), memory_(bytes_ + 128, 0xff) {}
  float* data() { return reinterpret_cast<float*>(start()); }
  bool intact() {
    return std::all_of(start() + bytes_, memory_.data() + memory_.size(), [](unsigned char c) { return c == 0xff; });
  }

 private:
  unsigned char* start() { return memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64; }
  std::size_t bytes_;
  std::vector<unsigned char> memory_;
};
/// One slab of a convolution and what the formula says of it. Rows of the slab's input are all that it may read.
struct Problem {
  Node node;
  Range out, in;
  Map x, dy, y, dx, dw;
  std::vector<double> w, bias, db;
  SlabPass forward{}, data{};
  std::vector<float> packed, turned;   ///< [k / lanes][c / lanes][9][lanes][lanes], and with the channels in the data gradient's order
  Problem(Index lanes, Shape shape, Index k, const Window& window, Range rows)
      : node(node_of({.kind = Kind::conv, .window = window, .channels = k}, shape)),
        out(rows),
        in(in_rows(row_axis(window), rows, shape.h)),
        x(random_map(node.in, 1)),
        dy(random_map(node.out, 2)),
        y(node.out),
        dx(node.in),
        dw({k, shape.c, 3, 3}),
        w(random_vector(k * shape.c * 9, 3)),
        bias(random_vector(k, 4)),
        db(static_cast<std::size_t>(k)) {
    const Index c = shape.c, top = pad_rows(row_axis(window), out, in).top;
    forward = {shape.n, c, k, in.size(), shape.w, out.size(), node.out.w, top, window.pad.left};
    data = {shape.n, k, c, out.size(), node.out.w, in.size(), shape.w, 2 - top, 2 - window.pad.left};
    packed.resize(w.size()), turned.resize(w.size());
    for (Index o = 0; o < k; ++o)
      for (Index i = 0; i < c; ++i)
        for (Index tap = 0; tap < 9; ++tap) {
          const auto value = static_cast<float>(w[static_cast<std::size_t>((o * c + i) * 9 + tap)]);
          const Index block = ((o / lanes) * (c / lanes) + i / lanes) * 9 + tap;
          packed[static_cast<std::size_t>((block * lanes + i % lanes) * lanes + o % lanes)] = value;
          turned[static_cast<std::size_t>((block * lanes + o % lanes) * lanes + i % lanes)] = value;
        }
    for (Index i = 0; i < shape.n; ++i)
      for (Index o = 0; o < k; ++o)
        for (Index row = out.begin; row < out.end; ++row)
          for (Index q = 0; q < node.out.w; ++q) {
            y.at(i, o, row, q) += bias[static_cast<std::size_t>(o)];
            db[static_cast<std::size_t>(o)] += dy.at(i, o, row, q);
          }
    each_tap(node, [&](Index i, Index o, Index row, Index q, Index ch, Index r, Index s, Index from, Index column) {
      if (!out.contains({row, row + 1}) || !x.inside(from, column)) return;
      const double weight = w[static_cast<std::size_t>(((o * shape.c + ch) * 3 + r) * 3 + s)];
      y.at(i, o, row, q) += weight * x.at(i, ch, from, column);
      dx.at(i, ch, from, column) += weight * dy.at(i, o, row, q);
      dw.at(o, ch, r, s) += dy.at(i, o, row, q) * x.at(i, ch, from, column);
    });
  }
};
struct Results {
  Slab<float> y, dx;
  std::vector<float> dw, db;
};
/// The three passes, each cut by its blocking.
template <class K>
Results run_all(const Problem& p, const Blocking& forward, const Blocking& data, const Blocking& gradient, int threads, bool add = false) {
  Results r{Slab<float>(p.node.out, p.out, K::lanes), Slab<float>(p.node.in, p.in, K::lanes), std::vector<float>(p.w.size(), add ? 1.f : NAN),
            std::vector<float>(p.db.size(), add ? 2.f : NAN)};
  const Slab<float> x(p.x, p.in, K::lanes), dy(p.dy, p.out, K::lanes);
  const std::vector<float> bias(p.bias.begin(), p.bias.end());
  const Index square = 9 * K::lanes * K::lanes, c = p.node.in.c, k = p.node.out.c;
  Scratch a(forward.bytes), b(data.bytes), g(gradient.bytes);
  run<K>(p.forward, forward, threads, x.view(), {p.packed.data(), c / K::lanes * square, square, false}, {r.y.view(), bias.data()}, a.data());
  run<K>(p.data, data, threads, dy.view(), {p.turned.data(), square, c / K::lanes * square, true}, {r.dx.view()}, b.data());
  run_gradient<K>(p.forward, gradient, threads, x.view(), dy.view(), {k, c, add, r.dw.data(), r.db.data()}, g.data());
  CHECK(a.intact());
  CHECK(b.intact());
  CHECK(g.intact());
  return r;
}
template <class K>
std::vector<Problem> problems() {
  std::vector<Problem> all;
  const Window same{.kernel = 3, .pad = 1};
  for (const Range rows : {Range{0, 13}, Range{0, 4}, Range{4, 13}, Range{8, 12}, Range{5, 6}, Range{12, 13}})
    all.emplace_back(K::lanes, Shape{2, 16, 13, 11}, 32, same, rows);
  all.emplace_back(K::lanes, Shape{1, 80, 9, 10}, 144, same, Range{0, 9});
  all.emplace_back(K::lanes, Shape{1, 144, 9, 6}, 80, same, Range{3, 9});
  all.emplace_back(K::lanes, Shape{3, 16, 7, 5}, 16, Window{.kernel = 3, .pad = {2, 0, 1, 2}}, Range{0, 7});
  all.emplace_back(K::lanes, Shape{1, 32, 8, 9}, 16, Window{.kernel = 3}, Range{0, 6});
  all.emplace_back(K::lanes, Shape{1, 16, 1, 1}, 16, same, Range{0, 1});
  all.emplace_back(K::lanes, Shape{1, 16, 41, 40}, 16, same, Range{0, 41});
  return all;
}
bool equal(const std::vector<float>& a, const std::vector<float>& b) { return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0; }
}   // namespace
TEST_CASE_TEMPLATE("Winograd agrees with the formula however tiles and channels are cut, and stays within its memory", K, EVERY_KIND) {
  if (!runs<K>()) return;
  for (const Problem& p : problems<K>()) {
    CAPTURE(to_string(p.node.in));
    CAPTURE(to_string(p.node.out));
    CAPTURE(p.out.begin);
    CAPTURE(p.out.end);
    const double taps = 9.0 * static_cast<double>(p.node.in.c), sums = static_cast<double>(p.node.out.n * p.out.size() * p.node.out.w);
    std::optional<Results> first;
    std::vector<Index> rooms{least_bytes(p.forward), least_bytes(p.data)};
    for (const Index room : {1_MiB, 3_MiB, 12_MiB, 64_MiB}) rooms.push_back(room);
    Index cut = 0;
    for (const Index room : rooms)
      for (const int threads : {1, 2, 3}) {
        CAPTURE(room);
        CAPTURE(threads);
        const auto f = choose_blocking(p.forward, false, threads, room), d = choose_blocking(p.data, false, threads, room),
                   g = choose_blocking(p.forward, true, threads, room);
        if (!f || !d || !g) continue;
        ++cut;
        const Results r = run_all<K>(p, *f, *d, *g, threads);
        CHECK(r.y.difference(p.y) < 2e-6 * taps);
        CHECK(r.dx.difference(p.dx) < 2e-6 * 9 * static_cast<double>(p.node.out.c));
        CHECK(worst(p.dw.value, {r.dw.begin(), r.dw.end()}) < 1e-5 * std::max(4.0, std::sqrt(sums) * 4));
        CHECK(worst(p.db, {r.db.begin(), r.db.end()}) < 1e-5 * std::max(4.0, std::sqrt(sums) * 4));
        if (!first) first.emplace(run_all<K>(p, *f, *d, *g, threads));
        CHECK(same_bits(r.y.view(), first->y.view(), p.out));
        CHECK(same_bits(r.dx.view(), first->dx.view(), p.in));
      }
    CHECK(cut >= 9);
  }
}
TEST_CASE_TEMPLATE("Winograd's chunks and groups, as small as they come, give the same bits", K, EVERY_KIND) {
  if (!runs<K>()) return;
  const Problem p(K::lanes, {2, 80, 21, 19}, 144, {.kernel = 3, .pad = 1}, {0, 21});
  const auto at = [&](Index tiles, Index channels, Division division, int threads) {
    const auto cut = [&](const SlabPass& pass, Index most, bool gradient) {
      const Index group = std::min(channels, most);
      return Blocking{tiles, group, division, blocking_bytes(pass, tiles, group, division, gradient, threads)};
    };
    return run_all<K>(p, cut(p.forward, 144, false), cut(p.data, 80, false), cut(p.forward, 144, true), threads);
  };
  const Results whole = at(p.forward.tiles(), 144, Division::by_positions, 1);
  for (const Division division : {Division::by_positions, Division::by_channels, Division::by_tiles})
    for (const Index tiles : {Index{1}, Index{5}, Index{6}, Index{13}, p.forward.tiles()})
      for (const Index channels : {Index{32}, Index{64}, Index{128}, Index{144}})
        for (const int threads : {1, 2, 3, 7}) {
          CAPTURE(static_cast<int>(division));
          CAPTURE(tiles);
          CAPTURE(channels);
          CAPTURE(threads);
          const Results r = at(tiles, channels, division, threads);
          CHECK(same_bits(r.y.view(), whole.y.view(), p.out));
          CHECK(same_bits(r.dx.view(), whole.dx.view(), p.in));
          if (division != Division::by_tiles) CHECK(equal(r.dw, whole.dw));
          if (division != Division::by_tiles) CHECK(equal(r.db, whole.db));
          double difference = 0;   // each thread adds up tiles of its own
          for (std::size_t i = 0; i < r.dw.size(); ++i) difference = std::max(difference, std::abs(double{r.dw[i]} - double{whole.dw[i]}));
          for (std::size_t i = 0; i < r.db.size(); ++i) difference = std::max(difference, std::abs(double{r.db[i]} - double{whole.db[i]}));
          CHECK(difference < 1e-3);
        }
}
TEST_CASE_TEMPLATE("Winograd's parameter gradients are added where that is asked for", K, EVERY_KIND) {
  if (!runs<K>()) return;
  const Problem p(K::lanes, {2, 16, 13, 11}, 32, {.kernel = 3, .pad = 1}, {0, 13});
  const auto f = *choose_blocking(p.forward, false, 2, 8_MiB), d = *choose_blocking(p.data, false, 2, 8_MiB);
  for (const bool apart : {false, true}) {
    auto g = *choose_blocking(p.forward, true, 2, apart ? 8_MiB : least_bytes(p.forward));
    CHECK((g.division == Division::by_tiles) == apart);
    const Results written = run_all<K>(p, f, d, g, 2), added = run_all<K>(p, f, d, g, 2, true);
    for (std::size_t i = 0; i < written.dw.size(); ++i) CHECK(added.dw[i] == doctest::Approx(written.dw[i] + 1.f).epsilon(1e-5));
    for (std::size_t i = 0; i < written.db.size(); ++i) CHECK(added.db[i] == doctest::Approx(written.db[i] + 2.f).epsilon(1e-5));
  }
}
TEST_CASE_TEMPLATE("rows of a slab that begins on a multiple of four are bit-identical to the map's under Winograd", K, EVERY_KIND) {
  if (!runs<K>()) return;
  const Window same{.kernel = 3, .pad = 1};
  const Shape shape{2, 32, 23, 10};
  const auto forward = [&](Range rows) {
    const Problem p(K::lanes, shape, 48, same, rows);
    const auto b = *choose_blocking(p.forward, false, 2, 8_MiB);
    return run_all<K>(p, b, *choose_blocking(p.data, false, 2, 8_MiB), *choose_blocking(p.forward, true, 2, 8_MiB), 2);
  };
  const Results whole = forward({0, 23});
  for (const Range rows : {Range{0, 4}, Range{4, 16}, Range{8, 23}, Range{20, 23}}) CHECK(same_bits(forward(rows).y.view(), whole.y.view(), rows));
}
TEST_CASE_TEMPLATE("with ReLU outputs are clipped, their signs kept, and not-a-number stays", K, EVERY_KIND) {
  if (!runs<K>()) return;
  const Problem p(K::lanes, {1, 16, 9, 7}, 32, {.kernel = 3, .pad = 1}, {0, 9});
  Map broken = p.x;
  broken.at(0, 3, 2, 6) = NAN;
  const Slab<float> x(broken, p.in, K::lanes);
  const auto b = *choose_blocking(p.forward, false, 1, 8_MiB);
  const Index square = 9 * K::lanes * K::lanes;
  const Filter filter{p.packed.data(), p.node.in.c / K::lanes * square, square, false};
  Slab<float> plain(p.node.out, p.out, K::lanes), clipped(p.node.out, p.out, K::lanes), alone(p.node.out, p.out, K::lanes);
  Scratch scratch(b.bytes);
  const Bench<float> relu(node_of({.kind = Kind::activation}, p.node.out), K::lanes, K::lanes);
  std::vector<std::uint8_t> signs = relu.saved_memory(p.out);
  run<K>(p.forward, b, 1, x.view(), filter, {plain.view()}, scratch.data());
  run<K>(p.forward, b, 1, x.view(), filter, {clipped.view(), nullptr, true, relu.saved(signs, p.out)}, scratch.data());
  run<K>(p.forward, b, 1, x.view(), filter, {alone.view(), nullptr, true}, scratch.data());
  Index clips = 0, lost = 0;
  for (Index k = 0; k < 32; ++k)
    for (Index y = 0; y < 9; ++y)
      for (Index q = 0; q < 7; ++q) {
        const float value = plain.view()(0, k, y, q), got = clipped.view()(0, k, y, q);
        const Index bit = q * K::lanes + k % K::lanes;
        const bool positive = relu.saved(signs, p.out).row(0, k / K::lanes, y)[bit / 8] >> (bit % 8) & 1;
        CHECK(positive == (value > 0));
        CHECK((std::isnan(value) ? std::isnan(got) : got == std::max(value, 0.f)));
        clips += value < 0, lost += std::isnan(value);
      }
  CHECK(clips > 100);
  CHECK(lost > 100);
  CHECK(same_bits(clipped.view(), alone.view(), p.out));
}
TEST_CASE("a blocking fits into the room it is given, and there is one from the least on") {
  const std::array<Index, 7> channels{8, 16, 48, 64, 192, 512, 576};
  std::array<Index, 3> divisions{};
  for (const Index c : channels)
    for (const Index k : channels)
      for (const auto& [n, size] : {std::pair<Index, Index>{1, 1}, {2, 1}, {2, 7}, {1, 9}, {1, 12}, {2, 14}, {1, 28}, {3, 16}, {2, 28}, {2, 224}}) {
        const SlabPass p{n, c, k, size, size, size, size, 1, 1};
        for (const bool gradient : {false, true})
          for (const int threads : {1, 2, 16}) {
            const Index least = least_bytes(p);
            CHECK_FALSE(choose_blocking(p, gradient, threads, least - 1).has_value());
            for (Index room = least; room < 300_MiB; room = room * 5 / 3)
              for (const Caches& caches : {Caches{}, Caches{512 << 10, 32 << 20}, Caches{256 << 10, 3 << 20}, Caches{2 << 20, 32 << 20}}) {
                const auto b = choose_blocking(p, gradient, threads, room, caches);
                REQUIRE(b.has_value());
                CHECK(b->bytes <= room);
                CHECK(b->tiles >= 1);
                CHECK((b->channels == k || b->channels % (panel / 2) == 0));
                CHECK(b->bytes == blocking_bytes(p, b->tiles, b->channels, b->division, gradient, threads));
                divisions[static_cast<std::size_t>(b->division)] += 1;
              }
          }
      }
  for (const Index count : divisions) CHECK(count > 0);   // each way to divide a pass is somebody's
}
TEST_CASE_TEMPLATE("a bias's gradient over millions of tiles is as exact as one over few", K, EVERY_KIND) {
  if (!runs<K>()) return;
  // One accumulator of floats is a per cent off at a million.
  const Index count = 1024, channels = 80, rounds = 2000;
  const std::vector<float> products(static_cast<std::size_t>(positions * (count * channels + 32)), 0.1f);
  std::vector<double> sums(static_cast<std::size_t>(channels));
  for (Index i = 0; i < rounds; ++i) K::add_biases(products.data(), count, channels, sums.data());
  for (const double sum : sums) CHECK(sum == doctest::Approx(static_cast<double>(0.1f) * static_cast<double>(count * rounds)).epsilon(1e-9));
}
TEST_CASE("small second caches have many tiles meet the filters, and let chunks take a quarter of the third cache") {
  const Caches small{512 << 10, 32 << 20}, large{};
  const auto pass = [](Index n, Index c, Index size) { return SlabPass{n, c, c, size, size, size, size, 1, 1}; };
  const Index room = 36_MiB;
  for (const bool gradient : {false, true}) {
    CAPTURE(gradient);
    for (const Index c : {64, 128}) {   // filters of up to 2.5 MiB, which all tiles meet at once
      const auto b = *choose_blocking(pass(8, c, 56), gradient, 2, room, small);
      CHECK(b.division == Division::by_tiles);
      CHECK(b.tiles == 48);
      CHECK(choose_blocking(pass(8, c, 56), gradient, 2, room, large)->tiles < 48);
    }
    const auto b = *choose_blocking(pass(8, 256, 56), gradient, 2, room, small);
    CHECK(b.division == Division::by_channels);
    CHECK(blocking_bytes(pass(8, 256, 56), b.tiles, b.channels, b.division, gradient, 2) -
              blocking_bytes(pass(8, 256, 56), 0, b.channels, b.division, gradient, 2) <=
          8_MiB + 100'000);
  }
  const auto halves = *choose_blocking(pass(8, 512, 14), false, 2, room, small);   // 128 tiles: two chunks, about as large as each other
  CHECK(halves.tiles == 66);
}
