#include <lrcnn/train/training_file.hpp>
#include <doctest/doctest.h>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <unistd.h>
#include "support/file_bytes.hpp"
using namespace lrcnn;
using lrcnn::testing::file_bytes;
namespace {
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_test_training_file_" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};
using Bytes = std::vector<std::byte>;
void write(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
/// Makes size and checksum right again after a test changed something else.
void seal(Bytes& bytes) {
  const std::uint64_t size = bytes.size();
  for (std::size_t i = 0; i < 8; ++i) bytes[12 + i] = static_cast<std::byte>(size >> 8 * i);
  const auto crc = crc32c(std::span<const std::byte>(bytes).first(bytes.size() - 4));
  for (std::size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<std::byte>(crc >> 8 * i);
}
std::vector<Parameter> layout() {
  return {{.name = "conv1.weight", .shape = {.extents = {4, 3, 3, 3}}, .offset = 0, .layer = 0},
          {.name = "conv1.bias", .shape = {.extents = {4, 1, 1, 1}}, .offset = 112, .layer = 0},
          {.name = "linear1.weight", .shape = {.extents = {10, 4, 1, 1}}, .offset = 116, .layer = 3}};
}
constexpr std::size_t elements = 156;
const Optimizer adamw = AdamW{.lr = 0.1 + 0.2, .decay = Decay::marked};
TrainingState state() {
  return {.fingerprint = "conv1 relu linear1",
          .optimizer = adamw,
          .step = 12345678901,
          .updates = 12345678900,
          .epoch = 3,
          .batch = 17,
          .seed = 0xfedcba9876543210,
          .metrics = {0.1, 640, 321, 123.5},
          .notes = {{"schedule", "CosineLr{}"}, {"empty", ""}, {"", "no key"}}};
}
template <class T>
struct Buffers {
  std::vector<T> parameters = std::vector<T>(elements), states;
  explicit Buffers(const Optimizer& o, T seed) : states(elements * static_cast<std::size_t>(o.state_count())) {
    for (std::size_t i = 0; i < elements; ++i) parameters[i] = std::sin(seed + static_cast<T>(i));
    for (std::size_t i = 0; i < states.size(); ++i) states[i] = std::cos(seed + static_cast<T>(i));
  }
  friend bool operator==(const Buffers&, const Buffers&) = default;
};
template <class T>
void save(const std::filesystem::path& path, const Buffers<T>& b, const TrainingState& s = state()) {
  save_training_file<T>(path, s, layout(), b.parameters, b.states);
}
template <class T>
TrainingState load(const std::filesystem::path& path, Buffers<T>& b, const Optimizer& o = adamw) {
  return load_training_file<T>(path, state().fingerprint, layout(), o, b.parameters, b.states);
}
template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}
/// Loads a file that must be refused, and checks that nothing was touched. Returns the message.
std::string refusal(const std::filesystem::path& path, const std::function<TrainingState(Buffers<float>&)>& with) {
  Buffers<float> mine(adamw, 77);
  const Buffers<float> before = mine;
  std::string message;
  try {
    with(mine);
  } catch (const DataError& e) {
    message = e.what();
  }
  CHECK(mine == before);
  const std::string name = path.string();
  const auto at = message.find(name);
  return at == std::string::npos ? message : message.replace(at, name.size(), "F");
}
std::string refusal(const std::filesystem::path& path) {
  return refusal(path, [&](Buffers<float>& b) { return load(path, b); });
}
}   // namespace
TEST_CASE_TEMPLATE("a training's state comes back bit by bit", T, float, double) {
  const Folder folder;
  const auto path = folder.path / "state";
  Buffers<T> saved(adamw, 1);
  saved.parameters[0] = std::numeric_limits<T>::quiet_NaN();
  saved.parameters[1] = T(-0.0);
  saved.parameters[2] = std::numeric_limits<T>::denorm_min();
  saved.states[200] = -std::numeric_limits<T>::infinity();
  save(path, saved);
  Buffers<T> loaded(adamw, 2);
  const auto gap = loaded.parameters[110];
  CHECK(load(path, loaded) == state());
  const auto all = layout();
  for (const Parameter& p : all)
    for (std::size_t i = 0; i < 3; ++i) {
      const auto at = [&](const Buffers<T>& b) {
        return elements_of(p, i == 0 ? std::span<const T>(b.parameters) : std::span<const T>(b.states).subspan((i - 1) * elements, elements));
      };
      CHECK(same_bits(at(saved), at(loaded)));
    }
  CHECK(loaded.parameters[110] == gap);
  const Bytes first = file_bytes(path);
  save(path, loaded);
  CHECK(file_bytes(path) == first);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);   // nothing is left behind
}
TEST_CASE("every optimizer comes back with its settings and states") {
  const Folder folder;
  const auto path = folder.path / "state";
  for (const Optimizer& o :
       {Optimizer(Sgd{.lr = 0.1}), Optimizer(Sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true}), Optimizer(AdamW{.beta1 = 0.85})}) {
    TrainingState s = state();
    s.optimizer = o;
    const Buffers<float> saved(o, 1);
    save(path, saved, s);
    Buffers<float> loaded(o, 2);
    CHECK(load(path, loaded, o).optimizer == o);
    CHECK(loaded.states.size() == saved.states.size());
  }
  Buffers<float> other(adamw, 2);
  CHECK(load(path, other, AdamW{.lr = 1}).optimizer == Optimizer(AdamW{.beta1 = 0.85}));   // settings may differ
}
TEST_CASE("values are found by name and shape, wherever they lie in memory") {
  const Folder folder;
  const auto path = folder.path / "state";
  const Buffers<float> saved(adamw, 1);
  save(path, saved);
  auto dense = layout();
  dense[1].offset = 108, dense[2].offset = 112;
  std::vector<float> parameters(152), states(304);
  load_training_file<float>(path, state().fingerprint, dense, adamw, parameters, states);
  CHECK(std::equal(parameters.begin(), parameters.begin() + 108, saved.parameters.begin()));
  CHECK(std::equal(parameters.begin() + 108, parameters.end(), saved.parameters.begin() + 112));
  CHECK(std::equal(states.begin() + 152 + 108, states.end(), saved.states.begin() + elements + 112));
}
TEST_CASE("the first bytes stay what they are") {
  const Folder folder;
  const auto path = folder.path / "state";
  save(path, Buffers<float>(adamw, 1));
  const Bytes bytes = file_bytes(path);
  const auto byte = [&](std::size_t i) { return static_cast<int>(bytes[i]); };
  const int magic[] = {0x89, 'L', 'R', 'C', 'N', 'N', '\r', '\n', 2, 0, 0, 0};
  for (std::size_t i = 0; i < 12; ++i) CHECK(byte(i) == magic[i]);
  CHECK(static_cast<std::size_t>(byte(12) + 256 * byte(13)) == bytes.size());
  CHECK(bytes.size() == 12 + 8 + (4 + version().size()) + (4 + 18) + (4 + 7) +           // prologue, three texts
                            4 + (4 + 12 + 32) + (4 + 10 + 32) + (4 + 14 + 32) +          // parameters
                            (4 + 5) + 4 + (6 * (4 + 8) + 2 + 5 + 5 + 7 + 12 + 5) + 4 +   // optimizer
                            9 * 8 + 4 + (4 + 8 + 4 + 10) + (4 + 5 + 4) + (4 + 4 + 6) +   // counters, notes
                            3 * 152 * 4 + 4);
}
TEST_CASE("a file can be inspected without its network") {
  const Folder folder;
  const auto path = folder.path / "state";
  save(path, Buffers<double>(adamw, 1));
  const TrainingFileInfo info = inspect_training_file(path);
  CHECK(info.state == state());
  CHECK(info.state.library_version == version());
  CHECK(info.element == "float64");
  CHECK(info.parameters.size() == 3);
  CHECK(info.parameters[2].name == "linear1.weight");
  CHECK(extents_text(info.parameters[2].shape) == "[10,4]");
}
TEST_CASE("a missing file, a directory and an empty file are refused") {
  const Folder folder;
  const auto path = folder.path / "state";
  CHECK(refusal(path) == "lrcnn: training file 'F' does not exist; it is read as a whole; check the path, or save it first");
  std::filesystem::create_directory(path);
  CHECK(refusal(path) == "lrcnn: training file 'F' is a directory; it must be a file; check the path");
  std::filesystem::remove(path);
  CHECK(refusal("/dev/null") == "lrcnn: training file 'F' is a device or pipe; it must be a file; check the path");
  write(path, {});
  CHECK(refusal(path) == "lrcnn: training file 'F' is empty; a training file has at least a header; take an older copy");
}
TEST_CASE("a file that is something else is refused") {
  const Folder folder;
  const auto path = folder.path / "state";
  const std::string text = "epoch,steps,lr\n1,938,0.05\n";
  write(path, Bytes(std::as_bytes(std::span(text)).begin(), std::as_bytes(std::span(text)).end()));
  CHECK(refusal(path) ==
        "lrcnn: training file 'F' is not a training file; it does not start with the magic number of one; "
        "name a file that save wrote");
  std::error_code unsupported;
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40, unsupported);   // sparse, and far too large to be read
  CHECK(refusal(path).find("is not a training file") != std::string::npos);
}
TEST_CASE("a file that is cut anywhere is refused") {
  const Folder folder;
  const auto path = folder.path / "state", cut = folder.path / "cut";
  save(path, Buffers<float>(adamw, 1));
  const Bytes bytes = file_bytes(path);
  const std::string change = "a training file is used whole or not at all; take an older copy, or copy it again";
  for (std::size_t size = 1; size < bytes.size(); size += size < 400 ? 1 : 97) {
    write(cut, Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    const std::string of = size < 24 ? "at least 24" : std::to_string(bytes.size());
    CHECK(refusal(cut) == "lrcnn: training file 'F' is cut: it holds " + std::to_string(size) + " of " + of + " bytes; " + change);
  }
  Bytes more = bytes;
  more.resize(more.size() + 3);
  write(cut, more);
  CHECK(refusal(cut) == "lrcnn: training file 'F' is damaged: 3 bytes follow its end; " + change);
}
TEST_CASE("a file with any damaged bit is refused") {
  const Folder folder;
  const auto path = folder.path / "state", hurt = folder.path / "hurt";
  save(path, Buffers<float>(adamw, 1));
  Bytes bytes = file_bytes(path);
  for (std::size_t i = 0; i < bytes.size(); i += i < 600 ? 1 : 13) {
    bytes[i] ^= std::byte{1} << i % 8;
    write(hurt, bytes);
    const std::string message = refusal(hurt);
    if (i < 8) CHECK(message.find("is not a training file") != std::string::npos);
    else if (i < 12 || i >= 20)
      CHECK(message ==
            "lrcnn: training file 'F' is damaged: its checksum does not match; a training file is used whole "
            "or not at all; take an older copy, or copy it again");
    else CHECK_FALSE(message.empty());
    bytes[i] ^= std::byte{1} << i % 8;
  }
}
TEST_CASE("a file of another format version is refused, whatever follows the prologue") {
  const Folder folder;
  const auto path = folder.path / "state";
  Bytes bytes(40);
  save(path, Buffers<float>(adamw, 1));
  const Bytes whole = file_bytes(path);
  std::copy_n(whole.begin(), 20, bytes.begin());
  bytes[8] = std::byte{3};
  seal(bytes);
  write(path, bytes);
  CHECK(refusal(path) == "lrcnn: training file 'F' has format version 3; lrcnn " + version() +
                             " reads versions 1 and 2; load it with the version of lrcnn that wrote it");
}
TEST_CASE("a file of the first format is read: every image of its metrics weighs 1") {
  const Folder folder;
  const auto path = folder.path / "state";
  const Buffers<float> saved(adamw, 1);
  save(path, saved);
  Bytes bytes = file_bytes(path);
  const TrainingState now = inspect_training_file(path).state;
  REQUIRE(now.metrics.images > 0);
  std::vector<std::byte> weight(8);
  std::memcpy(weight.data(), &now.metrics.weight, 8);
  const auto notes = std::search(bytes.begin(), bytes.end(), weight.begin(), weight.end());   // the metrics' weight stands before the notes
  REQUIRE(notes != bytes.end());
  bytes.erase(notes, notes + 8);
  bytes[8] = std::byte{1};
  seal(bytes);
  write(path, bytes);
  TrainingState then = inspect_training_file(path).state;
  CHECK(then.metrics.weight == static_cast<double>(then.metrics.images));
  then.metrics.weight = now.metrics.weight;
  CHECK(then == now);
}
TEST_CASE("a file of another network is refused and the first difference named") {
  const Folder folder;
  const auto path = folder.path / "state";
  save(path, Buffers<float>(adamw, 1));
  const auto with = [&](const std::vector<Parameter>& mine, std::string_view fingerprint) {
    return refusal(path, [&](Buffers<float>& b) { return load_training_file<float>(path, fingerprint, mine, adamw, b.parameters, b.states); });
  };
  const std::string start = "lrcnn: training file 'F' is of another network: ";
  const std::string end = "; names and shapes of all parameters must be the same; load it into the network that saved it";
  auto mine = layout();
  mine[1].name = "conv1.scale";
  CHECK(with(mine, state().fingerprint) == start + "parameter 2 is 'conv1.bias' [4] in the file and 'conv1.scale' [4] in this network" + end);
  mine = layout();
  mine[0].shape.extents = {4, 1, 3, 3};
  mine[2].name = "fc.weight";
  CHECK(with(mine, state().fingerprint) ==
        start + "parameter 1 is 'conv1.weight' [4,3,3,3] in the file and 'conv1.weight' [4,1,3,3] in this network" + end);
  mine = layout();
  mine.pop_back();
  CHECK(with(mine, state().fingerprint) == start + "parameter 3 is 'linear1.weight' [10,4] in the file and no parameter in this network" + end);
  mine = layout();
  mine.push_back({.name = "linear1.bias", .shape = {.extents = {10, 1, 1, 1}}, .offset = 0});
  CHECK(with(mine, state().fingerprint) == start + "parameter 4 is no parameter in the file and 'linear1.bias' [10] in this network" + end);
  CHECK(with(layout(), "conv1 silu linear1") ==
        start +
            "the parameters are the same, but what is between them is not (fingerprint 'conv1 relu linear1' in the "
            "file, 'conv1 silu linear1' here)"
            "; layers without parameters, and the options of all layers, must be the same, too; load it into the network that saved it");
}
TEST_CASE("a file of another element type or optimizer is refused") {
  const Folder folder;
  const auto path = folder.path / "state";
  save(path, Buffers<double>(adamw, 1));
  CHECK(refusal(path) ==
        "lrcnn: training file 'F' holds float64 values; this training computes in float32; load it into a "
        "Trainer of the file's element type");
  TrainingState s = state();
  const Sgd plain{.lr = 0.1}, heavy{.lr = 0.1, .momentum = 0.9};
  s.optimizer = plain;
  save(path, Buffers<float>(plain, 1), s);
  const std::string end = ", whose states differ; continue with the optimizer of the file";
  CHECK(refusal(path) == "lrcnn: training file 'F' was saved with " + to_string(plain) + "; this training has " + to_string(adamw) + end);
  Buffers<float> b(heavy, 1);
  CHECK_THROWS_WITH_AS(
      load(path, b, heavy),
      ("lrcnn: training file '" + path.string() + "' was saved with " + to_string(plain) + "; this training has " + to_string(heavy) + end).c_str(),
      DataError);
}
TEST_CASE("contents that cannot be are refused even with a right checksum") {
  const Folder folder;
  const auto path = folder.path / "state";
  save(path, Buffers<float>(adamw, 1));
  const Bytes good = file_bytes(path);
  const std::size_t texts = 20, count = texts + 4 + version().size() + 22 + 11, name = count + 4, extents = name + 16;
  const std::size_t optimizer = extents + 32 + 46 + 50;
  const auto with = [&](std::size_t at, int value) {
    Bytes bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    seal(bytes);
    write(path, bytes);
    return refusal(path);
  };
  const std::string end = "; its checksum is right, so it was written like this; save it again with this library";
  const auto at = [](std::size_t i) { return "lrcnn: training file 'F' is malformed at byte " + std::to_string(i) + ": "; };
  CHECK(with(texts + 3, 0xff) == at(texts + 4) + "an entry leads beyond the end" + end);
  CHECK(with(extents + 7, 0x80) == at(extents + 8) + "extent -9223372036854775804 of 'conv1.weight'" + end);
  CHECK(with(extents + 7, 0x10) == at(extents + 8) + "extent 1152921504606846980 of 'conv1.weight'" + end);
  CHECK(with(extents, 5).find("it does not hold as many values as its parameters have" + end) != std::string::npos);
  CHECK(with(count + 3, 1).find("is malformed") != std::string::npos);
  CHECK(with(optimizer + 4, 'B').starts_with("lrcnn: training file 'F' was saved with BdamW{.lr = "));
  CHECK(with(optimizer + 4 + 5 + 4 + 4, 'm').find("setting 'lr' of AdamW is missing" + end) != std::string::npos);
  CHECK(with(optimizer + 4 + 5 + 4 + 6 + 7, 0xff).find("AdamW with .lr = -") != std::string::npos);
  CHECK(with(optimizer + 9 + 4 + 108 - 1, 0x40).find("setting 'decay' of AdamW is 65536") != std::string::npos);
  CHECK(with(name - 11, 'g').find("element type 'gloat32' is not known") != std::string::npos);
}
TEST_CASE("any changed byte is refused or harmless, never an access out of bounds") {
  const Folder folder;
  const auto path = folder.path / "state";
  save(path, Buffers<float>(adamw, 1));
  const Bytes good = file_bytes(path);
  for (std::size_t i = 20; i < 700; ++i)
    for (const int value : {0x00, 0x01, 0x7f, 0xff}) {
      Bytes bytes = good;
      bytes[i] = static_cast<std::byte>(value);
      seal(bytes);
      write(path, bytes);
      Buffers<float> b(adamw, 2);
      try {
        load(path, b);
      } catch (const DataError&) {
      }
    }
}
TEST_CASE("a file that cannot be written is an error, and the old one stays") {
  const Folder folder;
  const auto missing = folder.path / "missing" / "state";
  const Buffers<float> b(adamw, 1);
  const auto failure = [&](const std::filesystem::path& to) -> std::string {
    try {
      save(to, b);
    } catch (const DataError& e) {
      return e.what();
    }
    return {};
  };
  const std::string message = failure(missing);   // the whole text is tested with write_file_atomically
  CHECK(message.find("lrcnn: file '" + missing.string() + "' cannot be written: No such file or directory; ") == 0);
  CHECK(message.find("; create its folder, or choose another path") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path / "missing"));
  const auto path = folder.path / "state";
  save(path, b);
  const Bytes before = file_bytes(path);
  CHECK(failure(path / "state").find("cannot be written: Not a directory") != std::string::npos);
  CHECK(failure(folder.path).find("cannot be written: Is a directory") != std::string::npos);
  CHECK(file_bytes(path) == before);
  if (::geteuid() == 0) return;   // root may write everywhere
  std::filesystem::permissions(folder.path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  CHECK(failure(folder.path / "new").find("cannot be written: Permission denied") != std::string::npos);
  std::filesystem::permissions(folder.path, std::filesystem::perms::owner_all);
}
TEST_CASE("buffers of the wrong size are refused") {
  const Folder folder;
  const auto path = folder.path / "state";
  const Buffers<float> b(adamw, 1);
  CHECK_THROWS_WITH_AS(save_training_file<float>(path, state(), layout(), b.parameters, b.parameters),
                       "lrcnn: saving 156 elements of optimizer state for 156 parameters; AdamW has 2 states, each of the "
                       "size of the parameters; pass all states, one after another",
                       ShapeError);
  CHECK_FALSE(std::filesystem::exists(path));
  save(path, b);
  std::vector<float> few(100), states(200);
  CHECK_THROWS_WITH_AS(load_training_file<float>(path, state().fingerprint, layout(), adamw, few, states),
                       ("lrcnn: loading training file '" + path.string() +
                        "' into 100 parameters and 200 elements of "
                        "state; the network has 156 and its optimizer 2 states of that size; size the buffers by "
                        "flat_elements and Optimizer::state_count")
                           .c_str(),
                       ShapeError);
}
