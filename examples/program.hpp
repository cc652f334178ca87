#pragma once
// How the examples begin and end: arguments, and what is said of errors.
#include <lrcnn/core/error.hpp>
#include <CLI/CLI.hpp>
#include <iostream>
namespace lrcnn {
/// Parses the arguments and runs the program. Returns its status; 1 if numbers stopped being finite, 2 for input that cannot be used.
template <class Run>
int run_program(CLI::App& app, int argc, char** argv, Run run) {
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const NumericError& e) {
    std::cerr << e.what() << "\n";
    return 1;
  } catch (const Error& e) {
    std::cerr << e.what() << "\n";
    return 2;
  }
}
}  // namespace lrcnn
