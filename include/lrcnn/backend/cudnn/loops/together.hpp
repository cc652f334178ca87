#pragma once
// Copies, sums and a ReLU in one loop: a thread does its elements of each, one after the other (backend/cudnn/together.hpp).
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/bias.hpp>
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/backend/cudnn/loops/relu_sign.hpp>
#include <lrcnn/backend/cudnn/together.hpp>
#include <span>
namespace lrcnn::loops {
namespace detail {
/// y = x, or y += x.
template <class T>
struct Move {
  Line<const T> x;
  Line<T> y;
  bool add;
  template <int V>
  LRCNN_HOST_DEVICE void at(const Piece& p, bool packs) const {
    using A = master_t<T>;
    A value[V];
    load(x.at(p), p.count, packs, value);
    if (add) {
      A old[V];
      load(y.at(p), p.count, packs, old);
      for (int v = 0; v < V; ++v) value[v] = old[v] + value[v];
    }
    store(y.at(p), p.count, packs, value);
  }
};
template <class T>
struct MovePart {
  Move<T> move;
  Lines lines;
  LRCNN_HOST_DEVICE void operator()(Index unit) const { move.template at<Lines::width>(lines.piece(unit), lines.packs()); }
};
/// Nothing between some moves and others.
struct NoPart {
  LRCNN_HOST_DEVICE void operator()(Index) const {}
};
/// Units of each image, and where they are among those of the loop.
struct PartUnits {
  Index images = 0, first = 0, count = 0;
  template <class Part>
  LRCNN_HOST_DEVICE void call(const Part& part, Index image, Index unit) const {
    const Index own = unit - first;
    if (own >= 0 && own < count && image < images) part(image * count + own);
  }
};
/// A loop of blocks, so that the table of moves stays where it is.
template <class T, class Part>
struct TogetherLoop {
  static constexpr int phases = 1, most = static_cast<int>(cudnn::PointwiseRun<T>::most_moves), of_thread = 2;
  static constexpr Index of_block = block_threads * of_thread;
  struct Shared {};
  Part part;
  PartUnits of_part;
  MovePart<T> before[most], behind[most];
  PartUnits of_before[most], of_behind[most];
  Index count;   ///< units of all images
  Divisor of_image;
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared&) const {
    for (int i = 0; i < of_thread; ++i) unit(block * of_block + i * block_threads + thread);
  }

 private:
  LRCNN_HOST_DEVICE void unit(Index unit) const {
    if (unit >= count) return;
    const Index image = of_image.split(unit);
    for (int i = 0; i < most; ++i) of_before[i].call(before[i], image, unit);
    of_part.call(part, image, unit);
    for (int i = 0; i < most; ++i) of_behind[i].call(behind[i], image, unit);
  }
};
/// A move of some elements of an image, by the threads that do these elements of a ReLU.
template <class T>
struct MoveAlong {
  Move<T> move;
  Index first, count;   ///< elements of the ReLU's image; none: 0
  template <int V>
  LRCNN_HOST_DEVICE void at(Index image, Index element, int channels, bool packs) const {
    const Index own = element - first;
    if (own >= 0 && own < count) move.template at<V>({image, 0, own, channels}, packs);
  }
};
/// What a convolution's bias gradient is made from, and makes it: dx = dy where the ReLU lets it pass, with moves before and behind.
template <class T>
struct ReluGradient {
  static constexpr int V = lanes<T>, most = static_cast<int>(cudnn::PointwiseRun<T>::most_moves), at_once = 4;
  ReluSign<T> relu;
  Line<const T> dy;
  Line<T> dx;
  MoveAlong<T> before[most], behind[most];
  bool packs;
  LRCNN_HOST_DEVICE bool takes_packs() const { return packs; }
  template <int n, bool packed, class Loop, class Some>
  LRCNN_HOST_DEVICE void get(const Loop& loop, const typename Loop::Place& place, const Some& some, Pack<T, V> (&element)[n]) const {
    const TilePlaces<n> places(loop, place, some);
    const auto go = [&](const auto& moves, int i) {
      for (int k = 0; k < most; ++k) moves[k].template at<V>(places.image[i], places.at[i], place.count, packed);
    };
    for (int i = 0; i < n; ++i)
      if (some.has(i)) go(before, i);
    load_all<packed>([&](int i) { return places.in(dy, i); }, place.count, element);
    unsigned passing[n];
    relu.template find<packed>(places, place.count, passing);
    relu.keep(passing, element);
    for (int i = 0; i < n; ++i) {
      if (!some.has(i)) continue;
      store_pack<packed>(places.in(dx, i), place.count, element[i]);
      go(behind, i);
    }
  }
};
/// How a step is cut into units: as all steps that are like it are, so that what one writes and another reads is the same thread's.
template <class T>
Lines lines_of(std::span<const cudnn::PointwiseStep<T>> steps, const cudnn::PointwiseStep<T>& step) {
  constexpr std::size_t most = 2 * cudnn::PointwiseRun<T>::most_moves + 1;
  assert(steps.size() <= most);
  std::array<cudnn::PointwiseStep<T>, most> alike{};
  View<std::uint8_t> saved;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (step.alike(steps[i])) {
      alike[i] = steps[i];
      if (steps[i].saved.data != nullptr) saved = steps[i].saved;
    }
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return Lines(Lines::Images::apart, saved, step.x, alike[i].x..., alike[i].values..., View<const T>(alike[i].y)...);
  }
  (std::make_index_sequence<most>{});
}
/// Steps of a run by their places in the loop: before the ReLU, the ReLU if there is one, behind it.
template <class T>
struct Arranged {
  using Step = cudnn::PointwiseStep<T>;
  static constexpr std::size_t most = cudnn::PointwiseRun<T>::most_moves;
  std::array<Step, most> before{}, behind{};   ///< empty ones are of no rows
  const Step* relu = nullptr;
  explicit Arranged(std::span<const Step> steps) {
    std::size_t first = 0, last = 0;
    for (const Step& step : steps) {
      if (!step.moves()) relu = &step;
      else if (!relu && first < most) before[first++] = step;
      else behind[last++] = step;
    }
  }
};
}   // namespace detail
/// Carries out steps that go together: those of a PointwiseRun.
template <class Exec, class T>
void run_together(const Exec& exec, std::span<const cudnn::PointwiseStep<T>> steps) {
  using Step = cudnn::PointwiseStep<T>;
  const detail::Arranged<T> arranged(steps);
  static_assert(arranged.most == 2);
  Index units = 0, images = 0;
  const auto units_of = [&](const Step& step, const Lines& lines) {
    if (step.x.n * step.x.rows == 0) return detail::PartUnits{};
    const Index count = lines.count() / step.x.n, first = step.row * step.x.stride_row() / Lines::width;   // row > 0: whole pieces
    units = std::max(units, first + count), images = std::max(images, step.x.n);
    return detail::PartUnits{step.x.n, first, count};
  };
  const View<const T> one = dense_view(static_cast<const T*>(nullptr), 1, 1, {0, 1}, 1, 1);
  const auto part_of = [&](const Step& step) {
    return detail::MovePart<T>{{step.x, step.y, step.kind == Step::Kind::add}, step.x.data ? detail::lines_of<T>(steps, step) : Lines({}, one)};
  };
  const std::array before{part_of(arranged.before[0]), part_of(arranged.before[1])}, behind{part_of(arranged.behind[0]), part_of(arranged.behind[1])};
  const std::array of_before{units_of(arranged.before[0], before[0].lines), units_of(arranged.before[1], before[1].lines)},
      of_behind{units_of(arranged.behind[0], behind[0].lines), units_of(arranged.behind[1], behind[1].lines)};
  const auto start = [&](const auto& part, const detail::PartUnits& of_part) {
    using Part = std::remove_cvref_t<decltype(part)>;
    if (units == 0) return;
    const detail::TogetherLoop<T, Part> loop{
        part,           of_part,       {before[0], before[1]}, {behind[0], behind[1]}, {of_before[0], of_before[1]}, {of_behind[0], of_behind[1]},
        units * images, Divisor(units)};
    for_blocks(exec, ceil_div(loop.count, loop.of_block), loop);
  };
  if (!arranged.relu) return start(detail::NoPart{}, {});
  const Step& relu = *arranged.relu;
  const Lines lines = detail::lines_of<T>(steps, relu);
  const detail::PartUnits of_relu = units_of(relu, lines);
  if (relu.kind == Step::Kind::forward)
    start(detail::ActivationLoop<T, ReluFunctor>{lines, relu.x, {relu.y, relu.saved, {}}, nullptr, Divisor(relu.x.c)}, of_relu);
  else start(detail::ActivationBackwardLoop<T, ReluFunctor>{lines, relu.saved, relu.values, relu.x, relu.y, {}}, of_relu);
}
/// The same, and the gradient of the bias of the convolution that reads what the ReLU's step writes: the steps and the sums of a PointwiseRun.
/// Post:    the bits of run_together() and bias_gradient()
template <class Exec, class T>
void run_together(const Exec& exec, std::span<const cudnn::PointwiseStep<T>> steps, const Operands<T>& sums, std::uint32_t* tallies) {
  using Step = cudnn::PointwiseStep<T>;
  const detail::Arranged<T> arranged(steps);
  const Step& relu = *arranged.relu;
  const Index row = relu.x.stride_row();
  bool packs = detail::position_packs<lanes<T>>(relu.x) && detail::position_packs<lanes<T>>(relu.values) && detail::position_packs<lanes<T>>(relu.y);
  const auto along = [&](const Step& step) {
    packs = packs && detail::position_packs<lanes<T>>(step.x) && detail::position_packs<lanes<T>>(step.y);
    const Index first = step.row - (step.set == relu.set ? relu.row : 0);
    return detail::MoveAlong<T>{{step.x, step.y, step.kind == Step::Kind::add}, first * row, step.x.rows * row};
  };
  const std::array before{along(arranged.before[0]), along(arranged.before[1])}, behind{along(arranged.behind[0]), along(arranged.behind[1])};
  const detail::ReluGradient<T> gradient{{relu.saved, relu.values}, relu.x, relu.y, {before[0], before[1]}, {behind[0], behind[1]}, packs};
  detail::sum_bias(exec, View<const T>(relu.y), gradient, sums.d_parameters[1], sums.accumulate, sums.workspace, tallies);
}
}   // namespace lrcnn::loops
