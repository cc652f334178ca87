#pragma once
// From a Problem to a cuDNN graph with an engine chosen. Includes cudnn-frontend, which costs half a minute to compile:
// only graphs.cpp includes it.
//
// The same function builds for the device that is there and, from a description, for one that is not.
#include <lrcnn/backend/cudnn/library.hpp>
#include <lrcnn/core/error.hpp>
#include <cudnn_frontend.h>
#include <algorithm>
#include <memory>
#include <vector>
namespace lrcnn::cudnn {
namespace fe = cudnn_frontend;
/// Numbers by which a graph's tensors are bound to memory.
enum Uid : std::int64_t { uid_x = 1, uid_y, uid_w, uid_bias };
/// Where a graph is to run: on a handle's device, or on one that is only described.
struct Place {
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<const fe::DeviceProperties> description{};   ///< without a handle
  int sm_version = 0;                                          ///< of the description: 90 for compute capability 9.0
};
namespace detail {
/// What the library says may go on for pages: engine by engine, why not.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }
inline fe::DataType_t storage(Precision p) {
  return p == Precision::fp16 ? fe::DataType_t::HALF : p == Precision::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::FLOAT;
}
using Dims = std::vector<std::int64_t>;
/// Whether the library can be told how tensors are aligned.
template <class Tensor>
concept TellsAlignment = requires(Tensor t) {
  t.set_alignment(16);
};
/// [N,C,H,W] in memory as [N][H][W][C]; the same for filters [K,C,R,S].
template <class Tensor>
void describe(Tensor& t, Uid uid, const Dims& d, fe::DataType_t type, Index alignment) {
  t.set_uid(uid).set_dim(d).set_data_type(type).set_stride({d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]});
  if constexpr (TellsAlignment<Tensor>) t.set_alignment(alignment);
}
template <class Attributes>
Attributes window(const Problem& p) {
  return Attributes()
      .set_pre_padding({p.pad.top, p.pad.left})
      .set_post_padding({p.pad.bottom, p.pad.right})
      .set_stride({p.stride.h, p.stride.w})
      .set_dilation({p.dilation.h, p.dilation.w})
      .set_compute_data_type(fe::DataType_t::FLOAT);
}
inline std::shared_ptr<fe::graph::Graph> operations(const Problem& p) {
  auto graph = std::make_shared<fe::graph::Graph>();
  const fe::DataType_t type = storage(p.precision);
  graph->set_io_data_type(type).set_intermediate_data_type(fe::DataType_t::FLOAT).set_compute_data_type(fe::DataType_t::FLOAT);
  const Dims x{p.n, p.c, p.h, p.w}, y{p.n, p.k, p.p, p.q}, w{p.k, p.c / p.groups, p.kernel.h, p.kernel.w};
  const auto input = [&](const char* name, Uid uid, const Dims& d) {
    fe::graph::Tensor_attributes t;
    t.set_name(name);
    describe(t, uid, d, type, uid == uid_bias ? p.bias_alignment : p.alignment);
    return graph->tensor(t);
  };
  const auto output = [&](std::shared_ptr<fe::graph::Tensor_attributes> t, Uid uid, const Dims& d) {
    t->set_output(true);
    describe(*t, uid, d, type, p.alignment);
  };
  if (p.op == Op::forward) {
    auto result = graph->conv_fprop(input("x", uid_x, x), input("w", uid_w, w), window<fe::graph::Conv_fprop_attributes>(p));
    if (p.bias)
      result =
          graph->pointwise(result, input("bias", uid_bias, {1, p.k, 1, 1}), fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    if (p.relu) result = graph->pointwise(result, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
    output(result, uid_y, y);
  } else if (p.op == Op::backward_data) {
    output(graph->conv_dgrad(input("dy", uid_y, y), input("w", uid_w, w), window<fe::graph::Conv_dgrad_attributes>(p)), uid_x, x);
  } else {
    output(graph->conv_wgrad(input("dy", uid_y, y), input("x", uid_x, x), window<fe::graph::Conv_wgrad_attributes>(p)), uid_w, w);
  }
  return graph;
}
/// Finds the engines that may serve a graph.
inline fe::error_t plan(fe::graph::Graph& graph, const Problem& p, const Place& place, Index workspace_bytes) {
  if (const std::string fault = alignment_fault(p, TellsAlignment<fe::graph::Tensor_attributes>); !fault.empty())
    return {fe::error_code_t::GRAPH_NOT_SUPPORTED, fault};
  if (place.handle == nullptr) {
    graph.set_device_properties(place.description);
    graph.set_sm_version(place.sm_version);
  }
  if (auto error = graph.validate(); error.is_bad()) return error;
  if (auto error = place.handle ? graph.build_operation_graph(place.handle) : graph.build_operation_graph(); error.is_bad()) return error;
  if (auto error = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}); error.is_bad()) return error;
  if (p.deterministic) graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  if (p.precision == Precision::fp32) graph.deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE, fe::NumericalNote_t::DOWN_CONVERT_INPUTS});
  graph.deselect_workspace_greater_than(workspace_bytes);
  return {};
}
/// On the engine of that name; without a name on the first one that serves.
inline fe::error_t build(fe::graph::Graph& graph, const Problem& p, const Place& place, const std::string& engine) {
  fe::error_t error{fe::error_code_t::GRAPH_EXECUTION_PLAN_CREATION_FAILED, engine.empty() ? "no engine serves it" : "there is no engine " + engine};
  for (std::int64_t i = 0; i < graph.get_execution_plan_count(); ++i) {
    std::string name;
    if (graph.get_plan_name_at_index(i, name).is_bad() || known_not_to_serve(p, name) || !(engine.empty() || name == engine)) continue;
    error = place.handle ? graph.build_plan_at_index(place.handle, i) : graph.build_plan_at_index(i);
    if (error.is_good() || !engine.empty()) return error;
  }
  return error;
}
}   // namespace detail
/// A graph ready to run, with the engine that the library's heuristics put first of those that fit.
struct BuiltGraph {
  std::shared_ptr<fe::graph::Graph> graph;
  Index workspace_bytes = 0;
};
/// Builds a problem's graph, on an engine of which the name is given or the one put first. Fails if none serves it within
/// the workspace.
inline Status build_graph(const Problem& p, const Place& place, Index workspace_bytes, const std::string& engine, BuiltGraph& built) {
  built.graph = detail::operations(p);
  auto error = detail::plan(*built.graph, p, place, workspace_bytes);
  if (error.is_good()) error = detail::build(*built.graph, p, place, engine);
  if (error.is_bad()) return {"cuDNN on " + to_string(p) + ": " + detail::first_line(error.get_message())};
  std::int64_t bytes = 0;
  if (error = built.graph->get_workspace_size(bytes); error.is_bad()) return {detail::first_line(error.get_message())};
  built.workspace_bytes = bytes;
  return {};
}
/// Names of the engines that build_graph() may be asked for, in the library's order. Not all of them need fit.
inline Status engine_names(const Problem& p, const Place& place, Index workspace_bytes, std::vector<std::string>& names) {
  const auto graph = detail::operations(p);
  if (auto error = detail::plan(*graph, p, place, workspace_bytes); error.is_bad())
    return {"cuDNN on " + to_string(p) + ": " + detail::first_line(error.get_message())};
  for (std::int64_t i = 0; i < graph->get_execution_plan_count(); ++i) {
    std::string name;
    if (graph->get_plan_name_at_index(i, name).is_bad()) break;
    if (known_not_to_serve(p, name) || std::find(names.begin(), names.end(), name) != names.end()) continue;   // lists of several heuristics overlap
    names.push_back(name);
  }
  return {};
}
/// Reads a device description as cuDNN serialises it (JSON).
/// Errors:  BackendError if this cuDNN does not take it
inline std::shared_ptr<const fe::DeviceProperties> device_from(const std::string& description) {
  auto device = std::make_shared<fe::DeviceProperties>();
  if (auto error = device->deserialize(std::vector<std::uint8_t>(description.begin(), description.end())); error.is_bad())
    throw BackendError(error_text("the device description is not accepted by this cuDNN (" + detail::first_line(error.get_message()) + ")",
                                  "descriptions are those that cuDNN 9.8 or later serialises", "make one on the device itself"));
  return device;
}
}   // namespace lrcnn::cudnn
