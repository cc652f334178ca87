#pragma once
// What was found best on a machine, problem by problem, kept in a file so that it need not be found again.
//
// A text file: a line with the format's version, one that names the machine and the libraries the choices are for, then
// one choice a line, problem and choice separated by a tab, and a checksum. A file of another machine, or one that is
// damaged, is as good as none; what is lost is time. A file that does not begin as one of these contents does stays as it is: it may be
// somebody's text, or another file of lrcnn's. So nothing here throws once it is made: notices tell.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/core/checksum.hpp>
#include <lrcnn/core/read_file.hpp>
#include <lrcnn/core/types.hpp>
#include <array>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <utility>
namespace lrcnn {
/// Where to say what a user may want to know although nothing has failed.
using Notice = std::function<void(const std::string&)>;
class ChoiceFile {
 public:
  /// Choices that are kept while the program runs, and nowhere else.
  ChoiceFile() = default;
  /// Reads the file, if there is one. `machine`: one line that differs wherever choices may differ.
  /// `notice`: by default a line on std::clog. `contents`: what messages call what is kept, one word of the file's first line.
  ChoiceFile(std::filesystem::path path, std::string machine, Notice notice = {}, std::string contents = "choices")
      : path_(std::move(path)), machine_(std::move(machine)), notice_(std::move(notice)), contents_(std::move(contents)) {
    std::error_code error;
    if (!path_.empty() && std::filesystem::exists(path_, error)) choices_ = read(true);
  }
  /// The choice for a problem; null if none is known.
  const std::string* find(const std::string& problem) const {
    const auto known = choices_.find(problem);
    return known == choices_.end() ? nullptr : &known->second;
  }
  /// Pre: neither has a tab or a line break.
  void note(const std::string& problem, const std::string& choice) {
    choices_[problem] = choice;
    changed_ = true;
  }
  /// Writes what is new, atomically; choices that another program has written meanwhile stay. A file that cannot be written
  /// is a notice, once.
  void save() {
    if (path_.empty() || !std::exchange(changed_, false)) return;
    if (is_of_others())
      return say(error_text("the file of " + contents_ + " '" + path_.string() + "' is not written: what is there is no file of " + contents_,
                            "what was found stays in memory", "name another file, or one that is not there yet"));
    std::error_code error;
    const detail::FolderLock lock(path_.parent_path());   // nobody writes between reading and writing
    if (std::filesystem::exists(path_, error)) {
      auto theirs = read(false);
      theirs.swap(choices_);
      for (auto& [problem, choice] : theirs) choices_[problem] = choice;
    }
    std::string text = first_line() + "\nmachine " + machine_ + "\n";
    for (const auto& [problem, choice] : choices_) text += problem + "\t" + choice + "\n";
    text += "checksum " + std::to_string(crc32c(std::as_bytes(std::span(text)))) + "\n";
    try {
      write_file_atomically(path_, std::as_bytes(std::span(text)));
    } catch (const DataError& e) {
      say(std::string(e.what()) + "; what was found stays in memory");
      path_.clear();
    }
  }
  /// By problem.
  const std::map<std::string, std::string>& all() const { return choices_; }
  Index size() const { return static_cast<Index>(choices_.size()); }
  const std::filesystem::path& path() const { return path_; }

 private:
  using Choices = std::map<std::string, std::string>;
  /// Whether the file is there and is something else, such as lrcnn's file of other contents, which must not be lost.
  bool is_of_others() const {
    const std::string wanted = "lrcnn " + contents_ + " ";   // of any version
    std::string begin(wanted.size(), '\0');
    std::ifstream in(path_, std::ios::binary);
    std::error_code not_told;
    if (!in.is_open()) return std::filesystem::exists(path_, not_told);   // nobody knows what is in it
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<std::size_t>(in.gcount()));
    return !begin.empty() && begin != wanted;
  }
  std::string first_line() const { return "lrcnn " + contents_ + " 1"; }
  void say(const std::string& text) const {
    if (notice_) notice_(text);
    else std::clog << text << "\n";
  }
  /// What the file holds; nothing if it is not for this machine, or damaged.
  Choices read(bool tell) const {
    const auto refused = [&](const std::string& what) {
      const bool stays = is_of_others();
      if (tell)
        say(error_text("the file of " + contents_ + " '" + path_.string() + "' is ignored: " + what,
                       contents_ + " are made again, and the file " + (stays ? "stays as it is" : "is replaced"),
                       stays ? "name another file, or one that is not there yet" : "nothing need be done"));
      return Choices{};
    };
    std::string text;
    try {
      const auto bytes = detail::bytes_of_file(path_, "file of " + contents_, first_line());
      text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } catch (const DataError& e) {
      if (tell) say(std::string(e.what()) + "; " + contents_ + " are made again");
      return {};
    }
    const auto end = text.rfind("checksum ");
    if (!text.starts_with(first_line() + "\n")) return refused("it is no such file, or one of another version");
    if (end == std::string::npos || text[end - 1] != '\n' ||
        text.substr(end) != "checksum " + std::to_string(crc32c(std::as_bytes(std::span(text).first(end)))) + "\n")
      return refused("it is damaged");
    std::istringstream lines(text.substr(0, end));
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    if (line != "machine " + machine_)
      return refused("it is for another machine or other libraries (" + line.substr(std::min<std::size_t>(8, line.size())) + ")");
    Choices choices;
    while (std::getline(lines, line)) {
      const auto tab = line.find('\t');
      if (tab != std::string::npos) choices[line.substr(0, tab)] = line.substr(tab + 1);
    }
    return choices;
  }
  std::filesystem::path path_;
  std::string machine_;
  Notice notice_;
  std::string contents_ = "choices";
  Choices choices_;
  bool changed_ = false;
};
/// Whether a backend chooses between ways of carrying out a convolution by trying them, rather than by rules. Which one wins may
/// differ from run to run, and with it the last bits, unless the choices are kept in a file.
struct TuningOptions {
  bool on = false;
  std::filesystem::path file{};   ///< where choices are kept, for this machine and this library; empty: nowhere
  Notice notice{};                ///< hears of a file that is ignored or cannot be written; by default std::clog
};
}   // namespace lrcnn
