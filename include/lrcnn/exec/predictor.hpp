#pragma once
// A network's forward pass alone, with its output handed on row by row.
//
//     Predictor<Net, Rows, Onednn> predictor({.n = 1, .c = 3, .h = 2700, .w = 5400}, parameters);
//     predictor.run(source, sink);
//
// Nothing is kept for a backward pass, and there are no gradients. Where the network's last stage is cut into slabs, neither its
// output nor anything within the stage exists in full height: rows come from a RowSource, pass through all its layers, and go to a
// RowSink. Without checkpoints a network of convolutions and pools is one stage, and takes the memory of a slab. Checkpoints still cut it
// into stages, whose borders exist in full height. Behind a global pooling or a flatten the output is one row.
//
// Lifetimes: the predictor has a copy of the parameters in the backend's memory. One thread at a time may use it.
#include <lrcnn/exec/chosen_types.hpp>
#include <lrcnn/exec/executor.hpp>
#include <lrcnn/exec/policy_choice.hpp>
#include <lrcnn/network/sequential.hpp>
namespace lrcnn {
/// What a predictor can be told beside network, policy, input and parameters.
struct PredictorOptions {
  int threads = 0;                  ///< of the backend; 0: as many as the machine offers
  std::optional<Budget> budget{};   ///< these three: as PolicyChoice has them
  std::optional<Costs> costs{};
  std::filesystem::path frontier_file{};
};
/// The predictor of a list of layers under a policy value. Predictor<Net, Policy, B> gives it types.
template <Backend B>
class BasicPredictor {
 public:
  using T = typename B::element;
  using M = master_t<T>;   ///< of parameters, and of rows that come and go
  /// Plans the forward pass. `parameters`: layout() says where each is; a trainer's read_parameters() are such.
  /// Errors:  ShapeError, PlanError, BackendError; PlanError if there is too little memory; Error if `parameters` are not as
  ///          many as the network has
  BasicPredictor(std::span<const Layer> layers, const PolicySpec& policy, const Input& input, std::span<const M> parameters, int threads = 0)
      : BasicPredictor(layers, policy, input, parameters, PredictorOptions{.threads = threads}) {}
  BasicPredictor(std::span<const Layer> layers, const PolicySpec& policy, const Input& input, std::span<const M> parameters,
                 const PredictorOptions& options)
      : BasicPredictor(layers, policy, input, parameters, B(options.threads), options) {}
  /// The same on a backend that the program has made.
  BasicPredictor(std::span<const Layer> layers, const PolicySpec& policy, const Input& input, std::span<const M> parameters, B backend,
                 const PredictorOptions& options = {})
      : backend_(std::move(backend)),
        parameters_(buffer_for(make_table(layers, input), policy, parameters)),
        executor_(plan_for(make_table(layers, input), policy, options), backend_, parameters_.data(), nullptr) {
    write_parameters(parameters);
  }
  BasicPredictor(const BasicPredictor&) = delete;
  BasicPredictor& operator=(const BasicPredictor&) = delete;
  /// One forward pass over a batch.
  /// Post:    the sink has got every row of every image once, an image's rows from top to bottom
  /// Errors:  DataError if the source has another shape; what the source or the sink throws. The next run is not affected
  template <class Observer = NoObserver>
  void run(const RowSource<M>& source, RowSink<M>& sink, Observer&& observer = Observer{}) {
    executor_.run(source, sink, std::forward<Observer>(observer));
  }
  /// Sets all parameters. Errors: Error if `values` are not as many as the parameters.
  void write_parameters(std::span<const M> values) {
    check_count(plan().table, values);
    backend_.write(parameters_.data(), values);
  }
  std::vector<Parameter> layout() const { return parameters_of(plan().table); }
  const Plan& plan() const { return executor_.plan(); }
  /// Bytes beyond the parameters, and beyond what source and sink have.
  Index peak_bytes() const { return plan().peak_bytes(); }
  /// The arena: what peak_bytes() counts.
  const typename B::Memory& arena() const { return executor_.arena(); }
  /// Shape of what the sink gets, all rows together.
  Shape output_shape() const { return plan().table.shape(plan().table.size()); }
  B& backend() { return backend_; }

 private:
  static void check_count(const Table& table, std::span<const M> values) {
    check_value_count(values.size(), parameter_count(table), "give those of this network, in the order of layout()");
  }
  typename B::template Buffer<M> buffer_for(const Table& table, const PolicySpec& policy, std::span<const M> values) const {
    check_precision<B>(policy, "Predictor");
    check_count(table, values);
    return backend_.template buffer<M>(parameter_count(table));
  }
  Plan plan_for(Table table, const PolicySpec& policy, const PredictorOptions& options) const {
    const Index bytes = parameters_.size() * static_cast<Index>(sizeof(M));
    return PlanMaker<B>(policy, {options.budget, options.costs, options.frontier_file}, bytes, backend_).make(std::move(table), predicting);
  }
  B backend_;
  typename B::template Buffer<M> parameters_;
  Executor<B> executor_;
};
/// The predictor of a network type under a policy type on a backend type. Its peak is a constant where the extents are:
///     static_assert(peak_bytes<Net, Rows, Onednn>(input, predicting) < 80_MiB);
/// The policy's precision, if it has one, chooses the backend's type for it.
template <class Net, class Policy, class B>
class Predictor : public BasicPredictor<typename detail::ChosenTypes<Net, Policy, B>::BackendType> {
 public:
  using BackendType = typename detail::ChosenTypes<Net, Policy, B>::BackendType;
  using Base = BasicPredictor<BackendType>;
  Predictor(const Input& input, std::span<const typename Base::M> parameters, int threads = 0)
      : Base(Net::layers, Policy::value, input, parameters, threads) {}
  Predictor(const Input& input, std::span<const typename Base::M> parameters, const PredictorOptions& options)
      : Base(Net::layers, Policy::value, input, parameters, options) {}
  /// On a backend that the program has made.
  Predictor(const Input& input, std::span<const typename Base::M> parameters, BackendType backend, const PredictorOptions& options = {})
      : Base(Net::layers, Policy::value, input, parameters, std::move(backend), options) {}
};
}   // namespace lrcnn
