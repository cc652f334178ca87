#pragma once
// What fit() and evaluate() ask of a loader.
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/layer/labels.hpp>
#include <lrcnn/shape/shape.hpp>
#include <concepts>
#include <iterator>
namespace lrcnn {
namespace detail {
/// The ends of a range as a loop over it finds them.
namespace range_access {
using std::begin, std::end;
template <class E>
auto begin_of(E& epoch) -> decltype(begin(epoch));
template <class E>
auto end_of(E& epoch) -> decltype(end(epoch));
}   // namespace range_access
}   // namespace detail
/// The batches of an epoch: a range of sources of rows that know their labels.
template <class E, class T>
concept BatchRange = requires(E& epoch) {
  { *detail::range_access::begin_of(epoch) } -> std::convertible_to<const RowSource<T>&>;
  { (*detail::range_access::begin_of(epoch)).labels() } -> std::convertible_to<Labels>;
  detail::range_access::end_of(epoch);
};
/// What fit() takes batches from: Loader, CropLoader, or a type of the program's own. batches() are in an epoch; input() is the shape of a full
/// one; epoch(number, first = 0) gives an epoch's from number `first` on. With last_input(), the shape of an epoch's last batch, fit() plans
/// that, too, before the first step. With order(), a text of what decides which images each batch has (the seed, say), a training that was stopped
/// within an epoch does not go on with others.
template <class L, class T>
concept BatchLoader = requires(const L& loader, Index number) {
  { loader.batches() } -> std::convertible_to<Index>;
  { loader.input() } -> std::convertible_to<Input>;
  { loader.epoch(number) } -> BatchRange<T>;
  { loader.epoch(number, number) } -> BatchRange<T>;
};
namespace detail {
template <bool ok>
constexpr void check_loader() {
  static_assert(
      ok,
      "lrcnn: this loader is none for this trainer; a loader has batches(), input() and epoch(number, first = 0), whose elements are sources "
      "of rows with labels(), of the type of the trainer's parameters: double for Reference<double>, float otherwise; add what is missing, "
      "or take Loader<double> or Loader<float>");
}
}   // namespace detail
}   // namespace lrcnn
