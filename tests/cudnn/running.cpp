// How the CUDA backend lets a device run ahead: steps recorded once and started again, losses asked for later, labels
// that are on the device already. On the pretended device.
#include "cudnn/host_library.hpp"
#include "support/run_network.hpp"
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = LeNet<10>;
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>>;
const Input input{4, 1, 28, 28};
struct Noise {
  std::vector<float> pixels;
  std::vector<std::int32_t> classes;
  explicit Noise(std::uint64_t seed) : pixels(static_cast<std::size_t>(input.count())), classes(static_cast<std::size_t>(input.n)) {
    const Random random(seed);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(random.normal(i));
    for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int32_t>((i + seed) % 10);
  }
  MemorySource<float> source() const { return {pixels.data(), input}; }
};
using Library = HostLibrary<>;
BasicTrainer<Cudnn> trainer_on(const std::shared_ptr<Library>& library, const PolicySpec& policy = Rows::value) {
  return {Net::layers, policy, input, AdamW{.lr = 0.003}, {.seed = 3}, {}, Cudnn(library)};
}
/// Calls of a step whose parts are started one by one, because somebody watches them; without its update.
Index calls_one_by_one() {
  struct Watching : NoObserver {};
  const auto library = std::make_shared<Library>();
  Cudnn backend(library);
  const Plan plan = make_plan(make_table(Net::layers, input), Rows::value, Cudnn::target);
  const Index count = parameter_count(plan.table);
  auto parameters = backend.buffer<float>(count), gradients = backend.buffer<float>(count);
  Executor<Cudnn> executor(plan, backend, parameters.data(), gradients.data());
  const Noise batch(0);
  const Index before = library->calls;
  executor.run(batch.source(), batch.classes, SoftmaxCrossEntropy{}, Watching{});
  return library->calls - before;
}
}   // namespace
TEST_CASE("steps that repeat are recorded the second time and started again after that, with the same bits") {
  const auto library = std::make_shared<Library>(), plain_library = std::make_shared<Library>();
  auto trainer = trainer_on(library), plain = trainer_on(plain_library);
  std::vector<Index> calls, recordings;
  for (std::uint64_t i = 0; i < 5; ++i) {
    const Noise batch(i);
    const Index before = library->calls;
    const StepReport report = trainer.step(batch.source(), batch.classes);
    calls.push_back(library->calls - before);
    recordings.push_back(library->recordings);
    auto fresh = trainer_on(plain_library);   // a trainer's first step is never recorded
    fresh.write_parameters(plain.read_parameters());
    CHECK(report.loss == plain.step(batch.source(), batch.classes).loss);
    CHECK(trainer.read_parameters() == plain.read_parameters());
  }
  CHECK(recordings[0] == 0);
  CHECK(recordings[1] > 3);   // pieces between the loads of 4 slabs, forward and backward
  CHECK(recordings[4] == recordings[1]);
  CHECK(calls[2] * 4 < calls_one_by_one());   // that is what it is for
  CHECK(calls[4] == calls[2]);
  CHECK(trainer.backend().recording_problem().empty());
}
TEST_CASE("a recorded step and one that is started step by step have the same bits") {
  const auto library = std::make_shared<Library>();
  auto trainer = trainer_on(library);
  const Noise batch(1);
  std::vector<std::vector<float>> gradients;
  std::vector<LossResult> losses;
  for (int i = 0; i < 4; ++i) {
    losses.push_back(trainer.gradients_of(batch.source(), batch.classes));
    gradients.push_back(trainer.read_gradients());
  }
  CHECK(library->recordings > 0);
  for (int i = 1; i < 4; ++i) CHECK((gradients[static_cast<std::size_t>(i)] == gradients[0] && losses[static_cast<std::size_t>(i)] == losses[0]));
}
TEST_CASE("a batch of another size has recordings of its own, and recordings go with their plan") {
  const auto library = std::make_shared<Library>();
  auto trainer = trainer_on(library);
  const Noise batch(1);
  const Input smaller{2, 1, 28, 28}, larger{8, 1, 28, 28};
  std::vector<float> pixels(batch.pixels);
  pixels.insert(pixels.end(), batch.pixels.begin(), batch.pixels.end());
  std::vector<std::int32_t> classes(batch.classes);
  classes.insert(classes.end(), batch.classes.begin(), batch.classes.end());
  LossResult first[3];
  for (int i = 0; i < 3; ++i)   // the largest moves the arena: all plans are made again
    for (const Input& shape : {input, smaller, larger}) {
      const LossResult loss =
          trainer.gradients_of(MemorySource<float>(pixels.data(), shape), std::span(classes).first(static_cast<std::size_t>(shape.n)));
      LossResult& want = first[shape.n == 4 ? 0 : shape.n == 2 ? 1 : 2];
      if (i == 0) want = loss;
      CHECK(loss == want);
    }
}
TEST_CASE("steps are started without waiting, and told together") {
  const auto library = std::make_shared<Library>(), other = std::make_shared<Library>();
  auto ahead = trainer_on(library), waiting = trainer_on(other);
  double sum = 0;
  Index hits = 0;
  const Noise first(0);
  ahead.start_step(first.source(), first.classes), waiting.step(first.source(), first.classes);   // plans are made
  CHECK(ahead.wait().count == 4);
  const Index waits = library->waits;
  for (std::uint64_t i = 1; i < 6; ++i) {
    const Noise batch(i);
    ahead.start_step(batch.source(), batch.classes);
    const StepReport report = waiting.step(batch.source(), batch.classes);
    sum += 4 * report.loss;
    hits += std::lround(4 * report.accuracy);
  }
  CHECK(library->waits == waits);
  const LossResult result = ahead.wait();
  CHECK(result.count == 20);
  CHECK(result.correct == hits);
  CHECK(result.sum == doctest::Approx(sum).epsilon(1e-12));
  CHECK(ahead.read_parameters() == waiting.read_parameters());
  CHECK(ahead.steps_done() == 6);
  CHECK(ahead.wait() == LossResult{});
  ahead.start_step(first.source(), first.classes);
  CHECK(ahead.step(first.source(), first.classes).images == 4);   // only its own
  CHECK(ahead.wait().count == 4);
}
TEST_CASE("from a step on whose loss is not finite nothing is updated, although nobody waited, and these steps do not count") {
  auto ahead = trainer_on(std::make_shared<Library>()), good = trainer_on(std::make_shared<Library>());
  for (std::uint64_t i = 0; i < 5; ++i) {
    Noise batch(i);
    if (i < 2) good.step(batch.source(), batch.classes);
    if (i == 2) batch.pixels[1000] = INFINITY;
    ahead.start_step(batch.source(), batch.classes);
  }
  CHECK(error_of([&] { ahead.wait(); }) ==
        "lrcnn: in step 3 the loss is not finite; nobody waited for this step, so its batch is gone; it and the 2 after it have not "
        "changed the parameters; use step() to learn which layer it comes from, lower the learning rate, or normalise the input");
  CHECK(ahead.read_parameters() == good.read_parameters());
  CHECK(ahead.steps_done() == 2);
  CHECK(ahead.state().updates == 2);
  const Noise batch(7);
  CHECK(ahead.step(batch.source(), batch.classes).loss == good.step(batch.source(), batch.classes).loss);
  CHECK(ahead.read_parameters() == good.read_parameters());
}
TEST_CASE("fit() lets the device run ahead, and ends where waiting for each step does") {
  const Dataset data = make_shapes({.count = 90});
  const Loader<float> loader(data, {.batch = 4, .seed = 5});
  const auto library = std::make_shared<Library>(), other = std::make_shared<Library>();
  const auto make = [&](const std::shared_ptr<Library>& l) {
    return BasicTrainer<Cudnn>(Net::layers, Rows::value, loader.input(), Sgd{.lr = 0.01}, {.seed = 3}, {}, Cudnn(l));
  };
  auto fitted = make(library), stepped = make(other);
  const auto history = fitted.fit(loader, nullptr, {.epochs = 1});
  Metrics metrics;
  for (auto& batch : loader.epoch(0)) {
    const StepReport report = stepped.step(batch);
    metrics.add(report.loss, report.images, std::lround(report.accuracy * static_cast<double>(report.images)));
  }
  CHECK(fitted.read_parameters() == stepped.read_parameters());
  CHECK(history[0].train_loss == doctest::Approx(metrics.loss()).epsilon(1e-12));
  CHECK(history[0].train_accuracy == metrics.accuracy());
  CHECK(library->waits * 3 < other->waits);
}
TEST_CASE("an error in the middle of fit() leaves the trainer where its parameters are") {
  const Dataset data = make_shapes({.count = 40});
  const Loader<float> loader(data, {.batch = 4, .seed = 5});
  const auto library = std::make_shared<Library>();
  BasicTrainer<Cudnn> trainer(Net::layers, Rows::value, loader.input(), Sgd{.lr = 1e30}, {.seed = 3}, {}, Cudnn(library));
  CHECK(error_of([&] { trainer.fit(loader, nullptr, {.epochs = 1}); }).starts_with("lrcnn: in step "));
  CHECK(trainer.steps_done() == trainer.state().batch);
  CHECK(trainer.state().updates == trainer.state().batch);
  CHECK(trainer.state().batch > 0);
  CHECK(trainer.state().batch < 5);
}
TEST_CASE("labels may be on the device, and are looked at there") {
  const auto library = std::make_shared<Library>();
  auto trainer = trainer_on(library);
  const Noise batch(1);
  const LossResult want = trainer.gradients_of(batch.source(), batch.classes);
  auto there = trainer.backend().buffer<std::int32_t>(4);
  trainer.backend().write(there.data(), std::span<const std::int32_t>(batch.classes));
  const Labels labels = Labels::on_device(there.data(), 4);
  for (int i = 0; i < 3; ++i) CHECK(trainer.gradients_of(batch.source(), labels) == want);
  const std::vector<std::int32_t> strange{0, 10, -1, 3};
  trainer.backend().write(there.data(), std::span<const std::int32_t>(strange));
  const auto before = trainer.read_parameters();
  CHECK(error_of([&] { trainer.step(batch.source(), labels); }) ==
        "lrcnn: 2 labels on the device are outside the network's classes; labels are 0 .. classes - 1; parameters were not changed by these "
        "steps; correct the labels, or widen the last layer");
  CHECK(trainer.read_parameters() == before);
  CHECK(trainer.gradients_of(batch.source(), batch.classes) == want);
  CHECK(error_of([&] {
          trainer.gradients_of(batch.source(), Labels::on_device(there.data(), 3));
        }).starts_with("lrcnn: 3 labels are given for 4 images"));
  BasicTrainer<Reference<float>> host(Net::layers, PolicySpec{}, input, Sgd{});
  CHECK(error_of([&] { host.step(batch.source(), labels); }) ==
        "lrcnn: labels in the memory of a device are given to a backend on the host; only the backend of that device reads them; give "
        "labels that the host can read, or use Cudnn");
}
TEST_CASE("accumulated batches, clipping and frozen parameters on the device are those of the host") {
  const Noise one(1), two(2);
  const TrainerOptions options{
      .seed = 3, .clip = {.norm = 0.5}, .rules = {{.pattern = "conv1.*", .frozen = true}, {.pattern = "*.bias", .lr_scale = 2}}};
  BasicTrainer<Cudnn> device(Net::layers, Rows::value, input, AdamW{.lr = 0.003}, options, {}, Cudnn(std::make_shared<Library>()));
  BasicTrainer<Reference<float>> host(Net::layers, PolicySpec{}, input, AdamW{.lr = 0.003}, options);
  const auto before = device.read_parameters();
  for (int i = 0; i < 4; ++i) {
    for (const Noise* batch : {&one, &two}) device.accumulate(batch->source(), batch->classes), host.accumulate(batch->source(), batch->classes);
    const StepReport a = device.update(), b = host.update();
    CHECK(a.images == 8);
    CHECK(std::abs(a.loss - b.loss) <= 1e-4 * b.loss);
    CHECK(a.gradient_norm == doctest::Approx(b.gradient_norm).epsilon(1e-3));
    CHECK(a.gradient_norm > 0.5);
  }
  const auto after = device.read_parameters();
  const Parameter& frozen = *find_parameter(device.layout(), "conv1.weight");
  Noise broken(3);
  broken.pixels[50] = INFINITY;
  const auto sound = device.read_parameters();
  const Index steps = device.steps_done();
  device.accumulate(one.source(), one.classes), device.accumulate(broken.source(), broken.classes);
  CHECK(error_of([&] { device.update(); }).starts_with("lrcnn: in step 5 the loss is not finite"));
  device.accumulate(broken.source(), broken.classes);
  CHECK(error_of([&] { device.evaluate(one.source(), one.classes); }).starts_with("lrcnn: in step 5 the loss is not finite"));
  CHECK(error_of([&] { device.update(); }).starts_with("lrcnn: an update without gradients"));
  CHECK(device.read_parameters() == sound);
  CHECK((device.steps_done() == steps && device.state().updates == steps));
  CHECK(std::equal(before.begin() + frozen.offset, before.begin() + frozen.elements().end, after.begin() + frozen.offset));
  CHECK(after != before);
}
TEST_CASE("a budget has room for two batches and their labels that wait for their steps on the device, and for the labels of the step") {
  const auto room = [](Index ahead, const Table& table, BatchLabels labels) {
    const auto library = std::make_shared<Library>();
    library->ahead = ahead;
    const Cudnn backend(library);
    return PlanMaker<Cudnn>({}, {.budget = Budget{100_MiB}}, 1000, backend, labels).room_for(table);
  };
  const Table classes = table_of<Net>(input), maps = table_of<Sequential<Conv<5>>>({2, 1, 100, 64});
  const Index all = 100_MiB - 1000;
  CHECK(room(0, classes, BatchLabels::none) == all);
  CHECK(room(64_MiB, classes, BatchLabels::none) == all - 2 * 16384);   // four images of 3136 bytes
  CHECK(room(64_MiB, classes, labels_of<SoftmaxCrossEntropy, float>()) == all - 2 * 16384 - 2 * 4096 - 4096);
  CHECK(room(8000, classes, labels_of<SoftmaxCrossEntropy, float>()) == all - 8000 - 2000 - 4096);
  // Of 2 images 100x64, a mask takes 51200 bytes, and 53248 in whole pages; targets of five channels 256000, and 258048.
  for (const BatchLabels labels : {labels_of<PixelCrossEntropy, float>(), labels_of<DiceLoss, float>()}) CHECK(room(0, maps, labels) == all - 53248);
  for (const BatchLabels labels : {labels_of<PixelBinaryCrossEntropy, float>(), labels_of<MeanSquaredError, float>()})
    CHECK(room(0, maps, labels) == all - 258048);
}
TEST_CASE("a trainer's budget is for the labels of its loss, too") {
  const auto least = [](auto loss) {   // bytes that the error asks for
    const auto library = std::make_shared<Library>();
    const std::string text = error_of<PlanError>([&] {
      const BasicTrainer<Cudnn, decltype(loss)> trainer(Sequential<Conv<5>>::layers, PolicySpec{}, {2, 1, 100, 64}, Sgd{.lr = 0.1},
                                                        {.budget = Budget{1000}}, loss, Cudnn(library));
    });
    const std::string words = "give a budget of ";
    const auto at = text.find(words);
    return at == std::string::npos ? Index{-1} : static_cast<Index>(std::stoll(text.substr(at + words.size())));
  };
  CHECK(least(PixelBinaryCrossEntropy{}) - least(PixelCrossEntropy{}) == 258048 - 53248);
}
