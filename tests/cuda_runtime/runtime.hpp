#pragma once
// A pretended CUDA runtime: those functions of the runtime that lrcnn::cudnn, Thrust and CUB call, in the host's memory, without a device.
//
// It is as strict as CUDA's documents are, and as slow as a device may be. Work in streams is done only when the host waits for it. An error stays
// as the thread's last one until somebody takes it away. Streams, events and memory belong to the device that was current; a call that needs a
// context makes one there. A capture ends in an
// error after a call that is not allowed within. Copies from memory that is not page-locked wait. Kernels are counted, not run: `results` says what
// they have come to. Every call can be made to fail.
#include <lrcnn/core/types.hpp>
#include <cuda_runtime_api.h>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>
namespace lrcnn::testing {
struct CudaRuntime {
  // ---- what there is -----------------------------------------------------------------------------------------------
  int devices = 2, capability = 90, driver = CUDART_VERSION;
  cudaError_t no_devices = cudaSuccess;   ///< what asking for devices comes to
  bool prohibited = false;                ///< devices are closed to programs
  Index capacity = 1'000'000'000;         ///< bytes of each device
  Index pinned_capacity = 1'000'000'000;
  Index cudnn_version = 0;   ///< 0: that of the headers
  int cudnn_fault = 0;       ///< what cudnnCreate comes to
  // ---- errors ------------------------------------------------------------------------------------------------------
  Index fail_at = -1;   ///< number of the call that fails
  cudaError_t failure = cudaErrorUnknown;
  std::string failed{};   ///< the function whose call was it
  // ---- what has happened -------------------------------------------------------------------------------------------
  Index calls = 0;
  Index kernels = 0;       ///< launched, or captured
  Index kernels_run = 0;   ///< whose turn has come
  Index copied_down = 0;   ///< copies from the host to a device that have been done
  Index waits = 0;         ///< calls in which the host had to wait for a device
  Index graphs_launched = 0;
  std::set<int> contexts{};                ///< devices that have a context: some call was for them, or needed one on the current device
  std::vector<std::string> violations{};   ///< what CUDA leaves undefined, such as memory that is written before it was copied
  /// What a copy of so many bytes to the host gives, instead of what kernels have not written.
  std::map<std::size_t, std::function<void(void*)>> results{};

  /// Whether there is an error on this thread that the next launch would find.
  static bool error_is_left();
  /// Memory, streams, events, graphs, handles that are there, as text: "" if there are none.
  static std::string left();
  static Index device_bytes(int device);   ///< taken
  static Index pinned_bytes();
  /// A program's own stream, on a device.
  static cudaStream_t make_stream(int device);
  /// Does everything that is in the streams.
  static void finish();
  /// A device that is busy with one stream: does what is in the others, as far as they need not wait for it.
  static void run_others(cudaStream_t busy);
  /// As at the start of a program: device 0 is current on this thread, and no device has a context.
  static void forget_contexts();
  /// Puts back what tests set and counts; streams and memory stay.
  void reset() { *this = {}; }
};
/// The runtime that the program is linked with.
CudaRuntime& cuda_runtime();
}   // namespace lrcnn::testing
