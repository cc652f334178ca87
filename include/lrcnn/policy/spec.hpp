#pragma once
// A policy as a regular value: what everything below reads. As a type it is in policy/policy.hpp.
#include <lrcnn/core/types.hpp>
#include <lrcnn/policy/precision.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
namespace lrcnn {
/// How a stage's rows are cut. See algorithms in docs/how-it-works.md.
enum class Cut : std::uint8_t {
  column,    ///< not at all: layer by layer
  overlap,   ///< slabs are independent, halo rows are computed by both neighbours (OverL)
  share,     ///< slabs hand the rows on that the next one needs (2PS)
};
/// Which tensors are kept in full height from the forward to the backward pass.
struct Checkpoints {
  enum class Rule : std::uint8_t { none, pools, every, named, sums };
  static constexpr std::size_t capacity = 64;
  Rule rule = Rule::none;
  Index every = 0;                      ///< layers, or sums, from one checkpoint to the next
  std::array<Name, capacity> names{};   ///< layers whose outputs are kept; the first empty name ends the list
  friend constexpr bool operator==(const Checkpoints&, const Checkpoints&) = default;
};
/// What a stage does about the values that its backward pass needs.
enum class Recompute : std::uint8_t {
  none,        ///< keeps them all from the forward pass
  all,         ///< keeps nothing but the stage's input; computes the slab again
  cheap,       ///< keeps what convolutions made; computes activations and pools again
  light,       ///< keeps all but what convolutions with few multiply-adds make; computes those again
  of_policy,   ///< of a section: what the policy says
};
/// How convolutions are computed; backends that know one way only ignore it.
enum class ConvAlgorithm : std::uint8_t {
  direct,      ///< as the formula says; slabs are bit-identical to the whole map
  winograd,    ///< Winograd where the backend has it, direct elsewhere; row cuts lie on its tile grid where they may
  fastest,     ///< whichever of the two fits into the workspace, Winograd first
  of_policy,   ///< of a section: what the policy says
};
/// Which of a section's norms the backward pass goes through by extra passes of slabs, for the sums that gradients need, rather than have their
/// inputs and gradients in full height.
enum class NormPasses : std::uint8_t {
  none,
  one,   ///< those of its last stages, as many as one extra pass is enough for
  all,
};
/// What becomes, between the passes, of the tensors that a section reads of the sections below it.
enum class SectionInput : std::uint8_t {
  keep,
  recompute,         ///< they are made again for the backward pass, with those of other such sections that follow each other
  recompute_alone,   ///< they are made again right before the section goes backward, for it alone
  offload,           ///< they lie in a larger memory; the backward pass fetches their rows slab by slab
};
/// How one section is cut, and what it does otherwise than the rest of the policy. A count of images of 0 means: all that the step has at once.
struct Partition {
  Cut cut = Cut::column;
  Index forward = 1;    ///< slabs along the rows in the forward pass
  Index backward = 1;   ///< and in the backward pass
  Index images = 0;     ///< images per slab
  NormPasses passes = NormPasses::none;
  bool forward_passes = false;   ///< the forward pass goes through these norms so, too: their inputs are not in full height there either
  Recompute recompute = Recompute::of_policy;
  ConvAlgorithm conv_algorithm = ConvAlgorithm::of_policy;
  Index workspace_bytes = -1;   ///< below 0: what the policy says, in memory that all such sections share for the whole step
  SectionInput input = SectionInput::keep;
  bool again_as_backward = false;   ///< a forward pass that is run again has as many slabs as the backward pass, not as the first forward pass
  Index maker_slabs = 0;            ///< of the pass that makes the input again for this section alone; 0: as many as the section has
  constexpr bool recomputes_input() const { return input == SectionInput::recompute || input == SectionInput::recompute_alone; }
  friend constexpr bool operator==(const Partition&, const Partition&) = default;
};
inline constexpr Index most_streams = 8;
inline constexpr Index most_workspace = 1024 * 1024_GiB;   ///< bytes; those of all sections and streams can be added up
/// A policy as a regular value: comparable, printable, usable as a template argument.
struct PolicySpec {
  static constexpr std::size_t capacity = 64;
  std::array<Partition, capacity> partitions{};   ///< of section i; the last given one serves all further sections
  Index partition_count = 1;
  Index images = 0;   ///< images per group of the whole step; 0: all at once
  Checkpoints checkpoints{};
  Recompute recompute = Recompute::none;
  ConvAlgorithm conv_algorithm = ConvAlgorithm::direct;
  Index workspace_bytes = -1;   ///< -1: none is named, and it is the backend's (Target::default_workspace)
  Index streams = 1;            ///< slabs that a device may work on at once
  bool prefetch = false;        ///< the network's input rows are brought in while another slab is worked on
  Precision precision = Precision::of_backend;
  bool gradients_in_place = false;   ///< gradients in full height take their values' places, row by row
  bool may_offload = false;          ///< where a policy is chosen, sections may offload their inputs
  Index fit_bytes = 0;               ///< above 0: the fastest policy is chosen whose plan takes at most so many bytes (plan/frontier.hpp)
  std::uint32_t named = 0;           ///< a bit for each Part that Policy<...> names; of those that may be chosen
  /// What policies consist of.
  enum class Part : std::uint8_t {
    partition,
    images,
    checkpoints,
    recompute,
    conv_algorithm,
    workspace,
    streams,
    prefetch,
    precision,
    gradients,
    may_offload,
    fit
  };
  static constexpr std::size_t part_kinds = static_cast<std::size_t>(Part::fit) + 1;   ///< behind the last one
  /// A part's bit in a set of parts.
  static constexpr std::uint32_t bit(Part part) { return std::uint32_t{1} << static_cast<unsigned>(part); }
  /// Whether a set of parts has this one.
  static constexpr bool is_among(std::uint32_t parts, Part part) { return (parts & bit(part)) != 0; }
  /// Whether the policy says this part itself, rather than leave it to be chosen: it was named, or was set to something else than the default.
  constexpr bool names(Part part) const {
    if (is_among(named, part)) return true;
    switch (part) {
      case Part::partition: return partition_count != 1 || partitions[0] != Partition{};
      case Part::images: return images > 0;
      case Part::checkpoints: return checkpoints != Checkpoints{};
      case Part::recompute: return recompute != Recompute::none;
      case Part::conv_algorithm: return conv_algorithm != ConvAlgorithm::direct;
      case Part::workspace: return workspace_bytes >= 0;
      case Part::may_offload: return may_offload;
      default: return false;   // never chosen
    }
  }
  /// The set of parts that the policy says itself.
  constexpr std::uint32_t named_parts() const {
    std::uint32_t parts = 0;
    for (std::size_t part = 0; part < part_kinds; ++part)
      if (names(static_cast<Part>(part))) parts |= bit(static_cast<Part>(part));
    return parts;
  }
  /// Takes from another policy what is never chosen.
  constexpr void take_never_chosen(const PolicySpec& other) { streams = other.streams, prefetch = other.prefetch, precision = other.precision; }
  /// The bits of `named` that count: those of parts that may be chosen.
  static constexpr std::uint32_t may_be_chosen = (std::uint32_t{2} << static_cast<unsigned>(Part::workspace)) - 1;
  constexpr const Partition& partition(Index section) const { return item(partitions, std::min(section, partition_count - 1)); }
  /// What holds in a section with this partition: what the section says, or else what the policy says.
  constexpr Recompute recompute_in(const Partition& p) const { return p.recompute == Recompute::of_policy ? recompute : p.recompute; }
  constexpr ConvAlgorithm conv_algorithm_in(const Partition& p) const {
    return p.conv_algorithm == ConvAlgorithm::of_policy ? conv_algorithm : p.conv_algorithm;
  }
  /// Whether every section keeps its input.
  constexpr bool keeps_inputs() const {
    for (Index i = 0; i < partition_count; ++i)
      if (partition(i).input != SectionInput::keep) return false;
    return true;
  }
  /// Whether any section has its input made again.
  constexpr bool recomputes_inputs() const {
    for (Index i = 0; i < partition_count; ++i)
      if (partition(i).recomputes_input()) return true;
    return false;
  }
  /// The most that any section has; -1: the backend's.
  constexpr Index most_workspace_bytes() const {
    Index most = -1;
    for (Index i = 0; i < partition_count; ++i) {
      const Index own = partition(i).workspace_bytes;
      most = std::max(most, own < 0 ? workspace_bytes : own);
    }
    return most;
  }
  /// What is named counts only where the rest is chosen.
  friend constexpr bool operator==(const PolicySpec& a, const PolicySpec& b) {
    return a.fit_bytes == b.fit_bytes && (a.fit_bytes == 0 || a.named == b.named) && a.partitions == b.partitions &&
           a.partition_count == b.partition_count && a.images == b.images && a.checkpoints == b.checkpoints && a.recompute == b.recompute &&
           a.conv_algorithm == b.conv_algorithm && a.workspace_bytes == b.workspace_bytes && a.streams == b.streams && a.prefetch == b.prefetch &&
           a.precision == b.precision && a.gradients_in_place == b.gradients_in_place && a.may_offload == b.may_offload;
  }
};
constexpr std::string_view recompute_name(Recompute r) {
  switch (r) {
    case Recompute::none: return "KeepAll";
    case Recompute::all: return "RecomputeAll";
    case Recompute::cheap: return "RecomputeCheap";
    case Recompute::light: return "RecomputeLight";
    case Recompute::of_policy: break;
  }
  return "?";
}
constexpr std::string_view conv_algorithm_name(ConvAlgorithm a) {
  return a == ConvAlgorithm::direct ? "DirectConv" : a == ConvAlgorithm::winograd ? "WinogradConv" : "FastestConv";
}
/// Of a partition with extra passes.
constexpr std::string_view passes_name(NormPasses passes, bool both_ways) {
  if (passes == NormPasses::one) return both_ways ? "OneExtraPassBothWays" : "OneExtraPass";
  return both_ways ? "ExtraPassesBothWays" : "ExtraPasses";
}
/// Of a partition whose section does not keep its input.
constexpr std::string_view input_name(SectionInput input) {
  switch (input) {
    case SectionInput::recompute: return "RecomputeInput";
    case SectionInput::recompute_alone: return "RecomputeInputAlone";
    case SectionInput::offload: return "OffloadInput";
    case SectionInput::keep: break;
  }
  return "?";
}
/// "Share<7>", "Overlap<4,8>", "ByImages<2,Column>", "Section<Overlap<6>, RecomputeLight, Workspace<8388608>>"
inline std::string to_string(const Partition& p) {
  std::string text = "Column";
  if (p.cut != Cut::column) {
    text = (p.cut == Cut::overlap ? "Overlap<" : "Share<") + std::to_string(p.forward);
    if (p.backward != p.forward) text += "," + std::to_string(p.backward);
    if (p.backward != p.forward && p.again_as_backward) text += "," + std::to_string(p.backward);
    text += ">";
  }
  if (p.images > 0) text = "ByImages<" + std::to_string(p.images) + "," + text + ">";
  if (p.passes != NormPasses::none) text = std::string(passes_name(p.passes, p.forward_passes)) + "<" + text + ">";
  const bool alone = p.input == SectionInput::recompute_alone;
  if (p.input != SectionInput::keep)
    text = std::string(input_name(p.input)) + "<" + text + (alone && p.maker_slabs > 0 ? "," + std::to_string(p.maker_slabs) : "") + ">";
  const bool arithmetic = p.conv_algorithm != ConvAlgorithm::of_policy, workspace = p.workspace_bytes >= 0;
  if (p.recompute == Recompute::of_policy && !arithmetic && !workspace) return text;
  if (p.recompute == Recompute::none && !arithmetic && !workspace) return "Keep<" + text + ">";
  if (p.recompute != Recompute::of_policy) text += ", " + std::string(recompute_name(p.recompute));
  if (arithmetic) text += ", " + std::string(conv_algorithm_name(p.conv_algorithm));
  if (workspace) text += ", Workspace<" + std::to_string(p.workspace_bytes) + ">";
  return "Section<" + text + ">";
}
inline std::string to_string(const Checkpoints& c) {
  using enum Checkpoints::Rule;
  if (c.rule == pools) return "CheckpointAtPools";
  if (c.rule == sums) return "CheckpointAtSums<" + std::to_string(c.every) + ">";
  if (c.rule == every) return "CheckpointEvery<" + std::to_string(c.every) + ">";
  if (c.rule == none) return "NoCheckpoints";
  std::string text;
  for (std::size_t i = 0; i < c.capacity && !c.names[i].empty(); ++i) {
    text += i == 0 ? "\"" : ",\"";
    for (const char letter : c.names[i].view()) text += letter == '"' || letter == '\\' ? std::string{'\\', letter} : std::string{letter};
    text += "\"";
  }
  return "CheckpointAt<" + text + ">";
}
/// The policy as the type one would write: "Policy<Share<7>, CheckpointAtPools, RecomputeAll, ..., Workspace<4194304>>", without a workspace if it
/// names none; with Fit, the parts that it names.
inline std::string to_string(const PolicySpec& s) {
  using enum PolicySpec::Part;
  std::string text = "Policy<";
  const auto says = [&](PolicySpec::Part part) { return s.fit_bytes == 0 || s.names(part); };
  const auto add = [&](const std::string& part) { text += (text.back() == '<' ? "" : ", ") + part; };
  if (s.fit_bytes > 0) add("Fit<" + std::to_string(s.fit_bytes) + ">");
  if (says(partition) && s.partition_count == 1) add(to_string(s.partitions[0]));
  if (says(partition) && s.partition_count > 1) {
    add("Stages<");
    for (Index i = 0; i < s.partition_count; ++i) add(to_string(s.partition(i)));
    text += ">";
  }
  if (s.images > 0) add("Images<" + std::to_string(s.images) + ">");
  if (says(checkpoints)) add(to_string(s.checkpoints));
  if (says(recompute)) add(std::string(recompute_name(s.recompute)));
  if (says(conv_algorithm)) add(std::string(conv_algorithm_name(s.conv_algorithm)));
  if (s.workspace_bytes >= 0) add("Workspace<" + std::to_string(s.workspace_bytes) + ">");
  if (s.streams != 1) add("Streams<" + std::to_string(s.streams) + ">");
  if (s.prefetch) add("Prefetch");
  if (s.gradients_in_place) add("GradientsInPlace");
  if (s.may_offload) add("MayOffload");
  if (s.precision != Precision::of_backend) add(std::string(precision_name(s.precision)));
  return text + ">";
}
inline std::ostream& operator<<(std::ostream& out, const PolicySpec& s) { return out << to_string(s); }
}   // namespace lrcnn
