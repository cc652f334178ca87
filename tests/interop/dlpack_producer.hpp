#pragma once
// Another program that hands out a tensor and counts how often it is given back.
#include <lrcnn/core/rng.hpp>
#include <lrcnn/interop/dlpack.hpp>
#include <vector>
namespace lrcnn::testing {
/// A tensor of elements of any type in memory of its own. The test may change `tensor` before it gives it away.
class Producer {
 public:
  /// No strides: compact.
  template <class E>
  Producer(const std::vector<E>& elements, std::vector<std::int64_t> extents, std::vector<std::int64_t> steps = {}, Index first = 0)
      : memory(elements.size() * sizeof(E)), shape(std::move(extents)), strides(std::move(steps)) {
    if (!elements.empty()) std::memcpy(memory.data(), elements.data(), memory.size());
    tensor = {.data = memory.data(),
              .device = dlpack::cpu,
              .ndim = static_cast<int>(shape.size()),
              .dtype = dlpack::dtype_of<E>(),
              .shape = shape.data(),
              .strides = strides.empty() ? nullptr : strides.data(),
              .byte_offset = static_cast<std::uint64_t>(first) * sizeof(E)};
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  /// A struct of its own for each call, as programs make them.
  DLManagedTensor* give() { return give<DLManagedTensor>(); }
  dlpack::DLManagedTensorVersioned* give_versioned(std::uint64_t flags = 0, std::uint32_t major = 1) {
    auto* managed = give<dlpack::DLManagedTensorVersioned>();
    managed->version = {major, 0}, managed->flags = flags;
    return managed;
  }
  Index out() const { return given - returned; }   ///< tensors that somebody has
  std::vector<std::byte> memory;
  std::vector<std::int64_t> shape, strides;
  DLTensor tensor{};
  Index given = 0, returned = 0;

 private:
  template <class Managed>
  Managed* give() {
    ++given;
    auto* managed = new Managed{};
    managed->dl_tensor = tensor, managed->manager_ctx = this;
    managed->deleter = [](Managed* self) {
      ++static_cast<Producer*>(self->manager_ctx)->returned;
      delete self;
    };
    return managed;
  }
};
}   // namespace lrcnn::testing
