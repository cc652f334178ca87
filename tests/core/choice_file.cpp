// Choices that are kept: found again, not mixed up with another machine's, and lost with a notice rather than an error.
#include <lrcnn/core/choice_file.hpp>
#include <doctest/doctest.h>
#include <fstream>
#include <thread>
#include <vector>
using namespace lrcnn;
namespace {
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_choices_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path file() const { return path / "choices.txt"; }
  std::string text() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }
};
struct Heard {
  std::vector<std::string> texts;
  Notice notice() {
    return [this](const std::string& text) { texts.push_back(text); };
  }
};
}   // namespace
TEST_CASE("what was noted is found again by the next program on the same machine") {
  const Folder folder;
  Heard heard;
  ChoiceFile first(folder.file(), "device A, library 1", heard.notice());
  CHECK(first.find("conv 3x3") == nullptr);
  first.save();
  CHECK(!std::filesystem::exists(folder.file()));   // nothing to keep
  first.note("conv 3x3", "engine 7");
  first.note("conv 1x1", "engine 2");
  first.note("conv 3x3", "engine 8");
  first.save();
  const ChoiceFile second(folder.file(), "device A, library 1", heard.notice());
  CHECK(second.size() == 2);
  REQUIRE(second.find("conv 3x3") != nullptr);
  CHECK(*second.find("conv 3x3") == "engine 8");
  CHECK(heard.texts.empty());
}
TEST_CASE("two programs that write the same file keep each other's choices") {
  const Folder folder;
  ChoiceFile one(folder.file(), "A"), other(folder.file(), "A");
  one.note("p", "1");
  other.note("q", "2");
  one.save();
  other.save();
  CHECK(ChoiceFile(folder.file(), "A").size() == 2);
  CHECK(other.size() == 2);
}
TEST_CASE("choices for another machine are ignored with a notice, and replaced by this one's") {
  const Folder folder;
  ChoiceFile other(folder.file(), "device B");
  other.note("conv", "engine 1");
  other.save();
  Heard heard;
  ChoiceFile mine(folder.file(), "device A", heard.notice());
  CHECK(mine.find("conv") == nullptr);
  REQUIRE(heard.texts.size() == 1);
  CHECK(heard.texts[0] == "lrcnn: the file of choices '" + folder.file().string() +
                              "' is ignored: it is for another machine or other libraries (device B); choices are made again, and the "
                              "file is replaced; nothing need be done");
  mine.note("conv", "engine 5");
  mine.save();
  CHECK(*ChoiceFile(folder.file(), "device A").find("conv") == "engine 5");
}
TEST_CASE("a file that is none of the library's is not written over") {
  const Folder folder;
  folder.write("somebody's work");
  Heard heard;
  ChoiceFile file(folder.file(), "A", heard.notice());
  file.note("conv", "engine 1");
  file.save();
  CHECK(folder.text() == "somebody's work");
  REQUIRE(heard.texts.size() == 2);
  CHECK(heard.texts[0].ends_with("choices are made again, and the file stays as it is; name another file, or one that is not there yet"));
  CHECK(heard.texts[1] == "lrcnn: the file of choices '" + folder.file().string() + "' is not written: what is there is no file of choices; " +
                              "what was found stays in memory; name another file, or one that is not there yet");
  CHECK(*file.find("conv") == "engine 1");
}
TEST_CASE("a damaged file is ignored with a notice, wherever the damage is") {
  const Folder folder;
  ChoiceFile good(folder.file(), "A");
  good.note("conv", "engine 1");
  good.save();
  const std::string text = folder.text();
  const auto heard_of = [&](const std::string& damaged) {
    folder.write(damaged);
    Heard heard;
    const ChoiceFile file(folder.file(), "A", heard.notice());
    CHECK(file.size() == 0);
    return heard.texts.size() == 1 && heard.texts[0].find("is ignored: it is ") != std::string::npos;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    CHECK(heard_of(damaged));
    CHECK(heard_of(text.substr(0, i)));
  }
  CHECK(heard_of("something else"));
  folder.write(text);
  CHECK(ChoiceFile(folder.file(), "A").size() == 1);
}
TEST_CASE("a file that cannot be read or written is a notice, once, and the choices stay in memory") {
  const Folder folder;
  Heard heard;
  ChoiceFile nowhere(folder.path / "missing" / "choices.txt", "A", heard.notice());
  nowhere.note("conv", "engine 1");
  nowhere.save();
  nowhere.note("conv", "engine 2");
  nowhere.save();
  REQUIRE(heard.texts.size() == 1);
  CHECK(heard.texts[0].find("cannot be written") != std::string::npos);
  CHECK(heard.texts[0].ends_with("what was found stays in memory"));
  CHECK(*nowhere.find("conv") == "engine 2");
  const ChoiceFile directory(folder.path, "A", heard.notice());
  REQUIRE(heard.texts.size() == 2);
  CHECK(heard.texts[1] ==
        "lrcnn: file of choices '" + folder.path.string() + "' is a directory; it must be a file; check the path; choices are made again");
}
TEST_CASE("what several programs write at the same time is all kept") {
  const Folder folder;
  std::vector<std::thread> programs;
  for (int p = 0; p < 4; ++p)
    programs.emplace_back([&folder, p] {
      ChoiceFile mine(folder.file(), "A");
      for (int i = 0; i < 25; ++i) {
        mine.note("conv " + std::to_string(p) + " " + std::to_string(i), "engine 1");
        mine.save();
      }
    });
  for (std::thread& program : programs) program.join();
  CHECK(ChoiceFile(folder.file(), "A").size() == 100);
}
TEST_CASE("without a path choices are kept in memory") {
  ChoiceFile memory;
  memory.note("conv", "engine 1");
  memory.save();
  CHECK(*memory.find("conv") == "engine 1");
}
