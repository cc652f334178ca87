#include "pass.hpp"
#include <lrcnn/data/detect.hpp>
#include <lrcnn/data/transform.hpp>
#include <lrcnn/train/measure_costs.hpp>
#include <cstdlib>
namespace bench {
namespace {
/// Times steps, and convolutions among them.
struct Watch {
  using Clock = std::chrono::steady_clock;
  double convolutions = 0;
  Clock::time_point since{};
  static bool convolves(const Plan& plan, Index i) {
    const Step& s = plan.steps[static_cast<std::size_t>(i)];
    if (s.layer < 0 || is_packing(s.op)) return false;
    const Kind kind = plan.table.node(s.layer).layer.kind;
    return kind == Kind::conv || kind == Kind::conv_transpose;
  }
  void before(const Plan& plan, Index i) {
    if (convolves(plan, i)) since = Clock::now();
  }
  void after(const Plan& plan, Index i) {
    if (convolves(plan, i)) convolutions += std::chrono::duration<double>(Clock::now() - since).count();
  }
};
Images drawn(const Input& input, const Shape& output) {
  Images images{{}, {}, "normally distributed numbers"};
  const Random random(1, 1);
  images.values.resize(static_cast<std::size_t>(input.count()));
  for (std::size_t i = 0; i < images.values.size(); ++i) images.values[i] = static_cast<float>(random.normal(i));
  for (Index n = 0; n < output.n * output.h * output.w; ++n) images.labels.push_back(static_cast<std::int32_t>(n % output.c));
  return images;
}
/// Images of a data set, enlarged by repeating pixels.
Images enlarged(const Dataset& data, const Input& input) {
  Images images{{}, {}, data.description};
  const auto table = normalization_table<float>(normalization_of(data), data.shape.c);
  const Shape& s = data.shape;
  for (Index n = 0; n < input.n; ++n) {
    const auto image = data.image(n % s.n);
    images.labels.push_back(data.labels[static_cast<std::size_t>(n % s.n)]);
    for (Index c = 0; c < input.c; ++c)
      for (Index y = 0; y < input.h; ++y)
        for (Index x = 0; x < input.w; ++x) {
          const Index pixel = ((c % s.c) * s.h + y * s.h / input.h) * s.w + x * s.w / input.w;
          images.values.push_back(table[static_cast<std::size_t>(256 * (c % s.c) + image[static_cast<std::size_t>(pixel)])]);
        }
  }
  return images;
}
bool is_map(const Shape& output) { return output.h * output.w > 1; }
/// One policy's executor on a backend of its precision.
struct Run {
  virtual ~Run() = default;
  virtual void step(const Images& images, Watch& watch) = 0;
  virtual void measure(const Images& images, Measured& m) = 0;
  virtual const Plan& plan() const = 0;
};
/// Costs of a network on a backend's type, measured once.
template <class B>
const Costs& costs_on(B& backend, const Table& table, std::optional<Costs>& costs) {
  if (costs) return *costs;
  const bool map = is_map(table.shape(table.size()));
  return costs.emplace(map ? measure_costs(table, backend, {}, PixelCrossEntropy{}) : measure_costs(table, backend));
}
template <class B>
class RunOn final : public Run {
 public:
  RunOn(const Table& table, const PolicySpec& policy, B& backend, const std::vector<float>& parameters, std::vector<float>& gradients,
        const Costs& costs)
      : executor_(make_plan(table, policy, B::target, {.training = true, .rows_loss = is_map(table.shape(table.size()))}, costs), backend,
                  parameters.data(), gradients.data()) {}
  void step(const Images& images, Watch& watch) override {
    const Table& table = executor_.plan().table;
    const MemorySource<float> source(images.values.data(), table.input);
    const Shape& output = table.shape(table.size());
    if (is_map(output)) executor_.run(source, Labels::of_pixels(images.labels, output.h, output.w), PixelCrossEntropy{}, watch);
    else executor_.run(source, images.labels, SoftmaxCrossEntropy{}, watch);
  }
  void measure(const Images& images, Measured& m) override {
    Watch watch;
    m.planned_bytes = executor_.plan().peak_bytes();
    m.arena_bytes = executor_.arena().bytes();
    m.growth_bytes = resident_growth(executor_.arena(), [&] { step(images, watch); });
  }
  const Plan& plan() const override { return executor_.plan(); }

 private:
  Executor<B> executor_;
};
}   // namespace

Images make_images(const Input& input, const Shape& output) {
  const char* const root = std::getenv("LRCNN_DATA");
  if (root == nullptr || is_map(output)) return drawn(input, output);
  const std::filesystem::path folder = std::filesystem::path(root) / (input.c == 1 ? "fashion-mnist" : "cifar-10");
  return enlarged(load_dataset(folder, Split::train), input);
}

void NetworkPass::run(const std::vector<std::string>& wanted, int threads, int rounds, bool predicts) {
  if (done()) return;
  const Images images = make_images(case_.input, table_.shape(table_.size()));
  std::vector<float> parameters(static_cast<std::size_t>(parameter_count(table_))), gradients(parameters.size());
  initialize<float>(parameters_of(table_), He{}, 1, parameters);
  Cpu backend(threads);
  std::optional<CpuBf16> bf16;   // not every processor has kernels for it
  std::optional<Costs> costs, bf16_costs;
  std::vector<std::unique_ptr<Run>> runs(case_.policies.size());
  measured_.resize(case_.policies.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const NamedPolicy& policy = case_.policies[i];
    const bool in_bf16 = policy.spec.precision == Precision::bf16, measures = predicts || policy.spec.fit_bytes > 0;
    if (i > 0 && std::find(wanted.begin(), wanted.end(), policy.name) == wanted.end()) continue;
    if (in_bf16 && !bf16) bf16.emplace(threads);
    const Costs known = !measures ? Costs{} : in_bf16 ? costs_on(*bf16, table_, bf16_costs) : costs_on(backend, table_, costs);
    if (in_bf16) runs[i] = std::make_unique<RunOn<CpuBf16>>(table_, policy.spec, *bf16, parameters, gradients, known);
    else runs[i] = std::make_unique<RunOn<Cpu>>(table_, policy.spec, backend, parameters, gradients, known);
    runs[i]->measure(images, measured_[i].emplace());
    if (measures) measured_[i]->predicted = seconds(runs[i]->plan(), known);
  }
#ifdef LRCNN_WITH_ONEDNN
  std::optional<Convolutions> convolutions;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i] && case_.policies[i].name == "column-direct") convolutions.emplace(table_, threads);
#endif
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i]) continue;
      Watch watch;
      const auto start = Watch::Clock::now();
      runs[i]->step(images, watch);
      const double seconds = std::chrono::duration<double>(Watch::Clock::now() - start).count();
      measured_[i]->seconds.push_back(seconds);
      measured_[i]->outside.push_back(1 - watch.convolutions / seconds);
    }
#ifdef LRCNN_WITH_ONEDNN
    if (convolutions) convolutions_.push_back(convolutions->seconds());
#endif
  }
}
}   // namespace bench
