#pragma once
// What a backend is: a type with an element type, storage rules, and a way to run one step.
//
// The executor resolves every step's Refs to views once, hands each to prepare(), and keeps what comes back. In the
// step loop it only calls run(). So prepare() may search, allocate and build primitives; run() may not allocate
// tensor or scratch memory. Everything a step may touch is in its Operands. Moves to and from a file (Op::offload and Op::fetch, on the
// host) are the executor's.
#include <lrcnn/core/half.hpp>
#include <lrcnn/core/view.hpp>
#include <lrcnn/layer/labels.hpp>
#include <lrcnn/data/row_sink.hpp>
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/layer/drop_mask.hpp>
#include <lrcnn/layer/loss.hpp>
#include <lrcnn/network/table.hpp>
#include <lrcnn/plan/step.hpp>
#include <lrcnn/plan/target.hpp>
#include <concepts>
#include <span>
#include <string>
namespace lrcnn {
/// A step with its operands resolved to memory. Views that a step does not have are empty (data == nullptr).
/// For convolutions x, y, dy and dx are dense, rows of x beyond what the window reads are fewer than its stride.
template <class T>
struct Operands {
  Op op{};
  const Node* node = nullptr;         ///< null for load, store, copy, add, zero, loss
  const Node* activation = nullptr;   ///< of a forward step that applies it: y and saved are the activation's
  bool accumulate = false;
  bool accumulate_parameters = false;   ///< backward_sums
  Index operand = 0;                    ///< backward_data of a join: which input dx is of
  Index layer = -1;                     ///< dropouts: number of the layer in the table
  Index first_image = 0;                ///< likewise: number in the batch of the views' first image
  const RunKey* run = nullptr;          ///< likewise: of the run at hand; null where nothing is dropped
  ConvAlgorithm conv_algorithm = ConvAlgorithm::direct;
  View<const T> x{};       ///< may be the same memory as y where the layer's rules say overwrites_input
  View<const T> other{};   ///< joins: the second input
  View<T> y{};             ///< read-only in backward_data
  View<const T> dy{};
  View<T> dx{};                   ///< may be the same memory as dy where they say overwrites_gradient; norms' may, too
  View<std::uint8_t> saved{};     ///< see saved_view()
  double* statistics = nullptr;   ///< norms: see Statistics; null where running ones are used, or none
  double* sums = nullptr;         ///< norms, backward: see Statistics. Global pooling forward, and a scale's factors backward, of a map in
                                  ///< slabs: [images][channels], the sums over the slabs so far; null if the step has all rows
  Range part = everywhere;        ///< backward_data with sums: the sums are added to the gradient of these rows only
  std::array<const master_t<T>*, 4> parameters{};   ///< canonical (KCRS, KF, K), null beyond the layer's own
  std::array<master_t<T>*, 4> d_parameters{};       ///< likewise
  T* packed = nullptr;                              ///< Target::packed_bytes; null if the backend does not pack
  T* scratch = nullptr;                             ///< likewise: room for a filter gradient in the backend's own layout
  std::byte* workspace = nullptr;
  Index workspace_bytes = 0;
  std::uint32_t* tallies = nullptr;       ///< on a device: where blocks that add something up are counted (loops/last_block.hpp)
  const Operands* along = nullptr;        ///< on a device: a step that is carried out along with this one (backend/cudnn/steps_along.hpp)
  const Operands* bias_along = nullptr;   ///< likewise: a convolution's step whose bias gradient is made from dx along with this one
};
/// As many of a step's parameters as its layer has.
template <class T>
std::span<const master_t<T>* const> parameters_of_layer(const Operands<T>& step) {
  return {step.parameters.data(), static_cast<std::size_t>(parameter_shapes(step.node->layer, step.node->in).count)};
}
/// The activation that a forward step applies, as a step of its own, in place.
template <class T>
Operands<T> activation_of(const Operands<T>& step) {
  Operands<T> o;
  o.op = Op::forward;
  o.node = step.activation;
  o.x = step.y, o.y = step.y, o.saved = step.saved;
  return o;
}
/// Layout of saved state for rows of a layer's output.
/// Pool indices: one byte for each stored element of y, in y's layout: the winner's place in its window, row-major.
/// Mask bits: for each row and channel block ceil(w * block / 8) bytes; bit (i % 8) of byte i / 8 is 1 where element
/// i of the row is positive. As a View: block 1, c = channel blocks, w = bytes of a row.
constexpr View<std::uint8_t> saved_view(std::uint8_t* data, const Layer& layer, Index n, Index c, Range rows, Index w, Index block) {
  if (rules_of(layer).backward(layer).indices) return dense_view(data, n, c, rows, w, block);
  return dense_view(data, n, ceil_div(c, block), rows, ceil_div(w * block, 8));
}
/// Beside steps, a backend answers for its memory and for what lies at the ends of a run: the rows of a batch, the loss,
/// the update. HostBackend does so for memory of the host, and is what a backend there derives from.
/// A run begins with start(), which is told the labels. loss() adds to its result at once, or finish() does, which waits for
/// the runs since the last finish(). Losses of passes that do not count come with counts = false, and a result of their own. A backend
/// whose steps cannot read Operands::run where it lies has set_run_key(key), which is told before a run with dropouts. Tensors are of
/// `element`; parameters, gradients and a batch's values of its master_t.
template <class B>
concept Backend = requires(B backend, const Operands<typename B::element>& operands, typename B::Prepared& prepared,
                           const RowSource<master_t<typename B::element>>& source, RowSink<master_t<typename B::element>>& sink,
                           const View<typename B::element>& view, master_t<typename B::element>* elements, Index count, const std::string& who,
                           LossResult& result, const Labels& labels) {
  typename B::element;
  typename B::Memory;   // data(), bytes(); of an arena
  { backend.allocate(count, who) } -> std::same_as<typename B::Memory>;
  { backend.template buffer<master_t<typename B::element>>(count).data() } -> std::convertible_to<master_t<typename B::element>*>;
  backend.write(elements, std::span<const master_t<typename B::element>>{});
  backend.read(std::span<master_t<typename B::element>>{}, elements);
  backend.load(source, count, view);
  backend.store(sink, count, view);   // has waited for the rows when it calls the sink
  { backend.finite(view) } -> std::convertible_to<bool>;
  backend.start(labels);
  backend.finish(result);
  { backend.sum_of_squares(elements, count) } -> std::convertible_to<double>;
  backend.cancel();   // after an error within a run
  { B::on_host } -> std::convertible_to<bool>;
  { B::target } -> std::convertible_to<Target>;
  { B::name } -> std::convertible_to<std::string_view>;
  { backend.threads() } -> std::convertible_to<int>;
  { backend.describe() } -> std::convertible_to<std::string>;            // what runs, in a line for people: processor or device, library, threads
  { backend.prepare(operands) } -> std::same_as<typename B::Prepared>;   // every op but load, store and loss
  backend.run(prepared, operands);
};
}   // namespace lrcnn
