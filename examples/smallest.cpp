// The smallest program that uses the library: trains a network by rows on drawn shapes. Needs nothing but the headers.
// ctest:
#include <lrcnn/lrcnn.hpp>
#include <iostream>
using namespace lrcnn;

using Net = Sequential<Conv<16>, ReLU, MaxPool<>, Conv<32>, ReLU, MaxPool<>, Conv<32>, ReLU, GlobalAvgPool, Linear<10>>;
using Rows = Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, Workspace<0>>;   // each stage in 4 slabs of rows

int main() {
  const Dataset shapes = make_shapes({.count = 2000}), others = make_shapes({.count = 500, .split = Split::test});
  const Loader<float> train(shapes, {.batch = 50}), test(others, {.batch = 50});
  Trainer<Net, Rows, Reference<float>> trainer(train.input(), AdamW{.lr = 0.005});   // or Onednn, which is fast
  std::cout << "planned peak " << trainer.plan().peak_bytes() << " bytes\n";
  for (Index epoch = 0; epoch < 4; ++epoch)
    for (const auto& batch : train.epoch(epoch)) trainer.step(batch);
  std::cout << "test accuracy " << std::lround(100 * trainer.evaluate(test).accuracy()) << " %\n";
}
