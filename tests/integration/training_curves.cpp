// Row-centric training learns, and learns the same as layer by layer.
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/data/detect.hpp>
#include <lrcnn/data/loader.hpp>
#include <lrcnn/data/shapes.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/policy/policy.hpp>
#include <lrcnn/train/trainer.hpp>
#include <doctest/doctest.h>
#include <cstdlib>
#include <sstream>
using namespace lrcnn;
namespace {
using Net = Sequential<Conv<8>, ReLU, MaxPool<>, Conv<16>, ReLU, MaxPool<>, Conv<16>, ReLU, Flatten, Linear<10>>;
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<0>>;   // the backend has no use for scratch
struct Run {
  std::vector<EpochRecord> history;
  Index peak = 0;
};
template <class Policy, class T = float>
Run train(const Dataset& data, const Dataset& test, const Optimizer& optimizer, Index epochs) {
  const Normalization normalization = normalization_of(data);
  const Loader<T> loader(data, {.batch = 20, .normalization = normalization});
  const Loader<T> test_loader(test, {.batch = 100, .shuffle = false, .normalization = normalization});
  Trainer<Net, Policy, Reference<T>> trainer(loader.input(), optimizer, {.schedule = CosineLr{}, .seed = 3});
  const Index peak = trainer.plan().peak_bytes();
  return {trainer.fit(loader, &test_loader, {.epochs = epochs}), peak};
}
/// Trains by column and by rows, compares the two, and returns the test accuracy by rows.
double compare(const Dataset& data, const Dataset& test, const Optimizer& optimizer, Index epochs) {
  const Run rows = train<Rows>(data, test, optimizer, epochs), column = train<Policy<Column, Workspace<0>>>(data, test, optimizer, epochs);
  REQUIRE(rows.history.size() == static_cast<std::size_t>(epochs));
  std::ostringstream text;
  for (std::size_t e = 0; e < rows.history.size(); ++e) {
    const EpochRecord &r = rows.history[e], &c = column.history[e];
    text << "\n  epoch " << e + 1 << ": training loss " << r.train_loss << " (column " << c.train_loss << "), test accuracy " << *r.test_accuracy
         << " (" << *c.test_accuracy << ")";
    // Rounding flips a mask now and then; from there on the two part.
    CHECK(std::abs(r.train_loss - c.train_loss) <= 0.1);
    CHECK(std::abs(*r.test_accuracy - *c.test_accuracy) <= 0.1);
  }
  MESSAGE(to_string(data), text.str(), "\n  peak ", rows.peak, " bytes (column ", column.peak, ")");
  CHECK(rows.history.front().train_loss == doctest::Approx(column.history.front().train_loss).epsilon(1e-3));
  CHECK(rows.history.back().train_loss < rows.history.front().train_loss);
  CHECK(rows.peak < column.peak);
  return *rows.history.back().test_accuracy;
}
}   // namespace
TEST_CASE("a network learns generated shapes by rows as it does by columns") {
  const Dataset data = make_shapes({.count = 1000, .h = 16, .w = 16});
  const Dataset test = make_shapes({.count = 300, .h = 16, .w = 16, .split = Split::test});
  CHECK(compare(data, test, AdamW{.lr = 0.005}, 8) > 0.5);   // chance is 0.1
}
TEST_CASE("in double the two learn the same to twelve digits") {
  const Dataset data = make_shapes({.count = 400, .h = 16, .w = 16}), test = make_shapes({.count = 100, .h = 16, .w = 16, .seed = 2});
  const Optimizer optimizer = Sgd{.lr = 0.02, .momentum = 0.9};
  const Run rows = train<Rows, double>(data, test, optimizer, 3), column = train<Policy<Column, Workspace<0>>, double>(data, test, optimizer, 3);
  for (std::size_t e = 0; e < 3; ++e) {
    CHECK(rows.history[e].train_loss == doctest::Approx(column.history[e].train_loss).epsilon(1e-12));
    CHECK(*rows.history[e].test_loss == doctest::Approx(*column.history[e].test_loss).epsilon(1e-12));
    CHECK(rows.history[e].test_accuracy == column.history[e].test_accuracy);
  }
  CHECK(rows.history[2].train_loss < rows.history[0].train_loss);
}
TEST_CASE("real data: Fashion-MNIST is learnt by rows as it is by columns") {
  const char* root = std::getenv("LRCNN_DATA");
  const auto folder = std::filesystem::path(root == nullptr ? "" : root) / "fashion-mnist";
  if (std::error_code error; root == nullptr || !std::filesystem::is_directory(folder, error)) {
    MESSAGE("skipped: set LRCNN_DATA to a folder that has fashion-mnist");
    return;
  }
  const Dataset data = subset(load_dataset(folder, Split::train), {0, 1500}), test = subset(load_dataset(folder, Split::test), {0, 500});
  CHECK(compare(data, test, AdamW{.lr = 0.005}, 2) > 0.6);
}
