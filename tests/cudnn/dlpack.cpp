// Tensors of another program in the memory of the pretended device: the device reads them where they lie, NCHW or channels last, and a step
// on them is the step on the same numbers from the host.
#include "cudnn/host_library.hpp"
#include "interop/dlpack_producer.hpp"
#include "support/error_of.hpp"
#include <doctest/doctest.h>
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<6>, ReLU, MaxPool<>, Conv<8>, ReLU, GlobalAvgPool, Linear<4>>;
constexpr PolicySpec rows = Policy<Share<4>, RecomputeAll, Workspace<100'000>>::value;
constexpr Input input{3, 2, 16, 10};
struct Numbers {
  std::vector<float> pixels, last;
  std::vector<std::int32_t> labels{2, 0, 3};
  Numbers() : pixels(static_cast<std::size_t>(input.count())), last(pixels.size()) {
    const Random random(3);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(random.normal(i));
    const Index plane = input.h * input.w;
    for (Index i = 0; i < input.n; ++i)
      for (Index c = 0; c < input.c; ++c)
        for (Index p = 0; p < plane; ++p) item(last, (i * plane + p) * input.c + c) = item(pixels, (i * input.c + c) * plane + p);
  }
};
/// Makes it a tensor in memory that the device has.
template <class E>
void lies_at(Producer& producer, const E* data, DLDeviceType type = kDLCUDA) {
  producer.tensor.data = const_cast<E*>(data);
  producer.tensor.device = {type, 0};
}
}   // namespace
TEST_CASE("a step on tensors of the device is the step on the host's memory, to the bit") {
  const Numbers numbers;
  const auto library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> trainer(Net::layers, rows, input, Sgd{}, {}, {}, Cudnn(library));
  const LossResult want = trainer.gradients_of(MemorySource<float>(numbers.pixels.data(), input), numbers.labels);
  const auto gradients = trainer.read_gradients();
  auto planes = trainer.backend().buffer<float>(input.count()), last = trainer.backend().buffer<float>(input.count());
  auto classes = trainer.backend().buffer<std::int32_t>(input.n);
  trainer.backend().write(planes.data(), numbers.pixels), trainer.backend().write(last.data(), numbers.last);
  trainer.backend().write(classes.data(), numbers.labels);
  Producer labels(numbers.labels, {3}), nchw(std::vector<float>{}, {3, 2, 16, 10}), nhwc(std::vector<float>{}, {3, 2, 16, 10}, {320, 1, 20, 2});
  lies_at(labels, classes.data()), lies_at(nchw, planes.data()), lies_at(nhwc, last.data());
  for (Producer* images : {&nchw, &nhwc})
    for (const DLDeviceType type : {kDLCUDA, kDLCUDAManaged}) {
      images->tensor.device.device_type = type;
      const DlpackLabels there = DlpackLabels::of_images(DlpackTensor(labels.give()));
      CHECK(there.labels().on_device());
      const DlpackDeviceSource source{DlpackTensor(images->give())};
      CHECK(source.shape() == input);
      CHECK(trainer.gradients_of(source, there) == want);
      CHECK(trainer.read_gradients() == gradients);
    }
  CHECK((nchw.out() == 0 && nhwc.out() == 0 && labels.out() == 0));
  // Tensors on the host are sent.
  Producer host(numbers.last, {3, 2, 16, 10}, {320, 1, 20, 2});
  host.tensor.device = {kDLCUDAHost, 0};
  CHECK(trainer.gradients_of(DlpackSource<float>{DlpackTensor(host.give())}, numbers.labels) == want);
  CHECK(trainer.read_gradients() == gradients);
  // And the host does not read the device's.
  BasicTrainer<Reference<float>> other(Net::layers, PolicySpec{}, input, Sgd{});
  CHECK(error_of<DataError>([&] { other.step(DlpackDeviceSource{DlpackTensor(nchw.give())}, numbers.labels); }) ==
        "lrcnn: a batch in the memory of a device is given to a backend on the host; only the backend of that device reads it; use MemorySource, "
        "or Cudnn");
  CHECK(nchw.out() == 0);
}
TEST_CASE("one channel of images is read where it lies, and parameters of the device go out as its memory") {
  const Numbers numbers;
  const auto library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> trainer(Net::layers, rows, Input{3, 1, 16, 10}, Sgd{}, {}, {}, Cudnn(library));
  auto planes = trainer.backend().buffer<float>(input.count());
  trainer.backend().write(planes.data(), numbers.pixels);
  std::vector<float> second;   // channel 1 of each image
  for (Index i = 0; i < 3; ++i) second.insert(second.end(), numbers.pixels.begin() + (2 * i + 1) * 160, numbers.pixels.begin() + (2 * i + 2) * 160);
  const LossResult want = trainer.gradients_of(MemorySource<float>(second.data(), {3, 1, 16, 10}), numbers.labels);
  Producer channel(std::vector<float>{}, {3, 1, 16, 10}, {320, 160, 10, 1}, 160);
  lies_at(channel, planes.data());
  CHECK(trainer.gradients_of(DlpackDeviceSource{DlpackTensor(channel.give())}, numbers.labels) == want);
  CHECK(channel.out() == 0);
  const auto memory = std::make_shared<Cudnn::Buffer<float>>(trainer.backend().buffer<float>(flat_elements(trainer.layout())));
  for (const Parameter& p : trainer.layout()) {
    const std::span<float> flat(memory->data(), static_cast<std::size_t>(memory->size()));
    const DlpackTensor there(to_dlpack(shared_tensor(p, flat, memory, 0, {kDLCUDA, 0})));
    CHECK((there.device().device_type == kDLCUDA && !there.on_host()));
    CHECK(reinterpret_cast<float*>(there.data()) == memory->data() + p.offset);
  }
}
