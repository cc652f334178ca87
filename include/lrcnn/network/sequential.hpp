#pragma once
// A network as a type: layers from left to right.
//
//     using Net = Sequential<Conv<64>, ReLU, MaxPool<>, Conv<128>, ReLU, GlobalAvgPool, Linear<10>>;
//
// Sequentials nest; the inner ones are spliced in. Channels are inferred from the input on. What can be checked
// without extents is checked when the type is completed; Fixed<Net, Input{...}> checks the rest at compile time, too;
// with extents that are known only at run time make_table() throws the same words as a ShapeError.
#include <lrcnn/layer/concepts.hpp>
#include <lrcnn/network/table.hpp>
#include <lrcnn/network/witness.hpp>
#include <type_traits>
#include <utility>
namespace lrcnn {
namespace detail {
template <class... D>
struct LayerList {
  static constexpr std::size_t size = sizeof...(D);
  static constexpr std::array<Layer, size> layers{D::layer()...};
};
template <class... Lists>
struct Splice;
template <class... A>
struct Splice<LayerList<A...>> {
  using type = LayerList<A...>;
};
template <class... A, class... B, class... Rest>
struct Splice<LayerList<A...>, LayerList<B...>, Rest...> : Splice<LayerList<A..., B...>, Rest...> {};
template <class T>
inline constexpr bool is_layer = LayerDescriptor<T>;   // a template, so that compilers show T next to the message
template <class T>
struct ListOf {
  static_assert(is_layer<T>,
                "lrcnn: a part of a Sequential is no layer; a layer is a type with `static constexpr Layer layer()`, or a "
                "Sequential; see docs/extending.md");
  using type = LayerList<T>;
};
template <class T>
  requires requires { typename T::LayerListType; }
struct ListOf<T> {
  using type = typename T::LayerListType;
};
/// What each layer of a list is given, starting from `input`, and the first fault of each. After a fault all is unknown.
template <std::size_t N>
struct Inferred {
  std::array<Shape, N + 1> shape{};
  std::array<Fault, N> fault{};
};
template <std::size_t N>
constexpr Inferred<N> infer(const std::array<Layer, N>& layers, const Shape& input) {
  Inferred<N> result;
  result.shape[0] = input;
  bool flat = false;
  for (std::size_t i = 0; i < N; ++i) {
    result.fault[i] = fault_of(layers[i], result.shape[i], flat);
    flat = flat || ends_rows(layers[i]);
    result.shape[i + 1] = result.fault[i] == Fault::none ? output_shape(layers[i], result.shape[i])
                                                         : Shape{unknown, unknown, unknown, unknown};
  }
  return result;
}
template <class List, Shape input>
struct CheckList;
template <class... D, Shape input>
struct CheckList<LayerList<D...>, input> {
  static constexpr Inferred<sizeof...(D)> inferred = infer(LayerList<D...>::layers, input);
  template <std::size_t... I>
  static constexpr bool check(std::index_sequence<I...>) {
    return (Witness<layer_at<static_cast<Index>(I + 1), D, inferred.shape[I]>, inferred.fault[I]>::ok && ...);
  }
  static constexpr bool ok = check(std::index_sequence_for<D...>{});
};
}  // namespace detail
/// Layers in execution order. Parts are layer descriptors or Sequentials.
template <class... Parts>
struct Sequential {
  static_assert(sizeof...(Parts) > 0, "lrcnn: a Sequential has no layers; a network has at least one; name its layers");
  using LayerListType = typename detail::Splice<typename detail::ListOf<Parts>::type...>::type;
  static constexpr auto layers = LayerListType::layers;
  static_assert(detail::CheckList<LayerListType, Shape{unknown, unknown, unknown, unknown}>::ok,
                "lrcnn: this network cannot work; the rule is in the message above; change the layer named there");
};
/// A network with its input extents, all of which are checked at compile time. Usable wherever a network is.
template <class Net, Input extents>
struct Fixed {
  using LayerListType = typename Net::LayerListType;
  static constexpr auto layers = LayerListType::layers;
  static constexpr Input input = extents;
  static_assert(detail::CheckList<LayerListType, extents>::ok,
                "lrcnn: this network cannot work on this input; the rule is in the message above; change the layer named there, "
                "or the input");
};
/// A type that is a network: Sequential, Fixed, or anything with a constant array `layers`.
template <class N>
concept Network = requires {
  { std::span<const Layer>(N::layers) };
};
/// The layer table of a network type.
/// Errors:  ShapeError naming layer, description and input shape
template <Network Net>
constexpr Table table_of(const Input& input) {
  return make_table(Net::layers, input);
}
template <Network Net>
  requires requires { Net::input; }
constexpr Table table_of() {
  return make_table(Net::layers, Net::input);
}
}  // namespace lrcnn
