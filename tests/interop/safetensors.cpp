// safetensors files: what the reference implementation writes is read and written again, byte by byte; every fault of a file has its message.
#include <lrcnn/interop/safetensors.hpp>
#include <doctest/doctest.h>
#include <fstream>
#include <cmath>
#include <thread>
#include <sys/stat.h>
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_test_safetensors_" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};
/// What safetensors 0.8.0 writes of these tensors, by save(tensors, metadata={"format": "pt"}):
///     "b.weight": [0, 1, 2] (float32), "a": 5 (int64), "z": [[0.1, -1], [1e300, 0]] (float64), "h": [1, -0.5, 65504] (float16),
///     "q": [3.140625] (bfloat16), 'we"ird\n\x01é/': zeros of shape [0, 3] (float32), "c2": [[1.5], [-2]] (float32)
const std::string reference_header =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"z":{"dtype":"F64","shape":[2,2],"data_offsets":[8,40]},)"
    R"("b.weight":{"dtype":"F32","shape":[3],"data_offsets":[40,52]},"c2":{"dtype":"F32","shape":[2,1],"data_offsets":[52,60]},)"
    "\"we\\\"ird\\n\\u0001\xc3\xa9/\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[60,60]},"
    R"("q":{"dtype":"BF16","shape":[1],"data_offsets":[60,62]},"h":{"dtype":"F16","shape":[3],"data_offsets":[62,68]}})";
const std::string reference_data =
    "05000000000000009a9999999999b93f000000000000f0bf9c7500883ce4377e000000000000000000000000"
    "0000803f000000400000c03f000000c04940003c00b8ff7b";
std::string bytes_of_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}
std::string length_of(std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}
std::string file_of(std::string header, const std::string& data) { return length_of(header.size()) + header + data; }
std::string reference_file() {
  std::string header = reference_header;
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return file_of(header, bytes_of_hex(reference_data));
}
std::filesystem::path write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}
template <class T>
std::vector<T> values_of(const TensorFile& file, std::string_view name) {
  for (std::size_t i = 0; i < file.tensors().size(); ++i)
    if (file.tensors()[i].name == name) {
      std::vector<T> values(static_cast<std::size_t>(file.tensors()[i].count()), T(-7));
      file.read(i, std::span(values));
      return values;
    }
  return {};
}
/// The message of a file of these bytes, with the file's name left out.
std::string error_of_bytes(const Folder& folder, std::string_view bytes) {
  const auto path = write(folder.path / "x.safetensors", bytes);
  std::string text = error_of<DataError>([&] { SafetensorsFile file(path); });
  if (const auto at = text.find("'" + path.string() + "'"); at != text.npos) text.replace(at, path.string().size() + 2, "F");
  return text;
}
std::string damaged(const std::string& what, const std::string& rule) {
  return "lrcnn: safetensors file F " + what + "; " + rule + "; fetch it again, or save it again with the safetensors library";
}
/// A file whose header is `{"a": entry}` with four bytes of data.
std::string one_entry(const std::string& entry) { return file_of("{\"a\":" + entry + "}", "1234"); }
}   // namespace
TEST_CASE("a file of the reference implementation is read, and written again byte by byte") {
  const Folder folder;
  const SafetensorsFile file(write(folder.path / "a.safetensors", reference_file()));
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK(file.description() == "safetensors file '" + (folder.path / "a.safetensors").string() + "'");
  CHECK(values_of<float>(file, "b.weight") == std::vector<float>{0, 1, 2});
  CHECK(values_of<double>(file, "b.weight") == std::vector<double>{0, 1, 2});
  CHECK(values_of<double>(file, "z") == std::vector<double>{0.1, -1, 1e300, 0});
  CHECK(values_of<float>(file, "h") == std::vector<float>{1, -0.5f, 65504});
  CHECK(values_of<double>(file, "q") == std::vector<double>{3.140625});
  CHECK(values_of<float>(file, "c2") == std::vector<float>{1.5f, -2});
  CHECK(values_of<float>(file, "we\"ird\n\x01é/").empty());
  const std::string data = bytes_of_hex(reference_data);
  const auto part = [&](std::size_t begin, std::size_t end) { return std::as_bytes(std::span(data)).subspan(begin, end - begin); };
  const std::vector<NamedTensor> tensors{{"b.weight", {3}, TensorType::f32, part(40, 52)}, {"c2", {2, 1}, TensorType::f32, part(52, 60)},
                                         {"we\"ird\n\x01é/", {0, 3}, TensorType::f32, {}}, {"h", {3}, TensorType::f16, part(62, 68)},
                                         {"q", {1}, TensorType::bf16, part(60, 62)},       {"a", {}, TensorType::i64, part(0, 8)},
                                         {"z", {2, 2}, TensorType::f64, part(8, 40)}};
  write_safetensors(folder.path / "b.safetensors", tensors);
  CHECK(file_bytes(folder.path / "b.safetensors") == file_bytes(folder.path / "a.safetensors"));
  write_safetensors(folder.path / "c.safetensors", {}, {});
  CHECK(SafetensorsFile(folder.path / "c.safetensors").tensors().empty());
}
TEST_CASE("large tensors are converted chunk by chunk, also by several threads at once") {
  const Folder folder;
  std::vector<float16> halves(300'001);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = float16::from_bits(static_cast<std::uint16_t>(i % 0x7c00));
  write_safetensors(folder.path / "h", std::vector<NamedTensor>{{"h", {300'001}, TensorType::f16, std::as_bytes(std::span(halves))}});
  const SafetensorsFile file(folder.path / "h");
  std::vector<int> equal(3, 0);
  std::vector<std::thread> threads;
  for (int& e : equal) threads.emplace_back([&] { e = values_of<double>(file, "h") == std::vector<double>(halves.begin(), halves.end()); });
  for (std::thread& t : threads) t.join();
  CHECK(equal == std::vector<int>{1, 1, 1});
}
TEST_CASE("pickled files are refused, with a line that converts them") {
  const Folder folder;
  const std::string pickled =
      "lrcnn: safetensors file F is no safetensors file but a pickled one or an archive, as torch.save() writes them; pickled files can run code "
      "when they are loaded, so lrcnn reads none; convert it where you trust it: python -c \"import torch; from safetensors.torch import save_file; "
      "save_file({k: v.contiguous() for k, v in torch.load('";
  for (const std::string_view begin : {std::string_view("PK\x03\x04\x00\x00\x08", 7), std::string_view("\x80\x02\x8a\x0al\xfc\x9c\x46", 8),
                                       std::string_view("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 14), std::string_view("\x80\x05", 2)})
    CHECK(error_of_bytes(folder, begin).starts_with(pickled));
  const std::string text = error_of_bytes(folder, "PK\x03\x04");
  CHECK(text.find("x.safetensors', weights_only=True).items()}, '") != text.npos);
  // A header of 640 bytes begins with the same two bytes as pickled data.
  std::string header = "{}";
  header.resize(640, ' ');
  CHECK(error_of_bytes(folder, file_of(header, "")) == "no error");
}
TEST_CASE("files that cannot be read") {
  const Folder folder;
  const auto of = [&](const std::filesystem::path& path) { return error_of<DataError>([&] { SafetensorsFile file(path); }); };
  const auto text = [&](const std::filesystem::path& path, const std::string& fault) {
    return "lrcnn: safetensors file '" + path.string() + "' " + fault;
  };
  const auto missing = folder.path / "missing", pipe = folder.path / "pipe";
  CHECK(of(missing) == text(missing, "cannot be opened: No such file or directory; a safetensors file is a file that can be read; check the path"));
  CHECK(of(folder.path) == text(folder.path, "is a folder; a safetensors file is one file; give the path of a file"));
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(of(pipe) == text(pipe, "is a device or pipe; a safetensors file is one file; give the path of a file"));
  const auto path = write(folder.path / "changes", reference_file());
  const SafetensorsFile file(path);
  CHECK(values_of<float>(file, "b.weight").size() == 3);
  std::filesystem::resize_file(path, 500);
  CHECK(error_of<DataError>([&] { values_of<float>(file, "h"); }) ==
        "lrcnn: file '" + path.string() +
            "' has changed since it was opened; a file stays as it is while it is read; open it again, and let nothing write to it meanwhile");
  const SafetensorsFile gone(write(folder.path / "gone", reference_file()));
  std::filesystem::remove(folder.path / "gone");   // the open file is still there
  CHECK(values_of<float>(gone, "b.weight") == std::vector<float>{0, 1, 2});
}
TEST_CASE("the beginning of a file is checked before the header is read") {
  const Folder folder;
  CHECK(error_of_bytes(folder, "") ==
        damaged("is no safetensors file, or is cut: it has 0 bytes", "eight bytes of length are followed by a JSON object"));
  CHECK(error_of_bytes(folder, "1234567") ==
        damaged("is no safetensors file, or is cut: it has 7 bytes", "eight bytes of length are followed by a JSON object"));
  CHECK(error_of_bytes(folder, length_of(100'000'001) + "{}") ==
        damaged("is no safetensors file, or is damaged: its header has 100000001 bytes", "a header has at most 100000000"));
  CHECK(error_of_bytes(folder, length_of(~0ull) + "{}") ==
        damaged("is no safetensors file, or is damaged: its header has 18446744073709551615 bytes", "a header has at most 100000000"));
  CHECK(error_of_bytes(folder, length_of(3) + "{}") ==
        damaged("is no safetensors file, or is cut: its header has 3 bytes, and 2 follow", "eight bytes of length are followed by the header"));
  const std::string no_object =
      damaged("is no safetensors file, or is damaged: its header does not begin with '{'", "eight bytes of length are followed by a JSON object");
  for (const std::string header : {"", " {}", "[]", "1"}) CHECK(error_of_bytes(folder, file_of(header, "")) == no_object);
  CHECK(error_of_bytes(folder, file_of("{}  \n", "")) == "no error");
  const auto no_json = [](int byte) {
    return damaged("has a header that is no JSON from byte " + std::to_string(byte) + " of the file on", "the header is a JSON object");
  };
  CHECK(error_of_bytes(folder, file_of("{} {", "")) == no_json(12));
  CHECK(error_of_bytes(folder, file_of("{", "")) == no_json(10));
  CHECK(error_of_bytes(folder, file_of(std::string("{}\0", 3), "")) == no_json(11));
  CHECK(error_of_bytes(folder, file_of("{\"\xff\":1}", "")) == no_json(11));
}
TEST_CASE("what an entry says is checked") {
  const Folder folder;
  const std::string form =
      "an entry has 'dtype', a text, 'shape', a list of extents, and 'data_offsets', a list of two offsets, each once, and nothing else";
  const auto entry = [&](const std::string& what) { return damaged("is damaged: the entry of tensor 'a'" + what, form); };
  CHECK(error_of_bytes(folder, one_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})")) == "no error");
  for (const std::string value : {"5", "\"x\"", "null", "[]", "true", "-1", "0.5"})
    CHECK(error_of_bytes(folder, one_entry(value)) == entry(" is no object"));
  CHECK(error_of_bytes(folder, one_entry(R"({"shape":[1],"data_offsets":[0,4]})")) == entry(" has no 'dtype'"));
  CHECK(error_of_bytes(folder, one_entry(R"({"dtype":"F32","data_offsets":[0,4]})")) == entry(" has no 'shape'"));
  CHECK(error_of_bytes(folder, one_entry(R"({"dtype":"F32","shape":[1]})")) == entry(" has no 'data_offsets'"));
  CHECK(error_of_bytes(folder, one_entry(R"({"dtype":"F32","shape":[1],"more":1})")) == entry(" has 'more'"));
  CHECK(error_of_bytes(folder, one_entry(R"({"dtype":"F32","dtype":"F32"})")) == entry(" has 'dtype' twice"));
  for (const std::string value : {"5", "null", "[1]", "{}"})
    CHECK(error_of_bytes(folder, one_entry(R"({"dtype":)" + value + "}")) == entry(" has something else in 'dtype'"));
  for (const std::string value : {"5", "\"x\"", "[-1]", "[1.5]", "[[1]]", "[\"1\"]", "[99999999999999999999]", "[{}]", "{}", "[true]"})
    CHECK(error_of_bytes(folder, one_entry(R"({"shape":)" + value + "}")) == entry(" has something else in 'shape'"));
  for (const int count : {0, 1, 3})
    CHECK(error_of_bytes(folder, one_entry(R"({"data_offsets":[)" +
                                           std::string(count == 3   ? "0,4,8"
                                                       : count == 1 ? "0"
                                                                    : "") +
                                           "]}")) == entry(" has " + std::to_string(count) + " offsets"));
  CHECK(error_of_bytes(folder, one_entry(R"({"shape":[9223372036854775808]})")) ==
        damaged("is damaged: the entry of tensor 'a' has the number 9223372036854775808 in 'shape'", "extents and offsets are below 2^63"));
  CHECK(error_of_bytes(folder, file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{}})", "1234")) ==
        damaged("has two entries of the name 'a'", "names are unique"));
  CHECK(error_of_bytes(folder, file_of(R"({"__metadata__":{"x":1}})", "")) ==
        damaged("has something else than a text in '__metadata__'", "metadata are pairs of texts"));
  CHECK(error_of_bytes(folder, file_of(R"({"__metadata__":[]})", "")) ==
        damaged("has something else than an object as '__metadata__'", "metadata are pairs of texts"));
  std::string nested = "{\"a\":{\"shape\":";
  nested.append(1'000'000, '[');
  CHECK(error_of_bytes(folder, file_of(nested, "")) == entry(" has something else in 'shape'"));
}
TEST_CASE("types, shapes and offsets have to agree, and tensors cover the data") {
  const Folder folder;
  const auto tensor = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return "{\"dtype\":\"" + type + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets + "]}";
  };
  const auto two = [&](const std::string& first, const std::string& second) {
    return file_of("{\"a\":" + tensor("F32", "1", first) + ",\"b\":" + tensor("F32", "1", second) + "}", "12345678");
  };
  CHECK(error_of_bytes(folder, two("0,4", "4,8")) == "no error");
  CHECK(error_of_bytes(folder, two("4,8", "0,4")) == "no error");   // entries may be in any order
  const std::string cover = "tensors lie one behind the other and fill the file";
  CHECK(error_of_bytes(folder, two("0,4", "2,6")) ==
        damaged("is damaged: tensor 'b' begins at byte 2 of the data, before tensor 'a' ends at byte 4", cover));
  CHECK(error_of_bytes(folder, two("0,4", "0,4")) ==
        damaged("is damaged: tensor 'b' begins at byte 0 of the data, before tensor 'a' ends at byte 4", cover));
  CHECK(error_of_bytes(folder, two("0,4", "6,10")) ==
        damaged("is damaged: tensor 'b' begins at byte 6 of the data, and nothing is said of the 2 bytes before it", cover));
  CHECK(error_of_bytes(folder, file_of("{\"a\":" + tensor("F32", "3", "0,12") + "}", "12345678")) ==
        damaged("is cut: tensor 'a' ends at byte 12 of the data, the file at byte 8", cover));
  CHECK(error_of_bytes(folder, file_of("{\"a\":" + tensor("F32", "1", "0,4") + "}", "12345678")) ==
        damaged("has 4 bytes behind its last tensor", cover));
  CHECK(error_of_bytes(folder, file_of("{}", "1")) == damaged("has 1 bytes behind its last tensor", cover));
  CHECK(error_of_bytes(folder, one_entry(tensor("F32", "1", "4,0"))) ==
        damaged("is damaged: tensor 'a' begins at byte 4 and ends at byte 0", "offsets are in order"));
  const std::string sizes = "type and shape say how many there are";
  CHECK(error_of_bytes(folder, one_entry(tensor("F32", "2", "0,4"))) == damaged("is damaged: tensor 'a' F32 [2] has 4 bytes", sizes));
  CHECK(error_of_bytes(folder, one_entry(tensor("F4", "7", "0,4"))) == damaged("is damaged: tensor 'a' F4 [7] has 4 bytes", sizes));
  CHECK(error_of_bytes(folder, one_entry(tensor("F4", "8", "0,4"))) == "no error");   // a tensor that nobody asks for may be of any type
  CHECK(error_of_bytes(folder, one_entry(tensor("F31", "1", "0,4"))) ==
        damaged("is damaged: tensor 'a' is of type 'F31'", "types are those of the format, such as F32"));
  const std::string many = "9223372036854775807,9223372036854775807";
  CHECK(error_of_bytes(folder, one_entry(tensor("F32", many, "0,4"))) ==
        damaged("is damaged: tensor 'a' [" + many + "] has more elements than can be counted", "a tensor lies within the file"));
  CHECK(error_of_bytes(folder, one_entry(tensor("F32", "0," + many, "0,0"))) == damaged("has 4 bytes behind its last tensor", cover));
}
TEST_CASE("tensors are read as a whole, as numbers that are floating-point") {
  const Folder folder;
  const auto path = write(folder.path / "x", reference_file());
  const SafetensorsFile file(path);
  std::vector<float> two(2), one(1);
  CHECK(error_of<ShapeError>([&] { file.read(2, std::span(two)); }) ==
        "lrcnn: tensor 'b.weight' [3] is read into 2 elements; a tensor is read as a whole; give it 3 elements");
  CHECK(error_of<DataError>([&] { file.read(0, std::span(one)); }) ==
        "lrcnn: tensor 'a' of safetensors file '" + path.string() +
            "' is of type I64; parameters are F64, F32, F16 or BF16; convert it to one of "
            "these before it is saved");
}
TEST_CASE("a tensor without elements has none, however large its other extents") {
  const Folder folder;
  const SafetensorsFile file(
      write(folder.path / "none", file_of(R"({"z":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904,0],"data_offsets":[0,0]}})", "")));
  CHECK(file.tensors()[0].count() == 0);
  CHECK(values_of<float>(file, "z").empty());
}
TEST_CASE("a double that a float cannot hold is an error, and infinities are themselves") {
  const Folder folder;
  const std::array<double, 3> values{1e300, std::numeric_limits<double>::infinity(), -0.5};
  const auto bytes = std::as_bytes(std::span(values));
  write_safetensors(folder.path / "x",
                    std::vector<NamedTensor>{{"large", {1}, TensorType::f64, bytes.first(8)}, {"good", {2}, TensorType::f64, bytes.subspan(8)}});
  const SafetensorsFile file(folder.path / "x");
  CHECK(values_of<double>(file, "large") == std::vector<double>{1e300});
  CHECK(values_of<float>(file, "good") == std::vector<float>{std::numeric_limits<float>::infinity(), -0.5f});
  CHECK(error_of<DataError>([&] { values_of<float>(file, "large"); }) ==
        "lrcnn: tensor 'large' of safetensors file '" + (folder.path / "x").string() +
            "' has an element 1e+300, which F32 cannot hold; a finite number stays finite; load it into a network that computes in F64, or look at "
            "what was saved");
}
TEST_CASE("what cannot be written leaves the old file as it was") {
  const Folder folder;
  const auto path = write(folder.path / "x", reference_file());
  const auto before = file_bytes(path);
  const float value = 1;
  const auto bytes = std::as_bytes(std::span(&value, 1));
  const std::string who = "safetensors file '" + path.string() + "'";
  const auto of = [&](const std::vector<NamedTensor>& tensors) { return error_of([&] { write_safetensors(path, tensors); }); };
  CHECK(of({{"a", {1}, TensorType::f32, bytes}, {"a", {}, TensorType::f32, bytes}}) ==
        "lrcnn: " + who + " cannot be written: two entries would have the name 'a'; names are unique; name the tensor otherwise");
  CHECK(of({{"__metadata__", {1}, TensorType::f32, bytes}}) ==
        "lrcnn: " + who + " cannot be written: two entries would have the name '__metadata__'; names are unique; name the tensor otherwise");
  CHECK(of({{"a", {2}, TensorType::f32, bytes}}) ==
        "lrcnn: tensor 'a' F32 [2] for " + who + " has 4 bytes; type and shape say how many there are; give it all its elements");
  CHECK(of({{"\xff", {1}, TensorType::f32, bytes}}) ==
        "lrcnn: " + who + " cannot be written: a name or text in it is not UTF-8; JSON is UTF-8; choose another name");
  CHECK(
      of({{std::string(100'000'000, 'a'), {1}, TensorType::f32, bytes}}).starts_with("lrcnn: " + who + " cannot be written: its header has 1000000"));
  CHECK(file_bytes(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}
