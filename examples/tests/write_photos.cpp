// Writes small pictures for the test of programs that read a folder of photographs: write_photos FOLDER COUNT
// Discs, stripes and checks in any colours, COUNT of each, in a folder for each: JPEG, PNG and TIFF in turn, of different sizes.
#include <lrcnn/data/transform.hpp>
#include "support/photo_files.hpp"
#include <cstdlib>
using namespace lrcnn;
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::array<const char*, 3> names{"discs", "stripes", "checks"}, endings{".jpg", ".png", ".tif"};
  for (Index kind = 0; kind < 3; ++kind)
    for (Index i = 0; i < std::atoi(argv[2]); ++i) {
      const Random random = purpose_random(1, "photos", i, kind);
      const auto between = [&](std::uint64_t which, double low, double high) { return low + (high - low) * random.uniform(which); };
      const auto height = static_cast<Index>(between(0, 50, 120)), width = static_cast<Index>(between(1, 50, 120));
      const double cy = between(2, 0.3, 0.7) * double(height), cx = between(3, 0.3, 0.7) * double(width), size = between(4, 12, 20);
      std::vector<std::uint8_t> pixels;
      for (Index y = 0; y < height; ++y)
        for (Index x = 0; x < width; ++x) {
          const double dy = double(y) - cy, dx = double(x) - cx;
          const bool row = std::fmod(dy + 400, size) < size / 2, column = std::fmod(dx + 400, size) < size / 2;
          const bool inside = kind == 0 ? dy * dy + dx * dx < size * size : kind == 1 ? row : row != column;
          for (std::uint64_t c = 0; c < 3; ++c) {
            const double value = inside ? between(5 + c, 120, 250) : between(8 + c, 0, 100);
            pixels.push_back(static_cast<std::uint8_t>(std::clamp(value + 8 * random.normal(20 + pixels.size()), 0.0, 255.0)));
          }
        }
      const auto name = "picture" + std::to_string(i) + endings[static_cast<std::size_t>(i) % 3];
      test::write_photo(std::filesystem::path(argv[1]) / names[static_cast<std::size_t>(kind)] / name, height, width, 3, pixels);
    }
}
