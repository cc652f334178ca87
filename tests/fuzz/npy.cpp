// NumPy's files: the header's text, and arrays in every layout.
#include "fuzz.hpp"
#include <lrcnn/data/npy.hpp>
void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) {
  int number = 0;
  for (const std::vector<Index>& shape : std::vector<std::vector<Index>>{{6, 5}, {6, 5, 3}, {3, 6, 5}, {2, 3, 6, 5}, {}})
    for (const bool fortran : {false, true}) {
      NpyHeader header;
      header.kind = fortran ? 'f' : 'u', header.bytes = fortran ? 4 : 1, header.fortran_order = fortran, header.big_endian = fortran,
      header.shape = shape;
      if (fortran && shape.size() == 3) header.comment = "chw";
      const std::string text = npy_header_bytes(header);
      std::vector<std::uint8_t> bytes(text.begin(), text.end());
      bytes.resize(text.size() + static_cast<std::size_t>(header.data_bytes()), 65);
      write_file(folder / std::to_string(number++), bytes);
    }
}
void lrcnn::fuzz::read(std::span<const std::uint8_t> bytes) {
  const NpyHeader header = parse_npy_header(bytes, static_cast<Index>(bytes.size()), "file");
  if (header.begin + header.data_bytes() != static_cast<Index>(bytes.size())) std::abort();
  const MemoryFile file(bytes);
  for (const ArrayLayout layout :
       {ArrayLayout::automatic, ArrayLayout::hw, ArrayLayout::hwc, ArrayLayout::chw, ArrayLayout::nhw, ArrayLayout::nhwc, ArrayLayout::nchw}) {
    try {
      const auto image = open_npy(file.path(), {layout});
      const ImageInfo& info = image->info();
      const auto decoder = image->decoder();
      const Index row = info.tile_rows() - 1, column = info.tile_columns() - 1;
      std::vector<std::byte> tile(static_cast<std::size_t>(info.rows_of(row).size() * info.columns_of(column).size() * info.pixel_bytes()));
      decoder->decode(row, column, tile);
    } catch (const DataError& error) {
      if (!has_three_parts(error.what())) throw;
    }
  }
}
