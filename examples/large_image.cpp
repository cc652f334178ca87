// The exact gradient of VGG-16 over a whole photograph, in memory that a run layer by layer cannot do with.
//
//   large_image IMAGE [--limit BYTES] [--cache BYTES] [--threads N] [--part HxW] [--level N] [--crop N]
//
// IMAGE is a colour photograph of any size: a whole-slide image (.svs, .ndpi and others, of which --level chooses one), TIFF, PNG, JPEG or
// .npy. Its rows come from the file when a step asks for them, through a cache of decoded tiles that takes up to --cache bytes. The network
// is VGG-16's trunk, a global average and ten classes, with parameters drawn at random; the loss is the cross entropy of class 0. The
// gradient is that of all 14.7 million parameters, over all rows.
//
// --limit is what the step may take beyond the parameters, their gradients and the cache: "peak" everywhere in lrcnn. Without
// it: a quarter of what layer by layer is planned to take, or as little as can be. Among some policies the program takes the one with the
// least arithmetic whose planned peak fits. Then it has the system enforce the limit (RLIMIT_AS): what the process has by then,
// parameters, gradients and threads, plus the limit and the cache, plus 128 MiB for the code that oneDNN generates and the plan's own lists.
// A run layer by layer is refused there.
// --part takes the photograph's middle only; --crop is the size of the part on which the gradients of both ways are compared.
//
// Bad input ends the program with status 2; status 1 says that the gradients differ by more than rounding.
#include "cpu_backend.hpp"
#include "image_input.hpp"
#include "memory_limit.hpp"
#include "photograph.hpp"
#include "program.hpp"
#include <lrcnn/lrcnn.hpp>
#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
using namespace lrcnn;
namespace {
using Net = Vgg16<10>;
using Scratch = Workspace<16_MiB>;   // 5 MB are wanted on 5400 columns
using Layers = Policy<Column, Scratch>;
constexpr Index slack = 128_MiB;    // 47 MB are taken with oneDNN 2.6 and 64 slabs, on two threads
constexpr double rounding = 1e-4;   // of a gradient's norm: what summing in another order may do in 32 bits
struct Arguments {
  std::string image, part;
  std::optional<std::string> limit;
  std::string cache = "64MiB";
  std::optional<Index> level;
  int threads = 0;
  Index crop = 256;
};
struct Candidate {
  PolicySpec policy{};
  Index bytes = 0;   ///< planned peak
  double work = 0;   ///< multiply-adds of convolutions
  Index steps = 0;
};
/// Layer by layer; then pool3 kept, the rest computed again, in ever more slabs. Sharing repeats no arithmetic but for the
/// re-run and keeps rows at each cut, which comes to more the more cuts there are; slabs that overlap keep nothing.
std::vector<PolicySpec> ladder() {
  std::vector<PolicySpec> policies{Layers::value};
  const auto add = [&](Cut cut, Index slabs, Index above) {
    PolicySpec p = Policy<CheckpointAt<"pool3">, RecomputeAll, Scratch>::value;
    p.partition_count = 2;
    p.partitions[0] = {cut, slabs, slabs, 0}, p.partitions[1] = {cut, above, above, 0};
    policies.push_back(p);
  };
  for (const Index slabs : {2, 4, 8, 12, 16, 20}) add(Cut::share, slabs, slabs / 2);
  for (const Index slabs : {16, 20, 24, 28, 32, 40, 48, 56}) add(Cut::overlap, slabs, slabs / 2);
  for (const Index slabs : {32, 56, 80}) add(Cut::overlap, slabs, slabs);
  return policies;
}
std::vector<Candidate> candidates(const Table& table) {
  std::vector<Candidate> list;
  for (const PolicySpec& policy : ladder()) {
    try {
      const Plan plan = make_plan(table, policy, Cpu::target);
      list.push_back({policy, plan.peak_bytes(), work(plan), static_cast<Index>(plan.steps.size())});
    } catch (const PlanError&) {   // the photograph has too few rows for so many slabs
    }
  }
  return list;
}
/// The least arithmetic that fits; among equals the fewest steps.
Candidate choose(const std::vector<Candidate>& list, Index limit) {
  const Candidate *best = nullptr, *smallest = &list[0];
  for (const Candidate& c : list) {
    if (c.bytes < smallest->bytes) smallest = &c;
    if (c.bytes <= limit && (!best || std::pair(c.work, c.steps) < std::pair(best->work, best->steps))) best = &c;
  }
  if (!best)
    throw PlanError(error_text("no policy of the program's ladder takes as little as " + format_bytes(limit) + "; the smallest is " +
                                   to_string(smallest->policy) + " with " + format_bytes(smallest->bytes),
                               "the planned peak fits into the limit", "give --limit " + std::to_string(smallest->bytes) + " or more"));
  return *best;
}
/// The policy with as many slabs as a smaller image carries.
PolicySpec fitting(PolicySpec policy, const Table& table) {
  for (;;) {
    try {
      static_cast<void>(arena_size(table, policy, Cpu::target));
      return policy;
    } catch (const PlanError&) {
      for (Partition& p : policy.partitions) p.forward = p.backward = std::max<Index>(p.forward / 2, 1);
    }
  }
}
struct Gradient {
  std::vector<float> values;
  double loss = 0;
};
const std::vector<std::int32_t> labels{0};
Gradient gradient_of(const Table& table, const PolicySpec& policy, const RowSource<float>& batch, const std::vector<float>& parameters,
                     Cpu& backend) {
  Gradient gradient{std::vector<float>(parameters.size()), 0};
  Executor<Cpu> executor(make_plan(table, policy, Cpu::target), backend, parameters.data(), gradient.values.data());
  gradient.loss = executor.run(batch, labels).mean();
  return gradient;
}
/// The middle of an image, of that size.
ImageRegion middle(const ImageInfo& info, Pair size) {
  const Index top = (info.height - size.h) / 2, left = (info.width - size.w) / 2;
  return {{top, top + size.h}, {left, left + size.w}};
}
/// Both ways on a part of the photograph; false if they differ by more than rounding.
bool compare_on_crop(const CachedImage& image, Index size, const PolicySpec& policy, const std::vector<float>& parameters, int threads) {
  const ImageInfo& info = image.info();
  const ImageSource<float> crop = photograph_source(image, middle(info, {std::min(size, info.height), std::min(size, info.width)}));
  const Table table = table_of<Net>(crop.shape());
  Cpu backend(threads);
  const PolicySpec fits = fitting(policy, table);
  const Gradient column = gradient_of(table, Layers::value, crop, parameters, backend), rows = gradient_of(table, fits, crop, parameters, backend);
  double worst = 0;
  std::string where;
  for (const Parameter& p : parameters_of(table)) {
    const auto a = elements_of(p, std::span(column.values)), b = elements_of(p, std::span(rows.values));
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) difference += std::pow(double(a[i]) - double(b[i]), 2), norm += std::pow(double(a[i]), 2);
    if (const double relative = difference > 0 ? std::sqrt(difference / norm) : 0; relative > worst || where.empty())
      worst = relative, where = p.name;
  }
  std::printf("On the middle %lldx%lld, by %s:\n  loss %.7f, layer by layer %.7f; ", static_cast<long long>(crop.shape().h),
              static_cast<long long>(crop.shape().w), to_string(fits).c_str(), rows.loss, column.loss);
  if (worst == 0) std::printf("all gradients are equal to the bit\n");
  else
    std::printf("gradients differ by at most %.2g of their norm, in %s: %s\n", worst, where.c_str(),
                worst <= rounding ? "the order of summation" : "more than rounding");
  return worst <= rounding;
}
Pair parse_part(const std::string& text, const ImageInfo& info) {
  const auto cross = text.find('x');
  const auto h = parse_number<Index>(std::string_view(text).substr(0, cross));
  const auto w = cross == text.npos ? std::nullopt : parse_number<Index>(std::string_view(text).substr(cross + 1));
  if (!h || !w || *h < 32 || *w < 32 || *h > info.height || *w > info.width)
    throw Error(error_text("no part '" + text + "' of a photograph of " + std::to_string(info.height) + "x" + std::to_string(info.width),
                           "a part is rows x columns, from 32x32 to the whole", "write it as in 512x512"));
  return {*h, *w};
}
int run(const Arguments& arguments) {
  std::optional<Index> limit;
  if (arguments.limit) limit = parse_bytes(*arguments.limit);
  const auto cache = std::make_shared<TileCache>(TileCacheOptions{.bytes = parse_bytes(arguments.cache)});
  const CachedImage image(open_photograph(arguments.image, arguments.level), cache);
  const ImageInfo& info = image.info();
  const Pair part = arguments.part.empty() ? Pair{info.height, info.width} : parse_part(arguments.part, info);
  const Table table = table_of<Net>({1, 3, part.h, part.w});
  const std::vector<Candidate> list = candidates(table);
  const Candidate column = list[0];
  const Index smallest = std::min_element(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) { return a.bytes < b.bytes; })->bytes;
  const Index allowed = limit ? *limit : std::max(column.bytes / 4, smallest);
  const Candidate chosen = choose(list, allowed);
  const Index elements = parameter_count(table);
  std::cout << "lrcnn " << version() << ", backend " << Cpu::name << "\n";
  if (!cpu_is_fast) std::cout << "This build has no oneDNN, so plain loops do the work, very slowly.\n";
  std::cout << "Photograph: " << part.h << " rows of " << part.w << " pixels (" << info.format
            << "). VGG-16's trunk, global average, 10 classes: " << elements
            << " parameters.\nPlanned peak, layer by layer: " << format_bytes(column.bytes)
            << "\nPlanned peak, by rows:        " << format_bytes(chosen.bytes) << ", " << fixed_text(chosen.work / column.work, 2)
            << " times the arithmetic: " << to_string(chosen.policy) << "\n"
            << std::flush;
  const ImageSource<float> photograph = photograph_source(image, middle(info, part));
  std::vector<float> parameters(static_cast<std::size_t>(elements)), gradients(parameters.size());
  initialize<float>(parameters_of(table), He{}, 1, parameters);
  const bool same =
      compare_on_crop(image, arguments.crop, chosen.policy.partitions[0].cut == Cut::column ? list.back().policy : chosen.policy, parameters,
                      arguments.threads);   // starts the threads, too
  std::cout << "Limit: " << format_bytes(allowed) << " beyond the " << format_bytes(address_space())
            << " of address space that the process has with parameters, gradients and threads; " << format_bytes(cache->options().bytes)
            << " for decoded tiles and " << format_bytes(slack) << " for generated code.\n"
            << std::flush;
  limit_address_space(allowed + cache->options().bytes + slack);
  Cpu backend(arguments.threads);
  try {
    static_cast<void>(allocate_arena(backend, make_plan(table, column.policy, Cpu::target)));
    std::cout << "Layer by layer would fit, too.\n";
  } catch (const PlanError& e) {
    std::cout << "Layer by layer is refused: " << std::string_view(e.what()).substr(7) << "\n";
  }
  Executor<Cpu> executor(make_plan(table, chosen.policy, Cpu::target), backend, parameters.data(), gradients.data());
  LossResult result;
  double seconds = 0;
  const Index measured = resident_growth(executor.arena(), [&] {
    StepProgress progress(executor.plan());
    result = executor.run(photograph, labels, SoftmaxCrossEntropy{}, progress);
    seconds = progress.seconds();
  });
  double norm = 0;
  for (const float g : gradients) norm += double(g) * double(g);
  std::cout << "Loss " << fixed_text(result.mean(), 6) << ", norm of the gradient " << fixed_text(std::sqrt(norm), 6) << ", "
            << fixed_text(seconds, 1) << " s\n"
            << "Planned peak: layer by layer " << format_bytes(column.bytes) << ", by rows " << format_bytes(chosen.bytes)
            << ". Measured: " << measured_text(measured) << ", with the tiles that were decoded meanwhile.\nTiles: " << cache_text(cache->report())
            << ".\n";
  return same ? 0 : 1;
}
}   // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Takes the exact gradient of VGG-16 over a whole photograph within a limit of memory.");
  app.add_option("IMAGE", arguments.image, "a colour photograph: whole-slide image, TIFF, PNG, JPEG or .npy")->required();
  app.add_option("--limit", arguments.limit,
                 "bytes beyond parameters, gradients and decoded tiles, as in 800M or 1GiB; a quarter of layer by layer's if not given");
  app.add_option("--cache", arguments.cache, "bytes of decoded tiles that are kept")->capture_default_str();
  app.add_option("--level", arguments.level, "level of a whole-slide image; 0, the finest, if not given")->check(CLI::Range(0, 1000));
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  app.add_option("--part", arguments.part, "rows x columns of the photograph's middle, to take only those");
  app.add_option("--crop", arguments.crop, "rows and columns of the part on which both ways are compared")
      ->check(CLI::Range(32, 4096))
      ->capture_default_str();
  return run_program(app, argc, argv, [&] { return run(arguments); });
}
