// FastestConv by trying: each problem once, kept in a file, without a trace in gradients.
#include "onednn_support.hpp"
#include <lrcnn/core/atomic_file.hpp>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <thread>
using namespace lrcnn;
using namespace test;
namespace {
const Options fastest{.conv_algorithm = ConvAlgorithm::fastest, .workspace_bytes = 16_MiB, .accumulate = true};
Node layer() { return node_of(conv(64, {.kernel = 3, .pad = 1}), {2, 64, 28, 28}); }
/// Passes that the library has direct kernels for, and so two ways to be carried out: not all where there is less than AVX2.
Index two_ways() {
  Onednn onednn(2);
  Slab<Onednn> slab(layer(), {0, 28}, {});
  Index count = 0;
  for (const Op op : {Op::forward, Op::backward_data, Op::backward_parameters}) count += onednn.implementation(slab.operands(op)) != "host";
  return count;
}
/// A file of choices that is gone afterwards, and what was said of it.
struct Kept {
  std::filesystem::path file = std::filesystem::temp_directory_path() / "lrcnn_calibration_test.txt";
  std::vector<std::string> heard{};
  Kept() { std::filesystem::remove(file); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() { std::filesystem::remove(file); }
  TuningOptions options() {
    return {.on = true, .file = file, .notice = [this](const std::string& text) { heard.push_back(text); }};
  }
};
}   // namespace
TEST_CASE("the faster of two ways is taken, each problem is tried once") {
  host::Calibration calibration({.on = true}, "a machine");
  int slow = 0, fast = 0;
  const auto sleep = [](int& count, int milliseconds) {
    return [&count, milliseconds] { ++count, std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); };
  };
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(calibration.first_is_faster("one", "slow", sleep(slow, 40), "fast", sleep(fast, 0)));
    CHECK(calibration.first_is_faster("other", "fast", sleep(fast, 0), "slow", sleep(slow, 40)));
  }
  CHECK(calibration.tried() == 2);
  CHECK(slow == 2 * (1 + host::Calibration::turns));
  CHECK(fast == slow);
  CHECK(*calibration.choices().find("one") == "fast");
}
TEST_CASE("trying leaves gradients alone and chooses between the two kinds of arithmetic") {
  Reference<double> reference;
  Onednn tuned(2, {.on = true}), plain(2);
  const Passes want = passes(reference, layer(), {0, 28}, fastest), got = passes(tuned, layer(), {0, 28}, fastest);
  CHECK(relative(got.y, want.y) < 1e-5);
  CHECK(relative(got.dx, want.dx) < 1e-5);
  CHECK(relative(got.dw, want.dw) < 1e-5);
  CHECK(relative(got.db, want.db) < 1e-5);
  CHECK(got.intact);
  const Index passes_tried = two_ways();
  CHECK(tuned.calibration().tried() == passes_tried);
  CHECK(tuned.calibration().choices().size() == passes_tried);
  static_cast<void>(passes(tuned, layer(), {0, 28}, fastest));
  CHECK(tuned.calibration().tried() == passes_tried);
  static_cast<void>(passes(tuned, layer(), {0, 28}, {.conv_algorithm = ConvAlgorithm::winograd, .workspace_bytes = 16_MiB}));
  static_cast<void>(passes(tuned, layer(), {0, 28}));
  CHECK(tuned.calibration().tried() == passes_tried);   // what the user has chosen is not tried
  static_cast<void>(passes(plain, layer(), {0, 28}, fastest));
  CHECK(plain.calibration().tried() == 0);
  Slab<Onednn> slab(layer(), {0, 28}, fastest);
  auto o = slab.operands(Op::forward);
  o.workspace = nullptr;   // as where a plan is only looked at: nothing may run
  Onednn other(2, {.on = true});
  static_cast<void>(other.prepare(o));
  CHECK(other.calibration().tried() == 0);
}
TEST_CASE("what was found is kept in a file, for this machine, this library and so many threads") {
  Kept kept;
  const auto tried = [&](int threads) {
    Onednn backend(threads, kept.options());
    static_cast<void>(passes(backend, layer(), {0, 28}, fastest));
    backend.start({});
    return backend.calibration().tried();
  };
  CHECK(tried(2) == two_ways());
  CHECK(std::filesystem::exists(kept.file));
  CHECK(tried(2) == 0);
  CHECK(kept.heard.empty());
  CHECK(tried(1) == two_ways());
  REQUIRE(kept.heard.size() == 1);
  CHECK(kept.heard[0].find("it is for another machine or other libraries (" + Onednn(2).describe() + ", lrcnn ") != std::string::npos);
  CHECK(tried(1) == 0);   // replaced
  std::ofstream(kept.file, std::ios::app) << "more";
  CHECK(tried(1) == two_ways());
  REQUIRE(kept.heard.size() == 2);
  CHECK(kept.heard[1].find("it is damaged") != std::string::npos);
  kept.file = "/proc/no folder/choices.txt";
  CHECK(tried(1) == two_ways());
  REQUIRE(kept.heard.size() == 3);
  CHECK(kept.heard[2].find("what was found stays in memory") != std::string::npos);
}
