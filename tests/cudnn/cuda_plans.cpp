// Plans that were made here run on a device that is not here: every distinct convolution of every slab of the shipped
// networks, under many policies and in each precision, has an engine within the workspace that its plan gives it. Every day some of the networks.
#include "cudnn/benchmarked_plans.hpp"
#include "support/thorough.hpp"
#include <lrcnn/backend/cudnn/launches.hpp>
#include <lrcnn/backend/cudnn/plan_check.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::cudnn;
namespace {
std::shared_ptr<const DescribedDevice> h200() { return describe_device(testing::h200_description()); }
struct Shipped {
  std::string name;
  std::span<const Layer> layers;
  Input input;
};
using W = Workspace<64_MiB>;
}   // namespace
TEST_CASE("every convolution of the shipped networks' slabs has an engine on an H200") {
  const auto device = h200();
  CHECK(device->info().name == "NVIDIA H200");
  CHECK(device->info().compute_capability == 90);
  const std::vector<Shipped> networks{{"vgg11", Vgg11<>::layers, {16, 3, 224, 224}},  {"vgg13", Vgg13<>::layers, {2, 3, 512, 512}},
                                      {"vgg16", Vgg16<>::layers, {8, 3, 224, 224}},   {"vgg16", Vgg16<>::layers, {1, 3, 1024, 1024}},
                                      {"vgg16", Vgg16<>::layers, {1, 3, 4096, 4096}}, {"vgg19", Vgg19<>::layers, {3, 3, 640, 480}},
                                      {"lenet", LeNet<>::layers, {64, 1, 28, 28}},    {"smallnet", SmallNet<>::layers, {128, 1, 28, 28}}};
  const std::vector<PolicySpec> policies{Policy<Column, W>::value,
                                         Policy<Images<1>, W>::value,
                                         Policy<Share<8>, CheckpointAtPools, RecomputeAll, W>::value,
                                         Policy<Overlap<8>, CheckpointAtPools, RecomputeAll, W>::value,
                                         Policy<Share<3, 5>, CheckpointAtPools, RecomputeCheap, W>::value,
                                         Policy<Overlap<7>, CheckpointEvery<4>, RecomputeAll, W>::value,
                                         Policy<Stages<Overlap<16>, Overlap<8>, Share<4>, Column>, CheckpointAtPools, RecomputeAll, W>::value,
                                         Policy<Stages<ByImages<1, Overlap<5>>, Overlap<3>, Column>, CheckpointAtPools, RecomputeAll, W>::value};
  Index all = 0;
  std::size_t number = 0;
  const auto check = [&]<Precision precision>() {
    std::set<Request> requests;
    for (const Shipped& network : networks) {
      if (!testing::has_turn(number++, 5)) continue;   // a number that shares no factor with the networks': each precision gets others
      for (const PolicySpec& policy : policies) {
        const Table table = make_table(network.layers, network.input);
        std::optional<Plan> plan;
        try {
          plan = make_plan(table, policy, BasicCudnn<precision>::target);
        } catch (const PlanError&) {   // a small network has fewer rows than the policy wants slabs
          CHECK(network.input.h <= 32);
          continue;
        }
        requests.merge(requests_of<precision>(*plan));
        MESSAGE(precision_name(precision), " ", network.name, " ", to_string(network.input), " ", to_string(policy), ": peak ",
                format_bytes(plan->peak_bytes()));
      }
    }
    const PlanCheck result = check_requests(requests, *device, 2);
    MESSAGE(result.convolutions, " distinct convolutions in ", precision_name(precision), ", ", result.activated,
            " of them with their ReLU; the largest workspace ", format_bytes(result.workspace_bytes));
    CHECK((result.faults.empty() ? "" : result.faults[0]) == "");
    CHECK(result.workspace_bytes <= 64_MiB);
    all += result.convolutions;
  };
  check.operator()<Precision::fp32>();
  check.operator()<Precision::tf32>();
  check.operator()<Precision::fp16>();
  check.operator()<Precision::bf16>();
  CHECK(all >= (testing::thorough() ? 2000 : 50));
}
TEST_CASE("an H100 has an engine for every convolution of VGG-16's slabs, too, and its memory the bandwidth of its data sheet") {
  const std::string description = testing::description_of("h100");
  const auto device = describe_device(description);
  CHECK(device->info().name == "NVIDIA H100 80GB HBM3");
  CHECK(device->info().compute_capability == 90);
  CHECK(peaks_of(description).bytes == doctest::Approx(3.352e12).epsilon(0.001));
  CHECK(2 * peaks_of(description).products_in(Precision::bf16) == doctest::Approx(1070.5e12).epsilon(0.001));
  const Table table = make_table(Vgg16<>::layers, {8, 3, 224, 224});
  for (const PolicySpec& policy : {Policy<Column, W>::value, Policy<Share<8>, CheckpointAtPools, RecomputeAll, W>::value}) {
    const PlanCheck result = check_plan_on<Precision::bf16>(table, policy, *device);
    CHECK((result.faults.empty() ? "" : result.faults[0]) == "");
    CHECK(result.convolutions > 20);
  }
}
TEST_CASE("no convolution of maps is left to an engine that works without copies because its workspace is small") {
  const auto device = describe_device(testing::description_of("h100"));
  const auto bytes_of = engine_bytes_on(*device);
  const auto check = [&]<Precision precision>(const Shipped& network, const PolicySpec& policy, std::span<const std::string_view> direct) {
    using B = BasicCudnn<precision>;
    const Plan plan = make_plan(make_table(network.layers, network.input), policy, B::target, {}, Costs(rates_of<B>()));
    CAPTURE(to_string(plan.policy));
    Index convolutions = 0, cut = 0;
    for (const Request& request : requests_of<precision>(plan))
      for (const Request& attempt : attempts(request)) {
        if (request.problem.p * request.problem.q == 1 || !bytes_of(attempt.problem, attempt.workspace_bytes)) continue;
        const std::vector<Piece> pieces = pieces_of(attempt, bytes_of);
        for (const Piece& piece : {pieces.front(), pieces.back()}) {
          Engine engine;
          REQUIRE(device->engine(engine, piece.problem, attempt.workspace_bytes).good());
          INFO(to_string(attempt.problem), " within ", attempt.workspace_bytes, " bytes, ", pieces.size(), " pieces: ", engine.name);
          CHECK(std::find(direct.begin(), direct.end(), engine.name.substr(0, engine.name.find('_'))) == direct.end());
        }
        ++convolutions, cut += pieces.size() > 1;
        break;
      }
    CHECK(convolutions > 20);
    return cut;
  };
  const auto chosen = [](const Shipped& network, const Target& target) {
    PolicySpec policy = Policy<Fit<1>>::value;
    policy.fit_bytes = arena_size(make_table(network.layers, network.input), Policy<Column, Workspace<256_MiB>>::value, target).bytes / 4;
    return policy;
  };
  const Shipped vgg{"vgg16", Vgg16<>::layers, {1, 3, 4096, 4096}}, resnet{"resnet50", ResNet50<>::layers, {1, 3, 4096, 4096}},
      batch{"vgg16", Vgg16<>::layers, {32, 3, 224, 224}};
  constexpr std::array<std::string_view, 3> without_tensor_cores{"eng0", "eng1", "eng28"};   // of cuDNN 9.19
  constexpr std::array<std::string_view, 1> naive{"eng0"};
  const PolicySpec large = Policy<Column, Workspace<256_MiB>>::value, small = Policy<Column, Workspace<64_MiB>>::value;
  Index cut = 0;
  cut += check.operator()<Precision::bf16>(vgg, chosen(vgg, CudnnBf16::target), without_tensor_cores);
  cut += check.operator()<Precision::bf16>(resnet, chosen(resnet, CudnnBf16::target), without_tensor_cores);
  cut += check.operator()<Precision::tf32>(vgg, chosen(vgg, CudnnTf32::target), without_tensor_cores);
  cut += check.operator()<Precision::bf16>(vgg, large, without_tensor_cores);
  CHECK(cut > 4);
  CHECK(check.operator()<Precision::fp32>(batch, large, naive) > 4);
  CHECK(check.operator()<Precision::fp32>(batch, small, naive) > 10);
  CHECK(check.operator()<Precision::fp32>({"vgg16", Vgg16<>::layers, {1, 3, 1024, 1024}}, small, naive) > 8);   // by rows
  CHECK(check_requests(requests_of<Precision::fp32>(make_plan(make_table(batch.layers, batch.input), small, Cudnn::target)), *device).in_pieces > 10);
}
TEST_CASE("likewise of networks that branch, with transposed, grouped and strided convolutions") {
  const auto device = h200();
  const std::vector<Shipped> networks{{"unet", UNet<2>::layers, {1, 3, 512, 512}},
                                      {"resnet50", ResNet50<>::layers, {2, 3, 224, 224}},
                                      {"resnet18", ResNet18<>::layers, {1, 3, 512, 512}},
                                      {"mobilenet_v2", MobileNetV2<>::layers, {2, 3, 224, 224}},
                                      {"convnext_tiny", ConvNeXtTiny<>::layers, {2, 3, 224, 224}},
                                      {"densenet121", DenseNet121<>::layers, {2, 3, 224, 224}},
                                      {"squeezenet1_1", SqueezeNet11<>::layers, {2, 3, 224, 224}},
                                      {"unet 2015", UNet2015<2>::layers, {1, 1, 572, 572}},
                                      {"transposed",
                                       Sequential<Conv<16>, ConvTranspose<12, Window{.kernel = 4, .stride = 2, .pad = 1}>, ReLU,
                                                  ConvTranspose<8, Window{.kernel = 3, .dilation = 2}, ConvOptions{.groups = 4}>>::layers,
                                       {3, 3, 96, 64}}};
  const std::vector<PolicySpec> policies{Policy<Column, W>::value, Policy<Overlap<4>, CheckpointAtPools, RecomputeAll, W>::value,
                                         Policy<Share<3>, W>::value};
  std::size_t number = 0;
  const auto check = [&]<Precision precision>() {
    for (const Shipped& network : networks) {
      if (!testing::has_turn(number++, 4)) continue;
      std::set<Request> requests;
      Index transposed = 0;
      const Table table = make_table(network.layers, network.input);
      for (const PolicySpec& policy : policies) {
        INFO(network.name, ", ", to_string(policy));
        std::optional<Plan> plan;
        try {
          plan = make_plan(table, policy, BasicCudnn<precision>::target);
        } catch (const PlanError&) {   // the last maps have fewer rows than the policy wants slabs
          CHECK((policy == policies.back() && network.input.h == 224));
          continue;
        }
        requests.merge(requests_of<precision>(*plan));
        for (const Step& step : plan->steps)
          transposed += step.layer >= 0 && step.op == Op::forward && table.node(step.layer).layer.kind == Kind::conv_transpose;
      }
      const PlanCheck result = check_requests(requests, *device, 2);
      MESSAGE(precision_name(precision), " ", network.name, ": ", result.convolutions, " distinct convolutions, ", transposed,
              " steps forward of transposed ones; the largest workspace ", format_bytes(result.workspace_bytes));
      CHECK((result.faults.empty() ? "" : result.faults[0]) == "");
      CHECK(result.workspace_bytes <= 64_MiB);
      CHECK((transposed > 0) == (network.name.starts_with("unet") || network.name == "transposed"));
    }
  };
  check.operator()<Precision::fp32>();
  check.operator()<Precision::bf16>();
}
TEST_CASE("the fastest arithmetic is the one that need not be deterministic") {
  const Table table = make_table(LeNet<>::layers, {4, 1, 28, 28});
  for (const bool fastest : {false, true}) {
    PolicySpec policy = Policy<Share<2>, W>::value;
    policy.conv_algorithm = fastest ? ConvAlgorithm::fastest : ConvAlgorithm::direct;
    for (const Request& r : requests_of<Precision::tf32>(make_plan(table, policy, Cudnn::target)))
      CHECK(r.problem.deterministic == (!fastest || r.problem.h == 1));   // linear layers have no choice of arithmetic
    CHECK(check_plan_on<Precision::tf32>(table, policy, *h200()).faults.empty());
  }
}
TEST_CASE("in 16 bits, too, bias and ReLU are part of the convolution, on engines that need not be compiled for it") {
  const auto device = h200();
  const auto check = [&]<Precision precision>(const PolicySpec& policy) {
    const Table table = make_table(Vgg16<>::layers, {2, 3, 224, 224});
    Index activated = 0;
    for (const Request& request : requests_of<precision>(make_plan(table, policy, BasicCudnn<precision>::target))) {
      if (!request.problem.bias) continue;
      Engine engine;
      const auto status = device->engine(engine, request.problem, request.workspace_bytes);
      INFO(to_string(request.problem), ": ", engine.name);
      CHECK(status.text == "");
      CHECK(request.problem.bias_alignment == 16);
      activated += request.problem.relu;
    }
    CHECK(activated >= 9);   // distinct ones
  };
  for (const PolicySpec& policy : {Policy<Column, W>::value, Policy<Share<8>, CheckpointAtPools, RecomputeAll, W>::value}) {
    check.operator()<Precision::fp16>(policy);
    check.operator()<Precision::bf16>(policy);
  }
}
TEST_CASE("engines can be asked for by name, for tuning; the first of them is the one taken unasked") {
  const auto device = h200();
  const cudnn::Problem problem = testing::biased_convolution();
  std::vector<std::string> names;
  REQUIRE(device->engines(names, problem, 64_MiB).good());
  MESSAGE(names.size(), " engines for ", to_string(problem));
  CHECK(names.size() > 3);
  cudnn::Engine unasked;
  REQUIRE(device->engine(unasked, problem, 64_MiB).good());
  Index served = 0;
  for (const std::string& name : names) {
    cudnn::Engine engine;
    if (!device->engine(engine, problem, 64_MiB, name).good()) continue;
    if (served++ == 0) CHECK(engine.name == unasked.name);
    CHECK(engine.name == name);
    CHECK(engine.workspace_bytes <= 64_MiB);
  }
  CHECK(served > 1);
  cudnn::Engine engine;
  CHECK(device->engine(engine, problem, 64_MiB, "no such engine").text.find("there is no engine no such engine") != std::string::npos);
}
TEST_CASE("a plan that no engine serves says which convolution") {
  const auto device = h200();
  const Request hopeless{.problem = {.op = Op::forward, .n = 8, .c = 64, .h = 34, .w = 224, .k = 64, .p = 99, .q = 224, .kernel = 3, .pad = 1},
                         .workspace_bytes = 1_MiB};
  const PlanCheck check = check_requests({hopeless}, *device);
  REQUIRE(check.faults.size() == 1);
  CHECK(check.faults[0].find("cuDNN on forward Fp32 x 8x64x34x224 y 8x64x99x224 kernel 3x3") == 0);
  CHECK(check.faults[0].find('\n') == std::string::npos);
}
TEST_CASE("a description that is none is refused") {
  CHECK_THROWS_AS(describe_device("{}"), BackendError);
  CHECK_THROWS_AS(describe_device(""), BackendError);
}
TEST_CASE("without a device the backend says why") {
  if (device_problem().empty()) return;   // there is one
  CHECK_THROWS_WITH_AS(Cudnn(),
                       doctest::Contains("the cuDNN backend runs on one CUDA device; choose another device, install a newer "
                                         "driver or cuDNN, or use a CPU backend"),
                       BackendError);
  CHECK_THROWS_AS(device_description(), BackendError);
}
