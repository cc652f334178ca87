// The list of a step's launches: it has what the pretended device starts, and the benchmarked plans start no more than they did.
#include "cudnn/benchmarked_plans.hpp"
#include "cudnn/host_library.hpp"
#include "support/error_of.hpp"
#include <lrcnn/backend/cudnn/loops/launch_recorder.hpp>
#include <lrcnn/exec/device_launches.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <cstdio>
#include <fstream>
#include <iterator>
using namespace lrcnn;
using namespace lrcnn::testing;
using cudnn::Launch, cudnn::LaunchKind, cudnn::Peaks;
namespace {
Index count_of(const std::vector<Launch>& list, LaunchKind kind) {
  return std::count_if(list.begin(), list.end(), [&](const Launch& l) { return l.kind == kind; });
}
/// Kernels, by the list and by a pretended device that carries the step out.
template <Precision precision>
void check_against_device(std::span<const Layer> layers, const Input& input, const PolicySpec& policy) {
  const Plan plan = make_plan(make_table(layers, input), policy, BasicCudnn<precision>::target);
  INFO(plan_title(plan), ", ", to_string(policy), ", ", precision_name(precision));
  const auto list = cudnn::launches_of<precision>(plan);
  const auto library = std::make_shared<HostLibrary<cudnn::Stored<precision>>>();
  BasicCudnn<precision> backend(library);
  std::array<Index, 3> before{};
  const auto started = [&] { return std::array{library->loops_started, library->convolved, library->filled}; };
  cudnn::run_training_step(backend, plan, [&] {
    REQUIRE(library->wait().good());
    before = started();
  });
  REQUIRE(library->wait().good());
  const std::array after = started();
  CHECK(count_of(list, LaunchKind::loop) == after[0] - before[0]);
  CHECK(count_of(list, LaunchKind::convolution) == after[1] - before[1]);
  CHECK(count_of(list, LaunchKind::fill) == after[2] - before[2]);
  CHECK(after[0] - before[0] > plan.table.size());
}
struct Doubler {
  template <class T>
  void operator()(T) const {}
};
}   // namespace
TEST_CASE("a recorder notes loops and calls nothing") {
  std::vector<loops::RecordedLoop> list;
  const loops::LaunchRecorder recorder{&list};
  for_units(recorder, 7, Doubler{});
  for_units(recorder, 0, Doubler{});
  loops::zero_rows(recorder, dense_view(reinterpret_cast<float*>(4096), 2, 3, {0, 5}, 8, 3));
  for_blocks(recorder, 3, Doubler{});
  REQUIRE(list.size() == 3);
  CHECK(list[2].units == 768);
  CHECK(list[2].blocks == 3);
  CHECK(list[0].blocks == 1);
  CHECK(list[0].name == "Doubler");
  CHECK(list[0].units == 7);
  CHECK(list[1].name == "ZeroLoop");
  CHECK(list[1].units == 30);   // of eight elements
}
TEST_CASE("the list has as many kernels as the pretended device starts") {
  using W = Workspace<4_MiB>;
  check_against_device<Precision::fp32>(LeNet<>::layers, {2, 1, 28, 28}, Policy<Column, W>::value);
  check_against_device<Precision::fp32>(LeNet<>::layers, {2, 1, 28, 28}, Policy<Share<4>, CheckpointAtPools, RecomputeAll, W>::value);
  check_against_device<Precision::bf16>(LeNet<>::layers, {2, 1, 28, 28}, Policy<Overlap<3>, Streams<2>, W>::value);
  check_against_device<Precision::bf16>(ResNet18<10>::layers, {1, 3, 64, 64}, Policy<Column, W>::value);
  check_against_device<Precision::fp32>(UNet<2, 4>::layers, {1, 3, 32, 32}, Policy<Share<2>, W>::value);
}
TEST_CASE("the benchmarked plans start no more kernels than they did") {
  for (const BenchmarkedPlan& plan : benchmarked_plans()) {
    const auto list = cudnn::launches_of<Precision::bf16>(make_plan(make_table(plan.layers, plan.input), plan.policy, CudnnBf16::target));
    const Index launches = static_cast<Index>(list.size()) - count_of(list, LaunchKind::copy);
    INFO(plan.name);
    CHECK(launches <= plan.launches);
    CHECK(launches > plan.launches * 9 / 10);   // if it has become less, so shall the number
  }
}
TEST_CASE("docs/cuda.md has the figures of the benchmarked plans on an H200") {
  std::ifstream file(LRCNN_SOURCE_DIR "/docs/cuda.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const Peaks peaks = cudnn::peaks_of(h200_description());
  for (const BenchmarkedPlan& plan : benchmarked_plans()) {
    const auto list = cudnn::launches_of<Precision::bf16>(make_plan(make_table(plan.layers, plan.input), plan.policy, CudnnBf16::target));
    cudnn::LaunchSum sum, convolutions;
    for (const Launch& launch : list) {
      if (launch.kind != LaunchKind::copy) sum.add(launch, peaks, Precision::bf16);
      if (launch.kind == LaunchKind::convolution) convolutions.add(launch, peaks, Precision::bf16);
    }
    std::array<char, 200> row{};
    std::snprintf(row.data(), row.size(), "| %s | %td | %td | %td | %.1f | %.0f | %.2f | %.2f |", plan.name.c_str(), sum.launches, sum.idle,
                  convolutions.launches, static_cast<double>(sum.bytes) / 1e9, 2 * sum.products / 1e9, convolutions.seconds * 1e3, sum.seconds * 1e3);
    CHECK_MESSAGE(page.find(row.data()) != std::string::npos, "the page wants the row ", std::string(row.data()));
  }
}
TEST_CASE("bytes and products of a step without slabs can be counted by hand") {
  const auto layers = Sequential<Conv<16, Window{.kernel = 3, .pad = 1}>, ReLU, MaxPool<>, Flatten, Linear<10>>::layers;
  const Index n = 4, h = 32;
  const auto list =
      cudnn::launches_of<Precision::fp32>(make_plan(make_table(layers, {n, 8, h, h}), Policy<Column, Workspace<4_MiB>>::value, Cudnn::target));
  const auto find = [&](std::string_view name) {
    const auto at = std::find_if(list.begin(), list.end(), [&](const Launch& l) { return l.name == name; });
    REQUIRE_MESSAGE(at != list.end(), name);
    return *at;
  };
  const Index x = n * 8 * h * h, y = n * 16 * h * h, w = 16 * 8 * 9;
  CHECK(find("ConvertLoop").bytes == 2 * x * 4);
  CHECK(find("convolution forward").bytes == (x + y + w) * 4);
  CHECK(find("convolution forward").products == static_cast<double>(n * h * h * w));
  CHECK(find("PackLoop").bytes == 2 * w * 4);
  const Index count = w + 16 + 16 * h * h / 4 * 10 + 10;
  CHECK(find("UpdateLoop").bytes == 5 * count * 4);
}
TEST_CASE("peaks follow from a description's clocks") {
  const Peaks peaks = cudnn::peaks_of(h200_description());
  CHECK(peaks.multiprocessors == 132);
  CHECK(peaks.bytes == doctest::Approx(4.917e12).epsilon(0.001));
  CHECK(2 * peaks.products_in(Precision::fp32) == doctest::Approx(66.9e12).epsilon(0.001));
  CHECK(2 * peaks.products_in(Precision::bf16) == doctest::Approx(1070.5e12).epsilon(0.001));
  CHECK(cudnn::peaks_of(h200_description(), 3e12).bytes == 3e12);
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = h200_description();
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK_THROWS_WITH_AS(
      cudnn::peaks_of(changed("NVIDIA H200", "Another")),
      "lrcnn: the bandwidth of Another is not known; a description has no width of the memory's bus; say how many bytes a second its "
      "memory reads",
      BackendError);
  CHECK(cudnn::peaks_of(changed("NVIDIA H200", "Another"), 1e12).bytes == 1e12);
  CHECK_THROWS_WITH_AS(cudnn::peaks_of(changed("\"deviceVer\":900", "\"deviceVer\":700")),
                       doctest::Contains("the peak of NVIDIA H200 is not known; multiply-adds in a clock are known of compute capabilities 7.5"),
                       BackendError);
  CHECK_THROWS_WITH_AS(cudnn::peaks_of("{}"), doctest::Contains("the device's description has no deviceVer"), BackendError);
}
TEST_CASE("a launch takes what bytes or products take, and leaves multiprocessors idle for lack of blocks") {
  const Peaks peaks{.multiprocessors = 4, .bytes = 1e9, .products = {1e9, 2e9, 4e9, 4e9}, .launch = 1e-6};
  const Launch loop{LaunchKind::loop, "A", {}, 1536, 3, 1000, 0}, full{LaunchKind::loop, "A", {}, 1537, 4, 0, 0},
      product{LaunchKind::convolution, "B", {}, 0, 0, 1000, 4000};
  CHECK(cudnn::leaves_idle(loop, peaks));
  CHECK_FALSE(cudnn::leaves_idle(full, peaks));
  CHECK_FALSE(cudnn::leaves_idle(product, peaks));
  CHECK(cudnn::least_seconds(loop, peaks, Precision::fp32) == doctest::Approx(2e-6));
  CHECK(cudnn::least_seconds(product, peaks, Precision::fp32) == doctest::Approx(5e-6));
  CHECK(cudnn::least_seconds(product, peaks, Precision::bf16) == doctest::Approx(2e-6));
  auto sums = cudnn::sums_of({loop, full, product}, peaks, Precision::fp32);
  CHECK(sums.size() == 3);
  CHECK(sums["A"].launches == 2);
  CHECK(sums["A"].idle == 1);
  CHECK(sums[""].launches == 3);
  CHECK(sums[""].bytes == 2000);
  CHECK(sums[""].seconds == doctest::Approx(8e-6));
}
