// What a step costs on a GPU, and what it takes of its memory: VGG-16 and ResNet-50, forward + backward without an update, under
// column and row policies, in fp32, tf32 and bf16. bench/gpu/peers.py measures PyTorch's on the same shapes; scripts/gpu bench runs both.
//
//   lrcnn_gpu_bench [--out FILE.json] [--quick] [--filter REGEX] [--tune] [--transfer]
//
// --filter measures those cases alone whose name, such as "resnet50 224x32 bf16 column", has a match of the expression.
// --transfer measures something else instead: batches copied to the device against batches that it gathers by itself (transfer.hpp).
// Images are normally distributed numbers and on the device beforehand, parameters are He-initialised. Time is the median
// of steps, each waited for. Memory is measured as what a first step takes of the device's free memory, once another
// small step has loaded the kernels; planned is the plan's peak, without parameters and gradients. Engines are tuned for columns
// ("tuned"), as PyTorch's are by cudnn.benchmark; only those that give the same bits on every run. --tune tunes them for every plan, which takes
// up to a minute for a plan with many slabs.
#include "transfer.hpp"
#include <lrcnn/backend/cudnn/plan_check.hpp>
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/policy/resnet.hpp>
#include <nlohmann/json.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <regex>
using namespace lrcnn;
namespace {
using W = Workspace<256_MiB>;
struct NamedPolicy {
  std::string name;
  PolicySpec spec;
  Index part = 0;   ///< above 0: the policy is the one that Fit chooses for this part of the column's bytes: a quarter, an eighth
};
/// Row policies cut rows only. Fine ones are for images that leave no other choice. In fp32 convolutions want copies of maps: with a small workspace
/// in more pieces, with FastestConv on engines whose last bits may differ from run to run, as PyTorch's may.
const std::vector<NamedPolicy> policies{
    {"column", Policy<Column, W>::value},
    {"pools-overlap4", Policy<Stages<Overlap<4>, Overlap<4>, Overlap<2>, Column>, CheckpointAtPools, RecomputeAll, W>::value},
    {"pools-overlap8", Policy<Stages<Overlap<8>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, W>::value},
    {"pools-share4", Policy<Stages<Share<4>, Share<4>, Share<2>, Column>, CheckpointAtPools, RecomputeAll, W>::value},
    {"three-pools", Policy<Stages<Overlap<7, 8>, Share<4>, Overlap<2>, Column>, CheckpointAt<"pool2", "pool3", "pool4">, RecomputeAll, W>::value},
    {"pools-share32", Policy<Stages<Share<32>, Share<16>, Share<8>, Share<4>, Share<2>>, CheckpointAtPools, RecomputeAll, W>::value},
    {"pools-overlap8-2streams", Policy<Stages<Overlap<8>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, W, Streams<2>>::value},
    {"images1", Policy<Images<1>, W>::value},
    {"fit-quarter", {}, 4},
    {"fit-eighth", {}, 8},
    {"column-small", Policy<Column, Workspace<64_MiB>>::value},
    {"column-fastest", Policy<Column, FastestConv, W>::value},
};
struct NamedNetwork {
  std::string name;
  std::span<const Layer> layers;
};
const NamedNetwork vgg16{"vgg16", Vgg16<>::layers}, resnet50{"resnet50", ResNet50<>::layers};
/// A ready-made policy with the workspace that a GPU can spare.
constexpr PolicySpec with_workspace(PolicySpec spec) {
  spec.workspace_bytes = 256_MiB;
  return spec;
}
/// Of networks with batch norms: what is computed again lies between residual blocks; rows are cut where maps are large.
const std::vector<NamedPolicy> norm_policies{{"column", Policy<Column, W>::value},
                                             {"sums", with_workspace(resnet::Small::value)},
                                             {"large", with_workspace(resnet::Large50::value)},
                                             {"large-small", with_workspace(resnet::LargeSmall50::value)},
                                             {"fit-quarter", {}, 4},
                                             {"fit-eighth", {}, 8},
                                             {"column-small", Policy<Column, Workspace<64_MiB>>::value},
                                             {"column-fastest", Policy<Column, FastestConv, W>::value}};
/// He-initialised, drawn once for each network: no parameter's shape depends on the input's.
const std::vector<float>& initial_parameters(const NamedNetwork& network, const Table& table) {
  static std::map<std::string, std::vector<float>> drawn;
  std::vector<float>& initial = drawn[network.name];
  if (initial.empty()) {
    initial.resize(static_cast<std::size_t>(parameter_count(table)));
    initialize<float>(parameters_of(table), He{}, 1, initial);
  }
  return initial;
}
/// Drawn once; images repeat them.
std::span<const float> normal_numbers() {
  static std::vector<float> drawn;
  const Random random(2);
  while (drawn.size() < 3'000'017) drawn.push_back(static_cast<float>(random.normal(drawn.size())));   // a prime, so that no row repeats another
  return drawn;
}
double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
Index free_bytes(cudnn::Device& library) {
  cudnn::DeviceInfo info;
  cudnn::check(library.info(info), "asking for free memory");
  return info.free_bytes;
}
template <class B>
class Measurement {
 public:
  Measurement(std::string precision, bool tunes_all) : precision_(std::move(precision)), tunes_all_(tunes_all) {
    step(vgg16, {1, 3, 64, 64}, policies[0], 0, false);   // loads the kernels
  }
  /// One case as a line of results. Errors are results too.
  nlohmann::json operator()(const NamedNetwork& network, const Input& input, const NamedPolicy& policy, int least_steps, bool largest = false) {
    nlohmann::json result{{"network", network.name}, {"size", input.h},       {"batch", input.n},
                          {"precision", precision_}, {"policy", policy.name}, {"program", "lrcnn"}};
    try {
      result.update(step(network, input, policy, least_steps, least_steps > 0 && (tunes_all_ || policy.name.starts_with("column"))));
    } catch (const Error& e) {
      result["error"] = e.what();
    }
    if (largest) result["largest"] = true;
    std::printf("%s\n", result.dump().c_str());
    std::fflush(stdout);
    return result;
  }
  const std::string& precision() const { return precision_; }

 private:
  nlohmann::json step(const NamedNetwork& network, const Input& input, const NamedPolicy& policy, int least_steps, bool tuned) {
    B& backend = tuned ? tuned_ : plain_;
    const Table table = make_table(network.layers, input);
    PolicySpec spec = policy.spec;
    if (policy.part > 0) spec.fit_bytes = arena_size(table, policies[0].spec, B::target).bytes / policy.part;
    const Plan plan = make_plan(table, spec, B::target, {}, Costs(rates_of<B>()));
    const Index count = parameter_count(table);
    auto parameters = backend.template buffer<float>(count), gradients = backend.template buffer<float>(count);
    backend.write(parameters.data(), std::span<const float>(initial_parameters(network, table)));
    auto images = backend.template buffer<float>(input.count());
    const std::span<const float> numbers = normal_numbers();
    for (Index at = 0, some = 0; at < input.count(); at += some) {
      some = std::min(input.count() - at, static_cast<Index>(numbers.size()));
      backend.write(images.data() + at, numbers.first(static_cast<std::size_t>(some)));
    }
    const cudnn::DeviceSource source(images.data(), input);
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(input.n), 3);
    const Index before = free_bytes(*library_);
    const auto passed_over_before = backend.tuner().passed_over().size();
    Executor<B> executor(plan, backend, parameters.data(), gradients.data());
    const double loss = executor.run(source, labels).mean();
    nlohmann::json result{{"planned_bytes", plan.peak_bytes()},
                          {"predicted_seconds", seconds(plan, Costs(rates_of<B>()))},
                          {"measured_bytes", before - free_bytes(*library_)},
                          {"loss", loss},
                          {"convolutions", cudnn::requests_of<B::precision>(plan).size()},
                          {"tuned", tuned}};
    if (policy.part > 0) result["chosen"] = to_string(plan.policy);
    if (const auto count_passed_over = backend.tuner().passed_over().size() - passed_over_before; count_passed_over > 0)
      result["engines_passed_over"] = count_passed_over;
    std::vector<double> times;
    for (double all = 0; static_cast<int>(times.size()) < least_steps || (all < 0.8 && times.size() < 30 && least_steps > 0);) {
      const auto start = std::chrono::steady_clock::now();
      executor.run(source, labels);
      times.push_back(seconds_since(start));
      all += times.back();
    }
    std::sort(times.begin(), times.end());
    if (!times.empty()) result["seconds"] = times[times.size() / 2];
    if (!backend.recording_problem().empty()) result["not_recorded"] = backend.recording_problem();
    return result;
  }
  std::string precision_;
  bool tunes_all_;
  std::shared_ptr<typename B::Library> library_ = cudnn::open_library<typename B::element>();
  B plain_{library_}, tuned_{library_, {.on = true}};   ///< for all cases, so that a convolution that several have is built once
};
/// The largest multiple of 64 for which the finest policy's plan fits into the memory that is free beside the image.
template <class B>
Index largest_side(const PolicySpec& policy, Index free) {
  Index fits = 0;
  for (Index low = 1, high = 2048; low <= high;) {
    const Index middle = (low + high) / 2, side = 64 * middle;
    const Input input{1, 3, side, side};
    bool good = false;
    try {
      good = arena_size(make_table(vgg16.layers, input), policy, B::target).bytes + input.count() * 4 < free - 1_GiB;
    } catch (const PlanError&) {
    }
    if (good) fits = side, low = middle + 1;
    else high = middle - 1;
  }
  return fits;
}
/// "resnet50 224x32 bf16 column".
std::string case_name(const NamedNetwork& network, const Input& input, const std::string& precision, const NamedPolicy& policy) {
  return network.name + " " + std::to_string(input.h) + "x" + std::to_string(input.n) + " " + precision + " " + policy.name;
}
/// Does nothing if no file is asked for.
void save(const std::string& out, const nlohmann::json& results) {
  if (out.empty()) return;
  const std::string text = nlohmann::json{{"results", results}}.dump(1) + "\n";
  write_file_atomically(out, std::as_bytes(std::span(text)));
}
}   // namespace

int main(int argc, char** argv) {
  try {
    std::string out;
    std::regex filter(".");
    bool quick = false, tunes_all = false, transfer = false;
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--quick") quick = true;
      else if (argument == "--tune") tunes_all = true;
      else if (argument == "--transfer") transfer = true;
      else if (argument == "--filter" && i + 1 < argc) filter = std::regex(argv[++i]);
      else if (argument == "--out" && i + 1 < argc) out = argv[++i];
      else
        throw Error(error_text("argument '" + argument + "' not understood",
                               "usage: lrcnn_gpu_bench [--out FILE.json] [--quick] [--filter REGEX] [--tune] [--transfer]", "try without it"));
    }
    if (const std::string problem = cudnn::device_problem(); !problem.empty()) {
      std::fprintf(stderr, "lrcnn skips: %s\n", problem.c_str());
      return 77;
    }
    if (!out.empty()) check_writable(out);
    if (transfer) {
      save(out, bench::measure_transfers(quick));
      return 0;
    }
    nlohmann::json results = nlohmann::json::array();
    Measurement<Cudnn> fp32("fp32", tunes_all);
    Measurement<CudnnTf32> tf32("tf32", tunes_all);
    Measurement<CudnnBf16> bf16("bf16", tunes_all);
    const auto measure = [&](auto& measurement, const NamedNetwork& network, const Input& input, const NamedPolicy& policy) {
      if (policy.name.starts_with("column-") && measurement.precision() != "fp32") return;
      if (std::regex_search(case_name(network, input, measurement.precision(), policy), filter))
        results.push_back(measurement(network, input, policy, 3));
    };
    std::vector<Input> inputs{{32, 3, 224, 224}, {256, 3, 224, 224}, {1, 3, 1024, 1024}, {1, 3, 4096, 4096}};
    if (quick) inputs = {{8, 3, 224, 224}};
    for (const Input& input : inputs)
      for (const NamedPolicy& policy : policies) {
        if (policy.name == "images1" && input.n == 1) continue;
        measure(tf32, vgg16, input, policy);
        measure(bf16, vgg16, input, policy);
        measure(fp32, vgg16, input, policy);
      }
    inputs = {{32, 3, 224, 224}, {1, 3, 1024, 1024}, {1, 3, 4096, 4096}};
    if (quick) inputs = {{4, 3, 224, 224}};
    for (const Input& input : inputs)
      for (const NamedPolicy& policy : norm_policies) {
        if (policy.name.starts_with("large") && input.n > 1) continue;   // for large images
        measure(tf32, resnet50, input, policy);
        measure(bf16, resnet50, input, policy);
        measure(fp32, resnet50, input, policy);
      }
    if (!quick) {
      cudnn::DeviceInfo info;
      cudnn::check(cudnn::open_library<float>()->info(info), "asking for free memory");
      const auto measure_largest = [&]<class B>(Measurement<B>& measurement, const NamedPolicy& policy) {
        if (!std::regex_search("vgg16 largest " + measurement.precision() + " " + policy.name, filter)) return;
        const Index side = largest_side<B>(policy.spec, info.free_bytes);
        results.push_back(measurement(vgg16, {1, 3, side, side}, policy, 0, true));
      };
      for (const NamedPolicy& policy : {policies[0], policies[5]}) {
        measure_largest(tf32, policy);
        measure_largest(bf16, policy);
      }
    }
    save(out, results);
    return 0;
  } catch (const std::exception& e) {   // a regular expression may be wrong, too
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
