// How the library uses a device that does its work late: when the host waits, what memory is used again, whose streams are waited for.
#include "cuda_runtime/run.hpp"
#include "support/element_layers.hpp"
#include <lrcnn/backend/cudnn/place_array.hpp>
#include <lrcnn/data/direct_loader.hpp>
#include <numeric>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<4>, ReLU, Dropout<>, MaxPool<>, Flatten, Linear<10>>;
using Rows = Policy<Share<4>, RecomputeAll, Workspace<1_MiB>>;
template <class B>
BasicTrainer<B> trainer_on(const cudnn::DeviceOptions& options) {
  return {Net::layers, Rows::value, small_input, Sgd{.lr = 0.01}, {.seed = 3}, {}, B(options)};
}
}   // namespace
TEST_CASE_TEMPLATE("the host starts sixteen steps without waiting: batches, labels and keys have memory of their own", B, Cudnn, CudnnBf16) {
  const FreshRuntime runtime;
  auto trainer = trainer_on<B>({});
  HostBatch batch;
  for (int i = 0; i < 3; ++i) trainer.step(batch.source(), batch.classes);   // recorded
  const Index waits = runtime->waits, kernels = runtime->kernels_run;
  for (int i = 0; i < 16; ++i) {
    std::fill(batch.pixels.begin(), batch.pixels.end(), static_cast<float>(i));   // the batch before has gone
    trainer.start_step(batch.source(), batch.classes);
  }
  CHECK(runtime->waits == waits);
  CHECK(runtime->kernels_run == kernels);   // the device has not even begun
  losses_are(2, 16);
  CHECK(trainer.wait().mean() == 2);
  CHECK(runtime->waits > waits);
  const Index pinned = CudaRuntime::pinned_bytes();
  for (int i = 0; i < 16; ++i) trainer.start_step(batch.source(), batch.classes);
  trainer.wait();
  CHECK(CudaRuntime::pinned_bytes() == pinned);   // the same memory again
}
TEST_CASE_TEMPLATE("rows, labels and keys are on the device before the device comes to their steps", B, Cudnn, CudnnBf16) {
  const FreshRuntime runtime;
  cudaStream_t theirs = CudaRuntime::make_stream(0);
  for (const bool ahead : {true, false}) {
    cudnn::DeviceOptions options{.device = 0, .stream = theirs};
    if (!ahead) options.ahead_bytes = 0;
    auto trainer = trainer_on<B>(options);
    const HostBatch batch;
    for (int i = 0; i < 3; ++i) trainer.step(batch.source(), batch.classes);
    const Index copied = runtime->copied_down, kernels = runtime->kernels_run, waits = runtime->waits;
    for (int i = 0; i < 3; ++i) trainer.start_step(batch.source(), batch.classes);
    CudaRuntime::run_others(theirs);
    CHECK(runtime->copied_down == copied + (ahead ? 4 : 0));   // the rows of two slabs; the key and the labels of the first step
    CHECK(runtime->kernels_run == kernels);
    CHECK(runtime->waits == waits);
    losses_are(2, 3);
    CHECK(trainer.wait().mean() == 2);
  }
  cudaStreamDestroy(theirs);
}
TEST_CASE("what lands on the device is not written over before it was read, nor read before it is there") {
  const FreshRuntime runtime;
  cudaStream_t theirs = CudaRuntime::make_stream(0);
  {
    const auto library = cudnn::open_library<float>({.device = 0, .stream = theirs});
    const Index loads = 7, rows = 3, width = 5, image = rows * width;
    void *places = nullptr, *staged = nullptr;
    REQUIRE(library->allocate(places, loads * 2 * image * Index{sizeof(float)}).good());
    auto* const to = static_cast<float*>(places);
    const auto send = [&](Index i, Index stream) {
      REQUIRE(library->select(stream).good());
      REQUIRE(library->staging(staged, 2 * image * Index{sizeof(float)}).good());
      auto* const from = static_cast<float*>(staged);
      std::iota(from, from + 2 * image, static_cast<float>(1000 * i));
      REQUIRE(library->send_rows(dense_view(from, 2, 1, {0, rows}, width, 1), dense_view(to + i * 2 * image, 2, 1, {0, rows}, width, 1)).good());
      REQUIRE(library->select(0).good());
    };
    for (const Index streams : {1, 2}) {
      std::vector<float> got(static_cast<std::size_t>(loads * 2 * image));
      for (Index i = 0; i < loads; ++i) send(i, i % streams);
      CudaRuntime::run_others(theirs);   // copies run ahead as far as they may
      REQUIRE(library->wait().good());
      REQUIRE(library->read(got.data(), to, static_cast<Index>(got.size()) * Index{sizeof(float)}).good());
      for (Index i = 0; i < loads; ++i)
        for (Index e = 0; e < 2 * image; ++e) REQUIRE(got[static_cast<std::size_t>(i * 2 * image + e)] == static_cast<float>(1000 * i + e));
      REQUIRE(library->fill(places, 0xff, static_cast<Index>(got.size()) * Index{sizeof(float)}).good());
      REQUIRE(library->wait().good());
    }
    library->release(places);
  }
  cudaStreamDestroy(theirs);
}
TEST_CASE("nothing lands in new memory before the stream has done what it had to do, for which the memory may have been used") {
  const FreshRuntime runtime;
  cudaStream_t theirs = CudaRuntime::make_stream(0);
  {
    const auto library = cudnn::open_library<float>({.device = 0, .stream = theirs});
    void *place = nullptr, *staged = nullptr;
    REQUIRE(library->allocate(place, 4096).good());
    REQUIRE(library->wait().good());
    const auto send = [&] {
      REQUIRE(library->fill(place, 0, 4096).good());   // the stream is at work
      REQUIRE(library->staging(staged, 4096).good());
      const auto from = dense_view(static_cast<float*>(staged), 1, 1, {0, 1}, 1024, 1),
                 to = dense_view(static_cast<float*>(place), 1, 1, {0, 1}, 1024, 1);
      const Index copied = runtime->copied_down;
      REQUIRE(library->send_rows(from, to).good());
      CudaRuntime::run_others(theirs);
      const Index early = runtime->copied_down - copied;
      REQUIRE(library->wait().good());
      return early;
    };
    CHECK(send() == 0);
    CHECK(send() == 0);   // the second piece
    CHECK(send() == 1);   // memory that has been read since
    library->release(place);
  }
  cudaStreamDestroy(theirs);
}
TEST_CASE("where the device has no memory to land in, or it is wanted for something else, copies wait for their steps") {
  const FreshRuntime runtime;
  const auto library = cudnn::open_library<float>({.device = 0});
  const Index elements = 10'000, bytes = elements * Index{sizeof(float)};
  void *place = nullptr, *staged = nullptr, *large = nullptr;
  REQUIRE(library->allocate(place, bytes).good());
  const Index before = CudaRuntime::device_bytes(0);
  const auto send = [&](float value) {
    REQUIRE(library->staging(staged, bytes).good());
    std::fill_n(static_cast<float*>(staged), elements, value);
    REQUIRE(library
                ->send_rows(dense_view(static_cast<float*>(staged), 1, 1, {0, 100}, 100, 1),
                            dense_view(static_cast<float*>(place), 1, 1, {0, 100}, 100, 1))
                .good());
    float last = 0;
    REQUIRE(library->read(&last, static_cast<float*>(place) + elements - 1, sizeof(float)).good());
    CHECK(last == value);
  };
  send(1), send(2), send(3);
  CHECK(CudaRuntime::device_bytes(0) == before + 2 * round_up(bytes, 4096));   // twice what is sent
  runtime->capacity = CudaRuntime::device_bytes(0) + bytes;
  REQUIRE(library->allocate(large, 2 * bytes).good());   // takes what was for copies
  CHECK(CudaRuntime::device_bytes(0) <= before + 2 * bytes + 2 * 4096);
  send(4), send(5);
  library->release(large), library->release(place);
  const auto full = cudnn::open_library<float>({.device = 0});
  REQUIRE(full->allocate(large, bytes).good());
  runtime->capacity = CudaRuntime::device_bytes(0) + 100;
  REQUIRE(full->staging(staged, bytes).good());
  std::fill_n(static_cast<float*>(staged), elements, 7.0f);
  CHECK(
      full->send_rows(dense_view(static_cast<float*>(staged), 1, 1, {0, 100}, 100, 1), dense_view(static_cast<float*>(large), 1, 1, {0, 100}, 100, 1))
          .good());
  float first = 0;
  REQUIRE(full->read(&first, large, sizeof(float)).good());
  CHECK(first == 7);
  full->release(large);
}
TEST_CASE("labels and keys do not wait for rows of batches, which have taken all of their page-locked memory") {
  const FreshRuntime runtime;
  const auto library = cudnn::open_library<float>({.device = 0, .pinned_bytes = 64 << 10});
  void *place = nullptr, *staged = nullptr;
  const std::vector<std::int32_t> classes(100, 3);
  REQUIRE(library->allocate(place, 4096).good());
  REQUIRE(library->labels(classes).good());   // makes room for labels on the device
  const Index waits = runtime->waits;
  for (int i = 0; i < 12; ++i) {
    REQUIRE(library->staging(staged, 4096).good());
    REQUIRE(
        library
            ->send_rows(dense_view(static_cast<float*>(staged), 1, 1, {0, 1}, 1024, 1), dense_view(static_cast<float*>(place), 1, 1, {0, 1}, 1024, 1))
            .good());
  }
  const Index after = runtime->waits;
  CHECK(library->labels(classes).good());
  CHECK(library->set_run_key({}).good());
  CHECK(runtime->waits == after);
  REQUIRE(library->staging(staged, 4096).good());
  CHECK(runtime->waits == after + 1);   // rows do
  CHECK(after <= waits + 3);            // while room to land was made
  library->release(place);
}
TEST_CASE("what loops of a new stream count in is cleared before any stream goes on") {
  const FreshRuntime runtime;
  const auto library = cudnn::open_library<float>({});
  const Index before = runtime->waits;
  REQUIRE(library->select(2).good());   // clears that of the first stream, too
  CHECK(runtime->waits == before + 1);
  REQUIRE(library->select(1).good());
  REQUIRE(library->select(2).good());
  CHECK(runtime->waits == before + 1);
}
TEST_CASE("page-locked memory has a limit, at which the host waits and takes what has been sent") {
  const FreshRuntime runtime;
  const Index limit = 100'000;
  auto trainer = trainer_on<Cudnn>({.pinned_bytes = limit});
  HostBatch batch;
  for (int i = 0; i < 30; ++i) {
    trainer.start_step(batch.source(), batch.classes);
    CHECK(CudaRuntime::pinned_bytes() <= limit);
  }
  CHECK(runtime->waits > 10);
  trainer.wait();
}
TEST_CASE("where the host has no more page-locked memory, what there is has to do") {
  const FreshRuntime runtime;
  runtime->pinned_capacity = 50'000;
  auto trainer = trainer_on<Cudnn>({});
  HostBatch batch;
  for (int i = 0; i < 30; ++i) trainer.start_step(batch.source(), batch.classes);
  trainer.wait();
  runtime->pinned_capacity = 1000;
  CHECK(error_of([&] {
          auto other = trainer_on<Cudnn>({});
          other.step(batch.source(), batch.classes);
        }).find("cudaErrorMemoryAllocation: out of memory") != std::string::npos);
}
TEST_CASE("rows reach maps of more than 2 GiB an image, whose distance is more than a copy of rows may have") {
  const FreshRuntime runtime;
  runtime->capacity = Index{1} << 40;
  const auto library = cudnn::open_library<float>();
  const Index far = (Index{1} << 31) / Index{sizeof(float)} + 64, rows = 3, width = 5;   // floats from image to image
  void *there = nullptr, *staged = nullptr;
  REQUIRE(library->allocate(there, (far + 64) * Index{sizeof(float)}).good());
  for (const Index distance : {far, Index{20}, rows * width}) {
    REQUIRE(library->staging(staged, 2 * rows * width * Index{sizeof(float)}).good());
    auto* const from = static_cast<float*>(staged);
    std::iota(from, from + 2 * rows * width, 1.0f);
    View<float> to = dense_view(static_cast<float*>(there), 2, 1, {0, rows}, width, 1);
    to.stride_n = distance;
    CHECK(library->send_rows(dense_view(from, 2, 1, {0, rows}, width, 1), to).text == "");
    std::vector<float> got(static_cast<std::size_t>(rows * width));
    REQUIRE(library->read(got.data(), to.data + distance, rows * width * Index{sizeof(float)}).good());
    CHECK((got.front() == 16 && got.back() == 30));
  }
  library->release(there);
}
TEST_CASE("labels of any length are sent in one piece") {
  const FreshRuntime runtime;
  const auto library = cudnn::open_library<float>();
  const std::vector<std::int32_t> classes(10'000'000, 3);
  CHECK(library->labels(classes).good());
  CHECK(library->wait().good());
}
TEST_CASE("a batch that is gathered: what is sent of it is not written again before it has gone, and its array stays until it was read") {
  const FreshRuntime runtime;
  const Dataset data = make_shapes({.count = 8});
  Cudnn placing, gathering(cudnn::DeviceOptions{});
  auto array = cudnn::place_array(placing, SampleArray(data), {.only = cudnn::Residence::pinned}).array;
  const auto rows = gathering.buffer<float>(8 * 28 * 28);
  const auto to = dense_view(rows.data(), 8, 1, {0, 28}, 28, 1);
  const Index pinned = CudaRuntime::pinned_bytes();
  std::vector<Index> samples(8);
  std::iota(samples.begin(), samples.end(), 0);
  const std::weak_ptr<const SampleArray> watched = array;
  for (int i = 0; i < 100; ++i) {                                       // more than there are places for
    if (i > 40 && i < 70) runtime->fail_at = runtime->calls + i - 40;   // its copy, its launch, and what comes before and after
    std::rotate(samples.begin(), samples.begin() + 1, samples.end());
    const DirectSource<float> source(array, samples, {});
    static_cast<void>(error_of([&] { gathering.load(source, 0, to); }));
  }
  CHECK(runtime->failed != "");
  array.reset();
  CHECK_FALSE(watched.expired());   // the other backend reads it
  CHECK(CudaRuntime::pinned_bytes() >= pinned);
  CHECK(gathering.shared_library()->wait().good());
  CHECK(watched.expired());
}
TEST_CASE("backends go with work under way, and arrays with them") {
  const FreshRuntime runtime;
  const Dataset data = make_shapes({.count = 8});
  auto trainer = trainer_on<Cudnn>({});
  const auto array = cudnn::place_array(trainer.backend(), SampleArray(data), {.only = cudnn::Residence::device}).array;
  trainer.start_step(DirectLoader<float>(array, data.labels, {.batch = 4}).batch(0, 0));
}
TEST_CASE("steps come behind the stream of whoever makes batches, and before what it does next") {
  const FreshRuntime runtime;
  for (const int producer : {0, 1}) {   // of the same device, and of another
    cudaStream_t theirs = CudaRuntime::make_stream(producer);
    cudaSetDevice(producer);
    float *made = nullptr, *host = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&made), 4), cudaMallocHost(reinterpret_cast<void**>(&host), 8);
    host[0] = 5;
    cudaSetDevice(0);
    {
      const auto library = cudnn::open_library<float>();
      void* own = nullptr;
      REQUIRE(library->allocate(own, 4).good());
      cudaMemcpyAsync(made, host, 4, cudaMemcpyHostToDevice, theirs);
      const Index waits = runtime->waits;
      CHECK(library->order_behind(theirs).good());
      CHECK(library->fill(own, 0, 4).good());
      CHECK(library->order_before(theirs).good());
      cudaMemcpyAsync(host + 1, made, 4, cudaMemcpyDeviceToHost, theirs);
      CHECK(runtime->waits == waits);
      float value = 1;
      CHECK(library->read(&value, own, 4).good());   // waits for the library's stream, and so for theirs
      CHECK(value == 0);
      cudaStreamSynchronize(theirs);
      CHECK(host[1] == 5);
      library->release(own);
    }
    cudaFree(made), cudaFreeHost(host), cudaStreamDestroy(theirs);
  }
}
TEST_CASE_TEMPLATE("loops of a program's own layers are started where their steps are, on several streams, too", B, Cudnn, CudnnBf16) {
  using OwnNet = Sequential<Conv<4>, ElementLayer<Gain>, ReLU, Pointwise<Elu>, Flatten, Linear<10>>;
  const FreshRuntime runtime;   // looks for loops on the default stream
  for (const PolicySpec& policy : {PolicySpec(Rows::value), Policy<Overlap<2>, RecomputeAll, Workspace<1_MiB>, Streams<2>>::value}) {
    BasicTrainer<B> trainer(OwnNet::layers, policy, small_input, Sgd{.lr = 0.01}, {.seed = 3}, {}, B(cudnn::DeviceOptions{}));
    const HostBatch batch;
    const Index kernels = runtime->kernels_run;
    CHECK(trainer.step(batch.source(), batch.classes).loss == 2);
    CHECK(runtime->kernels_run > kernels + 10);
  }
}
TEST_CASE("offloaded rows go to page-locked memory and come back, whatever lies between planes and images") {
  const FreshRuntime runtime;
  const auto library = cudnn::open_library<float>();
  const Index rows = 6, width = 5, channels = 3, images = 2, count = images * channels * rows * width, bytes = count * Index{sizeof(float)};
  void *first = nullptr, *second = nullptr;
  cudnn::HostMemory pinned{.residence = cudnn::Residence::pinned};
  REQUIRE((library->allocate(first, bytes).good() && library->allocate(second, bytes).good() && library->share(pinned, bytes).good()));
  std::vector<float> numbers(static_cast<std::size_t>(count)), got(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  for (const Index block : {Index{1}, channels}) {   // planes, as in fp32, or channels last
    INFO("block ", block);
    const auto at = [&](const void* memory, Range held) {
      return dense_view(static_cast<float*>(const_cast<void*>(memory)), images, channels, held, width, block);
    };
    const View<float> map = at(first, {0, rows}), there = at(pinned.there, {0, rows}), slab = at(second, {1, 4});
    REQUIRE(library->write(first, numbers.data(), bytes).good());
    Operands<float> out, back;
    out.op = Op::offload, out.x = map, out.y = there;
    back.op = Op::fetch, back.x = there, back.y = slab;
    CHECK(library->run(out).text == "");
    REQUIRE(library->wait().good());   // the pretended runtime takes what is written behind a copy's start for the host's doing
    CHECK(library->run(back).text == "");
    REQUIRE(library->read(got.data(), second, images * channels * 3 * width * Index{sizeof(float)}).good());
    const View<const float> whole = at(numbers.data(), {0, rows}), some = at(got.data(), {1, 4});
    Index wrong = 0;
    for (Index i = 0; i < images; ++i)
      for (Index c = 0; c < channels; ++c)
        for (Index y = 1; y < 4; ++y)
          for (Index x = 0; x < width; ++x) wrong += some(i, c, y, x) != whole(i, c, y, x);
    CHECK(wrong == 0);
  }
  library->unshare(pinned);
  library->release(first), library->release(second);
}
