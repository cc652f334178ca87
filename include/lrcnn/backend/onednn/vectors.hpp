#pragma once
// Which vectors a backend uses, together with what the library may use.
//
// The library has a limit of its own for the whole process, which its variable ONEDNN_MAX_CPU_ISA sets. LRCNN_CPU lowers it where that
// is not set, if the library has made no primitive yet; a backend's own option does not, because other backends may live in the process.
#include <lrcnn/backend/onednn/api.hpp>
#include <lrcnn/core/vectors.hpp>
#include <algorithm>
#include <cstdlib>
namespace lrcnn::onednn {
/// What the library's limit leaves.
inline Vectors library_vectors() {
#if defined(__x86_64__)
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());   // a set of bits; one with more has all of one with less
  const auto has = [&](dnnl::cpu_isa wanted) { return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted); };
  return has(dnnl::cpu_isa::avx512_core) ? Vectors::avx512 : has(dnnl::cpu_isa::avx2) ? Vectors::avx2 : Vectors::plain;
#else
  return Vectors::plain;
#endif
}
/// Lowers the library's limit, unless its own variable has set one. It must not have been asked for its limit before, nor for a primitive;
/// otherwise nothing happens.
inline void limit_library(Vectors vectors) {
  const auto set = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return text != nullptr && *text != '\0';   // an empty one sets no limit
  };
  const bool has_own = set("ONEDNN_MAX_CPU_ISA") || set("DNNL_MAX_CPU_ISA");
  if (has_own || vectors == Vectors::avx512) return;
  static_cast<void>(dnnl_set_max_cpu_isa(vectors == Vectors::avx2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_sse41));
}
/// `wanted`, or what LRCNN_CPU says, or all that processor and library have. LRCNN_CPU holds `wanted`, too.
/// Errors:  BackendError if there is less than that
inline Vectors choose_vectors(std::optional<Vectors> wanted) {
  const auto limited = [](std::string_view who, Vectors vectors, Vectors most) {
    return BackendError(error_text(std::string(who) + " asks for " + std::string(vectors_name(vectors)) + ", and " + library_name() + " is held to " +
                                       std::string(vectors_name(most)),
                                   "its variable ONEDNN_MAX_CPU_ISA, or the program, has set its limit",
                                   "unset that variable, or ask for " + std::string(vectors_name(most)) + " or less"));
  };
  const auto environment = vectors_of_environment();
  if (environment) limit_library(*environment);
  if (wanted) {
    const Vectors vectors = vectors_named(vectors_name(*wanted), "OnednnOptions::vectors");
    if (environment && vectors > *environment) {
      const std::string word(vectors_name(*environment));
      throw BackendError(error_text(
          "OnednnOptions::vectors asks for " + std::string(vectors_name(vectors)) + ", and the variable LRCNN_CPU holds this program to " + word,
          "the variable is for all backends of a program", "unset it, or ask for " + word + " or less"));
    }
    if (vectors > library_vectors()) throw limited("OnednnOptions::vectors", vectors, library_vectors());
    return vectors;
  }
  if (environment) {
    if (*environment > library_vectors()) throw limited("the variable LRCNN_CPU", *environment, library_vectors());
    return *environment;
  }
  return std::min(machine_vectors(), library_vectors());
}
}   // namespace lrcnn::onednn
