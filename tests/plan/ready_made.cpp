// The ready-made policies of residual networks and U-Nets: what docs/policies.md says of their memory, and plans without problems.
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/plan/checker.hpp>
#include <lrcnn/plan/make_plan.hpp>
#include <lrcnn/policy/resnet.hpp>
#include <lrcnn/policy/unet.hpp>
#include <doctest/doctest.h>
#include <string>
using namespace lrcnn;
namespace {
constexpr Target onednn_rules{.channel_block = 16, .plain_channels = 4, .packs_weights = true, .activates = true};
/// A policy's peak as a share of another's, after its plan has been checked.
double share(std::span<const Layer> layers, Input input, const PolicySpec& policy, const PolicySpec& fast, bool rows_loss = false) {
  const PlanOptions options{.rows_loss = rows_loss};
  const Table table = make_table(layers, input);
  const Plan plan = make_plan(table, policy, onednn_rules, options);
  const auto problems = check_plan(plan);
  CHECK((problems.empty() ? "" : problems[0]) == "");
  return static_cast<double>(plan.peak_bytes()) / static_cast<double>(make_plan(table, fast, onednn_rules, options).peak_bytes());
}
}   // namespace
TEST_CASE("ready-made policies of networks with norms take the share of memory that they are documented with") {
  constexpr Input batch{.n = 8, .c = 3, .h = 224, .w = 224}, large{.n = 1, .c = 3, .h = 1024, .w = 1024};
  constexpr Input largest{.n = 1, .c = 3, .h = 2048, .w = 2048};
  const auto of50 = [&](Input input, const PolicySpec& policy) { return share(ResNet50<>::layers, input, policy, resnet::Fast::value); };
  const auto of18 = [&](Input input, const PolicySpec& policy) { return share(ResNet18<>::layers, input, policy, resnet::Fast::value); };
  CHECK(of50(batch, resnet::Small::value) < 0.305);
  CHECK(of50(batch, resnet::Small50::value) < 0.305);
  CHECK(of50(large, resnet::Large50::value) < 0.265);
  CHECK(of50(large, resnet::LargeSmall50::value) < 0.215);
  CHECK(of18(largest, resnet::Large18::value) < 0.295);
  CHECK(of18(largest, resnet::LargeSmall18::value) < 0.255);
  CHECK(share(UNet<2>::layers, large, unet::Small::value, unet::Fast::value, true) < 0.245);
  CHECK(share(UNet<2>::layers, {.n = 1, .c = 3, .h = 512, .w = 512}, unet::Small::value, unet::Fast::value, true) < 0.255);
}
