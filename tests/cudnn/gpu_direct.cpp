// On a GPU: batches gathered from the host's memory have the bits of copied ones, from every kind of memory that the machine has.
#include "support/random_array.hpp"
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/backend/cudnn/place_array.hpp>
#include <lrcnn/data/direct_loader.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
using namespace lrcnn;
using namespace lrcnn::testing;
using cudnn::Residence;
namespace {
/// Where the rules would allow an array to be, on this machine. Each is told to the reader of the test's output.
std::vector<cudnn::PlacedArray> everywhere_possible(const Cudnn& backend, const SampleArray& array) {
  std::vector<cudnn::PlacedArray> all;
  for (const Residence where : {Residence::device, Residence::pinned, Residence::registered, Residence::managed, Residence::pageable}) try {
      all.push_back(cudnn::place_array(backend, array, {.only = where}));
    } catch (const BackendError& e) {
      MESSAGE(e.what());
    }
  return all;
}
}   // namespace
TEST_CASE("gpu: gathered rows have the bits of rows that the host reads") {
  Cudnn backend;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const RandomArray drawn = random_array(seed);
    for (const auto& placed : everywhere_possible(backend, drawn.array())) {
      const DirectSource<float> source(placed.array, drawn.samples, drawn.options);
      const Shape s = source.shape();
      const auto memory = backend.buffer<float>(s.count());
      std::vector<float> wanted(static_cast<std::size_t>(s.count())), got(wanted.size());
      source.read(0, dense_view(wanted.data(), s.n, s.c, {0, s.h}, s.w, s.c));
      const auto all = dense_view(memory.data(), s.n, s.c, {0, s.h}, s.w, s.c);
      for (Index y = 0; y < s.h; y += 3) backend.load(source, 0, all.slice({y, std::min(s.h, y + 3)}));
      backend.read(std::span<float>(got), memory.data());
      INFO("seed ", seed, ", ", residence_name(placed.residence));
      CHECK(std::memcmp(wanted.data(), got.data(), wanted.size() * sizeof(float)) == 0);
    }
  }
}
TEST_CASE("gpu: alone: an epoch that the device gathers trains as one that is copied, and leaves the device's memory as it was") {
  const Dataset data = make_shapes({.count = 256});
  const LoaderOptions options{.batch = 32, .seed = 5, .normalization = normalization_of(data), .augmentation = {.flip = true, .pad = 2}};
  using Rows = Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, Workspace<16_MiB>, Streams<2>, Prefetch>;
  const auto trained = [&](const auto& loader) {
    Trainer<LeNet<10>, Rows, Cudnn> trainer(loader.input(), Sgd{.lr = 0.05, .momentum = 0.9}, {.seed = 3});
    trainer.fit(loader, nullptr, {.epochs = 2});
    return trainer.read_parameters();
  };
  const auto wanted = trained(Loader<float>(data, options));
  const Cudnn backend;
  for (const auto& placed : everywhere_possible(backend, SampleArray(data))) {
    const DirectLoader<float> loader(placed.array, data.labels, options);
    const bool same_bits = trained(loader) == wanted;   // loads the kernels
    const Index before = backend.free_bytes();
    const bool same_again = trained(loader) == wanted;
    INFO(placed.report);
    CHECK(same_bits);
    CHECK(same_again);
    CHECK(backend.free_bytes() == before);
  }
}
TEST_CASE("gpu: memory that cannot be page-locked is refused, and the next kernel starts all the same") {
  const Dataset data = make_shapes({.count = 8});
  std::shared_ptr<void> pages(std::aligned_alloc(4096, 1_MiB), [](void* p) { std::free(p); });
  std::memset(pages.get(), 1, 1_MiB);
  Cudnn backend;
  const SampleArray array(static_cast<const std::uint8_t*>(pages.get()), SampleLayout::planes({1, 1, 1024, 1024}), pages);
  const auto once = cudnn::place_array(backend, array, {.only = Residence::registered});
  CHECK_THROWS_WITH_AS(cudnn::place_array(backend, array, {.only = Residence::registered}), doctest::Contains("cannot be registered: "),
                       BackendError);
  const std::vector<Index> one{0};
  const auto memory = backend.buffer<float>(1024 * 1024);
  backend.load(DirectSource<float>(once.array, one), 0, dense_view(memory.data(), 1, 1, {0, 1024}, 1024, 1));
  std::vector<float> got(1024 * 1024);
  backend.read(std::span<float>(got), memory.data());
  CHECK(std::ranges::all_of(got, [](float v) { return v == static_cast<float>(1.0 / 255); }));
}
