#pragma once
// Checks what an engine of the vendor's library computes for a convolution: draws numbers for its operands, and computes some numbers of the result
// again, product by product.
//
// Drawn numbers are multiples of an eighth between -1 and 1, which all formats hold exactly, so an engine may only round sums and results.
#include <lrcnn/backend/cudnn/library.hpp>
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/core/rng.hpp>
#include <cmath>
namespace lrcnn::loops {
/// How many numbers of a result are made again: an eighth each in its first and last row and its first and last column, where padding tells.
inline constexpr Index trial_samples = 256;
inline constexpr const char* wrong_numbers = "its numbers are wrong";
inline constexpr Index trial_bytes = trial_samples * Index{sizeof(double)};
namespace detail {
LRCNN_HOST_DEVICE inline std::uint32_t drawn_bits(std::uint64_t number, std::uint32_t stream) {
  std::uint32_t counter[4] = {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), stream, 0};
  philox_rounds(counter, 0, 0);
  return counter[0];
}
/// An operand's numbers.
template <class T>
struct DrawLoop {
  T* to;
  std::uint32_t stream;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    const int eighths = static_cast<int>(drawn_bits(static_cast<std::uint64_t>(unit), stream) & 15u) - 8;
    to[unit] = static_cast<T>(static_cast<float>(eighths < 0 ? eighths : eighths + 1) / 8.0f);   // none is 0
  }
};
/// Fills a result with NaN, so that a number which an engine does not write shows.
template <class T>
struct NoNumberLoop {
  T* to;
  LRCNN_HOST_DEVICE void operator()(Index unit) const { to[unit] = static_cast<T>(NAN); }
};
/// A block makes one number again, and says how far the engine's is from it, as a multiple of what rounding may make.
template <class T>
struct SampleLoop {
  static constexpr int phases = 1 + tree_phases;
  struct Shared {
    double sum[block_threads], size[block_threads];   ///< of products; of their absolute values
  };
  cudnn::Problem p;
  cudnn::TrialMemory<T> memory;
  double of_sum, of_result;   ///< what rounding may make: of the products' absolute values, of the result
  double* errors;
  Divisor inputs, outputs, tap_columns, rows, columns, stride_rows, stride_columns;   ///< inputs, outputs: channels of a group
  SampleLoop(const cudnn::Problem& problem, const cudnn::TrialMemory<T>& there, double sum, double result, double* to)
      : p(problem),
        memory(there),
        of_sum(sum),
        of_result(result),
        errors(to),
        inputs(p.c / p.groups),
        outputs(p.k / p.groups),
        tap_columns(p.kernel.w),
        rows(p.p),
        columns(p.q),
        stride_rows(p.stride.h),
        stride_columns(p.stride.w) {}
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const Index at = element(block);
    if constexpr (k == 0) {
      double sum = 0, size = 0;
      for (Index i = thread, count = products(); i < count; i += block_threads) {
        const double one = product(at, i);
        sum += one, size += one < 0 ? -one : one;
      }
      shared.sum[thread] = sum, shared.size[thread] = size;
    } else {
      tree_step<k - 1>(thread, block_threads / 2, 1,
                       [&](int own, int other) { shared.sum[own] += shared.sum[other], shared.size[own] += shared.size[other]; });
      if constexpr (k == phases - 1)
        if (thread == 0) errors[block] = error(at, shared.sum[0], shared.size[0]);
    }
  }

 private:
  LRCNN_HOST_DEVICE Index taps() const { return p.kernel.h * p.kernel.w; }
  /// Products of one number.
  LRCNN_HOST_DEVICE Index products() const {
    return p.op == Op::forward ? taps() * inputs.value() : p.op == Op::backward_data ? taps() * outputs.value() : p.n * p.p * p.q;
  }
  /// The number that a block makes, as it lies in memory.
  LRCNN_HOST_DEVICE Index element(Index block) const {
    const auto draw = [&](std::uint32_t stream, Index bound) {
      const auto high = static_cast<std::uint64_t>(drawn_bits(static_cast<std::uint64_t>(block), stream)) << 32;
      return static_cast<Index>((high | drawn_bits(static_cast<std::uint64_t>(block), stream + 1)) % static_cast<std::uint64_t>(bound));
    };
    if (p.op == Op::backward_parameters) return draw(0, p.k * taps() * inputs.value());
    const bool forwards = p.op == Op::forward;
    const Index height = forwards ? p.p : p.h, width = forwards ? p.q : p.w, channels = forwards ? p.k : p.c, edge = block % 8;
    const Index row = edge == 0 ? 0 : edge == 1 ? height - 1 : draw(0, height), column = edge == 2 ? 0 : edge == 3 ? width - 1 : draw(2, width);
    return ((draw(4, p.n) * height + row) * width + column) * channels + draw(6, channels);
  }
  LRCNN_HOST_DEVICE double x(Index image, Index h, Index v, Index c) const {
    return h < 0 || h >= p.h || v < 0 || v >= p.w ? 0 : static_cast<double>(memory.x[((image * p.h + h) * p.w + v) * p.c + c]);
  }
  LRCNN_HOST_DEVICE double y(Index image, Index row, Index column, Index k) const {
    return static_cast<double>(memory.y[((image * p.p + row) * p.q + column) * p.k + k]);
  }
  LRCNN_HOST_DEVICE double w(Index k, Index tap, Index c) const { return static_cast<double>(memory.w[(k * taps() + tap) * inputs.value() + c]); }
  /// Rows of x before the first of a map, at the tap of a window.
  LRCNN_HOST_DEVICE Index row_offset(Index tap) const { return tap_columns.quotient(tap) * p.dilation.h - p.pad.top; }
  LRCNN_HOST_DEVICE Index column_offset(Index tap) const {
    tap_columns.split(tap);
    return tap * p.dilation.w - p.pad.left;
  }
  LRCNN_HOST_DEVICE double product(Index at, Index i) const {
    if (p.op == Op::forward) {
      const Index tap = inputs.split(i), k = at % p.k, column = at / p.k % p.q, row = at / p.k / p.q % p.p, image = at / p.k / p.q / p.p;
      const Index from = outputs.quotient(k) * inputs.value();
      return x(image, row * p.stride.h + row_offset(tap), column * p.stride.w + column_offset(tap), from + i) * w(k, tap, i);
    }
    if (p.op == Op::backward_data) {
      const Index tap = outputs.split(i), v = at / p.c % p.w, h = at / p.c / p.w % p.h, image = at / p.c / p.w / p.h;
      Index c = at % p.c, row = h - row_offset(tap), column = v - column_offset(tap);
      const Index k = inputs.split(c) * outputs.value() + i;
      if (row < 0 || column < 0) return 0;
      const Index y_row = stride_rows.split(row), y_column = stride_columns.split(column);
      return row > 0 || column > 0 || y_row >= p.p || y_column >= p.q ? 0 : y(image, y_row, y_column, k) * w(k, tap, c);
    }
    Index c = at, column = i, row = columns.split(column), tap = inputs.split(c);
    const Index image = rows.split(row), k = tap / taps(), from = outputs.quotient(k) * inputs.value();
    tap -= k * taps();
    return y(image, row, column, k) * x(image, row * p.stride.h + row_offset(tap), column * p.stride.w + column_offset(tap), from + c);
  }
  /// NaN or infinity from an engine is as far off as can be. If the step's own weights make them here, too, the sample says nothing.
  LRCNN_HOST_DEVICE double error(Index at, double sum, double size) const {
    double wanted = sum + (p.bias ? static_cast<double>(memory.bias[at % p.k]) : 0);
    if (!(wanted - wanted == 0)) return 0;
    if (p.relu && wanted < 0) wanted = 0;
    const T made = p.op == Op::forward ? memory.y[at] : p.op == Op::backward_data ? memory.x[at] : memory.w[at];
    const double off = static_cast<double>(made) - wanted;
    if (!(off - off == 0)) return 1e30;
    // Products of both signs cancel: of many, their sum grows as the root of their number, and so does what a wrong edge adds.
    const double typical = 200 * std::sqrt(static_cast<double>(products()));
    return (off < 0 ? -off : off) / (of_sum * (size < typical ? size : typical) + of_result * (wanted < 0 ? -wanted : wanted) + 1e-30);
  }
};
}   // namespace detail
/// Draws numbers for what a convolution reads, where the trial says that it may, and fills what it writes with NaN.
template <class Exec, class T>
void draw_operands(const Exec& exec, const cudnn::Problem& p, const cudnn::TrialMemory<T>& memory) {
  const auto prepare = [&](T* to, Index count, bool is_result, std::uint32_t stream) {
    if (is_result) for_units(exec, count, detail::NoNumberLoop<T>{to});
    else for_units(exec, count, detail::DrawLoop<T>{to, stream});
  };
  const bool makes_filter = p.op == Op::backward_parameters;
  prepare(memory.x, p.n * p.h * p.w * p.c, p.op == Op::backward_data, 1);
  prepare(memory.y, p.n * p.p * p.q * p.k, p.op == Op::forward, 2);
  if (makes_filter || memory.draws_weights) prepare(memory.w, p.k * p.kernel.h * p.kernel.w * (p.c / p.groups), makes_filter, 3);
  if (p.bias && memory.draws_bias) prepare(memory.bias, p.k, false, 4);
}
/// Makes trial_samples numbers of what it wrote again. errors: trial_bytes of the device's memory; an engine is right if none is above 1.
template <class Exec, class T>
void compare_samples(const Exec& exec, const cudnn::Problem& p, const cudnn::TrialMemory<T>& memory, double* errors) {
  const bool rounds_operands = p.precision == Precision::tf32 && !memory.draws_weights && p.op != Op::backward_parameters;
  const double of_result = p.precision == Precision::bf16 ? 1.0 / 128 : p.precision == Precision::fp16 ? 1.0 / 1024 : 1e-6;
  for_blocks(exec, trial_samples, detail::SampleLoop<T>(p, memory, rounds_operands ? 2e-3 : 3e-5, of_result, errors));
}
}   // namespace lrcnn::loops
