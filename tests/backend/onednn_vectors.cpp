// One backend for every processor: what it chooses, what it says of that, and that no result depends on it but by rounding.
#include "support/child.hpp"
#include "support/error_of.hpp"
#include "support/run_network.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/sequential.hpp>
#include <doctest/doctest.h>
#include <filesystem>
#include <sstream>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
using Net = Sequential<Conv<16>, ReLU, Conv<24>, ReLU, MaxPool<>, Conv<40>, ReLU, Conv<48>, LeakyReLU<>, GlobalAvgPool, Linear<10>>;
constexpr Input input{.n = 3, .c = 3, .h = 40, .w = 28};
/// What a backend may be told to use, from the least to what it uses by itself.
std::vector<Vectors> choices() {
  std::vector<Vectors> list;
  for (const Vectors v : {Vectors::plain, Vectors::avx2, Vectors::avx512})
    if (v <= Onednn(1).vectors()) list.push_back(v);
  return list;
}
Onednn held_to(Vectors v, const TuningOptions& tuning = {}) { return Onednn(2, tuning, {.vectors = v, .report_slow = false}); }
std::vector<double> wide(const std::vector<float>& v) { return {v.begin(), v.end()}; }
/// A convolution for whose groups no library has kernels, with a name and enough work to be reported.
Layer grouped(std::string_view name, Index groups = 5) {
  return {.kind = Kind::conv, .name = name, .window = {.kernel = 3, .pad = 1}, .channels = 50, .groups = groups, .bias = true};
}
/// Prepares a training step of layers that are slow, twice, and once more with fewer images: what is said meanwhile.
std::vector<std::string> heard_of(std::span<const Layer> layers, bool report) {
  std::vector<std::string> heard;
  Onednn backend(1, {}, {.report_slow = report, .notice = [&](const std::string& text) { heard.push_back(text); }});
  for (const Index images : {2, 2, 1}) {
    const Problem<float> problem(layers, {images, 50, 70, 70}, 1);
    std::vector<float> gradients(problem.parameters.size());
    const Executor<Onednn> executor(make_plan(problem.table, Policy<Share<2>>::value, Onednn::target), backend, problem.parameters.data(),
                                    gradients.data());
  }
  return heard;
}
}   // namespace
TEST_CASE("whatever vectors a backend is held to, plans are the same and gradients agree") {
  Reference<double> reference;
  const Problem<double> exact(Net::layers, input, 1);
  const Problem<float> problem(Net::layers, input, 1);
  const auto want = run_once(exact, Policy<Column>::value, reference);
  const std::vector<PolicySpec> policies{Policy<Column>::value, Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value,
                                         Policy<Overlap<3>, CheckpointAtPools, WinogradConv, Workspace<16_MiB>>::value};
  for (const PolicySpec& policy : policies) {
    CAPTURE(to_string(policy));
    const Index planned = make_plan(problem.table, policy, Onednn::target, {.input_gradient = true}).peak_bytes();
    for (const Vectors v : choices()) {
      CAPTURE(vectors_name(v));
      Onednn backend = held_to(v);
      CHECK(backend.vectors() == v);
      CHECK(backend.layout().lanes() == vector_block(v));
      Target same = backend.layout();
      same.vector_block = 0;
      CHECK(same == Onednn::target);
      const auto got = run_once(problem, policy, backend);
      CHECK(got.peak == planned);
      const double tolerance = policy.conv_algorithm == ConvAlgorithm::direct ? 1e-5 : 1e-4;
      CHECK(worst_difference(exact, {got.loss, wide(got.output), wide(got.gradients), wide(got.input_gradient), got.peak}, want) <= tolerance);
    }
  }
}
TEST_CASE("tensors of an executor have the backend's blocks, and the arena has room for those of every processor") {
  const Problem<float> problem(Net::layers, input, 1);
  for (const Vectors v : choices()) {
    CAPTURE(vectors_name(v));
    Onednn backend = held_to(v);
    std::vector<float> gradients(problem.parameters.size());
    const Executor<Onednn> executor(make_plan(problem.table, Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value, Onednn::target), backend,
                                    problem.parameters.data(), gradients.data());
    Index blocked = 0;
    for (Index i = 0; i < static_cast<Index>(executor.plan().steps.size()); ++i)
      for (const auto& view : {executor.operands(i).x, View<const float>(executor.operands(i).y)}) {
        if (view.c <= Onednn::target.plain_channels) continue;
        CHECK(view.block == vector_block(v));
        ++blocked;
      }
    CHECK(blocked > 20);
  }
}
TEST_CASE("a backend says in a line what runs") {
  for (const Vectors v : choices()) {
    const std::string block = v == Vectors::avx512 ? "16" : "8";
    const std::string line =
        processor_name() + ", " + std::string(vectors_name(v)) + " (blocks of " + block + " channels), " + onednn::library_name() + ", ";
    CHECK(held_to(v).describe() == line + "2 threads");
    CHECK(Onednn(1, {}, {.vectors = v}).describe() == line + "1 thread");
  }
  MESSAGE(Onednn(2).describe());
}
TEST_CASE("vectors that LRCNN_CPU or the library's limit rule out are refused") {
  Onednn backend(1);   // has read LRCNN_CPU
  const Vectors most = backend.vectors();
  const auto limit = vectors_of_environment();
  if (most == Vectors::avx512) return;
  const Vectors more = most == Vectors::avx2 ? Vectors::avx512 : Vectors::avx2;
  const std::string refusal = error_of<BackendError>([&] { held_to(more); }), word(vectors_name(most)), wanted(vectors_name(more));
  if (more > machine_vectors())
    CHECK(refusal == "lrcnn: OnednnOptions::vectors says '" + wanted + "', and this processor has " + word +
                         " at most; a program can be held to less "
                         "than there is, not to more; say " +
                         word + " or less, or nothing");
  else if (limit)
    CHECK(refusal == "lrcnn: OnednnOptions::vectors asks for " + wanted + ", and the variable LRCNN_CPU holds this program to " + word +
                         "; the variable is for all backends of a program; unset it, or ask for " + word + " or less");
  else
    CHECK(refusal == "lrcnn: OnednnOptions::vectors asks for " + wanted + ", and " + onednn::library_name() + " is held to " + word +
                         "; its variable ONEDNN_MAX_CPU_ISA, or the program, has set its limit; unset that variable, or ask for " + word +
                         " or less");
}
#if defined(__linux__)
TEST_CASE("LRCNN_CPU lowers the library's limit unless a variable of the library sets one; an empty one sets none") {
  if (is_child()) {
    const Vectors own = Onednn(1).vectors();   // before the library is asked for its limit, which then stays
    return say_to_parent(std::string(vectors_name(own)) + ", " + std::string(vectors_name(onednn::library_vectors())));
  }
  const auto told = [](const std::string& settings) {
    return said_by_child("-u ONEDNN_MAX_CPU_ISA -u DNNL_MAX_CPU_ISA LRCNN_CPU=plain " + settings, "LRCNN_CPU lowers*");
  };
  CHECK(told("") == "plain, plain");
  for (const std::string variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    CHECK(told(variable + "=") == "plain, plain");
    if (machine_vectors() >= Vectors::avx2) CHECK(told(variable + "=AVX2") == "plain, avx2");
  }
}
#endif
TEST_CASE("a convolution that runs in plain loops is reported once, with layer and factor, unless told not to") {
  const std::array layers{grouped("slow"), grouped("slower", 10), Layer{.kind = Kind::global_avg_pool}};
  const std::vector<std::string> heard = heard_of(layers, true);
  REQUIRE(heard.size() == 2);
  const std::string lanes = std::to_string(Onednn(1).layout().lanes()), vectors(vectors_name(Onednn(1).vectors()));
  CHECK(heard[0] ==
        "lrcnn: layer 'slow', forward of convolution from 1x50x70x70 to 1x50x70x70, runs in plain loops, which take some 20 times as long "
        "as the library's kernels; " +
            onednn::library_name() + " has none for its channels, groups, windows or rows on this processor (" + vectors +
            "); make channels in each group a multiple of " + lanes +
            ", or slabs thicker, if you can; "
            "OnednnOptions::report_slow = false silences this");
  CHECK(heard[1].find("lrcnn: layer 'slower', ") == 0);
  CHECK(heard_of(layers, false).empty());
  const std::array little{Layer{.kind = Kind::conv, .window = {.kernel = 1}, .channels = 10, .groups = 5}, Layer{.kind = Kind::global_avg_pool}};
  CHECK(heard_of(little, true).empty());   // not worth a line
}
TEST_CASE("by default that is said on std::clog") {
  std::ostringstream said;
  std::streambuf* const before = std::clog.rdbuf(said.rdbuf());
  const std::array layers{grouped("slow")};
  const Problem<float> problem(layers, {1, 50, 70, 70}, 1);
  Onednn backend(1);
  const Executor<Onednn> executor(make_plan(problem.table, {}, Onednn::target, {.training = false}), backend, problem.parameters.data(), nullptr);
  std::clog.rdbuf(before);
  CHECK(said.str().find("lrcnn: layer 'slow', forward of convolution from ") == 0);
  CHECK(said.str().find('\n') == said.str().size() - 1);
}
TEST_CASE("bf16 is refused on a processor without kernels for it, unless told to run slowly") {
  Index refused = 0;
  for (const Vectors v : choices()) {
    CAPTURE(vectors_name(v));
    const OnednnBf16 slow(2, {}, {.vectors = v, .slow_bf16 = true});
    const std::string text = error_of<BackendError>([&] { OnednnBf16(2, {}, {.vectors = v}); });
    CHECK(text == (slow.has_kernels()
                       ? "no error"
                       : "lrcnn: OnednnBf16 has no kernels on this machine: " + slow.describe() +
                             "; products of bfloat16 want AVX-512, and without it they would take some 20 times as long as in float; use "
                             "Onednn, which stores floats, or leave Bf16 out of the policy; OnednnOptions::slow_bf16 runs it all the same"));
    refused += !slow.has_kernels();
  }
  CHECK(refused > 0);   // without vectors there are none
}
TEST_CASE("choices made with other vectors are ignored, with one line") {
  if (choices().size() < 2) {
    MESSAGE("skipped: this processor, or LRCNN_CPU, leaves nothing to choose from");
    return;
  }
  const auto file = std::filesystem::temp_directory_path() / "lrcnn_vectors_test.txt";
  std::filesystem::remove(file);
  std::vector<std::string> heard;
  const TuningOptions tuning{.on = true, .file = file, .notice = [&](const std::string& text) { heard.push_back(text); }};
  const std::array layers{Layer{.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 48}, Layer{.kind = Kind::global_avg_pool}};
  const Problem<float> problem(layers, {2, 48, 28, 28}, 1);
  const auto tried = [&](Vectors v) {
    Onednn backend = held_to(v, tuning);
    run_once(problem, Policy<Column, FastestConv, Workspace<16_MiB>>::value, backend);
    return backend.calibration().tried();
  };
  const Vectors most = choices().back(), other = choices()[choices().size() - 2];
  CHECK(tried(most) > 0);
  CHECK(tried(most) == 0);
  CHECK(heard.empty());
  tried(other);
  REQUIRE(heard.size() == 1);
  CHECK(heard[0] == "lrcnn: the file of choices '" + file.string() + "' is ignored: it is for another machine or other libraries (" +
                        held_to(most).describe() + ", lrcnn " + std::string(version()) +
                        "); choices are made again, and the file is replaced; nothing need be done");
  std::filesystem::remove(file);
}
