// Policies that Fit chose, carried out on oneDNN: every one has the workspace that the library's kernels want, in 16 bits, too.
#include "support/backend_for_tests.hpp"
#include "support/run_network.hpp"
#include "support/threads.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class B>
void points_run(std::span<const Layer> layers, const Input& input, std::size_t most) {
  const Problem<float> problem(layers, input, 1);
  const MemorySource<float> source(problem.images.data(), input);
  std::vector<float> gradients(problem.parameters.size(), 1.0f);
  B backend = backend_for_tests<B>(threads_for_tests());
  const Frontier frontier = find_frontier(problem.table, Policy<Fit<1>>::value, B::target, {}, Costs(rates_of<B>()));
  REQUIRE(!frontier.points.empty());
  double loss = 0;
  const std::size_t step = 1 + frontier.points.size() / most;
  for (std::size_t i = 0; i < frontier.points.size(); i += step) {
    const SolvedPolicy& point = frontier.points[i];
    CAPTURE(to_string(point.policy));
    Executor<B> executor(make_plan(problem.table, point.policy, B::target), backend, problem.parameters.data(), gradients.data());
    CHECK(executor.plan().arena.bytes == point.bytes);
    double found = 0;
    CHECK_NOTHROW(found = executor.run(source, problem.labels).sum);
    if (i == 0) loss = found;
    CHECK(found == doctest::Approx(loss).epsilon(sizeof(typename B::element) == 2 ? 0.05 : 1e-3));
  }
}
}   // namespace
TEST_CASE("every point of a frontier runs on oneDNN") {
  points_run<Onednn>(SmallNet<>::layers, {4, 3, 32, 32}, 30);
  points_run<Onednn>(Vgg11<10>::layers, {1, 3, 96, 96}, 8);
  points_run<Onednn>(MobileNetV2<10>::layers, {2, 3, 64, 64}, 8);
}
TEST_CASE("every point of a frontier runs on oneDNN in bf16") {
  if (backend_for_tests<OnednnBf16>(1).has_kernels()) {   // elsewhere plain loops want no workspace
    points_run<OnednnBf16>(SmallNet<>::layers, {1, 3, 32, 32}, 30);
    points_run<OnednnBf16>(SmallNet<>::layers, {4, 3, 32, 32}, 30);
    points_run<OnednnBf16>(Vgg11<10>::layers, {1, 3, 96, 96}, 8);
    points_run<OnednnBf16>(ResNet18<10>::layers, {2, 3, 64, 64}, 8);
    points_run<OnednnBf16>(MobileNetV2<10>::layers, {2, 3, 64, 64}, 8);
  }
}
TEST_CASE("a budget's allowance grows with the threads that a batch is cut for, and with convolutions that are like no other") {
  const auto of = [](std::span<const Layer> layers, Index n, int threads) {
    return Onednn::library_bytes(make_table(layers, {n, 3, 64, 64}), threads);
  };
  using Repeated = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, Conv<8>>;      // two kinds of convolutions
  using Different = Sequential<Conv<8>, ReLU, Conv<16>, ReLU, Conv<32>>;   // three
  CHECK(of(Repeated::layers, 256, 1) == of(Repeated::layers, 256, 2));
  CHECK(of(Repeated::layers, 8, 64) == of(Repeated::layers, 256, 2));    // with fewer images than threads there are no parts
  CHECK(of(Repeated::layers, 80, 64) < of(Repeated::layers, 256, 64));   // and no more than images
  CHECK(of(Repeated::layers, 256, 16) < of(Repeated::layers, 256, 64));
  CHECK(of(Repeated::layers, 256, 64) == of(Repeated::layers, 256, 100));
  CHECK(of(Repeated::layers, 256, 2) == of(Different::layers, 256, 2));
  CHECK(2 * (of(Different::layers, 256, 64) - of(Different::layers, 1, 64)) == 3 * (of(Repeated::layers, 256, 64) - of(Repeated::layers, 1, 64)));
}
