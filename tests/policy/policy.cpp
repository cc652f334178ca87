// Policies as types and as regular values: parts in any order, defaults, comparison, text.
#include <lrcnn/policy/policy.hpp>
#include <doctest/doctest.h>
#include <set>
#include <string>
using namespace lrcnn;
namespace {
template <class... Parts>
constexpr PolicySpec spec = Policy<Parts...>::value;
/// A policy's value is usable as a template argument, and back.
template <PolicySpec s>
struct AsArgument {
  static constexpr PolicySpec value = s;
};
template <class... Parts>
constexpr bool distinct = distinct_parts<Parts...>();
}   // namespace
// All six kinds in different orders.
static_assert(spec<Share<7>, CheckpointAtPools, RecomputeAll, WinogradConv, Workspace<32_MiB>, Images<4>> ==
              spec<Images<4>, Workspace<32_MiB>, WinogradConv, RecomputeAll, CheckpointAtPools, Share<7>>);
static_assert(spec<RecomputeCheap, Overlap<2>> == spec<Overlap<2>, RecomputeCheap>);
static_assert(std::is_same_v<decltype(Policy<>::value), const PolicySpec>);
static_assert(AsArgument<spec<Share<3>, CheckpointAt<"conv1", "pool2">>>::value == spec<CheckpointAt<"conv1", "pool2">, Share<3>>);
static_assert(!std::is_same_v<AsArgument<spec<Share<3>>>, AsArgument<spec<Share<4>>>>);
static_assert(std::is_same_v<AsArgument<spec<Share<3>>>, AsArgument<spec<Share<3, 3>>>>);
TEST_CASE("what is not named keeps its default") {
  const PolicySpec s = spec<>;
  CHECK(s == PolicySpec{});
  CHECK(s.partition_count == 1);
  CHECK(s.partition(0) == Partition{Cut::column, 1, 1, 0});
  CHECK(s.images == 0);
  CHECK(s.checkpoints == Checkpoints{});
  CHECK(s.recompute == Recompute::none);
  CHECK(s.conv_algorithm == ConvAlgorithm::direct);
  CHECK(s.workspace_bytes == -1);   // the backend's
  CHECK(spec<Column, NoCheckpoints, KeepAll, DirectConv> == s);
  CHECK(spec<Workspace<4_MiB>> != s);
}
TEST_CASE("each part sets its own field and nothing else") {
  PolicySpec s;
  s.partitions[0] = {Cut::overlap, 4, 8, 0};
  CHECK(spec<Overlap<4, 8>> == s);
  CHECK(spec<Overlap<4, 8, 4>> == s);
  s.partitions[0].again_as_backward = true;
  CHECK(spec<Overlap<4, 8, 8>> == s);
  CHECK(spec<Overlap<4, 4, 4>> == spec<Overlap<4>>);
  CHECK(spec<RecomputeInputAlone<Overlap<4>, 2>> != spec<RecomputeInputAlone<Overlap<4>>>);
  CHECK(spec<RecomputeInput<RecomputeInputAlone<Overlap<4>, 2>>> == spec<RecomputeInput<Overlap<4>>>);
  s.partitions[0] = {Cut::share, 7, 7, 0};
  CHECK(spec<Share<7>> == s);
  s.partitions[0] = {Cut::share, 7, 7, 2};
  CHECK(spec<ByImages<2, Share<7>>> == s);
  s.partitions[0] = {Cut::column, 1, 1, 3};
  CHECK(spec<ByImages<3>> == s);
  s.partitions[0].recompute = Recompute::none;
  CHECK(spec<Keep<ByImages<3>>> == s);
  CHECK(spec<ByImages<3, Keep<>>> == s);
  CHECK(to_string(s.partitions[0]) == "Keep<ByImages<3,Column>>");
  s = {};
  s.images = 5;
  CHECK(spec<Images<5>> == s);
  s = {};
  s.checkpoints.rule = Checkpoints::Rule::pools;
  CHECK(spec<CheckpointAtPools> == s);
  s.checkpoints = {Checkpoints::Rule::every, 6, {}};
  CHECK(spec<CheckpointEvery<6>> == s);
  s.checkpoints = {Checkpoints::Rule::named, 0, {"conv3", "stem"}};
  CHECK(spec<CheckpointAt<"conv3", "stem">> == s);
  s = {};
  s.recompute = Recompute::all;
  CHECK(spec<RecomputeAll> == s);
  s.recompute = Recompute::cheap;
  CHECK(spec<RecomputeCheap> == s);
  s = {};
  s.conv_algorithm = ConvAlgorithm::fastest;
  CHECK(spec<FastestConv> == s);
  s.conv_algorithm = ConvAlgorithm::winograd;
  CHECK(spec<WinogradConv> == s);
  s = {};
  s.workspace_bytes = 0;
  CHECK(spec<Workspace<0>> == s);
}
TEST_CASE("Stages holds a partition for each stage; the last one serves all further stages") {
  const PolicySpec s = spec<Stages<Share<8>, ByImages<1, Overlap<3, 2>>, Column>>;
  CHECK(s.partition_count == 3);
  CHECK(s.partition(0) == Partition{Cut::share, 8, 8, 0});
  CHECK(s.partition(1) == Partition{Cut::overlap, 3, 2, 1});
  for (Index stage : {2, 3, 31, 1000}) CHECK(s.partition(stage) == Partition{});
  CHECK(spec<Share<8>>.partition(17) == Partition{Cut::share, 8, 8, 0});
  CHECK(spec<Stages<Share<8>>> == spec<Share<8>>);
}
TEST_CASE("a section has a partition, recomputation, arithmetic and a workspace of its own") {
  constexpr PolicySpec s = spec<Stages<Section<Overlap<6>, RecomputeLight, Workspace<8_MiB>>, Section<WinogradConv>, Share<2>>, RecomputeAll>;
  const Partition &first = s.partition(0), &second = s.partition(1), &last = s.partition(2);
  CHECK(first == Partition{Cut::overlap, 6, 6, 0, NormPasses::none, false, Recompute::light, ConvAlgorithm::of_policy, 8_MiB});
  CHECK(second == Partition{.conv_algorithm = ConvAlgorithm::winograd});
  CHECK(last == Partition{Cut::share, 2, 2});
  CHECK(s.recompute_in(first) == Recompute::light);
  CHECK(s.recompute_in(second) == Recompute::all);
  CHECK(s.conv_algorithm_in(first) == ConvAlgorithm::direct);
  CHECK(s.conv_algorithm_in(second) == ConvAlgorithm::winograd);
  // Parts in any order; on its own it serves all sections; within another partition it keeps what it says.
  CHECK(spec<Section<Workspace<8_MiB>, RecomputeLight, Overlap<6>>>.partition(3) == first);
  CHECK(spec<Keep<Overlap<2>>> == spec<Section<Overlap<2>, KeepAll>>);
  CHECK(spec<ByImages<2, Section<Overlap<2>, RecomputeAll>>> == spec<Section<ByImages<2, Overlap<2>>, RecomputeAll>>);
  CHECK(spec<Section<Keep<Overlap<2>>, RecomputeAll>> == spec<Section<Overlap<2>, RecomputeAll>>);
  CHECK(to_string(first) == "Section<Overlap<6>, RecomputeLight, Workspace<8388608>>");
  CHECK(to_string(second) == "Section<Column, WinogradConv>");
  CHECK(to_string(spec<Section<KeepAll, DirectConv>>.partition(0)) == "Section<Column, KeepAll, DirectConv>");
  CHECK(to_string(spec<Section<KeepAll>>.partition(0)) == "Keep<Column>");
  CHECK(spec<Section<Workspace<0>>> != spec<>);
}
TEST_CASE("each kind of part may be named once") {
  CHECK(distinct<>);
  CHECK(distinct<Share<2>, Images<2>, NoCheckpoints, KeepAll, DirectConv, Workspace<0>>);
  CHECK(!distinct<Share<2>, Share<2>>);
  CHECK(!distinct<Share<2>, Column>);
  CHECK(!distinct<ByImages<2>, Stages<Share<2>>>);
  CHECK(!distinct<RecomputeAll, CheckpointAtPools, KeepAll>);
  CHECK(!distinct<CheckpointAtPools, CheckpointEvery<2>>);
  CHECK(!distinct<CheckpointAt<"a">, CheckpointAt<"a">>);
  CHECK(!distinct<DirectConv, WinogradConv>);
  CHECK(!distinct<Workspace<1>, Workspace<2>>);
  CHECK(!distinct<Images<1>, Images<2>>);
}
TEST_CASE("policies that differ in one part differ") {
  const std::array all{spec<>,
                       spec<Share<2>>,
                       spec<Share<3>>,
                       spec<Share<2, 3>>,
                       spec<Overlap<2>>,
                       spec<ByImages<2, Share<2>>>,
                       spec<ByImages<2>>,
                       spec<Images<2>>,
                       spec<CheckpointAtPools>,
                       spec<CheckpointEvery<2>>,
                       spec<CheckpointEvery<3>>,
                       spec<CheckpointAt<"a">>,
                       spec<CheckpointAt<"b">>,
                       spec<CheckpointAt<"a", "b">>,
                       spec<RecomputeAll>,
                       spec<RecomputeCheap>,
                       spec<WinogradConv>,
                       spec<FastestConv>,
                       spec<Workspace<0>>,
                       spec<Stages<Share<2>, Column>>,
                       spec<Stages<Column, Share<2>>>};
  std::set<std::string> texts;
  for (const PolicySpec& a : all) {
    Index equal = 0;
    for (const PolicySpec& b : all) equal += a == b;
    CHECK(equal == 1);
    texts.insert(to_string(a));
  }
  CHECK(texts.size() == all.size());
}
TEST_CASE("a policy is shown as the type one would write") {
  CHECK(to_string(spec<>) == "Policy<Column, NoCheckpoints, KeepAll, DirectConv>");
  CHECK(to_string(spec<Share<7>, CheckpointAtPools, RecomputeAll, Workspace<32_MiB>>) ==
        "Policy<Share<7>, CheckpointAtPools, RecomputeAll, DirectConv, Workspace<33554432>>");
  CHECK(to_string(spec<Overlap<4, 8>, CheckpointEvery<3>, RecomputeCheap, FastestConv, Images<2>, Workspace<0>>) ==
        "Policy<Overlap<4,8>, Images<2>, CheckpointEvery<3>, RecomputeCheap, FastestConv, Workspace<0>>");
  CHECK(to_string(spec<Stages<ByImages<2, Share<7>>, ByImages<1>, Column>, CheckpointAt<"conv3", "stem">, WinogradConv>) ==
        "Policy<Stages<ByImages<2,Share<7>>, ByImages<1,Column>, Column>, CheckpointAt<\"conv3\",\"stem\">, KeepAll, "
        "WinogradConv>");
}
TEST_CASE("the text of a policy is a type of the same value") {
  // What to_string() shows above, compiled.
  CHECK(Policy<Overlap<4, 8>, Images<2>, CheckpointEvery<3>, RecomputeCheap, FastestConv, Workspace<0>>::value ==
        spec<Overlap<4, 8>, CheckpointEvery<3>, RecomputeCheap, FastestConv, Images<2>, Workspace<0>>);
  CHECK(Policy<Stages<ByImages<2, Share<7>>, ByImages<1, Column>, Column>, CheckpointAt<"conv3", "stem">, KeepAll, WinogradConv>::value ==
        spec<Stages<ByImages<2, Share<7>>, ByImages<1>, Column>, CheckpointAt<"conv3", "stem">, WinogradConv>);
}
namespace {
struct One {};
struct Several {
  template <Precision p>
  using with = std::integral_constant<Precision, p>;
  static constexpr Precision precision = Precision::tf32;
};
}   // namespace
TEST_CASE("a precision is a part, printed when it is chosen, and leads to the backend's type for it") {
  static_assert(Policy<Share<2>>::value.precision == Precision::of_backend);
  static_assert(Policy<Bf16, Share<2>>::value.precision == Precision::bf16);
  CHECK(to_string(Policy<Share<2>, Fp16>::value) == "Policy<Share<2>, NoCheckpoints, KeepAll, DirectConv, Fp16>");
  CHECK(Policy<Tf32>::value != Policy<Fp32>::value);
  static_assert(precision_of<One>() == Precision::fp32 && precision_of<Several>() == Precision::tf32);
  static_assert(std::is_same_v<InPrecision<One, Precision::of_backend>, One>);
  static_assert(std::is_same_v<InPrecision<One, Precision::fp32>, One>);
  static_assert(std::is_same_v<InPrecision<Several, Precision::of_backend>, Several>);
  static_assert(InPrecision<Several, Precision::fp16>::value == Precision::fp16);
}
