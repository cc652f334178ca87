// Engines that cuDNN compiles at run time: built to the end where there is a driver, real or pretended (tests/pretended_driver), and counted in
// the benchmarked plans, none of which may have one.
#include "cudnn/benchmarked_plans.hpp"
#include "support/thorough.hpp"
#include <lrcnn/backend/cudnn/plan_check.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <dlfcn.h>
#include <cstdlib>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Modules that the pretended driver has been given; -1 if the driver is none.
int modules_loaded() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  void* const count = driver ? dlsym(driver, "lrcnn_modules_loaded") : nullptr;
  return count ? reinterpret_cast<int (*)()>(count)() : -1;
}
/// Says why engines that are compiled at run time cannot be built here; true if they can be.
bool has_driver(const cudnn::DescribedDevice& device) {
  if (std::getenv("LRCNN_PRETENDED_DRIVER") != nullptr) {   // ctest has promised one
    CHECK(modules_loaded() >= 0);
    CHECK(device.compiles_at_run_time());
  }
  if (device.compiles_at_run_time()) return true;
  MESSAGE("there is no libcuda.so.1, not even the pretended one: cuDNN leaves out engines that are compiled at run time");
  return false;
}
}   // namespace
TEST_CASE("an engine that is compiled at run time is built to the end for a device that is not here") {
  const auto device = cudnn::describe_device(h200_description());
  if (!has_driver(*device)) return;
  cudnn::Problem problem = biased_convolution();
  problem.relu = true;
  std::vector<std::string> names;
  REQUIRE(device->engines(names, problem, 64_MiB).good());
  const int before = modules_loaded();
  Index compiled = 0;
  for (auto name = names.rbegin(); name != names.rend() && compiled == 0; ++name) {   // the last ones are general
    cudnn::Engine engine;
    if (device->engine(engine, problem, 64_MiB, *name).good() && engine.compiled_at_run_time) ++compiled;
  }
  CHECK(compiled == 1);
  if (before >= 0) CHECK(modules_loaded() > before);
}
TEST_CASE("no benchmarked plan has an engine that is compiled at run time") {
  const auto device = cudnn::describe_device(h200_description());
  if (!has_driver(*device)) return;
  std::size_t number = 0;
  const auto check = [&]<Precision precision>() {
    for (const BenchmarkedPlan& plan : benchmarked_plans()) {
      if (!has_turn(number++, 3)) continue;
      const cudnn::PlanCheck checked = cudnn::check_plan_on<precision>(make_table(plan.layers, plan.input), plan.policy, *device, 2);
      INFO(plan.name, " in ", precision_name(precision));
      CHECK(checked.knows_compiled);
      CHECK(checked.convolutions > 10);
      CHECK((checked.faults.empty() ? "" : checked.faults[0]) == "");
      CHECK(checked.compiled_at_run_time == 0);
      MESSAGE(plan.name, " in ", precision_name(precision), ": ", checked.convolutions, " distinct convolutions, ", checked.compiled_at_run_time,
              " compiled at run time; the largest workspace ", format_bytes(checked.workspace_bytes));
    }
  };
  check.operator()<Precision::bf16>();
  check.operator()<Precision::tf32>();
}
TEST_CASE("no engine that is compiled at run time is built to find out in which pieces a convolution runs") {
  const auto device = cudnn::describe_device(h200_description());
  if (!has_driver(*device)) return;
  const auto check = [&]<Precision precision>(const Table& table) {
    Index asked = 0, compiled = 0;
    std::size_t most = 0;
    for (const cudnn::Request& request :
         cudnn::requests_of<precision>(make_plan(table, Policy<Workspace<64_MiB>>::value, BasicCudnn<precision>::target)))
      for (const cudnn::Request& attempt : cudnn::attempts(request)) {
        const auto pieces = cudnn::pieces_of(attempt, [&](const cudnn::Problem& problem, Index limit) -> std::optional<Index> {
          cudnn::Engine engine;
          ++asked;
          if (!device->engine(engine, problem, limit).good()) return {};
          compiled += engine.compiled_at_run_time;
          return engine.workspace_bytes;
        });
        most = std::max(most, pieces.size());
      }
    MESSAGE(precision_name(precision), ": ", asked, " engines built, at most ", most, " pieces");
    CHECK(asked > 0);
    CHECK(compiled == 0);
    CHECK(most > 1);
  };
  check.operator()<Precision::fp32>(make_table(Vgg16<>::layers, {32, 3, 224, 224}));
  check.operator()<Precision::bf16>(make_table(Vgg16<>::layers, {1, 3, 4096, 4096}));
}
