#pragma once
// The reference backend: plain loops, any element type, no dependency. In double it is the oracle of every proof.
#include <lrcnn/backend/host/backend.hpp>
#include <lrcnn/backend/host/run.hpp>
#include <lrcnn/plan/rates.hpp>
namespace lrcnn {
/// Plain loops on the host.
/// Block is the storage block, as a vendor's layout would have it (0: channels last); tensors with at most Plain channels are NCHW all
/// the same. Both exist so that blocked layouts can be proved with the oracle's arithmetic.
template <class T = double, Index Block = 1, Index Plain = 0>
class Reference : public HostBackend<T> {
 public:
  static constexpr Target target{.element_bytes = static_cast<Index>(sizeof(T)),
                                 .channel_block = Block,
                                 .plain_channels = Plain,
                                 .uses_workspace = false,
                                 .activates = Block != 1};   // so both ways are proved
  static constexpr std::string_view name = "reference";
  /// Source:  SmallNet at 28x28, batch 8, one thread of an AMD EPYC
  static constexpr Rates rates{.step = 1e-6, .products = 1e9, .winograd = 1e9, .bytes = 2e9, .lanes = 1};
  /// Nothing needs preparing.
  struct Prepared {};
  /// `threads`: 0, which is what trainers and predictors give, for as many as there are processors. Results do not depend on them.
  explicit Reference(int threads = 1) : HostBackend<T>(threads) {}
  /// Errors: BackendError if the step cannot be carried out (host::check).
  Prepared prepare(const Operands<T>& operands) const {
    host::check(operands);
    return {};
  }
  void run(const Prepared&, const Operands<T>& operands) const { host::run(operands, this->threads()); }
};
}   // namespace lrcnn
