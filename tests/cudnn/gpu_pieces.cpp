// On a GPU: convolutions that run in pieces, because their workspace is small, against whole ones.
#include "cudnn/device_run.hpp"
#include <lrcnn/backend/cudnn/plan_check.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// How many more convolutions than problems a plan has on this device.
template <class B>
Index more_pieces(const Plan& plan, typename B::Library& library) {
  Index more = 0;
  for (const cudnn::Request& request : cudnn::requests_of<B::precision>(plan)) {
    const auto pieces = cudnn::pieces_of(request, cudnn::engine_bytes_on(library));
    more += static_cast<Index>(pieces.size()) - 1;
  }
  return more;
}
/// Worst difference between a network in pieces, recorded and not, and whole.
template <class B>
double difference(const std::vector<Layer>& layers, const Input& input, Index workspace) {
  const auto library = cudnn::open_library<typename B::element>();
  B backend(library);
  const Problem<float> problem(layers, input, 11);
  PolicySpec policy = Policy<Column>::value;
  policy.workspace_bytes = 512_MiB;
  DeviceRun<B> whole_run(problem, policy, backend);
  CHECK(more_pieces<B>(whole_run.executor().plan(), *library) == 0);
  const Outcome<float> whole = whole_run();
  double worst = 0;
  for (PolicySpec small : {Policy<Column>::value, Policy<Overlap<2>, RecomputeAll>::value}) {
    small.workspace_bytes = workspace;
    DeviceRun<B> run(problem, small, backend);
    const Index more = more_pieces<B>(run.executor().plan(), *library);
    CHECK(more > 1);
    for (int turn = 0; turn < 3; ++turn) {
      run.poison();
      worst = std::max(worst, worst_difference(problem, run(), whole));
    }
    MESSAGE(to_string(small), ": ", more, " pieces more than convolutions; worst difference ", worst);
  }
  return worst;
}
/// Smooth, so that rounding has no large effect.
template <Index strided>
std::vector<Layer> network() {
  using Net = Sequential<Conv<64>, SiLU, Conv<64>, SiLU, AvgPool<>, Conv<96, Window{.kernel = 3, .stride = strided, .pad = 1}>, BatchNorm, SiLU,
                         ConvTranspose<32>, GlobalAvgPool, Linear<10>>;
  return {Net::layers.begin(), Net::layers.end()};
}
}   // namespace
TEST_CASE("gpu: convolutions in pieces give what whole ones give") {
  CHECK(difference<Cudnn>(network<1>(), {5, 3, 96, 80}, 5_MiB) <= 1e-5);   // pieces of images, and of rows
  CHECK(difference<Cudnn>(network<2>(), {1, 3, 250, 130}, 6_MiB) <= 1e-5);
  CHECK(difference<CudnnTf32>(network<2>(), {1, 3, 1100, 1300}, 8_MiB) <= 1e-2);   // of the image alone
  CHECK(difference<CudnnBf16>(network<1>(), {2, 3, 600, 900}, 8_MiB) <= 1e-1);
}
