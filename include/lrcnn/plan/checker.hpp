#pragma once
// Whether a plan is right, found without arithmetic (plan/replay.hpp).
#include <lrcnn/plan/plan.hpp>
#include <string>
#include <vector>
namespace lrcnn {
namespace detail {
/// check_plan(), compiled where LRCNN_PRECOMPILED says (precompiled/training.hpp).
template <class = void>
std::vector<std::string> replay(const Plan& plan);
}   // namespace detail
/// Problems of a plan, one line each; empty if every step reads only live rows that were produced, every gradient row
/// reaches its sum and every output row its sink exactly once and in order, convolutions get dense slabs, and no two live buffers overlap.
/// Cost:    time that grows with the square of the slabs: some 20 s for 2000
inline std::vector<std::string> check_plan(const Plan& plan) { return detail::replay<>(plan); }
}   // namespace lrcnn
#if !defined(LRCNN_PRECOMPILED) || defined(LRCNN_PRECOMPILES_TRAINING)   // else it is in a library
#include <lrcnn/plan/replay.hpp>
#endif
