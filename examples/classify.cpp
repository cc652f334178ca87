// Trains ResNet-18 by rows, with batch norms in training mode, on small images, and tells its accuracy over several seeds.
//
//   classify [DIR] [--seeds N] [--seed N] [--epochs N] [--batch N] [--images N] [--threads N] [--policy row|column] [--curve FILE]
//            [--at-least ACCURACY]
//
// DIR holds CIFAR-10, or any other IDX or CIFAR-10 files of at most ten classes; without it the program draws shapes, and says so. The
// network is torchvision's ResNet-18 as it is, with its 7x7 stem and pool: images of 32x32 are maps of 8x8 from the first block on.
// Images are padded by four pixels, cropped at random and flipped; SGD with Nesterov's momentum, weight decay for weights only, a
// warm-up of one epoch and then half a cosine. `bench/peers/classify.py` does the same with PyTorch.
//
// Each of --seeds runs, with seeds from --seed on, ends with the accuracy on the test images; mean and standard deviation follow.
// --curve writes what the first run came to: the loss of each step, and loss and accuracy on the test images after each epoch.
// At the end one batch goes through the trained network twice, layer by layer (column) and by rows: loss and gradients agree,
// memory does not. --at-least is the least mean accuracy: below it the status is 1. Bad input ends the program with status 2.
//
// ctest: --epochs 3 --images 480 --batch 16 --at-least 0.1 --curve @SCRATCH@/curve.csv
// thorough: --epochs 8 --images 1600 --batch 16 --at-least 0.15 --curve @SCRATCH@/curve.csv
#include "cpu_backend.hpp"
#include "image_data.hpp"
#include "program.hpp"
#include "step_figures.hpp"
#include <lrcnn/data/detect.hpp>
#include <lrcnn/lrcnn.hpp>
#include <CLI/CLI.hpp>
#include <iostream>
using namespace lrcnn;
namespace {
using Net = ResNet18<10>;
// The sums of residual blocks are kept; what lies between two of them is computed again, in slabs.
using Rows = Policy<Overlap<4>, CheckpointAtSums<>, RecomputeAll>;
using Whole = Policy<Column>;
struct Arguments {
  std::string folder, policy = "row", curve;
  Index seeds = 1, epochs = 20, batch = 128, images = 0;
  std::uint64_t seed = 1;
  int threads = 0;
  double at_least = 0;
};
/// What a training came to, step by step and epoch by epoch.
class Curve {
 public:
  void step(double loss) { text_ += std::to_string(++steps_) + "," + number_text(loss) + ",,\n"; }
  void epoch(const Metrics& test) {
    text_.erase(text_.size() - 3);   // the last step's line has them, too
    text_ += "," + number_text(test.loss()) + "," + number_text(test.accuracy()) + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  Index steps_ = 0;
  std::string text_ = "step,loss,test_loss,test_accuracy\n";
};
struct Figures {
  double mean = 0, deviation = 0;
};
/// The deviation is that of a sample; 0 of one.
Figures figures_of(const std::vector<double>& values) {
  Figures f;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) f.mean += v / n;
  for (const double v : values) f.deviation += (v - f.mean) * (v - f.mean);
  f.deviation = n > 1 ? std::sqrt(f.deviation / (n - 1)) : 0;
  return f;
}
std::string percent(double share) { return fixed_text(100 * share, 2) + " %"; }
/// One training. The trainer is left as it is then.
double train(BasicTrainer<Cpu>& trainer, const Loader<float>& images, const Loader<float>& test, const Arguments& arguments, Curve& curve) {
  ProgressLine line(std::cout, terminal_options(STDOUT_FILENO));
  double accuracy = 0;
  for (Index epoch = 0; epoch < arguments.epochs; ++epoch) {
    Metrics metrics;
    for (const auto& batch : images.epoch(epoch)) {
      const StepReport r = trainer.step(batch);
      metrics.add(r.loss, r.images, std::llround(r.accuracy * static_cast<double>(r.images)));
      curve.step(r.loss);
      line.update(
          {epoch + 1, arguments.epochs, batch.position() + 1, images.batches(), metrics.images, metrics.loss(), metrics.accuracy(), r.peak_bytes});
    }
    line.finish();
    const Metrics m = trainer.evaluate(test);
    curve.epoch(m), accuracy = m.accuracy();
    std::cout << "epoch " << epoch + 1 << ": test loss " << fixed_text(m.loss(), 4) << ", test accuracy " << percent(m.accuracy()) << "\n"
              << std::flush;
  }
  return accuracy;
}
int run(const Arguments& arguments) {
  check_written({arguments.curve}, {arguments.folder});
  const TrainAndTest data =
      load_or_draw(arguments.folder, arguments.images, {.count = arguments.images > 0 ? arguments.images : 4000, .channels = 3, .h = 32, .w = 32});
  if (data.train.classes > 10)
    throw DataError(error_text("folder '" + arguments.folder + "' has " + std::to_string(data.train.classes) + " classes",
                               "the network has 10 outputs", "use a data set of at most 10 classes"));
  const bool by_rows = arguments.policy == "row";
  const auto normalization = normalization_of(data.train);
  const Loader<float> test(data.test, {.batch = 100, .shuffle = false, .normalization = normalization});
  std::cout << "lrcnn " << version() << ", backend " << Cpu::name << "\n";
  if (!cpu_is_fast) std::cout << "This build has no oneDNN, so plain loops do the work, slowly.\n";
  std::cout << to_string(data.train) << "\n" << to_string(data.test) << "\n";
  if (arguments.folder.empty()) std::cout << "No folder was given, so these are drawn shapes, not a real data set.\n";
  std::vector<double> accuracies;
  std::unique_ptr<BasicTrainer<Cpu>> trainer;
  for (Index i = 0; i < arguments.seeds; ++i) {
    const std::uint64_t seed = arguments.seed + static_cast<std::uint64_t>(i);
    const Augmentation augmentation{.flip = true, .pad = 4, .crop_h = data.train.shape.h, .crop_w = data.train.shape.w};
    const Loader<float> images(
        data.train, {.batch = arguments.batch, .drop_last = true, .seed = seed, .normalization = normalization, .augmentation = augmentation});
    const double lr = 0.02 * static_cast<double>(arguments.batch) / 128;
    trainer = std::make_unique<BasicTrainer<Cpu>>(Net::layers, by_rows ? Rows::value : Whole::value, images.input(),
                                                  Sgd{.lr = lr, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4, .decay = Decay::marked},
                                                  TrainerOptions{.schedule = CosineLr{.warm_up = epochs(1)},
                                                                 .seed = seed,
                                                                 .threads = arguments.threads,
                                                                 .clock = {images.batches(), images.batches() * arguments.epochs}});
    std::cout << "\nSeed " << seed << ": training " << (by_rows ? "by rows" : "layer by layer") << ", " << parameter_elements(trainer->layout())
              << " parameters, planned peak " << format_bytes(trainer->plan().peak_bytes()) << ", " << trainer->backend().describe() << "\n"
              << std::flush;
    Curve curve;
    accuracies.push_back(train(*trainer, images, test, arguments, curve));
    if (i == 0 && !arguments.curve.empty()) write_file_atomically(arguments.curve, std::as_bytes(std::span(curve.text())));
    if (i + 1 < arguments.seeds) continue;
    const Batch<float> batch = images.batch(0, 0);
    Candidate<> column(Net::layers, Whole::value, batch, batch.labels(), trainer->parameters(), trainer->backend());
    Candidate<> row(Net::layers, Rows::value, batch, batch.labels(), trainer->parameters(), trainer->backend());
    for (int round = 0; round < 7; ++round) column.time(), row.time();
    print_table("on " + std::to_string(batch.size()) + " images, direct arithmetic, exact batch norms", column, row, worst_difference(column, row));
  }
  const Figures f = figures_of(accuracies);
  std::cout << "\nTest accuracy of " << arguments.seeds << (arguments.seeds == 1 ? " run:" : " runs:");
  for (const double a : accuracies) std::cout << " " << percent(a);
  std::cout << "; mean " << percent(f.mean) << ", standard deviation " << percent(f.deviation) << "\n";
  if (f.mean >= arguments.at_least) return 0;
  std::cout << "That is below " << percent(arguments.at_least) << ", which --at-least asks for.\n";
  return 1;
}
}   // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Trains ResNet-18 by rows on small images, with several seeds.");
  app.add_option("DIR", arguments.folder, "folder with IDX or CIFAR-10 files; without it, shapes are drawn");
  app.add_option("--seeds", arguments.seeds, "trainings, each with a seed of its own")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--seed", arguments.seed, "the first seed")->capture_default_str();
  app.add_option("--epochs", arguments.epochs, "passes over the training images")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--batch", arguments.batch, "images in a step")->check(CLI::Range(2, 65536))->capture_default_str();
  app.add_option("--images", arguments.images, "train on the first so many images only")->check(CLI::Range(1, 1000000000));
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  app.add_option("--policy", arguments.policy, "how to train: row or column")->check(CLI::IsMember({"row", "column"}))->capture_default_str();
  app.add_option("--curve", arguments.curve, "file to write the first run's losses and accuracies to, as CSV");
  app.add_option("--at-least", arguments.at_least, "status 1 if the mean accuracy is below this")->check(CLI::Range(0.0, 1.0));
  return run_program(app, argc, argv, [&] { return run(arguments); });
}
