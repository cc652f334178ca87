// The smallest program that uses the library. It trains a network by rows, on shapes that it draws itself.
// ctest:
#include <lrcnn/lrcnn.hpp>
#include <iostream>
using namespace lrcnn;

using Net = Sequential<Conv<8>, ReLU, Conv<8>, ReLU, MaxPool<>, Conv<16>, ReLU, Conv<16>, ReLU, MaxPool<>, Flatten, Linear<10>>;
using Rows = Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, Workspace<0>>;   // four slabs of rows, one after the other

int main() {
  const Dataset shapes = make_shapes({.count = 600, .h = 16, .w = 16});
  const Loader<float> loader(shapes, {.batch = 20, .normalization = normalization_of(shapes)});
  Trainer<Net, Rows, Reference<float>> trainer(loader.input(), AdamW{.lr = 0.005});
  for (Index epoch = 0; epoch < 6; ++epoch)
    for (const auto& batch : loader.epoch(epoch)) trainer.step(batch);
  std::cout << "accuracy " << std::lround(100 * trainer.evaluate(loader).accuracy()) << " %\n"
            << "memory " << format_bytes(trainer.plan().peak_bytes()) << ", layer by layer "
            << format_bytes(peak_bytes<Net, Policy<Column, Workspace<0>>>(loader.input())) << "\n";
}
