#pragma once
// A network as a type: layers from left to right.
//
//     using Net = Sequential<Conv<64>, ReLU, MaxPool<>, Conv<128>, ReLU, GlobalAvgPool, Linear<10>>;
//
// Sequentials nest; the inner ones are spliced in. Branches and joins are in network/graph.hpp. Channels are inferred from the
// input on. What can be checked without extents is checked when the type is completed; Fixed<Net, Input{...}> checks the rest at
// compile time, too; with extents that are known only at run time make_table() throws the same words as a ShapeError.
#include <lrcnn/network/part.hpp>
#include <lrcnn/network/table.hpp>
namespace lrcnn {
/// Parts one behind the other: layer descriptors, Sequentials, joins, scopes (network/graph.hpp).
template <class... Parts>
struct Sequential {
  static_assert(sizeof...(Parts) > 0, "lrcnn: a Sequential has no layers; a network has at least one; name its layers");
  using Content = detail::Chain<Parts...>;
  static constexpr auto layers = Content::layers;
  static_assert(detail::CheckContent<Content, unknown_shape>::ok,
                "lrcnn: this network cannot work; the rule is in the message above; change the layer named there");
};
/// A network with its input extents, all of which are checked at compile time. Usable wherever a network is.
template <class Net, Input extents>
struct Fixed {
  using Content = detail::ContentOf<Net>;
  static constexpr auto layers = Content::layers;
  static constexpr Input input = extents;
  static_assert(detail::CheckContent<Content, extents>::ok,
                "lrcnn: this network cannot work on this input; the rule is in the message above; change the layer named there, "
                "or the input");
};
/// The layer table of a network type.
/// Errors:  ShapeError naming layer, description and input shape
template <Network Net>
constexpr Table table_of(const Input& input) {
  return make_table(Net::layers, input);
}
template <Network Net>
  requires requires { Net::input; }
constexpr Table table_of() { return make_table(Net::layers, Net::input); }
}   // namespace lrcnn
