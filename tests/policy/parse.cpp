// Policies from text: what a type's text says is the type's value, printed policies come back, and what is no policy is refused.
#include "support/error_of.hpp"
#include "support/random_graph.hpp"
#include "support/random_network.hpp"
#include <lrcnn/policy/parse.hpp>
#include <lrcnn/policy/resnet.hpp>
#include <lrcnn/policy/unet.hpp>
#include <lrcnn/policy/vgg.hpp>
#include <doctest/doctest.h>
#include <optional>
#include <sstream>
using namespace lrcnn;
using namespace lrcnn::testing;
// The compiler reads a type, the library its text.
#define SAYS_WHAT_IT_IS(...) static_assert(parse_policy(#__VA_ARGS__) == (__VA_ARGS__::value))
SAYS_WHAT_IT_IS(Policy<>);
SAYS_WHAT_IT_IS(Policy<Column, KeepAll, DirectConv, NoCheckpoints>);
SAYS_WHAT_IT_IS(Policy<Overlap<4>, RecomputeAll, WinogradConv, CheckpointAtPools>);
SAYS_WHAT_IT_IS(Policy<Share<3, 5>, RecomputeCheap, CheckpointEvery<6>, Workspace<0>>);
SAYS_WHAT_IT_IS(Policy<ByImages<2>, RecomputeLight, CheckpointAtSums<>, Workspace<12345>>);
SAYS_WHAT_IT_IS(Policy<ByImages<2, Share<7>>, CheckpointAtSums<2>, Images<4>, Workspace<3_KiB>, Streams<8>>);
SAYS_WHAT_IT_IS(Policy<Keep<>, CheckpointAt<"conv1", "layer1.0.relu2", "a name, with > and <">, Prefetch, GradientsInPlace, Bf16>);
SAYS_WHAT_IT_IS(Policy<Stages<Keep<ExtraPasses<Overlap<4>>>, ExtraPasses<>, ExtraPassesBothWays<ByImages<1, Overlap<2, 3>>>>, FastestConv, Fp32>);
SAYS_WHAT_IT_IS(Policy<Section<Overlap<6>, RecomputeLight, DirectConv, Workspace<8_MiB>>, Workspace<1_GiB>, Tf32>);
SAYS_WHAT_IT_IS(Policy<Stages<Section<>, Section<WinogradConv>, ByImages<3, Section<KeepAll>>, Section<Keep<Share<2>>, RecomputeAll>>, Fp16>);
SAYS_WHAT_IT_IS(Policy<RecomputeInput<>>);
SAYS_WHAT_IT_IS(
    Policy<Stages<Overlap<4>, RecomputeInput<Overlap<4, 2>>, RecomputeInput<ByImages<2, Share<3>>>, RecomputeInput<Keep<>>>, RecomputeAll>);
SAYS_WHAT_IT_IS(Policy<Section<RecomputeInput<Overlap<4>>, RecomputeAll, Workspace<8_MiB>>, CheckpointAtPools>);
SAYS_WHAT_IT_IS(Policy<Stages<Column, OffloadInput<>, Section<OffloadInput<ByImages<2, Overlap<3>>>, RecomputeCheap>>, Prefetch>);
SAYS_WHAT_IT_IS(Policy<Stages<Overlap<1, 8, 8>, RecomputeInputAlone<OneExtraPass<Overlap<2, 16, 16>>, 4>, RecomputeInputAlone<Share<3, 2, 2>>,
                              Keep<RecomputeInputAlone<ByImages<2, Column>, 1>>, OneExtraPass<RecomputeInputAlone<Overlap<4>, 2>>>>);
SAYS_WHAT_IT_IS(Policy<Stages<OneExtraPass<>, Section<RecomputeInputAlone<OneExtraPass<Overlap<4>>>, RecomputeCheap>,
                              OneExtraPassBothWays<ByImages<2, Overlap<3>>>>>);
SAYS_WHAT_IT_IS(
    Policy<Stages<Column, RecomputeInput<ExtraPasses<Overlap<4>>>, RecomputeInput<ExtraPassesBothWays<>>, ExtraPasses<RecomputeInput<>>>>);
SAYS_WHAT_IT_IS(Policy<Fit<256_MiB>>);
SAYS_WHAT_IT_IS(Policy<MayOffload, Fit<256_MiB>, Prefetch>);
SAYS_WHAT_IT_IS(Policy<Bf16, Fit<1000>, Overlap<2>, CheckpointAtPools, RecomputeAll, FastestConv, Workspace<0>, Images<2>, Streams<2>, Prefetch>);
static_assert(parse_policy(" Policy <\n  Share < 3 ,5>\t, Workspace<8_MiB> >\n") == Policy<Share<3, 5>, Workspace<8_MiB>>::value);
static_assert(RecomputeInput<RecomputeInput<>>::partition == RecomputeInput<>::partition);
static_assert(parse_policy("Policy<RecomputeInput<>>") != Policy<>::value);
TEST_CASE("a stream gets a policy as the type one would write") {
  const PolicySpec s = Policy<Share<7>, CheckpointAtPools, Bf16>::value;
  std::ostringstream text;
  text << "with " << s << ';';
  CHECK(text.str() == "with Policy<Share<7>, CheckpointAtPools, KeepAll, DirectConv, Bf16>;");
}
TEST_CASE("policies that are printed come back") {
  for (const PolicySpec& s : {vgg::Fast::value, vgg::Balanced::value, vgg::Small::value, vgg::SmallByImages::value, vgg::SmallestByImages::value,
                              resnet::Small50::value, resnet::Large18::value, resnet::LargeSmall50::value, unet::Small::value})
    CHECK(parse_policy(to_string(s)) == s);
  CHECK(to_string(Policy<RecomputeInput<Overlap<4>>>::value).starts_with("Policy<RecomputeInput<Overlap<4>>, "));
  CHECK(to_string(RecomputeInput<Keep<ExtraPasses<Overlap<4>>>>::partition) == "Keep<RecomputeInput<ExtraPasses<Overlap<4>>>>");
  CHECK(to_string(Section<RecomputeInput<ByImages<2>>, RecomputeAll>::partition) == "Section<RecomputeInput<ByImages<2,Column>>, RecomputeAll>");
  Index with_sections = 0, with_inputs = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Dice dice(seed);
    const RandomNetwork net = seed % 2 ? random_network(dice, 6) : random_graph(dice, 8);
    PolicySpec s = random_policy(dice, net);
    add_workspaces(dice, s, {0, 1, 5_MiB});
    s.precision = dice.pick({Precision::of_backend, Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16});
    const std::string text = to_string(s);
    with_sections += text.find("Section<") != std::string::npos, with_inputs += text.find("RecomputeInput<") != std::string::npos;
    if (!(parse_policy(text) == s)) CHECK_MESSAGE(parse_policy(text) == s, text);
    if (to_string(parse_policy(text)) != text) CHECK(to_string(parse_policy(text)) == text);
  }
  MESSAGE(with_sections, " of 3000 with sections of their own, ", with_inputs, " with inputs made again");
  CHECK(with_sections > 500);
  CHECK(with_inputs > 100);
}
TEST_CASE("layers' names with quotes and backslashes are printed as in a program, and come back") {
  PolicySpec s = Policy<CheckpointAt<"a", "b">, RecomputeAll>::value;
  s.checkpoints.names[0] = Name(R"(7" conv)"), s.checkpoints.names[1] = Name(R"(C:\pool\)");
  const std::string text = to_string(s);
  CHECK(text.find(R"(CheckpointAt<"7\" conv","C:\\pool\\">)") != std::string::npos);
  CHECK(parse_policy(text) == s);
  static_assert(parse_policy(R"(Policy<CheckpointAt<"7\" conv">>)") == Policy<CheckpointAt<"7\" conv">>::value);
}
TEST_CASE("a policy with Fit prints the parts that it names, defaults among them, and no others") {
  const PolicySpec policy = Policy<Fit<1000>, Bf16, Column, Workspace<4_MiB>>::value;
  CHECK(to_string(policy) == "Policy<Fit<1000>, Column, Workspace<4194304>, Bf16>");
  CHECK(parse_policy(to_string(policy)) == policy);
  CHECK(policy.names(PolicySpec::Part::partition));
  CHECK(!policy.names(PolicySpec::Part::recompute));
  CHECK(parse_policy("Policy<Fit<1000>, Bf16, Workspace<4_MiB>>") != policy);
  CHECK(parse_policy(to_string(Policy<Fit<1000>, Streams<1>>::value)) == Policy<Fit<1000>, Streams<1>>::value);
  CHECK(Policy<Column, Streams<1>>::value == Policy<>::value);   // without Fit, what is named makes no difference
}
TEST_CASE("text that is no policy is refused, with the place") {
  const auto refusal = [](std::string_view text) { return error_of<Error>([&] { static_cast<void>(parse_policy(text)); }); };
  const std::string types = "policies are written as types, as to_string(policy) prints them";
  CHECK(refusal("") == "lrcnn: character 1 of policy '': there is no name; " + types + "; the text begins with Policy<");
  CHECK(refusal("Share<4>") ==
        "lrcnn: character 1 of policy 'Share<4>': 'Share' is not the name of a policy; " + types + "; the text begins with Policy<");
  CHECK(refusal("Policy<Shares<4>>") == "lrcnn: character 8 of policy 'Policy<Shares<4>>': 'Shares' is not the name of a part of a policy; " + types +
                                            "; see the head of lrcnn/policy/policy.hpp for the names that there are");
  CHECK(refusal("Policy<Share<4>") == "lrcnn: character 16 of policy 'Policy<Share<4>': there is no '>'; " + types + "; add it");
  CHECK(refusal("Policy<Share<0>>") ==
        "lrcnn: character 14 of policy 'Policy<Share<0>>': '0' is no number from 1 on; counts are whole numbers, and bytes "
        "may end in _KiB, _MiB or _GiB; write one");
  for (const char* text : {"Policy<Share<>>", "Policy<Share<-1>>", "Policy<Share<x>>", "Policy<Images<99999999999999999999>>",
                           "Policy<Workspace<9223372036854775807_KiB>>", "Policy<Fit<0>>", "Policy<Workspace<8_MB>>", "Policy<Overlap<2,0>>",
                           "Policy<CheckpointEvery<0>>"})
    CHECK(refusal(text).find("is no number from ") != std::string::npos);
  CHECK(refusal("Policy<Share<4.5>>").find("character 15 of policy 'Policy<Share<4.5>>': there is no '>'") != std::string::npos);
  CHECK(refusal("Policy<Share<4>, Column>").find("character 18 of policy 'Policy<Share<4>, Column>': a part of this kind stands before it") !=
        std::string::npos);
  CHECK(refusal("Policy<Section<DirectConv, WinogradConv>>").find("character 28 ") != std::string::npos);
  CHECK(refusal("Policy<Section<Overlap<2>, Images<2>>>")
            .find("character 28 of policy 'Policy<Section<Overlap<2>, Images<2>>>': this part holds for "
                  "the whole step; a Section has a partition, recomputation, arithmetic and Workspace") != std::string::npos);
  CHECK(refusal("Policy<Section<Stages<Column>>, Stages<Column>>").find("a part of this kind stands before it") != std::string::npos);
  CHECK(refusal("Policy<Section<Stages<Column, Column>>>").find("this part holds for the whole step") != std::string::npos);
  CHECK(
      refusal("Policy<ExtraPasses<Share<2>>>").find("character 8 of policy 'Policy<ExtraPasses<Share<2>>>': extra passes of slabs that share rows") !=
      std::string::npos);
  CHECK(refusal("Policy<RecomputeInput<ExtraPasses<Share<2>>>>").find("character 23 ") != std::string::npos);
  CHECK(refusal("Policy<RecomputeInput<Images<2>>>").find("'Images' is not the name of a partition") != std::string::npos);
  CHECK(refusal("Policy<RecomputeInput<Stages<Column>>>").find("'Stages' is not the name of a partition") != std::string::npos);
  CHECK(refusal("Policy<RecomputeInput<Overlap<4>, 2>>").find("there is no '>'") != std::string::npos);
  CHECK(refusal("Policy<RecomputeInputAlone<Overlap<4>, 0>>").find("'0' is no number from 1 on") != std::string::npos);
  CHECK(refusal("Policy<RecomputeInputAlone<4>>").find("'4' is not the name of a partition") != std::string::npos);
  CHECK(refusal("Policy<Overlap<1, 8, 4>>")
            .find("character 22 of policy 'Policy<Overlap<1, 8, 4>>': another number of slabs than the first two; a "
                  "forward pass that is run again has as many slabs as the first one, or as the backward pass; ") != std::string::npos);
  CHECK(refusal("Policy<Overlap<1, 8, 8, 8>>").find("there is no '>'") != std::string::npos);
  CHECK(refusal("Policy<RecomputeInput>").find("there is no '<'") != std::string::npos);
  CHECK(refusal("Policy<RecomputeInput<>, Overlap<2>>").find("character 26 of policy 'Policy<RecomputeInput<>, Overlap<2>>': a part of this kind") !=
        std::string::npos);
  CHECK(refusal("Policy<Streams<9>>").find("there are 9 streams; Streams<k> needs 1 <= k <= 8") != std::string::npos);
  CHECK(refusal("Policy<Workspace<1048577_GiB>>").find("a workspace has 1125900980584448 bytes; it has 1 PiB at most") != std::string::npos);
  CHECK(refusal("Policy<CheckpointAt<conv1>>").find("there is no layer's name in quotes") != std::string::npos);
  CHECK(refusal("Policy<CheckpointAt<\"conv1>>").find("a name has no second quote") != std::string::npos);
  CHECK(refusal("Policy<CheckpointAt<\"\">>").find("a layer's name has 0 characters; names have from 1 to 47") != std::string::npos);
  CHECK(refusal("Policy<CheckpointAt<\"" + std::string(48, 'x') + "\">>").find("a layer's name has 48 characters") != std::string::npos);
  CHECK(refusal("Policy<Column> Policy<>").find("character 16 of policy 'Policy<Column> Policy<>': there is more behind the policy's last '>'") !=
        std::string::npos);
  CHECK(refusal("Policy<Keep<Images<2>>>").find("'Images' is not the name of a partition") != std::string::npos);
  std::string deep = "Policy<";
  for (int i = 0; i < 1000000; ++i) deep += "Keep<";
  CHECK(refusal(deep).find("partitions stand within each other more than 16 deep") != std::string::npos);
  CHECK(refusal(std::string("Policy<CheckpointAt<\"a\0b\">>", 27)).find("null character") != std::string::npos);
  std::string stages = "Column", names = "\"a\"";
  for (int i = 1; i < 65; ++i) stages += ", Column", names += ", \"a\"";
  CHECK(refusal("Policy<Stages<" + stages + ">>").find("there are more than 64 partitions") != std::string::npos);
  CHECK(refusal("Policy<CheckpointAt<" + names + ">>").find("there are more than 64 names") != std::string::npos);
}
TEST_CASE("text cut off or changed anywhere is refused or means another policy, and nothing else happens") {
  const std::string text =
      "Policy<Stages<Section<Overlap<6>, RecomputeLight, Workspace<8_MiB>>, ByImages<2, Share<3>>>, CheckpointAt<\"a\", \"b\">, Images<4>>";
  for (std::size_t i = 0; i < text.size(); ++i) CHECK_THROWS_AS(static_cast<void>(parse_policy(text.substr(0, i))), Error);
  Dice dice(1);
  Index refused = 0;
  for (int k = 0; k < 20000; ++k) {
    std::string changed = text;
    for (Index n = dice.upto(1, 3); n > 0; --n)
      item(changed, dice.upto(0, static_cast<Index>(changed.size()) - 1)) = static_cast<char>(dice.upto(0, 255));
    std::optional<PolicySpec> other;
    try {
      other = parse_policy(changed);
    } catch (const Error&) {
      ++refused;
    }
    if (other) CHECK(parse_policy(to_string(*other)) == *other);
  }
  MESSAGE(refused, " of 20000 changed texts refused");
  CHECK(refused > 10000);
}
