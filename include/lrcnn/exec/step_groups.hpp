#pragma once
// A plan's steps in groups, and how a backend is asked to start them.
//
// Steps between two that need the host (load, store, loss) make a group, which a backend may record and start as one. Where a plan
// has several streams, a group also ends where one has to wait for another.
#include <lrcnn/backend/concepts.hpp>
#include <lrcnn/plan/fleeting.hpp>
#include <lrcnn/plan/unpacking.hpp>
#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>
namespace lrcnn {
/// Watches steps; the default watches nothing. Tests use it to guard memory.
struct NoObserver {
  void before(const Plan&, Index) {}
  void after(const Plan&, Index) {}
};
/// A backend that can start a group of steps again as a whole.
template <class B>
concept Recorder = Backend<B> && requires {
  typename B::Group;
};
/// A backend that starts several steps at once where it can, `most` at most. It may do some of the work of the step behind them, if the list has one:
/// the next call of run() or run_packed() gets that very object, and leaves this work out. It is told whether nobody but steps that come at once
/// reads what the first one makes (plan/fleeting.hpp).
template <class B>
concept StartsTogether = Backend<B> && requires(B backend, std::span<const Operands<typename B::element>> steps, std::size_t most, bool fleeting) {
  { backend.start_together(steps, most, fleeting) } -> std::same_as<std::size_t>;   // how many of them
};
/// A backend that can leave filter gradients packed, and unpack those of several steps at once.
template <class B>
concept UnpacksTogether = Backend<B> && requires(B backend, const typename B::Prepared& prepared, const Operands<typename B::element>& step,
                                                 std::span<const Operands<typename B::element>* const> steps) {
  { backend.keeps_packed(prepared, step) } -> std::same_as<bool>;
  backend.run_packed(prepared, step);
  backend.unpack_together(steps);
};
/// A backend whose work goes to several streams, in the order of each.
template <class B>
concept Streamed = Backend<B> && requires(B backend, Index number, std::span<const Index> events) {
  backend.fork(number);            // streams 1 ... number - 1 go on from where stream 0 is
  backend.enter(number, events);   // later work goes to that stream, once these events have happened
  backend.leave(number);           // records the event of that number on the stream; -1: none
  backend.join(number);   // stream 0 goes on when the others are done; what comes goes to it; abandon(number), if there is one: after an error
};
namespace detail {
constexpr bool needs_host(Op op) { return op == Op::load || op == Op::store || op == Op::loss; }
}   // namespace detail
/// The groups of one plan's steps. What it is given lives longer.
template <Backend B>
class StepGroups {
 public:
  using T = typename B::element;
  using Prepared = std::optional<typename B::Prepared>;
  /// `operands`, `prepared`: of each step; those that need the host are not prepared.
  StepGroups(const Plan& plan, B& backend, std::span<const Operands<T>> operands, std::span<const Prepared> prepared)
      : plan_(plan), backend_(backend), operands_(operands), prepared_(prepared) {
    if constexpr (Streamed<B>) streams_ = stream_count(plan_);
    cut();
    if constexpr (StartsTogether<B>) fleeting_ = fleeting_steps(plan_);
    if constexpr (UnpacksTogether<B>)
      for (Group& group : groups_)
        group.unpackings =
            unpackings_of(plan_, group.begin, group.end, [&](std::size_t i) { return backend_.keeps_packed(*prepared_[i], operands_[i]); });
  }
  StepGroups(const StepGroups&) = delete;
  StepGroups& operator=(const StepGroups&) = delete;
  /// Goes through all groups; `step` starts step i.
  template <class Observer, class F>
  void run(Observer& observer, F step) {
    try {
      start_all(observer, step);
    } catch (...) {
      on_streams([&](auto& backend) {
        if constexpr (requires { backend.abandon(streams_); }) backend.abandon(streams_);
      });
      throw;
    }
  }

 private:
  template <class Observer, class F>
  void start_all(Observer& observer, F step) {
    on_streams([&](auto& backend) { backend.fork(streams_); });
    for (Group& group : groups_) {
      const Step& first = plan_.steps[group.begin];
      on_streams([&](auto& backend) { backend.enter(first.stream, group.waits_for); });
      const auto steps = [&] { run_steps(group, observer, step); };
      if constexpr (Recorder<B> && !is_watched<Observer>) {
        if (detail::needs_host(first.op)) steps();
        else backend_.run_group(group.recorded, steps);
      } else {
        steps();
      }
      on_streams([&](auto& backend) { backend.leave(group.event); });
    }
    on_streams([&](auto& backend) { backend.join(streams_); });
  }
  template <class Observer>
  static constexpr bool is_watched = !std::is_same_v<std::remove_cvref_t<Observer>, NoObserver>;
  struct NoGroup {};
  template <class X>
  struct Recorded {
    using Type = NoGroup;
  };
  template <Recorder X>
  struct Recorded<X> {
    using Type = typename X::Group;
  };
  /// Steps [begin, end): one that needs the host, or some that do not.
  struct Group {
    std::size_t begin = 0, end = 0;
    typename Recorded<B>::Type recorded{};
    Index event = -1;                 ///< number of the event at its end; -1 if nobody waits for it
    std::vector<Index> waits_for{};   ///< events of other streams
    std::vector<Unpacking> unpackings{};
  };
  /// Calls f(backend) if the plan's work goes to several streams.
  template <class F>
  void on_streams(F f) {
    if constexpr (Streamed<B>)
      if (streams_ > 1) f(backend_);
  }
  /// Starts a group's steps: one by one if somebody watches them, else as many at once as the backend can.
  template <class Observer, class F>
  void run_steps(const Group& group, Observer& observer, F step) {
    auto unpacking = group.unpackings.begin();
    const auto none = group.unpackings.end();
    for (std::size_t i = group.begin; i < group.end; ++i) {
      if constexpr (UnpacksTogether<B> && !is_watched<Observer>) {
        if (unpacking != none && unpacking->at == i) unpack(*unpacking++);
        if (unpacking != none && std::binary_search(unpacking->steps.begin(), unpacking->steps.end(), i)) {
          backend_.run_packed(*prepared_[i], operands_[i]);
          continue;
        }
      }
      if constexpr (StartsTogether<B> && !is_watched<Observer>) {
        const std::size_t most = (unpacking != none ? unpacking->at : group.end) - i;
        const bool stops = unpacking != none && unpacking->overlaps;   // nothing of the step there may be done before
        const std::span<const Operands<T>> next = operands_.subspan(i, stops ? most : group.end - i);
        if (const std::size_t count = detail::needs_host(plan_.steps[i].op) ? 0 : backend_.start_together(next, most, fleeting_[i] != 0); count > 0) {
          i += count - 1;
          continue;
        }
      }
      observer.before(plan_, static_cast<Index>(i));
      step(i);
      observer.after(plan_, static_cast<Index>(i));
    }
    if constexpr (UnpacksTogether<B> && !is_watched<Observer>)
      if (unpacking != none) unpack(*unpacking);
  }
  void unpack(const Unpacking& unpacking) requires UnpacksTogether<B> {
    std::vector<const Operands<T>*> steps;
    for (const std::size_t i : unpacking.steps) steps.push_back(&operands_[i]);
    backend_.unpack_together(steps);
  }
  /// Cuts the steps into groups, with events where streams wait for one another.
  void cut() {
    const auto waits = streams_ > 1 ? waits_of(plan_) : std::vector<std::vector<Index>>(plan_.steps.size());
    std::vector<char> has_waiters(plan_.steps.size(), 0);
    for (const auto& list : waits)
      for (const Index step : list) item(has_waiters, step) = 1;
    std::vector<Index> event_of(plan_.steps.size(), -1);
    Index events = 0;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const bool alone = detail::needs_host(plan_.steps[i].op);
      const bool joins = i > 0 && !alone && !detail::needs_host(plan_.steps[i - 1].op) && waits[i].empty() && groups_.back().event < 0 &&
                         (streams_ == 1 || plan_.steps[i].stream == plan_.steps[i - 1].stream);
      if (joins) {
        ++groups_.back().end;
      } else {
        groups_.push_back({i, i + 1, {}});
        for (const Index step : waits[i]) groups_.back().waits_for.push_back(item(event_of, step));
      }
      if (has_waiters[i]) groups_.back().event = event_of[i] = events++;
    }
  }
  const Plan& plan_;
  B& backend_;
  std::span<const Operands<T>> operands_;
  std::span<const Prepared> prepared_;
  std::vector<Group> groups_;
  std::vector<char> fleeting_{};   ///< fleeting_steps()
  Index streams_ = 1;
};
}   // namespace lrcnn
