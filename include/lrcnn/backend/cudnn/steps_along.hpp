#pragma once
// Pointwise steps that are carried out along with the step beside them, so that a map less is written and read.
//
// Forward, the join behind a batch norm adds the other map where the norm would have written its own, if nobody else reads that. Backward, a ReLU's
// step in place is left out: the batch norm before it lets gradients pass where its output is positive, which it knows from what it reads; the max
// pooling behind it lets them pass by the ReLU's mask bits. Results have the bits that the steps would have made one by one.
#include <lrcnn/backend/cudnn/together.hpp>
#include <lrcnn/layer/statistics.hpp>
namespace lrcnn::cudnn {
/// Whether a norm's passes are made by loops over whole pieces of channels (loops/batch_norm.hpp), which can do more along.
template <class T>
constexpr bool takes_whole_pieces(const Operands<T>& o) {
  return shares_statistics(o.node->layer.norm) && o.node->in.c % 8 == 0;   // loops::Lines::width
}
/// Whether bits of a map's channels at one position fill whole bytes.
constexpr bool fills_bytes(Index channels) { return channels % 8 == 0; }
/// Steps from the first on that are carried out by fewer: none if they are not such.
template <class T>
struct StepsAlong {
  std::array<Operands<T>, 2> work{};   ///< steps that have others along with them
  std::size_t count = 0;               ///< of them
  std::size_t steps = 0;               ///< that they carry out
  /// `fleeting`: nobody but the second step reads what the first one writes. The steps must stay where they are while `work` is in use.
  StepsAlong(std::span<const Operands<T>> list, bool fleeting) {
    if (list.size() < 2) return;
    const bool joins = fleeting && is_norm(list[0], Op::forward) && is_join_behind(list[0], list[1]);
    if (joins || is_relu_below(list[0], list[1])) {
      work[0] = list[0], count = 1, steps = 2;
      work[0].along = &list[1];
      return;
    }
    std::size_t next = 1;
    if (is_norm(list[1], Op::backward_sums)) next = 2;
    if (next == list.size() || !is_relu_before(list[0], list[next]) || (next == 2 && !reads_same(list[1], list[2]))) return;
    for (std::size_t i = 1; i <= next; ++i) {
      work[count] = list[i];
      work[count++].along = &list[0];
    }
    steps = next + 1;
  }

 private:
  using Places = PointwiseStep<T>;
  static bool is_norm(const Operands<T>& o, Op op) {
    return o.op == op && o.node && o.node->layer.kind == Kind::norm && o.node->layer.norm.over == Norm::Over::batch && !o.activation &&
           takes_whole_pieces(o);
  }
  /// A join that adds the norm's output to another map. It may write over what the norm reads, element by element. Statistics stay: the backward
  /// pass reads them.
  static bool is_join_behind(const Operands<T>& norm, const Operands<T>& join) {
    if (join.op != Op::forward || !join.node || join.node->layer.kind != Kind::sum || norm.y.data == nullptr || norm.saved.data != nullptr)
      return false;
    const Range made = join.y.data != nullptr ? join.y.range() : join.saved.range();
    if (made.empty() || made != norm.y.range() || !join.x.range().contains(made) || !join.other.range().contains(made)) return false;
    const View<const T> x = join.x.slice(made), other = join.other.slice(made), read = norm.x.slice(made), own = norm.y;
    if (Places::same_place(own, x) == Places::same_place(own, other)) return false;
    return (Places::apart(join.y, read) || Places::same_place(View<const T>(join.y), read)) && Places::apart(join.saved, read);
  }
  /// The step of a ReLU, which is done in place.
  static bool is_relu_in_place(const Operands<T>& o) {
    return o.op == Op::backward_data && o.node && o.node->layer.kind == Kind::activation && o.node->layer.activation.function == Function::relu &&
           !o.dx.range().empty() && same_rows(o.dx, o.dy);
  }
  static bool same_rows(const View<const T>& a, const View<const T>& b) { return a.range() == b.range() && Places::same_place(a, b); }
  /// The step of a ReLU that reads the norm's output, before the norm's own in the same place.
  static bool is_relu_before(const Operands<T>& relu, const Operands<T>& norm) {
    return is_norm(norm, Op::backward_data) && norm.statistics != nullptr && norm.sums != nullptr && is_relu_in_place(relu) &&
           relu.node->input == norm.layer + 1 && same_rows(relu.dx, norm.dy) && same_rows(norm.dx, norm.dy) &&
           intersect(norm.dx.range(), norm.part) == norm.dx.range() && norm.x.range().contains(norm.dx.range());
  }
  /// The step of a ReLU whose output a max pooling reads, behind the pooling's own.
  static bool is_relu_below(const Operands<T>& pool, const Operands<T>& relu) {
    return pool.op == Op::backward_data && pool.node && pool.node->layer.kind == Kind::max_pool && is_relu_in_place(relu) &&
           same_rows(pool.dx, relu.dy) && relu.saved.data != nullptr && relu.saved.range().contains(relu.dx.range()) && fills_bytes(pool.dx.c);
  }
  /// Whether sums are of what the norm's other step reads.
  static bool reads_same(const Operands<T>& sums, const Operands<T>& norm) {
    return sums.layer == norm.layer && sums.x.data == norm.x.data && same_rows(sums.dy, norm.dy);
  }
};
}   // namespace lrcnn::cudnn
