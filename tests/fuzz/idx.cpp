// Readers of data sets: IDX images and labels, CIFAR-10.
#include "fuzz.hpp"
#include <lrcnn/data/cifar.hpp>
#include <lrcnn/data/idx.hpp>
void lrcnn::fuzz::write_corpus(const std::filesystem::path& folder) {
  std::vector<std::uint8_t> images{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3};
  for (std::uint8_t pixel = 0; pixel < 12; ++pixel) images.push_back(pixel);
  write_file(folder / "images", images);
  write_file(folder / "labels", std::vector<std::uint8_t>{0, 0, 8, 1, 0, 0, 0, 3, 9, 0, 5});
  write_file(folder / "cifar", std::vector<std::uint8_t>(static_cast<std::size_t>(cifar_record_bytes), 7));
}
void lrcnn::fuzz::read(std::span<const std::uint8_t> bytes) {
  allow_errors([&] {
    const IdxImages images = parse_idx_images(bytes, "file");
    if (static_cast<Index>(images.pixels.size()) != images.count * images.h * images.w) std::abort();
  });
  allow_errors([&] { parse_idx_labels(bytes, "file"); });
  allow_errors([&] {
    Dataset data;
    data.classes = 10;
    append_cifar(data, bytes, "file");
  });
}
