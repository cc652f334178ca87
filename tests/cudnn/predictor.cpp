// A predictor on the pretended device: rows of the output come to the host as they are done, by any policy and on several streams,
// and are the ones that a forward pass layer by layer leaves on the device; and what happens when a call fails.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "exec/predicted.hpp"
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
template <class B>
std::vector<float> kept_output(const Problem<float>& problem, const std::shared_ptr<HostLibrary<typename B::element>>& library) {
  PolicySpec column;
  column.workspace_bytes = 100'000;
  B backend(library);
  auto parameters = backend.template buffer<float>(static_cast<Index>(problem.parameters.size()));
  backend.write(parameters.data(), problem.parameters);
  Executor<B> executor(make_plan(problem.table, column, B::target, {.training = false}), backend, parameters.data(), nullptr);
  executor.forward(MemorySource<float>(problem.images.data(), problem.table.input));
  return fetched(backend, executor.output());
}
template <class B>
void law(std::uint64_t first, std::uint64_t rounds) {
  Index cases = 0, in_parts = 0;
  for (std::uint64_t seed = 0; seed < rounds; ++seed)
    for (std::size_t f = 0; f < feature_count; ++f) {
      Dice dice(first + seed * 100 + f);
      const RandomNetwork net = network_or_trunk(dice, features[f]);
      if (std::any_of(net.layers.begin(), net.layers.end(), [](const Layer& y) { return y.kind == Kind::custom; })) continue;
      const Problem<float> problem(net.layers, net.input, seed);
      const auto library = std::make_shared<HostLibrary<typename B::element>>();
      library->fuses_bias = seed % 3 != 2, library->fuses_relu = seed % 3 == 0;
      const std::vector<float> whole = kept_output<B>(problem, library);
      for (int i = 0; i < 4; ++i) {
        PolicySpec policy = forward_policy(dice, parts[static_cast<std::size_t>(dice.upto(0, part_count - 1))], net, B::target);
        policy.workspace_bytes = 100'000;
        add_workspaces(dice, policy, {100'000});
        INFO("feature ", std::string(features[f]), " ", to_string(policy));
        try {
          BasicPredictor<B> predictor(net.layers, policy, net.input, problem.parameters, B(library));
          for (int run = 0; run < 3; ++run) {   // step by step, recorded, started again
            Gather<float> sink(predictor.output_shape());
            predictor.run(MemorySource<float>(problem.images.data(), net.input), sink);
            CHECK(sink.complete());
            CHECK(sink.rows == whole);
            in_parts += sink.most < predictor.output_shape().h;
          }
          ++cases;
        } catch (const PlanError&) {
        }
      }
      CHECK(library->used == 0);
    }
  MESSAGE(cases, " cases, ", in_parts, " runs that handed a map over in parts");
  CHECK(in_parts > static_cast<Index>(40 * rounds));
}
using Trunk = Sequential<Conv<3>, ReLU, MaxPool<>, Conv<4>, ReLU>;
constexpr Input input{2, 1, 12, 6};
constexpr PolicySpec rows = Policy<Share<6>, Streams<2>, Prefetch, Workspace<100'000>>::value;
struct Refuses final : RowSink<float> {
  void write(Index, const View<const float>&) override { throw DataError("the disk is full"); }
};
}   // namespace
TEST_CASE("a predictor on the device hands over the output of a run layer by layer") { law<Cudnn>(61000, 6); }
TEST_CASE("likewise with tensors in bf16: rows come as floats") { law<CudnnBf16>(62000, 3); }
TEST_CASE("each call that fails ends a prediction with an error that says what failed, and the next one is right") {
  const Problem<float> problem(Trunk::layers, input, 3);
  const MemorySource<float> source(problem.images.data(), input);
  Index failed = 0;
  for (Index k = 0;; ++k) {
    const auto library = std::make_shared<HostLibrary<>>();
    BasicPredictor<Cudnn> predictor(Trunk::layers, rows, input, problem.parameters, Cudnn(library));
    Gather<float> before(predictor.output_shape()), broken(predictor.output_shape()), after(predictor.output_shape());
    predictor.run(source, before);
    library->fail_at = library->calls + k;
    const std::string text = error_of([&] { predictor.run(source, broken); });
    if (library->calls <= library->fail_at) break;
    INFO("call ", k, ": ", text);
    if (text != "no error") {
      CHECK(text.starts_with("lrcnn: "));
      CHECK(text.find(" failed: the test says no; ") != std::string::npos);
      ++failed;
    }
    predictor.run(source, after);
    CHECK(after.complete());
    CHECK(after.rows == before.rows);
  }
  CHECK(failed > 20);
}
TEST_CASE("a sink that refuses ends a prediction on the device, and the next one is right") {
  const Problem<float> problem(Trunk::layers, input, 3);
  const MemorySource<float> source(problem.images.data(), input);
  BasicPredictor<Cudnn> predictor(Trunk::layers, rows, input, problem.parameters, Cudnn(std::make_shared<HostLibrary<>>()));
  Gather<float> before(predictor.output_shape()), after(predictor.output_shape());
  predictor.run(source, before);
  Refuses refuses;
  CHECK(error_of<DataError>([&] { predictor.run(source, refuses); }) == "the disk is full");
  predictor.run(source, after);
  CHECK(after.rows == before.rows);
}
