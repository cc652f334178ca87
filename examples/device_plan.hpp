#pragma once
// A GPU that need not be there: what cuDNN says of a plan's convolutions on the described device, and the kernels of a step.
#include "json_answer.hpp"
#include <lrcnn/lrcnn.hpp>
#include <fstream>
#include <iostream>
#include <iomanip>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>
#ifdef LRCNN_WITH_CUDNN
#include <lrcnn/backend/cudnn/plan_check.hpp>
#include <lrcnn/exec/device_launches.hpp>
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
    text_ = description.str();
    device_ = cudnn::describe_device(text_);
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
          << check.convolutions << " distinct convolutions, " << check.convolutions - static_cast<Index>(check.faults.size()) << " with an engine, "
          << check.in_pieces << " of them in pieces, the largest workspace " << format_bytes(check.workspace_bytes) << " of "
          << format_bytes(policy.most_workspace_bytes()) << "; "
          << (check.knows_compiled ? std::to_string(check.compiled_at_run_time) : std::string("unknown how many")) << " compiled at run time\n";
      for (const std::string& fault : check.faults) out << "  " << fault << "\n";
    };
    line.operator()<Precision::fp32>();
    line.operator()<Precision::tf32>();
    line.operator()<Precision::fp16>();
    line.operator()<Precision::bf16>();
    if (!device_->compiles_at_run_time())
      out << "Without a CUDA driver (libcuda.so.1) cuDNN leaves out engines that it compiles at run time; a device may take some of them.\n";
  }
  /// Prints, for the policy's precision (Fp32 unless it says another), a line for all kernels of one name that a training step starts: how many
  /// they are, how many leave multiprocessors idle, what they read, write and multiply, and the least time that this takes. The same as JSON, if
  /// that is asked for. `bandwidth`: bytes a second of the device's memory; 0: by its name.
  void print_launches(std::ostream& out, const std::string& network, const lrcnn::Table& table, const lrcnn::PolicySpec& policy,
                      const lrcnn::Costs& costs, double bandwidth, const JsonAnswer& json) const {
    using namespace lrcnn;
    const auto in = [&]<Precision precision>() {
      const Plan plan = make_plan(table, policy, BasicCudnn<precision>::target, {}, costs);
      const auto peaks = cudnn::peaks_of(text_, bandwidth);
      const auto sums = cudnn::sums_of(cudnn::launches_of<precision>(plan, device_.get()), peaks, precision);
      if (json.asked()) {
        auto object = json_of(sums, peaks, precision);
        object["network"] = network, object["policy"] = to_string(plan.policy);
        object["input"] = {table.input.n, table.input.c, table.input.h, table.input.w};
        json.give(out, object);
      }
      if (json.leaves_text()) print_table(out, sums, peaks, precision);
    };
    switch (policy.precision) {
      case Precision::of_backend:
      case Precision::fp32: return in.operator()<Precision::fp32>();
      case Precision::tf32: return in.operator()<Precision::tf32>();
      case Precision::fp16: return in.operator()<Precision::fp16>();
      case Precision::bf16: return in.operator()<Precision::bf16>();
    }
  }

 private:
  using Sums = std::map<std::string, lrcnn::cudnn::LaunchSum>;   ///< by the kernels' names, and of all under ""
  /// Those that take longest come first.
  static std::vector<std::pair<std::string, lrcnn::cudnn::LaunchSum>> in_order(const Sums& sums) {
    std::vector<std::pair<std::string, lrcnn::cudnn::LaunchSum>> lines;
    for (const auto& [of, sum] : sums)
      if (!of.empty()) lines.emplace_back(of, sum);
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    return lines;
  }
  nlohmann::ordered_json json_of(const Sums& sums, const lrcnn::cudnn::Peaks& peaks, lrcnn::Precision precision) const {
    const auto line = [](const std::string& of, const lrcnn::cudnn::LaunchSum& sum) {
      return nlohmann::ordered_json{{"name", of},         {"launches", sum.launches}, {"idle", sum.idle},
                                    {"bytes", sum.bytes}, {"flop", 2 * sum.products}, {"least_seconds", sum.seconds}};
    };
    nlohmann::ordered_json object{{"network", ""},
                                  {"input", {}},
                                  {"policy", ""},
                                  {"precision", lrcnn::precision_name(precision)},
                                  {"device",
                                   {{"name", name()},
                                    {"multiprocessors", peaks.multiprocessors},
                                    {"bytes_per_second", peaks.bytes},
                                    {"flop_per_second", 2 * peaks.products_in(precision)},
                                    {"seconds_per_launch", peaks.launch}}},
                                  {"kernels", nlohmann::ordered_json::array()}};
    for (const auto& [of, sum] : in_order(sums)) object["kernels"].push_back(line(of, sum));
    object["all"] = line("all", sums.at(""));
    return object;
  }
  void print_table(std::ostream& out, const Sums& sums, const lrcnn::cudnn::Peaks& peaks, lrcnn::Precision precision) const {
    using namespace lrcnn;
    out << "A training step in " << precision_name(precision) << " on " << name() << ", " << peaks.multiprocessors << " multiprocessors, at most "
        << std::fixed << std::setprecision(1) << peaks.bytes / 1e12 << " TB/s and " << 2 * peaks.products_in(precision) / 1e12
        << " Tflop/s; each launch " << peaks.launch * 1e6 << " us:\n\nlaunches    idle       bytes     Gflop  at least ms  of\n";
    const auto line = [&](const cudnn::LaunchSum& sum, const std::string& of) {
      out << std::setw(8) << sum.launches << std::setw(8) << sum.idle << std::setw(12) << format_bytes(sum.bytes) << std::setw(10)
          << std::setprecision(1) << 2 * sum.products / 1e9 << std::setw(13) << std::setprecision(3) << sum.seconds * 1e3 << "  " << of << "\n";
    };
    for (const auto& [of, sum] : in_order(sums)) line(sum, of);
    line(sums.at(""), "all");
    out << "\nIdle: with fewer blocks than there are multiprocessors. Bytes: each operand of a call once. One launch after the other.\n";
  }
  std::string text_;
  std::shared_ptr<const lrcnn::cudnn::DescribedDevice> device_{};
#else
  std::string name() const { return {}; }
  static lrcnn::Target target() { return {}; }
  static lrcnn::Rates rates() { return {}; }
  void print_checks(std::ostream&, const lrcnn::Table&, const lrcnn::PolicySpec&) const {}
  void print_launches(std::ostream&, const std::string&, const lrcnn::Table&, const lrcnn::PolicySpec&, const lrcnn::Costs&, double,
                      const JsonAnswer&) const {}
#endif
};
