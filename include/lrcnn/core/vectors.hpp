#pragma once
// Which vector instructions a program uses: all that the processor has, or fewer where somebody says so.
//
// Tensors on a processor with AVX-512 have their channels in blocks of 16, elsewhere in blocks of 8. LRCNN_CPU in the environment
// holds a whole program to less than there is: avx512, avx2 or plain, which is what every processor of its kind has. It is for
// tests, and for comparing.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <array>
#include <cstdlib>
#include <optional>
#if defined(__x86_64__) && defined(__GNUC__)
#include <unistd.h>
#endif
namespace lrcnn {
/// From the least to the most. plain: what the compiler may use anyway, 128 bits on x86-64 and aarch64. avx2: with FMA.
/// avx512: with what oneDNN wants beside AVX512F, that is BW, DQ and VL.
enum class Vectors : std::uint8_t { plain, avx2, avx512 };
/// As LRCNN_CPU has it.
constexpr std::string_view vectors_name(Vectors v) { return v == Vectors::avx512 ? "avx512" : v == Vectors::avx2 ? "avx2" : "plain"; }
/// Floats in a block of channels: those of a vector, but of two where a vector has four.
constexpr Index vector_block(Vectors v) { return v == Vectors::avx512 ? 16 : 8; }
/// What processor and system have.
inline Vectors machine_vectors() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Vectors::plain;
  const bool all = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
  return all ? Vectors::avx512 : Vectors::avx2;
#else
  return Vectors::plain;
#endif
}
/// What `word` names. `who` asks: "the variable LRCNN_CPU".
/// Errors:  BackendError if it names nothing, or more than `most`, which is what there is
inline Vectors vectors_named(std::string_view word, std::string_view who, Vectors most = machine_vectors()) {
  const std::string given = std::string(who) + " says '" + std::string(word) + "'";
  for (const Vectors v : {Vectors::plain, Vectors::avx2, Vectors::avx512}) {
    if (word != vectors_name(v)) continue;
    if (v <= most) return v;
    throw BackendError(error_text(given + ", and this processor has " + std::string(vectors_name(most)) + " at most",
                                  "a program can be held to less than there is, not to more",
                                  "say " + std::string(vectors_name(most)) + " or less, or nothing"));
  }
  throw BackendError(error_text(given, "the words are plain, avx2 and avx512", "say one of them, or nothing for all that the processor has"));
}
/// What LRCNN_CPU says; nothing if it is not set, or empty.
/// Errors:  as vectors_named
inline std::optional<Vectors> vectors_of_environment() {
  const char* word = std::getenv("LRCNN_CPU");
  if (word == nullptr || *word == '\0') return {};
  return vectors_named(word, "the variable LRCNN_CPU");
}
#if defined(__x86_64__) && defined(__GNUC__)
namespace detail {
/// A program compiled with -march=... for vectors that the processor lacks ends with a sentence instead of an illegal instruction: this
/// runs before other code of the program, and is itself compiled for every processor.
[[gnu::constructor(101), gnu::target("arch=x86-64"), gnu::unused]] static void refuse_lacking_vectors() {
  __builtin_cpu_init();   // what is asked below may run later than this otherwise
  const char* lacking = nullptr;
#ifdef __AVX__
  if (!__builtin_cpu_supports("avx")) lacking = "AVX";
#endif
#ifdef __FMA__
  if (!__builtin_cpu_supports("fma")) lacking = "FMA";
#endif
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2")) lacking = "AVX2";
#endif
#ifdef __AVX512F__
  if (!__builtin_cpu_supports("avx512f")) lacking = "AVX512F";
#endif
#ifdef __AVX512BW__
  if (!__builtin_cpu_supports("avx512bw")) lacking = "AVX512BW";
#endif
#ifdef __AVX512VL__
  if (!__builtin_cpu_supports("avx512vl")) lacking = "AVX512VL";
#endif
  if (lacking == nullptr) return;
  const char* const parts[] = {"lrcnn: this program was compiled for a processor with ", lacking,
                               ", which this one lacks; a program runs where there are the instructions that it was compiled for; "
                               "compile it on this machine, or without -march\n"};
  for (const char* part : parts) {
    std::size_t length = 0;
    while (part[length] != '\0') ++length;
    static_cast<void>(!::write(2, part, length));
  }
  ::_exit(1);
}
}   // namespace detail
#endif
}   // namespace lrcnn
