#pragma once
// What is special about the library's Winograd convolutions.
//
// Version 2.6.3 takes the padding above for the padding below, and the other way round, in the data gradient: where
// the two differ, as in the first and the last slab of a map, the result is wrong by a row. Nothing says which
// versions do that, so the library in use is asked: rows of numbers through one tap tell where they come out.
#include <lrcnn/backend/onednn/filter.hpp>
#include <cmath>
namespace lrcnn::onednn {
/// How unequal padding of rows must be described so that a Winograd data gradient is right.
enum class RowPadding { as_it_is, exchanged, unusable };
/// Cost: some milliseconds and 6 MB for a moment; to be asked once.
inline RowPadding winograd_row_padding(const Library& library) {
  // dx [1,16,4,4], dy [1,16,3,4], padding 1 above and 0 below. With row r of dy all r + 1 and a filter that is 1 at
  // tap (0, 1) from channel 0 to channel 0, dx's rows are dy's from the second on: 2, 3, 0, 0.
  ConvDesc d;
  d.algorithm = dnnl::algorithm::convolution_winograd;
  d.x = map_desc(1, 16, 4, 4, 16), d.y = map_desc(1, 16, 3, 4, 16);
  d.filter = {16, 16, 3, 3};
  d.w = tagged(d.filter, Tag::OIhw16i16o);
  d.stride = {1, 1}, d.dilation = {0, 0}, d.pad_begin = {1, 1}, d.pad_end = {0, 1};
  const auto offered = offer(library, Op::backward_data, d);
  if (!offered) return RowPadding::unusable;
  const auto make = [&](const MemoryDesc& desc) {
    dnnl::memory m(desc, library.engine);
    std::fill_n(static_cast<std::byte*>(m.get_data_handle()), desc.get_size(), std::byte{});
    return m;
  };
  const dnnl::memory x = make(d.x), w = make(d.w), y = make(d.y), scratch = make(offered->scratch);
  static_cast<float*>(w.get_data_handle())[256] = 1;   // blocks of 256: taps in row-major order
  for (Index row = 0; row < 3; ++row)
    for (Index column = 0; column < 4; ++column)
      static_cast<float*>(y.get_data_handle())[(row * 4 + column) * 16] = static_cast<float>(row + 1);
  Call call(library, dnnl::primitive(offered->description),
            {{DNNL_ARG_DIFF_SRC, d.x}, {DNNL_ARG_WEIGHTS, d.w}, {DNNL_ARG_DIFF_DST, d.y},
             {DNNL_ARG_SCRATCHPAD, offered->scratch}});
  call.bind_all({x.get_data_handle(), w.get_data_handle(), y.get_data_handle(), scratch.get_data_handle()});
  call.run(library);
  const auto comes_out_as = [&](std::array<float, 4> rows) {
    float difference = 0;
    for (std::size_t row = 0; row < 4; ++row)
      difference += std::abs(static_cast<float*>(x.get_data_handle())[(row * 4 + 1) * 16] - rows[row]);
    return difference < 1e-3f;
  };
  return comes_out_as({2, 3, 0, 0})   ? RowPadding::as_it_is
         : comes_out_as({1, 2, 3, 0}) ? RowPadding::exchanged
                                      : RowPadding::unusable;
}
}  // namespace lrcnn::onednn
