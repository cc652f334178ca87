// Tensors as a folder of .npy files.
#include <lrcnn/interop/npy_folder.hpp>
#include <doctest/doctest.h>
#include <fstream>
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_test_npy_folder_" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};
void write_npy(const std::filesystem::path& path, const NpyHeader& header) {
  std::ofstream(path, std::ios::binary) << npy_header_bytes(header) << std::string(static_cast<std::size_t>(header.data_bytes()), '\1');
}
}   // namespace
TEST_CASE("tensors are written as numpy.save does, and read again") {
  const Folder folder;
  const std::vector<float> w{1, -2, 0.5f, 3, 4, 5};
  const std::vector<double> b{0.1};
  const std::vector<float16> h{float16(2.5f), float16(-1)};
  const std::int64_t n = 7;
  write_npy_folder(folder.path / "net", std::vector<NamedTensor>{{"fc.weight", {2, 3}, TensorType::f32, std::as_bytes(std::span(w))},
                                                                 {"fc.bias", {1}, TensorType::f64, std::as_bytes(std::span(b))},
                                                                 {"h", {2}, TensorType::f16, std::as_bytes(std::span(h))},
                                                                 {"bn.num_batches_tracked", {}, TensorType::i64, std::as_bytes(std::span(&n, 1))}});
  // What numpy 2.4.6 writes of numpy.array([[1, -2, 0.5], [3, 4, 5]], numpy.float32).
  std::string saved =
      "\x93NUMPY\x01" + std::string(1, '\0') + "v" + std::string(1, '\0') + "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  saved.resize(127, ' ');
  saved += '\n';
  saved.append(reinterpret_cast<const char*>(w.data()), 24);
  const auto bytes = file_bytes(folder.path / "net" / "fc.weight.npy");
  CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == saved);
  std::ofstream(folder.path / "net" / "readme.txt") << "no tensor";
  const NpyFolder read(folder.path / "net");
  CHECK(read.description() == "folder '" + (folder.path / "net").string() + "'");
  REQUIRE(read.tensors().size() == 4);
  const std::array<std::pair<std::string, std::string>, 4> want{
      {{"bn.num_batches_tracked", "int64"}, {"fc.bias", "F64"}, {"fc.weight", "F32"}, {"h", "F16"}}};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(read.tensors()[i].name == want[i].first);
    CHECK(read.tensors()[i].type == want[i].second);
  }
  std::vector<float> values(6), one(1), two(2);
  read.read(2, std::span(values));
  CHECK(values == w);
  read.read(1, std::span(one));
  CHECK(one[0] == 0.1f);
  read.read(3, std::span(two));
  CHECK(two == std::vector<float>{2.5f, -1});
  CHECK(read.tensors()[0].shape.empty());
}
TEST_CASE("arrays that are not read say why, and a file that changes is noticed") {
  const Folder folder;
  write_npy(folder.path / "a.npy", {.bytes = 4, .big_endian = true, .shape = {2}});
  write_npy(folder.path / "b.npy", {.bytes = 8, .fortran_order = true, .shape = {2, 2}});
  write_npy(folder.path / "c.npy", {.bytes = 4, .fortran_order = true, .shape = {2}});
  write_npy(folder.path / "d.npy", {.kind = 'u', .bytes = 1, .shape = {2}});
  const NpyFolder read(folder.path);
  REQUIRE(read.tensors().size() == 4);
  CHECK(read.tensors()[0].type == "big-endian float32");
  CHECK(read.tensors()[1].type == "float64 in Fortran order");
  CHECK(read.tensors()[2].type == "F32");
  CHECK(read.tensors()[3].type == "uint8");
  std::vector<float> two(2);
  CHECK(error_of<DataError>([&] { read.read(0, std::span(two)); }) ==
        "lrcnn: tensor 'a' of folder '" + folder.path.string() +
            "' is of type big-endian float32; parameters are F64, F32, F16 or BF16; convert it to one of these before it is saved");
  read.read(2, std::span(two));
  write_npy(folder.path / "c.npy", {.bytes = 8, .shape = {2}});
  CHECK(error_of<DataError>([&] { read.read(2, std::span(two)); }) ==
        "lrcnn: file '" + (folder.path / "c.npy").string() +
            "' has changed since it was opened; a file stays as it is while it is read; open it again, and let nothing write to it meanwhile");
  std::ofstream(folder.path / "e.npy") << "x";
  CHECK(error_of<DataError>([&] { NpyFolder again(folder.path); }) ==
        "lrcnn: file '" + (folder.path / "e.npy").string() + "' is no .npy file; those begin with the byte 0x93 and NUMPY; write it with numpy.save");
}
TEST_CASE("folders that cannot be used") {
  const Folder folder;
  const std::string who = "lrcnn: folder '" + folder.path.string();
  CHECK(error_of<DataError>([&] { NpyFolder none(folder.path / "none"); }) ==
        who + "/none' cannot be read: No such file or directory; it has a .npy file for each tensor; check the path and its permissions");
  CHECK(error_of<DataError>([&] { NpyFolder empty(folder.path); }) == who + "' has no .npy files; it has one for each tensor; check the path");
  const float one = 1;
  const auto bytes = std::as_bytes(std::span(&one, 1));
  const auto of = [&](const std::filesystem::path& path, const NamedTensor& tensor) {
    return error_of<DataError>([&] { write_npy_folder(path, std::span(&tensor, 1)); });
  };
  const auto to = folder.path / "new";
  CHECK(of(to, {"a/b", {}, TensorType::f32, bytes}) ==
        "lrcnn: tensor 'a/b' cannot be written to folder '" + to.string() + "'; its name becomes that of a file; choose another name");
  CHECK(of(to, {"", {}, TensorType::f32, bytes}) ==
        "lrcnn: tensor '' cannot be written to folder '" + to.string() + "'; its name becomes that of a file; choose another name");
  CHECK(of(to, {"a", {2}, TensorType::bf16, bytes}) == "lrcnn: tensor 'a' cannot be written to folder '" + to.string() +
                                                           "': it is BF16; NumPy has float16, float32 and float64; save in one of these types");
  CHECK(error_of<ShapeError>([&] {
          write_npy_folder(to, std::vector<NamedTensor>{{"a", {2}, TensorType::f32, bytes}});
        }) ==
        "lrcnn: tensor 'a' F32 [2] for folder '" + to.string() + "' has 4 bytes; type and shape say how many there are; give it all its elements");
  CHECK(error_of<DataError>([&] {
          write_npy_folder(to, std::vector<NamedTensor>{{"a", {}, TensorType::f32, bytes}, {"a", {}, TensorType::f32, bytes}});
        }) == "lrcnn: folder '" + to.string() + "' cannot be written: two tensors have the name 'a'; names are unique; name one otherwise");
  CHECK(of(folder.path / "no" / "such", {"a", {}, TensorType::f32, bytes})
            .starts_with("lrcnn: file '" + (folder.path / "no" / "such").string() + "' cannot be written: No such file or directory"));
  CHECK(of(to, {std::string(300, 'a'), {}, TensorType::f32, bytes}).find("cannot be written: File name too long") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path));
  std::filesystem::create_directory(to);   // an empty one may be there
  CHECK(of(to, {"a", {}, TensorType::f32, bytes}) == "no error");
  CHECK(of(to, {"a", {}, TensorType::f32, bytes}) ==
        "lrcnn: folder '" + to.string() +
            "' is there already; weights go to a new folder, so that nothing of another network is among them; choose another name, or remove it");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  CHECK(of(folder.path / "slash" / "", {"a", {}, TensorType::f32, bytes}) == "no error");
  CHECK(NpyFolder(folder.path / "slash").tensors().size() == 1);
}
