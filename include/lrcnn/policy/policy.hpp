#pragma once
// How a network is run, as a value and as a type.
//
// A policy never changes a result, only the order of the arithmetic and what is kept. It has independent parts:
//   partition    Column, Overlap<N>, Share<N>, each with other counts for forward and backward if wanted, for every stage alike or stage by stage
//                (Stages<...>); ByImages<n, P> cuts a stage's batch too; ExtraPasses<P>, OneExtraPass<P> and those with BothWays go through norms
//                slab by slab; RecomputeInput<P> and RecomputeInputAlone<P> make again what the section reads, OffloadInput<P> fetches it from
//                a larger memory; Section<P, ...> has recomputation, arithmetic and a workspace of its own, and Keep<P> recomputes nothing
//   images       Images<n>: the whole step in groups of n images
//   checkpoints  NoCheckpoints, CheckpointAtPools, CheckpointAtSums<k>, CheckpointEvery<k>, CheckpointAt<"name", ...>
//   recompute    KeepAll, RecomputeAll, RecomputeCheap, RecomputeLight
//   arithmetic   DirectConv, WinogradConv, FastestConv
//   workspace    Workspace<bytes>: what a backend may use as scratch within one step
//   streams      Streams<k>: slabs that a device may work on at once
//   prefetch     Prefetch: input rows are on their way while the slab before is worked on
//   gradients    GradientsInPlace: a full-height tensor and its gradient share memory
//   fit          Fit<bytes>: what is not named beside it is chosen, so that the plan takes no more bytes and little time
//   offloading   MayOffload: Fit may choose OffloadInput, too
//   precision    Fp32, Tf32, Fp16, Bf16: how tensors are stored and multiplied, where a backend has the choice
// PolicySpec (policy/spec.hpp) is the regular value; Policy<Parts...> a type whose `value` is one. Parts may come in any order, each kind at most
// once; what is not named keeps its default: Column, NoCheckpoints, KeepAll, DirectConv, and the backend's own workspace and precision.
#include <lrcnn/policy/partitions.hpp>
#include <array>
#include <concepts>
#include <type_traits>
namespace lrcnn {
/// A partition for each stage in turn; the last one serves all further stages. One alone is that partition for all stages alike.
template <class... Partitions>
struct Stages {
  static_assert(sizeof...(Partitions) >= 1 && sizeof...(Partitions) <= PolicySpec::capacity,
                "lrcnn: Stages<...> takes 1 to 64 partitions; one for each stage; merge stages by fewer checkpoints");
};
/// The whole step, forward and backward, in groups of n images. Exact: parameter gradients are sums over images.
template <Index n>
struct Images {
  static_assert(n >= 1, "lrcnn: Images<n> needs at least one image; counts are positive; use Images<1>");
};
struct NoCheckpoints {};
/// Keeps the output of every pooling layer.
struct CheckpointAtPools {};
/// Keeps the output of every k-th residual block: of every k-th sum, or of the activation behind it.
template <Index k = 1>
struct CheckpointAtSums {
  static_assert(k >= 1, "lrcnn: CheckpointAtSums<k> needs k >= 1; checkpoints are k sums apart; use CheckpointAtSums<>");
};
/// Keeps the output of every k-th layer.
template <Index k>
struct CheckpointEvery {
  static_assert(k >= 1, "lrcnn: CheckpointEvery<k> needs k >= 1; checkpoints are k layers apart; use CheckpointEvery<1>");
};
/// Keeps the outputs of the layers so named.
template <Name... names>
struct CheckpointAt {
  static_assert(sizeof...(names) >= 1 && sizeof...(names) <= Checkpoints::capacity,
                "lrcnn: CheckpointAt<...> takes 1 to 64 layer names; one for each checkpoint; use CheckpointEvery<k>");
  static_assert((!names.empty() && ...), "lrcnn: CheckpointAt<...> has an empty name; names are those of layers; take it away");
};
namespace detail {
/// A part that chooses one value of an enumeration.
template <auto value>
struct Chooses {
  static constexpr auto chosen = value;
};
template <class P, class E>
concept ChoiceOf = requires {
  requires std::same_as<std::remove_const_t<decltype(P::chosen)>, E>;
};
}   // namespace detail
struct KeepAll : detail::Chooses<Recompute::none> {};
struct RecomputeAll : detail::Chooses<Recompute::all> {};
struct RecomputeCheap : detail::Chooses<Recompute::cheap> {};
struct RecomputeLight : detail::Chooses<Recompute::light> {};
struct DirectConv : detail::Chooses<ConvAlgorithm::direct> {};
struct WinogradConv : detail::Chooses<ConvAlgorithm::winograd> {};
struct FastestConv : detail::Chooses<ConvAlgorithm::fastest> {};
/// Scratch that one step of the backend may use. The plan reserves it; the backend obeys it.
template <Index bytes>
struct Workspace {
  static_assert(bytes >= 0, "lrcnn: Workspace<bytes> is negative; sizes are at least 0; use Workspace<32_MiB>");
  static_assert(bytes <= most_workspace, "lrcnn: Workspace<bytes> is more than 1 PiB; it is part of the plan's memory; use Workspace<32_MiB>");
};
/// Slabs take turns on k sets of buffers, so that a device can work on k slabs at once where none needs the other's rows.
/// What a backend without streams does in order.
template <Index k>
struct Streams {
  static_assert(k >= 1 && k <= most_streams, "lrcnn: Streams<k> needs 1 <= k <= 8; each stream takes a slab's memory; use Streams<2>");
};
/// The network's input rows have two buffers: a device is sent the next slab's while it works on this one's.
struct Prefetch {};
/// A full-height tensor and its gradient share memory: once a slab has read a row of the tensor for the last time, the row's gradient is stored
/// in its place. The buffer has room for as many rows more as a slab reads ahead. With RecomputeAll a stage
/// computes the outputs of its cheap layers again in each slab, where it would otherwise read them from full-height memory.
struct GradientsInPlace {};
/// The fastest policy whose plan takes at most so many bytes, chosen when the plan is made (plan/frontier.hpp). Parts that the policy names beside
/// it are not chosen: all sections have the partition, recomputation and arithmetic that are named, checkpoints are where they are named.
/// Precision, Streams and Prefetch are never chosen, and nothing is offloaded unless MayOffload says so.
template <Index bytes>
struct Fit {
  static_assert(bytes >= 1, "lrcnn: Fit<bytes> needs at least one byte; it is what a plan may take; use Fit<256_MiB>");
};
/// Fit may choose OffloadInput for sections: then a plan takes a larger memory, too (Plan::offloaded_bytes()), without a limit: on the host a file
/// for the time of the training, on a device page-locked memory of the host. It says nothing in a policy without Fit.
struct MayOffload {};
struct Fp32 : detail::Chooses<Precision::fp32> {};
struct Tf32 : detail::Chooses<Precision::tf32> {};
struct Fp16 : detail::Chooses<Precision::fp16> {};
struct Bf16 : detail::Chooses<Precision::bf16> {};
namespace detail {
using PartKind = PolicySpec::Part;
template <class P>
  requires requires {
    { P::partition } -> std::convertible_to<Partition>;
  }
constexpr PartKind set_part(PolicySpec& s, std::type_identity<P>) {
  s.partitions[0] = P::partition;
  s.partition_count = 1;
  return PartKind::partition;
}
template <class... P>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<Stages<P...>>) {
  s.partition_count = 0;
  ((s.partitions[static_cast<std::size_t>(s.partition_count++)] = P::partition), ...);
  return PartKind::partition;
}
template <Index n>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<Images<n>>) {
  s.images = n;
  return PartKind::images;
}
constexpr PartKind set_part(PolicySpec& s, std::type_identity<NoCheckpoints>) {
  s.checkpoints = {};
  return PartKind::checkpoints;
}
constexpr PartKind set_part(PolicySpec& s, std::type_identity<CheckpointAtPools>) {
  s.checkpoints.rule = Checkpoints::Rule::pools;
  return PartKind::checkpoints;
}
template <Index k>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<CheckpointAtSums<k>>) {
  s.checkpoints.rule = Checkpoints::Rule::sums;
  s.checkpoints.every = k;
  return PartKind::checkpoints;
}
template <Index k>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<CheckpointEvery<k>>) {
  s.checkpoints.rule = Checkpoints::Rule::every;
  s.checkpoints.every = k;
  return PartKind::checkpoints;
}
template <Name... names>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<CheckpointAt<names...>>) {
  s.checkpoints.rule = Checkpoints::Rule::named;
  std::size_t i = 0;
  ((s.checkpoints.names[i++] = names), ...);
  return PartKind::checkpoints;
}
template <ChoiceOf<Recompute> P>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<P>) {
  s.recompute = P::chosen;
  return PartKind::recompute;
}
template <ChoiceOf<ConvAlgorithm> P>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<P>) {
  s.conv_algorithm = P::chosen;
  return PartKind::conv_algorithm;
}
template <ChoiceOf<Precision> P>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<P>) {
  s.precision = P::chosen;
  return PartKind::precision;
}
template <Index bytes>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<Workspace<bytes>>) {
  s.workspace_bytes = bytes;
  return PartKind::workspace;
}
template <Index k>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<Streams<k>>) {
  s.streams = k;
  return PartKind::streams;
}
constexpr PartKind set_part(PolicySpec& s, std::type_identity<Prefetch>) {
  s.prefetch = true;
  return PartKind::prefetch;
}
constexpr PartKind set_part(PolicySpec& s, std::type_identity<GradientsInPlace>) {
  s.gradients_in_place = true;
  return PartKind::gradients;
}
constexpr PartKind set_part(PolicySpec& s, std::type_identity<MayOffload>) {
  s.may_offload = true;
  return PartKind::may_offload;
}
template <Index bytes>
constexpr PartKind set_part(PolicySpec& s, std::type_identity<Fit<bytes>>) {
  s.fit_bytes = bytes;
  return PartKind::fit;
}
template <class P>
inline constexpr bool is_part = requires(PolicySpec& s) {
  set_part(s, std::type_identity<P>{});
};
template <class P>
struct CheckedPart {
  static_assert(is_part<P>,
                "lrcnn: a part of a Policy is none; parts are partitions, Images, checkpoints, recomputation, arithmetic, "
                "Workspace, Streams, Prefetch, GradientsInPlace, Fit, MayOffload and precision, and layers belong to the network; see the head of "
                "lrcnn/policy/policy.hpp");
  static constexpr bool ok = is_part<P>;
};
template <class... Parts>
constexpr PolicySpec make_policy() {
  PolicySpec s;
  std::uint32_t named = 0;
  ((named |= PolicySpec::bit(set_part(s, std::type_identity<Parts>{}))), ...);
  s.named = named & PolicySpec::may_be_chosen;
  return s;
}
}   // namespace detail
/// Whether no two of the parts are of one kind, so that they make a Policy. Pre: each is a part.
template <class... Parts>
  requires(detail::CheckedPart<Parts>::ok&&...)
constexpr bool distinct_parts() {
  PolicySpec s;
  std::array<int, PolicySpec::part_kinds> seen{};
  ((++seen[static_cast<std::size_t>(detail::set_part(s, std::type_identity<Parts>{}))]), ...);
  for (const int count : seen)
    if (count > 1) return false;
  return true;
}
namespace detail {
/// Whether a Section may have a part of this kind, which has just set a field of `s`.
constexpr bool may_differ(PartKind kind, const PolicySpec& s) {
  return (kind == PartKind::partition && s.partition_count == 1) || kind == PartKind::recompute || kind == PartKind::conv_algorithm ||
         kind == PartKind::workspace;
}
template <class P>
constexpr bool may_differ() {
  PolicySpec s;
  const PartKind kind = set_part(s, std::type_identity<P>{});
  return may_differ(kind, s);
}
/// A Section's parts are set as a Policy's are, from these values on; section_of() then makes a partition of them.
constexpr PolicySpec section_defaults() {
  PolicySpec s;
  s.recompute = Recompute::of_policy, s.conv_algorithm = ConvAlgorithm::of_policy, s.workspace_bytes = -1;
  return s;
}
constexpr Partition section_of(const PolicySpec& s) {
  Partition p = s.partitions[0];
  if (s.recompute != Recompute::of_policy) p.recompute = s.recompute;
  if (s.conv_algorithm != ConvAlgorithm::of_policy) p.conv_algorithm = s.conv_algorithm;
  if (s.workspace_bytes >= 0) p.workspace_bytes = s.workspace_bytes;
  return p;
}
template <class... Parts>
constexpr Partition make_section() {
  PolicySpec s = section_defaults();
  (static_cast<void>(set_part(s, std::type_identity<Parts>{})), ...);
  return section_of(s);
}
}   // namespace detail
/// A partition, in Stages<...> or alone, with recomputation, arithmetic and a workspace of its own where they are named; the rest is what the
/// policy says. A workspace of its own takes memory only while a stage of the section runs.
///     Stages<Section<Overlap<6>, RecomputeLight, Workspace<8_MiB>>, Column>
template <class... Parts>
struct Section {
  static_assert(distinct_parts<Parts...>(), "lrcnn: two parts of a Section are of one kind; each kind may be named once; remove one of them");
  static_assert((detail::may_differ<Parts>() && ...),
                "lrcnn: a part of a Section holds for the whole step; a Section has a partition, recomputation, arithmetic and Workspace; "
                "give the other parts to the Policy");
  static constexpr Partition partition = detail::make_section<Parts...>();
};
/// A policy as a type. `value` is the regular value that everything below reads.
template <class... Parts>
struct Policy {
  static_assert(distinct_parts<Parts...>(), "lrcnn: two parts of a Policy are of one kind; each kind may be named once; remove one of them");
  static constexpr PolicySpec value = detail::make_policy<Parts...>();
};
/// Whether a type is a policy: a Policy, or any other with a constant PolicySpec `value`.
template <class P>
inline constexpr bool is_policy = requires {
  { P::value } -> std::convertible_to<const PolicySpec&>;
};
}   // namespace lrcnn
