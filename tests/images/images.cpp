// data/images.hpp: the format of a file shows in its bytes, and that of a new one in its name.
#include "data/support.hpp"
#include "images/jpeg_files.hpp"
#include "support/drawn_image.hpp"
#include "support/image_pixels.hpp"
#include <lrcnn/data/images.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::pixels_of;
TEST_CASE("images: what is created under a name is opened whatever it is called then") {
  const TemporaryFolder folder;
  for (const std::string ending : {".png", ".PNG", ".npy", ".tif", ".TIFF"})
    for (const SampleType sample : {SampleType::u8, SampleType::u16})
      for (const Index channels : {1, 3}) {
        const auto drawn = draw_image(70, 300, channels, 70, 300, sample);
        const auto pixels = drawn->pixels(whole(drawn->info()));
        const auto writer = create_image(folder / ("a" + ending), 70, 300, channels, sample);
        writer->write(pixels);
        writer->finish();
        std::filesystem::rename(folder / ("a" + ending), folder / "b.dat");
        const auto file = open_image(folder / "b.dat");
        CAPTURE(ending);
        CHECK(file->info().format.starts_with(ending[1] == 'p' || ending[1] == 'P' ? "PNG" : ending[1] == 'n' ? "NumPy" : "BigTIFF"));
        CHECK(file->info().sample == sample);
        CHECK(pixels_of(*file) == pixels);
      }
  write_jpeg(folder / "b.dat", 70, 30, {});
  CHECK(open_image(folder / "b.dat")->info().format == "JPEG, baseline");
  CHECK(testing::error_of<DataError>([&] { create_image(folder / "map.pgm", 1, 1, 1, SampleType::u8); }) ==
        "lrcnn: image '" + (folder / "map.pgm").string() +
            "' is to be written; its name ends with the format: .png, .npy, .tif or .tiff; choose such a name");
  CHECK(testing::error_of<DataError>([&] { open_image(folder.write("text", bytes_of("GIF89a"))); }) ==
        "lrcnn: image '" + (folder / "text").string() +
            "' is of no format that this program reads; it reads whole-slide images, TIFF, PNG, JPEG, NumPy; give a file "
            "of one of these formats, or convert it first");
  CHECK(testing::error_of<DataError>([&] {
          open_image(folder.write("text", {}));
        }).find("text' is empty; this program reads whole-slide images, TIFF, ") != std::string::npos);
  CHECK(testing::error_of<DataError>([&] { open_image(folder.path()); }).find(" is a folder; an image is one file; ") != std::string::npos);
  CHECK(testing::error_of<DataError>([&] { open_image(folder / "none"); }).find("none' cannot be opened: No such file or directory; ") !=
        std::string::npos);
}
TEST_CASE("images: real files of every format") {
  const char* const root = std::getenv("LRCNN_DATA");
  const auto large = std::filesystem::path(root ? root : "") / "large";
  if (!root || !std::filesystem::exists(large)) {
    MESSAGE("skipped: set LRCNN_DATA to a folder that has large/");
    return;
  }
  const auto format = [&](const std::string& name) {
    const auto file = open_image(large / name);
    std::vector<std::byte> tile(
        static_cast<std::size_t>(file->info().rows_of(0).size() * file->info().columns_of(0).size() * file->info().pixel_bytes()));
    file->decoder()->decode(0, 0, tile);
    return file->info().format;
  };
  CHECK(format("CMU-1-Small-Region.svs").starts_with("slide (aperio)"));
  CHECK(format("tissue-dapi-3968x4864.ndpi").starts_with("slide (hamamatsu)"));
  CHECK(format("blue-marble-2004-12-5400x2700.jpg") == "JPEG, baseline");
  CHECK(format("plant-2454x2056-mask.png") == "PNG, 8 bit grey");
  CHECK(format("sombrero-11472x6429.tif").starts_with("TIFF"));
  CHECK(format("plant-2454x2056-strips.tif").starts_with("TIFF"));
  // A photograph and its copy without loss.
  CHECK(pixels_of(*open_image(large / "plant-2454x2056.jpg")) == pixels_of(*open_image(large / "plant-2454x2056-strips.tif")));
  // A slide's first directory is its finest level: libtiff and OpenSlide decode the same tiles.
  const auto slide = pixels_of(*open_slide(large / "CMU-1-Small-Region.svs")), tiff = pixels_of(*open_tiff(large / "CMU-1-Small-Region.svs"));
  CHECK(slide == tiff);
}
