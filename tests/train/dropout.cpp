// Dropout in training: masks follow seed and step, are the same under every policy and after a file was loaded, and are off in evaluation.
#include "support/error_of.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/data/loader.hpp>
#include <lrcnn/data/shapes.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/dropout.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/convnext.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/squeezenet.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
#include <stdlib.h>
using namespace lrcnn;
namespace {
using Branch = Sequential<Conv<6>, ReLU, StochasticDepth<std::ratio<1, 4>>>;
using Net =
    Sequential<Conv<6>, ReLU, Dropout<>, Residual<Branch>, MaxPool<>, Conv<8>, SpatialDropout<std::ratio<1, 5>>, ReLU, GlobalAvgPool, Linear<10>>;
using Plain = Sequential<Conv<6>, ReLU, Residual<Sequential<Conv<6>, ReLU>>, MaxPool<>, Conv<8>, ReLU, GlobalAvgPool, Linear<10>>;
using Rows = Policy<Share<3>, RecomputeAll>;
using Trainee = BasicTrainer<Reference<double>>;
constexpr Input input_of(Index n) { return {n, 1, 16, 16}; }
const Dataset& shapes() {
  static const Dataset data = make_shapes({.count = 32, .h = 16, .w = 16});
  return data;
}
const Loader<double>& loader(Index batch) {
  static const Loader<double> eight(shapes(), {.batch = 8}), four(shapes(), {.batch = 4, .shuffle = false}),
      all(shapes(), {.batch = 8, .shuffle = false});
  return batch == 8 ? eight : batch == 4 ? four : all;
}
std::vector<double> trained(Trainee& trainer, Index steps) {
  for (Index i = 0; i < steps; ++i) trainer.step(loader(8).batch(trainer.steps_done() / 4, trainer.steps_done() % 4));
  return {trainer.parameters().begin(), trainer.parameters().end()};
}
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}
}   // namespace
TEST_CASE("dropout: rows train as columns do, and another seed draws other masks") {
  const auto of = [](const PolicySpec& policy, std::uint64_t seed) {
    Trainee trainer(Net::layers, policy, input_of(8), Sgd{.lr = 0.1}, {.initializer = Fill{0.01}, .seed = seed});
    return trained(trainer, 6);
  };
  const auto column = of(Policy<>::value, 1);
  CHECK(difference(of(Rows::value, 1), column) < 1e-12);
  CHECK(difference(of(Policy<ByImages<3, Overlap<4>>, RecomputeCheap>::value, 1), column) < 1e-12);
  CHECK(difference(of(Policy<Images<3>, Share<2>, KeepAll>::value, 1), column) < 1e-12);
  CHECK(of(Rows::value, 1) == of(Rows::value, 1));
  CHECK(difference(of(Rows::value, 2), column) > 1e-6);
}
TEST_CASE("dropout: each step draws masks of its own") {
  Trainee trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0});
  const auto batch = loader(8).batch(0, 0);
  const auto first = trainer.gradients_of(batch, batch.labels());
  CHECK(trainer.gradients_of(batch, batch.labels()) == first);   // nothing was stepped between
  const double loss = trainer.step(batch).loss;
  CHECK(loss == first.mean());
  CHECK(trainer.step(batch).loss != loss);
}
TEST_CASE("dropout: a training that is saved and loaded draws the masks of one that was not interrupted") {
  std::string folder = (std::filesystem::temp_directory_path() / "lrcnn-test-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const auto file = std::filesystem::path(folder) / "state";
  const TrainerOptions options{.seed = 5};
  Trainee whole(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1, .momentum = 0.9}, options);
  const auto expected = trained(whole, 7);
  Trainee first(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1, .momentum = 0.9}, options);
  trained(first, 3);
  first.save(file);
  Trainee second(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1, .momentum = 0.9}, {.seed = 99});
  trained(second, 1);
  second.load(file);
  CHECK(trained(second, 4) == expected);
  std::filesystem::remove_all(folder);
}
TEST_CASE("dropout: batches that are accumulated draw what one batch of all their images does") {
  Trainee one(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1}), two(Net::layers, Rows::value, input_of(4), Sgd{.lr = 0.1});
  for (Index step = 0; step < 3; ++step) {
    const auto both = loader(0).batch(0, step);
    one.step(both);
    for (Index half = 0; half < 2; ++half) two.accumulate(loader(4).batch(0, 2 * step + half));
    two.update();
  }
  const auto a = one.read_parameters(), b = two.read_parameters();
  CHECK(difference(a, b) < 1e-13);
}
namespace {
/// A network that was published with dropout: in training it drops, the same by rows, and otherwise it is the one without.
template <class Dropping, class Without>
void check_published(const Input& input) {
  std::vector<double> pixels(static_cast<std::size_t>(input.count()));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = Random(4).normal(i);
  const MemorySource<double> source(pixels.data(), input);
  const std::vector<std::int32_t> labels{1, 7};
  Trainee column(Dropping::layers, Policy<>::value, input, Sgd{}, {.seed = 8});
  Trainee rows(Dropping::layers, Policy<Overlap<2>, RecomputeAll>::value, input, Sgd{}, {.seed = 8});
  Trainee other(Dropping::layers, Policy<>::value, input, Sgd{}, {.seed = 9}), plain(Without::layers, Policy<>::value, input, Sgd{});
  for (const Parameter& p : column.layout())   // so that what bodies give counts
    if (p.name.ends_with(".layer_scale")) std::ranges::fill(elements_of(p, column.parameters()), 1.0);
  for (Trainee* t : {&rows, &other, &plain}) t->write_parameters(column.parameters());
  CHECK(column.evaluate(source, labels) == plain.evaluate(source, labels));
  const double loss = column.gradients_of(source, labels).mean();
  CHECK(std::abs(rows.gradients_of(source, labels).mean() - loss) < 1e-10);
  CHECK(difference(rows.read_gradients(), column.read_gradients()) < 1e-9);
  CHECK(std::abs(other.gradients_of(source, labels).mean() - loss) > 1e-9);
  CHECK(std::abs(plain.gradients_of(source, labels).mean() - loss) > 1e-9);
}
}   // namespace
TEST_CASE("dropout: networks that were published with it") {
  check_published<MobileNetV2<10>, MobileNetV2<10, BatchNorm, std::ratio<0>>>({2, 3, 64, 64});
  check_published<SqueezeNet11<10>, SqueezeNet11<10, std::ratio<0>>>({2, 3, 66, 50});
  using Narrow = ConvNeXt<8, 9, 10, std::ratio<1, 2>>;
  check_published<Narrow, ConvNeXt<8, 9, 10, std::ratio<0>>>({2, 3, 64, 64});
}
TEST_CASE("dropout: evaluation drops nothing") {
  Trainee trainer(Net::layers, Rows::value, input_of(8), Sgd{}), plain(Plain::layers, Policy<>::value, input_of(8), Sgd{});
  plain.write_parameters(trainer.parameters());
  const auto batch = loader(8).batch(0, 0);
  CHECK(trainer.evaluate(batch, batch.labels()) == plain.evaluate(batch, batch.labels()));
  CHECK(trainer.gradients_of(batch, batch.labels()).mean() != plain.gradients_of(batch, batch.labels()).mean());
}
