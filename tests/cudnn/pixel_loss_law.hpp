#pragma once
// Training with losses over pixels on a device, real or pretended, beside the reference: a small U with dropout, under policies that cut.
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/layer/dice.hpp>
#include <lrcnn/lrcnn.hpp>
#include "support/counted_labels.hpp"
#include "support/own_dice.hpp"
#include <doctest/doctest.h>
namespace lrcnn::testing {
using PixelNet =
    Sequential<Conv<6>, BatchNorm, ReLU, MaxPool<>, Conv<6>, ReLU, ConvTranspose<6>, Dropout<std::ratio<1, 8>>, Conv<3, Window{.kernel = 1}>>;
inline constexpr Index pixel_images = 4, pixel_height = 20, pixel_width = 12;
inline constexpr Input pixel_input{pixel_images, 2, pixel_height, pixel_width};
using Reference32 = Reference<float, Target::all_channels>;
struct PixelNoise {
  std::vector<float> pixels, numbers;
  std::vector<std::int32_t> classes;
  explicit PixelNoise(std::uint64_t seed) {
    const Random random(seed);
    for (Index i = 0; i < pixel_input.count(); ++i) pixels.push_back(static_cast<float>(random.normal(static_cast<std::uint64_t>(i))));
    for (Index i = 0; i < pixel_images * pixel_height * pixel_width; ++i)
      classes.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(i) + 100'000, 4)) - 1);   // -1 does not count
    for (Index i = 0; i < 3 * pixel_images * pixel_height * pixel_width; ++i)
      numbers.push_back(static_cast<float>(random.below(static_cast<std::uint64_t>(i) + 200'000, 2)));
  }
  MemorySource<float> source() const { return {pixels.data(), pixel_input}; }
  Labels mask() const { return Labels::of_pixels(classes, pixel_height, pixel_width); }
  Labels targets() const { return Labels::of_targets(numbers, 3, pixel_height, pixel_width); }
};
/// A loss of the program's own: the squared error, by halves.
struct Halves {
  static constexpr std::string_view name = "halves";
  double total(const Labels& labels, const Shape& output) const { return MeanSquaredError{}.total(labels, output); }
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>& dx, double scale, LossResult& result) const {
    LossResult own;
    MeanSquaredError{}(logits, labels, first, dx, 0.5 * scale, own);
    result.sum += 0.5 * own.sum, result.correct += own.correct, result.count += own.count;
  }
};
inline const std::vector<PolicySpec> pixel_policies{Policy<Column>::value, Policy<Overlap<3>, RecomputeAll>::value,
                                                    Policy<Share<2>, CheckpointAtPools>::value, Policy<ByImages<2, Overlap<2>>>::value,
                                                    Policy<ExtraPasses<Overlap<3>>, RecomputeAll>::value};
inline PolicySpec with_workspace(PolicySpec policy) {
  policy.workspace_bytes = 1_MiB;
  return policy;
}
/// Gradients and losses of a step, thrice, on one stream and on two; make() gives a backend.
template <class L, class Make>
void as_the_reference(const L& loss, bool targets, Make make) {
  using B = decltype(make());
  const PixelNoise batch(5);
  const Labels labels = targets ? batch.targets() : batch.mask();
  for (const PolicySpec& policy : pixel_policies) {
    INFO(L::name, ", ", to_string(policy));
    BasicTrainer<Reference32, L> reference(PixelNet::layers, with_workspace(policy), pixel_input, Sgd{.lr = 0.05}, {.seed = 3}, loss);
    for (const Index streams : {1, 2}) {
      PolicySpec here = with_workspace(policy);
      here.streams = streams;
      BasicTrainer<B, L> trainer(PixelNet::layers, here, pixel_input, Sgd{.lr = 0.05}, {.seed = 3}, loss, make());
      CHECK(trainer.plan().options.rows_loss == RowLocalLoss<L, float>);
      for (int i = 0; i < 3; ++i) {   // step by step, recorded, started again: the same batch, other masks of the dropout only with a step
        const LossResult want = reference.gradients_of(batch.source(), labels), got = trainer.gradients_of(batch.source(), labels);
        CHECK(got.count == want.count);
        CHECK(got.total == want.total);
        CHECK(std::abs(got.correct - want.correct) <= 1);
        CHECK(std::abs(got.sum - want.sum) <= 1e-4 * std::abs(want.sum));
        const auto a = trainer.read_gradients(), b = reference.read_gradients();
        double difference = 0, size = 0;
        for (std::size_t e = 0; e < a.size(); ++e) difference += std::pow(a[e] - b[e], 2), size += std::pow(b[e], 2);
        CHECK(difference <= 1e-8 * size);
      }
      // Labels by rows, of a slab at a time, give the same bits.
      const CountedLabels rows(labels);
      BasicTrainer<B, L> by_rows(PixelNet::layers, here, pixel_input, Sgd{.lr = 0.05}, {.seed = 3}, loss, make());
      const auto most = [&] {
        Index elements = 0;
        for (const Step& step : by_rows.plan().steps)
          if (step.op == Op::loss) elements = std::max(elements, step.x.images.size() * step.x.rows.size() * pixel_width * labels.channels());
        return elements;
      };
      for (int i = 0; i < 3; ++i) {
        const StepReport report = trainer.step(batch.source(), labels), own = by_rows.step(batch.source(), Labels::from_rows(rows));
        CHECK(report.loss < 10);
        CHECK(own.loss == report.loss);
        CHECK(own.label_bytes == 4 * most());
        CHECK(by_rows.read_parameters() == trainer.read_parameters());
      }
    }
  }
}
/// Every loss that has loops for a device, and two of the program's own.
template <class Make>
void pixel_loss_law(Make make) {
  as_the_reference(PixelCrossEntropy{.weights = {0.5, 2, 1}, .ignore = -1}, false, make);
  as_the_reference(PixelBinaryCrossEntropy{.positive_weight = 2}, true, make);
  as_the_reference(PixelFocal{}, true, make);
  as_the_reference(Huber{}, true, make);
  as_the_reference(Halves{}, true, make);
  as_the_reference(DiceLoss{.ignore = -1}, false, make);
  as_the_reference(OwnDice{{.ignore = -1}}, false, make);
}
}   // namespace lrcnn::testing
