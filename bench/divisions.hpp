#pragma once
// Ways to divide a convolution by Winograd's algorithm between two threads, in little scratch memory, with how far apart their cores are.
#include <lrcnn/backend/host/winograd_convolution.hpp>
#include <lrcnn/core/machine.hpp>
#include <lrcnn/core/memory.hpp>
#include <lrcnn/core/rng.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>
namespace bench {
using namespace lrcnn;
/// How long a number takes from one thread to another and back, in nanoseconds: some 50 where their cores share a cache, hundreds where they do not.
/// The least of some series, for threads are interrupted.
inline double round_trip() {
  constexpr int series = 20, trips = 200;
  std::atomic<int> ball = 0;
  std::thread other([&ball] {
    for (int i = 0; i < series * trips; ++i) {
      while (ball.load() != 2 * i + 1) {
      }
      ball.store(2 * i + 2);
    }
  });
  double least = std::numeric_limits<double>::max();
  for (int s = 0, i = 0; s < series; ++s) {
    const auto start = std::chrono::steady_clock::now();
    for (int end = i + trips; i < end; ++i) {
      ball.store(2 * i + 1);
      while (ball.load() != 2 * i + 2) {
      }
    }
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e9 / trips);
  }
  other.join();
  return least;
}
/// A pass over square maps in the scratch that a search offers to such a layer (Rates::good_scratch), by one division.
struct DividedPass {
  Index n = 1, channels = 512, size = 28;
  bool gradient = false;   ///< of the filters
  host::winograd::Division division{};
  /// "divide/512to512/28x2/forward/by_channels"
  std::string name() const {
    constexpr std::array names{"by_positions", "by_channels", "by_tiles"};
    const std::string c = std::to_string(channels);
    return "divide/" + c + "to" + c + "/" + std::to_string(size) + "x" + std::to_string(n) + "/" + (gradient ? "backward_parameters/" : "forward/") +
           names[static_cast<std::size_t>(division)];
  }
  host::winograd::SlabPass pass() const { return {n, channels, channels, size, size, size, size, 1, 1}; }
  std::optional<host::winograd::Blocking> blocking() const {
    return host::winograd::choose_blocking(pass(), division, gradient, threads, host::winograd::scratch_bytes(channels, channels, 96));
  }
  static constexpr int threads = 2;   ///< round_trip() is between two
};
#if LRCNN_WINOGRAD
class DividedConvolution {
 public:
  /// Pre: there is a blocking
  explicit DividedConvolution(const DividedPass& p) : pass_(p.pass()), gradient_(p.gradient), blocking_(*p.blocking()) {
    const Index block = vector_block(vectors_);
    const auto map = [&] { return dense_view(numbers(p.n * p.channels * p.size * p.size), p.n, p.channels, Range{0, p.size}, p.size, block); };
    x_ = map(), y_ = map();
    filter_ = numbers(9 * p.channels * p.channels), gradients_ = numbers(9 * p.channels * p.channels), scratch_ = numbers(blocking_.bytes / 4);
    square_ = 9 * block * block;
    run();
  }
  void run() {
    host::winograd::with_kernels(vectors_, [&](auto kernels) {
      using K = decltype(kernels);
      if (gradient_) {
        host::winograd::run_gradient<K>(pass_, blocking_, DividedPass::threads, x_, y_,
                                        {.outputs = pass_.out_c, .inputs = pass_.in_c, .dw = gradients_}, scratch_);
      } else {
        host::winograd::run<K>(pass_, blocking_, DividedPass::threads, x_, {filter_, pass_.in_c / K::lanes * square_, square_, false}, {y_},
                               scratch_);
      }
    });
  }

 private:
  float* numbers(Index count) {
    auto* const data = reinterpret_cast<float*>(memory_.emplace_back(count * 4, "a convolution's benchmark").data());
    const Random random(memory_.size(), 1);
    for (Index i = 0; i < count; ++i) data[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)) - 0.5);
    return data;
  }
  const Vectors vectors_ = machine_vectors();
  host::winograd::SlabPass pass_;
  bool gradient_;
  host::winograd::Blocking blocking_;
  std::deque<Arena> memory_{};
  View<float> x_{}, y_{};
  float *filter_ = nullptr, *gradients_ = nullptr, *scratch_ = nullptr;
  Index square_ = 0;
};
#endif
/// Layers of VGG-16 for groups of two images, and of ResNet-18 for one of 2048 x 2048; none on one processor.
inline std::vector<DividedPass> divided_passes() {
  std::vector<DividedPass> list;
  if (processor_count() < DividedPass::threads) return list;
  for (const auto& [n, channels, size] : {std::array<Index, 3>{2, 512, 14}, {2, 512, 28}, {1, 512, 64}, {2, 256, 56}, {1, 256, 128}, {1, 128, 256}})
    for (const bool gradient : {false, true})
      for (const auto division : {host::winograd::Division::by_positions, host::winograd::Division::by_channels, host::winograd::Division::by_tiles})
        if (const DividedPass p{n, channels, size, gradient, division}; p.blocking()) list.push_back(p);
  return list;
}
}   // namespace bench
