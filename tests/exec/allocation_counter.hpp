#pragma once
// Counts what a program allocates: malloc and its family, operator new, mmap. Include once, in a program of its own.
//
// The functions are replaced as a whole; what the C library allocates for itself goes through them too. Under a
// sanitizer that has an allocator of its own, its hook counts instead, and mmap is not seen.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LRCNN_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LRCNN_TEST_SANITIZED 1
#endif
#endif
#ifdef LRCNN_TEST_SANITIZED
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t), void (*)(const volatile void*));
#else
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
namespace lrcnn::testing {
struct Allocations {
  long count = 0, frees = 0, maps = 0;   ///< calls
  std::size_t bytes = 0, largest = 0;    ///< asked for, maps included
  friend bool operator==(const Allocations&, const Allocations&) = default;
};
namespace counter {
inline std::atomic<bool> on{false};
inline std::atomic<long> count{0}, frees{0}, maps{0};
inline std::atomic<std::size_t> bytes{0}, largest{0};
inline void note(std::size_t size) noexcept {
  if (!on.load(std::memory_order_relaxed)) return;
  ++count;
  bytes += size;
  for (std::size_t seen = largest; size > seen && !largest.compare_exchange_weak(seen, size);) {
  }
}
inline void note_free(const void* memory) noexcept {
  if (memory && on.load(std::memory_order_relaxed)) ++frees;
}
inline void note_map(std::size_t size) noexcept {
  if (on.load(std::memory_order_relaxed)) ++maps;
  note(size);
}
}   // namespace counter
/// What f allocates, in all threads.
template <class F>
Allocations allocations_of(F f) {
#ifdef LRCNN_TEST_SANITIZED
  [[maybe_unused]] static const int installed =
      __sanitizer_install_malloc_and_free_hooks([](const volatile void*, std::size_t size) { counter::note(size); },
                                                [](const volatile void* memory) { counter::note_free(const_cast<const void*>(memory)); });
#endif
  counter::count = counter::frees = counter::maps = 0;
  counter::bytes = counter::largest = 0;
  counter::on = true;
  f();
  counter::on = false;
  return {counter::count, counter::frees, counter::maps, counter::bytes, counter::largest};
}
}   // namespace lrcnn::testing
#ifndef LRCNN_TEST_SANITIZED
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
[[gnu::noinline]] void* malloc(std::size_t size) noexcept {
  lrcnn::testing::counter::note(size);
  return __libc_malloc(size);
}
[[gnu::noinline]] void* calloc(std::size_t count, std::size_t size) noexcept {
  lrcnn::testing::counter::note(count * size);
  return __libc_calloc(count, size);
}
[[gnu::noinline]] void* realloc(void* memory, std::size_t size) noexcept {
  lrcnn::testing::counter::note(size);
  return __libc_realloc(memory, size);
}
[[gnu::noinline]] void* memalign(std::size_t alignment, std::size_t size) noexcept {
  lrcnn::testing::counter::note(size);
  return __libc_memalign(alignment, size);
}
[[gnu::noinline]] void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  lrcnn::testing::counter::note(size);
  return __libc_memalign(alignment, size);
}
[[gnu::noinline]] int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  lrcnn::testing::counter::note(size);
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
[[gnu::noinline]] void free(void* memory) noexcept {
  lrcnn::testing::counter::note_free(memory);
  __libc_free(memory);
}
[[gnu::noinline]] void* mmap(void* address, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  lrcnn::testing::counter::note_map(size);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  if (void* memory = memalign(static_cast<std::size_t>(alignment), size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { free(memory); }
#endif
