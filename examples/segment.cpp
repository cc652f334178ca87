// Finds an object in a photograph: a U-Net with batch norms, trained by rows on crops, then sent over the whole photograph by rows.
//
//   segment [IMAGE MASK] [--found FILE] [--overlay FILE] [--held-out ROWSxCOLUMNS+TOP+LEFT] [--steps N] [--batch N] [--crop N]
//           [--seed N] [--slabs N] [--threads N] [--at-least IOU]
//
// IMAGE is a colour photograph, MASK an image of the same size, white where the object is; both in any format that lrcnn reads. Without
// them the program draws a small picture of leaves and says so. One region is held out: no crop for training touches it. If --held-out does not say
// which, it is the upper part of the object, with a third of its pixels.
//
// Training is row-centric, with the statistics of whole batches, and a loss over pixels that rows go through as they come. Then the
// parameters go to a Predictor, whose norms use the running statistics: one pass over the whole picture from top to bottom, in which
// neither a feature map nor the output exists in full height. Padding by reflection makes its extents multiples of 16 and is cut off again;
// both are layers. The picture's rows come from its file; what comes out goes to two files row by row (.png, .tif or .npy): the mask that
// was found (--found), and a picture to judge it by (--overlay): blue is what was found, red what was missed, yellow what was found
// wrongly; the frame is the region held out. Intersection over union (IoU) is told for that region and for the rest. --at-least is the
// least for the region: below it the status is 1. Bad input ends the program with status 2 before any training, and files are written whole
// or not at all.
//
// ctest: --steps 40 --found @SCRATCH@/found.png --overlay @SCRATCH@/overlay.png --at-least 0.8
#include "cpu_backend.hpp"
#include "image_input.hpp"
#include "masked_crops.hpp"
#include "photograph.hpp"
#include "program.hpp"
#include "step_figures.hpp"
#include <lrcnn/data/byte_image.hpp>
#include <lrcnn/lrcnn.hpp>
#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
using namespace lrcnn;
namespace {
using Net = UNet<2, 16>;   // a quarter of the usual channels: one photograph has less to teach than a data set
// Checkpoints where maps are small: behind the first pools, and where the way up has not yet come to the largest maps. What lies
// between two of them is computed again, in slabs. (unet::Small, in lrcnn/policy/unet.hpp, is for crops of 512 rows and more.)
using Checkpoints = CheckpointAt<"pool1", "pool2", "merge3.relu2", "merge2.relu2">;
using Rows = Policy<Overlap<4>, Checkpoints, RecomputeAll, GradientsInPlace, FastestConv, Workspace<4_MiB>>;
using Whole = Policy<Column, FastestConv, Workspace<4_MiB>>;
struct Arguments {
  std::string image, mask, found = "found.png", overlay = "overlay.png", held_out;
  std::optional<Index> crop;
  Index steps = 150, batch = 4, slabs = 0;
  std::uint64_t seed = 1;
  int threads = 0;
  double at_least = 0;
};
/// A picture with its mask, in memory, to cut crops from.
MaskedPicture load(const ImageFile& image, const std::string& mask_path) {
  constexpr Index most = 4_GiB;
  const ByteImage colours = read_byte_image(image, 3, most), mask = read_byte_image(*open_image(mask_path), 1, most);
  const auto extents = [](Pair size) { return std::to_string(size.h) + "x" + std::to_string(size.w) + " pixels"; };
  if (mask.size != colours.size)
    throw DataError(error_text(
        "mask '" + mask_path + "' has " + extents(mask.size) + " and image '" + image.info().path.string() + "' has " + extents(colours.size),
        "each pixel of the image has one of the mask", "give the mask that belongs to the image, in its size"));
  MaskedPicture picture{"image '" + image.info().path.string() + "'", mask.size.h, mask.size.w, {}, mask.pixels};
  for (std::uint8_t& m : picture.mask) m = m >= 128;
  const std::size_t plane = picture.mask.size();
  picture.pixels.resize(3 * plane);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = colours.pixels[i % plane * 3 + i / plane];
  return picture;
}
Region held_out_region(const std::string& text, const MaskedPicture& picture) {
  Region region = upper_part(picture);
  if (!text.empty()) {
    const ImageRegion given = parse_region(text, picture.height, picture.width, "a picture");
    region = {given.rows, given.columns};
  }
  if (object_pixels(picture, region)[0] == 0)
    throw DataError(error_text("the region that is held out, " + to_string(region) + ", has nothing of the object",
                               "intersection over union is told for what of the object is there", "hold out a region that shows some of it"));
  return region;
}
/// Takes the network's output: compares it with the mask, and writes both pictures row by row.
class Judge final : public RowSink<float> {
 public:
  Judge(const MaskedPicture& picture, const Region& held_out, const Arguments& arguments)
      : picture_(picture),
        held_out_(held_out),
        found_(create_image(arguments.found, picture.height, picture.width, 1, SampleType::u8)),
        overlay_(create_image(arguments.overlay, picture.height, picture.width, 3, SampleType::u8)),
        row_(static_cast<std::size_t>(picture.width)),
        colours_(3 * row_.size()) {}
  void write(Index, const View<const float>& src) override {
    for (Index y = src.row0; y < src.row0 + src.rows; ++y) {
      for (Index x = 0; x < src.w; ++x) {
        const bool is = picture_.object(y, x), taken = src(0, 1, y, x) > src(0, 0, y, x);
        (held_out_.contains(y, x) ? inside : outside).add(is, taken);
        row_[static_cast<std::size_t>(x)] = taken ? 255 : 0;
        paint(y, x, is, taken);
      }
      found_->write(std::as_bytes(std::span(row_)));
      overlay_->write(std::as_bytes(std::span(colours_)));
    }
    ++writes;
  }
  void finish() { found_->finish(), overlay_->finish(); }
  ConfusionMatrix inside{2}, outside{2};   ///< of the region that is held out
  Index writes = 0;

 private:
  void paint(Index y, Index x, bool is, bool taken) {
    static constexpr std::array<std::array<int, 3>, 3> tints{{{0, 90, 255}, {255, 0, 0}, {255, 215, 0}}};   // found, missed, wrong
    const auto [top, bottom] = held_out_.rows;
    const auto [left, right] = held_out_.columns;
    const bool frame = Region{{top - 4, bottom + 4}, {left - 4, right + 4}}.contains(y, x) && !held_out_.contains(y, x);
    for (Index c = 0; c < 3; ++c) {
      int value = picture_.colour(c, y, x);
      if (is || taken) {
        const int tint = tints[is && taken ? 0 : is ? 1 : 2][static_cast<std::size_t>(c)];
        value = is == taken ? (value + tint) / 2 : tint;   // what was found stays to be seen
      }
      colours_[static_cast<std::size_t>(3 * x + c)] = static_cast<std::uint8_t>(frame ? (c == 1 ? 0 : 160) : value);
    }
  }
  const MaskedPicture& picture_;
  Region held_out_;
  std::unique_ptr<ImageWriter> found_, overlay_;
  std::vector<std::uint8_t> row_, colours_;
};
/// The whole picture as a batch: from its file, or where there is none from memory.
std::unique_ptr<RowSource<float>> rows_of(const std::shared_ptr<const ImageFile>& file, const MaskedPicture& picture, const Plan& plan) {
  if (file) {
    const ImageRegion all = whole(file->info());
    return std::make_unique<ImageSource<float>>(photograph_source(CachedImage(file, cache_for(plan, file->info(), all)), all));
  }
  return std::make_unique<Batch<float>>(
      std::make_shared<const std::vector<float>>(normalization_table<float>(photograph_normalization, 3)),
      BatchContents{.shape = {1, 3, picture.height, picture.width}, .pixels = picture.pixels, .labels = {0}, .indices = {0}});
}
/// The network with what makes any extents multiples of 16 in front, and what cuts that off again behind.
std::vector<Layer> padded(std::span<const Layer> layers, Index height, Index width) {
  const Pad pad{0, round_up(height, 16) - height, 0, round_up(width, 16) - width};
  std::vector<Layer> all{pad_layer(pad, true)};
  all.insert(all.end(), layers.begin(), layers.end());
  all.push_back(pad_layer({-pad.top, -pad.bottom, -pad.left, -pad.right}, false));
  return all;
}
std::string percent(double share) { return fixed_text(100 * share, 2) + " %"; }
void report(const char* where, const ConfusionMatrix& m) {
  std::cout << where << ": IoU " << fixed_text(m.iou(1), 4) << " (found " << percent(m.recall(1)) << " of " << m(1, 0) + m(1, 1) << " pixels; "
            << percent(m.precision(1)) << " of what was found is right)\n";
}
int run(const Arguments& arguments) {
  const bool drawn = arguments.image.empty();
  check_written({arguments.found, arguments.overlay}, {arguments.image, arguments.mask});
  const auto file = drawn ? nullptr : open_photograph(arguments.image);
  const MaskedPicture picture = drawn ? draw_leaves(300, 392, 1) : load(*file, arguments.mask);
  const Region held_out = held_out_region(arguments.held_out, picture);
  const Index steps = arguments.steps, size = arguments.crop.value_or(drawn ? 64 : 256);
  if (size % 16 != 0)
    throw Error(error_text("no crops of " + std::to_string(size) + "x" + std::to_string(size),
                           "the network halves a map four times, so crops are multiples of 16", "take " + std::to_string(round_up(size, 16))));
  const MaskedCrops crops(picture, held_out, arguments.batch, size, photograph_normalization, arguments.seed);
  const Input input{1, 3, picture.height, picture.width};
  const std::vector<Layer> layers = padded(Net::layers, picture.height, picture.width);
  PolicySpec policy = Policy<FastestConv, Workspace<4_MiB>>::value;
  const Index column_bytes = make_plan(make_table(layers, input), policy, Cpu::target, predicting).peak_bytes();
  const Index slabs = arguments.slabs > 0 ? arguments.slabs : std::max<Index>(picture.height / 32, 1);
  policy.partitions[0] = {Cut::share, slabs, slabs, 0};
  static_cast<void>(make_plan(make_table(layers, input), policy, Cpu::target, predicting));   // if it cannot be, that shows here
  const auto [inside, outside] = object_pixels(picture, held_out);
  const LrSchedule schedule = CosineLr{.over = lrcnn::steps(steps), .warm_up = lrcnn::steps(std::min<Index>(20, steps / 4))};
  Trainer<Net, Rows, Cpu, PixelCrossEntropy> trainer(crops.input(), AdamW{.lr = 0.004, .weight_decay = 0.01, .decay = Decay::marked},
                                                     {.schedule = schedule, .seed = arguments.seed, .threads = arguments.threads});
  std::cout << "lrcnn " << version() << ", " << trainer.backend().describe() << "\n";
  if (!cpu_is_fast) std::cout << "This build has no oneDNN, so plain loops do the work, slowly.\n";
  if (drawn) std::cout << "No photograph was given, so this is a drawn picture, not real data.\n";
  std::cout << "Picture: " << picture.description << ", " << picture.height << " rows of " << picture.width
            << " pixels\nHeld out: " << to_string(held_out) << ", with " << inside << " of the object's " << inside + outside
            << " pixels\nTraining by rows on " << steps << " batches of " << arguments.batch << " crops of " << size << "x" << size << ", "
            << parameter_elements(trainer.layout()) << " parameters\n"
            << std::flush;
  ProgressLine line(std::cout, terminal_options(STDOUT_FILENO));
  Metrics recent;   // loss and accuracy that follow the last steps
  const auto begun = std::chrono::steady_clock::now();
  for (Index step = 0; step < steps; ++step) {
    const StepReport r = trainer.step(crops.batch(step));
    recent = step == 0 ? Metrics{} : Metrics{0.9 * recent.loss_sum, recent.images * 9 / 10, recent.correct * 9 / 10};
    recent.add(r.loss, 1'000'000, std::llround(1e6 * r.accuracy));
    line.update({1, 1, step + 1, steps, (step + 1) * arguments.batch, recent.loss(), recent.accuracy(), r.peak_bytes});
  }
  line.finish();
  const double trained = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::cout << "Trained in " << fixed_text(trained, 1) << " s\n" << std::flush;
  {
    const MaskedBatch batch = crops.batch(steps);
    Candidate<PixelCrossEntropy> column(Net::layers, Whole::value, batch, batch.labels(), trainer.parameters(), trainer.backend());
    Candidate<PixelCrossEntropy> row(Net::layers, Rows::value, batch, batch.labels(), trainer.parameters(), trainer.backend());
    for (int round = 0; round < 7; ++round) column.time(), row.time();
    print_table("on " + std::to_string(arguments.batch) + " crops", column, row, worst_difference(column, row));
  }
  BasicPredictor<Cpu> predictor(layers, policy, input, trainer.read_parameters(), arguments.threads);
  const auto rows = rows_of(file, picture, predictor.plan());
  Judge judge(picture, held_out, arguments);
  std::cout << "\nThe whole picture in one pass, by " << slabs << " slabs of rows:\n" << std::flush;
  double seconds = 0;
  const Index measured = resident_growth(predictor.arena(), [&] {
    StepProgress progress(predictor.plan());
    predictor.run(*rows, judge, progress);
    seconds = progress.seconds();
  });
  judge.finish();
  std::cout << "Output handed over in " << judge.writes << " parts, " << fixed_text(seconds, 1) << " s. Planned peak "
            << format_bytes(predictor.peak_bytes()) << " (layer by layer " << format_bytes(column_bytes) << "), measured " << measured_text(measured)
            << ".\n";
  report("Where it was trained", judge.outside);
  report("Held-out region", judge.inside);
  std::cout << "Mask: " << arguments.found << "\nOverlay: " << arguments.overlay
            << " (blue found, red missed, yellow wrong; the frame is the region held out)\n";
  if (judge.inside.iou(1) >= arguments.at_least) return 0;
  std::cout << "That is below " << fixed_text(arguments.at_least, 4) << ", which --at-least asks for.\n";
  return 1;
}
}   // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Trains a U-Net by rows on crops of a photograph, and sends the whole photograph through it by rows.");
  auto* image = app.add_option("IMAGE", arguments.image, "a colour photograph (TIFF, PNG, JPEG, .npy, ...); without it, a picture is drawn");
  auto* mask = app.add_option("MASK", arguments.mask, "an image of the same size, white where the object is");
  image->needs(mask);
  app.add_option("--found", arguments.found, "file to write the mask to that was found: .png, .tif or .npy")->capture_default_str();
  app.add_option("--overlay", arguments.overlay, "file to write the picture to that shows it, likewise")->capture_default_str();
  app.add_option("--held-out", arguments.held_out, "region not to train on, ROWSxCOLUMNS+TOP+LEFT; the object's upper part if not given");
  app.add_option("--steps", arguments.steps, "updates")->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--batch", arguments.batch, "crops in a step")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--crop", arguments.crop, "rows and columns of a crop, a multiple of 16; 256 if not given (64 on the drawn picture)")
      ->check(CLI::Range(32, 65536));
  app.add_option("--seed", arguments.seed, "of crops and first parameters")->capture_default_str();
  app.add_option("--slabs", arguments.slabs, "slabs of the pass over the whole picture; one for each 32 rows if not given")
      ->check(CLI::Range(1, 100000));
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  app.add_option("--at-least", arguments.at_least, "status 1 if the held-out region's IoU is below this")->check(CLI::Range(0.0, 1.0));
  return run_program(app, argc, argv, [&] { return run(arguments); });
}
