// What the CUDA backend says when the device or its libraries refuse, with the fault put in behind the thin call layer;
// and that the parameters can still be read after each of them.
#include "cudnn/host_library.hpp"
#include "exec/user_layers.hpp"
#include "support/run_network.hpp"
#include "support/error_of.hpp"
#include "support/own_optimizers.hpp"
#include "support/thorough.hpp"
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/policy/parse.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = LeNet<10>;
const Input input{4, 1, 28, 28};
struct Noise {
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
  Input extents;
  explicit Noise(const Input& of = input) : pixels(static_cast<std::size_t>(of.count())), labels(static_cast<std::size_t>(of.n)), extents(of) {
    const Random random(7);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(random.normal(i));
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  }
  MemorySource<float> source() const { return {pixels.data(), extents}; }
};
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
/// A loss that the backend does not know: cross entropy, three times.
struct Scaled {
  static constexpr std::string_view name = "scaled";
  template <class T>
  void operator()(const View<const T>& logits, std::span<const std::int32_t> labels, const View<T>& dx, double scale, LossResult& result) const {
    LossResult once;
    SoftmaxCrossEntropy{}(logits, labels, dx, 3 * scale, once);
    result.sum += 3 * once.sum, result.correct += once.correct, result.count += once.count;
  }
};
using Rows = Policy<Share<4>, CheckpointAtPools, RecomputeAll, Workspace<1_MiB>>;
}   // namespace
TEST_CASE("each call that fails ends the step with an error that says what failed, and parameters remain readable") {
  const Noise batch({1, 1, 28, 28});        // it takes hundreds of steps
  const Index stride = cases_to_do(1, 4);   // the first calls begin the step
  for (const int steps_before : {1, 2}) {   // the next one is recorded, or a recording is started again
    Index failed = 0, recovered = 0, tried = 0;
    for (Index k = 0;; k += k < 12 ? 1 : stride) {
      const auto library = std::make_shared<HostLibrary<>>();
      BasicTrainer<Cudnn> trainer(Net::layers, Rows::value, batch.extents, Sgd{.lr = 0.01, .momentum = 0.9}, {}, {}, Cudnn(library));
      for (int i = 0; i < steps_before; ++i) trainer.step(batch.source(), batch.labels);
      const std::vector<float> before = trainer.read_parameters();
      library->fail_at = library->calls + k;
      library->failure = "CUDA_ERROR_ASSUMED: the device has gone";
      const std::string text = error_of([&] { trainer.step(batch.source(), batch.labels); });
      if (library->calls <= library->fail_at) break;   // no call was the k-th: all have had their turn
      INFO("call ", k, ": ", text);
      if (text == "no error") {   // what could not be recorded was done step by step
        CHECK(contains(trainer.backend().recording_problem(), "CUDA_ERROR_ASSUMED: the device has gone"));
        ++recovered;
      } else {
        CHECK(text.starts_with("lrcnn: "));
        CHECK(contains(text, " failed: CUDA_ERROR_ASSUMED: the device has gone; "));
        CHECK(contains(text, "parameters read before this step are still good"));
        ++failed;
      }
      CHECK(trainer.read_parameters().size() == before.size());
      trainer.write_parameters(before);
      CHECK(std::isfinite(trainer.step(batch.source(), batch.labels).loss));   // the device has come back: training goes on
      ++tried;
    }
    CHECK(failed + recovered == tried);
    CHECK((steps_before == 1 ? recovered : failed) > cases_to_do(20, 10));
    if (steps_before == 2) CHECK(recovered == 0);
  }
}
TEST_CASE("an error within a recorded part of the step says so") {
  const Noise batch;
  const auto library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> trainer(Net::layers, Policy<Column, Workspace<1_MiB>>::value, input, Sgd{}, {}, {}, Cudnn(library));
  for (int i = 0; i < 2; ++i) trainer.step(batch.source(), batch.labels);
  library->fail_at = library->calls + 5 + fills_arenas();   // wait, labels (2 calls), NaN for the arena, a batch's rows (2 calls)
  CHECK(error_of([&] { trainer.step(batch.source(), batch.labels); }) ==
        "lrcnn: a recorded part of the step failed: the test says no; the device answers every call in order; look at the message; "
        "parameters read before this step are still good");
}
TEST_CASE("whatever is thrown within a step, no recording stays open, and the next step is sound") {
  struct Own : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const Noise batch;
  const auto sound = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> other(Net::layers, Policy<Column, Workspace<1_MiB>>::value, input, Sgd{}, {}, {}, Cudnn(sound));
  const double want = other.gradients_of(batch.source(), batch.labels).mean();
  const Index first = sound->calls;
  other.gradients_of(batch.source(), batch.labels);   // recorded
  const Index count = sound->calls - first;
  CHECK(sound->recordings > 0);
  Index own = 0, memory = 0;
  for (Index k = 0; k < count; ++k) {
    const auto library = std::make_shared<HostLibrary<>>();
    BasicTrainer<Cudnn> one(Net::layers, Policy<Column, Workspace<1_MiB>>::value, input, Sgd{}, {}, {}, Cudnn(library));
    one.gradients_of(batch.source(), batch.labels);
    library->fail_at = library->calls + k;
    library->thrown = k % 2 == 0 ? std::make_exception_ptr(Own("an exception of the program's")) : std::make_exception_ptr(std::bad_alloc());
    INFO("call ", k);
    try {
      one.gradients_of(batch.source(), batch.labels);
    } catch (const Own& e) {
      CHECK(std::string(e.what()) == "an exception of the program's");
      ++own;
    } catch (const std::bad_alloc&) {
      ++memory;
    }
    CHECK(one.read_parameters().size() == other.read_parameters().size());   // which waits, as nothing may within a recording
    for (int i = 0; i < 2; ++i) CHECK(one.gradients_of(batch.source(), batch.labels).mean() == want);
    CHECK(library->recordings >= sound->recordings);
    CHECK(one.backend().recording_problem() == "");
  }
  CHECK(own == (count + 1) / 2);
  CHECK(memory == count / 2);
}
TEST_CASE("a step that failed leaves nothing in the next one's loss") {
  const Noise batch;
  const auto library = std::make_shared<HostLibrary<>>(), sound = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> one(Net::layers, Rows::value, input, Sgd{}, {}, {}, Cudnn(library));
  BasicTrainer<Cudnn> other(Net::layers, Rows::value, input, Sgd{}, {}, {}, Cudnn(sound));
  const double want = other.gradients_of(batch.source(), batch.labels).mean();
  for (int i = 0; i < 2; ++i) CHECK(one.gradients_of(batch.source(), batch.labels).mean() == want);   // now all is recorded
  const Index begun = library->calls;
  CHECK(one.gradients_of(batch.source(), batch.labels).mean() == want);
  library->fail_at = 2 * library->calls - begun - 2;   // behind the loss
  CHECK(error_of([&] { one.gradients_of(batch.source(), batch.labels); }) != "no error");
  CHECK(one.gradients_of(batch.source(), batch.labels).mean() == want);
}
TEST_CASE("a plan that the device has no memory for is refused before the first step, with the figures") {
  const auto library = std::make_shared<HostLibrary<>>();
  const Input many{1024, 1, 28, 28};   // whose plan takes more than the workspace that a chosen policy has
  const Index parameters = 2 * 4 * parameter_count(make_table(Net::layers, many));   // and their gradients
  library->capacity = parameters + 46'000'000;
  const std::string text = error_of([&] { BasicTrainer<Cudnn>(Net::layers, Rows::value, many, Sgd{}, {}, {}, Cudnn(library)); });
  CHECK(contains(text,
                 "lrcnn: the plan of Policy<Share<4>, CheckpointAtPools, RecomputeAll, DirectConv, Workspace<1048576>> on input "
                 "1024x1x28x28 needs "));
  CHECK(contains(text, " of the memory of pretended device, where "));
  CHECK(contains(text, " are free (out of memory); a plan's memory is taken at once, before the first step; use more slabs"));
  CHECK(contains(text, "or a smaller input; Policy<"));   // one that fits
  const auto policy = text.substr(text.rfind("; Policy<") + 2);
  const PolicySpec fits = parse_policy(policy.substr(0, policy.find(" needs ")));
  CHECK(arena_size(make_table(Net::layers, many), fits, Cudnn::target).bytes <= 46'000'000);
  const Table table = make_table(Net::layers, many);
  const Frontier frontier = find_frontier(table, Policy<Fit<1>, DirectConv>::value, Cudnn::target, {}, Costs(rates_of<Cudnn>()));
  library->capacity = parameters + frontier.smallest().bytes - 1;
  CHECK(contains(error_of([&] { BasicTrainer<Cudnn>(Net::layers, Rows::value, many, Sgd{}, {}, {}, Cudnn(library)); }),
                 "or a smaller input; the fewest bytes that there is a plan for are "));
  CHECK(library->used == 0);
}
TEST_CASE("a device that is too old, or has too old a cuDNN, is refused with what it has and what is the least") {
  const auto fault = [](int capability, Index cudnn) { return cudnn::fault_of({"an old device", capability, 0, 0, cudnn}); };
  CHECK(fault(70, 91900) == "the device (an old device) has compute capability 7.0, and 7.5 is the least");
  CHECK(fault(90, 90701) == "cuDNN 9.7.1 is installed, and 9.8.0 is the least");
  CHECK(fault(75, 90800) == "");
}
TEST_CASE("the backend says in a line which device and library run") {
  CHECK(Cudnn(std::make_shared<HostLibrary<>>()).describe() == "pretended device, cuDNN 9.19.0");
}
TEST_CASE("another program that takes the device's memory meanwhile is an error with the figures, and parameters remain readable") {
  const Noise batch;
  const auto library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> trainer(Net::layers, Rows::value, input, Sgd{}, {}, {}, Cudnn(library));
  trainer.step(batch.source(), batch.labels);
  const auto before = trainer.read_parameters();
  library->capacity = library->used;   // nothing is left
  const std::vector<float> pixels(static_cast<std::size_t>(64 * 28 * 28));
  const MemorySource<float> larger(pixels.data(), {64, 1, 28, 28});
  const std::string text = error_of([&] { trainer.step(larger, std::vector<std::int32_t>(64, 1)); });
  CHECK(contains(text, " of the memory of pretended device, where "));
  CHECK(contains(text, " are free (out of memory)"));
  CHECK(trainer.read_parameters() == before);
  library->capacity = 1'000'000'000;
  CHECK(std::isfinite(trainer.step(batch.source(), batch.labels).loss));
}
TEST_CASE("a convolution without an engine is an error that names layer, slab, precision and what to change") {
  const auto library = std::make_shared<HostLibrary<>>();
  const auto trainer = [&](const PolicySpec& policy) { BasicTrainer<CudnnTf32>(Net::layers, policy, input, Sgd{}, {}, {}, CudnnTf32(library)); };
  const std::string text = error_of([&] { trainer(Policy<Overlap<2>, Workspace<0>>::value); });
  CHECK(contains(text, "lrcnn: layer 'conv1' (conv to 16 channels, kernel 5x5"));
  CHECK(contains(text, "), rows 0.."));
  CHECK(contains(text,
                 ", forward in Tf32: no engine within 0 bytes of workspace (needs 16 bytes of workspace); every convolution of a plan "
                 "needs one; give the policy a larger Workspace, or other slabs"));
  CHECK(library->used == 0);
}
TEST_CASE("a workspace too small for the sums of a bias gradient is refused before the first step") {
  const auto library = std::make_shared<HostLibrary<>>();
  const std::vector<Layer> layers{{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 64, .bias = true},
                                  {.kind = Kind::global_avg_pool},
                                  {.kind = Kind::linear, .channels = 3}};
  const std::string text = error_of([&] {
    BasicTrainer<Cudnn>(layers, Policy<Workspace<256>>::value, {2, 3, 64, 64}, Sgd{}, {}, {}, Cudnn(library));
  });
  CHECK(contains(text, "lrcnn: layer 'conv1' (conv to 64 channels, kernel 3x3"));
  CHECK(contains(text, ": the sums of its bias gradient take "));
  CHECK(contains(text,
                 " bytes of workspace, and there are 256; all scratch lies in the plan's workspace; give the policy a larger Workspace, "
                 "or other slabs"));
}
TEST_CASE("an optimizer of the program's own is refused by name, before anything is on the device") {
  const auto library = std::make_shared<HostLibrary<>>();
  const std::string end =
      " is the program's own, and has no function for a GPU; its update works on the host's memory; use Sgd or AdamW, or train "
      "on a CPU backend";
  for (const Optimizer& optimizer : {Optimizer(RmsProp{}), Optimizer(Lars{})})
    CHECK(error_of<BackendError>([&] { BasicTrainer<Cudnn>(Net::layers, Rows::value, input, optimizer, {}, {}, Cudnn(library)); }) ==
          "lrcnn: the optimizer " + std::string(optimizer.name()) + end);
  CHECK(library->used == 0);
}
TEST_CASE("a layer of the program's own is refused by name") {
  const std::vector<Layer> layers{Tanh::layer(), {.kind = Kind::global_avg_pool}, {.kind = Kind::linear, .channels = 3}};
  const auto library = std::make_shared<HostLibrary<>>();
  const std::string text = error_of([&] { BasicTrainer<Cudnn>(layers, PolicySpec{}, {1, 2, 4, 4}, Sgd{}, {}, {}, Cudnn(library)); });
  CHECK(contains(text,
                 "is a layer of the program's own, and has no loops for a GPU; its functions work on the host's memory; loops for a GPU are compiled "
                 "by a .cu file of the program; make it an ElementLayer or a Pointwise with on_device (docs/extending.md), or train it on a CPU "
                 "backend"));
}
TEST_CASE("a loss that is not finite names the layer, and nothing is updated") {
  Noise batch;
  const auto library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> trainer(Net::layers, Rows::value, input, AdamW{}, {}, {}, Cudnn(library));
  const auto before = trainer.read_parameters();
  batch.pixels[1000] = INFINITY;
  const std::string text = error_of([&] { trainer.step(batch.source(), batch.labels); });
  CHECK(contains(text, "lrcnn: in step 1 the loss is not a number; the first values that are not finite come from the input, images 0..3, rows"));
  CHECK(trainer.read_parameters() == before);
}
TEST_CASE("a batch that is on the device already gives the same step, and the host refuses to read it") {
  const Noise batch;
  const auto library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> trainer(Net::layers, Rows::value, input, Sgd{}, {}, {}, Cudnn(library));
  auto there = trainer.backend().buffer<float>(input.count());
  trainer.backend().write(there.data(), std::span<const float>(batch.pixels));   // one channel: NCHW is NHWC
  const cudnn::DeviceSource source(there.data(), input);
  const LossResult want = trainer.gradients_of(batch.source(), batch.labels);
  const auto gradients = trainer.read_gradients();
  CHECK(trainer.gradients_of(source, batch.labels) == want);
  CHECK(trainer.read_gradients() == gradients);
  BasicTrainer<Reference<float>> host(Net::layers, PolicySpec{}, input, Sgd{});
  CHECK(error_of([&] { host.step(source, batch.labels); }) ==
        "lrcnn: a batch in the memory of a device is given to a backend on the host; only the backend of that device reads it; use "
        "MemorySource, or Cudnn");
}
TEST_CASE("training on the pretended device: rows and columns agree, a file saved by one backend goes on, another loss works") {
  const Noise batch;
  const auto library = std::make_shared<HostLibrary<>>();
  BasicTrainer<Cudnn> rows(Net::layers, Rows::value, input, AdamW{.lr = 0.003}, {.seed = 3}, {}, Cudnn(library));
  BasicTrainer<Reference<float>> reference(Net::layers, PolicySpec{}, input, AdamW{.lr = 0.003}, {.seed = 3});
  for (int i = 0; i < 5; ++i) {
    const StepReport a = rows.step(batch.source(), batch.labels), b = reference.step(batch.source(), batch.labels);
    CHECK(std::abs(a.loss - b.loss) <= 1e-4 * b.loss);
    CHECK(a.accuracy == b.accuracy);
  }
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_cudnn_test.lrcnn";
  rows.save(file);
  BasicTrainer<Reference<float>> next(Net::layers, PolicySpec{}, input, AdamW{.lr = 0.003});
  next.load(file);
  BasicTrainer<Cudnn> again(Net::layers, PolicySpec{}, input, AdamW{.lr = 0.003}, {}, {}, Cudnn(library));
  again.load(file);
  CHECK(std::abs(next.step(batch.source(), batch.labels).loss - again.step(batch.source(), batch.labels).loss) <= 1e-4);
  std::filesystem::remove(file);
  BasicTrainer<Cudnn, Scaled> scaled(Net::layers, Rows::value, input, Sgd{}, {.seed = 3}, {}, Cudnn(library));
  BasicTrainer<Reference<float>, Scaled> plain(Net::layers, PolicySpec{}, input, Sgd{}, {.seed = 3});
  CHECK(std::abs(scaled.step(batch.source(), batch.labels).loss - plain.step(batch.source(), batch.labels).loss) <= 1e-4);
}
TEST_CASE("the policy's precision chooses the backend's type, and a backend that is made by hand must have it") {
  static_assert(std::is_same_v<Trainer<Net, Policy<Share<2>, Bf16>, Cudnn>::BackendType, CudnnBf16>);
  static_assert(std::is_same_v<Trainer<Net, Policy<Share<2>>, CudnnTf32>::BackendType, CudnnTf32>);
  static_assert(peak_bytes<Net, Policy<Share<2>, Fp16, Workspace<0>>, Cudnn>({64, 1, 28, 28}) * 3 <
                peak_bytes<Net, Policy<Share<2>, Fp32, Workspace<0>>, Cudnn>({64, 1, 28, 28}) * 2);
  const auto library = std::make_shared<HostLibrary<>>();
  CHECK(error_of([&] { BasicTrainer<Cudnn>(Net::layers, Policy<Bf16>::value, input, Sgd{}, {}, {}, Cudnn(library)); }) ==
        "lrcnn: the policy asks for Bf16, and backend 'cudnn' works in Fp32; the type of the backend says its precision; use Trainer, which "
        "chooses the type, or leave the part out");
}
TEST_CASE("in fp16 a step whose gradients overflow is left out whole, the scale is halved, and a saved training goes on with it") {
  const Noise batch;
  using Library = HostLibrary<float16>;
  const auto library = std::make_shared<Library>();
  const auto trainer = [&] {
    return BasicTrainer<CudnnFp16>(Net::layers, Rows::value, input, AdamW{.lr = 0.001}, {.seed = 3}, {}, CudnnFp16(library));
  };
  auto one = trainer();
  const auto before = one.read_parameters();
  Index skipped = 0, steps = 0;
  std::vector<float> last = before;
  for (; steps < 40 && (skipped == 0 || one.loss_scale().good_steps < 3); ++steps) {
    const StepReport report = one.step(batch.source(), batch.labels);
    const auto now = one.read_parameters();
    CHECK(report.skipped == (now == last));
    skipped += report.skipped;
    last = now;
    if (steps == 0 && !report.skipped) one.set_loss_scale({.scale = 16777216});   // let it overflow
  }
  CHECK(skipped > 0);
  CHECK(one.state().updates == steps - skipped);
  CHECK(one.steps_done() == steps);
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_fp16_test.lrcnn";
  one.save(file);
  auto other = trainer();
  other.load(file);
  std::filesystem::remove(file);
  CHECK(other.loss_scale() == one.loss_scale());
  one.step(batch.source(), batch.labels), other.step(batch.source(), batch.labels);
  CHECK(other.read_parameters() == one.read_parameters());
}
TEST_CASE("gradients in fp16 are given without their scale, and the curve is that of fp32") {
  const Noise batch;
  BasicTrainer<CudnnFp16> fp16(Net::layers, Rows::value, input, Sgd{.lr = 0.002, .momentum = 0.9}, {.seed = 3}, {},
                               CudnnFp16(std::make_shared<HostLibrary<float16>>()));
  BasicTrainer<CudnnBf16> bf16(Net::layers, Rows::value, input, Sgd{.lr = 0.002, .momentum = 0.9}, {.seed = 3}, {},
                               CudnnBf16(std::make_shared<HostLibrary<bfloat16>>()));
  BasicTrainer<Cudnn> single(Net::layers, Rows::value, input, Sgd{.lr = 0.002, .momentum = 0.9}, {.seed = 3}, {},
                             Cudnn(std::make_shared<HostLibrary<>>()));
  fp16.set_loss_scale({.scale = 1024});
  fp16.gradients_of(batch.source(), batch.labels), bf16.gradients_of(batch.source(), batch.labels), single.gradients_of(batch.source(), batch.labels);
  const auto a = fp16.read_gradients(), b = bf16.read_gradients(), c = single.read_gradients();
  CHECK(distance<float>(a, c) <= 0.01 * norm<float>(c));
  CHECK(distance<float>(b, c) <= 0.05 * norm<float>(c));
  double first = 0;
  for (int i = 0; i < 8; ++i) {
    const double want = single.step(batch.source(), batch.labels).loss;
    if (i == 0) first = want;
    CHECK(std::abs(fp16.step(batch.source(), batch.labels).loss - want) <= 0.01 * first);
    CHECK(std::abs(bf16.step(batch.source(), batch.labels).loss - want) <= 0.05 * first);
  }
}
