#pragma once
// A plan for a GPU that need not be there: what cuDNN says of each of its convolutions on the described device.
#include <lrcnn/lrcnn.hpp>
#include <fstream>
#include <iostream>
#include <sstream>
#ifdef LRCNN_WITH_CUDNN
#include <lrcnn/backend/cudnn/plan_check.hpp>
#endif
/// Prints the plan, then for each precision how many distinct convolutions it has and the workspace that they take.
/// Errors: lrcnn::Error if the file cannot be read or is no description, or if this build has no cuDNN.
inline void print_device_plan(std::ostream& out, const lrcnn::Table& table, const lrcnn::PolicySpec& policy, const std::string& file) {
  using namespace lrcnn;
  std::ifstream stream(file);
  std::stringstream description;
  description << stream.rdbuf();
  if (!stream)
    throw DataError(error_text("the description '" + file + "' cannot be read", "it is a file that cuDNN has written", "try docs/devices/h200.json"));
#ifdef LRCNN_WITH_CUDNN
  const auto device = cudnn::describe_device(description.str());
  out << make_plan(table, policy, Cudnn::target) << "\non " << device->info().name << ", " << format_bytes(device->info().total_bytes)
      << "; parameters and their gradients " << format_bytes(2 * parameter_count(table) * Index{sizeof(float)}) << ":\n";
  const auto line = [&]<Precision precision>() {
    const auto check = cudnn::check_plan_on<precision>(table, policy, *device, 2);
    out << precision_name(precision) << ": peak " << format_bytes(arena_size(table, policy, BasicCudnn<precision>::target).bytes) << "; "
        << check.convolutions << " distinct convolutions, " << check.convolutions - static_cast<Index>(check.faults.size())
        << " with an engine, the largest workspace " << format_bytes(check.workspace_bytes) << " of " << format_bytes(policy.workspace_bytes) << "\n";
    for (const std::string& fault : check.faults) out << "  " << fault << "\n";
  };
  line.operator()<Precision::fp32>();
  line.operator()<Precision::tf32>();
  line.operator()<Precision::fp16>();
  line.operator()<Precision::bf16>();
#else
  static_cast<void>(out), static_cast<void>(table), static_cast<void>(policy);
  throw BackendError(error_text("this program was built without cuDNN", "only cuDNN knows which engines it has for a device",
                                "install CUDA, cuDNN and cudnn-frontend, and build again"));
#endif
}
