#pragma once
// A GPU that need not be there: what cuDNN says of a plan's convolutions on the described device.
#include <lrcnn/lrcnn.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#ifdef LRCNN_WITH_CUDNN
#include <lrcnn/backend/cudnn/plan_check.hpp>
#endif
/// A GPU as a file describes it.
class DescribedGpu {
 public:
  /// Errors: lrcnn::Error if the file cannot be read or is no description, or if this build has no cuDNN.
  explicit DescribedGpu(const std::string& file) {
    using namespace lrcnn;
    std::ifstream stream(file);
    std::stringstream description;
    description << stream.rdbuf();
    if (!stream)
      throw DataError(
          error_text("the description '" + file + "' cannot be read", "it is a file that cuDNN has written", "try docs/devices/h200.json"));
#ifdef LRCNN_WITH_CUDNN
    device_ = cudnn::describe_device(description.str());
#else
    throw BackendError(error_text("this program was built without cuDNN", "only cuDNN knows which engines it has for a device",
                                  "install CUDA, cuDNN and cudnn-frontend, and build again"));
#endif
  }
#ifdef LRCNN_WITH_CUDNN
  std::string name() const { return device_->info().name; }
  static lrcnn::Target target() { return lrcnn::Cudnn::target; }
  static lrcnn::Rates rates() { return lrcnn::rates_of<lrcnn::Cudnn>(); }
  /// Prints for each precision the peak of a plan with this policy, how many distinct convolutions it has, and the workspace that they take.
  void print_checks(std::ostream& out, const lrcnn::Table& table, const lrcnn::PolicySpec& policy) const {
    using namespace lrcnn;
    out << "\non " << name() << ", " << format_bytes(device_->info().total_bytes) << "; parameters and their gradients "
        << format_bytes(2 * parameter_count(table) * Index{sizeof(float)}) << ":\n";
    const auto line = [&]<Precision precision>() {
      const auto check = cudnn::check_plan_on<precision>(table, policy, *device_, 2);
      out << precision_name(precision) << ": peak " << format_bytes(arena_size(table, policy, BasicCudnn<precision>::target).bytes) << "; "
          << check.convolutions << " distinct convolutions, " << check.convolutions - static_cast<Index>(check.faults.size())
          << " with an engine, the largest workspace " << format_bytes(check.workspace_bytes) << " of " << format_bytes(policy.most_workspace_bytes())
          << "\n";
      for (const std::string& fault : check.faults) out << "  " << fault << "\n";
    };
    line.operator()<Precision::fp32>();
    line.operator()<Precision::tf32>();
    line.operator()<Precision::fp16>();
    line.operator()<Precision::bf16>();
  }

 private:
  std::shared_ptr<const lrcnn::cudnn::DescribedDevice> device_{};
#else
  std::string name() const { return {}; }
  static lrcnn::Target target() { return {}; }
  static lrcnn::Rates rates() { return {}; }
  void print_checks(std::ostream&, const lrcnn::Table&, const lrcnn::PolicySpec&) const {}
#endif
};
