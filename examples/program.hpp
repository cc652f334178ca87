#pragma once
// How the examples begin and end: arguments, files that they may write, and what is said of errors.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/core/error.hpp>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>
namespace lrcnn {
/// Whether a file, which is there, is in a folder or in folders within it. Links to folders are followed, as where class folders are read. `seen`:
/// the canonical names of folders that were looked through.
inline bool is_within(const std::filesystem::path& file, const std::filesystem::path& folder, std::set<std::filesystem::path>& seen) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (!seen.insert(fs::canonical(folder, none)).second) return false;
  for (const auto& entry : fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, none))
    if (fs::equivalent(file, entry.path(), none) || (entry.is_directory(none) && is_within(file, entry.path(), seen))) return true;
  return false;
}
/// Finds out whether files can be written, and whether one would take the place of another, or of what the program reads: a file, or
/// any that is in a folder or in folders within it, linked ones included. Empty names count for nothing.
/// Errors:  Error naming the file; DataError if it cannot be written. Nothing has changed then
inline void check_written(const std::vector<std::string>& written, const std::vector<std::string>& read) {
  namespace fs = std::filesystem;
  std::error_code none;
  const auto path = [&](const fs::path& file) { return fs::weakly_canonical(file, none); };
  const auto same = [&](const fs::path& a, const fs::path& b) { return path(a) == path(b) || fs::equivalent(a, b, none); };
  const auto fault = [](const std::string& file, const std::string& how) {
    throw Error(error_text("file '" + file + "' is to be written" + how, "what a program reads stays as it is, and each file has its own name",
                           "choose another name"));
  };
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i].empty()) continue;
    for (std::size_t other = 0; other < i; ++other)
      if (!written[other].empty() && same(written[i], written[other])) fault(written[i], " twice");
    for (const std::string& input : read) {
      if (input.empty()) continue;
      if (same(written[i], input)) fault(written[i], ", and is read as well");
      if (!fs::is_directory(input, none) || !fs::exists(written[i], none)) continue;
      std::set<fs::path> seen;
      if (is_within(written[i], input, seen)) fault(written[i], ", and is in folder '" + input + "', which is read");
    }
    check_writable(written[i]);
  }
}
/// Refuses an empty text, which would count as an option that is not given.
inline CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? std::string("the text behind it is empty; write one, or leave it out") : text.substr(0, 0); }, "",
      "not empty");
}
/// Parses the arguments and runs the program. Returns its status; 1 if numbers stopped being finite, 2 for input that cannot be used,
/// too little memory, and output that cannot be written.
template <class Run>
int run_program(CLI::App& app, int argc, char** argv, Run run) {
  try {
    app.parse(argc, argv);
    const int status = run();
    if (std::cout.flush() && std::fflush(stdout) == 0) return status;
    std::cerr << error_text("standard output cannot be written", "what a program says is a part of what it does", "make room, or send it elsewhere")
              << "\n";
    return 2;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const NumericError& e) {
    std::cerr << e.what() << "\n";
    return 1;
  } catch (const MemoryError& e) {   // what a policy could do for it is nothing that a program's user can change
    const std::string text = e.what();
    std::cerr << text.substr(0, text.rfind("; ")) << "; use a smaller batch or image (--help has the options), or free memory\n";
  } catch (const Error& e) {
    std::cerr << e.what() << "\n";
  } catch (const std::exception& e) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&e) || dynamic_cast<const std::length_error*>(&e);
    if (!memory) std::cerr << "lrcnn: " << e.what() << "\n";
    else
      std::cerr << error_text("there is too little memory", "images, parameters and gradients are kept beside the plan's memory",
                              "take fewer or smaller images, or free memory")
                << "\n";
  }
  return 2;
}
}   // namespace lrcnn
