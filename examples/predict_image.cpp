// VGG-16's trunk over a whole image, forward only: rows go from the file through all layers to a picture.
//
//   predict_image IMAGE OUT [--level N] [--region ROWSxCOLUMNS+TOP+LEFT] [--slabs N] [--threads N]
//
// IMAGE is in colour and of any size: a whole-slide image (.svs, .ndpi and others, of which --level chooses one), TIFF, PNG, JPEG or .npy.
// Neither it nor any feature map exists as a whole: a tile cache decodes what the rows of a slab touch, a Predictor sends them up to the last
// pool, and what comes out there, a row for 32 of the image's, is averaged over its 512 channels. OUT gets these averages: a .npy or .tif file
// as they are, row by row as they come; a .png file in shades of grey, the least black and the greatest white, for which they are kept until
// the last is known. Parameters are drawn at random, so it shows how strongly a network that has learned nothing answers to each place.
// Bad input ends the program with status 2, and OUT is written whole or not at all.
#include "cpu_backend.hpp"
#include "image_input.hpp"
#include "photograph.hpp"
#include "program.hpp"
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/data/image_sink.hpp>
#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
using namespace lrcnn;
namespace {
using Trunk = VggTrunk<2, 2, 3, 3, 3>;
// Fourteen megapixels in less than the photograph's first feature map takes for a hundred and fifty rows.
using Scratch = Workspace<4_MiB>;
static_assert(peak_bytes<Trunk, Policy<Share<84>, Scratch>, Cpu>({1, 3, 2700, 5400}, predicting) < 200'000'000);
struct Arguments {
  std::string image, out, region;
  std::optional<Index> level;
  Index slabs = 0;
  int threads = 0;
};
/// Averages over channels, handed on row by row as they come.
class Averages final : public RowSink<float> {
 public:
  explicit Averages(RowSink<float>& to) : to_(to) {}
  void write(Index, const View<const float>& src) override {
    row_.resize(static_cast<std::size_t>(src.w));
    for (Index y = src.row0; y < src.row0 + src.rows; ++y) {
      for (Index x = 0; x < src.w; ++x) {
        double sum = 0;
        for (Index c = 0; c < src.c; ++c) sum += double(src(0, c, y, x));
        item(row_, x) = static_cast<float>(sum / static_cast<double>(src.c));
        low = std::min(low, item(row_, x)), high = std::max(high, item(row_, x));
      }
      to_.write(0, dense_view<const float>(row_.data(), 1, 1, {y, y + 1}, src.w));
    }
    ++writes;
  }
  Index writes = 0;
  float low = std::numeric_limits<float>::max(), high = std::numeric_limits<float>::lowest();

 private:
  RowSink<float>& to_;
  std::vector<float> row_;
};
/// The file that takes the averages: as they are, or scaled once all of them are known.
class Output {
 public:
  Output(const std::string& path, const Shape& averages)
      : shape_(averages),
        scaled_(lower_case(std::filesystem::path(path).extension().string()) == ".png"),
        writer_(create_image(path, averages.h, averages.w, 1, sample())) {
    if (scaled_) {
      values_.resize(static_cast<std::size_t>(shape_.count()));
      kept_.emplace(values_.data(), shape_.h);
    } else {
      file_.emplace(std::move(writer_), shape_);
    }
  }
  RowSink<float>& sink() { return scaled_ ? static_cast<RowSink<float>&>(*kept_) : *file_; }
  void finish(double low, double high) {
    if (scaled_) {
      const double scale = high > low ? 255 / (high - low) : 0;
      file_.emplace(std::move(writer_), shape_, ImageSinkOptions{.scale = scale, .offset = -low * scale});
      file_->write(0, dense_view<const float>(values_.data(), 1, 1, {0, shape_.h}, shape_.w));
    }
    file_->finish();
  }

 private:
  SampleType sample() const { return scaled_ ? SampleType::u8 : SampleType::f32; }
  Shape shape_;
  bool scaled_;
  std::unique_ptr<ImageWriter> writer_;
  std::vector<float> values_{};
  std::optional<MemorySink<float>> kept_{};
  std::optional<ImageSink<float>> file_{};
};
void run(const Arguments& arguments) {
  check_written({arguments.out}, {arguments.image});
  const auto file = open_photograph(arguments.image, arguments.level);
  const ImageInfo& info = file->info();
  const ImageRegion region = arguments.region.empty() ? whole(info) : parse_region(arguments.region, info.height, info.width, "an image");
  const Input input{1, 3, region.rows.size(), region.columns.size()};
  const Table table = table_of<Trunk>(input);
  PolicySpec policy = Policy<Scratch>::value;
  const Index slabs = arguments.slabs > 0 ? arguments.slabs : std::clamp<Index>(input.h / 32, 1, 512);
  policy.partitions[0] = {Cut::share, slabs, slabs, 0};
  std::vector<float> parameters(static_cast<std::size_t>(parameter_count(table)));
  initialize<float>(parameters_of(table), He{}, 1, parameters);
  BasicPredictor<Cpu> predictor(Trunk::layers, policy, input, parameters, arguments.threads);
  const Shape out = predictor.output_shape();
  Output output(arguments.out, {1, 1, out.h, out.w});
  const auto cache = cache_for(predictor.plan(), info, region);
  const CachedImage image(file, cache);
  const ImageSource<float> rows = photograph_source(image, region);
  Averages averages(output.sink());
  std::cout << "lrcnn " << version() << ", backend " << Cpu::name << "\nImage: " << input.h << " rows of " << input.w << " pixels (" << info.format
            << "); the first feature map takes " << format_bytes(Shape{1, 64, input.h, input.w}.count() * 4)
            << ".\nPlanned peak: " << format_bytes(predictor.peak_bytes()) << " in " << slabs << " slabs, beyond "
            << format_bytes(parameter_count(table) * 4) << " of parameters and up to " << format_bytes(cache->options().bytes)
            << " of decoded tiles.\n"
            << std::flush;
  double seconds = 0;
  const Index measured = resident_growth(predictor.arena(), [&] {
    StepProgress progress(predictor.plan());
    predictor.run(rows, averages, progress);
    seconds = progress.seconds();
  });
  // Rows that no window reaches: the file must be whole all the same.
  image.for_each_tile({{region.rows.end - 1, region.rows.end}, region.columns}, [](const ImageRegion&, const std::byte*, Index) {});
  output.finish(averages.low, averages.high);
  std::cout << "Output: " << out.h << " rows of " << out.w << ", handed over in " << averages.writes << " parts, " << fixed_text(seconds, 1)
            << " s\nPlanned peak " << format_bytes(predictor.peak_bytes()) << ", measured with tiles " << measured_text(measured)
            << ". Tiles: " << cache_text(cache->report()) << ".\n";
}
}   // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Sends a whole image through VGG-16's trunk, row by row, in the memory of a few rows.");
  app.add_option("IMAGE", arguments.image, "a colour image: whole-slide image, TIFF, PNG, JPEG or .npy")->required();
  app.add_option("OUT", arguments.out, "file to write: averages of the last feature map's channels, as .npy, .tif or .png")->required();
  app.add_option("--level", arguments.level, "level of a whole-slide image; 0, the finest, if not given")->check(CLI::Range(0, 1000));
  app.add_option("--region", arguments.region, "part of the image (of the level) to take, ROWSxCOLUMNS+TOP+LEFT")->check(not_empty());
  app.add_option("--slabs", arguments.slabs, "slabs that the image is cut into; one for each 32 rows if not given")->check(CLI::Range(1, 100000));
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  return run_program(app, argc, argv, [&] {
    run(arguments);
    return 0;
  });
}
