// In 16 bits a bias is rounded as filters are, whoever adds it: an engine of the library's or a loop.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "exec/predicted.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// A layer of a kind that has a bias.
std::vector<Layer> layers(Index kind) {
  const std::vector<Layer> all{{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 7, .bias = true},
                               {.kind = Kind::conv_transpose, .window = {.kernel = 2, .stride = 2}, .channels = 5, .bias = true},
                               {.kind = Kind::linear, .channels = 9, .bias = true}};
  return {all[static_cast<std::size_t>(kind)]};
}
/// The output of one layer whose weights are 0.
template <class B>
std::vector<float> output(const std::vector<Layer>& network, Problem<float>& problem, const std::vector<float>& bias, bool fuses) {
  std::fill(problem.parameters.begin(), problem.parameters.end(), 0.0f);
  std::copy(bias.begin(), bias.end(), problem.parameters.end() - static_cast<std::ptrdiff_t>(bias.size()));
  const auto library = std::make_shared<HostLibrary<typename B::element>>();
  library->fuses_bias = fuses;
  BasicPredictor<B> predictor(network, Policy<Workspace<1_MiB>>::value, problem.table.input, problem.parameters, B(library));
  Gather<float> sink(predictor.output_shape());
  predictor.run(MemorySource<float>(problem.images.data(), problem.table.input), sink);
  return sink.rows;
}
template <class B>
void law() {
  using T = typename B::element;
  for (Index kind = 0; kind < 3; ++kind)
    for (const bool fuses : {true, false}) {
      Problem<float> problem(layers(kind), kind == 2 ? Input{2, 3, 1, 1} : Input{2, 3, 4, 4}, 3);
      const Index channels = problem.table.shape(1).c;
      std::vector<float> bias(static_cast<std::size_t>(channels));
      for (std::size_t c = 0; c < bias.size(); ++c) bias[c] = 1.0f + 0.3f / static_cast<float>(c + 1);
      const std::vector<float> rows = output<B>(layers(kind), problem, bias, fuses);
      const Index plane = problem.table.shape(1).h * problem.table.shape(1).w;
      REQUIRE(static_cast<Index>(rows.size()) == 2 * channels * plane);
      INFO(precision_name(B::precision), ", kind ", kind, ", fused ", fuses);
      bool good = true;
      for (std::size_t e = 0; e < rows.size(); ++e) {
        const auto c = (static_cast<Index>(e) / plane) % channels;
        good = good && rows[e] == static_cast<float>(static_cast<T>(bias[static_cast<std::size_t>(c)]));
      }
      CHECK(good);
    }
}
}   // namespace
TEST_CASE("what comes of weights that are 0 is the bias, rounded to an element, by an engine as by a loop") {
  law<CudnnBf16>();
  law<CudnnFp16>();
  law<Cudnn>();
}
