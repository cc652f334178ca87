// Blocks of threads: every thread comes once in each phase, phases follow each other, and trees add up what they are asked to, and no more.
#include "loops_case.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Adds up 1, 2, 4 ... of neighbouring threads or of threads below each other, in as many rounds as are asked for.
struct Counting {
  static constexpr int phases = 2 + loops::tree_phases;
  struct Shared {
    double sum[loops::block_threads];
  };
  int first, last;
  Index count;
  double* to;   ///< [blocks][threads], grows by a round's sums
  Index rounds(Index block) const { return block + count; }
  template <int k>
  void phase(Index block, int thread, Shared& shared, Index round) const {
    if constexpr (k == 0) shared.sum[thread] = static_cast<double>((round + 1) * (thread + 1));
    else if constexpr (k < phases - 1)
      loops::tree_step<k - 1>(thread, first, last, [&](int own, int other) { shared.sum[own] += shared.sum[other]; });
    else to[block * loops::block_threads + thread] += shared.sum[thread];
  }
};
}   // namespace
TEST_CASE("trees add up neighbours, threads below each other, and whole blocks, in every round") {
  constexpr int n = loops::block_threads;
  for (int first = 1; first < n; first *= 2)
    for (int last = 1; last <= first; last *= 2) {
      std::vector<double> sums(3 * n, 0);
      loops::for_blocks(on_host, 3, Counting{first, last, 2, sums.data()});
      bool good = true;
      for (int block = 0; block < 3; ++block)
        for (int thread = 0; thread < n; ++thread) {
          const int bits = 2 * first - last;   // those that the tree goes over
          if ((thread & bits) != 0) continue;
          double wanted = 0;
          for (int other = 0; other < n; ++other)
            if ((other & ~bits) == thread) wanted += other + 1;
          const int rounds = block + 2;
          good = good && sums[static_cast<std::size_t>(block * n + thread)] == wanted * rounds * (rounds + 1) / 2;
        }
      CHECK(good);
    }
}
TEST_CASE("parts of a map hold each position once, and blocks are enough for a large device, however few channels") {
  for (const Index positions : {1, 63, 4096, 401'408, 3'211'264})
    for (const Index channels : {1, 3, 64, 100, 2048})
      for (const Index sets : {1, 24, 32, 34, 48}) {
        const auto tiles = loops::tiles_of<bfloat16>(sets, positions, channels);
        CHECK(tiles.width * tiles.height == loops::block_threads);
        CHECK(tiles.width * tiles.columns * loops::lanes<bfloat16> >= channels);
        Index sum = 0;
        for (Index k = 0; k < tiles.parts(); ++k) sum += tiles.size(k);
        CHECK(sum == positions);
        CHECK((tiles.blocks() <= loops::most_sum_blocks || tiles.parts() == 1));
        if (positions * channels >= Index{1} << 24) CHECK(tiles.blocks() >= loops::most_sum_blocks * 2 / 3);
      }
}
namespace {
template <int V>
void check_thread_rows() {
  for (int width = 1; width * V <= loops::block_threads; width *= 2) {
    const loops::ThreadRows<V> rows{width};
    int numbers[V][loops::block_threads], pieces[loops::block_threads];
    std::vector<int> wanted(static_cast<std::size_t>(rows.sums()), 0);
    for (int v = 0; v < V; ++v)
      for (int thread = 0; thread < loops::block_threads; ++thread) {
        numbers[v][thread] = 1 + v * 1000 + thread;
        wanted[static_cast<std::size_t>(v * width + thread % width)] += numbers[v][thread];
      }
    for (int thread = 0; thread < loops::block_threads; ++thread) pieces[thread] = rows.of_rows(numbers, thread);
    for (int thread = 0; thread < rows.sums(); ++thread)
      CHECK(rows.of_pieces(pieces, thread) == wanted[static_cast<std::size_t>(rows.number(thread) * width + rows.column(thread))]);
  }
}
}   // namespace
TEST_CASE("rows of threads are added up to the sums of their columns, however wide they are") {
  check_thread_rows<4>();
  check_thread_rows<8>();
}
