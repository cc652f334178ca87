#pragma once
// One axis of a window, as a thread walks it: the taps of an output position, or the outputs that read an input.
//
// Positions are those of tap_position() in shape/rows.hpp, in integers of 32 bits, by which a device divides fast. What follows from them is found
// without a division where the host's functions divide; tests hold it to those.
#include <lrcnn/backend/cudnn/loops/work.hpp>
#include <lrcnn/shape/rows.hpp>
#include <numeric>
namespace lrcnn::loops {
class WindowAxis {
 public:
  /// Pre: extents and window fit into int.
  WindowAxis(const Axis& axis, Index extent)
      : kernel_(static_cast<int>(axis.kernel)),
        stride_(static_cast<int>(axis.stride)),
        pad_(static_cast<int>(axis.pad_begin)),
        dilation_(static_cast<int>(axis.dilation)),
        extent_(static_cast<int>(extent)),
        limit_(static_cast<int>(extent + axis.pad_end)),
        by_stride_(axis.stride) {
    assert(extent + axis.pad_begin + axis.pad_end + axis.extent() < (Index{1} << 31));
    const int common = std::gcd(stride_, dilation_);
    tap_step_ = stride_ / common, output_step_ = dilation_ / common;
  }
  LRCNN_HOST_DEVICE int kernel() const { return kernel_; }
  /// Input position that a tap of output `out` reads.
  LRCNN_HOST_DEVICE int position(int out, int tap) const { return tap_position(out, tap, stride_, pad_, dilation_); }
  LRCNN_HOST_DEVICE bool inside(int position) const { return 0 <= position && position < extent_; }
  /// Number of taps that average pooling counts: those inside the map, or also those in the padding. As counted_taps() in shape/rows.hpp, but in
  /// loops that take fewer registers: with that function the kernel for 16 bits spills some.
  LRCNN_HOST_DEVICE int taps_counted(int out, bool padding) const {
    int count = 0;
    if (!padding) {
      for (int tap = 0; tap < kernel_; ++tap) count += inside(position(out, tap)) ? 1 : 0;
      return count;
    }
    count = kernel_;
    while (count > 1 && position(out, count - 1) >= limit_) --count;   // beyond the padding, where extents were rounded up
    return count;
  }
  /// An output that reads an input position, and the tap with which it does.
  struct Reader {
    int tap, out;
  };
  /// The reader of `in` with the smallest tap; tap == kernel() if there is none. Outputs may lie outside the map.
  LRCNN_HOST_DEVICE Reader first_reader(int in) const {
    if (dilation_ == 1) {
      Index rest = in + pad_;
      const auto out = static_cast<int>(by_stride_.split(rest));
      return {rest < kernel_ ? static_cast<int>(rest) : kernel_, out};
    }
    for (int tap = 0; tap < kernel_; ++tap) {
      const int scaled = in + pad_ - tap * dilation_;
      if (scaled >= 0 && scaled % stride_ == 0) return {tap, scaled / stride_};
    }
    return {kernel_, 0};
  }
  /// Goes on to the next larger tap, and so to an output further up.
  LRCNN_HOST_DEVICE void next(Reader& reader) const {
    reader.tap = reader.tap + tap_step_ < kernel_ ? reader.tap + tap_step_ : kernel_;
    reader.out -= output_step_;
  }

 private:
  int kernel_, stride_, pad_, dilation_, extent_, limit_;   // limit: end of the padding
  int tap_step_ = 1, output_step_ = 1;                      // between the taps that read one position, and between their outputs
  Divisor by_stride_;
};
}   // namespace lrcnn::loops
