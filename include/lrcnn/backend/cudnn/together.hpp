#pragma once
// Steps that one loop carries out: rows that are copied or added before or behind a ReLU, forward or backward.
//
// A thread does its elements of all of these steps, one step after the other. So what a step writes and another one touches must be the same
// place, element by element, or else they have nothing in common.
#include <lrcnn/backend/concepts.hpp>
#include <array>
#include <optional>
#include <span>
#include <vector>
namespace lrcnn::cudnn {
/// A step that works element by element, with the rows that it really reads and writes.
template <class T>
struct PointwiseStep {
  enum class Kind : std::uint8_t { copy, add, forward, backward };
  Kind kind{};
  View<const T> x{}, values{};   ///< x: dy of a backward step; values: what that takes the sign from, unless from saved
  View<T> y{};                   ///< dx of a backward step; a forward step may have none
  View<std::uint8_t> saved{};
  bool moves() const { return kind == Kind::copy || kind == Kind::add; }
  /// A step, if it is one. One that has nothing to do is a copy of no rows.
  static std::optional<PointwiseStep> of(const Operands<T>& o) {
    if (o.op == Op::copy || o.op == Op::add)
      return PointwiseStep{.kind = o.op == Op::copy ? Kind::copy : Kind::add, .x = o.x.slice(o.y.range()), .y = o.y};
    if (!o.node || (o.op != Op::forward && o.op != Op::backward_data) || o.activation) return {};
    const bool relu = o.node->layer.kind == lrcnn::Kind::activation && o.node->layer.activation.function == Function::relu;
    if (o.op == Op::forward) {
      if (!relu) return {};
      const Range made = o.y.data != nullptr ? o.y.range() : o.saved.range();
      return PointwiseStep{.kind = Kind::forward, .x = o.x.slice(made), .y = o.y, .saved = of_rows(o.saved, made)};
    }
    if (o.dx.range() != o.dy.range() || !(relu || o.node->layer.kind == lrcnn::Kind::sum)) return {};
    if (!relu) return o.dx.data == o.dy.data ? PointwiseStep{} : PointwiseStep{.kind = Kind::copy, .x = o.dy, .y = o.dx};
    PointwiseStep step{.kind = Kind::backward, .x = o.dy, .y = o.dx, .saved = of_rows(o.saved, o.dx.range())};
    const View<const T> source = o.x.data != nullptr ? o.x : View<const T>(o.y);
    if (step.saved.data == nullptr) step.values = source.slice(o.dx.range());
    return step;
  }
  /// Whether two steps have the same elements in the same order.
  bool alike(const PointwiseStep& o) const { return same_extents(x, o.x); }
  /// Whether a thread may do its elements of both, this step's first.
  bool goes_with(const PointwiseStep& o) const { return fits(o) && o.fits(*this); }
  template <class E, class F>
  static bool same_extents(const View<E>& a, const View<F>& b) {
    return a.n == b.n && a.c == b.c && a.rows == b.rows && a.w == b.w;
  }
  /// Whether views have no byte in common, other rows of the same images among them. Pre: channels last
  template <class E, class F>
  static bool apart(const View<E>& a, const View<F>& b) {
    if (a.data == nullptr || b.data == nullptr || a.n * a.rows == 0 || b.n * b.rows == 0) return true;
    const auto bytes = [](const auto& v, Index elements) { return elements * static_cast<Index>(sizeof(*v.data)); };
    const auto image = [&](const auto& v) { return bytes(v, (v.blocks() - 1) * v.stride_c + v.rows * v.stride_row()); };
    const auto all = [&](const auto& v) { return bytes(v, (v.n - 1) * v.stride_n) + image(v); };
    Index distance = reinterpret_cast<const std::byte*>(b.data) - reinterpret_cast<const std::byte*>(a.data);
    if (distance >= all(a) || -distance >= all(b)) return true;
    const Index period = bytes(a, a.stride_n);
    if (a.n == 1 || b.n == 1 || period != bytes(b, b.stride_n) || period <= 0) return false;
    distance %= period;
    if (distance < 0) distance += period;
    return distance >= image(a) && distance + image(b) <= period;
  }
  template <class E, class F>
  static bool same_place(const View<E>& a, const View<F>& b) {
    return static_cast<const void*>(a.data) == b.data && same_extents(a, b) && (a.n == 1 || a.stride_n == b.stride_n);
  }

 private:
  static View<std::uint8_t> of_rows(const View<std::uint8_t>& saved, Range rows) {
    return saved.data != nullptr ? saved.slice(rows) : View<std::uint8_t>{};
  }
  /// Whether what this step writes is nothing, or the same place, to the other.
  bool fits(const PointwiseStep& o) const {
    const bool writes_saved = kind == Kind::forward;
    for (const View<const T>& other : {o.x, o.values, View<const T>(o.y)})
      if (!(apart(y, other) || same_place(y, other)) || (writes_saved && !apart(saved, other))) return false;
    return apart(y, o.saved) && (!writes_saved || apart(saved, o.saved));
  }
};
/// Steps from the first on that one loop carries out, and how many: none or one if there are not several.
template <class T>
struct PointwiseRun {
  static constexpr std::size_t most_moves = 2;   ///< before the ReLU, and behind it
  std::vector<PointwiseStep<T>> work{};          ///< of the steps that have something to do
  std::size_t steps = 0;
  explicit PointwiseRun(std::span<const Operands<T>> list) {
    std::size_t moves = 0;
    bool relu = false;
    for (; steps < list.size(); ++steps) {
      const auto next = PointwiseStep<T>::of(list[steps]);
      if (!next) return;
      if (next->x.n * next->x.rows == 0) continue;
      if (next->moves() ? moves == most_moves * (relu ? 1 : 2) : relu || moves > most_moves) return;
      for (const auto& before : work)
        if (!before.goes_with(*next)) return;
      moves = next->moves() ? moves + 1 : 0, relu = relu || !next->moves();
      work.push_back(*next);
    }
  }
};
}   // namespace lrcnn::cudnn
