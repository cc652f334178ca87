// A program's own optimizers: against plain loops in double, for any number of threads, through training files, and what is refused.
#include "support/error_of.hpp"
#include "support/own_optimizers.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <filesystem>
#include <unistd.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<6>, BatchNorm, ReLU, MaxPool<>, Conv<8>, ReLU, GlobalAvgPool, Linear<5>>;
const Input input{4, 2, 12, 10};
const std::vector<PolicySpec> policies{Policy<>::value, Policy<Overlap<3>, CheckpointAtPools, RecomputeAll>::value,
                                       Policy<Share<4>, RecomputeAll>::value};
template <class T>
struct Photos {
  std::vector<T> pixels = std::vector<T>(static_cast<std::size_t>(input.count()));
  std::vector<std::int32_t> labels{1, 4, 2, 0};
  explicit Photos(std::uint64_t seed) {
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<T>(Random(seed).normal(i));
  }
  MemorySource<T> source() const { return {pixels.data(), input}; }
};
template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}
double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return a.size() == b.size() ? most : 1e300;
}
double norm(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum);
}
/// The formulas as plain loops, parameter after parameter.
struct Plain {
  std::vector<double> w, first, second;
  explicit Plain(std::vector<double> initial) : w(std::move(initial)), first(w.size()), second(w.size()) {}
  void update(const RmsProp& o, const Parameter& p, const std::vector<double>& gradients, double lr_scale, double decay_scale) {
    for (auto i = static_cast<std::size_t>(p.offset); i < static_cast<std::size_t>(p.elements().end); ++i) {
      const double g = gradients[i] + o.weight_decay * decay_scale * w[i];
      first[i] = o.rho * first[i] + (1 - o.rho) * g * g;
      second[i] = o.momentum * second[i] + g / (std::sqrt(first[i]) + o.epsilon);
      w[i] -= o.lr * lr_scale * second[i];
    }
  }
  void update(const Lars& o, const Parameter& p, const std::vector<double>& gradients, double lr_scale, double decay_scale) {
    const std::span<const double> all = gradients, weights = w;
    const double length = norm(elements_of(p, weights)), slope = norm(elements_of(p, all)), decays = o.weight_decay * decay_scale;
    const double own = decay_scale > 0 && length > 0 ? o.trust * length / (slope + decays * length) : 1;
    for (auto i = static_cast<std::size_t>(p.offset); i < static_cast<std::size_t>(p.elements().end); ++i) {
      first[i] = o.momentum * first[i] + own * o.lr * lr_scale * (gradients[i] + decays * w[i]);
      w[i] -= first[i];
    }
  }
};
/// The greatest difference of any parameter after some steps, and that of an update by nothing at all.
template <class T, class O>
std::pair<double, double> difference(const O& optimizer, const PolicySpec& policy) {
  const TrainerOptions options{
      .schedule = StepLr{.every = steps(2), .gamma = 0.5},
      .seed = 3,
      .clip = {.norm = 0.01},
      .rules = {{.pattern = "conv2.bias", .frozen = true}, {.pattern = "linear1.*", .lr_scale = 0.5}, {.pattern = "conv1.weight", .decay_scale = 3}}};
  BasicTrainer<Reference<T>> trainer(Net::layers, policy, input, optimizer, options);
  const auto initial = doubles(trainer.read_parameters());
  Plain plain(initial);
  for (int step = 0; step < 5; ++step) {
    const Photos<T> batch(static_cast<std::uint64_t>(step)), other(static_cast<std::uint64_t>(step + 100));
    StepReport report;
    if (step % 2 == 0) report = trainer.step(batch.source(), batch.labels);
    else trainer.accumulate(batch.source(), batch.labels), trainer.accumulate(other.source(), other.labels), report = trainer.update();
    std::vector<double> gradients = doubles(trainer.read_gradients());   // of the mean over all images, before clipping
    const double clip = std::min(1.0, 0.01 / (report.gradient_norm + 1e-6));
    CHECK(clip < 1);
    for (double& g : gradients) g *= clip;
    const auto now = trainer.read_parameters();
    for (const Parameter& p : trainer.layout()) {
      if (p.shape.running)   // no optimizer's
        for (auto i = static_cast<std::size_t>(p.offset); i < static_cast<std::size_t>(p.elements().end); ++i)
          plain.w[i] = static_cast<double>(now[i]);
      if (p.shape.running || p.name == "conv2.bias") continue;
      const double lr_scale = (step < 2 ? 1 : step < 4 ? 0.5 : 0.25) * (p.name.starts_with("linear1.") ? 0.5 : 1);
      const bool decays = optimizer.decay == Decay::everything || p.shape.decay;
      plain.update(optimizer, p, gradients, lr_scale, decays ? p.name == "conv1.weight" ? 3 : 1 : 0);
    }
  }
  return {worst(doubles(trainer.read_parameters()), plain.w), worst(initial, plain.w)};
}
/// A wide network, so that a parameter is worth several threads.
using Wide = Sequential<Conv<32>, ReLU, GlobalAvgPool, Linear<700>, ReLU, Linear<60>, ReLU, Linear<5>>;
template <class T>
std::vector<T> trained(const Optimizer& optimizer, int threads) {
  BasicTrainer<Reference<T>> trainer(Wide::layers, policies[1], input, optimizer, {.seed = 3, .threads = threads, .clip = {.norm = 1}});
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Photos<T> batch(step);
    trainer.step(batch.source(), batch.labels);
  }
  return trainer.read_parameters();
}
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_test_own_optimizer_" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};
/// What update() was given, in a program's own optimizer that changes nothing.
struct Seen {
  std::string name;
  Index size, number;
  double lr_scale, decay_scale;
};
std::vector<Seen> seen;
struct Watcher {
  double lr = 1;
  Decay decay = Decay::marked;
  static constexpr std::string_view name = "Watcher";
  Index state_count() const { return 0; }
  template <class Self, class F>
  static void each_setting(Self& s, F f) {
    f("lr", s.lr), f("decay", s.decay);
  }
  template <class T>
  void update(const ParameterUpdate<T>& u) const {
    CHECK(u.parameter().shape.count() == u.size());
    CHECK(static_cast<Index>(u.values().size()) == u.size());
    seen.push_back({u.parameter().name, u.size(), u.number(), u.lr_scale(), u.decay_scale()});
  }
  friend bool operator==(const Watcher&, const Watcher&) = default;
};
/// Whose every oddity is chosen by a test.
struct Odd {
  double lr = 0.1;
  double second = 0;
  Index states = 0, used = 0;
  std::string_view first_name = "lr", second_name = "second";
  Decay decay = Decay::everything;
  static constexpr std::string_view name = "Odd";
  Index state_count() const { return states; }
  template <class Self, class F>
  static void each_setting(Self& s, F f) {
    f(s.first_name, s.lr), f(s.second_name, s.second);
  }
  template <class T>
  void update(const ParameterUpdate<T>& u) const {
    if (used > 0) static_cast<void>(u.state(used - 1));
    else if (used == 0) u.for_each_element([](T&, T, T&, T&) {});
  }
  friend bool operator==(const Odd&, const Odd&) = default;
};
struct Impostor : Watcher {
  static constexpr std::string_view name = "AdamW";
  friend bool operator==(const Impostor&, const Impostor&) = default;
};
struct Nameless : Watcher {
  static constexpr std::string_view name = "";
  friend bool operator==(const Nameless&, const Nameless&) = default;
};
/// RmsProp as another program has it.
struct Newer {
  double lr = 0.01, rho = 0.9;
  Decay decay = Decay::everything;
  static constexpr std::string_view name = "RmsProp";
  Index state_count() const { return 1; }
  template <class Self, class F>
  static void each_setting(Self& s, F f) {
    f("lr", s.lr), f("rho", s.rho);
  }
  template <class T>
  void update(const ParameterUpdate<T>&) const {}
  friend bool operator==(const Newer&, const Newer&) = default;
};
/// Settings, and no update.
struct Idle {
  double lr = 0.01;
  Decay decay = Decay::everything;
  static constexpr std::string_view name = "Idle";
  Index state_count() const { return 0; }
  template <class Self, class F>
  static void each_setting(Self& s, F f) {
    f("lr", s.lr);
  }
  friend constexpr bool operator==(const Idle&, const Idle&) = default;
};
static_assert(!OptimizerSettings<Idle> && Idle{} == Idle{} && OptimizerSettings<Watcher>);
}   // namespace
TEST_CASE("a program's own optimizers do what plain loops in double do, with schedule, rules, clipping, accumulation and frozen parameters") {
  for (const PolicySpec& policy : policies) {
    INFO(to_string(policy));
    const auto check = [&](const auto& optimizer) {
      INFO(to_string(Optimizer(optimizer)));
      const auto [off, moved] = difference<double>(optimizer, policy);
      CHECK(off <= 1e-12);
      CHECK(moved > 1e-3);
      CHECK(difference<float>(optimizer, policy).first <= 1e-4);
    };
    check(RmsProp{.epsilon = 1e-3});
    check(RmsProp{.lr = 0.003, .rho = 0.9, .epsilon = 1e-3, .momentum = 0.8, .weight_decay = 0.01, .decay = Decay::marked});
    check(Lars{.lr = 1, .trust = 0.1, .weight_decay = 0.05});
    check(Lars{.lr = 0.1, .momentum = 0.5, .trust = 0.5, .decay = Decay::everything});
  }
}
TEST_CASE("a program's own optimizer gives the same bits for any number of threads") {
  for (const Optimizer& optimizer : {Optimizer(RmsProp{}), Optimizer(RmsProp{.momentum = 0.9}), Optimizer(Lars{.lr = 1})}) {
    INFO(to_string(optimizer));
    const auto one = trained<float>(optimizer, 1);
    CHECK(one.size() > 3 * 16384);
    CHECK(std::ranges::all_of(one, [](float w) { return std::isfinite(w); }));
    for (const int threads : {2, 3, 5}) CHECK(trained<float>(optimizer, threads) == one);
    CHECK(trained<double>(optimizer, 1) == trained<double>(optimizer, 4));
  }
}
TEST_CASE("each parameter that is updated is seen by itself, in its order") {
  const Photos<float> batch(1);
  BasicTrainer<Reference<float>> trainer(
      Net::layers, policies[0], input, Watcher{},
      {.rules = {{.pattern = "conv2.*", .frozen = true}, {.pattern = "linear1.weight", .lr_scale = 0.5, .decay_scale = 2}}});
  const auto before = trainer.read_parameters();
  seen.clear();
  trainer.step(batch.source(), batch.labels), trainer.step(batch.source(), batch.labels);
  std::vector<std::string> names;
  for (const Seen& s : seen) names.push_back(s.name);
  const std::vector<std::string> once{"conv1.weight", "conv1.bias", "batch_norm1.weight", "batch_norm1.bias", "linear1.weight", "linear1.bias"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  CHECK(names == twice);
  CHECK(seen[0].size == 6 * 2 * 3 * 3);
  CHECK(seen[0].number == 1);
  CHECK(seen[6].number == 2);
  CHECK(seen[0].decay_scale == 1);
  CHECK(seen[1].decay_scale == 0);   // a bias, which is not marked
  CHECK(seen[4].decay_scale == 2);
  CHECK(seen[4].lr_scale == 0.5);
  const auto after = trainer.read_parameters();
  for (const Parameter& p : trainer.layout())
    if (!p.shape.running) CHECK(std::ranges::equal(elements_of(p, std::span(before)), elements_of(p, std::span(after))));
}
TEST_CASE("a training with a program's own optimizer that is saved goes on bit by bit, with the settings of the file") {
  const Folder folder;
  const auto path = folder.path / "training";
  const RmsProp settings{.lr = 0.1 + 0.2, .rho = 0.9, .momentum = 0.5, .weight_decay = 0.01, .decay = Decay::marked};
  const Photos<float> batch(1);
  const auto trainer_with = [](const Optimizer& o) {
    return std::make_unique<BasicTrainer<Reference<float>>>(Net::layers, policies[1], input, o, TrainerOptions{.seed = 5});
  };
  const auto whole = trainer_with(settings), resumed = trainer_with(RmsProp{.momentum = 0.1});   // its settings give way, its states do not
  for (int step = 0; step < 3; ++step) whole->step(batch.source(), batch.labels);
  whole->save(path);
  resumed->load(path);
  CHECK(resumed->state() == whole->state());
  REQUIRE(resumed->state().optimizer.get_if<RmsProp>() != nullptr);
  CHECK(*resumed->state().optimizer.get_if<RmsProp>() == settings);
  for (int step = 0; step < 3; ++step) {
    CHECK(resumed->step(batch.source(), batch.labels).loss == whole->step(batch.source(), batch.labels).loss);
    CHECK(resumed->read_parameters() == whole->read_parameters());
  }
  const auto refused = [&](const Optimizer& o) {
    const auto trainer = trainer_with(o);
    const auto before = trainer->read_parameters();
    std::string text = error_of<DataError>([&] { trainer->load(path); });
    CHECK(trainer->read_parameters() == before);
    CHECK(trainer->state().optimizer == o);
    const auto at = text.find(path.string());
    return at == std::string::npos ? text : text.replace(at, path.string().size(), "F");
  };
  const std::string recorded = "RmsProp{.lr = " + number_text(0.1 + 0.2) +
                               ", .rho = 0.9, .epsilon = 1e-08, .momentum = 0.5, .weight_decay = 0.01, .decay = 1}";   // without the type a number
  for (const Optimizer& o : {Optimizer(Sgd{}), Optimizer(Lars{})})
    CHECK(refused(o) == "lrcnn: training file 'F' was saved with " + recorded + "; this training has " + to_string(o) +
                            ", whose states differ; continue with the optimizer of the file");
  CHECK(refused(RmsProp{}) == "lrcnn: training file 'F' was saved with " + to_string(Optimizer(settings)) + "; this training has " +
                                  to_string(Optimizer(RmsProp{})) + ", whose states differ; continue with the optimizer of the file");
  CHECK(refused(Newer{}).find("RmsProp has settings that this program does not know; its checksum is right") != std::string::npos);
  const TrainingFileInfo info = inspect_training_file(path);
  CHECK(to_string(info.state.optimizer) == recorded);
  CHECK(info.state.optimizer.name() == "RmsProp");
  CHECK(info.state.optimizer.lr() == 0.1 + 0.2);
  CHECK(info.state.optimizer.state_count() == 2);
  CHECK(info.state.optimizer == inspect_training_file(path).state.optimizer);
  CHECK(info.state.optimizer != Optimizer(settings));
  CHECK(error_of([&] { trainer_with(info.state.optimizer)->step(batch.source(), batch.labels); }) ==
        "lrcnn: an update by RmsProp, which is known from a training file alone; a file keeps an optimizer's name and settings, and not its "
        "arithmetic; give the trainer an optimizer of its type");
  const auto sgd = trainer_with(Sgd{.lr = 0.1});
  sgd->save(path);
  CHECK(refused(RmsProp{}).starts_with("lrcnn: training file 'F' was saved with Sgd{.lr = 0.1, .momentum = 0, .nesterov = false"));
}
TEST_CASE("a program's own optimizers are regular and printable") {
  const Optimizer a = RmsProp{.lr = 0.1}, b = RmsProp{.lr = 0.2};
  CHECK(a == Optimizer(RmsProp{.lr = 0.1}));
  CHECK(a != b);
  CHECK(a != Optimizer(Sgd{.lr = 0.1}));
  Optimizer c = b;
  c = a;
  CHECK(c == a);
  const Optimizer moved = std::move(c);
  CHECK(c == moved);   // nothing is left empty
  CHECK(a.name() == "RmsProp");
  CHECK(a.lr() == 0.1);
  CHECK(a.state_count() == 1);
  CHECK(Optimizer(Lars{}).decay() == Decay::marked);
  CHECK(!a.built_in());
  CHECK(Optimizer(AdamW{}).built_in());
  CHECK(a.get_if<RmsProp>()->lr == 0.1);
  CHECK(a.get_if<Lars>() == nullptr);
  CHECK(Optimizer(Sgd{.lr = 3}).get_if<Sgd>()->lr == 3);
  CHECK(to_string(Lars{.nesterov = true}) ==
        "Lars{.lr = 0.1, .momentum = 0.9, .trust = 0.001, .weight_decay = 0, .nesterov = true, .decay = marked}");
}
TEST_CASE("a program's own optimizers that make no sense are refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const auto refusal = [](const auto& o) { return error_of([&] { Optimizer{o}; }); };
  CHECK(refusal(RmsProp{.rho = 1}) == "lrcnn: RmsProp with .rho = 1; it lies in [0, 1); try 0.99");
  CHECK(refusal(RmsProp{.rho = nan}) == "lrcnn: RmsProp with .rho = nan; it lies in [0, 1); try 0.99");
  CHECK(refusal(RmsProp{.epsilon = nan}) == "lrcnn: RmsProp with .epsilon = nan; a setting is a finite number; correct it");
  CHECK(refusal(Lars{.trust = infinity}) == "lrcnn: Lars with .trust = inf; a setting is a finite number; correct it");
  CHECK(refusal(Lars{.lr = -1}) == "lrcnn: Lars with .lr = -1; a learning rate is finite and not negative; try 0.001");
  CHECK(refusal(Odd{.states = -1}) ==
        "lrcnn: Odd has a state_count() of -1; it is the number of buffers that an update keeps, and not negative; return 0 if it keeps none");
  CHECK(refusal(Odd{.second_name = "lr"}) ==
        "lrcnn: Odd has two settings 'lr'; training files tell settings apart by their names; give each its own in each_setting");
  CHECK(refusal(Odd{.second_name = ""}) ==
        "lrcnn: Odd has a setting without a name; training files tell settings apart by their names; give each its own in each_setting");
  CHECK(refusal(Impostor{}) ==
        "lrcnn: an optimizer of the program's own is called AdamW; training files tell optimizers apart by their names, "
        "and that is one of the library's; give its type a name of its own");
  CHECK(refusal(Nameless{}) == "lrcnn: an optimizer has no name; training files tell optimizers apart by their names; give its type a name");
  CHECK(refusal(Odd{.first_name = "rate"}) == "no error");   // a learning rate that files do not keep is the program's choice
}
TEST_CASE("a step whose optimizer throws does not count, and leaves losses and running statistics as they were") {
  const Photos<float> batch(1), other(2);
  using Trained = BasicTrainer<Reference<float>>;
  const auto state_of = [](Trained& t) { return std::vector<float>(t.parameters().begin(), t.parameters().end()); };   // running ones are in it
  for (const auto& way :
       {+[](Trained&t, const Photos<float>&b) { t.step(b.source(), b.labels); },
        +[](Trained&t, const Photos<float>&b) { t.start_step(b.source(), b.labels); },
        +[](Trained&t, const Photos<float>&b) { t.accumulate(b.source(), b.labels), t.accumulate(b.source(), b.labels), t.update(); }}) {
    Trained trainer(Net::layers, policies[0], input, Odd{.states = 0, .used = 0});   // which throws at the first parameter
    const std::vector<float> before = state_of(trainer);
    CHECK(error_of([&] { way(trainer, batch); }).starts_with("lrcnn: Odd asks for its state number 0"));
    CHECK(trainer.steps_done() == 0);
    CHECK(trainer.wait().count == 0);
    CHECK(state_of(trainer) == before);
    CHECK(error_of([&] { way(trainer, other); }).starts_with("lrcnn: Odd asks for its state number 0"));   // and it can be tried again
    CHECK(trainer.steps_done() == 0);
    CHECK(state_of(trainer) == before);
  }
}
TEST_CASE("a program's own optimizer that asks for states it does not have is told so, and so is who joins its parameters") {
  const Photos<float> batch(1);
  const auto refusal = [&](const Optimizer& o) {
    BasicTrainer<Reference<float>> trainer(Net::layers, policies[0], input, o);
    return error_of([&] { trainer.step(batch.source(), batch.labels); });
  };
  const std::string end = ", and numbers begin with 0; return more from state_count(), or use less";
  CHECK(refusal(Odd{.states = 1, .used = 2}) == "lrcnn: Odd asks for its state number 1; its state_count() is 1" + end);
  CHECK(refusal(Odd{.states = 1, .used = 0}) == "lrcnn: Odd asks for its state number 1; its state_count() is 1" + end);
  CHECK(refusal(Odd{.states = 0, .used = 0}) == "lrcnn: Odd asks for its state number 0; its state_count() is 0" + end);
  CHECK(refusal(Odd{.states = 3, .used = 3}) == "no error");
  std::vector<float> w(5), g(5), s(5);
  const UpdateRange all{{0, 5}, true};
  CHECK(error_of([&] {
          Optimizer(RmsProp{}).update<float>({}, {&all, 1}, w, g, s);
        }) ==
        "lrcnn: an update by RmsProp of elements that are not told to be one parameter; the optimizer of a program's own sees each parameter "
        "tensor by itself; take ranges from Optimizer::update_ranges");
  CHECK(error_of([&] {
          Optimizer(RmsProp{}).update<float>({.number = 0}, {&all, 1}, w, g, s);
        }).starts_with("lrcnn: update number 0; the first update has the number 1"));
  CHECK(error_of<BackendError>([&] { Optimizer(RmsProp{}).visit_update<float>({}, all, [](const auto&) {}); }) ==
        "lrcnn: the optimizer RmsProp is the program's own, and has no function for a GPU; its update works on the host's memory; use Sgd or "
        "AdamW, or train on a CPU backend");
}
