#pragma once
// A test case in a process of its own, for what a program decides once, by its environment.
#include <doctest/doctest.h>
#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#if defined(__linux__)
#include <climits>
#include <cstdio>
#include <unistd.h>
#endif
namespace lrcnn::testing {
/// Whether this process is one that said_by_child() has started.
inline bool is_child() { return std::getenv("LRCNN_TEST_CHILD") != nullptr; }
/// What said_by_child() returns.
inline void say_to_parent(const std::string& line) { std::cout << "child: " << line << std::endl; }
#if defined(__linux__)
/// Starts this program for one test case and returns what that says. `settings`: arguments of env; `test_case`: as for doctest.
inline std::string said_by_child(const std::string& settings, const std::string& test_case) {
  std::array<char, PATH_MAX> path{};
  REQUIRE(readlink("/proc/self/exe", path.data(), path.size() - 1) > 0);
  const std::string command = "env " + settings + " LRCNN_TEST_CHILD=1 '" + path.data() + "' --test-case='" + test_case + "'";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  const std::string_view mark = "child: ";
  const std::size_t at = said.find(mark);
  REQUIRE_MESSAGE(at != said.npos, said);
  return said.substr(at + mark.size(), said.find('\n', at) - at - mark.size());
}
#endif
}   // namespace lrcnn::testing
