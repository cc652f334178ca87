#pragma once
// The loops of a kind of layer for a device, as a row: one for each operation that a step can ask of it.
//
// Each header with loops says of its kinds which they are, `layer_loops<Kind::pad, Exec, T>`; backend/cudnn/loops.hpp finds them by the
// layer's kind. What a library for convolutions does has none.
#include <lrcnn/backend/concepts.hpp>
#include <type_traits>
namespace lrcnn::loops {
template <class Exec, class T>
struct LayerLoops {
  using Loop = void (*)(const Exec&, const Operands<T>&);
  Loop forward = nullptr;
  Loop backward_data = nullptr;
  Loop backward_parameters = nullptr;   ///< null: it has no parameters
};
struct NoLoops {
  template <class Exec, class T>
  constexpr operator LayerLoops<Exec, T>() const {
    return {};
  }
};
template <Kind kind, class Exec, class T>
inline constexpr NoLoops layer_loops{};
template <Kind kind, class Exec, class T>
inline constexpr bool has_loops = !std::is_same_v<decltype(layer_loops<kind, Exec, T>), const NoLoops>;
template <class T>
constexpr Index no_workspace(const Operands<T>&) {
  return 0;
}
/// Bytes of workspace that a step of a kind of layer needs.
template <Kind kind, class T>
inline constexpr Index (*layer_workspace)(const Operands<T>&) = no_workspace<T>;
}   // namespace lrcnn::loops
