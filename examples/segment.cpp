// Finds an object in a photograph: a U-Net with batch norms, trained by rows on crops, then sent over the whole photograph by rows.
//
//   segment [IMAGE MASK] [--found FILE] [--overlay FILE] [--held-out ROWSxCOLUMNS+TOP+LEFT] [--steps N] [--batch N] [--crop N]
//           [--seed N] [--slabs N] [--threads N] [--cache BYTES] [--at-least IOU]
//
// IMAGE is a colour photograph, MASK an image of the same size, white where the object is; both in any format that lrcnn reads. Without
// them the program draws a small picture of leaves and says so. One region is held out: no crop for training touches it. If --held-out does not say
// which, it is the upper part of the object, with a third of its pixels. A CropLoader cuts the crops from the files; of photograph and
// mask nothing is in memory but --cache bytes of decoded tiles.
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
#include "drawn_leaves.hpp"
#include "image_input.hpp"
#include "memory_limit.hpp"
#include "photograph.hpp"
#include "program.hpp"
#include "step_figures.hpp"
#include <lrcnn/data/crops.hpp>
#include <lrcnn/data/mask_source.hpp>
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
using RowTrainer = Trainer<Net, Rows, Cpu, PixelCrossEntropy>;
struct Arguments {
  std::string image, mask, found = "found.png", overlay = "overlay.png", held_out, cache = "256MiB";
  std::optional<Index> crop;
  Index steps = 150, batch = 4, slabs = 0;
  std::uint64_t seed = 1;
  int threads = 0;
  double at_least = 0;
};
/// A picture and its mask, 1 where the object is, through one cache.
struct MaskedPicture {
  CachedImage image, mask;
  MaskClasses classes;
  const ImageInfo& info() const { return image.info(); }
  std::string name() const { return "image '" + info().path.string() + "'"; }
  /// Calls f(y, x) for each pixel of the object in a region.
  template <class F>
  void each_object_pixel(const ImageRegion& region, F f) const {
    ClassMask{mask, classes}.for_each(region, [&](Index y, Index x, std::int32_t label) {
      if (label == 1) f(y, x);
    });
  }
  MaskSource mask_rows() const { return MaskSource(mask, {.classes = classes, .channels = {0}}); }
};
/// Errors:  DataError if a file cannot be used, or the mask does not fit the image
MaskedPicture open_picture(const Arguments& arguments) {
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = parse_bytes(arguments.cache)});
  const bool drawn = arguments.image.empty();
  const auto draw = [](bool mask) { return std::make_shared<DrawnLeaves>(300, 392, 1, mask); };
  const CachedImage image(drawn ? draw(false) : open_photograph(arguments.image), cache);
  const CachedImage mask(drawn ? draw(true) : open_image(arguments.mask), cache);
  check_mask_size(mask.info(), image.info());
  const SampleType sample = mask.info().sample;
  const std::int64_t white = sample == SampleType::u8 ? 128 : sample == SampleType::u16 ? 32768 : 1;
  MaskedPicture picture{image, mask, {.function = [white](std::int64_t value) { return value >= white; }}};
  static_cast<void>(picture.mask_rows());   // refuses a mask of numbers that are no integers
  return picture;
}
/// The upper part of the object, with a third of its pixels, and 16 pixels around it. `count`: all of the object's pixels.
/// Errors:  DataError if there is no object
ImageRegion upper_part(const MaskedPicture& picture, Index& count) {
  const Index height = picture.info().height, width = picture.info().width;
  std::vector<Index> in_row(static_cast<std::size_t>(height));
  Index left = width, right = 0, top = height;
  count = 0;
  picture.each_object_pixel(whole(picture.info()), [&](Index y, Index x) {
    ++item(in_row, y), ++count;
    left = std::min(left, x), right = std::max(right, x), top = std::min(top, y);
  });
  if (count == 0)
    throw DataError(error_text("mask '" + picture.mask.info().path.string() + "' is black everywhere", "it is white where the object is",
                               "give a mask of something"));
  Index bottom = top, seen = 0;
  while (3 * seen < count) seen += item(in_row, bottom++);
  const auto around = [](Index begin, Index end, Index size) { return Range{std::max<Index>(begin - 16, 0), std::min(end + 16, size)}; };
  return {around(top, bottom, height), around(left, right + 1, width)};
}
/// What no crop for training touches.
struct HeldOut {
  ImageRegion region{};
  Index inside = 0, all = 0;   ///< pixels of the object: in the region, in the picture
};
HeldOut held_out_region(const std::string& text, const MaskedPicture& picture) {
  HeldOut held;
  held.region = upper_part(picture, held.all);
  if (!text.empty()) held.region = parse_region(text, picture.info().height, picture.info().width, "a picture");
  picture.each_object_pixel(held.region, [&](Index, Index) { ++held.inside; });
  if (held.inside == 0)
    throw DataError(error_text("the region that is held out, " + to_string(held.region) + ", has nothing of the object",
                               "intersection over union is told for what of the object is there", "hold out a region that shows some of it"));
  if (held.inside == held.all)
    throw DataError(error_text("the whole object of " + picture.name() + " is held out: " + to_string(held.region),
                               "crops for training show some of it", "hold a smaller region out"));
  return held;
}
/// Square crops in all eight orientations, lighter or darker by up to a fifth; half of them show some of the object. `batches`: of one epoch.
CropLoader<float> crops_of(const MaskedPicture& picture, const ImageRegion& held_out, const Arguments& arguments, Index size, Index batches) {
  CropOptions options{.height = size, .width = size, .crops = batches * arguments.batch, .batch = arguments.batch, .seed = arguments.seed};
  options.focus = {.classes = {1}, .share = 0.5};
  options.augmentation = {.flip_x = true, .quarter_turns = true, .jitter = {.brightness = 0.2}};
  options.channels = {0, 1, 2}, options.normalization = photograph_normalization;
  options.classes = picture.classes;
  return CropLoader<float>({{.image = picture.image, .mask = picture.mask, .mask_channel = 0, .held_out = {held_out}}}, options);
}
/// Takes the network's output: compares it with the mask, and writes both pictures row by row.
class Judge final : public RowSink<float> {
 public:
  Judge(const MaskedPicture& picture, const ImageRegion& held_out, const Arguments& arguments)
      : colours_(picture.image, {.channels = {0, 1, 2}}),
        mask_(picture.mask_rows()),
        held_out_(held_out),
        found_(create_image(arguments.found, picture.info().height, picture.info().width, 1, SampleType::u8)),
        overlay_(create_image(arguments.overlay, picture.info().height, picture.info().width, 3, SampleType::u8)),
        found_row_(static_cast<std::size_t>(picture.info().width)),
        overlay_row_(3 * found_row_.size()),
        classes_(found_row_.size()),
        values_(overlay_row_.size()) {}
  void write(Index, const View<const float>& src) override {
    for (Index y = src.row0; y < src.row0 + src.rows; ++y) {
      mask_.classes(0, {y, y + 1}, classes_);
      colours_.read(0, dense_view(values_.data(), 1, 3, {y, y + 1}, src.w));
      for (Index x = 0; x < src.w; ++x) {
        const bool is = item(classes_, x) == 1, taken = src(0, 1, y, x) > src(0, 0, y, x);
        (contains(held_out_, y, x) ? inside : outside).add(is, taken);
        item(found_row_, x) = taken ? 255 : 0;
        paint(y, x, is, taken);
      }
      found_->write(std::as_bytes(std::span(found_row_)));
      overlay_->write(std::as_bytes(std::span(overlay_row_)));
    }
    ++writes;
  }
  void finish() { found_->finish(), overlay_->finish(); }
  ConfusionMatrix inside{2}, outside{2};   ///< of the region that is held out
  Index writes = 0;

 private:
  static bool contains(const ImageRegion& region, Index y, Index x) { return region.contains({{y, y + 1}, {x, x + 1}}); }
  void paint(Index y, Index x, bool is, bool taken) {
    static constexpr std::array<std::array<int, 3>, 3> tints{{{0, 90, 255}, {255, 0, 0}, {255, 215, 0}}};   // found, missed, wrong
    const auto [top, bottom] = held_out_.rows;
    const auto [left, right] = held_out_.columns;
    const bool frame = contains({{top - 4, bottom + 4}, {left - 4, right + 4}}, y, x) && !contains(held_out_, y, x);
    for (Index c = 0; c < 3; ++c) {
      int value = static_cast<int>(std::lround(255 * std::clamp(item(values_, c * mask_.shape().w + x), 0.f, 1.f)));
      if (is || taken) {
        const int tint = tints[is && taken ? 0 : is ? 1 : 2][static_cast<std::size_t>(c)];
        value = is == taken ? (value + tint) / 2 : tint;   // what was found stays to be seen
      }
      item(overlay_row_, 3 * x + c) = static_cast<std::uint8_t>(frame ? (c == 1 ? 0 : 160) : value);
    }
  }
  ImageSource<float> colours_;   ///< from 0 to 1
  MaskSource mask_;
  ImageRegion held_out_;
  std::unique_ptr<ImageWriter> found_, overlay_;
  std::vector<std::uint8_t> found_row_, overlay_row_;
  std::vector<std::int32_t> classes_;   ///< of a row
  std::vector<float> values_;           ///< [3][width]
};
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
/// One batch goes through the trained network layer by layer and by rows.
void compare(RowTrainer& trainer, const CropBatch<float>& batch, const std::string& title) {
  Candidate<PixelCrossEntropy> column(Net::layers, Whole::value, batch, batch.labels(), trainer.parameters(), trainer.backend());
  Candidate<PixelCrossEntropy> row(Net::layers, Rows::value, batch, batch.labels(), trainer.parameters(), trainer.backend());
  for (int round = 0; round < 7; ++round) column.time(), row.time();
  print_table(title, column, row, worst_difference(column, row));
}
int run(const Arguments& arguments) {
  const bool drawn = arguments.image.empty();
  check_written({arguments.found, arguments.overlay}, {arguments.image, arguments.mask});
  const MaskedPicture picture = open_picture(arguments);
  const Index height = picture.info().height, width = picture.info().width;
  const HeldOut held_out = held_out_region(arguments.held_out, picture);
  static_cast<void>(Judge(picture, held_out.region, arguments));   // refuses endings that name no format; a training that is cut off leaves no file
  const Index steps = arguments.steps, size = arguments.crop.value_or(drawn ? 64 : 256);
  if (size % 16 != 0)
    throw Error(error_text("no crops of " + std::to_string(size) + "x" + std::to_string(size),
                           "the network halves a map four times, so crops are multiples of 16", "take " + std::to_string(round_up(size, 16))));
  const CropLoader<float> crops = crops_of(picture, held_out.region, arguments, size, steps + 1);   // one batch is for the comparison
  const Input input{1, 3, height, width};
  const std::vector<Layer> layers = padded(Net::layers, height, width);
  PolicySpec policy = Policy<FastestConv, Workspace<4_MiB>>::value;
  const Index column_bytes = make_plan(make_table(layers, input), policy, Cpu::target, predicting).peak_bytes();
  const Index slabs = arguments.slabs > 0 ? arguments.slabs : std::max<Index>(height / 32, 1);
  policy.partitions[0] = {Cut::share, slabs, slabs, 0};
  static_cast<void>(make_plan(make_table(layers, input), policy, Cpu::target, predicting));   // if it cannot be, that shows here
  const LrSchedule schedule = CosineLr{.over = lrcnn::steps(steps), .warm_up = lrcnn::steps(std::min<Index>(20, steps / 4))};
  RowTrainer trainer(crops.input(), AdamW{.lr = 0.004, .weight_decay = 0.01, .decay = Decay::marked},
                     {.schedule = schedule, .seed = arguments.seed, .threads = arguments.threads});
  std::cout << "lrcnn " << version() << ", " << trainer.backend().describe() << "\n";
  if (!cpu_is_fast) std::cout << "This build has no oneDNN, so plain loops do the work, slowly.\n";
  if (drawn) std::cout << "No photograph was given, so this is a drawn picture, not real data.\n";
  std::cout << "Picture: " << picture.name() << ", " << height << " rows of " << width << " pixels\nHeld out: " << to_string(held_out.region)
            << ", with " << held_out.inside << " of the object's " << held_out.all << " pixels\nTraining by rows on " << steps << " batches of "
            << arguments.batch << " crops of " << size << "x" << size << ", " << parameter_elements(trainer.layout()) << " parameters\n"
            << std::flush;
  ProgressLine line(std::cout, terminal_options(STDOUT_FILENO));
  Metrics recent;   // loss and accuracy that follow the last steps
  const auto begun = std::chrono::steady_clock::now();
  auto epoch = crops.epoch(0);
  for (Index step = 0; step < steps; ++step) {
    const StepReport r = trainer.step(*epoch.next());
    recent = step == 0 ? Metrics{} : Metrics{0.9 * recent.loss_sum, recent.images * 9 / 10, recent.correct * 9 / 10, 0.9 * recent.weight};
    recent.add(r.loss, 1'000'000, std::llround(1e6 * r.accuracy));
    line.update({1, 1, step + 1, steps, (step + 1) * arguments.batch, recent.loss(), recent.accuracy(), r.peak_bytes});
  }
  line.finish();
  const double trained = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::cout << "Trained in " << fixed_text(trained, 1) << " s\n" << std::flush;
  compare(trainer, crops.batch(0, steps), "on " + std::to_string(arguments.batch) + " crops");
  BasicPredictor<Cpu> predictor(layers, policy, input, trainer.read_parameters(), arguments.threads);
  const ImageSource<float> rows = photograph_source(picture.image, whole(picture.info()));
  Judge judge(picture, held_out.region, arguments);
  std::cout << "\nThe whole picture in one pass, by " << slabs << " slabs of rows:\n" << std::flush;
  double seconds = 0;
  const Index measured = resident_growth(predictor.arena(), [&] {
    StepProgress progress(predictor.plan());
    predictor.run(rows, judge, progress);
    seconds = progress.seconds();
  });
  judge.finish();
  std::cout << "Output handed over in " << judge.writes << " parts, " << fixed_text(seconds, 1) << " s. Planned peak "
            << format_bytes(predictor.peak_bytes()) << " (layer by layer " << format_bytes(column_bytes) << "), measured " << measured_text(measured)
            << ".\nTiles: " << cache_text(picture.image.cache()->report()) << ".\n";
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
  app.add_option("--cache", arguments.cache, "bytes of decoded tiles that are kept")->capture_default_str();
  app.add_option("--at-least", arguments.at_least, "status 1 if the held-out region's IoU is below this")->check(CLI::Range(0.0, 1.0));
  return run_program(app, argc, argv, [&] { return run(arguments); });
}
