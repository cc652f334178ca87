// What cannot work is refused with a text that says who, where and what to change, and leaves everything as it was.
#include "exec/coverage.hpp"
#include "support/run_network.hpp"
#include "support/error_of.hpp"
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/dice.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<3>, ReLU, Conv<4>, ReLU, GlobalAvgPool, Linear<3>>;
using Rows = Policy<Share<4>, RecomputeAll, Workspace<0>>;
using Plain = Policy<Column, Workspace<0>>;
constexpr Input input{2, 1, 8, 6};
template <class T = double>
struct OneBatch {
  Problem<T> problem{Net::layers, input, 4};
  MemorySource<T> source{problem.images.data(), input};
};
/// A batch that is never read.
struct Promise final : RowSource<double> {
  Shape extents;
  explicit Promise(const Shape& s) : extents(s) {}
  Shape shape() const override { return extents; }
  void read(Index, const View<double>&) const override { FAIL("this batch has no values"); }
};
/// A loss that is never finite.
struct Broken {
  static constexpr std::string_view name = "broken";
  void operator()(const View<const double>&, std::span<const std::int32_t>, const View<double>&, double, LossResult& result) const {
    result.sum = -INFINITY;
  }
};
/// Everything that a trainer would lose.
template <class Trainer>
auto state_of(Trainer& trainer) {
  return std::tuple{std::vector<double>(trainer.parameters().begin(), trainer.parameters().end()), trainer.steps_done(), trainer.state().updates,
                    trainer.state().batch};
}
}   // namespace
TEST_CASE("bad input: labels") {
  OneBatch batch;
  Trainer<Net, Rows, Reference<double>> trainer(input, Sgd{.lr = 0.1, .momentum = 0.9});
  const auto before = state_of(trainer);
  const auto step = [&](std::vector<std::int32_t> labels) { return error_of([&] { trainer.step(batch.source, labels); }); };
  CHECK(step({0, 3}) ==
        "lrcnn: label 3 of image 1 is outside the network's 3 classes; labels are 0 .. classes - 1; correct the "
        "labels, or widen the last layer");
  CHECK(step({-1, 0}).starts_with("lrcnn: label -1 of image 0 is outside the network's 3 classes; "));
  CHECK(step({0}) == "lrcnn: 1 labels are given for 2 images; every image has one label; give as many labels as images");
  CHECK(step({0, 1, 2}).starts_with("lrcnn: 3 labels are given for 2 images; "));
  CHECK(step({}).starts_with("lrcnn: 0 labels are given for 2 images; "));
  CHECK_THROWS_AS(trainer.evaluate(batch.source, std::vector<std::int32_t>{0, 7}), DataError);
  CHECK(state_of(trainer) == before);
  CHECK(step({0, 2}) == "no error");
  CHECK(trainer.steps_done() == 1);
}
TEST_CASE("bad input: a loss over images on a map, of which it would read one pixel") {
  using Map = Sequential<Conv<4>, ReLU, MaxPool<>, Named<"scores", Conv<3>>>;
  const std::string rule =
      "; it reads a score for each class of an image, [N,K,1,1]; train with a loss over pixels, such as "
      "PixelCrossEntropy, or end the network in GlobalAvgPool, or Flatten, and Linear";
  CHECK(error_of<ShapeError>([] { Trainer<Map, Rows, Reference<double>> trainer(input, Sgd{}); }) ==
        "lrcnn: the loss 'softmax_cross_entropy' over images is given the map 2x3x4x3 of layer 'scores'" + rule);
  CHECK(error_of<ShapeError>([] { Trainer<Map, Plain, Reference<double>, Broken> trainer(input, Sgd{}); }) ==
        "lrcnn: the loss 'broken' over images is given the map 2x3x4x3 of layer 'scores'" + rule);
  CHECK(error_of<ShapeError>([] {
          Trainer<UNet<2, 2>, Plain, Reference<double>> trainer({1, 1, 16, 16}, Sgd{});
        }) == "lrcnn: the loss 'softmax_cross_entropy' over images is given the map 1x2x16x16 of layer 'head'" + rule);
  CHECK(error_of([] { Trainer<UNet<2, 2>, Plain, Reference<double>, PixelCrossEntropy> trainer({1, 1, 16, 32}, Sgd{}); }) == "no error");
  CHECK(error_of([] { Trainer<UNet<2, 2>, Plain, Reference<double>, DiceLoss> trainer({1, 1, 16, 32}, Sgd{}); }) == "no error");
  const Problem<double> problem(Map::layers, input, 4);
  std::vector<double> gradients(problem.parameters.size());
  Reference<double> backend;
  const auto run = [&](const Table& table) {
    Executor<Reference<double>> executor(make_plan(table, Plain::value, Reference<double>::target), backend, problem.parameters.data(),
                                         gradients.data());
    const MemorySource<double> source(problem.images.data(), input);
    return error_of<ShapeError>([&] { executor.run(source, std::vector<std::int32_t>{0, 2}); });
  };
  CHECK(run(problem.table) == "lrcnn: the loss 'softmax_cross_entropy' over images is given the map 2x3x4x3 of layer 'scores'" + rule);
  CHECK(run(table_of<Sequential<Map, GlobalAvgPool>>(input)) == "no error");
}
TEST_CASE("bad input: a network without a pooling in its head takes larger images, but no labels of them") {
  using Convs = Sequential<Conv<4, Window{.kernel = 3, .stride = 2}>, ReLU, Conv<3, Window{.kernel = {3, 2}}>>;
  Trainer<Convs, Plain, Reference<double>> trainer(input, Sgd{});
  const Input larger{1, 1, 12, 8};
  const Problem<double> problem(Convs::layers, input, 4), other(Convs::layers, larger, 5);
  const MemorySource<double> source(problem.images.data(), input), map(other.images.data(), larger);
  CHECK(error_of([&] { trainer.step(source, problem.labels); }) == "no error");
  CHECK(trainer.predict(source).rows == 1);
  const auto before = state_of(trainer);
  const std::vector<std::int32_t> label{0};
  for (const std::string& text :
       {error_of<ShapeError>([&] { trainer.step(map, label); }), error_of<ShapeError>([&] { trainer.evaluate(map, label); })})
    CHECK(text.starts_with("lrcnn: the loss 'softmax_cross_entropy' over images is given the map 1x3x3x2 of layer 'conv2'; "));
  CHECK(state_of(trainer) == before);
  CHECK(trainer.predict(map).rows == 3);
}
TEST_CASE("bad input: a batch of another shape than the plan's") {
  OneBatch batch;
  std::vector<double> gradients(batch.problem.parameters.size());
  Reference<double> backend;
  Executor<Reference<double>> executor(make_plan(batch.problem.table, Plain::value, Reference<double>::target), backend,
                                       batch.problem.parameters.data(), gradients.data());
  CHECK_THROWS_WITH_AS(executor.run(Promise({3, 1, 8, 6}), batch.problem.labels),
                       "lrcnn: a batch of shape 3x1x8x6 is given to a plan for 2x1x8x6; a plan is made for one shape; make a plan for "
                       "this shape, or let a Trainer do it",
                       DataError);
  CHECK_THROWS_AS(executor.run(Promise({0, 1, 8, 6}), {}), DataError);
}
TEST_CASE("bad input: shapes that a trainer cannot take") {
  Trainer<Net, Rows, Reference<double>> trainer(input, Sgd{});
  const auto before = state_of(trainer);
  const auto step = [&](const Shape& s) {
    return error_of([&] { trainer.step(Promise(s), std::vector<std::int32_t>(static_cast<std::size_t>(s.n), 0)); });
  };
  CHECK(step({0, 1, 8, 6}) ==
        "lrcnn: layer 1 (conv to 3 channels, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1) on input 0x1x8x6: an "
        "extent of the input is zero or negative; images, channels, rows and columns must be at least 1; give the "
        "input's true extents");
  CHECK(step({2, 1, 0, 6})
            .starts_with("lrcnn: layer 1 (conv to 3 channels, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1) on "
                         "input 2x1x0x6: "));
  CHECK(step({2, 2, 8, 6}) ==
        "lrcnn: a batch of shape 2x2x8x6 would change the shape of parameter 'conv1.weight'; a network's parameters "
        "are fixed by its first input, 2x1x8x6; use images of 1 channel");
  CHECK(state_of(trainer) == before);
  OneBatch batch;
  CHECK(std::isfinite(trainer.step(batch.source, batch.problem.labels).loss));
  const auto make = [](const Input& shape) { Trainer<Net, Rows, Reference<double>> other(shape, Sgd{}); };
  CHECK_THROWS_AS(make({0, 1, 8, 6}), ShapeError);
  CHECK_THROWS_AS(make({2, 1, 8, -6}), ShapeError);
}
TEST_CASE("bad input: values that are not finite are traced to where they began, by either kind of run") {
  const auto law = [](auto policy) {
    Trainer<Net, decltype(policy), Reference<double>> trainer(input, Sgd{.lr = 0.1, .momentum = 0.9});
    OneBatch batch;
    const auto text = [&] { return error_of([&] { trainer.step(batch.source, batch.problem.labels); }); };
    CHECK(text() == "no error");
    const std::string end =
        "; parameters were not changed by this step; lower the learning rate, normalise the input, or go back to an "
        "earlier training file";
    for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
      INFO("value ", bad);
      const auto before = state_of(trainer);
      double& pixel = batch.problem.images[static_cast<std::size_t>(input.h * input.w + 4 * input.w + 2)];   // image 1, row 4
      const double good = std::exchange(pixel, bad);
      const std::string in_input = text();
      CHECK(
          in_input.starts_with("lrcnn: in step 2 the loss is not a number; the first values that are not finite come "
                               "from the input, images 0..1, rows "));
      CHECK(in_input.ends_with(end));
      CHECK(state_of(trainer) == before);
      pixel = good;
      for (const char* name : {"conv1", "conv2", "linear1"}) {
        const Parameter* weight = find_parameter(trainer.layout(), std::string(name) + ".weight");
        double& entry = trainer.parameters()[static_cast<std::size_t>(weight->offset)];
        const double kept = std::exchange(entry, bad);
        const std::string in_layer = text();
        CHECK_MESSAGE(in_layer.find("; the first values that are not finite come from layer '" + std::string(name) + "', images 0..1, rows ") !=
                          std::string::npos,
                      in_layer);
        CHECK(in_layer.ends_with(end));
        entry = kept;
      }
      CHECK(state_of(trainer) == before);
    }
    CHECK(text() == "no error");
    CHECK(trainer.steps_done() == 2);
  };
  law(Plain{});
  law(Rows{});
  law(Policy<Overlap<2>, Images<2>, RecomputeCheap, Workspace<0>>{});
}
TEST_CASE("bad input: an overflow in float is reported with the layer in which it happens") {
  const OneBatch<float> batch;
  Trainer<Net, Rows, Reference<float>> trainer(input, Sgd{});
  for (float& p : elements_of(*find_parameter(trainer.layout(), "conv2.weight"), trainer.parameters())) p = 3e38f;
  const std::string text = error_of([&] { trainer.step(batch.source, batch.problem.labels); });
  CHECK(text.find("first values that are not finite come from layer 'conv2'") != std::string::npos);
  CHECK(trainer.steps_done() == 0);
}
TEST_CASE("bad input: a loss of the user's that is not finite") {
  OneBatch batch;
  Trainer<Net, Plain, Reference<double>, Broken> trainer(input, Sgd{});
  CHECK(error_of([&] { trainer.step(batch.source, batch.problem.labels); })
            .starts_with("lrcnn: in step 1 the loss is infinite; the first values that are not finite come from the "
                         "loss itself; "));
}
TEST_CASE("bad input: an arena for which there is no memory is refused with the figures") {
  CHECK_THROWS_WITH_AS(Arena(1'500'000, "the plan of this test", 1'499'999),
                       "lrcnn: the plan of this test needs an arena of 1.5 MB (1500000 bytes), and 1.5 MB are "
                       "available; a plan's memory is taken at once, before the first step; use more slabs, more "
                       "checkpoints, RecomputeAll, fewer images, or a smaller input",
                       PlanError);
  CHECK(Arena(1'500'000, "it", 1'500'000).bytes() == 1'500'000);
  CHECK(Arena(0, "nothing", 0).data() == nullptr);
  CHECK(available_memory() > 0);
  const std::string text = error_of([] { Trainer<Net, Rows, Reference<double>> trainer({1, 1, 3'000'000, 1'000'000}, Sgd{}); });
  CHECK(
      text.starts_with("lrcnn: the plan of Policy<Share<4>, NoCheckpoints, RecomputeAll, DirectConv, Workspace<0>> on input "
                       "1x1x3000000x1000000 needs an arena of "));
}
TEST_CASE("bad input: a batch too large for the memory leaves a trainer as it was") {
  OneBatch batch;
  Trainer<Net, Rows, Reference<double>> trainer(input, Sgd{.lr = 0.1}), other(input, Sgd{.lr = 0.1});
  trainer.step(batch.source, batch.problem.labels), other.step(batch.source, batch.problem.labels);
  CHECK_THROWS_AS(trainer.evaluate(Promise({1, 1, 3'000'000, 1'000'000}), std::vector<std::int32_t>{0}), PlanError);
  CHECK(state_of(trainer) == state_of(other));
  trainer.step(batch.source, batch.problem.labels), other.step(batch.source, batch.problem.labels);
  CHECK(state_of(trainer) == state_of(other));
}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)   // which reserve more than any limit
TEST_CASE("bad input: the process's own limit counts, as a child under such a limit finds") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlimit limit{pages * 4096 + 64'000'000, pages * 4096 + 64'000'000};
    std::string text = "no limit";
    if (setrlimit(RLIMIT_AS, &limit) == 0) text = error_of([] { Trainer<Net, Plain, Reference<double>> trainer({1, 1, 2000, 2000}, Sgd{}); });
    static_cast<void>(!write(ends[1], text.data(), text.size()));
    _exit(0);
  }
  close(ends[1]);
  std::string text(1000, ' ');
  const auto size = read(ends[0], text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, size)));
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(
      text.starts_with("lrcnn: the plan of Policy<Column, NoCheckpoints, KeepAll, DirectConv, Workspace<0>> on input "
                       "1x1x2000x2000 needs an arena of "));
  CHECK(text.find(" MB are available; a plan's memory is taken at once") != std::string::npos);
}
#endif
TEST_CASE("bad input: more slabs than rows; the count that the error names can be had, and no higher one") {
  CHECK(error_of([] { Trainer<Net, Policy<Overlap<9>>, Reference<double>> trainer(input, Sgd{}); }) ==
        "lrcnn: no stage can be cut into 9 slabs by Overlap<9> on input 2x1x8x6; every slab owns a row of every "
        "layer's output; the largest feasible count is 8, in stage conv1..global_avg_pool1; ask for at most 8, or "
        "for fewer layers in a stage by more checkpoints");
  CHECK(error_of([] { Trainer<Net, Policy<Stages<Share<2>, Share<40>>, CheckpointAt<"relu1">>, Reference<double>> trainer(input, Sgd{}); }) ==
        "lrcnn: stage conv2..global_avg_pool1 cannot be cut into 40 slabs by Share<40>; every slab owns a row of "
        "every layer's output; the largest feasible count is 8; ask for at most 8 in this stage");
  Index named = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = random_network(dice);
    PolicySpec policy = random_policy(dice, net);
    policy.partition_count = 1;
    policy.partitions[0] = {dice.pick({Cut::overlap, Cut::share}), 1000, 1000, 0};
    INFO("seed ", seed, " ", to_string(policy));
    const Table table = make_table(net.layers, net.input);
    const std::string text = error_of([&] { make_plan(table, policy); });
    const std::string before = "the largest feasible count is ";
    REQUIRE(text.find(before) != std::string::npos);
    const Index most = std::stoll(text.substr(text.find(before) + before.size()));
    policy.partitions[0].forward = policy.partitions[0].backward = most;
    CHECK(error_of([&] { make_plan(table, policy); }) == "no error");
    policy.partitions[0].forward = policy.partitions[0].backward = most + 1;
    CHECK(error_of([&] { make_plan(table, policy); }) != "no error");
    named += most > 1;
  }
  CHECK(named > 100);
}
TEST_CASE("bad input: a checkpoint at a layer that is not there") {
  CHECK(error_of([] { Trainer<Net, Policy<CheckpointAt<"conv9">>, Reference<double>> trainer(input, Sgd{}); }) ==
        "lrcnn: checkpoint at layer 'conv9', which the network does not have; CheckpointAt<...> names layers of the "
        "network; use a name that the network's table shows, such as 'conv1'");
}
TEST_CASE("bad input: a plan for training is not run for its output alone; its gradients stay") {
  const OneBatch batch;
  Reference<double> backend(1);
  std::vector<double> parameters = batch.problem.parameters, gradients(parameters.size(), 7);
  Executor<Reference<double>> run(make_plan(batch.problem.table, Rows::value, Reference<double>::target), backend, parameters.data(),
                                  gradients.data());
  CHECK(error_of<PlanError>([&] { run.forward(batch.source); })
            .ends_with(" is run for an output without a loss; its backward pass begins with the loss, and its dropouts and norms do what they do in "
                       "training; plan with the option training = false"));
  CHECK(gradients == std::vector<double>(gradients.size(), 7));
}
