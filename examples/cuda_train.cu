// The demo's training on a GPU: the same network, policy and data; the backend is the only difference.
//
//   cuda_train [DIR] [EPOCHS]
//
// DIR holds Fashion-MNIST or any other IDX or CIFAR-10 files; without it the program draws shapes and trains on those.
// Without a GPU it says so and ends with status 77.
//
// ctest:
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/data/detect.hpp>
#include <lrcnn/lrcnn.hpp>
#include <cstdlib>
#include <iostream>
using namespace lrcnn;
namespace {
using Net = Sequential<Conv<16>, ReLU, Conv<16>, ReLU, MaxPool<>, Conv<32>, ReLU, Conv<32>, ReLU, MaxPool<>, Conv<64>, ReLU, MaxPool<>, Flatten,
                       Linear<128>, ReLU, Linear<10>>;
using Rows = Policy<Overlap<7>, CheckpointAtPools, RecomputeAll, Workspace<16_MiB>>;
}   // namespace

int main(int argc, char** argv) {
  try {
    if (const std::string problem = cudnn::device_problem(); !problem.empty()) {
      std::cerr << "lrcnn skips: " << problem << "\n";
      return 77;
    }
    const std::string folder = argc > 1 ? argv[1] : "";
    const Index epochs = argc > 2 ? std::atol(argv[2]) : 2;
    if (argc > 3 || epochs < 1)
      throw Error(error_text("arguments not understood", "usage: cuda_train [DIR] [EPOCHS]", "give a folder and a number of epochs"));
    const Dataset train = folder.empty() ? make_shapes({.count = 12000}) : load_dataset(folder, Split::train);
    const Dataset test = folder.empty() ? make_shapes({.count = 2000, .split = Split::test}) : load_dataset(folder, Split::test);
    if (folder.empty()) std::cout << "no folder given: training on generated shapes, not on real images\n";
    const Normalization normalization = normalization_of(train);
    const Loader<float> batches(train, {.batch = 128, .seed = 1, .normalization = normalization, .augmentation = {.flip = true}});
    const Loader<float> held_out(test, {.batch = 512, .shuffle = false, .normalization = normalization});
    Trainer<Net, Rows, Cudnn> trainer(batches.input(), Sgd{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4});
    cudnn::DeviceInfo device;
    cudnn::check(trainer.backend().library().info(device), "asking for the device");
    std::cout << device.name << ", cuDNN " << device.cudnn_version << "; arena " << format_bytes(trainer.arena_bytes()) << ", "
              << trainer.backend().convolutions() << " convolutions built\n";
    trainer.fit(batches, &held_out, {.epochs = epochs, .progress = &std::cout});
    return 0;
  } catch (const Error& e) {
    std::cerr << e.what() << "\n";
    return 2;
  }
}
