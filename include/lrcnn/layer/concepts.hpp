#pragma once
// What makes a type a layer descriptor, and how to give one a name.
#include <lrcnn/layer/layer.hpp>
#include <concepts>
namespace lrcnn {
/// A type that describes one layer as a constant.
template <class D>
concept LayerDescriptor = requires {
  { D::layer() } -> std::same_as<Layer>;
};
/// A layer under a name of one's own, for CheckpointAt<"name"> and for the names of parameters: Named<"stem", Conv<64>>.
template <Name name, LayerDescriptor D>
struct Named {
  static constexpr Layer layer() {
    Layer layer = D::layer();
    layer.name = name;
    return layer;
  }
};
}   // namespace lrcnn
