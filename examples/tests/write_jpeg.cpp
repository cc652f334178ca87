// Writes small JPEG files for the tests of programs that read photographs: write_jpeg FILE HEIGHT WIDTH CHANNELS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <jpeglib.h>
int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int height = std::atoi(argv[2]), width = std::atoi(argv[3]), channels = std::atoi(argv[4]);
  std::FILE* file = std::fopen(argv[1], "wb");
  if (!file) return 1;
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);   // prints and exits
  jpeg_create_compress(&encoder);
  jpeg_stdio_dest(&encoder, file);
  encoder.image_height = static_cast<JDIMENSION>(height), encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.input_components = channels, encoder.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(width * channels));
  for (int y = 0; y < height; ++y) {   // rings around a point, other colours for other rings
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        row[static_cast<std::size_t>(x * channels + c)] = static_cast<std::uint8_t>(((x - 40) * (x - 40) + (y - 30) * (y - 30)) / (8 + 5 * c));
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&encoder, &rows, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  return std::fclose(file) == 0 ? 0 : 1;
}
