#pragma once
// A policy from its text: the type as one would write it, and as to_string(PolicySpec) prints it.
#include <lrcnn/core/error.hpp>
#include <lrcnn/policy/policy.hpp>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
namespace lrcnn {
namespace detail {
/// Reads a policy from left to right. Each function starts at the first character of what it reads and stops behind the last.
class PolicyParser {
 public:
  constexpr explicit PolicyParser(std::string_view text) : text_(text) {}
  constexpr PolicySpec policy() {
    skip_spaces();
    start_ = at_;
    if (const std::string_view name = word(); name != "Policy") refuse_word(name, "a policy", "the text begins with Policy<");
    PolicySpec policy;
    parts(policy, false);
    start_ = at_;
    if (at_ < text_.size()) refuse("there is more behind the policy's last '>'", "a text holds one policy", "take the rest away");
    return policy;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;      ///< the next character
  std::size_t start_ = 0;   ///< of the word read last
  int depth_ = 0;           ///< partitions within partitions
  [[noreturn]] void refuse(const std::string& what, std::string_view rule, std::string_view change) const {
    std::string text(text_.substr(0, 2000));
    for (char& c : text)
      if (c == '\0') c = '?';   // it would end the message
    throw Error(error_text("character " + std::to_string(start_ + 1) + " of policy '" + text + "': " + what, rule, change));
  }
  [[noreturn]] void refuse_word(std::string_view name, std::string_view what, std::string_view change) const {
    refuse(name.empty() ? "there is no name" : "'" + std::string(name) + "' is not the name of " + std::string(what),
           "policies are written as types, as to_string(policy) prints them", change);
  }
  constexpr void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  constexpr bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  /// Whether the next character is `c`; if so, goes behind it and the spaces that follow.
  constexpr bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    skip_spaces();
    return true;
  }
  constexpr void expect(char c) {
    if (take(c)) return;
    start_ = at_;
    refuse(std::string("there is no '") + c + "'", "policies are written as types, as to_string(policy) prints them", "add it");
  }
  /// A name, empty if there is none; goes behind the spaces that follow.
  constexpr std::string_view word() {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'); };
    start_ = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    const std::string_view name = text_.substr(start_, at_ - start_);
    skip_spaces();
    return name;
  }
  /// "12", "8_MiB". At least `least`.
  constexpr Index number(Index least) {
    const std::string_view digits = word();
    Index value = 0;
    std::size_t i = 0;
    bool fits = !digits.empty() && digits[0] >= '0' && digits[0] <= '9';
    const auto multiply = [&](Index factor, Index more) {
      fits = fits && value <= (std::numeric_limits<Index>::max() - more) / factor;
      if (fits) value = value * factor + more;
    };
    for (; i < digits.size() && digits[i] >= '0' && digits[i] <= '9'; ++i) multiply(10, digits[i] - '0');
    const std::string_view unit = digits.substr(i);
    if (unit == "_KiB") multiply(1_KiB, 0);
    else if (unit == "_MiB") multiply(1_MiB, 0);
    else if (unit == "_GiB") multiply(1_GiB, 0);
    else if (!unit.empty()) fits = false;
    if (!fits || value < least)
      refuse("'" + std::string(digits) + "' is no number from " + std::to_string(least) + " on",
             "counts are whole numbers, and bytes may end in _KiB, _MiB or _GiB", "write one");
    return value;
  }
  constexpr Name quoted() {
    start_ = at_;
    if (!next_is('"')) refuse("there is no layer's name in quotes", "CheckpointAt<...> names layers as in \"conv1\"", "write names so");
    std::array<char, Name::capacity> name{};
    std::size_t size = 0, at = at_ + 1;
    for (; at < text_.size() && text_[at] != '"'; ++at) {
      if (text_[at] == '\\' && at + 1 < text_.size()) ++at;   // as in a program, a quote or another backslash comes behind it
      if (text_[at] == '\0') refuse("a layer's name has a null character", "names are text", "take it away");
      if (size < name.size()) name[size] = text_[at];
      ++size;
    }
    if (at == text_.size()) refuse("a name has no second quote", "CheckpointAt<...> names layers as in \"conv1\"", "add it");
    if (size == 0 || size > Name::capacity)
      refuse("a layer's name has " + std::to_string(size) + " characters", "names have from 1 to " + std::to_string(Name::capacity),
             "use a name that the network's table shows");
    at_ = at + 1;
    skip_spaces();
    return Name(std::string_view(name.data(), size));
  }
  /// "<part, part, ...>": of a Policy or a Section, no two of a kind.
  constexpr void parts(PolicySpec& policy, bool of_section) {
    std::uint32_t seen = 0;   // a set of parts
    expect('<');
    if (take('>')) return;
    do {
      const std::size_t begin = at_;
      const PartKind kind = part(policy);
      start_ = begin;
      if (of_section && !may_differ(kind, policy))
        refuse("this part holds for the whole step", "a Section has a partition, recomputation, arithmetic and Workspace", "give it to the Policy");
      if (PolicySpec::is_among(seen, kind)) refuse("a part of this kind stands before it", "each kind may be named once", "take one of them away");
      seen |= PolicySpec::bit(kind);
    } while (take(','));
    expect('>');
    policy.named |= seen & PolicySpec::may_be_chosen;
  }
  constexpr PartKind part(PolicySpec& policy) {
    const std::string_view name = word();
    if (const std::optional<PartKind> kind = plain_part(policy, name)) return *kind;
    if (name == "Stages") return stages(policy);
    if (name == "CheckpointAt") return names(policy);
    if (name == "Images") return policy.images = in_brackets(1), PartKind::images;
    if (name == "Fit") return policy.fit_bytes = in_brackets(1), PartKind::fit;
    if (name == "Workspace") return workspace(policy);
    if (name == "Streams") return streams(policy);
    if (name == "CheckpointEvery") return policy.checkpoints = {.rule = Checkpoints::Rule::every, .every = in_brackets(1)}, PartKind::checkpoints;
    if (name == "CheckpointAtSums") {
      policy.checkpoints = {.rule = Checkpoints::Rule::sums, .every = 1};
      expect('<');
      if (!next_is('>')) policy.checkpoints.every = number(1);
      expect('>');
      return PartKind::checkpoints;
    }
    policy.partitions[0] = partition(name, "a part of a policy");
    return PartKind::partition;
  }
  /// Parts that are a name alone.
  static constexpr std::optional<PartKind> plain_part(PolicySpec& policy, std::string_view name) {
    for (const Recompute r : {Recompute::none, Recompute::all, Recompute::cheap, Recompute::light})
      if (name == recompute_name(r)) return policy.recompute = r, PartKind::recompute;
    for (const ConvAlgorithm a : {ConvAlgorithm::direct, ConvAlgorithm::winograd, ConvAlgorithm::fastest})
      if (name == conv_algorithm_name(a)) return policy.conv_algorithm = a, PartKind::conv_algorithm;
    for (const Precision p : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
      if (name == precision_name(p)) return policy.precision = p, PartKind::precision;
    if (name == "NoCheckpoints") return policy.checkpoints = {}, PartKind::checkpoints;
    if (name == "CheckpointAtPools") return policy.checkpoints = {.rule = Checkpoints::Rule::pools}, PartKind::checkpoints;
    if (name == "Prefetch") return policy.prefetch = true, PartKind::prefetch;
    if (name == "GradientsInPlace") return policy.gradients_in_place = true, PartKind::gradients;
    if (name == "MayOffload") return policy.may_offload = true, PartKind::may_offload;
    return std::nullopt;
  }
  constexpr Index in_brackets(Index least) {
    expect('<');
    const Index value = number(least);
    expect('>');
    return value;
  }
  constexpr PartKind workspace(PolicySpec& policy) {
    policy.workspace_bytes = in_brackets(0);
    if (policy.workspace_bytes > most_workspace)
      refuse("a workspace has " + std::to_string(policy.workspace_bytes) + " bytes", "it has 1 PiB at most, and is part of the plan's memory",
             "use Workspace<32_MiB>");
    return PartKind::workspace;
  }
  constexpr PartKind streams(PolicySpec& policy) {
    policy.streams = in_brackets(1);
    if (policy.streams > most_streams)
      refuse("there are " + std::to_string(policy.streams) + " streams", "Streams<k> needs 1 <= k <= 8; each stream takes a slab's memory",
             "use Streams<2>");
    return PartKind::streams;
  }
  constexpr PartKind stages(PolicySpec& policy) {
    expect('<');
    policy.partition_count = 0;
    do {
      if (policy.partition_count == static_cast<Index>(PolicySpec::capacity))
        refuse("there are more than 64 partitions", "Stages<...> takes 1 to 64 partitions", "merge stages by fewer checkpoints");
      item(policy.partitions, policy.partition_count++) = partition(word(), "a partition");
    } while (take(','));
    expect('>');
    return PartKind::partition;
  }
  constexpr PartKind names(PolicySpec& policy) {
    policy.checkpoints = {.rule = Checkpoints::Rule::named};
    expect('<');
    std::size_t count = 0;
    do {
      if (count == Checkpoints::capacity)
        refuse("there are more than 64 names", "CheckpointAt<...> takes 1 to 64 layer names", "use CheckpointEvery<k>");
      policy.checkpoints.names[count++] = quoted();
    } while (take(','));
    expect('>');
    return PartKind::checkpoints;
  }
  /// A partition whose name has been read.
  constexpr Partition partition(std::string_view name, std::string_view what) {
    const std::size_t begin = start_;
    if (++depth_ > 16) refuse("partitions stand within each other more than 16 deep", "each says something more of one partition", "take some away");
    const Partition p = partition_from(name, what, begin);
    --depth_;
    return p;
  }
  constexpr Partition partition_from(std::string_view name, std::string_view what, std::size_t begin) {
    if (name == "Column") return {};
    if (name == "Overlap" || name == "Share") {
      Partition p{.cut = name == "Share" ? Cut::share : Cut::overlap};
      expect('<');
      p.forward = p.backward = number(1);
      if (take(',')) p.backward = number(1);
      if (take(',')) {
        const Index again = number(1);
        if (again != p.forward && again != p.backward)
          refuse("another number of slabs than the first two",
                 "a forward pass that is run again has as many slabs as the first one, or as the backward pass",
                 "give one of these numbers, or leave it out");
        p.again_as_backward = again != p.forward;
      }
      expect('>');
      return p;
    }
    if (name == "ByImages") {
      expect('<');
      const Index images = number(1);
      return by_images(take(',') ? last_argument() : closed(), images);
    }
    if (name == "Keep") return keeping(only_argument());
    if (name == input_name(SectionInput::recompute_alone)) return recomputing_alone();
    for (const SectionInput input : {SectionInput::recompute, SectionInput::offload})
      if (name == input_name(input)) return with_input(only_argument(), input);
    for (const NormPasses passes : {NormPasses::one, NormPasses::all})
      for (const bool both_ways : {false, true}) {
        if (name != passes_name(passes, both_ways)) continue;
        const Partition p = only_argument();
        start_ = begin;
        if (p.cut == Cut::share)
          refuse("extra passes of slabs that share rows", "slabs of extra passes make all their rows themselves", "use ExtraPasses<Overlap<N>>");
        return with_passes(p, passes, both_ways);
      }
    if (name == "Section") return section();
    refuse_word(name, what, "see the head of lrcnn/policy/policy.hpp for the names that there are");
  }
  constexpr Partition closed() {
    expect('>');
    return {};
  }
  constexpr Partition last_argument() {
    const Partition p = partition(word(), "a partition");
    expect('>');
    return p;
  }
  constexpr Partition only_argument() {
    expect('<');
    return next_is('>') ? closed() : last_argument();
  }
  /// "<P, N>", "<P>", "<>"
  constexpr Partition recomputing_alone() {
    expect('<');
    if (next_is('>')) return with_input(closed(), SectionInput::recompute_alone);
    const Partition p = partition(word(), "a partition");
    const Index slabs = take(',') ? number(1) : 0;
    expect('>');
    return with_input(p, SectionInput::recompute_alone, slabs);
  }
  constexpr Partition section() {
    PolicySpec own = section_defaults();
    parts(own, true);
    return section_of(own);
  }
};
}   // namespace detail
/// The policy that a text writes as a type, with or without spaces: "Policy<Overlap<4>, CheckpointAtPools, Workspace<8_MiB>>".
/// Post:    parse_policy(to_string(policy)) == policy for each policy that is a type's value
/// Errors:  Error with the character where the text stops being a policy, and what is expected there
constexpr PolicySpec parse_policy(std::string_view text) { return detail::PolicyParser(text).policy(); }
}   // namespace lrcnn
