// Which vectors there are, what they are called, and what is said to a word that asks for others.
#include "support/error_of.hpp"
#include <lrcnn/core/vectors.hpp>
#include <doctest/doctest.h>
#include <fstream>
#include <stdlib.h>
using namespace lrcnn;
using lrcnn::testing::error_of;
namespace {
/// LRCNN_CPU while it lives; null: not set.
class Environment {
 public:
  explicit Environment(const char* word) {
    if (const char* before = getenv("LRCNN_CPU")) before_ = before;
    set(word);
  }
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const char* word) {
    if (word) setenv("LRCNN_CPU", word, 1);
    else unsetenv("LRCNN_CPU");
  }
  std::optional<std::string> before_{};
};
}   // namespace
TEST_CASE("vectors have an order, names and blocks") {
  static_assert(Vectors::plain < Vectors::avx2 && Vectors::avx2 < Vectors::avx512);
  static_assert(vector_block(Vectors::plain) == 8 && vector_block(Vectors::avx2) == 8 && vector_block(Vectors::avx512) == 16);
  for (const Vectors v : {Vectors::plain, Vectors::avx2, Vectors::avx512})
    for (const Vectors most : {Vectors::plain, Vectors::avx2, Vectors::avx512})
      if (v <= most) CHECK(vectors_named(vectors_name(v), "a test", most) == v);
}
TEST_CASE("more vectors than there are, and words that name none, are refused with what there is") {
  CHECK(error_of<BackendError>([] { vectors_named("avx512", "the variable LRCNN_CPU", Vectors::avx2); }) ==
        "lrcnn: the variable LRCNN_CPU says 'avx512', and this processor has avx2 at most; a program can be held to less than there is, not "
        "to more; say avx2 or less, or nothing");
  CHECK(error_of<BackendError>([] { vectors_named("avx2", "OnednnOptions::vectors", Vectors::plain); }) ==
        "lrcnn: OnednnOptions::vectors says 'avx2', and this processor has plain at most; a program can be held to less than there is, not to "
        "more; say plain or less, or nothing");
  for (const std::string word : {"avx", "AVX2", "avx2 ", "16", "sse4.2"})
    CHECK(error_of<BackendError>([&] { vectors_named(word, "the variable LRCNN_CPU", Vectors::avx512); }) ==
          "lrcnn: the variable LRCNN_CPU says '" + word +
              "'; the words are plain, avx2 and avx512; say one of them, or nothing for all that the "
              "processor has");
}
TEST_CASE("LRCNN_CPU is read each time, and may be absent or empty") {
  for (const char* nothing : {static_cast<const char*>(nullptr), ""}) {
    const Environment environment(nothing);
    CHECK_FALSE(vectors_of_environment().has_value());
  }
  for (const Vectors v : {Vectors::plain, Vectors::avx2, Vectors::avx512}) {
    const Environment environment(vectors_name(v).data());
    if (v <= machine_vectors()) CHECK(vectors_of_environment() == v);
    else CHECK(error_of<BackendError>([] { vectors_of_environment(); }).find("lrcnn: the variable LRCNN_CPU says '") == 0);
  }
  const Environment environment("neon");
  CHECK(error_of<BackendError>([] { vectors_of_environment(); }).find("lrcnn: the variable LRCNN_CPU says 'neon'; the words are ") == 0);
}
#if defined(__x86_64__)
TEST_CASE("the machine's vectors are those that the system tells of") {
  std::string flags;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; flags.empty() && std::getline(info, line);)
    if (line.starts_with("flags")) flags = line + " ";
  const auto has = [&](std::string_view flag) { return flags.find(" " + std::string(flag) + " ") != std::string::npos; };
  const bool avx2 = has("avx2") && has("fma"), avx512 = avx2 && has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  MESSAGE("this machine has ", vectors_name(machine_vectors()));
  if (!flags.empty()) CHECK(machine_vectors() == (avx512 ? Vectors::avx512 : avx2 ? Vectors::avx2 : Vectors::plain));
}
#else
TEST_CASE("processors of other kinds have what their compilers use by themselves") { CHECK(machine_vectors() == Vectors::plain); }
#endif
