// The formulas of Winograd's F(4x4, 3x3) for one kind of vectors; see winograd_kernels.hpp, which includes this file once
// for each kind of vectors and says what the macros mean. Included alone, it is empty.
#if defined(LRCNN_KERNELS)
struct LRCNN_KERNELS {
  static constexpr Vectors vectors = LRCNN_VECTORS;
  static constexpr Index lanes = vector_block(vectors);
  /// A vector, wherever it lies.
  using Floats [[gnu::vector_size(lanes * 4), gnu::aligned(4), gnu::may_alias]] = float;
  LRCNN_TARGET [[gnu::always_inline]] static inline Floats& at(float* p) { return *reinterpret_cast<Floats*>(p); }
  LRCNN_TARGET [[gnu::always_inline]] static inline const Floats& at(const float* p) { return *reinterpret_cast<const Floats*>(p); }
  /// A bit for each lane.
  using Bits = std::conditional_t<lanes == 16, std::uint16_t, std::uint8_t>;
  /// Bit l is set where lane l is positive.
  LRCNN_TARGET [[gnu::always_inline]] static inline Bits positive(const Floats& x) { return static_cast<Bits>(LRCNN_POSITIVE(x)); }
  /// B' of six numbers.
  LRCNN_TARGET [[gnu::always_inline]] static inline void to_patch(const Floats* d, Index stride, float* out, Index out_stride) {
    const Floats d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride], d4 = d[4 * stride], d5 = d[5 * stride];
    const Floats a = d4 - 4.f * d2, b = d3 - 4.f * d1, c = d4 - d2, e = 2.f * (d3 - d1);
    at(out) = 4.f * d0 - 5.f * d2 + d4;
    at(out + out_stride) = a + b;
    at(out + 2 * out_stride) = a - b;
    at(out + 3 * out_stride) = c + e;
    at(out + 4 * out_stride) = c - e;
    at(out + 5 * out_stride) = 4.f * d1 - 5.f * d3 + d5;
  }
  /// B' d B of a patch whose rows are `row` floats apart and whose columns are a vector; position q of the result goes to out + q * stride.
  LRCNN_TARGET static void transform_input(const float* d, Index row, float* out, Index stride) {
    alignas(64) Floats half[36];
    for (Index x = 0; x < 6; ++x) {
      const Floats column[6] = {at(d + x * lanes),           at(d + row + x * lanes),     at(d + 2 * row + x * lanes),
                                at(d + 3 * row + x * lanes), at(d + 4 * row + x * lanes), at(d + 5 * row + x * lanes)};
      to_patch(column, 1, reinterpret_cast<float*>(half + x), 6 * lanes);
    }
    for (Index y = 0; y < 6; ++y) to_patch(half + 6 * y, 1, out + 6 * y * stride, stride);
  }
  /// A' of six numbers.
  LRCNN_TARGET [[gnu::always_inline]] static inline void to_tile(const Floats& m0, const Floats& m1, const Floats& m2, const Floats& m3,
                                                                 const Floats& m4, const Floats& m5, Floats* out, Index stride) {
    const Floats s = m1 + m2, d = m1 - m2, s2 = m3 + m4, d2 = m3 - m4;
    out[0] = m0 + s + s2;
    out[stride] = d + 2.f * d2;
    out[2 * stride] = s + 4.f * s2;
    out[3 * stride] = d + 8.f * d2 + m5;
  }
  /// A' m A: 36 positions, `stride` floats apart, to the 16 outputs of a tile, in row-major order.
  LRCNN_TARGET static void transform_output(const float* m, Index stride, Floats* out) {
    alignas(64) Floats half[24];
    for (Index x = 0; x < 6; ++x)
      to_tile(at(m + x * stride), at(m + (6 + x) * stride), at(m + (12 + x) * stride), at(m + (18 + x) * stride), at(m + (24 + x) * stride),
              at(m + (30 + x) * stride), half + x, 6);
    for (Index y = 0; y < 4; ++y) {
      const Floats* h = half + 6 * y;
      to_tile(h[0], h[1], h[2], h[3], h[4], h[5], out + 4 * y, 1);
    }
  }
  /// A of four numbers.
  LRCNN_TARGET [[gnu::always_inline]] static inline void from_tile(const Floats& y0, const Floats& y1, const Floats& y2, const Floats& y3, float* out,
                                                                   Index stride) {
    const Floats even = y0 + y2, odd = y1 + y3, even4 = y0 + 4.f * y2, odd4 = 2.f * y1 + 8.f * y3;
    at(out) = y0;
    at(out + stride) = even + odd;
    at(out + 2 * stride) = even - odd;
    at(out + 3 * stride) = even4 + odd4;
    at(out + 4 * stride) = even4 - odd4;
    at(out + 5 * stride) = y3;
  }
  /// A dy A' of a tile whose rows are `row` floats apart.
  LRCNN_TARGET static void transform_gradient(const float* dy, Index row, float* out, Index stride) {
    alignas(64) Floats half[24];
    for (Index x = 0; x < 4; ++x)
      from_tile(at(dy + x * lanes), at(dy + row + x * lanes), at(dy + 2 * row + x * lanes), at(dy + 3 * row + x * lanes),
                reinterpret_cast<float*>(half + x), 4 * lanes);
    for (Index y = 0; y < 6; ++y) from_tile(half[4 * y], half[4 * y + 1], half[4 * y + 2], half[4 * y + 3], out + 6 * y * stride, stride);
  }
  /// G of three numbers.
  LRCNN_TARGET [[gnu::always_inline]] static inline void from_taps(const Floats& g0, const Floats& g1, const Floats& g2, float* out, Index stride) {
    const Floats even = g0 + g2, even4 = (g0 + 4.f * g2) * (1.f / 24), odd = g1 * (1.f / 12);
    at(out) = g0 * .25f;
    at(out + stride) = (even + g1) * (-1.f / 6);
    at(out + 2 * stride) = (even - g1) * (-1.f / 6);
    at(out + 3 * stride) = even4 + odd;
    at(out + 4 * stride) = even4 - odd;
    at(out + 5 * stride) = g2;
  }
  /// G w G' of 9 taps, `stride` floats apart; `turned`: of the filter turned round.
  LRCNN_TARGET static void transform_filter(const float* w, Index stride, bool turned, float* out, Index out_stride) {
    const float* first = turned ? w + 8 * stride : w;
    const Index tap = turned ? -stride : stride;
    alignas(64) Floats half[18];
    for (Index x = 0; x < 3; ++x)
      from_taps(at(first + x * tap), at(first + (3 + x) * tap), at(first + (6 + x) * tap), reinterpret_cast<float*>(half + x), 3 * lanes);
    for (Index y = 0; y < 6; ++y) from_taps(half[3 * y], half[3 * y + 1], half[3 * y + 2], out + 6 * y * out_stride, out_stride);
  }
  /// G' of six numbers.
  LRCNN_TARGET [[gnu::always_inline]] static inline void to_taps(const Floats& u0, const Floats& u1, const Floats& u2, const Floats& u3,
                                                                 const Floats& u4, const Floats& u5, Floats* out, Index stride) {
    const Floats inner = (u1 + u2) * (1.f / 6), outer = (u3 + u4) * (1.f / 24);
    out[0] = u0 * .25f - inner + outer;
    out[stride] = (u2 - u1) * (1.f / 6) + (u3 - u4) * (1.f / 12);
    out[2 * stride] = 4.f * outer - inner + u5;
  }
  /// G' u G: 36 positions to the 9 taps of a vector of filters.
  LRCNN_TARGET static void transform_taps(const float* u, Index stride, Floats* out) {
    alignas(64) Floats half[18];
    for (Index x = 0; x < 6; ++x)
      to_taps(at(u + x * stride), at(u + (6 + x) * stride), at(u + (12 + x) * stride), at(u + (18 + x) * stride), at(u + (24 + x) * stride),
              at(u + (30 + x) * stride), half + x, 6);
    for (Index y = 0; y < 3; ++y) {
      const Floats* h = half + 6 * y;
      to_taps(h[0], h[1], h[2], h[3], h[4], h[5], out + 3 * y, 1);
    }
  }
  /// Rows i to i + R and vectors j to j + B of a product. Sums run through its depth in order. `dense`: vectors lie side by side in b and in c.
  template <int R, int B, bool dense>
  LRCNN_TARGET [[gnu::noinline]] static void multiply(const Product& m, Index i, Index j) {
    const Index depth = m.depth, row = m.a_row, step = m.a_step, b_step = m.b_step, vector = dense ? lanes : m.b_vector;
    const float *a = m.a + i * row, *b = m.b + j * vector;
    float* const c = m.c + i * m.c_row + j * m.c_vector;
    const Index c_row = m.c_row, c_vector = dense ? lanes : m.c_vector;
    Floats sum[R][B]{};
    if (m.add) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < B; ++v) sum[r][v] = at(c + r * c_row + v * c_vector);
    } else if (m.start != nullptr) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < B; ++v) sum[r][v] = at(m.start + (j + v) * lanes);
    }
    for (Index q = 0; q < m.pieces; ++q, a += m.a_next, b += m.b_next) {
      const float *from = a, *right = b;
      for (Index p = 0; p < depth; ++p, from += step, right += b_step) {
        Floats column[B];
#pragma GCC unroll 8
        for (int v = 0; v < B; ++v) column[v] = at(right + vector * v);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const Floats x = from[r * row] - Floats{};   // exact for every number, and no instruction
#pragma GCC unroll 8
          for (int v = 0; v < B; ++v) sum[r][v] += x * column[v];
        }
      }
    }
    if (m.adds_up) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < B; ++v) sum[r][v] += at(c + r * c_row + v * c_vector);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < B; ++v) at(c + r * c_row + v * c_vector) = sum[r][v];
  }
  /// Copies the rows and columns of a patch that exist; the rest are zeros.
  static const float* fill(const View<const float>& v, Index image, Index block, Index y, Index x, Index size, float* out) {
    std::fill_n(out, size * size * lanes, 0.f);
    const Index x0 = std::max<Index>(0, -x), x1 = std::min(size, v.w - x);
    if (x0 >= x1) return out;
    for (Index r = std::max<Index>(0, -y); r < std::min(size, v.rows - y); ++r)
      std::copy_n(v.row(image, block, v.row0 + y + r) + (x + x0) * lanes, (x1 - x0) * lanes, out + (r * size + x0) * lanes);
    return out;
  }
  /// A vector's columns of a panel of a matrix with so many rows.
  template <class T>
  static T* column(T* matrix, Index rows, Index block) {
    const Index p = block * lanes / panel;
    return matrix + rows * panel * p + block * lanes % panel;
  }
  static constexpr Index row_of(Index columns, Index block) { return panel_width(columns, block * lanes / panel); }
  /// B' d B of tiles [begin, begin + count) for one block of channels.
  LRCNN_TARGET static void inputs(const SlabPass& p, const View<const float>& in, Index begin, Index count, Index block, float* v, Range tiles) {
    alignas(64) float border[36 * lanes];
    detail::Place place(p, begin + tiles.begin);
    const Index width = row_of(p.in_c, block);
    float* out = column(v, count, block) + tiles.begin * width;
    for (Index t = tiles.begin; t < tiles.end; ++t, place.next(p), out += width) {
      const Index y = place.y * tile - p.top, x = place.x * tile - p.left;
      const bool inside = y >= 0 && x >= 0 && y + patch <= in.rows && x + patch <= in.w;
      if (inside) transform_input(in.row(place.image, block, in.row0 + y) + x * lanes, in.stride_row(), out, detail::apart(count, p.in_c));
      else transform_input(fill(in, place.image, block, y, x, patch, border), patch * lanes, out, detail::apart(count, p.in_c));
    }
  }
  /// A dy A' likewise, for one block of the channels from `first` on.
  LRCNN_TARGET static void gradients(const SlabPass& p, const View<const float>& dy, Index begin, Index count, Index first, Index channels,
                                     Index block, float* m, Range tiles) {
    alignas(64) float border[16 * lanes];
    detail::Place place(p, begin + tiles.begin);
    const Index width = row_of(channels, block), source = first / lanes + block;
    float* out = column(m, count, block) + tiles.begin * width;
    for (Index t = tiles.begin; t < tiles.end; ++t, place.next(p), out += width) {
      const Index y = place.y * tile, x = place.x * tile;
      if (y + tile <= dy.rows && x + tile <= dy.w)
        transform_gradient(dy.row(place.image, source, dy.row0 + y) + x * lanes, dy.stride_row(), out, detail::apart(count, channels));
      else transform_gradient(fill(dy, place.image, source, y, x, tile, border), tile * lanes, out, detail::apart(count, channels));
    }
  }
  /// A' m A and what follows it, of tiles, to one block of the channels from `first` on.
  template <bool relu>
  LRCNN_TARGET static void outputs(const SlabPass& p, const float* m, Index begin, Index count, Index first, Index channels, Index block,
                                   const Output& out, Range tiles) {
    detail::Place place(p, begin + tiles.begin);
    const Index width = row_of(channels, block), target = first / lanes + block;
    const float* from = column(m, count, block) + tiles.begin * width;
    const Floats shift = out.bias ? at(out.bias + target * lanes) : Floats{};
    for (Index t = tiles.begin; t < tiles.end; ++t, place.next(p), from += width) {
      alignas(64) Floats y[16];
      transform_output(from, detail::apart(count, channels), y);
      const Index rows = std::min(tile, out.y.rows - place.y * tile), columns = std::min(tile, out.y.w - place.x * tile);
      for (Index r = 0; r < rows; ++r) {
        const Index row = place.y * tile + r;
        float* to = out.y.row(place.image, target, out.y.row0 + row) + place.x * tile * lanes;
        for (Index c = 0; c < columns; ++c) {
          const Floats value = y[r * 4 + c] + shift;
          at(to + c * lanes) = relu ? (value <= 0.f ? Floats{} : value) : value;   // not-a-number stays
        }
        if constexpr (relu) {
          if (out.signs.data == nullptr) continue;
          std::uint8_t* bits = out.signs.row(place.image, target, out.signs.row0 + row) + place.x * tile * lanes / 8;
          for (Index c = 0; c < columns; ++c) {
            const Bits word = positive(y[r * 4 + c] + shift);
            std::memcpy(bits + c * lanes / 8, &word, sizeof(word));
          }
        }
      }
    }
  }
  /// G w G' of the filters from `in` channels to a block of the output channels from `first` on.
  LRCNN_TARGET static void filters(const SlabPass& p, const Filter& f, Index first, Index channels, Index block, float* u, Range in) {
    const Index width = row_of(channels, block);
    float* out = column(u, p.in_c, block) + in.begin * width;
    for (Index c = in.begin; c < in.end; ++c, out += width)
      transform_filter(f.data + (first / lanes + block) * f.next_out + c / lanes * f.next_in + c % lanes * lanes, lanes * lanes, f.turned, out,
                       detail::apart(p.in_c, channels));
  }
  /// G' u G for input channels `in` and a block of the output channels from `first` on, into the filters' own layout.
  LRCNN_TARGET static void taps(const SlabPass& p, const float* u, Index first, Index channels, Index block, Range in, Index outputs, Index inputs,
                                bool add, float* dw) {
    const Index width = row_of(channels, block), k = first + block * lanes, count = std::min(lanes, outputs - k);
    const float* from = column(u, p.in_c, block) + in.begin * width;
    for (Index c = in.begin; c < in.end; ++c, from += width) {
      alignas(64) Floats tap[9];
      transform_taps(from, detail::apart(p.in_c, channels), tap);
      for (Index l = 0; l < count; ++l) {
        float* to = dw + ((k + l) * inputs + c) * 9;
        for (Index i = 0; i < 9; ++i) to[i] = (add ? to[i] : 0.f) + tap[i][l];
      }
    }
  }
  template <bool dense, int B = LRCNN_COLUMNS>
  static void multiply_from(const Product& m, Index rows, Index count, Index j) {
    for (; j + B <= count; j += B) {
      Index i = 0;
      for (; i + 6 <= rows; i += 6) multiply<6, B, dense>(m, i, j);
      for (; i + 4 <= rows; i += 4) multiply<4, B, dense>(m, i, j);
      for (; i < rows; ++i) multiply<1, B, dense>(m, i, j);
    }
    if constexpr (B > 1) multiply_from<dense, B / 2>(m, rows, count, j);
  }
  /// A product of so many rows, and of so many vectors of columns.
  static void multiply_all(const Product& m, Index rows, Index count) {
    if (m.b_vector == lanes && m.c_vector == lanes) multiply_from<true>(m, rows, count, 0);
    else multiply_from<false>(m, rows, count, 0);
  }
  /// m = v u at one position, for one panel of output channels.
  static void product(const SlabPass& p, const float* v, const float* u, Index count, Index channels, Index kp, float* m) {
    const Index width = panel_width(channels, kp), whole = p.in_c / panel, rest = p.in_c % panel;
    const float* b = u + p.in_c * panel * kp;
    float* c = m + count * panel * kp;
    if (whole > 0)
      multiply_all({.a = v,
                    .a_row = panel,
                    .a_step = 1,
                    .a_next = panel * count,
                    .b = b,
                    .b_step = width,
                    .b_vector = lanes,
                    .b_next = panel * width,
                    .depth = panel,
                    .pieces = whole,
                    .c = c,
                    .c_row = width,
                    .c_vector = lanes},
                   count, width / lanes);
    if (rest > 0)
      multiply_all({.a = v + whole * panel * count,
                    .a_row = rest,
                    .a_step = 1,
                    .b = b + whole * panel * width,
                    .b_step = width,
                    .b_vector = lanes,
                    .depth = rest,
                    .c = c,
                    .c_row = width,
                    .c_vector = lanes,
                    .add = whole > 0},
                   count, width / lanes);
  }
  /// u (+)= v' m at one position, for one panel of output channels.
  static void product_of_gradients(const SlabPass& p, const float* v, const float* m, Index count, Index channels, Index kp, float* u, bool add) {
    const Index width = panel_width(channels, kp);
    for (Index cp = 0; cp < ceil_div(p.in_c, panel); ++cp) {
      const Index rows = panel_width(p.in_c, cp);
      multiply_all({.a = v + cp * panel * count,
                    .a_row = 1,
                    .a_step = rows,
                    .b = m + count * panel * kp,
                    .b_step = width,
                    .b_vector = lanes,
                    .depth = count,
                    .c = u + p.in_c * panel * kp + cp * panel * width,
                    .c_row = width,
                    .c_vector = lanes,
                    .add = add},
                   rows, width / lanes);
    }
  }
  /// Sums of a group's gradients over all tiles, which are the bias's: the position of the points 1 and 1 adds a tile's up. Of a large map
  /// there are millions of tiles, for which a float would stop growing.
  LRCNN_TARGET static void add_biases(const float* m, Index count, Index channels, double* total) {
    for (Index k = 0; k < channels; k += panel) {
      const Index width = panel_width(channels, k / panel);
      const float* row = m + 7 * detail::apart(count, channels) + count * k;
      for (Index t = 0; t < count; ++t, row += width)
        for (Index j = 0; j < width; ++j) total[k + j] += double{row[j]};
    }
  }
};
#undef LRCNN_KERNELS
#undef LRCNN_VECTORS
#undef LRCNN_COLUMNS
#undef LRCNN_TARGET
#undef LRCNN_POSITIVE
#endif
