// Headers of .npy files: what was written is read back, texts as NumPy and others write them, and every error.
#include "support/error_of.hpp"
#include <lrcnn/core/rng.hpp>
#include <lrcnn/data/npy_header.hpp>
#include <doctest/doctest.h>
#include <array>
#include <tuple>
using namespace lrcnn;
using testing::error_of;
namespace {
std::span<const std::uint8_t> bytes_of_text(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }
/// A file of version 1 with this dictionary, without elements.
std::string with_text(const std::string& text) {
  std::string bytes("\x93NUMPY\x01\0", 8);
  bytes += static_cast<char>(text.size() & 255);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text;
}
NpyHeader parsed(const std::string& text, Index data_bytes) {
  const std::string file = with_text(text);
  return parse_npy_header(bytes_of_text(file), static_cast<Index>(file.size()) + data_bytes, "file 'x.npy'");
}
std::string refused(const std::string& text, Index data_bytes = 0) {
  return error_of<DataError>([&] { parsed(text, data_bytes); });
}
}   // namespace
TEST_CASE("what npy_header_bytes writes, parse_npy_header reads") {
  const Random random(20261124);
  for (std::uint64_t i = 0; i < 300; ++i) {
    NpyHeader header;
    const std::vector<std::pair<char, Index>> types{{'b', 1}, {'i', 1}, {'u', 1}, {'i', 2}, {'u', 2}, {'f', 2},
                                                    {'i', 4}, {'u', 4}, {'f', 4}, {'i', 8}, {'u', 8}, {'f', 8}};
    std::tie(header.kind, header.bytes) = types[random.below(20 * i, types.size())];
    header.big_endian = header.bytes > 1 ? random.below(20 * i + 1, 2) == 1 : header.big_endian;
    header.fortran_order = random.below(20 * i + 2, 2) == 1;
    for (std::uint64_t d = random.below(20 * i + 3, 9); d > 0; --d) header.shape.push_back(static_cast<Index>(random.below(20 * i + 4 + d, 7)));
    if (i % 3 == 0) header.comment = "a comment " + std::to_string(i);
    const std::string bytes = npy_header_bytes(header);
    CHECK(bytes.size() % 64 == 0);
    CHECK(bytes.back() == '\n');
    const NpyHeader back = parse_npy_header(bytes_of_text(bytes), static_cast<Index>(bytes.size()) + header.data_bytes(), "it");
    CHECK(back.kind == header.kind);
    CHECK(back.bytes == header.bytes);
    CHECK(back.big_endian == header.big_endian);
    CHECK(back.fortran_order == header.fortran_order);
    CHECK(back.shape == header.shape);
    CHECK(back.comment == header.comment);
    CHECK(back.begin == static_cast<Index>(bytes.size()));
  }
}
TEST_CASE("headers are read as NumPy and others write them") {
  const NpyHeader plain = parsed("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n", 48);
  CHECK(plain.kind == 'f');
  CHECK(plain.bytes == 4);
  CHECK_FALSE(plain.big_endian);
  CHECK(plain.shape == std::vector<Index>{3, 4});
  CHECK(plain.begin == 10 + 66);
  const NpyHeader other = parsed("{\"shape\" : ( 5L , ) ,\t'fortran_order':True,'descr':\">i2\"}", 10);
  CHECK(other.kind == 'i');
  CHECK(other.big_endian);
  CHECK(other.fortran_order);
  CHECK(other.shape == std::vector<Index>{5});
  const NpyHeader told = parsed("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}# rows, columns \t \n  \n", 48);
  CHECK(told.comment == "rows, columns");
  CHECK(told.shape == std::vector<Index>{3, 4});
  for (const char* nothing : {"#", " # ", "#\n", "# \n"})
    CHECK(parsed(std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ()}") + nothing, 4).comment.empty());
  CHECK(parsed("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", 1).shape.empty());
  CHECK(parsed("{'descr': '=u8', 'fortran_order': False, 'shape': (2,)}", 16).big_endian == (std::endian::native == std::endian::big));
  CHECK(parsed("{'descr': '<u8', 'fortran_order': False, 'shape': (0, 1152921504606846975)}", 0).elements() == 0);
  // Versions 2 and 3 have four bytes for the length.
  const std::string text = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}";
  for (const char version : {'\x02', '\x03'}) {
    const std::string file = std::string("\x93NUMPY") + version + '\0' + static_cast<char>(text.size()) + std::string(3, '\0') + text;
    CHECK(parse_npy_header(bytes_of_text(file), static_cast<Index>(file.size()) + 8, "it").begin == static_cast<Index>(file.size()));
  }
  CHECK(npy_type_name({.kind = 'f', .bytes = 2}) == "float16");
  CHECK(npy_type_name({.kind = 'u', .bytes = 1}) == "uint8");
  CHECK(npy_type_name({.kind = 'i', .bytes = 8}) == "int64");
  CHECK(npy_type_name({.kind = 'b', .bytes = 1}) == "bool");
}
TEST_CASE("what is no header of numbers is refused, with the byte where it goes wrong") {
  const std::string ends = "; write it again with numpy.save";
  const auto at = [&](int byte, const std::string& expected) {
    return "lrcnn: file 'x.npy' has a header that cannot be understood at byte " + std::to_string(byte) + "; it should have " + expected + " there" +
           ends;
  };
  CHECK(refused("x ") == at(10, "a dictionary, which begins with '{'"));
  CHECK(refused("  ") == at(12, "a dictionary, which begins with '{'"));
  CHECK(refused("{ ") == at(12, "a word in quotes"));
  CHECK(refused("{'descr") == at(11, "a word in quotes"));
  CHECK(refused("{'descr' '<f4'") == at(19, "':' behind a key"));
  CHECK(refused("{'color': 1}") == at(19, "the keys descr, fortran_order and shape"));
  CHECK(refused("{'shape': (1,), 'shape': (1,)}") == at(39, "each key once"));
  CHECK(refused("{'shape': (1,) 'descr': '<f4'}") == at(25, "',' or '}' behind a value"));
  CHECK(refused("{'shape': (1,)}") == at(25, "the keys descr, fortran_order and shape"));
  CHECK(refused("{'fortran_order': 0}") == at(28, "True or False"));
  CHECK(refused("{'shape': 3}") == at(20, "a shape, which begins with '('"));
  CHECK(refused("{'shape': (3)}") == at(23, "',' behind a single extent"));
  CHECK(refused("{'shape': (-3,)}") == at(21, "extents from 0 to 9223372036854775807"));
  CHECK(refused("{'shape': (9223372036854775808,)}") == at(21, "extents from 0 to 9223372036854775807"));
  CHECK(refused("{'shape': (3 4)}") == at(23, "',' or ')' behind an extent"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "1,";
  CHECK(refused("{'shape': (" + many + ")}").find("at most 64 extents, which is NumPy's limit") != std::string::npos);
  CHECK(refused("{'descr': '<f4', 'fortran_order': False, 'shape': ()}  # a\n1", 4) == at(69, "nothing but a comment behind the dictionary"));
  CHECK(refused("{'descr': '<f4', 'fortran_order': False, 'shape': ()} 1", 4) == at(64, "nothing but a comment behind the dictionary"));
  CHECK(refused("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") ==
        "lrcnn: file 'x.npy' holds Python's objects; arrays of bool, int8 to int64, uint8 to uint64 and float16 to float64 are read; they are stored "
        "as a "
        "pickle, which can run code when it is read; save arrays of numbers, as in numpy.asarray(x, numpy.float32)");
  CHECK(refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}") ==
        "lrcnn: file 'x.npy' holds records (a structured type); arrays of bool, int8 to int64, uint8 to uint64 and float16 to float64 are read; save "
        "each field as an array of its own");
  for (const std::string type : {"<c8", "<U3", "|S5", "<f16", "<f1", "|f4", "!f4", "<i3", "|b2", "<f", "f4", "<f4x", "<M8[ns]", ""})
    CHECK(refused("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1,)}") ==
          "lrcnn: file 'x.npy' holds elements of type '" + type +
              "'; arrays of bool, int8 to int64, uint8 to uint64 and float16 to float64 are read; convert it, as in x.astype(numpy.float32)");
  const std::string odd = refused(std::string("{'descr': '<\0\n', 'fortran_order': False, 'shape': (1,)}", 55));   // a text that can be read whole
  CHECK(odd.find("elements of type '<?"
                 "?'; arrays of bool") != std::string::npos);
}
TEST_CASE("files of another size than their header's, or of another kind, are refused") {
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}";
  const auto size = [&](Index bytes) {
    return "lrcnn: file 'x.npy' has " + std::to_string(bytes) +
           " bytes; its header (float32, 3x4) asks for 115; fetch the file again, or write it again with "
           "numpy.save";
  };
  CHECK(refused(text, 47) == size(114));
  CHECK(refused(text, 49) == size(116));
  for (const std::string shape : {"(4611686018427387904, 2)", "(4294967296, 4294967296)", "(4611686018427387904, 0, 2)", "(2305843009213693951,)"})
    CHECK(refused("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}").find(") asks for more than 2^63; fetch the file again") !=
          std::string::npos);
  const auto of_bytes = [&](const std::string& bytes) {
    return error_of<DataError>([&] { parse_npy_header(bytes_of_text(bytes), static_cast<Index>(bytes.size()), "file 'x.npy'"); });
  };
  CHECK(of_bytes("PK\x03\x04 zip") == "lrcnn: file 'x.npy' is no .npy file; those begin with the byte 0x93 and NUMPY; write it with numpy.save");
  CHECK(of_bytes("") == "lrcnn: file 'x.npy' is no .npy file; those begin with the byte 0x93 and NUMPY; write it with numpy.save");
  const std::string whole = with_text(text);
  CHECK(of_bytes(whole.substr(0, 9)) == "lrcnn: file 'x.npy' has 9 bytes; its header alone takes 12; fetch the file again");
  CHECK(of_bytes(whole.substr(0, 50)) == "lrcnn: file 'x.npy' has 50 bytes; its header alone takes 67; fetch the file again");
  std::string version = whole;
  version[6] = '\x04';
  CHECK(of_bytes(version) == "lrcnn: file 'x.npy' is of version 4.0 of the .npy format; versions 1 to 3 are read; write it again with numpy.save");
  version[6] = '\x02', version[11] = '\x01';
  CHECK(of_bytes(version).find(" bytes; at most 65536 are read; check that it is the right file, or write it again with numpy.save") !=
        std::string::npos);
}
TEST_CASE("bytes of elements are turned around") {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(i);
  reverse_each(bytes, 1);
  CHECK(bytes[0] == std::byte{0});
  reverse_each(bytes, 4);
  CHECK(bytes[0] == std::byte{3});
  CHECK(bytes[7] == std::byte{4});
  reverse_each(std::span(bytes).first(2), 2);
  CHECK(bytes[0] == std::byte{2});
}
