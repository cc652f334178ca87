// Running statistics on a device that nobody waits for: mixed in by the update's own loop, so left out with it. On the pretended device.
#include "cudnn/host_library.hpp"
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
const Input input{4, 1, 28, 28};
struct Noise {
  std::vector<float> pixels;
  std::vector<std::int32_t> classes{1, 2, 3, 4};
  explicit Noise(float last) : pixels(static_cast<std::size_t>(input.count()), 0.5f) { pixels.back() = last; }
  MemorySource<float> source() const { return {pixels.data(), input}; }
};
Table normed() {
  Layer norm{.kind = Kind::norm};
  norm.norm.momentum = 0.25;
  return make_table(std::vector<Layer>{Conv<4>::layer(), norm, ReLU::layer(), norm}, input);
}
}   // namespace
TEST_CASE("from a loss on that is not finite nothing is mixed in, although nobody waited; afterwards it is again") {
  const auto library = std::make_shared<HostLibrary<>>();
  const PolicySpec policy = Policy<Share<4>, Workspace<1_MiB>>::value;
  BasicTrainer<Cudnn> trainer(LeNet<10>::layers, policy, input, Sgd{.lr = 0.01}, {.seed = 3}, {}, Cudnn(library));
  Cudnn& backend = trainer.backend();
  const Table table = normed();
  const RunningStatistics running(table);
  const Index count = parameter_count(table);
  auto parameters = backend.buffer<float>(count), values = backend.buffer<float>(count);
  std::vector<float> want(static_cast<std::size_t>(count), 4), left(want.size());
  backend.write(parameters.data(), want);
  backend.write(values.data(), std::vector<float>(want.size(), 8));
  const auto expect = [&](float statistic) {
    for (const Parameter& p : parameters_of(table))
      if (p.shape.running) std::fill_n(want.begin() + p.offset, p.shape.count(), statistic);
    backend.read(std::span<float>(left), parameters.data());
    CHECK(left == want);
  };
  const auto step = [&](float last) {
    const Noise batch(last);
    trainer.start_step(batch.source(), batch.classes);
    const Index waits = library->waits;
    running.mix(backend, parameters.data(), values.data());
    CHECK(library->waits == waits);
  };
  step(0.5f), step(0.25f), step(NAN), step(0.5f);
  CHECK(error_of<NumericError>([&] { trainer.wait(); }).find("in step 3 the loss is not finite") != std::string::npos);
  expect(5.75f);
  step(0.5f);
  CHECK(trainer.wait().count == 4);
  expect(6.3125f);
  const auto kept = running.read(backend, parameters.data());
  CHECK(kept == std::vector<float>(16, 6.3125f));
  running.write<float>(backend, parameters.data(), std::vector<float>(16, 1.0f));
  expect(1);
}
