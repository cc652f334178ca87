#pragma once
// Memory that the host and a device both read: what kinds there are, and which of them an array is put into.
//
// The rules are a pure function of what the device says of itself and of the array's size, so that a test needs no device.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/types.hpp>
#include <optional>
#include <string>
namespace lrcnn::cudnn {
/// Where an array lies for the kernels that gather from it.
enum class Residence : std::uint8_t {
  device,       ///< a copy in the device's own memory
  pinned,       ///< a copy in page-locked memory of the host
  registered,   ///< the program's own memory, page-locked where it is
  managed,      ///< a copy in managed memory, which is told to stay on the host
  pageable,     ///< the program's own memory as it is, on systems whose devices read all memory of the host
  staged        ///< nowhere: the host reads the rows and sends them
};
constexpr std::string_view residence_name(Residence residence) {
  constexpr std::array<std::string_view, 6> names{"device", "pinned", "registered", "managed", "pageable", "staged"};
  return item(names, static_cast<Index>(residence));
}
/// Memory of both. What is null is filled in.
struct HostMemory {
  Residence residence = Residence::pinned;   ///< pinned, registered or managed
  const void* host = nullptr;                ///< registered: given; otherwise made
  const void* there = nullptr;               ///< the device's address of it
};
/// What a device can do with memory of the host.
struct HostAccess {
  int device = 0;                     ///< its number
  Index free_bytes = 0;               ///< of its own memory, now
  Index total_bytes = 0;              ///< of its own memory
  Index page_bytes = 4096;            ///< of the host
  bool maps = false;                  ///< page-locked memory has an address on the device, the same as on the host
  bool registers = false;             ///< the program's own memory can be page-locked
  bool registers_read_only = false;   ///< also memory that must not be written, such as a file's mapping
  bool managed = false;               ///< managed memory may be read by host and device at once
  bool pageable = false;              ///< the device reads all memory of the host
};
/// What limits the choice.
struct PlacementOptions {
  std::optional<Residence> only{};   ///< this and nothing else, or an error
  bool read_once = false;            ///< each sample is read about once: a copy beforehand would cost as much as it saves
  Index device_bytes = -1;           ///< most that an array may take of the device's memory; -1: a quarter of what is free
  Index pinned_bytes = -1;           ///< most that a copy may take of the host's memory; -1: a quarter of what is available
};
/// An array as the rules see it.
struct PlacedBytes {
  const void* data = nullptr;
  Index bytes = 0;
  Index host_bytes = 0;   ///< of the host's memory that are available
};
/// Why an array cannot lie somewhere; empty if it can.
inline std::string placement_fault(Residence where, const HostAccess& access, const PlacedBytes& array, const PlacementOptions& options) {
  const auto budget = [](Index given, Index available) { return given >= 0 ? given : available / 4; };
  const auto beyond = [&](Index most, const std::string& of) {
    return array.bytes <= most ? "" : format_bytes(array.bytes) + " are more than the " + format_bytes(most) + " of " + of + " that it may take";
  };
  const std::string unmapped = "the device does not read page-locked memory";
  switch (where) {
    case Residence::device: return beyond(budget(options.device_bytes, access.free_bytes), "the device's memory");
    case Residence::pinned: return !access.maps ? unmapped : beyond(budget(options.pinned_bytes, array.host_bytes), "page-locked memory");
    case Residence::registered:
      if (!access.maps) return unmapped;
      if (!access.registers) return "the device's system does not page-lock memory that a program has made itself";
      if (reinterpret_cast<std::uintptr_t>(array.data) % static_cast<std::uintptr_t>(access.page_bytes) != 0)
        return "it does not begin at a page of " + std::to_string(access.page_bytes) + " bytes";
      return "";
    case Residence::managed:
      if (!access.managed) return "host and device cannot read managed memory at once";
      return array.bytes <= access.total_bytes ? ""
                                               : format_bytes(array.bytes) + " are more than the " + format_bytes(access.total_bytes) +
                                                     " of memory that the device has, and managed memory may move there";
    case Residence::pageable: return access.pageable ? "" : "the device does not read pageable memory";
    case Residence::staged: break;
  }
  return "";
}
/// Where an array is tried to be put, in this order; `staged`, which is always possible, comes last.
/// Managed memory is never chosen: what a page of it holds moves as a whole, which random samples pay for.
/// Source:  Min et al., "PyTorch-Direct: Enabling GPU Centric Data Access for Very Large Graph Neural Network Training with Irregular Accesses",
///          arXiv 2101.07956: what fits stays on the device, the rest in unified host memory, and results are the device's own
inline constexpr std::array<Residence, 5> placement_order{Residence::device, Residence::pinned, Residence::registered, Residence::pageable,
                                                          Residence::staged};
}   // namespace lrcnn::cudnn
