#pragma once
// The loops of a kind of layer on the host, as a row: one for each operation that a step can ask of it.
//
// Each header with loops says of its kinds which they are, `layer_loops<Kind::pad, T>`; run.hpp finds them by the layer's kind.
#include <lrcnn/backend/concepts.hpp>
#include <type_traits>
namespace lrcnn::host {
template <class T>
struct LayerLoops {
  using Loop = void (*)(const Operands<T>&, int threads);
  Loop forward = nullptr;
  Loop backward_data = nullptr;
  Loop backward_parameters = nullptr;   ///< null: it has no parameters
};
struct NoLoops {};
template <Kind kind, class T>
inline constexpr NoLoops layer_loops{};
template <Kind kind, class T>
inline constexpr bool has_loops = !std::is_same_v<decltype(layer_loops<kind, T>), const NoLoops>;
}   // namespace lrcnn::host
