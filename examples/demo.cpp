// Trains a network row by row, then shows what that saves.
//
//   demo [DIR] [--summary FILE] [--epochs N] [--batch N] [--images N] [--threads N] [--policy column|row | --budget BYTES]
//        [--size N] [--skip-damaged]
//
// DIR holds photographs (JPEG, PNG, TIFF) in a folder for each class; or Fashion-MNIST or any other IDX or CIFAR-10 files. Without it the
// program draws shapes and trains on those. Photographs are resized, a sixth of each class is for tests unless there are folders train and
// test, and as many epochs are trained as take some minutes.
// At the end one batch goes through the trained network twice, layer by layer (column) and by rows, both with direct
// arithmetic: loss and gradients agree, memory does not. Measured memory is the growth of the process's resident set
// during one step, the arena's pages having been given back to the system before.
// With --budget the policy is chosen for what the trainer may take in all, by costs that are measured first; the program shows what was chosen
// and foretold, and what came of it.
// Bad input ends the program with status 2 before any training.
//
// ctest: --epochs 2 --images 1200 --batch 32 --summary @SCRATCH@/summary.json
// ctest: --epochs 1 --images 200 --batch 16 --policy column --threads 1
// ctest: --epochs 1 --images 200 --batch 32 --budget 40MiB --summary @SCRATCH@/budget.json
#include "cpu_backend.hpp"
#include "image_data.hpp"
#include "memory_limit.hpp"
#include "photo_folder.hpp"
#include "program.hpp"
#include "step_figures.hpp"
#include <lrcnn/data/detect.hpp>
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/train/measure_costs.hpp>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <iostream>
using namespace lrcnn;
namespace {
using Net = Sequential<Conv<16>, ReLU, Conv<16>, ReLU, MaxPool<>, Conv<32>, ReLU, Conv<32>, ReLU, MaxPool<>, Conv<64>, ReLU, MaxPool<>, Flatten,
                       Linear<128>, ReLU, Linear<10>>;
// Pools are kept in full height. Each stage between them runs in seven independent slabs, and again in the backward pass.
using Whole = Policy<Column, Workspace<2_MiB>>;
using Rows = Policy<Overlap<7>, CheckpointAtPools, RecomputeAll, Workspace<2_MiB>>;
static_assert(2 * peak_bytes<Net, Rows, Cpu>({128, 1, 28, 28}) < peak_bytes<Net, Whole, Cpu>({128, 1, 28, 28}));

struct Arguments {
  std::string folder;
  std::string summary;
  std::string policy = "row";
  std::string budget;                                   ///< empty: none
  Index epochs = 0, batch = 0, images = 0, size = 64;   ///< 0: the program chooses
  int threads = 0;
  bool skip_damaged = false;
};
/// The network, with an output for each class.
std::vector<Layer> layers_for(Index classes) {
  std::vector<Layer> layers(Net::layers.begin(), Net::layers.end());
  layers.back().channels = classes;
  return layers;
}
/// As many epochs as take about as long as six of Fashion-MNIST; no more than 40 of few images.
Index epochs_for(const Shape& images) {
  constexpr Index pixels = Index{6} * 60000 * 28 * 28;
  return std::clamp<Index>(pixels / (images.n * images.h * images.w), 1, 40);
}
/// 128, unless an epoch of few photographs would have less than 20 steps then.
Index batch_for(Index photographs) { return std::clamp<Index>(photographs / 20, 16, 128); }
bool has_photographs(const std::string& folder) { return !folder.empty() && !has_dataset(folder) && has_class_folders(folder); }
TrainAndTest load(const Arguments& arguments) {
  if (!has_photographs(arguments.folder)) {
    const Index drawn = arguments.images > 0 ? arguments.images : 12000;
    return load_or_draw(arguments.folder, arguments.images, {.count = drawn});
  }
  PhotoOptions options{.size = arguments.size, .skip_damaged = arguments.skip_damaged, .threads = arguments.threads};
  if (arguments.images > 0) options.images = arguments.images;
  std::cout << "Reading photographs, at most " << options.images << " to train on ..." << std::endl;
  return load_photographs(arguments.folder, options);
}
/// Costs of the steps on batches of this shape, from a few seconds of them.
Costs measured_costs(std::span<const Layer> layers, const Input& input, int threads) {
  std::cout << "Measuring how long steps take here ..." << std::endl;
  Cpu backend(threads);
  return measure_costs(make_table(layers, input), backend, {.seconds = 5});
}
void run(const Arguments& arguments) {
  const bool has_budget = !arguments.budget.empty();
  const Index budget = has_budget ? parse_bytes(arguments.budget) : 0;
  check_written({arguments.summary}, {arguments.folder});
  const bool photographs = has_photographs(arguments.folder);
  const TrainAndTest data = load(arguments);
  const std::vector<Layer> layers = layers_for(data.train.classes);
  const Index passes = arguments.epochs > 0 ? arguments.epochs : photographs ? epochs_for(data.train.shape) : 6;
  const Index size = arguments.batch > 0 ? arguments.batch : photographs ? batch_for(data.train.size()) : 128;
  const auto normalization = normalization_of(data.train);
  const Loader<float> train(data.train, {.batch = size, .seed = 1, .normalization = normalization, .augmentation = {.flip = true}});
  const Loader<float> test(data.test, {.batch = size, .shuffle = false, .normalization = normalization});
  const bool by_rows = arguments.policy == "row";
  TrainerOptions options{.schedule = CosineLr{.warm_up = epochs(1)}, .seed = 1, .threads = arguments.threads};
  if (has_budget) options.budget = Budget{budget}, options.costs = measured_costs(layers, train.input(), arguments.threads);
  const PolicySpec policy = has_budget ? Policy<DirectConv>::value : by_rows ? Rows::value : Whole::value;
  const double lr = 0.05 * static_cast<double>(size) / 128;
  BasicTrainer<Cpu> trainer(layers, policy, train.input(),
                            Sgd{.lr = lr, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4, .decay = Decay::marked}, options);
  const double foretold = has_budget ? seconds(trainer.plan(), *options.costs) : 0;
  std::cout << "lrcnn " << version() << "\n";   // fit() says on what
  if (!cpu_is_fast) std::cout << "This build has no oneDNN, so plain loops do the work, slowly.\n";
  std::cout << to_string(data.train) << "\n" << to_string(data.test) << "\n";
  if (arguments.folder.empty()) std::cout << "No folder was given, so these are drawn shapes, not a real data set.\n";
  if (has_budget)
    std::cout << "A budget of " << memory_text(budget) << " for the trainer: parameters, gradients and momentum take "
              << memory_text(3 * parameter_elements(trainer.layout()) * Index{sizeof(float)}) << ", and a step "
              << memory_text(trainer.plan().peak_bytes()) << " and, it is foretold, " << fixed_text(1000 * foretold, 1) << " ms.\n";
  std::cout << "Training "
            << (has_budget ? "within it"
                : by_rows  ? "by rows"
                           : "layer by layer")
            << ", " << parameter_elements(trainer.layout()) << " parameters:\n"
            << trainer.plan() << "\n";
  const auto history = trainer.fit(train, &test, {.epochs = passes, .progress = &std::cout, .progress_options = terminal_options(STDOUT_FILENO)});
  const double accuracy = history.back().test_accuracy.value();
  std::cout << "Test accuracy: " << fixed_text(100 * accuracy, 2) << " % of " << data.test.size() << " images\n" << std::flush;
  const Batch<float> batch = train.batch(0, 0);
  Candidate<> column(layers, Whole::value, batch, batch.labels(), trainer.parameters(), trainer.backend());
  const PolicySpec compared = has_budget ? trainer.plan(train.input()).policy : Rows::value;
  Candidate<> row(layers, compared, batch, batch.labels(), trainer.parameters(), trainer.backend());
  for (int round = 0; round < 7; ++round) column.time(), row.time();
  const Difference worst = worst_difference(column, row);
  print_table("on " + std::to_string(batch.size()) + " images, direct arithmetic", column, row, worst);
  if (has_budget)
    std::cout << "Foretold for the policy within the budget: " << fixed_text(1000 * foretold, 1)
              << " ms; measured: " << fixed_text(1000 * row.seconds(), 1) << " ms.\n";
  if (arguments.summary.empty()) return;
  const auto figures = [](const Candidate<>& c) {
    return nlohmann::ordered_json{
        {"planned_peak_bytes", c.planned_peak()}, {"measured_peak_bytes", c.measured_peak()}, {"seconds_per_step", c.seconds()}};
  };
  nlohmann::ordered_json summary{{"data", data.train.description},
                                 {"test_accuracy", accuracy},
                                 {"gradient_max_rel_diff", worst.relative},
                                 {"column", figures(column)},
                                 {"row", figures(row)}};
  if (has_budget) summary["budget_bytes"] = budget, summary["policy"] = to_string(compared), summary["foretold_seconds_per_step"] = foretold;
  const std::string text = summary.dump(2) + "\n";
  write_file_atomically(arguments.summary, std::as_bytes(std::span(text)));
}
}   // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Trains a network row by row, and compares that with training it layer by layer.");
  app.add_option("DIR", arguments.folder,
                 "folder with a folder of photographs for each class, or with IDX or CIFAR-10 files; without it, shapes are drawn");
  app.add_option("--summary", arguments.summary, "file to write the results to, as JSON");
  app.add_option("--epochs", arguments.epochs, "passes over the training images; 6 if not given, of photographs as many as take some minutes")
      ->check(CLI::Range(1, 100000));
  app.add_option("--batch", arguments.batch, "images in a step; 128 if not given, fewer of few photographs")->check(CLI::Range(1, 65536));
  app.add_option("--images", arguments.images, "train on the first so many images only, or so many photographs drawn at random (10000 if not given)")
      ->check(CLI::Range(1, 1000000000));
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  app.add_option("--size", arguments.size, "rows and columns of photographs")->check(CLI::Range(28, 1024))->capture_default_str();
  app.add_flag("--skip-damaged", arguments.skip_damaged, "leave photographs out that cannot be read, and say which");
  auto* const policy_option =
      app.add_option("--policy", arguments.policy, "how to train: row or column")->check(CLI::IsMember({"row", "column"}))->capture_default_str();
  app.add_option("--budget", arguments.budget, "train as fast as so many bytes allow, as in 40MiB: parameters and all that belongs to them included")
      ->excludes(policy_option)
      ->check(not_empty());
  return run_program(app, argc, argv, [&] {
    run(arguments);
    return 0;
  });
}
