// A libcuda.so.1 without a device: it takes the modules that cuDNN compiles, and refuses everything else.
//
// For an engine that it compiles for a described device, cuDNN 9 asks the driver for its version, loads the finished module, looks up its
// kernel and unloads the module. It does not load it where the driver says that it has no devices, so the number of devices is refused.
// LRCNN_PRETENDED_DRIVER=names prints each function that is refused.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#define ANSWERS extern "C" __attribute__((visibility("default")))
namespace {
enum { success = 0, not_found = 500, not_supported = 801 };   // CUresult
char token;                                                   // what handles point to
int modules = 0;
int refuse(const char* name) {
  const char* wanted = std::getenv("LRCNN_PRETENDED_DRIVER");
  if (wanted != nullptr && std::strcmp(wanted, "names") == 0) std::fprintf(stderr, "the pretended driver refuses %s\n", name);
  return not_supported;
}
int look_up(const char* name, void** function);
}   // namespace
// Answers. CMakeLists.txt reads the names from these lines.
ANSWERS int cuInit(unsigned) { return success; }
ANSWERS int cuDriverGetVersion(int* version) { return *version = 13000, success; }
ANSWERS int cuGetErrorString(int, const char** text) { return *text = "the pretended driver does not do that", success; }
ANSWERS int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
  return ++modules, *library = &token, success;
}
ANSWERS int cuLibraryUnload(void*) { return success; }
ANSWERS int cuLibraryGetKernel(void** kernel, void*, const char*) { return *kernel = &token, success; }
ANSWERS int cuGetProcAddress(const char* name, void** function, int, unsigned long long) { return look_up(name, function); }
ANSWERS int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int* found) {
  const int result = look_up(name, function);
  if (found != nullptr) *found = result == success ? 0 : 1;   // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  return result;
}
/// Modules that were loaded so far.
extern "C" __attribute__((visibility("default"))) int lrcnn_modules_loaded() { return modules; }
// Refusals.
#define HAS(name)
#define REFUSES(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return refuse(#name); }
#include "symbols.inc"
#undef HAS
#undef REFUSES
namespace {
struct Symbol {
  const char* name;
  void* function;
};
#define HAS(name) {#name, reinterpret_cast<void*>(&name)},
#define REFUSES(name) HAS(name)
const Symbol symbols[] = {
#include "symbols.inc"
};
/// The newest version of a function: the one whose name ends so.
int look_up(const char* name, void** function) {
  for (const char* version : {"_v4", "_v3", "_v2", ""})
    for (const Symbol& symbol : symbols) {
      const std::size_t length = std::strlen(name);
      if (std::strncmp(symbol.name, name, length) == 0 && std::strcmp(symbol.name + length, version) == 0)
        return *function = symbol.function, success;
    }
  return *function = nullptr, not_found;
}
}   // namespace
