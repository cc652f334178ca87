// Published data sets, where LRCNN_DATA names a folder that has them. What is checked was published with them.
#include <lrcnn/data/detect.hpp>
#include <lrcnn/data/loader.hpp>
#include "support.hpp"
#include <doctest/doctest.h>
#include <optional>
using namespace lrcnn;
namespace {
/// The folder of a data set, or a message that the test case is skipped.
std::optional<std::filesystem::path> folder_of(const std::string& name) {
  const char* root = std::getenv("LRCNN_DATA");
  std::error_code error;
  if (root != nullptr && std::filesystem::is_directory(std::filesystem::path(root) / name, error)) return std::filesystem::path(root) / name;
  MESSAGE("skipped: set LRCNN_DATA to a folder that has ", name);
  return std::nullopt;
}
std::vector<Index> per_class(const Dataset& data) {
  std::vector<Index> count(static_cast<std::size_t>(data.classes));
  for (const auto label : data.labels) ++count[static_cast<std::size_t>(label)];
  return count;
}
}   // namespace
TEST_CASE("real data: Fashion-MNIST") {
  const auto folder = folder_of("fashion-mnist");
  if (!folder) return;
  const Dataset train = load_dataset(*folder, Split::train), test = load_dataset(*folder, Split::test);
  CHECK(to_string(train) == "Fashion-MNIST training: 60000 images 1x28x28, 10 classes");
  CHECK(to_string(test) == "Fashion-MNIST test: 10000 images 1x28x28, 10 classes");
  CHECK(per_class(train) == std::vector<Index>(10, 6000));
  CHECK(per_class(test) == std::vector<Index>(10, 1000));
  CHECK(train.class_name(9) == "Ankle boot");
  const Normalization n = normalization_of(train);
  CHECK(n.mean[0] == doctest::Approx(0.2860).epsilon(1e-3));
  CHECK(n.deviation[0] == doctest::Approx(0.3530).epsilon(1e-3));
  const Loader<float> loader(train, {.batch = 128, .normalization = n});
  Index images = 0;
  for (auto& batch : loader.epoch(0)) images += batch.size();
  CHECK(images == 60000);
}
TEST_CASE("real data: CIFAR-10") {
  const auto folder = folder_of("cifar-10");
  if (!folder) return;
  const Dataset train = load_dataset(*folder, Split::train), test = load_dataset(*folder, Split::test);
  CHECK(to_string(train) == "CIFAR-10 training: 4000 images 3x32x32, 10 classes");
  CHECK(per_class(train) == std::vector<Index>{396, 366, 420, 384, 422, 393, 414, 385, 407, 413});
  CHECK(per_class(test) == std::vector<Index>{103, 89, 100, 103, 90, 86, 112, 102, 106, 109});
  CHECK(train.class_name(8) == "ship");
}
