#pragma once
// Positions of a map with a few neighbouring channels each: the units of work of windows that slide over a map.
#include <lrcnn/backend/cudnn/loops/window.hpp>
#include <lrcnn/backend/concepts.hpp>
namespace lrcnn::loops::detail {
/// Positions of a view and groups of their channels, numbered as they lie in memory.
struct Positions {
  Divisor rows, columns, groups;
  int channels, lanes, row0;
  struct Place {
    Index image;
    int y, x, channel, count;   ///< y is absolute; count: channels from `channel` that exist
  };
  template <class T>
  Positions(const View<T>& v, int channels_of_a_thread)
      : rows(v.rows),
        columns(v.w),
        groups(ceil_div(v.c, channels_of_a_thread)),
        channels(static_cast<int>(v.c)),
        lanes(channels_of_a_thread),
        row0(static_cast<int>(v.row0)),
        images_(v.n) {}
  LRCNN_HOST_DEVICE Index count() const { return images_ * rows.value() * columns.value() * groups.value(); }
  LRCNN_HOST_DEVICE Place place(Index unit) const {
    Index x = groups.split(unit), y = columns.split(x);
    const Index image = rows.split(y);
    const int channel = static_cast<int>(unit) * lanes, left = channels - channel;
    return {image, static_cast<int>(y) + row0, static_cast<int>(x), channel, left < lanes ? left : lanes};
  }

 private:
  Index images_;
};
/// An operand that is read or written at positions.
template <class T>
struct Image {
  T* data;
  Index stride_n, stride_row;
  int channels, row0, rows;
  Image(const View<T>& v)
      : data(v.data),
        stride_n(v.stride_n),
        stride_row(v.stride_row()),
        channels(static_cast<int>(v.c)),
        row0(static_cast<int>(v.row0)),
        rows(static_cast<int>(v.rows)) {}
  LRCNN_HOST_DEVICE bool holds(int y) const { return row0 <= y && y < row0 + rows; }
  LRCNN_HOST_DEVICE T* at(Index image, int y, int x, int channel) const {
    return data + image * stride_n + (y - row0) * stride_row + static_cast<Index>(x) * channels + channel;
  }
};
/// What the loops of pooling have in common.
template <class T>
struct PoolLoop {
  using A = master_t<T>;
  static constexpr int V = lanes<T>;
  Positions positions;
  WindowAxis rows, columns;
  bool packs;
  template <class... Views>
  PoolLoop(const Node& node, const View<T>& written, const Views&... views)
      : positions(written, V),
        rows(row_axis(node.layer.window), node.in.h),
        columns(column_axis(node.layer.window), node.in.w),
        packs(position_packs<V>(written) && (position_packs<V>(views) && ...)) {
    assert(channels_last(written) && (channels_last(views) && ...));
  }
};
}   // namespace lrcnn::loops::detail
