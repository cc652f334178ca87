// Running statistics of norms over a batch: mixed in once for every batch that counts, and touched by nothing else.
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <filesystem>
#include <stdlib.h>
#include <unistd.h>
using namespace lrcnn;
using lrcnn::testing::error_of;
namespace {
constexpr Layer norm_of(double momentum, bool frozen = false) {
  Layer layer{.kind = Kind::norm};
  layer.norm.momentum = momentum, layer.norm.frozen = frozen;
  return layer;
}
/// Multiplies channels by what it learns, and watches what goes through: a layer with running statistics that needs no norm. Exact
/// where it goes backward in one piece.
struct Watch {
  static inline double factor = 1;   ///< of what it reports
  template <class T>
  static void forward(const CustomForward<T>& a) {
    for (Index i = 0; i < a.y.n; ++i)
      for (Index c = 0; c < a.y.c; ++c)
        for (Index row = a.y.row0; row < a.y.row0 + a.y.rows; ++row)
          for (Index x = 0; x < a.y.w; ++x) a.y(i, c, row, x) = static_cast<T>(a.parameters[0][c] * a.x(i, c, row, x));
  }
  template <class T>
  static void backward_data(const CustomBackward<T>& a) {
    for (Index i = 0; i < a.dx.n; ++i)
      for (Index c = 0; c < a.dx.c; ++c)
        for (Index row = a.dx.row0; row < a.dx.row0 + a.dx.rows; ++row)
          for (Index x = 0; x < a.dx.w; ++x) a.dx(i, c, row, x) = static_cast<T>(a.parameters[0][c] * a.dy(i, c, row, x));
  }
  template <class T>
  static void backward_parameters(const CustomBackward<T>& a) {
    for (Index c = 0; c < a.dy.c; ++c) {
      double sum = 0, squares = 0;
      for (Index i = 0; i < a.dy.n; ++i)
        for (Index row = a.dy.row0; row < a.dy.row0 + a.dy.rows; ++row)
          for (Index x = 0; x < a.dy.w; ++x) {
            const double value = static_cast<double>(a.x(i, c, row, x));
            sum += value, squares += value * value;
            a.d_parameters[0][c] += a.dy(i, c, row, x) * a.x(i, c, row, x);
          }
      a.d_parameters[1][c] = static_cast<T>(factor * sum);   // written, not added
      a.d_parameters[2][c] = static_cast<T>(factor * squares);
    }
  }
  static ParameterShapes parameters(const Layer&, const Shape& in) {
    ParameterShapes shapes;
    const ParameterShape each{.extents = {in.c, 1, 1, 1}, .decay = false};
    const auto add = [&](Name name, double fill, bool running) {
      ParameterShape p = each;
      p.name = name, p.fill = fill, p.running = running;
      shapes.add(p);
    };
    add("scale", 1.5, false), add("running_sum", 0, true), add("running_squares", 1, true);
    return shapes;
  }
};
const CustomLayer watch{.rules = {.name = "watch", .backward = reads_input, .parameters = Watch::parameters},
                        .f32 = {Watch::forward<float>, Watch::backward_data<float>, Watch::backward_parameters<float>},
                        .f64 = {Watch::forward<double>, Watch::backward_data<double>, Watch::backward_parameters<double>},
                        .bf16 = {}};
std::vector<Layer> watched(double momentum = 0.25) {
  Layer layer{.kind = Kind::custom, .custom = &watch};
  layer.norm.momentum = momentum;
  return {layer, Conv<4>::layer(), ReLU::layer(), GlobalAvgPool::layer(), Linear<5>::layer()};
}
std::vector<Layer> normed(double momentum = 0.1, bool frozen = false) {
  return {Conv<4>::layer(), norm_of(momentum, frozen), ReLU::layer(),          MaxPool<>::layer(),
          Conv<3>::layer(), norm_of(0.3, frozen),      GlobalAvgPool::layer(), Linear<5>::layer()};
}
const std::vector<PolicySpec> policies{Policy<>::value,
                                       Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value,
                                       Policy<Overlap<3>, RecomputeAll>::value,
                                       Policy<ByImages<2, Share<3>>>::value,
                                       Policy<ByImages<3, Overlap<2>>, RecomputeAll>::value,
                                       Policy<Share<2>, KeepAll>::value};
struct Photos {
  Input input;
  std::vector<double> pixels;
  std::vector<std::int32_t> labels;
  explicit Photos(Index n, std::uint64_t seed = 7) : input{n, 2, 12, 10}, pixels(static_cast<std::size_t>(input.count())) {
    const Random random(seed);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = 0.3 + random.normal(i);
    for (Index i = 0; i < n; ++i) labels.push_back(static_cast<std::int32_t>((i * 3 + 1) % 5));
  }
  MemorySource<double> part(Range r) const {
    Input shape = input;
    shape.n = r.size();
    return {pixels.data() + r.begin * input.c * input.h * input.w, shape};
  }
  std::span<const std::int32_t> labels_of(Range r) const {
    return std::span(labels).subspan(static_cast<std::size_t>(r.begin), static_cast<std::size_t>(r.size()));
  }
  double& pixel(Index i, Index c, Index row, Index column) {
    return pixels[static_cast<std::size_t>(((i * input.c + c) * input.h + row) * input.w + column)];
  }
};
using Trainee = BasicTrainer<Reference<double>>;
Trainee trainee(const std::vector<Layer>& layers, const PolicySpec& policy = Policy<>::value, const Optimizer& optimizer = AdamW{.lr = 0.02},
                TrainerOptions options = {}) {
  options.seed = 3;
  return {layers, policy, {4, 2, 12, 10}, optimizer, options};
}
template <class B>
std::vector<double> values_of(const BasicTrainer<B>& trainer, std::string_view name) {
  const auto all = trainer.read_parameters();
  const Parameter* p = find_parameter(trainer.layout(), name);
  REQUIRE(p != nullptr);
  return {all.begin() + p->offset, all.begin() + p->elements().end};
}
/// All running statistics of a trainer, or all other parameters.
template <class B>
std::vector<double> running_of(const BasicTrainer<B>& trainer, bool running = true) {
  std::vector<double> values;
  const auto all = trainer.read_parameters();
  for (const Parameter& p : trainer.layout())
    if (p.shape.running == running) values.insert(values.end(), all.begin() + p.offset, all.begin() + p.elements().end);
  return values;
}
double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  return a.size() == b.size() ? most : 1e300;
}
void mix(std::vector<double>& running, const std::vector<double>& value, double momentum) {
  for (std::size_t i = 0; i < running.size(); ++i) running[i] = (1 - momentum) * running[i] + momentum * value[i];
}
/// What Watch sees of some images: sums, then sums of squares, of each channel.
std::vector<double> watched_values(Photos images, Range r) {
  std::vector<double> values(4);
  for (Index i = r.begin; i < r.end; ++i)
    for (Index c = 0; c < 2; ++c)
      for (Index row = 0; row < 12; ++row)
        for (Index x = 0; x < 10; ++x) {
          const double v = images.pixel(i, c, row, x);
          values[static_cast<std::size_t>(c)] += v, values[static_cast<std::size_t>(c + 2)] += v * v;
        }
  return values;
}
/// Mean and unbiased variance of the channels of a 3x3 convolution with padding 1 and 4 channels: means first.
std::vector<double> convolved_statistics(const Trainee& trainer, Photos images, Range r) {
  const auto weight = values_of(trainer, "conv1.weight");
  const Parameter* has_bias = find_parameter(trainer.layout(), "conv1.bias");
  const auto bias = has_bias ? values_of(trainer, "conv1.bias") : std::vector<double>(4, 0.0);
  std::vector<double> result(8);
  for (std::size_t k = 0; k < 4; ++k) {
    std::vector<double> y;
    for (Index i = r.begin; i < r.end; ++i)
      for (Index row = 0; row < 12; ++row)
        for (Index x = 0; x < 10; ++x) {
          double sum = bias[k];
          for (Index c = 0; c < 2; ++c)
            for (Index t = 0; t < 9; ++t) {
              const Index at = row + t / 3 - 1, from = x + t % 3 - 1;
              if (at < 0 || at >= 12 || from < 0 || from >= 10) continue;
              sum += weight[k * 18 + static_cast<std::size_t>(c * 9 + t)] * images.pixel(i, c, at, from);
            }
          y.push_back(sum);
        }
    double mean = 0, squares = 0;
    for (const double v : y) mean += v / static_cast<double>(y.size());
    for (const double v : y) squares += (v - mean) * (v - mean);
    result[k] = mean, result[k + 4] = squares / static_cast<double>(y.size() - 1);
  }
  return result;
}
std::vector<double> first_norm(const Trainee& trainer) {
  auto values = values_of(trainer, "batch_norm1.running_mean");
  const auto variances = values_of(trainer, "batch_norm1.running_var");
  values.insert(values.end(), variances.begin(), variances.end());
  return values;
}
/// A backend that scales its loss as fp16 does.
struct Scaling : Reference<float> {
  using Reference::Reference;
  static constexpr bool scales_loss = true;
  bool all_finite(const float* x, Index count) const {
    return std::all_of(x, x + count, [](float v) { return std::isfinite(v); });
  }
};
struct ScaledPhotos {
  std::vector<float> pixels;
  Photos images;
  explicit ScaledPhotos(Index n) : images(n) { pixels.assign(images.pixels.begin(), images.pixels.end()); }
  MemorySource<float> source() const { return {pixels.data(), images.input}; }
};
struct ScaledTrainee : BasicTrainer<Scaling> {
  explicit ScaledTrainee(double scale) : BasicTrainer(watched(), Policy<>::value, {4, 2, 12, 10}, Sgd{.lr = 0.01}, {.seed = 3}) {
    set_loss_scale({.scale = scale});
  }
};
}   // namespace
// ---- what the trainer is made of -----------------------------------------------------------------------------------
TEST_CASE("mixing is (1 - momentum) * running + momentum * value, in any element type") {
  double w = 3;
  running_update<double>(0.25)(w, 7.0);
  CHECK(w == 4);
  running_update<double>(1)(w, -9.0);
  CHECK(w == -9);
  float f = 1;
  running_update<float>(0.1)(f, 1e30f);   // no limit
  CHECK(f == doctest::Approx(1e29));
  std::vector<double> running{1, 2, 3, 4, 5}, values{5, 4, 3, 2, 1}, want = running;
  mix(want, values, 0.3);
  double* const none = nullptr;
  host::update_elements(running_update<double>(0.3), running.data(), values.data(), none, none, 5, 2);
  CHECK(worst(running, want) <= 1e-15);
}
TEST_CASE("each norm over a batch has a stretch, unless it is frozen or has no momentum; other norms have none") {
  Layer group = norm_of(0.1), plain = norm_of(0.5);
  group.norm.over = decltype(group.norm.over)::group;
  plain.norm.affine = false;
  const std::vector<Layer> layers{Conv<4>::layer(), norm_of(0.1), norm_of(0.1, true), group, norm_of(0), plain, plain};
  const Table table = make_table(layers, Input{2, 3, 8, 8});
  const auto list = parameters_of(table);
  const auto at = [&](std::string_view name) { return find_parameter(list, name)->elements(); };
  const std::vector<RunningRange> want{{{at("batch_norm1.running_mean").begin, at("batch_norm1.running_var").end}, 0.1},
                                       {{at("batch_norm4.running_mean").begin, at("batch_norm5.running_var").end}, 0.5}};
  CHECK(RunningStatistics(table).ranges() == want);
  CHECK(RunningStatistics(make_table(std::vector<Layer>{Conv<4>::layer(), group}, Input{2, 3, 8, 8})).ranges().empty());
}
TEST_CASE("reading and writing back running statistics leaves out what a training step does not change") {
  const RunningStatistics running(make_table(normed(), Input{2, 2, 8, 8}));
  const Reference<double> backend;
  std::vector<double> flat(400);
  for (std::size_t i = 0; i < flat.size(); ++i) flat[i] = static_cast<double>(i);
  const auto before = flat, kept = running.read(backend, flat.data());
  CHECK(kept.size() == 2 * 4 + 2 * 3);
  for (double& v : flat) v = -1;
  running.write<double>(backend, flat.data(), {});
  CHECK(flat == std::vector<double>(flat.size(), -1));
  running.write<double>(backend, flat.data(), kept);
  std::vector<double> want(flat.size(), -1);
  for (const auto& [r, momentum] : running.ranges()) std::copy(before.begin() + r.begin, before.begin() + r.end, want.begin() + r.begin);
  CHECK(flat == want);
}
TEST_CASE("no optimizer updates running statistics, whatever the rules") {
  const auto list = parameters_of(make_table(normed(), Input{2, 2, 8, 8}));
  const std::vector<ParameterRule> no_rules,
      rules{{.pattern = "*", .lr_scale = 3}, {.pattern = "batch_norm1.*", .lr_scale = 2, .decay_scale = 2}, {.pattern = "*r*"}};
  const Optimizer optimizers[] = {Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5}, AdamW{.lr = 0.1, .weight_decay = 0.5}};
  for (const Optimizer& optimizer : optimizers)
    for (const auto& given : {no_rules, rules}) {
      const auto ranges = update_ranges(list, Decay::everything, given);
      std::vector<double> parameters(static_cast<std::size_t>(flat_elements(list)), 2.0), gradients(parameters.size(), 1.0);
      std::vector<double> states(parameters.size() * static_cast<std::size_t>(optimizer.state_count()));
      optimizer.update<double>({}, ranges, parameters, std::span<const double>(gradients), states);
      for (const Parameter& p : list)
        for (Index i = p.elements().begin; i < p.elements().end; ++i) {
          CHECK((parameters[static_cast<std::size_t>(i)] == 2) == p.shape.running);
          CHECK((states[static_cast<std::size_t>(i)] == 0) == p.shape.running);
        }
    }
  for (const std::string pattern : {"*.running_mean", "batch_norm1.running_*"}) {
    const std::vector<ParameterRule> rule{{.pattern = pattern, .frozen = true}};
    CHECK(error_of([&] { update_ranges(list, Decay::marked, rule); }) ==
          "lrcnn: the rule for parameters '" + pattern +
              "' fits running statistics alone; these come from the batches, and no optimizer "
              "updates them; leave the rule out; a norm that is frozen keeps them as they are");
  }
}
TEST_CASE("running statistics start at 0 and 1, also under Fill, and a norm's weight where its layer says") {
  auto layers = normed();
  layers[1].norm.weight = 0.75;
  const auto list = parameters_of(make_table(layers, Input{2, 2, 8, 8}));
  for (const Initializer& initializer : {Initializer(He{}), Initializer(Xavier{}), Initializer(Fill{0.5})}) {
    std::vector<double> flat(static_cast<std::size_t>(flat_elements(list)), -99);
    initialize<double>(list, initializer, 5, flat);
    const bool fill = std::holds_alternative<Fill>(initializer);
    const auto all = [&](std::string_view name, double value) {
      const auto values = elements_of(*find_parameter(list, name), std::span<const double>(flat));
      CHECK(std::all_of(values.begin(), values.end(), [&](double v) { return v == value; }));
    };
    all("batch_norm1.running_mean", 0), all("batch_norm2.running_var", 1);
    all("batch_norm1.weight", fill ? 0.5 : 0.75), all("batch_norm1.bias", fill ? 0.5 : 0);
  }
}
TEST_CASE("what norms compute is in a network's fingerprint; how their running statistics are trained is not") {
  const auto fingerprint = [](const std::vector<Layer>& layers) { return fingerprint_of(make_table(layers, Input{2, 2, 8, 8})); };
  const std::string one = fingerprint(normed());
  CHECK(fingerprint(normed(0.2)) == one);
  CHECK(fingerprint(normed(0.1, true)) == one);
  auto layers = normed();
  layers[1].norm.epsilon = 1e-3;
  CHECK(fingerprint(layers) != one);
  layers = normed();
  layers[1].name = "n", layers[1].norm.over = decltype(layers[1].norm.over)::group;
  const std::string instance = fingerprint(layers);
  layers[1].norm.groups = 2;
  CHECK(fingerprint(layers) != instance);
}
// ---- the trainer, with a layer that only watches -------------------------------------------------------------------
TEST_CASE("a step mixes its batch in once; what does not update leaves running statistics alone") {
  const Photos images(6);
  for (const GradientClip clip : {GradientClip{}, GradientClip{.norm = 1e-3}, GradientClip{.value = 1e-4}}) {
    auto trainer = trainee(watched(), Policy<>::value, AdamW{.lr = 0.02, .weight_decay = 0.3},
                           {.clip = clip, .rules = {{.pattern = "watch1.*", .lr_scale = 5}}});
    std::vector<double> want{0, 0, 1, 1};
    CHECK(running_of(trainer) == want);
    for (const Range r : {Range{0, 4}, Range{1, 5}, Range{2, 6}, Range{0, 3}}) {
      trainer.step(images.part(r), images.labels_of(r));
      mix(want, watched_values(images, r), 0.25);
      CHECK(worst(running_of(trainer), want) <= 1e-14);
    }
    const auto before = trainer.read_parameters();
    trainer.gradients_of(images.part({0, 4}), images.labels_of({0, 4}));
    trainer.evaluate(images.part({0, 4}), images.labels_of({0, 4}));
    trainer.predict(images.part({0, 4}));
    CHECK(trainer.read_parameters() == before);
    trainer.start_step(images.part({0, 4}), images.labels_of({0, 4}));
    mix(want, watched_values(images, {0, 4}), 0.25);
    CHECK(worst(running_of(trainer), want) <= 1e-14);
  }
}
TEST_CASE("what is watched changes no other parameter: neither values, nor the norm that gradients are clipped at") {
  const Photos images(4);
  std::vector<double> parameters[2], norms;
  for (const int i : {0, 1}) {
    Watch::factor = i == 0 ? 1 : 1e6;
    auto trainer = trainee(watched(), Policy<>::value, AdamW{.lr = 0.02}, {.clip = {.norm = 1e-2}});
    for (int step = 0; step < 3; ++step) norms.push_back(trainer.step(images.part({0, 4}), images.labels).gradient_norm);
    parameters[i] = running_of(trainer, false);
  }
  Watch::factor = 1;
  CHECK(parameters[0] == parameters[1]);
  CHECK(std::vector(norms.begin(), norms.begin() + 3) == std::vector(norms.begin() + 3, norms.end()));
}
TEST_CASE("batches that are accumulated are mixed in one by one, and what is accumulated alone is a step to the bit") {
  const Photos images(6);
  auto trainer = trainee(watched()), stepped = trainee(watched());
  std::vector<double> want{0, 0, 1, 1};
  for (int round = 0; round < 3; ++round) {
    for (const Range r : {Range{0, 2}, Range{2, 5}, Range{5, 6}}) {
      trainer.accumulate(images.part(r), images.labels_of(r));
      mix(want, watched_values(images, r), 0.25);
    }
    trainer.update();
    CHECK(worst(running_of(trainer), want) <= 1e-14);
  }
  stepped.write_parameters(trainer.read_parameters());
  auto alone = trainee(watched());
  alone.write_parameters(trainer.read_parameters());
  stepped.step(images.part({0, 4}), images.labels_of({0, 4}));
  alone.accumulate(images.part({0, 4}), images.labels_of({0, 4})), alone.update();
  CHECK(alone.read_parameters() == stepped.read_parameters());
}
TEST_CASE("a batch whose loss is not finite leaves running statistics as they were, and takes those accumulated before it with it") {
  Photos images(4), broken(4);
  broken.pixel(3, 1, 5, 5) = NAN;
  auto trainer = trainee(watched());
  trainer.step(images.part({0, 4}), images.labels);
  const auto before = trainer.read_parameters();
  CHECK(error_of<NumericError>([&] { trainer.step(broken.part({0, 4}), broken.labels); }) != "no error");
  CHECK(trainer.read_parameters() == before);
  trainer.accumulate(images.part({0, 2}), images.labels_of({0, 2}));
  CHECK(trainer.read_parameters() != before);
  CHECK(error_of<NumericError>([&] { trainer.accumulate(broken.part({2, 4}), broken.labels_of({2, 4})); }) != "no error");
  CHECK(trainer.read_parameters() == before);
  trainer.accumulate(images.part({0, 2}), images.labels_of({0, 2}));
  CHECK(error_of([&] { trainer.accumulate(images.part({2, 4}), images.labels_of({0, 2}).first(1)); }) != "no error");
  CHECK(trainer.read_parameters() == before);
  auto same = trainee(watched());
  same.write_parameters(before);
  trainer.step(images.part({0, 4}), images.labels), same.step(images.part({0, 4}), images.labels);
  CHECK(running_of(trainer) == running_of(same));
}
TEST_CASE("a training file that is saved within a round is without it, and one that is loaded within a round ends it") {
  const Photos images(6);
  const auto file = std::filesystem::temp_directory_path() / ("lrcnn-round-" + std::to_string(::getpid()));
  auto trainer = trainee(watched());
  trainer.step(images.part({0, 4}), images.labels_of({0, 4}));
  const auto before = trainer.read_parameters();
  trainer.accumulate(images.part({0, 2}), images.labels_of({0, 2}));
  trainer.accumulate(images.part({2, 6}), images.labels_of({2, 6}));
  const auto within = trainer.read_parameters();
  CHECK(within != before);
  trainer.save(file);
  CHECK(trainer.read_parameters() == within);
  auto other = trainee(watched());
  other.load(file);
  CHECK(other.read_parameters() == before);
  trainer.load(file);
  CHECK(trainer.read_parameters() == before);
  CHECK(error_of([&] { trainer.update(); }).starts_with("lrcnn: an update without gradients"));
  CHECK(trainer.wait().count == 0);
  trainer.step(images.part({0, 4}), images.labels_of({0, 4}));
  other.step(images.part({0, 4}), images.labels_of({0, 4}));
  CHECK(trainer.read_parameters() == other.read_parameters());
  std::filesystem::remove(file);
}
TEST_CASE("a step that is refused for the norm of its gradient has mixed nothing in") {
  struct Steep : SoftmaxCrossEntropy {   // a finite loss whose gradient is not
    void operator()(const View<const double>& logits, std::span<const std::int32_t> labels, const View<double>& dx, double scale,
                    LossResult& result) const {
      SoftmaxCrossEntropy::operator()(logits, labels, dx, scale*(result.count < 2 ? 1 : INFINITY), result);
    }
  };
  const Photos images(4);
  BasicTrainer<Reference<double>, Steep> trainer(watched(), Policy<Images<2>>::value, {4, 2, 12, 10}, Sgd{.lr = 0.1},
                                                 {.seed = 3, .clip = {.norm = 1}});
  const auto before = trainer.read_parameters();
  const std::string error = error_of<NumericError>([&] { trainer.step(images.part({0, 4}), images.labels); });
  CHECK(error.find("norm of the gradient is not finite") != std::string::npos);
  CHECK(trainer.read_parameters() == before);
  CHECK(error_of<NumericError>([&] { trainer.start_step(images.part({0, 4}), images.labels); }) == error);
  CHECK(trainer.wait().count == 0);   // nor does its loss count
  CHECK(trainer.read_parameters() == before);
  trainer.accumulate(images.part({0, 2}), images.labels_of({0, 2}));
  trainer.accumulate(images.part({0, 4}), images.labels);
  CHECK(error_of<NumericError>([&] { trainer.update(); }) == error);
  CHECK(trainer.read_parameters() == before);
  CHECK(trainer.steps_done() == 0);
}
TEST_CASE("a scaled loss leaves statistics alone, they do not count as gradients that overflow, and a skipped step mixes them in") {
  const ScaledPhotos photos(4);
  std::vector<double> want{0, 0, 1, 1};
  const auto values = watched_values(photos.images, {0, 4});
  mix(want, values, 0.25);
  ScaledTrainee one(1), many(4096), too_many(1e42), strange(4096);
  one.step(photos.source(), photos.images.labels), many.step(photos.source(), photos.images.labels);
  CHECK(worst(running_of(many), want) <= 1e-6);
  CHECK(running_of(many) == running_of(one));
  CHECK(worst(running_of(many, false), running_of(one, false)) <= 1e-6);
  const auto gradients = many.read_gradients(), plain = one.read_gradients();
  CHECK(worst({gradients.begin(), gradients.end()}, {plain.begin(), plain.end()}) <= 1e-5);
  const Parameter& sum = *find_parameter(many.layout(), "watch1.running_sum");
  CHECK(gradients[static_cast<std::size_t>(sum.offset)] == plain[static_cast<std::size_t>(sum.offset)]);
  const auto before = running_of(too_many, false);
  CHECK(too_many.step(photos.source(), photos.images.labels).skipped);
  CHECK(running_of(too_many, false) == before);
  CHECK(running_of(too_many) == running_of(one));
  Watch::factor = INFINITY;
  CHECK(!strange.step(photos.source(), photos.images.labels).skipped);
  Watch::factor = 1;
  CHECK(running_of(strange, false) == running_of(many, false));
}
TEST_CASE("gradients of frozen parameters that overflow leave no scaled step out") {
  struct FrozenTrainee : BasicTrainer<Scaling> {
    explicit FrozenTrainee(double scale, std::vector<ParameterRule> rules = {})
        : BasicTrainer(watched(), Policy<>::value, {4, 2, 12, 10}, Sgd{.lr = 0.01}, {.seed = 3, .rules = std::move(rules)}) {
      set_loss_scale({.scale = scale});
    }
  };
  const ScaledPhotos photos(4);
  FrozenTrainee frozen(1e42, {{.pattern = "*", .frozen = true}}), free(1e42);
  CHECK(free.step(photos.source(), photos.images.labels).skipped);
  CHECK(!frozen.step(photos.source(), photos.images.labels).skipped);
}
TEST_CASE("a round whose first batch has few pixels that count keeps to the scale of the loss") {
  using Map = Sequential<Conv<4>, ReLU, Conv<3>>;
  const ScaledPhotos photos(4);
  std::vector<std::int32_t> sparse(4 * 12 * 10, 255), full;
  sparse[7] = 1;
  for (std::int32_t i = 0; i < 4 * 12 * 10; ++i) full.push_back(i % 3);
  const auto update = [&](auto& trainer) {
    for (const auto& mask : {sparse, full}) trainer.accumulate(photos.source(), Labels::of_pixels(mask, 12, 10));
    return trainer.update();
  };
  BasicTrainer<Scaling, PixelCrossEntropy> scaled(Map::layers, Policy<>::value, {4, 2, 12, 10}, Sgd{.lr = 0.01}, {.seed = 3}, {.ignore = 255});
  BasicTrainer<Reference<float>, PixelCrossEntropy> plain(Map::layers, Policy<>::value, {4, 2, 12, 10}, Sgd{.lr = 0.01}, {.seed = 3},
                                                          {.ignore = 255});
  scaled.set_loss_scale({.scale = 1e37});   // 480 times as much is more than a float holds
  CHECK(!update(scaled).skipped);
  CHECK(update(plain).loss > 0);
  const auto a = scaled.read_parameters(), b = plain.read_parameters();
  CHECK(worst({a.begin(), a.end()}, {b.begin(), b.end()}) <= 1e-6);
}
// ---- norms ---------------------------------------------------------------------------------------------------------
TEST_CASE("a norm's running statistics follow the batches by the formula, those of the convolution before it") {
  const Photos images(8);
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    auto trainer = trainee(normed(), policy);
    std::vector<double> want{0, 0, 0, 0, 1, 1, 1, 1};
    CHECK(first_norm(trainer) == want);
    for (const Range r : {Range{0, 4}, Range{4, 8}, Range{2, 6}}) {
      mix(want, convolved_statistics(trainer, images, r), 0.1);
      trainer.step(images.part(r), images.labels_of(r));
      CHECK(worst(first_norm(trainer), want) <= 1e-12);
    }
  }
}
TEST_CASE("any policy trains the same running statistics as the column does") {
  const Photos images(8);
  const auto train = [&](Trainee& trainer) {
    for (const Range r : {Range{0, 4}, Range{4, 8}, Range{2, 6}}) trainer.step(images.part(r), images.labels_of(r));
    return running_of(trainer);
  };
  auto column = trainee(normed()), noisy = trainee(normed());
  // Three steps blow rounding up: by as much as they do that with noise in the last place of the first parameters.
  auto values = noisy.read_parameters();
  for (double& v : values) v = std::nextafter(v, 2 * v + 1);
  noisy.write_parameters(values);
  const auto want = train(column);
  const double noise = worst(train(noisy), want);
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy), ", noise ", noise);
    auto rows = trainee(normed(), policy);
    CHECK(worst(train(rows), want) <= std::max(1e-12, 10 * noise));
  }
  CHECK(noise < 1e-8);
}
TEST_CASE("norms: two batches that are accumulated are mixed in one after the other") {
  const Photos images(8);
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    auto trainer = trainee(normed(), policy);
    std::vector<double> want{0, 0, 0, 0, 1, 1, 1, 1};
    for (int round = 0; round < 2; ++round) {
      for (const Range r : {Range{0, 4}, Range{4, 8}}) {   // parameters are the same for both
        mix(want, convolved_statistics(trainer, images, r), 0.1);
        trainer.accumulate(images.part(r), images.labels_of(r));
      }
      trainer.update();
      CHECK(worst(first_norm(trainer), want) <= 1e-12);
    }
  }
}
TEST_CASE("norms: evaluation uses running statistics and leaves them alone, and so do frozen norms in training") {
  const Photos images(4);
  auto trainer = trainee(normed()), frozen = trainee(normed(0.1, true));
  const double fresh = trainer.evaluate(images.part({0, 4}), images.labels).sum;
  CHECK(fresh == doctest::Approx(frozen.gradients_of(images.part({0, 4}), images.labels).sum).epsilon(1e-13));
  for (int i = 0; i < 3; ++i) trainer.step(images.part({0, 4}), images.labels);
  const auto before = trainer.read_parameters();
  const double loss = trainer.evaluate(images.part({0, 4}), images.labels).sum;
  trainer.predict(images.part({0, 4}));
  CHECK(trainer.gradients_of(images.part({0, 4}), images.labels).sum != doctest::Approx(loss).epsilon(1e-6));
  CHECK(trainer.read_parameters() == before);
  frozen.write_parameters(before);
  CHECK(frozen.step(images.part({0, 4}), images.labels).loss * 4 == doctest::Approx(loss).epsilon(1e-13));
  frozen.step(images.part({0, 4}), images.labels);
  CHECK(running_of(frozen) == running_of(trainer));
  CHECK(running_of(frozen, false) != running_of(trainer, false));
}
TEST_CASE("norms: a batch with a value that is no number changes nothing") {
  Photos images(4), broken(4);
  broken.pixel(2, 0, 11, 3) = NAN;
  for (const PolicySpec& policy : policies) {
    auto trainer = trainee(normed(), policy);
    trainer.step(images.part({0, 4}), images.labels);
    const auto before = trainer.read_parameters();
    CHECK(error_of<NumericError>([&] { trainer.step(broken.part({0, 4}), broken.labels); }) != "no error");
    CHECK(trainer.read_parameters() == before);
    trainer.accumulate(images.part({0, 4}), images.labels);
    CHECK(error_of<NumericError>([&] { trainer.accumulate(broken.part({0, 4}), broken.labels); }) != "no error");
    CHECK(trainer.read_parameters() == before);
  }
}
TEST_CASE("running statistics are kept in a training file, and training goes on bit for bit") {
  const Photos images(8);
  std::string folder = (std::filesystem::temp_directory_path() / "lrcnn-test-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const auto file = std::filesystem::path(folder) / "state";
  for (const auto& layers : {watched(), normed()}) {
    auto trainer = trainee(layers), resumed = trainee(layers);
    trainer.step(images.part({0, 4}), images.labels_of({0, 4}));
    trainer.save(file), resumed.load(file);
    CHECK(resumed.read_parameters() == trainer.read_parameters());
    CHECK(running_of(resumed) != running_of(trainee(layers)));
    for (const Range r : {Range{4, 8}, Range{2, 6}})
      for (Trainee* each : {&trainer, &resumed}) each->step(images.part(r), images.labels_of(r));
    CHECK(resumed.read_parameters() == trainer.read_parameters());
    const auto batch = images.part({0, 4});
    CHECK(resumed.evaluate(batch, images.labels_of({0, 4})) == trainer.evaluate(batch, images.labels_of({0, 4})));
  }
  std::filesystem::remove_all(folder);
}
