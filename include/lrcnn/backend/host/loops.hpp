#pragma once
// The loops of a kind of layer on the host, as a row: one for each operation that a step can ask of it.
//
// Each header with loops says of its kinds which they are, `layer_loops<Kind::pad, T>`; run.hpp finds them by the layer's kind.
#include <lrcnn/backend/concepts.hpp>
namespace lrcnn::host {
template <class T>
struct LayerLoops {
  using Loop = void (*)(const Operands<T>&, int threads);
  Loop forward = nullptr;
  Loop backward_data = nullptr;
  Loop backward_parameters = nullptr;   ///< null: it has no parameters
};
template <Kind kind, class T>
inline constexpr LayerLoops<T> layer_loops{};
}   // namespace lrcnn::host
