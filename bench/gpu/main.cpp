// What a step costs on a GPU, and what it takes of its memory: VGG-16 and ResNet-50, forward + backward without an update, under
// column and row policies, in fp32, tf32 and bf16. bench/gpu/peers.py measures PyTorch's on the same shapes; scripts/gpu bench runs both.
//
//   lrcnn_gpu_bench [--out FILE.json] [--quick] [--transfer]
//
// --transfer measures something else instead: batches copied to the device against batches that it gathers by itself (transfer.hpp).
// Images are normally distributed numbers and on the device beforehand, parameters are He-initialised. Time is the median
// of steps, each waited for. Memory is measured as what a first step takes of the device's free memory, once another
// small step has loaded the kernels; planned is the plan's peak, without parameters and gradients. Engines are tuned for the
// column run of smaller inputs ("tuned"), as PyTorch's are by cudnn.benchmark; only those that give the same bits on every run.
#include "transfer.hpp"
#include <lrcnn/backend/cudnn/plan_check.hpp>
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/policy/resnet.hpp>
#include <nlohmann/json.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
using namespace lrcnn;
namespace {
using W = Workspace<256_MiB>;
struct NamedPolicy {
  std::string name;
  PolicySpec spec;
};
/// Row policies cut rows only. Fine ones are for images that leave no other choice.
const std::vector<NamedPolicy> policies{
    {"column", Policy<Column, W>::value},
    {"pools-overlap4", Policy<Stages<Overlap<4>, Overlap<4>, Overlap<2>, Column>, CheckpointAtPools, RecomputeAll, W>::value},
    {"pools-overlap8", Policy<Stages<Overlap<8>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, W>::value},
    {"pools-share4", Policy<Stages<Share<4>, Share<4>, Share<2>, Column>, CheckpointAtPools, RecomputeAll, W>::value},
    {"three-pools", Policy<Stages<Overlap<7, 8>, Share<4>, Overlap<2>, Column>, CheckpointAt<"pool2", "pool3", "pool4">, RecomputeAll, W>::value},
    {"pools-share32", Policy<Stages<Share<32>, Share<16>, Share<8>, Share<4>, Share<2>>, CheckpointAtPools, RecomputeAll, W>::value},
    {"pools-overlap8-2streams", Policy<Stages<Overlap<8>, Overlap<8>, Overlap<4>, Column>, CheckpointAtPools, RecomputeAll, W, Streams<2>>::value},
    {"images1", Policy<Images<1>, W>::value},
};
struct Network {
  std::string name;
  std::span<const Layer> layers;
};
const Network vgg16{"vgg16", Vgg16<>::layers}, resnet50{"resnet50", ResNet50<>::layers};
/// A ready-made policy with the workspace that a GPU can spare.
constexpr PolicySpec with_workspace(PolicySpec spec) {
  spec.workspace_bytes = 256_MiB;
  return spec;
}
/// Of networks with batch norms: what is computed again lies between residual blocks; rows are cut where maps are large.
const std::vector<NamedPolicy> norm_policies{{"column", Policy<Column, W>::value},
                                             {"sums", with_workspace(resnet::Small::value)},
                                             {"large", with_workspace(resnet::Large50::value)},
                                             {"large-small", with_workspace(resnet::LargeSmall50::value)}};
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
  explicit Measurement(std::string precision) : precision_(std::move(precision)) {
    step(vgg16, {1, 3, 64, 64}, policies[0].spec, 0, false);   // loads the kernels
  }
  /// One case as a line of results. Errors are results too.
  nlohmann::json operator()(const Network& network, const Input& input, const NamedPolicy& policy, int least_steps, bool largest = false) {
    nlohmann::json result{{"network", network.name}, {"size", input.h},       {"batch", input.n},
                          {"precision", precision_}, {"policy", policy.name}, {"program", "lrcnn"}};
    try {
      const bool few_problems = policy.name == "column" && input.count() <= 8'000'000;   // trying engines takes many steps' time
      result.update(step(network, input, policy.spec, least_steps, few_problems));
    } catch (const Error& e) {
      result["error"] = e.what();
    }
    if (largest) result["largest"] = true;
    std::printf("%s\n", result.dump().c_str());
    std::fflush(stdout);
    return result;
  }

 private:
  nlohmann::json step(const Network& network, const Input& input, const PolicySpec& policy, int least_steps, bool tuned) {
    B& backend = tuned ? tuned_ : plain_;
    const Table table = make_table(network.layers, input);
    const Plan plan = make_plan(table, policy, B::target);
    const auto layout = parameters_of(table);
    const Index count = parameter_count(table);
    std::vector<float> initial(static_cast<std::size_t>(count));
    initialize<float>(layout, He{}, 1, initial);
    auto parameters = backend.template buffer<float>(count), gradients = backend.template buffer<float>(count);
    backend.write(parameters.data(), std::span<const float>(initial));
    auto images = backend.template buffer<float>(input.count());
    const Random random(2);
    std::vector<float> row(static_cast<std::size_t>(input.c * input.w * input.h));
    for (std::size_t e = 0; e < row.size(); ++e) row[e] = static_cast<float>(random.normal(e));
    for (Index i = 0; i < input.n; ++i) backend.write(images.data() + i * static_cast<Index>(row.size()), std::span<const float>(row));
    const cudnn::DeviceSource source(images.data(), input);
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(input.n), 3);
    const Index before = free_bytes(*library_);
    Executor<B> executor(plan, backend, parameters.data(), gradients.data());
    const double loss = executor.run(source, labels).mean();
    nlohmann::json result{{"planned_bytes", plan.peak_bytes()},
                          {"measured_bytes", before - free_bytes(*library_)},
                          {"loss", loss},
                          {"convolutions", cudnn::requests_of<B::precision>(plan).size()},
                          {"tuned", tuned}};
    std::vector<double> seconds;
    for (double all = 0; static_cast<int>(seconds.size()) < least_steps || (all < 1.5 && seconds.size() < 30 && least_steps > 0);) {
      const auto start = std::chrono::steady_clock::now();
      executor.run(source, labels);
      seconds.push_back(seconds_since(start));
      all += seconds.back();
    }
    std::sort(seconds.begin(), seconds.end());
    if (!seconds.empty()) result["seconds"] = seconds[seconds.size() / 2];
    if (!backend.recording_problem().empty()) result["not_recorded"] = backend.recording_problem();
    return result;
  }
  std::string precision_;
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
    bool quick = false, transfer = false;
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--quick") quick = true;
      else if (argument == "--transfer") transfer = true;
      else if (argument == "--out" && i + 1 < argc) out = argv[++i];
      else
        throw Error(error_text("argument '" + argument + "' not understood", "usage: lrcnn_gpu_bench [--out FILE.json] [--quick] [--transfer]",
                               "try without it"));
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
    Measurement<Cudnn> fp32("fp32");
    Measurement<CudnnTf32> tf32("tf32");
    Measurement<CudnnBf16> bf16("bf16");
    std::vector<Input> inputs{{32, 3, 224, 224}, {256, 3, 224, 224}, {1, 3, 1024, 1024}, {1, 3, 4096, 4096}};
    if (quick) inputs = {{8, 3, 224, 224}};
    for (const Input& input : inputs)
      for (const NamedPolicy& policy : policies) {
        if (policy.name == "images1" && input.n == 1) continue;
        results.push_back(tf32(vgg16, input, policy, 3));
        results.push_back(bf16(vgg16, input, policy, 3));
        results.push_back(fp32(vgg16, input, policy, 3));
      }
    inputs = {{32, 3, 224, 224}, {1, 3, 1024, 1024}, {1, 3, 4096, 4096}};
    if (quick) inputs = {{4, 3, 224, 224}};
    for (const Input& input : inputs)
      for (const NamedPolicy& policy : norm_policies) {
        if (policy.name.starts_with("large") && input.n > 1) continue;   // for large images
        results.push_back(tf32(resnet50, input, policy, 3));
        results.push_back(bf16(resnet50, input, policy, 3));
      }
    if (!quick) {
      cudnn::DeviceInfo info;
      cudnn::check(cudnn::open_library<float>()->info(info), "asking for free memory");
      for (const NamedPolicy& policy : {policies[0], policies[5]}) {
        const Index side = largest_side<CudnnTf32>(policy.spec, info.free_bytes);
        results.push_back(tf32(vgg16, {1, 3, side, side}, policy, 0, true));
        const Index half_side = largest_side<CudnnBf16>(policy.spec, info.free_bytes);
        results.push_back(bf16(vgg16, {1, 3, half_side, half_side}, policy, 0, true));
      }
    }
    save(out, results);
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
