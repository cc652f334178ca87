#pragma once
// Upsampling: every output pixel is one input pixel, or a mean of up to four.
//
// Forward and backward both walk what they write and gather, so every row is written once, by one thread, in a fixed order.
#include <lrcnn/backend/host/loops.hpp>
#include <lrcnn/backend/host/rows.hpp>
#include <lrcnn/backend/host/window.hpp>
#include <lrcnn/shape/upsampling.hpp>
namespace lrcnn::host {
namespace detail {
/// What the pixels of some columns are made of, worked out once for several rows.
using Columns = std::array<Interpolation, 128>;
/// One row between two rows of the input; L lanes from `lane` on.
template <class T, Index L>
void interpolate_row(Lanes<L>, Index lane, const Columns& columns, Range q, Index block, const T* top, const T* bottom, double weight, T* y) {
  using W = Words<T, L>;
  using Value = typename W::Value;
  using A = master_t<T>;
  const A low = static_cast<A>(weight), high = static_cast<A>(1 - weight);
  for (Index at = q.begin; at < q.end; ++at) {
    const Interpolation& c = item(columns, at - q.begin);
    const A right = static_cast<A>(c.weight), left = static_cast<A>(1 - c.weight);
    for (Index l = lane; l < lane + L; l += W::width) {
      const Index first = c.first * block + l, second = c.second * block + l;
      Value v = load_word<Value>(top + first);
      if (right != 0) v = left * v + right * load_word<Value>(top + second);
      if (low != 0) {
        Value below = load_word<Value>(bottom + first);
        if (right != 0) below = left * below + right * load_word<Value>(bottom + second);
        v = high * v + low * below;
      }
      store_word(y + at * block + l, v);
    }
  }
}
/// What output position `out` takes from input position `in`.
constexpr double upsampling_share(const Upsampling& u, bool rows, Index out, Index in, Index extent) {
  const Interpolation at = upsampled_at(u, rows, out, extent);
  return (at.first == in ? 1 - at.weight : 0) + (at.second == in ? at.weight : 0);
}
/// Shares of the output positions that read an input position: worked out once for the first 64, anew for others.
class Shares {
 public:
  Shares(const Upsampling& u, bool rows, Index in, Index extent, Range out) : u_(&u), rows_(rows), in_(in), extent_(extent), out_(out) {
    for (Index k = 0; k < std::min(first, out.size()); ++k) shares_[k] = share(out.begin + k);
  }
  Range out() const { return out_; }
  double operator()(Index out) const {
    const Index k = out - out_.begin;
    return k < first ? shares_[k] : share(out);
  }

 private:
  double share(Index out) const { return upsampling_share(*u_, rows_, out, in_, extent_); }
  const Upsampling* u_;
  bool rows_;
  Index in_, extent_;
  Range out_;
  static constexpr Index first = 64;
  double shares_[first] = {};   // no std::array: what nvcc 13 makes of its count does not compile here
};
}   // namespace detail
/// y = x upsampled, as shape/upsampling.hpp says.
/// Shapes:  x [N,C,rows,W] -> y [N,C,rows,v*W]
/// Pre:     x holds the rows that y's read
template <class T>
void upsample_forward(const Operands<T>& o, int threads) {
  const Upsampling& u = o.node->layer.upsampling;
  const Index block = o.y.block, h = o.node->in.h, w = o.node->in.w;
  for_row_groups(o.y, threads, [&](Index i, Index b, Range rows) {
    detail::Columns columns;
    for (Index first = 0; first < o.y.w; first += static_cast<Index>(columns.size())) {
      const Range q{first, std::min(first + static_cast<Index>(columns.size()), o.y.w)};
      for (Index at = q.begin; at < q.end; ++at) item(columns, at - first) = upsampled_at(u, false, at, w);
      for (Index row = rows.begin; row < rows.end; ++row) {
        const Interpolation r = upsampled_at(u, true, row, h);
        assert(o.x.range().contains({r.first, r.second + 1}));
        const T *top = o.x.row(i, b, r.first), *bottom = o.x.row(i, b, r.second);
        T* y = o.y.row(i, b, row);
        for_lanes(block, [&](auto lanes, Index lane) { detail::interpolate_row(lanes, lane, columns, q, block, top, bottom, r.weight, y); });
      }
    }
  });
}
/// dx = what dy's rows send back to each input pixel.
/// Shapes:  dy [N,C,rows,v*W] -> dx [N,C,rows,W]
/// Post:    writes all rows of dx; only rows that dy has contribute
template <class T>
void upsample_backward(const Operands<T>& o, int threads) {
  using A = master_t<T>;
  const Upsampling& u = o.node->layer.upsampling;
  const Index block = o.dx.block, h = o.node->in.h, w = o.node->in.w;
  for_row_groups(
      o.dx, threads,
      [&](Index i, Index b, Range rows) {
        for (Index row = rows.begin; row < rows.end; ++row) {
          const detail::Shares down(u, true, row, h, intersect(upsampled_to(u, true, row, h), o.dy.range()));
          T* dx = o.dx.row(i, b, row);
          for (Index column = 0; column < w; ++column) {
            const detail::Shares across(u, false, column, w, upsampled_to(u, false, column, w));
            for_lanes(block, [&](auto lanes, Index lane) {
              using W = Words<T, decltype(lanes)::value>;
              using Value = typename W::Value;
              std::array<Value, W::count> sum{};
              for (Index p = down.out().begin; p < down.out().end; ++p) {
                const T* dy = o.dy.row(i, b, p) + lane;
                for (Index q = across.out().begin; q < across.out().end; ++q) {
                  const A share = static_cast<A>(down(p) * across(q));
                  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += share * load_word<Value>(dy + q * block + static_cast<Index>(k) * W::width);
                }
              }
              store_words(dx + column * block + lane, sum);
            });
          }
        }
      },
      upsampling_factor(u, true) * upsampling_factor(u, false));
}
template <class T>
inline constexpr LayerLoops<T> layer_loops<Kind::upsample, T>{upsample_forward<T>, upsample_backward<T>};
}   // namespace lrcnn::host
