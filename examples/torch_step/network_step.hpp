#pragma once
// A network's forward pass, and its backward pass from any gradient of the output: what torch.autograd.Function wants.
//
// lrcnn goes backward from a loss. The loss <g, y> of an output y has exactly g as its gradient, whatever g is: so a loss of the program's own
// (InnerProduct) makes the backward pass that is wanted. It is local to rows: rows of g are read where they lie as slabs of y come, and y
// itself is kept nowhere. The forward pass is a predictor's plan, which hands rows of y on. Both plans share one arena.
//
// In training, norms over a batch and dropouts do what they do not do in a prediction. A network that has them goes forward by the training
// plan, too, with a loss that copies y and gives 0 as its gradient: exact, at the price of one more backward pass.
#include <lrcnn/interop/dlpack.hpp>
#include <lrcnn/lrcnn.hpp>
#include <memory>
#include <optional>
#include <vector>
namespace lrcnn {
/// The loss <g, y>, whose gradient in y is g. Labels are compared by their extents only: the numbers come from `gradient`, in full precision.
template <class T>
struct InnerProduct {
  static constexpr std::string_view name = "inner_product";
  const RowSource<T>* gradient = nullptr;   ///< rows may be read by several threads at once
  double total(const Labels&, const Shape&) const { return 1; }
  void operator()(const View<const T>& y, const Labels&, Index first, const View<T>& dy, double, LossResult& result) const {
    if (dy.data == nullptr) return;   // a forward pass alone
    gradient->read(first, dy);
    for (Index i = 0; i < y.n; ++i)
      for (Index c = 0; c < round_up(y.c, y.block); ++c)
        for (Index row = y.row0; row < y.row0 + y.rows; ++row)
          for (Index x = 0; x < y.w; ++x) {
            if (c >= y.c) dy(i, c, row, x) = T{0};   // channels that only storage has
            else result.sum += static_cast<double>(dy(i, c, row, x)) * static_cast<double>(y(i, c, row, x));
          }
  }
};
/// Copies y to memory [N,C,H,W]; its gradient is 0.
template <class T>
struct CopyOutput {
  static constexpr std::string_view name = "copy_output";
  T* output = nullptr;
  Index height = 0;
  double total(const Labels&, const Shape&) const { return 1; }
  void operator()(const View<const T>& y, const Labels&, Index first, const View<T>& dy, double, LossResult&) const {
    MemorySink<T>(output, height).write(first, y);   // several threads at once, each other rows
    if (dy.data == nullptr) return;
    for (Index i = 0; i < dy.n; ++i)
      for (Index block = 0; block < dy.blocks(); ++block)
        for (Index row = dy.row0; row < dy.row0 + dy.rows; ++row) std::fill_n(dy.row(i, block, row), dy.stride_row(), T{0});
  }
};
/// A step whatever its element type.
class NetworkStep {
 public:
  virtual ~NetworkStep() = default;
  virtual Shape output_shape() const = 0;
  virtual const std::vector<Parameter>& layout() const = 0;
  virtual Index arena_bytes() const = 0;
  /// Pre: 0 <= number < layout().size(). keeper: of this object.
  virtual SharedTensor parameter(Index number, std::shared_ptr<const void> keeper) = 0;
  /// Errors: Error if there was no backward pass, or for a running statistic
  virtual SharedTensor gradient(Index number) const = 0;
  virtual SharedTensor forward(const DlpackTensor& input) = 0;
  /// Errors: Error if no forward pass was before it
  virtual std::optional<SharedTensor> backward(const DlpackTensor& input, const DlpackTensor& output_gradient, bool wants_input_gradient) = 0;
};
/// Memory for a tensor [N,C,H,W] that goes out.
template <class T>
SharedTensor new_tensor(const Shape& shape) {
  const auto memory = std::make_shared<std::vector<T>>(static_cast<std::size_t>(shape.count()));
  SharedTensor tensor = shared_tensor(View<T>(dense_view(memory->data(), shape.n, shape.c, {0, shape.h}, shape.w)), memory);
  tensor.copied = true;
  return tensor;
}
template <Backend B>
class NetworkStepOn final : public NetworkStep {
 public:
  using T = typename B::element;
  /// budget: 0 for layer by layer.
  NetworkStepOn(std::span<const Layer> layers, const Input& input, Index budget, int threads, std::uint64_t seed)
      : backend_(threads),
        table_(make_table(layers, input)),
        buffers_(table_, 0, backend_),
        executors_(layers,
                   PlanMaker<B>(PolicySpec{}, {.budget = budget > 0 ? std::optional(Budget{budget}) : std::nullopt}, buffers_.bytes(), backend_)) {
    initialize<T>(buffers_.layout, He{}, seed, buffers_.parameters);
    for (const Node& node : table_.nodes) differs_in_training_ = differs_in_training_ || rules_of(node.layer).draws;
    for (const Parameter& p : buffers_.layout)
      differs_in_training_ = differs_in_training_ || (p.shape.running && !table_.node(p.layer).layer.norm.frozen);
    static_cast<void>(executor(backward_options(false)));   // refuses at once what cannot be planned
  }
  Shape output_shape() const override { return table_.shape(table_.size()); }
  const std::vector<Parameter>& layout() const override { return buffers_.layout; }
  Index arena_bytes() const override { return executors_.arena_bytes(); }
  SharedTensor parameter(Index number, std::shared_ptr<const void> keeper) override {
    return shared_tensor(item(buffers_.layout, number), std::span<T>(buffers_.parameters), std::move(keeper));
  }
  SharedTensor gradient(Index number) const override {
    const Parameter& p = item(buffers_.layout, number);
    if (p.shape.running)
      throw Error(error_text("the gradient of the running statistic '" + p.name + "' is asked for", "a running statistic has none",
                             "ask torch_step_is_running() first"));
    if (!gradients_)
      throw Error(error_text("the gradient of '" + p.name + "' is asked for before a backward pass", "a backward pass computes it",
                             "call torch_step_backward() first"));
    return shared_tensor(p, std::span<T>(*gradients_), gradients_);
  }
  SharedTensor forward(const DlpackTensor& input) override {
    const DlpackSource<T> source(input);
    const Shape shape = output_shape();
    SharedTensor output = new_tensor<T>(shape);
    T* const values = static_cast<T*>(output.data);
    const RunKey key{.seed = 0, .step = runs_ + 1};
    if (differs_in_training_) {
      const std::vector<float> none(static_cast<std::size_t>(shape.count()));   // only its extents count
      executor(backward_options(false))
          .run(source, Labels::of_targets(none, shape.c, shape.h, shape.w), CopyOutput<T>{values, shape.h}, NoObserver{}, 1, key);
      buffers_.running.mix(backend_, buffers_.parameters.data(), buffers_.gradients.data());
    } else {
      MemorySink<T> sink(values, shape.h);
      executor(predicting).run(source, sink);
    }
    ++runs_;
    return output;
  }
  std::optional<SharedTensor> backward(const DlpackTensor& input, const DlpackTensor& output_gradient, bool wants_input_gradient) override {
    if (runs_ == 0) throw Error(error_text("a backward pass is asked for", "it follows a forward pass", "call torch_step_forward() first"));
    const DlpackSource<T> source(input), gradient(output_gradient);
    const DlpackLabels labels = DlpackLabels::of_targets(output_gradient);
    auto& run = executor(backward_options(wants_input_gradient));
    run.run(source, labels, InnerProduct<T>{&gradient}, NoObserver{}, 1, RunKey{.seed = 0, .step = runs_});
    gradients_ = std::make_shared<std::vector<T>>(buffers_.gradients.begin(), buffers_.gradients.end());
    if (!wants_input_gradient) return std::nullopt;
    return dense_copy(run.input_gradient());
  }

 private:
  static PlanOptions backward_options(bool input_gradient) { return {.training = true, .input_gradient = input_gradient, .rows_loss = true}; }
  Executor<B>& executor(const PlanOptions& options) {
    return executors_.get(table_.input, options, backend_, buffers_.parameters.data(), buffers_.gradients.data());
  }
  B backend_;
  Table table_;
  TrainingBuffers<B> buffers_;
  Executors<B> executors_;
  std::shared_ptr<std::vector<T>> gradients_{};   ///< of the last backward pass; the other program may have it still
  bool differs_in_training_ = false;
  std::uint64_t runs_ = 0;   ///< forward passes; a backward pass draws the masks of the last
};
}   // namespace lrcnn
