// Convolutions by cuDNN, for the device at hand and for described ones. Compiled once for a project (lrcnn::cudnn), by the
// C++ compiler: cudnn-frontend needs no nvcc, and takes it three times as long.
#include <lrcnn/backend/cudnn/cuda_device_memory.hpp>
#include <lrcnn/backend/cudnn/graph.hpp>
#include <cuda_runtime.h>
#include <cstdlib>
#include <unordered_map>
namespace lrcnn::cudnn {
namespace {
/// Belongs to the device that is current when it is made, and makes it current for every call.
class GraphConvolution final : public Convolution {
 public:
  GraphConvolution(BuiltGraph built, const Problem& problem, cudnnHandle_t handle) : built_(std::move(built)), problem_(problem), handle_(handle) {
    cudaGetDevice(&device_);
  }
  ~GraphConvolution() override {
    const CurrentDevice current(device_);
    built_.graph.reset();
  }
  Index workspace_bytes() const override { return built_.workspace_bytes; }
  std::string name() const override {
    std::string name;
    return built_.graph->get_plan_name(name).is_good() ? name : "cuDNN";
  }
  Status run(void* x, void* y, void* w, const void* bias, void* workspace) override {
    const CurrentDevice current(device_);
    std::unordered_map<std::int64_t, void*> tensors{{uid_x, x}, {uid_y, y}, {uid_w, w}};
    if (problem_.bias) tensors[uid_bias] = const_cast<void*>(bias);
    auto error = built_.graph->execute(handle_, tensors, workspace);
    return error.is_good() ? Status{} : Status{detail::first_line(error.get_message())};
  }

 private:
  BuiltGraph built_;
  Problem problem_;
  cudnnHandle_t handle_;
  int device_ = 0;
};
/// A number or a text of a description, which is flat JSON. Empty if it is not there.
std::string field(const std::string& description, const std::string& name) {
  const auto at = description.find('"' + name + '"');
  if (at == std::string::npos) return "";
  const auto begin = description.find_first_not_of(": \t\n\"", at + name.size() + 2);
  const auto end = description.find_first_of(",}\"", begin);
  return begin == std::string::npos || end == std::string::npos ? "" : description.substr(begin, end - begin);
}
class Described final : public DescribedDevice {
 public:
  explicit Described(const std::string& description)
      : place_{nullptr, device_from(description), std::atoi(field(description, "deviceVer").c_str()) / 10} {
    info_ = {field(description, "deviceName"), place_.sm_version, 0, std::atoll(field(description, "totalGlobalMem").c_str()),
             static_cast<Index>(cudnnGetVersion())};
  }
  DeviceInfo info() const override { return info_; }
  Status engine(Engine& engine, const Problem& problem, Index workspace_bytes, const std::string& name) const override {
    BuiltGraph built;
    if (const Status s = build_graph(problem, place_, workspace_bytes, name, built); !s.good()) return s;
    engine.workspace_bytes = built.workspace_bytes;
    return built.graph->get_plan_name(engine.name).is_good() ? Status{} : Status{"the engine has no name"};
  }

  Status engines(std::vector<std::string>& names, const Problem& problem, Index workspace_bytes) const override {
    return engine_names(problem, place_, workspace_bytes, names);
  }

 private:
  Place place_;
  DeviceInfo info_;
};
}   // namespace
Status make_convolution(std::unique_ptr<Convolution>& made, const Problem& problem, void* handle, Index workspace_bytes, const std::string& engine) {
  const auto cudnn = static_cast<cudnnHandle_t>(handle);
  BuiltGraph built;
  if (const Status s = build_graph(problem, {cudnn, {}, 0}, workspace_bytes, engine, built); !s.good()) return s;
  made = std::make_unique<GraphConvolution>(std::move(built), problem, cudnn);
  return {};
}
Status list_engines(std::vector<std::string>& names, const Problem& problem, void* handle, Index workspace_bytes) {
  return engine_names(problem, {static_cast<cudnnHandle_t>(handle), {}, 0}, workspace_bytes, names);
}
std::shared_ptr<const DescribedDevice> describe_device(const std::string& description) { return std::make_shared<Described>(description); }
std::string device_description() {
  if (const std::string problem = device_problem(); !problem.empty())
    throw BackendError(error_text(problem, "a description is made on the device itself", "run this where the device is"));
  int device = 0;
  cudaGetDevice(&device);
  fe::DeviceProperties properties;
  std::vector<std::uint8_t> bytes;
  const auto check = [](fe::error_t error) {
    if (error.is_bad())
      throw BackendError(error_text("cuDNN cannot describe the device (" + detail::first_line(error.get_message()) + ")",
                                    "descriptions are those that cuDNN 9.8 or later serialises", "install a newer cuDNN"));
  };
  check(properties.set_device_id(device).build());
  check(properties.serialize(bytes));
  return {bytes.begin(), bytes.end()};
}
}   // namespace lrcnn::cudnn
