#pragma once
// Copies, sums and a ReLU in one loop: a thread does its elements of each, one after the other (backend/cudnn/together.hpp).
#include <lrcnn/backend/cudnn/loops/activation.hpp>
#include <lrcnn/backend/cudnn/loops/blocks.hpp>
#include <lrcnn/backend/cudnn/together.hpp>
#include <span>
namespace lrcnn::loops {
namespace detail {
/// y = x, or y += x; of no units if there is nothing to do.
template <class T>
struct MovePart {
  Lines lines;
  Line<const T> x;
  Line<T> y;
  bool add;
  Index count;
  LRCNN_HOST_DEVICE void operator()(Index unit) const {
    using A = master_t<T>;
    if (unit >= count) return;
    const Piece p = lines.piece(unit);
    A value[Lines::width];
    load(x.at(p), p.count, lines.packs(), value);
    if (add) {
      A old[Lines::width];
      load(y.at(p), p.count, lines.packs(), old);
      for (int v = 0; v < Lines::width; ++v) value[v] = old[v] + value[v];
    }
    store(y.at(p), p.count, lines.packs(), value);
  }
};
/// Nothing between some moves and others.
struct NoPart {
  LRCNN_HOST_DEVICE void operator()(Index) const {}
};
/// A loop of blocks, so that the table of moves stays where it is.
template <class T, class Part>
struct TogetherLoop {
  static constexpr int phases = 1, most = static_cast<int>(cudnn::PointwiseRun<T>::most_moves), of_thread = 2;
  static constexpr Index of_block = block_threads * of_thread;
  struct Shared {};
  Part part;
  Index count;   ///< of its units
  MovePart<T> before[most], behind[most];
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared&) const {
    for (int i = 0; i < of_thread; ++i) unit(block * of_block + i * block_threads + thread);
  }

 private:
  LRCNN_HOST_DEVICE void unit(Index unit) const {
    for (int i = 0; i < most; ++i) before[i](unit);
    if (unit < count) part(unit);
    for (int i = 0; i < most; ++i) behind[i](unit);
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
    return Lines(saved, step.x, alike[i].x..., alike[i].values..., View<const T>(alike[i].y)...);
  }
  (std::make_index_sequence<most>{});
}
}   // namespace detail
/// Carries out steps that go together: those of a PointwiseRun.
template <class Exec, class T>
void run_together(const Exec& exec, std::span<const cudnn::PointwiseStep<T>> steps) {
  using Step = cudnn::PointwiseStep<T>;
  constexpr std::size_t most = cudnn::PointwiseRun<T>::most_moves;
  Index units = 0;
  const auto lines_and_count = [&](const Step& step) {
    const Lines lines = detail::lines_of<T>(steps, step);
    units = std::max(units, lines.count());
    return lines;
  };
  const Step* relu = nullptr;
  std::size_t first = 0, last = 0;
  const View<const T> none;
  const detail::MovePart<T> nothing{Lines({}, dense_view(static_cast<const T*>(nullptr), 1, 1, {0, 1}, 1, 1)), none, View<T>{}, false, 0};
  std::array<detail::MovePart<T>, most> before{nothing, nothing}, behind{nothing, nothing};
  static_assert(most == 2);
  for (const Step& step : steps) {
    if (!step.moves()) {
      relu = &step;
      continue;
    }
    const Lines lines = lines_and_count(step);
    const detail::MovePart<T> part{lines, step.x, step.y, step.kind == Step::Kind::add, lines.count()};
    if (!relu && first < most) before[first++] = part;
    else behind[last++] = part;
  }
  const auto start = [&](const auto& part, Index count) {
    using Part = std::remove_cvref_t<decltype(part)>;
    const detail::TogetherLoop<T, Part> loop{part, count, {before[0], before[1]}, {behind[0], behind[1]}};
    for_blocks(exec, ceil_div(units, loop.of_block), loop);
  };
  if (!relu) return start(detail::NoPart{}, 0);
  const Lines lines = lines_and_count(*relu);
  if (relu->kind == Step::Kind::forward)
    start(detail::ActivationLoop<T, ReluFunctor>{lines, relu->x, {relu->y, relu->saved, {}}, nullptr, Divisor(relu->x.c)}, lines.count());
  else start(detail::ActivationBackwardLoop<T, ReluFunctor>{lines, relu->saved, relu->values, relu->x, relu->y, {}}, lines.count());
}
}   // namespace lrcnn::loops
