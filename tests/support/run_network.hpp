#pragma once
// Runs a layer table once under a policy and keeps everything that can be compared.
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/exec/executor.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/train/initializer.hpp>
#include <cmath>
#include <vector>
namespace lrcnn::testing {
/// Random parameters, images and labels for a table, the same for the same seed.
template <class T>
struct Problem {
  Table table;
  std::vector<Parameter> layout;
  std::vector<T> parameters, images;
  std::vector<std::int32_t> labels;
  Problem(std::span<const Layer> layers, const Input& input, std::uint64_t seed) : table(make_table(layers, input)), layout(parameters_of(table)) {
    parameters.assign(static_cast<std::size_t>(parameter_count(table)), T{0});
    initialize<T>(layout, He{}, seed, parameters);
    const Random random(seed, 77);
    for (const Parameter& p : layout)   // biases too, so that slabs wholly in padding show
      for (Index i = 0; p.shape.fan_in == 0 && i < p.shape.count(); ++i) {
        const auto place = static_cast<std::uint64_t>(p.offset + i);
        const double first = table.node(p.layer).layer.kind == Kind::norm ? p.shape.fill : 0;
        parameters[static_cast<std::size_t>(place)] =
            static_cast<T>(first + (p.shape.running ? 0.3 * random.uniform(place) : 0.1 * random.normal(place)));
      }
    images.resize(static_cast<std::size_t>(input.count()));
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<T>(random.normal(1000000 + i));
    const Index classes = table.shape(table.size()).c;
    for (Index i = 0; i < input.n; ++i)
      labels.push_back(static_cast<std::int32_t>(random.below(2000000 + static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(classes))));
  }
};
/// A problem's labels, as a loss of type L wants them.
template <class L, class T>
Labels labels_for(const Problem<T>& problem) {
  const Shape& output = problem.table.shape(problem.table.size());
  if constexpr (RowLocalLoss<L, T>) return Labels::of_pixels(problem.labels, output.h, output.w);
  else return problem.labels;
}
template <class T>
struct Outcome {
  LossResult loss;
  std::vector<T> output, gradients, input_gradient;
  Index peak = 0;
};
template <class M, class T>
std::vector<M> dense_copy(const View<const T>& v) {
  std::vector<M> out;
  for (Index n = 0; n < v.n; ++n)
    for (Index c = 0; c < v.c; ++c)
      for (Index y = v.row0; y < v.row0 + v.rows; ++y)
        for (Index x = 0; x < v.w; ++x) out.push_back(v(n, c, y, x));
  return out;
}
/// One training step without an update. The arena is filled with NaN first, so that what is not written shows. With a loss over pixels,
/// which the problem has a label for each of, the output goes through it slab by slab and is not kept.
template <class B, class L = SoftmaxCrossEntropy, class T = typename B::element, class M = master_t<T>>
Outcome<M> run_once(const Problem<M>& problem, const PolicySpec& policy, B& backend, bool input_gradient = true, const L& loss = {}) {
  Outcome<M> outcome;
  outcome.gradients.assign(problem.parameters.size(), std::nan(""));
  for (const Parameter& p : problem.layout)   // a frozen norm's are not written
    if (p.shape.running) std::ranges::fill(elements_of(p, std::span<M>(outcome.gradients)), M{0});
  const PlanOptions options{.training = true, .input_gradient = input_gradient, .rows_loss = RowLocalLoss<L, T>};
  Executor<B> executor(make_plan(problem.table, policy, B::target, options), backend, problem.parameters.data(), outcome.gradients.data());
  T* memory = reinterpret_cast<T*>(executor.arena().data());
  std::fill(memory, memory + executor.arena().bytes() / static_cast<Index>(sizeof(T)), static_cast<T>(std::nan("")));
  const MemorySource<M> source(problem.images.data(), problem.table.input);
  outcome.loss = executor.run(source, labels_for<L>(problem), loss);
  if (!options.rows_loss) outcome.output = dense_copy<M>(executor.output());
  if (input_gradient) outcome.input_gradient = dense_copy<M>(executor.input_gradient());
  outcome.peak = executor.plan().peak_bytes();
  return outcome;
}
template <class T>
double norm(std::span<const T> a) {
  double sum = 0;
  for (const T v : a) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}
template <class T>
double distance(std::span<const T> a, std::span<const T> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return std::isnan(sum) ? INFINITY : std::sqrt(sum);
}
/// The largest |a-b| / max(|b|, |whole gradient of b|) over the tensors of two outcomes (algorithms, exactness).
template <class T>
double worst_difference(const Problem<T>& problem, const Outcome<T>& a, const Outcome<T>& b) {
  const double whole = std::hypot(norm<T>(b.gradients), norm<T>(b.input_gradient));
  double worst = 0;
  const auto compare = [&](std::span<const T> x, std::span<const T> y, double floor) {
    const double scale = std::max(norm(y), floor);
    const double d = distance(x, y);
    if (d > 0) worst = std::max(worst, scale > 0 ? d / scale : INFINITY);
  };
  compare(a.output, b.output, 0);
  compare(a.input_gradient, b.input_gradient, whole);
  for (const Parameter& p : problem.layout)
    compare(elements_of(p, std::span<const T>(a.gradients)), elements_of(p, std::span<const T>(b.gradients)), whole);
  return std::max(worst, std::abs(a.loss.sum - b.loss.sum) / std::max(1.0, std::abs(b.loss.sum)));
}
}   // namespace lrcnn::testing
