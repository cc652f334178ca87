#pragma once
// Networks that are graphs, as types: branches that read the same tensor, and joins of their outputs.
//
//     Residual<Body>             Body(x) + x
//     Residual<Body, Shortcut>   Body(x) + Shortcut(x)
//     Sum<A, B, ...>             A(x) + B(x) + ...
//     Concat<A, B, ...>          channels of A(x), then those of B(x), ...
//     Scale<Map, Factors>        Map(x) times Factors(x), a factor for each channel of each image
//     Identity                   x: a branch without layers
//     Scope<"layer1", Part>      Part, its layers named layer1.conv1, ...
//
// They nest with Sequential as one likes. A skip over an inner part is a join with Identity; a level of a U-Net is
//
//     template <Index c, class Inner>
//     using Level = Sequential<Double<c>, Concat<Identity, Sequential<MaxPool<>, Inner, Upsample<2>>>, Double<c>>;
#include <lrcnn/network/sequential.hpp>
#include <algorithm>
namespace lrcnn {
/// A branch without layers: its output is its input.
struct Identity {
  using Content = detail::Chain<>;
  static constexpr auto layers = Content::layers;
};
namespace detail {
template <std::size_t branches>
inline constexpr bool is_joined = branches >= 2;
template <class Join, class... Parts>
struct JoinOf {
  static_assert(is_joined<sizeof...(Parts)>,
                "lrcnn: a Sum or Concat has fewer than two branches; it joins two or more; add a branch, or Identity for the input itself");
  using Content = Chain<Parts...>;
};
template <class Join, class First, class Second, class... Others>
struct JoinOf<Join, First, Second, Others...> {
  using Content = Branches<Join, First, Second, Others...>;
  static_assert(CheckContent<Content, unknown_shape>::ok,
                "lrcnn: these branches cannot be joined; the rule is in the message above; change the layer named there");
};
}   // namespace detail
/// The sum of branches that read the same tensor, from left to right.
/// Shapes:  all branches give [N,C,H,W]
/// Errors:  branches of different extents
template <class... Parts>
struct Sum {
  using Content = typename detail::JoinOf<detail::SumJoin, Parts...>::Content;
  static constexpr auto layers = Content::layers;
};
/// The channels of branches that read the same tensor, from left to right.
/// Shapes:  branches give [N,C1,H,W], [N,C2,H,W], ... -> [N,C1+C2+...,H,W]
/// Errors:  branches of different rows or columns
template <class... Parts>
struct Concat {
  using Content = typename detail::JoinOf<detail::ConcatJoin, Parts...>::Content;
  static constexpr auto layers = Content::layers;
};
/// Map(x), each channel of each image times a factor that Factors(x) gives.
/// Shapes:  Map gives [N,C,H,W], Factors [N,C,1,1] -> [N,C,H,W]
/// Errors:  factors of other channels, or with rows or columns
template <class Map, class Factors>
struct Scale {
  using Content = typename detail::JoinOf<detail::ScaleJoin, Map, Factors>::Content;
  static constexpr auto layers = Content::layers;
};
/// Body(x) + Shortcut(x).
template <class Body, class Shortcut = Identity>
using Residual = Sum<Body, Shortcut>;
namespace detail {
/// Layers under a scope; a name that does not fit is left empty.
template <std::size_t N>
constexpr std::array<Layer, N> in_scope(const Name& prefix, std::array<Layer, N> layers) {
  if (std::ranges::any_of(layers, [](const Layer& layer) { return layer.name.empty(); }))
    give_names(std::span<Layer>(layers), std::array<NameSlot, name_slots(N)>{});
  for (Layer& layer : layers) layer.name = joined(prefix.view(), ".", layer.name.view());
  return layers;
}
template <Name prefix, class Part>
struct Scoped {
  static constexpr auto layers = in_scope(prefix, ContentOf<Part>::layers);
  static constexpr std::array<std::uint64_t, 1> heads{head_hash(prefix)};
  struct Descriptors : ContentOf<Part>::Descriptors {};
  static constexpr bool fits() {
    for (const Layer& layer : layers)
      if (layer.name.empty()) return false;
    return true;
  }
};
template <Name prefix, class Part>
inline constexpr bool scope_fits = Scoped<prefix, Part>::fits();
}   // namespace detail
/// Part with all its layers named: "prefix." and the name they have, or kind and ordinal within Part ("layer1.relu2").
/// Errors:  names of more than 47 characters
template <Name prefix, class Part>
struct Scope {
  static_assert(detail::scope_fits<prefix, Part>,
                "lrcnn: a layer's name with its scope is too long; names have at most 47 characters; shorten the scope or the name");
  using Content = detail::Scoped<prefix, Part>;
  static constexpr auto layers = Content::layers;
};
}   // namespace lrcnn
