#pragma once
// The thin call layer in the host's memory: the CUDA backend runs on it where there is no GPU.
//
// It is as awkward as a device may be. Work is queued and done only when somebody waits, so that a buffer reused too
// early shows; memory that is given must be the "device's", or the "host's", as the call says; memory is poisoned when
// it is taken; and any call can be made to fail. The loops are the device's own, run by Thrust on the host; convolutions
// are sums over the numbers of a Problem.
#include "device_steps.hpp"
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/backend/cudnn/loops.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>
namespace lrcnn::testing {
template <class T = float>
class HostLibrary final : public cudnn::Library<T> {
 public:
  using Status = cudnn::Status;
  Index capacity = 1'000'000'000;   ///< bytes of the device's memory
  Index fail_at = -1;               ///< number of the call that fails
  Index fail_from = -1;             ///< of the first of those that fail, all that follow
  std::string failure = "the test says no";
  std::exception_ptr thrown{};   ///< what that call throws instead of failing
  bool fuses_bias = true, fuses_relu = true;
  bool tells_alignment = true;   ///< false: as cudnn-frontend before 1.32
  bool copies_maps = false;      ///< engine "a" works on copies of maps, in the workspace; "direct", the only other one then, does not
  bool ignores_waits = false;    ///< of streams for each other: a fault, to see what it spoils
  Index calls = 0, waits = 0, built = 0, recordings = 0, used = 0, most_used = 0;
  Index loops_started = 0, convolved = 0, filled = 0;   ///< kernels of a device, by what they are; fills with zeros
  Index direct = 0;                                     ///< convolutions by an engine of that name
  Index most_labels = 0;                                ///< that were there at a time
  cudnn::HostAccess access{.maps = true, .registers = true, .registers_read_only = true, .managed = true};   ///< memory of the host it reads
  std::string refuses_sharing{};     ///< why no memory is shared; empty: it is
  Index ahead = 0;                   ///< DeviceOptions::ahead_bytes that it says
  Index gathers = 0, stagings = 0;   ///< slabs that were gathered; pieces of pinned memory that the host was given to fill
  loops::GatherOrder order{};        ///< in which they are
  Index shared() const { return static_cast<Index>(shared_.size()); }   ///< pieces of memory
  ~HostLibrary() override {
    for (auto& [memory, bytes] : device_) std::free(memory);
    for (auto& piece : staging_) std::free(piece.memory);
  }
  Status info(cudnn::DeviceInfo& info) override {
    info = {"pretended device", 90, capacity - used, capacity, 91900, ahead};
    return {};
  }
  Status allocate(void*& memory, Index bytes) override {
    if (const Status s = called(); !s.good()) return s;
    if (used + bytes > capacity) return {"out of memory"};
    memory = std::aligned_alloc(256, static_cast<std::size_t>(round_up(bytes, 256)));
    std::memset(memory, 0xff, static_cast<std::size_t>(bytes));   // floats that are not numbers
    device_[static_cast<std::byte*>(memory)] = bytes;
    used += bytes;
    most_used = std::max(most_used, used);
    return {};
  }
  void release(void* memory) noexcept override {
    static_cast<void>(flush());
    used -= device_[static_cast<std::byte*>(memory)];
    device_.erase(static_cast<std::byte*>(memory));
    std::free(memory);
  }
  Status staging(void*& memory, Index bytes) override {
    if (const Status s = called(); !s.good()) return s;
    ++stagings;
    auto piece = std::find_if(staging_.begin(), staging_.end(), [](const Staging& p) { return !p.sent; });
    if (piece == staging_.end()) piece = staging_.insert(staging_.end(), Staging{});
    std::free(piece->memory);
    piece->memory = std::malloc(static_cast<std::size_t>(bytes));
    std::memset(piece->memory, 0xff, static_cast<std::size_t>(bytes));
    memory = piece->memory;
    return {};
  }
  Status send_rows(const View<const float>& from, const View<T>& to) override {
    for (Staging& piece : staging_) piece.sent = piece.sent || piece.memory == from.data;
    return later([=, this] {
      check_view(View<const T>(to));
      loops::convert_rows(loops_, from, to);
    });
  }
  Status host_access(cudnn::HostAccess& result) override {
    if (const Status s = called(); !s.good()) return s;
    result = access;
    result.free_bytes = capacity - used, result.total_bytes = capacity;
    return {};
  }
  Status share(cudnn::HostMemory& memory, Index bytes) override {
    if (const Status s = called(); !s.good()) return s;
    if (!refuses_sharing.empty()) return {refuses_sharing};
    if (memory.residence != cudnn::Residence::registered) {
      memory.host = std::aligned_alloc(4096, static_cast<std::size_t>(round_up(bytes, 4096)));
      std::memset(const_cast<void*>(memory.host), 0xff, static_cast<std::size_t>(bytes));
    }
    memory.there = memory.host;
    shared_[static_cast<const std::byte*>(memory.host)] = bytes;
    return {};
  }
  void unshare(const cudnn::HostMemory& memory) noexcept override {
    static_cast<void>(flush());
    shared_.erase(static_cast<const std::byte*>(memory.host));
    if (memory.residence != cudnn::Residence::registered) std::free(const_cast<void*>(memory.host));
  }
  Status gather(const DirectSource<float>& source, Index first, const View<T>& to) override {
    const auto blob = std::make_shared<std::vector<double>>(static_cast<std::size_t>(cudnn::GatherBlob::bytes(source)) / sizeof(double) + 1);
    auto* const memory = reinterpret_cast<std::byte*>(blob->data());   // aligned for what it holds
    cudnn::GatherBlob::write(source, memory);
    const auto there = cudnn::GatherBlob::at(memory, source);
    const auto* array = static_cast<const std::byte*>(source.array().on_device());
    ++gathers;
    Status status;
    loops::with_gather_loop(source, there, first, to, order, [&](Index count, const auto& loop) {
      status = later([=, this, bytes = source.array().bytes(), kept = source.shared_array()] {
        static_cast<void>(kept);   // as long as the device reads it
        check_view(View<const T>(to));
        if (!access.pageable && !holds(shared_, array, bytes) && !holds(device_, array, bytes)) throw std::logic_error("the device does not read it");
        static_cast<void>(blob);   // alive so long
        loops::for_units(loops_, count, loop);
      });
    });
    return status;
  }
  Status write(void* to, const void* from, Index bytes) override {
    if (const Status s = wait(); !s.good()) return s;
    std::memcpy(on_device(to, bytes), on_host(from), static_cast<std::size_t>(bytes));
    return {};
  }
  Status read(void* to, const void* from, Index bytes) override {
    if (const Status s = wait(); !s.good()) return s;
    std::memcpy(on_host(to), on_device(from, bytes), static_cast<std::size_t>(bytes));
    return {};
  }
  Status fill(void* memory, std::uint8_t byte, Index bytes) override {
    return later([=, this] {
      filled += byte == 0;
      std::memset(on_device(memory, bytes), byte, static_cast<std::size_t>(bytes));
    });
  }
  Status select(Index stream) override {
    if (const Status s = called(); !s.good()) return s;
    if (records_) throw std::logic_error("another stream within a recording");
    stream_ = static_cast<std::size_t>(stream);
    if (queues_.size() <= stream_) queues_.resize(stream_ + 1);
    return {};
  }
  Status fork(Index count) override {
    if (const Status s = called(); !s.good()) return s;
    const auto begun = pass_event(0);
    if (queues_.size() < static_cast<std::size_t>(count)) queues_.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 1; i < static_cast<std::size_t>(count); ++i) queues_[i].push_back({{}, begun});
    return {};
  }
  Status join(Index count) override {
    if (const Status s = called(); !s.good()) return s;
    for (std::size_t i = 1; i < static_cast<std::size_t>(count); ++i) queues_[0].push_back({{}, pass_event(i)});
    stream_ = 0;
    return {};
  }
  Status record_event(Index number) override {
    if (const Status s = called(); !s.good()) return s;
    if (records_) throw std::logic_error("an event recorded within a recording");
    events_[number] = pass_event(stream_);
    return {};
  }
  Status wait_for_event(Index number) override {
    if (const Status s = called(); !s.good()) return s;
    if (!ignores_waits) queues_[stream_].push_back({{}, events_.at(number)});
    return {};
  }
  std::vector<void*> behind{}, before{};   ///< streams of the program that work was ordered behind, and before
  Status order_behind(void* stream) override {
    behind.push_back(stream);
    return called();
  }
  Status order_before(void* stream) override {
    before.push_back(stream);
    return called();
  }
  Status wait() override {
    ++waits;
    if (const Status s = called(); !s.good()) return s;
    return flush();
  }
  /// Engines "a", "b", ... all do the same; how long they are said to take for a row, and which are offered, is the test's affair.
  std::map<std::string, double> seconds{{"a", 3e-3}, {"b", 1e-3}, {"c", 2e-3}};
  std::map<std::string, Index> wants{};   ///< bytes of workspace, beside 16, that an engine takes for each row of a batch's output; 0 if not here
  double fused = 1;                       ///< by what engines that take a bias along take longer
  std::string refused = "c";              ///< offered, but not to be had
  std::string wrong = "";                 ///< takes the padding above for the padding below, too, as some of cuDNN's do
  std::string refuses_to_run = "";        ///< is built, and then says no
  bool tries_engines = false;
  double worst_trial = 0;   ///< of all engines: how far a number of a result was off, as a multiple of what may be
  Index trials = 0;
  Status convolution(std::unique_ptr<cudnn::Convolution>& made, const cudnn::Problem& p, Index workspace, const std::string& engine) override {
    if (const Status s = called(); !s.good()) return s;
    if (workspace < 16) return {"needs 16 bytes of workspace"};
    if (const std::string fault = cudnn::alignment_fault(p, tells_alignment); !fault.empty()) return {fault};
    if ((p.bias && !fuses_bias) || (p.relu && !fuses_relu)) return {"no such fusion"};
    if (!engine.empty() && (engine == refused || !seconds.contains(engine))) return {"there is no engine " + engine};
    const auto beside = wants.find(engine);
    const Index needed = 16 + (beside != wants.end() ? beside->second * p.n * p.p : engine == "direct" || !copies_maps ? 0 : cudnn::copied_bytes(p));
    if (workspace < needed && !engine.empty()) return {"needs " + std::to_string(needed) + " bytes of workspace"};
    ++built;
    if (workspace < needed) made = std::make_unique<Loops>(*this, p, "direct", 16);
    else made = std::make_unique<Loops>(*this, p, engine.empty() ? "a" : engine, needed);
    return {};
  }
  Status engines(std::vector<std::string>& names, const cudnn::Problem&, Index) override {
    for (const auto& [name, time] : seconds) names.push_back(name);
    return called();
  }
  Status duration(double& time, int times, const std::function<Status()>& work) override {
    elapsed_ = 0;
    for (int i = 0; i < times; ++i)
      if (const Status s = work(); !s.good()) return s;
    time = elapsed_ / times;
    return wait();
  }
  Status convert(const View<const float>& from, const View<T>& to) override {
    return later([=, this] {
      if (from.block == 1)   // planes
        static_cast<void>(on_device(from.data, (from.n - 1) * from.stride_n + (from.c - 1) * from.stride_c + from.rows * from.w));
      else check_view(from);
      check_view(View<const T>(to));
      loops::convert_rows(loops_, from, to);
    });
  }
  Status run(const Operands<T>& o) override {
    const auto step = std::make_shared<Kept>(o);   // a device has read all of it when the call returns
    const auto along = o.along ? std::make_shared<Kept>(*o.along) : nullptr;
    if (along) step->operands.along = &along->operands;
    const auto sums = o.bias_along ? std::make_shared<Kept>(*o.bias_along) : nullptr;
    if (sums) step->operands.bias_along = &sums->operands;
    return later([this, step, along, sums] {
      for (const auto& kept : {step, along}) {
        if (!kept) continue;
        const Operands<T>& p = kept->operands;
        for (const View<const T>& v : {p.x, p.other, View<const T>(p.y), p.dy, View<const T>(p.dx)}) check_view(v);
      }
      Operands<T>& there = step->operands;
      if (loops::workspace_bytes(there) > 0)
        std::memset(on_device(there.workspace, there.workspace_bytes), 0xff, static_cast<std::size_t>(there.workspace_bytes));
      if (sums) make_ready_for_sums(sums->operands);
      if (there.run) there.run = &key_;
      there.tallies = tallies_.data();
      loops::run(loops_, there);
      check_tallies();
    });
  }
  Status run_together(std::span<const cudnn::PointwiseStep<T>> steps, const Operands<T>* sums) override {
    const auto kept = sums ? std::make_shared<Kept>(*sums) : nullptr;
    return later([this, list = std::vector(steps.begin(), steps.end()), kept] {
      for (const auto& s : list) {
        check_view(s.x), check_view(s.values), check_view(View<const T>(s.y));
        if (s.saved.data) static_cast<void>(on_device(s.saved.data, (s.saved.n - 1) * s.saved.stride_n + s.saved.rows * s.saved.stride_row()));
      }
      const std::span<const cudnn::PointwiseStep<T>> all(list);
      if (!kept) return loops::run_together(loops_, all);
      make_ready_for_sums(kept->operands);
      loops::run_together(loops_, all, kept->operands, tallies_.data());
      check_tallies();
    });
  }
  Index workspace_bytes(const Operands<T>& o) const override { return loops::workspace_bytes(o); }
  Status activate(const View<const T>& x, const T* bias, const Activation* f, const View<T>& y, const View<std::uint8_t>& saved) override {
    return later([=, this, copy = f ? *f : Activation{}] {
      check_view(x), check_view(View<const T>(y));
      if (bias) static_cast<void>(on_device(bias, x.c));
      if (saved.data) static_cast<void>(on_device(saved.data, saved.n * saved.stride_n));
      loops::activate<loops::HostSystem, T>(loops_, x, bias, f ? &copy : nullptr, y, saved);
    });
  }
  Index bias_gradient_bytes(const View<const T>& dy) const override { return loops::bias_gradient_bytes<T>(dy.n, dy.c, dy.rows, dy.w); }
  Status bias_gradient(const View<const T>& dy, float* db, bool accumulate, std::byte* workspace) override {
    return later([=, this] {
      check_view(dy);
      const Index bytes = bias_gradient_bytes(dy);
      if (bytes > 0) std::memset(on_device(workspace, bytes), 0xff, static_cast<std::size_t>(bytes));
      loops::bias_gradient(loops_, dy, on_device(db, dy.c), accumulate, workspace, tallies_.data());
      check_tallies();
    });
  }
  Status try_out(std::string& fault, cudnn::Convolution& convolution, const cudnn::Problem& problem, const cudnn::TrialMemory<T>& memory) override {
    if (!tries_engines) return {};
    if (const Status s = later([=, this] { loops::draw_operands(loops_, problem, memory); }); !s.good()) return s;
    if (fault = convolution.run(memory.x, memory.y, memory.w, memory.bias, memory.workspace).text; !fault.empty()) return wait();
    std::array<double, loops::trial_samples> errors{};
    if (const Status s = later([&] { loops::compare_samples(loops_, problem, memory, errors.data()); }); !s.good()) return flush(), s;
    if (const Status s = wait(); !s.good()) return flush(), s;
    const double worst = *std::max_element(errors.begin(), errors.end());
    worst_trial = std::max(worst_trial, worst), ++trials;
    if (worst > 1) fault = loops::wrong_numbers;
    return {};
  }
  Status pack_filters(std::span<const cudnn::FilterPacking<T>> filters) override {
    return later([this, list = loops::filters_to_pack<T>(filters)] {
      for (const auto& f : list) {
        static_cast<void>(on_device(f.w, f.extents.count())), static_cast<void>(on_device(f.packed, f.extents.count()));
        if (f.bias.kept) static_cast<void>(on_device(f.bias.kept, f.bias.count)), static_cast<void>(on_device(f.bias.packed, f.bias.count));
      }
      loops::pack_filters<loops::HostSystem, T>(loops_, list);
    });
  }
  Status unpack_filters(std::span<const cudnn::FilterUnpacking<T>> filters) override {
    return later([this, list = loops::filters_to_unpack<T>(filters)] {
      for (const auto& f : list) static_cast<void>(on_device(f.packed, f.extents.count())), static_cast<void>(on_device(f.dw, f.extents.count()));
      loops::unpack_filters<loops::HostSystem, T>(loops_, list);
    });
  }
  Status begin_recording() override {
    if (const Status s = called(); !s.good()) return s;
    if (records_) throw std::logic_error("recorded within a recording");
    records_ = true;
    return {};
  }
  Status end_recording(std::unique_ptr<cudnn::Recording>& made) override {
    if (!std::exchange(records_, false)) throw std::logic_error("no recording has begun");
    auto work = std::exchange(recorded_, {});
    if (const Status s = called(); !s.good()) return s;
    ++recordings;
    made = std::make_unique<Recorded>(*this, std::move(work));
    return {};
  }
  Status labels(const Labels& labels) override {
    if (records_) throw std::logic_error("labels within a recording");
    if (labels.on_device()) {
      const std::int32_t* const there = on_device(labels.data(), labels.size());
      return later([=, this] { device_labels_ = there, pixel_labels_ = loops::pixel_labels(labels, there, nullptr); });
    }
    if (labels.rows()) return called();
    most_labels = std::max(most_labels, labels.elements());
    const auto size = static_cast<std::size_t>(labels.elements());   // of the caller's, which may be gone soon
    std::vector<std::int32_t> classes;
    std::vector<float> values;
    if (labels.kind() == LabelKind::targets) values.assign(on_host(labels.target_data()), labels.target_data() + size);
    else classes.assign(on_host(labels.data()), labels.data() + size);
    return later([=, this] {
      labels_ = classes, targets_ = values, device_labels_ = labels_.data();
      pixel_labels_ = loops::pixel_labels(labels, classes.empty() ? nullptr : labels_.data(), values.empty() ? nullptr : targets_.data());
    });
  }
  Status set_run_key(const RunKey& key) override {
    return later([=, this] { key_ = key; });
  }
  Status pixel_loss(const cudnn::DeviceLoss& loss, const View<const T>& logits, Index first, const View<T>& dx, double scale, bool counts) override {
    return later([=, this] {
      check_view(logits), check_view(View<const T>(dx));
      std::vector<std::byte> workspace(static_cast<std::size_t>(loops::pixel_loss_bytes), std::byte{0xff});
      loops::pixel_loss(loops_, loss, logits, pixel_labels_, first, dx, scale, counts ? &sums_ : nullptr, workspace.data());
    });
  }
  Status custom_loss(const cudnn::CustomLoss<T>& loss, const View<const T>& logits, Index first, const View<T>& dx, double scale,
                     bool counts) override {
    return later([=, this] {
      check_view(logits), check_view(View<const T>(dx));
      std::vector<std::byte> workspace(static_cast<std::size_t>(loops::pixel_loss_bytes), std::byte{0xff});
      loops::loss_by_strips(loops_, logits, pixel_labels_, first, dx, scale, counts ? &sums_ : nullptr, workspace.data(),
                            [&](const loops::LossStrip<T>& strip) { ++loops_started, loss(strip, nullptr); });
    });
  }
  Status cross_entropy(const View<const T>& logits, Index first, const View<T>& dx, double scale) override {
    return later([=, this] {
      check_view(logits);
      std::vector<std::byte> workspace(static_cast<std::size_t>(loops::loss_bytes(logits.n, logits.c)), std::byte{0xff});
      loops::softmax_cross_entropy(loops_, logits, device_labels_ + first, dx, scale, &sums_, workspace.data());
    });
  }
  Status fetch(cudnn::Sums& sums) override {
    if (const Status s = wait(); !s.good()) return s;
    sums = {loops::result_of(sums_), loops::whole_images(sums_), sums_.invalid_labels};
    loops::reset_sums(loops_, &sums_);
    return {};
  }
  Status finite(const View<const T>& view, bool& result) override {
    if (const Status s = wait(); !s.good()) return s;
    int all = 1;
    loops::all_finite(loops_, view, &all);
    result = all != 0;
    return {};
  }
  Status all_finite(const float* elements, Index count, bool& result) override {
    if (const Status s = wait(); !s.good()) return s;
    int all = 1;
    loops::all_finite(loops_, on_device(elements, count), count, &all);
    result = all != 0;
    return {};
  }
  Status sum_of_squares(const float* elements, Index count, double& result) override {
    if (const Status s = wait(); !s.good()) return s;
    std::vector<double> sums(static_cast<std::size_t>(loops::squares_bytes) / sizeof(double));
    loops::sum_of_squares(loops_, on_device(elements, count), count, sums.data());
    result = sums[0];
    return {};
  }
  Status update(const SgdUpdate<float>& f, float* w, const float* g, Index count) override {
    return later([=, this] { update_all(f, on_device(w, count), g, nullptr, nullptr, count); });
  }
  Status update(const MomentumUpdate<float>& f, float* w, const float* g, float* v, Index count) override {
    return later([=, this] { update_all(f, on_device(w, count), g, on_device(v, count), nullptr, count); });
  }
  Status update(const AdamWUpdate<float>& f, float* w, const float* g, float* m, float* v, Index count) override {
    return later([=, this] { update_all(f, on_device(w, count), g, on_device(m, count), on_device(v, count), count); });
  }

 private:
  using Work = std::vector<std::function<void()>>;
  struct Staging {
    void* memory = nullptr;
    bool sent = false;
  };
  /// Operands, and the layers that they point to.
  struct Kept {
    Operands<T> operands;
    Node node{}, activation{};
    explicit Kept(const Operands<T>& o) : operands(o) {
      if (o.node) node = *o.node, operands.node = &node;
      if (o.activation) activation = *o.activation, operands.activation = &activation;
    }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
  };
  struct Recorded final : cudnn::Recording {
    HostLibrary& library;
    std::shared_ptr<const Work> work;   // which may be started when the recording has gone
    Recorded(HostLibrary& l, Work w) : library(l), work(std::make_shared<const Work>(std::move(w))) {}
    Status start() override {
      return library.later([all = work] {
        for (auto& f : *all) f();
      });
    }
  };
  template <class Update>
  void update_all(const Update& f, float* w, const float* g, float* s0, float* s1, Index count) {
    loops::update_elements(loops_, f, w, g, s0, s1, count, &sums_.finite);
  }
  /// A convolution and its gradients as sums over all taps, in double.
  struct Loops final : cudnn::Convolution {
    HostLibrary& library;
    cudnn::Problem p;
    std::string engine;
    Index bytes;
    Loops(HostLibrary& l, const cudnn::Problem& problem, std::string name, Index workspace)
        : library(l), p(problem), engine(std::move(name)), bytes(workspace) {}
    Index workspace_bytes() const override { return bytes; }
    std::string name() const override { return engine; }
    Status run(void* x_memory, void* y_memory, void* w_memory, const void* bias_memory, void* workspace) override {
      if (p.alignment > cudnn::common_alignment(x_memory, y_memory, w_memory) || p.bias_alignment > cudnn::common_alignment(bias_memory))
        throw std::logic_error("not aligned as said");
      library.elapsed_ += library.seconds[engine] * (p.bias ? library.fused : 1) * static_cast<double>(p.n * p.p);
      if (engine == library.refuses_to_run) return {"misaligned"};
      return library.later([=, &library = library, p = p, bytes = bytes, wrong = engine == library.wrong, direct = engine == "direct"] {
        ++library.convolved, library.direct += direct;
        const Index per_group = p.c / p.groups, xs = p.n * p.h * p.w * p.c, ys = p.n * p.p * p.q * p.k,
                    ws = p.k * p.kernel.h * p.kernel.w * per_group;
        auto* x = library.on_device(static_cast<T*>(x_memory), xs);
        auto* y = library.on_device(static_cast<T*>(y_memory), ys);
        auto* w = library.on_device(static_cast<T*>(w_memory), ws);
        const auto* bias = static_cast<const T*>(bias_memory);
        std::memset(library.on_device(static_cast<std::byte*>(workspace), bytes), 0xff, static_cast<std::size_t>(bytes));
        std::vector<double> sum(static_cast<std::size_t>(p.op == Op::forward ? ys : p.op == Op::backward_data ? xs : ws), 0.0);
        for (Index i = 0; i < p.n; ++i)
          for (Index row = 0; row < p.p; ++row)
            for (Index column = 0; column < p.q; ++column)
              for (Index r = 0; r < p.kernel.h; ++r)
                for (Index s = 0; s < p.kernel.w; ++s) {
                  const Index h = row * p.stride.h - (wrong ? p.pad.bottom : p.pad.top) + r * p.dilation.h,
                              v = column * p.stride.w - p.pad.left + s * p.dilation.w;
                  if (h < 0 || h >= p.h || v < 0 || v >= p.w) continue;
                  for (Index k = 0; k < p.k; ++k)
                    for (Index c = 0; c < per_group; ++c) {
                      const Index at_x = ((i * p.h + h) * p.w + v) * p.c + k / (p.k / p.groups) * per_group + c,
                                  at_y = ((i * p.p + row) * p.q + column) * p.k + k, at_w = ((k * p.kernel.h + r) * p.kernel.w + s) * per_group + c;
                      if (p.op == Op::forward) sum[static_cast<std::size_t>(at_y)] += double(x[at_x]) * double(w[at_w]);
                      else if (p.op == Op::backward_data) sum[static_cast<std::size_t>(at_x)] += double(y[at_y]) * double(w[at_w]);
                      else sum[static_cast<std::size_t>(at_w)] += double(y[at_y]) * double(x[at_x]);
                    }
                }
        T* to = p.op == Op::forward ? y : p.op == Op::backward_data ? x : w;
        for (std::size_t e = 0; e < sum.size(); ++e) {
          const double value = sum[e] + (p.bias ? double(bias[static_cast<Index>(e) % p.k]) : 0.0);
          to[e] = static_cast<T>(p.relu && value <= 0 ? 0.0 : value);   // lets NaN pass, as cuDNN is asked to
        }
      });
    }
  };
  Status called() {
    const Index call = calls++;
    if (call != fail_at && (fail_from < 0 || call < fail_from)) return {};
    if (thrown) std::rethrow_exception(thrown);
    return {failure};
  }
  template <class F>
  Status later(F f) {
    if (const Status s = called(); !s.good()) return s;
    if (records_) recorded_.push_back(std::move(f));
    else queues_[stream_].push_back({std::move(f), nullptr});
    return {};
  }
  Status flush() {
    if (records_) throw std::logic_error("waited for within a recording");
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = queues_.size(); s-- > 0;)   // the last stream as far as it goes, then the one before ...
        while (!queues_[s].empty() && (!queues_[s].front().after || *queues_[s].front().after)) {
          const Entry entry = std::move(queues_[s].front());
          queues_[s].pop_front();
          if (entry.work) entry.work();
          moved = true;
        }
    }
    for (const auto& queue : queues_)
      if (!queue.empty()) throw std::logic_error("streams wait for each other");
    for (Staging& piece : staging_) piece.sent = false;
    return {};
  }
  /// Whether a piece of memory lies within one of some blocks.
  template <class Blocks>
  static bool holds(const Blocks& blocks, const std::byte* begin, Index bytes) {
    auto block = blocks.upper_bound(const_cast<std::byte*>(begin));
    return block != blocks.begin() && begin + bytes <= (--block)->first + block->second;
  }
  /// Memory that must be the device's, or page-locked; a mistake is a defect of the backend, not an error of the device.
  template <class E>
  E* on_device(E* memory, Index count) const {
    const auto* const begin = reinterpret_cast<const std::byte*>(memory);
    const Index bytes = count * Index{sizeof(E)};
    if (!holds(device_, begin, bytes) && !holds(shared_, begin, bytes)) throw std::logic_error("no memory that the device reads");
    return memory;
  }
  void* on_device(void* memory, Index bytes) const { return on_device(static_cast<std::byte*>(memory), bytes); }
  const void* on_device(const void* memory, Index bytes) const { return on_device(static_cast<const std::byte*>(memory), bytes); }
  template <class E>
  E* on_host(E* memory) const {
    const auto* begin = reinterpret_cast<const std::byte*>(memory);
    auto block = device_.upper_bound(const_cast<std::byte*>(begin));
    if (block != device_.begin() && begin < (--block)->first + block->second) throw std::logic_error("not memory of the host");
    return memory;
  }
  template <class E>
  void check_view(const View<const E>& v) const {
    if (v.data == nullptr || v.n * v.rows == 0) return;
    if (v.block != v.c) throw std::logic_error("not channels last");
    static_cast<void>(on_device(v.data, (v.n - 1) * v.stride_n + v.rows * v.stride_row()));
  }
  /// The workspace of a step whose bias gradient is made next.
  void make_ready_for_sums(const Operands<T>& o) {
    static_cast<void>(on_device(o.d_parameters[1], o.dy.c));
    std::memset(on_device(o.workspace, bias_gradient_bytes(o.dy)), 0xff, static_cast<std::size_t>(bias_gradient_bytes(o.dy)));
  }
  void check_tallies() const {
    for (const std::uint32_t tally : tallies_)
      if (tally != 0) throw std::logic_error("a loop has left a tally that is not 0");
  }
  loops::HostSystem loops_{&loops_started};
  std::vector<std::uint32_t> tallies_ = std::vector<std::uint32_t>(static_cast<std::size_t>(loops::most_tallies), 0);
  std::map<std::byte*, Index> device_;
  std::map<const std::byte*, Index> shared_;   ///< of the host, read by the device
  std::vector<Staging> staging_{};
  struct Entry {
    std::function<void()> work;
    std::shared_ptr<const bool> after;   ///< must be true first
  };
  /// True when the stream has come to here.
  std::shared_ptr<const bool> pass_event(std::size_t stream) {
    const auto passed = std::make_shared<bool>(false);
    queues_[stream].push_back({[passed] { *passed = true; }, nullptr});
    return passed;
  }
  std::vector<std::deque<Entry>> queues_{1};
  std::size_t stream_ = 0;
  std::map<Index, std::shared_ptr<const bool>> events_;
  Work recorded_;
  double elapsed_ = 0;   ///< seconds that convolutions are said to take
  bool records_ = false;
  std::vector<std::int32_t> labels_;   ///< the device's copy
  std::vector<float> targets_;         ///< likewise
  const std::int32_t* device_labels_ = nullptr;
  loops::PixelLabels pixel_labels_;
  RunKey key_;
  loops::LossSums sums_;
};
#ifndef LRCNN_HOST_LIBRARY   // ../host_library.cpp has them
extern template class HostLibrary<float>;
extern template class HostLibrary<float16>;
extern template class HostLibrary<bfloat16>;
#endif
}   // namespace lrcnn::testing
