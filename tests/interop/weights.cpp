// Parameters from files of tensors and back: names and shapes are PyTorch's, everything that does not fit is in one message, and a failed load
// changes nothing.
#include <lrcnn/interop/npy_folder.hpp>
#include <lrcnn/interop/safetensors.hpp>
#include <lrcnn/interop/weights.hpp>
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
#include <set>
#include <unistd.h>
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lrcnn_test_weights_" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};
/// Tensors in memory as a file.
class Tensors final : public TensorFile {
 public:
  struct Tensor {
    std::string name;
    std::vector<Index> shape;
    float first = 0;   // element i is first + i
    std::string type = "F32";
  };
  explicit Tensors(std::vector<Tensor> list) : list_(std::move(list)) {
    for (const Tensor& t : list_) stored_.push_back({t.name, t.shape, t.type});
  }
  const std::string& description() const override { return name_; }
  std::span<const StoredTensor> tensors() const override { return stored_; }

 private:
  void read_bytes(std::size_t i, Index begin, std::span<std::byte> bytes) const override {
    for (std::size_t at = 0; at < bytes.size(); at += 4) {
      const float value = list_[i].first + static_cast<float>(static_cast<std::size_t>(begin) + at) / 4;
      std::memcpy(bytes.data() + at, &value, 4);
    }
  }
  std::string name_ = "file 'x'";
  std::vector<Tensor> list_;
  std::vector<StoredTensor> stored_;
};
using Net = Sequential<Named<"conv1", Conv<4>>, Named<"bn1", BatchNorm>, ReLU, GlobalAvgPool, Named<"fc", Linear<3>>>;
constexpr Input input{2, 2, 4, 4};
std::vector<Tensors::Tensor> of_net() {
  return {{"conv1.weight", {4, 2, 3, 3}, 0},        {"conv1.bias", {4}, 100},      {"bn1.weight", {4}, 200},   {"bn1.bias", {4}, 300},
          {"bn1.running_mean", {4}, 400},           {"bn1.running_var", {4}, 500}, {"fc.weight", {3, 4}, 600}, {"fc.bias", {3}, 700},
          {"bn1.num_batches_tracked", {}, 0, "I64"}};
}
const std::string the_rest =
    "; each parameter is there once, under its name and in its shape, and nothing else; load it into the network that it is of, or say "
    "which parameters may be missing and which tensors may be left out";
std::vector<float> loaded_into(const TensorFile& file, const WeightOptions& options, WeightReport* report = nullptr) {
  const auto layout = parameters_of(table_of<Net>(input));
  std::vector<float> values(static_cast<std::size_t>(flat_elements(layout)), -1);
  const WeightReport r = read_weights(file, layout, std::span(values), options);
  if (report) *report = r;
  return values;
}
/// Names and shapes of a network's tensors, as weights_of() gives them.
std::map<std::string, std::string> shapes_of(std::span<const Layer> layers, const Input& in, const SaveOptions& options = {}) {
  const Table table = make_table(layers, in);
  const std::vector<float> values(static_cast<std::size_t>(parameter_count(table)));
  std::map<std::string, std::string> shapes;
  for (const NamedTensor& t : weights_of(table, std::span(values), options).tensors)
    CHECK(shapes.emplace(t.name, std::string(type_name(t.type)) + shape_text(t.shape)).second);
  return shapes;
}
}   // namespace
TEST_CASE("every parameter gets its tensor, whatever the order of tensors") {
  auto list = of_net();
  std::reverse(list.begin(), list.end());
  WeightReport report;
  const auto values = loaded_into(Tensors(list), {}, &report);
  const auto layout = parameters_of(table_of<Net>(input));
  for (const auto& t : of_net())
    if (const Parameter* p = find_parameter(layout, t.name))
      for (std::size_t i = 0; i < static_cast<std::size_t>(p->shape.count()); ++i)
        CHECK(elements_of(*p, std::span(values))[i] == t.first + static_cast<float>(i));
  CHECK(report.loaded.size() == 8);
  CHECK(report.missing.empty());
  CHECK(report.superfluous.empty());
  CHECK(report.converted.empty());
  CHECK(to_string(report) == "8 tensors loaded");
}
TEST_CASE("everything that does not fit is in one message, and nothing is changed") {
  auto list = of_net();
  list[0].shape = {4, 3, 3, 3};
  list[2].type = "I32";
  list[6].name = "head.weight", list[7].name = "head.bias";
  list.push_back({"bn2.num_batches_tracked", {}, 0, "I64"});
  Trainer<Net, Policy<Column>, Reference<float>> trainer(input, Sgd{.lr = 0.1});
  const auto before = trainer.read_parameters();
  const Tensors file(list);
  CHECK(error_of<DataError>([&] { load_weights(trainer, file); }) ==
        "lrcnn: file 'x' does not fit this network: 1 parameter has another shape (conv1.weight [4,3,3,3] instead of [4,2,3,3]), 1 parameter is of a "
        "type other than F64, F32, F16 and BF16 (bn1.weight I32), 3 tensors are superfluous (head.weight [3,4], head.bias [3], "
        "bn2.num_batches_tracked []), 2 parameters are missing (fc.weight [3,4], fc.bias [3])" +
            the_rest);
  CHECK(trainer.read_parameters() == before);
  list = of_net();
  list.push_back({"conv1.bias", {4}, 0});
  list.push_back({"conv1.bias", {4}, 0});
  CHECK(error_of<DataError>([&] { loaded_into(Tensors(list), {}); }) ==
        "lrcnn: file 'x' does not fit this network: 2 parameters are there twice (conv1.bias, conv1.bias)" + the_rest);
  CHECK(error_of<DataError>([&] {
          loaded_into(Tensors({}), {});
        }).starts_with("lrcnn: file 'x' does not fit this network: 8 parameters are missing (conv1.weight [4,2,3,3], "));
  std::vector<float> few(5, -1);
  CHECK(
      error_of<ShapeError>([&] { read_weights(Tensors(of_net()), parameters_of(table_of<Net>(input)), std::span(few)); }) ==
      "lrcnn: parameter 'conv1.weight' takes elements 0 to 72 of a buffer of 5; a flat buffer holds every parameter of its network; pass a buffer of "
      "flat_elements(parameters) elements");
  CHECK(few == std::vector<float>(5, -1));
}
TEST_CASE("a new head may be missing or of another shape; what was loaded is frozen") {
  auto list = of_net();
  list[6].shape = {1000, 4}, list[7].name = "head.bias";
  WeightReport report;
  Trainer<Net, Policy<Column>, Reference<float>> first(input, Sgd{.lr = 0.1}, {.seed = 5});
  const auto initial = first.read_parameters();
  report = load_weights(first, Tensors(list), {.allow_missing = {"fc.*"}, .allow_superfluous = {"head.*"}});
  CHECK(report.missing == std::vector<std::string>{"fc.weight", "fc.bias"});
  CHECK(report.superfluous == std::vector<std::string>{"head.bias"});
  CHECK(to_string(report) == "6 tensors loaded; 2 parameters kept their values: fc.weight, fc.bias; 1 tensor left out: head.bias");
  for (const Parameter& p : first.layout())
    if (p.name.starts_with("fc.")) CHECK(std::ranges::equal(elements_of(p, first.parameters()), elements_of(p, std::span(initial))));
  const auto rules = freeze_loaded(report, first.layout());
  CHECK(rules.size() == 4);   // running statistics are no optimizer's
  Trainer<Net, Policy<Column>, Reference<float>> head(input, Sgd{.lr = 0.1}, {.rules = rules});
  head.write_parameters(first.read_parameters());
  const auto before = head.read_parameters();
  const std::vector<float> images(64, 0.5f);
  const std::vector<std::int32_t> labels{0, 2};
  head.step(MemorySource<float>(images.data(), input), labels);
  for (const Parameter& p : head.layout()) {
    CAPTURE(p.name);
    const bool same = std::ranges::equal(elements_of(p, head.parameters()), elements_of(p, std::span(before)));
    CHECK(same == (!p.name.starts_with("fc.") && !p.shape.running));
  }
  CHECK(error_of([&] { loaded_into(Tensors(of_net()), {.allow_missing = {"fc2.*"}}); }) ==
        "lrcnn: the pattern 'fc2.*' of parameters that may be missing fits none; names are like 'conv1.weight'; correct the pattern; '*' stands for "
        "any text");
  // A head that does fit is loaded.
  loaded_into(Tensors(of_net()), {.allow_missing = {"fc.*"}}, &report);
  CHECK(report.missing.empty());
}
TEST_CASE("names may have a prefix, be those of old DenseNets, or come from the program") {
  auto list = of_net();
  for (auto& t : list) t.name = "module." + t.name;
  CHECK(loaded_into(Tensors(list), {.prefix = "module."}) == loaded_into(Tensors(of_net()), {}));
  CHECK(error_of<DataError>([&] {
          loaded_into(Tensors(of_net()), {.prefix = "module."});
        }).find("9 tensors are superfluous (conv1.weight [4,2,3,3], ") != std::string::npos);
  for (auto& t : list) t.name = "module." + t.name.substr(7 + (t.name.find("conv1") == 7 ? 5 : 0));
  list[0].name = "module.stem.weight", list[1].name = "module.stem.bias";
  const ParameterNaming stem = [](const Parameter& p) { return p.name.starts_with("conv1") ? "stem" + p.name.substr(5) : p.name; };
  CHECK(loaded_into(Tensors(list), {.prefix = "module.", .name = stem}) == loaded_into(Tensors(of_net()), {}));
  CHECK(
      error_of([&] { loaded_into(Tensors(list), {.name = [](const Parameter&) { return "w"; }}); }) ==
      "lrcnn: parameters 'conv1.weight' and 'conv1.bias' are both called 'w' in files; names are unique; correct the function that gives the names");
  CHECK(current_name("features.denseblock1.denselayer2.norm.1.running_mean") == "features.denseblock1.denselayer2.norm1.running_mean");
  CHECK(current_name("features.denseblock4.denselayer16.conv.2.weight") == "features.denseblock4.denselayer16.conv2.weight");
  CHECK(current_name("features.norm.1.weight") == "features.norm.1.weight");
  using Dense = Scope<"denselayer1", Sequential<Named<"norm1", BatchNorm>, Named<"conv1", Conv<2>>>>;
  const auto layout = parameters_of(table_of<Dense>(input));
  std::vector<double> values(static_cast<std::size_t>(flat_elements(layout)));
  const WeightReport report = read_weights(Tensors({{"denselayer1.norm.1.weight", {2}},
                                                    {"denselayer1.norm.1.bias", {2}},
                                                    {"denselayer1.norm.1.running_mean", {2}},
                                                    {"denselayer1.norm.1.running_var", {2}},
                                                    {"denselayer1.norm.1.num_batches_tracked", {}},
                                                    {"denselayer1.conv.1.weight", {2, 2, 3, 3}},
                                                    {"denselayer1.conv.1.bias", {2}}}),
                                           layout, std::span(values));
  CHECK(to_string(report) == "6 tensors loaded, 6 of them converted from F32 to F64");
}
TEST_CASE("tensors have PyTorch's names and shapes") {
  CHECK(shapes_of(Net::layers, input, {.prefix = "net."}) == std::map<std::string, std::string>{{"net.conv1.weight", "F32[4,2,3,3]"},
                                                                                                {"net.conv1.bias", "F32[4]"},
                                                                                                {"net.bn1.weight", "F32[4]"},
                                                                                                {"net.bn1.bias", "F32[4]"},
                                                                                                {"net.bn1.running_mean", "F32[4]"},
                                                                                                {"net.bn1.running_var", "F32[4]"},
                                                                                                {"net.bn1.num_batches_tracked", "I64[]"},
                                                                                                {"net.fc.weight", "F32[3,4]"},
                                                                                                {"net.fc.bias", "F32[3]"}});
  // A filter of 1x1 keeps its four extents, a layer with one output its two, but in ConvNeXt, where torchvision has linear layers.
  using Thin = Sequential<Conv<1, Window{.kernel = 1}>, ConvTranspose<3>, GlobalAvgPool, Linear<1>>;
  const auto thin = shapes_of(Thin::layers, input);
  CHECK(thin.at("conv1.weight") == "F32[1,2,1,1]");
  CHECK(thin.at("conv1.bias") == "F32[1]");
  CHECK(thin.at("conv_transpose1.weight") == "F32[1,3,2,2]");
  CHECK(thin.at("linear1.weight") == "F32[1,3]");
  CHECK(thin.at("linear1.bias") == "F32[1]");
  const auto convnext = shapes_of(ConvNeXtTiny<10>::layers, {1, 3, 32, 32});
  CHECK(convnext.size() == 182);   // as in torchvision's state_dict()
  CHECK(convnext.at("features.1.0.block.3.weight") == "F32[384,96]");
  CHECK(convnext.at("features.1.0.block.5.weight") == "F32[96,384]");
  CHECK(convnext.at("features.1.0.block.0.weight") == "F32[96,1,7,7]");
  CHECK(convnext.at("features.7.2.layer_scale") == "F32[768,1,1]");
  CHECK(convnext.at("classifier.2.weight") == "F32[10,768]");
  const auto vgg = shapes_of(Sequential<VggTrunk<1, 1, 2, 2, 2>, VggHead<10, 64>>::layers, {1, 3, 32, 32}, {.name = torchvision_vgg_name});
  std::set<std::string> names;
  for (const auto& [name, shape] : vgg) names.insert(name);
  std::set<std::string> want;
  for (const int i : {0, 3, 6, 8, 11, 13, 16, 18}) want.insert("features." + std::to_string(i));
  for (const int i : {0, 3, 6}) want.insert("classifier." + std::to_string(i));
  std::set<std::string> both;
  for (const std::string& name : want) both.insert(name + ".weight"), both.insert(name + ".bias");
  CHECK(names == both);
  CHECK(shapes_of(ResNet18<10>::layers, {1, 3, 64, 64}).size() == 122);
  CHECK(shapes_of(MobileNetV2<10>::layers, {1, 3, 64, 64}).size() == 314);
  CHECK(shapes_of(SqueezeNet11<10>::layers, {1, 3, 64, 64}).size() == 52);
  CHECK(shapes_of(DenseNet121<10>::layers, {1, 3, 64, 64}).size() == 727);
}
TEST_CASE("a trainer's weights go through files and come back bit for bit") {
  const Folder folder;
  Trainer<Net, Policy<Column>, Reference<float>> a(input, Sgd{.lr = 0.1}, {.seed = 1}), b(input, Sgd{.lr = 0.1}, {.seed = 2});
  std::vector<float> images(64);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = std::sin(static_cast<float>(i));
  const std::vector<std::int32_t> labels{0, 2};
  a.step(MemorySource<float>(images.data(), input), labels);
  a.step(MemorySource<float>(images.data(), input), labels);
  write_safetensors(folder.path / "a.safetensors", weights_of(a).tensors);
  write_npy_folder(folder.path / "a", weights_of(a).tensors);
  CHECK(to_string(load_weights(b, SafetensorsFile(folder.path / "a.safetensors"))) == "8 tensors loaded");
  CHECK(b.read_parameters() == a.read_parameters());
  Trainer<Net, Policy<Column>, Reference<float>> c(input, Sgd{.lr = 0.1}, {.seed = 3});
  CHECK(to_string(load_weights(c, NpyFolder(folder.path / "a"))) == "8 tensors loaded");
  CHECK(c.read_parameters() == a.read_parameters());
  const Weights weights = weights_of(a);
  for (const NamedTensor& t : weights.tensors)
    if (t.name == "bn1.num_batches_tracked") CHECK(t.bytes[0] == std::byte{2});
  // Through other types: to the nearest, and doubles exactly.
  for (const auto& [type, digits] : {std::pair{TensorType::f16, 11}, {TensorType::bf16, 8}, {TensorType::f64, 24}}) {
    write_safetensors(folder.path / "t", weights_of(a, {.type = type}).tensors);
    const WeightReport report = load_weights(b, SafetensorsFile(folder.path / "t"));
    CHECK(report.converted == std::map<std::string, Index>{{std::string(type_name(type)) + " to F32", 8}});
    for (std::size_t i = 0; i < a.read_parameters().size(); ++i)
      CHECK(std::abs(b.read_parameters()[i] - a.read_parameters()[i]) <=
            std::ldexp(std::abs(a.read_parameters()[i]), -digits) + 0x1p-25);   // F16 has few bits below 2^-14
  }
  Predictor<Net, Policy<Column>, Reference<float>> predictor(input, a.read_parameters());
  CHECK(weights_of(predictor.plan().table, std::span<const float>(a.parameters())).tensors.size() == 9);
}
TEST_CASE("numbers that a type cannot hold are not saved in it") {
  const Table table = table_of<Net>(input);
  std::vector<float> values(static_cast<std::size_t>(parameter_count(table)), 1.0f);
  values[3] = 1e5f;
  CHECK(error_of<DataError>([&] { weights_of(table, std::span<const float>(values), {.type = TensorType::f16}); }) ==
        "lrcnn: parameter 'conv1.weight' has an element 1e+05, which F16 cannot hold; it holds numbers up to 65504; save in a type with a larger "
        "range");
  values[3] = std::numeric_limits<float>::infinity();
  CHECK(weights_of(table, std::span<const float>(values), {.type = TensorType::f16}).tensors.size() == 9);
  CHECK(error_of([&] { weights_of(table, std::span<const float>(values), {.type = TensorType::i64}); }) ==
        "lrcnn: parameters are to be saved as I64; parameters are F64, F32, F16 or BF16; choose one of these");
}
