// Trains a network row by row, then shows what that saves.
//
//   demo [DIR] [--summary FILE] [--epochs N] [--batch N] [--images N] [--threads N] [--policy column|row]
//
// DIR holds Fashion-MNIST or any other IDX or CIFAR-10 files; without it the program draws shapes and trains on those.
// At the end one batch goes through the trained network twice, layer by layer (column) and by rows, both with direct
// arithmetic: loss and gradients agree, memory does not. Measured memory is the growth of the process's resident set
// during one step, the arena's pages having been given back to the system before.
// Bad input ends the program with status 2 before any training.
//
// ctest: --epochs 2 --images 1200 --batch 32 --summary @SCRATCH@/summary.json
// ctest: --epochs 1 --images 200 --batch 16 --policy column --threads 1
#include "cpu_backend.hpp"
#include <lrcnn/data/detect.hpp>
#include <lrcnn/exec/resident.hpp>
#include <lrcnn/lrcnn.hpp>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <iostream>
using namespace lrcnn;
namespace {
using Net = Sequential<Conv<16>, ReLU, Conv<16>, ReLU, MaxPool<>, Conv<32>, ReLU, Conv<32>, ReLU, MaxPool<>,
                       Conv<64>, ReLU, MaxPool<>, Flatten, Linear<128>, ReLU, Linear<10>>;
// Pools are kept in full height. Each stage between them runs in seven independent slabs, and again in the backward pass.
using Whole = Policy<Column, Workspace<2_MiB>>;
using Rows = Policy<Overlap<7>, CheckpointAtPools, RecomputeAll, Workspace<2_MiB>>;
static_assert(2 * peak_bytes<Net, Rows, Cpu>({128, 1, 28, 28}) < peak_bytes<Net, Whole, Cpu>({128, 1, 28, 28}));

struct Arguments {
  std::string folder;
  std::string summary;
  std::string policy = "row";
  Index epochs = 6, batch = 128, images = 0;
  int threads = 0;
};
struct Data {
  Dataset train, test;
};

Data load(const Arguments& arguments) {
  Data data;
  if (arguments.folder.empty()) {
    const Index count = arguments.images > 0 ? arguments.images : 12000;
    data.train = make_shapes({.count = count});
    data.test = make_shapes({.count = std::max<Index>(count / 6, 10), .split = Split::test});
    return data;
  }
  data.train = load_dataset(arguments.folder, Split::train);
  data.test = load_dataset(arguments.folder, Split::test);
  const Shape &train = data.train.shape, &test = data.test.shape;
  if (train.c != test.c || train.h != test.h || train.w != test.w)
    throw DataError(error_text("folder '" + arguments.folder + "' has training images " + to_string(train) +
                                   " and test images " + to_string(test),
                               "both parts have images of one size", "use files that belong together"));
  if (data.train.classes > 10)
    throw DataError(error_text("folder '" + arguments.folder + "' has " + std::to_string(data.train.classes) + " classes",
                               "the demo's network has 10 outputs", "use a data set of at most 10 classes"));
  if (arguments.images > 0) data.train = subset(data.train, {0, std::min(arguments.images, data.train.size())});
  return data;
}

/// One policy on one batch.
class Candidate {
 public:
  Candidate(const PolicySpec& policy, const Batch<float>& batch, std::span<const float> parameters, Cpu& backend)
      : batch_(batch), gradients_(parameters.size()),
        executor_(make_plan(table_of<Net>(batch.shape()), policy, Cpu::target), backend, parameters.data(), gradients_.data()) {
    measured_peak_ = resident_growth(executor_.arena(), [this] { loss_ = executor_.run(batch_, batch_.labels()).mean(); });
  }
  void time() {
    const auto start = std::chrono::steady_clock::now();
    executor_.run(batch_, batch_.labels());
    seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::sort(seconds_.begin(), seconds_.end());
  }
  double seconds() const { return seconds_[seconds_.size() / 2]; }
  double loss() const { return loss_; }
  Index planned_peak() const { return executor_.plan().peak_bytes(); }
  Index measured_peak() const { return measured_peak_; }
  std::span<const float> gradient(const Parameter& p) const { return elements_of(p, std::span(gradients_)); }
  const Table& table() const { return executor_.plan().table; }

 private:
  const Batch<float>& batch_;
  std::vector<float> gradients_;
  Executor<Cpu> executor_;
  double loss_ = 0;
  Index measured_peak_ = 0;
  std::vector<double> seconds_;
};

struct Difference {
  double relative = 0;   ///< norm of the difference over the norm of the column's gradient
  std::string tensor;    ///< where it is largest
};
Difference worst_difference(const Candidate& column, const Candidate& row) {
  Difference worst;
  for (const Parameter& p : parameters_of(column.table())) {
    const auto a = column.gradient(p), b = row.gradient(p);
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
      norm += std::pow(static_cast<double>(a[i]), 2);
    }
    const double relative = difference > 0 ? std::sqrt(difference / norm) : 0;
    if (worst.tensor.empty() || relative > worst.relative) worst = {relative, p.name};
  }
  return worst;
}

void print_line(const char* what, const std::string& column, const std::string& row, const std::string& ratio = "") {
  std::printf("  %-22s %14s %14s %8s\n", what, column.c_str(), row.c_str(), ratio.c_str());
}
void print_table(const Candidate& column, const Candidate& row, const Difference& worst) {
  const auto ratio = [](double a, double b) { return detail::fixed_text(a / b, 2); };
  const auto bytes = [](Index b) { return b < 0 ? std::string("not known") : memory_text(b); };
  std::printf("\nOne step on %lld images, direct arithmetic:\n", static_cast<long long>(column.table().input.n));
  print_line("", "column", "row-centric", "ratio");
  print_line("loss", detail::fixed_text(column.loss(), 6), detail::fixed_text(row.loss(), 6));
  print_line("planned peak", bytes(column.planned_peak()), bytes(row.planned_peak()),
             ratio(static_cast<double>(row.planned_peak()), static_cast<double>(column.planned_peak())));
  print_line("measured peak", bytes(column.measured_peak()), bytes(row.measured_peak()),
             ratio(static_cast<double>(row.measured_peak()), static_cast<double>(column.measured_peak())));
  print_line("time", detail::fixed_text(1000 * column.seconds(), 1) + " ms", detail::fixed_text(1000 * row.seconds(), 1) + " ms",
             ratio(row.seconds(), column.seconds()));
  std::printf("  largest gradient difference: %.2g of its norm, in %s\n", worst.relative, worst.tensor.c_str());
  std::printf("Measured peak: growth of the process's resident set during the step. Time: median of 7 interleaved runs.\n");
}

void run(const Arguments& arguments) {
  if (!arguments.summary.empty()) check_writable(arguments.summary);
  const Data data = load(arguments);
  const auto normalization = normalization_of(data.train);
  const Loader<float> train(data.train, {.batch = arguments.batch, .seed = 1, .normalization = normalization,
                                         .augmentation = {.flip = true}});
  const Loader<float> test(data.test, {.batch = arguments.batch, .shuffle = false, .normalization = normalization});
  const bool by_rows = arguments.policy == "row";
  const double lr = 0.05 * static_cast<double>(arguments.batch) / 128;
  BasicTrainer<Cpu> trainer(Net::layers, by_rows ? Rows::value : Whole::value, train.input(),
                            Sgd{.lr = lr, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4, .decay = Decay::marked},
                            {.schedule = CosineLr{.warm_up = epochs(1)}, .seed = 1, .threads = arguments.threads});
  std::cout << "lrcnn " << version() << ", backend " << Cpu::name << ", " << trainer.backend().threads() << " threads\n";
  if (!cpu_is_fast) std::cout << "This build has no oneDNN, so plain loops do the work, slowly.\n";
  std::cout << to_string(data.train) << "\n" << to_string(data.test) << "\n";
  if (arguments.folder.empty()) std::cout << "No folder was given, so these are drawn shapes, not a real data set.\n";
  std::cout << "Training " << (by_rows ? "by rows" : "layer by layer") << ", " << parameter_elements(trainer.layout())
            << " parameters:\n" << trainer.plan() << "\n";
  const auto history = trainer.fit(train, &test, {.epochs = arguments.epochs, .progress = &std::cout,
                                                  .progress_options = terminal_options(STDOUT_FILENO)});
  const double accuracy = history.back().test_accuracy.value();
  std::cout << "Test accuracy: " << detail::fixed_text(100 * accuracy, 2) << " % of " << data.test.size() << " images\n" << std::flush;
  const Batch<float> batch = train.batch(0, 0);
  Candidate column(Whole::value, batch, trainer.parameters(), trainer.backend());
  Candidate row(Rows::value, batch, trainer.parameters(), trainer.backend());
  for (int round = 0; round < 7; ++round) column.time(), row.time();
  const Difference worst = worst_difference(column, row);
  print_table(column, row, worst);
  if (arguments.summary.empty()) return;
  const auto figures = [](const Candidate& c) {
    return nlohmann::ordered_json{{"planned_peak_bytes", c.planned_peak()},
                                  {"measured_peak_bytes", c.measured_peak()},
                                  {"seconds_per_step", c.seconds()}};
  };
  const nlohmann::ordered_json summary{{"data", data.train.description},      {"test_accuracy", accuracy},
                                       {"gradient_max_rel_diff", worst.relative}, {"column", figures(column)},
                                       {"row", figures(row)}};
  const std::string text = summary.dump(2) + "\n";
  write_file_atomically(arguments.summary, std::as_bytes(std::span(text)));
}
}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Trains a network row by row, and compares that with training it layer by layer.");
  app.add_option("DIR", arguments.folder, "folder with IDX or CIFAR-10 files; without it, shapes are drawn");
  app.add_option("--summary", arguments.summary, "file to write the results to, as JSON");
  app.add_option("--epochs", arguments.epochs, "passes over the training images")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--batch", arguments.batch, "images in a step")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--images", arguments.images, "train on the first so many images only")->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  app.add_option("--policy", arguments.policy, "how to train: row or column")->check(CLI::IsMember({"row", "column"}))->capture_default_str();
  try {
    app.parse(argc, argv);
    run(arguments);
    return 0;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const NumericError& e) {
    std::cerr << e.what() << "\n";
    return 1;
  } catch (const Error& e) {
    std::cerr << e.what() << "\n";
    return 2;
  }
}
