#pragma once
// Planner, checker, loader, and training and prediction with the backend `Reference`. See precompiled/host.hpp.
#include <lrcnn/lrcnn.hpp>
#include <lrcnn/precompiled/host.hpp>
#ifdef LRCNN_PRECOMPILED
#ifdef LRCNN_PRECOMPILES_TRAINING
#define LRCNN_INSTANCE template
#else
#define LRCNN_INSTANCE extern template
#endif
namespace lrcnn {
namespace detail {
LRCNN_INSTANCE Table table_at_run_time<>(std::span<const Layer>, const Input&);
LRCNN_INSTANCE ArenaSize arena_at_run_time<>(const Table&, const PolicySpec&, const Target&, const PlanOptions&);
LRCNN_INSTANCE Frontier searched_frontier<>(const Table&, const PolicySpec&, const Target&, const PlanOptions&, const Costs&, int);
LRCNN_INSTANCE PolicySpec chosen_policy<>(const Table&, const PolicySpec&, const Target&, const PlanOptions&, const Costs&);
LRCNN_INSTANCE Frontier kept_frontier<>(const std::filesystem::path&, const Table&, const PolicySpec&, const Target&, const PlanOptions&,
                                        const Costs&);
LRCNN_INSTANCE Plan recorded_plan<>(Table&&, const PolicySpec&, const Target&, const PlanOptions&);
LRCNN_INSTANCE std::vector<std::string> replay<>(const Plan&);
LRCNN_INSTANCE std::vector<std::vector<Index>> waits_of_streams<>(const Plan&);
LRCNN_INSTANCE std::string what_fits<>(const Plan&, Index, const Costs&);
}   // namespace detail
LRCNN_INSTANCE class Batch<float>;
LRCNN_INSTANCE class BasicEpoch<detail::DatasetBatches<float>>;
LRCNN_INSTANCE class Loader<float>;
LRCNN_INSTANCE class Executor<Reference<float>>;
LRCNN_INSTANCE class Executors<Reference<float>>;
LRCNN_INSTANCE class BasicPredictor<Reference<float>>;
LRCNN_INSTANCE class UpdateRounds<Reference<float>, SoftmaxCrossEntropy>;
LRCNN_INSTANCE class BasicTrainer<Reference<float>>;
LRCNN_INSTANCE class Executor<Reference<double>>;
LRCNN_INSTANCE class Executors<Reference<double>>;
LRCNN_INSTANCE class BasicPredictor<Reference<double>>;
LRCNN_INSTANCE class UpdateRounds<Reference<double>, SoftmaxCrossEntropy>;
LRCNN_INSTANCE class BasicTrainer<Reference<double>>;
}   // namespace lrcnn
#undef LRCNN_INSTANCE
#endif
