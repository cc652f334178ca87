#pragma once
// Pointwise steps that are carried out along with the step beside them, so that a map less is written and read.
//
// Forward, the join behind a batch norm adds the other map where the norm would have written its own, if nobody else reads that. Backward, a ReLU's
// step in place is left out: the batch norm before it lets gradients pass where its output is positive, which it knows from what it reads; the max
// pooling behind it lets them pass by the ReLU's mask bits, and adds up the gradient of the bias of the convolution below. The pooling's forward
// step makes these bits, because it reads the map anyway; where all of these steps come one after the other, neither they nor winners are written.
// Behind a join, the sums of the norm before it are those of what the join's ReLU lets pass. Their loop writes this as the gradient of the join's
// other input, so that no copy is made, and the norm's data step reads its dy from there; or, where the join's inputs have one gradient
// (plan/shared_gradients.hpp), in place. Results have the bits that the steps would have made one by one.
#include <lrcnn/backend/cudnn/together.hpp>
#include <lrcnn/layer/statistics.hpp>
#include <array>
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
  const Operands<T>* sums = nullptr;   ///< the step behind them, if they make its bias gradient
  bool no_bits = false;                ///< the first step, a convolution's, is started alone, and need not make its ReLU's mask bits
  bool bits_next = false;              ///< the pooling behind it makes them
  /// `most`: how many steps there may be; the others are only looked at. `fleeting`: as fleeting_steps() has it of the first. The steps must stay
  /// where they are while `work` is in use.
  StepsAlong(std::span<const Operands<T>> all, std::size_t most, bool fleeting) {
    const auto list = all.first(most);
    if (list.size() < 2) return;
    const bool joins = fleeting && is_norm(list[0], Op::forward) && is_join_behind(list[0], list[1]);
    if (joins || is_relu_below(list[0], list[1])) {
      work[0] = list[0], count = 1, steps = 2;
      work[0].along = &list[1];
      if (!joins && steps < all.size() && makes_bias_of(list[0], list[1], all[steps])) work[0].bias_along = sums = &all[steps];
      return;
    }
    if (fleeting && pools_again(list, all)) {
      work[0] = list[1], count = 1, steps = 3;
      work[0].x = list[0].x, work[0].saved = {}, work[0].along = &list[2], work[0].bias_along = sums = &all[3];
      return;
    }
    const bool again = fleeting && makes_bits_of(list[0], list) && pools_again(list.subspan(1), all.subspan(1));
    bits_next = !again && pools_with_bits(list[0], list[1]);
    no_bits = again || bits_next;
    if (no_bits) return;
    const std::size_t relu = list[0].op == Op::add ? 1 : 0;
    if (const auto found = join_gradient(list, relu)) {
      const View<T>& passing = list[relu + 1].dx;
      work = {list[found->at], list[found->at + found->count - 1]}, count = found->count, steps = found->at + found->count;
      work[0].along = &list[relu], work[0].dx = passing;
      if (relu > 0) work[0].other = list[0].x.slice(list[0].y.range());
      if (count == 2) work[1].dy = passing, work[1].sums = found->results;
      work[0].sums = found->results;
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
  static bool is(const Operands<T>& o, Op op, Kind kind) { return o.op == op && o.node && o.node->layer.kind == kind; }
  static bool is_norm(const Operands<T>& o, Op op) {
    return is(o, op, Kind::norm) && o.node->layer.norm.over == Norm::Over::batch && !o.activation && takes_whole_pieces(o);
  }
  /// A join that adds the norm's output to another map. It may write over what the norm reads, or over that map, element by element. Statistics
  /// stay: the backward pass reads them.
  static bool is_join_behind(const Operands<T>& norm, const Operands<T>& join) {
    if (!is(join, Op::forward, Kind::sum) || norm.y.data == nullptr || norm.saved.data != nullptr) return false;
    const Range made = join.y.data != nullptr ? join.y.range() : join.saved.range();
    if (made.empty() || made != norm.y.range() || !join.x.range().contains(made) || !join.other.range().contains(made)) return false;
    const View<const T> x = join.x.slice(made), other = join.other.slice(made), read = norm.x.slice(made), own = norm.y;
    if (Places::same_place(own, x) == Places::same_place(own, other)) return false;
    return (Places::apart(join.y, read) || Places::same_place(View<const T>(join.y), read)) && Places::apart(join.saved, read);
  }
  /// The step of a ReLU, which is done in place.
  static bool is_relu_in_place(const Operands<T>& o) {
    return is(o, Op::backward_data, Kind::activation) && o.node->layer.activation.function == Function::relu && !o.dx.range().empty() &&
           same_rows(o.dx, o.dy);
  }
  static bool same_rows(const View<const T>& a, const View<const T>& b) { return a.range() == b.range() && Places::same_place(a, b); }
  /// The step of a ReLU that reads the norm's output, before the norm's own in the same place.
  static bool is_relu_before(const Operands<T>& relu, const Operands<T>& norm) {
    return is_relu_in_place(relu) && is_in_place_behind(relu, norm) && relu.node->input == norm.layer + 1;
  }
  /// A norm's step in the place of a ReLU's.
  static bool is_in_place_behind(const Operands<T>& relu, const Operands<T>& norm) {
    return is_own_of_norm(norm) && same_rows(relu.dx, norm.dy) && same_rows(norm.dx, norm.dy) &&
           intersect(norm.dx.range(), norm.part) == norm.dx.range();
  }
  /// A norm's step over what it reads, of all rows of dy.
  static bool is_over_input(const Operands<T>& norm) {
    return is_own_of_norm(norm) && norm.dx.range() == norm.dy.range() && same_rows(norm.dx, norm.x.slice(norm.dx.range()));
  }
  /// A norm's data step that has its sums and reads all rows that it writes.
  static bool is_own_of_norm(const Operands<T>& o) {
    return is_norm(o, Op::backward_data) && o.statistics != nullptr && o.sums != nullptr && o.x.range().contains(o.dx.range());
  }
  /// A step of a join's gradient of all rows of dy.
  static bool is_of_join(const Operands<T>& o, const View<T>& dy) {
    return is(o, Op::backward_data, Kind::sum) && same_rows(o.dy, dy) && o.dx.range() == dy.range() && Places::same_extents(o.dx, dy);
  }
  struct JoinGradient {
    std::size_t at = 0;          ///< the sums' step
    std::size_t count = 2;       ///< that and, behind it, the norm's own step; or that alone
    double* results = nullptr;   ///< of the sums
  };
  /// Steps of a ReLU, in place, which is number `relu`: before it may be an addition to its gradient. Behind it, steps of the join before it: a copy
  /// for one input, and nothing for the other, in place; and of the norm that makes the latter: sums, and its own in place. Or nothing for the one:
  /// the other has the same gradient; sums; and perhaps the norm's own, over what it reads.
  static std::optional<JoinGradient> join_gradient(std::span<const Operands<T>> list, std::size_t relu) {
    if (list.size() < relu + 3 || !is_relu_in_place(list[relu]) || !is_of_join(list[relu + 1], list[relu].dx)) return {};
    const View<T>&dy = list[relu].dx, &passing = list[relu + 1].dx;
    const bool shared = passing.data == dy.data;
    const std::size_t at = relu + (!shared && is_of_join(list[relu + 2], dy) && list[relu + 2].dx.data == dy.data ? 3 : 2);
    if (list.size() <= at || (relu > 0 && !same_rows(list[0].y, dy))) return {};
    const Operands<T>& sums = list[at];
    if (!is_norm(sums, Op::backward_sums) || sums.sums == nullptr || !same_rows(sums.dy, dy) || !sums.x.range().contains(dy.range())) return {};
    const Operands<T>* const norm = at + 1 < list.size() && reads_same(sums, list[at + 1]) ? &list[at + 1] : nullptr;
    const bool behind = norm && (shared ? is_over_input(*norm) : is_in_place_behind(list[relu], *norm));
    if (!behind && !shared) return {};
    double* const results = behind ? results_of(sums, *norm) : sums.sums;
    const View<const double> written = dense_view(const_cast<const double*>(results), 1, 1, {0, 1}, doubles_of(sums), 1);
    // Until the sums are made: what the earlier steps read may be gone by then, and its place be of the sums' own.
    const auto stays = [&](const auto& rows) { return Places::apart(written, rows) && works_apart(sums, rows); };
    // Read where `passing` is written: by the thread that writes over it, if at all. Elements lie alike (loops::SameTilePlaces).
    const auto goes = [&](const View<const T>& read) {
      if (read.data == nullptr) return true;
      return stays(read) && (Places::apart(passing, read) || Places::same_place(passing, read)) &&
             (read.n == 1 || read.stride_n == passing.stride_n) && common_alignment(read.data, passing.data) == 16;
    };
    const auto step = Places::of(list[relu]);
    if (!step || !(shared || Places::apart(passing, dy)) || !Places::apart(passing, sums.x) || !stays(passing) || !goes(dy) || !goes(step->values))
      return {};
    if (relu > 0 && !goes(list[0].x.slice(list[0].y.range()))) return {};
    const View<std::uint8_t>& mask = step->saved;
    if (mask.data != nullptr && !(stays(mask) && Places::apart(passing, mask) && (mask.n == 1 || 8 * mask.stride_n == passing.stride_n))) return {};
    return JoinGradient{at, behind ? std::size_t{2} : std::size_t{1}, results};
  }
  static Index doubles_of(const Operands<T>& sums) { return sums_bytes(sums.node->layer, sums.dy.c, sums.dy.n) / Index{sizeof(double)}; }
  /// Where results of sums go. Their own place may still have what the ReLU or the addition reads, so they go to the end of the workspace, if that is
  /// large and the norm's own step of all rows is the only one that reads them: it writes over all of dy, or all of x, which no later pass can read
  /// again then.
  static double* results_of(const Operands<T>& sums, const Operands<T>& norm) {
    const Shape& whole = sums.node->in;
    const Index most_parts = (Index{4} << 20) + 32 * whole.c;   // more than the sums' loop takes, from the workspace's begin
    const Index bytes = round_up(doubles_of(sums) * Index{sizeof(double)}, Index{256}), rest = sums.workspace_bytes / 256 * 256 - bytes;
    const bool once = !sums.accumulate && norm.dx.n == whole.n && norm.dx.range() == Range{0, whole.h};
    return once && rest >= most_parts ? reinterpret_cast<double*>(sums.workspace + rest) : sums.sums;
  }
  /// The step of a ReLU whose output a max pooling reads, behind the pooling's own.
  static bool is_relu_below(const Operands<T>& pool, const Operands<T>& relu) {
    return is(pool, Op::backward_data, Kind::max_pool) && is_relu_in_place(relu) && same_rows(pool.dx, relu.dy) && relu.saved.data != nullptr &&
           relu.saved.range().contains(relu.dx.range()) && fills_bytes(pool.dx.c);
  }
  /// Whether windows are of 2x2 and lie side by side: a position has one at most.
  static bool is_side_by_side(const Window& window) {
    return window.kernel == Pair(2) && window.stride == Pair(2) && window.pad == Pad(0) && window.dilation == Pair(1);
  }
  /// Whether a step makes a bias gradient from what a pooling's step and the ReLU's behind it make, in memory that they do not touch.
  static bool makes_bias_of(const Operands<T>& pool, const Operands<T>& relu, const Operands<T>& o) {
    return sums_bias_of(o, View<const T>(relu.dx)) && is_side_by_side(pool.node->layer.window) && !pool.dy.range().empty() &&
           works_apart(o, pool.dy) && works_apart(o, pool.dx) && works_apart(o, pool.saved) && works_apart(o, relu.saved);
  }
  /// Steps of a max pooling that saves its winners alone, its backward step, that of the ReLU whose output it reads, and the one that makes a bias
  /// gradient: winners can be looked for again, in a map that the gradient is not written over.
  static bool pools_again(std::span<const Operands<T>> list, std::span<const Operands<T>> all) {
    if (list.size() < 3 || all.size() < 4) return false;
    const Operands<T>&pool = list[0], &down = list[1], &relu = list[2];
    if (!is(pool, Op::forward, Kind::max_pool) || pool.y.data != nullptr || pool.saved.data == nullptr || down.node != pool.node ||
        !is_relu_below(down, relu) || pool.node->input != relu.layer + 1 || !makes_bias_of(down, relu, all[3]))
      return false;
    const Range read{2 * down.dy.range().begin, 2 * down.dy.range().end};   // by the windows
    return down.saved.data == pool.saved.data && pool.x.range().contains(read) && works_apart(all[3], pool.x) && Places::apart(down.dx, pool.x) &&
           Places::apart(down.dx, down.dy);
  }
  /// Whether a pooling reads what a convolution's step makes with its ReLU, all of it, and can make the mask bits.
  static bool pools_with_bits(const Operands<T>& o, const Operands<T>& pool) {
    if (!makes_bits(o) || !is(pool, Op::forward, Kind::max_pool) || pool.node->input != o.layer + 2) return false;
    const Range windows = pool.y.data != nullptr ? pool.y.range() : pool.saved.range();
    const Range read{2 * windows.begin, 2 * windows.end};
    return is_side_by_side(pool.node->layer.window) && fills_bytes(o.y.c) && o.y.range() == read && o.saved.range().contains(read) &&
           pool.x.range().contains(read) && Places::same_place(pool.x.slice(read), View<const T>(o.y)) && o.y.w == 2 * pool.node->out.w &&
           (pool.y.data == nullptr || Places::apart(pool.y, o.y)) && Places::apart(o.saved, o.y) && Places::apart(o.saved, pool.y) &&
           Places::apart(o.saved, pool.saved);
  }
  /// Whether a convolution's step makes the mask bits of its ReLU, too.
  static bool makes_bits(const Operands<T>& o) {
    return o.op == Op::forward && is_convolution(o) && o.activation && o.activation->layer.activation.function == Function::relu &&
           o.saved.data != nullptr && o.y.data != nullptr;
  }
  /// Whether a convolution's step makes the map and the mask bits that steps behind it, of pools_again(), go back by.
  static bool makes_bits_of(const Operands<T>& o, std::span<const Operands<T>> list) {
    if (list.size() < 4 || !makes_bits(o)) return false;
    return o.activation == list[3].node && o.layer + 1 == list[3].layer && o.saved.data == list[3].saved.data &&
           o.y.range().contains(list[2].dx.range());
  }
  /// Whether sums are of what the norm's other step reads.
  static bool reads_same(const Operands<T>& sums, const Operands<T>& norm) {
    return sums.layer == norm.layer && sums.x.data == norm.x.data && same_rows(sums.dy, norm.dy);
  }
};
}   // namespace lrcnn::cudnn
