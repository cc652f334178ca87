#pragma once
// Steps that one loop carries out: rows that are copied or added before or behind a ReLU, forward or backward; and behind a ReLU's backward step the
// gradient of the bias of the convolution that reads what it writes.
//
// A thread does its elements of all of these steps, one step after the other. What a step writes and another one touches must be the same thread's.
// So steps that have rows in common are laid side by side: each begins at the row of the loop where those rows meet.
#include <lrcnn/backend/cudnn/problem.hpp>
#include <algorithm>
#include <limits>
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
  Index row = 0;         ///< of the loop, at which the step's first row is
  std::size_t set = 0;   ///< of steps that have rows in common
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
  /// How a loop may do a step behind this one.
  struct Match {
    bool goes = true;             ///< whether it may
    std::optional<Index> row{};   ///< of this step, that must be done by the thread of the other one's first row; none: any
  };
  Match match(const PointwiseStep& o) const {
    Match match;
    const auto meet = [&](const View<const T>& a, const View<const T>& b) {
      if (apart(a, b)) return;
      const std::optional<Index> place = row_of(a, b);
      match.goes = match.goes && place && (!match.row || *match.row == *place);
      match.row = place;
    };
    for (const View<const T>& other : {o.x, o.values, View<const T>(o.y)}) meet(View<const T>(y), other);
    for (const View<const T>& own : {x, values}) meet(own, View<const T>(o.y));
    match.goes = match.goes && keeps_bits(o) && o.keeps_bits(*this);
    return match;
  }
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
  /// Whether the bits that this step writes are nothing to the other, and the bits that the other one has are nothing to this one's elements.
  bool keeps_bits(const PointwiseStep& o) const {
    if (!apart(y, o.saved)) return false;
    if (kind != Kind::forward) return true;
    return apart(saved, o.x) && apart(saved, o.values) && apart(saved, o.y) && apart(saved, o.saved);
  }
  /// The row of `a` at which `b` begins, if their images and the elements of their rows lie alike; b may begin above. Pre: they are not apart
  static std::optional<Index> row_of(const View<const T>& a, const View<const T>& b) {
    if (same_place(a, b)) return 0;
    constexpr Index piece = 8;   // loops::Lines::width: a thread's elements, which begin with a row then
    const Index elements = a.stride_row();
    if (a.n != b.n || a.c != b.c || a.w != b.w || elements % piece != 0 || (a.n > 1 && a.stride_n != b.stride_n)) return {};
    const Index bytes = reinterpret_cast<const std::byte*>(b.data) - reinterpret_cast<const std::byte*>(a.data), of_row = elements * Index{sizeof(T)};
    if (bytes % of_row != 0) return {};
    const Index first = bytes / of_row, all = std::max(a.rows, first + b.rows) - std::min<Index>(first, 0);
    if (a.n > 1 && all * elements > a.stride_n) return {};   // rows of another image
    return first;
  }
};
/// Whether a step makes the gradient of a convolution's bias from this gradient.
template <class T>
bool sums_bias_of(const Operands<T>& o, const View<const T>& dy) {
  return o.op == Op::backward_parameters && is_convolution(o) && o.node->layer.bias && o.dy.range() == dy.range() &&
         PointwiseStep<T>::same_place(o.dy, dy);
}
/// Whether a step's workspace is apart from rows that other steps touch.
template <class T, class E>
bool works_apart(const Operands<T>& o, const View<E>& rows) {
  const View<const std::byte> all = dense_view(static_cast<const std::byte*>(o.workspace), 1, 1, {0, 1}, o.workspace_bytes, 1);
  return PointwiseStep<T>::apart(all, rows);
}
/// Steps from the first on that one loop carries out, and how many: none or one if there are not several.
template <class T>
struct PointwiseRun {
  using Step = PointwiseStep<T>;
  static constexpr std::size_t most_moves = 2;   ///< before the ReLU, and behind it
  std::vector<Step> work{};                      ///< of the steps that have something to do
  std::size_t steps = 0;
  const Operands<T>* sums = nullptr;   ///< the step behind them, if the loop can make its bias gradient, too
  /// `most`: how many there may be; the others are only looked at.
  PointwiseRun(std::span<const Operands<T>> list, std::size_t most) {
    find(list.first(most));
    begin_at_zero();
    const auto relu = std::find_if(work.begin(), work.end(), [](const Step& step) { return !step.moves(); });
    if (relu == work.end() || relu->kind != Step::Kind::backward || steps == list.size() || relu->x.c % 8 != 0) return;
    if (!sums_bias_of(list[steps], View<const T>(relu->y))) return;
    const bool done = std::all_of(relu + 1, work.end(), [&](const Step& step) { return Step::apart(step.y, relu->y); });   // no move adds to it
    if (done && std::all_of(work.begin(), work.end(), [&](const Step& step) { return lies_in(step, *relu) && is_apart(step, list[steps]); }))
      sums = &list[steps];
  }

 private:
  void find(std::span<const Operands<T>> list) {
    std::size_t moves = 0;
    bool relu = false;
    for (; steps < list.size(); ++steps) {
      const auto next = Step::of(list[steps]);
      if (!next) return;
      if (next->x.n * next->x.rows == 0) continue;
      if (next->moves() ? moves == most_moves * (relu ? 1 : 2) : relu || moves > most_moves) return;
      if (!add(*next)) return;
      moves = next->moves() ? moves + 1 : 0, relu = relu || !next->moves();
    }
  }
  /// Lays a step beside the others, if it goes with them.
  bool add(Step next) {
    std::vector<Step> all = work;
    next.set = all.size();
    for (const Step& before : all) {
      const auto match = before.match(next);
      if (!match.goes) return false;
      if (!match.row) continue;
      const Index by = before.row + *match.row - next.row;
      if (before.set == next.set) {
        if (by != 0) return false;
        continue;
      }
      for (Step& step : all)
        if (step.set == next.set) step.row += by, step.set = before.set;
      next.row += by, next.set = before.set;
    }
    all.push_back(next);
    work = std::move(all);
    return true;
  }
  /// The first row of each set is the loop's first.
  void begin_at_zero() {
    std::vector<Index> first(work.size(), std::numeric_limits<Index>::max());
    for (const Step& step : work) first[step.set] = std::min(first[step.set], step.row);
    for (Step& step : work) step.row -= first[step.set];
  }
  /// Whether the threads that do the ReLU's rows can do all of a step's.
  static bool lies_in(const Step& step, const Step& relu) {
    const Index begin = step.row - (step.set == relu.set ? relu.row : 0);
    return step.x.n == relu.x.n && step.x.c == relu.x.c && step.x.w == relu.x.w && begin >= 0 && begin + step.x.rows <= relu.x.rows;
  }
  static bool is_apart(const Step& step, const Operands<T>& sums) {
    return works_apart(sums, step.x) && works_apart(sums, step.values) && works_apart(sums, step.y) && works_apart(sums, step.saved);
  }
};
}   // namespace lrcnn::cudnn
