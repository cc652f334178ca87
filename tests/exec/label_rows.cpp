// Labels by rows in training steps: the bits of labels in memory, a slab's rows at a time, and errors in the middle of a run.
#include "exec/label_rows.hpp"
#include "support/error_of.hpp"
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr Shape tall{1, 2, 600, 8};
using Net = Sequential<Conv<4>, ReLU, Conv<3>>;
using Rows = Policy<Overlap<60>, RecomputeAll, Workspace<0>>;
struct TallBatch {
  std::vector<double> pixels;
  std::vector<std::int32_t> mask;
  TallBatch() {
    const Random random(9);
    for (Index e = 0; e < tall.count(); ++e) pixels.push_back(random.normal(static_cast<std::uint64_t>(e)));
    for (Index e = 0; e < tall.h * tall.w; ++e) mask.push_back(static_cast<std::int32_t>(e * 7 % 11 % 3));
  }
  MemorySource<double> source() const { return {pixels.data(), tall}; }
  Labels labels() const { return Labels::of_pixels(mask, tall.h, tall.w); }
};
template <class L = PixelCrossEntropy>
using Trainee = Trainer<Net, Rows, Reference<double>, L>;
/// A loss that asks for labels of the next row, too.
struct LooksAhead : MeanSquaredError {
  static constexpr std::string_view name = "looks_ahead";
  double total(const Labels& labels, const Shape& output) const { return PixelCrossEntropy{}.total(labels, output); }
  template <class T>
  void operator()(const View<const T>& logits, const Labels& labels, Index first, const View<T>&, double, LossResult&) const {
    static_cast<void>(labels.classes(first, std::min(logits.row0 + logits.rows, labels.height() - 1)));
  }
};
}   // namespace
TEST_CASE("labels by rows give the bits that labels in memory give, over random networks and policies") {
  Reference<double> single(1);
  Reference<float, 8, 3> blocked(2);
  const int runs = random_labels_law(single, 1, 20) + random_labels_law(blocked, 50, 8);
  MESSAGE(runs, " plans");
  CHECK(runs > 150);
}
TEST_CASE("a step over a tall map has a slab's labels in memory, reads them twice in the first step and once in others") {
  const TallBatch batch;
  const CountedLabels rows(batch.labels());
  Trainee<> by_rows(tall, Sgd{.lr = 0.1}), in_memory(tall, Sgd{.lr = 0.1});
  const Index all = tall.h * tall.w;
  for (int step = 0; step < 3; ++step) {
    rows.forget();
    const StepReport got = by_rows.step(batch.source(), Labels::from_rows(rows)), want = in_memory.step(batch.source(), batch.labels());
    CHECK(got.loss == want.loss);
    CHECK(by_rows.read_parameters() == in_memory.read_parameters());
    CHECK(rows.pixels == (step == 0 ? 2 : 1) * all);
    CHECK(rows.most_rows() <= 10);
    CHECK(rows.was_read == rows.expected);
    CHECK(got.label_bytes == rows.most_rows() * tall.w * 4);
    CHECK(want.label_bytes == 0);
  }
  rows.forget();
  by_rows.evaluate(batch.source(), Labels::from_rows(rows));
  CHECK(rows.pixels == all);
  const CountedLabels balanced(batch.labels());
  class_balance(balanced, 3);
  CHECK(balanced.pixels == all);
  Trainee<>(tall, Sgd{.lr = 0.1}).step(batch.source(), Labels::from_rows(balanced));
  CHECK(balanced.pixels == 2 * all);   // the total is known from the class balance
  const CountedLabels changing(batch.labels(), false);
  for (int step = 0; step < 2; ++step) {
    changing.forget();
    by_rows.accumulate(batch.source(), Labels::from_rows(changing));
    CHECK(changing.pixels == 2 * all);
  }
  by_rows.update();
}
TEST_CASE("an error of labels in the middle of a run leaves a training as it was") {
  const TallBatch batch;
  CountedLabels rows(batch.labels());
  Trainee<> trainer(tall, Sgd{.lr = 0.1, .momentum = 0.9}), undisturbed(tall, Sgd{.lr = 0.1, .momentum = 0.9});
  for (const bool constant : {true, false}) {   // in the loss's steps, and in the pass before
    CountedLabels fails(batch.labels(), constant);
    if (constant) trainer.evaluate(batch.source(), Labels::from_rows(fails));
    fails.before = [](Index, Range r) {
      if (r.contains({333, 334})) throw DataError("lrcnn: row 333 of the mask is damaged");
    };
    const auto before = trainer.read_parameters();
    for (int i = 0; i < 2; ++i)
      CHECK(error_of<DataError>([&] { trainer.step(batch.source(), Labels::from_rows(fails)); }) == "lrcnn: row 333 of the mask is damaged");
    CHECK(trainer.steps_done() == (constant ? 0 : 1));
    CHECK(trainer.read_parameters() == before);
    CHECK(trainer.step(batch.source(), Labels::from_rows(rows)).loss == undisturbed.step(batch.source(), batch.labels()).loss);
    CHECK(trainer.read_parameters() == undisturbed.read_parameters());
  }
}
TEST_CASE("labels by rows that do not fit are refused before a run") {
  const TallBatch batch;
  const CountedLabels rows(batch.labels());
  Trainee<> trainer({1, 2, 500, 8}, Sgd{});
  const std::vector<double> pixels(2 * 500 * 8);
  const MemorySource<double> source(pixels.data(), {1, 2, 500, 8});
  CHECK(error_of<DataError>([&] { trainer.step(source, Labels::from_rows(rows)); }) ==
        "lrcnn: masks of 600x8 are given for the network's output of 500x8; every pixel of the output has one label; make the masks as large as the "
        "output");
  CHECK(rows.was_read.empty());
  Trainee<LooksAhead> ahead(tall, Sgd{});
  CHECK(error_of<DataError>([&] {
          ahead.step(batch.source(), Labels::from_rows(rows));
        }).find("of labels by rows a loss has those of the rows that it is given; let the loss use") != std::string::npos);
  CHECK(ahead.step(batch.source(), batch.labels()).images == 1);   // in memory they all are there
}
