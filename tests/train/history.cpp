#include <lrcnn/train/history.hpp>
#include <doctest/doctest.h>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <unistd.h>
using namespace lrcnn;
namespace {
const std::vector<EpochRecord> two{
    {.epoch = 1, .steps = 938, .lr = 0.05, .train_loss = 0.7, .train_accuracy = 0.75, .seconds = 12.5, .planned_peak_bytes = 4096},
    {.epoch = 2,
     .steps = 1876,
     .lr = 0.1 + 0.2,
     .train_loss = 1.0 / 3,
     .train_accuracy = 0.875,
     .test_loss = 0.5,
     .test_accuracy = 0.8125,
     .seconds = 1e-9,
     .planned_peak_bytes = Index{1} << 40}};
const std::string header = "epoch,steps,lr,train_loss,train_accuracy,test_loss,test_accuracy,seconds,planned_peak_bytes\n";
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_test_history_" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};
}   // namespace
TEST_CASE("a history is a CSV table") {
  CHECK(history_csv({}) == header);
  CHECK(history_csv(two) == header +
                                "1,938,0.05,0.7,0.75,,,12.5,4096\n"
                                "2,1876,0.30000000000000004,0.3333333333333333,0.875,0.5,0.8125,1e-09,"
                                "1099511627776\n");
}
TEST_CASE("a history reads back as it was") {
  CHECK(parse_history(history_csv({})).empty());
  CHECK(parse_history(history_csv(two)) == two);
  std::string text = history_csv(two);
  text.pop_back();
  CHECK(parse_history(text) == two);
  std::string dos;
  for (const char c : history_csv(two)) dos += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(parse_history(dos) == two);
  const auto strange = parse_history(header + "1,1,1,nan,inf,,,0,0\n");
  CHECK(std::isnan(strange[0].train_loss));
  CHECK(std::isinf(strange[0].train_accuracy));
}
TEST_CASE("a history file is written and read") {
  const Folder folder;
  const auto path = folder.path / "history.csv";
  write_history(path, {two.data(), 1});
  CHECK(read_history(path).size() == 1);
  write_history(path, two);
  CHECK(read_history(path) == two);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);   // nothing is left behind
}
TEST_CASE("what is not a history is refused with line and column") {
  const std::string rule = "it must be " + header.substr(0, header.size() - 1);
  CHECK_THROWS_WITH_AS(parse_history("a,b\n", "h.csv"),
                       ("lrcnn: 'h.csv', line 1: not the header of a history; " + rule + "; name a file that write_history wrote").c_str(),
                       DataError);
  CHECK_THROWS_AS(parse_history(""), DataError);
  CHECK_THROWS_WITH_AS(parse_history(header + "1,9.5,0.05,0.7,0.75,,,12.5,4096\n", "h.csv"),
                       "lrcnn: 'h.csv', line 2: column steps holds '9.5'; it must be a whole number; restore the line, "
                       "or delete it",
                       DataError);
  CHECK_THROWS_WITH_AS(parse_history(header + "1,9,0.05,,0.75,,,12.5,4096\n", "h.csv"),
                       "lrcnn: 'h.csv', line 2: column train_loss holds ''; it must be a number; restore the line, or "
                       "delete it",
                       DataError);
  CHECK_THROWS_WITH_AS(parse_history(header + "1,9,0.05,0.7,0.75,x,,12.5,4096\n", "h.csv"),
                       "lrcnn: 'h.csv', line 2: column test_loss holds 'x'; it must be a number; restore the line, or "
                       "delete it",
                       DataError);
  CHECK_THROWS_WITH_AS(parse_history(header + "1,9,0.05,0.7,0.75,,\n", "h.csv"),
                       "lrcnn: 'h.csv', line 2: column seconds holds ''; it must be a number; restore the line, or "
                       "delete it",
                       DataError);
  CHECK_THROWS_WITH_AS(parse_history(header + "1,9,0.05,0.7,0.75\n", "h.csv"),
                       "lrcnn: 'h.csv', line 2: column test_loss holds ''; it must be a number; restore the line, or "
                       "delete it",
                       DataError);
  CHECK_THROWS_WITH_AS(parse_history(history_csv(two) + "1,9,0.05,0.7,0.75,,,12.5,4096,7\n", "h.csv"),
                       "lrcnn: 'h.csv', line 4: has more fields than the header; each column has one field; restore the "
                       "line, or delete it",
                       DataError);
  CHECK_THROWS_WITH_AS(read_history("/nowhere/h.csv"),
                       "lrcnn: history '/nowhere/h.csv' does not exist; it is read as a whole; check the path, or save it "
                       "first",
                       DataError);
}
