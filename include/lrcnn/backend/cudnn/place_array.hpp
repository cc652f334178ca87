#pragma once
// Puts an array of images where a device reads it by itself.
//
//     const cudnn::PlacedArray images = cudnn::place_array(trainer.backend(), SampleArray(data));
//     std::cout << images.report << "\n";
//     DirectLoader<float> loader(images.array, data.labels, {.batch = 64});
#include <lrcnn/backend/cudnn/memory.hpp>
#include <lrcnn/core/memory.hpp>
#include <lrcnn/data/sample_array.hpp>
namespace lrcnn::cudnn {
/// An array, and where it lies.
struct PlacedArray {
  std::shared_ptr<const SampleArray> array{};
  Residence residence = Residence::staged;
  std::string report{};   ///< for people: what lies where, and why not elsewhere
};
namespace detail {
/// Memory that both read, which goes back when its last user goes.
inline std::shared_ptr<const HostMemory> shared_memory(const std::shared_ptr<Device>& library, HostMemory memory) {
  return {new HostMemory(memory), [library](const HostMemory* m) {
            library->unshare(*m);
            delete m;
          }};
}
/// What keeps an array's numbers, and its address on the device. The latter goes first, and waits for the device's readers.
struct Owners {
  std::shared_ptr<const void> numbers, address;
};
/// Tries to put an array somewhere. A status that is not good says why it is not there, and leaves nothing behind.
inline Status put(SampleArray& array, Residence where, const std::shared_ptr<Device>& library, const HostAccess& access) {
  const auto bytes = array.bytes();
  if (where == Residence::staged) return {};
  if (where == Residence::pageable) {
    const std::shared_ptr<const void> readers(array.data(), [library](const void*) { static_cast<void>(library->wait()); });
    array = array.with_device(array.data(), SampleArray::any_device, std::make_shared<Owners>(Owners{array.owner(), readers}));
    return {};
  }
  if (where == Residence::device) {
    void* there = nullptr;
    if (const Status s = library->allocate(there, bytes); !s.good()) return s;
    const std::shared_ptr<const void> memory(there, [library](void* m) { library->release(m); });
    if (const Status s = library->write(there, array.data(), bytes); !s.good()) return s;
    array = array.with_device(there, access.device, std::make_shared<Owners>(Owners{array.owner(), memory}));
    return {};
  }
  HostMemory memory{where, where == Residence::registered ? array.data() : nullptr, nullptr};
  if (const Status s = library->share(memory, bytes); !s.good()) return s;
  const auto owner = shared_memory(library, memory);
  if (where == Residence::registered) {
    array = array.with_device(memory.there, SampleArray::any_device, std::make_shared<Owners>(Owners{array.owner(), owner}));
  } else {
    std::memcpy(const_cast<void*>(memory.host), array.data(), static_cast<std::size_t>(bytes));
    array = array.at(memory.host, owner).with_device(memory.there, SampleArray::any_device, owner);
  }
  return {};
}
}   // namespace detail
/// Puts an array where the device of `backend` reads it: by the rules of host_memory.hpp, or where options.only says.
/// Pre:     registered, pageable: the array's memory does not change or go while the result is used; device, pinned, managed: it has been
///          copied, but device still reads the original on the host
/// Post:    the array's numbers are the same for the host; residence says where, report why
/// Errors:  BackendError if the device does not answer, or the array cannot be where options.only says
template <class Backend>
PlacedArray place_array(const Backend& backend, const SampleArray& array, const PlacementOptions& options = {}) {
  const std::shared_ptr<Device> library = backend.shared_library();
  HostAccess access;
  check(library->host_access(access), "asking what the device reads of the host's memory");
  const PlacedBytes bytes{array.data(), array.bytes(), available_memory()};
  const std::string what = array.describe() + " (" + format_bytes(array.bytes()) + ")";
  std::string reasons;
  for (const Residence where : placement_order) {
    if (options.only && where != placement_order.front()) break;
    const Residence tried = options.only.value_or(where);
    std::string fault = placement_fault(tried, access, bytes, options);
    if (!options.only && options.read_once && (tried == Residence::device || tried == Residence::pinned)) fault = "each sample is read once";
    SampleArray placed = array;
    if (fault.empty()) fault = detail::put(placed, tried, library, access).text;
    if (fault.empty())
      return {std::make_shared<const SampleArray>(std::move(placed)), tried,
              what + ": " + std::string(residence_name(tried)) + (reasons.empty() ? "" : "; not " + reasons)};
    reasons += (reasons.empty() ? "" : ", not ") + std::string(residence_name(tried)) + ": " + fault;
  }
  throw BackendError(error_text("an array of " + what + " cannot be " + reasons, "the option `only` allows nothing else",
                                "choose another residence, or leave the option out"));
}
}   // namespace lrcnn::cudnn
