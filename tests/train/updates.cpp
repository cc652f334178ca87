// What lies between gradients and the update: accumulation over batches, clipping, frozen parameters and rules of their own.
// Exact under any policy.
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using lrcnn::testing::error_of;
namespace {
using Net = Sequential<Conv<6>, ReLU, MaxPool<>, Conv<8>, ReLU, GlobalAvgPool, Linear<5>>;
using Trainee = BasicTrainer<Reference<double>>;
const std::vector<PolicySpec> policies{Policy<>::value, Policy<Overlap<3>, CheckpointAtPools, RecomputeAll>::value,
                                       Policy<Share<4>, Images<2>>::value, Policy<Overlap<2>, Streams<2>, Prefetch, RecomputeAll>::value};
struct Photos {
  Input input;
  std::vector<double> pixels;
  std::vector<std::int32_t> labels;
  explicit Photos(Index n, std::uint64_t seed = 7) : input{n, 2, 12, 10}, pixels(static_cast<std::size_t>(input.count())) {
    const Random random(seed);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = random.normal(i);
    for (Index i = 0; i < n; ++i) labels.push_back(static_cast<std::int32_t>((i * 3 + 1) % 5));
  }
  /// Some of the images, as a batch.
  MemorySource<double> part(Range r) const {
    Input shape = input;
    shape.n = r.size();
    return {pixels.data() + r.begin * input.c * input.h * input.w, shape};
  }
  std::span<const std::int32_t> labels_of(Range r) const {
    return std::span(labels).subspan(static_cast<std::size_t>(r.begin), static_cast<std::size_t>(r.size()));
  }
};
Trainee trainee(const PolicySpec& policy, const Optimizer& optimizer, TrainerOptions options = {}) {
  options.seed = 3;
  return {Net::layers, policy, {4, 2, 12, 10}, optimizer, options};
}
template <class B>
std::vector<double> parameters_of(const BasicTrainer<B>& trainer) {
  const auto p = trainer.read_parameters();
  return {p.begin(), p.end()};
}
double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return a.size() == b.size() ? most : 1e300;
}
/// An epoch that fails before its first batch.
struct NoBatch {
  Index batches() const { return 1; }
  Input input() const { return {4, 2, 12, 10}; }
  std::vector<Batch<double>> epoch(Index, Index = 0) const { throw DataError("no batch"); }
};
double norm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}
}   // namespace
TEST_CASE("batches that are accumulated, of unequal sizes too, give the update of one batch of all their images") {
  const Photos images(9);
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    auto whole = trainee(policy, AdamW{.lr = 0.01}), parts = trainee(policy, AdamW{.lr = 0.01});
    for (int round = 0; round < 3; ++round) {
      const StepReport want = whole.step(images.part({0, 9}), images.labels);
      for (const Range r : {Range{0, 4}, Range{4, 5}, Range{5, 9}}) parts.accumulate(images.part(r), images.labels_of(r));
      const StepReport got = parts.update();
      CHECK(got.images == 9);
      CHECK(got.accuracy == want.accuracy);
      CHECK(std::abs(got.loss - want.loss) <= 1e-13);
      CHECK(worst(parts.read_gradients(), whole.read_gradients()) <= 1e-14);
      CHECK(worst(parameters_of(parts), parameters_of(whole)) <= 1e-12);
      CHECK(got.peak_bytes < want.peak_bytes);   // that is what it is for
    }
    CHECK(parts.steps_done() == 3);
  }
}
TEST_CASE("one batch accumulated is a step, to the bit") {
  const Photos images(4);
  auto stepped = trainee(policies[1], Sgd{.lr = 0.1, .momentum = 0.9}), accumulated = trainee(policies[1], Sgd{.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 3; ++i) {
    const StepReport want = stepped.step(images.part({0, 4}), images.labels);
    accumulated.accumulate(images.part({0, 4}), images.labels);
    CHECK(accumulated.update().loss == want.loss);
    CHECK(parameters_of(accumulated) == parameters_of(stepped));
  }
}
TEST_CASE("gradients are clipped at their norm, which is that over all parameters, under any policy") {
  const Photos images(4);
  for (const PolicySpec& policy : policies) {
    auto plain = trainee(policy, Sgd{.lr = 1});
    const auto before = parameters_of(plain);
    CHECK(plain.step(images.part({0, 4}), images.labels).gradient_norm == 0);   // not asked for
    const double length = norm(plain.read_gradients());
    auto clipped = trainee(policy, Sgd{.lr = 1}, {.clip = {.norm = length / 4}});
    auto loose = trainee(policy, Sgd{.lr = 1}, {.clip = {.norm = length * 1.01}});
    const StepReport report = clipped.step(images.part({0, 4}), images.labels);
    CHECK(report.gradient_norm == doctest::Approx(length).epsilon(1e-13));
    std::vector<double> want = before;
    const double scale = length / 4 / (length + 1e-6);   // as torch.nn.utils.clip_grad_norm_
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += (parameters_of(plain)[i] - before[i]) * scale;
    CHECK(worst(parameters_of(clipped), want) <= 1e-14);
    loose.step(images.part({0, 4}), images.labels);
    CHECK(parameters_of(loose) == parameters_of(plain));
    CHECK(worst(clipped.read_gradients(), plain.read_gradients()) == 0);   // gradients themselves stay as they are
  }
}
TEST_CASE("gradients are clipped element by element") {
  const Photos images(4);
  auto plain = trainee(policies[1], Sgd{.lr = 1});
  const auto before = parameters_of(plain);
  plain.step(images.part({0, 4}), images.labels);
  const auto gradients = plain.read_gradients();
  const double limit = norm(gradients) / std::sqrt(static_cast<double>(gradients.size()));
  auto clipped = trainee(policies[1], Sgd{.lr = 1}, {.clip = {.value = limit}});
  clipped.step(images.part({0, 4}), images.labels);
  std::vector<double> want = before;
  Index cut = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    want[i] -= std::clamp(gradients[i], -limit, limit);
    cut += std::abs(gradients[i]) > limit;
  }
  CHECK(worst(parameters_of(clipped), want) <= 1e-15);
  CHECK(cut > 10);
  CHECK(cut < static_cast<Index>(want.size()));
}
TEST_CASE("frozen parameters stay, count in no norm, and the others are updated as if nothing were frozen") {
  const Photos images(4);
  for (const PolicySpec& policy : policies) {
    auto plain = trainee(policy, AdamW{.lr = 0.01});
    auto frozen = trainee(policy, AdamW{.lr = 0.01}, {.rules = {{.pattern = "conv*", .frozen = true}, {.pattern = "conv2.bias"}}});
    const auto before = parameters_of(frozen);
    plain.step(images.part({0, 4}), images.labels), frozen.step(images.part({0, 4}), images.labels);
    for (const Parameter& p : frozen.layout())
      for (Index i = p.elements().begin; i < p.elements().end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool stays = p.name.starts_with("conv") && p.name != "conv2.bias";   // the later rule holds
        CHECK(parameters_of(frozen)[at] == (stays ? before[at] : parameters_of(plain)[at]));
      }
  }
  auto one = trainee(policies[0], Sgd{.lr = 1}, {.clip = {.norm = 1e-3}, .rules = {{.pattern = "*", .frozen = true}, {.pattern = "linear1.bias"}}});
  const StepReport report = one.step(images.part({0, 4}), images.labels);
  const Parameter& bias = *find_parameter(one.layout(), "linear1.bias");
  const auto gradients = one.read_gradients();
  CHECK(report.gradient_norm == doctest::Approx(norm({gradients.begin() + bias.offset, gradients.begin() + bias.elements().end})).epsilon(1e-13));
}
TEST_CASE("AdamW counts the updates of each parameter, also where it was frozen until a training file was read") {
  const Photos images(4);
  const AdamW adam{.lr = 0.01, .weight_decay = 0};
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_missed_updates_test.train";
  const auto steps_of = [&](Trainee& trainer, int count) {
    for (int i = 0; i < count; ++i) trainer.step(images.part({0, 4}), images.labels);
  };
  const std::vector<ParameterRule> frozen{{.pattern = "conv1.*", .frozen = true}};
  auto first = trainee(policies[0], adam, {.rules = frozen});
  steps_of(first, 30);
  first.save(file);
  auto second = trainee(policies[0], adam, {.rules = frozen});   // is frozen for longer, over two files
  second.load(file);
  steps_of(second, 20);
  second.save(file);
  auto freed = trainee(policies[0], adam);
  freed.load(file);
  // A freed parameter moves as one whose training begins: its first update has the learning rate's length, whatever the gradient.
  const Parameter& p = *find_parameter(freed.layout(), "conv1.weight");
  std::vector<double> m(static_cast<std::size_t>(p.shape.count())), v = m;
  for (int t = 1; t <= 3; ++t) {
    const auto before = parameters_of(freed);
    freed.step(images.part({0, 4}), images.labels);
    const auto gradients = freed.read_gradients();
    double most = 0;
    for (std::size_t i = 0; i < m.size(); ++i) {   // torch.optim.AdamW
      const std::size_t at = static_cast<std::size_t>(p.offset) + i;
      m[i] = 0.9 * m[i] + 0.1 * gradients[at], v[i] = 0.999 * v[i] + 0.001 * gradients[at] * gradients[at];
      const double want = before[at] - 0.01 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
      most = std::max(most, std::abs(parameters_of(freed)[at] - want));
    }
    CHECK(most <= 1e-12);
  }
  freed.save(file);   // what was missed stays known
  auto last = trainee(policies[0], adam);
  last.load(file);
  steps_of(freed, 2), steps_of(last, 2);
  CHECK(parameters_of(last) == parameters_of(freed));
  CHECK(last.state().updates == 55);
  std::filesystem::remove(file);
}
TEST_CASE("a rule multiplies learning rate and weight decay of its parameters") {
  const Photos images(4);
  for (const Optimizer& optimizer :
       {Optimizer(Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}), Optimizer(AdamW{.lr = 0.01, .weight_decay = 0.1})}) {
    const auto scaled = [&](double lr, double decay) {
      std::vector<OptimizerSetting> settings = optimizer.settings();
      for (auto& [name, value] : settings) {
        if (name == "lr") value = std::get<double>(value) * lr;
        if (name == "weight_decay") value = std::get<double>(value) * decay;
      }
      return optimizer.with(settings);
    };
    auto ruled = trainee(policies[1], optimizer, {.rules = {{.pattern = "*.weight", .lr_scale = 0.5}, {.pattern = "*.bias", .decay_scale = 0}}});
    auto weights = trainee(policies[1], scaled(0.5, 1)), biases = trainee(policies[1], scaled(1, 0));
    ruled.step(images.part({0, 4}), images.labels), weights.step(images.part({0, 4}), images.labels), biases.step(images.part({0, 4}), images.labels);
    for (const Parameter& p : ruled.layout()) {
      const auto want = p.name.ends_with("weight") ? parameters_of(weights) : parameters_of(biases);
      for (Index i = p.elements().begin; i < p.elements().end; ++i)
        CHECK(std::abs(parameters_of(ruled)[static_cast<std::size_t>(i)] - want[static_cast<std::size_t>(i)]) <= 1e-15);
    }
  }
}
TEST_CASE("what cannot be is refused") {
  const Photos images(4);
  CHECK(error_of([] { trainee(policies[0], Sgd{}, {.rules = {{.pattern = "dense*"}}}); }) ==
        "lrcnn: the rule for parameters 'dense*' fits none; names are like 'conv1.weight'; correct the pattern; '*' stands for any text");
  CHECK(error_of([] { trainee(policies[0], Sgd{}, {.rules = {{.pattern = "*", .lr_scale = -1}}}); }) ==
        "lrcnn: the rule for parameters '*' multiplies by -1; learning rate and weight decay are multiplied by finite numbers that are not "
        "negative; use 1 for no change");
  CHECK(error_of([] { trainee(policies[0], Sgd{}, {.clip = {.norm = 1, .value = 1}}); }) ==
        "lrcnn: gradients are to be clipped at norm 1 and value 1; limits are positive, and there is one of them at most; 0 is none; choose "
        "one of the two");
  CHECK(error_of([] { trainee(policies[0], Sgd{}, {.clip = {.norm = -1}}); }).starts_with("lrcnn: gradients are to be clipped at norm -1"));
  auto trainer = trainee(policies[0], Sgd{});
  CHECK(error_of([&] { trainer.update(); }) == "lrcnn: an update without gradients; an update follows at least one batch; call accumulate() first");
  trainer.accumulate(images.part({0, 4}), images.labels);
  CHECK(error_of([&] {
          trainer.step(images.part({0, 4}), images.labels);
        }) == "lrcnn: a step begins while gradients of 1 batches are accumulated; they wait for their update; call update() first");
  CHECK(error_of([&] { trainer.gradients_of(images.part({0, 4}), images.labels); }).starts_with("lrcnn: gradients are asked for while"));
  CHECK(error_of([&] { trainer.wait(); }).starts_with("lrcnn: losses are asked for while gradients of 1 batches"));
  CHECK(error_of([&] { trainer.fit(NoBatch{}, nullptr, {.epochs = 1}); }) ==
        "lrcnn: fit() begins while gradients of 1 batches are accumulated; they wait for their update; call update() first");
  CHECK(trainer.update().images == 4);
}
TEST_CASE("a batch whose loss is not finite ends the round, and nothing is updated") {
  Photos images(4);
  auto trainer = trainee(policies[1], Sgd{.lr = 0.1});
  const auto before = parameters_of(trainer);
  trainer.accumulate(images.part({0, 2}), images.labels_of({0, 2}));
  images.pixels[images.pixels.size() - 3] = INFINITY;
  CHECK(error_of<NumericError>([&] {
          trainer.accumulate(images.part({2, 4}), images.labels_of({2, 4}));
        }).find("in step 1 the loss is") != std::string::npos);
  CHECK(parameters_of(trainer) == before);
  CHECK(error_of([&] { trainer.update(); }).starts_with("lrcnn: an update without gradients"));
  CHECK(trainer.steps_done() == 0);
}
TEST_CASE("losses are those of the steps that count, whatever fails in between") {
  Photos images(4), broken(4);
  broken.pixels[3] = NAN;
  const auto batch = images.part({0, 4});
  const auto bad = broken.part({0, 4});
  auto trainer = trainee(policies[0], Sgd{.lr = 0.1});
  const auto loss_of = [&] { return trainer.evaluate(batch, images.labels).sum; };
  const auto fails = [&](auto f) { CHECK(error_of(f) != "no error"); };
  double want = loss_of();
  trainer.start_step(batch, images.labels);
  fails([&] { trainer.step(bad, images.labels); });
  CHECK(trainer.wait().sum == want);
  want = loss_of();
  trainer.start_step(batch, images.labels);
  trainer.accumulate(batch, images.labels);
  fails([&] { trainer.accumulate(bad, images.labels); });
  LossResult told = trainer.wait();
  CHECK(told.sum == want);
  CHECK(told.count == 4);
  CHECK(trainer.wait().count == 0);
  want = loss_of();
  trainer.start_step(batch, images.labels);
  fails([&] { trainer.start_step(bad, images.labels); });
  fails([&] { trainer.gradients_of(bad, images.labels); });
  told = trainer.wait();
  CHECK(told.sum == want);
  CHECK(told.count == 4);
  CHECK(trainer.steps_done() == 3);
}
TEST_CASE("losses of steps before fit are in no epoch's, and those before a file was loaded are nobody's") {
  const Photos images(4);
  const auto batch = images.part({0, 4});
  const auto path = std::filesystem::temp_directory_path() / ("lrcnn_updates_" + std::to_string(::getpid()));
  auto trainer = trainee(policies[0], Sgd{.lr = 0.1});
  trainer.save(path);
  const double first = trainer.evaluate(batch, images.labels).sum;
  trainer.start_step(batch, images.labels);
  trainer.load(path);
  CHECK(trainer.wait().count == 0);
  trainer.start_step(batch, images.labels);
  CHECK(error_of<DataError>([&] { trainer.fit(NoBatch{}, nullptr, {.epochs = std::numeric_limits<Index>::max()}); }) == "no batch");
  const LossResult told = trainer.wait();
  CHECK(told.sum == first);
  CHECK(told.count == 4);
  std::filesystem::remove(path);
}
TEST_CASE("gradients are told as they are after others were refused") {
  const Photos images(4);
  auto trainer = trainee(policies[0], Sgd{.lr = 0.1});
  for (const Range r : {Range{0, 2}, Range{2, 4}}) trainer.accumulate(images.part(r), images.labels_of(r));
  trainer.update();
  const auto before = trainer.read_gradients();
  const std::vector<std::int32_t> wrong(4, 1000);
  CHECK(error_of([&] { trainer.gradients_of(images.part({0, 4}), wrong); }) != "no error");
  CHECK(trainer.read_gradients() == before);
}
TEST_CASE("patterns of names") {
  CHECK(fits_pattern("conv1.weight", "conv1.weight"));
  CHECK(fits_pattern("conv1.weight", "*"));
  CHECK(fits_pattern("conv1.weight", "*.weight"));
  CHECK(fits_pattern("conv1.weight", "c*1*t"));
  CHECK(fits_pattern("", "*"));
  CHECK(!fits_pattern("conv1.weight", "conv1"));
  CHECK(!fits_pattern("conv12.weight", "conv1.*"));
  CHECK(!fits_pattern("conv1.weight", ""));
}
