#pragma once
// The beginning of NumPy's .npy files, which says what the array in the file is.
//
// It is a short text: a dictionary as Python writes it, such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. It is read with
// bounds and never evaluated. Arrays of Python's objects, which NumPy stores as pickles, are refused.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/core/types.hpp>
#include <bit>
#include <span>
#include <string>
#include <utility>
#include <vector>
namespace lrcnn {
/// What the array in a .npy file is.
struct NpyHeader {
  char kind = 'f';   ///< as NumPy names them: 'f' floating point, 'i' signed, 'u' unsigned, 'b' truth values
  Index bytes = 4;   ///< of an element: 2, 4, 8 ('f'), 1, 2, 4, 8 ('i', 'u'), 1 ('b')
  bool big_endian = std::endian::native == std::endian::big;
  bool fortran_order = false;   ///< the first index changes fastest, not the last
  std::vector<Index> shape{};   ///< empty: a single number
  Index begin = 0;              ///< where the elements begin in the file; npy_header_bytes() pays no attention to it
  std::string comment{};        ///< behind the dictionary, as Python has them: without "#", spaces around it and line feeds
  Index elements() const {
    Index count = 1;
    for (const Index extent : shape) count *= extent;
    return count;
  }
  Index data_bytes() const { return elements() * bytes; }
};
/// A reader gives parse_npy_header() so many bytes of a file, or all that it has.
inline constexpr std::size_t npy_header_limit = 65536 + 12;
/// "float32", "uint8", "bool": NumPy's name of the elements.
inline std::string npy_type_name(const NpyHeader& header) {
  if (header.kind == 'b') return "bool";
  return (header.kind == 'f' ? "float" : header.kind == 'u' ? "uint" : "int") + std::to_string(8 * header.bytes);
}
namespace detail {
inline constexpr std::string_view npy_magic = "\x93NUMPY";
/// Reads the dictionary of one header.
class NpyHeaderText {
 public:
  /// `begin`: where the text begins in the file, for messages.
  NpyHeaderText(std::string_view text, Index begin, std::string who) : text_(text), begin_(begin), who_(std::move(who)) {}
  NpyHeader parse() {
    NpyHeader header;
    bool have_type = false, have_order = false, have_shape = false;
    need('{', "a dictionary, which begins with '{'");
    while (!take('}')) {
      const std::string_view key = quoted();
      need(':', "':' behind a key");
      bool* have = nullptr;
      if (key == "descr") have = &have_type, type(header);
      else if (key == "fortran_order") have = &have_order, header.fortran_order = truth();
      else if (key == "shape") have = &have_shape, shape(header);
      else fail("the keys descr, fortran_order and shape");
      if (std::exchange(*have, true)) fail("each key once");
      if (!take(',')) {
        need('}', "',' or '}' behind a value");
        break;
      }
    }
    if (!have_type || !have_order || !have_shape) fail("the keys descr, fortran_order and shape");
    if (take('#')) {
      std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
      at_ += line.size();
      constexpr std::string_view blank = " \t\r";
      line.remove_prefix(std::min(line.find_first_not_of(blank), line.size()));
      header.comment = line.substr(0, line.find_last_not_of(blank) + 1);
    }
    space();
    if (at_ != text_.size()) fail("nothing but a comment behind the dictionary");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    throw DataError(error_text(who_ + " has a header that cannot be understood at byte " + std::to_string(begin_ + static_cast<Index>(at_)),
                               "it should have " + std::string(expected) + " there", "write it again with numpy.save"));
  }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  /// The character, behind space, if it comes next.
  bool take(char c) {
    space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c, std::string_view expected) {
    if (!take(c)) fail(expected);
  }
  std::string_view quoted() {
    space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a word in quotes");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a word in quotes");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }
  bool truth() {
    space();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    fail("True or False");
  }
  /// (), (3,), (3, 4), (3, 4, )
  void shape(NpyHeader& header) {
    need('(', "a shape, which begins with '('");
    while (!take(')')) {
      space();
      const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
      const auto extent = parse_number<Index>(text_.substr(at_, end - at_));
      if (!extent) fail("extents from 0 to 9223372036854775807");
      if (header.shape.size() == 64) fail("at most 64 extents, which is NumPy's limit");
      header.shape.push_back(*extent);
      at_ = end;
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;   // as Python 2 wrote it
      if (!take(',')) {
        need(')', "',' or ')' behind an extent");
        if (header.shape.size() == 1) fail("',' behind a single extent");
        break;
      }
    }
  }
  void type(NpyHeader& header) {
    space();
    if (at_ < text_.size() && text_[at_] == '[') refuse("records (a structured type)", "save each field as an array of its own");
    const std::string_view word = quoted();
    std::string name = "elements of type '";
    for (const char c : word.substr(0, 16)) name += c >= ' ' && c <= '~' ? c : '?';
    name += "'";
    if (word.find('O') != std::string_view::npos)
      refuse("Python's objects",
             "they are stored as a pickle, which can run code when it is read; save arrays of numbers, as in numpy.asarray(x, numpy.float32)");
    const auto bytes = word.size() < 3 ? std::nullopt : parse_number<Index>(word.substr(2));
    header.kind = word.size() < 2 ? '\0' : word[1];
    header.bytes = bytes.value_or(0);
    const bool one = header.bytes == 1, whole = header.bytes == 2 || header.bytes == 4 || header.bytes == 8;
    const bool known = header.kind == 'b' ? one : header.kind == 'i' || header.kind == 'u' ? one || whole : header.kind == 'f' && whole;
    const char order = word.empty() ? '\0' : word[0];
    if (!known || std::string_view("<>=|").find(order) == std::string_view::npos || (order == '|' && !one))
      refuse(name, "convert it, as in x.astype(numpy.float32)");
    if (order == '<' || order == '>') header.big_endian = order == '>';
  }
  [[noreturn]] void refuse(const std::string& what, std::string_view change) const {
    throw DataError(error_text(who_ + " holds " + what, "arrays of bool, int8 to int64, uint8 to uint64 and float16 to float64 are read", change));
  }
  std::string_view text_;
  Index begin_;
  std::string who_;
  std::size_t at_ = 0;
};
}   // namespace detail
/// Reads the header of a .npy file, of versions 1 to 3.
/// Pre:     `first` is the beginning of the file: npy_header_limit bytes, or all that there are
/// Post:    no extent is negative; begin + data_bytes() == file_bytes, and nothing of that overflows
/// Errors:  DataError that begins with `who` ("file 'x.npy'") if it is no .npy file, is cut off within its header, its header cannot be understood
///          or is longer than 64 KiB, the elements are not numbers (Python's objects, records, text), or the file has another size
inline NpyHeader parse_npy_header(std::span<const std::uint8_t> first, Index file_bytes, const std::string& who) {
  const std::string_view all(reinterpret_cast<const char*>(first.data()), first.size());
  const std::string_view magic = detail::npy_magic;
  if (!all.starts_with(magic))
    throw DataError(error_text(who + " is no .npy file", "those begin with the byte 0x93 and NUMPY", "write it with numpy.save"));
  const auto cut = [&](Index needed) {
    return DataError(error_text(who + " has " + std::to_string(file_bytes) + " bytes", "its header alone takes " + std::to_string(needed),
                                "fetch the file again"));
  };
  if (all.size() < 12) throw cut(12);
  const auto byte = [&](std::size_t i) { return static_cast<Index>(first[i]); };
  const Index version = byte(6);
  if (version < 1 || version > 3)
    throw DataError(error_text(who + " is of version " + std::to_string(version) + "." + std::to_string(byte(7)) + " of the .npy format",
                               "versions 1 to 3 are read", "write it again with numpy.save"));
  const Index text_begin = version == 1 ? 10 : 12;
  const Index length = version == 1 ? byte(8) + 256 * byte(9) : byte(8) + 256 * byte(9) + 65536 * byte(10) + 16777216 * byte(11);
  if (length > 65536)
    throw DataError(error_text(who + " has a header of " + std::to_string(length) + " bytes", "at most 65536 are read",
                               "check that it is the right file, or write it again with numpy.save"));
  if (text_begin + length > static_cast<Index>(all.size())) throw cut(text_begin + length);
  const std::string_view text = all.substr(static_cast<std::size_t>(text_begin), static_cast<std::size_t>(length));
  NpyHeader header = detail::NpyHeaderText(text, text_begin, who).parse();
  header.begin = text_begin + length;
  Index bytes = header.bytes;
  bool overflow = false, empty = false;
  for (const Index extent : header.shape) {
    if (extent == 0) empty = true;
    else overflow = overflow || __builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (empty && !overflow) bytes = 0;
  overflow = overflow || __builtin_add_overflow(bytes, header.begin, &bytes);
  if (overflow || bytes != file_bytes) {
    std::string shape;
    for (const Index extent : header.shape) shape += (shape.empty() ? "" : "x") + std::to_string(extent);
    throw DataError(error_text(who + " has " + std::to_string(file_bytes) + " bytes",
                               "its header (" + npy_type_name(header) + (shape.empty() ? "" : ", " + shape) + ") asks for " +
                                   (overflow ? "more than 2^63" : std::to_string(bytes)),
                               "fetch the file again, or write it again with numpy.save"));
  }
  return header;
}
/// The bytes that a .npy file has before its elements; a file is these and then the elements.
/// Pre:     the kind and bytes are some that NpyHeader names, no extent is negative, there are at most 64, and the comment is as NpyHeader says
/// Post:    their number is a multiple of 64; parse_npy_header() gives the same header back
inline std::string npy_header_bytes(const NpyHeader& header) {
  std::string text = std::string("{'descr': '") +
                     (header.bytes == 1   ? '|'
                      : header.big_endian ? '>'
                                          : '<') +
                     header.kind + std::to_string(header.bytes) + "', 'fortran_order': " + (header.fortran_order ? "True" : "False") + ", 'shape': (";
  for (std::size_t i = 0; i < header.shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(header.shape[i]);
  text += header.shape.size() == 1 ? ",), }" : "), }";
  if (!header.comment.empty()) text += "  # " + header.comment;
  constexpr std::size_t before = 10;
  const std::size_t length = static_cast<std::size_t>(round_up(static_cast<Index>(before + text.size() + 1), 64)) - before;
  text.append(length - 1 - text.size(), ' ').push_back('\n');
  std::string bytes(detail::npy_magic);
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, length & 255, length >> 8}) bytes += static_cast<char>(byte);
  return bytes + text;
}
/// Turns the bytes of each element around: from big-endian to little-endian or back. Pre: they are whole elements of `bytes` bytes.
inline void reverse_each(std::span<std::byte> elements, Index bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  for (std::size_t i = 0; size > 1 && i + size <= elements.size(); i += size)
    std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(i), elements.begin() + static_cast<std::ptrdiff_t>(i + size));
}
}   // namespace lrcnn
