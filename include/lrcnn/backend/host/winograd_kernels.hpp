#pragma once
// The arithmetic of Winograd's F(4x4, 3x3), sixteen channels at a time.
//
// A tile of 4 x 4 outputs of a 3x3 convolution needs 6 x 6 inputs. Both are taken to a space of 36 positions, where a
// convolution is a product of matrices, one a position: 36 multiplications stand for 144. The matrices below are those
// for the points 0, 1, -1, 2, -2 and infinity.
//
//   forward          y  = A'[ (G w G') . (B' d B) ] A      data gradient: the same with the filter turned round
//   filter gradient  dw = G'[ (B' d B) . (A dy A') ] G     which is the derivative of the line above
//
// Matrices of one position are cut into panels of 64 columns, the last one may be narrower: element (row, column) of a
// matrix with so many rows lies at  rows * 64 * (column / 64) + row * width(panel) + column % 64.
//
// All of it is compiled for AVX-512 whatever the program is compiled for; available() says whether the machine has that.
// Source:  A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, arXiv 1509.09308
#include <lrcnn/core/types.hpp>
#include <algorithm>
#include <cstdint>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define LRCNN_WINOGRAD 1
#else
#define LRCNN_WINOGRAD 0
#endif
namespace lrcnn::host::winograd {
inline constexpr Index positions = 36, lanes = 16, panel = 64, tile = 4, patch = 6;
/// Whether this machine can run what is here.
inline bool available() {
#if LRCNN_WINOGRAD
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
#else
  return false;
#endif
}
/// Columns of a panel of a matrix.
constexpr Index panel_width(Index columns, Index p) { return std::min(panel, columns - panel * p); }
#if LRCNN_WINOGRAD
/// Sixteen floats, wherever they lie.
using Floats [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;
[[gnu::target("avx512f"), gnu::always_inline]] inline Floats& at(float* p) { return *reinterpret_cast<Floats*>(p); }
[[gnu::target("avx512f"), gnu::always_inline]] inline const Floats& at(const float* p) { return *reinterpret_cast<const Floats*>(p); }
/// Bit l is set where lane l is positive.
[[gnu::target("avx512f"), gnu::always_inline]] inline std::uint16_t positive(const Floats& x) {
  return static_cast<std::uint16_t>(_mm512_cmp_ps_mask(reinterpret_cast<const __m512&>(x), _mm512_setzero_ps(), _CMP_GT_OQ));
}
/// B' of six numbers.
[[gnu::target("avx512f"), gnu::always_inline]] inline void to_patch(const Floats* d, Index stride, float* out, Index out_stride) {
  const Floats d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride], d4 = d[4 * stride], d5 = d[5 * stride];
  const Floats a = d4 - 4.f * d2, b = d3 - 4.f * d1, c = d4 - d2, e = 2.f * (d3 - d1);
  at(out) = 4.f * d0 - 5.f * d2 + d4;
  at(out + out_stride) = a + b;
  at(out + 2 * out_stride) = a - b;
  at(out + 3 * out_stride) = c + e;
  at(out + 4 * out_stride) = c - e;
  at(out + 5 * out_stride) = 4.f * d1 - 5.f * d3 + d5;
}
/// B' d B of a patch whose rows are `row` floats apart and whose columns are 16; position q of the result goes to out + q * stride.
[[gnu::target("avx512f")]] inline void transform_input(const float* d, Index row, float* out, Index stride) {
  alignas(64) Floats half[36];
  for (Index x = 0; x < 6; ++x) {
    const Floats column[6] = {at(d + x * 16), at(d + row + x * 16), at(d + 2 * row + x * 16),
                              at(d + 3 * row + x * 16), at(d + 4 * row + x * 16), at(d + 5 * row + x * 16)};
    to_patch(column, 1, reinterpret_cast<float*>(half + x), 96);
  }
  for (Index y = 0; y < 6; ++y) to_patch(half + 6 * y, 1, out + 6 * y * stride, stride);
}
/// A' of six numbers.
[[gnu::target("avx512f"), gnu::always_inline]] inline void to_tile(const Floats& m0, const Floats& m1, const Floats& m2, const Floats& m3,
                                                                  const Floats& m4, const Floats& m5, Floats* out, Index stride) {
  const Floats s = m1 + m2, d = m1 - m2, s2 = m3 + m4, d2 = m3 - m4;
  out[0] = m0 + s + s2;
  out[stride] = d + 2.f * d2;
  out[2 * stride] = s + 4.f * s2;
  out[3 * stride] = d + 8.f * d2 + m5;
}
/// A' m A: 36 positions, `stride` floats apart, to the 16 outputs of a tile, in row-major order.
[[gnu::target("avx512f")]] inline void transform_output(const float* m, Index stride, Floats* out) {
  alignas(64) Floats half[24];
  for (Index x = 0; x < 6; ++x)
    to_tile(at(m + x * stride), at(m + (6 + x) * stride), at(m + (12 + x) * stride), at(m + (18 + x) * stride),
            at(m + (24 + x) * stride), at(m + (30 + x) * stride), half + x, 6);
  for (Index y = 0; y < 4; ++y) {
    const Floats* h = half + 6 * y;
    to_tile(h[0], h[1], h[2], h[3], h[4], h[5], out + 4 * y, 1);
  }
}
/// A of four numbers.
[[gnu::target("avx512f"), gnu::always_inline]] inline void from_tile(const Floats& y0, const Floats& y1, const Floats& y2, const Floats& y3,
                                                                    float* out, Index stride) {
  const Floats even = y0 + y2, odd = y1 + y3, even4 = y0 + 4.f * y2, odd4 = 2.f * y1 + 8.f * y3;
  at(out) = y0;
  at(out + stride) = even + odd;
  at(out + 2 * stride) = even - odd;
  at(out + 3 * stride) = even4 + odd4;
  at(out + 4 * stride) = even4 - odd4;
  at(out + 5 * stride) = y3;
}
/// A dy A' of a tile whose rows are `row` floats apart.
[[gnu::target("avx512f")]] inline void transform_gradient(const float* dy, Index row, float* out, Index stride) {
  alignas(64) Floats half[24];
  for (Index x = 0; x < 4; ++x)
    from_tile(at(dy + x * 16), at(dy + row + x * 16), at(dy + 2 * row + x * 16), at(dy + 3 * row + x * 16),
              reinterpret_cast<float*>(half + x), 64);
  for (Index y = 0; y < 6; ++y) from_tile(half[4 * y], half[4 * y + 1], half[4 * y + 2], half[4 * y + 3], out + 6 * y * stride, stride);
}
/// G of three numbers.
[[gnu::target("avx512f"), gnu::always_inline]] inline void from_taps(const Floats& g0, const Floats& g1, const Floats& g2, float* out, Index stride) {
  const Floats even = g0 + g2, even4 = (g0 + 4.f * g2) * (1.f / 24), odd = g1 * (1.f / 12);
  at(out) = g0 * .25f;
  at(out + stride) = (even + g1) * (-1.f / 6);
  at(out + 2 * stride) = (even - g1) * (-1.f / 6);
  at(out + 3 * stride) = even4 + odd;
  at(out + 4 * stride) = even4 - odd;
  at(out + 5 * stride) = g2;
}
/// G w G' of 9 taps, `stride` floats apart; `turned`: of the filter turned round.
[[gnu::target("avx512f")]] inline void transform_filter(const float* w, Index stride, bool turned, float* out, Index out_stride) {
  const float* first = turned ? w + 8 * stride : w;
  const Index tap = turned ? -stride : stride;
  alignas(64) Floats half[18];
  for (Index x = 0; x < 3; ++x)
    from_taps(at(first + x * tap), at(first + (3 + x) * tap), at(first + (6 + x) * tap), reinterpret_cast<float*>(half + x), 48);
  for (Index y = 0; y < 6; ++y) from_taps(half[3 * y], half[3 * y + 1], half[3 * y + 2], out + 6 * y * out_stride, out_stride);
}
/// G' of six numbers.
[[gnu::target("avx512f"), gnu::always_inline]] inline void to_taps(const Floats& u0, const Floats& u1, const Floats& u2, const Floats& u3,
                                                                  const Floats& u4, const Floats& u5, Floats* out, Index stride) {
  const Floats inner = (u1 + u2) * (1.f / 6), outer = (u3 + u4) * (1.f / 24);
  out[0] = u0 * .25f - inner + outer;
  out[stride] = (u2 - u1) * (1.f / 6) + (u3 - u4) * (1.f / 12);
  out[2 * stride] = 4.f * outer - inner + u5;
}
/// G' u G: 36 positions to the 9 taps of 16 filters.
[[gnu::target("avx512f")]] inline void transform_taps(const float* u, Index stride, Floats* out) {
  alignas(64) Floats half[18];
  for (Index x = 0; x < 6; ++x)
    to_taps(at(u + x * stride), at(u + (6 + x) * stride), at(u + (12 + x) * stride), at(u + (18 + x) * stride),
            at(u + (24 + x) * stride), at(u + (30 + x) * stride), half + x, 6);
  for (Index y = 0; y < 3; ++y) {
    const Floats* h = half + 6 * y;
    to_taps(h[0], h[1], h[2], h[3], h[4], h[5], out + 3 * y, 1);
  }
}
/// A piece of a matrix product: c[i][j] (+)= sum over p of a(i, p) b[p][j] for i < R, j < 16 B. Sums run through p in order.
/// `a`: a(i, p) lies at a + i * row + p * step, for p < depth; further depths lie `next_a` and `next_b` on, `pieces` in all.
template <int R, int B>
[[gnu::target("avx512f"), gnu::noinline]] void multiply(const float* a, Index row, Index step, Index next_a, const float* b, Index width,
                                                       Index next_b, Index depth, Index pieces, float* c, Index c_row, bool add) {
  Floats sum[R][B];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < B; ++j) sum[i][j] = add ? at(c + i * c_row + 16 * j) : Floats{};
  for (Index q = 0; q < pieces; ++q, a += next_a, b += next_b) {
    const float *from = a, *right = b;
    for (Index p = 0; p < depth; ++p, from += step, right += width) {
      Floats column[B];
#pragma GCC unroll 8
      for (int j = 0; j < B; ++j) column[j] = at(right + 16 * j);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const Floats x = Floats{} + from[i * row];
#pragma GCC unroll 8
        for (int j = 0; j < B; ++j) sum[i][j] += x * column[j];
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < B; ++j) at(c + i * c_row + 16 * j) = sum[i][j];
}
#endif
}  // namespace lrcnn::host::winograd
