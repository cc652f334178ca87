// The library that writes down what it is asked to start (launches.hpp). Compiled once for a project (lrcnn::cudnn), by the C++ compiler;
// nothing of CUDA is called.
#ifndef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
#include <lrcnn/backend/cudnn/device_description.hpp>
#include <lrcnn/backend/cudnn/launches.hpp>
#include <lrcnn/backend/cudnn/loops.hpp>
#include <lrcnn/backend/cudnn/loops/launch_recorder.hpp>
namespace lrcnn::cudnn {
namespace {
template <class V>
Index bytes_of(const V& view) {
  return view.data ? view.n * view.rows * view.stride_row() * static_cast<Index>(sizeof(*view.data)) : 0;
}
template <class T>
Index bytes_along(const Operands<T>& o, Index own);
/// Of what a step must read and write, each operand once. Of layers that take rows as they are, inputs may hold more rows than are used.
template <class T>
Index bytes_of(const Operands<T>& o) {
  const Range made = o.y.data ? o.y.range() : o.dx.data ? o.dx.range() : o.saved.data ? o.saved.range() : o.dy.data ? o.dy.range() : o.x.range();
  const bool same = o.node == nullptr || rules_of(o.node->layer).rows == RowMap::same;
  const auto used = [&](const auto& view) { return bytes_of(same && view.data ? view.slice(intersect(view.range(), made)) : view); };
  const Index own = used(o.x) + used(o.other) + used(o.dy) + used(o.saved) + bytes_of(o.dx) + bytes_of(o.y) * (o.op == Op::add ? 2 : 1);
  return o.along ? bytes_along(o, own) : own;
}
/// The same of a step that does another along, beside `own`.
template <class T>
Index bytes_along(const Operands<T>& o, Index own) {
  if (o.node->layer.kind == Kind::max_pool)   // the ReLU's mask bits, unless winners are looked for in what it has made
    return own + (o.op == Op::forward || o.saved.data ? bytes_of(o.along->saved) : 0);
  if (o.op == Op::forward) return bytes_of(*o.along);                  // a join, which reads as much as the norm, and a map of as many rows beside
  if (o.op != Op::backward_sums || o.dx.data == nullptr) return own;   // the norm tells what passes the ReLU from its input
  const auto relu = PointwiseStep<T>::of(*o.along);
  return own + bytes_of(relu->values) + bytes_of(relu->saved);
}
template <class T>
class LaunchList final : public Library<T> {
 public:
  LaunchList(std::vector<Launch>& list, const DescribedDevice* device) : list_(list), device_(device) {}
  Status info(DeviceInfo& info) override {
    info = device_ ? device_->info() : DeviceInfo{"a device that only takes notes", 90, 0, 0, least_cudnn};
    return {};
  }
  Status allocate(void*& memory, Index bytes) override {
    memory = reinterpret_cast<void*>(next_);   // never read, never written
    next_ += static_cast<std::uintptr_t>(round_up(bytes, 256)) + 256;
    return {};
  }
  void release(void*) noexcept override {}
  Status staging(void*& memory, Index bytes) override {
    staging_.resize(std::max(staging_.size(), static_cast<std::size_t>(ceil_div(bytes, Index{sizeof(double)}))));
    memory = staging_.data();
    return {};
  }
  Status write(void*, const void*, Index bytes) override { return copied(bytes); }
  Status read(void* to, const void*, Index bytes) override {
    std::memset(to, 0, static_cast<std::size_t>(bytes));
    return copied(bytes);
  }
  Status fill(void*, std::uint8_t byte, Index bytes) override {
    if (byte == 0) list_.push_back({LaunchKind::fill, "fill", {}, 0, 0, bytes});   // others are for tests
    return {};
  }
  Status host_access(HostAccess& access) override {
    access = {};
    access.maps = true;
    return {};
  }
  Status share(HostMemory& memory, Index bytes) override {
    if (memory.residence != Residence::pinned) return nothing_runs();
    void* there = nullptr;
    static_cast<void>(allocate(there, bytes));
    memory.host = memory.there = there;
    return {};
  }
  void unshare(const HostMemory&) noexcept override {}
  Status select(Index) override { return {}; }
  Status order_behind(void*) override { return {}; }
  Status order_before(void*) override { return {}; }
  Status fork(Index) override { return {}; }
  Status join(Index) override { return {}; }
  Status record_event(Index) override { return {}; }
  Status wait_for_event(Index) override { return {}; }
  Status wait() override { return {}; }
  Status convolution(std::unique_ptr<Convolution>& made, const Problem& problem, Index workspace_bytes, const std::string& name) override {
    Engine engine;
    if (device_)
      if (Status s = device_->engine(engine, problem, workspace_bytes, name); !s.good()) return s;
    made = std::make_unique<Noted>(list_, problem, std::move(engine));
    return {};
  }
  Status engines(std::vector<std::string>& names, const Problem& problem, Index workspace_bytes) override {
    return device_ ? device_->engines(names, problem, workspace_bytes) : Status{};
  }
  Status duration(double&, int, const std::function<Status()>&) override { return nothing_runs(); }
  Status begin_recording() override { return nothing_runs(); }
  Status end_recording(std::unique_ptr<Recording>&) override { return nothing_runs(); }
  Status labels(const Labels& labels) override {
    pixel_labels_ = {};
    if (labels.on_device() || labels.rows()) return {};
    pixel_labels_ = loops::pixel_labels(labels, nullptr, nullptr);
    return copied(labels.elements() * Index{sizeof(std::int32_t)});
  }
  Status set_run_key(const RunKey&) override { return copied(sizeof(RunKey)); }
  Status fetch(Sums& sums) override {
    sums = {};
    copied(sizeof(loops::LossSums));
    return noted(0, [](const auto& exec) { loops::reset_sums(exec, static_cast<loops::LossSums*>(nullptr)); });
  }
  Status all_finite(const float* elements, Index count, bool& result) override {
    result = true;
    return noted(count * Index{sizeof(float)}, [&](const auto& exec) { loops::all_finite(exec, elements, count, static_cast<int*>(nullptr)); });
  }
  Status sum_of_squares(const float* elements, Index count, double& result) override {
    result = 0;
    return noted(count * Index{sizeof(float)},
                 [&](const auto& exec) { loops::sum_of_squares(exec, elements, count, static_cast<double*>(nullptr)); });
  }
  Status update(const SgdUpdate<float>& f, float* w, const float* g, Index count) override { return update_all(f, w, g, nullptr, nullptr, count); }
  Status update(const MomentumUpdate<float>& f, float* w, const float* g, float* v, Index count) override {
    return update_all(f, w, g, v, nullptr, count);
  }
  Status update(const AdamWUpdate<float>& f, float* w, const float* g, float* m, float* v, Index count) override {
    return update_all(f, w, g, m, v, count);
  }
  Status convert(const View<const float>& from, const View<T>& to) override {
    return noted(bytes_of(to) / Index{sizeof(T)} * Index{sizeof(float) + sizeof(T)}, [&](const auto& exec) { loops::convert_rows(exec, from, to); });
  }
  Status send_rows(const View<const float>& from, const View<T>& to) override {
    static_cast<void>(copied(bytes_of(to) / Index{sizeof(T)} * Index{sizeof(float)}));
    return convert(from, to);
  }
  Status gather(const DirectSource<float>&, Index, const View<T>&) override { return nothing_runs(); }
  /// A layer of the program's own counts as one loop: what it starts is the program's.
  Status run(const Operands<T>& o) override {
    if (o.node && o.node->layer.kind == Kind::custom) {
      const View<const T> made = o.y.data ? View<const T>(o.y) : o.dx.data ? View<const T>(o.dx) : o.dy;
      const Index units = made.n * made.c * made.rows * made.w;
      list_.push_back({LaunchKind::loop, "custom layer", {}, units, ceil_div(units, loops::units_of_block), bytes_of(o)});
      return {};
    }
    if (crosses_memories(o.op)) return copied(bytes_of(o.y));
    return noted(bytes_of(o), [&](const auto& exec) { loops::run(exec, o); });
  }
  Status run_together(std::span<const PointwiseStep<T>> steps, const Operands<T>* sums) override {
    Index bytes = 0;
    for (const PointwiseStep<T>& s : steps)
      bytes += bytes_of(s.x) + bytes_of(s.values) + bytes_of(s.saved) + bytes_of(s.y) * (s.kind == PointwiseStep<T>::Kind::add ? 2 : 1);
    return noted(bytes, [&](const auto& exec) {
      if (sums) loops::run_together(exec, steps, *sums, nullptr);
      else loops::run_together(exec, steps);
    });
  }
  Index workspace_bytes(const Operands<T>& o) const override { return loops::workspace_bytes(o); }
  Status activate(const View<const T>& x, const T* bias, const Activation* f, const View<T>& y, const View<std::uint8_t>& saved) override {
    return noted(bytes_of(x) + bytes_of(y) + bytes_of(saved),
                 [&](const auto& exec) { loops::activate<loops::LaunchRecorder, T>(exec, x, bias, f, y, saved); });
  }
  Index bias_gradient_bytes(const View<const T>& dy) const override { return loops::bias_gradient_bytes<T>(dy.n, dy.c, dy.rows, dy.w); }
  Status bias_gradient(const View<const T>& dy, float* db, bool accumulate, std::byte* workspace) override {
    return noted(bytes_of(dy), [&](const auto& exec) { loops::bias_gradient(exec, dy, db, accumulate, workspace, nullptr); });
  }
  Status try_out(std::string&, Convolution&, const Problem&, const TrialMemory<T>&) override { return {}; }
  Status pack_filters(std::span<const FilterPacking<T>> filters) override {
    const auto list = loops::filters_to_pack<T>(filters);
    Index bytes = 0;
    for (const FilterPacking<T>& filter : filters) bytes += filter_bytes(*filter.node);
    return noted(bytes, [&](const auto& exec) { loops::pack_filters<loops::LaunchRecorder, T>(exec, list); });
  }
  Status unpack_filters(std::span<const FilterUnpacking<T>> filters) override {
    const auto list = loops::filters_to_unpack<T>(filters);
    Index bytes = 0;
    for (const FilterUnpacking<T>& filter : filters) bytes += filter_bytes(*filter.node);
    return noted(bytes, [&](const auto& exec) { loops::unpack_filters<loops::LaunchRecorder, T>(exec, list); });
  }
  Status cross_entropy(const View<const T>& logits, Index, const View<T>& dx, double scale) override {
    return noted(bytes_of(logits) + bytes_of(dx), [&](const auto& exec) {
      loops::softmax_cross_entropy(exec, logits, static_cast<const std::int32_t*>(nullptr), dx, scale, static_cast<loops::LossSums*>(nullptr),
                                   static_cast<std::byte*>(nullptr));
    });
  }
  Status pixel_loss(const DeviceLoss& loss, const View<const T>& logits, Index first, const View<T>& dx, double scale, bool counts) override {
    loops::LossSums sums;
    auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{64});   // places in it are counted, and not touched
    return noted(bytes_of(logits) + bytes_of(dx), [&](const auto& exec) {
      loops::pixel_loss(exec, loss, logits, pixel_labels_, first, dx, scale, counts ? &sums : nullptr, nowhere);
    });
  }
  /// A loop that the program brings.
  Status custom_loss(const CustomLoss<T>&, const View<const T>& logits, Index first, const View<T>& dx, double scale, bool counts) override {
    loops::LossSums sums;
    return noted(bytes_of(logits) + bytes_of(dx), [&](const loops::LaunchRecorder& exec) {
      loops::loss_by_strips(exec, logits, pixel_labels_, first, dx, scale, counts ? &sums : nullptr, static_cast<std::byte*>(nullptr),
                            [&](const loops::LossStrip<T>& strip) {
                              exec.list->push_back({"custom loss", strip.blocks() * loops::block_threads, strip.blocks()});
                            });
    });
  }
  Status finite(const View<const T>& view, bool& result) override {
    result = true;
    return noted(bytes_of(view), [&](const auto& exec) { loops::all_finite(exec, view, static_cast<int*>(nullptr)); });
  }

 private:
  struct Noted final : Convolution {
    std::vector<Launch>& list;
    Launch launch;
    Index workspace;
    Noted(std::vector<Launch>& l, const Problem& p, Engine engine) : list(l), workspace(engine.workspace_bytes) {
      const Index x = p.n * p.c * p.h * p.w, y = p.n * p.k * p.p * p.q, w = p.k * p.c / p.groups * p.kernel.h * p.kernel.w;
      launch = {.kind = LaunchKind::convolution,
                .name = "convolution " + std::string(op_name(p.op)),
                .engine = std::move(engine.name),
                .bytes = (x + y + w) * Index{sizeof(T)},
                .products = static_cast<double>(p.n * p.p * p.q) * static_cast<double>(w)};
    }
    Index workspace_bytes() const override { return workspace; }
    std::string name() const override { return launch.engine; }
    Status run(void*, void*, void*, const void*, void*) override {
      list.push_back(launch);
      return {};
    }
  };
  static Status nothing_runs() { return {"a list of launches runs nothing, and shares no memory"}; }
  static Index filter_bytes(const Node& node) { return loops::filter_extents(node).count() * Index{sizeof(float) + sizeof(T)}; }
  Status copied(Index bytes) {
    list_.push_back({LaunchKind::copy, "copy", {}, 0, 0, bytes});
    return {};
  }
  /// Notes loops; the one with the most units moves the operands' bytes.
  template <class F>
  Status noted(Index bytes, F f) {
    loops_.clear();
    f(loops::LaunchRecorder{&loops_});
    const auto largest = std::max_element(loops_.begin(), loops_.end(), [](const auto& a, const auto& b) { return a.units < b.units; });
    for (auto loop = loops_.begin(); loop != loops_.end(); ++loop)
      list_.push_back({LaunchKind::loop, loop->name, {}, loop->units, loop->blocks, loop == largest ? bytes : 0});
    return {};
  }
  template <class Update>
  Status update_all(const Update& f, float* w, const float* g, float* s0, float* s1, Index count) {
    return noted((3 + 2 * Update::states) * count * Index{sizeof(float)},
                 [&](const auto& exec) { loops::update_elements(exec, f, w, g, s0, s1, count, static_cast<const int*>(nullptr)); });
  }
  std::vector<Launch>& list_;
  const DescribedDevice* device_;
  std::uintptr_t next_ = 4096;
  std::vector<double> staging_{};
  std::vector<loops::RecordedLoop> loops_{};
  loops::PixelLabels pixel_labels_{};
};
/// What an architecture's multiprocessor does in a clock, in multiply-adds.
/// Source:  NVIDIA's data sheets: dense peaks of T4, A100, A10, L40S, H100 SXM and B200 by their clocks and multiprocessors, rounded to powers of
///          two. Sums are in 32 bits
struct PerClock {
  int capability;
  std::array<Index, 4> products;   ///< by Precision
};
constexpr std::array per_clock{PerClock{75, {64, 64, 512, 64}},    PerClock{80, {64, 512, 1024, 1024}},   PerClock{86, {128, 256, 512, 512}},
                               PerClock{89, {128, 256, 512, 512}}, PerClock{90, {128, 1024, 2048, 2048}}, PerClock{100, {128, 2048, 4096, 4096}}};
/// Bits of the bus to a device's memory. Source: NVIDIA's data sheets.
struct BusOf {
  std::string_view name;
  Index bits;
};
constexpr std::array buses{BusOf{"H200", 6144}, BusOf{"H100", 5120}, BusOf{"A100", 5120}, BusOf{"B200", 8192}};
}   // namespace
template <class T>
std::shared_ptr<Library<T>> open_launch_list(std::vector<Launch>& list, const DescribedDevice* device) {
  return std::make_shared<LaunchList<T>>(list, device);
}
template std::shared_ptr<Library<float>> open_launch_list(std::vector<Launch>&, const DescribedDevice*);
template std::shared_ptr<Library<float16>> open_launch_list(std::vector<Launch>&, const DescribedDevice*);
template std::shared_ptr<Library<bfloat16>> open_launch_list(std::vector<Launch>&, const DescribedDevice*);
Peaks peaks_of(const std::string& description, double bytes_per_second) {
  const std::string name = description_field(description, "deviceName");
  const auto number = [&](const char* field) {
    const Index value = std::atoll(description_field(description, field).c_str());
    if (value > 0) return value;
    throw BackendError(error_text("the device's description has no " + std::string(field), "a peak is a clock times what is done in a clock",
                                  "make a description on the device itself, with cuDNN 9.8 or later"));
  };
  const Index capability = number("deviceVer") / 10;
  Peaks peaks{.multiprocessors = number("multiProcessorCount"), .bytes = bytes_per_second};
  const auto known = std::find_if(per_clock.begin(), per_clock.end(), [&](const PerClock& p) { return p.capability == capability; });
  if (known == per_clock.end())
    throw BackendError(error_text("the peak of " + name + " is not known",
                                  "multiply-adds in a clock are known of compute capabilities 7.5, 8.0, 8.6, 8.9, 9.0 and 10.0",
                                  "describe a device of one of these"));
  const double clocks = static_cast<double>(peaks.multiprocessors) * static_cast<double>(number("smClockRateKHz")) * 1e3;
  for (std::size_t p = 0; p < peaks.products.size(); ++p) peaks.products[p] = clocks * static_cast<double>(known->products[p]);
  if (bytes_per_second > 0) return peaks;
  const auto bus = std::find_if(buses.begin(), buses.end(), [&](const BusOf& b) { return name.find(b.name) != std::string::npos; });
  if (bus == buses.end())
    throw BackendError(error_text("the bandwidth of " + name + " is not known", "a description has no width of the memory's bus",
                                  "say how many bytes a second its memory reads"));
  peaks.bytes = 2 * static_cast<double>(number("memClockRateKHz")) * 1e3 * static_cast<double>(bus->bits) / 8;
  return peaks;
}
}   // namespace lrcnn::cudnn
