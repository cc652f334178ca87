// Trains a network on one's own photographs from weights that others have trained: first its head, then all of it, by rows.
//
//   finetune [DIR] [--weights FILE] [--network resnet18|resnet50] [--allow-missing PATTERN]... [--size N] [--megabytes N] [--head-epochs N]
//            [--epochs N] [--batch N] [--lr N] [--images N] [--seed N] [--threads N] [--skip-damaged] [--save FILE] [--at-least ACCURACY]
//
// DIR has a folder for each class with photographs (JPEG, PNG, TIFF); without it the program draws shapes, and says so. --weights is a
// safetensors file, torchvision's ResNet for example; docs/weights.md tells how to get one. What it lacks, or has in another shape, must be
// named by --allow-missing: the head, fc.*, unless other patterns are given, which take its place.
//
// With weights, batch norms keep the running statistics of the file (FrozenBatchNorm), as is usual with few large images, and for --head-epochs
// everything that was loaded stays as it is. Without weights, all is trained from the beginning, with batch norms in training mode. A policy that
// fits into --megabytes is chosen, so images may be as large as the machine's memory does not allow layer by layer. --save writes what was
// trained as safetensors, with torchvision's names. Bad input ends the program with status 2; an accuracy below --at-least with 1.
//
// ctest: --size 64 --images 60 --epochs 1 --batch 6 --megabytes 64 --save @SCRATCH@/weights.safetensors
#include "cpu_backend.hpp"
#include "photo_folder.hpp"
#include "program.hpp"
#include <lrcnn/interop/safetensors.hpp>
#include <lrcnn/interop/weights.hpp>
#include <lrcnn/lrcnn.hpp>
#include <CLI/CLI.hpp>
#include <iostream>
using namespace lrcnn;
namespace {
struct Arguments {
  std::string folder, weights, network = "resnet18", save;
  std::vector<std::string> allow_missing{"fc.*"};
  Index megabytes = 256, head_epochs = 1, epochs = 2, batch = 4;
  PhotoOptions photos{.size = 512};
  double lr = 0.01, at_least = 0;
  std::uint64_t seed = 1;
  int threads = 0;
};
/// Means and deviations of the photographs that torchvision's weights were trained on.
const Normalization torchvision_normalization{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
/// A ResNet with so many classes.
template <class Norm>
std::vector<Layer> resnet(const std::string& name, Index classes) {
  std::vector<Layer> layers;
  const auto take = [&](const auto& list) { layers.assign(list.begin(), list.end()); };
  if (name == "resnet50") take(ResNet50<1000, Norm>::layers);
  else take(ResNet18<1000, Norm>::layers);
  layers.back().channels = classes;
  return layers;
}
/// Trains some epochs, and tells of each what the test images say.
double train(BasicTrainer<Cpu>& trainer, const Loader<float>& images, const Loader<float>& test, Index epochs, std::string_view what) {
  double accuracy = 0;
  for (Index epoch = 0; epoch < epochs; ++epoch) {
    Metrics metrics;
    for (const auto& batch : images.epoch(epoch)) {
      const StepReport r = trainer.step(batch);
      metrics.add(r.loss, r.images, std::llround(r.accuracy * static_cast<double>(r.images)));
    }
    const Metrics m = trainer.evaluate(test);
    accuracy = m.accuracy();
    std::cout << what << ", epoch " << epoch + 1 << ": loss " << fixed_text(metrics.loss(), 4) << ", test loss " << fixed_text(m.loss(), 4)
              << ", test accuracy " << fixed_text(100 * accuracy, 1) << " %\n"
              << std::flush;
  }
  return accuracy;
}
void tell_memory(BasicTrainer<Cpu>& trainer, std::span<const Layer> layers, const Input& input) {
  const Index column = make_plan(make_table(layers, input), Policy<Column>::value, Cpu::target).peak_bytes();
  std::cout << parameter_elements(trainer.layout()) << " parameters, images of " << input.h << "x" << input.w << ", " << input.n
            << " in a step; memory of a step " << format_bytes(trainer.plan().peak_bytes()) << ", layer by layer " << format_bytes(column) << "\n"
            << std::flush;
}
int run(const Arguments& arguments) {
  check_written({arguments.save}, {arguments.folder, arguments.weights});
  const bool pretrained = !arguments.weights.empty();
  std::optional<SafetensorsFile> file;
  if (pretrained) file.emplace(arguments.weights);   // before photographs are decoded
  const Index count = arguments.photos.images, size = arguments.photos.size;
  const TrainAndTest data = arguments.folder.empty()
                                ? load_or_draw("", 0, {.count = std::min<Index>(count, 600), .channels = 3, .h = size, .w = size})
                                : load_photographs(arguments.folder, arguments.photos);
  std::cout << to_string(data.train) << "\n" << to_string(data.test) << "\n";
  if (arguments.folder.empty()) std::cout << "No folder was given, so these are drawn shapes, not photographs.\n";
  if (!cpu_is_fast) std::cout << "This build has no oneDNN, so plain loops do the work, slowly.\n";
  const Loader<float> images(data.train, {.batch = arguments.batch,
                                          .drop_last = true,
                                          .seed = arguments.seed,
                                          .normalization = torchvision_normalization,
                                          .augmentation = {.flip = true}});
  const Loader<float> test(data.test, {.batch = arguments.batch, .shuffle = false, .normalization = torchvision_normalization});
  const auto layers =
      pretrained ? resnet<FrozenBatchNorm>(arguments.network, data.train.classes) : resnet<BatchNorm>(arguments.network, data.train.classes);
  PolicySpec policy = Policy<Fit<256_MiB>>::value;
  policy.fit_bytes = arguments.megabytes * 1000000;
  const auto optimizer = [](double lr) { return Sgd{.lr = lr, .momentum = 0.9, .weight_decay = 1e-4, .decay = Decay::marked}; };
  TrainerOptions options{.seed = arguments.seed, .threads = arguments.threads};
  std::vector<float> parameters;
  double accuracy = 0;
  if (pretrained) {
    const auto layout = parameters_of(make_table(layers, images.input()));
    parameters.resize(static_cast<std::size_t>(flat_elements(layout)));
    initialize<float>(layout, options.initializer, options.seed, parameters);
    const WeightReport report = read_weights(*file, layout, std::span(parameters), {.allow_missing = arguments.allow_missing});
    std::cout << to_string(report) << "\n";
    options.rules = freeze_loaded(report, layout);
    if (report.missing.empty()) std::cout << "Nothing was missing, so there is no new head to be trained alone.\n";
    else if (arguments.head_epochs > 0) {
      BasicTrainer<Cpu> head(layers, policy, images.input(), optimizer(arguments.lr), options);
      head.write_parameters(parameters);
      tell_memory(head, layers, images.input());
      accuracy = train(head, images, test, arguments.head_epochs, "head");
      parameters = head.read_parameters();
    }
    options.rules.clear();
  }
  BasicTrainer<Cpu> trainer(layers, policy, images.input(), optimizer(pretrained ? arguments.lr / 10 : arguments.lr), options);
  if (pretrained) trainer.write_parameters(parameters);
  tell_memory(trainer, layers, images.input());
  if (arguments.epochs > 0) accuracy = train(trainer, images, test, arguments.epochs, "all");
  if (!arguments.save.empty()) {
    write_safetensors(arguments.save, weights_of(trainer).tensors);
    std::cout << "Weights are in " << arguments.save << "\n";
  }
  if (accuracy >= arguments.at_least) return 0;
  std::cout << "The accuracy is below " << fixed_text(100 * arguments.at_least, 1) << " %, which --at-least asks for.\n";
  return 1;
}
}   // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  arguments.photos.images = 600;
  CLI::App app("Trains a ResNet on photographs, from weights in a safetensors file.");
  app.add_option("DIR", arguments.folder, "folder with a folder of photographs for each class; without it, shapes are drawn");
  app.add_option("--weights", arguments.weights, "safetensors file with the weights to begin with")->check(not_empty());
  app.add_option("--network", arguments.network, "resnet18 or resnet50")->check(CLI::IsMember({"resnet18", "resnet50"}))->capture_default_str();
  app.add_option("--allow-missing", arguments.allow_missing,
                 "pattern of parameters that the file of --weights may lack, in place of fc.*, the head; may be given more than once: name fc.* too "
                 "where it is "
                 "to stay allowed")
      ->allow_extra_args(false)   // one at a time: DIR may stand behind it
      ->capture_default_str();
  app.add_option("--size", arguments.photos.size, "rows and columns of the images")->check(CLI::Range(32, 65536))->capture_default_str();
  app.add_option("--megabytes", arguments.megabytes, "memory of a step, its arena: without parameters and optimizer")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  app.add_option("--head-epochs", arguments.head_epochs, "passes that train the head alone; none without --weights, or where its file lacks nothing")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--epochs", arguments.epochs, "passes that train everything")->check(CLI::Range(0, 100000))->capture_default_str();
  app.add_option("--batch", arguments.batch, "images in a step")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--lr", arguments.lr, "learning rate of the head; everything is trained with a tenth of it, or without --weights with all of it")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--images", arguments.photos.images, "images to train on, at most")->check(CLI::Range(2, 1000000000))->capture_default_str();
  app.add_option("--seed", arguments.seed, "of what is drawn at random")->capture_default_str();
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  app.add_flag("--skip-damaged", arguments.photos.skip_damaged, "leave out photographs that cannot be read");
  app.add_option("--save", arguments.save, "safetensors file to write the weights to")->check(not_empty());
  app.add_option("--at-least", arguments.at_least, "status 1 if the accuracy is below this")->check(CLI::Range(0.0, 1.0));
  return run_program(app, argc, argv, [&] { return run(arguments); });
}
