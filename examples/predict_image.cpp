// VGG-16's trunk over a whole photograph, forward only: rows go from the file through all layers to a picture.
//
//   predict_image IMAGE MAP.pgm [--slabs N] [--threads N]
//
// IMAGE is a colour photograph, a JPEG file of any size. Neither it nor any feature map exists as a whole: the decoder gives the rows
// of a slab, a Predictor sends them up to the last pool, and what comes out there, a row for 32 of the photograph's, is averaged
// over its 512 channels. MAP.pgm shows these averages in shades of grey. Parameters are drawn at random, so it shows how strongly a network that has
// learned nothing answers to each place.
// Bad input ends the program with status 2, and MAP.pgm is written whole or not at all.
#include "cpu_backend.hpp"
#include "jpeg_rows.hpp"
#include "photograph.hpp"
#include "program.hpp"
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/core/atomic_file.hpp>
#include <CLI/CLI.hpp>
#include <iostream>
using namespace lrcnn;
namespace {
using Trunk = VggTrunk<2, 2, 3, 3, 3>;
// Fourteen megapixels in less than the photograph's first feature map takes for a hundred and fifty rows.
using Scratch = Workspace<4_MiB>;
static_assert(peak_bytes<Trunk, Policy<Share<84>, Scratch>, Cpu>({1, 3, 2700, 5400}, predicting) < 200'000'000);
struct Arguments {
  std::string image, map;
  Index slabs = 0;
  int threads = 0;
};
/// Averages over channels, row by row as they come.
class Averages final : public RowSink<float> {
 public:
  void write(Index, const View<const float>& src) override {
    for (Index y = src.row0; y < src.row0 + src.rows; ++y)
      for (Index x = 0; x < src.w; ++x) {
        double sum = 0;
        for (Index c = 0; c < src.c; ++c) sum += double(src(0, c, y, x));
        values_.push_back(sum / static_cast<double>(src.c));
      }
    ++writes_, width_ = src.w;
  }
  Index writes() const { return writes_; }
  /// As a PGM picture, the least average black and the greatest white.
  std::string picture() const {
    const auto [low, high] = std::minmax_element(values_.begin(), values_.end());
    const double scale = *high > *low ? 255 / (*high - *low) : 0;
    std::string text = "P5\n" + std::to_string(width_) + " " + std::to_string(static_cast<Index>(values_.size()) / width_) + "\n255\n";
    for (const double v : values_) text += static_cast<char>(std::lround((v - *low) * scale));
    return text;
  }

 private:
  std::vector<double> values_;
  Index writes_ = 0, width_ = 0;
};
void run(const Arguments& arguments) {
  check_written({arguments.map}, {arguments.image});
  JpegReader reader(arguments.image);
  const Input input{1, 3, reader.height(), reader.width()};
  const Table table = table_of<Trunk>(input);
  PolicySpec policy = Policy<Scratch>::value;
  const Index slabs = arguments.slabs > 0 ? arguments.slabs : std::clamp<Index>(reader.height() / 32, 1, 512);
  policy.partitions[0] = {Cut::share, slabs, slabs, 0};
  std::vector<float> parameters(static_cast<std::size_t>(parameter_count(table)));
  initialize<float>(parameters_of(table), He{}, 1, parameters);
  BasicPredictor<Cpu> predictor(Trunk::layers, policy, input, parameters, arguments.threads);
  Index most = 1;
  for (const Step& step : predictor.plan().steps)
    if (step.op == Op::load) most = std::max(most, step.y.rows.size());
  const JpegRows rows(reader, most);
  Averages averages;
  const Index whole = Shape{1, 64, input.h, input.w}.count() * 4;
  std::cout << "lrcnn " << version() << ", backend " << Cpu::name << "\nPhotograph: " << input.h << " rows of " << input.w
            << " pixels; the first feature map takes " << format_bytes(whole) << ".\nPlanned peak: " << format_bytes(predictor.peak_bytes()) << " in "
            << slabs << " slabs, beyond " << format_bytes(parameter_count(table) * 4) << " of parameters and " << format_bytes(rows.bytes())
            << " of the photograph's rows.\n"
            << std::flush;
  double seconds = 0;
  const Index measured = resident_growth(predictor.arena(), [&] {
    StepProgress progress(predictor.plan());
    predictor.run(rows, averages, progress);
    seconds = progress.seconds();
  });
  while (reader.next() < reader.height()) {   // rows that no window reaches: the file must be whole all the same
    std::vector<std::uint8_t> row(static_cast<std::size_t>(3 * input.w));
    reader.read(row.data());
  }
  const std::string picture = averages.picture();
  write_file_atomically(arguments.map, std::as_bytes(std::span(picture)));
  const Shape out = predictor.output_shape();
  std::cout << "Output: " << out.h << " rows of " << out.w << ", handed over in " << averages.writes() << " parts, " << fixed_text(seconds, 1)
            << " s\nPlanned peak " << format_bytes(predictor.peak_bytes()) << ", measured " << measured_text(measured) << ".\n";
}
}   // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Sends a whole photograph through VGG-16's trunk, row by row, in the memory of a few rows.");
  app.add_option("IMAGE", arguments.image, "a colour photograph, a JPEG file")->required();
  app.add_option("MAP", arguments.map, "picture to write, a PGM file: averages of the last feature map's channels")->required();
  app.add_option("--slabs", arguments.slabs, "slabs that the photograph is cut into; one for each 32 rows if not given")
      ->check(CLI::Range(1, 100000));
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  return run_program(app, argc, argv, [&] {
    run(arguments);
    return 0;
  });
}
