#pragma once
// What parts of networks are made of: their layers as a constant array, and their descriptors for messages.
//
// A part is a layer descriptor, a type with `Content` (Sequential, joins, scopes), or any other type with a constant array
// `layers`. It reads one tensor, and its output is that of its last layer. Layers say how many places before themselves their
// inputs lie, so that a part is put into a list as it is; only what refers to the part's input depends on where that lies.
// Descriptors are listed only once something is wrong: most of what a compiler has to do for a large network is saved that way.
#include <lrcnn/layer/concepts.hpp>
#include <lrcnn/layer/statistics.hpp>
#include <lrcnn/network/names.hpp>
#include <lrcnn/network/references.hpp>
#include <lrcnn/network/witness.hpp>
#include <array>
#include <type_traits>
#include <utility>
namespace lrcnn {
/// A type that is a network: Sequential, Fixed, a join, or anything with a constant array `layers`.
template <class N>
concept Network = requires {
  {std::span<const Layer>(N::layers)};
};
namespace detail {
template <class... D>
struct DescriptorList {};
template <class... Lists>
struct Splice {
  using type = DescriptorList<>;
};
template <class... A>
struct Splice<DescriptorList<A...>> {
  using type = DescriptorList<A...>;
};
template <class... A, class... B, class... Rest>
struct Splice<DescriptorList<A...>, DescriptorList<B...>, Rest...> : Splice<DescriptorList<A..., B...>, Rest...> {};
template <class T>
inline constexpr bool is_layer = LayerDescriptor<T>;   // a template, so that compilers show T next to the message
template <std::size_t N>
constexpr std::array<Layer, N> as_array(const std::array<Layer, N>& layers) {
  return layers;
}
template <std::size_t N>
constexpr std::array<Layer, N> as_array(const Layer (&layers)[N]) {
  return std::to_array(layers);
}
/// Layers and descriptors of a part.
template <class T>
struct ContentOf {
  static_assert(is_layer<T>,
                "lrcnn: a part of a Sequential is no layer; a layer is a type with `static constexpr Layer layer()`, or a "
                "Sequential, and parts such as Share<4> belong to the Policy; see docs/extending.md");
  static constexpr std::array<Layer, 1> layers{T::layer()};
  static constexpr auto heads = head_hashes(layers);
  struct Descriptors : Splice<DescriptorList<T>> {};
};
template <class T>
  requires requires { typename T::Content; }
struct ContentOf<T> : T::Content {};
template <class T>
  requires(Network<T> && !LayerDescriptor<T> && !requires { typename T::Content; })
struct ContentOf<T> {
  static constexpr auto layers = as_array(T::layers);
  static constexpr auto heads = head_hashes(layers);
  template <std::size_t... I>
  static DescriptorList<std::conditional_t<I == 0, T, T>...> repeated(std::index_sequence<I...>);
  struct Descriptors : Splice<decltype(repeated(std::make_index_sequence<layers.size()>{}))> {};
};
template <class T>
using DescriptorsOf = typename ContentOf<T>::Descriptors::type;
/// Puts a part's layers at `at`; its input is the output of the layer `gap` places before that one.
template <std::size_t N, std::size_t M>
constexpr void append(std::array<Layer, N>& list, std::size_t& at, const std::array<Layer, M>& part, Index gap) {
  for (Index i = 0; i < static_cast<Index>(M); ++i) {
    Layer& layer = list[at++] = item(part, i);
    if (layer.input > i) layer.input = i + gap;
    if (layer.other > i) layer.other = i + gap;
  }
}
/// What the layers of parts that become one list are called at the outermost (head_hash). Lists of large networks are put together many
/// times, and only where parts have heads in common a compiler has to compare whole names.
template <class... Parts>
struct HeadsOf {
  static constexpr std::size_t size = (std::size_t{0} + ... + ContentOf<Parts>::heads.size());
  std::array<std::uint64_t, size> hashes{};
  std::array<std::size_t, sizeof...(Parts) + 1> begins{};
  constexpr HeadsOf() {
    [[maybe_unused]] std::size_t at = 0, part = 0;
    [[maybe_unused]] const auto add = [&](const auto& heads) {
      for (const std::uint64_t hash : heads) hashes[at++] = hash;
      begins[++part] = at;
    };
    (add(ContentOf<Parts>::heads), ...);
  }
};
template <class... Parts>
inline constexpr HeadsOf<Parts...> heads_of{};
template <class... Parts>
inline constexpr bool heads_shared = share_heads(heads_of<Parts...>.hashes, heads_of<Parts...>.begins);
/// Those of the whole, `layers`.
template <class... Parts, std::size_t N>
constexpr auto heads_of_whole(const std::array<Layer, N>& layers) {
  if constexpr (heads_shared<Parts...>) return head_hashes(layers);
  else return heads_of<Parts...>.hashes;
}
template <class... Parts>
struct Chain {
  static constexpr auto layers = [] {
    std::array<Layer, (std::size_t{0} + ... + ContentOf<Parts>::layers.size())> list{};
    std::array<std::size_t, sizeof...(Parts) + 1> begins{};
    [[maybe_unused]] std::size_t at = 0, part = 0;
    ((append(list, at, ContentOf<Parts>::layers, 1), begins[++part] = at), ...);
    if constexpr (heads_shared<Parts...>) number_repeated(list, begins);
    return list;
  }();
  static constexpr auto heads = heads_of_whole<Parts...>(layers);
  struct Descriptors : Splice<DescriptorsOf<Parts>...> {};
};
/// Names a join in messages.
struct SumJoin {
  static constexpr Kind kind = Kind::sum;
};
struct ConcatJoin {
  static constexpr Kind kind = Kind::concat;
};
struct ScaleJoin {
  static constexpr Kind kind = Kind::scale;
};
/// Branches that read the same tensor, and joins of the first with each other one behind it.
template <class Join, class First, class... Others>
struct Branches {
  static constexpr auto layers = [] {
    std::array<Layer, (ContentOf<First>::layers.size() + ... + (ContentOf<Others>::layers.size() + 1))> list{};
    std::array<std::size_t, sizeof...(Others) + 2> begins{};
    std::size_t at = 0, part = 0;   // the input counts as place -1
    append(list, at, ContentOf<First>::layers, 1);
    begins[++part] = at;
    Index joined = static_cast<Index>(at) - 1;
    const auto add = [&](const auto& branch) {
      append(list, at, branch, static_cast<Index>(at) + 1);
      const auto place = static_cast<Index>(at);
      list[at++] = Layer{.kind = Join::kind, .input = place - joined, .other = branch.empty() ? place + 1 : 1};
      joined = place;
      begins[++part] = at;
    };
    (add(ContentOf<Others>::layers), ...);
    if constexpr (heads_shared<First, Others...>) number_repeated(list, begins);
    return list;
  }();
  static constexpr auto heads = heads_of_whole<First, Others...>(layers);
  struct Descriptors : Splice<DescriptorsOf<First>, typename Splice<DescriptorsOf<Others>, DescriptorList<Join>>::type...> {};
};
}   // namespace detail
/// What is known of a list of N layers before all extents are.
template <std::size_t N>
struct InferredShapes {
  std::array<Shape, N + 1> shape{};   ///< of the input, then of each layer's output; `unknown` for extents that cannot be told
  std::array<Fault, N> fault{};       ///< the first one of each layer
  bool sound = true;                  ///< no layer has one
};
/// Shapes and faults of a list of layers, as Sequential finds them at compile time. Extents of `input` may be `unknown`; what follows from
/// the others alone is known all the same. The output of a layer with a fault is unknown.
template <std::size_t N>
constexpr InferredShapes<N> infer_shapes(const std::array<Layer, N>& layers, const Shape& input) {
  InferredShapes<N> result;
  result.shape[0] = input;
  std::array<bool, N + 1> flat{}, read{};
  for (std::size_t i = 0; i < N; ++i) {
    const Reads reads = reads_of(layers[i], static_cast<Index>(i));
    const auto a = static_cast<std::size_t>(reads.input), b = reads.other < 0 ? a : static_cast<std::size_t>(reads.other);
    read[a] = read[b] = true;
    Fault& fault = result.fault[i] = fault_of_reads(layers[i], static_cast<Index>(i));
    if (fault == Fault::none) fault = fault_of(layers[i], result.shape[a], flat[a] || flat[b], result.shape[b]);
    flat[i + 1] = is_flat(layers[i], flat[a], flat[b]);
    result.shape[i + 1] = fault == Fault::none ? output_shape(layers[i], result.shape[a], result.shape[b]) : unknown_shape;
    result.sound = result.sound && fault == Fault::none;
  }
  for (std::size_t i = 0; i + 1 < N; ++i)
    if (!read[i + 1] && result.fault[i] == Fault::none) result.fault[i] = Fault::unused, result.sound = false;
  return result;
}
namespace detail {
template <class Content, Shape input>
struct CheckContent {
  static constexpr auto inferred = infer_shapes(Content::layers, input);
  template <std::size_t I, class D>
  static constexpr bool witness() {
    constexpr Reads reads = reads_of(Content::layers[I], static_cast<Index>(I));
    constexpr Index position = static_cast<Index>(I + 1);
    constexpr Shape in = item(inferred.shape, reads.input);
    if constexpr (reads.other < 0) {
      return Witness<layer_at<position, D, typename ShapeShown<in>::type>, inferred.fault[I]>::ok;
    } else {
      constexpr Shape other = item(inferred.shape, reads.other);
      return Witness<
          join_at<position, D, branch_from<reads.input, typename ShapeShown<in>::type>, branch_from<reads.other, typename ShapeShown<other>::type>>,
          inferred.fault[I]>::ok;
    }
  }
  template <class... D, std::size_t... I>
  static constexpr bool check(DescriptorList<D...>, std::index_sequence<I...>) {
    return (witness<I, D>() && ...);
  }
  static constexpr bool found() {
    if constexpr (!inferred.sound) return check(typename Content::Descriptors::type{}, std::make_index_sequence<Content::layers.size()>{});
    return true;
  }
  static constexpr bool ok = found();
};
/// What can be wrong in training alone. `image_loss`: the loss is one over images.
template <class Content, Shape input, bool image_loss>
struct CheckTraining {
  static constexpr auto& shape = CheckContent<Content, input>::inferred.shape;
  static constexpr Shape output = shape.back();
  static constexpr bool maps = image_loss && (output.h != 1 || output.w != 1);
  static constexpr Shape in(std::size_t i) { return item(shape, reads_of(Content::layers[i], static_cast<Index>(i)).input); }
  static constexpr bool lone = [] {
    for (std::size_t i = 0; i < Content::layers.size(); ++i)
      if (has_one_value(Content::layers[i], in(i))) return true;
    return false;
  }();
  template <std::size_t I, class D>
  static constexpr bool witness() {
    constexpr auto place = static_cast<Index>(I + 1);
    if constexpr (has_one_value(Content::layers[I], in(I)))
      return Witness<layer_at<place, D, typename ShapeShown<in(I)>::type>, Fault::one_value>::ok;
    else if constexpr (maps && I + 1 == Content::layers.size())
      return Witness<output_of<place, D, typename ShapeShown<output>::type>, Fault::map_given>::ok;
    else return true;
  }
  template <class... D, std::size_t... I>
  static constexpr bool check(DescriptorList<D...>, std::index_sequence<I...>) {
    return (witness<I, D>() && ...);
  }
  static constexpr bool found() {
    if constexpr (maps || lone) return check(typename Content::Descriptors::type{}, std::make_index_sequence<Content::layers.size()>{});
    return true;
  }
  static constexpr bool ok = found();
};
}   // namespace detail
}   // namespace lrcnn
