// The trainer on the reference backend: steps, epochs, files, errors.
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/data/loader.hpp>
#include <lrcnn/data/shapes.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
#include <csignal>
#include <sstream>
#include <stdlib.h>
using namespace lrcnn;
using lrcnn::testing::error_of;
using lrcnn::testing::file_bytes;
namespace {
using Net = Sequential<Conv<6>, ReLU, MaxPool<>, Conv<8, Window{.kernel = {3, 2}, .pad = 1}>, ReLU, GlobalAvgPool, Linear<10>>;
using FlatNet = Sequential<Conv<4>, ReLU, MaxPool<>, Flatten, Linear<10>>;
using Rows = Policy<Share<3>, CheckpointAtPools, RecomputeAll>;
template <class T = double>
using Trainee = BasicTrainer<Reference<T>>;
constexpr Index side = 16;
constexpr Input input_of(Index n) { return {n, 1, side, side}; }
const Dataset& shapes() {
  static const Dataset data = make_shapes({.count = 45, .h = side, .w = side});
  return data;
}
Loader<double> loader_of(Index batch, LoaderOptions options = {}) {
  options.batch = batch;
  options.normalization = normalization_of(shapes());
  return Loader<double>(shapes(), options);
}
const Loader<double>& loader() {   // 6 batches, the last of 5 images
  static const auto l = loader_of(8, {.augmentation = {.flip = true, .pad = 1}});
  return l;
}
/// A folder that is removed with everything in it.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lrcnn-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path operator/(const char* name) const { return path / name; }
};
/// Everything that a trainer is, as the bytes that it saves.
template <class B>
std::vector<std::byte> state_of(const BasicTrainer<B>& trainer) {
  const Folder folder;
  trainer.save(folder / "state");
  return file_bytes(folder / "state");
}
template <class B>
std::vector<typename B::element> copy_of(BasicTrainer<B>& trainer) {
  return {trainer.parameters().begin(), trainer.parameters().end()};
}
std::size_t count_of(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}
/// A program's own loss, infinite for the first class.
struct Picky {
  static constexpr std::string_view name = "picky";
  template <class T>
  void operator()(const View<const T>& logits, std::span<const std::int32_t> labels, const View<T>& dx, double scale, LossResult& result) const {
    SoftmaxCrossEntropy{}(logits, labels, dx, scale, result);
    for (const std::int32_t label : labels)
      if (label == 0) result.sum = std::numeric_limits<double>::infinity();
  }
};
/// What makes the loader above fail after so many batches in all.
LoaderOptions interrupted_after(Index batches) {
  LoaderOptions options{.augmentation = {.flip = true, .pad = 1}, .prefetch = 0};
  auto left = std::make_shared<Index>(batches / 6 * 45 + batches % 6 * 8);
  options.transform = [left](std::span<std::uint8_t>, const Shape&, const Random&) {
    if (--*left == -1) throw std::runtime_error("interrupted");
  };
  return options;
}
}   // namespace
TEST_CASE("a step reports the loss before the update and subtracts lr times the gradient") {
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.25});
  const auto batch = loader().batch(0, 0);
  const auto before = copy_of(trainer);
  const LossResult expected = trainer.evaluate(batch, batch.labels());
  CHECK(trainer.gradients_of(batch, batch.labels()) == expected);
  CHECK(copy_of(trainer) == before);
  const std::vector<double> gradients(trainer.gradients().begin(), trainer.gradients().end());
  const StepReport report = trainer.step(batch);
  CHECK(report.loss == expected.mean());
  CHECK(report.accuracy == expected.accuracy());
  CHECK(report.images == 8);
  CHECK(report.lr == 0.25);
  CHECK(report.peak_bytes == trainer.plan().peak_bytes());
  CHECK(report.peak_bytes == arena_size(make_table(Net::layers, input_of(8)), Rows::value, Reference<double>::target).bytes);
  CHECK(trainer.steps_done() == 1);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(std::abs(trainer.parameters()[i] - (before[i] - 0.25 * gradients[i])) <= 1e-15);
  CHECK(trainer.evaluate(batch, batch.labels()).mean() < report.loss);
}
TEST_CASE("predict gives the logits that evaluate judges") {
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{});
  const auto batch = loader().batch(0, 0);
  const auto logits = trainer.predict(batch);
  CHECK(logits.n == 8);
  CHECK(logits.c == 10);
  double sum = 0;
  Index correct = 0;
  for (Index i = 0; i < 8; ++i) {
    double whole = 0;
    std::vector<double> scores;
    for (Index k = 0; k < 10; ++k) scores.push_back(logits(i, k, 0, 0)), whole += std::exp(scores.back());
    const auto label = batch.labels()[static_cast<std::size_t>(i)];
    sum += std::log(whole) - scores[static_cast<std::size_t>(label)];
    correct += predicted_class<double>(scores) == label;
  }
  const LossResult result = trainer.evaluate(batch, batch.labels());
  CHECK(result.sum == doctest::Approx(sum).epsilon(1e-13));
  CHECK(result.correct == correct);
  CHECK(result.count == 8);
}
TEST_CASE("predict asks no loss, and hands values on as they are") {
  BasicTrainer<Reference<double>, Picky> trainer(Net::layers, Rows::value, input_of(8), Sgd{});
  const auto batch = loader().batch(0, 0);
  CHECK_THROWS_AS(trainer.evaluate(batch, std::vector<std::int32_t>(8, 0)), NumericError);
  CHECK(std::isfinite(trainer.predict(batch)(7, 9, 0, 0)));
  std::vector<double> parameters = trainer.read_parameters();
  std::fill(parameters.begin(), parameters.end(), std::numeric_limits<double>::infinity());
  trainer.write_parameters(parameters);
  CHECK_FALSE(std::isfinite(trainer.predict(batch)(7, 9, 0, 0)));
}
TEST_CASE("parameters of another network are refused") {
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{});
  const auto before = state_of(trainer);
  CHECK(error_of<Error>([&] { trainer.write_parameters(std::vector<double>(7)); }) ==
        "lrcnn: 7 values are given for " + std::to_string(trainer.parameters().size()) +
            " parameters; all parameters are set at once; see layout() for the order and sizes of parameters");
  CHECK(state_of(trainer) == before);
}
TEST_CASE("fit leaves the program's clock as it was") {
  const TrainerOptions options{.schedule = CosineLr{}, .clock = {.steps_per_epoch = 10, .steps = 1000}};
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 1}, options);
  const auto part = loader_of(8);
  const auto history = trainer.fit(part, nullptr, {.epochs = 1});
  CHECK(history.back().lr < 0.2);   // the end of the cosine over one epoch
  const StepReport report = trainer.step(loader().batch(0, 0));
  CHECK(report.lr == lr_scale(CosineLr{}, trainer.steps_done() - 1, {.steps = 1000}));
  CHECK(report.lr > 0.9);
}
TEST_CASE("an epoch's loss and accuracy do not depend on how it is divided into batches") {
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{});
  const auto before = state_of(trainer);
  const auto whole = loader_of(45), parts = loader_of(8, {.shuffle = false});
  const Metrics all = trainer.evaluate(whole), some = trainer.evaluate(parts);
  CHECK(some.images == 45);
  CHECK(some.correct == all.correct);
  CHECK(some.loss() == doctest::Approx(all.loss()).epsilon(1e-13));
  CHECK(state_of(trainer) == before);
}
TEST_CASE("the last, smaller batch trains like a batch of that size") {
  for (const PolicySpec& policy : {Rows::value, Policy<Images<3>>::value, Policy<ByImages<4, Overlap<2>>>::value}) {
    Trainee<> trainer(Net::layers, policy, input_of(8), Sgd{.lr = 0.1}), small(Net::layers, policy, input_of(5), Sgd{.lr = 0.1});
    const auto full = loader().batch(0, 0), last = loader().batch(0, 5);
    REQUIRE(last.size() == 5);
    const Index arena = trainer.arena_bytes();
    trainer.step(full);
    std::copy(trainer.parameters().begin(), trainer.parameters().end(), small.parameters().begin());
    const StepReport ours = trainer.step(last), theirs = small.step(last);
    CHECK(ours.loss == theirs.loss);
    CHECK(ours.images == 5);
    CHECK(copy_of(trainer) == copy_of(small));
    CHECK(trainer.arena_bytes() == arena);   // the plan of the full batch serves
    CHECK(ours.peak_bytes <= arena);
  }
}
TEST_CASE("extents change from batch to batch") {
  const Dataset wide = make_shapes({.count = 6, .h = 24, .w = 21});
  const Loader<double> other(wide, {.batch = 6});
  const auto first = loader().batch(0, 0), second = other.batch(0, 0);
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1}), fresh(Net::layers, Rows::value, {6, 1, 24, 21}, Sgd{.lr = 0.1});
  const Index arena = trainer.arena_bytes();
  trainer.step(first);
  std::copy(trainer.parameters().begin(), trainer.parameters().end(), fresh.parameters().begin());
  CHECK(trainer.step(second).loss == fresh.step(second).loss);
  CHECK(copy_of(trainer) == copy_of(fresh));
  CHECK(trainer.arena_bytes() > arena);
  CHECK(trainer.step(first).loss == fresh.step(first).loss);   // in the larger arena, both
  CHECK(copy_of(trainer) == copy_of(fresh));
  for (Index h = 8; h < 24; ++h) {   // more shapes than plans are kept
    const Dataset data = make_shapes({.count = 2, .h = h, .w = 8});
    const Loader<double> loader(data, {.batch = 2});
    CHECK(trainer.step(loader.batch(0, 0)).images == 2);
  }
  CHECK(trainer.step(first).images == 8);
}
TEST_CASE("a network with Flatten refuses other extents, and one of any kind other channels") {
  Trainee<> flat(FlatNet::layers, Policy<Overlap<2>>::value, input_of(8), Sgd{});
  const auto before = state_of(flat);
  const Dataset wide = make_shapes({.count = 2, .h = 18, .w = 16}), colour = make_shapes({.count = 2, .channels = 3, .h = 16, .w = 16});
  const Loader<double> wides(wide, {.batch = 2}), colours(colour, {.batch = 2});
  CHECK(error_of<ShapeError>([&] { flat.step(wides.batch(0, 0)); }) ==
        "lrcnn: a batch of shape 2x1x18x16 would change the shape of parameter 'linear1.weight'; a network's "
        "parameters are fixed by its first input, 8x1x16x16; use images of one size, or GlobalAvgPool instead of "
        "Flatten");
  CHECK(error_of<ShapeError>([&] { flat.evaluate(colours); })
            .ends_with("would change the shape of parameter 'conv1.weight'; a network's parameters are fixed by its first input, 8x1x16x16; "
                       "use images of 1 channel"));
  CHECK(state_of(flat) == before);
  CHECK(flat.step(loader().batch(0, 0)).images == 8);
}
TEST_CASE("a batch that does not fit is refused and changes nothing") {
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  const auto before = state_of(trainer);
  const auto batch = loader().batch(0, 0);
  std::vector<std::int32_t> labels(batch.labels().begin(), batch.labels().end());
  labels[5] = 10;
  CHECK(error_of<DataError>([&] { trainer.step(batch, labels); }) ==
        "lrcnn: label 10 of image 5 is outside the network's 10 classes; labels are 0 .. classes - 1; correct the "
        "labels, or widen the last layer");
  labels[5] = -1;
  CHECK(error_of<DataError>([&] { trainer.evaluate(batch, labels); }).find("label -1 of image 5") != std::string::npos);
  labels.pop_back();
  CHECK(error_of<DataError>([&] { trainer.step(batch, labels); }) ==
        "lrcnn: 7 labels are given for 8 images; every image has one label; give as many labels as images");
  const MemorySource<double> none(nullptr, {0, 1, side, side}), huge(nullptr, {1 << 16, 1, 1 << 12, 1 << 13});
  CHECK(error_of<ShapeError>([&] { trainer.step(none, {}); }) ==
        "lrcnn: layer 1 (conv to 6 channels, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1) on input 0x1x16x16: an "
        "extent of the input is zero or negative; images, channels, rows and columns must be at least 1; give the "
        "input's true extents");
  const std::string memory = error_of<PlanError>([&] { trainer.step(huge, {}); });
  CHECK(memory.find("lrcnn: the plan of Policy<Share<3>, CheckpointAtPools, RecomputeAll, ") == 0);
  CHECK(memory.find(" on input 65536x1x4096x8192 needs an arena of ") != std::string::npos);
  CHECK(memory.find(" TB (") != std::string::npos);
  CHECK(memory.find(" are available; a plan's memory is taken at once, before the first step; use more slabs") != std::string::npos);
  const MemorySource<double> low(nullptr, {1, 1, 1, 16});
  CHECK(error_of<ShapeError>([&] { trainer.step(low, std::vector<std::int32_t>(1)); })
            .find("lrcnn: layer 3 (max_pool, kernel 2x2 stride 2x2 pad 0,0,0,0 dilation 1x1) on input 1x6x1x16: the "
                  "window does not fit into the padded input; ") == 0);
  CHECK(state_of(trainer) == before);
  CHECK(trainer.step(batch).images == 8);
}
TEST_CASE("the same seed gives the same training to the last bit, another seed another") {
  const auto train = [](std::uint64_t seed, std::uint64_t order, int threads, const PolicySpec& policy) {
    const auto data = loader_of(8, {.seed = order, .augmentation = {.flip = true, .pad = 1}, .prefetch = threads, .threads = threads});
    Trainee<> trainer(Net::layers, policy, data.input(), AdamW{}, {.seed = seed, .threads = threads});
    CHECK(trainer.backend().threads() == threads);
    trainer.fit(data, &data, {.epochs = 2});
    return state_of(trainer);
  };
  for (const PolicySpec& policy : {Policy<Column>::value, Rows::value, Policy<Overlap<2, 4>, Images<3>, RecomputeCheap>::value}) {
    const auto once = train(3, 4, 1, policy);
    CHECK(train(3, 4, 1, policy) == once);
    CHECK(train(3, 4, 2, policy) == once);
    CHECK(train(3, 4, 5, policy) == once);
    CHECK(train(2, 4, 1, policy) != once);
    CHECK(train(3, 5, 1, policy) != once);
  }
}
TEST_CASE("initial values follow the seed and the initializer") {
  Trainee<> a(Net::layers, Rows::value, input_of(8), Sgd{}, {.seed = 5}), b(Net::layers, {}, input_of(2), AdamW{}, {.seed = 5}),
      c(Net::layers, Rows::value, input_of(8), Sgd{}, {.seed = 6}), d(Net::layers, {}, input_of(8), Sgd{}, {.initializer = Fill{0.5}});
  CHECK(copy_of(a) == copy_of(b));
  CHECK(copy_of(a) != copy_of(c));
  CHECK(copy_of(d) == std::vector<double>(copy_of(a).size(), 0.5));
  std::vector<double> expected(copy_of(a).size());
  initialize<double>(parameters_of(make_table(Net::layers, input_of(1))), He{}, 5, expected);
  CHECK(copy_of(a) == expected);
}
TEST_CASE("a network with fixed extents needs no input, and a type's trainer is the list's") {
  using Here = Fixed<Net, input_of(8)>;
  Trainer<Here, Rows, Reference<double>> fixed(Sgd{.lr = 0.1}, {.seed = 2});
  Trainer<Net, Rows, Reference<double>> typed(input_of(8), Sgd{.lr = 0.1}, {.seed = 2});
  Trainee<> listed(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1}, {.seed = 2});
  for (Index i = 0; i < 3; ++i) {
    const auto batch = loader().batch(0, i);
    const double loss = listed.step(batch).loss;
    CHECK(fixed.step(batch).loss == loss);
    CHECK(typed.step(batch).loss == loss);
  }
}
TEST_CASE("a training that is saved anywhere and loaded elsewhere continues to the last bit") {
  const TrainerOptions options{.schedule = CosineLr{.floor = 0.1, .warm_up = steps(4)}, .seed = 7};
  for (const Optimizer& optimizer : {Optimizer(Sgd{.lr = 0.02, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-3}),
                                     Optimizer(AdamW{.lr = 0.01}), Optimizer(Sgd{.lr = 0.05})}) {
    const Folder folder;
    Trainee<> whole(Net::layers, Rows::value, input_of(8), optimizer, options);
    const auto history = whole.fit(loader(), &loader(), {.epochs = 2, .history = folder / "whole.csv"});
    REQUIRE(history.size() == 2);
    const auto expected = state_of(whole);
    CHECK(history[1].train_loss < history[0].train_loss);
    CHECK(whole.gradients()[0] != 0);
    for (const Index batches : {1, 4, 6, 8, 11}) {   // in the first epoch, between the two, in the second
      CAPTURE(batches);
      const auto csv = folder.path / std::to_string(batches);
      {
        const auto breaking = loader_of(8, interrupted_after(batches));
        Trainee<> part(Net::layers, Rows::value, input_of(8), optimizer, options);
        CHECK_THROWS_WITH(part.fit(breaking, &loader(), {.epochs = 2, .history = csv}), "interrupted");
        CHECK(part.steps_done() == batches);
        part.save(folder / "part");
      }
      Trainee<> rest(Net::layers, Rows::value, input_of(8), optimizer, {.schedule = options.schedule, .seed = 1234});
      rest.load(folder / "part");
      rest.fit(loader(), &loader(), {.epochs = 2, .history = csv});
      CHECK(state_of(rest) == expected);
      const auto continued = read_history(csv);
      REQUIRE(continued.size() == 2);
      for (std::size_t e = 0; e < 2; ++e) {
        EpochRecord record = continued[e];
        record.seconds = history[e].seconds;
        CHECK(record == history[e]);
      }
    }
  }
}
TEST_CASE("a training that goes back to an older file takes its history along") {
  const Folder folder;
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  trainer.fit(loader(), &loader(), {.epochs = 1, .history = folder / "csv", .training_file = folder / "one"});
  trainer.fit(loader(), &loader(), {.epochs = 3, .history = folder / "csv"});
  CHECK(read_history(folder / "csv").size() == 3);
  trainer.load(folder / "one");
  CHECK(trainer.fit(loader(), &loader(), {.epochs = 2, .history = folder / "csv"}).size() == 1);
  const auto history = read_history(folder / "csv");
  REQUIRE(history.size() == 2);
  CHECK(history[0].epoch == 1);
  CHECK(history[1].epoch == 2);
  CHECK(trainer.fit(loader(), &loader(), {.epochs = 2, .history = folder / "csv"}).empty());   // nothing is left to do
  CHECK(read_history(folder / "csv") == history);
}
TEST_CASE("fit refuses numbers and files that make no sense, and says that nothing is left to do") {
  const Folder folder;
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  CHECK_THROWS_WITH_AS(trainer.fit(loader(), nullptr, {.epochs = -3}), doctest::Contains("fit() for -3 epochs, with a training file every 0 steps"),
                       Error);
  CHECK_THROWS_AS(trainer.fit(loader(), nullptr, {.save_every = -1}), Error);
  CHECK_THROWS_WITH_AS(trainer.fit(loader(), nullptr, {.epochs = 1, .history = folder / "one", .training_file = folder / "one"}),
                       doctest::Contains("fit() is to write both its history and its training file to "), Error);
  CHECK(trainer.steps_done() == 0);
  trainer.fit(loader(), nullptr, {.epochs = 1});
  std::ostringstream progress;
  CHECK(trainer.fit(loader(), nullptr, {.epochs = 1, .progress = &progress}).empty());
  CHECK(progress.str().find("1 of 1 epochs are done") != std::string::npos);
}
TEST_CASE("fit does without a test set, a history and a file") {
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  const auto history = trainer.fit(loader(), nullptr, {.epochs = 2});
  REQUIRE(history.size() == 2);
  CHECK(history[1].epoch == 2);
  CHECK(history[1].steps == 12);
  CHECK_FALSE(history[1].test_loss.has_value());
  CHECK(history[1].planned_peak_bytes == trainer.arena_bytes());
  CHECK(history[1].train_loss < history[0].train_loss);
}
TEST_CASE("the history is a file of one line per epoch, and what fit returns") {
  const Folder folder;
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.5}, {.schedule = StepLr{.every = epochs(2), .gamma = 0.5}});
  const auto history = trainer.fit(loader(), &loader(), {.epochs = 3, .history = folder / "history.csv"});
  CHECK(read_history(folder / "history.csv") == history);
  REQUIRE(history.size() == 3);
  const Metrics after = trainer.evaluate(loader());
  for (std::size_t e = 0; e < 3; ++e) {
    CHECK(history[e].epoch == static_cast<Index>(e) + 1);
    CHECK(history[e].steps == 6 * (static_cast<Index>(e) + 1));
    CHECK(history[e].lr == (e < 2 ? 0.5 : 0.25));
    CHECK(history[e].seconds > 0);
    CHECK(std::fmod(history[e].train_accuracy * 45 + 1e-9, 1) < 1e-6);
  }
  CHECK(history[2].test_loss == after.loss());
  CHECK(history[2].test_accuracy == after.accuracy());
  CHECK(error_of<DataError>([&] {
          trainer.fit(loader(), &loader(), {.epochs = 4, .history = folder / "no" / "history.csv"});
        }).find("history.csv' cannot be written: No such file or directory") != std::string::npos);
}
TEST_CASE("the schedule sets the rate of every step") {
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.5},
                    {.schedule = StepLr{.every = epochs(1), .gamma = 0.5, .warm_up = steps(2)}, .clock = {.steps_per_epoch = 3}});
  for (const double lr : {0.25, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125}) {
    const auto before = copy_of(trainer);
    CHECK(trainer.step(loader().batch(0, 0)).lr == lr);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(std::abs(trainer.parameters()[i] - (before[i] - lr * trainer.gradients()[i])) <= 1e-15);
  }
  Trainee<> lost(Net::layers, Rows::value, input_of(8), Sgd{}, {.schedule = CosineLr{}});
  const auto before = state_of(lost);
  CHECK(error_of([&] { lost.step(loader().batch(0, 0)); }) ==
        "lrcnn: cosine schedule without .over; the length of the training must be known; set .over or TrainerOptions::clock, or train with fit");
  CHECK(state_of(lost) == before);
  CHECK(lost.fit(loader(), &loader(), {.epochs = 2}).back().lr == 0.001 * lr_scale(CosineLr{}, 11, {6, 12}));
}
TEST_CASE("within fit() a schedule counts the epochs of fit(), whatever batches came before") {
  const CosineLr cosine{.over = epochs(4)};
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{}, {.schedule = cosine, .clock = {.steps_per_epoch = 100}});
  for (int i = 0; i < 5; ++i) trainer.step(loader().batch(0, i));   // by hand
  CHECK(trainer.fit(loader(), nullptr, {.epochs = 2}).back().lr == 0.001 * lr_scale(cosine, 11, {.steps_per_epoch = 6}));
  const auto fewer = loader_of(15);   // 3 batches where there were 6
  const auto rest = trainer.fit(fewer, nullptr, {.epochs = 4});
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].lr == 0.001 * lr_scale(cosine, 8, {.steps_per_epoch = 3}));
  CHECK(rest[1].lr == 0.001 * lr_scale(cosine, 11, {.steps_per_epoch = 3}));
  CHECK(trainer.steps_done() == 5 + 2 * 6 + 2 * 3);
  CHECK(trainer.step(loader().batch(0, 0)).lr == 0.001 * lr_scale(cosine, 23, {.steps_per_epoch = 100}));   // by hand again
}
TEST_CASE("the rate of each step within fit() is the schedule's") {
  // One parameter follows the rates: the gradient of a loss that is the mean output is 1 for the last bias.
  struct Mean : SoftmaxCrossEntropy {
    void operator()(const View<const double>& logits, std::span<const std::int32_t> labels, const View<double>& dx, double scale,
                    LossResult& result) const {
      SoftmaxCrossEntropy::operator()(logits, labels, dx, scale, result);
      if (dx.data != nullptr)
        for (Index i = 0; i < dx.n; ++i)
          for (Index k = 0; k < dx.c; ++k) dx(i, k, 0, 0) = scale;
    }
  };
  const CosineLr cosine{.warm_up = steps(2)};
  BasicTrainer<Reference<double>, Mean> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.5},
                                                {.schedule = cosine, .rules = {{.pattern = "*", .frozen = true}, {.pattern = "linear1.bias"}}});
  const auto bias = [&] { return elements_of(*find_parameter(trainer.layout(), "linear1.bias"), std::span<const double>(trainer.parameters()))[0]; };
  const auto fewer = loader_of(15);
  const double begin = bias();
  trainer.fit(loader(), nullptr, {.epochs = 1});
  double want = 0;
  for (Index t = 0; t < 6; ++t) want += 0.5 * lr_scale(cosine, t, {6, 6});
  CHECK(begin - bias() == doctest::Approx(want).epsilon(1e-12));
  const double middle = bias();
  trainer.fit(fewer, nullptr, {.epochs = 3});
  want = 0;
  for (Index t = 3; t < 9; ++t) want += 0.5 * lr_scale(cosine, t, {3, 9});
  CHECK(middle - bias() == doctest::Approx(want).epsilon(1e-12));
}
TEST_CASE("a file that cannot be written is an error; an older one stays") {
  const Folder folder;
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  const auto missing = folder / "missing" / "state", path = folder / "state";
  CHECK(error_of<DataError>([&] { trainer.save(missing); }) ==
        "lrcnn: file '" + missing.string() +
            "' cannot be written: No such file or directory; a new file is written beside it and then takes its "
            "name; what was there is kept; create its folder, or choose another path");
  CHECK(error_of<DataError>([&] { trainer.save(folder.path); }).find("cannot be written: Is a directory") != std::string::npos);
  trainer.save(path);
  const auto old = file_bytes(path);
  trainer.step(loader().batch(0, 0));
  const auto now = copy_of(trainer);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);   // a disk that is full after 1 kB
  const rlimit small{1024, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = error_of<DataError>([&] { trainer.save(path); });
  const std::string in_fit = error_of<DataError>([&] { trainer.fit(loader(), &loader(), {.epochs = 1, .training_file = path}); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  CHECK(message == "lrcnn: file '" + path.string() +
                       "' cannot be written: File too large; a new file is written beside it and then takes its "
                       "name; what was there is kept; make room, or choose a path on another disk");
  CHECK(in_fit == message);
  CHECK(file_bytes(path) == old);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  CHECK(trainer.steps_done() == 7);   // nothing of the epoch is lost
  trainer.load(path);
  CHECK(copy_of(trainer) != now);
  CHECK(state_of(trainer) == old);
}
TEST_CASE("a training that goes on after the last batch of an epoch records the rate of its last step") {
  const Folder folder;
  const Optimizer optimizer = Sgd{.lr = 0.1};
  const TrainerOptions options{.schedule = CosineLr{}};
  Trainee<> whole(Net::layers, Rows::value, input_of(8), optimizer, options);
  const auto want = whole.fit(loader(), nullptr, {.epochs = 2});
  Trainee<> first(Net::layers, Rows::value, input_of(8), optimizer, options), second(Net::layers, Rows::value, input_of(8), optimizer, options);
  CHECK(error_of([&] {
          first.fit(loader(), nullptr, {.epochs = 2, .history = folder / "no-folder" / "h.csv", .training_file = folder / "state", .save_every = 6});
        }) != "no error");
  CHECK(first.steps_done() == 0);   // both paths are looked at before the first epoch
  CHECK(std::filesystem::is_empty(folder.path));
  const auto stop = loader_of(8, interrupted_after(0));   // as a test set it ends the training before the epoch's own file
  CHECK(error_of<std::exception>([&] { first.fit(loader(), &stop, {.epochs = 2, .training_file = folder / "state", .save_every = 6}); }) !=
        "no error");
  second.load(folder / "state");
  const auto got = second.fit(loader(), nullptr, {.epochs = 2});
  REQUIRE(!got.empty());
  CHECK(got.back().lr == want[1].lr);
  CHECK(got[0].lr > 0);
  CHECK(copy_of(second) == copy_of(whole));
}
TEST_CASE("an epoch whose history cannot be written is in the training file") {
  const Folder folder;
  const auto history = folder / "history.csv", state = folder / "state";
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1}), other(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  std::ostringstream out;
  struct Blocks : std::streambuf {   // puts a folder in the history's place while the epoch is running
    std::filesystem::path path;
    int overflow(int c) override { return std::filesystem::create_directory(path), c; }
  } blocks;
  blocks.path = history;
  std::ostream progress(&blocks);
  CHECK(error_of<DataError>([&] {
          trainer.fit(loader(), nullptr, {.epochs = 1, .progress = &progress, .history = history, .training_file = state});
        }).find("Is a directory") != std::string::npos);
  other.load(state);
  CHECK(other.state().epoch == 1);
}
TEST_CASE("an epoch whose test fails is in the training file and in the history") {
  const Folder folder;
  const auto history = folder / "history.csv", state = folder / "state";
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1}), other(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  const auto train = loader(), test = loader();
  Dataset lost = make_shapes({.count = 8, .h = side, .w = side});
  lost.class_names.clear(), lost.classes = 100, lost.labels.back() = 99;   // no class of the network's
  const Loader<double> wrong(lost, {.batch = 8, .prefetch = 0});
  CHECK(error_of([&] { trainer.fit(train, &wrong, {.epochs = 2, .history = history, .training_file = state}); }) != "no error");
  other.load(state);
  CHECK(other.state().epoch == 1);
  CHECK(other.read_parameters() == trainer.read_parameters());
  const auto told = read_history(history);
  REQUIRE(told.size() == 1);
  CHECK(!told[0].test_loss);
  const auto more = trainer.fit(train, &test, {.epochs = 2, .history = history, .training_file = state});
  CHECK(more.size() == 1);
  CHECK(read_history(history).size() == 2);
}
TEST_CASE("fit() refuses shapes that cannot be run before its first step") {
  using Normed = Sequential<Conv<4>, MaxPool<>, GlobalAvgPool, BatchNorm, ReLU, Linear<10>>;
  Trainee<> plain(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  const auto before = state_of(plain);
  const Dataset colored = make_shapes({.count = 8, .channels = 3, .h = side, .w = side});
  const Loader<double> wrong(colored, {.batch = 8, .prefetch = 0});
  CHECK(error_of<ShapeError>([&] { plain.fit(loader(), &wrong, {.epochs = 1}); }) != "no error");
  CHECK(state_of(plain) == before);
  CHECK(plain.fit(loader(), &wrong, {.epochs = 0}).empty());   // nothing is run

  const auto one_left = loader_of(11), test = loader_of(44);   // 45 images: the last batch has one
  Trainee<> normed(Normed::layers, Rows::value, one_left.input(), Sgd{.lr = 0.1});
  CHECK(error_of<PlanError>([&] { normed.fit(one_left, &test, {.epochs = 1}); }).find("has one value in each channel") != std::string::npos);
  CHECK(normed.steps_done() == 0);
  const auto full_only = loader_of(11, {.drop_last = true});
  CHECK(full_only.last_input() == full_only.input());
  CHECK(normed.fit(full_only, &test, {.epochs = 1}).size() == 1);   // one image is enough for an evaluation
  CHECK(test.last_input() == input_of(1));
  CHECK(loader_of(100).last_input() == input_of(45));
}
TEST_CASE("a plan that was asked for stays where it is when a larger batch comes") {
  Trainee<> trainer(Net::layers, Rows::value, input_of(4), Sgd{.lr = 0.1});
  const Plan& small = trainer.plan();
  const Index peak = small.peak_bytes();
  const Plan& large = trainer.plan(input_of(32));
  CHECK(large.peak_bytes() > peak);
  for (Index n = 5; n < 16; ++n) trainer.plan(input_of(n));
  CHECK(small.peak_bytes() == peak);
  CHECK(&trainer.plan() == &small);
  CHECK(check_plan(small).empty());
}
TEST_CASE("a file that cannot be used leaves the trainer as it was") {
  const Folder folder;
  const auto path = folder / "state";
  const auto trained = [](auto&& trainer) -> decltype(auto) {
    trainer.step(loader().batch(0, 0));
    return std::forward<decltype(trainer)>(trainer);
  };
  Trainee<> mine(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1, .momentum = 0.9}, {.seed = 1});
  trained(mine);
  const auto before = state_of(mine);
  const auto refusal = [&] {
    const std::string message = error_of<DataError>([&] { mine.load(path); });
    CHECK(state_of(mine) == before);
    const std::string start = "lrcnn: training file '" + path.string() + "' ";
    CHECK(message.find(start) == 0);
    return message.substr(std::min(message.size(), start.size()));
  };
  CHECK(refusal() == "does not exist; it is read as a whole; check the path, or save it first");
  const Optimizer momentum = Sgd{.lr = 0.1, .momentum = 0.9};
  using Wider = Sequential<Conv<7>, ReLU, MaxPool<>, Conv<8, Window{.kernel = {3, 2}, .pad = 1}>, ReLU, GlobalAvgPool, Linear<10>>;
  Trainee<>(Wider::layers, {}, input_of(8), momentum).save(path);
  CHECK(refusal().find("is of another network: parameter 1 is 'conv1.weight' [7,1,3,3] in the file and "
                       "'conv1.weight' [6,1,3,3] in this network") == 0);
  const auto other_middle = [&]<class Other>(std::type_identity<Other>) {
    Trainee<>(Other::layers, {}, input_of(8), momentum).save(path);
    return refusal().find(
               "is of another network: the parameters are the same, but what is between them is not (fingerprint "
               "'") == 0;
  };
  using C1 = Conv<6>;
  using C2 = Conv<8, Window{.kernel = {3, 2}, .pad = 1}>;
  CHECK(other_middle(std::type_identity<Sequential<C1, SiLU, MaxPool<>, C2, ReLU, GlobalAvgPool, Linear<10>>>{}));
  CHECK(other_middle(std::type_identity<Sequential<C1, ReLU, AvgPool<>, C2, ReLU, GlobalAvgPool, Linear<10>>>{}));
  CHECK(other_middle(std::type_identity<Sequential<C1, ReLU, C2, ReLU, GlobalAvgPool, Linear<10>>>{}));
  Trainee<>(Net::layers, {}, input_of(8), AdamW{}).save(path);
  CHECK(refusal().find("was saved with AdamW{.lr = 0.001") == 0);
  Trainee<float>(Net::layers, {}, input_of(8), momentum).save(path);
  CHECK(refusal() == "holds float32 values; this training computes in float64; load it into a Trainer of the file's element type");
  Trainee<> good(Net::layers, Rows::value, input_of(8), momentum, {.seed = 2});
  trained(good);
  const auto bytes = state_of(good);
  const auto write = [&](std::span<const std::byte> b) { write_file_atomically(path, b); };
  for (const std::size_t size : {std::size_t{1}, std::size_t{30}, bytes.size() / 2, bytes.size() - 1}) {
    write(std::span(bytes).first(size));
    CHECK(refusal().find("is cut: it holds " + std::to_string(size) + " of ") == 0);
  }
  for (const std::size_t at : {std::size_t{30}, bytes.size() / 3, bytes.size() / 2, bytes.size() - 5}) {
    auto damaged = bytes;
    damaged[at] ^= std::byte{4};
    write(damaged);
    CHECK(refusal().find("is damaged: its checksum does not match") == 0);
  }
  write(std::as_bytes(std::span("epoch,steps,lr")));
  CHECK(refusal().find("is not a training file") == 0);
  write(bytes);
  mine.load(path);
  CHECK(state_of(mine) == bytes);
  const auto batch = loader().batch(0, 1);
  CHECK(mine.step(batch).loss == good.step(batch).loss);
  CHECK(copy_of(mine) == copy_of(good));
}
TEST_CASE("networks that differ in an activation's slope or in what a pool counts are different networks") {
  const Folder folder;
  const auto mixed = [&]<class A, class B>(std::type_identity<A>, std::type_identity<B>) {
    Trainee<>(A::layers, {}, input_of(8), Sgd{}).save(folder / "state");
    Trainee<> other(B::layers, {}, input_of(8), Sgd{});
    return error_of<DataError>([&] { other.load(folder / "state"); }).find("the parameters are the same, but") != std::string::npos;
  };
  using Soft = Sequential<Conv<4>, LeakyReLU<std::ratio<1, 8>>, GlobalAvgPool, Linear<10>>;
  using Softer = Sequential<Conv<4>, LeakyReLU<std::ratio<1, 4>>, GlobalAvgPool, Linear<10>>;
  using Padded = Sequential<Conv<4>, AvgPool<Window{.pad = 1}, true>, GlobalAvgPool, Linear<10>>;
  using Inside = Sequential<Conv<4>, AvgPool<Window{.pad = 1}, false>, GlobalAvgPool, Linear<10>>;
  CHECK(mixed(std::type_identity<Soft>{}, std::type_identity<Softer>{}));
  CHECK(mixed(std::type_identity<Padded>{}, std::type_identity<Inside>{}));
  CHECK_FALSE(mixed(std::type_identity<Soft>{}, std::type_identity<Soft>{}));
}
TEST_CASE("a loss that is no number names step, layer and rows, and changes nothing") {
  const std::string end =
      "; parameters were not changed by this step; lower the learning rate, normalise the input, or go back to an "
      "earlier training file";
  for (const Optimizer& optimizer : {Optimizer(Sgd{.lr = 0.01, .momentum = 0.9}), Optimizer(AdamW{})}) {
    Trainee<> trainer(Net::layers, Rows::value, input_of(8), optimizer);
    const auto batch = loader().batch(0, 0);
    trainer.step(batch), trainer.step(batch);
    const auto before = state_of(trainer);
    std::vector<double> images(8 * side * side, 0.5);
    images[(2 * side + 9) * side + 3] = std::nan("");   // image 2, row 9
    const MemorySource<double> source(images.data(), input_of(8));
    const std::string message = error_of<NumericError>([&] { trainer.step(source, batch.labels()); });
    CHECK(message.find("lrcnn: in step 3 the loss is not a number; the first values that are not finite come from "
                       "the input, images 0..7, rows ") == 0);
    CHECK(message.find(end) != std::string::npos);
    CHECK(state_of(trainer) == before);
    const Parameter* weight = find_parameter(trainer.layout(), "conv2.weight");
    REQUIRE(weight != nullptr);
    double& broken = trainer.parameters()[static_cast<std::size_t>(weight->offset)];
    const double kept = std::exchange(broken, INFINITY);
    CHECK(error_of<NumericError>([&] { trainer.step(batch); }).find("come from layer 'conv2', images 0..7, rows 0..") != std::string::npos);
    CHECK(error_of<NumericError>([&] { trainer.evaluate(batch, batch.labels()); }).find("lrcnn: the loss is not a number; ") == 0);
    CHECK(error_of<NumericError>([&] {
            trainer.evaluate(loader());
          }).find("lrcnn: in batch 1 of an evaluation after step 2 the loss is not a number; the first values") == 0);
    broken = kept;
    CHECK(state_of(trainer) == before);
    const double bias = std::exchange(trainer.parameters().back(), -INFINITY);   // of the last class
    const std::string infinite = error_of<NumericError>([&] { trainer.step(batch); });
    CHECK(infinite.find("lrcnn: in step 3 the loss is infinite; the first values that are not finite come from layer "
                        "'linear1', images 0..7, rows 0..0" +
                        end) == 0);
    trainer.parameters().back() = bias;
    CHECK(state_of(trainer) == before);
    CHECK(std::isfinite(trainer.step(batch).loss));
  }
}
TEST_CASE("a training that diverges in fit stops before the step that would have no number") {
  for (const PolicySpec& policy : {Policy<Column>::value, Rows::value, Policy<Overlap<3>, Images<3>, RecomputeCheap>::value}) {
    Trainee<> trainer(Net::layers, policy, input_of(8), Sgd{.lr = 1e160});
    std::ostringstream out;
    ProgressOptions terminal;
    terminal.terminal = true;
    const std::string message =
        error_of<NumericError>([&] { trainer.fit(loader(), &loader(), {.epochs = 5, .progress = &out, .progress_options = terminal}); });
    CHECK(message.find("lrcnn: in step " + std::to_string(trainer.steps_done() + 1) + " the loss is ") == 0);
    CHECK(message.find("come from layer '") != std::string::npos);
    CHECK(trainer.steps_done() >= 1);
    CHECK(trainer.steps_done() == trainer.state().batch);
    for (const double w : trainer.parameters()) CHECK(std::isfinite(w));
    CHECK(out.str().substr(out.str().size() - 4) == "\x1b[K\n");   // what follows starts on a line of its own
  }
}
TEST_CASE("fit shows progress on a terminal and elsewhere") {
  double now = 0;
  ProgressOptions options;
  options.clock = [&now] { return now += 1; };
  options.width = [] { return Index{120}; };
  Trainee<> trainer(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.1});
  std::ostringstream terminal, plain;
  options.terminal = true;
  trainer.fit(loader(), &loader(), {.epochs = 2, .progress = &terminal, .progress_options = options});
  std::string text = terminal.str();
  const std::string backend = trainer.backend().describe() + "\n";
  CHECK(backend == Reference<double>(0).describe() + "\n");   // as many threads as there are processors
  CHECK(backend.find(processor_name() + ", plain loops in double, ") == 0);
  CHECK(text.find(backend + "\r[=====                         ] epoch 1/2  1/6  loss ") == 0);
  CHECK(text.find("\r[==============================] epoch 2/2  6/6  loss ") != std::string::npos);
  CHECK(text.find("  8.00 img/s, ETA 0:10  mem " + memory_text(trainer.arena_bytes()) + "\x1b[K") != std::string::npos);
  CHECK(count_of(text, "\r") == 12);
  CHECK(count_of(text, "\n") == 5);   // what runs, and after each epoch and its test
  const Metrics test = trainer.evaluate(loader());
  CHECK(text.ends_with("epoch 2: test loss " + fixed_text(test.loss(), 4) + ", test accuracy " + fixed_text(100 * test.accuracy(), 2) + " %\n"));
  options.terminal = false;
  options.line_seconds = 3.5;
  const auto history = trainer.fit(loader(), &loader(), {.epochs = 3, .progress = &plain, .progress_options = options});
  text = plain.str();
  CHECK(text.find(backend + "epoch 3/3, step 1/6: loss ") == 0);
  CHECK(text.find("\nepoch 3/3, step 5/6: loss ") != std::string::npos);
  CHECK(text.find("\nepoch 3/3, step 6/6: loss " + fixed_text(history[0].train_loss, 4) + ", accuracy " +
                  fixed_text(100 * history[0].train_accuracy, 2) + " %, ") != std::string::npos);
  CHECK(count_of(text, "\n") == 5);
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}
namespace {
using CurveNet = Sequential<Conv<8>, ReLU, MaxPool<>, Conv<12>, LeakyReLU<>, MaxPool<Window{.kernel = 3, .stride = 2, .pad = 1}>, Conv<16>, SiLU,
                            Flatten, Linear<10>>;
/// Losses of `steps` steps on generated shapes that are learnt by heart.
template <class T>
std::vector<double> curve(const PolicySpec& policy, Index steps) {
  static const Dataset data = make_shapes({.count = 48, .h = 20, .w = 20});
  const Loader<T> loader(data, {.batch = 16, .normalization = normalization_of(data)});
  Trainee<T> trainer(CurveNet::layers, policy, loader.input(), AdamW{.lr = 0.003}, {.seed = 3});
  std::vector<double> losses;
  for (Index epoch = 0;; ++epoch)
    for (auto& batch : loader.epoch(epoch)) {
      losses.push_back(trainer.step(batch).loss);
      if (static_cast<Index>(losses.size()) == steps) return losses;
    }
}
const std::vector<PolicySpec> row_policies{Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value,
                                           Policy<Overlap<3>, CheckpointAtPools, RecomputeCheap>::value, Policy<Share<2, 4>, RecomputeAll>::value,
                                           Policy<Overlap<5, 2>, Images<5>>::value,
                                           Policy<ByImages<3, Share<3>>, CheckpointEvery<3>, RecomputeAll>::value};
}   // namespace
TEST_CASE("column, sharing and overlap give the same training curve") {
  const auto column = curve<double>(Policy<Column>::value, 30);
  CHECK(column.front() > 3);
  CHECK(column.back() < 1);
  double worst = 0;
  for (const PolicySpec& policy : row_policies) {
    const auto rows = curve<double>(policy, 30);
    for (std::size_t i = 0; i < column.size(); ++i) {
      INFO(to_string(policy), ", step ", i + 1);
      CHECK(std::abs(rows[i] - column[i]) <= 1e-10);
      worst = std::max(worst, std::abs(rows[i] - column[i]));
    }
  }
  MESSAGE("largest difference of a loss in 30 steps: ", worst);
}
TEST_CASE("in float the first loss is the column's, and the curves stay together") {
  const auto column = curve<float>(Policy<Column>::value, 30);
  double worst = 0;
  for (const PolicySpec& policy : row_policies) {
    const auto rows = curve<float>(policy, 30);
    CHECK(rows.front() == column.front());   // forward of direct slabs is bit-identical
    for (std::size_t i = 0; i < column.size(); ++i) {
      INFO(to_string(policy), ", step ", i + 1);
      CHECK(std::abs(rows[i] - column[i]) <= 1e-4);
      worst = std::max(worst, std::abs(rows[i] - column[i]));
    }
  }
  MESSAGE("largest difference of a loss in 30 steps: ", worst);
}
TEST_CASE("fit saves within an epoch, and goes on from there with the same batches only") {
  using Small = Sequential<Conv<4>, ReLU, MaxPool<>, GlobalAvgPool, Linear<10>>;
  using Rows = Trainer<Small, Policy<Share<3>>, Reference<double>>;
  const Folder folder;
  const std::filesystem::path file = folder / "state";
  const Dataset data = make_shapes({.count = 100, .h = 12, .w = 12});
  const Loader<double> whole(data, {.batch = 10}), other(data, {.batch = 20});
  const Input input{10, 1, 12, 12};
  Rows uninterrupted(input, Sgd{.lr = 0.01, .momentum = 0.9});
  uninterrupted.fit(whole, nullptr, {.epochs = 2});
  auto images = std::make_shared<int>(0);
  const Loader<double> breaks(data, {.batch = 10,
                                     .transform =
                                         [images](auto&&...) {
                                           if (++*images > 85) throw std::runtime_error("power cut");
                                         },
                                     .prefetch = 0});
  Rows first(input, Sgd{.lr = 0.01, .momentum = 0.9});
  CHECK_THROWS_WITH_AS(first.fit(breaks, nullptr, {.epochs = 2, .training_file = file, .save_every = 7}), "power cut", std::runtime_error);
  Rows second(input, Sgd{.lr = 0.01, .momentum = 0.9});
  second.load(file);
  CHECK(second.state().batch == 7);
  CHECK_THROWS_WITH_AS(second.fit(other, nullptr, {.epochs = 2}),
                       "lrcnn: training stands after batch 7 of epoch 1, which has 10 batches of 10x1x12x12 (100 images "
                       "shuffled, seed 0), and is to go on with 5 batches of 20x1x12x12 (100 images shuffled, seed 0); an epoch is finished with "
                       "the batches it was begun with; use the same batch size, data and seed, or a training file from the end of an epoch",
                       DataError);
  for (const LoaderOptions& options : {LoaderOptions{.batch = 10, .seed = 1}, LoaderOptions{.batch = 10, .shuffle = false}})
    CHECK_THROWS_AS(second.fit(Loader<double>(data, options), nullptr, {.epochs = 2}), DataError);   // other images are left of the epoch
  second.fit(whole, nullptr, {.epochs = 2});
  CHECK(std::equal(second.parameters().begin(), second.parameters().end(), uninterrupted.parameters().begin()));
}
TEST_CASE("fit goes on within an epoch with a loader that does not tell its order, and from a file that does not") {
  struct Untold {
    Loader<double> loader;
    Index batches() const { return loader.batches(); }
    Input input() const { return loader.input(); }
    auto epoch(Index number, Index first = 0) const { return loader.epoch(number, first); }
  };
  const Folder folder;
  const auto make = [] { return Trainee<>(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.05}); };
  const Untold untold{loader()};
  Trainee<> whole = make(), resumed = make();
  whole.fit(loader(), nullptr, {.epochs = 1});
  const auto stop_within = [&](const auto& breaks, const char* file) {
    CHECK_THROWS_WITH(make().fit(breaks, nullptr, {.epochs = 1, .training_file = folder / file, .save_every = 2}), "interrupted");
  };
  stop_within(loader_of(8, interrupted_after(4)), "told"), stop_within(Untold{loader_of(8, interrupted_after(4))}, "untold");
  const auto goes_on = [&](const auto& rest, const char* file) {
    resumed.load(folder / file);
    CHECK(resumed.state().batch > 0);
    resumed.fit(rest, nullptr, {.epochs = 1});
    return resumed.read_parameters() == whole.read_parameters();
  };
  CHECK(goes_on(loader(), "told"));
  CHECK(goes_on(untold, "told"));
  CHECK(goes_on(loader(), "untold"));
  CHECK(goes_on(untold, "untold"));
  // The file goes on telling the order when a loader that tells none has gone on for a while.
  resumed.load(folder / "told");
  const std::string order = resumed.state().notes.at("batches");
  const Index batch = resumed.state().batch;
  CHECK_THROWS_WITH(
      resumed.fit(Untold{loader_of(8, interrupted_after(1))}, nullptr, {.epochs = 1, .training_file = folder / "told", .save_every = 1}),
      "interrupted");
  Trainee<> third = make();
  third.load(folder / "told");
  CHECK(third.state().batch > batch);
  CHECK(third.state().notes.at("batches") == order);
}
TEST_CASE("a training that has just begun takes the place of no other training, nor of another file") {
  const Folder folder;
  const auto file = folder / "state";
  const auto make = [] { return Trainee<>(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.05}); };
  Trainee<> before = make(), anew = make();
  const auto begin = [&](Trainee<>& trainer, Index epochs) { trainer.fit(loader(), nullptr, {.epochs = epochs, .training_file = file}); };
  before.save(file);   // without steps: nothing would be lost
  begin(before, 1);
  const auto kept = file_bytes(file);
  const std::string refused = error_of<DataError>([&] { begin(anew, 1); });
  CHECK(refused.starts_with("lrcnn: training file '" + file.string() + "' holds a training of "));
  CHECK(refused.find("; load() the file before fit() to go on with it, name another file, or take this one away") != std::string::npos);
  CHECK(anew.state().step == 0);
  CHECK(file_bytes(file) == kept);
  begin(anew, 0);   // there is nothing to do
  CHECK(file_bytes(file) == kept);
  anew.load(file);
  begin(anew, 2);
  begin(before, 2);   // it has steps of its own
  CHECK(file_bytes(file) == state_of(before));
  std::ofstream(file) << "a letter";
  Trainee<> third = make();
  CHECK(error_of<DataError>([&] {
          begin(third, 1);
        }).starts_with("lrcnn: '" + file.string() + "' is to become the file of a training, and is there as"));
  CHECK(file_bytes(file).size() == 8);
  std::ofstream{file};   // empty, as a program makes it that reserves the name
  begin(third, 1);
  CHECK(file_bytes(file) == state_of(third));
}
TEST_CASE("a program ends a training behind an epoch, and what it saves there is that epoch's") {
  const Folder folder;
  const auto make = [] { return Trainee<>(Net::layers, Rows::value, input_of(8), Sgd{.lr = 0.05}, {.schedule = CosineLr{}}); };
  Trainee<> ended = make(), whole = make(), once = make();
  std::vector<EpochRecord> seen;
  const FitOptions options{.epochs = 5, .history = folder / "csv", .training_file = folder / "last", .after_epoch = [&](const EpochRecord& record) {
                             CHECK(read_history(folder / "csv").back() == record);   // its files are written
                             if (record.epoch == 1) ended.save(folder / "best");
                             seen.push_back(record);
                             return record.epoch < 2;
                           }};
  CHECK(ended.fit(loader(), &loader(), options) == seen);
  CHECK(seen.size() == 2);
  CHECK(ended.state().epoch == 2);
  CHECK(file_bytes(folder / "last") == state_of(ended));
  // The rate is that of five epochs, and another fit() goes on from there.
  whole.fit(loader(), &loader(), {.epochs = 5});
  ended.fit(loader(), &loader(), {.epochs = 5});
  CHECK(state_of(ended) == state_of(whole));
  once.fit(loader(), &loader(), {.epochs = 5, .after_epoch = [](const EpochRecord&) { return false; }});
  CHECK(file_bytes(folder / "best") == state_of(once));
}
TEST_CASE("what after_epoch throws leaves fit() behind a whole epoch, and training within it is refused") {
  const Folder folder;
  Trainee<> trainer(Net::layers, {}, input_of(8), Sgd{.lr = 0.05});
  const auto fit = [&](auto f) { trainer.fit(loader(), nullptr, {.epochs = 3, .training_file = folder / "last", .after_epoch = f}); };
  CHECK_THROWS_WITH(fit([](const EpochRecord&) -> bool { throw std::runtime_error("enough"); }), "enough");
  CHECK(trainer.state().epoch == 1);
  CHECK(trainer.state().batch == 0);
  CHECK(error_of([&] {
          fit([&](const EpochRecord& record) {
            return record.epoch == 2 && (trainer.load(folder / "last"), trainer.step(loader().batch(0, 0)), true);
          });
        }).starts_with("lrcnn: FitOptions::after_epoch has trained, or loaded a file; "));
}
TEST_CASE("a file that is no history does not become one") {
  const Folder folder;
  Trainee<> trainer(Net::layers, {}, input_of(8), Sgd{.lr = 0.05});
  const std::vector<std::byte> before(12, std::byte{'x'});
  write_file_atomically(folder / "notes.txt", before);
  CHECK(error_of<DataError>([&] {
          trainer.fit(loader(), nullptr, {.epochs = 1, .history = folder / "notes.txt"});
        }).find("notes.txt' is to become the history of a training, and is there as something else; ") != std::string::npos);
  CHECK(file_bytes(folder / "notes.txt") == before);
  CHECK(trainer.steps_done() == 0);
  write_file_atomically(folder / "empty.csv", {});
  CHECK(trainer.fit(loader(), nullptr, {.epochs = 1, .history = folder / "empty.csv"}).size() == 1);
}
TEST_CASE("a training that begins anew does not replace the history of another one") {
  const Folder folder;
  const auto csv = folder / "history.csv";
  const auto begun = [] { return Trainee<>(Net::layers, {}, input_of(8), Sgd{.lr = 0.05}); };
  Trainee<> first = begun();
  first.fit(loader(), nullptr, {.epochs = 2, .history = csv, .training_file = folder / "first"});
  const auto before = file_bytes(csv);
  Trainee<> second = begun();
  CHECK(error_of<DataError>([&] { second.fit(loader(), nullptr, {.epochs = 1, .history = csv}); }) ==
        "lrcnn: history '" + csv.string() +
            "' has 2 epochs of a training, and fit() begins one anew; what was recorded before is not lost unawares; load() that "
            "training's file before fit() to go on with it, name another file, or take this one away");
  CHECK(second.steps_done() == 0);
  CHECK(file_bytes(csv) == before);
  CHECK(second.fit(loader(), nullptr, {.epochs = 0, .history = csv}).empty());   // it would write nothing
  second.load(folder / "first");
  CHECK(second.fit(loader(), nullptr, {.epochs = 3, .history = csv}).size() == 1);
  CHECK(read_history(csv).size() == 3);
  write_history(folder / "no-epochs.csv", {});
  Trainee<> third = begun();
  CHECK(third.fit(loader(), nullptr, {.epochs = 1, .history = folder / "no-epochs.csv"}).size() == 1);
  const std::string torn = history_header() + "\n1,2\n";
  write_file_atomically(folder / "torn.csv", std::as_bytes(std::span(torn)));
  Trainee<> fourth = begun();
  CHECK(error_of<DataError>([&] { fourth.fit(loader(), nullptr, {.epochs = 1, .history = folder / "torn.csv"}); }) != "no error");
  CHECK(fourth.steps_done() == 0);
}
