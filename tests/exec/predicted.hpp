#pragma once
// Forward passes that hand their output on, beside ones that keep it.
#include <lrcnn/exec/predictor.hpp>
#include "exec/equivalence.hpp"
namespace lrcnn::testing {
/// Gathers rows, and sees to it that each comes once and an image's from top to bottom.
template <class T>
struct Gather final : RowSink<T> {
  std::vector<T> rows;
  std::vector<Index> due;
  MemorySink<T> memory;
  Index writes = 0, most = 0;
  explicit Gather(const Shape& shape)
      : rows(static_cast<std::size_t>(shape.count()), static_cast<T>(std::nan(""))),
        due(static_cast<std::size_t>(shape.n), 0),
        memory(rows.data(), shape.h),
        shape_(shape) {}
  void write(Index first, const View<const T>& src) override {
    const bool fits =
        src.c == shape_.c && src.w == shape_.w && src.rows > 0 && first >= 0 && first + src.n <= shape_.n && src.row0 + src.rows <= shape_.h;
    CHECK(fits);
    if (!fits) return;
    for (Index i = first; i < first + src.n; ++i) {
      if (due[static_cast<std::size_t>(i)] != src.row0) CHECK(due[static_cast<std::size_t>(i)] == src.row0);
      due[static_cast<std::size_t>(i)] = src.row0 + src.rows;
    }
    memory.write(first, src);
    ++writes, most = std::max(most, src.rows);
  }
  bool complete() const {
    return std::all_of(due.begin(), due.end(), [&](Index d) { return d == shape_.h; });
  }

 private:
  Shape shape_;
};
/// A network of the equivalence tests; three in five without its head, so that its output is a map.
inline RandomNetwork network_or_trunk(Dice& dice, std::string_view feature) {
  const RandomNetwork net = network_with(dice, feature, dice.chance(0.4));
  return dice.chance(0.4) ? net : without_head(net);
}
/// A policy for a forward pass: counts that only such a pass allows, streams and prefetch, too.
inline PolicySpec forward_policy(Dice& dice, std::string_view part, const RandomNetwork& net, const Target& target) {
  PolicySpec policy = policy_with(dice, part, net, target);
  if (dice.chance(0.35)) policy.partition_count = 1, policy.partitions[0] = {Cut::share, dice.upto(2, net.input.h), 1, policy.partitions[0].images};
  if (dice.chance(0.3)) policy.streams = dice.upto(2, 3);
  policy.prefetch = dice.chance(0.2);
  return policy;
}
/// The output of a forward pass layer by layer that keeps it: what a predictor's rows must be.
template <class B>
std::vector<master_t<typename B::element>> whole_output(const Problem<master_t<typename B::element>>& problem, B& backend, Index workspace = 0) {
  using M = master_t<typename B::element>;
  PolicySpec column;
  column.workspace_bytes = workspace;
  Executor<B> executor(make_plan(problem.table, column, B::target, {.training = false}), backend, problem.parameters.data(), nullptr);
  executor.forward(MemorySource<M>(problem.images.data(), problem.table.input));
  return dense_copy<M>(executor.output());
}
struct PredictedCases {
  Index cases = 0, infeasible = 0, maps = 0, parts = 0;
};
/// Predictors of networks with each feature under policies with each part hand over what the column run of the same backend keeps, to
/// the bit. `change`: done to each network.
template <class B, class Change>
void compare_predicted(std::uint64_t seed, PredictedCases& counts, Index workspace, bool direct, Change change) {
  using T = typename B::element;
  using M = master_t<T>;
  for (std::size_t f = 0; f < feature_count; ++f) {
    const std::uint64_t net_seed = seed * 1000 + f;
    Dice dice(net_seed);
    RandomNetwork net = network_or_trunk(dice, features[f]);
    change(net);
    const Problem<M> problem(net.layers, net.input, net_seed);
    auto backend = backend_for_tests<B>(1);
    const auto whole = whole_output(problem, backend, workspace);
    for (std::size_t p = 0; p < part_count; ++p) {
      PolicySpec policy = forward_policy(dice, parts[p], net, B::target);
      policy.workspace_bytes = workspace;
      if (direct) compute_by(policy, ConvAlgorithm::direct);
      INFO("seed ", net_seed, ", feature ", std::string(features[f]), ", part ", std::string(parts[p]), "\n", to_string(policy));
      try {
        BasicPredictor<B> predictor(net.layers, policy, net.input, problem.parameters, backend_for_tests<B>(1));
        T* memory = reinterpret_cast<T*>(predictor.arena().data());
        std::fill(memory, memory + predictor.arena().bytes() / static_cast<Index>(sizeof(T)), static_cast<T>(std::nan("")));
        Gather<M> sink(predictor.output_shape());
        predictor.run(MemorySource<M>(problem.images.data(), net.input), sink);
        if (!sink.complete()) CHECK(sink.complete());
        if (!same_bits(sink.rows, whole)) CHECK(same_bits(sink.rows, whole));
        ++counts.cases;
        counts.maps += predictor.output_shape().h > 1, counts.parts += sink.most < predictor.output_shape().h;
      } catch (const PlanError&) {
        ++counts.infeasible;
      }
    }
  }
}
}   // namespace lrcnn::testing
