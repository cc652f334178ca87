#pragma once
// The arithmetic of Winograd's F(4x4, 3x3), one vector of channels at a time.
//
// A tile of 4 x 4 outputs of a 3x3 convolution needs 6 x 6 inputs. Both are taken to a space of 36 positions, where a
// convolution is a product of matrices, one a position: 36 multiplications stand for 144. The matrices below are those
// for the points 0, 1, -1, 2, -2 and infinity.
//
//   forward          y  = A'[ (G w G') . (B' d B) ] A      data gradient: the same with the filter turned round
//   filter gradient  dw = G'[ (B' d B) . (A dy A') ] G     which is the derivative of the line above
//
// Element (row, column) of a matrix with so many rows lies at
//     rows * 64 * (column / 64) + row * width(panel) + column % 64,   width(panel) = 64 but for the last panel.
//
// The formulas are written once, in winograd_formulas.hpp, which is compiled for each kind of vectors whatever the
// program is compiled for. Each kind is a struct of static functions; run() in winograd.hpp takes it as an argument. It is for the
// caller to ask whether the processor has the vectors (core/vectors.hpp).
// Source:  A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, arXiv 1509.09308
#include <lrcnn/backend/host/winograd_blocking.hpp>
#include <lrcnn/core/vectors.hpp>
#include <lrcnn/core/view.hpp>
#include <cstdint>
#include <cstring>
#if defined(__GNUC__)
#define LRCNN_WINOGRAD 1
#else
#define LRCNN_WINOGRAD 0
#endif
#if LRCNN_WINOGRAD && defined(__x86_64__)
#include <immintrin.h>
#endif
namespace lrcnn::host::winograd {
/// Packed filters [k / lanes][c / lanes][9][lanes c][lanes k], in blocks of which either kind of channel may change first.
struct Filter {
  const float* data = nullptr;
  Index next_out = 0, next_in = 0;   ///< elements from block to block
  bool turned = false;
};
/// Where results go, and what is done with them on the way.
struct Output {
  View<float> y{};
  const float* bias = nullptr;   ///< out_c numbers; null: none are added
  bool relu = false;
  View<std::uint8_t> signs{};   ///< with ReLU: where a bit tells of each number whether it is positive (saved_view); empty: nowhere
};
/// A product of matrices, c(i, j) (+)= sum over p of a(i, p) b(p, j), wherever their elements lie: columns j in vectors, the depth in pieces.
struct Product {
  const float* a = nullptr;
  Index a_row = 0, a_step = 0, a_next = 0;   ///< from row to row, along the depth, and to the next piece of it
  const float* b = nullptr;
  Index b_step = 0, b_vector = 0, b_next = 0;   ///< along the depth, from vector to vector, and to the next piece
  Index depth = 0, pieces = 1;                  ///< of a piece; how many
  float* c = nullptr;
  Index c_row = 0, c_vector = 0;
  bool add = false;               ///< to what c has: sums begin with that
  bool adds_up = false;           ///< to what c has when sums are done, for those of a large map, which are made piece by piece
  const float* start = nullptr;   ///< otherwise every row begins with this, a vector behind the other; null: zeros
};
namespace detail {
/// Where a tile lies.
struct Place {
  Index image = 0, y = 0, x = 0;
  Place(const SlabPass& p, Index t) : image(t / (p.across() * p.down())), y(t / p.across() % p.down()), x(t % p.across()) {}
  void next(const SlabPass& p) {
    if (++x < p.across()) return;
    x = 0;
    if (++y < p.down()) return;
    y = 0, ++image;
  }
};
/// Bit l is set where lane l of a comparison's result is true.
template <class Truths>
unsigned bits_of(const Truths& truths) {
  unsigned bits = 0;
  for (unsigned l = 0; l < sizeof(truths) / 4; ++l) bits |= static_cast<unsigned>(truths[l] != 0) << l;
  return bits;
}
}   // namespace detail
#if LRCNN_WINOGRAD
// LRCNN_KERNELS: the struct's name. LRCNN_VECTORS: their kind. LRCNN_COLUMNS: vectors side by side in a product's piece of six
// rows; its 6 x LRCNN_COLUMNS sums stay in registers. LRCNN_TARGET: instructions. LRCNN_POSITIVE(x): a bit for each lane of x.
#if defined(__x86_64__)
// 24 sums of the 32 registers.
#define LRCNN_KERNELS Avx512
#define LRCNN_VECTORS Vectors::avx512
#define LRCNN_COLUMNS 4
#define LRCNN_TARGET [[gnu::target("avx512f")]]
#define LRCNN_POSITIVE(x) _mm512_cmp_ps_mask(reinterpret_cast<const __m512&>(x), _mm512_setzero_ps(), _CMP_GT_OQ)
#include <lrcnn/backend/host/winograd_formulas.hpp>
// 12 sums of the 16 registers.
#define LRCNN_KERNELS Avx2
#define LRCNN_VECTORS Vectors::avx2
#define LRCNN_COLUMNS 2
#define LRCNN_TARGET [[gnu::target("avx2,fma")]]
#define LRCNN_POSITIVE(x) _mm256_movemask_ps(_mm256_cmp_ps(reinterpret_cast<const __m256&>(x), _mm256_setzero_ps(), _CMP_GT_OQ))
#include <lrcnn/backend/host/winograd_formulas.hpp>
#endif
// What the compiler makes of eight floats for any processor: two registers of 128 bits each on x86-64 (of 16) and aarch64 (of 32).
#define LRCNN_KERNELS Plain
#define LRCNN_VECTORS Vectors::plain
#if defined(__aarch64__)
#define LRCNN_COLUMNS 2
#else
#define LRCNN_COLUMNS 1
#endif
#define LRCNN_TARGET
#define LRCNN_POSITIVE(x) detail::bits_of((x) > 0.f)
#include <lrcnn/backend/host/winograd_formulas.hpp>
/// Calls f with the kernels for a kind of vectors. Pre: the processor has them.
template <class F>
void with_kernels([[maybe_unused]] Vectors vectors, F&& f) {
#if defined(__x86_64__)
  if (vectors == Vectors::avx512) return f(Avx512{});
  if (vectors == Vectors::avx2) return f(Avx2{});
#endif
  f(Plain{});
}
#endif
}   // namespace lrcnn::host::winograd
