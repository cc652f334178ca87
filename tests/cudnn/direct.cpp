// Batches that a device gathers from the host's memory by itself: training has the bits of the copied path, wherever the array lies; where arrays are
// put, and what is said when they cannot be.
#include "cudnn/host_library.hpp"
#include "support/error_of.hpp"
#include "support/random_array.hpp"
#include <lrcnn/backend/cudnn/place_array.hpp>
#include <lrcnn/data/direct_loader.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
using cudnn::PlacementOptions;
using cudnn::Residence;
namespace {
using Net = Sequential<Conv<4>, ReLU, MaxPool<>, Conv<4>, ReLU, MaxPool<>, Flatten, Linear<10>>;
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>>;
using Ahead = Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>, Streams<2>, Prefetch>;
constexpr Residence everywhere_placed[] = {Residence::device, Residence::pinned, Residence::registered, Residence::managed, Residence::pageable};
const LoaderOptions options{.batch = 8, .seed = 3, .normalization = {{0.4}, {0.3}}, .augmentation = {.flip = true, .pad = 2}};
/// A data set whose bytes begin at a page, as those of a file's mapping do.
struct Pages {
  Dataset data = make_shapes({.count = 16});
  std::vector<std::byte> memory = std::vector<std::byte>(data.images.size() + 4096);
  std::byte* begin = memory.data() + (4096 - reinterpret_cast<std::uintptr_t>(memory.data()) % 4096) % 4096;
  Pages() { std::memcpy(begin, data.images.data(), data.images.size()); }
  SampleArray array() const { return {reinterpret_cast<const std::uint8_t*>(begin), SampleLayout::planes(data.shape)}; }
};
template <class B>
auto device() {
  auto library = std::make_shared<HostLibrary<typename B::element>>();
  library->access.pageable = true;
  return library;
}
/// Parameters after an epoch.
template <class B, class Loader>
std::vector<float> trained(const Loader& loader, B backend, const PolicySpec& policy) {
  BasicTrainer<B> trainer(Net::layers, policy, loader.input(), Sgd{.lr = 0.05, .momentum = 0.9}, {.seed = 1}, {}, std::move(backend));
  trainer.fit(loader, nullptr, {.epochs = 1});
  return trainer.read_parameters();
}
std::string report_of(const HostLibrary<>& like, const SampleArray& array, const PlacementOptions& limits) {
  auto library = std::make_shared<HostLibrary<>>();
  library->access = like.access, library->refuses_sharing = like.refuses_sharing, library->capacity = like.capacity;
  const Cudnn backend(library);
  return error_of([&] { throw Error(cudnn::place_array(backend, array, limits).report); });
}
}   // namespace
TEST_CASE_TEMPLATE("an epoch that the device gathers has the bits of one that is copied, wherever the array lies", B, Cudnn, CudnnBf16, CudnnFp16) {
  const Pages pages;
  const Loader<float> loader(pages.data, options);
  for (const PolicySpec& policy : {Rows::value, Ahead::value}) {
    const auto wanted = trained(loader, B(device<B>()), policy);
    for (const Residence where : everywhere_placed) {
      if (!std::is_same_v<B, Cudnn> && where != Residence::pinned) continue;
      const auto library = device<B>();
      const B backend(library);
      const auto placed = cudnn::place_array(backend, pages.array(), {.only = where});
      CHECK(placed.residence == where);
      const DirectLoader<float> direct(placed.array, pages.data.labels, options);
      const bool same_bits = trained(direct, B(library), policy) == wanted;
      INFO(residence_name(where));
      CHECK(same_bits);
      CHECK(library->gathers > 0);
      CHECK(library->stagings == 0);   // no row goes through the host
    }
    const auto library = device<B>();
    const auto placed = cudnn::place_array(B(library), pages.array(), {.only = Residence::staged});
    const bool same_bits = trained(DirectLoader<float>(placed.array, pages.data.labels, options), B(library), policy) == wanted;
    CHECK(same_bits);
    CHECK(library->gathers == 0);
    CHECK(library->stagings > 0);
  }
}
TEST_CASE("rows of a large image: cuts of one array, in slabs, with the bits of the host's rows") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomArray drawn = random_array(seed);
    const auto library = device<Cudnn>();
    Cudnn backend(library);
    const auto placed = cudnn::place_array(backend, drawn.array(), {.only = Residence::pinned});
    const DirectSource<float> source(placed.array, drawn.samples, drawn.options);
    const Shape s = source.shape();
    const auto memory = backend.buffer<float>(s.count());
    std::vector<float> wanted(static_cast<std::size_t>(s.count())), got(wanted.size());
    source.read(0, dense_view(wanted.data(), s.n, s.c, {0, s.h}, s.w, s.c));
    const auto all = dense_view(memory.data(), s.n, s.c, {0, s.h}, s.w, s.c);
    for (Index y = 0; y < s.h; y += 3) backend.load(source, 0, all.slice({y, std::min(s.h, y + 3)}));
    backend.read(std::span<float>(got), memory.data());
    CHECK(std::memcmp(wanted.data(), got.data(), wanted.size() * sizeof(float)) == 0);
  }
}
TEST_CASE("batches, loader and array may go before the device has read them: what it reads is given back later") {
  const Pages pages;
  const Loader<float> loader(pages.data, options);
  const auto loss = [&](auto start) {
    const auto library = device<Cudnn>();
    BasicTrainer<Cudnn> trainer(Net::layers, Rows::value, loader.input(), Sgd{.lr = 0.05}, {.seed = 1}, {}, Cudnn(library));
    start(trainer);
    const double mean = trainer.wait().mean();
    CHECK(library->shared() == 0);
    return mean;
  };
  const double wanted = loss([&](auto& trainer) {
    for (Index k = 0; k < 2; ++k) trainer.start_step(loader.batch(0, k));
  });
  for (const Residence where : everywhere_placed)
    CHECK(loss([&](auto& trainer) {
            const auto array = cudnn::place_array(trainer.backend(), pages.array(), {.only = where}).array;
            const DirectLoader<float> direct(array, pages.data.labels, options);
            for (Index k = 0; k < 2; ++k) trainer.start_step(direct.batch(0, k));
          }) == wanted);
}
TEST_CASE("where an array is put: the rules in order, and a line that says why") {
  const Pages pages;   // 16 images of 1x28x28: 12.5 kB
  const SampleArray array = pages.array();
  const std::string what = "16 images 1x28x28 of u8 (12.5 kB): ";
  HostLibrary<> like;
  CHECK(report_of(like, array, {}) == what + "device");
  const std::string no_room = "; not device: 12.5 kB are more than the 10.0 kB of the device's memory that it may take";
  CHECK(report_of(like, array, {.device_bytes = 10000}) == what + "pinned" + no_room);
  const std::string no_copy = no_room + ", not pinned: 12.5 kB are more than the 0 B of page-locked memory that it may take";
  CHECK(report_of(like, array, {.device_bytes = 10000, .pinned_bytes = 0}) == what + "registered" + no_copy);
  CHECK(report_of(like, array, {.read_once = true}) ==
        what + "registered; not device: each sample is read once, not pinned: each sample is read once");
  const SampleArray odd = SampleArray(reinterpret_cast<const std::uint8_t*>(pages.begin) + 1, SampleLayout::planes({1, 1, 28, 28}));
  CHECK(report_of(like, odd, {.device_bytes = 0, .pinned_bytes = 0})
            .ends_with(", not registered: it does not begin at a page of 4096 bytes, not pageable: the device does not read pageable memory"));
  like.access.pageable = true;
  CHECK(report_of(like, odd, {.device_bytes = 0, .pinned_bytes = 0}).starts_with("1 image 1x28x28 of u8 (784 B): pageable; not device: 784 B are"));
  like.access = {};
  CHECK(
      report_of(like, array, {.device_bytes = 10000}) ==
      what + "staged" + no_room +
          ", not pinned: the device does not read page-locked memory, not registered: the device does not read page-locked memory, not pageable: the "
          "device does not read pageable memory");
  like.access = {.maps = true, .registers = true};
  like.refuses_sharing = "cudaErrorMemoryAllocation: out of memory";
  CHECK(report_of(like, array, {.device_bytes = 10000})
            .ends_with("not pinned: cudaErrorMemoryAllocation: out of memory, not registered: cudaErrorMemoryAllocation: out of memory, not "
                       "pageable: the device does not "
                       "read pageable memory"));
  like.access.registers = false, like.refuses_sharing = "";
  CHECK(report_of(like, array, {.device_bytes = 10000, .pinned_bytes = 0})
            .ends_with("not registered: the device's system does not page-lock memory that a program has made itself, not pageable: the device does "
                       "not read pageable "
                       "memory"));
}
TEST_CASE("a residence that cannot be had is refused, and nothing is left behind") {
  const Pages pages;
  const SampleArray array = pages.array(), odd(reinterpret_cast<const std::uint8_t*>(pages.begin) + 1, SampleLayout::planes({1, 1, 28, 28}));
  const auto library = std::make_shared<HostLibrary<>>();
  const Cudnn backend(library);
  const auto refused = [&](const SampleArray& which, Residence only) {
    return error_of([&] { cudnn::place_array(backend, which, {.only = only}); });
  };
  const std::string what = "lrcnn: an array of 16 images 1x28x28 of u8 (12.5 kB) cannot be ";
  const std::string rest = "; the option `only` allows nothing else; choose another residence, or leave the option out";
  CHECK(refused(odd, Residence::registered) ==
        "lrcnn: an array of 1 image 1x28x28 of u8 (784 B) cannot be registered: it does not begin at a page of 4096 bytes" + rest);
  CHECK(refused(array, Residence::pageable) == what + "pageable: the device does not read pageable memory" + rest);
  library->capacity = 10000;
  CHECK(refused(array, Residence::managed) ==
        what + "managed: 12.5 kB are more than the 10.0 kB of memory that the device has, and managed memory may move there" + rest);
  library->capacity = 1'000'000;
  library->refuses_sharing = "cudaErrorHostMemoryAlreadyRegistered: part or all of the requested memory range is already mapped";
  CHECK(refused(array, Residence::registered) == what + "registered: " + library->refuses_sharing + rest);
  library->refuses_sharing = "", library->access.managed = false;
  CHECK(refused(array, Residence::managed) == what + "managed: host and device cannot read managed memory at once" + rest);
  for (Index call = 0; call < 3; ++call) {   // asking, taking memory, copying
    library->fail_at = library->calls + call, library->failure = "the device has gone";
    CHECK(refused(array, Residence::device).find("the device has gone") != std::string::npos);
    CHECK(library->used == 0);
  }
  CHECK(library->shared() == 0);
}
TEST_CASE("an array in the memory of another device is refused; a gather that fails says so, and the next one succeeds") {
  const Pages pages;
  const auto first = std::make_shared<HostLibrary<>>(), second = std::make_shared<HostLibrary<>>();
  second->access.device = 1;
  const auto there = cudnn::place_array(Cudnn(first), pages.array(), {.only = Residence::device});
  const auto pinned = cudnn::place_array(Cudnn(first), pages.array(), {.only = Residence::pinned});
  Cudnn backend(second);
  const std::vector<Index> samples{1, 2};
  const auto memory = backend.buffer<float>(2 * 28 * 28);
  const auto view = dense_view(memory.data(), 2, 1, {0, 28}, 28, 1);
  CHECK(error_of([&] { backend.load(DirectSource<float>(there.array, samples), 0, view); }) ==
        "lrcnn: an array of 16 images 1x28x28 of u8 lies in the memory of device 0, and the step runs on device 1; a device reads its own memory, "
        "and the "
        "host's; place the array with this backend, or in pinned memory");
  second->access.pageable = true;   // what the other library has pinned, this one reads, too
  const DirectSource<float> source(pinned.array, samples);
  second->fail_at = second->calls, second->failure = "CUDA_ERROR_ASSUMED";
  CHECK(error_of([&] {
          backend.load(source, 0, view);
        }).starts_with("lrcnn: gathering a batch's rows from the host's memory failed: CUDA_ERROR_ASSUMED; "));
  backend.load(source, 0, view);
  std::vector<float> wanted(2 * 28 * 28), got(wanted.size());
  source.read(0, dense_view(wanted.data(), 2, 1, {0, 28}, 28));
  backend.read(std::span<float>(got), memory.data());
  CHECK(wanted == got);
}
