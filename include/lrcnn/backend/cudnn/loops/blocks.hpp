#pragma once
// Blocks of threads that add something up together.
//
// A block loop is a functor with phases: phase<k>(block, thread, shared) is called for all threads of a block before phase<k + 1> for any of
// them, and what threads tell each other lies in the block's Shared. On a device a block is one of CUDA's, and phases end at a barrier; on the
// host, for the tests, threads are called one after the other. Both add in the same order. A functor with rounds(block) goes through its phases
// so often: phase<k>(block, thread, shared, round). A functor stays in the device's constant memory, so that arrays in it may be indexed by
// anything.
#include <lrcnn/backend/cudnn/loops/work.hpp>
#ifdef __CUDACC__
#include <thrust/system/cuda/error.h>
#include <thrust/system_error.h>
#endif
namespace lrcnn::loops {
inline constexpr int block_threads = 256;
/// Phases in which the threads of a block add up what they hold, in a tree.
inline constexpr int tree_phases = 8;
/// Blocks of a loop that reads a large tensor: four for each multiprocessor of an H100 or H200, whatever the device, so that bits are the same.
inline constexpr Index most_blocks = 528;
/// Of one that adds a tensor up: two, since a multiprocessor runs no more of them at once.
inline constexpr Index most_sum_blocks = most_blocks / 2;
namespace detail {
/// Calls call(k, round) for all phases of a block, k a constant.
template <class F, class Call>
LRCNN_HOST_DEVICE void each_phase(const F& f, Index block, Call call) {
  const auto all = [&]<std::size_t... k>(Index round, std::index_sequence<k...>) {
    (call(std::integral_constant<int, static_cast<int>(k)>{}, round), ...);
  };
  constexpr std::make_index_sequence<static_cast<std::size_t>(F::phases)> numbers{};
  if constexpr (requires { f.rounds(block); }) {
    for (Index round = 0; round < f.rounds(block); ++round) all(round, numbers);
  } else {
    all(0, numbers);
  }
}
template <int k, class F>
LRCNN_HOST_DEVICE void run_phase(const F& f, Index block, int thread, typename F::Shared& shared, Index round) {
  if constexpr (requires { f.rounds(block); }) f.template phase<k>(block, thread, shared, round);
  else f.template phase<k>(block, thread, shared);
}
}   // namespace detail
/// A block on the host: a unit of work. Its threads are called one after the other, from the first to the last, or backwards.
template <class F, bool backwards = false>
struct HostBlock {
  F f;
  LRCNN_HOST_DEVICE void operator()(Index block) const {
    typename F::Shared shared;
    detail::each_phase(f, block, [&](auto k, Index round) {
      for (int i = 0; i < block_threads; ++i) detail::run_phase<decltype(k)::value>(f, block, backwards ? block_threads - 1 - i : i, shared, round);
    });
  }
};
namespace detail {
#ifdef __CUDACC__
template <class Exec>
concept CudaPolicy = requires(Exec exec) {
  static_cast<cudaStream_t>(thrust::cuda_cub::stream(exec));
};
/// The stream that a policy starts loops on. Thrust asks for a policy that is no constant.
template <CudaPolicy Exec>
cudaStream_t cuda_stream(const Exec& exec) {
  Exec own = exec;
  return thrust::cuda_cub::stream(own);
}
/// Blocks that a multiprocessor is to run at once, which bounds their registers: F::at_once_on_device, or two.
template <class F>
consteval int blocks_at_once() {
  if constexpr (requires { F::at_once_on_device; }) return F::at_once_on_device;
  else return 2;   // registers of 128 a thread at most
}
template <class F>
__global__ void __launch_bounds__(block_threads, blocks_at_once<F>()) run_block(const __grid_constant__ F f) {
  __shared__ alignas(typename F::Shared) unsigned char memory[sizeof(typename F::Shared)];   // may not have initialisers; phase 0 sets what it needs
  auto& shared = *reinterpret_cast<typename F::Shared*>(memory);
  const Index block = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  each_phase(f, block, [&](auto k, Index round) {
    if (decltype(k)::value > 0 || round > 0) __syncthreads();
    run_phase<decltype(k)::value>(f, block, thread, shared, round);
  });
}
#endif
}   // namespace detail
/// Runs blocks 0 ... count - 1 where `exec` says. Errors: a launch that fails throws thrust::system_error, as Thrust's own do.
template <class Exec, class F>
void for_blocks(const Exec& exec, Index count, const F& f) {
  if (count <= 0) return;
#ifdef __CUDACC__
  if constexpr (detail::CudaPolicy<Exec>) {
    detail::run_block<F><<<static_cast<unsigned>(count), block_threads, 0, detail::cuda_stream(exec)>>>(f);
    if (const cudaError_t e = cudaGetLastError(); e != cudaSuccess) throw thrust::system_error(e, thrust::cuda_category(), "a loop of blocks");
  } else {
    for_units(exec, count, HostBlock<F>{f});
  }
#else
  for_units(exec, count, HostBlock<F>{f});
#endif
}
/// Step `k` of a tree over threads whose numbers differ in powers of two from `first` down to `last`: add(thread, other) where thread takes in
/// what other holds. The results are with the threads whose numbers have none of those bits.
template <int k, class F>
LRCNN_HOST_DEVICE void tree_step(int thread, int first, int last, F add) {
  constexpr int offset = block_threads >> (k + 1);
  if (offset <= first && offset >= last && (thread & offset) == 0) add(thread, thread + offset);
}
/// Threads of a block in rows of `width`, with V numbers each: how they add up the rows, in two phases with a barrier between them. In the first,
/// thread k makes of_rows() of its own; in the second, of the first width * V threads each makes of_pieces(): the sum of number k / width of the
/// threads below thread k % width. Pre: width is a power of two, at most block_threads / V
template <int V>
struct ThreadRows {
  int width;
  LRCNN_HOST_DEVICE int sums() const { return width * V; }
  /// Which of the V numbers of its column a thread adds up.
  LRCNN_HOST_DEVICE int number(int thread) const { return thread / width % V; }
  LRCNN_HOST_DEVICE int column(int thread) const { return thread % width; }
  template <class A>
  LRCNN_HOST_DEVICE A of_rows(const A (&numbers)[V][block_threads], int thread) const {
    const A* first = &numbers[number(thread)][thread / sums() * V * width + column(thread)];
    A sum = *first;
    for (int i = 1; i < V; ++i) sum += first[i * width];
    return sum;
  }
  template <class A>
  LRCNN_HOST_DEVICE A of_pieces(const A (&pieces)[block_threads], int thread) const {
    A sum = pieces[thread];
    for (int k = thread + sums(); k < block_threads; k += sums()) sum += pieces[k];
    return sum;
  }
};
/// The least power of two that is not below a number.
constexpr int power_above(Index a) {
  int power = 1;
  while (power < a) power *= 2;
  return power;
}
}   // namespace lrcnn::loops
